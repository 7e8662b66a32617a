//! Counts whose zeros have their own probability, and whose other values are those of a Poisson distribution.

use jensen_math::simd::F64x8;
use jensen_math::special::{gamma_p, lgamma, log1m_exp};
use jensen_math::vmath;

use super::Likelihood;
use super::row::{Fitted, Form, LikelihoodRow, ODDS, Response, Size};
use crate::site::SiteBound;
use crate::site::expectation::{Exponential, Potential};

/// The exposure multiplies the rate of the positive counts. It does not change the probability of a zero.
pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "hurdle-poisson",
    law: "0 with `odds` to 1, otherwise Poisson(exposure · e^η) given that it is positive",
    parameters: &["odds"],
    usual: &[1.0],
    priors: &[ODDS],
    location: false,
    response: Response::Count,
    size: Size::Exposure,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |p, eta, exposure| {
        let rate = rate(eta, exposure);
        rate / -(-rate).exp_m1() / (1.0 + p[0])
    },
    log_density: |p, eta, y, exposure| {
        let rate = rate(eta, exposure);
        zero_or(p[0], y)
            + match y {
                0.0 => 0.0,
                y => y * (eta + exposure.ln()) - rate - lgamma(y + 1.0) - log1m_exp(-rate),
            }
    },
    distribution: |p, eta, y, exposure| {
        let rate = rate(eta, exposure);
        1.0 - gamma_p(y + 1.0, rate) / -(-rate).exp_m1() / (1.0 + p[0])
    },
    form: |likelihood, data| {
        let odds = likelihood.values[0];
        Form::smooth(data, |i, y| Truncated {
            y,
            log_exposure: data.size_of(i).ln(),
            c: lgamma(y + 1.0) - zero_or(odds, y),
        })
    },
    by_parameters: |p, at| vec![by_odds(p[0], at)],
};

impl Likelihood {
    /// Returns the likelihood of counts that are 0 with odds `odds`. The other counts have a Poisson distribution with
    /// rate e exp(η), given that the count is positive (Mullahy 1986).
    pub fn hurdle_poisson(odds: f64) -> Self {
        Self::of(&ROW, &[odds])
    }
}

/// The rate is not 0 and not infinite, however far η is.
fn rate(eta: f64, exposure: f64) -> f64 {
    (exposure * eta.exp()).clamp(LEAST, MOST)
}

const LEAST: f64 = 1e-290;
const MOST: f64 = 1e100;

/// The log probability of a zero, or of a positive count.
pub(super) fn zero_or(odds: f64, y: f64) -> f64 {
    match y {
        0.0 => odds.ln() - odds.ln_1p(),
        _ => -odds.ln_1p(),
    }
}

/// The derivative of the log probability of the zeros and the positive counts with respect to the odds.
pub(super) fn by_odds(odds: f64, at: &Fitted<'_>) -> f64 {
    let y = &at.data.response;
    let zeros = y.iter().filter(|y| **y == 0.0).count() as f64;
    zeros / odds - y.len() as f64 / (1.0 + odds)
}

/// With μ = e^(η + log exposure): `μ + log(1 − e^(−μ)) − y log μ + c`, or c alone for y = 0.
#[derive(Clone, Copy, Debug)]
struct Truncated {
    y: f64,
    log_exposure: f64,
    c: f64,
}

impl Potential for Truncated {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let c = V::splat(self.c);
        if self.y == 0.0 {
            return (c, V::zero(), V::zero());
        }
        let y = V::splat(self.y);
        let log = eta + V::splat(self.log_exposure);
        let mean = vmath::exp(log).max(V::splat(LEAST)).min(V::splat(MOST));
        // With b = μ/(e^μ − 1), the derivatives of the logarithm are b and b (1 − b − μ).
        let b = mean / vmath::expm1(mean);
        (
            vmath::log1m_exp(-mean) - y * log + c,
            b - y,
            b * (V::splat(1.0) - b - mean),
        )
    }

    fn exponentials(&self) -> [Exponential; 2] {
        let rate = if self.y > 0.0 {
            self.log_exposure.exp()
        } else {
            0.0
        };
        [Exponential { rate, slope: 1.0 }, Exponential::default()]
    }

    /// The logarithm's argument is 0 where μ = ±2πi. At μ = 0 its singularity is that of log μ = η, which is linear.
    fn width(&self) -> f64 {
        std::f64::consts::FRAC_PI_2
    }
}
