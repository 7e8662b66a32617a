//! Poisson counts, and points of a Poisson process.
//!
//! The log density of the points of a process with log intensity η is Σ η − ∫ e^η (Simpson, Illian, Lindgren, Sørbye and
//! Rue 2016, equation 2). The integral is a sum over nodes: counts of 0 whose exposures are the weights of the nodes. A
//! point is a count of 1 with exposure 0, which has the log density η.

use jensen_math::special::{gamma_q, lgamma};

use super::Likelihood;
use super::row::{Form, LikelihoodRow, Response, Size, no_parameters};
use crate::site::SiteBound;
use crate::site::convex::Convex;

const COUNTS: LikelihoodRow = LikelihoodRow {
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
    points: false,
    mean: |_, eta, exposure| exposure * eta.exp(),
    log_density: |_, eta, y, size| match size {
        0.0 => y * eta - lgamma(y + 1.0),
        size => y * (eta + size.ln()) - size * eta.exp() - lgamma(y + 1.0),
    },
    distribution: |_, eta, y, size| gamma_q(y + 1.0, size * eta.exp()),
    form: |_, data| {
        Form::convex(data, |i, y| {
            let rate = data.size_of(i);
            if rate == 0.0 {
                return Convex::Linear {
                    a: y,
                    c: lgamma(y + 1.0),
                };
            }
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

pub(super) static ROW: LikelihoodRow = COUNTS;

pub(super) static PROCESS: LikelihoodRow = LikelihoodRow {
    name: "poisson-process",
    law: "points of a process with intensity e^η: 1 with exposure 0 at a point, 0 with its area as exposure in a cell",
    points: true,
    ..COUNTS
};

impl Likelihood {
    /// Returns the likelihood y ~ Poisson(e exp(η)) with exposure e.
    pub fn poisson() -> Self {
        Self::of(&ROW, &[])
    }

    /// Returns the likelihood of the points of a Poisson process with log intensity η. An observation without exposure has
    /// the log density y η. The others are counts, as in [`poisson`](Self::poisson).
    pub fn poisson_process() -> Self {
        Self::of(&PROCESS, &[])
    }
}
