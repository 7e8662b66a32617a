//! Distributions of ordered outcomes.

use jensen_math::special::{log_diff_exp, log_phi, log1p_exp};

use super::categories::{category, no_category, outcome_list, pick_of, record_outcome};
use super::formula::Whole;
use super::multivariate::{Multivariate, OverRecords};
use super::simplexes::outcomes;
use crate::functions::Keep;
use crate::functions::random::Draws;
use crate::symbolic::domain::{Domain, check};
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

/// The multivariate distributions that this file defines.
pub static TABLE: &[Multivariate] = &[
    Multivariate::new("ordered_logistic_lpmf", logistic)
        .sample("ordered_logistic_rng", |r, a| {
            draw(r, a, |x| -log1p_exp(-x))
        })
        .lowered(lower_ordered_logistic, OverRecords::Located),
    Multivariate::new("ordered_probit_lpmf", |k, a| {
        ordered("ordered_probit_lpmf", k, a, log_phi)
    })
    .sample("ordered_probit_rng", |r, a| draw(r, a, log_phi))
    .lowered(lower_ordered_probit, OverRecords::Located),
];

pub fn logistic(keep: Keep, args: &[&Value]) -> FnResult<f64> {
    ordered("ordered_logistic_lpmf", keep, args, |x| -log1p_exp(-x))
}

/// Returns the logarithm of F(upper) − F(lower), where F is the distribution function of a symmetric distribution.
/// `log_f` is the logarithm of F. If `lower` is positive, the function uses the upper tail, where the difference loses
/// fewer digits.
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

/// Categories are counted from 0. The probability of a category is the probability that η plus the noise is between two
/// cut points.
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

/// Adds the log density of `ordered_logistic_lpmf` in the graph.
///
/// # Errors
/// Fails if the sizes of the arguments do not match, or if an outcome is not a category.
pub fn lower_ordered_logistic(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, eta, cuts) = lower_arguments(w)?;
    let p = ordered_terms(w, &k, eta, cuts, &|c, eta| {
        // The log probability of a category depends on the distances to the cut points around it.
        match c {
            (None, Some(high)) => -(eta - high).log1p_exp(),
            (Some(low), None) => -(low - eta).log1p_exp(),
            (Some(low), Some(high)) => {
                -(low - eta).log1p_exp() - (eta - high).log1p_exp() + (low - high).log1m_exp()
            }
            (None, None) => eta.num(0.0) * eta,
        }
    })?;
    w.density.term(&[1, 2], p);
    Ok(())
}

fn lower_ordered_probit(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let (k, eta, cuts) = lower_arguments(w)?;
    let p = ordered_terms(w, &k, eta, cuts, &|c, eta| match c {
        (None, Some(high)) => (high - eta).log_normal_cdf(),
        (Some(low), None) => (eta - low).log_normal_cdf(),
        (Some(low), Some(high)) => {
            // The tails are taken from the side on which both of them are small.
            let (a, b) = (high - eta, low - eta);
            let swap = (a + b).lt(a.num(0.0));
            let (near, far) = (swap.select(a, -b), swap.select(b, -a));
            let (x, y) = (near.log_normal_cdf(), far.log_normal_cdf());
            x + (y - x).log1m_exp()
        }
        (None, None) => eta.num(0.0) * eta,
    })?;
    w.density.term(&[1, 2], p);
    Ok(())
}

fn lower_arguments<'g, 'a>(w: &Whole<'g, 'a>) -> FnResult<(Vec<f64>, &'a Sym, &'a Sym)> {
    let cuts = w.passed[2].sym;
    if w.passed[0].sym.has_records(w.density.tape) {
        record_outcome(w, cuts.dims()?.leaf.size() + 1)?;
        return Ok((Vec::new(), w.passed[1].sym, cuts));
    }
    let k = outcomes(w, 0)?;
    let most = cuts.dims()?.leaf.size() as f64 + 1.0;
    if let Some(bad) = k.iter().find(|k| !(1.0..=most).contains(*k)) {
        return Err(no_category(w.density.name, *bad, most));
    }
    Ok((k, w.passed[1].sym, cuts))
}

type OrderedTerm<'g, 'f> = &'f dyn Fn((Option<E<'g>>, Option<E<'g>>), E<'g>) -> E<'g>;

fn ordered_terms<'g>(
    w: &Whole<'g, '_>,
    k: &[f64],
    eta: &Sym,
    cuts: &Sym,
    term: OrderedTerm<'g, '_>,
) -> FnResult<E<'g>> {
    let tape = w.density.tape;
    let dims = cuts.dims()?;
    let most = dims.leaf.size();
    if let Some(y) = record_outcome(w, most + 1)? {
        return record_ordered(w, y, eta.e(tape)?, cuts, term);
    }
    let (e, c) = (eta.e(tape)?, cuts.e(tape)?);
    let n = k.len().max(e.len());
    let own_cuts = dims.array.first().copied();
    if (k.len() != n && k.len() != 1)
        || (e.len() != n && e.len() != 1)
        || own_cuts.is_some_and(|m| m != n && m != 1)
    {
        return Err(w.density.invalid(format!(
            "sizes do not match: {} outcomes, {} and {}",
            k.len(),
            eta.describe(),
            cuts.describe()
        )));
    }
    // If the cut points are not in order, the density is zero.
    if most > 1 && !known::is_ordered(tape, c) {
        let count = dims.count();
        let (low, high): (Vec<u32>, Vec<u32>) = (0..count * most)
            .filter(|at| at % most > 0)
            .map(|at| (at as u32 - 1, at as u32))
            .unzip();
        tape.reject_where(c.gather(&high).le(c.gather(&low)));
    }
    let category = |i: usize| if k.len() == 1 { k[0] } else { k[i] } as usize;
    let mut terms = Vec::new();
    for j in 1..=most + 1 {
        let members: Vec<usize> = (0..n).filter(|i| category(*i) == j).collect();
        if members.is_empty() {
            continue;
        }
        let at = |position: usize| {
            if own_cuts.unwrap_or(1) > 1 {
                let index: Vec<u32> = members
                    .iter()
                    .map(|i| (i * most + position) as u32)
                    .collect();
                c.gather(&index)
            } else if c.len() == 1 {
                c
            } else {
                c.at(position)
            }
        };
        let low = (j > 1).then(|| at(j - 2));
        let high = (j <= most).then(|| at(j - 1));
        let here = if e.len() == 1 {
            e
        } else {
            let index: Vec<u32> = members.iter().map(|i| *i as u32).collect();
            e.gather(&index)
        };
        let each = term((low, high), here);
        terms.push(if each.len() == members.len() {
            each.sum()
        } else {
            members.len() as f64 * each
        });
    }
    Ok(tape.add_all(&terms))
}

fn record_ordered<'g>(
    w: &Whole<'g, '_>,
    y: E<'g>,
    eta: E<'g>,
    cuts: &Sym,
    term: OrderedTerm<'g, '_>,
) -> FnResult<E<'g>> {
    let tape = w.density.tape;
    let each = cuts.elements(tape)?;
    let (most, y_of) = (each.len(), y.data().unwrap_or_default());
    if most == 0 {
        return Ok(term((None, None), eta));
    }
    let own = cuts.has_records(tape);
    if !own {
        let c = cuts.e(tape)?;
        if most > 1 && !known::is_ordered(tape, c) {
            let index = |from: u32| (from..from + most as u32 - 1).collect::<Vec<u32>>();
            tape.reject_where(c.gather(&index(1)).le(c.gather(&index(0))));
        }
    } else {
        for pair in each.windows(2) {
            tape.reject_where(pair[1].le(pair[0]));
        }
    }
    // The cut point at position k − shift, or the nearest existing cut point.
    let cut = |shift: f64| -> FnResult<E<'g>> {
        if own {
            let at = (y - shift).fmax(y.num(0.0)).fmin(y.num(most as f64 - 1.0));
            return Ok(pick_of(at + 1.0, &each));
        }
        let position = |k: &f64| (k - shift).clamp(0.0, most as f64 - 1.0) as u32;
        let index: Vec<u32> = y_of.iter().map(position).collect();
        Ok(cuts.e(tape)?.gather_record(&index))
    };
    let (low, high) = (cut(2.0)?, cut(1.0)?);
    let (first, last) = (y.eq(y.num(1.0)), y.num(most as f64 + 1.0).le(y));
    let side = |here: E<'g>, bounds: (Option<E<'g>>, Option<E<'g>>)| {
        let outside = tape.taken.get();
        let taken = outside.map_or(here, |id| tape.e(id) * here);
        tape.taken.set(Some(taken.id));
        let value = term(bounds, eta);
        tape.taken.set(outside);
        value
    };
    let middle = (first + last).not();
    let lowest = side(first, (None, Some(high)));
    let highest = side(last, (Some(low), None));
    if most == 1 {
        return Ok(first.select(lowest, highest));
    }
    // If the cut points on both sides are the same, there is no gap between them.
    let high_apart = middle.select(high, low + 1.0);
    let between = side(middle, (Some(low), Some(high_apart)));
    Ok(first.select(lowest, last.select(highest, between)))
}
