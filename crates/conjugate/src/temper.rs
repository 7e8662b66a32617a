//! Temperature policies: how the likelihood is weighed while a model is fitted.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The grid of temperatures of global variational tempering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GlobalTempering {
    /// Number M of temperatures, at least 2.
    pub temperatures: usize,
    /// The highest of them; the lowest is 1, and they are spaced exponentially.
    pub hottest: f64,
    /// Draws of the globals from the prior for log C(T).
    pub draws: usize,
    /// How often a pass r is updated in stochastic fits; batch fits update it once an iteration.
    pub updates_per_pass: f64,
    /// The weight of the newest estimate of the corpus' expected log likelihood, in (0, 1].
    pub damping: f64,
}

impl Default for GlobalTempering {
    fn default() -> Self {
        Self {
            temperatures: 100,
            hottest: 10.0,
            draws: 100,
            updates_per_pass: 100.0,
            damping: 0.1,
        }
    }
}

/// The grid of inverse temperatures of local variational tempering.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalTempering {
    /// Number M of inverse temperatures, evenly spaced in [0, 1] with both ends; at least 2.
    pub temperatures: usize,
    /// How often a pass the expected log normalisers are refreshed in stochastic fits; batch fits refresh them once an
    /// iteration.
    pub refreshes_per_pass: f64,
}

impl Default for LocalTempering {
    fn default() -> Self {
        Self {
            temperatures: 100,
            refreshes_per_pass: 20.0,
        }
    }
}

/// A temperature policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temper {
    /// The model as it is: T = 1 throughout.
    #[default]
    None,
    /// The temperature falls linearly in passes from `from` to 1.
    Anneal {
        /// Length of the schedule in passes; in batch fits, in iterations.
        passes: f64,
        /// The temperature at the start, at least 1.
        from: f64,
    },
    /// Temperatures at given passes, linear in between and constant outside.
    Schedule(Vec<(f64, f64)>),
    /// One temperature for the whole of the data, inferred (variational tempering).
    Global(GlobalTempering),
    /// One temperature for every data point, inferred (local variational tempering).
    Local(LocalTempering),
}

impl Temper {
    /// The linear schedule that begins at the mean of the default grid of [`GlobalTempering`], as in the paper's
    /// comparisons.
    pub fn anneal(passes: f64) -> Self {
        let grid = GlobalTempering::default().grid();
        Self::Anneal {
            passes,
            from: grid.iter().sum::<f64>() / grid.len() as f64,
        }
    }

    /// The policy's name in files: `none`, `anneal`, `schedule`, `global`, `local`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Anneal { .. } => "anneal",
            Self::Schedule(_) => "schedule",
            Self::Global(_) => "global",
            Self::Local(_) => "local",
        }
    }

    /// What is wrong with the settings, if anything.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::None => Ok(()),
            Self::Anneal { passes, from } => {
                if !(passes.is_finite() && *passes > 0.0) {
                    return Err(format!(
                        "an annealing schedule takes a positive number of passes, not {passes}"
                    ));
                }
                if !(from.is_finite() && *from >= 1.0) {
                    return Err(format!(
                        "an annealing schedule starts at a temperature of at least 1, not {from}"
                    ));
                }
                Ok(())
            }
            Self::Schedule(points) => {
                let ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let valid = points
                    .iter()
                    .all(|&(pass, t)| pass.is_finite() && t.is_finite() && t >= 1.0);
                if points.is_empty() || !ascending || !valid {
                    return Err(
                        "a schedule lists ascending passes with temperatures of at least 1"
                            .to_owned(),
                    );
                }
                Ok(())
            }
            Self::Global(g) => {
                let finite = g.hottest.is_finite() && g.updates_per_pass.is_finite();
                if g.temperatures < 2 || !finite || g.hottest <= 1.0 {
                    return Err(
                        "global tempering takes two or more temperatures from 1 to a higher one"
                            .to_owned(),
                    );
                }
                if g.draws == 0
                    || g.updates_per_pass <= 0.0
                    || !(g.damping > 0.0 && g.damping <= 1.0)
                {
                    return Err(
                        "global tempering takes a positive number of draws and updates, and a damping in (0, 1]"
                            .to_owned(),
                    );
                }
                Ok(())
            }
            Self::Local(l) => {
                let rate = l.refreshes_per_pass;
                if l.temperatures < 2 || !(rate.is_finite() && rate > 0.0) {
                    return Err(
                        "local tempering takes two or more temperatures and a positive number of refreshes"
                            .to_owned(),
                    );
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Temper {
    type Err = String;

    /// Reads `none`, `anneal=PASSES`, `global` or `local`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "global" => Ok(Self::Global(GlobalTempering::default())),
            "local" => Ok(Self::Local(LocalTempering::default())),
            _ => match text.strip_prefix("anneal=").map(str::parse::<f64>) {
                Some(Ok(passes)) if passes.is_finite() && passes > 0.0 => Ok(Self::anneal(passes)),
                _ => Err(
                    "expected none, anneal=PASSES (such as anneal=0.1), global or local".to_owned(),
                ),
            },
        }
    }
}

impl GlobalTempering {
    /// The temperatures, ascending from 1.
    pub fn grid(&self) -> Vec<f64> {
        let last = (self.temperatures.max(2) - 1) as f64;
        (0..self.temperatures)
            .map(|m| self.hottest.powf(m as f64 / last))
            .collect()
    }
}

impl LocalTempering {
    /// The inverse temperatures, ascending from 0 to 1.
    pub fn grid(&self) -> Vec<f64> {
        let last = (self.temperatures.max(2) - 1) as f64;
        (0..self.temperatures).map(|m| m as f64 / last).collect()
    }
}
