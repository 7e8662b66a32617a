//! Integrals of peaked densities, for the tails of distributions without a known series or continued fraction.

use super::{log_phi, log1m_exp};
use std::f64::consts::PI;

const NODES: [f64; 5] = [
    0.148_874_338_981_631_22,
    0.433_395_394_129_247_2,
    0.679_409_568_299_024_4,
    0.865_063_366_688_984_5,
    0.973_906_528_517_171_7,
];
const WEIGHTS: [f64; 5] = [
    0.295_524_224_714_752_87,
    0.269_266_719_309_996_35,
    0.219_086_362_515_982_05,
    0.149_451_349_150_580_6,
    0.066_671_344_308_688_14,
];

/// Computes ∫ f from `a` to `b`, using the ten-point Gauss–Legendre rule on `panels` panels of equal width.
pub fn gauss(f: impl Fn(f64) -> f64, a: f64, b: f64, panels: usize) -> f64 {
    let width = (b - a) / panels as f64;
    let mut sum = 0.0;
    for p in 0..panels {
        let middle = a + (p as f64 + 0.5) * width;
        for (node, weight) in NODES.iter().zip(WEIGHTS) {
            let d = 0.5 * width * node;
            sum += weight * (f(middle - d) + f(middle + d));
        }
    }
    0.5 * width * sum
}

/// Calls `visit` with the points and weights of the ten-point Gauss-Legendre rule on panels of growing width. The first
/// panel starts at 0 and has the width `scale`. The last panel ends at `end`. The function stops earlier if `visit`
/// reports, for all points of a panel, that the remainder is negligible.
fn outward(end: f64, scale: f64, mut visit: impl FnMut(f64, f64) -> bool) {
    let (mut from, mut width) = (0.0, scale);
    while from < end {
        let to = if from + width < end {
            from + width
        } else {
            end
        };
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let mut left = false;
        for (node, weight) in NODES.iter().zip(WEIGHTS) {
            left |= visit(middle - half * node, half * weight);
            left |= visit(middle + half * node, half * weight);
        }
        if !left || to <= from {
            return;
        }
        from = to;
        width *= 1.5;
    }
}

/// A contribution is negligible if the logarithm of its ratio to the largest contribution is below this value.
const NOTHING: f64 = -42.0;

/// Returns the logarithm of the skew normal distribution function with shape `a` at `z`.
pub fn log_skew_normal_cdf(z: f64, a: f64) -> f64 {
    if z.is_nan() || a.is_nan() {
        return f64::NAN;
    }
    if z.is_infinite() {
        return if z < 0.0 { z } else { 0.0 };
    }
    if z > 0.0 {
        return log1m_exp(log_skew_normal_cdf(-z, -a).min(0.0));
    }
    let small = log_skew_tail(z, a.abs());
    if a >= 0.0 {
        return small;
    }
    // The distribution functions with shapes `a` and `-a` sum to twice the normal distribution function.
    let normal = log_phi(z);
    normal + libm::log(2.0 - libm::exp(small - normal))
}

/// Returns the logarithm of the lower tail for `z <= 0` and `a >= 0`, where the density decreases towards the tail. The
/// tail is the integral of twice the normal density times the normal distribution function.
fn log_skew_tail(z: f64, a: f64) -> f64 {
    let log_density = |s: f64| {
        let u = z - s;
        -0.5 * u * u + log_phi(a * u)
    };
    let top = log_density(0.0);
    let scale = 1.0 / (-z + a + a * a * -z + 1.0);
    let mut sum = 0.0;
    outward(f64::INFINITY, scale, |s, weight| {
        let fall = log_density(s) - top;
        sum += weight * libm::exp(fall);
        fall > NOTHING
    });
    top + libm::log(sum) + 0.5 * libm::log(2.0 / PI)
}

/// Returns the logarithm of the integral of `exp(k (cos u - 1))` over `u` from `from` to `to`, followed by the mean and
/// variance of `cos u - 1` under that density. The mean and the variance are the first and second derivatives of the
/// logarithm with respect to `k`.
pub fn von_mises_area(from: f64, to: f64, k: f64) -> [f64; 3] {
    let legal = from <= to && k >= 0.0 && from.is_finite() && to.is_finite() && k.is_finite();
    if !legal {
        return [f64::NAN; 3];
    }
    // There is one peak between any two consecutive odd multiples of pi.
    let turn = |u: f64| ((u + PI) / (2.0 * PI)).floor();
    let (first, last) = (turn(from), turn(to));
    if last - first > 1e4 {
        return [f64::NAN; 3];
    }
    let piece = |n: f64| {
        let (low, high) = ((2.0 * n - 1.0) * PI, (2.0 * n + 1.0) * PI);
        let (low, high) = (from.max(low), to.min(high).max(from));
        (low, (2.0 * n * PI).clamp(low, high.max(low)), high)
    };
    let count = (last - first) as usize + 1;
    let pieces: Vec<_> = (0..count).map(|i| piece(first + i as f64)).collect();
    // This form of cos u - 1 avoids cancellation.
    let dip = |u: f64| -2.0 * libm::sin(0.5 * u).powi(2);
    let top = pieces
        .iter()
        .map(|(_, peak, _)| dip(*peak))
        .fold(f64::NEG_INFINITY, f64::max);
    let mut sums = [0.0; 3];
    for (low, peak, high) in pieces {
        let scale = 1.0 / (k * libm::sin(peak).abs() + k.sqrt() + 1.0);
        let mut visit = |u: f64, weight: f64| {
            let below = dip(u) - top;
            let mass = weight * libm::exp(k * below);
            sums[0] += mass;
            sums[1] += mass * below;
            sums[2] += mass * below * below;
            k * below > NOTHING
        };
        outward(peak - low, scale, |s, weight| visit(peak - s, weight));
        outward(high - peak, scale, |s, weight| visit(peak + s, weight));
    }
    let mean = sums[1] / sums[0];
    [
        libm::log(sums[0]) + k * top,
        mean + top,
        sums[2] / sums[0] - mean * mean,
    ]
}
