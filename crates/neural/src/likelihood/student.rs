//! Student's t distribution, for values with heavy tails.
//!
//! With ν degrees of freedom, median m and scale s, the density is `Γ((ν + 1)/2) / (Γ(ν/2) √(νπ) s) · (1 + ((x −
//! m)/s)²/ν)^(−(ν + 1)/2)`. The network outputs m and log s. The degrees of freedom are given, or each column has its own
//! log ν.

use jensen_graph::{ElemOp, Graph, NodeId};
use jensen_math::rng::Stream;
use jensen_math::special::lgamma_step;
use rand_distr::{Distribution, StudentT};

use super::Column;

/// The initial degrees of freedom. The tails are heavy, but the variance is finite.
const START: f64 = 4.0;

/// Returns the part of the log density that depends on nothing that is learnt.
pub(super) fn constant(degrees: Option<u32>) -> f64 {
    let pi = std::f64::consts::PI;
    match degrees.map(f64::from) {
        Some(degrees) => lgamma_step(0.5 * degrees, 0.5) - 0.5 * (degrees * pi).ln(),
        None => -0.5 * pi.ln(),
    }
}

/// Builds `log p(x)` of every value, without the [`constant`]. `outputs` contains the medians, the log scales, and the
/// log degrees of freedom if they are learnt.
pub(super) fn log_density(
    g: &mut Graph,
    degrees: Option<u32>,
    outputs: &[NodeId],
    x: NodeId,
) -> NodeId {
    let (median, log_scale) = (outputs[0], outputs[1]);
    let residual = g.sub(x, median);
    let opposite = g.neg(log_scale);
    let inverse = g.exp(opposite);
    let scaled = g.mul(residual, inverse);
    let square = g.square(scaled);
    let tail = |g: &mut Graph, ratio: NodeId, power: NodeId| {
        let log = g.elem(ElemOp::Log1p, &[ratio]);
        let cost = g.mul(power, log);
        g.add(cost, log_scale)
    };
    match degrees.map(f64::from) {
        Some(degrees) => {
            let ratio = g.scale(1.0 / degrees, square);
            let power = g.constant(0.5 * (degrees + 1.0));
            let cost = tail(g, ratio, power);
            g.neg(cost)
        }
        None => {
            let log_degrees = outputs[2];
            let opposite = g.neg(log_degrees);
            let inverse = g.exp(opposite);
            let ratio = g.mul(square, inverse);
            let degrees = g.exp(log_degrees);
            let half = g.scale(0.5, degrees);
            let step = g.constant(0.5);
            let power = g.add(half, step);
            let cost = tail(g, ratio, power);
            let rise = g.elem(ElemOp::LgammaStep, &[half, step]);
            let root = g.scale(0.5, log_degrees);
            let normaliser = g.sub(rise, root);
            g.sub(normaliser, cost)
        }
    }
}

pub(super) fn start(column: &Column, degrees: Option<u32>) -> Vec<f64> {
    let log_scale = 0.5 * column.variance.max(f64::MIN_POSITIVE).ln();
    match degrees {
        Some(_) => vec![column.mean, log_scale],
        None => vec![column.mean, log_scale, START.ln()],
    }
}

pub(super) fn draw((median, scale, degrees): (f64, f64, f64), stream: &mut Stream) -> f32 {
    // `rand_distr` rejects only degrees of freedom that are not positive, which `exp` rounds to.
    let t = StudentT::new(degrees).map_or(0.0, |of| of.sample(stream));
    (median + scale * t) as f32
}
