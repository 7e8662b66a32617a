//! Densities on the real line.

use std::f64::consts::{LN_2, PI};

use crate::distributions::formulas::Domain::{Finite, NotNan, Positive, PositiveByFormula};
use crate::distributions::formulas::{Density, HALF_LOG_TWO_PI, Univariate};
use crate::functions::special;
use crate::value::error::{FnError, FnResult};

/// Name and formula.
pub const TABLE: &[(&str, Univariate)] = &[
    ("normal_lpdf", normal),
    ("std_normal_lpdf", std_normal),
    ("cauchy_lpdf", cauchy),
    ("student_t_lpdf", student_t),
    ("double_exponential_lpdf", double_exponential),
    ("logistic_lpdf", logistic),
    ("gumbel_lpdf", gumbel),
    ("skew_normal_lpdf", skew_normal),
    ("exp_mod_normal_lpdf", exp_mod_normal),
    ("skew_double_exponential_lpdf", skew_double_exponential),
    ("von_mises_lpdf", von_mises),
];

fn location_scale(d: &Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(2, "Scale parameter", PositiveByFormula)
}

fn normal(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    let [y, mu, sigma] = d.get();
    d.term(
        &[0, 1, 2],
        -0.5 * ((y - mu).square() * sigma.recip().square()),
    );
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn std_normal(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    let [y] = d.get();
    d.term(&[0], -0.5 * y.square());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn cauchy(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    let [y, mu, sigma] = d.get();
    d.term(&[0, 1, 2], -((y - mu) * sigma.recip()).square().log1p());
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-PI.ln()));
    Ok(())
}

fn student_t(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Degrees of freedom parameter", Positive)?;
    d.check(2, "Location parameter", Finite)?;
    d.check(3, "Scale parameter", PositiveByFormula)?;
    let [y, nu, mu, sigma] = d.get();
    let half = 0.5 * (nu + 1.0);
    let scaled = ((y - mu).square() * sigma.recip().square() / nu).log1p();
    d.term(&[0, 1, 2, 3], -(half * scaled));
    d.term(&[1], half.lgamma() - (0.5 * nu).lgamma() - 0.5 * nu.log());
    d.term(&[3], -sigma.log());
    d.term(&[], d.num(-0.5 * PI.ln()));
    Ok(())
}

fn double_exponential(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    let [y, mu, sigma] = d.get();
    d.term(&[0, 1, 2], -((y - mu).abs() * sigma.recip()));
    d.term(&[2], -sigma.log());
    d.term(&[], d.num(-LN_2));
    Ok(())
}

fn logistic(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    let [y, mu, sigma] = d.get();
    let z = (y - mu) * sigma.recip();
    d.term(&[0, 1, 2], -(z + 2.0 * (-z).log1p_exp()));
    d.term(&[2], -sigma.log());
    Ok(())
}

fn gumbel(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    let [y, mu, beta] = d.get();
    let z = (y - mu) * beta.recip();
    d.term(&[0, 1, 2], -(z + (-z).exp()));
    d.term(&[2], -beta.log());
    Ok(())
}

fn skew_normal(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    d.check(3, "Shape parameter", Finite)?;
    let [y, xi, omega, alpha] = d.get();
    let z = (y - xi) * omega.recip();
    d.term(&[0, 1, 2], -0.5 * z.square());
    // log erfc(−αz/√2) = log 2 Φ(αz)
    d.term(&[0, 1, 2, 3], (alpha * z).log_normal_cdf() + LN_2);
    d.term(&[2], -omega.log());
    d.term(&[], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn exp_mod_normal(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(2, "Scale parameter", Positive)?;
    d.check(3, "Inv_scale parameter", PositiveByFormula)?;
    let [y, mu, sigma, lambda] = d.get();
    let variance = lambda * sigma.square();
    let shift = mu - y;
    // log erfc(x/√2) = log 2 Φ(−x)
    let tail = (-(shift + variance) / sigma).log_normal_cdf() + LN_2;
    d.term(&[0, 1, 2, 3], lambda * (shift + 0.5 * variance) + tail);
    d.term(&[3], lambda.log());
    d.term(&[], d.num(-LN_2));
    Ok(())
}

fn skew_double_exponential(d: &mut Density<'_>) -> FnResult<()> {
    location_scale(d)?;
    d.check(
        3,
        "Skewness parameter",
        crate::distributions::formulas::Domain::Unit,
    )?;
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

fn von_mises(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", Finite)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(2, "Scale parameter", Positive)?;
    let [y, mu, kappa] = d.get();
    let Some(values) = kappa.values() else {
        return Err(FnError::unsupported(
            "von_mises_lpdf with a scale that depends on parameters is not supported yet in the log density",
        ));
    };
    let bessel: Vec<f64> = values
        .iter()
        .map(|k| -special::log_bessel_i(0.0, *k))
        .collect();
    d.term(&[0, 1, 2], kappa * (mu - y).cos());
    d.term(&[2], d.tape.vector(&bessel));
    d.term(&[], d.num(-2.0 * HALF_LOG_TWO_PI));
    Ok(())
}
