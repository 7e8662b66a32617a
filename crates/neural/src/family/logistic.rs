//! The logistic distribution with the variance 1. With the scale s = √3/π and y = ε/s, its density is
//! `exp(−y) / (s (1 + exp(−y))²)`.

use std::f64::consts::PI;

use jensen_graph::{ElemOp, Graph, NodeId};

fn scale() -> f64 {
    3.0_f64.sqrt() / PI
}

pub(super) fn entropy() -> f64 {
    2.0 + scale().ln()
}

pub(super) fn log_density(noise: f64) -> f64 {
    // The density is symmetric, and the exponential of −|y| cannot overflow.
    let y = noise.abs() / scale();
    -y - 2.0 * (-y).exp().ln_1p() - scale().ln()
}

/// Builds the part of each log density that depends on the noise. Returns it with the rest.
pub(super) fn terms(g: &mut Graph, noise: NodeId) -> (NodeId, f64) {
    let opposite = g.scale(-1.0 / scale(), noise);
    let soft = g.elem(ElemOp::Log1pExp, &[opposite]);
    let twice = g.scale(2.0, soft);
    (g.sub(opposite, twice), -scale().ln())
}

pub(super) fn quantile(u: f64) -> f64 {
    scale() * (u.ln() - (-u).ln_1p())
}
