//! Schedules for the two terms of the bound: annealing of the likelihood, and warm-up of the divergence.

use jensen_run::temperature::{annealed, interpolated};
use serde::{Deserialize, Serialize};

/// The policy for the temperature T. Training uses `log p(x | z) / T` in place of the log likelihood. The policies have
/// the same names as those of the conjugate models.
///
/// These policies prescribe a temperature, which is computed by the same functions as for conjugate models. Policies
/// that infer a temperature are not available, because they need expectations that only conjugate models have. For
/// auto-encoders, a schedule may go below 1.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temper {
    /// No tempering: T = 1 throughout training.
    #[default]
    None,
    /// The temperature falls from `from` to 1, linearly in the number of passes.
    Anneal {
        /// Length of the schedule, in passes over the data.
        passes: f64,
        /// The temperature at the start, which is at least 1.
        from: f64,
    },
    /// Temperatures at given passes. Between these passes, the temperature is interpolated linearly. Before the first
    /// and after the last of them, it is constant.
    Schedule(Vec<(f64, f64)>),
}

impl Temper {
    /// Returns the temperature after `passes` passes over the data.
    pub fn temperature(&self, passes: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Anneal {
                passes: length,
                from,
            } => annealed(*from, *length, passes),
            Self::Schedule(points) => interpolated(points, passes),
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Fails with a message for the user if a setting is invalid.
    pub fn check(&self) -> Result<(), String> {
        let good = |t: f64| t.is_finite() && t > 0.0;
        match self {
            Self::None => Ok(()),
            Self::Anneal { passes, from } if good(*passes) && from.is_finite() && *from >= 1.0 => {
                Ok(())
            }
            Self::Anneal { .. } => Err(
                "annealing needs a positive number of passes and a temperature of at least 1"
                    .to_owned(),
            ),
            Self::Schedule(points) => {
                let ordered = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
                if !points.is_empty() && ordered && points.iter().all(|&(_, t)| good(t)) {
                    Ok(())
                } else {
                    Err("a schedule needs increasing passes and positive temperatures".to_owned())
                }
            }
        }
    }
}
