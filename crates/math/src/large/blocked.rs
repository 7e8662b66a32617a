//! The blocked algorithms, implemented with faer.

use std::array;

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{cholesky_in_place, cholesky_in_place_scratch};
use faer::linalg::evd::{
    ComputeEigenvectors, evd_cplx, evd_scratch, self_adjoint_evd, self_adjoint_evd_scratch,
};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj,
};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::qr::no_pivoting::factor::{
    qr_in_place, qr_in_place_scratch, recommended_block_size,
};
use faer::linalg::svd::{ComputeSvdVectors, svd_scratch};
use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place, solve_unit_lower_triangular_in_place,
    solve_upper_triangular_in_place,
};
use faer::linalg::{matmul, svd as faer_svd};
use faer::{Accum, Conj, MatMut, MatRef, Par, Spec};
use num_complex::Complex64;

use super::{Lu, Triangle};

/// A type of matrix elements, real or complex.
pub use faer::traits::ComplexField as Number;

/// The smallest number of rows for which callers use faer's algorithms instead of their own loops.
pub const LARGE: usize = 48;

/// Each matrix is processed by a single thread, so results do not depend on the number of threads.
const PAR: Par = Par::Seq;

fn columns<T>(a: &[T], rows: usize, columns: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(a, rows, columns)
}

fn columns_mut<T>(a: &mut [T], rows: usize, columns: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(a, rows, columns)
}

fn zeros<T: Number>(count: usize) -> Vec<T> {
    vec![T::zero_impl(); count]
}

/// Returns the product A · B, where A is m × k and B is k × n.
pub fn multiply<T: Number>(a: &[T], b: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    let mut out = zeros(m * n);
    matmul::matmul(
        columns_mut(&mut out, m, n),
        Accum::Replace,
        columns(a, m, k),
        columns(b, k, n),
        T::one_impl(),
        PAR,
    );
    out
}

/// Computes the LU factors of a square matrix in 2n³/3 operations.
pub fn lu<T: Number>(a: &[T], n: usize) -> Lu<T> {
    let mut factors = a.to_vec();
    let [mut order, mut inverse] = array::from_fn(|_| vec![0usize; n]);
    let mut memory = MemBuffer::new(lu_in_place_scratch::<usize, T>(n, n, PAR, Spec::default()));
    let (info, _) = lu_in_place(
        columns_mut(&mut factors, n, n),
        &mut order,
        &mut inverse,
        PAR,
        MemStack::new(&mut memory),
        Spec::default(),
    );
    Lu {
        factors,
        order,
        sign: if info.transposition_count % 2 == 0 {
            1.0
        } else {
            -1.0
        },
    }
}

/// Computes `X ← T⁻¹ X` , where T is a triangle of the n × n matrix `a` and X has n rows. The solution takes n²
/// operations per column of X.
pub fn solve<T: Number>(a: &[T], n: usize, which: Triangle, x: &mut [T]) {
    let a = columns(a, n, n);
    let count = x.len().checked_div(n).unwrap_or(0);
    let x = columns_mut(x, n, count);
    match which {
        Triangle::Lower => solve_lower_triangular_in_place(a, x, PAR),
        Triangle::UnitLower => solve_unit_lower_triangular_in_place(a, x, PAR),
        Triangle::LowerTransposed => solve_upper_triangular_in_place(a.transpose(), x, PAR),
        Triangle::Upper => solve_upper_triangular_in_place(a, x, PAR),
    }
}

/// Returns the lower Cholesky factor of a symmetric matrix, or `None` if the matrix is not positive definite. The
/// function reads only the lower triangle and takes n³/3 operations.
pub fn cholesky(a: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut l = a.to_vec();
    let mut memory = MemBuffer::new(cholesky_in_place_scratch::<f64>(n, PAR, Spec::default()));
    cholesky_in_place(
        columns_mut(&mut l, n, n),
        Default::default(),
        PAR,
        MemStack::new(&mut memory),
        Spec::default(),
    )
    .ok()?;
    for j in 0..n {
        l[j * n..j * n + j].fill(0.0);
    }
    // A pivot that is NaN passes the comparisons of the factorisation.
    let positive = |i: usize| l[i * n + i] > 0.0 && l[i * n + i].is_finite();
    (0..n).all(positive).then_some(l)
}

/// Computes the QR decomposition of an m × n matrix by Householder reflections. Returns the orthogonal factor, followed
/// by the upper triangular factor (m × n). Of the m columns of the orthogonal factor, only the first `across` are
/// returned.
pub fn qr(a: &[f64], [m, n]: [usize; 2], across: usize) -> (Vec<f64>, Vec<f64>) {
    let size = recommended_block_size::<f64>(m, n);
    let mut r = a.to_vec();
    let mut coefficients = zeros(size * m.min(n));
    let scratch = qr_in_place_scratch::<f64>(m, n, size, PAR, Spec::default());
    qr_in_place(
        columns_mut(&mut r, m, n),
        columns_mut(&mut coefficients, size, m.min(n)),
        PAR,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Spec::default(),
    );
    let mut q = zeros(m * across);
    (0..across).for_each(|i| q[i * m + i] = 1.0);
    let count = m.min(n);
    let scratch =
        apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(m, size, across);
    apply_block_householder_sequence_on_the_left_in_place_with_conj(
        columns(&r[..m * count], m, count),
        columns(&coefficients, size, count),
        Conj::No,
        columns_mut(&mut q, m, across),
        PAR,
        MemStack::new(&mut MemBuffer::new(scratch)),
    );
    for j in 0..n {
        r[j * m + (j + 1).min(m)..(j + 1) * m].fill(0.0);
    }
    (q, r)
}

/// Returns the left singular vectors, the singular values in descending order, and the right singular vectors of an m ×
/// n matrix. There are min(m, n) singular values and pairs of vectors. Returns `None` if the matrix is not finite.
pub fn svd<T: Number>(a: &[T], m: usize, n: usize) -> Option<(Vec<T>, Vec<T>, Vec<T>)> {
    let k = m.min(n);
    let [mut u, mut s, mut v] = [m * k, k, n * k].map(zeros::<T>);
    let thin = ComputeSvdVectors::Thin;
    let scratch = svd_scratch::<T>(m, n, thin, thin, PAR, Spec::default());
    faer_svd::svd(
        columns(a, m, n),
        DiagMut::from_slice_mut(&mut s),
        Some(columns_mut(&mut u, m, k)),
        Some(columns_mut(&mut v, n, k)),
        PAR,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Spec::default(),
    )
    .ok()?;
    Some((u, s, v))
}

/// Returns the eigenvalues, in ascending order, and the eigenvectors of a symmetric or Hermitian matrix. Returns `None`
/// if the matrix is not finite. The function reads only the lower triangle.
pub fn eigen_hermitian<T: Number>(a: &[T], n: usize) -> Option<(Vec<T>, Vec<T>)> {
    let (mut values, mut vectors) = (zeros(n), zeros(n * n));
    let scratch = self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, PAR, Spec::default());
    self_adjoint_evd(
        columns(a, n, n),
        DiagMut::from_slice_mut(&mut values),
        Some(columns_mut(&mut vectors, n, n)),
        PAR,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Spec::default(),
    )
    .ok()?;
    Some((values, vectors))
}

/// Returns the eigenvalues and right eigenvectors of a matrix. Returns `None` if the matrix is not finite or the
/// iteration does not converge.
pub fn eigen(a: &[Complex64], n: usize) -> Option<(Vec<Complex64>, Vec<Complex64>)> {
    let (mut values, mut vectors) = (zeros(n), zeros(n * n));
    let scratch = evd_scratch::<Complex64>(
        n,
        ComputeEigenvectors::No,
        ComputeEigenvectors::Yes,
        PAR,
        Spec::default(),
    );
    evd_cplx(
        columns(a, n, n),
        DiagMut::from_slice_mut(&mut values),
        None,
        Some(columns_mut(&mut vectors, n, n)),
        PAR,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Spec::default(),
    )
    .ok()?;
    Some((values, vectors))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(at: usize) -> f64 {
        let x = at as f64 + 0.3;
        (2.3 * x * x).sin()
    }

    fn identity(n: usize) -> Vec<Complex64> {
        (0..n * n)
            .map(|at| f64::from(u8::from(at / n == at % n)).into())
            .collect()
    }

    fn matrix(m: usize, n: usize) -> Vec<Complex64> {
        (0..m * n)
            .map(|at| Complex64::new(number(at), number(3 * at + 1)))
            .collect()
    }

    fn adjoint(a: &[Complex64], m: usize, n: usize) -> Vec<Complex64> {
        (0..m * n).map(|at| a[at % n * m + at / n].conj()).collect()
    }

    fn far(a: &[Complex64], b: &[Complex64]) -> f64 {
        assert_eq!(a.len(), b.len());
        let gaps = a.iter().zip(b).map(|(x, y)| (x - y).norm());
        gaps.fold(0.0, |most: f64, x| if x <= most { most } else { x })
    }

    #[test]
    fn factors_multiply_to_their_matrices() {
        for n in [49, 130] {
            let a = matrix(n, n);
            let square = [n, n, n];
            let (values, vectors) = eigen(&a, n).expect("it ends");
            let scaled: Vec<Complex64> =
                (0..n * n).map(|at| vectors[at] * values[at / n]).collect();
            assert!(far(&multiply(&a, &vectors, square), &scaled) < 1e-10);
            let Lu { factors, order, .. } = lu(&a, n);
            let part = |keep: fn(usize, usize) -> bool, unit: bool| -> Vec<Complex64> {
                let each = |at: usize| match (at % n, at / n) {
                    (i, j) if unit && i == j => Complex64::ONE,
                    (i, j) if keep(i, j) => factors[at],
                    _ => Complex64::ZERO,
                };
                (0..n * n).map(each).collect()
            };
            let (lower, upper) = (part(|i, j| i > j, true), part(|i, j| i <= j, false));
            let rows: Vec<Complex64> = (0..n * n).map(|at| a[at / n * n + order[at % n]]).collect();
            assert!(far(&multiply(&lower, &upper, square), &rows) < 1e-11);
            let mut x = rows.clone();
            solve(&factors, n, Triangle::UnitLower, &mut x);
            solve(&factors, n, Triangle::Upper, &mut x);
            assert!(far(&x, &identity(n)) < 1e-9);
        }
    }

    #[test]
    fn rectangles_and_symmetric_matrices() {
        for (m, n) in [(60, 50), (50, 60), (200, 49), (49, 49)] {
            let a: Vec<f64> = (0..m * n).map(number).collect();
            let (q, r) = qr(&a, [m, n], m);
            let complex = |x: &[f64]| -> Vec<Complex64> { x.iter().map(|x| (*x).into()).collect() };
            let back = complex(&multiply(&q, &r, [m, m, n]));
            assert!(far(&back, &complex(&a)) < 1e-12);
            let (u, s, v) = svd(&matrix(m, n), m, n).expect("finite");
            let k = m.min(n);
            let scaled: Vec<Complex64> = (0..m * k).map(|at| u[at] * s[at / m]).collect();
            let back = multiply(&scaled, &adjoint(&v, n, k), [m, k, n]);
            assert!(far(&back, &matrix(m, n)) < 1e-11);
            let gram = multiply(
                &a,
                &(0..m * n)
                    .map(|at| a[at % n * m + at / n])
                    .collect::<Vec<_>>(),
                [m, n, m],
            );
            let (values, vectors) = eigen_hermitian(&gram, m).expect("finite");
            let scaled: Vec<f64> = (0..m * m).map(|at| vectors[at] * values[at / m]).collect();
            let images = multiply(&gram, &vectors, [m, m, m]);
            assert!(far(&complex(&images), &complex(&scaled)) < 1e-10);
            let mut more = gram.clone();
            (0..m).for_each(|i| more[i * m + i] += 1.0);
            let l = cholesky(&more, m).expect("positive definite");
            let mut x = more.clone();
            solve(&l, m, Triangle::Lower, &mut x);
            solve(&l, m, Triangle::LowerTransposed, &mut x);
            assert!(far(&complex(&x), &identity(m)) < 1e-10);
        }
        assert!(cholesky(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(cholesky(&[f64::NAN], 1).is_none());
        assert!(svd(&[f64::NAN; 4], 2, 2).is_none());
    }
}
