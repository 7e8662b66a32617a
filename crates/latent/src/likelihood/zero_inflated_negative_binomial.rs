//! Counts with more zeros and a larger variance than Poisson counts.

use jensen_math::simd::F64x8;
use jensen_math::special::{digamma_step, inc_beta, inv_logit, lgamma, lgamma_step, log1p_exp};
use jensen_math::vmath;

use super::Likelihood;
use super::row::{FRAILTY, Fitted, Form, LikelihoodRow, ODDS, Response, Size};
use crate::site::SiteBound;
use crate::site::expectation::Potential;

/// The negative binomial part has the mean (1 + odds) · exposure · e^η, so the mean of all counts is exposure · e^η, as
/// for the other count likelihoods.
pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "zero-inflated-negative-binomial",
    law: "0 with `odds` to 1, otherwise negative binomial; mean exposure · e^η",
    parameters: &["odds", "size"],
    usual: &[1.0, 1.0],
    priors: &[ODDS, FRAILTY],
    location: false,
    response: Response::Count,
    size: Size::Exposure,
    bounds: &[SiteBound::Exact],
    log_concave: false,
    points: false,
    mean: |_, eta, exposure| exposure * eta.exp(),
    log_density: |p, eta, y, exposure| {
        let x = eta + log_rate(p, exposure);
        match y {
            0.0 => (p[0] + (-p[1] * log1p_exp(x)).exp()).ln() - p[0].ln_1p(),
            y => log_count(p[1], x, y) - p[0].ln_1p(),
        }
    },
    distribution: |p, eta, y, exposure| {
        let x = eta + log_rate(p, exposure);
        (p[0] + inc_beta(p[1], y + 1.0, inv_logit(-x))) / (1.0 + p[0])
    },
    form: |likelihood, data| {
        let p = likelihood.values;
        Form::smooth(data, |i, y| Inflated {
            y,
            odds: p[0],
            size: p[1],
            shift: log_rate(&p, data.size_of(i)),
            c: lgamma(y + 1.0) - lgamma_step(p[1], y) + p[0].ln_1p(),
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of counts with mean e exp(η). A count is a surplus zero with odds `odds`. Otherwise it has
    /// a negative binomial distribution with variance μ + μ²/size, where μ is its mean.
    pub fn zero_inflated_negative_binomial(odds: f64, size: f64) -> Self {
        Self::of(&ROW, &[odds, size])
    }
}

fn log_rate(p: &[f64], exposure: f64) -> f64 {
    ((1.0 + p[0]) * exposure / p[1]).ln()
}

/// The log probability of a negative binomial count whose mean over its size is e^x.
pub(super) fn log_count(size: f64, x: f64, y: f64) -> f64 {
    lgamma_step(size, y) - lgamma(y + 1.0) + y * x - (y + size) * log1p_exp(x)
}

/// With x = η + shift: `(y + r) log(1 + e^x) − y x + c`, or for y = 0 `−log(odds + (1 + e^x)^(−r)) + c`.
#[derive(Clone, Copy, Debug)]
struct Inflated {
    y: f64,
    odds: f64,
    size: f64,
    shift: f64,
    c: f64,
}

impl Potential for Inflated {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let (size, c, one) = (V::splat(self.size), V::splat(self.c), V::splat(1.0));
        let x = eta + V::splat(self.shift);
        let (log, s, rest) = (
            vmath::log1p_exp(x),
            vmath::inv_logit(x),
            vmath::inv_logit(-x),
        );
        if self.y > 0.0 {
            let (y, total) = (V::splat(self.y), V::splat(self.y + self.size));
            return (total * log - y * x + c, total * s - y, total * s * rest);
        }
        // With q = (1 + e^x)^(−r) and p = q/(odds + q) the derivatives are r s p and r s p (1 − s − r s (1 − p)).
        let odds = V::splat(self.odds);
        let none = vmath::exp(-(size * log));
        let all = odds + none;
        let p = none / all;
        let slope = size * s * p;
        let surplus = odds / all;
        (
            c - vmath::log(all),
            slope,
            slope * (one - s - size * s * surplus),
        )
    }

    /// The logarithm of 1 + e^x has branch points at ±iπ. For y = 0 there are also zeros, at which e^x is
    /// odds^(−1/r) e^(iθ) − 1 with θ an odd multiple of π/r that is below π. Their distance from the real line is the
    /// argument of this number. If the modulus is below 1, the argument is at least π − asin(modulus).
    fn width(&self) -> f64 {
        let pi = std::f64::consts::PI;
        if self.y > 0.0 || self.size <= 1.0 {
            return pi;
        }
        let (modulus, angle) = (self.odds.powf(-1.0 / self.size), pi / self.size);
        match modulus < 1.0 {
            true => pi - modulus.asin(),
            false => (modulus * angle.sin()).atan2(modulus * angle.cos() - 1.0),
        }
    }
}

/// With s = σ(x) and L = log(1 + e^x), the derivatives of log p for y > 0 are `(y − (y+r) s − 1)/(1 + odds)` and
/// `ψ(y+r) − ψ(r) − L − (y − (y+r) s)/r`. For y = 0 they are `(1 − r s q/(1 + odds))/(odds + q) − 1/(1 + odds)` and
/// `(s − L) q/(odds + q)` with q = (1 + e^x)^(−r).
fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (odds, size, y) = (p[0], p[1], &at.data.response);
    let mut by = vec![0.0, 0.0];
    for (i, &y) in y.iter().enumerate() {
        let shift = log_rate(p, at.data.size_of(i));
        let mean = |h: &dyn Fn(f64, f64) -> f64| {
            at.sites.expectation(i, at.m[i], at.v[i], &|eta: f64| {
                let x = eta + shift;
                h(inv_logit(x), log1p_exp(x))
            })
        };
        if y > 0.0 {
            let excess = y - (y + size) * mean(&|s, _| s);
            by[0] += (excess - 1.0) / (1.0 + odds);
            by[1] += digamma_step(size, y) - mean(&|_, log| log) - excess / size;
        } else {
            by[0] += mean(&|s, log| {
                let none = (-size * log).exp();
                (1.0 - size * s * none / (1.0 + odds)) / (odds + none)
            }) - 1.0 / (1.0 + odds);
            by[1] += mean(&|s, log| {
                let none = (-size * log).exp();
                (s - log) * none / (odds + none)
            });
        }
    }
    by
}
