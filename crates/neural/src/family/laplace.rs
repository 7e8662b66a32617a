//! The Laplace distribution with the variance 1. Its density is `exp(−√2 |ε|) / √2`.

use std::f64::consts::{LN_2, SQRT_2};

use jensen_graph::{ElemOp, Graph, NodeId};

pub(super) fn entropy() -> f64 {
    1.0 + 0.5 * LN_2
}

pub(super) fn log_density(noise: f64) -> f64 {
    -SQRT_2 * noise.abs() - 0.5 * LN_2
}

/// Builds the part of each log density that depends on the noise. Returns it with the rest.
pub(super) fn terms(g: &mut Graph, noise: NodeId) -> (NodeId, f64) {
    let size = g.elem(ElemOp::Abs, &[noise]);
    (g.scale(-SQRT_2, size), -0.5 * LN_2)
}

pub(super) fn quantile(u: f64) -> f64 {
    let tail = u.min(1.0 - u);
    ((2.0 * tail).ln() / SQRT_2).copysign(u - 0.5)
}
