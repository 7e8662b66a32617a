//! The contents of `fit.json` for auto-encoders.

use jensen_neural::Architecture;
use serde::{Deserialize, Serialize};

use super::TableColumn;
use crate::job::Judgement;

/// The wall-clock time that each stage of a fit took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VaeSeconds {
    /// The time for opening and checking the data, in seconds.
    pub open: f64,
    /// The time for the run in seconds, including validation during the run.
    pub fit: f64,
    /// The time for the final ELBO, images and other results, in seconds.
    pub evaluate: f64,
}

/// The values of the ELBO at one point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrainingPoint {
    /// The number of training records that were processed before this point.
    pub samples: f64,
    /// The mean ELBO of the minibatches since the previous point, in nats per record.
    pub bound: Option<f64>,
    /// The ELBO of the validation records, in nats per record.
    pub validation_bound: Option<f64>,
}

/// The contents of `fit.json` for an auto-encoder. The names and meanings of the fields do not change between versions.
/// Later versions may add fields at the end. Numbers that are not finite or were not requested are written as `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VaeSummary {
    /// The status at the end of the run, with the verdict. `converged` is true if early stopping ended the run.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The ELBO of the training records with the weights that were kept, in nats per record. The ELBO is estimated from
    /// new random draws and at most 10 000 records. With `full_vb`, the field contains the bound of Eq. 24. This bound
    /// is the expectation of the ELBO over the posterior of the weights, minus `weight_divergence` divided by the
    /// number of training records.
    pub bound: Option<f64>,
    /// The standard error of `bound`. It includes the variation between records and between draws.
    pub bound_se: Option<f64>,
    /// The ELBO of all validation records, in nats per record. With `full_vb`, the field contains the expectation of
    /// this ELBO over the posterior of the weights. The expectation is a lower bound on the log predictive density.
    pub validation_bound: Option<f64>,
    /// The standard error of `validation_bound`.
    pub validation_bound_se: Option<f64>,
    /// The mean of `E_q log p(x | z)` over the training records, in nats per record.
    pub likelihood: Option<f64>,
    /// The mean of `KL(q(z | x) ‖ p(z))` over the training records, in nats per record.
    pub divergence: Option<f64>,
    /// The product of `bound` and the number of training records, in nats. With `full_vb`, the product is a lower bound
    /// on the log evidence.
    pub elbo: Option<f64>,
    /// The number of active latent values. A latent value is active if the variance of its posterior mean over the
    /// records is more than 0.01.
    pub active_units: usize,
    /// The number of passes over the training records that were completed.
    pub epochs: f64,
    /// The number of iterations.
    pub iterations: u64,
    /// The number of training records that were processed.
    pub samples: f64,
    /// The time per pass in seconds, including the time for validation.
    pub seconds_per_epoch: Option<f64>,
    /// The number of records that were processed per second.
    pub samples_per_second: Option<f64>,
    /// The temperature of the likelihood at the end of the run.
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
    /// The wall-clock time that each stage of the fit took.
    pub seconds: VaeSeconds,
    /// The number of missing values in the training and validation rows.
    #[serde(default)]
    pub missing_values: usize,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The version of Jensen that wrote the file.
    pub version: String,
    /// The values of the ELBO during the run, at a limited number of points.
    pub history: Vec<TrainingPoint>,
    /// The standard error of `elbo`.
    #[serde(default)]
    pub elbo_se: Option<f64>,
    /// The divergence `KL(q(θ) ‖ N(0, I))`, in nats, summed over all weights that have a posterior. The field is
    /// present only with `full_vb`.
    #[serde(default)]
    pub weight_divergence: Option<f64>,
    /// The columns of the table with their distributions. The list is empty if all columns have the same distribution
    /// and the model does not condition on any of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<TableColumn>,
}
