//! A fit of an auto-encoder in numbers: `fit.json`.

use jensen_neural::Architecture;
use serde::{Deserialize, Serialize};

use crate::job::Judgement;

/// Wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VaeSeconds {
    /// Opening and checking the data.
    pub open: f64,
    /// The run, including validation along the way.
    pub fit: f64,
    /// Bounds, pictures and results at the end.
    pub evaluate: f64,
}

/// The bound along a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrainingPoint {
    /// Records seen.
    pub samples: f64,
    /// Mean bound of the minibatches since the last point, nats per record.
    pub bound: Option<f64>,
    /// Bound of the validation records, nats per record.
    pub validation_bound: Option<f64>,
}

/// A fit in numbers. Field names and meanings are stable; fields may be added at the end. Numbers that are not finite,
/// or that were not requested, are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VaeSummary {
    /// Status and verdict; `converged` if early stopping ended the run.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Lower bound of the training records under the kept weights, nats per record; fresh draws, at most 10 000
    /// records. With `full_vb` this is the bound of Eq. 24: an expectation over the weights' posterior, minus each
    /// record's share of `weight_divergence`.
    pub bound: Option<f64>,
    /// Standard error of `bound` over records and draws.
    pub bound_se: Option<f64>,
    /// Lower bound of all validation records, nats per record; with `full_vb` the expectation over the weights'
    /// posterior, which bounds the log predictive density.
    pub validation_bound: Option<f64>,
    /// Standard error of `validation_bound`.
    pub validation_bound_se: Option<f64>,
    /// Mean of `E_q log p(x | z)` of the training records, nats per record.
    pub likelihood: Option<f64>,
    /// Mean of `KL(q(z | x) ‖ p(z))` of the training records, nats per record.
    pub divergence: Option<f64>,
    /// `bound` times the number of training records, in nats; with `full_vb` a bound on the evidence.
    pub elbo: Option<f64>,
    /// Latent values whose mean varies with the record (variance above 0.01).
    pub active_units: usize,
    /// Passes over the training records.
    pub epochs: f64,
    /// Iterations of the run.
    pub iterations: u64,
    /// Records seen.
    pub samples: f64,
    /// Seconds of a pass, validation included.
    pub seconds_per_epoch: Option<f64>,
    /// Records a second.
    pub samples_per_second: Option<f64>,
    /// Temperature of the likelihood at the end.
    pub temperature: f64,
    /// Training records.
    pub records: usize,
    /// Validation records.
    pub validation_records: usize,
    /// Extents and distributions of the networks.
    pub architecture: Architecture,
    /// Number of weights.
    pub weights: usize,
    /// Whether the decoder's weights have a posterior.
    pub full_vb: bool,
    /// Seconds by stage.
    pub seconds: VaeSeconds,
    /// Missing values of the training and validation rows.
    #[serde(default)]
    pub missing_values: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Version of Jensen.
    pub version: String,
    /// The bound along the run, thinned.
    pub history: Vec<TrainingPoint>,
    /// Standard error of `elbo`.
    #[serde(default)]
    pub elbo_se: Option<f64>,
    /// With `full_vb`, `KL(q(θ) ‖ N(0, I))` of all weights with a posterior, in nats.
    #[serde(default)]
    pub weight_divergence: Option<f64>,
}
