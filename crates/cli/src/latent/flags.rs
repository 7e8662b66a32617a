//! The settings of `jensen latent fit`.

use clap::Args;
use jensen::latent::{Learning, Likelihood, Request, Settings, Solver};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::flags::{parse_bytes, parse_positive, parse_threads};

/// Iterations allowed unless said otherwise; solvers stop on their own long before.
pub const MAX_ITERS: u64 = 100_000;

/// What a fit is told; what is absent has a default.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatentFlags {
    #[arg(long, value_name = "L", required_unless_present = "resume", help = likelihood_help())]
    pub likelihood: Option<String>,
    /// Prior of the latent variables, as in 'gp(matern52, ard)'
    #[arg(long, value_name = "SPEC", required_unless_present = "resume")]
    pub prior: Option<String>,
    /// The column that is modelled [default: the last]
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub response: Option<String>,
    /// Exposure of counts
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub exposure: Option<String>,
    /// Number of trials of binomial counts
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub trials: Option<String>,
    /// Added to the linear predictor
    #[arg(long, value_name = "COLUMN", help_heading = "Columns")]
    pub offset: Option<String>,

    /// What is maximised: exact, log, tilted, bohning, jaakkola or piecewise [default: the likelihood's best with a dual]
    #[arg(long, value_name = "B", help_heading = "Method")]
    pub bound: Option<String>,
    /// dual, primal, opper, coordinate or em [default: dual]
    #[arg(long, value_name = "S", value_parser = parse_solver, help_heading = "Method")]
    pub solver: Option<String>,
    /// Learn the free hyperparameters by maximising the bound
    #[arg(long, alias = "optimize-hyperparameters", help_heading = "Method")]
    #[serde(default)]
    pub optimise_hyperparameters: bool,
    /// Starts of the hyperparameters' search, the first at the starting values [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Method")]
    pub restarts: Option<u32>,
    /// Largest gap, or estimated improvement, of a finished fit in nats [default: 1e-6]
    #[arg(long, value_name = "NATS", value_parser = parse_positive, help_heading = "Method")]
    pub tolerance: Option<f64>,
    /// Gauss-Hermite nodes of expectations without a closed form [default: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=128), help_heading = "Method")]
    pub nodes: Option<u32>,

    /// Largest number of iterations [default: 100000]
    #[arg(long, value_name = "K", help_heading = "Budget")]
    pub max_iters: Option<u64>,
    /// Largest number of wall-clock seconds
    #[arg(long, value_name = "S", value_parser = parse_positive, help_heading = "Budget")]
    pub max_seconds: Option<f64>,
    /// Refuse what would take more memory than this [default: 8GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes, help_heading = "Budget")]
    pub memory_limit: Option<u64>,
    /// Seconds between checkpoints [default: 30]
    #[arg(long, value_name = "S", help_heading = "Budget")]
    pub checkpoint_every: Option<f64>,
    /// Seed of restarts [default: 0]
    #[arg(long, value_name = "S", help_heading = "Budget")]
    pub seed: Option<u64>,
    /// Threads; all of the machine unless given
    #[arg(long, value_name = "T", value_parser = parse_threads, help_heading = "Budget")]
    pub threads: Option<usize>,
}

fn likelihood_help() -> String {
    let names: Vec<_> = Likelihood::all().map(Likelihood::name).collect();
    let (last, others) = names.split_last().expect("likelihoods");
    format!(
        "Density of an observation: {} or {last}, with its parameters as in 'gaussian(variance=0.1)'",
        others.join(", ")
    )
}

fn parse_solver(text: &str) -> Result<String, String> {
    let names: Vec<_> = Solver::ALL.iter().map(|s| s.name()).collect();
    match Solver::from_name(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("choose {}", names.join(", "))),
    }
}

impl LatentFlags {
    /// What is given here, and what `stored` says of the rest.
    pub fn or(&self, stored: &Self) -> Self {
        let own = self.clone();
        Self {
            likelihood: own.likelihood.or_else(|| stored.likelihood.clone()),
            prior: own.prior.or_else(|| stored.prior.clone()),
            response: own.response.or_else(|| stored.response.clone()),
            exposure: own.exposure.or_else(|| stored.exposure.clone()),
            trials: own.trials.or_else(|| stored.trials.clone()),
            offset: own.offset.or_else(|| stored.offset.clone()),
            bound: own.bound.or_else(|| stored.bound.clone()),
            solver: own.solver.or_else(|| stored.solver.clone()),
            optimise_hyperparameters: own.optimise_hyperparameters
                || stored.optimise_hyperparameters,
            restarts: own.restarts.or(stored.restarts),
            tolerance: own.tolerance.or(stored.tolerance),
            nodes: own.nodes.or(stored.nodes),
            max_iters: own.max_iters.or(stored.max_iters),
            max_seconds: own.max_seconds.or(stored.max_seconds),
            memory_limit: own.memory_limit.or(stored.memory_limit),
            checkpoint_every: own.checkpoint_every.or(stored.checkpoint_every),
            seed: own.seed.or(stored.seed),
            threads: own.threads.or(stored.threads),
        }
    }

    /// The request.
    pub fn request(&self) -> Request {
        Request {
            prior: self.prior.clone().unwrap_or_default(),
            likelihood: self.likelihood.clone().unwrap_or_default(),
            bound: self.bound.clone(),
            response: self.response.clone(),
            exposure: self.exposure.clone(),
            trials: self.trials.clone(),
            offset: self.offset.clone(),
        }
    }

    /// The settings of the solver.
    pub fn settings(&self) -> Settings {
        let usual = Settings::default();
        Settings {
            solver: (self.solver.as_deref())
                .and_then(Solver::from_name)
                .unwrap_or(usual.solver),
            tolerance: self.tolerance.unwrap_or(usual.tolerance),
            nodes: self.nodes.map_or(usual.nodes, |n| n as usize),
        }
    }

    /// How hyperparameters are treated.
    pub fn learning(&self) -> Learning {
        Learning {
            settings: self.settings(),
            learn: self.optimise_hyperparameters,
            starts: self.restarts.unwrap_or(1),
            seed: self.seed.unwrap_or(0),
        }
    }

    /// Flags that would be ignored are mistakes.
    pub fn check(&self) -> Result<(), Failure> {
        if self.restarts.is_some() && !self.optimise_hyperparameters {
            return Err(Failure::usage(
                "--restarts belongs to --optimise-hyperparameters",
            ));
        }
        Ok(())
    }

    /// The flags that were given, for reports: name and value.
    pub fn listed(&self) -> Vec<(String, String)> {
        let serde_json::Value::Object(flags) = serde_json::to_value(self).unwrap_or_default()
        else {
            return Vec::new();
        };
        flags
            .into_iter()
            .filter(|(_, value)| !value.is_null() && *value != serde_json::Value::Bool(false))
            .map(|(name, value)| {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                (name.replace('_', "-"), text)
            })
            .collect()
    }
}
