//! The accuracy that reported numbers must have, and the limits of all checks that follow from it.
//!
//! A fit is trusted if its means and standard deviations are as accurate as the [`Policy`] requires. This file computes
//! every limit from the policy, and documents the derivation. Constants that belong to a single algorithm are defined
//! and explained in the module of the algorithm.

use jensen_math::special::inv_phi;
use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

/// The largest dimension in which dense matrices of all pairs of coordinates are used without a structure: full
/// covariances, whitening by all correlations, tail transforms of every coordinate, and explicit
/// Hessians of TrustVI. In more dimensions, a fit has no wide starts, and it begins with the
/// conditionally structured Gaussian if the density has global parameters. In 500 dimensions, a symmetric matrix has
/// 125 250 different elements, and a product with it costs 250 000 multiplications, as much as a gradient of a few
/// thousand records. A full covariance takes five seconds in 450 dimensions and minutes in 1000.
pub(crate) const DENSE: usize = 500;

/// The largest dimension in which checks examine each coordinate by itself: the curvature at a start, the decay of the
/// density along a coordinate, and the coordinates that a relabelling may exchange. Their cost grows with the square of
/// the dimension, and is that of a few thousand evaluations of the density at this dimension.
pub(crate) const ONE_BY_ONE: usize = 1024;

/// The dimension to which the budget of gradients refers. In more dimensions, a gradient takes proportionally longer.
const SCALED: u64 = 100;

/// A refinement may use more gradients than its budget as long as it has taken fewer elementary operations than this.
const WORK: u64 = 16_000_000_000;

/// The factor by which a cheap density may exceed the budget of gradients.
const CHEAP: u64 = 5;

/// The required accuracy of the reported numbers, and the number of gradients that a fit may use to reach this
/// accuracy. Limits on time and memory are not part of the policy, because they do not change a finished result. The
/// caller sets them in the [`Budget`](jensen_run::Budget).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// The largest allowed error of a mean, in posterior standard deviations.
    pub mean_error: f64,
    /// The largest allowed relative error of a standard deviation.
    pub sd_error: f64,
    /// The probability that a single test rejects or prolongs a correct fit. Such a false alarm costs one more
    /// stationary phase. A missed alarm accepts narrow curved posteriors ("bananas") whose chains have not converged:
    /// at a drift of 3, the standard deviation of the height of the arms was 0.58 times the correct value.
    pub failure_probability: f64,
    /// The required effective sample size of every quantity. Chains that are shorter than their autocorrelation time
    /// cannot show that they have converged. With a limit of 400, curved posteriors passed with 418 and 434 effective
    /// draws, although the standard deviation of the height of their arms was 0.58 times the correct value. With a
    /// limit of 512, the standard deviation of the width was correct to within a tenth, and the standard deviation of
    /// the height was correct to within its Monte-Carlo error. The standard errors of means are then below 0.045
    /// standard deviations.
    pub effective_draws: f64,
    /// The largest number of gradients that a refinement with up to a hundred coordinates may use. For more
    /// coordinates, the limit is inversely proportional to the number of coordinates. If the density is cheap, a
    /// refinement may use up to five times this number.
    pub max_gradients: u64,
}

impl Default for Policy {
    /// Returns the default policy. The mean has a tolerance of a tenth of a standard deviation, which is invisible in
    /// plots. The standard deviation has a tolerance of 8 %, which is twice the standard error of an estimate from 300
    /// independent draws. One test in twenty gives a false alarm. The effective sample size is 512, which is two draws
    /// for each of 256 chains. The budget of two million gradients takes ten seconds to a minute.
    fn default() -> Self {
        Self {
            mean_error: 0.1,
            sd_error: 0.08,
            failure_probability: 0.05,
            effective_draws: 512.0,
            max_gradients: 2_000_000,
        }
    }
}

impl Policy {
    /// Checks that each number is within its range.
    ///
    /// # Errors
    /// Fails with a sentence that contains the invalid number and its name.
    pub fn validate(&self) -> Result<(), SettingError> {
        let errors = [("mean_error", self.mean_error), ("sd_error", self.sd_error)];
        for (name, error) in errors {
            if !(error > 0.0 && error < 1.0) {
                return Err(SettingError::new(format!(
                    "{name} is {error}, but must be between 0 and 1"
                )));
            }
        }
        let p = self.failure_probability;
        if !(p > 0.0 && p < 0.5) {
            return Err(SettingError::new(format!(
                "failure_probability is {p}, but must be between 0 and 0.5"
            )));
        }
        let n = self.effective_draws;
        if !(n >= 10.0 && n.is_finite()) {
            return Err(SettingError::new(format!(
                "effective_draws is {n}, but must be at least 10"
            )));
        }
        if self.max_gradients == 0 {
            return Err(SettingError::new(
                "max_gradients is 0, but must be at least 1",
            ));
        }
        Ok(())
    }

    /// Returns whether all values are the defaults. A default policy is omitted from files.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the critical value of a two-sided test, in standard errors. With the default policy it is 1.96.
    pub fn confidence(&self) -> f64 {
        -inv_phi(0.5 * self.failure_probability)
    }

    /// Returns the critical value for the largest of several test statistics, in standard errors, by Bonferroni's
    /// inequality. With the default policy it is 2.6 for five tests and 3.9 for six hundred tests.
    pub fn confidence_of(&self, tests: usize) -> f64 {
        -inv_phi(0.5 * self.failure_probability / tests as f64)
    }

    /// Returns the largest relative standard error that the standard deviation of a global parameter may have after a
    /// mixed stationary phase. If the error is larger, the phase is extended. At this limit, half the width of the
    /// confidence interval equals the allowed error. In a stochastic volatility series of length 1000, the level has
    /// long tails, because the persistence may be close to 1. After 700 effective draws, the standard deviation of the
    /// level was 0.201 with one seed of the chains and 0.224 with another seed.
    pub fn vague(&self) -> f64 {
        self.sd_error / self.confidence()
    }

    /// Returns the largest share of a coordinate's variance, or of the total mass, that the draws may miss. The
    /// relative error of a standard deviation is then about half of this share.
    pub fn unreached(&self) -> f64 {
        2.0 * self.sd_error
    }

    /// Returns how much lower, in nats, the ELBO of a mixture may be than the ELBO of another result. Consider a mode
    /// one standard deviation away whose omission changes the mean by the allowed error. The mode's share of the mass
    /// then equals this limit. An approximation without the mode has an ELBO that is lower by the same number of nats.
    pub fn of_a_mode(&self) -> f64 {
        self.mean_error
    }

    /// Returns the largest divergence of an approximation from the posterior, in nats per coordinate. It is twice the
    /// divergence `½ δ² + s²` of a normal distribution whose mean and standard deviation differ from the correct values
    /// by the allowed errors. The factor of two is needed because the estimate of a divergence has an error of about
    /// its own size.
    pub fn divergence_of_a_coordinate(&self) -> f64 {
        2.0 * (0.5 * self.mean_error.powi(2) + self.sd_error.powi(2))
    }

    /// Returns the budget of gradients for a refinement of `dim` coordinates. Once a refinement has used the budget, it
    /// does not start another stationary phase. `work` is the number of elementary operations per gradient, if it is
    /// known. Two million gradients take ten seconds to a minute for a hundred coordinates, but only a second for
    /// twenty coordinates with few data. Such cheap densities may use five times as many gradients.
    pub fn gradients(&self, dim: usize, work: Option<u64>) -> u64 {
        let limit = self.max_gradients * SCALED / SCALED.max(dim as u64);
        // The map between the two coordinate systems takes a product with a matrix.
        let map = (dim * dim) as u64;
        let affordable = work.map_or(0, |work| WORK / (work + map).max(1));
        limit.max(affordable.min(CHEAP * limit))
    }

    /// Returns the smallest budget of gradients for a map whose cost is proportional to the dimension, such as that of
    /// a sparse precision. The budget allows 150 transitions. Their step sizes are proportional to the inverse fourth
    /// root of the dimension.
    pub(crate) fn least_gradients(&self, dim: usize) -> u64 {
        (self.max_gradients as f64 / 12.0 * (dim as f64 / SCALED as f64).powf(0.25)) as u64
    }

    /// Returns the number of fresh draws in the first evaluation. This number suffices if at least one draw in eight is
    /// effective.
    pub fn evaluation_draws(&self) -> usize {
        (8.0 * self.effective_draws) as usize
    }

    /// Returns the number of points at which the density is compared with an approximation beyond its draws. A refinement,
    /// which follows if the comparison fails, costs a hundred times as many gradients.
    pub fn far_points(&self) -> usize {
        self.evaluation_draws() / 4
    }

    /// Returns the number of draws in the preview of a family. After the preview, the driver may abandon the family for
    /// a richer one. The number equals the required effective sample size.
    pub fn preview_draws(&self) -> usize {
        self.effective_draws as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_from_what_is_asked() {
        let usual = Policy::default();
        assert!((usual.confidence() - 1.96).abs() < 1e-3);
        assert!((usual.confidence_of(600) - 3.94).abs() < 0.01);
        assert!((usual.vague() - 0.041).abs() < 1e-3);
        assert_eq!(usual.evaluation_draws(), 4096);
        let strict = Policy {
            mean_error: 0.05,
            sd_error: 0.04,
            ..usual
        };
        assert!(strict.unreached() < usual.unreached() && strict.vague() < usual.vague());
        assert!(strict.divergence_of_a_coordinate() < usual.divergence_of_a_coordinate());
        assert!(strict.validate().is_ok());
        for wrong in [
            Policy {
                sd_error: 0.0,
                ..usual
            },
            Policy {
                mean_error: f64::NAN,
                ..usual
            },
            Policy {
                failure_probability: 0.5,
                ..usual
            },
            Policy {
                effective_draws: 1.0,
                ..usual
            },
            Policy {
                max_gradients: 0,
                ..usual
            },
        ] {
            assert!(wrong.validate().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn cheap_densities_are_given_more_gradients_and_others_none_fewer() {
        let settings = Policy::default();
        let most = settings.max_gradients;
        assert_eq!(settings.gradients(20, None), most);
        assert_eq!(settings.gradients(1000, None), most / 10);
        assert_eq!(settings.gradients(20, Some(100)), CHEAP * most);
        assert_eq!(settings.gradients(20, Some(1 << 40)), most);
        assert_eq!(settings.gradients(1000, Some(1000)), most / 10);
        let between = settings.gradients(25, Some(1231));
        assert_eq!(settings.least_gradients(100), most / 12);
        assert_eq!(settings.least_gradients(1_000_000), 10 * (most / 12) + 6);
        assert!(
            most < between && between < CHEAP * most,
            "{between} gradients"
        );
    }
}
