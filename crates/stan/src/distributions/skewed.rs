//! Skew and circular distributions.

use std::f64::consts::{LN_2, PI};

use jensen_graph::ElemOp;
use jensen_math::constants::{HALF_LOG_TWO_PI, LOG_TWO_PI};
use jensen_math::special::{
    log_modified_bessel_first_kind, log_phi, log_phi_scaled, log_sum_exp, log1m_exp, owens_t, phi,
};

use super::formula::{DensityBuilder, TailTerms, within};
use super::univariate::{LOCATION, SCALE, Tails, Univariate};
use crate::functions::random::Draws;
use crate::symbolic::domain::Domain::{
    Finite, NonNegativeFinite, NotNan, Positive, PositiveFinite, Unit,
};
use crate::symbolic::tape::E;
use crate::value::error::FnResult;
use jensen_math::special::gauss;

const Y: u32 = 1;
const A: u32 = 2;
const B: u32 = 4;
const C: u32 = 8;

/// The univariate distributions that this file defines.
pub static TABLE: &[Univariate] = &[
    Univariate::new(
        "skew_normal",
        NotNan,
        &[
            (LOCATION, Finite),
            (SCALE, Positive),
            ("the shape parameter", Finite),
        ],
        |k, x| {
            let z = (x[0] - x[1]) / x[2];
            k.constant(-HALF_LOG_TWO_PI)
                + k.term(B, -x[2].ln())
                + k.term(Y | A | B, -0.5 * z * z)
                + k.term(Y | A | B | C, LN_2 + log_phi(x[3] * z))
        },
    )
    .tails(|x| {
        let z = (x[0] - x[1]) / x[2];
        let t = 2.0 * owens_t(z, x[3]);
        Tails {
            lower: (phi(z) - t).max(0.0).ln(),
            upper: (phi(-z) + t).max(0.0).ln(),
        }
    })
    .sample(|r, x| {
        // Azzalini's representation of a skew normal number by two normal numbers.
        let delta = x[2] / x[2].hypot(1.0);
        let (u, v) = (r.normal(), r.normal());
        x[0] + x[1] * (delta * u.abs() + (1.0 - delta * delta).sqrt() * v)
    })
    .lowered(0, lower_skew_normal)
    .lowered_tails(B, |d| {
        let [y, xi, omega, alpha] = d.get();
        let z = (y - xi) * omega.recip();
        let op = ElemOp::LogSkewNormalCdf;
        Ok((z.op2(op, alpha), (-z).op2(op, -alpha)))
    }),
    Univariate::new(
        "exp_mod_normal",
        NotNan,
        &[
            (LOCATION, Finite),
            (SCALE, PositiveFinite),
            ("the inverse scale parameter", PositiveFinite),
        ],
        |k, x| {
            let (y, mu, sigma, lambda) = (x[0], x[1], x[2], x[3]);
            let tilted = log_tilted_phi((y - mu) / sigma, lambda * sigma);
            k.constant(-LN_2) + k.term(C, lambda.ln()) + k.term(Y | A | B | C, tilted + LN_2)
        },
    )
    .tails(|x| {
        let (mu, sigma, lambda) = (x[1], x[2], x[3]);
        let z = (x[0] - mu) / sigma;
        let shifted = log_tilted_phi(z, lambda * sigma);
        Tails {
            lower: {
                let lower = log_phi(z);
                if shifted < lower {
                    lower + log1m_exp(shifted - lower)
                } else {
                    f64::NEG_INFINITY
                }
            },
            upper: log_sum_exp(log_phi(-z), shifted).min(0.0),
        }
    })
    .sample(|r, x| x[0] + x[1] * r.normal() + r.exponential() / x[2])
    .lowered(B, lower_exp_mod_normal)
    .lowered_tails(B | C, lower_exp_mod_normal_tails),
    Univariate::new(
        "skew_double_exponential",
        Finite,
        &[
            (LOCATION, Finite),
            (SCALE, PositiveFinite),
            ("the skewness parameter", Unit),
        ],
        |k, x| {
            let (d, sigma, tau) = (x[0] - x[1], x[2], x[3]);
            let weight = if d < 0.0 { 1.0 - tau } else { tau };
            k.constant(LN_2)
                + k.term(B, -sigma.ln())
                + k.term(C, tau.ln() + (-tau).ln_1p())
                + k.term(Y | A | B | C, -2.0 * weight * d.abs() / sigma)
        },
    )
    .tails(|x| {
        let (d, sigma, tau) = (x[0] - x[1], x[2], x[3]);
        if d < 0.0 {
            Tails::from_log_lower(tau.ln() + 2.0 * (1.0 - tau) * d / sigma)
        } else {
            Tails::from_log_upper((-tau).ln_1p() - 2.0 * tau * d / sigma)
        }
    })
    .sample(|r, x| {
        let (mu, sigma, tau) = (x[0], x[1], x[2]);
        let below = r.uniform() < tau;
        let e = r.exponential();
        if below {
            mu - sigma * e / (2.0 * (1.0 - tau))
        } else {
            mu + sigma * e / (2.0 * tau)
        }
    })
    .lowered(C, lower_skew_double_exponential)
    .lowered_tails(B | C, lower_skew_double_exponential_tails),
    Univariate::new(
        "von_mises",
        Finite,
        &[(LOCATION, Finite), (SCALE, NonNegativeFinite)],
        |k, x| {
            k.constant(-LOG_TWO_PI)
                + k.term(B, -log_modified_bessel_first_kind(0.0, x[2]))
                + k.term(Y | A | B, x[2] * (x[1] - x[0]).cos())
        },
    )
    .tails(|x| {
        if x[0] <= -PI {
            return Tails::NOTHING;
        }
        if x[0] >= PI {
            return Tails::ALL;
        }
        let (mu, kappa) = (x[1], x[2]);
        let log_norm = LOG_TWO_PI + log_modified_bessel_first_kind(0.0, kappa) - kappa;
        let density = |t: f64| (kappa * ((t - mu).cos() - 1.0) - log_norm).exp();
        Tails {
            lower: gauss(density, -PI, x[0], 400).min(1.0).ln(),
            upper: gauss(density, x[0], PI, 400).min(1.0).ln(),
        }
    })
    .sample(von_mises)
    .lowered(B, lower_von_mises)
    .lowered_tails(B, lower_von_mises_tails),
];

/// u²/2 − u z + log Φ(z − u). Below z = u the squares cancel except for −z²/2.
fn log_tilted_phi(z: f64, u: f64) -> f64 {
    let exponent = if z < u {
        -0.5 * z * z
    } else {
        u * (0.5 * u - z)
    };
    exponent + log_phi_scaled(z - u)
}

/// If the concentration exceeds this number, the sampler draws from a normal distribution, which then differs only by
/// rounding error. The rejection sampler would lose digits, because the terms of its envelope cancel.
const NORMAL_KAPPA: f64 = 1e7;

/// Uses Best and Fisher's rejection sampler with a wrapped Cauchy envelope. The result is in [−π, π) around 0, as in
/// Stan.
fn von_mises(r: &mut Draws, x: &[f64]) -> f64 {
    let (mu, kappa) = (x[0], x[1]);
    if kappa < 1e-8 {
        return wrap(mu + 2.0 * PI * (r.uniform() - 0.5));
    }
    if kappa > NORMAL_KAPPA {
        return wrap(mu + r.normal() / kappa.sqrt());
    }
    let tau = 1.0 + (1.0 + 4.0 * kappa * kappa).sqrt();
    let rho = (tau - (2.0 * tau).sqrt()) / (2.0 * kappa);
    let s = (1.0 + rho * rho) / (2.0 * rho);
    loop {
        let z = (PI * r.uniform()).cos();
        let f = (1.0 + s * z) / (s + z);
        let c = kappa * (s - f);
        let u = r.uniform();
        if c * (2.0 - c) - u > 0.0 || (c / u).ln() + 1.0 - c >= 0.0 {
            let sign = if r.uniform() < 0.5 { -1.0 } else { 1.0 };
            return wrap(mu + sign * f.clamp(-1.0, 1.0).acos());
        }
    }
}

fn wrap(angle: f64) -> f64 {
    (angle + PI).rem_euclid(2.0 * PI) - PI
}

fn lower_skew_normal(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, xi, omega, alpha] = d.get();
    let z = (y - xi) * omega.recip();
    d.term(&[0, 1, 2], -0.5 * z.square());
    // log erfc(−αz/√2) = log 2 Φ(αz)
    d.term(&[0, 1, 2, 3], (alpha * z).log_normal_cdf() + LN_2);
    d.term(&[2], -omega.log());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn lower_exp_mod_normal(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma, lambda] = d.get();
    let tilted = lower_log_tilted_phi((y - mu) / sigma, lambda * sigma);
    // log erfc(x/√2) = log 2 Φ(−x)
    d.term(&[0, 1, 2, 3], tilted + LN_2);
    d.term(&[3], lambda.log());
    d.term(&[], d.num(-LN_2));
    Ok(())
}

fn lower_log_tilted_phi<'g>(z: E<'g>, u: E<'g>) -> E<'g> {
    let exponent = z.lt(u).select(-0.5 * z.square(), u * (0.5 * u - z));
    exponent + (z - u).log_normal_scaled()
}

fn lower_skew_double_exponential(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, sigma, tau] = d.get();
    let below = y.lt(mu);
    let weight = below.select(1.0 - tau, tau);
    d.term(
        &[0, 1, 2, 3],
        -2.0 * ((y - mu).abs() * weight * sigma.recip()),
    );
    d.term(&[3], tau.log() + tau.log1m());
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(LN_2));
    Ok(())
}

/// log I₀(κ)
fn log_bessel<'g>(kappa: E<'g>) -> E<'g> {
    kappa.num(0.0).op2(ElemOp::LogBesselI, kappa)
}

fn lower_von_mises(d: &mut DensityBuilder<'_>) -> FnResult<()> {
    let [y, mu, kappa] = d.get();
    d.term(&[0, 1, 2], kappa * (mu - y).cos());
    d.term(&[2], -log_bessel(kappa));
    d.term(&[], d.num(-LOG_TWO_PI));
    Ok(())
}

fn lower_von_mises_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, mu, kappa] = d.get();
    let log_norm = LOG_TWO_PI + log_bessel(kappa) - kappa;
    Ok(within(y, [-PI, PI], |y| {
        let area = |from: E<'g>, to: E<'g>| from.op3(ElemOp::VonMisesArea, to, kappa) - log_norm;
        let (lower, upper) = (area(-PI - mu, y - mu), area(y - mu, PI - mu));
        // The larger tail is computed as one minus the smaller tail.
        let small = lower.num(-LN_2);
        let rest = |other: E<'g>| other.fmin(small).log1m_exp();
        (
            lower.lt(small).select(lower, rest(upper)),
            upper.lt(small).select(upper, rest(lower)),
        )
    }))
}

fn lower_skew_double_exponential_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, mu, sigma, tau] = d.get();
    let z = 2.0 * (y - mu) * sigma.recip();
    let (zero, below) = (z.num(0.0), y.lt(mu));
    let lower = tau.log() + (1.0 - tau) * z.fmin(zero);
    let upper = tau.log1m() - tau * z.fmax(zero);
    Ok((
        below.select(lower, upper.log1m_exp()),
        below.select(lower.log1m_exp(), upper),
    ))
}

fn lower_exp_mod_normal_tails<'g>(d: &mut DensityBuilder<'g>) -> TailTerms<'g> {
    let [y, mu, sigma, lambda] = d.get();
    let z = (y - mu) * sigma.recip();
    let u = lambda * sigma;
    // The mass that the exponential part moves beyond the outcome
    let beyond = lower_log_tilted_phi(z, u);
    let lower = z.log_normal_cdf();
    Ok((
        lower + (beyond - lower).log1m_exp(),
        (-z).log_normal_cdf().log_add_exp(beyond),
    ))
}
