//! Densities of generalised linear models, which are densities of outcomes given the linear predictor α + x β.

use jensen_graph::ElemOp;
use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::{lgamma, log_sum_exp, log_sum_exp_slice};

use super::categories::{self, no_category};
use super::formula::{Arg, DensityBuilder, Passed, Whole};
use super::multivariate::{Multivariate, OverRecords};
use super::univariate::{SCALE, Suffix, Univariate};
use super::{counts, ordered, trials};
use crate::functions::Keep;
use crate::functions::random::Draws;
use crate::program::{BinaryOp, Level};
use crate::symbolic::domain::Domain::{Finite, NonNegative, NotNan, Positive};
use crate::symbolic::domain::{Domain, check, check_values, guard};
use crate::symbolic::functions::operators::binary;
use crate::symbolic::functions::reduce::log_sum_exp_of;
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym, e_cell};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

const OUTCOMES: &str = "the outcomes";
const PREDICTOR: &str = "the linear predictor";
const PRECISION: &str = "the precision parameter";

/// The multivariate distributions that this file defines.
pub static TABLE: &[Multivariate] = &[
    Multivariate::new("normal_id_glm_lpdf", |k, a| {
        let eta = predictor("normal_id_glm_lpdf", a[0].len(), a[1], a[2], a[3])?;
        check(
            "normal_id_glm_lpdf",
            SCALE,
            Domain::PositiveFinite,
            &a[4].numbers(),
        )?;
        call(
            "normal",
            k.reorder(&[1, 2 | 4 | 8, 16]),
            &[a[0], &eta, a[4]],
        )
    })
    .lowered(lower_normal_id_glm, OverRecords::All),
    Multivariate::new("bernoulli_logit_glm_lpmf", |k, a| {
        let eta = predictor("bernoulli_logit_glm_lpmf", a[0].len(), a[1], a[2], a[3])?;
        call("bernoulli_logit", k.reorder(&[1, 2 | 4 | 8]), &[a[0], &eta])
    })
    .sample("bernoulli_logit_glm_rng", bernoulli_rng)
    .lowered(lower_bernoulli_logit_glm, OverRecords::All),
    Multivariate::new("binomial_logit_glm_lpmf", |k, a| {
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
    })
    .lowered(lower_binomial_logit_glm, OverRecords::All),
    Multivariate::new("poisson_log_glm_lpmf", |k, a| {
        let eta = predictor("poisson_log_glm_lpmf", a[0].len(), a[1], a[2], a[3])?;
        call("poisson_log", k.reorder(&[1, 2 | 4 | 8]), &[a[0], &eta])
    })
    .lowered(lower_poisson_log_glm, OverRecords::All),
    Multivariate::new("neg_binomial_2_log_glm_lpmf", |k, a| {
        let eta = predictor("neg_binomial_2_log_glm_lpmf", a[0].len(), a[1], a[2], a[3])?;
        let k = k.reorder(&[1, 2 | 4 | 8, 16]);
        neg_binomial(k, &a[0].numbers(), eta.slice()?, &a[4].numbers())
    })
    .lowered(lower_neg_binomial_2_log_glm, OverRecords::All),
    Multivariate::new("ordered_logistic_glm_lpmf", |k, a| {
        let zero = Value::Real(0.0);
        let eta = predictor("ordered_logistic_glm_lpmf", a[0].len(), a[1], &zero, a[2])?;
        ordered::logistic(k.reorder(&[1, 2 | 4, 8]), &[a[0], &eta, a[3]])
    })
    .lowered(lower_ordered_logistic_glm, OverRecords::All),
    Multivariate::new("categorical_logit_glm_lpmf", categorical)
        .lowered(lower_categorical_logit_glm, OverRecords::All),
];

/// The result has one number for each row of `x`. If all outcomes share a single row, the result has `n` numbers.
fn predictor(function: &str, n: usize, x: &Value, alpha: &Value, beta: &Value) -> FnResult<Value> {
    let beta = beta.slice()?;
    let (rows, shared) = rows_of(x)?;
    let count = if shared { n.max(1) } else { rows.len() };
    let alpha = alpha.numbers();
    if alpha.len() != 1 && alpha.len() != count {
        return Err(FnError::invalid(format!(
            "{function}: {} intercepts for {count} rows",
            alpha.len()
        )));
    }
    let mut products = Vec::with_capacity(rows.len());
    for row in &rows {
        if row.len() != beta.len() {
            return Err(FnError::invalid(format!(
                "{function}: {} columns for {} weights",
                row.len(),
                beta.len()
            )));
        }
        products.push(row.iter().zip(beta).map(|(x, b)| x * b).sum::<f64>());
    }
    let at = |of: &[f64], i: usize| of[if of.len() == 1 { 0 } else { i }];
    let eta: Vec<f64> = (0..count)
        .map(|i| at(&alpha, i) + at(&products, i))
        .collect();
    check(function, PREDICTOR, Domain::Finite, &eta)?;
    Ok(Value::Vector(eta))
}

/// Returns the rows of `x`, and whether all outcomes share a single row. A row that all outcomes share is returned only
/// once.
fn rows_of(x: &Value) -> FnResult<(Vec<Vec<f64>>, bool)> {
    if let Value::RowVector(row) = x {
        return Ok((vec![row.clone()], true));
    }
    let m = x.matrix()?;
    Ok(((0..m.rows()).map(|i| m.row(i)).collect(), false))
}

fn univariate(name: &str) -> FnResult<&'static Univariate> {
    super::univariate()
        .find(|row| row.name == name)
        .ok_or_else(|| FnError::invalid(format!("no distribution `{name}`")))
}

fn call(name: &str, keep: Keep, args: &[&Value]) -> FnResult<f64> {
    univariate(name)?.call(Suffix::Density, keep, args)
}

/// `eta` contains log means, and `phi` contains precisions. As in Stan, a call that drops constants does not drop the
/// same terms as a call of `neg_binomial_2_log`.
fn neg_binomial(keep: Keep, y: &[f64], eta: &[f64], phi: &[f64]) -> FnResult<f64> {
    const NAME: &str = "neg_binomial_2_log_glm_lpmf";
    check(NAME, OUTCOMES, Domain::NonNegative, y)?;
    check(NAME, PRECISION, Domain::PositiveFinite, phi)?;
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
                + keep.term(2 | 4, -(y + phi) * log_sum_exp(eta, phi.ln()))
        })
        .sum())
}

fn bernoulli_rng(rng: &mut Draws, a: &[&Value]) -> FnResult<Value> {
    let n = a[1].len();
    let eta = predictor("bernoulli_logit_glm_rng", n, a[0], a[1], a[2])?;
    univariate("bernoulli_logit")?.draw(rng, &[&eta])
}

/// In row i, the logits of the categories are αᵀ + xᵢ β. The matrix β has one column for each category.
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
    let (rows, shared) = rows_of(a[1])?;
    let count = if shared { outcomes.len() } else { rows.len() };
    let outcomes = if outcomes.len() == 1 && count != 1 {
        vec![outcomes[0]; count]
    } else {
        outcomes
    };
    if count != outcomes.len() {
        return Err(FnError::invalid(format!(
            "{NAME}: {count} rows for {} outcomes",
            outcomes.len()
        )));
    }
    let logits_of = |row: &[f64]| -> FnResult<(Vec<f64>, f64)> {
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
        let normaliser = log_sum_exp_slice(&logits);
        Ok((logits, normaliser))
    };
    let common = match shared && count > 0 {
        true => Some(logits_of(&rows[0])?),
        false => None,
    };
    let mut sum = 0.0;
    for (i, outcome) in outcomes.into_iter().enumerate() {
        let own;
        let (logits, normaliser) = match &common {
            Some(found) => found,
            None => {
                own = logits_of(&rows[i])?;
                &own
            }
        };
        let at = categories::category(NAME, outcome, logits.len())?;
        sum += logits[at] - normaliser;
    }
    Ok(keep.term(2 | 4 | 8, sum))
}

fn lower_normal_id_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let mut d = linear(w, 0, 1)?;
    let [y, eta] = d.get();
    let sigma = w.passed[4].sym.e(d.tape)?;
    size_fits(&d, sigma)?;
    check_values(d.name, y, OUTCOMES, Finite)?;
    check_values(d.name, sigma, SCALE, Positive)?;
    d.args.push(Arg {
        e: sigma,
        level: w.passed[4].level,
    });
    d.term(
        &[0, 1, 2],
        -0.5 * ((y - eta).square() * sigma.recip().square()),
    );
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    w.density.terms = d.terms;
    Ok(())
}

fn lower_bernoulli_logit_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let mut d = linear(w, 0, 1)?;
    let [y, eta] = d.get();
    guard(d.name, y, OUTCOMES, NonNegative)?;
    guard(d.name, 1.0 - y, "1 minus the outcomes", NonNegative)?;
    trials::bernoulli_logit(&mut d, y, eta);
    w.density.terms = d.terms;
    Ok(())
}

fn lower_binomial_logit_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let mut d = linear(w, 0, 2)?;
    let [y, eta] = d.get();
    let n = w.passed[1].sym.e(d.tape)?;
    size_fits(&d, n)?;
    guard(d.name, y, OUTCOMES, NonNegative)?;
    guard(d.name, n - y, "trials minus successes", NonNegative)?;
    d.args.insert(
        1,
        Arg {
            e: n,
            level: Level::Data,
        },
    );
    trials::binomial_logit(&mut d, y, n, eta);
    w.density.terms = d.terms;
    Ok(())
}

fn lower_poisson_log_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let mut d = linear(w, 0, 1)?;
    let [y, eta] = d.get();
    guard(d.name, y, OUTCOMES, NonNegative)?;
    counts::poisson_log(&mut d, y, eta);
    w.density.terms = d.terms;
    Ok(())
}

fn lower_neg_binomial_2_log_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let mut d = linear(w, 0, 1)?;
    let [y, eta] = d.get();
    let phi = w.passed[4].sym.e(d.tape)?;
    size_fits(&d, phi)?;
    guard(d.name, y, OUTCOMES, NonNegative)?;
    guard(d.name, phi, PRECISION, Positive)?;
    d.args.push(Arg {
        e: phi,
        level: w.passed[4].level,
    });
    counts::log_factorial(&mut d, y);
    d.term(&[2], phi.op2(ElemOp::LgammaStep, y));
    counts::neg_binomial_2_log(&mut d, y, eta, phi);
    w.density.terms = d.terms;
    Ok(())
}

fn lower_ordered_logistic_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    let eta: Sym = {
        let cx = w.cx();
        let product = binary(&cx, BinaryOp::Mul, w.passed[1].sym, w.passed[2].sym)?;
        let n = product.dims()?.size();
        Sym::flat(Dims::leaf(Leaf::Vector(n)), cx.e(&product)?)
    };
    let level = w.passed[1].level.max(w.passed[2].level);
    let passed = [w.passed[0], Passed { sym: &eta, level }, w.passed[3]];
    w.delegate(ordered::lower_ordered_logistic, &passed)
}

fn lower_categorical_logit_glm(w: &mut Whole<'_, '_>) -> FnResult<()> {
    // Each row of X B + αᵀ contains the log odds for one outcome.
    let cx = w.cx();
    let (x, alpha, beta) = (w.passed[1].sym, w.passed[2].sym, w.passed[3].sym);
    let product = binary(&cx, BinaryOp::Mul, x, beta)?;
    let (rows, classes) = cx.extents(&product)?;
    let y = w.passed[0].sym;
    if product.has_records(cx.tape) || y.has_records(cx.tape) {
        let (x, a) = (cx.elements(&product)?, cx.elements(alpha)?);
        if rows != 1 || a.len() != classes {
            return Err(cx.mismatch(&product, alpha));
        }
        let eta = (0..classes).map(|j| e_cell(x[j] + a[j]));
        let eta = Sym::cells(Dims::leaf(Leaf::Vector(classes)), eta.collect());
        let level = w.passed[1]
            .level
            .max(w.passed[2].level)
            .max(w.passed[3].level);
        let passed = [w.passed[0], Passed { sym: &eta, level }];
        return w.delegate(categories::lower_categorical_logit, &passed);
    }
    let outcomes = y.e(cx.tape)?.values().unwrap_or_default();
    let single = outcomes.len() == 1;
    let n = if single { rows } else { outcomes.len() };
    if (n != rows && rows != 1) || cx.e(alpha)?.len() != classes {
        return Err(w.density.invalid(format!(
            "sizes do not match: {}, {} and {}",
            y.describe(),
            product.describe(),
            alpha.describe()
        )));
    }
    if let Some(bad) = outcomes
        .iter()
        .find(|k| !(1.0..=classes as f64).contains(*k))
    {
        return Err(no_category(w.density.name, *bad, classes as f64));
    }
    let by_class: Vec<u32> = (0..rows * classes).map(|at| (at / rows) as u32).collect();
    let intercepts = if classes == 1 {
        cx.e(alpha)?
    } else {
        cx.e(alpha)?.gather(&by_class)
    };
    let eta = (cx.e(&product)? + intercepts).repeat(rows * classes);
    let columns: Vec<E<'_>> = (0..classes)
        .map(|j| {
            if rows * classes == 1 {
                eta
            } else {
                eta.slice(j * rows, rows)
            }
        })
        .collect();
    let normaliser = log_sum_exp_of(&cx, &columns);
    let own: Vec<u32> = (0..n)
        .map(|i| {
            let k = if single { outcomes[0] } else { outcomes[i] } as usize;
            let row = if rows == 1 { 0 } else { i };
            ((k - 1) * rows + row) as u32
        })
        .collect();
    let picked = if rows * classes == 1 {
        eta.repeat(n)
    } else {
        eta.gather(&own)
    };
    let d = &mut w.density;
    let repeats = if rows == 1 { n as f64 } else { 1.0 };
    d.term(&[1, 2, 3], picked.sum() - repeats * normaliser.sum());
    Ok(())
}

/// Creates the builder for the density of the outcome given the linear predictor X β + α. The outcome is argument `y`.
/// X is argument `x`, and the arguments α and β follow it.
fn linear<'g>(w: &Whole<'g, '_>, y: usize, x: usize) -> FnResult<DensityBuilder<'g>> {
    let cx = w.cx();
    let (matrix, alpha, beta) = (w.passed[x].sym, w.passed[x + 1].sym, w.passed[x + 2].sym);
    let product = binary(&cx, BinaryOp::Mul, matrix, beta)?;
    let outcome = w.passed[y].sym.e(cx.tape)?;
    let (p, a) = (cx.e(&product)?, cx.e(alpha)?);
    let rows = p.len();
    let n = if rows == 1 {
        outcome.len().max(a.len())
    } else {
        rows
    };
    let fits = |e: E<'_>| e.len() == n || e.len() == 1;
    if !fits(outcome) || !fits(a) || !fits(p) {
        return Err(w.density.invalid(format!(
            "sizes do not match: {}, {} and {}",
            w.passed[y].sym.describe(),
            matrix.describe(),
            alpha.describe()
        )));
    }
    let level = (x..x + 3)
        .map(|i| w.passed[i].level)
        .max()
        .unwrap_or(Level::Data);
    let eta = p + a;
    check_values(w.density.name, eta, PREDICTOR, NotNan)?;
    Ok(DensityBuilder {
        tape: cx.tape,
        name: w.density.name,
        drop: w.density.drop,
        args: vec![
            Arg {
                e: outcome,
                level: w.passed[y].level,
            },
            Arg { e: eta, level },
        ],
        n,
        terms: Vec::new(),
    })
}

fn size_fits(d: &DensityBuilder<'_>, e: E<'_>) -> FnResult<()> {
    if e.len() == 1 || e.len() == d.n {
        return Ok(());
    }
    Err(d.invalid(format!(
        "sizes do not match: {} outcomes and {} parameters",
        d.n,
        e.len()
    )))
}
