//! Numbers with normal noise.

use jensen_math::constants::{HALF_LOG_TWO_PI, LOG_TWO_PI};
use jensen_math::special::phi;

use super::Likelihood;
use super::row::{Fitted, Form, LikelihoodRow, NOISE_VARIANCE, Response, Size};
use crate::linear::kernels::sum;
use crate::site::SiteBound;
use crate::site::convex::Convex;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "gaussian",
    law: "N(η, variance)",
    parameters: &["variance"],
    usual: &[1.0],
    priors: &[NOISE_VARIANCE],
    location: true,
    response: Response::Number,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta,
    log_density: |p, eta, y, _| normal(y - eta, p[0].ln()),
    distribution: |p, eta, y, _| phi((y - eta) / p[0].sqrt()),
    form: |likelihood, data| {
        let variance = likelihood.values[0];
        Form::convex(data, |_, y| Convex::Quadratic {
            a: 1.0 / variance,
            b: -y / variance,
            c: y * y / (2.0 * variance) + HALF_LOG_TWO_PI + 0.5 * variance.ln(),
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood y ~ N(η, variance).
    pub fn gaussian(variance: f64) -> Self {
        Self::of(&ROW, &[variance])
    }
}

/// Computes log N(x; 0, e^log_variance).
pub(super) fn normal(x: f64, log_variance: f64) -> f64 {
    -0.5 * (LOG_TWO_PI + log_variance + x * x * (-log_variance).exp())
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (s, y) = (p[0], &at.data.response);
    vec![sum(y.len(), |i| {
        let r = y[i] - at.m[i];
        (r * r + at.v[i]) / (2.0 * s * s) - 0.5 / s
    })]
}
