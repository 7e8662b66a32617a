//! Times until an event.

use jensen_math::special::digamma;

use super::Likelihood;
use super::interval::{WeibullTime, by_shape, log_density, log_ratio};
use super::row::{Fitted, Form, LikelihoodRow, Response, SHAPE, Size};
use crate::linear::kernels::sum;
use crate::site::SiteBound;
use crate::site::convex::Convex;

const TIMES: LikelihoodRow = LikelihoodRow {
    name: "weibull",
    law: "mean e^η, hazard proportional to y^(shape − 1)",
    parameters: &["shape"],
    usual: &[1.0],
    priors: &[SHAPE],
    location: false,
    response: Response::Positive,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta.exp(),
    log_density: |p, eta, y, event| {
        let shape = p[0];
        let log = log_ratio(shape, y) - eta;
        event * (shape.ln() + shape * log - y.ln()) - (shape * log).exp()
    },
    distribution: |p, eta, y, _| -(-(p[0] * (log_ratio(p[0], y) - eta)).exp()).exp_m1(),
    form: |likelihood, data| {
        let shape = likelihood.values[0];
        Form::convex(data, |i, y| {
            let (log, event) = (log_ratio(shape, y), data.size_of(i));
            Convex::Exponential {
                a: -shape * event,
                rate: (shape * log).exp(),
                slope: -shape,
                c: event * (y.ln() - shape.ln() - shape * log),
            }
        })
    },
    by_parameters,
};

pub(super) static ROW: LikelihoodRow = TIMES;

pub(super) static CENSORED: LikelihoodRow = LikelihoodRow {
    name: "weibull(event=COLUMN)",
    law: "times with mean e^η, hazard proportional to y^(shape − 1), right-censored where the event is 0",
    size: Size::Event,
    ..TIMES
};

pub(super) static INTERVAL: LikelihoodRow = LikelihoodRow {
    name: "weibull(until=COLUMN)",
    law: "times in an interval, with mean e^η and hazard proportional to y^(shape − 1)",
    response: Response::NonNegative,
    size: Size::Until,
    log_density: |p, eta, y, until| log_density(&WeibullTime::new(p[0], y, until), eta)[0],
    form: |likelihood, data| {
        let shape = likelihood.values[0];
        Form::smooth(data, |i, y| WeibullTime::new(shape, y, data.size_of(i)))
    },
    by_parameters: by_shape,
    ..TIMES
};

impl Likelihood {
    /// Weibull distribution with mean exp(η).
    pub fn weibull(shape: f64) -> Self {
        Self::of(&ROW, &[shape])
    }
}

/// With k the shape and x = log y + log Γ(1 + 1/k) − η, `−log p = −log k − k x + log y + e^(kx)`, and the derivative of
/// kx with respect to k is x − ψ(1 + 1/k)/k. For normal x the expectation of x e^(kx) is (E x + k v) E e^(kx). For a
/// censored time only the term `e^(kx)` remains.
fn by_parameters(p: &[f64], at: &Fitted<'_>) -> Vec<f64> {
    let (shape, y) = (p[0], &at.data.response);
    let moved = digamma(1.0 + 1.0 / shape) / shape;
    vec![sum(y.len(), |i| {
        let (x, v) = (log_ratio(shape, y[i]) - at.m[i], at.v[i]);
        let power = (shape * x + 0.5 * shape * shape * v).exp();
        at.data.size_of(i) * (1.0 / shape + x - moved) - (x + shape * v - moved) * power
    })]
}
