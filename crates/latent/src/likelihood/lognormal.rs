//! Positive numbers with normal logarithms.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::phi;

use super::Likelihood;
use super::gaussian::normal;
use super::row::{Fitted, Form, LOG_VARIANCE, LikelihoodRow, Response, Size};
use crate::linear::kernels::sum;
use crate::site::SiteBound;
use crate::site::convex::Convex;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "lognormal",
    law: "log y is N(η − variance/2, variance), with mean e^η",
    parameters: &["variance"],
    usual: &[1.0],
    priors: &[LOG_VARIANCE],
    location: false,
    response: Response::Positive,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    mean: f64::exp,
    log_density: |p, eta, y, _| normal(y.ln() + 0.5 * p[0] - eta, p[0].ln()) - y.ln(),
    distribution: |p, eta, y, _| phi((y.ln() + 0.5 * p[0] - eta) / p[0].sqrt()),
    form: |likelihood, data| {
        let variance = likelihood.values[0];
        Form::convex(data, |_, y| {
            let x = y.ln() + 0.5 * variance;
            Convex::Quadratic {
                a: 1.0 / variance,
                b: -x / variance,
                c: x * x / (2.0 * variance) + HALF_LOG_TWO_PI + 0.5 * variance.ln() + y.ln(),
            }
        })
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood log y ~ N(η − variance/2, variance).
    pub fn lognormal(variance: f64) -> Self {
        Self::of(&ROW, &[variance])
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (s, y) = (p[0], &at.data.response);
    vec![sum(y.len(), |i| {
        let r = y[i].ln() + 0.5 * s - at.m[i];
        (r * r + at.v[i]) / (2.0 * s * s) - 0.5 / s - 0.5 * r / s
    })]
}
