//! Means with one precision for all dimensions.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::rng::Stream;
use jensen_math::special;

use crate::draws::{log_gamma, normal};

/// Returns the shape a and the rate b of the precision's gamma distribution.
pub(crate) fn precision(lambda: &[f64], dim: usize) -> (f64, f64) {
    let means = lambda[..2 * dim].chunks_exact(2);
    let squares: f64 = means.map(|l| l[0] * l[0] / l[1]).sum();
    let shape = lambda[2 * dim + 1] + 1.0 - 0.5 * dim as f64;
    (shape, lambda[2 * dim] - 0.5 * squares)
}

pub(super) fn moments(lambda: &[f64], dim: usize, out: &mut [f64]) -> f64 {
    let (a, b) = precision(lambda, dim);
    let tau = a / b;
    let mut total = special::lgamma(a) - a * b.ln();
    let (means, rest) = out.split_at_mut(2 * dim);
    for (l, out) in lambda.chunks_exact(2).zip(means.chunks_exact_mut(2)) {
        let (m, kappa) = (l[0] / l[1], l[1]);
        out[0] = m * tau;
        out[1] = -0.5 * (1.0 / kappa + m * m * tau);
        total += 0.5 * (LOG_TWO_PI - kappa.ln());
    }
    rest.copy_from_slice(&[-tau, special::digamma(a) - b.ln()]);
    total
}

pub(super) fn draw(lambda: &[f64], dim: usize, stream: &mut Stream, out: &mut [f64]) {
    let (a, b) = precision(lambda, dim);
    let log_tau = log_gamma(a, stream) - b.ln();
    let tau = log_tau.exp();
    let (means, rest) = out.split_at_mut(2 * dim);
    for (l, out) in lambda.chunks_exact(2).zip(means.chunks_exact_mut(2)) {
        let mu = l[0] / l[1] + normal(stream) / (l[1] * tau).sqrt();
        out.copy_from_slice(&[tau * mu, -0.5 * tau * mu * mu]);
    }
    rest.copy_from_slice(&[-tau, log_tau]);
}
