//! Binary outcomes with the probability Φ(η).

use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::simd::F64x8;
use jensen_math::special::{log_phi, phi};
use jensen_math::vmath;

use super::Likelihood;
use super::row::{Form, LikelihoodRow, Response, Size, no_distribution, no_parameters};
use crate::site::SiteBound;
use crate::site::expectation::Potential;

pub(super) static ROW: LikelihoodRow = LikelihoodRow {
    name: "probit",
    law: "P(y = 1) = Φ(η)",
    parameters: &[],
    usual: &[],
    priors: &[],
    location: false,
    response: Response::Binary,
    size: Size::One,
    bounds: &[SiteBound::Exact],
    log_concave: true,
    points: false,
    mean: |_, eta, _| phi(eta),
    log_density: |_, eta, y, _| log_phi((2.0 * y - 1.0) * eta),
    distribution: no_distribution,
    form: |_, data| {
        Form::smooth(data, |_, y| Threshold {
            sign: 2.0 * y - 1.0,
        })
    },
    by_parameters: no_parameters,
};

impl Likelihood {
    /// Returns the likelihood y ∈ {0, 1}, P(y = 1) = Φ(η).
    pub fn probit() -> Self {
        Self::of(&ROW, &[])
    }
}

#[derive(Clone, Copy, Debug)]
struct Threshold {
    sign: f64,
}

impl Potential for Threshold {
    #[inline(always)]
    fn at<V: F64x8>(&self, eta: V) -> (V, V, V) {
        let half = V::splat(0.5);
        let sign = V::splat(self.sign);
        let x = sign * eta;
        let log = vmath::log_phi(x);
        // The ratio is φ(x)/Φ(x).
        let log_root = V::splat(HALF_LOG_TWO_PI);
        let ratio = vmath::exp(-half * x * x - log_root - log);
        (-log, -sign * ratio, ratio * (ratio + x))
    }

    /// The zeros of Φ nearest to the real line are 1.916 ± 2.816 i.
    fn width(&self) -> f64 {
        2.816
    }
}
