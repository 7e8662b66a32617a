//! The policy that chooses the methods of a family.

use serde::{Deserialize, Serialize};

use super::Method;
use crate::bbvi::BbviSettings;
use crate::engine::MethodSettings;
use crate::family::{FamilyKind, Smoothness};
use crate::moments::MomentsSettings;
use crate::natural::NaturalSettings;
use crate::nested::NestedSettings;
use crate::saa::SaaSettings;
use crate::trust::TrustSettings;

/// Settings of [`Method::Auto`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoSettings {
    /// The settings of TrustVI.
    pub trust: TrustSettings,
    /// Newton's method on fixed draws.
    pub saa: SaaSettings,
}

impl Default for AutoSettings {
    /// The defaults of both methods, except for a lower limit on TrustVI's iterations, because Newton's method on fixed
    /// draws is faster for slow fits.
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

impl MethodSettings for AutoSettings {
    const NAME: &'static str = "auto";

    fn validate(&self) -> Result<(), String> {
        self.trust.validate()?;
        self.saa.validate()
    }

    fn lanes(&self, dim: usize) -> usize {
        self.saa.lanes(dim)
    }

    fn suits(&self, _smoothness: Smoothness) -> bool {
        true
    }
}

impl AutoSettings {
    /// The method depends on the family. Mean-field families use TrustVI and, if its stopping rule is not met at the
    /// end, as for funnels and kinks, Newton's method on fixed draws. Sparse precisions use natural gradients,
    /// conditionally structured Gaussians use nested Laplace approximations, mixtures use the moments of weighted
    /// draws, and flows use stochastic gradients of many draws. Other richer families use Newton's method on fixed
    /// draws.
    pub(super) fn plan(&self, kind: FamilyKind) -> Vec<Method> {
        let rounds = Method::Saa(self.saa).plan(kind);
        match kind {
            FamilyKind::MeanField => [vec![self.trust.into()], rounds].concat(),
            FamilyKind::Sparse => Method::Natural(NaturalSettings {
                tolerance: self.saa.tolerance,
                ..NaturalSettings::default()
            })
            .plan(kind),
            FamilyKind::Conditional => vec![NestedSettings::default().into()],
            FamilyKind::Mixture { .. } => vec![MomentsSettings::default().into()],
            FamilyKind::Flow { .. } => vec![BbviSettings::of_flows().into()],
            _ => rounds,
        }
    }
}
