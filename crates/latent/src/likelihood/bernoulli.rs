//! Binary outcomes with log odds η.

use jensen_math::special::{inv_logit, log1p_exp};

use super::Likelihood;
use super::row::{Form, LikelihoodRow, Response, Size, no_distribution, no_parameters};
use crate::site::logistic::{self, Logistic};

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "bernoulli",
    law: "logit P(y = 1) is η",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Binary,
    size: Size::One,
    bounds: logistic::BOUNDS,
    log_concave: true,
    points: false,
    mean: |_, eta, _| inv_logit(eta),
    log_density: |_, eta, y, _| y * eta - log1p_exp(eta),
    distribution: no_distribution,
    form: |_, data| {
        Form::logistic(data, |_, y| Logistic {
            y,
            n: 1.0,
            shift: 0.0,
            c: 0.0,
        })
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood y ∈ {0, 1}, P(y = 1) = 1/(1 + exp(−η)).
    pub fn bernoulli() -> Self {
        Self::of(&ROW, &[])
    }
}
