//! Densities of covariance and correlation matrices and their factors.

use std::f64::consts::{LN_2, PI};

use crate::distributions::formulas::Domain::{Positive, PositiveByFormula};
use crate::distributions::formulas::{Whole, WholeFormula, check};
use crate::symbolic::functions::Cx;
use crate::symbolic::functions::elementwise::lmgamma;
use crate::symbolic::functions::matrices::cholesky;
use crate::symbolic::tape::E;
use crate::value::error::FnResult;

/// Name and formula.
pub const TABLE: &[(&str, WholeFormula)] = &[
    ("lkj_corr_lpdf", lkj_corr),
    ("lkj_corr_cholesky_lpdf", lkj_corr_cholesky),
    ("wishart_lpdf", wishart),
    ("inv_wishart_lpdf", inv_wishart),
    ("wishart_cholesky_lpdf", wishart_cholesky),
    ("inv_wishart_cholesky_lpdf", inv_wishart_cholesky),
];

fn cx<'g>(w: &Whole<'g, '_>) -> Cx<'g> {
    Cx {
        tape: w.density.tape,
        name: w.density.name,
    }
}

/// log of the normalising constant of the LKJ density of extent k (Lewandowski, Kurowicka and Joe 2009, theorem 5).
fn lkj_constant(eta: E<'_>, k: usize) -> E<'_> {
    let km1 = k as f64 - 1.0;
    let mut constant = km1 * (eta + 0.5 * km1).lgamma();
    for j in 1..k {
        let half = 0.5 * j as f64;
        constant = constant - (half * PI.ln()) - (eta + 0.5 * (km1 - j as f64)).lgamma();
    }
    constant
}

fn lkj_shape<'g>(w: &Whole<'g, '_>) -> FnResult<E<'g>> {
    let eta = w.passed[1].sym.e(w.density.tape)?;
    check(w.density.name, eta, "Shape parameter", Positive)?;
    Ok(eta)
}

fn lkj_corr(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let cx = cx(w);
    let k = cx.square(w.passed[0].sym)?;
    let eta = lkj_shape(w)?;
    if k == 0 {
        return Ok(());
    }
    let l = cholesky(&cx, cx.e(w.passed[0].sym)?, k)?;
    let d = &mut w.density;
    d.term(&[1], lkj_constant(eta, k));
    d.term(&[0, 1], (eta - 1.0) * (2.0 * l.diagonal(k, k).log().sum()));
    Ok(())
}

fn lkj_corr_cholesky(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let cx = cx(w);
    let k = cx.square(w.passed[0].sym)?;
    let eta = lkj_shape(w)?;
    if k == 0 {
        return Ok(());
    }
    let index: Vec<usize> = (0..k).map(|i| i * k + i).collect();
    let leaf = crate::symbolic::value::Dims::leaf(crate::symbolic::value::Leaf::Vector(k));
    let diagonal = cx.e(&w.passed[0].sym.pick(cx.tape, &index, leaf)?)?;
    check(
        cx.name,
        diagonal,
        "Cholesky factor diagonal",
        PositiveByFormula,
    )?;
    let d = &mut w.density;
    d.term(&[1], lkj_constant(eta, k));
    // Exponent of the i-th diagonal element, counted from 0: K − 1 − i + 2 (η − 1).
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

/// Outcome, degrees of freedom, scale; the degrees of freedom exceed K − 1.
fn wishart_parts<'g>(w: &Whole<'g, '_>) -> FnResult<(usize, E<'g>, E<'g>, E<'g>)> {
    let cx = cx(w);
    let (y, s) = (w.passed[0].sym, w.passed[2].sym);
    let k = cx.square(y)?;
    if cx.square(s)? != k {
        return Err(cx.mismatch(y, s));
    }
    let nu = w.passed[1].sym.e(cx.tape)?;
    check(
        cx.name,
        nu - (k as f64 - 1.0),
        "Degrees of freedom parameter minus dimension plus 1",
        Positive,
    )?;
    Ok((k, cx.e(y)?, nu, cx.e(s)?))
}

fn log_det<'g>(l: E<'g>, k: usize) -> E<'g> {
    2.0 * l.diagonal(k, k).log().sum()
}

fn wishart(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, y, nu, s) = wishart_parts(w)?;
    let cx = cx(w);
    let (ly, ls) = (cholesky(&cx, y, k)?, cholesky(&cx, s, k)?);
    let half = 0.5 * nu;
    let kf = k as f64;
    let d = &mut w.density;
    d.term(&[1], -(kf * LN_2 * half) - lmgamma(k, half));
    d.term(&[1, 2], -(half * log_det(ls, k)));
    // trace(S⁻¹ W) = ‖L_S⁻¹ L_W‖²
    d.term(&[0, 2], -0.5 * ls.tri_solve(ly, k, k, false).square().sum());
    d.term(&[0, 1], 0.5 * (nu - (kf + 1.0)) * log_det(ly, k));
    Ok(())
}

fn inv_wishart(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, y, nu, s) = wishart_parts(w)?;
    let cx = cx(w);
    let (ly, ls) = (cholesky(&cx, y, k)?, cholesky(&cx, s, k)?);
    let half = 0.5 * nu;
    let kf = k as f64;
    let d = &mut w.density;
    d.term(&[1], -(kf * LN_2 * half) - lmgamma(k, half));
    d.term(&[1, 2], half * log_det(ls, k));
    d.term(&[0, 2], -0.5 * ly.tri_solve(ls, k, k, false).square().sum());
    d.term(&[0, 1], -(0.5 * (nu + (kf + 1.0)) * log_det(ly, k)));
    Ok(())
}

/// Σ over the diagonal of weights times logarithms; weight i is `a − b i`, i from 0.
fn weighted_logs<'g>(l: E<'g>, k: usize, a: E<'g>, b: f64) -> E<'g> {
    let logs = l.diagonal(k, k).log();
    let positions: Vec<f64> = (0..k).map(|i| i as f64).collect();
    let shifted = (l.tape.vector(&positions) * logs).sum();
    a * logs.sum() - b * shifted
}

fn wishart_cholesky(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, ly, nu, ls) = wishart_parts(w)?;
    let kf = k as f64;
    let half = 0.5 * nu;
    let d = &mut w.density;
    d.term(&[1], kf * LN_2 * (1.0 - half) - lmgamma(k, half));
    d.term(&[0, 2], -0.5 * ls.tri_solve(ly, k, k, false).square().sum());
    d.term(&[0, 1], weighted_logs(ly, k, nu - 1.0, 1.0));
    d.term(&[1, 2], -(nu * ls.diagonal(k, k).log().sum()));
    Ok(())
}

fn inv_wishart_cholesky(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, ly, nu, ls) = wishart_parts(w)?;
    let kf = k as f64;
    let half = 0.5 * nu;
    let d = &mut w.density;
    d.term(&[1], kf * LN_2 * (1.0 - half) - lmgamma(k, half));
    d.term(&[0, 2], -0.5 * ly.tri_solve(ls, k, k, false).square().sum());
    // nu + K + 1 − (K − i) of each logarithm
    d.term(&[0, 1], -weighted_logs(ly, k, nu + 1.0, -1.0));
    d.term(&[1, 2], nu * ls.diagonal(k, k).log().sum());
    Ok(())
}
