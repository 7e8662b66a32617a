//! Shares between 0 and 1.

use jensen_math::simd::F64x8;
use jensen_math::special::{digamma, inc_beta, inv_logit, lgamma};
use jensen_math::vmath;

use super::Likelihood;
use super::row::{FRAILTY, Fitted, Form, LikelihoodRow, Response, Size};
use crate::site::SiteBound;
use crate::site::expectation::Potential;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "beta",
    law: "mean μ whose logit is η, variance μ(1 − μ)/(1 + precision)",
    parameters: &["precision"],
    usual: &[1.0],
    priors: &[FRAILTY],
    location: false,
    response: Response::Share,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: false,
    points: false,
    mean: |_, eta, _| inv_logit(eta),
    log_density: |p, eta, y, _| {
        let (a, b) = (p[0] * inv_logit(eta), p[0] * inv_logit(-eta));
        lgamma(p[0]) - lgamma(a) - lgamma(b) + (a - 1.0) * y.ln() + (b - 1.0) * (-y).ln_1p()
    },
    distribution: |p, eta, y, _| match y {
        y if y <= 0.0 => 0.0,
        y if y >= 1.0 => 1.0,
        y => inc_beta(p[0] * inv_logit(eta), p[0] * inv_logit(-eta), y),
    },
    form: |likelihood, data| {
        let precision = likelihood.values[0];
        Form::smooth(data, |_, y| Share {
            precision,
            log: y.ln(),
            log_rest: (-y).ln_1p(),
            c: -lgamma(precision),
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of a beta distribution with mean inv_logit(η). The two parameters of the distribution add
    /// up to `precision`.
    pub fn beta(precision: f64) -> Self {
        Self::of(&ROW, &[precision])
    }
}

/// `log Γ(a) + log Γ(b) − (a−1) log y − (b−1) log(1−y) + c` with a = φμ, b = φ(1−μ).
#[derive(Clone, Copy, Debug)]
struct Share {
    precision: f64,
    log: f64,
    log_rest: f64,
    c: f64,
}

impl Potential for Share {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let (one, phi) = (V::splat(1.0), V::splat(self.precision));
        // Neither exponent is 0, however far η is.
        let least = V::splat(1e-290);
        let mean = vmath::inv_logit(eta);
        let rest = vmath::inv_logit(-eta);
        let (a, b) = ((phi * mean).max(least), (phi * rest).max(least));
        let (log, log_rest) = (V::splat(self.log), V::splat(self.log_rest));
        let value = vmath::lgamma(a) + vmath::lgamma(b) - (a - one) * log - (b - one) * log_rest
            + V::splat(self.c);
        // dμ/dη = μ(1−μ), and its derivative has the factor 1 − 2μ.
        let by_mean = vmath::digamma(a) - vmath::digamma(b) - log + log_rest;
        let step = phi * mean * rest;
        let curvature = vmath::trigamma(a) + vmath::trigamma(b);
        (
            value,
            by_mean * step,
            curvature * step * step + by_mean * step * (rest - mean),
        )
    }

    /// The mean has poles at ±iπ.
    fn width(&self) -> f64 {
        std::f64::consts::PI
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (phi, y) = (p[0], &at.data.response);
    let each = |i: usize| {
        let (log, log_rest) = (y[i].ln(), (-y[i]).ln_1p());
        at.sites.expectation(i, at.m[i], at.v[i], &|eta: f64| {
            let (mean, rest) = (inv_logit(eta), inv_logit(-eta));
            mean * (digamma((phi * mean).max(1e-290)) - log)
                + rest * (digamma((phi * rest).max(1e-290)) - log_rest)
        })
    };
    vec![y.len() as f64 * digamma(phi) - (0..y.len()).map(each).sum::<f64>()]
}
