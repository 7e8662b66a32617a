//! Dense linear algebra on small matrices, written for clarity: the reference the fast engine is tested against.

use jensen_math::complex;
use num_complex::Complex64;

use crate::value::error::{FnError, FnResult};
use crate::value::ops::Scalar;
use crate::value::{Mat, Matrix};

/// `a · b`
pub fn multiply<T: Scalar>(a: &Mat<T>, b: &Mat<T>) -> Mat<T> {
    let mut out = Mat::filled(a.rows(), b.cols(), T::ZERO);
    for j in 0..b.cols() {
        for k in 0..a.cols() {
            let factor = b[(k, j)];
            for i in 0..a.rows() {
                out[(i, j)] = out[(i, j)] + a[(i, k)] * factor;
            }
        }
    }
    out
}

/// The identity.
pub fn identity(n: usize) -> Matrix {
    Mat::from_fn(n, n, |i, j| if i == j { 1.0 } else { 0.0 })
}

/// Whether the matrix is square.
///
/// # Errors
/// When it is not.
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

/// How far symmetric elements may be apart, as Stan checks it.
pub const SYMMETRY: f64 = 1e-8;

/// Whether the matrix is symmetric to [`SYMMETRY`].
///
/// # Errors
/// When it is not (the point is rejected), or not square.
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

/// The LU decomposition with partial pivoting: factors in one matrix, the row permutation and its sign.
pub struct Lu<T> {
    factors: Mat<T>,
    order: Vec<usize>,
    sign: f64,
}

/// Factors a square matrix; singular ones have a zero on the diagonal.
pub fn lu<T: Scalar>(a: &Mat<T>) -> Lu<T> {
    let n = a.rows();
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
    /// The diagonal of U.
    pub fn diagonal(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.factors.rows()).map(|i| self.factors[(i, i)])
    }

    /// Sign of the permutation.
    pub fn sign(&self) -> f64 {
        self.sign
    }

    fn solve(&self, b: &Mat<T>) -> Mat<T> {
        let n = self.factors.rows();
        let f = &self.factors;
        let mut x = Mat::from_fn(n, b.cols(), |i, j| b[(self.order[i], j)]);
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
                x[(i, c)] = x[(i, c)] / f[(i, i)];
            }
        }
        x
    }
}

/// `a⁻¹ b`
///
/// # Errors
/// When `a` is not square or does not fit `b`.
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

/// The lower Cholesky factor.
///
/// # Errors
/// When the matrix is not symmetric or not positive definite: the point is rejected.
pub fn cholesky(name: &str, a: &Matrix) -> FnResult<Matrix> {
    let n = check_symmetric(name, a)?;
    let rows: Vec<f64> = (0..n * n).map(|at| a[(at / n, at % n)]).collect();
    let l = jensen_math::dense::factor(&rows, n, 0.0)
        .map_err(|_| FnError::domain(format!("{name}: the matrix is not positive definite")))?;
    Ok(Mat::from_fn(n, n, |i, j| l[i * n + j]))
}

/// `l⁻¹ b` with the lower triangle of `l`.
pub fn solve_lower(l: &Matrix, b: &Matrix) -> Matrix {
    let n = l.rows();
    let mut x = b.clone();
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

/// `l⁻ᵀ b` with the lower triangle of `l`.
pub fn solve_lower_transposed(l: &Matrix, b: &Matrix) -> Matrix {
    let n = l.rows();
    let mut x = b.clone();
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

/// `Σ⁻¹ b` from the Cholesky factor of `Σ`.
pub fn solve_cholesky(l: &Matrix, b: &Matrix) -> Matrix {
    solve_lower_transposed(l, &solve_lower(l, b))
}

/// `log |Σ|` from the Cholesky factor of `Σ`.
pub fn log_det_cholesky(l: &Matrix) -> f64 {
    (0..l.rows()).map(|i| 2.0 * l[(i, i)].abs().ln()).sum()
}

/// Eigenvalues, ascending, and eigenvectors (columns) of a symmetric matrix. The sign of a vector is such that its
/// largest component is positive.
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

/// Householder QR: the full orthogonal factor and the upper one of the shape of `a`, diagonal not negative, as Stan
/// signs them.
pub fn qr(a: &Matrix) -> (Matrix, Matrix) {
    let (m, n) = (a.rows(), a.cols());
    let mut r = a.clone();
    let mut q = identity(m);
    for k in 0..n.min(m) {
        let norm = (k..m).map(|i| r[(i, k)] * r[(i, k)]).sum::<f64>().sqrt();
        if norm == 0.0 {
            continue;
        }
        let alpha = if r[(k, k)] > 0.0 { -norm } else { norm };
        let mut v: Vec<f64> = (k..m).map(|i| r[(i, k)]).collect();
        v[0] -= alpha;
        let vv: f64 = v.iter().map(|x| x * x).sum();
        if vv == 0.0 {
            continue;
        }
        for j in 0..n {
            let dot: f64 = (k..m).map(|i| v[i - k] * r[(i, j)]).sum();
            for i in k..m {
                r[(i, j)] -= 2.0 * dot / vv * v[i - k];
            }
        }
        for i in 0..m {
            let dot: f64 = (k..m).map(|l| q[(i, l)] * v[l - k]).sum();
            for l in k..m {
                q[(i, l)] -= 2.0 * dot / vv * v[l - k];
            }
        }
    }
    for k in 0..n.min(m) {
        for i in k + 1..m {
            r[(i, k)] = 0.0;
        }
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

/// Singular values, descending, with `U` (rows × k) and `V` (columns × k), k the smaller extent, by one-sided Jacobi
/// rotations. The sign of each pair of vectors is such that the largest component of both is positive.
pub fn svd(a: &Matrix) -> (Matrix, Vec<f64>, Matrix) {
    if a.rows() < a.cols() {
        let (u, s, v) = svd(&a.transpose());
        return (v, s, u);
    }
    let n = a.cols();
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
    let signs: Vec<f64> = (0..n)
        .map(|j| {
            let left = u.column(j).iter().map(|x| x / norms[j]);
            let larger = |a: f64, x: f64| if x.abs() > a.abs() { x } else { a };
            let largest = left.chain(v.column(j).iter().copied()).fold(0.0, larger);
            if largest < 0.0 { -1.0 } else { 1.0 }
        })
        .collect();
    let left = Mat::from_fn(a.rows(), n, |i, j| {
        signs[order[j]] * u[(i, order[j])] / norms[order[j]]
    });
    let right = Mat::from_fn(n, n, |i, j| signs[order[j]] * v[(i, order[j])]);
    (left, order.iter().map(|j| norms[*j]).collect(), right)
}

/// The same of a complex matrix, A = U S Vᴴ. Each pair of vectors is turned such that the largest component of both is positive.
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

/// The matrix exponential by scaling, a Taylor polynomial of degree 24 and squaring.
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
