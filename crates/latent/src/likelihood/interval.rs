//! Times of which only an interval may be known. The event happened after the time y and by the time `until`. If both are
//! equal, the time was observed. If `until` is infinite, the time is right-censored, and if y is 0, it is left-censored.
//! The likelihood of an interval is P(y < Y ≤ until | η) = S(y) − S(until), where S is the survival function.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::simd::F64x8;
use jensen_math::simd::lanes::ScalarLanes;
use jensen_math::special::{digamma, lgamma, log1m_exp};
use jensen_math::vmath;

use super::row::Fitted;
use crate::linear::kernels::sum;
use crate::site::expectation::{Exponential, Potential};

/// Computes log p at η, and its first two derivatives with respect to η.
pub(super) fn log_density<P: Potential>(potential: &P, eta: f64) -> [f64; 3] {
    let (f, f1, f2) = potential.at(ScalarLanes::splat(eta));
    let mut out = [f, f1, f2].map(|x| -x.to_array()[0]);
    for Exponential { rate, slope } in potential.exponentials() {
        if rate != 0.0 {
            let value = rate * (slope * eta).exp();
            out[0] -= value;
            out[1] -= slope * value;
            out[2] -= slope * slope * value;
        }
    }
    out
}

/// The logarithm of y over the scale of a Weibull distribution with mean 1, which is 1/Γ(1 + 1/shape).
pub(super) fn log_ratio(shape: f64, y: f64) -> f64 {
    y.ln() + lgamma(1.0 + 1.0 / shape)
}

/// −log p of an observed or censored time from a Weibull distribution with mean e^η. The cumulative hazard at y is
/// h(y) = e^(kx) with k the shape and x = [`log_ratio`] − η.
///
/// The probability of an interval is e^(−h(y)) (1 − e^(−d)) with d = h(until) − h(y). The first factor is an exponential
/// function of η, and the second is computed from log d, which is linear in η. No difference loses digits in either tail.
#[derive(Clone, Copy, Debug)]
pub(super) struct WeibullTime {
    shape: f64,
    /// h(y) at η = 0.
    rate: f64,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// The time was observed, and −log p is h(y) + kη + c.
    Observed { c: f64 },
    /// The event happened after y, and −log p is h(y).
    Later,
    /// The event happened by a later time, where d at η = 0 has this logarithm.
    By { log_d: f64 },
}

impl WeibullTime {
    pub(super) fn new(shape: f64, y: f64, until: f64) -> Self {
        let power = |y: f64| shape * log_ratio(shape, y);
        Self {
            shape,
            rate: if y > 0.0 { power(y).exp() } else { 0.0 },
            end: match until {
                until if until == y => End::Observed {
                    c: y.ln() - shape.ln() - power(y),
                },
                f64::INFINITY => End::Later,
                until => End::By {
                    log_d: power(until) + log1m_exp(-shape * log_length(y, until)),
                },
            },
        }
    }

    /// The derivative of log p with respect to the shape. Without `own`, it omits h(y), whose expectation has a closed form.
    fn by_shape(&self, y: f64, until: f64, eta: f64) -> f64 {
        let k = self.shape;
        let moved = digamma(1.0 + 1.0 / k) / k;
        match self.end {
            End::Observed { .. } => 1.0 / k + log_ratio(k, y) - eta - moved,
            End::Later => 0.0,
            End::By { log_d } => {
                let length = log_length(y, until);
                // The derivative of log(1 − e^(−k·length)), which is 0 for an interval from 0.
                let own = match length.is_finite() {
                    true => length / (k * length).exp_m1(),
                    false => 0.0,
                };
                let (_, share, _) = log_d_terms(ScalarLanes::splat(log_d - k * eta));
                share.to_array()[0] * (log_ratio(k, until) - eta - moved + own)
            }
        }
    }
}

/// log(until/y), which is infinite if y is 0.
fn log_length(y: f64, until: f64) -> f64 {
    ((until - y) / y).ln_1p()
}

/// Beyond this value of log d, e^(−d) is below 1e-280.
const LONG: f64 = 6.5;

/// Below this value of log d, d/2 is below half a unit in the last place of 1.
const SHORT: f64 = -37.0;

/// Returns log(1 − e^(−d)), its derivative with respect to log d, and the negative of the second derivative.
///
/// With q = d/(e^d − 1), the derivative is q, and the second derivative is −q (q + d − 1). For small d the last factor is a
/// series, because the difference loses digits.
#[inline(always)]
fn log_d_terms<V: F64x8>(log_d: V) -> (V, V, V) {
    let one = V::splat(1.0);
    let short = log_d.lt(V::splat(SHORT));
    let d = vmath::exp(log_d.max(V::splat(SHORT)).min(V::splat(LONG)));
    let log = V::select(short, log_d, vmath::log1m_exp(-d));
    let q = V::select(short, one, d / vmath::expm1(d));
    let square = d * d;
    // The coefficients are Bernoulli numbers over factorials. Below 0.1 the first omitted term is below 1e-14 times the sum.
    let series = V::splat(0.5) * d
        + square
            * (V::splat(1.0 / 12.0)
                + square * (V::splat(-1.0 / 720.0) + square * V::splat(1.0 / 30240.0)));
    let rest = V::select(d.lt(V::splat(0.1)), series, q + d - one);
    (log, q, q * rest)
}

impl Potential for WeibullTime {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let k = V::splat(self.shape);
        match self.end {
            End::Observed { c } => (k.fma(eta, V::splat(c)), k, V::zero()),
            End::Later => (V::zero(), V::zero(), V::zero()),
            End::By { log_d } => {
                let (log, share, curvature) = log_d_terms(V::splat(log_d) - k * eta);
                (-log, k * share, k * k * curvature)
            }
        }
    }

    fn exponentials(&self) -> [Exponential; 2] {
        let own = Exponential {
            rate: self.rate,
            slope: -self.shape,
        };
        [own, Exponential::default()]
    }

    /// 1 − e^(−d) is zero where d is a multiple of 2πi, so the imaginary part of log d is π/2.
    fn width(&self) -> f64 {
        std::f64::consts::FRAC_PI_2 / self.shape
    }
}

/// The derivative of the expectation of log p with respect to the shape. That of h(y) = e^(kx) is (E x + k v − ψ(1 + 1/k)/k)
/// E e^(kx).
pub(super) fn by_shape(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (k, data) = (p[0], at.data);
    let moved = digamma(1.0 + 1.0 / k) / k;
    vec![sum(data.response.len(), |i| {
        let (y, until, m, v) = (data.response[i], data.size_of(i), at.m[i], at.v[i]);
        let own = WeibullTime::new(k, y, until);
        let hazard = match y > 0.0 {
            true => {
                let x = log_ratio(k, y) - m;
                (x + k * v - moved) * (k * x + 0.5 * k * k * v).exp()
            }
            false => 0.0,
        };
        (at.sites).expectation(i, m, v, &|eta| own.by_shape(y, until, eta)) - hazard
    })]
}

/// −log p of an observed or censored time whose logarithm is N(η − sd²/2, sd²). The ends of the interval are the values
/// of η at which the mean of the logarithm is the logarithm of the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct NormalTime {
    low: f64,
    high: f64,
    /// The length of the interval in standard deviations. The difference of the ends would lose that of a short interval.
    length: f64,
    sd: f64,
    /// −log p − x²/2 of an observed time.
    c: f64,
}

impl NormalTime {
    pub(super) fn new(variance: f64, y: f64, until: f64) -> Self {
        let sd = variance.sqrt();
        let low = y.ln() + 0.5 * variance;
        Self {
            low,
            high: until.ln() + 0.5 * variance,
            length: log_length(y, until) / sd,
            sd,
            c: HALF_LOG_TWO_PI + sd.ln() + y.ln(),
        }
    }
}

/// Nodes and weights of Gauss and Legendre's rule with eight nodes. The nodes and their negatives have the same weight.
const NODES: [(f64, f64); 4] = [
    (0.183_434_642_495_649_78, 0.362_683_783_378_361_66),
    (0.525_532_409_916_329, 0.313_706_645_877_886_9),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_43),
    (0.960_289_856_497_536_2, 0.101_228_536_290_377_06),
];

/// Intervals shorter than this number of standard deviations are integrated by [`NODES`]. Up to 40 standard deviations away
/// from η the relative error is then below 1e-12. Farther away, the sum has the error of an exponential function over an
/// interval of at most this length, and remains log-concave.
const NARROW: f64 = 0.1;

/// log P(a < Z < a + length), its derivative with respect to a shift of the interval, and the negative of the second
/// derivative, where Z is standard normal and `middle` is the middle of the interval.
///
/// The derivatives are those of a sum of normal densities: E(−z) and Var(z) − 1 over the nodes z with weights proportional to
/// their densities.
#[inline(always)]
fn narrow<V: F64x8>(middle: V, length: f64) -> (V, V, V) {
    let half = V::splat(0.5);
    let half_length = V::splat(0.5 * length);
    let reach = middle.abs() * half_length;
    let (mut sum, mut first, mut second) = (V::zero(), V::zero(), V::zero());
    for (node, weight) in NODES {
        for node in [node, -node] {
            let t = V::splat(node) * half_length;
            // The largest exponent of all nodes is subtracted, so that none overflows.
            let density = vmath::exp(-middle * t - half * t * t - reach) * V::splat(weight);
            sum = sum + density;
            first = density.fma(t, first);
            second = (density * t).fma(t, second);
        }
    }
    let mean = first / sum;
    let variance = second / sum - mean * mean;
    let log =
        vmath::log(sum * half_length) + reach - half * middle * middle - V::splat(HALF_LOG_TWO_PI);
    (log, -(middle + mean), V::splat(1.0) - variance)
}

/// Returns the same terms as [`narrow`] for an interval that is not short. `low` and `high` are its ends.
///
/// The interval is reflected to lie below 0, where Φ has full relative accuracy.
#[inline(always)]
fn wide<V: F64x8>(low: V, high: V) -> (V, V, V) {
    let half = V::splat(0.5);
    let above = (low + high).gt(V::zero());
    let (a, b) = (V::select(above, -high, low), V::select(above, -low, high));
    let last = vmath::log_phi(b);
    let log = last + vmath::log1m_exp(vmath::log_phi(a) - last);
    let ratio = |z: V| vmath::exp(-half * z * z - V::splat(HALF_LOG_TWO_PI) - log);
    let (at_a, at_b) = (ratio(a), ratio(b));
    let slope = at_b - at_a;
    let curvature = at_b * (b + slope) - at_a * (a + slope);
    (log, V::select(above, -slope, slope), curvature)
}

impl Potential for NormalTime {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let (half, rate) = (V::splat(0.5), V::splat(1.0 / self.sd));
        let low = (V::splat(self.low) - eta) * rate;
        if self.length == 0.0 {
            return (
                half * low * low + V::splat(self.c),
                -low * rate,
                rate * rate,
            );
        }
        let (log, slope, curvature) = if self.length < NARROW {
            narrow(low + V::splat(0.5 * self.length), self.length)
        } else {
            // An end without a limit is so far away that its probability and density are 0. Their products remain finite.
            let far = V::splat(FAR);
            let low = match self.low == f64::NEG_INFINITY {
                true => -far,
                false => low,
            };
            let high = match self.high == f64::INFINITY {
                true => far,
                false => (V::splat(self.high) - eta) * rate,
            };
            wide(low, high)
        };
        (-log, slope * rate, curvature * rate * rate)
    }

    /// The zeros of Φ(z + length) − Φ(z) nearest to the real line have an imaginary part of 2.58 at the length 3.5, and of
    /// more at all other lengths (by Newton's method with forty digits at lengths from 1 to 8). The limit for long intervals
    /// is that of Φ, 2.82.
    fn width(&self) -> f64 {
        2.58 * self.sd
    }
}

/// The logarithm of the probability beyond this number of standard deviations is −5e201.
const FAR: f64 = 1e101;

/// The derivative of the expectation of log p with respect to the variance s. The density of log y is a function of s that
/// satisfies ∂p/∂s = (∂²p/∂η² − ∂p/∂η)/2, because a normal density solves the heat equation and its mean falls by s/2. Sums
/// and integrals over y satisfy it also.
pub(super) fn by_variance(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let data = at.data;
    vec![sum(data.response.len(), |i| {
        let own = NormalTime::new(p[0], data.response[i], data.size_of(i));
        at.sites.expectation(i, at.m[i], at.v[i], &|eta| {
            let [_, slope, curvature] = log_density(&own, eta);
            0.5 * (curvature + slope * slope - slope)
        })
    })]
}
