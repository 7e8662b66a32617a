//! Waiting times with an exponential distribution, that is, a gamma distribution with shape 1.

use super::Likelihood;
use super::interval::{WeibullTime, log_density};
use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use crate::site::SiteBound;
use crate::site::convex::Convex;

const TIMES: LikelihoodRow = LikelihoodRow {
    name: "exponential",
    law: "exponential with mean e^η",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Positive,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta.exp(),
    log_density: |_, eta, y, event| -event * eta - y * (-eta).exp(),
    distribution: |_, eta, y, _| -(-y * (-eta).exp()).exp_m1(),
    form: |_, data| {
        Form::convex(data, |i, y| Convex::Exponential {
            a: -data.size_of(i),
            rate: y,
            slope: -1.0,
            c: 0.0,
        })
    },
    by_parameters: no_parameters,
};

pub(super) static ROW: LikelihoodRow = TIMES;

pub(super) static CENSORED: LikelihoodRow = LikelihoodRow {
    name: "exponential(event=COLUMN)",
    law: "exponential times with mean e^η, right-censored where the event is 0",
    size: Size::Event,
    ..TIMES
};

pub(super) static INTERVAL: LikelihoodRow = LikelihoodRow {
    name: "exponential(until=COLUMN)",
    law: "exponential times in an interval, with mean e^η",
    response: Response::NonNegative,
    size: Size::Until,
    log_density: |_, eta, y, until| log_density(&WeibullTime::new(1.0, y, until), eta)[0],
    form: |_, data| Form::smooth(data, |i, y| WeibullTime::new(1.0, y, data.size_of(i))),
    ..TIMES
};

impl Likelihood {
    /// Returns the likelihood of an exponential distribution with mean exp(η).
    pub fn exponential() -> Self {
        Self::of(&ROW, &[])
    }
}
