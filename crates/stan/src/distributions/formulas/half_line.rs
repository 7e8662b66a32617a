//! Densities of positive numbers.

use std::f64::consts::LN_2;

use crate::distributions::formulas::Domain::{
    Finite, NonNegative, NotNan, Positive, PositiveByFormula,
};
use crate::distributions::formulas::{Density, HALF_LOG_TWO_PI, Univariate};
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::value::error::FnResult;

/// Name and formula.
pub const TABLE: &[(&str, Univariate)] = &[
    ("exponential_lpdf", exponential),
    ("gamma_lpdf", gamma),
    ("inv_gamma_lpdf", inv_gamma),
    ("chi_square_lpdf", chi_square),
    ("inv_chi_square_lpdf", inv_chi_square),
    ("scaled_inv_chi_square_lpdf", scaled_inv_chi_square),
    ("lognormal_lpdf", lognormal),
    ("weibull_lpdf", weibull),
    ("frechet_lpdf", frechet),
    ("rayleigh_lpdf", rayleigh),
    ("pareto_lpdf", pareto),
    ("pareto_type_2_lpdf", pareto_type_2),
    ("loglogistic_lpdf", loglogistic),
];

/// Outcomes that are not positive have log density −∞; a stand-in keeps the formula finite for them.
fn support<'g>(d: &mut Density<'g>, y: E<'g>) {
    if !known::range(y).positive() {
        let bad = y.le(d.num(0.0));
        d.outside(bad);
    }
}

fn exponential(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Inverse scale parameter", PositiveByFormula)?;
    let [y, beta] = d.get();
    d.term(&[0, 1], -(beta * y));
    d.term(&[1], beta.log());
    Ok(())
}

fn gamma(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", PositiveByFormula)?;
    d.check(1, "Shape parameter", Positive)?;
    d.check(2, "Inverse scale parameter", PositiveByFormula)?;
    let [y, alpha, beta] = d.get();
    d.term(&[1], -alpha.lgamma());
    d.term(&[1, 2], alpha * beta.log());
    d.term(&[0, 1], (alpha - 1.0) * y.log());
    d.term(&[0, 2], -(beta * y));
    Ok(())
}

fn inv_gamma(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Shape parameter", Positive)?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, alpha, beta] = d.get();
    support(d, y);
    d.term(&[1], -alpha.lgamma());
    d.term(&[1, 2], alpha * beta.log());
    d.term(&[0, 1], -((alpha + 1.0) * y.log()));
    d.term(&[0, 2], -(beta * y.recip()));
    Ok(())
}

fn chi_square(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Degrees of freedom parameter", Positive)?;
    let [y, nu] = d.get();
    let half = 0.5 * nu;
    d.term(&[1], -(half * LN_2 + half.lgamma()));
    d.term(&[0, 1], (half - 1.0) * y.log());
    d.term(&[0], -0.5 * y);
    Ok(())
}

fn inv_chi_square(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Degrees of freedom parameter", Positive)?;
    let [y, nu] = d.get();
    support(d, y);
    let half = 0.5 * nu;
    d.term(&[1], -(half * LN_2 + half.lgamma()));
    d.term(&[0, 1], -((half + 1.0) * y.log()));
    d.term(&[0], -0.5 * y.recip());
    Ok(())
}

fn scaled_inv_chi_square(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Degrees of freedom parameter", Positive)?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, nu, s] = d.get();
    support(d, y);
    let half = 0.5 * nu;
    d.term(&[1], half * half.log() - half.lgamma());
    d.term(&[1, 2], nu * s.log());
    d.term(&[0, 1], -((half + 1.0) * y.log()));
    d.term(&[0, 1, 2], -(half * s.square() * y.recip()));
    Ok(())
}

fn lognormal(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, mu, sigma] = d.get();
    let log_y = y.log();
    d.term(
        &[0, 1, 2],
        -0.5 * ((log_y - mu).square() * sigma.recip().square()),
    );
    d.term(&[0], -log_y);
    d.term(&[2], -sigma.log());
    d.term(&[0, 1, 2], d.num(-HALF_LOG_TWO_PI));
    Ok(())
}

fn weibull(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Shape parameter", PositiveByFormula)?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, alpha, sigma] = d.get();
    let (log_y, log_sigma) = (y.log(), sigma.log());
    d.term(&[1], alpha.log());
    d.term(&[0, 1], (alpha - 1.0) * log_y);
    d.term(&[1, 2], -(alpha * log_sigma));
    d.term(&[0, 1, 2], -(alpha * (log_y - log_sigma)).exp());
    Ok(())
}

fn frechet(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", PositiveByFormula)?;
    d.check(1, "Shape parameter", PositiveByFormula)?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, alpha, sigma] = d.get();
    let (log_y, log_sigma) = (y.log(), sigma.log());
    d.term(&[1], alpha.log());
    d.term(&[0, 1], -((alpha + 1.0) * log_y));
    d.term(&[1, 2], alpha * log_sigma);
    d.term(&[0, 1, 2], -(alpha * (log_sigma - log_y)).exp());
    Ok(())
}

fn rayleigh(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", PositiveByFormula)?;
    d.check(1, "Scale parameter", PositiveByFormula)?;
    let [y, sigma] = d.get();
    d.term(&[0, 1], -0.5 * (y.square() * sigma.recip().square()));
    d.term(&[0], y.log());
    d.term(&[1], -2.0 * sigma.log());
    Ok(())
}

fn pareto(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Scale parameter", PositiveByFormula)?;
    d.check(2, "Shape parameter", PositiveByFormula)?;
    let [y, y_min, alpha] = d.get();
    let below = y.lt(y_min);
    d.outside(below);
    d.term(&[2], alpha.log());
    d.term(&[1, 2], alpha * y_min.log());
    d.term(&[0, 2], -((alpha + 1.0) * y.log()));
    Ok(())
}

fn pareto_type_2(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    d.check(3, "Shape parameter", PositiveByFormula)?;
    let [y, mu, lambda, alpha] = d.get();
    crate::distributions::formulas::check(
        d.name,
        y - mu,
        "Random variable minus location",
        NonNegative,
    )?;
    d.term(&[3], alpha.log());
    d.term(&[2], -lambda.log());
    d.term(
        &[0, 1, 2, 3],
        -((alpha + 1.0) * ((y - mu) * lambda.recip()).log1p()),
    );
    Ok(())
}

fn loglogistic(d: &mut Density<'_>) -> FnResult<()> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Scale parameter", PositiveByFormula)?;
    d.check(2, "Shape parameter", PositiveByFormula)?;
    let [y, alpha, beta] = d.get();
    let (log_y, log_alpha) = (y.log(), alpha.log());
    d.term(&[1, 2], beta.log() - beta * log_alpha);
    d.term(&[0, 2], (beta - 1.0) * log_y);
    d.term(&[0, 1, 2], -2.0 * (beta * (log_y - log_alpha)).log1p_exp());
    Ok(())
}
