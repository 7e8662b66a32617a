//! Observation models: log p(x | network outputs).

use jensen_graph::{ElemOp, Graph, NodeId};
use jensen_math::constants::LOG_TWO_PI;
use serde::{Deserialize, Serialize};

/// The distribution of a record given the outputs of the decoder (appendix C of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// Independent binary values with logits from the network (Eq. 11). Values between 0 and 1 are means of binary
    /// values: `x log y + (1 − x) log(1 − y)`.
    Bernoulli,
    /// Independent normal values with mean and log variance from the network (Eq. 12).
    Gaussian {
        /// Whether means are squashed to (0, 1) by the logistic function.
        bounded: bool,
    },
    /// Groups of `categories` indicator values (or probabilities), one category each, with logits from the network.
    Categorical {
        /// Number of categories of a group; the width of a record is a multiple of it.
        categories: usize,
    },
}

/// A value outside the domain of a likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfDomain {
    /// Position in the record.
    pub position: usize,
    /// The value.
    pub value: f32,
    /// The valid range.
    pub expected: &'static str,
}

impl std::fmt::Display for OutOfDomain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            position,
            value,
            expected,
        } = self;
        write!(f, "value {} is {value}, expected {expected}", position + 1)
    }
}

impl std::error::Error for OutOfDomain {}

impl Likelihood {
    /// A fixed word: `bernoulli`, `gaussian` or `categorical`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bernoulli => "bernoulli",
            Self::Gaussian { .. } => "gaussian",
            Self::Categorical { .. } => "categorical",
        }
    }

    /// The heads that the decoder must have for records of `width` values.
    pub fn heads(self, width: usize) -> Vec<(&'static str, usize)> {
        match self {
            Self::Bernoulli | Self::Categorical { .. } => vec![("logits", width)],
            Self::Gaussian { .. } => vec![("mean", width), ("log_variance", width)],
        }
    }

    /// `log p(x | outputs)` in nats, with all constants. `outputs` are the values of the heads.
    pub fn log_density(self, graph: &mut Graph, outputs: &[NodeId], x: NodeId) -> NodeId {
        match self {
            Self::Bernoulli => {
                let logits = outputs[0];
                let linear = graph.mul(x, logits);
                let soft = graph.elem(ElemOp::Log1pExp, &[logits]);
                let terms = graph.sub(linear, soft);
                graph.sum(terms)
            }
            Self::Gaussian { .. } => {
                let mean = self.mean(graph, outputs);
                let residual = graph.sub(x, mean);
                let square = graph.square(residual);
                let opposite = graph.neg(outputs[1]);
                let precision = graph.exp(opposite);
                let scaled = graph.mul(square, precision);
                let terms = graph.add(scaled, outputs[1]);
                let sum = graph.sum(terms);
                let width = f64::from(graph.shape(x).len);
                let constant = graph.constant(width * LOG_TWO_PI);
                let total = graph.add(sum, constant);
                graph.scale(-0.5, total)
            }
            Self::Categorical { categories } => {
                let width = graph.shape(x).len as usize;
                let groups: Vec<NodeId> = (0..width / categories)
                    .map(|group| {
                        let logits = graph.slice(outputs[0], group * categories, categories);
                        let x = graph.slice(x, group * categories, categories);
                        let normaliser = log_sum_exp(graph, logits);
                        let log = graph.sub(logits, normaliser);
                        let terms = graph.mul(x, log);
                        graph.sum(terms)
                    })
                    .collect();
                graph.add_all(&groups)
            }
        }
    }

    /// The mean of a record given the outputs of the decoder.
    pub fn mean(self, graph: &mut Graph, outputs: &[NodeId]) -> NodeId {
        match self {
            Self::Bernoulli | Self::Gaussian { bounded: true } => {
                graph.elem(ElemOp::InvLogit, &[outputs[0]])
            }
            Self::Gaussian { bounded: false } => outputs[0],
            Self::Categorical { categories } => {
                let width = graph.shape(outputs[0]).len as usize;
                let groups: Vec<NodeId> = (0..width / categories)
                    .map(|group| {
                        let logits = graph.slice(outputs[0], group * categories, categories);
                        let normaliser = log_sum_exp(graph, logits);
                        let log = graph.sub(logits, normaliser);
                        graph.exp(log)
                    })
                    .collect();
                graph.concat(&groups)
            }
        }
    }

    /// The output of the first head at which a value has this mean over `count` records: log odds, or the mean itself.
    /// Half a record of either kind is added, so that values that all or no records have remain finite.
    pub(crate) fn linked(self, mean: f64, count: f64) -> f64 {
        let odds = |mean: f64| (mean * count + 0.5) / ((1.0 - mean) * count + 0.5);
        match self {
            Self::Bernoulli | Self::Gaussian { bounded: true } => odds(mean).ln(),
            Self::Gaussian { bounded: false } => mean,
            Self::Categorical { .. } => (mean + 0.5 / count).ln(),
        }
    }

    /// Draws a record into `x`, given its mean, its log variance (Gaussian only) and a source of uniform numbers and
    /// of normal ones.
    pub fn draw(
        self,
        mean: &[f32],
        log_variance: &[f32],
        stream: &mut jensen_math::rng::Stream,
        x: &mut [f32],
    ) {
        match self {
            Self::Bernoulli => {
                for (x, &p) in x.iter_mut().zip(mean) {
                    *x = f32::from(stream.uniform() < f64::from(p));
                }
            }
            Self::Gaussian { .. } => {
                for ((x, &m), &v) in x.iter_mut().zip(mean).zip(log_variance) {
                    let z = jensen_math::special::inv_phi(stream.uniform());
                    *x = (f64::from(m) + (0.5 * f64::from(v)).exp() * z) as f32;
                }
            }
            Self::Categorical { categories } => {
                for (x, p) in x.chunks_mut(categories).zip(mean.chunks(categories)) {
                    let total: f64 = p.iter().map(|&p| f64::from(p)).sum();
                    let mut left = stream.uniform() * total;
                    x.fill(0.0);
                    let mut chosen = categories - 1;
                    for (k, &p) in p.iter().enumerate() {
                        left -= f64::from(p);
                        if left < 0.0 {
                            chosen = k;
                            break;
                        }
                    }
                    x[chosen] = 1.0;
                }
            }
        }
    }

    /// Checks the values of a record.
    ///
    /// # Errors
    /// Returns the first value outside the domain.
    pub fn check(self, record: &[f32]) -> Result<(), OutOfDomain> {
        let unit = |x: f32| (0.0..=1.0).contains(&x);
        let bad = |position: usize, expected| OutOfDomain {
            position,
            value: record[position],
            expected,
        };
        match self {
            Self::Bernoulli => match record.iter().position(|&x| !unit(x)) {
                Some(at) => Err(bad(at, "a number between 0 and 1")),
                None => Ok(()),
            },
            Self::Gaussian { .. } => match record.iter().position(|x| !x.is_finite()) {
                Some(at) => Err(bad(at, "a finite number")),
                None => Ok(()),
            },
            Self::Categorical { categories } => {
                if let Some(at) = record.iter().position(|&x| !unit(x)) {
                    return Err(bad(at, "a number between 0 and 1"));
                }
                for (group, x) in record.chunks(categories).enumerate() {
                    let total: f32 = x.iter().sum();
                    if (total - 1.0).abs() > 1e-3 {
                        return Err(bad(group * categories, "groups that sum to 1"));
                    }
                }
                Ok(())
            }
        }
    }
}

/// `log Σ eˣ`, shifted by the largest element.
fn log_sum_exp(graph: &mut Graph, x: NodeId) -> NodeId {
    let largest = graph.max(x);
    let pivot = graph.elem(ElemOp::Pivot, &[largest]);
    let shifted = graph.sub(x, pivot);
    let exponentials = graph.exp(shifted);
    let total = graph.sum(exponentials);
    let log = graph.log(total);
    graph.add(log, pivot)
}
