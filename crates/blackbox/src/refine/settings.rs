//! The settings of a refinement.

use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

use super::mixing::Ensemble;

/// The condition under which a fit is refined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefineWhen {
    /// The fit is refined under three conditions: the policy chooses the method and the family, the approximation alone
    /// is not trusted, and mixed draws would be trusted. The last condition excludes posteriors that appear improper.
    /// It also excludes posteriors with several modes if chains do not move between the modes. A fit with a requested
    /// method or family is reported without refinement.
    #[default]
    Auto,
    /// The fit is never refined.
    Never,
    /// The fit is always refined.
    Always,
}

/// The settings of a refinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefineSettings {
    /// The condition under which the fit is refined.
    pub when: RefineWhen,
    /// The number of populations, and the number of chains in each population.
    pub ensemble: Ensemble,
}

impl Default for RefineSettings {
    /// Returns settings with eight populations of 32 chains, because 256 lanes make full use of one call of the
    /// density. With eight populations, the limit of 1.01 for nested R̂ is as strict as a limit of 400 effective draws.
    /// With 16 populations, it would be as strict as a limit of 800 effective draws, and funnels would need 1.5 times
    /// as many transitions.
    fn default() -> Self {
        Self {
            when: RefineWhen::Auto,
            ensemble: Ensemble {
                populations: 8,
                chains: 32,
            },
        }
    }
}

impl RefineSettings {
    /// Returns the default settings, but with the given condition for refinement.
    pub fn of(when: RefineWhen) -> Self {
        Self {
            when,
            ..Self::default()
        }
    }

    /// Default settings are omitted from files, so that the files of runs without refinement do not change.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that there is at least one population and one chain.
    ///
    /// # Errors
    /// Fails with a sentence that contains the setting and its value.
    pub fn validate(&self) -> Result<(), SettingError> {
        let Ensemble {
            populations,
            chains,
        } = self.ensemble;
        if populations < 2 || chains < 2 {
            return Err(SettingError::new(format!(
                "a refinement needs at least two populations of at least two chains, not {populations} of \
                 {chains}"
            )));
        }
        Ok(())
    }
}
