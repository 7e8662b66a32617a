//! Dense linear algebra. Small matrices use the plain code in this file. Tests of the fast engine also compare with
//! this code. Large matrices use [`large`].

use jensen_math::complex;
use jensen_math::large::{self, LARGE, Triangle};
use num_complex::Complex64;

use crate::value::error::{FnError, FnResult};
use crate::value::ops::Scalar;
use crate::value::{Mat, Matrix};

/// Returns `a · b`.
pub fn multiply<T: Scalar>(a: &Mat<T>, b: &Mat<T>) -> Mat<T> {
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    if m.min(k).min(n) >= LARGE {
        return Mat::new(m, n, large::multiply(a.data(), b.data(), [m, k, n]));
    }
    let mut out = Mat::filled(a.rows(), b.cols(), T::ZERO);
    for j in 0..b.cols() {
        for k in 0..a.cols() {
            let factor = b[(k, j)];
            for i in 0..a.rows() {
                out[(i, j)] += a[(i, k)] * factor;
            }
        }
    }
    out
}

/// Returns the identity matrix.
pub fn identity(n: usize) -> Matrix {
    Mat::from_fn(n, n, |i, j| if i == j { 1.0 } else { 0.0 })
}

/// Checks that the matrix is square, and returns its extent.
///
/// # Errors
/// Fails if the matrix is not square.
pub fn check_square<T: Copy>(name: &str, m: &Mat<T>) -> FnResult<usize> {
    if m.rows() != m.cols() {
        return Err(FnError::invalid(format!(
            "{name}: the matrix is {} × {}, but must be square",
            m.rows(),
            m.cols()
        )));
    }
    Ok(m.rows())
}

/// The largest allowed difference between symmetric elements, as in Stan.
pub const SYMMETRY: f64 = 1e-8;

/// Checks that the matrix is symmetric to within [`SYMMETRY`], and returns its extent.
///
/// # Errors
/// Fails if the matrix is not square. Also fails if the matrix is not symmetric, and this error rejects the point.
pub fn check_symmetric(name: &str, m: &Matrix) -> FnResult<usize> {
    let n = check_square(name, m)?;
    for j in 0..n {
        for i in j + 1..n {
            if (m[(i, j)] - m[(j, i)]).abs() > SYMMETRY || m[(i, j)].is_nan() {
                return Err(FnError::domain(format!(
                    "{name}: the matrix is not symmetric: [{},{}] is {}, but [{},{}] is {}",
                    i + 1,
                    j + 1,
                    m[(i, j)],
                    j + 1,
                    i + 1,
                    m[(j, i)]
                )));
            }
        }
    }
    Ok(n)
}

/// An LU decomposition with partial pivoting. The decomposition contains both factors in one matrix, the permutation of
/// the rows, and the sign of the permutation.
pub struct Lu<T> {
    factors: Mat<T>,
    order: Vec<usize>,
    sign: f64,
}

/// Factors a square matrix. If the matrix is singular, the diagonal of U contains a zero.
pub fn lu<T: Scalar>(a: &Mat<T>) -> Lu<T> {
    let n = a.rows();
    if n >= LARGE {
        let found = large::lu(a.data(), n);
        return Lu {
            factors: Mat::new(n, n, found.factors),
            order: found.order,
            sign: found.sign,
        };
    }
    let mut f = a.clone();
    let mut order: Vec<usize> = (0..n).collect();
    let mut sign = 1.0;
    for k in 0..n {
        let mut pivot = k;
        for i in k + 1..n {
            if f[(i, k)].magnitude() > f[(pivot, k)].magnitude() {
                pivot = i;
            }
        }
        if pivot != k {
            sign = -sign;
            order.swap(k, pivot);
            for j in 0..n {
                let (x, y) = (f[(k, j)], f[(pivot, j)]);
                f[(k, j)] = y;
                f[(pivot, j)] = x;
            }
        }
        if f[(k, k)].magnitude() == 0.0 {
            continue;
        }
        for i in k + 1..n {
            let factor = f[(i, k)] / f[(k, k)];
            f[(i, k)] = factor;
            for j in k + 1..n {
                f[(i, j)] = f[(i, j)] - factor * f[(k, j)];
            }
        }
    }
    Lu {
        factors: f,
        order,
        sign,
    }
}

impl<T: Scalar> Lu<T> {
    /// Returns the diagonal of U.
    pub fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.factors.rows()).map(|i| self.factors[(i, i)])
    }

    /// Returns the sign of the permutation.
    pub fn sign(&self) -> f64 {
        self.sign
    }

    fn solve(&self, b: &Mat<T>) -> Mat<T> {
        let n = self.factors.rows();
        let f = &self.factors;
        let mut x = Mat::from_fn(n, b.cols(), |i, j| b[(self.order[i], j)]);
        if n >= LARGE {
            for triangle in [Triangle::UnitLower, Triangle::Upper] {
                large::solve(f.data(), n, triangle, x.data_mut());
            }
            return x;
        }
        for c in 0..b.cols() {
            for i in 0..n {
                for k in 0..i {
                    x[(i, c)] = x[(i, c)] - f[(i, k)] * x[(k, c)];
                }
            }
            for i in (0..n).rev() {
                for k in i + 1..n {
                    x[(i, c)] = x[(i, c)] - f[(i, k)] * x[(k, c)];
                }
                x[(i, c)] /= f[(i, i)];
            }
        }
        x
    }
}

/// Returns `a⁻¹ b`.
///
/// # Errors
/// Fails if `a` is not square, or if `b` has a different number of rows.
pub fn solve<T: Scalar>(a: &Mat<T>, b: &Mat<T>) -> FnResult<Mat<T>> {
    let n = check_square("division", a)?;
    if b.rows() != n {
        return Err(FnError::invalid(format!(
            "division: a {n} × {n} matrix does not fit one of {} × {}",
            b.rows(),
            b.cols()
        )));
    }
    Ok(lu(a).solve(b))
}

/// Returns the lower Cholesky factor.
///
/// # Errors
/// Fails if the matrix is not symmetric or not positive definite, which rejects the point.
pub fn cholesky(name: &str, a: &Matrix) -> FnResult<Matrix> {
    let n = check_symmetric(name, a)?;
    let indefinite = || FnError::domain(format!("{name}: the matrix is not positive definite"));
    if n >= LARGE {
        let l = large::cholesky(a.data(), n).ok_or_else(indefinite)?;
        return Ok(Mat::new(n, n, l));
    }
    let rows: Vec<f64> = (0..n * n).map(|at| a[(at / n, at % n)]).collect();
    let l = jensen_math::dense::factor(&rows, n, 0.0).map_err(|_| indefinite())?;
    Ok(Mat::from_fn(n, n, |i, j| l[i * n + j]))
}

/// Returns `l⁻¹ b`. Uses only the lower triangle of `l`.
pub fn solve_lower(l: &Matrix, b: &Matrix) -> Matrix {
    let n = l.rows();
    let mut x = b.clone();
    if n >= LARGE {
        large::solve(l.data(), n, Triangle::Lower, x.data_mut());
        return x;
    }
    for c in 0..b.cols() {
        for i in 0..n {
            for k in 0..i {
                x[(i, c)] -= l[(i, k)] * x[(k, c)];
            }
            x[(i, c)] /= l[(i, i)];
        }
    }
    x
}

/// Returns `l⁻ᵀ b`. Uses only the lower triangle of `l`.
pub fn solve_lower_transposed(l: &Matrix, b: &Matrix) -> Matrix {
    let n = l.rows();
    let mut x = b.clone();
    if n >= LARGE {
        large::solve(l.data(), n, Triangle::LowerTransposed, x.data_mut());
        return x;
    }
    for c in 0..b.cols() {
        for i in (0..n).rev() {
            for k in i + 1..n {
                x[(i, c)] -= l[(k, i)] * x[(k, c)];
            }
            x[(i, c)] /= l[(i, i)];
        }
    }
    x
}

/// Returns `Σ⁻¹ b`, where `l` is the Cholesky factor of `Σ`.
pub fn solve_cholesky(l: &Matrix, b: &Matrix) -> Matrix {
    solve_lower_transposed(l, &solve_lower(l, b))
}

/// Returns `log |Σ|`, where `l` is the Cholesky factor of `Σ`.
pub fn log_det_cholesky(l: &Matrix) -> f64 {
    (0..l.rows()).map(|i| 2.0 * l[(i, i)].abs().ln()).sum()
}

/// Returns the eigenvalues of a symmetric matrix in ascending order, and the eigenvectors as columns. The largest
/// component of each vector is positive.
pub fn eigen_symmetric(a: &Matrix) -> (Vec<f64>, Matrix) {
    let n = a.rows();
    let (values, vectors) = jensen_math::dense::eigen_symmetric(a.data(), n);
    (values, Mat::new(n, n, vectors))
}

fn rotate(m: &mut Matrix, p: usize, q: usize, c: f64, s: f64) {
    for k in 0..m.rows() {
        let (x, y) = (m[(k, p)], m[(k, q)]);
        m[(k, p)] = c * x - s * y;
        m[(k, q)] = s * x + c * y;
    }
}

/// Computes the QR decomposition by Householder reflections. Returns `across` columns of the orthogonal factor, and the
/// upper triangular factor, which has the shape of `a`. As in Stan, the diagonal of the upper triangular factor is not
/// negative.
pub fn qr(a: &Matrix, across: usize) -> (Matrix, Matrix) {
    let (m, n) = (a.rows(), a.cols());
    let (mut q, mut r) = match m.min(n) >= LARGE {
        true => {
            let (q, r) = large::qr(a.data(), [m, n], across);
            (Mat::new(m, across, q), Mat::new(m, n, r))
        }
        false => reflections(a, across),
    };
    for k in 0..n.min(m) {
        if r[(k, k)] < 0.0 {
            for j in 0..n {
                r[(k, j)] = -r[(k, j)];
            }
            for i in 0..m {
                q[(i, k)] = -q[(i, k)];
            }
        }
    }
    (q, r)
}

/// Computes the factors of [`qr`] except for their signs.
fn reflections(a: &Matrix, across: usize) -> (Matrix, Matrix) {
    let (m, n) = (a.rows(), a.cols());
    // `x ← (I − 2 v vᵀ / vᵀv) x` for the part of a column from row k on.
    let reflect = |x: &mut [f64], v: &[f64], vv: f64| {
        let dot: f64 = v.iter().zip(&*x).map(|(v, x)| v * x).sum();
        let factor = 2.0 * dot / vv;
        x.iter_mut().zip(v).for_each(|(x, v)| *x -= factor * v);
    };
    let mut r = a.clone();
    let mut made: Vec<(Vec<f64>, f64)> = Vec::with_capacity(n.min(m));
    for k in 0..n.min(m) {
        let mut v = r.column(k)[k..].to_vec();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        v[0] += if v[0] > 0.0 { norm } else { -norm };
        let vv: f64 = v.iter().map(|x| x * x).sum();
        if vv != 0.0 {
            for column in r.data_mut().chunks_exact_mut(m) {
                reflect(&mut column[k..], &v, vv);
            }
        }
        made.push((v, vv));
    }
    let mut q = Mat::from_fn(m, across, |i, j| if i == j { 1.0 } else { 0.0 });
    for (k, (v, vv)) in made
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, (_, vv))| *vv != 0.0)
    {
        for column in q.data_mut().chunks_exact_mut(m) {
            reflect(&mut column[k..], v, *vv);
        }
    }
    for k in 0..n.min(m) {
        for i in k + 1..m {
            r[(i, k)] = 0.0;
        }
    }
    (q, r)
}

/// Returns the singular value decomposition as `U` (rows × k), the singular values in descending order, and `V`
/// (columns × k), where k is the smaller extent. The sign of each pair of singular vectors makes its largest component
/// positive.
///
/// For small k, the function uses one-sided Jacobi rotations. A vector on the longer side is then NaN if its singular
/// value is 0. For large k, such vectors complete the orthogonal basis.
pub fn svd(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows() < a.cols() {
        let (u, s, v) = svd(&a.transpose());
        return (v, s, u);
    }
    let n = a.cols();
    if n >= LARGE {
        let nan = |rows| Mat::filled(rows, n, f64::NAN);
        return match large::svd(a.data(), a.rows(), n) {
            Some((u, s, v)) => signed(Mat::new(a.rows(), n, u), s, Mat::new(n, n, v)),
            None => (nan(a.rows()), vec![f64::NAN; n], nan(n)),
        };
    }
    let mut u = a.clone();
    let mut v = identity(n);
    let dot = |m: &Matrix, p: usize, q: usize| -> f64 {
        m.column(p)
            .iter()
            .zip(m.column(q))
            .map(|(x, y)| x * y)
            .sum()
    };
    for _ in 0..100 {
        let mut rotated = false;
        for p in 0..n {
            for q in p + 1..n {
                let (pp, qq, pq) = (dot(&u, p, p), dot(&u, q, q), dot(&u, p, q));
                if pq.abs() <= 1e-16 * (pp * qq).sqrt() || pq.is_nan() {
                    continue;
                }
                rotated = true;
                let theta = (qq - pp) / (2.0 * pq);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                rotate(&mut u, p, q, c, t * c);
                rotate(&mut v, p, q, c, t * c);
            }
        }
        if !rotated {
            break;
        }
    }
    let norms: Vec<f64> = (0..n).map(|j| dot(&u, j, j).sqrt()).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| norms[*j].total_cmp(&norms[*i]));
    let left = Mat::from_fn(a.rows(), n, |i, j| u[(i, order[j])] / norms[order[j]]);
    let right = Mat::from_fn(n, n, |i, j| v[(i, order[j])]);
    signed(left, order.iter().map(|j| norms[*j]).collect(), right)
}

fn signed(mut left: Matrix, values: Vec<f64>, mut right: Matrix) -> (Matrix, Vec<f64>, Matrix) {
    for j in 0..values.len() {
        let larger = |a: f64, x: &f64| if x.abs() > a.abs() { *x } else { a };
        let both = left.column(j).iter().chain(right.column(j));
        if both.fold(0.0, larger) < 0.0 {
            for m in [&mut left, &mut right] {
                let rows = m.rows();
                let column = &mut m.data_mut()[j * rows..(j + 1) * rows];
                column.iter_mut().for_each(|x| *x = -*x);
            }
        }
    }
    (left, values, right)
}

/// Returns the singular value decomposition of a complex matrix, A = U S Vᴴ. The phase of each pair of singular vectors
/// makes its largest component positive.
pub fn complex_svd(a: &Mat<Complex64>) -> (Mat<Complex64>, Vec<f64>, Mat<Complex64>) {
    let (m, n) = (a.rows(), a.cols());
    let k = m.min(n);
    let found = complex::svd(a.data(), m, n);
    (
        Mat::new(m, k, found.left),
        found.values,
        Mat::new(n, k, found.right),
    )
}

/// Computes the matrix exponential by scaling, a Taylor polynomial of degree 24 and squaring.
pub fn exponential(a: &Matrix) -> Matrix {
    let n = a.rows();
    let norm = (0..n)
        .map(|j| a.column(j).iter().map(|x| x.abs()).sum::<f64>())
        .fold(0.0, f64::max);
    let squarings = if norm > 0.5 && norm.is_finite() {
        (norm / 0.5).log2().ceil() as i32
    } else {
        0
    };
    let scaled = a.map(|x| x * 0.5f64.powi(squarings));
    let mut sum = identity(n);
    let mut term = identity(n);
    for k in 1..=24 {
        term = multiply(&term, &scaled).map(|x| x / f64::from(k));
        sum = Mat::from_fn(n, n, |i, j| sum[(i, j)] + term[(i, j)]);
    }
    for _ in 0..squarings {
        sum = multiply(&sum, &sum);
    }
    sum
}
