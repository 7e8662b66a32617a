//! Likelihoods of counts: Poisson, negative binomial, and negative binomial with excess zeros.
//!
//! A count x has the mean μ, and the network outputs log μ. The negative binomial distribution has the variance μ +
//! μ²/r, where each column has its own size r. Its mass function is `Γ(x + r) / (Γ(r) x!) · (r / (r + μ))^r · (μ / (r +
//! μ))^x`.

use jensen_graph::{ElemOp, Graph, NodeId};
use jensen_math::rng::Stream;
use rand_distr::{Distribution, Gamma, Poisson};

use super::{Column, OutOfDomain};

/// Single precision represents every integer up to this one exactly.
const LARGEST: f32 = 16_777_216.0;

/// Smallest and largest initial size of a column. With sizes between these limits, the term that the size adds to the
/// variance is between a hundredth of the squared mean and a hundred times the squared mean. The moments of rare counts
/// are too uncertain to justify other sizes.
const SIZES: (f64, f64) = (0.01, 100.0);

fn log_factorial(g: &mut Graph, x: NodeId) -> NodeId {
    let one = g.constant(1.0);
    let next = g.add(x, one);
    g.elem(ElemOp::Lgamma, &[next])
}

pub(super) fn poisson(g: &mut Graph, log_mean: NodeId, x: NodeId) -> NodeId {
    let linear = g.mul(x, log_mean);
    let mean = g.exp(log_mean);
    let factorial = log_factorial(g, x);
    let rest = g.add(mean, factorial);
    g.sub(linear, rest)
}

/// Builds `log p(x)` of every count under its negative binomial distribution. With a = log μ − log r this is `log Γ(x +
/// r) / Γ(r) − log x! − r log(1 + eᵃ) − x log(1 + e⁻ᵃ)`. This form does not overflow for large sizes.
pub(super) fn negative_binomial(
    g: &mut Graph,
    log_mean: NodeId,
    log_size: NodeId,
    x: NodeId,
) -> NodeId {
    let size = g.exp(log_size);
    let rise = g.elem(ElemOp::LgammaStep, &[size, x]);
    let factorial = log_factorial(g, x);
    let ways = g.sub(rise, factorial);
    let ratio = g.sub(log_mean, log_size);
    let failure = g.elem(ElemOp::Log1pExp, &[ratio]);
    let failures = g.mul(size, failure);
    let opposite = g.neg(ratio);
    let success = g.elem(ElemOp::Log1pExp, &[opposite]);
    let successes = g.mul(x, success);
    let cost = g.add(failures, successes);
    g.sub(ways, cost)
}

pub(super) fn zero_inflated(
    g: &mut Graph,
    [log_mean, log_size, excess]: [NodeId; 3],
    x: NodeId,
) -> NodeId {
    let count = negative_binomial(g, log_mean, log_size, x);
    // For zeros, the gain is log((eᵉ + p(x)) / p(x)).
    let gain = g.sub(excess, count);
    let gain = g.elem(ElemOp::Log1pExp, &[gain]);
    let zero = g.constant(0.0);
    let is_zero = g.elem(ElemOp::Eq, &[x, zero]);
    let gain = g.mul(is_zero, gain);
    let total = g.elem(ElemOp::Log1pExp, &[excess]);
    let raised = g.add(count, gain);
    g.sub(raised, total)
}

/// Computes the logarithm of a column's mean. Half a count is added to the sum so that the mean is positive.
pub(super) fn log_mean(column: &Column) -> f64 {
    (column.mean + 0.5 / column.count).ln()
}

pub(super) fn log_size(column: &Column) -> f64 {
    let excess = (column.variance - column.mean).max(f64::MIN_POSITIVE);
    let size = column.mean.powi(2) / excess;
    size.clamp(SIZES.0, SIZES.1).ln()
}

/// Returns the initial log odds of an excess zero. They assume that half of the column's zeros are excess zeros.
pub(super) fn log_odds_of_excess(column: &Column) -> f64 {
    let share = 0.5 * (column.zeros * column.count + 0.5) / (column.count + 1.0);
    (share / (1.0 - share)).ln()
}

pub(super) fn draw_poisson(mean: f64, stream: &mut Stream) -> f32 {
    // `rand_distr` has no Poisson distribution for means that are 0 or not finite.
    Poisson::new(mean).map_or(0.0, |of| of.sample(stream)) as f32
}

/// Draws a negative binomial number. It is a Poisson number whose mean is drawn from a gamma distribution.
pub(super) fn draw_negative_binomial(mean: f64, size: f64, stream: &mut Stream) -> f32 {
    let mean = Gamma::new(size, mean / size).map_or(mean, |of| of.sample(stream));
    draw_poisson(mean, stream)
}

pub(super) fn check(record: &[f32]) -> Result<(), OutOfDomain> {
    let is_count = |x: f32| (0.0..=LARGEST).contains(&x) && x.fract() == 0.0;
    match record.iter().position(|&x| !is_count(x)) {
        Some(position) => Err(OutOfDomain {
            position,
            value: record[position],
            expected: "a whole number from 0 to 16777216",
        }),
        None => Ok(()),
    }
}
