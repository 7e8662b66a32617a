//! Temperature policies, which determine the weight of the likelihood during a fit.

use std::str::FromStr;

use jensen_math::special;
use jensen_run::SettingError;
use serde::{Deserialize, Serialize};

/// Settings of global variational tempering. They define the grid of temperatures and the updates of the distribution r
/// over this grid.
///
/// Stochastic fits begin with r uniform over the grid, as in the paper. Batch ascent begins at the hottest temperature,
/// because it forgets its random start only while assignments are soft.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GlobalTempering {
    /// Number M of temperatures in the grid, at least 2.
    pub temperatures: usize,
    /// The highest temperature. The lowest temperature is 1, and the temperatures form a geometric sequence.
    pub hottest: f64,
    /// Number of prior draws of the global parameters in the estimate of log C(T), as in the paper. By default, topic
    /// models use a lower bound in closed form, and other models that need draws make [`DRAWS`] of them.
    pub draws: Option<usize>,
    /// Number of updates of r per pass in stochastic fits. Batch fits update r once per iteration.
    pub updates_per_pass: f64,
    /// Number of iterations between two updates of r in stochastic fits, instead of `updates_per_pass`.
    pub every: Option<u64>,
    /// The initial temperature.
    pub start: HeatStart,
    /// The weight of the new r in its average with the old r, in (0, 1]. In stochastic fits it is also the weight of
    /// the newest estimate of the expected log likelihood of the corpus.
    pub damping: f64,
    /// The temperature is 1 after this number of passes, or of iterations in batch ascent (see [`cooled`]). The paper
    /// has no cooling.
    pub cooling: Option<f64>,
}

/// Default number of prior draws. The paper finds that fewer draws suffice.
pub const DRAWS: usize = 100;

/// The initial value of an inferred global temperature. The objective can have two maxima, one near T = 1 and one at a
/// high temperature, and the initial value decides which of them a fit finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeatStart {
    /// Uniform r in stochastic fits, as in the paper. In batch fits, r is concentrated at the hottest temperature.
    #[default]
    Warm,
    /// r is concentrated at T = 1.
    Cold,
    /// Both of the other starts. The fit makes two runs, which advance together. The fit keeps the result with the
    /// larger bound of the tempered model. Only topic models support this setting.
    Both,
}

impl FromStr for HeatStart {
    type Err = SettingError;

    fn from_str(text: &str) -> Result<Self, SettingError> {
        match text {
            "warm" => Ok(Self::Warm),
            "cold" => Ok(Self::Cold),
            "both" => Ok(Self::Both),
            _ => Err(SettingError::new(format!(
                "a temperature starts warm, cold or both, not `{text}`"
            ))),
        }
    }
}

impl Default for GlobalTempering {
    fn default() -> Self {
        Self {
            temperatures: 100,
            hottest: 10.0,
            draws: None,
            updates_per_pass: 50.0,
            every: None,
            start: HeatStart::default(),
            damping: 0.2,
            cooling: None,
        }
    }
}

/// Settings of local variational tempering: the grid of inverse temperatures and their prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalTempering {
    /// Number M of inverse temperatures in the grid, at least 2. They are evenly spaced in [0, 1], including both ends.
    pub temperatures: usize,
    /// Parameters a and b, both at least 1, of the prior Beta(a, b) of a continuous 1/T. Integrals over this prior use
    /// the trapezoidal rule with the M inverse temperatures as nodes. Without this prior, 1/T has M possible values
    /// with equal probabilities.
    #[serde(default)]
    pub beta: Option<(f64, f64)>,
    /// The expected log normalisers are computed again whenever the step sizes since the last computation add up to
    /// this value. This sum measures how much the global parameters have changed. Batch fits compute them in every
    /// iteration.
    pub refresh: f64,
    /// Every temperature is 1 after this number of passes, or of iterations in batch ascent (see [`cooled`]). The paper
    /// has no cooling.
    pub cooling: Option<f64>,
}

impl Default for LocalTempering {
    fn default() -> Self {
        Self {
            temperatures: 100,
            beta: None,
            refresh: 0.3,
            cooling: None,
        }
    }
}

/// Returns the smallest inverse temperature that a cooling over `passes` passes allows after `pass` passes. It rises
/// linearly from `coldest` to 1. Without a cooling it is 0.
///
/// Inferred temperatures converge to the values that the model prefers, and these values need not be 1. The cooling
/// gradually removes the hot end of the grid, so the last stage is plain inference at T = 1, whatever temperatures are
/// inferred.
pub fn cooled(passes: Option<f64>, coldest: f64, pass: f64) -> f64 {
    passes.map_or(0.0, |passes| {
        let done = (pass / passes).min(1.0);
        coldest + (1.0 - coldest) * done
    })
}

/// The length of a fit. Messages use it to give advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Length {
    /// Number of passes, or of iterations of batch ascent, that the fit may take.
    pub planned: f64,
    /// Number of passes that a cooling should take in a fit of this length.
    pub cooling: f64,
    /// The command-line flag that makes the fit longer.
    pub flag: &'static str,
}

/// A temperature policy of a fit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Temper {
    /// No tempering: T = 1 throughout the fit.
    #[default]
    None,
    /// The temperature falls from `from` to 1, linearly in the number of passes.
    Anneal {
        /// Length of the schedule, in passes of stochastic fits or in iterations of batch fits.
        passes: f64,
        /// The temperature at the start, which is at least 1.
        from: f64,
    },
    /// Temperatures at given passes. Between these passes, the temperature is interpolated linearly. Before the first
    /// and after the last of them, it is constant.
    Schedule(Vec<(f64, f64)>),
    /// One inferred temperature for all data (variational tempering).
    Global(GlobalTempering),
    /// One inferred temperature per data point (local variational tempering).
    Local(LocalTempering),
}

impl Temper {
    /// Returns a linear schedule. As in the comparisons of the paper, it begins at the mean temperature of the default
    /// grid of [`GlobalTempering`].
    pub fn anneal(passes: f64) -> Self {
        let grid = GlobalTempering::default().grid();
        Self::Anneal {
            passes,
            from: grid.iter().sum::<f64>() / grid.len() as f64,
        }
    }

    /// Adds a cooling that takes `passes` passes, if the policy infers one common temperature and has no cooling yet.
    /// An infinite number of passes means no cooling.
    #[must_use]
    pub fn with_cooling(mut self, passes: f64) -> Self {
        if let Self::Global(global) = &mut self {
            global.cooling.get_or_insert(passes);
        }
        if let Self::Global(GlobalTempering { cooling, .. })
        | Self::Local(LocalTempering { cooling, .. }) = &mut self
        {
            *cooling = cooling.filter(|passes| passes.is_finite());
        }
        self
    }

    /// Returns whether the fit makes two runs, which start at opposite ends of the grid of temperatures.
    pub fn from_both_ends(&self) -> bool {
        matches!(self, Self::Global(global) if global.start == HeatStart::Both)
    }

    /// Returns the number of passes, or of iterations in batch ascent, after which the temperature is 1. Returns `None`
    /// if the policy does not heat or does not prescribe the temperature.
    pub fn cooled_after(&self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::Anneal { passes, from } => (*from > 1.0).then_some(*passes),
            Self::Schedule(points) => {
                let heats = points.iter().any(|point| point.1 > 1.0);
                let last = points.last().filter(|last| heats && last.1 == 1.0);
                last.map(|last| last.0)
            }
            Self::Global(GlobalTempering { cooling, .. })
            | Self::Local(LocalTempering { cooling, .. }) => *cooling,
        }
    }

    /// Returns advice for a fit with this policy that ended at a temperature above 1: the flags with which it would end
    /// at temperature 1.
    pub fn remedy(&self, length: &Length) -> String {
        let Length {
            planned,
            cooling,
            flag,
        } = length;
        let name = self.name();
        match self {
            Self::Global(GlobalTempering { cooling: None, .. })
            | Self::Local(LocalTempering { cooling: None, .. }) => {
                let longer = 2.0 * cooling;
                let longer = if *planned < longer {
                    format!(" {flag} {longer}")
                } else {
                    String::new()
                };
                format!("Fit again with a cooling schedule: `--temper {name}={cooling}{longer}`.")
            }
            Self::Anneal { passes, .. }
            | Self::Global(GlobalTempering {
                cooling: Some(passes),
                ..
            })
            | Self::Local(LocalTempering {
                cooling: Some(passes),
                ..
            }) => format!(
                "Double its length with `{flag} {}`, and with `--resume` if it is stored.",
                2.0 * passes
            ),
            Self::None | Self::Schedule(_) => {
                "Let the schedule end at temperature 1, and run all of its passes.".to_owned()
            }
        }
    }

    /// Returns the policy's name in files: `none`, `anneal`, `schedule`, `global`, `local`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Anneal { .. } => "anneal",
            Self::Schedule(_) => "schedule",
            Self::Global(_) => "global",
            Self::Local(_) => "local",
        }
    }

    /// Checks the settings of the policy.
    pub fn check(&self) -> Result<(), SettingError> {
        match self {
            Self::None => Ok(()),
            Self::Anneal { passes, from } => {
                if !(passes.is_finite() && *passes > 0.0) {
                    return Err(SettingError::new(format!(
                        "an annealing schedule needs a positive number of passes, not {passes}"
                    )));
                }
                if !(from.is_finite() && *from >= 1.0) {
                    return Err(SettingError::new(format!(
                        "an annealing schedule starts at a temperature of at least 1, not {from}"
                    )));
                }
                Ok(())
            }
            Self::Schedule(points) => {
                let ascending = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
                let valid = points
                    .iter()
                    .all(|&(pass, t)| pass.is_finite() && t.is_finite() && t >= 1.0);
                if points.is_empty() || !ascending || !valid {
                    return Err(SettingError::new(
                        "a schedule needs ascending passes with temperatures of at least 1",
                    ));
                }
                Ok(())
            }
            Self::Global(GlobalTempering {
                cooling: Some(passes),
                ..
            })
            | Self::Local(LocalTempering {
                cooling: Some(passes),
                ..
            }) if !(passes.is_finite() && *passes > 0.0) => Err(SettingError::new(format!(
                "a cooling schedule needs a positive number of passes, not {passes}"
            ))),
            Self::Global(g) => {
                let finite = g.hottest.is_finite() && g.updates_per_pass.is_finite();
                if g.temperatures < 2 || !finite || g.hottest <= 1.0 {
                    return Err(SettingError::new(
                        "global tempering needs two or more temperatures from 1 to a higher one",
                    ));
                }
                if g.draws == Some(0)
                    || g.every == Some(0)
                    || g.updates_per_pass <= 0.0
                    || !(g.damping > 0.0 && g.damping <= 1.0)
                {
                    return Err(SettingError::new(
                        "global tempering needs a positive number of draws and updates, and a damping in \
                         (0, 1]",
                    ));
                }
                Ok(())
            }
            Self::Local(l) => {
                if l.temperatures < 2 || !(l.refresh.is_finite() && l.refresh > 0.0) {
                    return Err(SettingError::new(
                        "local tempering needs two or more temperatures and a positive sum of steps between \
                         refreshes",
                    ));
                }
                if let Some((a, b)) = l.beta
                    && !(a.is_finite() && b.is_finite() && a >= 1.0 && b >= 1.0)
                {
                    return Err(SettingError::new(format!(
                        "the beta prior of inverse temperatures needs two numbers of at least 1, not {a} and {b}"
                    )));
                }
                Ok(())
            }
        }
    }
}

const POLICIES: &str = "expected none, anneal=PASSES[:FROM] (such as anneal=0.1 or anneal=0.1:5), schedule=PASS:T,PASS:T,…, \
                        global[=PASSES[:HOTTEST[:TEMPERATURES[:START[:DRAWS:EVERY]]]]] or local[=PASSES[:TEMPERATURES[:A:B]]]";

impl FromStr for Temper {
    type Err = SettingError;

    /// Parses a policy:
    ///
    /// | text | policy |
    /// | --- | --- |
    /// | `none` | [`Temper::None`] |
    /// | `anneal=PASSES[:FROM]` | [`Temper::Anneal`], from the mean of the default grid by default |
    /// | `schedule=PASS:T,PASS:T,…` | [`Temper::Schedule`] |
    /// | `global[=PASSES[:HOTTEST[:TEMPERATURES[:START[:DRAWS:EVERY]]]]]` | [`Temper::Global`] with a cooling, the hottest temperature, the size of the grid, a [`HeatStart`], draws for log C, and iterations between updates of r, which are then undamped as in the paper |
    /// | `local[=PASSES[:TEMPERATURES[:A:B]]]` | [`Temper::Local`] with a cooling and the size of the grid; with A and B, 1/T is continuous and has a beta prior |
    ///
    /// With `inf` passes, there is no cooling.
    fn from_str(text: &str) -> Result<Self, SettingError> {
        let wrong = || SettingError::new(POLICIES);
        let (name, rest) = match text.split_once('=') {
            None => (text, None),
            Some((name, rest)) => (name, Some(rest)),
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
        if name == "schedule" {
            let points = rest.ok_or_else(wrong)?.split(',').map(|point| {
                let (pass, t) = point.split_once(':').ok_or_else(wrong)?;
                Ok((number(pass)?, number(t)?))
            });
            let schedule = Self::Schedule(points.collect::<Result<_, SettingError>>()?);
            schedule.check()?;
            return Ok(schedule);
        }
        let mut values = rest.into_iter().flat_map(|rest| rest.split(':'));
        let passes = values.next().map(number).transpose()?;
        // NaN fails every comparison, so it needs its own check.
        if passes.is_some_and(|passes| passes.is_nan() || passes <= 0.0) {
            return Err(wrong());
        }
        let policy = match (name, passes) {
            ("none", None) => Self::None,
            ("anneal", Some(passes)) if passes.is_finite() => match values.next() {
                None => Self::anneal(passes),
                Some(from) => Self::Anneal {
                    passes,
                    from: number(from)?,
                },
            },
            ("global", cooling) => {
                let usual = GlobalTempering::default();
                let hottest = values.next().map(number).transpose()?;
                let temperatures = grid_size(values.next(), usual.temperatures)?;
                let start = values.next().map(str::parse).transpose()?;
                let count = |text: &str| text.parse::<u64>().map_err(|_| wrong());
                let draws = values.next().map(count).transpose()?;
                let every = match draws {
                    None => None,
                    Some(_) => Some(count(values.next().ok_or_else(wrong)?)?),
                };
                Self::Global(GlobalTempering {
                    cooling,
                    hottest: hottest.unwrap_or(usual.hottest),
                    temperatures,
                    start: start.unwrap_or_default(),
                    draws: draws.map(|draws| draws as usize),
                    damping: every.map_or(usual.damping, |_| 1.0),
                    every,
                    ..usual
                })
            }
            ("local", cooling) => {
                let usual = LocalTempering::default();
                let temperatures = grid_size(values.next(), usual.temperatures)?;
                let beta = match values.next() {
                    None => None,
                    Some(a) => Some((number(a)?, number(values.next().ok_or_else(wrong)?)?)),
                };
                Self::Local(LocalTempering {
                    cooling,
                    temperatures,
                    beta,
                    ..usual
                })
            }
            _ => return Err(wrong()),
        };
        if values.next().is_some() {
            return Err(wrong());
        }
        // An infinite number of passes means no cooling. The text may ask for this, although it is not a valid setting
        // of a fit.
        policy.clone().with_cooling(f64::INFINITY).check()?;
        Ok(policy)
    }
}

/// Largest number of temperatures. Each temperature costs a sum over topics or points. A larger number is probably a
/// typing error.
const MOST_TEMPERATURES: usize = 10_000;

fn grid_size(text: Option<&str>, usual: usize) -> Result<usize, SettingError> {
    match text.map(str::parse) {
        None => Ok(usual),
        Some(Ok(size @ 2..=MOST_TEMPERATURES)) => Ok(size),
        Some(_) => Err(SettingError::new(format!(
            "a grid must have 2 to {MOST_TEMPERATURES} temperatures"
        ))),
    }
}

impl GlobalTempering {
    /// Returns the temperatures in ascending order, starting at 1.
    pub fn grid(&self) -> Vec<f64> {
        let last = (self.temperatures.max(2) - 1) as f64;
        (0..self.temperatures)
            .map(|m| self.hottest.powf(m as f64 / last))
            .collect()
    }
}

/// The inverse temperatures that a point may have, and their prior.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InverseTemperatures {
    /// The inverse temperatures in ascending order, from 0 to 1.
    pub values: Vec<f64>,
    /// Log prior probabilities log π_m, up to a common constant.
    pub log_prior: Vec<f64>,
}

impl InverseTemperatures {
    /// Returns the prior mean. Before a point is visited for the first time, this is its inverse temperature.
    pub fn mean(&self) -> f64 {
        let total = special::log_sum_exp_slice(&self.log_prior);
        let pairs = self.log_prior.iter().zip(&self.values);
        pairs.map(|(prior, s)| (prior - total).exp() * s).sum()
    }
}

impl LocalTempering {
    /// Returns the inverse temperatures of the grid and their prior. The prior weights are equal, or they are the
    /// weights of the trapezoidal rule times the density of the beta prior.
    pub fn grid(&self) -> InverseTemperatures {
        let last = self.temperatures.max(2) - 1;
        let values: Vec<f64> = (0..=last).map(|m| m as f64 / last as f64).collect();
        let log_prior = match self.beta {
            None => vec![0.0; values.len()],
            Some((a, b)) => {
                // At an end of the interval where the density does not vanish, the exponent is 0 · log 0.
                let power = |x: f64, n: f64| if n == 0.0 { 0.0 } else { n * x.ln() };
                let density = |(m, &s): (usize, &f64)| {
                    let end = if m == 0 || m == last {
                        0.5f64.ln()
                    } else {
                        0.0
                    };
                    end + power(s, a - 1.0) + power(1.0 - s, b - 1.0)
                };
                values.iter().enumerate().map(density).collect()
            }
        };
        InverseTemperatures { values, log_prior }
    }
}
