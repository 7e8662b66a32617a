//! What a fit is asked to do.

use jensen_math::simd::Simd;
use serde::{Deserialize, Serialize};

use crate::advi::AdviSettings;
use crate::bbvi::BbviSettings;
use crate::family::FamilyKind;
use crate::hfsgvi::HfsgviSettings;
use crate::saa::SaaSettings;
use crate::starts::StartSettings;
use crate::trust::TrustSettings;

/// Which algorithm optimises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The default: mean fields by TrustVI, and by Newton rounds on fixed draws from where it stopped should its
    /// rule not hold there; richer families by Newton rounds on fixed draws.
    Auto(AutoSettings),
    /// TrustVI: stochastic trust regions, after a robust start.
    Trust(TrustSettings),
    /// Hessian-free Newton steps without a trust region, from the initial point: a baseline.
    Hfsgvi(HfsgviSettings),
    /// Newton rounds on fixed draws, after a robust start.
    Saa(SaaSettings),
    /// ADVI as Stan defines it, from the initial point, without a robust start.
    Advi(AdviSettings),
    /// Stochastic gradients, after a robust start.
    Bbvi(BbviSettings),
}

impl Method {
    /// The method's name in traces and checkpoints.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Auto(_) => "auto",
            Self::Trust(_) => "trust",
            Self::Hfsgvi(_) => "hfsgvi",
            Self::Saa(_) => "saa",
            Self::Advi(_) => "advi",
            Self::Bbvi(_) => "bbvi",
        }
    }
}

/// Settings of [`Method::Auto`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoSettings {
    /// Of TrustVI.
    pub trust: TrustSettings,
    /// Of the Newton rounds.
    pub saa: SaaSettings,
}

impl Default for AutoSettings {
    /// The defaults of both, but for TrustVI's limit on iterations: where it takes long, the Newton rounds are faster.
    fn default() -> Self {
        Self {
            trust: TrustSettings {
                max_iterations: 50,
                ..TrustSettings::default()
            },
            saa: SaaSettings::default(),
        }
    }
}

/// Which family, or the policy that chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FamilyChoice {
    /// Mean-field first; when its k̂ is too large, full-rank (up to 400 dimensions) or low-rank,
    /// started from it. Both are reported.
    Auto,
    /// This one.
    Only(FamilyKind),
}

/// Everything that influences the result of a fit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Seed of every random number.
    pub seed: u64,
    /// Kernels; a checkpoint knows them by name.
    #[serde(skip, default = "Simd::detect")]
    pub simd: Simd,
    /// The algorithm.
    pub method: Method,
    /// The family.
    pub family: FamilyChoice,
    /// The start.
    pub start: StartSettings,
    /// Fresh draws of the final bound and of k̂; 8 or 32 times as many where k̂ is in doubt.
    pub evaluation_draws: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: 0,
            simd: Simd::detect(),
            method: Method::Auto(AutoSettings::default()),
            family: FamilyChoice::Auto,
            start: StartSettings::default(),
            evaluation_draws: 4096,
        }
    }
}

impl Settings {
    /// Checks that counts and tolerances are positive.
    ///
    /// # Errors
    /// One sentence that names the setting and its value.
    pub fn validate(&self) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            let good = value > 0.0 && value.is_finite();
            good.then_some(())
                .ok_or_else(|| format!("the setting {name} must be positive, not {value}"))
        };
        positive("evaluation_draws", self.evaluation_draws as f64)?;
        positive("start.draws", self.start.draws as f64)?;
        positive("start.iterations", self.start.iterations as f64)?;
        if let FamilyChoice::Only(FamilyKind::LowRank { rank }) = self.family {
            positive("rank", rank as f64)?;
        }
        match self.method {
            Method::Auto(auto) => {
                let with = |method| Self {
                    method,
                    ..self.clone()
                };
                with(Method::Trust(auto.trust)).validate()?;
                with(Method::Saa(auto.saa)).validate()
            }
            Method::Trust(trust) => trust.validate(),
            Method::Hfsgvi(hfsgvi) => {
                positive("gradient_draws", hfsgvi.gradient_draws as f64)?;
                positive("hessian_draws", hfsgvi.hessian_draws as f64)?;
                positive("change_draws", hfsgvi.change_draws as f64)?;
                positive("refine", hfsgvi.refine)?;
                positive("max_products", hfsgvi.max_products as f64)?;
                positive("tolerance", hfsgvi.tolerance)?;
                positive("max_iterations", hfsgvi.max_iterations as f64)
            }
            Method::Saa(saa) => {
                positive("tolerance", saa.tolerance.unwrap_or(1.0))?;
                positive("first_draws", saa.first_draws.unwrap_or(1) as f64)?;
                positive("max_draws", saa.max_draws as f64)?;
                positive("max_products", saa.max_products as f64)
            }
            Method::Advi(advi) => {
                positive("grad_samples", advi.grad_samples as f64)?;
                positive("elbo_samples", advi.elbo_samples as f64)?;
                positive("eta", advi.eta.unwrap_or(1.0))?;
                positive("adapt_iterations", advi.adapt_iterations as f64)?;
                positive("eval_elbo", advi.eval_elbo as f64)?;
                positive("tol_rel_obj", advi.tol_rel_obj)?;
                positive("max_iterations", advi.max_iterations as f64)?;
                positive("tolerance", advi.tolerance)
            }
            Method::Bbvi(bbvi) => {
                positive("draws", bbvi.draws as f64)?;
                positive("window", bbvi.window as f64)?;
                positive("judges", bbvi.judges as f64)?;
                positive("step_size", bbvi.optimiser.step_size)?;
                positive("tolerance", bbvi.tolerance)
            }
        }
    }
}
