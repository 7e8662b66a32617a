//! The replacement for the blocked algorithms in builds without the feature `large`. In such a build, no matrix reaches
//! [`LARGE`] rows, so the callers use their own loops for all matrices.

use num_complex::Complex64;

use super::{Lu, Triangle};

/// A type of matrix elements, real or complex.
pub trait Number: Copy {}

impl Number for f64 {}

impl Number for Complex64 {}

/// A number of rows that no matrix reaches.
pub const LARGE: usize = isize::MAX as usize;

/// Callers never reach these functions in a build without the feature `large`.
macro_rules! absent {
    ($(fn $name:ident $(<$t:ident>)? ($($type:ty),*) $(-> $out:ty)?;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of matrices with [`LARGE`] rows.")]
        pub fn $name $(<$t: Number>)? ($(_: $type),*) $(-> $out)? {
            unreachable!("a matrix of LARGE rows cannot exist")
        }
    )*};
}

absent! {
    fn multiply<T>(&[T], &[T], [usize; 3]) -> Vec<T>;
    fn lu<T>(&[T], usize) -> Lu<T>;
    fn solve<T>(&[T], usize, Triangle, &mut [T]);
    fn cholesky(&[f64], usize) -> Option<Vec<f64>>;
    fn qr(&[f64], [usize; 2], usize) -> (Vec<f64>, Vec<f64>);
    fn svd<T>(&[T], usize, usize) -> Option<(Vec<T>, Vec<T>, Vec<T>)>;
    fn eigen_hermitian<T>(&[T], usize) -> Option<(Vec<T>, Vec<T>)>;
    fn eigen(&[Complex64], usize) -> Option<(Vec<Complex64>, Vec<Complex64>)>;
}
