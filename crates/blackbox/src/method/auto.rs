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
    /// Mean fields by TrustVI, and by Newton rounds where its rule does not hold in the end, as for funnels and
    /// kinks; sparse precisions by natural gradients; local parameters given global ones by nested Laplace
    /// approximations; mixtures by the moments of weighted draws; flows by
    /// stochastic gradients of many draws; other richer families by those rounds from the beginning.
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
