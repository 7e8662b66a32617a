//! Poisson counts.

use jensen_math::special::{gamma_q, lgamma};

use super::Likelihood;
use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use crate::site::SiteBound;
use crate::site::convex::Convex;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "poisson",
    law: "Poisson(exposure · e^η)",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Count,
    size: Size::Exposure,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    mean: f64::exp,
    log_density: |_, eta, y, size| y * (eta + size.ln()) - size * eta.exp() - lgamma(y + 1.0),
    distribution: |_, eta, y, size| gamma_q(y + 1.0, size * eta.exp()),
    form: |_, data| {
        Form::convex(data, |i, y| {
            let rate = data.size_of(i);
            Convex::Exponential {
                a: y,
                rate,
                slope: 1.0,
                // p(y) also contains e^y with the exposure e, hence −y log e.
                c: lgamma(y + 1.0) - y * rate.ln(),
            }
        })
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood y ~ Poisson(e exp(η)) with exposure e.
    pub fn poisson() -> Self {
        Self::of(&ROW, &[])
    }
}
