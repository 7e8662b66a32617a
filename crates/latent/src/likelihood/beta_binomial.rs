//! The number of successes among trials whose probability of success varies between observations.

use jensen_math::simd::F64x8;
use jensen_math::special::{digamma_step, inc_beta, inv_logit, lgamma_step};
use jensen_math::vmath;

use super::Likelihood;
use super::binomial::log_choose;
use super::row::{FRAILTY, Fitted, Form, LikelihoodRow, Response, Size};
use crate::site::SiteBound;
use crate::site::expectation::Potential;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "beta-binomial",
    law: "successes in `--trials` trials, each with a probability from the beta distribution of `beta`",
    parameters: &["precision"],
    usual: &[1.0],
    priors: &[FRAILTY],
    location: false,
    response: Response::Trials,
    size: Size::Trials,
    bounds: &[SiteBound::Exact],
    log_concave: false,
    points: false,
    mean: |_, eta, trials| trials * inv_logit(eta),
    log_density: |p, eta, y, n| {
        let (a, b) = shapes(p[0], eta);
        log_choose(n, y) + lgamma_step(a, y) + lgamma_step(b, n - y) - lgamma_step(p[0], n)
    },
    distribution: |p, eta, y, n| {
        let (a, b) = shapes(p[0], eta);
        match y >= n {
            true => 1.0,
            false => distribution(a, b, y, n),
        }
    },
    form: |likelihood, data| {
        let precision = likelihood.values[0];
        Form::smooth(data, |i, y| {
            let n = data.size_of(i);
            Successes {
                precision,
                y,
                rest: n - y,
                c: lgamma_step(precision, n) - log_choose(n, y),
            }
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of a number of successes among trials. The probability of success has a beta distribution
    /// with mean inv_logit(η), whose two parameters add up to `precision`. The correlation of two trials of the same
    /// observation is 1/(1 + precision).
    pub fn beta_binomial(precision: f64) -> Self {
        Self::of(&ROW, &[precision])
    }
}

/// Neither shape is 0, however far η is, and the square of its inverse is finite.
const LEAST: f64 = 1e-150;

fn shapes(precision: f64, eta: f64) -> (f64, f64) {
    let shape = |eta: f64| (precision * inv_logit(eta)).max(LEAST);
    (shape(eta), shape(-eta))
}

/// A shorter tail than this is summed term by term. A longer one has shapes above 256, and then the integrand below is
/// close to a normal density.
const TERMS: f64 = 256.0;

/// Nodes of the integral on either side of its centre, and their distance in standard deviations. For a normal density,
/// the sum has an error of 2 exp(−2π²/0.6²) = 3e-24, and a mass of 8e-14 lies beyond the last node.
const NODES: i32 = 12;
const SPACING: f64 = 0.6;

/// Computes P(Y ≤ y) for y < n. The probability is the expectation of the distribution function of the beta
/// distribution with shapes a and b at U, where U has the beta distribution with shapes y + 1 and n − y. It is also the
/// expectation of the binomial distribution function at a draw from the first beta distribution.
fn distribution(a: f64, b: f64, y: f64, n: f64) -> f64 {
    if y < TERMS {
        return tail(a, b, y, n);
    }
    if n - y <= TERMS {
        return 1.0 - tail(b, a, n - y - 1.0, n);
    }
    let (upper, lower) = (y + 1.0, n - y);
    // The logit of a beta variable has about this standard deviation. The integral is over the narrower distribution.
    let sd = |a: f64, b: f64| (1.0 / a + 1.0 / b).sqrt();
    match sd(a, b) < sd(upper, lower) {
        true => average(a, b, |p, _| 1.0 - inc_beta(upper, lower, p)),
        false => average(upper, lower, |u, _| inc_beta(a, b, u)),
    }
}

/// Computes the expectation of a function of a beta variable by the trapezoidal rule in the logit.
fn average(a: f64, b: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
    let (centre, step) = ((a / b).ln(), SPACING * (1.0 / a + 1.0 / b).sqrt());
    let (mut sum, mut total) = (0.0, 0.0);
    for k in -NODES..=NODES {
        let x = centre + step * f64::from(k);
        let (p, q) = (inv_logit(x), inv_logit(-x));
        let log = a * (p * (a + b) / a).ln() + b * (q * (a + b) / b).ln();
        let weight = log.exp();
        sum += weight * f(p, q);
        total += weight;
    }
    sum / total
}

/// Computes the sum of the probabilities of 0, …, y.
fn tail(a: f64, b: f64, y: f64, n: f64) -> f64 {
    let mut term = (lgamma_step(b, n) - lgamma_step(a + b, n)).exp();
    let (mut sum, mut k) = (term, 0.0);
    while k < y {
        term *= (n - k) / (k + 1.0) * (a + k) / (b + n - k - 1.0);
        sum += term;
        k += 1.0;
    }
    sum
}

/// `−log Γ(a+y)/Γ(a) − log Γ(b+n−y)/Γ(b) + c` with a = φμ and b = φ(1−μ).
#[derive(Clone, Copy, Debug)]
struct Successes {
    precision: f64,
    y: f64,
    rest: f64,
    c: f64,
}

impl Potential for Successes {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let (phi, least) = (V::splat(self.precision), V::splat(LEAST));
        let (mean, rest) = (vmath::inv_logit(eta), vmath::inv_logit(-eta));
        let (a, b) = ((phi * mean).max(least), (phi * rest).max(least));
        let (y, left) = (V::splat(self.y), V::splat(self.rest));
        let value = V::splat(self.c) - vmath::lgamma_step(a, y) - vmath::lgamma_step(b, left);
        // dμ/dη = μ(1−μ), and its derivative has the factor 1 − 2μ. The products with the step are finite where a or b
        // is tiny.
        let step = phi * mean * rest;
        let by_mean = (vmath::digamma_step(b, left) * step) - (vmath::digamma_step(a, y) * step);
        let curvature = -(vmath::trigamma_step(a, y) * step * step)
            - (vmath::trigamma_step(b, left) * step * step);
        (value, by_mean, curvature + by_mean * (rest - mean))
    }

    /// The mean has poles at ±iπ.
    fn width(&self) -> f64 {
        std::f64::consts::PI
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (phi, y) = (p[0], &at.data.response);
    let each = |i: usize| {
        let n = at.data.size_of(i);
        let own = at.sites.expectation(i, at.m[i], at.v[i], &|eta: f64| {
            let (a, b) = shapes(phi, eta);
            inv_logit(eta) * digamma_step(a, y[i]) + inv_logit(-eta) * digamma_step(b, n - y[i])
        });
        own - digamma_step(phi, n)
    };
    vec![(0..y.len()).map(each).sum()]
}
