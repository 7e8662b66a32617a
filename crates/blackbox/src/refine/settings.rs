//! Settings of a refinement.

use serde::{Deserialize, Serialize};

use super::mixing::Ensemble;

/// When to refine a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefineWhen {
    /// Refine if the policy chooses method and family, the approximation alone is not trusted, and mixed draws would
    /// be. This excludes posteriors that look improper or have modes that chains do not connect. A fit with a requested
    /// method or family is reported without refinement.
    #[default]
    Auto,
    /// Never.
    Never,
    /// Always.
    Always,
}

/// Settings of a refinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RefineSettings {
    /// When to refine a fit.
    pub when: RefineWhen,
    /// Number of populations, and of chains in each.
    pub ensemble: Ensemble,
    /// Number of gradients (one per draw) after which no further stationary phase begins, for up to a hundred
    /// coordinates. Beyond that it is inversely proportional to the dimension, because the cost of a gradient is at
    /// least proportional to it. Cheap densities get more; see [`limit`](Self::limit).
    pub max_gradients: u64,
}

/// Coordinates beyond which the limit on gradients falls.
const SCALED: u64 = 100;

/// Number of elementary operations that the budget of gradients allows if that is more, and the largest ratio.
const WORK: u64 = 16_000_000_000;
const CHEAP: u64 = 5;

impl Default for RefineSettings {
    /// Eight populations of 32 chains: 256 lanes fill a call to the density. A nested R̂ of 1.01 is then as strict as
    /// 400 effective draws by the spread of the population means; With 16 populations it is as strict as 800, which
    /// takes 50 % more transitions on funnels. Two million gradients.
    fn default() -> Self {
        Self {
            when: RefineWhen::Auto,
            ensemble: Ensemble {
                populations: 8,
                chains: 32,
            },
            max_gradients: 2_000_000,
        }
    }
}

impl RefineSettings {
    /// These settings with another condition for refinement.
    pub fn of(when: RefineWhen) -> Self {
        Self {
            when,
            ..Self::default()
        }
    }

    /// Number of gradients beyond which a refinement of `dim` coordinates starts no further stationary phase, given
    /// `work`, the elementary operations of a gradient, if known. Two million gradients of a hundred coordinates take
    /// ten seconds to a minute, and two million gradients of twenty coordinates with few data take a second. The latter
    /// may have five times as many.
    pub fn limit(&self, dim: usize, work: Option<u64>) -> u64 {
        let limit = self.max_gradients * SCALED / SCALED.max(dim as u64);
        // The map between coordinates takes a product with a matrix.
        let map = (dim * dim) as u64;
        let affordable = work.map_or(0, |work| WORK / (work + map).max(1));
        limit.max(affordable.min(CHEAP * limit))
    }

    /// Smallest budget of gradients if the map costs no more than a multiple of the dimension, as for sparse
    /// precisions: a hundred and fifty transitions, whose steps shrink with the fourth root of the dimension.
    pub(super) fn least(&self, dim: usize) -> u64 {
        (self.max_gradients as f64 / 12.0 * (dim as f64 / SCALED as f64).powf(0.25)) as u64
    }

    /// Whether these are the defaults, which are not written, so that runs stored without refinement stay the same.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Checks that there are populations and chains.
    ///
    /// # Errors
    /// One sentence that names the setting and its value.
    pub fn validate(&self) -> Result<(), String> {
        let Ensemble {
            populations,
            chains,
        } = self.ensemble;
        if populations < 2 || chains < 2 {
            return Err(format!(
                "a refinement needs two populations of two chains or more, not {populations} of {chains}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_densities_are_given_more_gradients_and_others_none_fewer() {
        let settings = RefineSettings::default();
        let most = settings.max_gradients;
        assert_eq!(settings.limit(20, None), most);
        assert_eq!(settings.limit(1000, None), most / 10);
        assert_eq!(settings.limit(20, Some(100)), CHEAP * most);
        assert_eq!(settings.limit(20, Some(1 << 40)), most);
        assert_eq!(settings.limit(1000, Some(1000)), most / 10);
        let between = settings.limit(25, Some(1231));
        assert_eq!(settings.least(100), most / 12);
        assert_eq!(settings.least(1_000_000), 10 * (most / 12) + 6);
        assert!(
            most < between && between < CHEAP * most,
            "{between} gradients"
        );
    }
}
