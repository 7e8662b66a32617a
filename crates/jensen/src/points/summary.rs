//! The contents of `fit.json` for models of points.

use serde::{Deserialize, Serialize};

use super::ColumnPart;
use crate::job::Judgement;

/// The wall-clock time that each stage of a fit took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointsSeconds {
    /// The time for the run, in seconds.
    pub fit: f64,
}

/// The contents of `fit.json` for a model of points. The names and meanings of the fields do not change between
/// versions. Later versions may add fields at the end. Numbers that are not finite or were not requested are written as
/// `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointsSummary {
    /// The name of the command: `mixture`, `factors` or `hmm`.
    pub command: String,
    /// The name of the model, such as `gaussian mixture`.
    pub model: String,
    /// The status at the end of the run, with the verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// The ELBO of the model at temperature 1, in nats.
    pub elbo: Option<f64>,
    /// The name of the temperature policy.
    pub temper: String,
    /// The temperature at the end of the run.
    pub temperature: Option<f64>,
    /// The mean log predictive density of the held-out points, in nats per point.
    pub heldout_log_predictive: Option<f64>,
    /// The standard error of `heldout_log_predictive`.
    pub heldout_standard_error: Option<f64>,
    /// The number of iterations.
    pub iterations: u64,
    /// The number of training points.
    pub points: u64,
    /// The number of points that were skipped because they are empty.
    pub skipped: u64,
    /// The number of points that the fit processed per second. Every pass counts each point once.
    pub points_per_second: f64,
    /// The wall-clock time that each stage of the fit took.
    pub seconds: PointsSeconds,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The version of Jensen that wrote the file.
    pub version: String,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The parts of the fitted model.
    #[serde(flatten)]
    pub parts: Parts,
    /// The number of components that hold points. The field is present only for Dirichlet processes, which leave
    /// components empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupied: Option<u64>,
    /// The increase of the ELBO in one further iteration over all points, in nats. The field is present only for fits
    /// by minibatches, because these fits have no stopping rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// The candidates that the run compared, or `null` if there was only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidates: Option<Vec<CandidateRow>>,
}

/// A candidate, which is a combination of a model with a start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CandidateRow {
    /// The number of components, factors or states.
    pub parts: u64,
    /// The seed of the start.
    pub seed: u64,
    /// The ELBO of the start, in nats.
    pub elbo: Option<f64>,
    /// The score for comparing candidates. The score of a model with K components or states is the ELBO plus log K!,
    /// because the posterior has K! equivalent modes. For other models, the score is the ELBO.
    pub evidence: Option<f64>,
    /// The number of iterations of the start.
    pub iterations: u64,
    /// Whether the iterations from this start converged.
    pub converged: bool,
    /// Whether the run kept this candidate.
    pub chosen: bool,
}

impl PointsSummary {
    /// Returns a table that compares the candidates, with one row for each number of parts. The columns contain the
    /// number of parts, the best ELBO, the best comparison score, and the number of starts within one nat of the best.
    /// The last column marks the chosen model with `kept`.
    pub fn compared(&self) -> Option<(Vec<String>, Vec<Vec<String>>)> {
        let rows = self.candidates.as_ref()?;
        let part = match self.parts {
            Parts::Components(_) => "components",
            Parts::Factors(_) => "factors",
            Parts::Chain(_) => "states",
        };
        // The components of a process and known states have no equivalent orders, so their score is the ELBO.
        let equivalent = rows.iter().any(|row| row.evidence != row.elbo);
        let score = match self.parts {
            Parts::Components(_) | Parts::Chain(_) if equivalent => "ELBO + log K!",
            _ => "score",
        };
        let heads = [part, "ELBO", score, "starts within 1 nat of the best", ""];
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
    /// The components of a mixture, sorted by decreasing weight.
    Components(Vec<Component>),
    /// The factors, each of which has one value per column.
    Factors(Vec<Vec<f64>>),
    /// The parameters of a hidden Markov model.
    Chain(Chain),
}

/// The parameters of a hidden Markov model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chain {
    /// The probability of each state at the first step.
    pub initial: Vec<f64>,
    /// The transition probabilities. Each row contains the probabilities of the next state, given one current state.
    pub transitions: Vec<Vec<f64>>,
    /// The emission distribution of every state.
    pub emissions: Vec<Emission>,
    /// The names of the first states, if known states are named by words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// The emission distribution of one state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Emission {
    /// A normal distribution, for states that emit real vectors.
    Gaussian {
        /// The mean of each column.
        mean: Vec<f64>,
        /// The covariance matrix in row-major order, or only the variances if the columns are independent.
        covariance: Vec<f64>,
    },
    /// Independent Bernoulli distributions, for states that emit vectors of zeros and ones.
    Bernoulli {
        /// The probability of a one in each column.
        probabilities: Vec<f64>,
    },
    /// A multinomial distribution, for states that emit vectors of counts.
    Multinomial {
        /// The expected proportion of each column.
        proportions: Vec<f64>,
    },
    /// Independent distributions of several kinds, for states that emit columns of several kinds.
    Columns {
        /// A single number that describes the distribution of each column; see
        /// [`ColumnDistribution::value`](super::ColumnDistribution::value).
        values: Vec<f64>,
        /// The distribution of each column.
        columns: Vec<ColumnPart>,
    },
}

impl Emission {
    /// Returns the means, the probabilities, the proportions or the values that describe the columns.
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

/// One component of a mixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Component {
    /// A normal distribution, for points that are real vectors.
    Gaussian {
        /// The mean of each column.
        mean: Vec<f64>,
        /// The covariance matrix in row-major order, or only the variances if the columns are independent.
        covariance: Vec<f64>,
        /// The expected fraction of the points that belong to the component.
        weight: f64,
    },
    /// Independent Bernoulli distributions, for points that are vectors of zeros and ones.
    Bernoulli {
        /// The probability of a one in each column.
        probabilities: Vec<f64>,
        /// The expected fraction of the points that belong to the component.
        weight: f64,
    },
    /// A multinomial distribution, for points that are vectors of counts.
    Multinomial {
        /// The expected proportion of each column.
        proportions: Vec<f64>,
        /// The expected fraction of the points that belong to the component.
        weight: f64,
    },
    /// Independent distributions of several kinds, for points with columns of several kinds.
    Columns {
        /// A single number that describes the distribution of each column; see
        /// [`ColumnDistribution::value`](super::ColumnDistribution::value).
        values: Vec<f64>,
        /// The distribution of each column.
        columns: Vec<ColumnPart>,
        /// The expected fraction of the points that belong to the component.
        weight: f64,
    },
}

impl Component {
    /// Returns the means, the probabilities, the proportions or the values that describe the columns.
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

    /// Returns the expected fraction of the points that belong to the component.
    pub fn weight(&self) -> f64 {
        match self {
            Self::Gaussian { weight, .. }
            | Self::Bernoulli { weight, .. }
            | Self::Multinomial { weight, .. }
            | Self::Columns { weight, .. } => *weight,
        }
    }
}
