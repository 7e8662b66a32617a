//! Numbers with normal errors whose standard deviations are known.

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::special::phi;

use super::Likelihood;
use super::gaussian::normal;
use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use crate::site::SiteBound;
use crate::site::convex::Convex;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "gaussian(sd=COLUMN)",
    law: "N(η, sd²) with the known sd of each row",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: true,
    response: Response::Number,
    size: Size::Sd,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| eta,
    log_density: |_, eta, y, sd| normal(y - eta, 2.0 * sd.ln()),
    distribution: |_, eta, y, sd| phi((y - eta) / sd),
    form: |_, data| {
        Form::convex(data, |i, y| {
            let sd = data.size_of(i);
            let (a, z) = (1.0 / (sd * sd), y / sd);
            Convex::Quadratic {
                a,
                b: -a * y,
                c: 0.5 * z * z + HALF_LOG_TWO_PI + sd.ln(),
            }
        })
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood y ~ N(η, sd²) with the standard deviations of
    /// [`Observations::size`](crate::Observations::size).
    pub fn known_error() -> Self {
        Self::of(&ROW, &[])
    }
}
