//! The automatic choice of the methods for a family.

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use super::Method;
use crate::bbvi::BbviSettings;
use crate::engine::MethodSettings;
use crate::family::{Family, FamilyKind, Smoothness};
use crate::moments::MomentsSettings;
use crate::natural::NaturalSettings;
use crate::nested::NestedSettings;
use crate::saa::SaaSettings;
use crate::trust::TrustSettings;

/// The settings of [`Method::Auto`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoSettings {
    /// The settings of TrustVI.
    pub trust: TrustSettings,
    /// The settings of Newton's method on fixed draws.
    pub saa: SaaSettings,
}

impl Default for AutoSettings {
    /// Returns the defaults of both methods, but with a smaller limit on the number of TrustVI iterations. For slow
    /// fits, Newton's method on fixed draws is faster.
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

    fn validate(&self) -> Result<(), SettingError> {
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
    /// The methods depend on the family. A mean-field family uses TrustVI. For funnels and densities with kinks,
    /// TrustVI may end before its stopping rule is met, and then Newton's method on fixed draws continues. The sparse
    /// family uses natural gradients, and the conditionally structured Gaussian uses nested Laplace approximations. For
    /// other families, the methods depend on the available derivatives. A family without derivatives, such as a
    /// mixture, uses the moments of weighted draws. A family with first derivatives, such as a flow, uses stochastic
    /// gradients of many draws. A family with second derivatives uses Newton's method on fixed draws.
    pub(super) fn plan(&self, family: &dyn Family) -> Vec<Method> {
        let rounds = Method::Saa(self.saa).plan(family);
        match (family.name().kind(), family.smoothness()) {
            // Natural gradients and nested Laplace approximations are implemented for one family each.
            (Some(FamilyKind::Sparse), _) => Method::Natural(NaturalSettings {
                tolerance: self.saa.tolerance,
                ..NaturalSettings::default()
            })
            .plan(family),
            (Some(FamilyKind::Conditional), _) => vec![NestedSettings::default().into()],
            (_, Smoothness::Twice) if family.is_factorised() => {
                [vec![self.trust.into()], rounds].concat()
            }
            (_, Smoothness::Twice) => rounds,
            (_, Smoothness::Path) => vec![BbviSettings::of_flows().into()],
            (_, Smoothness::None) => vec![MomentsSettings::default().into()],
        }
    }
}
