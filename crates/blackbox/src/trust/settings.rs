//! The settings of TrustVI: the parameters of Table 1 of the paper, and the sample sizes.
//!
//! The paper gives ranges for its parameters, but no defaults. The defaults of Jensen are:
//!
//! | name | range | default | reason |
//! | --- | --- | --- | --- |
//! | η | (0, ½] | 0.3 | accepts steps of mediocre models; N_k grows as 1/η² |
//! | γ | (1, ∞) | 2 | the usual factor of trust regions |
//! | λ | (0, ∞) | 10⁻¹⁰ | steps with a predicted gain below λδ²/η nats are not assessed |
//! | α | (λ/(1 − γ⁻²), ∞) | ½ | ½δ² nats are the divergence of a step on the boundary |
//! | ν₁ | (0, 1 − η) | 0.2 | Inequality 13 then requires few draws once the gradient exceeds its noise |
//! | ν₂ | (0, 1) | 0.5 | a good gradient is at least half as long as the true one |
//! | ν₃ | (0, 1 − η − ν₁) | 0.2 | the angle of a good gradient to the true one is below about 50° |
//! | ζ₀ | (½, 1) | 0.9 | the doubling rule makes gradients more precise than that |
//! | ζ₁ | (1/(2ζ₀), 1) | 0.8 | ζ₀ζ₁ = 0.72 > ½ |
//! | κ_H | \[0, ∞) | 10¹⁶ | larger curvatures are scaled down; only invalid models have them |
//! | δ⁻ | (0, ∞] | ∞ | Condition 2 and Inequality 13 hold at any radius that the other two terms of Equation 3 allow |
//! | δ_max | (0, ∞) | 10⁶ | longer steps would change ω beyond the range of numbers |
//!
//! At usual radii, λ rejects no step before the fit has converged. A larger α reduces the number of draws that
//! Inequality 11 requires. Lengths are in the metric of the family's Fisher information (see [`crate::trust`]), so no
//! length depends on the units of the data.

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use crate::engine::MethodSettings;
use crate::policy::DENSE;

use crate::calls::PRODUCT_BATCH;
use crate::sizes;

/// The settings of [`Trust`](super::Trust).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrustSettings {
    /// The share η of the predicted improvement that a step must achieve.
    pub eta: f64,
    /// The factor γ by which the region grows and shrinks.
    pub gamma: f64,
    /// The parameter λ. A step with `η m′ < λ δ²` is rejected without an assessment.
    pub lambda: f64,
    /// The weight α of δ² in the potential `φ = L − α δ²`.
    pub alpha: f64,
    /// The parameter ν₁ of Inequality 13.
    pub nu1: f64,
    /// The parameter ν₂ of Condition 2, which concerns the norm of a good gradient.
    pub nu2: f64,
    /// The parameter ν₃ of Condition 2, which concerns the direction of a good gradient.
    pub nu3: f64,
    /// The required probability ζ₀ of a good gradient.
    pub zeta0: f64,
    /// The required probability ζ₁ of accepting a good step.
    pub zeta1: f64,
    /// The largest allowed curvature κ_H of a model, in the metric of the region.
    pub kappa_h: f64,
    /// The largest radius δ⁻ at which TrustVI enforces Inequality 13. By default it is infinite.
    #[serde(with = "unbounded")]
    pub delta_minus: f64,
    /// The largest radius δ_max of the region.
    pub delta_max: f64,
    /// The initial radius δ₀. A step of length δ has a Kullback–Leibler divergence of about ½δ² nats.
    pub delta0: f64,
    /// The initial and smallest number of draws for a gradient. The default is a quarter of the paper's minibatch,
    /// because few draws suffice far from an optimum. The jackknife rule adds draws if necessary.
    pub gradient_draws: usize,
    /// The number of draws for Hessian-vector products.
    pub hessian_draws: usize,
    /// The initial and smallest number of draws for the assessment of a step. The default is half of the paper's
    /// minibatch, because few draws suffice far from an optimum.
    pub change_draws: usize,
    /// The largest number of draws for a gradient or an assessment.
    pub max_draws: usize,
    /// The largest dimension in which TrustVI computes the Hessian of a mean-field family explicitly.
    pub explicit_limit: usize,
    /// The tolerance of the stopping rule, in nats. A fit has converged if the predicted improvement of the ELBO is
    /// below it. `None` means 0.0003 per dimension, but at least 0.01. A loss of 0.0003 nats moves a mean by 0.024
    /// standard deviations.
    pub tolerance: Option<f64>,
    /// The largest number of iterations.
    pub max_iterations: u64,
}

impl Default for TrustSettings {
    fn default() -> Self {
        Self {
            eta: 0.3,
            gamma: 2.0,
            lambda: 1e-10,
            alpha: 0.5,
            nu1: 0.2,
            nu2: 0.5,
            nu3: 0.2,
            zeta0: 0.9,
            zeta1: 0.8,
            kappa_h: 1e16,
            delta_minus: f64::INFINITY,
            delta_max: 1e6,
            delta0: 3.0,
            gradient_draws: 64,
            hessian_draws: PRODUCT_BATCH,
            change_draws: 64,
            max_draws: 1 << 14,
            explicit_limit: DENSE,
            tolerance: None,
            max_iterations: 200,
        }
    }
}

impl TrustSettings {
    /// Returns the tolerance in nats for d coordinates.
    pub fn tolerance(&self, dim: usize) -> f64 {
        self.tolerance.unwrap_or((3.0 * dim as f64 / 1e4).max(0.01))
    }

    /// Returns the constants τ₁ and τ₂ of Equation 12.
    pub fn tau(&self) -> (f64, f64) {
        let shrunk = self.gamma.powi(-2);
        (
            self.alpha * (1.0 - shrunk) - self.lambda,
            self.alpha * (self.gamma * self.gamma - shrunk),
        )
    }
}

impl MethodSettings for TrustSettings {
    const NAME: &'static str = "trust";

    fn validate(&self) -> Result<(), SettingError> {
        let least_alpha = self.lambda / (1.0 - self.gamma.powi(-2));
        let open = |name: &str, x: f64, low: f64, high: f64| {
            (x > low && x < high).then_some(()).ok_or_else(|| {
                SettingError::new(format!(
                    "the setting {name} is {x}, but must be between {low} and {high}"
                ))
            })
        };
        let inf = f64::INFINITY;
        if self.eta == 0.5 {
            // If the range is finite, its other end is open.
        } else {
            open("eta", self.eta, 0.0, 0.5)?;
        }
        open("gamma", self.gamma, 1.0, inf)?;
        open("lambda", self.lambda, 0.0, inf)?;
        open("alpha", self.alpha, least_alpha, inf)?;
        open("nu1", self.nu1, 0.0, 1.0 - self.eta)?;
        open("nu2", self.nu2, 0.0, 1.0)?;
        open("nu3", self.nu3, 0.0, 1.0 - self.eta - self.nu1)?;
        open("zeta0", self.zeta0, 0.5, 1.0)?;
        open("zeta1", self.zeta1, 0.5 / self.zeta0, 1.0)?;
        if self.kappa_h != 0.0 {
            open("kappa_h", self.kappa_h, 0.0, inf)?;
        }
        if self.delta_minus != inf {
            open("delta_minus", self.delta_minus, 0.0, inf)?;
        }
        open("delta_max", self.delta_max, 0.0, inf)?;
        if self.delta0 != self.delta_max {
            open("delta0", self.delta0, 0.0, self.delta_max)?;
        }
        open("tolerance", self.tolerance.unwrap_or(1.0), 0.0, inf)?;
        let counts = [
            ("gradient_draws", self.gradient_draws),
            ("hessian_draws", self.hessian_draws),
            ("change_draws", self.change_draws),
            ("max_draws", self.max_draws),
            ("max_iterations", self.max_iterations as usize),
        ];
        for (name, count) in counts {
            open(name, count as f64, 0.0, inf)?;
        }
        Ok(())
    }

    /// The method processes draws in blocks, so the size of its matrices does not depend on the number of draws.
    fn lanes(&self, _dim: usize) -> usize {
        sizes::LANES
    }
}

/// The settings of TrustVI with minibatches of records.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordTrust {
    /// The settings of TrustVI itself.
    pub trust: TrustSettings,
    /// The number of records per minibatch.
    pub batch: usize,
    /// Whether the joint control variate with one snapshot reduces the noise. It needs a matrix of all pairs of
    /// coordinates, and four times as many evaluations of records per draw.
    pub controlled: bool,
}

impl RecordTrust {
    /// The largest number of coordinates with which the control variate can be used.
    pub const MOST_CONTROLLED: usize = DENSE;
}

impl MethodSettings for RecordTrust {
    const NAME: &'static str = TrustSettings::NAME;

    fn validate(&self) -> Result<(), SettingError> {
        self.trust.validate()
    }

    fn lanes(&self, dim: usize) -> usize {
        self.trust.lanes(dim)
    }

    fn batch(&self) -> Option<usize> {
        Some(self.batch)
    }
}

/// An unbounded setting is stored as `null`, because JSON has no infinity.
mod unbounded {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(x: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        x.is_finite().then_some(*x).serialize(serializer)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_of_table_one_is_enforced() {
        let usual = TrustSettings::default();
        assert_eq!(usual.validate(), Ok(()));
        let half = TrustSettings { eta: 0.5, ..usual };
        assert_eq!(half.validate(), Ok(()));
        type Change = fn(&mut TrustSettings);
        let wrong: [(&str, Change); 16] = [
            ("eta", |s| s.eta = 0.0),
            ("eta", |s| s.eta = 0.51),
            ("gamma", |s| s.gamma = 1.0),
            ("lambda", |s| s.lambda = 0.0),
            ("alpha", |s| s.alpha = s.lambda / (1.0 - s.gamma.powi(-2))),
            ("nu1", |s| s.nu1 = 0.75),
            ("nu2", |s| s.nu2 = 1.0),
            ("nu3", |s| s.nu3 = 0.56),
            ("zeta0", |s| s.zeta0 = 0.5),
            ("zeta1", |s| s.zeta1 = 0.55),
            ("kappa_h", |s| s.kappa_h = -1.0),
            ("delta_minus", |s| s.delta_minus = 0.0),
            ("delta_max", |s| s.delta_max = f64::INFINITY),
            ("delta0", |s| s.delta0 = 2.0 * s.delta_max),
            ("tolerance", |s| s.tolerance = Some(0.0)),
            ("gradient_draws", |s| s.gradient_draws = 0),
        ];
        for (name, change) in wrong {
            let mut settings = usual;
            change(&mut settings);
            let error = settings.validate().unwrap_err().to_string();
            assert!(error.contains(&format!("setting {name} ")), "{error}");
        }
    }

    #[test]
    fn settings_survive_json() {
        let usual = TrustSettings::default();
        let text = serde_json::to_string(&usual).unwrap();
        assert_eq!(serde_json::from_str::<TrustSettings>(&text).unwrap(), usual);
    }

    #[test]
    fn tau_by_hand() {
        // With α = 2, γ = 2 and λ = 1, Lemma 1 fails outside its range.
        let settings = TrustSettings {
            alpha: 2.0,
            lambda: 1.0,
            ..TrustSettings::default()
        };
        assert_eq!(settings.tau(), (0.5, 7.5));
    }
}
