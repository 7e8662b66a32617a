//! Distributions of covariance and correlation matrices and of their factors.

use std::f64::consts::{LN_2, PI};

use crate::distributions::family::{Domain, FamilyPart, check};
use crate::functions::random::Draws;
use crate::functions::special::{lgamma, lmgamma};
use crate::functions::{Builtin, Entry, Keep};
use crate::value::dense::{self, multiply, solve_lower};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Matrix, Value};

use Builtin::{Density, Random};

pub(super) const TABLE: &[Entry] = &[
    (
        "lkj_corr_lpdf",
        Density(|k, a| {
            const NAME: &str = "lkj_corr_lpdf";
            let eta = shape(NAME, a[1])?;
            let l = dense::cholesky(NAME, a[0].matrix()?)?;
            Ok(k.term(2, lkj_constant(eta, l.rows()))
                + k.term(1 | 2, (eta - 1.0) * dense::log_det_cholesky(&l)))
        }),
    ),
    (
        "lkj_corr_cholesky_lpdf",
        Density(|k, a| {
            const NAME: &str = "lkj_corr_cholesky_lpdf";
            let eta = shape(NAME, a[1])?;
            let l = triangle(NAME, a[0])?;
            let n = l.rows();
            let data: f64 = (1..n)
                .map(|i| ((n - 1 - i) as f64 + 2.0 * eta - 2.0) * l[(i, i)].ln())
                .sum();
            Ok(k.term(2, lkj_constant(eta, n)) + k.term(1 | 2, data))
        }),
    ),
    ("lkj_cov_lpdf", Density(lkj_cov)),
    (
        "lkj_corr_rng",
        Random(|r, a| {
            let l = lkj_factor("lkj_corr_rng", r, a)?;
            let n = l.rows();
            let product = multiply(&l, &l.transpose());
            Ok(Value::Matrix(Mat::from_fn(n, n, |i, j| {
                if i == j { 1.0 } else { product[(i, j)] }
            })))
        }),
    ),
    (
        "lkj_corr_cholesky_rng",
        Random(|r, a| Ok(Value::Matrix(lkj_factor("lkj_corr_cholesky_rng", r, a)?))),
    ),
    (
        "wishart_lpdf",
        Density(|k, a| {
            const NAME: &str = "wishart_lpdf";
            let (w, s) = (a[0].matrix()?, a[2].matrix()?);
            let (lw, ls) = (dense::cholesky(NAME, w)?, dense::cholesky(NAME, s)?);
            let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
            Ok(wishart(k, &lw, nu, &ls))
        }),
    ),
    (
        "wishart_cholesky_lpdf",
        Density(|k, a| {
            const NAME: &str = "wishart_cholesky_lpdf";
            let (lw, ls) = (triangle(NAME, a[0])?, triangle(NAME, a[2])?);
            let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
            Ok(wishart(grouped(k), &lw, nu, &ls) + factor_jacobian(k, &lw))
        }),
    ),
    (
        "inv_wishart_lpdf",
        Density(|k, a| {
            const NAME: &str = "inv_wishart_lpdf";
            let (w, s) = (a[0].matrix()?, a[2].matrix()?);
            let (lw, ls) = (dense::cholesky(NAME, w)?, dense::cholesky(NAME, s)?);
            let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
            Ok(inverse_wishart(k, &lw, nu, &ls))
        }),
    ),
    (
        "inv_wishart_cholesky_lpdf",
        Density(|k, a| {
            const NAME: &str = "inv_wishart_cholesky_lpdf";
            let (lw, ls) = (triangle(NAME, a[0])?, triangle(NAME, a[2])?);
            let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
            Ok(inverse_wishart(grouped(k), &lw, nu, &ls) + factor_jacobian(k, &lw))
        }),
    ),
    (
        "wishart_rng",
        Random(|r, a| {
            let ls = dense::cholesky("wishart_rng", a[1].matrix()?)?;
            let nu = freedom("wishart_rng", a[0], ls.rows(), ls.rows())?;
            let l = bartlett(r, nu, &ls);
            Ok(Value::Matrix(multiply(&l, &l.transpose())))
        }),
    ),
    (
        "wishart_cholesky_rng",
        Random(|r, a| {
            let ls = triangle("wishart_cholesky_rng", a[1])?;
            let nu = freedom("wishart_cholesky_rng", a[0], ls.rows(), ls.rows())?;
            Ok(Value::Matrix(bartlett(r, nu, &ls)))
        }),
    ),
    (
        "inv_wishart_rng",
        Random(|r, a| {
            let ls = dense::cholesky("inv_wishart_rng", a[1].matrix()?)?;
            let nu = freedom("inv_wishart_rng", a[0], ls.rows(), ls.rows())?;
            Ok(Value::Matrix(inverse_draw("inv_wishart_rng", r, nu, &ls)?))
        }),
    ),
    (
        "inv_wishart_cholesky_rng",
        Random(|r, a| {
            const NAME: &str = "inv_wishart_cholesky_rng";
            let ls = triangle(NAME, a[1])?;
            let nu = freedom(NAME, a[0], ls.rows(), ls.rows())?;
            let w = inverse_draw(NAME, r, nu, &ls)?;
            Ok(Value::Matrix(dense::cholesky(NAME, &w)?))
        }),
    ),
];

fn shape(function: &str, eta: &Value) -> FnResult<f64> {
    let eta = eta.real()?;
    check(function, "the shape parameter", Domain::Positive, &[eta])?;
    Ok(eta)
}

/// A lower-triangular factor with positive diagonal.
fn triangle(function: &str, l: &Value) -> FnResult<Matrix> {
    let l = l.matrix()?;
    let n = dense::check_square(function, l)?;
    let diagonal: Vec<f64> = (0..n).map(|i| l[(i, i)]).collect();
    check(
        function,
        "the diagonal of the Cholesky factor",
        Domain::Positive,
        &diagonal,
    )?;
    Ok(Mat::from_fn(
        n,
        n,
        |i, j| if i >= j { l[(i, j)] } else { 0.0 },
    ))
}

fn freedom(function: &str, nu: &Value, n: usize, scale: usize) -> FnResult<f64> {
    let nu = nu.real()?;
    if n != scale {
        return Err(FnError::invalid(format!(
            "{function}: a variate of {n} rows for a scale of {scale}"
        )));
    }
    if nu.is_nan() || nu <= n as f64 - 1.0 {
        return Err(FnError::domain(format!(
            "{function}: the degrees of freedom parameter is {nu}, but must be greater than {}",
            n as f64 - 1.0
        )));
    }
    Ok(nu)
}

/// log of the constant of the LKJ distribution (Lewandowski, Kurowicka and Joe 2009, equation 16).
fn lkj_constant(eta: f64, n: usize) -> f64 {
    let last = n.saturating_sub(1) as f64;
    let mut c = last * lgamma(eta + 0.5 * last);
    for k in 1..n {
        let k = k as f64;
        c -= 0.5 * k * PI.ln() + lgamma(eta + 0.5 * (last - k));
    }
    c
}

/// Lognormal standard deviations and an LKJ correlation matrix.
fn lkj_cov(k: Keep, a: &[&Value]) -> FnResult<f64> {
    const NAME: &str = "lkj_cov_lpdf";
    let y = a[0].matrix()?;
    let n = dense::check_square(NAME, y)?;
    let eta = shape(NAME, a[3])?;
    let sds: Vec<f64> = (0..n).map(|i| y[(i, i)].sqrt()).collect();
    let family = crate::distributions::families().find(|f| f.name == "lognormal");
    let spread = family.map_or(Ok(0.0), |f| {
        let sds = Value::Vector(sds.clone());
        f.call(
            FamilyPart::LogDensity,
            k.reorder(&[1, 2, 4]),
            &[&sds, a[1], a[2]],
        )
    })?;
    let corr = Mat::from_fn(n, n, |i, j| y[(i, j)] / (sds[i] * sds[j]));
    let l = dense::cholesky(NAME, &corr)?;
    Ok(spread
        + k.term(8, lkj_constant(eta, n))
        + k.term(1 | 8, (eta - 1.0) * dense::log_det_cholesky(&l)))
}

/// The factor of canonical partial correlations, each beta on (−1, 1).
fn lkj_factor(function: &str, rng: &mut Draws, a: &[&Value]) -> FnResult<Matrix> {
    let n = a[0].size_arg("the dimension")?;
    if n == 0 {
        return Err(FnError::domain(format!(
            "{function}: the dimension is 0, but must be positive"
        )));
    }
    crate::value::error::check_bytes(
        "the matrix",
        n as f64 * n as f64,
        8,
        crate::value::error::MAX_VALUE_BYTES,
    )?;
    let eta = shape(function, a[1])?;
    let mut l = Mat::filled(n, n, 0.0);
    let mut rest = vec![1.0f64; n];
    for j in 0..n {
        l[(j, j)] = rest[j].sqrt();
        // With j partial correlations fixed, the next ones have this concentration.
        let b = eta + 0.5 * (n as f64 - 2.0 - j as f64);
        for i in j + 1..n {
            let p = 2.0 * rng.beta(b, b) - 1.0;
            l[(i, j)] = p * rest[i].sqrt();
            rest[i] *= 1.0 - p * p;
        }
    }
    Ok(l)
}

/// Σ log Lᵢᵢ
fn log_diagonal(l: &Matrix) -> f64 {
    (0..l.rows()).map(|i| l[(i, i)].ln()).sum()
}

fn squares(m: &Matrix) -> f64 {
    m.data().iter().map(|x| x * x).sum()
}

/// The density of W = L Lᵀ.
fn wishart(k: Keep, lw: &Matrix, nu: f64, ls: &Matrix) -> f64 {
    let n = lw.rows() as f64;
    k.term(2, -0.5 * nu * n * LN_2 - lmgamma(n, 0.5 * nu))
        + k.term(2 | 4, -nu * log_diagonal(ls))
        + k.term(1 | 4, -0.5 * squares(&solve_lower(ls, lw)))
        + k.term(1 | 2, (nu - n - 1.0) * log_diagonal(lw))
}

fn inverse_wishart(k: Keep, lw: &Matrix, nu: f64, ls: &Matrix) -> f64 {
    let n = lw.rows() as f64;
    k.term(2, -lmgamma(n, 0.5 * nu))
        + k.term(2 | 4, nu * log_diagonal(ls) - 0.5 * nu * n * LN_2)
        + k.term(1 | 4, -0.5 * squares(&solve_lower(lw, ls)))
        + k.term(1 | 2 | 4, -(nu + n + 1.0) * log_diagonal(lw))
}

/// The densities of factors keep all their terms but those of the degrees of freedom alone.
fn grouped(k: Keep) -> Keep {
    k.reorder(&[7, 2, 7])
}

/// The log-Jacobian of L ↦ L Lᵀ. Its constant goes with the degrees of freedom.
fn factor_jacobian(k: Keep, l: &Matrix) -> f64 {
    let n = l.rows();
    let powers: f64 = (0..n).map(|i| (n - i) as f64 * l[(i, i)].ln()).sum();
    k.term(2, n as f64 * LN_2) + k.term(1 | 2 | 4, powers)
}

/// Bartlett's factor of a Wishart matrix.
fn bartlett(rng: &mut Draws, nu: f64, ls: &Matrix) -> Matrix {
    let n = ls.rows();
    let mut b = Mat::filled(n, n, 0.0);
    for j in 0..n {
        b[(j, j)] = (2.0 * rng.gamma(0.5 * (nu - j as f64))).sqrt();
        for i in j + 1..n {
            b[(i, j)] = rng.normal();
        }
    }
    multiply(ls, &b)
}

/// The inverse of a Wishart matrix with the inverse scale.
fn inverse_draw(function: &str, rng: &mut Draws, nu: f64, ls: &Matrix) -> FnResult<Matrix> {
    let n = ls.rows();
    let inverse = dense::solve_cholesky(ls, &dense::identity(n));
    let symmetric = |m: &Matrix| Mat::from_fn(n, n, |i, j| 0.5 * (m[(i, j)] + m[(j, i)]));
    let l = bartlett(rng, nu, &dense::cholesky(function, &symmetric(&inverse))?);
    Ok(symmetric(&dense::solve_cholesky(&l, &dense::identity(n))))
}
