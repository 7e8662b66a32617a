//! Categorical and ordinal outcomes.

use crate::distributions::family::{Domain, check};
use crate::distributions::simplexes::check_simplex;
use crate::functions::elementary::{log_diff_exp, log1p_exp};
use crate::functions::random::Draws;
use crate::functions::reductions::log_sum_exp;
use crate::functions::special::log_phi;
use crate::functions::{Builtin, Entry, Keep};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Builtin::{Density, Random};

pub(super) const TABLE: &[Entry] = &[
    (
        "categorical_lpmf",
        Density(|k, a| {
            let theta = a[1].slice()?;
            check_simplex("categorical_lpmf", "the probabilities parameter", theta)?;
            categories("categorical_lpmf", a[0], theta.len(), |at| theta[at].ln())
                .map(|x| k.term(2, x))
        }),
    ),
    (
        "categorical_logit_lpmf",
        Density(|k, a| {
            let logits = a[1].slice()?;
            check(
                "categorical_logit_lpmf",
                "the log odds parameter",
                Domain::Finite,
                logits,
            )?;
            let total = log_sum_exp(logits);
            categories("categorical_logit_lpmf", a[0], logits.len(), |at| {
                logits[at] - total
            })
            .map(|x| k.term(2, x))
        }),
    ),
    (
        "categorical_rng",
        Random(|r, a| {
            let theta = a[0].slice()?;
            check_simplex("categorical_rng", "the probabilities parameter", theta)?;
            Ok(Value::Int(r.categorical(theta) as i32 + 1))
        }),
    ),
    (
        "categorical_logit_rng",
        Random(|r, a| {
            let logits = a[0].slice()?;
            check(
                "categorical_logit_rng",
                "the log odds parameter",
                Domain::Finite,
                logits,
            )?;
            let total = log_sum_exp(logits);
            let theta: Vec<f64> = logits.iter().map(|l| (l - total).exp()).collect();
            Ok(Value::Int(r.categorical(&theta) as i32 + 1))
        }),
    ),
    ("ordered_logistic_lpmf", Density(logistic)),
    (
        "ordered_logistic_rng",
        Random(|r, a| draw(r, a, |x| -log1p_exp(-x))),
    ),
    (
        "ordered_probit_lpmf",
        Density(|k, a| ordered("ordered_probit_lpmf", k, a, log_phi)),
    ),
    ("ordered_probit_rng", Random(|r, a| draw(r, a, log_phi))),
];

/// The category `n` counted from 0.
///
/// # Errors
/// When it is not between 1 and `k`: the point is rejected.
pub(super) fn category(function: &str, n: i32, k: usize) -> FnResult<usize> {
    match usize::try_from(n) {
        Ok(n) if (1..=k).contains(&n) => Ok(n - 1),
        _ => Err(FnError::domain(format!(
            "{function}: the category is {n}, but must be between 1 and {k}"
        ))),
    }
}

fn categories(
    function: &str,
    outcomes: &Value,
    k: usize,
    log_mass: impl Fn(usize) -> f64,
) -> FnResult<f64> {
    let mut sum = 0.0;
    for n in outcome_list(outcomes)? {
        sum += log_mass(category(function, n, k)?);
    }
    Ok(sum)
}

fn outcome_list(outcomes: &Value) -> FnResult<Vec<i32>> {
    match outcomes {
        Value::Int(i) => Ok(vec![*i]),
        other => Ok(other.ints()?.to_vec()),
    }
}

pub(super) fn logistic(keep: Keep, args: &[&Value]) -> FnResult<f64> {
    ordered("ordered_logistic_lpmf", keep, args, |x| -log1p_exp(-x))
}

/// log of F(upper) − F(lower), from the nearer tail of a symmetric distribution with log-CDF `log_f`.
fn log_interval(lower: f64, upper: f64, log_f: impl Fn(f64) -> f64) -> f64 {
    if lower > 0.0 {
        log_diff_exp(log_f(-lower), log_f(-upper))
    } else {
        log_diff_exp(log_f(upper), log_f(lower))
    }
}

fn check_cuts(function: &str, cuts: &[f64]) -> FnResult<()> {
    check(function, "the cut points", Domain::NotNan, cuts)?;
    for pair in cuts.windows(2) {
        if pair[1] <= pair[0] {
            return Err(FnError::domain(format!(
                "{function}: cut points must increase, but {} follows {}",
                pair[1], pair[0]
            )));
        }
    }
    Ok(())
}

fn ordered(function: &str, keep: Keep, args: &[&Value], log_f: fn(f64) -> f64) -> FnResult<f64> {
    let outcomes = outcome_list(args[0])?;
    let locations = args[1].numbers();
    let cuts: Vec<Vec<f64>> = match args[2] {
        Value::Array(lists) => lists.iter().map(Value::numbers).collect(),
        one => vec![one.numbers()],
    };
    check(
        function,
        "the location parameter",
        Domain::Finite,
        &locations,
    )?;
    for c in &cuts {
        check_cuts(function, c)?;
    }
    let n = outcomes.len().max(locations.len()).max(cuts.len());
    for len in [outcomes.len(), locations.len(), cuts.len()] {
        if len != n && len != 1 {
            return Err(FnError::invalid(format!(
                "{function}: sizes of the arguments do not match: {n} and {len}"
            )));
        }
    }
    let mut sum = 0.0;
    for i in 0..n {
        let c = &cuts[if cuts.len() == 1 { 0 } else { i }];
        let eta = locations[if locations.len() == 1 { 0 } else { i }];
        let outcome = outcomes[if outcomes.len() == 1 { 0 } else { i }];
        let at = category(function, outcome, c.len() + 1)?;
        sum += log_mass(at, eta, c, log_f);
    }
    Ok(keep.term(2 | 4, sum))
}

/// log P(outcome `at`), counted from 0: the mass of η + noise between two cut points.
fn log_mass(at: usize, eta: f64, cuts: &[f64], log_f: fn(f64) -> f64) -> f64 {
    let lower = at.checked_sub(1).map(|i| cuts[i] - eta);
    let upper = cuts.get(at).map(|c| c - eta);
    match (lower, upper) {
        (None, None) => 0.0,
        (None, Some(u)) => log_f(u),
        (Some(l), None) => log_f(-l),
        (Some(l), Some(u)) => log_interval(l, u, log_f),
    }
}

fn draw(rng: &mut Draws, args: &[&Value], log_f: fn(f64) -> f64) -> FnResult<Value> {
    let (eta, cuts) = (args[0].real()?, args[1].slice()?);
    check(
        "ordered_rng",
        "the location parameter",
        Domain::Finite,
        &[eta],
    )?;
    check_cuts("ordered_rng", cuts)?;
    let theta: Vec<f64> = (0..=cuts.len())
        .map(|at| log_mass(at, eta, cuts, log_f).exp())
        .collect();
    Ok(Value::Int(rng.categorical(&theta) as i32 + 1))
}
