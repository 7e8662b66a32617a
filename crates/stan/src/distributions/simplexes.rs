//! Distributions of simplexes and of counts in categories.

use crate::distributions::family::{Domain, check, int_variate};
use crate::distributions::multivariate::lists;
use crate::functions::elementary::lmultiply;
use crate::functions::random::Draws;
use crate::functions::reductions::log_sum_exp;
use crate::functions::special::{lbeta, lgamma};
use crate::functions::{Builtin, Entry};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Builtin::{Density, Random};

pub(super) const TABLE: &[Entry] = &[
    (
        "dirichlet_lpdf",
        Density(|k, a| {
            const NAME: &str = "dirichlet_lpdf";
            let (theta, alpha) = (lists(a[0])?, lists(a[1])?);
            let mut sum = 0.0;
            for (theta, alpha) in paired(NAME, &theta, &alpha)? {
                check_simplex(NAME, "the probabilities parameter", theta)?;
                check(
                    NAME,
                    "the prior sample sizes parameter",
                    Domain::PositiveFinite,
                    alpha,
                )?;
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
        }),
    ),
    (
        "dirichlet_rng",
        Random(|r, a| {
            let alpha = a[0].slice()?;
            check(
                "dirichlet_rng",
                "the prior sample sizes parameter",
                Domain::PositiveFinite,
                alpha,
            )?;
            Ok(Value::Vector(dirichlet(r, alpha)))
        }),
    ),
    (
        "dirichlet_multinomial_lpmf",
        Density(|k, a| {
            const NAME: &str = "dirichlet_multinomial_lpmf";
            let (n, alpha) = (counts(NAME, a[0])?, a[1].slice()?);
            check(
                NAME,
                "the prior sample sizes parameter",
                Domain::PositiveFinite,
                alpha,
            )?;
            same(NAME, n.len(), alpha.len())?;
            let (total, mass): (f64, f64) = (n.iter().sum(), alpha.iter().sum());
            if total == 0.0 {
                return Ok(0.0);
            }
            let positive = || n.iter().zip(alpha).filter(|(n, _)| **n > 0.0);
            let logs: f64 = positive().map(|(n, _)| n.ln()).sum();
            let each: f64 = positive().map(|(n, a)| lbeta(*a, *n)).sum();
            Ok(k.constant(total.ln() - logs) + k.term(2, lbeta(mass, total) - each))
        }),
    ),
    (
        "dirichlet_multinomial_rng",
        Random(|r, a| {
            const NAME: &str = "dirichlet_multinomial_rng";
            let alpha = a[0].slice()?;
            check(
                NAME,
                "the prior sample sizes parameter",
                Domain::PositiveFinite,
                alpha,
            )?;
            let trials = a[1].size_arg("dirichlet_multinomial_rng: number of trials")?;
            let theta = dirichlet(r, alpha);
            multinomial(NAME, r, &theta, trials)
        }),
    ),
    (
        "multinomial_lpmf",
        Density(|k, a| {
            const NAME: &str = "multinomial_lpmf";
            let (n, theta) = (counts(NAME, a[0])?, a[1].slice()?);
            check_simplex(NAME, "the probabilities parameter", theta)?;
            same(NAME, n.len(), theta.len())?;
            let data: f64 = n.iter().zip(theta).map(|(n, t)| lmultiply(*n, *t)).sum();
            Ok(k.constant(coefficient(&n)) + k.term(2, data))
        }),
    ),
    (
        "multinomial_logit_lpmf",
        Density(|k, a| {
            const NAME: &str = "multinomial_logit_lpmf";
            let (n, logits) = (counts(NAME, a[0])?, a[1].slice()?);
            check(NAME, "the log odds parameter", Domain::Finite, logits)?;
            same(NAME, n.len(), logits.len())?;
            let total = log_sum_exp(logits);
            let data: f64 = n.iter().zip(logits).map(|(n, l)| n * (l - total)).sum();
            Ok(k.constant(coefficient(&n)) + k.term(2, data))
        }),
    ),
    (
        "multinomial_rng",
        Random(|r, a| {
            const NAME: &str = "multinomial_rng";
            let theta = a[0].slice()?;
            check_simplex(NAME, "the probabilities parameter", theta)?;
            multinomial(
                NAME,
                r,
                theta,
                a[1].size_arg("multinomial_rng: number of trials")?,
            )
        }),
    ),
    (
        "multinomial_logit_rng",
        Random(|r, a| {
            const NAME: &str = "multinomial_logit_rng";
            let logits = a[0].slice()?;
            check(NAME, "the log odds parameter", Domain::Finite, logits)?;
            let total = log_sum_exp(logits);
            let theta: Vec<f64> = logits.iter().map(|l| (l - total).exp()).collect();
            multinomial(
                NAME,
                r,
                &theta,
                a[1].size_arg("multinomial_logit_rng: number of trials")?,
            )
        }),
    ),
];

/// Whether the elements are not negative and sum to 1 within 10⁻⁸.
///
/// # Errors
/// When they do not: the point is rejected.
pub(super) fn check_simplex(function: &str, what: &str, theta: &[f64]) -> FnResult<()> {
    check(function, what, Domain::NonNegative, theta)?;
    let sum: f64 = theta.iter().sum();
    let close = (sum - 1.0).abs() <= 1e-8;
    if !close {
        return Err(FnError::domain(format!(
            "{function}: {what} is not a simplex, its sum is {sum}"
        )));
    }
    Ok(())
}

fn same(function: &str, a: usize, b: usize) -> FnResult<()> {
    if a != b {
        return Err(FnError::invalid(format!(
            "{function}: sizes of the arguments do not match: {a} and {b}"
        )));
    }
    Ok(())
}

/// Pairs of vectors of the same size, a single one going with each of the other list.
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

/// Normalised gamma numbers, on the log scale: small concentrations underflow.
fn dirichlet(rng: &mut Draws, alpha: &[f64]) -> Vec<f64> {
    let logs: Vec<f64> = alpha.iter().map(|a| rng.log_gamma(*a)).collect();
    let total = log_sum_exp(&logs);
    logs.iter().map(|l| (l - total).exp()).collect()
}

/// Binomial numbers, one category after the other.
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
