//! Counts with more zeros than Poisson counts.

use jensen_math::simd::F64x8;
use jensen_math::special::{gamma_q, lgamma};
use jensen_math::vmath;

use super::Likelihood;
use super::row::{Fitted, Form, LikelihoodRow, ODDS, Response, Size};
use crate::site::SiteBound;
use crate::site::expectation::{Exponential, Potential};

/// The Poisson part has the mean (1 + odds) · exposure · e^η, so the mean of all counts is exposure · e^η, as for the
/// other count likelihoods.
pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "zero-inflated-poisson",
    law: "0 with `odds` to 1, otherwise Poisson; mean exposure · e^η",
    parameters: &["odds"],
    usual: &[1.0],
    priors: &[ODDS],
    location: false,
    response: Response::Count,
    size: Size::Exposure,
    bounds: &[SiteBound::Exact],
    log_concave: false,
    points: false,
    mean: |_, eta, exposure| exposure * eta.exp(),
    log_density: |p, eta, y, size| {
        let rate = (1.0 + p[0]) * size * eta.exp();
        let left = p[0].ln_1p();
        match y {
            0.0 => (p[0] + (-rate).exp()).ln() - left,
            y => y * (eta + size.ln() + left) - rate - lgamma(y + 1.0) - left,
        }
    },
    distribution: |p, eta, y, size| {
        let rate = (1.0 + p[0]) * size * eta.exp();
        (p[0] + gamma_q(y + 1.0, rate)) / (1.0 + p[0])
    },
    form: |likelihood, data| {
        let odds = likelihood.values[0];
        Form::smooth(data, |i, y| Inflated {
            y,
            odds,
            rate: (1.0 + odds) * data.size_of(i),
            c: lgamma(y + 1.0) + odds.ln_1p(),
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of counts with mean e exp(η). A count is a surplus zero with odds `odds`, and otherwise
    /// it has a Poisson distribution.
    pub fn zero_inflated_poisson(odds: f64) -> Self {
        Self::of(&ROW, &[odds])
    }
}

/// With μ = rate · e^η: `μ − y log μ + c`, or for y = 0 `−log(odds + e^(−μ)) + c`.
#[derive(Clone, Copy, Debug)]
struct Inflated {
    y: f64,
    odds: f64,
    rate: f64,
    c: f64,
}

impl Potential for Inflated {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let log = eta + V::splat(self.rate.ln());
        let c = V::splat(self.c);
        if self.y > 0.0 {
            let y = V::splat(self.y);
            return (c - y * log, -y, V::zero());
        }
        // At which no count has any probability, and products with it are finite.
        let mean = vmath::exp(log).min(V::splat(1e100));
        // With p = e^(−μ)/(odds + e^(−μ)) the derivatives are pμ and pμ(1 − (1−p)μ).
        let odds = V::splat(self.odds);
        let none = vmath::exp(-mean);
        let all = odds + none;
        let p = none / all;
        let slope = p * mean;
        let rest = odds / all * mean;
        (c - vmath::log(all), slope, slope * (V::splat(1.0) - rest))
    }

    fn exponentials(&self) -> [Exponential; 2] {
        let rate = if self.y > 0.0 { self.rate } else { 0.0 };
        [Exponential { rate, slope: 1.0 }, Exponential::default()]
    }

    /// The logarithm's argument is zero where μ = −log odds ± iπ. The Poisson part is an entire function.
    fn width(&self) -> f64 {
        let pi = std::f64::consts::PI;
        match self.y {
            0.0 => pi.atan2(-self.odds.ln()),
            _ => pi,
        }
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (odds, y) = (p[0], &at.data.response);
    let each = |i: usize| {
        let exposure = at.data.size_of(i);
        match y[i] {
            0.0 => at.sites.expectation(i, at.m[i], at.v[i], &|eta: f64| {
                let own = exposure * eta.exp();
                let none = (-(1.0 + odds) * own).exp();
                // The probability of no count falls as its rate rises with the odds.
                let fall = if none > 0.0 { own * none } else { 0.0 };
                (1.0 - fall) / (odds + none)
            }),
            y => {
                let own = exposure * (at.m[i] + 0.5 * at.v[i]).exp();
                y / (1.0 + odds) - own
            }
        }
    };
    vec![(0..y.len()).map(each).sum::<f64>() - y.len() as f64 / (1.0 + odds)]
}
