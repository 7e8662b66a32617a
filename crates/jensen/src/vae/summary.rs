//! The contents of `fit.json` of auto-encoders.

use jensen_neural::Architecture;
use serde::{Deserialize, Serialize};

use crate::job::Judgement;

/// The wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VaeSeconds {
    /// Seconds for opening and checking the data.
    pub open: f64,
    /// Seconds for the run, including validation during the run.
    pub fit: f64,
    /// Seconds for the final ELBO, images and other results.
    pub evaluate: f64,
}

/// The ELBO at one time of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrainingPoint {
    /// The number of processed training records.
    pub samples: f64,
    /// The mean ELBO of the minibatches since the last point, in nats per record.
    pub bound: Option<f64>,
    /// The ELBO of the validation records, in nats per record.
    pub validation_bound: Option<f64>,
}

/// The contents of `fit.json` of an auto-encoder. The names and meanings of the fields are stable. Later versions may
/// add fields at the end. Numbers that are not finite or were not requested are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VaeSummary {
    /// The status and the verdict. `converged` means that early stopping ended the run.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The ELBO of the training records under the kept weights, in nats per record, from fresh draws and at most 10 000
    /// records. With `full_vb` it is the bound of Eq. 24, which is an expectation over the posterior of the weights
    /// minus each record's share of `weight_divergence`.
    pub bound: Option<f64>,
    /// The standard error of `bound` over records and draws.
    pub bound_se: Option<f64>,
    /// The ELBO of all validation records, in nats per record. With `full_vb` it is the expectation over the posterior
    /// of the weights, which bounds the log predictive density.
    pub validation_bound: Option<f64>,
    /// The standard error of `validation_bound`.
    pub validation_bound_se: Option<f64>,
    /// The mean of `E_q log p(x | z)` over the training records, in nats per record.
    pub likelihood: Option<f64>,
    /// The mean of `KL(q(z | x) ‖ p(z))` over the training records, in nats per record.
    pub divergence: Option<f64>,
    /// The product of `bound` and the number of training records, in nats. With `full_vb` it is a bound on the log
    /// evidence.
    pub elbo: Option<f64>,
    /// The number of latent values whose mean varies with the record (with a variance above 0.01).
    pub active_units: usize,
    /// The number of passes over the training records.
    pub epochs: f64,
    /// The number of iterations.
    pub iterations: u64,
    /// The number of processed training records.
    pub samples: f64,
    /// The seconds per pass, including validation.
    pub seconds_per_epoch: Option<f64>,
    /// The number of records per second.
    pub samples_per_second: Option<f64>,
    /// The final temperature of the likelihood.
    pub temperature: f64,
    /// The number of training records.
    pub records: usize,
    /// The number of validation records.
    pub validation_records: usize,
    /// The architecture of the networks.
    pub architecture: Architecture,
    /// The number of weights.
    pub weights: usize,
    /// Whether the decoder's weights have a posterior.
    pub full_vb: bool,
    /// The seconds of the parts of the fit.
    pub seconds: VaeSeconds,
    /// The number of missing values in the training and validation rows.
    #[serde(default)]
    pub missing_values: usize,
    /// The seed.
    pub seed: u64,
    /// The version of Jensen.
    pub version: String,
    /// The ELBO during the run, at a limited number of points.
    pub history: Vec<TrainingPoint>,
    /// The standard error of `elbo`.
    #[serde(default)]
    pub elbo_se: Option<f64>,
    /// The divergence `KL(q(θ) ‖ N(0, I))` of all weights with a posterior, in nats, if `full_vb` is set.
    #[serde(default)]
    pub weight_divergence: Option<f64>,
}
