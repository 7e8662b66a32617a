//! Proportions from broken sticks (Sethuraman 1994; Blei and Jordan 2006).

use jensen_math::rng::Stream;
use jensen_math::special::{digamma, lgamma, log_sum_exp};

use crate::draws::log_gamma;

/// Calls `each` with the index of every stick and the two parameters of its beta distribution.
fn betas(lambda: &[f64], mut each: impl FnMut(usize, f64, f64)) {
    let mut after: f64 = lambda.iter().sum();
    for (k, own) in lambda.iter().enumerate().take(lambda.len().max(1) - 1) {
        after -= own;
        // Rounding may leave a small negative number.
        let left = after.max(lambda[lambda.len() - 1]);
        each(k, 1.0 + own, left);
    }
}

/// Returns the expected proportions.
pub(crate) fn mean(lambda: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; lambda.len()];
    let mut left = 1.0;
    betas(lambda, |k, a, b| {
        out[k] = left * a / (a + b);
        left *= b / (a + b);
    });
    out[lambda.len() - 1] = left;
    out
}

pub(super) fn moments(lambda: &[f64], out: &mut [f64]) -> f64 {
    let (mut total, mut left) = (0.0, 0.0);
    betas(lambda, |k, a, b| {
        let psi = digamma(a + b);
        out[k] = left + digamma(a) - psi;
        left += digamma(b) - psi;
        total += lgamma(a) + lgamma(b) - lgamma(a + b);
    });
    out[lambda.len() - 1] = left;
    total
}

pub(super) fn draw(lambda: &[f64], stream: &mut Stream, out: &mut [f64]) {
    let mut left = 0.0;
    betas(lambda, |k, a, b| {
        let (one, other) = (log_gamma(a, stream), log_gamma(b, stream));
        let total = log_sum_exp(one, other);
        out[k] = left + one - total;
        left += other - total;
    });
    out[lambda.len() - 1] = left;
}
