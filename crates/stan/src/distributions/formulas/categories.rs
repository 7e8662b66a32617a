//! Densities of categories, counts of categories, and ordered outcomes.

use crate::distributions::formulas::Domain::{Finite, Positive, Unit};
use crate::distributions::formulas::{Whole, WholeFormula, check};
use crate::functions::special;
use crate::symbolic::functions::Cx;
use crate::symbolic::functions::elementwise::multiply_log;
use crate::symbolic::functions::reduce::log_sum_exp_all;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

/// Name and formula.
pub const TABLE: &[(&str, WholeFormula)] = &[
    ("categorical_lpmf", |w| {
        if let Some(each) = elementwise(w, 1)? {
            for theta in &each {
                check(w.density.name, *theta, "Probabilities parameter", Unit)?;
            }
            off_by(w, w.density.tape.add_all(&each) - 1.0)?;
            if let Some(y) = record_outcome(w, each.len())? {
                w.density.term(&[1], pick_of(y, &each).log());
                return Ok(());
            }
            let picked: Vec<E<'_>> = categories(w, each.len())?
                .into_iter()
                .map(|k| each[k].log())
                .collect();
            let total = w.density.tape.add_all(&picked);
            w.density.term(&[1], total);
            return Ok(());
        }
        let name = w.density.name;
        let theta = w.passed[1].sym.e(w.density.tape)?;
        check(name, theta, "Probabilities parameter", Unit)?;
        sums_to_one(w, theta)?;
        if let Some(y) = record_outcome(w, theta.len())? {
            w.density.term(&[1], pick_by_record(y, theta.log()));
            return Ok(());
        }
        let picked = pick_categories(w, theta.log())?;
        w.density.term(&[1], picked);
        Ok(())
    }),
    ("categorical_logit_lpmf", |w| {
        let beta = w.passed[1].sym;
        if let Some(y) = record_outcome(w, beta.dims()?.size())? {
            let picked = match elementwise(w, 1)? {
                Some(each) => pick_of(y, &each),
                None => pick_by_record(y, beta.e(w.density.tape)?),
            };
            let normaliser = log_sum_exp_all(&cx(w), beta)?;
            w.density.term(&[1], picked - normaliser);
            return Ok(());
        }
        let count = outcomes(w, 0)?.len() as f64;
        let picked = match elementwise(w, 1)? {
            Some(each) => {
                let picked = categories(w, each.len())?.into_iter().map(|k| each[k]);
                w.density.tape.add_all(&picked.collect::<Vec<_>>())
            }
            None => {
                let e = beta.e(w.density.tape)?;
                check(w.density.name, e, "log odds parameter", Finite)?;
                pick_categories(w, e)?
            }
        };
        let normaliser = log_sum_exp_all(&cx(w), beta)?;
        w.density.term(&[1], picked - count * normaliser);
        Ok(())
    }),
    ("multinomial_lpmf", |w| {
        let ns = outcomes(w, 0)?;
        let name = w.density.name;
        let theta = w.passed[1].sym.e(w.density.tape)?;
        sizes(w, ns.len(), theta.len())?;
        check(name, theta, "Probabilities parameter", Unit)?;
        sums_to_one(w, theta)?;
        coefficient(w, &ns);
        let n = w.density.tape.vector(&ns);
        w.density.term(&[1], multiply_log(n, theta).sum());
        Ok(())
    }),
    ("multinomial_logit_lpmf", |w| {
        let ns = outcomes(w, 0)?;
        let beta = w.passed[1].sym;
        let e = beta.e(w.density.tape)?;
        sizes(w, ns.len(), e.len())?;
        coefficient(w, &ns);
        let total: f64 = ns.iter().sum();
        let n = w.density.tape.vector(&ns);
        let normaliser = log_sum_exp_all(&cx(w), beta)?;
        w.density.term(&[1], (n * e).sum() - total * normaliser);
        Ok(())
    }),
    ("dirichlet_multinomial_lpmf", |w| {
        let ns = outcomes(w, 0)?;
        let alpha = w.passed[1].sym.e(w.density.tape)?;
        sizes(w, ns.len(), alpha.len())?;
        check(w.density.name, alpha, "prior sample sizes", Positive)?;
        let total: f64 = ns.iter().sum();
        if total == 0.0 {
            return Ok(());
        }
        // log n − Σ log nₖ is constant, log B(Σ α, n) − Σ log B(αₖ, nₖ) belongs to α; both over the nₖ that are not 0.
        let positive = || ns.iter().filter(|n| **n > 0.0);
        let logs = total.ln() - positive().map(|n| n.ln()).sum::<f64>();
        let gammas = special::lgamma(total) - positive().map(|n| special::lgamma(*n)).sum::<f64>();
        let n = w.density.tape.vector(&ns);
        let mass = alpha.sum();
        let each = ((n + alpha).lgamma() - alpha.lgamma()).sum();
        let d = &mut w.density;
        d.term(&[], d.num(logs));
        d.term(
            &[1],
            mass.lgamma() - (mass + total).lgamma() + each + gammas,
        );
        Ok(())
    }),
    ("ordered_logistic_lpmf", |w| {
        let (k, eta, cuts) = ordered(w)?;
        let p = ordered_terms(w, &k, eta, cuts, &|c, eta| {
            // log P(category) from the distance to the cuts around it
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
    }),
    ("ordered_probit_lpmf", |w| {
        let (k, eta, cuts) = ordered(w)?;
        let p = ordered_terms(w, &k, eta, cuts, &|c, eta| match c {
            (None, Some(high)) => (high - eta).log_normal_cdf(),
            (Some(low), None) => (eta - low).log_normal_cdf(),
            (Some(low), Some(high)) => {
                // From the side where both tails are small.
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
    }),
];

fn cx<'g>(w: &Whole<'g, '_>) -> Cx<'g> {
    Cx {
        tape: w.density.tape,
        name: w.density.name,
    }
}

/// Known integers.
fn outcomes(w: &Whole<'_, '_>, i: usize) -> FnResult<Vec<f64>> {
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

/// The elements of an argument if they should be handled one by one.
fn elementwise<'g>(w: &Whole<'g, '_>, i: usize) -> FnResult<Option<Vec<E<'g>>>> {
    let sym = w.passed[i].sym;
    let short = sym.is_short_table(w.density.tape);
    short.then(|| sym.elements(w.density.tape)).transpose()
}

/// Rejects probabilities that do not sum to 1, unless they do by construction.
fn sums_to_one(w: &Whole<'_, '_>, theta: E<'_>) -> FnResult<()> {
    if crate::symbolic::known::is_simplex(w.density.tape, theta) {
        return Ok(());
    }
    off_by(w, theta.sum() - 1.0)
}

/// Rejects what is not 0 up to rounding.
fn off_by(w: &Whole<'_, '_>, off: E<'_>) -> FnResult<()> {
    let off = off.abs();
    if let Some(off) = off.scalar() {
        if off > 1e-8 {
            return Err(FnError::domain(format!(
                "{}: Probabilities parameter is not a valid simplex: its elements do not sum to 1",
                w.density.name
            )));
        }
        return Ok(());
    }
    w.density.tape.reject_where(w.density.num(1e-8).lt(off));
    Ok(())
}

/// The outcomes as positions from 0, below `n`.
fn categories(w: &Whole<'_, '_>, n: usize) -> FnResult<Vec<usize>> {
    let k = outcomes(w, 0)?;
    if let Some(bad) = k.iter().find(|k| !(1.0..=n as f64).contains(*k)) {
        return Err(FnError::domain(format!(
            "{}: Category is {bad}, but must be in the interval [1, {n}]",
            w.density.name
        )));
    }
    Ok(k.into_iter().map(|k| k as usize - 1).collect())
}

/// The outcome as a number known for each record, if it is one, checked to be a category below `n`.
fn record_outcome<'g>(w: &Whole<'g, '_>, n: usize) -> FnResult<Option<E<'g>>> {
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
        Some((_, bad)) => Err(FnError::domain(format!(
            "{}: Category is {bad}, but must be in the interval [1, {n}]",
            w.density.name
        ))),
        None => Ok(Some(y)),
    }
}

/// The value of category `y`, where values and category are each record's.
pub fn pick_of<'g>(y: E<'g>, each: &[E<'g>]) -> E<'g> {
    let last = each[each.len() - 1];
    let others = each.iter().enumerate().rev().skip(1);
    others.fold(last, |rest, (k, x)| {
        y.eq(y.num(k as f64 + 1.0)).select(*x, rest)
    })
}

/// Element `y` of a table that all records share.
fn pick_by_record<'g>(y: E<'g>, table: E<'g>) -> E<'g> {
    let n = table.len();
    let place = |k: &f64| (*k as usize).clamp(1, n) as u32 - 1;
    match y.data() {
        Some(y) => table.gather_record(&y.iter().map(place).collect::<Vec<_>>()),
        None => table.at(0),
    }
}

/// Σ over the outcomes of the element of their category.
fn pick_categories<'g>(w: &Whole<'g, '_>, table: E<'g>) -> FnResult<E<'g>> {
    let n = table.len();
    let k = categories(w, n)?;
    if k.len() <= 1 {
        return Ok(k.first().map_or(w.density.num(0.0), |k| table.at(*k)));
    }
    // One multiplication a category instead of one gather an outcome.
    let mut counts = vec![0.0; n];
    k.iter().for_each(|k| counts[*k] += 1.0);
    Ok((w.density.tape.vector(&counts) * table).sum())
}

fn coefficient(w: &mut Whole<'_, '_>, ns: &[f64]) {
    let total: f64 = ns.iter().sum();
    let parts: f64 = ns.iter().map(|n| special::lgamma(n + 1.0)).sum();
    let constant = w.density.num(special::lgamma(total + 1.0) - parts);
    w.density.term(&[], constant);
}

/// Categories, locations and cut points.
fn ordered<'g, 'a>(w: &Whole<'g, 'a>) -> FnResult<(Vec<f64>, &'a Sym, &'a Sym)> {
    let cuts = w.passed[2].sym;
    if w.passed[0].sym.has_records(w.density.tape) {
        record_outcome(w, cuts.dims()?.leaf.size() + 1)?;
        return Ok((Vec::new(), w.passed[1].sym, cuts));
    }
    let k = outcomes(w, 0)?;
    let most = cuts.dims()?.leaf.size() as f64 + 1.0;
    if let Some(bad) = k.iter().find(|k| !(1.0..=most).contains(*k)) {
        return Err(FnError::domain(format!(
            "{}: Random variable is {bad}, but must be in the interval [1, {most}]",
            w.density.name
        )));
    }
    Ok((k, w.passed[1].sym, cuts))
}

type OrderedTerm<'g, 'f> = &'f dyn Fn((Option<E<'g>>, Option<E<'g>>), E<'g>) -> E<'g>;

/// The sum over outcomes, those of one category at once.
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
    // Cut points that are not in order have no density.
    if most > 1 && !crate::symbolic::known::is_ordered(tape, c) {
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

/// The term of one outcome for each record.
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
        if most > 1 && !crate::symbolic::known::is_ordered(tape, c) {
            let index = |from: u32| (from..from + most as u32 - 1).collect::<Vec<u32>>();
            tape.reject_where(c.gather(&index(1)).le(c.gather(&index(0))));
        }
    } else {
        for pair in each.windows(2) {
            tape.reject_where(pair[1].le(pair[0]));
        }
    }
    // The cut at position k − shift, or the nearest there is.
    let cut = |shift: f64| -> FnResult<E<'g>> {
        if own {
            let at = (y - shift).fmax(y.num(0.0)).fmin(y.num(most as f64 - 1.0));
            return Ok(pick_of(at + 1.0, &each));
        }
        let place = |k: &f64| (k - shift).clamp(0.0, most as f64 - 1.0) as u32;
        let index: Vec<u32> = y_of.iter().map(place).collect();
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
    // Where the cuts around are one and the same, their gap is no gap.
    let high_apart = middle.select(high, low + 1.0);
    let between = side(middle, (Some(low), Some(high_apart)));
    Ok(first.select(lowest, last.select(highest, between)))
}
