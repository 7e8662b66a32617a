//! Counts whose zeros have their own probability, and whose other values have a larger variance than Poisson counts.

use jensen_math::simd::F64x8;
use jensen_math::special::{digamma_step, inc_beta, inv_logit, lgamma, lgamma_step, log1p_exp};
use jensen_math::vmath;

use super::Likelihood;
use super::hurdle_poisson::{by_odds, zero_or};
use super::row::{FRAILTY, Fitted, Form, LikelihoodRow, ODDS, Response, Size};
use super::zero_inflated_negative_binomial::log_count;
use crate::site::SiteBound;
use crate::site::expectation::Potential;

/// The exposure multiplies the mean of the negative binomial counts. It does not change the probability of a zero.
pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "hurdle-negative-binomial",
    law: "0 with `odds` to 1, otherwise negative binomial with mean exposure · e^η given that it is positive",
    parameters: &["odds", "size"],
    usual: &[1.0, 1.0],
    priors: &[ODDS, FRAILTY],
    location: false,
    response: Response::Count,
    size: Size::Exposure,
    bounds: &[SiteBound::Exact],
    log_concave: false,
    points: false,
    mean: |p, eta, exposure| {
        let x = log_ratio(p[1], eta, exposure);
        p[1] * x.exp() / positive(p[1], x) / (1.0 + p[0])
    },
    log_density: |p, eta, y, exposure| {
        let x = log_ratio(p[1], eta, exposure);
        zero_or(p[0], y)
            + match y {
                0.0 => 0.0,
                y => log_count(p[1], x, y) - positive(p[1], x).ln(),
            }
    },
    distribution: |p, eta, y, exposure| {
        let x = log_ratio(p[1], eta, exposure);
        let above = inc_beta(y + 1.0, p[1], inv_logit(x));
        1.0 - above / positive(p[1], x) / (1.0 + p[0])
    },
    form: |likelihood, data| {
        let (odds, size) = (likelihood.values[0], likelihood.values[1]);
        Form::smooth(data, |i, y| Truncated {
            y,
            size,
            shift: (data.size_of(i) / size).ln(),
            c: match y {
                0.0 => 0.0,
                y => lgamma(y + 1.0) - lgamma_step(size, y),
            } - zero_or(odds, y),
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of counts that are 0 with odds `odds`. The other counts have a negative binomial
    /// distribution with mean μ = e exp(η) and variance μ + μ²/size, given that the count is positive (Mullahy 1986).
    pub fn hurdle_negative_binomial(odds: f64, size: f64) -> Self {
        Self::of(&ROW, &[odds, size])
    }
}

/// Below this, the ratio of the mean and the size does not decrease with η, so that it is never 0.
const FARTHEST: f64 = -600.0;

fn log_ratio(size: f64, eta: f64, exposure: f64) -> f64 {
    (eta + (exposure / size).ln()).max(FARTHEST)
}

/// The probability that a negative binomial count is positive.
fn positive(size: f64, x: f64) -> f64 {
    -(-size * log1p_exp(x)).exp_m1()
}

/// With x = η + shift and q = (1 + e^x)^(−r): `(y + r) log(1 + e^x) − y x + log(1 − q) + c`, or c alone for y = 0.
#[derive(Clone, Copy, Debug)]
struct Truncated {
    y: f64,
    size: f64,
    shift: f64,
    c: f64,
}

impl Potential for Truncated {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let c = V::splat(self.c);
        if self.y == 0.0 {
            return (c, V::zero(), V::zero());
        }
        let (y, size, one) = (V::splat(self.y), V::splat(self.size), V::splat(1.0));
        let x = (eta + V::splat(self.shift)).max(V::splat(FARTHEST));
        let (log, s, rest) = (
            vmath::log1p_exp(x),
            vmath::inv_logit(x),
            vmath::inv_logit(-x),
        );
        let total = y + size;
        // With b = q/(1 − q), the derivatives of log(1 − q) are r s b and r s b (1 − s − r s (1 + b)).
        let b = one / vmath::expm1(size * log);
        let slope = size * s * b;
        (
            total * log - y * x + vmath::log1m_exp(-(size * log)) + c,
            total * s - y + slope,
            total * s * rest + slope * (rest - size * s - slope),
        )
    }

    /// The logarithm of 1 + e^x has branch points at ±iπ, and q is 1 where e^x = e^(2πi/r) − 1.
    fn width(&self) -> f64 {
        let half = std::f64::consts::FRAC_PI_2;
        half + half.min(std::f64::consts::PI / self.size)
    }
}

/// With s = σ(x) and L = log(1 + e^x), the derivative of log p with respect to the size is `ψ(y+r) − ψ(r) − L − (y −
/// (y+r) s)/r + (s − L) q/(1 − q)` for a positive count.
fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let size = p[1];
    let each = |i: usize| match at.data.response[i] {
        0.0 => 0.0,
        y => {
            let exposure = at.data.size_of(i);
            let own = at.sites.expectation(i, at.m[i], at.v[i], &|eta: f64| {
                let x = log_ratio(size, eta, exposure);
                let (s, log) = (inv_logit(x), log1p_exp(x));
                (s - log) / (size * log).exp_m1() - log + (y + size) * s / size
            });
            digamma_step(size, y) - y / size + own
        }
    };
    let rows = 0..at.data.response.len();
    vec![by_odds(p[0], at), rows.map(each).sum()]
}
