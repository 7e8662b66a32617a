//! The settings of a fit, with their defaults.

use jensen_latent::{Settings, Solver};
use jensen_run::Budget;
use serde::{Deserialize, Serialize};

use super::{LatentSpec, Learning};
use crate::Error;
#[cfg(feature = "clap")]
use crate::job::words;

/// The maximum number of iterations. In practice every solver stops long before it reaches this number.
const MAX_ITERS: u64 = 100_000;

#[cfg(feature = "clap")]
fn likelihood_help() -> String {
    let names: Vec<_> = jensen_latent::Likelihood::all()
        .map(jensen_latent::Likelihood::name)
        .collect();
    let (last, others) = names.split_last().expect("likelihoods");
    format!(
        "Density of an observation: {} or {last}, with parameters as in 'gaussian(variance=0.1)'",
        others.join(", ")
    )
}

/// The settings of a fit, with their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default, deny_unknown_fields)]
pub struct LatentRequest {
    /// Density of an observation, with its parameters as in 'gaussian(variance=0.1)'
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "L", required_unless_present = "resume", help = likelihood_help())
    )]
    pub likelihood: Option<String>,
    /// Prior of the latent variables, as in 'gp(matern52, ard)'
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "SPEC", required_unless_present = "resume")
    )]
    pub prior: Option<String>,
    /// The response column [default: the last]
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Columns")
    )]
    pub response: Option<String>,
    /// Exposure of counts
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Columns")
    )]
    pub exposure: Option<String>,
    /// Number of trials of binomial counts
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Columns")
    )]
    pub trials: Option<String>,
    /// Added to the linear predictor
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "COLUMN", help_heading = "Columns")
    )]
    pub offset: Option<String>,

    /// Bound to maximise: exact, log, tilted, bohning, jaakkola or piecewise [default: exact]
    #[cfg_attr(feature = "clap", arg(long, value_name = "B", help_heading = "Method"))]
    pub bound: Option<String>,
    /// dual, primal, opper, coordinate or em [default: dual]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = parse_solver, help_heading = "Method"))]
    pub solver: Option<String>,
    /// Fix hyperparameters at their starting values instead of learning them
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Method"))]
    pub fixed: bool,
    /// Treatment of free hyperparameters: integrate, or point, which maximises the bound over them [default:
    /// integrate]
    #[cfg_attr(feature = "clap", arg(long, value_name = "H", value_parser = ["integrate", "point"], conflicts_with = "fixed", help_heading = "Method"))]
    pub hyperparameters: Option<String>,
    /// Whether to standardise responses and columns for the fit; results are always in the table's units [default: on]
    #[cfg_attr(feature = "clap", arg(long, value_name = "on|off", value_parser = ["on", "off"], help_heading = "Method"))]
    pub standardise: Option<String>,
    /// Starts of the hyperparameters' search, the first at the starting values [default: 1]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Method"))]
    pub restarts: Option<u32>,
    /// Largest gap, or estimated improvement, of a finished fit in nats [default: 1e-6]
    #[cfg_attr(feature = "clap", arg(long, value_name = "NATS", value_parser = words::positive, help_heading = "Method"))]
    pub tolerance: Option<f64>,
    /// Gauss-Hermite nodes of expectations without a closed form [default: a rule whose number of nodes depends on the
    /// spread]
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=128), help_heading = "Method"))]
    pub nodes: Option<u32>,

    /// Largest number of iterations [default: 100000]
    #[cfg_attr(feature = "clap", arg(long, value_name = "K", help_heading = "Budget"))]
    pub max_iters: Option<u64>,
    /// Largest number of wall-clock seconds
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", value_parser = words::positive, help_heading = "Budget"))]
    pub max_seconds: Option<f64>,
    /// Refuse a run that needs more memory than this [default: 8GiB]
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", value_parser = words::bytes, help_heading = "Budget"))]
    pub memory_limit: Option<u64>,
    /// Seconds between checkpoints [default: 30]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", help_heading = "Budget"))]
    pub checkpoint_every: Option<f64>,
    /// Seed of restarts [default: 0]
    #[cfg_attr(feature = "clap", arg(long, value_name = "S", help_heading = "Budget"))]
    pub seed: Option<u64>,
    /// Threads [default: all of the machine]
    #[cfg_attr(feature = "clap", arg(long, value_name = "T", value_parser = words::thread_count, help_heading = "Budget"))]
    pub threads: Option<usize>,
}

#[cfg(feature = "clap")]
fn parse_solver(text: &str) -> Result<String, String> {
    let names: Vec<_> = Solver::ALL.iter().map(|s| s.name()).collect();
    match Solver::from_name(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("choose {}", names.join(", "))),
    }
}

impl LatentRequest {
    /// Returns the specification of the model that the settings describe.
    pub fn request(&self) -> LatentSpec {
        LatentSpec {
            prior: self.prior.clone().unwrap_or_default(),
            likelihood: self.likelihood.clone().unwrap_or_default(),
            bound: self.bound.clone(),
            response: self.response.clone(),
            exposure: self.exposure.clone(),
            trials: self.trials.clone(),
            offset: self.offset.clone(),
            unscaled: self.standardise.as_deref() == Some("off"),
        }
    }

    /// Returns the settings that the solver uses.
    pub fn settings(&self) -> Settings {
        let usual = Settings::default();
        Settings {
            solver: (self.solver.as_deref())
                .and_then(Solver::from_name)
                .unwrap_or(usual.solver),
            tolerance: self.tolerance.unwrap_or(usual.tolerance),
            nodes: self.nodes.map(|n| n as usize),
        }
    }

    /// Returns the settings that determine how the fit treats its hyperparameters.
    pub fn learning(&self) -> Learning {
        Learning {
            settings: self.settings(),
            learn: !self.fixed,
            integrate: self.hyperparameters.as_deref() != Some("point"),
            starts: self.restarts.unwrap_or(1),
            seed: self.seed.unwrap_or(0),
        }
    }

    pub(super) fn budget(&self) -> Budget {
        Budget {
            max_seconds: self.max_seconds,
            ..Budget::iterations(self.max_iters.unwrap_or(MAX_ITERS))
        }
    }

    /// Checks that every given setting has an effect on the fit.
    ///
    /// # Errors
    /// Fails if the user gave a setting that has no effect.
    pub fn check(&self) -> Result<(), Error> {
        if self.restarts.is_some() && self.fixed {
            return Err(Error::setting(
                "--restarts searches for hyperparameters, but --fixed keeps their starting values: use one of \
                 them",
            ));
        }
        for (flag, given, words) in [
            (
                "--hyperparameters",
                &self.hyperparameters,
                ["integrate", "point"],
            ),
            ("--standardise", &self.standardise, ["on", "off"]),
        ] {
            if let Some(word) = given.as_deref().filter(|word| !words.contains(word)) {
                return Err(Error::setting(format!(
                    "{flag} {word}: choose {} or {}",
                    words[0], words[1]
                )));
            }
        }
        Ok(())
    }
}
