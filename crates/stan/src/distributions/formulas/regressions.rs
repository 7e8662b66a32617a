//! Densities of generalised linear models: outcome, design matrix, intercepts, coefficients.

use crate::distributions::formulas::Domain::{
    Finite, NonNegative, NotNan, Positive, PositiveByFormula,
};
use crate::distributions::formulas::{
    Arg, Density, HALF_LOG_TWO_PI, Whole, WholeFormula, check, counts,
};
use crate::program::{BinaryOp, Level};
use crate::symbolic::functions::Cx;
use crate::symbolic::functions::operators::binary;
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::error::FnResult;

/// Name and formula.
pub const TABLE: &[(&str, WholeFormula)] = &[
    ("normal_id_glm_lpdf", |w| {
        let mut d = linear(w, 0, 1)?;
        let [y, eta] = d.get();
        let sigma = w.passed[4].sym.e(d.tape)?;
        size_fits(&d, sigma)?;
        check(d.name, y, "Vector of dependent variables", Finite)?;
        check(d.name, sigma, "Scale vector", PositiveByFormula)?;
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
    }),
    ("bernoulli_logit_glm_lpmf", |w| {
        let mut d = linear(w, 0, 1)?;
        let [y, eta] = d.get();
        check(d.name, y, "Vector of dependent variables", NonNegative)?;
        check(
            d.name,
            1.0 - y,
            "1 minus the vector of dependent variables",
            NonNegative,
        )?;
        counts::bernoulli_logit(&mut d, y, eta);
        w.density.terms = d.terms;
        Ok(())
    }),
    ("binomial_logit_glm_lpmf", |w| {
        let mut d = linear(w, 0, 2)?;
        let [y, eta] = d.get();
        let n = w.passed[1].sym.e(d.tape)?;
        size_fits(&d, n)?;
        check(d.name, y, "Successes variable", NonNegative)?;
        check(
            d.name,
            n - y,
            "Population size parameter minus successes variable",
            NonNegative,
        )?;
        d.args.insert(
            1,
            Arg {
                e: n,
                level: Level::Data,
            },
        );
        counts::binomial_logit(&mut d, y, n, eta);
        w.density.terms = d.terms;
        Ok(())
    }),
    ("poisson_log_glm_lpmf", |w| {
        let mut d = linear(w, 0, 1)?;
        let [y, eta] = d.get();
        check(d.name, y, "Vector of dependent variables", NonNegative)?;
        counts::poisson_log(&mut d, y, eta);
        w.density.terms = d.terms;
        Ok(())
    }),
    ("neg_binomial_2_log_glm_lpmf", |w| {
        let mut d = linear(w, 0, 1)?;
        let [y, eta] = d.get();
        let phi = w.passed[4].sym.e(d.tape)?;
        size_fits(&d, phi)?;
        check(d.name, y, "Failures variables", NonNegative)?;
        check(d.name, phi, "Precision parameter", Positive)?;
        d.args.push(Arg {
            e: phi,
            level: w.passed[4].level,
        });
        counts::log_factorial(&mut d, y);
        d.term(&[2], (y + phi).lgamma());
        d.term(&[2], -phi.lgamma());
        counts::neg_binomial_2_log(&mut d, y, eta, phi);
        w.density.terms = d.terms;
        Ok(())
    }),
    ("ordered_logistic_glm_lpmf", |w| {
        let eta: Sym = {
            let cx = cx(w);
            let product = binary(&cx, BinaryOp::Mul, w.passed[1].sym, w.passed[2].sym)?;
            let n = product.dims()?.size();
            Sym::flat(Dims::leaf(Leaf::Vector(n)), cx.e(&product)?)
        };
        let level = w.passed[1].level.max(w.passed[2].level);
        let passed = [
            w.passed[0],
            crate::distributions::formulas::Passed { sym: &eta, level },
            w.passed[3],
        ];
        delegate(w, "ordered_logistic_lpmf", &passed)
    }),
    ("categorical_logit_glm_lpmf", |w| {
        // Rows of X B + αᵀ are the log odds of one outcome each.
        let cx = cx(w);
        let (x, alpha, beta) = (w.passed[1].sym, w.passed[2].sym, w.passed[3].sym);
        let product = binary(&cx, BinaryOp::Mul, x, beta)?;
        let (rows, classes) = cx.extents(&product)?;
        let y = w.passed[0].sym;
        if product.has_records(cx.tape) || y.has_records(cx.tape) {
            let (x, a) = (cx.elements(&product)?, cx.elements(alpha)?);
            if rows != 1 || a.len() != classes {
                return Err(cx.mismatch(&product, alpha));
            }
            let eta = (0..classes).map(|j| crate::symbolic::value::e_cell(x[j] + a[j]));
            let eta = Sym::cells(Dims::leaf(Leaf::Vector(classes)), eta.collect());
            let level = w.passed[1]
                .level
                .max(w.passed[2].level)
                .max(w.passed[3].level);
            let passed = [
                w.passed[0],
                crate::distributions::formulas::Passed { sym: &eta, level },
            ];
            return delegate(w, "categorical_logit_lpmf", &passed);
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
            return Err(crate::value::error::FnError::domain(format!(
                "{}: categorical outcome is {bad}, but must be in the interval [1, {classes}]",
                w.density.name
            )));
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
        let normaliser = crate::symbolic::functions::reduce::log_sum_exp_of(&cx, &columns);
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
    }),
];

fn cx<'g>(w: &Whole<'g, '_>) -> Cx<'g> {
    Cx {
        tape: w.density.tape,
        name: w.density.name,
    }
}

fn delegate(
    w: &mut Whole<'_, '_>,
    name: &str,
    passed: &[crate::distributions::formulas::Passed<'_>],
) -> FnResult<()> {
    let Some(formula) = crate::distributions::formulas::find(name) else {
        return Err(w.density.invalid(format!("`{name}` is missing")));
    };
    let lp = formula.build(w.density.tape, w.density.name, passed, w.density.drop)?;
    w.density.terms.push(lp);
    Ok(())
}

/// The density of the outcome `y` given the linear predictor X β + α, whose X, α and β stand from position `x` on.
fn linear<'g>(w: &Whole<'g, '_>, y: usize, x: usize) -> FnResult<Density<'g>> {
    let cx = cx(w);
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
    check(
        w.density.name,
        eta,
        "Matrix of independent variables times weights",
        NotNan,
    )?;
    Ok(Density {
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

fn size_fits(d: &Density<'_>, e: E<'_>) -> FnResult<()> {
    if e.len() == 1 || e.len() == d.n {
        return Ok(());
    }
    Err(d.invalid(format!(
        "sizes do not match: {} outcomes and {} parameters",
        d.n,
        e.len()
    )))
}
