//! Waiting times with an exponential distribution, that is, a gamma distribution with shape 1.

use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use super::{Likelihood, gamma};
use crate::site::SiteBound;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
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
    mean: f64::exp,
    log_density: |_, eta, y, _| gamma::log_density(1.0, eta, y),
    distribution: |_, eta, y, _| -(-y * (-eta).exp()).exp_m1(),
    form: |_, data| Form::convex(data, |_, y| gamma::site(1.0, y)),
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood of an exponential distribution with mean exp(η).
    pub fn exponential() -> Self {
        Self::of(&ROW, &[])
    }
}
