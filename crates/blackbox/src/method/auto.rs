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
    /// Of TrustVI.
    pub trust: TrustSettings,
    /// Newton's method on fixed draws.
    pub saa: SaaSettings,
}

impl Default for AutoSettings {
    /// The defaults of both, except TrustVI's limit on iterations: on slow fits Newton's method on fixed draws is
    /// faster.
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
    /// Mean fields are fitted by TrustVI and, if its rule does not hold at the end, as for funnels and kinks, by
    /// Newton's method on fixed draws; sparse precisions by natural gradients; conditionally structured Gaussians by
    /// nested Laplace approximations; mixtures by the moments of weighted draws; flows by stochastic gradients of many
    /// draws; other richer families by Newton's method on fixed draws.
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
