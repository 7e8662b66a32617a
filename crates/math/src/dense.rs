//! Factorisations of small dense matrices and solutions of their linear systems, on one thread.
//!
//! Matrices are square and row-major. A lower triangular factor is stored as a full matrix, including its zeros. Sums
//! use [`reduce`](crate::reduce), so the results are bitwise identical at every SIMD level.
//!
//! Other crates have factorisations for other purposes. The executor of the expression graph factors the matrices of
//! all lanes at once, with one matrix per lane. Its tests compare the factors with those of an independent, slower
//! implementation. `jensen-latent` uses faer's blocked algorithms to factor matrices of thousands of rows on several
//! threads.

use std::error::Error;
use std::fmt;

use crate::large::{self, LARGE};
use crate::reduce::{axpy, dot, dots};

/// The error for a matrix that has no Cholesky factor. It reports the first pivot that is too small.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotPositiveDefinite {
    /// The zero-based index of the failed pivot.
    pub pivot: usize,
    /// The value of the failed pivot. It is the diagonal element after the elimination of the earlier columns.
    pub value: f64,
}

impl fmt::Display for NotPositiveDefinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pivot, value } = self;
        write!(f, "not positive definite: pivot {} is {value}", pivot + 1)
    }
}

impl Error for NotPositiveDefinite {}

/// Computes the lower Cholesky factor of the symmetric matrix `a` in n³/3 operations. The function reads only the lower
/// triangle of `a`.
///
/// # Errors
/// Fails if a pivot is not finite or does not exceed `least` times its diagonal element. With `least = 0`, the function
/// accepts every matrix that has a factor in exact arithmetic. Because rounding errors are about 1e-16 times the
/// diagonal element, the function then also accepts some matrices that have no factor.
pub fn factor(a: &[f64], n: usize, least: f64) -> Result<Vec<f64>, NotPositiveDefinite> {
    let mut l = vec![0.0; n * n];
    // Rows are processed in pairs. Within each pair, columns are processed in groups of four, whose products with the
    // remaining columns are computed together.
    for top in (0..n).step_by(ROWS) {
        for first in (0..n.min(top + ROWS)).step_by(COLUMNS) {
            let (rows, columns) = (ROWS.min(n - top), COLUMNS.min(n - first));
            let mut left = [[0.0; COLUMNS]; ROWS];
            let row = |i: usize| &l[i * n..i * n + first];
            if first > 0 && rows == ROWS && columns == COLUMNS {
                left = dots(
                    std::array::from_fn(|i| row(top + i)),
                    std::array::from_fn(|j| row(first + j)),
                );
            } else if first > 0 {
                for (i, left) in left.iter_mut().enumerate().take(rows) {
                    for (j, left) in left.iter_mut().enumerate().take(columns) {
                        *left = dot(row(top + i), row(first + j));
                    }
                }
            }
            for (i, left) in (top..).zip(left).take(rows) {
                for (j, left) in (first..=i).zip(left).take(columns) {
                    let mut x = a[i * n + j] - left;
                    for k in first..j {
                        x -= l[i * n + k] * l[j * n + k];
                    }
                    if i == j {
                        let positive = x > least * a[i * n + i].abs() && x.is_finite();
                        if !positive {
                            return Err(NotPositiveDefinite { pivot: i, value: x });
                        }
                        l[i * n + i] = x.sqrt();
                    } else {
                        l[i * n + j] = x / l[j * n + j];
                    }
                }
            }
        }
    }
    Ok(l)
}

const ROWS: usize = 2;
const COLUMNS: usize = 4;

/// Computes the lower Cholesky factor of a matrix that is positive definite by more than rounding errors: every pivot
/// must exceed 1e-14 times its diagonal element. Returns `None` for other matrices.
pub fn cholesky(a: &[f64], n: usize) -> Option<Vec<f64>> {
    factor(a, n, 1e-14).ok()
}

/// Returns log |A|, given the lower factor of A.
pub fn log_determinant(l: &[f64], n: usize) -> f64 {
    2.0 * (0..n).map(|i| l[i * n + i].ln()).sum::<f64>()
}

/// Computes `x ← L⁻¹ x`.
pub fn solve_lower(l: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in 0..n {
        let known = dot(&l[i * n..i * n + i], &x[..i]);
        x[i] = (x[i] - known) / l[i * n + i];
    }
}

/// Computes `x ← L⁻ᵀ x`.
pub fn solve_lower_transposed(l: &[f64], x: &mut [f64]) {
    let n = x.len();
    for i in (0..n).rev() {
        x[i] /= l[i * n + i];
        let c = x[i];
        let (head, _) = x.split_at_mut(i);
        axpy(-c, &l[i * n..i * n + i], head);
    }
}

/// Computes `X ← L⁻¹ X`. X is an n × `lanes` matrix.
pub fn solve_lower_lanes(l: &[f64], n: usize, x: &mut [f64], lanes: usize) {
    for i in 0..n {
        let (done, rest) = x.split_at_mut(i * lanes);
        let row = &mut rest[..lanes];
        for j in 0..i {
            axpy(-l[i * n + j], &done[j * lanes..(j + 1) * lanes], row);
        }
        let c = 1.0 / l[i * n + i];
        row.iter_mut().for_each(|x| *x *= c);
    }
}

/// Computes `X ← L⁻ᵀ X`. X is an n × `lanes` matrix.
pub fn solve_lower_transposed_lanes(l: &[f64], n: usize, x: &mut [f64], lanes: usize) {
    for i in (0..n).rev() {
        let (head, done) = x.split_at_mut((i + 1) * lanes);
        let row = &mut head[i * lanes..];
        for (k, other) in done.chunks_exact(lanes).enumerate() {
            axpy(-l[(i + 1 + k) * n + i], other, row);
        }
        let c = 1.0 / l[i * n + i];
        row.iter_mut().for_each(|x| *x *= c);
    }
}

/// Returns A⁻¹, given the lower factor of A.
pub fn inverse(l: &[f64], n: usize) -> Vec<f64> {
    let mut x = vec![0.0; n * n];
    for i in 0..n {
        x[i * n + i] = 1.0;
    }
    solve_lower_lanes(l, n, &mut x, n);
    solve_lower_transposed_lanes(l, n, &mut x, n);
    x
}

/// Returns the lower Cholesky factor of `A⁻¹`, given the lower factor of `A` (both n × n). The upper triangular matrix
/// `R = L⁻ᵀ` satisfies `A⁻¹ = R Rᵀ`, and the function converts R to a lower triangular factor.
pub fn inverse_factor(l: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut inverse = vec![0.0; n * n];
    let mut column = vec![0.0; n];
    for j in 0..n {
        column.fill(0.0);
        column[j] = 1.0;
        solve_lower(l, &mut column);
        solve_lower_transposed(l, &mut column);
        for i in 0..n {
            inverse[i * n + j] = column[i];
        }
    }
    cholesky(&inverse, n)
}

/// Returns the eigenvalues of a symmetric matrix in ascending order, followed by its eigenvectors, one after another.
/// The largest component of each eigenvector is positive. The results are NaN if any element of the matrix is not
/// finite.
pub fn eigen_symmetric(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let finite = a.iter().all(|x| x.is_finite());
    let found = match (finite, n >= LARGE) {
        (false, _) => None,
        (true, true) => large::eigen_hermitian(a, n),
        (true, false) => Some(jacobi(a, n)),
    };
    let Some((values, mut vectors)) = found else {
        return (vec![f64::NAN; n], vec![f64::NAN; n * n]);
    };
    for column in vectors.chunks_exact_mut(n.max(1)) {
        let largest = column
            .iter()
            .fold(0.0f64, |a, x| if x.abs() > a.abs() { *x } else { a });
        if largest < 0.0 {
            column.iter_mut().for_each(|x| *x = -*x);
        }
    }
    (values, vectors)
}

fn jacobi(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut m = a.to_vec();
    let mut v: Vec<f64> = (0..n * n)
        .map(|at| f64::from(u8::from(at / n == at % n)))
        .collect();
    for _ in 0..100 {
        let squares = |off: bool| -> f64 {
            let counts = |at: &usize| !off || at / n != at % n;
            (0..n * n).filter(counts).map(|at| m[at] * m[at]).sum()
        };
        if squares(true) <= squares(false) * 1e-34 {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if m[q * n + p] == 0.0 {
                    continue;
                }
                let theta = (m[q * n + q] - m[p * n + p]) / (2.0 * m[q * n + p]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                let turn = |m: &mut [f64], at: usize, to: usize| {
                    let (x, y) = (m[at], m[to]);
                    m[at] = c * x - s * y;
                    m[to] = s * x + c * y;
                };
                for k in 0..n {
                    turn(&mut m, p * n + k, q * n + k);
                    turn(&mut v, p * n + k, q * n + k);
                }
                for k in 0..n {
                    turn(&mut m, k * n + p, k * n + q);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| m[i * n + i].total_cmp(&m[j * n + j]));
    let values = order.iter().map(|i| m[i * n + i]).collect();
    let columns = order.iter().flat_map(|j| &v[j * n..(j + 1) * n]);
    (values, columns.copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_and_solves_invert_each_other() {
        let n = 11;
        let mut a = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..n {
                a[i * n + j] = ((i * j) as f64 * 0.7).sin() * 0.3;
            }
        }
        for i in 0..n {
            for j in 0..i {
                a[j * n + i] = a[i * n + j];
            }
            a[i * n + i] = 4.0 + i as f64;
        }
        let l = cholesky(&a, n).unwrap();
        let x: Vec<f64> = (0..n).map(|i| i as f64 - 3.0).collect();
        let mut y: Vec<f64> = (0..n).map(|i| dot(&a[i * n..(i + 1) * n], &x)).collect();
        solve_lower(&l, &mut y);
        solve_lower_transposed(&l, &mut y);
        assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() < 1e-12));
        let r = inverse_factor(&l, n).unwrap();
        for i in 0..n {
            for j in 0..n {
                let product: f64 = (0..n)
                    .map(|k| a[i * n + k] * dot(&r[k * n..(k + 1) * n], &r[j * n..(j + 1) * n]))
                    .sum();
                let unit = if i == j { 1.0 } else { 0.0 };
                assert!((product - unit).abs() < 1e-12);
            }
        }
        let whole = inverse(&l, n);
        for i in 0..n {
            for j in 0..n {
                let product = dot(&a[i * n..(i + 1) * n], &whole[j * n..(j + 1) * n]);
                assert!((product - if i == j { 1.0 } else { 0.0 }).abs() < 1e-12);
            }
        }
        a[0] = -1.0;
        assert!(cholesky(&a, n).is_none());
    }

    #[test]
    fn a_pivot_that_is_too_small_is_named() {
        let singular = [1.0, 1.0, 1.0, 1.0 + 1e-15];
        assert!(cholesky(&singular, 2).is_none());
        assert!(factor(&singular, 2, 0.0).is_ok());
        let error = factor(&[1.0, 2.0, 2.0, 1.0], 2, 0.0).unwrap_err();
        assert_eq!(
            error,
            NotPositiveDefinite {
                pivot: 1,
                value: -3.0
            }
        );
        assert_eq!(error.to_string(), "not positive definite: pivot 2 is -3");
        let l = cholesky(&[4.0, 0.0, 0.0, 9.0], 2).unwrap();
        assert!((log_determinant(&l, 2) - 36f64.ln()).abs() < 1e-14);
    }
}
