//! Alternatives with a distribution of their own each.

use jensen_math::rng::Stream;
use jensen_math::special::log_sum_exp_slice;

use super::Inner;

/// The smallest probability of an alternative in expectations. It keeps the expectations given the alternative, which
/// are quotients, from being 0/0.
const LEAST: f64 = 1e-200;

pub(super) fn moments(lambda: &[f64], inner: Inner, out: &mut [f64]) -> f64 {
    let family = inner.family();
    let width = 1 + family.len();
    let parts = lambda.chunks_exact(width);
    let logs: Vec<f64> = parts
        .zip(out.chunks_exact_mut(width))
        .map(|(l, out)| l[0] + family.moments(&l[1..], &mut out[1..]))
        .collect();
    let total = log_sum_exp_slice(&logs);
    for (out, log) in out.chunks_exact_mut(width).zip(logs) {
        let probability = (log - total).exp().max(LEAST);
        out[0] = 1.0;
        out.iter_mut().for_each(|x| *x *= probability);
    }
    total
}

pub(super) fn draw(lambda: &[f64], inner: Inner, stream: &mut Stream, out: &mut [f64]) {
    let family = inner.family();
    let width = 1 + family.len();
    moments(lambda, inner, out);
    let mut left = stream.uniform();
    let mut probabilities = out.chunks_exact(width).map(|part| part[0]);
    let chosen = probabilities.position(|probability| {
        left -= probability;
        left < 0.0
    });
    let chosen = chosen.unwrap_or(lambda.len() / width - 1);
    out.fill(0.0);
    let here = chosen * width..(chosen + 1) * width;
    let part = &mut out[here.clone()];
    part[0] = 1.0;
    family.draw(&lambda[here][1..], stream, &mut part[1..]);
}
