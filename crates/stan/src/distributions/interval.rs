//! Distributions on intervals.

use jensen_graph::ElemOp;
use jensen_math::special::{lbeta, lgamma, lgamma_step};

use super::formula::{DensityBuilder, TailTerms, within};
use super::univariate::{LOCATION, Tails, Univariate};
use crate::functions::special::ln_inc_beta;
use crate::symbolic::domain::Domain::{Finite, NotNan, Positive, PositiveFinite, Unit};
use crate::symbolic::domain::guard;
use crate::symbolic::functions::elementwise::{lbeta as lbeta_of, logit};
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::value::error::{FnError, FnResult};

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;

/// The univariate distributions that this file defines.
pub static TABLE: &[Univariate] = &[
    Univariate::new(
        "uniform",
        NotNan,
        &[("the lower bound", Finite), ("the upper bound", Finite)],
        |k, x| {
            if x[0] < x[1] || x[0] > x[2] {
                return f64::NEG_INFINITY;
            }
            k.term(A | B, -(x[2] - x[1]).ln())
        },
    )
    .joint(|function, p| {
        if p[1] > p[0] {
            return Ok(());
        }
        Err(FnError::domain(format!(
            "{function}: the upper bound is {}, but must be greater than {}",
            p[1], p[0]
        )))
    })
    .tails(|x| {
        if x[0] <= x[1] {
            return Tails::NOTHING;
        }
        if x[0] >= x[2] {
            return Tails::ALL;
        }
        Tails {
            lower: ((x[0] - x[1]) / (x[2] - x[1])).ln(),
            upper: ((x[2] - x[0]) / (x[2] - x[1])).ln(),
        }
    })
    .sample(|r, x| x[0] + (x[1] - x[0]) * r.uniform())
    .lowered(0, lower_uniform)
    .lowered_tails(0, lower_uniform_tails),
    Univariate::new(
        "beta",
        Unit,
        &[
            ("the first shape parameter", PositiveFinite),
            ("the second shape parameter", PositiveFinite),
        ],
        |k, x| {
            // −log B, or the part of it that is not constant, without cancellation for large arguments.
            let normaliser = match (k.on(A), k.on(B)) {
                (true, false) => lgamma_step(x[1], x[2]),
                (false, true) => lgamma_step(x[2], x[1]),
                _ => k.term(A | B, -lbeta(x[1], x[2])),
            };
            normaliser
                + k.term(Y | A, (x[1] - 1.0) * x[0].ln())
                + k.term(Y | B, (x[2] - 1.0) * (-x[0]).ln_1p())
        },
    )
    .tails(|x| beta_tails(x[1], x[2], x[0]))
    .sample(|r, x| r.beta(x[0], x[1]))
    .lowered(Y | A | B, lower_beta)
    .lowered_tails(0, |d| {
        let [y, a, b] = d.get();
        Ok(lower_beta_tails(y, a, b))
    }),
    Univariate::new(
        "beta_proportion",
        Unit,
        &[
            (LOCATION, Unit),
            ("the precision parameter", PositiveFinite),
        ],
        |k, x| {
            let (a, b) = (x[1] * x[2], (1.0 - x[1]) * x[2]);
            // log Γ(κ) is constant if κ is data.
            let constant = if k.on(B) { 0.0 } else { lgamma(x[2]) };
            k.term(A | B, -lbeta(a, b) - constant)
                + k.term(
                    Y | A | B,
                    (a - 1.0) * x[0].ln() + (b - 1.0) * (-x[0]).ln_1p(),
                )
        },
    )
    .joint(|function, p| {
        if p[0] > 0.0 && p[0] < 1.0 {
            return Ok(());
        }
        Err(FnError::domain(format!(
            "{function}: {LOCATION} is {}, but must be greater than 0 and less than 1",
            p[0]
        )))
    })
    .tails(|x| beta_tails(x[1] * x[2], (1.0 - x[1]) * x[2], x[0]))
    .sample(|r, x| r.beta(x[0] * x[1], (1.0 - x[0]) * x[1]))
    .lowered(Y | A | B, lower_beta_proportion)
    .lowered_tails(A | B, |d| {
        let [y, mu, kappa] = d.get();
        Ok(lower_beta_tails(y, mu * kappa, (1.0 - mu) * kappa))
    }),
];

fn beta_tails(a: f64, b: f64, y: f64) -> Tails {
    Tails::new(ln_inc_beta(a, b, y.clamp(0.0, 1.0)))
}

/// Returns log I_x(a, b) at x = inv_logit(t), and the log of its complement.
pub fn log_inc_beta<'g>(a: E<'g>, b: E<'g>, t: E<'g>) -> (E<'g>, E<'g>) {
    let op = ElemOp::LogIncBeta;
    (a.op3(op, b, t), b.op3(op, a, -t))
}

fn lower_beta_tails<'g>(y: E<'g>, a: E<'g>, b: E<'g>) -> (E<'g>, E<'g>) {
    let (lower, upper) = within(y, [0.0, 1.0], |y| log_inc_beta(a, b, logit(y)));
    if y.inv_logit_argument().is_some() {
        return (lower, upper);
    }
    // If one tail is the whole mass, its logarithm is replaced by the first term of the other tail's series, which has
    // the correct derivative.
    let first = |at: E<'g>, gap: E<'g>, shape: E<'g>| {
        at.select(gap, y.num(1.0)).pow(shape) * (-lbeta_of(a, b)).exp() / shape
    };
    let (none, all) = (y.eq(y.num(0.0)), y.eq(y.num(1.0)));
    (
        all.select(-first(all, 1.0 - y, b), lower),
        none.select(-first(none, y, a), upper),
    )
}

fn lower_uniform(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, a, b] = d.get();
    let outside = y.lt(a) + b.lt(y);
    // A parameter that is declared with exactly these bounds is never outside of them.
    let (known_y, low, high) = (known::range(y), a.scalar(), b.scalar());
    let inside = matches!((low, high), (Some(low), Some(high)) if known_y.low >= low && known_y.high <= high);
    if !inside {
        d.outside(outside);
    }
    d.term(&[1, 2], -(b - a).log());
    Ok(())
}

fn lower_beta(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, a, b] = d.get();
    // −log B, or the part of it that is not constant, without cancellation for large arguments.
    match (d.keeps(&[1]), d.keeps(&[2])) {
        (true, false) => d.term(&[1], a.op2(ElemOp::LgammaStep, b)),
        (false, true) => d.term(&[2], b.op2(ElemOp::LgammaStep, a)),
        _ => d.term(&[1, 2], -lbeta_of(a, b)),
    }
    d.term(&[0, 1], (a - 1.0) * y.log());
    d.term(&[0, 2], (b - 1.0) * y.log1m());
    Ok(())
}

fn lower_beta_proportion(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, kappa] = d.get();
    let a = mu * kappa;
    d.term(&[1, 2], -lbeta_of(a, kappa - a));
    if !d.keeps(&[2]) {
        d.term(&[1, 2], -kappa.lgamma());
    }
    d.term(
        &[0, 1, 2],
        (a - 1.0) * y.log() + (kappa - a - 1.0) * y.log1m(),
    );
    Ok(())
}

fn lower_uniform_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, a, b] = d.get();
    guard(
        d.name,
        b - a,
        "the upper bound minus the lower bound",
        Positive,
    )?;
    // Outside the interval, one tail is 0 and the other is 1.
    let clamp = |p: E<'g>| p.fmax(p.num(0.0)).fmin(p.num(1.0));
    let width = (b - a).recip();
    Ok((clamp((y - a) * width).log(), clamp((b - y) * width).log()))
}
