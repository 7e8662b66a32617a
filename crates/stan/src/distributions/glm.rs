//! Generalised linear models: densities of a linear predictor α + x β.

use crate::distributions::family::{Domain, Family, FamilyPart, check};
use crate::distributions::ordinal;
use crate::functions::elementary::log_add_exp;
use crate::functions::random::Draws;
use crate::functions::reductions::log_sum_exp;
use crate::functions::special::lgamma;
use crate::functions::{Builtin, Entry, Keep};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Builtin::{Density, Random};

pub(super) const TABLE: &[Entry] = &[
    (
        "bernoulli_logit_glm_lpmf",
        Density(|k, a| {
            let eta = predictor("bernoulli_logit_glm_lpmf", a[0].len(), a[1], a[2], a[3])?;
            call("bernoulli_logit", k.reorder(&[1, 2 | 4 | 8]), &[a[0], &eta])
        }),
    ),
    ("bernoulli_logit_glm_rng", Random(bernoulli_rng)),
    (
        "binomial_logit_glm_lpmf",
        Density(|k, a| {
            let n = if a[0].is_scalar() {
                a[1].len()
            } else {
                a[0].len()
            };
            let eta = predictor("binomial_logit_glm_lpmf", n, a[2], a[3], a[4])?;
            call(
                "binomial_logit",
                k.reorder(&[1, 2, 4 | 8 | 16]),
                &[a[0], a[1], &eta],
            )
        }),
    ),
    (
        "poisson_log_glm_lpmf",
        Density(|k, a| {
            let eta = predictor("poisson_log_glm_lpmf", a[0].len(), a[1], a[2], a[3])?;
            call("poisson_log", k.reorder(&[1, 2 | 4 | 8]), &[a[0], &eta])
        }),
    ),
    (
        "neg_binomial_2_log_glm_lpmf",
        Density(|k, a| {
            let eta = predictor("neg_binomial_2_log_glm_lpmf", a[0].len(), a[1], a[2], a[3])?;
            let k = k.reorder(&[1, 2 | 4 | 8, 16]);
            neg_binomial(k, &a[0].numbers(), eta.slice()?, &a[4].numbers())
        }),
    ),
    (
        "normal_id_glm_lpdf",
        Density(|k, a| {
            let eta = predictor("normal_id_glm_lpdf", a[0].len(), a[1], a[2], a[3])?;
            check(
                "normal_id_glm_lpdf",
                "the scale parameter",
                Domain::PositiveFinite,
                &a[4].numbers(),
            )?;
            call(
                "normal",
                k.reorder(&[1, 2 | 4 | 8, 16]),
                &[a[0], &eta, a[4]],
            )
        }),
    ),
    ("categorical_logit_glm_lpmf", Density(categorical)),
    (
        "ordered_logistic_glm_lpmf",
        Density(|k, a| {
            let zero = Value::Real(0.0);
            let eta = predictor("ordered_logistic_glm_lpmf", a[0].len(), a[1], &zero, a[2])?;
            ordinal::logistic(k.reorder(&[1, 2 | 4, 8]), &[a[0], &eta, a[3]])
        }),
    ),
];

/// α + x β: one number for each row of `x`, or for each of `n` outcomes that share a row.
fn predictor(function: &str, n: usize, x: &Value, alpha: &Value, beta: &Value) -> FnResult<Value> {
    let beta = beta.slice()?;
    let rows: Vec<Vec<f64>> = match x {
        Value::RowVector(row) => vec![row.clone(); n.max(1)],
        other => {
            let m = other.matrix()?;
            (0..m.rows()).map(|i| m.row(i)).collect()
        }
    };
    let alpha = alpha.numbers();
    if alpha.len() != 1 && alpha.len() != rows.len() {
        return Err(FnError::invalid(format!(
            "{function}: {} intercepts for {} rows",
            alpha.len(),
            rows.len()
        )));
    }
    let mut eta = Vec::with_capacity(rows.len());
    for (i, row) in rows.iter().enumerate() {
        if row.len() != beta.len() {
            return Err(FnError::invalid(format!(
                "{function}: {} columns for {} weights",
                row.len(),
                beta.len()
            )));
        }
        let dot: f64 = row.iter().zip(beta).map(|(x, b)| x * b).sum();
        eta.push(alpha[if alpha.len() == 1 { 0 } else { i }] + dot);
    }
    check(function, "the linear predictor", Domain::Finite, &eta)?;
    Ok(Value::Vector(eta))
}

fn family(name: &str) -> FnResult<&'static Family> {
    crate::distributions::families()
        .find(|f| f.name == name)
        .ok_or_else(|| FnError::invalid(format!("no family `{name}`")))
}

fn call(name: &str, keep: Keep, args: &[&Value]) -> FnResult<f64> {
    family(name)?.call(FamilyPart::LogDensity, keep, args)
}

/// Counts with log means `eta` and precisions `phi`. The terms are grouped as Stan groups them, which differs from the
/// family `neg_binomial_2_log`.
fn neg_binomial(keep: Keep, y: &[f64], eta: &[f64], phi: &[f64]) -> FnResult<f64> {
    const NAME: &str = "neg_binomial_2_log_glm_lpmf";
    check(NAME, "the counts", Domain::NonNegative, y)?;
    check(NAME, "the precision parameter", Domain::PositiveFinite, phi)?;
    for len in [y.len(), phi.len()] {
        if len != eta.len() && len != 1 {
            return Err(FnError::invalid(format!(
                "{NAME}: sizes of the arguments do not match: {} and {len}",
                eta.len()
            )));
        }
    }
    let pick = |x: &[f64], i: usize| x[if x.len() == 1 { 0 } else { i }];
    Ok((0..eta.len())
        .map(|i| {
            let (y, eta, phi) = (pick(y, i), eta[i], pick(phi, i));
            keep.constant(-lgamma(y + 1.0))
                + keep.term(4, phi * phi.ln() - lgamma(phi) + lgamma(y + phi))
                + keep.term(2, y * eta)
                + keep.term(2 | 4, -(y + phi) * log_add_exp(eta, phi.ln()))
        })
        .sum())
}

fn bernoulli_rng(rng: &mut Draws, a: &[&Value]) -> FnResult<Value> {
    let n = a[1].len();
    let eta = predictor("bernoulli_logit_glm_rng", n, a[0], a[1], a[2])?;
    family("bernoulli_logit")?.draw(rng, &[&eta])
}

/// Row i has the logits αᵀ + xᵢ β, with a column of β for each category.
fn categorical(keep: Keep, a: &[&Value]) -> FnResult<f64> {
    const NAME: &str = "categorical_logit_glm_lpmf";
    let (alpha, beta) = (a[2].slice()?, a[3].matrix()?);
    let outcomes: Vec<i32> = match a[0] {
        Value::Int(i) => vec![*i],
        other => other.ints()?.to_vec(),
    };
    if alpha.len() != beta.cols() {
        return Err(FnError::invalid(format!(
            "{NAME}: {} intercepts for {} categories",
            alpha.len(),
            beta.cols()
        )));
    }
    let rows: Vec<Vec<f64>> = match a[1] {
        Value::RowVector(row) => vec![row.clone(); outcomes.len()],
        other => {
            let m = other.matrix()?;
            (0..m.rows()).map(|i| m.row(i)).collect()
        }
    };
    let outcomes = if outcomes.len() == 1 && rows.len() != 1 {
        vec![outcomes[0]; rows.len()]
    } else {
        outcomes
    };
    if rows.len() != outcomes.len() {
        return Err(FnError::invalid(format!(
            "{NAME}: {} rows for {} outcomes",
            rows.len(),
            outcomes.len()
        )));
    }
    let mut sum = 0.0;
    for (row, outcome) in rows.iter().zip(outcomes) {
        if row.len() != beta.rows() {
            return Err(FnError::invalid(format!(
                "{NAME}: {} columns for {} weights",
                row.len(),
                beta.rows()
            )));
        }
        let logits: Vec<f64> = (0..beta.cols())
            .map(|k| {
                let dot: f64 = row.iter().zip(beta.column(k)).map(|(x, b)| x * b).sum();
                alpha[k] + dot
            })
            .collect();
        let at = ordinal::category(NAME, outcome, logits.len())?;
        sum += logits[at] - log_sum_exp(&logits);
    }
    Ok(keep.term(2 | 4 | 8, sum))
}
