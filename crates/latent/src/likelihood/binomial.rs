//! The number of successes among several trials.

use jensen_math::special::{inc_beta, inv_logit, lgamma, log1p_exp};

use super::Likelihood;
use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use crate::site::logistic::{self, Logistic};

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "binomial",
    law: "successes in `--trials` trials, each with a probability whose logit is η",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Trials,
    size: Size::Trials,
    bounds: logistic::BOUNDS,
    log_concave: true,
    points: false,
    mean: |_, eta, trials| trials * inv_logit(eta),
    log_density: |_, eta, y, size| log_choose(size, y) + y * eta - size * log1p_exp(eta),
    distribution: |_, eta, y, size| match y < size {
        true => inc_beta(size - y, y + 1.0, inv_logit(-eta)),
        false => 1.0,
    },
    form: |_, data| {
        Form::logistic(data, |i, y| {
            let n = data.size_of(i);
            Logistic {
                y,
                n,
                shift: 0.0,
                c: lgamma(y + 1.0) + lgamma(n - y + 1.0) - lgamma(n + 1.0),
            }
        })
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood of y successes in a number of independent trials, each of which succeeds with probability
    /// 1/(1 + exp(−η)).
    pub fn binomial() -> Self {
        Self::of(&ROW, &[])
    }
}

pub(super) fn log_choose(n: f64, k: f64) -> f64 {
    lgamma(n + 1.0) - lgamma(k + 1.0) - lgamma(n - k + 1.0)
}
