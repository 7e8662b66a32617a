//! Positive numbers with a gamma distribution.

use jensen_math::special::{digamma, gamma_p, lgamma};

use super::Likelihood;
use super::row::{FRAILTY, Fitted, Form, LikelihoodRow, Response, Size};
use crate::linear::kernels::sum;
use crate::site::SiteBound;
use crate::site::convex::Convex;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "gamma",
    law: "mean e^η, variance mean²/shape",
    parameters: &["shape"],
    usual: &[1.0],
    priors: &[FRAILTY],
    location: false,
    response: Response::Positive,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta.exp(),
    log_density: |p, eta, y, _| log_density(p[0], eta, y),
    distribution: |p, eta, y, _| gamma_p(p[0], p[0] * y * (-eta).exp()),
    form: |likelihood, data| {
        let shape = likelihood.values[0];
        Form::convex(data, |_, y| site(shape, y))
    },
    by_parameters,
};

impl Likelihood {
    /// Returns the likelihood of a gamma distribution with mean exp(η) and variance mean²/shape.
    pub fn gamma(shape: f64) -> Self {
        Self::of(&ROW, &[shape])
    }
}

pub(super) fn log_density(shape: f64, eta: f64, y: f64) -> f64 {
    shape * (shape.ln() - eta) - lgamma(shape) + (shape - 1.0) * y.ln() - shape * y * (-eta).exp()
}

pub(super) fn site(shape: f64, y: f64) -> Convex {
    Convex::Exponential {
        a: -shape,
        rate: shape * y,
        slope: -1.0,
        c: lgamma(shape) - shape * shape.ln() - (shape - 1.0) * y.ln(),
    }
}

fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (shape, y) = (p[0], &at.data.response);
    let fixed = digamma(shape) - shape.ln() - 1.0;
    vec![-sum(y.len(), |i| {
        at.m[i] + y[i] * (0.5 * at.v[i] - at.m[i]).exp() + fixed - y[i].ln()
    })]
}
