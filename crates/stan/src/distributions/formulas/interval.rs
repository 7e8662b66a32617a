//! Densities on intervals and simplexes.

use crate::distributions::formulas::Domain::{Finite, NotNan, Positive, PositiveByFormula, Unit};
use crate::distributions::formulas::{Density, Univariate, Whole, WholeFormula, check};
use crate::value::error::FnResult;

/// Name and formula, of numbers.
pub const TABLE: &[(&str, Univariate)] = &[
    ("uniform_lpdf", uniform),
    ("beta_lpdf", beta),
    ("beta_proportion_lpdf", beta_proportion),
];

/// Name and formula, of vectors.
pub const WHOLE: &[(&str, WholeFormula)] = &[("dirichlet_lpdf", dirichlet)];

fn uniform(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Lower bound parameter", Finite)?;
    d.check(2, "Upper bound parameter", Finite)?;
    let [y, a, b] = d.get();
    check(
        d.name,
        b - a,
        "Upper bound minus lower bound",
        PositiveByFormula,
    )?;
    let outside = y.lt(a) + b.lt(y);
    // A parameter with exactly these bounds never leaves them.
    let (known_y, low, high) = (crate::symbolic::known::range(y), a.scalar(), b.scalar());
    let inside = matches!((low, high), (Some(low), Some(high)) if known_y.low >= low && known_y.high <= high);
    if !inside {
        d.outside(outside);
    }
    d.term(&[1, 2], -(b - a).log());
    Ok(())
}

fn beta(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", Unit)?;
    d.check(1, "First shape parameter", Positive)?;
    d.check(2, "Second shape parameter", Positive)?;
    let [y, a, b] = d.get();
    d.term(&[1], -a.lgamma());
    d.term(&[2], -b.lgamma());
    d.term(&[0, 1], (a - 1.0) * y.log());
    d.term(&[0, 2], (b - 1.0) * y.log1m());
    d.term(&[1, 2], (a + b).lgamma());
    Ok(())
}

fn beta_proportion(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", Unit)?;
    d.check(1, "Location parameter", Unit)?;
    d.check(2, "Precision parameter", Positive)?;
    let [y, mu, kappa] = d.get();
    let a = mu * kappa;
    d.term(&[2], kappa.lgamma());
    d.term(&[1, 2], -(a.lgamma() + (kappa - a).lgamma()));
    d.term(
        &[0, 1, 2],
        (a - 1.0) * y.log() + (kappa - a - 1.0) * y.log1m(),
    );
    Ok(())
}

fn dirichlet(w: &mut Whole<'_, '_>) -> FnResult<()> {
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
    check(d.name, prior, "prior sample sizes", Positive)?;
    check(d.name, x, "probabilities", Unit)?;
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
