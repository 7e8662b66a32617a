//! Distribution functions with elementary or normal tails: `_lcdf`, `_lccdf` and `_cdf`.
//!
//! Each is a pair of formulas, the logarithms of the lower and upper tail of one outcome; outside the support they are
//! −∞ and 0.

use crate::distributions::formulas::Domain::{
    Finite, NonNegative, NotNan, PositiveByFormula, Unit,
};
use crate::distributions::formulas::{Density, Univariate};
use crate::symbolic::known;
use crate::symbolic::tape::E;
use crate::value::error::FnResult;

macro_rules! tails {
    ($($lcdf:literal $lccdf:literal $cdf:literal => $f:ident;)*) => {
        /// Name and formula.
        pub const TABLE: &[(&str, Univariate)] = &[$(
            ($lcdf, |d| {
                let (lower, _) = $f(d)?;
                add(d, lower);
                Ok(())
            }),
            ($lccdf, |d| {
                let (_, upper) = $f(d)?;
                add(d, upper);
                Ok(())
            }),
            ($cdf, |d| {
                let (lower, _) = $f(d)?;
                let total = d.total(lower).exp();
                d.n = 1;
                add(d, total);
                Ok(())
            }),
        )*];
    };
}

tails! {
    "normal_lcdf" "normal_lccdf" "normal_cdf" => normal;
    "std_normal_lcdf" "std_normal_lccdf" "std_normal_cdf" => std_normal;
    "cauchy_lcdf" "cauchy_lccdf" "cauchy_cdf" => cauchy;
    "logistic_lcdf" "logistic_lccdf" "logistic_cdf" => logistic;
    "double_exponential_lcdf" "double_exponential_lccdf" "double_exponential_cdf" => double_exponential;
    "gumbel_lcdf" "gumbel_lccdf" "gumbel_cdf" => gumbel;
    "exponential_lcdf" "exponential_lccdf" "exponential_cdf" => exponential;
    "weibull_lcdf" "weibull_lccdf" "weibull_cdf" => weibull;
    "frechet_lcdf" "frechet_lccdf" "frechet_cdf" => frechet;
    "lognormal_lcdf" "lognormal_lccdf" "lognormal_cdf" => lognormal;
    "pareto_lcdf" "pareto_lccdf" "pareto_cdf" => pareto;
    "pareto_type_2_lcdf" "pareto_type_2_lccdf" "pareto_type_2_cdf" => pareto_type_2;
    "rayleigh_lcdf" "rayleigh_lccdf" "rayleigh_cdf" => rayleigh;
    "exp_mod_normal_lcdf" "exp_mod_normal_lccdf" "exp_mod_normal_cdf" => exp_mod_normal;
    "uniform_lcdf" "uniform_lccdf" "uniform_cdf" => uniform;
    "bernoulli_lcdf" "bernoulli_lccdf" "bernoulli_cdf" => bernoulli;
}

/// A distribution function keeps everything.
fn add<'g>(d: &mut Density<'g>, x: E<'g>) {
    let total = d.total(x);
    d.terms.push(total);
}

type Tails<'g> = FnResult<(E<'g>, E<'g>)>;

fn location_scale<'g>(d: &Density<'g>) -> FnResult<E<'g>> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(
        2,
        "Scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, mu, sigma] = d.get();
    Ok((y - mu) * sigma.recip())
}

fn normal<'g>(d: &mut Density<'g>) -> Tails<'g> {
    let z = location_scale(d)?;
    Ok((z.log_normal_cdf(), (-z).log_normal_cdf()))
}

fn std_normal<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NotNan)?;
    let [z] = d.get();
    Ok((z.log_normal_cdf(), (-z).log_normal_cdf()))
}

fn cauchy<'g>(d: &mut Density<'g>) -> Tails<'g> {
    let z = location_scale(d)?;
    // ½ + atan(z)/π = atan2(1, −z)/π without cancellation in the lower tail
    let tail = |z: E<'g>| {
        let angle = z.num(1.0).op2(jensen_graph::ElemOp::Atan2, -z);
        (angle * std::f64::consts::FRAC_1_PI).log()
    };
    Ok((tail(z), tail(-z)))
}

fn logistic<'g>(d: &mut Density<'g>) -> Tails<'g> {
    let z = location_scale(d)?;
    Ok((-(-z).log1p_exp(), -z.log1p_exp()))
}

fn double_exponential<'g>(d: &mut Density<'g>) -> Tails<'g> {
    let z = location_scale(d)?;
    let far = -z.abs() - std::f64::consts::LN_2;
    let near = (-far.exp()).log1p();
    let below = z.lt(z.num(0.0));
    Ok((below.select(far, near), below.select(near, far)))
}

fn gumbel<'g>(d: &mut Density<'g>) -> Tails<'g> {
    let z = location_scale(d)?;
    let lower = -(-z).exp();
    Ok((lower, lower.log1m_exp()))
}

/// Both tails, with those of outcomes at or below `low` replaced by −∞ and 0.
fn above<'g>(y: E<'g>, low: E<'g>, tails: (E<'g>, E<'g>)) -> (E<'g>, E<'g>) {
    let below = y.le(low);
    if low.scalar() == Some(0.0) && known::range(y).positive() {
        return tails;
    }
    if below
        .values()
        .is_some_and(|below| below.iter().all(|b| *b == 0.0))
    {
        return tails;
    }
    (
        below.select(y.num(f64::NEG_INFINITY), tails.0),
        below.select(y.num(0.0), tails.1),
    )
}

fn exponential<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(
        1,
        "Inverse scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, beta] = d.get();
    let upper = -(beta * y);
    Ok(above(y, y.num(0.0), (upper.log1m_exp(), upper)))
}

fn weibull<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(
        1,
        "Shape parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, alpha, sigma] = d.get();
    let upper = -(alpha * (y.log() - sigma.log())).exp();
    Ok(above(y, y.num(0.0), (upper.log1m_exp(), upper)))
}

fn frechet<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", PositiveByFormula)?;
    d.check(
        1,
        "Shape parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    d.check(2, "Scale parameter", PositiveByFormula)?;
    let [y, alpha, sigma] = d.get();
    let lower = -(alpha * (sigma.log() - y.log())).exp();
    Ok((lower, lower.log1m_exp()))
}

fn lognormal<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(
        2,
        "Scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, mu, sigma] = d.get();
    let z = (y.log() - mu) * sigma.recip();
    Ok(above(
        y,
        y.num(0.0),
        (z.log_normal_cdf(), (-z).log_normal_cdf()),
    ))
}

fn pareto<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(1, "Scale parameter", PositiveByFormula)?;
    d.check(
        2,
        "Shape parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, y_min, alpha] = d.get();
    let upper = alpha * (y_min.log() - y.log());
    Ok(above(y, y_min, (upper.log1m_exp(), upper)))
}

fn pareto_type_2<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(
        2,
        "Scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    d.check(
        3,
        "Shape parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, mu, lambda, alpha] = d.get();
    let upper = -(alpha * ((y - mu) * lambda.recip()).log1p());
    Ok(above(y, mu, (upper.log1m_exp(), upper)))
}

fn rayleigh<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NonNegative)?;
    d.check(
        1,
        "Scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, sigma] = d.get();
    let upper = -0.5 * (y * sigma.recip()).square();
    Ok(above(y, y.num(0.0), (upper.log1m_exp(), upper)))
}

fn exp_mod_normal<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Location parameter", Finite)?;
    d.check(
        2,
        "Scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    d.check(
        3,
        "Inv_scale parameter",
        crate::distributions::formulas::Domain::Positive,
    )?;
    let [y, mu, sigma, lambda] = d.get();
    let z = (y - mu) * sigma.recip();
    let u = lambda * sigma;
    // Mass that the exponential part carries beyond the normal's.
    let beyond = 0.5 * u.square() - u * z + (z - u).log_normal_cdf();
    let lower = z.log_normal_cdf();
    Ok((
        lower + (beyond - lower).log1m_exp(),
        (-z).log_normal_cdf().log_add_exp(beyond),
    ))
}

fn uniform<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(0, "Random variable", NotNan)?;
    d.check(1, "Lower bound parameter", Finite)?;
    d.check(2, "Upper bound parameter", Finite)?;
    let [y, a, b] = d.get();
    crate::distributions::formulas::check(
        d.name,
        b - a,
        "Upper bound minus lower bound",
        crate::distributions::formulas::Domain::Positive,
    )?;
    // Outside of the interval one tail is 0 and the other 1.
    let clamp = |p: E<'g>| p.fmax(p.num(0.0)).fmin(p.num(1.0));
    let width = (b - a).recip();
    Ok((clamp((y - a) * width).log(), clamp((b - y) * width).log()))
}

fn bernoulli<'g>(d: &mut Density<'g>) -> Tails<'g> {
    d.check(1, "Probability parameter", Unit)?;
    let [y, theta] = d.get();
    let (zero, never) = (y.num(0.0), y.num(f64::NEG_INFINITY));
    let (negative, most) = (y.lt(zero), y.num(1.0).le(y));
    let lower = most.select(zero, negative.select(never, theta.log1m()));
    let upper = most.select(never, negative.select(zero, theta.log()));
    Ok((lower, upper))
}
