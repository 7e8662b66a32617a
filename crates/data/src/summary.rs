//! The summary of a fit in the file `fit.json`, for people and for scripts.

use jensen_math::order::quantiles;
use jensen_math::sum::Moments;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

use crate::atomic::write_atomic_bytes;
use crate::error::DataError;

/// The version of the layout of `fit.json`, which all commands share. Existing fields keep their names and meanings,
/// but new fields may be added.
pub const FIT_FORMAT: u32 = 1;

/// The summary of a fit. Existing fields keep their names and meanings, but new fields may be added at the end.
/// Non-finite numbers are written as `null` and read back as NaN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitSummary {
    /// The version of the layout, which is [`FIT_FORMAT`] for new files. The value is 0 if the file does not contain a
    /// version.
    #[serde(default)]
    pub format: u32,
    /// The reason why the run ended, including advice for the user.
    pub status: String,
    /// Whether the optimiser ended because its stopping rule was met.
    pub converged: bool,
    /// Whether the draws can be trusted. Draws can be trusted because of their importance weights, or because they were
    /// refined and have mixed.
    pub trusted: bool,
    /// The evidence lower bound in nats, with all normalising constants and the log-Jacobian.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The Monte Carlo standard error of the ELBO in nats.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
    /// The estimate k̂ of the Pareto shape of the importance weights.
    #[serde(deserialize_with = "null_is_nan")]
    pub khat: f64,
    /// The number of iterations of the optimiser.
    pub iterations: u64,
    /// The number of minibatches that were evaluated. One minibatch consists of 256 gradients, 85 Hessian-vector
    /// products (counted twice) or 256 values.
    pub oracle_calls: u64,
    /// The wall-clock time of each stage in seconds.
    pub seconds: Seconds,
    /// The number of unconstrained coordinates.
    pub dim: usize,
    /// The seed of the run.
    pub seed: u64,
    /// The version of Jensen.
    pub version: String,
    /// The summaries of all scalar parameters, in the order of the columns of draws.
    pub parameters: Vec<ParameterSummary>,
    /// The optimisation method, such as `advi` or `trust`.
    #[serde(default)]
    pub method: String,
    /// The approximating family, such as `meanfield`, `fullrank`, `sparse`, `conditional` or `lowrank=R`.
    #[serde(default)]
    pub family: String,
    /// The number of draws from which the summaries of the parameters were computed.
    #[serde(default)]
    pub draws: u64,
    /// Warnings and notes for the user.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// A thinned history of the ELBO. The file `trace.jsonl` contains the full history.
    #[serde(default)]
    pub elbo_history: Vec<ElboPoint>,
    /// The number of equivalent modes, including the fitted mode. Permutations of array elements map the fitted mode to
    /// the other modes, which have the same mass. The field is omitted if the number is one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub labellings: u64,
    /// The summary of the refinement, if the fit was refined.
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

/// The result of a refinement, which transforms draws of the approximation into draws of the posterior.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RefinementSummary {
    /// Whether the draws have mixed. If so, the draws and summaries of the fit are those of the refinement.
    pub used: bool,
    /// The log evidence of the region that the refinement visited, in nats. If the density omits constants, the log
    /// evidence is also known only up to a constant.
    #[serde(deserialize_with = "null_is_nan")]
    pub log_evidence: f64,
    /// The standard error of `log_evidence` in nats.
    #[serde(deserialize_with = "null_is_nan")]
    pub log_evidence_se: f64,
    /// The divergence KL(q‖p) of the approximation in nats. The divergence is computed as the log evidence minus the
    /// ELBO.
    #[serde(deserialize_with = "null_is_nan")]
    pub kl: f64,
    /// The standard error of `kl` in nats.
    #[serde(deserialize_with = "null_is_nan")]
    pub kl_se: f64,
    /// The largest nested R̂ among the unconstrained coordinates, the spreads of these coordinates, and the log
    /// density.
    #[serde(deserialize_with = "null_is_nan")]
    pub rhat: f64,
    /// The smallest effective sample size among the quantities for which `rhat` is computed.
    #[serde(deserialize_with = "null_is_nan")]
    pub ess: f64,
    /// The number of refined draws.
    pub draws: u64,
    /// The number of gradient evaluations. A gradient at one draw counts as one evaluation.
    pub gradients: u64,
    /// The checks that the approximation failed. These failures are the reason for the refinement. The list is empty if
    /// the user requested the refinement, or if the refinement was needed only for a reported quantity.
    pub because: Vec<String>,
}

/// The wall-clock time of each stage of a fit, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// The time for reading, checking and compiling the model and reading the data.
    pub build: f64,
    /// The time for optimisation.
    pub fit: f64,
    /// The time for generating draws and computing diagnostics.
    pub draws: f64,
}

/// The posterior summary of one scalar parameter on the constrained scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParameterSummary {
    /// The name of the parameter with its subscripts, such as `theta[1]`.
    pub name: String,
    /// The name of the parameter with the labels of its dimensions, such as `theta[Choate]`, if there are labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The mean, or `null` if the tails of the draws do not determine it.
    #[serde(deserialize_with = "null_is_nan")]
    pub mean: f64,
    /// The standard deviation, or `null` if the tails of the draws do not determine it.
    #[serde(deserialize_with = "null_is_nan")]
    pub sd: f64,
    /// The 5 % quantile.
    #[serde(deserialize_with = "null_is_nan")]
    pub q05: f64,
    /// The median.
    #[serde(deserialize_with = "null_is_nan")]
    pub q50: f64,
    /// The 95 % quantile.
    #[serde(deserialize_with = "null_is_nan")]
    pub q95: f64,
    /// The Monte Carlo standard error of the mean, if it is known. This error is estimated from the importance weights
    /// or from the differences between chains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcse: Option<f64>,
    /// The effective sample size, which is the variance divided by the square of `mcse`. For refined draws it is the
    /// smaller of two values, one for the quantity itself and one for its spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ess: Option<f64>,
    /// The nested R̂ of this parameter, for refined draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rhat: Option<f64>,
    /// The summary of the same draws without weights. The field is present if this summary is weighted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain: Option<PlainSummary>,
    /// The tail index k̂ of the draws, taken from the heavier of the two tails. The index is absent if the parameter is
    /// bounded or if there are few draws. Moments of order 1/k̂ and above do not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail_khat: Option<f64>,
    /// The reason why the mean or the standard deviation is `null`, if this is due to heavy tails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undefined: Option<String>,
}

/// The mean and the standard deviation of the unweighted draws of an approximation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlainSummary {
    /// The mean.
    #[serde(deserialize_with = "null_is_nan")]
    pub mean: f64,
    /// The standard deviation.
    #[serde(deserialize_with = "null_is_nan")]
    pub sd: f64,
}

/// The ELBO at one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElboPoint {
    /// The stage of the run, such as `mean-field`. The text is empty if the run has only one stage.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stage: String,
    /// The number of the iteration.
    pub iteration: u64,
    /// The estimate of the ELBO in nats.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The Monte Carlo standard error of the ELBO in nats.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
}

impl ParameterSummary {
    /// Returns the name to display. It contains the labels of dimensions if there are labels.
    pub fn shown(&self) -> &str {
        self.label.as_deref().unwrap_or(&self.name)
    }

    /// Summarises draws of a scalar. Quantiles are interpolated linearly between order statistics (type 7 in R). The
    /// standard deviation is computed with the divisor n − 1. If the slice is empty or contains NaN, all numbers of the
    /// summary are NaN.
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

    /// Creates a summary from a mean, a standard deviation, and the quantiles at 5 %, 50 % and 95 %.
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
    /// Returns the content of `fit.json`, which is indented and ends with a line end.
    pub fn to_json(&self) -> Result<String, DataError> {
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| DataError::invalid(format!("cannot write the summary of the fit: {e}")))?;
        Ok(text + "\n")
    }

    /// Writes `fit.json`, atomically.
    pub fn write(&self, path: &Path) -> Result<(), DataError> {
        write_atomic_bytes(path, self.to_json()?.as_bytes())
    }

    /// Reads a `fit.json` file.
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
