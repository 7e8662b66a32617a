//! Symmetric and other location-scale distributions on the real line.

use std::f64::consts::{FRAC_1_PI, LN_2, PI};

use jensen_graph::ElemOp;
use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::{lgamma_step, log_phi, log1p_exp};

use super::formula::{DensityBuilder, TailTerms};
use super::univariate::{LOCATION, SCALE, Tails, Univariate};
use crate::functions::special::ln_inc_beta;
use crate::symbolic::domain::Domain::{Finite, NotNan, Positive, PositiveFinite};
use crate::symbolic::tape::E;
use crate::value::error::FnResult;

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

/// The univariate distributions that this file defines.
pub static TABLE: &[Univariate] = &[
    Univariate::new(
        "normal",
        NotNan,
        &[(LOCATION, Finite), (SCALE, Positive)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.constant(-HALF_LOG_TWO_PI) + k.term(B, -x[2].ln()) + k.term(Y | A | B, -0.5 * z * z)
        },
    )
    .tails(|x| normal_tails((x[0] - x[1]) / x[2]))
    .sample(|r, x| x[0] + x[1] * r.normal())
    .lowered(0, lower_normal)
    .lowered_tails(B, lower_normal_tails),
    Univariate::new("std_normal", NotNan, &[], |k, x| {
        k.constant(-HALF_LOG_TWO_PI) + k.term(Y, -0.5 * x[0] * x[0])
    })
    .tails(|x| normal_tails(x[0]))
    .sample(|r, _| r.normal())
    .lowered(0, lower_std_normal)
    .lowered_tails(0, lower_std_normal_tails),
    Univariate::new(
        "cauchy",
        NotNan,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.constant(-PI.ln()) + k.term(B, -x[2].ln()) + k.term(Y | A | B, -(z * z).ln_1p())
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        // The angle is measured from the far end, which keeps the digits of both tails.
        Tails {
            lower: (1f64.atan2(-z) / PI).ln(),
            upper: (1f64.atan2(z) / PI).ln(),
        }
    })
    .sample(|r, x| x[0] + x[1] * (PI * (r.uniform() - 0.5)).tan())
    .lowered(0, lower_cauchy)
    .lowered_tails(B, lower_cauchy_tails),
    Univariate::new(
        "student_t",
        NotNan,
        &[
            ("the degrees of freedom parameter", PositiveFinite),
            (LOCATION, Finite),
            (SCALE, PositiveFinite),
        ],
        |k, x| {
            let (nu, z) = (x[1], (x[0] - x[2]) / x[3]);
            k.constant(-0.5 * PI.ln())
                + k.term(A, lgamma_step(0.5 * nu, 0.5) - 0.5 * nu.ln())
                + k.term(C, -x[3].ln())
                + k.term(Y | A | B | C, -0.5 * (nu + 1.0) * (z * z / nu).ln_1p())
        },
    )
    .tails(|x| student_tails(x[1], (x[0] - x[2]) / x[3]))
    .sample(|r, x| {
        let chi = 2.0 * r.gamma(0.5 * x[0]);
        x[1] + x[2] * r.normal() * (x[0] / chi).sqrt()
    })
    .lowered(A, lower_student_t)
    .lowered_tails(C, |d| {
        let [y, nu, mu, sigma] = d.get();
        let z = (y - mu) * sigma.recip();
        Ok([z, -z].map(|z| nu.op2(ElemOp::LogStudentCdf, z)).into())
    }),
    Univariate::new(
        "double_exponential",
        Finite,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            k.constant(-LN_2)
                + k.term(B, -x[2].ln())
                + k.term(Y | A | B, -(x[0] - x[1]).abs() / x[2])
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        if z < 0.0 {
            Tails::from_log_lower(z - LN_2)
        } else {
            Tails::from_log_upper(-z - LN_2)
        }
    })
    .sample(|r, x| {
        let u = r.uniform() - 0.5;
        x[0] - x[1] * u.signum() * (-2.0 * u.abs()).ln_1p()
    })
    .lowered(0, lower_double_exponential)
    .lowered_tails(B, lower_double_exponential_tails),
    Univariate::new(
        "logistic",
        Finite,
        &[(LOCATION, Finite), (SCALE, PositiveFinite)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.term(B, -x[2].ln()) + k.term(Y | A | B, -z - 2.0 * log1p_exp(-z))
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        Tails {
            lower: -log1p_exp(-z),
            upper: -log1p_exp(z),
        }
    })
    .sample(|r, x| {
        let u = r.uniform();
        x[0] + x[1] * (u.ln() - (-u).ln_1p())
    })
    .lowered(0, lower_logistic)
    .lowered_tails(B, lower_logistic_tails),
    Univariate::new(
        "gumbel",
        NotNan,
        &[(LOCATION, Finite), (SCALE, Positive)],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.term(B, -x[2].ln()) + k.term(Y | A | B, -z - (-z).exp())
        },
    )
    .tails(|x| Tails::from_log_lower(-(-(x[0] - x[1]) / x[2]).exp()))
    .sample(|r, x| x[0] - x[1] * r.exponential().ln())
    .lowered(0, lower_gumbel)
    .lowered_tails(B, lower_gumbel_tails),
];

/// Returns the tails of a standard normal number at `z`.
pub fn normal_tails(z: f64) -> Tails {
    Tails {
        lower: log_phi(z),
        upper: log_phi(-z),
    }
}

fn student_tails(nu: f64, t: f64) -> Tails {
    let x = nu / (nu + t * t);
    let beyond = ln_inc_beta(0.5 * nu, 0.5, x).0 - LN_2;
    if t < 0.0 {
        Tails::from_log_lower(beyond)
    } else {
        Tails::from_log_upper(beyond)
    }
}

fn lower_normal(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma] = d.get();
    d.term(
        &[0, 1, 2],
        -0.5 * ((y - mu).square() * sigma.recip().square()),
    );
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn lower_std_normal(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y] = d.get();
    d.term(&[0], -0.5 * y.square());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn lower_cauchy(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma] = d.get();
    d.term(&[0, 1, 2], -((y - mu) * sigma.recip()).square().log1p());
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-PI.ln()));
    Ok(())
}

fn lower_student_t(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, nu, mu, sigma] = d.get();
    let half = 0.5 * (nu + 1.0);
    let scaled = ((y - mu).square() * sigma.recip().square() / nu).log1p();
    d.term(&[0, 1, 2, 3], -(half * scaled));
    let step = (0.5 * nu).op2(ElemOp::LgammaStep, d.num(0.5));
    d.term(&[1], step - 0.5 * nu.log());
    d.term(&[3], -sigma.log());
    d.term(&[], d.num(-0.5 * PI.ln()));
    Ok(())
}

fn lower_double_exponential(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma] = d.get();
    d.term(&[0, 1, 2], -((y - mu).abs() * sigma.recip()));
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-LN_2));
    Ok(())
}

fn lower_logistic(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma] = d.get();
    let z = (y - mu) * sigma.recip();
    d.term(&[0, 1, 2], -(z + 2.0 * (-z).log1p_exp()));
    d.term(&[2], -sigma.log());
    Ok(())
}

fn lower_gumbel(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, beta] = d.get();
    let z = (y - mu) * beta.recip();
    d.term(&[0, 1, 2], -(z + (-z).exp()));
    d.term(&[2], -beta.log());
    Ok(())
}

/// (y − μ)/σ
fn standardised<'g>(d: &DensityBuilder<'g>) -> E<'g> {
    let [y, mu, sigma] = d.get();
    (y - mu) * sigma.recip()
}

fn lower_normal_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let z = standardised(d);
    Ok((z.log_normal_cdf(), (-z).log_normal_cdf()))
}

fn lower_std_normal_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [z] = d.get();
    Ok((z.log_normal_cdf(), (-z).log_normal_cdf()))
}

fn lower_cauchy_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let z = standardised(d);
    // ½ + atan(z)/π = atan2(1, −z)/π without cancellation in the lower tail
    let tail = |z: E<'g>| {
        let angle = z.num(1.0).op2(ElemOp::Atan2, -z);
        (angle * FRAC_1_PI).log()
    };
    Ok((tail(z), tail(-z)))
}

fn lower_double_exponential_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let z = standardised(d);
    let far = -z.abs() - LN_2;
    let near = (-far.exp()).log1p();
    let below = z.lt(z.num(0.0));
    Ok((below.select(far, near), below.select(near, far)))
}

fn lower_logistic_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let z = standardised(d);
    Ok((-(-z).log1p_exp(), -z.log1p_exp()))
}

fn lower_gumbel_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let z = standardised(d);
    let lower = -(-z).exp();
    Ok((lower, lower.log1m_exp()))
}
