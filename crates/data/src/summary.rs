//! `fit.json`: the summary of a fit for people and scripts.

use jensen_math::order::quantiles;
use jensen_math::sum::Moments;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::atomic::write_atomic_bytes;
use crate::error::DataError;

/// Version of `fit.json` for every command. Names and meanings of fields are stable, and fields may be added.
pub const FIT_FORMAT: u32 = 1;

/// A fit in numbers. Field names and meanings are stable, and fields may be added at the end. Non-finite numbers are
/// written as `null` and read back as NaN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitSummary {
    /// Version of the file's layout, [`FIT_FORMAT`]; 0 if the file does not state it.
    #[serde(default)]
    pub format: u32,
    /// The end of the run, with advice.
    pub status: String,
    /// Whether the optimiser's stopping rule is met.
    pub converged: bool,
    /// Whether the draws can be trusted, by their importance weights, or because they were refined and have mixed.
    pub trusted: bool,
    /// Evidence lower bound in nats, with all normalising constants and the Jacobian.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The Monte Carlo standard error of the ELBO.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
    /// Pareto k̂ of the importance weights.
    #[serde(deserialize_with = "null_is_nan")]
    pub khat: f64,
    /// Number of iterations taken.
    pub iterations: u64,
    /// Number of minibatches evaluated. One call is 256 gradients, 85 Hessian-vector products (counted twice) or 256
    /// values.
    pub oracle_calls: u64,
    /// Wall-clock seconds by stage.
    pub seconds: Seconds,
    /// Unconstrained dimension.
    pub dim: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Version of Jensen.
    pub version: String,
    /// One entry per scalar parameter, in column order.
    pub parameters: Vec<ParameterSummary>,
    /// The algorithm: `advi`, `trust`, ….
    #[serde(default)]
    pub method: String,
    /// The approximating family: `meanfield`, `fullrank`, `sparse`, `conditional`, `lowrank=R`.
    #[serde(default)]
    pub family: String,
    /// Number of draws behind the parameter summaries.
    #[serde(default)]
    pub draws: u64,
    /// Notes for the user.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The bound along the run, thinned; the full trace is in `trace.jsonl`.
    #[serde(default)]
    pub elbo_history: Vec<ElboPoint>,
    /// Number of modes of equal mass that permutations of array elements generate from the fitted mode, including that
    /// mode; omitted if there is only one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub labellings: u64,
    /// The refinement, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refinement: Option<RefinementSummary>,
}

fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
fn is_one(count: &u64) -> bool {
    *count == 1
}

/// The result of a refinement from the approximation to draws of the posterior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefinementSummary {
    /// Whether the draws have mixed, in which case draws and summaries come from the refinement.
    pub used: bool,
    /// Log evidence of the visited region in nats; up to a constant if the density drops constants.
    #[serde(deserialize_with = "null_is_nan")]
    pub log_evidence: f64,
    /// Standard error of `log_evidence`.
    #[serde(deserialize_with = "null_is_nan")]
    pub log_evidence_se: f64,
    /// Divergence KL(q‖p) of the approximation in nats: log evidence minus ELBO.
    #[serde(deserialize_with = "null_is_nan")]
    pub kl: f64,
    /// Standard error of `kl`.
    #[serde(deserialize_with = "null_is_nan")]
    pub kl_se: f64,
    /// The largest nested R̂ of the unconstrained coordinates, their spreads and the log density.
    #[serde(deserialize_with = "null_is_nan")]
    pub rhat: f64,
    /// The smallest effective sample size of these.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess: f64,
    /// Number of refined draws.
    pub draws: u64,
    /// Number of gradients, one per draw.
    pub gradients: u64,
    /// The checks that the approximation alone fails; empty if the refinement was requested, or is needed for a
    /// reported quantity only.
    pub because: Vec<String>,
}

/// Wall-clock seconds of the parts of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Seconds spent on reading, checking and lowering the model and data.
    pub build: f64,
    /// Seconds spent on optimisation.
    pub fit: f64,
    /// Seconds spent on draws and diagnostics.
    pub draws: f64,
}

/// Posterior summary of one scalar parameter on the constrained scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParameterSummary {
    /// Name with subscripts: `theta[1]`.
    pub name: String,
    /// The name with the labels of its dimensions, if they have some: `theta[Choate]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Mean; `null` if the draws' tails do not determine it.
    #[serde(deserialize_with = "null_is_nan")]
    pub mean: f64,
    /// Standard deviation; `null` if the draws' tails do not determine it.
    #[serde(deserialize_with = "null_is_nan")]
    pub sd: f64,
    /// 5 % quantile.
    #[serde(deserialize_with = "null_is_nan")]
    pub q05: f64,
    /// Median.
    #[serde(deserialize_with = "null_is_nan")]
    pub q50: f64,
    /// 95 % quantile.
    #[serde(deserialize_with = "null_is_nan")]
    pub q95: f64,
    /// Monte-Carlo standard error of the mean, if known: by importance weights, or between chains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcse: Option<f64>,
    /// Effective sample size: the variance divided by the square of [`mcse`](Self::mcse). For refined draws it is the
    /// smaller of the values for the quantity and for its spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ess: Option<f64>,
    /// Nested R̂ of refined draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rhat: Option<f64>,
    /// The summary of the same draws without weights, if this summary is weighted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<PlainSummary>,
    /// Tail index k̂ of the heavier of the draws' two tails; absent if they are bounded or few. Moments of order 1/k̂
    /// and above do not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_khat: Option<f64>,
    /// The reason why mean or standard deviation are `null`, if the tails are the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// Mean and standard deviation of an approximation's unweighted draws.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlainSummary {
    /// Mean.
    #[serde(deserialize_with = "null_is_nan")]
    pub mean: f64,
    /// Standard deviation.
    #[serde(deserialize_with = "null_is_nan")]
    pub sd: f64,
}

/// The bound at one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElboPoint {
    /// The stage of the run, such as `mean-field`; empty if there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// Iteration.
    pub iteration: u64,
    /// Estimate of the bound in nats.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The Monte Carlo standard error of the ELBO.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
}

impl ParameterSummary {
    /// Returns the displayed name: with its labels, if it has some.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    /// Summarises draws of a scalar. Quantiles interpolate linearly between order statistics (R's type 7); the standard
    /// deviation divides by n − 1. A NaN among the draws makes every figure NaN, as does an empty slice.
    pub fn from_draws(name: impl Into<String>, draws: &[f64]) -> Self {
        let undefined = Self::of(name, f64::NAN, f64::NAN, [f64::NAN; 3]);
        if draws.is_empty() || draws.iter().any(|x| x.is_nan()) {
            return undefined;
        }
        let moments = Moments::of(draws);
        let (mean, sd) = (moments.mean(), moments.variance().sqrt());
        let quantiles = quantiles(&mut draws.to_vec(), [0.05, 0.5, 0.95]);
        Self::of(undefined.name, mean, sd, quantiles)
    }

    /// Creates a summary from these values: mean, standard deviation, and the quantiles at 5, 50 and 95 %.
    pub fn of(name: impl Into<String>, mean: f64, sd: f64, [q05, q50, q95]: [f64; 3]) -> Self {
        Self {
            name: name.into(),
            label: None,
            mean,
            sd,
            q05,
            q50,
            q95,
            mcse: None,
            ess: None,
            rhat: None,
            plain: None,
            tail_khat: None,
            undefined: None,
        }
    }
}

impl FitSummary {
    /// Returns the text of `fit.json`, indented, with a final line end.
    pub fn to_json(&self) -> Result<String, DataError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| DataError::invalid(format!("cannot write the summary of the fit: {e}")))?;
        Ok(text + "\n")
    }

    /// Writes `fit.json`, atomically.
    pub fn write(&self, path: &Path) -> Result<(), DataError> {
        write_atomic_bytes(path, self.to_json()?.as_bytes())
    }

    /// Reads a `fit.json` back.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let bytes = std::fs::read(path).map_err(|e| DataError::io("read", path, &e))?;
        serde_json::from_slice(&bytes).map_err(|e| {
            DataError::invalid(format!(
                "`{}` is not the summary of a fit: {e}",
                path.display()
            ))
        })
    }
}

fn null_is_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
