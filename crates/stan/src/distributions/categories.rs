//! Distributions of categorical outcomes.

use jensen_math::special::log_sum_exp_slice;

use super::formula::Whole;
use super::multivariate::{Multivariate, OverRecords};
use super::simplexes::{LOG_ODDS, PROBABILITIES, check_simplex, off_by, outcomes, sums_to_one};
use crate::symbolic::domain::{Domain, check, check_values, guard};
use crate::symbolic::functions::reduce::log_sum_exp_all;
use crate::symbolic::tape::E;
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Domain::{Finite, Unit};

/// The multivariate distributions that this file defines.
pub static TABLE: &[Multivariate] = &[
    Multivariate::new("categorical_lpmf", |k, a| {
        let theta = a[1].slice()?;
        check_simplex("categorical_lpmf", PROBABILITIES, theta)?;
        categories("categorical_lpmf", a[0], theta.len(), |at| theta[at].ln()).map(|x| k.term(2, x))
    })
    .sample("categorical_rng", |r, a| {
        let theta = a[0].slice()?;
        check_simplex("categorical_rng", PROBABILITIES, theta)?;
        Ok(Value::Int(r.categorical(theta) as i32 + 1))
    })
    .lowered(lower_categorical, OverRecords::Outcome),
    Multivariate::new("categorical_logit_lpmf", |k, a| {
        let logits = a[1].slice()?;
        check("categorical_logit_lpmf", LOG_ODDS, Domain::Finite, logits)?;
        let total = log_sum_exp_slice(logits);
        categories("categorical_logit_lpmf", a[0], logits.len(), |at| {
            logits[at] - total
        })
        .map(|x| k.term(2, x))
    })
    .sample("categorical_logit_rng", |r, a| {
        let logits = a[0].slice()?;
        check("categorical_logit_rng", LOG_ODDS, Domain::Finite, logits)?;
        let total = log_sum_exp_slice(logits);
        let theta: Vec<f64> = logits.iter().map(|l| (l - total).exp()).collect();
        Ok(Value::Int(r.categorical(&theta) as i32 + 1))
    })
    .lowered(lower_categorical_logit, OverRecords::Outcome),
];

/// Converts the category `n`, which is counted from 1, to an index counted from 0.
///
/// # Errors
/// Fails if `n` is not between 1 and `k`. The error rejects the current point.
pub fn category(function: &str, n: i32, k: usize) -> FnResult<usize> {
    match usize::try_from(n) {
        Ok(n) if (1..=k).contains(&n) => Ok(n - 1),
        _ => Err(no_category(function, f64::from(n), k as f64)),
    }
}

/// Returns the error for an outcome `n` that is not one of the `k` categories.
pub fn no_category(function: &str, n: f64, k: f64) -> FnError {
    FnError::domain(format!(
        "{function}: the category is {n}, but must be between 1 and {k}"
    ))
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

pub fn outcome_list(outcomes: &Value) -> FnResult<Vec<i32>> {
    match outcomes {
        Value::Int(i) => Ok(vec![*i]),
        other => Ok(other.ints()?.to_vec()),
    }
}

fn lower_categorical(w: &mut Whole<'_, '_>) -> FnResult<()> {
    if let Some(each) = elementwise(w, 1)? {
        for theta in &each {
            guard(w.density.name, *theta, PROBABILITIES, Unit)?;
        }
        off_by(w, w.density.tape.add_all(&each) - 1.0)?;
        if let Some(y) = record_outcome(w, each.len())? {
            w.density.term(&[1], pick_of(y, &each).log());
            return Ok(());
        }
        let picked: Vec<E<'_>> = known_categories(w, each.len())?
            .into_iter()
            .map(|k| each[k].log())
            .collect();
        let total = w.density.tape.add_all(&picked);
        w.density.term(&[1], total);
        return Ok(());
    }
    let name = w.density.name;
    let theta = w.passed[1].sym.e(w.density.tape)?;
    guard(name, theta, PROBABILITIES, Unit)?;
    sums_to_one(w, theta)?;
    if let Some(y) = record_outcome(w, theta.len())? {
        w.density.term(&[1], pick_by_record(y, theta.log()));
        return Ok(());
    }
    let picked = pick_categories(w, theta.log())?;
    w.density.term(&[1], picked);
    Ok(())
}

/// Adds the log density of `categorical_logit_lpmf` in the graph.
///
/// # Errors
/// Fails if the sizes of the arguments do not match, or if an outcome is not a category.
pub fn lower_categorical_logit(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let beta = w.passed[1].sym;
    if let Some(y) = record_outcome(w, beta.dims()?.size())? {
        let picked = match elementwise(w, 1)? {
            Some(each) => pick_of(y, &each),
            None => pick_by_record(y, beta.e(w.density.tape)?),
        };
        let normaliser = log_sum_exp_all(&w.cx(), beta)?;
        w.density.term(&[1], picked - normaliser);
        return Ok(());
    }
    let count = outcomes(w, 0)?.len() as f64;
    let picked = match elementwise(w, 1)? {
        Some(each) => {
            let picked = known_categories(w, each.len())?
                .into_iter()
                .map(|k| each[k]);
            w.density.tape.add_all(&picked.collect::<Vec<_>>())
        }
        None => {
            let e = beta.e(w.density.tape)?;
            check_values(w.density.name, e, LOG_ODDS, Finite)?;
            pick_categories(w, e)?
        }
    };
    let normaliser = log_sum_exp_all(&w.cx(), beta)?;
    w.density.term(&[1], picked - count * normaliser);
    Ok(())
}

fn elementwise<'g>(w: &Whole<'g, '_>, i: usize) -> FnResult<Option<Vec<E<'g>>>> {
    let sym = w.passed[i].sym;
    let short = sym.is_short_table(w.density.tape);
    short.then(|| sym.elements(w.density.tape)).transpose()
}

/// The categories are counted from 0, and each category is less than `n`.
fn known_categories(w: &Whole<'_, '_>, n: usize) -> FnResult<Vec<usize>> {
    let k = outcomes(w, 0)?;
    if let Some(bad) = k.iter().find(|k| !(1.0..=n as f64).contains(*k)) {
        return Err(no_category(w.density.name, *bad, n as f64));
    }
    Ok(k.into_iter().map(|k| k as usize - 1).collect())
}

/// If the outcome is known, returns it as one number per record. Fails unless each of these numbers is a category below
/// `n`.
pub fn record_outcome<'g>(w: &Whole<'g, '_>, n: usize) -> FnResult<Option<E<'g>>> {
    let y = w.passed[0].sym;
    if !y.has_records(w.density.tape) {
        return Ok(None);
    }
    let y = y.e(w.density.tape)?;
    let Some(visited) = y.visited() else {
        return Err(FnError::unsupported(format!(
            "{}: an integer argument that depends on parameters is not supported yet",
            w.density.name
        )));
    };
    match visited.iter().find(|(_, k)| !(1.0..=n as f64).contains(k)) {
        Some((_, bad)) => Err(no_category(w.density.name, *bad, n as f64)),
        None => Ok(Some(y)),
    }
}

/// Returns the value of category `y`. The category and the values may differ between records.
pub fn pick_of<'g>(y: E<'g>, each: &[E<'g>]) -> E<'g> {
    let last = each[each.len() - 1];
    let others = each.iter().enumerate().rev().skip(1);
    others.fold(last, |rest, (k, x)| {
        y.eq(y.num(k as f64 + 1.0)).select(*x, rest)
    })
}

fn pick_by_record<'g>(y: E<'g>, table: E<'g>) -> E<'g> {
    let n = table.len();
    let position = |k: &f64| (*k as usize).clamp(1, n) as u32 - 1;
    match y.data() {
        Some(y) => table.gather_record(&y.iter().map(position).collect::<Vec<_>>()),
        None => table.at(0),
    }
}

fn pick_categories<'g>(w: &Whole<'g, '_>, table: E<'g>) -> FnResult<E<'g>> {
    let n = table.len();
    let k = known_categories(w, n)?;
    if k.len() <= 1 {
        return Ok(k.first().map_or(w.density.num(0.0), |k| table.at(*k)));
    }
    // One multiplication per category is cheaper than one gather operation per outcome.
    let mut counts = vec![0.0; n];
    k.iter().for_each(|k| counts[*k] += 1.0);
    Ok((w.density.tape.vector(&counts) * table).sum())
}
