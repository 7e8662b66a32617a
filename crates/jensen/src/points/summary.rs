//! A fit of points in numbers: `fit.json`.

use serde::{Deserialize, Serialize};

use super::ColumnPart;
use crate::job::Judgement;

/// Wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointsSeconds {
    /// The run.
    pub fit: f64,
}

/// A fit in numbers. Field names and meanings are stable, and fields may be added at the end. Numbers that are not
/// finite, or that were not requested, are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointsSummary {
    /// `mixture`, `factors` or `hmm`.
    pub command: String,
    /// The model, such as `gaussian mixture`.
    pub model: String,
    /// Status and verdict.
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
    /// Standard error of `heldout_log_predictive`.
    pub heldout_standard_error: Option<f64>,
    /// Number of iterations taken.
    pub iterations: u64,
    /// Number of training points.
    pub points: u64,
    /// Number of points without content that were skipped.
    pub skipped: u64,
    /// Points per second, where each pass counts every point.
    pub points_per_second: f64,
    /// Seconds by stage.
    pub seconds: PointsSeconds,
    /// Seed of the run.
    pub seed: u64,
    /// Version of Jensen.
    pub version: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The parts of the fitted model.
    #[serde(flatten)]
    pub parts: Parts,
    /// The gain of one more iteration over all points, in nats. Only for minibatch fits, which have no stopping rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The starts and sizes that the run tried, if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<CandidateRow>>,
}

/// A start of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateRow {
    /// Number of components, factors or states.
    pub parts: u64,
    /// The seed of the start.
    pub seed: u64,
    /// The bound of the start in nats.
    pub elbo: Option<f64>,
    /// The score by which models are compared: the bound, plus log K! for the equivalent modes of a mixture of K
    /// components.
    pub evidence: Option<f64>,
    /// Number of iterations that the candidate took.
    pub iterations: u64,
    /// Whether the candidate converged.
    pub converged: bool,
    /// Whether the candidate was kept.
    pub chosen: bool,
}

impl PointsSummary {
    /// Returns several fits as a table with one row per number of parts. The columns are the number of parts, the best
    /// bound, the bound for comparisons, the number of starts within a nat of the best, and `kept` for the chosen fit.
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
    /// The components of a mixture, the heaviest first.
    Components(Vec<Component>),
    /// The factors, with one value per column.
    Factors(Vec<Vec<f64>>),
    /// The states of chains.
    Chain(Chain),
}

/// Hidden Markov chains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// Probabilities of the first state.
    pub initial: Vec<f64>,
    /// Transition probabilities, one row per state.
    pub transitions: Vec<Vec<f64>>,
    /// The emissions of every state.
    pub emissions: Vec<Emission>,
}

/// Emissions of a state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Emission {
    /// Real vectors.
    Gaussian {
        /// Mean, one value per column.
        mean: Vec<f64>,
        /// Covariance row by row, or the variances if columns are independent.
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
    /// Columns of several kinds.
    Columns {
        /// The central value of each column: see [`ColumnDistribution::value`](super::ColumnDistribution::value).
        values: Vec<f64>,
        /// The columns.
        columns: Vec<ColumnPart>,
    },
}

impl Emission {
    /// Returns the mean, the probabilities or the proportions.
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
    /// Real vectors.
    Gaussian {
        /// Mean, one value per column.
        mean: Vec<f64>,
        /// Covariance row by row, or the variances if columns are independent.
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
    /// Columns of several kinds.
    Columns {
        /// The central value of each column: see [`ColumnDistribution::value`](super::ColumnDistribution::value).
        values: Vec<f64>,
        /// The columns.
        columns: Vec<ColumnPart>,
        /// Share of the points.
        weight: f64,
    },
}

impl Component {
    /// Returns the mean, the probabilities or the proportions.
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

    /// Computes the share of the points.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Gaussian { weight, .. }
            | Self::Bernoulli { weight, .. }
            | Self::Multinomial { weight, .. }
            | Self::Columns { weight, .. } => *weight,
        }
    }
}
