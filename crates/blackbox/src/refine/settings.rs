//! What a refinement is asked to do.

use serde::{Deserialize, Serialize};

use super::mixing::Ensemble;

/// When a fit is refined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefineWhen {
    /// Where method and family are the policy's choice, its approximation alone is not to be trusted and draws that mix
    /// would be: not where the posterior looks improper or has modes that chains do not go between. A method or family
    /// that was asked for is reported as it is.
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
    /// When a fit is refined at all.
    pub when: RefineWhen,
    /// Populations and chains of each.
    pub ensemble: Ensemble,
    /// Gradients, counted by draw, beyond which no further stationary phase is begun, up to a hundred coordinates; of more in
    /// inverse proportion, as their cost is at least proportional; of densities that are known to be cheap more, see
    /// [`limit`](Self::limit).
    pub max_gradients: u64,
}

/// Coordinates beyond which the limit on gradients falls.
const SCALED: u64 = 100;

/// Elementary operations that the limit on gradients allows where that is more, and how many times more at most.
const WORK: u64 = 16_000_000_000;
const CHEAP: u64 = 5;

impl Default for RefineSettings {
    /// Eight populations of 32 chains: 256 lanes fill a call to the density, and a nested R̂ of 1.01 is then as strict
    /// as 400 effective draws by the spread of the population means; with 16 populations it asks for 800, half as
    /// many transitions again on funnels. Two million gradients.
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
    /// These settings, at another time.
    pub fn of(when: RefineWhen) -> Self {
        Self {
            when,
            ..Self::default()
        }
    }

    /// Gradients beyond which a refinement of `dim` coordinates begins no further stationary phase, each of which takes `work`
    /// elementary operations, if that is known. Two million of a hundred coordinates are ten seconds to a minute, of
    /// twenty coordinates with few data a second: of such there may be five times as many.
    pub fn limit(&self, dim: usize, work: Option<u64>) -> u64 {
        let limit = self.max_gradients * SCALED / SCALED.max(dim as u64);
        // The map between coordinates takes a product with a matrix.
        let map = (dim * dim) as u64;
        let affordable = work.map_or(0, |work| WORK / (work + map).max(1));
        limit.max(affordable.min(CHEAP * limit))
    }

    /// Gradients that a refinement is allowed at least where the way to the coordinates costs no more than they are many, as of
    /// sparse precisions: those of a hundred and fifty transitions, whose steps the dimension's fourth root shortens.
    pub(super) fn least(&self, dim: usize) -> u64 {
        (self.max_gradients as f64 / 12.0 * (dim as f64 / SCALED as f64).powf(0.25)) as u64
    }

    /// Whether these are the defaults, which are not written: runs stored before there was refinement stay the same.
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
