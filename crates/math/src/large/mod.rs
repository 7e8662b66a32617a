//! Dense algebra of matrices beyond a few dozen rows, by faer's blocked algorithms on the caller's thread.
//!
//! Matrices are column-major slices. [`dense`](crate::dense), [`complex`](crate::complex) and the interpreter of Stan
//! programs call these functions. Up to [`LARGE`] rows the callers' own loops are as fast, but for more rows they take
//! n³ scalar steps. Eigenvalues of 400 rows took 7 s with such loops and take 0.02 s here.

#[cfg(not(feature = "large"))]
mod absent;
#[cfg(feature = "large")]
mod blocked;

#[cfg(not(feature = "large"))]
pub use self::absent::*;
#[cfg(feature = "large")]
pub use self::blocked::*;

/// The factors of P A = L U with partial pivoting.
pub struct Lu<T> {
    /// L below the diagonal, and U on and above it.
    pub factors: Vec<T>,
    /// The row of A that is row i of P A, for each i.
    pub order: Vec<usize>,
    /// The determinant of P.
    pub sign: f64,
}

/// A triangle of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Triangle {
    /// The lower triangle.
    Lower,
    /// The lower triangle, with ones on its diagonal.
    UnitLower,
    /// The transpose of the lower triangle.
    LowerTransposed,
    /// The upper triangle.
    Upper,
}
