//! Distributions of covariance and correlation matrices and of their factors.

use std::f64::consts::{LN_2, PI};

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::{lgamma, lmgamma};

use super::formula::Whole;
use super::multivariate::{Multivariate, OverRecords};
use super::univariate::Suffix;
use crate::functions::Keep;
use crate::functions::random::Draws;
use crate::symbolic::domain::Domain::{self, Positive};
use crate::symbolic::domain::{check, check_values, guard};
use crate::symbolic::functions::elementwise;
use crate::symbolic::functions::matrices::cholesky;
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf};
use crate::value::dense::{self, multiply, solve_lower};
use crate::value::error::{FnError, FnResult, MAX_VALUE_BYTES, check_bytes};
use crate::value::{Mat, Matrix, Value};

/// The name that messages use for the diagonal of a Cholesky factor.
pub const DIAGONAL: &str = "the diagonal of the Cholesky factor";
const SHAPE: &str = "the shape parameter";

/// The multivariate distributions that this file defines.
pub static TABLE: &[Multivariate] = &[
    Multivariate::new("lkj_corr_lpdf", |k, a| {
        const NAME: &str = "lkj_corr_lpdf";
        let eta = shape(NAME, a[1])?;
        let l = dense::cholesky(NAME, a[0].matrix()?)?;
        Ok(k.term(2, lkj_constant(eta, l.rows()))
            + k.term(1 | 2, (eta - 1.0) * dense::log_det_cholesky(&l)))
    })
    .sample("lkj_corr_rng", |r, a| {
        let l = lkj_factor("lkj_corr_rng", r, a)?;
        let n = l.rows();
        let product = multiply(&l, &l.transpose());
        Ok(Value::Matrix(Mat::from_fn(n, n, |i, j| {
            if i == j { 1.0 } else { product[(i, j)] }
        })))
    })
    .lowered(lower_lkj_corr, OverRecords::Arrays),
    Multivariate::new("lkj_corr_cholesky_lpdf", |k, a| {
        const NAME: &str = "lkj_corr_cholesky_lpdf";
        let eta = shape(NAME, a[1])?;
        let l = triangle(NAME, a[0])?;
        let n = l.rows();
        let data: f64 = (1..n)
            .map(|i| ((n - 1 - i) as f64 + 2.0 * eta - 2.0) * l[(i, i)].ln())
            .sum();
        Ok(k.term(2, lkj_constant(eta, n)) + k.term(1 | 2, data))
    })
    .sample("lkj_corr_cholesky_rng", |r, a| {
        Ok(Value::Matrix(lkj_factor("lkj_corr_cholesky_rng", r, a)?))
    })
    .lowered(lower_lkj_corr_cholesky, OverRecords::Arrays),
    Multivariate::new("lkj_cov_lpdf", lkj_cov).lowered(lower_lkj_cov, OverRecords::Arrays),
    Multivariate::new("wishart_lpdf", |k, a| {
        const NAME: &str = "wishart_lpdf";
        let (w, s) = (a[0].matrix()?, a[2].matrix()?);
        let (lw, ls) = (dense::cholesky(NAME, w)?, dense::cholesky(NAME, s)?);
        let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
        Ok(wishart(k, &lw, nu, &ls))
    })
    .sample("wishart_rng", |r, a| {
        let ls = dense::cholesky("wishart_rng", a[1].matrix()?)?;
        let nu = freedom("wishart_rng", a[0], ls.rows(), ls.rows())?;
        let l = bartlett(r, nu, &ls);
        Ok(Value::Matrix(multiply(&l, &l.transpose())))
    })
    .lowered(lower_wishart, OverRecords::Arrays),
    Multivariate::new("wishart_cholesky_lpdf", |k, a| {
        const NAME: &str = "wishart_cholesky_lpdf";
        let (lw, ls) = (triangle(NAME, a[0])?, triangle(NAME, a[2])?);
        let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
        Ok(wishart(grouped(k), &lw, nu, &ls) + factor_jacobian(k, &lw))
    })
    .sample("wishart_cholesky_rng", |r, a| {
        let ls = triangle("wishart_cholesky_rng", a[1])?;
        let nu = freedom("wishart_cholesky_rng", a[0], ls.rows(), ls.rows())?;
        Ok(Value::Matrix(bartlett(r, nu, &ls)))
    })
    .lowered(lower_wishart_cholesky, OverRecords::Arrays),
    Multivariate::new("inv_wishart_lpdf", |k, a| {
        const NAME: &str = "inv_wishart_lpdf";
        let (w, s) = (a[0].matrix()?, a[2].matrix()?);
        let (lw, ls) = (dense::cholesky(NAME, w)?, dense::cholesky(NAME, s)?);
        let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
        Ok(inverse_wishart(k, &lw, nu, &ls))
    })
    .sample("inv_wishart_rng", |r, a| {
        let ls = dense::cholesky("inv_wishart_rng", a[1].matrix()?)?;
        let nu = freedom("inv_wishart_rng", a[0], ls.rows(), ls.rows())?;
        Ok(Value::Matrix(inverse_draw("inv_wishart_rng", r, nu, &ls)?))
    })
    .lowered(lower_inv_wishart, OverRecords::Arrays),
    Multivariate::new("inv_wishart_cholesky_lpdf", |k, a| {
        const NAME: &str = "inv_wishart_cholesky_lpdf";
        let (lw, ls) = (triangle(NAME, a[0])?, triangle(NAME, a[2])?);
        let nu = freedom(NAME, a[1], lw.rows(), ls.rows())?;
        Ok(inverse_wishart(grouped(k), &lw, nu, &ls) + factor_jacobian(k, &lw))
    })
    .sample("inv_wishart_cholesky_rng", |r, a| {
        const NAME: &str = "inv_wishart_cholesky_rng";
        let ls = triangle(NAME, a[1])?;
        let nu = freedom(NAME, a[0], ls.rows(), ls.rows())?;
        let w = inverse_draw(NAME, r, nu, &ls)?;
        Ok(Value::Matrix(dense::cholesky(NAME, &w)?))
    })
    .lowered(lower_inv_wishart_cholesky, OverRecords::Arrays),
];

fn shape(function: &str, eta: &Value) -> FnResult<f64> {
    let eta = eta.real()?;
    check(function, SHAPE, Domain::Positive, &[eta])?;
    Ok(eta)
}

/// Returns a lower-triangular factor, after a check that its diagonal is positive.
///
/// # Errors
/// Fails if the factor is not square or its diagonal is not positive.
pub fn triangle(function: &str, l: &Value) -> FnResult<Matrix> {
    let l = l.matrix()?;
    let n = dense::check_square(function, l)?;
    let diagonal: Vec<f64> = (0..n).map(|i| l[(i, i)]).collect();
    check(function, DIAGONAL, Domain::Positive, &diagonal)?;
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
            "{function}: sizes do not match: the variate has {n} rows, and the scale matrix has {scale}"
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

/// Lewandowski, Kurowicka and Joe 2009, equation 16.
fn lkj_constant(eta: f64, n: usize) -> f64 {
    let last = n.saturating_sub(1) as f64;
    let mut c = last * lgamma(eta + 0.5 * last);
    for k in 1..n {
        let k = k as f64;
        c -= 0.5 * k * PI.ln() + lgamma(eta + 0.5 * (last - k));
    }
    c
}

fn lkj_cov(k: Keep, a: &[&Value]) -> FnResult<f64> {
    const NAME: &str = "lkj_cov_lpdf";
    let y = a[0].matrix()?;
    let n = dense::check_square(NAME, y)?;
    let eta = shape(NAME, a[3])?;
    let sds: Vec<f64> = (0..n).map(|i| y[(i, i)].sqrt()).collect();
    let row = super::univariate().find(|row| row.name == "lognormal");
    let spread = row.map_or(Ok(0.0), |row| {
        let sds = Value::Vector(sds.clone());
        row.call(Suffix::Density, k.reorder(&[1, 2, 4]), &[&sds, a[1], a[2]])
    })?;
    let corr = Mat::from_fn(n, n, |i, j| y[(i, j)] / (sds[i] * sds[j]));
    let l = dense::cholesky(NAME, &corr)?;
    Ok(spread
        + k.term(8, lkj_constant(eta, n))
        + k.term(1 | 8, (eta - 1.0) * dense::log_det_cholesky(&l)))
}

/// The canonical partial correlations of the factor have beta distributions on (−1, 1).
fn lkj_factor(function: &str, rng: &mut Draws, a: &[&Value]) -> FnResult<Matrix> {
    let n = a[0].size_arg("the dimension")?;
    if n == 0 {
        return Err(FnError::domain(format!(
            "{function}: the dimension is 0, but must be positive"
        )));
    }
    check_bytes("the matrix", n as f64 * n as f64, 8, MAX_VALUE_BYTES)?;
    let eta = shape(function, a[1])?;
    let mut l = Mat::filled(n, n, 0.0);
    let mut rest = vec![1.0f64; n];
    for j in 0..n {
        l[(j, j)] = rest[j].sqrt();
        // This is the concentration of the next partial correlations, after j of them have been fixed.
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

fn wishart(k: Keep, lw: &Matrix, nu: f64, ls: &Matrix) -> f64 {
    let n = lw.rows() as f64;
    k.term(
        2,
        -0.5 * nu * n * LN_2 - lmgamma(lw.rows() as u32, 0.5 * nu),
    ) + k.term(2 | 4, -nu * log_diagonal(ls))
        + k.term(1 | 4, -0.5 * squares(&solve_lower(ls, lw)))
        + k.term(1 | 2, (nu - n - 1.0) * log_diagonal(lw))
}

fn inverse_wishart(k: Keep, lw: &Matrix, nu: f64, ls: &Matrix) -> f64 {
    let n = lw.rows() as f64;
    k.term(2, -lmgamma(lw.rows() as u32, 0.5 * nu))
        + k.term(2 | 4, nu * log_diagonal(ls) - 0.5 * nu * n * LN_2)
        + k.term(1 | 4, -0.5 * squares(&solve_lower(lw, ls)))
        + k.term(1 | 2 | 4, -(nu + n + 1.0) * log_diagonal(lw))
}

/// Returns the terms that the density of a factor keeps. A term that depends only on the degrees of freedom is kept if
/// the degrees of freedom vary. All other terms are kept if any argument varies.
fn grouped(k: Keep) -> Keep {
    k.reorder(&[7, 2, 7])
}

/// Returns the log-Jacobian of the map L ↦ L Lᵀ. A call that drops the term for the degrees of freedom also drops the
/// constant of the log-Jacobian.
fn factor_jacobian(k: Keep, l: &Matrix) -> f64 {
    let n = l.rows();
    let powers: f64 = (0..n).map(|i| (n - i) as f64 * l[(i, i)].ln()).sum();
    k.term(2, n as f64 * LN_2) + k.term(1 | 2 | 4, powers)
}

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

/// The scale of the drawn Wishart matrix is the inverse of the given scale.
fn inverse_draw(function: &str, rng: &mut Draws, nu: f64, ls: &Matrix) -> FnResult<Matrix> {
    let n = ls.rows();
    let inverse = dense::solve_cholesky(ls, &dense::identity(n));
    let symmetric = |m: &Matrix| Mat::from_fn(n, n, |i, j| 0.5 * (m[(i, j)] + m[(j, i)]));
    let l = bartlett(rng, nu, &dense::cholesky(function, &symmetric(&inverse))?);
    Ok(symmetric(&dense::solve_cholesky(&l, &dense::identity(n))))
}

/// Builds the logarithm of the normalising constant for matrices with k rows (Lewandowski, Kurowicka and Joe 2009,
/// theorem 5).
fn lower_lkj_constant(eta: E<'_>, k: usize) -> E<'_> {
    let km1 = k as f64 - 1.0;
    let mut constant = km1 * (eta + 0.5 * km1).lgamma();
    for j in 1..k {
        let half = 0.5 * j as f64;
        constant = constant - (half * PI.ln()) - (eta + 0.5 * (km1 - j as f64)).lgamma();
    }
    constant
}

fn lower_lkj_shape<'g>(w: &Whole<'g, '_>) -> FnResult<E<'g>> {
    let eta = w.passed[1].sym.e(w.density.tape)?;
    guard(w.density.name, eta, SHAPE, Positive)?;
    Ok(eta)
}

fn lower_lkj_corr(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let cx = w.cx();
    let k = cx.square(w.passed[0].sym)?;
    let eta = lower_lkj_shape(w)?;
    if k == 0 {
        return Ok(());
    }
    let l = cholesky(&cx, cx.e(w.passed[0].sym)?, k)?;
    let d = &mut w.density;
    d.term(&[1], lower_lkj_constant(eta, k));
    d.term(&[0, 1], (eta - 1.0) * (2.0 * l.diagonal(k, k).log().sum()));
    Ok(())
}

fn lower_lkj_cov(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let cx = w.cx();
    let k = cx.square(w.passed[0].sym)?;
    let eta = cx.e(w.passed[3].sym)?;
    guard(cx.name, eta, SHAPE, Positive)?;
    if k == 0 {
        return Ok(());
    }
    let [y, mu, sigma] = [0, 1, 2].map(|i| cx.e(w.passed[i].sym));
    let (y, mu, sigma) = (y?, mu?, sigma?);
    if mu.len() != k || sigma.len() != k {
        return Err(cx.mismatch(w.passed[0].sym, w.passed[1].sym));
    }
    let sds = y.diagonal(k, k).sqrt();
    let scale = sds.recip();
    let index = |of: fn(usize, usize) -> usize| -> Vec<u32> {
        (0..k * k).map(|at| of(at, k) as u32).collect()
    };
    let (rows, columns) = (index(|at, k| at % k), index(|at, k| at / k));
    let of = |index: &[u32]| if k == 1 { scale } else { scale.gather(index) };
    let l = cholesky(&cx, y * of(&rows) * of(&columns), k)?;
    let logs = sds.log();
    let d = &mut w.density;
    d.term(
        &[0, 1, 2],
        -0.5 * ((logs - mu) / sigma).square() - HALF_LOG_TWO_PI,
    );
    d.term(&[2], -sigma.log());
    d.term(&[0], -logs);
    d.term(&[3], lower_lkj_constant(eta, k));
    d.term(&[0, 3], (eta - 1.0) * (2.0 * l.diagonal(k, k).log().sum()));
    Ok(())
}

fn lower_lkj_corr_cholesky(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let cx = w.cx();
    let k = cx.square(w.passed[0].sym)?;
    let eta = lower_lkj_shape(w)?;
    if k == 0 {
        return Ok(());
    }
    let index: Vec<usize> = (0..k).map(|i| i * k + i).collect();
    let leaf = Dims::leaf(Leaf::Vector(k));
    let diagonal = cx.e(&w.passed[0].sym.pick(cx.tape, &index, leaf)?)?;
    check_values(cx.name, diagonal, DIAGONAL, Positive)?;
    let d = &mut w.density;
    d.term(&[1], lower_lkj_constant(eta, k));
    // The exponent of the i-th diagonal element, counted from 0, is K − 1 − i + 2 (η − 1).
    let logs = diagonal.log();
    let fixed: Vec<f64> = (0..k)
        .map(|i| if i == 0 { 0.0 } else { (k - 1 - i) as f64 })
        .collect();
    let rest: Vec<f64> = (0..k).map(|i| f64::from(i > 0)).collect();
    let fixed = (d.tape.vector(&fixed) * logs).sum();
    let rest = (d.tape.vector(&rest) * logs).sum();
    d.term(&[0, 1], fixed + (2.0 * eta - 2.0) * rest);
    Ok(())
}

/// Returns the number of rows K, the outcome, the degrees of freedom and the scale. The degrees of freedom must exceed
/// K − 1.
fn wishart_parts<'g>(w: &Whole<'g, '_>) -> FnResult<(usize, E<'g>, E<'g>, E<'g>)> {
    let cx = w.cx();
    let (y, s) = (w.passed[0].sym, w.passed[2].sym);
    let k = cx.square(y)?;
    if cx.square(s)? != k {
        return Err(cx.mismatch(y, s));
    }
    let nu = w.passed[1].sym.e(cx.tape)?;
    guard(
        cx.name,
        nu - (k as f64 - 1.0),
        "the degrees of freedom parameter minus dimension plus 1",
        Positive,
    )?;
    Ok((k, cx.e(y)?, nu, cx.e(s)?))
}

fn log_det<'g>(l: E<'g>, k: usize) -> E<'g> {
    2.0 * l.diagonal(k, k).log().sum()
}

fn lower_wishart(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, y, nu, s) = wishart_parts(w)?;
    let cx = w.cx();
    let (ly, ls) = (cholesky(&cx, y, k)?, cholesky(&cx, s, k)?);
    let half = 0.5 * nu;
    let kf = k as f64;
    let d = &mut w.density;
    d.term(&[1], -(kf * LN_2 * half) - elementwise::lmgamma(k, half));
    d.term(&[1, 2], -(half * log_det(ls, k)));
    // trace(S⁻¹ W) = ‖L_S⁻¹ L_W‖²
    d.term(&[0, 2], -0.5 * ls.tri_solve(ly, k, k, false).square().sum());
    d.term(&[0, 1], 0.5 * (nu - (kf + 1.0)) * log_det(ly, k));
    Ok(())
}

fn lower_inv_wishart(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, y, nu, s) = wishart_parts(w)?;
    let cx = w.cx();
    let (ly, ls) = (cholesky(&cx, y, k)?, cholesky(&cx, s, k)?);
    let half = 0.5 * nu;
    let kf = k as f64;
    let d = &mut w.density;
    d.term(&[1], -(kf * LN_2 * half) - elementwise::lmgamma(k, half));
    d.term(&[1, 2], half * log_det(ls, k));
    d.term(&[0, 2], -0.5 * ly.tri_solve(ls, k, k, false).square().sum());
    d.term(&[0, 1], -(0.5 * (nu + (kf + 1.0)) * log_det(ly, k)));
    Ok(())
}

/// Returns a weighted sum of the logarithms of the diagonal elements. The weight of element i, counted from 0, is `a −
/// b i`.
fn weighted_logs<'g>(l: E<'g>, k: usize, a: E<'g>, b: f64) -> E<'g> {
    let logs = l.diagonal(k, k).log();
    let positions: Vec<f64> = (0..k).map(|i| i as f64).collect();
    let shifted = (l.tape.vector(&positions) * logs).sum();
    a * logs.sum() - b * shifted
}

fn lower_wishart_cholesky(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, ly, nu, ls) = wishart_parts(w)?;
    let kf = k as f64;
    let half = 0.5 * nu;
    let d = &mut w.density;
    d.term(
        &[1],
        kf * LN_2 * (1.0 - half) - elementwise::lmgamma(k, half),
    );
    d.term(&[0, 2], -0.5 * ls.tri_solve(ly, k, k, false).square().sum());
    d.term(&[0, 1], weighted_logs(ly, k, nu - 1.0, 1.0));
    d.term(&[1, 2], -(nu * ls.diagonal(k, k).log().sum()));
    Ok(())
}

fn lower_inv_wishart_cholesky(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, ly, nu, ls) = wishart_parts(w)?;
    let kf = k as f64;
    let half = 0.5 * nu;
    let d = &mut w.density;
    d.term(
        &[1],
        kf * LN_2 * (1.0 - half) - elementwise::lmgamma(k, half),
    );
    d.term(&[0, 2], -0.5 * ly.tri_solve(ls, k, k, false).square().sum());
    // The weight of each logarithm is nu + K + 1 − (K − i).
    d.term(&[0, 1], -weighted_logs(ly, k, nu + 1.0, -1.0));
    d.term(&[1, 2], nu * ls.diagonal(k, k).log().sum());
    Ok(())
}
