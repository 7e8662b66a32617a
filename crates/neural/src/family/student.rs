//! Student's t distribution with ν degrees of freedom, scaled to the variance 1. With c² = (ν − 2)/ν, its density is
//! `Γ((ν + 1)/2) / (Γ(ν/2) √(νπ) c) · (1 + ε²/(ν − 2))^(−(ν + 1)/2)`.

use std::f64::consts::PI;

use jensen_graph::{ElemOp, Graph, NodeId};
use jensen_math::special::{digamma_step, lgamma_step};

fn constant(degrees: f64) -> f64 {
    lgamma_step(0.5 * degrees, 0.5) - 0.5 * ((degrees - 2.0) * PI).ln()
}

pub(super) fn entropy(degrees: f64) -> f64 {
    0.5 * (degrees + 1.0) * digamma_step(0.5 * degrees, 0.5) - constant(degrees)
}

pub(super) fn log_density(degrees: f64, noise: f64) -> f64 {
    constant(degrees) - 0.5 * (degrees + 1.0) * (noise * noise / (degrees - 2.0)).ln_1p()
}

/// Builds the part of each log density that depends on the noise. Returns it with the rest.
pub(super) fn terms(g: &mut Graph, degrees: f64, noise: NodeId) -> (NodeId, f64) {
    let square = g.square(noise);
    let ratio = g.scale(1.0 / (degrees - 2.0), square);
    let log = g.elem(ElemOp::Log1p, &[ratio]);
    (g.scale(-0.5 * (degrees + 1.0), log), constant(degrees))
}

/// Computes a draw from two uniform numbers (Bailey 1994, the polar method).
pub(super) fn draw(degrees: f64, u: f64, v: f64) -> f64 {
    // The expression u^(−2/ν) − 1 cancels for large ν.
    let square = (degrees - 2.0) * (-2.0 / degrees * u.ln()).exp_m1();
    square.sqrt() * (2.0 * PI * v).cos()
}
