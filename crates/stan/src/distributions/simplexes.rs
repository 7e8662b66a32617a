//! Distributions of simplexes, and distributions of counts in categories.

use jensen_graph::ElemOp;
use jensen_math::special::{lbeta, lgamma, log_sum_exp_slice};

use super::formula::Whole;
use super::multivariate::{Multivariate, OverRecords};
use super::univariate::int_variate;
use super::vectors::lists;
use crate::functions::elementary::lmultiply;
use crate::functions::random::Draws;
use crate::symbolic::domain::{Domain, check, guard};
use crate::symbolic::functions::elementwise::multiply_log;
use crate::symbolic::functions::reduce::log_sum_exp_all;
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Domain::{Positive, Unit};

/// The name that messages use for a vector of probabilities.
pub const PROBABILITIES: &str = "the probabilities parameter";
/// The name that messages use for a vector of log odds.
pub const LOG_ODDS: &str = "the log odds parameter";
const PRIOR_SIZES: &str = "the prior sample sizes parameter";

/// The multivariate distributions that this file defines.
pub static TABLE: &[Multivariate] = &[
    Multivariate::new("dirichlet_lpdf", |k, a| {
        const NAME: &str = "dirichlet_lpdf";
        let (theta, alpha) = (lists(a[0])?, lists(a[1])?);
        let mut sum = 0.0;
        for (theta, alpha) in paired(NAME, &theta, &alpha)? {
            check_simplex(NAME, PROBABILITIES, theta)?;
            check(NAME, PRIOR_SIZES, Domain::PositiveFinite, alpha)?;
            let total: f64 = alpha.iter().sum();
            sum += k.term(
                2,
                lgamma(total) - alpha.iter().map(|a| lgamma(*a)).sum::<f64>(),
            );
            let data: f64 = theta
                .iter()
                .zip(alpha)
                .map(|(t, a)| lmultiply(a - 1.0, *t))
                .sum();
            sum += k.term(1 | 2, data);
        }
        Ok(sum)
    })
    .sample("dirichlet_rng", |r, a| {
        let alpha = a[0].slice()?;
        check("dirichlet_rng", PRIOR_SIZES, Domain::PositiveFinite, alpha)?;
        Ok(Value::Vector(dirichlet(r, alpha)))
    })
    .lowered(lower_dirichlet, OverRecords::Arrays),
    Multivariate::new("dirichlet_multinomial_lpmf", |k, a| {
        const NAME: &str = "dirichlet_multinomial_lpmf";
        let (n, alpha) = (counts(NAME, a[0])?, a[1].slice()?);
        check(NAME, PRIOR_SIZES, Domain::PositiveFinite, alpha)?;
        same(NAME, n.len(), alpha.len())?;
        let (total, mass): (f64, f64) = (n.iter().sum(), alpha.iter().sum());
        if total == 0.0 {
            return Ok(0.0);
        }
        let positive = || n.iter().zip(alpha).filter(|(n, _)| **n > 0.0);
        let logs: f64 = positive().map(|(n, _)| n.ln()).sum();
        let each: f64 = positive().map(|(n, a)| lbeta(*a, *n)).sum();
        Ok(k.constant(total.ln() - logs) + k.term(2, lbeta(mass, total) - each))
    })
    .sample("dirichlet_multinomial_rng", |r, a| {
        const NAME: &str = "dirichlet_multinomial_rng";
        let alpha = a[0].slice()?;
        check(NAME, PRIOR_SIZES, Domain::PositiveFinite, alpha)?;
        let trials = a[1].size_arg("dirichlet_multinomial_rng: number of trials")?;
        let theta = dirichlet(r, alpha);
        multinomial(NAME, r, &theta, trials)
    })
    .lowered(lower_dirichlet_multinomial, OverRecords::Arrays),
    Multivariate::new("multinomial_lpmf", |k, a| {
        const NAME: &str = "multinomial_lpmf";
        let (n, theta) = (counts(NAME, a[0])?, a[1].slice()?);
        check_simplex(NAME, PROBABILITIES, theta)?;
        same(NAME, n.len(), theta.len())?;
        let data: f64 = n.iter().zip(theta).map(|(n, t)| lmultiply(*n, *t)).sum();
        Ok(k.constant(coefficient(&n)) + k.term(2, data))
    })
    .sample("multinomial_rng", |r, a| {
        const NAME: &str = "multinomial_rng";
        let theta = a[0].slice()?;
        check_simplex(NAME, PROBABILITIES, theta)?;
        multinomial(
            NAME,
            r,
            theta,
            a[1].size_arg("multinomial_rng: number of trials")?,
        )
    })
    .lowered(lower_multinomial, OverRecords::Arrays),
    Multivariate::new("multinomial_logit_lpmf", |k, a| {
        const NAME: &str = "multinomial_logit_lpmf";
        let (n, logits) = (counts(NAME, a[0])?, a[1].slice()?);
        check(NAME, LOG_ODDS, Domain::Finite, logits)?;
        same(NAME, n.len(), logits.len())?;
        let total = log_sum_exp_slice(logits);
        let data: f64 = n.iter().zip(logits).map(|(n, l)| n * (l - total)).sum();
        Ok(k.constant(coefficient(&n)) + k.term(2, data))
    })
    .sample("multinomial_logit_rng", |r, a| {
        const NAME: &str = "multinomial_logit_rng";
        let logits = a[0].slice()?;
        check(NAME, LOG_ODDS, Domain::Finite, logits)?;
        let total = log_sum_exp_slice(logits);
        let theta: Vec<f64> = logits.iter().map(|l| (l - total).exp()).collect();
        multinomial(
            NAME,
            r,
            &theta,
            a[1].size_arg("multinomial_logit_rng: number of trials")?,
        )
    })
    .lowered(lower_multinomial_logit, OverRecords::Arrays),
];

/// Checks that no element is negative, and that the elements sum to 1 to within 10⁻⁸.
///
/// # Errors
/// Fails if the elements are not a simplex. The error rejects the point.
pub fn check_simplex(function: &str, what: &str, theta: &[f64]) -> FnResult<()> {
    check(function, what, Domain::NonNegative, theta)?;
    let sum: f64 = theta.iter().sum();
    let close = (sum - 1.0).abs() <= 1e-8;
    if !close {
        return Err(no_simplex(function, what, sum));
    }
    Ok(())
}

fn no_simplex(function: &str, what: &str, sum: f64) -> FnError {
    FnError::domain(format!(
        "{function}: {what} is not a simplex, its sum is {sum}"
    ))
}

fn same(function: &str, a: usize, b: usize) -> FnResult<()> {
    if a != b {
        return Err(FnError::invalid(format!(
            "{function}: sizes of the arguments do not match: {a} and {b}"
        )));
    }
    Ok(())
}

fn paired<'v>(
    function: &str,
    a: &'v [Vec<f64>],
    b: &'v [Vec<f64>],
) -> FnResult<Vec<(&'v Vec<f64>, &'v Vec<f64>)>> {
    let n = if a.is_empty() || b.is_empty() {
        0
    } else {
        a.len().max(b.len())
    };
    let pick = |x: &'v [Vec<f64>], i: usize| &x[if x.len() == 1 { 0 } else { i }];
    if (a.len() != n && a.len() != 1) || (b.len() != n && b.len() != 1) {
        same(function, a.len(), b.len())?;
    }
    (0..n)
        .map(|i| {
            let pair = (pick(a, i), pick(b, i));
            same(function, pair.0.len(), pair.1.len())?;
            Ok(pair)
        })
        .collect()
}

fn counts(function: &str, n: &Value) -> FnResult<Vec<f64>> {
    let n = n.numbers();
    check(function, "the number of trials", Domain::NonNegative, &n)?;
    Ok(n)
}

fn coefficient(n: &[f64]) -> f64 {
    let total: f64 = n.iter().sum();
    lgamma(total + 1.0) - n.iter().map(|n| lgamma(n + 1.0)).sum::<f64>()
}

/// Normalises gamma random numbers on the log scale, because the numbers underflow if the concentrations are small.
fn dirichlet(rng: &mut Draws, alpha: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = alpha.iter().map(|a| rng.log_gamma(*a)).collect();
    let total = log_sum_exp_slice(&logs);
    logs.iter().map(|l| (l - total).exp()).collect()
}

fn multinomial(function: &str, rng: &mut Draws, theta: &[f64], trials: usize) -> FnResult<Value> {
    let mut rest = trials as f64;
    let mut left = 1.0;
    let mut out = Vec::with_capacity(theta.len());
    for (k, t) in theta.iter().enumerate() {
        let n = if k + 1 == theta.len() || rest == 0.0 {
            rest
        } else {
            rng.binomial(rest, (t / left).clamp(0.0, 1.0))
        };
        out.push(int_variate(function, n)?);
        rest -= n;
        left = (left - t).max(f64::MIN_POSITIVE);
    }
    Ok(Value::Ints(out))
}

fn lower_dirichlet(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let d = &w.density;
    let (theta, alpha) = (w.passed[0].sym, w.passed[1].sym);
    let (a, b) = (theta.dims()?, alpha.dims()?);
    let k = a.leaf.size();
    if k != b.leaf.size() || (b.count() != 1 && a.count() != 1 && a.count() != b.count()) {
        return Err(d.invalid(format!(
            "sizes do not match: {} and {}",
            theta.describe(),
            alpha.describe()
        )));
    }
    let count = a.count().max(b.count());
    if k == 0 || a.count() == 0 || b.count() == 0 {
        return Ok(());
    }
    let (x, prior) = (theta.e(d.tape)?, alpha.e(d.tape)?);
    guard(d.name, prior, PRIOR_SIZES, Positive)?;
    guard(d.name, x, PROBABILITIES, Unit)?;
    let tile = |have: usize| -> Vec<u32> {
        (0..count * k)
            .map(|at| (if have == 1 { at % k } else { at }) as u32)
            .collect()
    };
    let (log_x, prior_each) = if k == 1 && count == 1 {
        (x.log(), prior)
    } else {
        (
            x.log().gather(&tile(a.count())),
            prior.gather(&tile(b.count())),
        )
    };
    let kernel = (prior_each - 1.0) * log_x;
    let totals: Vec<_> = (0..b.count())
        .map(|i| {
            if k == 1 {
                prior.at(i)
            } else {
                prior.slice(i * k, k).sum()
            }
            .lgamma()
        })
        .collect();
    let normaliser = w.density.tape.add_all(&totals) - prior.lgamma().sum();
    let repeats = (count / b.count()) as f64;
    let d = &mut w.density;
    d.term(&[1], repeats * normaliser);
    d.term(&[0, 1], kernel.sum());
    Ok(())
}

fn lower_dirichlet_multinomial(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let ns = outcomes(w, 0)?;
    let alpha = w.passed[1].sym.e(w.density.tape)?;
    sizes(w, ns.len(), alpha.len())?;
    guard(w.density.name, alpha, PRIOR_SIZES, Positive)?;
    let total: f64 = ns.iter().sum();
    if total == 0.0 {
        return Ok(());
    }
    // log n − Σ log nₖ is constant, and log B(Σ α, n) − Σ log B(αₖ, nₖ) is a term of α. Both sums are over the non-zero
    // nₖ.
    let positive = || ns.iter().filter(|n| **n > 0.0);
    let logs = total.ln() - positive().map(|n| n.ln()).sum::<f64>();
    let gammas = lgamma(total) - positive().map(|n| lgamma(*n)).sum::<f64>();
    let n = w.density.tape.vector(&ns);
    let mass = alpha.sum();
    let each = alpha.op2(ElemOp::LgammaStep, n).sum();
    let d = &mut w.density;
    d.term(&[], d.num(logs));
    d.term(
        &[1],
        each - mass.op2(ElemOp::LgammaStep, d.num(total)) + gammas,
    );
    Ok(())
}

fn lower_multinomial(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let ns = outcomes(w, 0)?;
    let name = w.density.name;
    let theta = w.passed[1].sym.e(w.density.tape)?;
    sizes(w, ns.len(), theta.len())?;
    guard(name, theta, PROBABILITIES, Unit)?;
    sums_to_one(w, theta)?;
    lower_coefficient(w, &ns);
    let n = w.density.tape.vector(&ns);
    w.density.term(&[1], multiply_log(n, theta).sum());
    Ok(())
}

fn lower_multinomial_logit(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let ns = outcomes(w, 0)?;
    let beta = w.passed[1].sym;
    let e = beta.e(w.density.tape)?;
    sizes(w, ns.len(), e.len())?;
    lower_coefficient(w, &ns);
    let total: f64 = ns.iter().sum();
    let n = w.density.tape.vector(&ns);
    let normaliser = log_sum_exp_all(&w.cx(), beta)?;
    w.density.term(&[1], (n * e).sum() - total * normaliser);
    Ok(())
}

/// Returns the numbers of the `int` argument `i`, which must be known.
pub fn outcomes(w: &Whole<'_, '_>, i: usize) -> FnResult<Vec<f64>> {
    match w.passed[i].sym.known() {
        Some(value) => Ok(match &*value {
            Value::Int(i) => vec![f64::from(*i)],
            other => other.numbers(),
        }),
        None => Err(FnError::unsupported(format!(
            "{}: an integer argument that depends on parameters is not supported yet",
            w.density.name
        ))),
    }
}

fn sizes(w: &Whole<'_, '_>, a: usize, b: usize) -> FnResult<()> {
    if a == b {
        return Ok(());
    }
    Err(w.density.invalid(format!(
        "sizes do not match: {a} counts and {b} probabilities"
    )))
}

/// Rejects draws whose probabilities do not sum to 1. Probabilities that sum to 1 by construction are not checked.
pub fn sums_to_one(w: &Whole<'_, '_>, theta: E<'_>) -> FnResult<()> {
    if known::is_simplex(w.density.tape, theta) {
        return Ok(());
    }
    off_by(w, theta.sum() - 1.0)
}

/// Rejects draws for which `off` differs from 0 by more than rounding error.
pub fn off_by(w: &Whole<'_, '_>, off: E<'_>) -> FnResult<()> {
    if let Some(off) = off.scalar() {
        if off.abs() > 1e-8 {
            return Err(no_simplex(w.density.name, PROBABILITIES, 1.0 + off));
        }
        return Ok(());
    }
    let size = off.abs();
    w.density.tape.reject_where(w.density.num(1e-8).lt(size));
    Ok(())
}

fn lower_coefficient(w: &mut Whole<'_, '_>, ns: &[f64]) {
    let total: f64 = ns.iter().sum();
    let parts: f64 = ns.iter().map(|n| lgamma(n + 1.0)).sum();
    let constant = w.density.num(lgamma(total + 1.0) - parts);
    w.density.term(&[], constant);
}
