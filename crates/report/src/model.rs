//! What a report says, as plain data.

use serde::{Deserialize, Serialize};

use crate::sheet::Section;

/// Everything on the page. Empty lists and absent options leave their section out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Report {
    /// Headline, usually the model's name.
    pub title: String,
    /// The model's file or name.
    pub model: String,
    /// The data's file or name.
    pub data: String,
    /// Version of the program that made the fit.
    pub version: String,
    /// How the run ended, in a sentence.
    pub status: String,
    /// The optimiser's stopping rule was met.
    pub converged: bool,
    /// Converged, and the importance weights allow the draws to be used.
    pub trusted: bool,
    /// What to do next, a sentence each.
    pub advice: Vec<String>,
    /// Things the reader should know, a sentence each.
    pub warnings: Vec<String>,
    /// Evidence lower bound in nats and its Monte Carlo standard error.
    pub elbo: Option<(f64, f64)>,
    /// Pareto k̂ of the importance weights.
    pub khat: Option<Khat>,
    /// Short facts shown at the top beside the bound and k̂: label and value.
    pub facts: Vec<(String, String)>,
    /// Settings of the run: name and value.
    pub settings: Vec<(String, String)>,
    /// Parts of the run and their wall-clock seconds.
    pub timing: Vec<(String, f64)>,
    /// The bound along the run, one entry a stage (adaptation, mean-field, full-rank, …) in order.
    pub stages: Vec<Stage>,
    /// Log importance weights log p − log g of the draws, neither smoothed nor normalised.
    pub log_weights: Vec<f64>,
    /// One row a scalar parameter.
    pub parameters: Vec<Parameter>,
    /// Whatever else a method has to show, after the bound.
    pub sections: Vec<Section>,
    /// Draws of scalar parameters, most interesting first. Only some of them are drawn; the page says how many are not.
    pub marginals: Vec<Marginal>,
}

/// Pareto k̂ and where trust in it ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Khat {
    /// The estimate; not finite when it could not be made.
    pub value: f64,
    /// Largest value at which the draws are trusted: min(1 − 1/log₁₀ S, 0.7) for S draws.
    pub threshold: f64,
}

/// A part of the run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Estimates of the bound in order.
    pub points: Vec<TracePoint>,
}

/// The bound at one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TracePoint {
    /// Iteration, counted within the stage or over the whole run: stages are drawn one after another either way.
    pub iteration: u64,
    /// Wall-clock seconds since the start.
    pub seconds: f64,
    /// Estimate of the bound in nats.
    pub elbo: f64,
    /// Its Monte Carlo standard error, or NaN.
    pub se: f64,
}

/// Posterior summary of a scalar parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name with subscripts, such as `theta[2]`; parameters with the same stem share a forest plot.
    pub name: String,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
    /// 5 % quantile.
    pub q05: f64,
    /// Median.
    pub q50: f64,
    /// 95 % quantile.
    pub q95: f64,
    /// Monte Carlo standard error of the mean.
    pub mcse: Option<f64>,
}

/// Draws of a scalar parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Marginal {
    /// Name with subscripts.
    pub name: String,
    /// Draws in the order in which they were made (correlations pair them by position).
    pub draws: Vec<f64>,
}
