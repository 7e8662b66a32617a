//! A fit of points in numbers: `fit.json`.

use serde::{Deserialize, Serialize};

use crate::study::Judgement;

/// Wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointsSeconds {
    /// The run.
    pub fit: f64,
}

/// A fit in numbers. Field names and meanings are stable; fields may be added at the end. Numbers that are not finite,
/// or that were not asked for, are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointsSummary {
    /// `mixture`, `factors` or `hmm`.
    pub command: String,
    /// The model, such as `gaussian mixture`.
    pub model: String,
    /// How the run ended and what speaks against it.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The evidence lower bound of the model at T = 1, in nats.
    pub elbo: Option<f64>,
    /// The temperature policy.
    pub temper: String,
    /// The temperature at the end.
    pub temperature: Option<f64>,
    /// Mean log predictive density of a held-out point, in nats.
    pub heldout_log_predictive: Option<f64>,
    /// Its standard error.
    pub heldout_standard_error: Option<f64>,
    /// Iterations taken.
    pub iterations: u64,
    /// Points to learn from.
    pub points: u64,
    /// Points without content that were skipped.
    pub skipped: u64,
    /// Points a second, counted again in every pass.
    pub points_per_second: f64,
    /// Where the time went.
    pub seconds: PointsSeconds,
    /// Seed of the run.
    pub seed: u64,
    /// Version of Jensen.
    pub version: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// What was found.
    #[serde(flatten)]
    pub parts: Parts,
}

/// What was found in points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parts {
    /// The components of a mixture, the heaviest first.
    Components(Vec<Component>),
    /// The factors, a value a column.
    Factors(Vec<Vec<f64>>),
    /// The states of chains.
    Chain(Chain),
}

/// Hidden Markov chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Probabilities of the first state.
    pub initial: Vec<f64>,
    /// Probabilities of the next state, a row a state.
    pub transitions: Vec<Vec<f64>>,
    /// What every state emits.
    pub emissions: Vec<Emission>,
}

/// Emissions of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Emission {
    /// Real vectors.
    Gaussian {
        /// Mean, a value a column.
        mean: Vec<f64>,
        /// Covariance row by row, or variances where columns are independent.
        covariance: Vec<f64>,
    },
    /// Vectors of zeros and ones.
    Bernoulli {
        /// Probabilities of ones.
        probabilities: Vec<f64>,
    },
    /// Vectors of counts.
    Multinomial {
        /// Proportions of the columns.
        proportions: Vec<f64>,
    },
}

impl Emission {
    /// The mean, the probabilities or the proportions.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Gaussian { mean: values, .. }
            | Self::Bernoulli {
                probabilities: values,
            }
            | Self::Multinomial {
                proportions: values,
            } => values,
        }
    }
}

/// A component of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Component {
    /// Real vectors.
    Gaussian {
        /// Mean, a value a column.
        mean: Vec<f64>,
        /// Covariance row by row, or variances where columns are independent.
        covariance: Vec<f64>,
        /// Share of the points.
        weight: f64,
    },
    /// Vectors of zeros and ones.
    Bernoulli {
        /// Probabilities of ones.
        probabilities: Vec<f64>,
        /// Share of the points.
        weight: f64,
    },
    /// Vectors of counts.
    Multinomial {
        /// Proportions of the columns.
        proportions: Vec<f64>,
        /// Share of the points.
        weight: f64,
    },
}

impl Component {
    /// The mean, the probabilities or the proportions.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Gaussian { mean: values, .. }
            | Self::Bernoulli {
                probabilities: values,
                ..
            }
            | Self::Multinomial {
                proportions: values,
                ..
            } => values,
        }
    }

    /// Share of the points.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Gaussian { weight, .. }
            | Self::Bernoulli { weight, .. }
            | Self::Multinomial { weight, .. } => *weight,
        }
    }
}
