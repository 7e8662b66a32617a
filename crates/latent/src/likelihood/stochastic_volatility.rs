//! Returns of an asset, with variance e^η.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::phi;

use super::Likelihood;
use super::gaussian::normal;
use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use crate::site::SiteBound;
use crate::site::convex::Convex;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "stochastic-volatility",
    law: "N(0, e^η)",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Number,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    // The mean of y is always 0, so this function returns the standard deviation.
    mean: |_, eta, _| (0.5 * eta).exp(),
    log_density: |_, eta, y, _| normal(y, eta),
    distribution: |_, eta, y, _| phi(y * (-0.5 * eta).exp()),
    form: |_, data| {
        Form::convex(data, |_, y| match y {
            0.0 => Convex::Linear {
                a: -0.5,
                c: HALF_LOG_TWO_PI,
            },
            _ => Convex::Exponential {
                a: -0.5,
                rate: 0.5 * y * y,
                slope: -1.0,
                c: HALF_LOG_TWO_PI,
            },
        })
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood y ~ N(0, exp(η)).
    pub fn stochastic_volatility() -> Self {
        Self::of(&ROW, &[])
    }
}
