//! The contents of `fit.json` of models of points.

use serde::{Deserialize, Serialize};

use super::ColumnPart;
use crate::job::Judgement;

/// The wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointsSeconds {
    /// Seconds for the run.
    pub fit: f64,
}

/// The contents of `fit.json` of a model of points. The names and meanings of the fields are stable. Later versions may
/// add fields at the end. Numbers that are not finite or were not requested are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointsSummary {
    /// The command: `mixture`, `factors` or `hmm`.
    pub command: String,
    /// The name of the model, such as `gaussian mixture`.
    pub model: String,
    /// The status and the verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The ELBO of the model at T = 1, in nats.
    pub elbo: Option<f64>,
    /// The name of the temperature policy.
    pub temper: String,
    /// The final temperature.
    pub temperature: Option<f64>,
    /// The mean log predictive density of a held-out point, in nats.
    pub heldout_log_predictive: Option<f64>,
    /// The standard error of `heldout_log_predictive`.
    pub heldout_standard_error: Option<f64>,
    /// The number of iterations.
    pub iterations: u64,
    /// The number of training points.
    pub points: u64,
    /// The number of points that were skipped because they have no content.
    pub skipped: u64,
    /// The number of points per second, where each pass counts every point.
    pub points_per_second: f64,
    /// The seconds of the parts of the fit.
    pub seconds: PointsSeconds,
    /// The seed.
    pub seed: u64,
    /// The version of Jensen.
    pub version: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The parts of the fitted model.
    #[serde(flatten)]
    pub parts: Parts,
    /// The gain of one more iteration over all points, in nats. Only fits by minibatches have it, because they have no
    /// stopping rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The candidates that the run tried, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<CandidateRow>>,
}

/// A start of a model, as one of several candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateRow {
    /// The number of components, factors or states.
    pub parts: u64,
    /// The seed of the start.
    pub seed: u64,
    /// The ELBO of the start, in nats.
    pub elbo: Option<f64>,
    /// The score in comparisons: the ELBO, plus log K! for the equivalent modes of a model with K components or states.
    pub evidence: Option<f64>,
    /// The number of iterations of the start.
    pub iterations: u64,
    /// Whether the start converged.
    pub converged: bool,
    /// Whether the start was kept.
    pub chosen: bool,
}

impl PointsSummary {
    /// Returns a table of the candidates with one row per number of parts. The columns are the number of parts, the
    /// best ELBO, the best score in comparisons, the number of starts within a nat of the best, and `kept` for the
    /// chosen model.
    pub fn compared(&self) -> Option<(Vec<String>, Vec<Vec<String>>)> {
        let rows = self.candidates.as_ref()?;
        let part = match self.parts {
            Parts::Components(_) => "components",
            Parts::Factors(_) => "factors",
            Parts::Chain(_) => "states",
        };
        let heads = [part, "ELBO", "compared by", "starts at the best", ""];
        let number = |x: Option<f64>| x.map_or("–".to_owned(), |x| format!("{x:.2}"));
        let of_size = |rows: &[CandidateRow]| {
            let best = rows.iter().filter_map(|row| row.elbo).reduce(f64::max);
            let credit = rows.iter().find_map(|row| Some(row.evidence? - row.elbo?));
            let same = rows.iter().filter(|row| {
                row.elbo
                    .zip(best)
                    .is_some_and(|(elbo, best)| elbo >= best - 1.0)
            });
            let kept = rows.iter().any(|row| row.chosen);
            vec![
                rows[0].parts.to_string(),
                number(best),
                number(best.map(|best| best + credit.unwrap_or(0.0))),
                format!("{} of {}", same.count(), rows.len()),
                if kept { "kept" } else { "" }.to_owned(),
            ]
        };
        let sizes = rows.chunk_by(|a, b| a.parts == b.parts);
        Some((
            heads.map(str::to_owned).to_vec(),
            sizes.map(of_size).collect(),
        ))
    }
}

/// The parts of a fitted model of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parts {
    /// The components of a mixture, by decreasing weight.
    Components(Vec<Component>),
    /// The factors, with one value per column.
    Factors(Vec<Vec<f64>>),
    /// The states of a hidden Markov model.
    Chain(Chain),
}

/// The parameters of a hidden Markov model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// The probabilities of the first state.
    pub initial: Vec<f64>,
    /// The transition probabilities, with one row per state.
    pub transitions: Vec<Vec<f64>>,
    /// The emission distribution of every state.
    pub emissions: Vec<Emission>,
}

/// The emission distribution of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Emission {
    /// The state emits real vectors.
    Gaussian {
        /// The mean of each column.
        mean: Vec<f64>,
        /// The covariance matrix row by row, or the variances if columns are independent.
        covariance: Vec<f64>,
    },
    /// The state emits vectors of zeros and ones.
    Bernoulli {
        /// The probability of a one in each column.
        probabilities: Vec<f64>,
    },
    /// The state emits vectors of counts.
    Multinomial {
        /// The proportion of each column.
        proportions: Vec<f64>,
    },
    /// The state emits columns of several kinds.
    Columns {
        /// The central value of each column, which is [`ColumnDistribution::value`](super::ColumnDistribution::value).
        values: Vec<f64>,
        /// The distribution of each column.
        columns: Vec<ColumnPart>,
    },
}

impl Emission {
    /// Returns the means, the probabilities, the proportions or the central values of the columns.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Gaussian { mean: values, .. }
            | Self::Bernoulli {
                probabilities: values,
            }
            | Self::Multinomial {
                proportions: values,
            }
            | Self::Columns { values, .. } => values,
        }
    }
}

/// A component of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Component {
    /// The component contains real vectors.
    Gaussian {
        /// The mean of each column.
        mean: Vec<f64>,
        /// The covariance matrix row by row, or the variances if columns are independent.
        covariance: Vec<f64>,
        /// The share of the points.
        weight: f64,
    },
    /// The component contains vectors of zeros and ones.
    Bernoulli {
        /// The probability of a one in each column.
        probabilities: Vec<f64>,
        /// The share of the points.
        weight: f64,
    },
    /// The component contains vectors of counts.
    Multinomial {
        /// The proportion of each column.
        proportions: Vec<f64>,
        /// The share of the points.
        weight: f64,
    },
    /// The component contains columns of several kinds.
    Columns {
        /// The central value of each column, which is [`ColumnDistribution::value`](super::ColumnDistribution::value).
        values: Vec<f64>,
        /// The distribution of each column.
        columns: Vec<ColumnPart>,
        /// The share of the points.
        weight: f64,
    },
}

impl Component {
    /// Returns the means, the probabilities, the proportions or the central values of the columns.
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
            }
            | Self::Columns { values, .. } => values,
        }
    }

    /// Returns the share of the points.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Gaussian { weight, .. }
            | Self::Bernoulli { weight, .. }
            | Self::Multinomial { weight, .. }
            | Self::Columns { weight, .. } => *weight,
        }
    }
}
