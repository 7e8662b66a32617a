//! Observation models log p(x | outputs of the network).
//!
//! Each distribution defines its name, its domain, the heads of the decoder, and the parameters of columns that all
//! records share. It also defines log densities, means, initial values and draws.

mod counts;
mod student;

use jensen_graph::{ElemOp, Graph, NodeId};
use jensen_math::constants::LOG_TWO_PI;
use serde::{Deserialize, Serialize};

/// The distribution of a record given the outputs of the decoder (appendix C of the paper).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// Independent binary values, whose logits the network outputs (Eq. 11). Values between 0 and 1 are treated as
    /// means of binary values: `x log y + (1 − x) log(1 − y)`.
    Bernoulli,
    /// Independent normal values, whose means and log variances the network outputs (Eq. 12).
    Gaussian {
        /// Whether the logistic function maps the means to (0, 1).
        bounded: bool,
    },
    /// Independent values with Student's t distribution, whose medians and log scales the network outputs. Values far
    /// from the median have more probability than under a normal distribution.
    StudentT {
        /// The degrees of freedom. If they are `None`, each column has its own, which training learns.
        degrees: Option<u32>,
    },
    /// Categorical values, each of which is represented by a group of `categories` indicators (or probabilities). The
    /// network outputs their logits.
    Categorical {
        /// Number of categories in a group. The width of a record is a multiple of this number.
        categories: usize,
    },
    /// Independent Poisson counts, whose log means the network outputs.
    Poisson,
    /// Independent negative binomial counts, whose log means the network outputs. Each column has one size, and the
    /// variance is mean + mean²/size.
    NegativeBinomial,
    /// Independent counts with excess zeros. The network outputs the log odds that a count is an excess zero. A count
    /// that is not an excess zero is negative binomial.
    ZeroInflatedNegativeBinomial,
}

pub(crate) struct Column {
    pub count: f64,
    pub mean: f64,
    pub variance: f64,
    pub zeros: f64,
}

/// A value outside the domain of a likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfDomain {
    /// The position of the value within its record.
    pub position: usize,
    /// The value that is outside the domain.
    pub value: f32,
    /// A description of the valid values for messages.
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
    /// The likelihoods of counts.
    pub const COUNTS: [Self; 3] = [
        Self::Poisson,
        Self::NegativeBinomial,
        Self::ZeroInflatedNegativeBinomial,
    ];

    /// Returns the name of the likelihood, such as `bernoulli` or `negative-binomial`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bernoulli => "bernoulli",
            Self::Gaussian { .. } => "gaussian",
            Self::StudentT { .. } => "student-t",
            Self::Categorical { .. } => "categorical",
            Self::Poisson => "poisson",
            Self::NegativeBinomial => "negative-binomial",
            Self::ZeroInflatedNegativeBinomial => "zero-inflated-negative-binomial",
        }
    }

    /// Whether values are counts.
    pub fn is_of_counts(self) -> bool {
        Self::COUNTS.contains(&self)
    }

    /// Whether the means are between 0 and 1.
    pub fn is_of_shares(self) -> bool {
        match self {
            Self::Bernoulli | Self::Gaussian { bounded: true } | Self::Categorical { .. } => true,
            Self::Gaussian { bounded: false }
            | Self::StudentT { .. }
            | Self::Poisson
            | Self::NegativeBinomial
            | Self::ZeroInflatedNegativeBinomial => false,
        }
    }

    /// Whether the values may be any real numbers. The columns of such values can be standardised.
    pub fn is_of_reals(self) -> bool {
        matches!(
            self,
            Self::Gaussian { bounded: false } | Self::StudentT { .. }
        )
    }

    /// Returns the heads of the decoder, each of which has one output for every value.
    pub fn heads(self) -> &'static [&'static str] {
        match self {
            Self::Bernoulli | Self::Categorical { .. } => &["logits"],
            Self::Gaussian { .. } => &["mean", "log_variance"],
            Self::StudentT { .. } => &["median", "log_scale"],
            Self::Poisson | Self::NegativeBinomial => &["log_mean"],
            Self::ZeroInflatedNegativeBinomial => &["log_mean", "excess_logits"],
        }
    }

    /// Returns the names of the parameters that each column has and all records share.
    pub fn of_columns(self) -> &'static [&'static str] {
        match self {
            Self::NegativeBinomial | Self::ZeroInflatedNegativeBinomial => &["log_size"],
            Self::StudentT { degrees: None } => &["log_degrees"],
            _ => &[],
        }
    }

    /// Returns the part of a value's log density that depends neither on the value nor on the parameters, in nats.
    pub fn constant(self) -> f64 {
        match self {
            Self::Gaussian { .. } => -0.5 * LOG_TWO_PI,
            Self::StudentT { degrees } => student::constant(degrees),
            _ => 0.0,
        }
    }

    /// Builds `log p(x)` of every value in nats, without the [constant](Self::constant). `outputs` contains the heads,
    /// followed by the parameters of the columns. The sum over a group of indicators is the log probability of the
    /// group's category.
    pub fn log_densities(self, graph: &mut Graph, outputs: &[NodeId], x: NodeId) -> NodeId {
        match self {
            Self::Bernoulli => {
                let logits = outputs[0];
                let linear = graph.mul(x, logits);
                let soft = graph.elem(ElemOp::Log1pExp, &[logits]);
                graph.sub(linear, soft)
            }
            Self::Gaussian { .. } => {
                let mean = self.mean(graph, outputs);
                let residual = graph.sub(x, mean);
                let square = graph.square(residual);
                let opposite = graph.neg(outputs[1]);
                let precision = graph.exp(opposite);
                let scaled = graph.mul(square, precision);
                let terms = graph.add(scaled, outputs[1]);
                graph.scale(-0.5, terms)
            }
            Self::StudentT { degrees } => student::log_density(graph, degrees, outputs, x),
            Self::Categorical { categories } => {
                let log = log_softmax(graph, outputs[0], categories);
                graph.mul(x, log)
            }
            Self::Poisson => counts::poisson(graph, outputs[0], x),
            Self::NegativeBinomial => counts::negative_binomial(graph, outputs[0], outputs[1], x),
            Self::ZeroInflatedNegativeBinomial => {
                let [log_mean, excess, log_size] = [outputs[0], outputs[1], outputs[2]];
                counts::zero_inflated(graph, [log_mean, log_size, excess], x)
            }
        }
    }

    /// Builds the mean of every value. For Student's t distribution it is the median, which equals the mean if there is
    /// more than one degree of freedom.
    pub fn mean(self, graph: &mut Graph, outputs: &[NodeId]) -> NodeId {
        match self {
            Self::Bernoulli | Self::Gaussian { bounded: true } => {
                graph.elem(ElemOp::InvLogit, &[outputs[0]])
            }
            Self::Gaussian { bounded: false } | Self::StudentT { .. } => outputs[0],
            Self::Categorical { categories } => {
                let log = log_softmax(graph, outputs[0], categories);
                graph.exp(log)
            }
            Self::Poisson | Self::NegativeBinomial => graph.exp(outputs[0]),
            Self::ZeroInflatedNegativeBinomial => {
                let opposite = graph.neg(outputs[1]);
                let counted = graph.elem(ElemOp::InvLogit, &[opposite]);
                let mean = graph.exp(outputs[0]);
                graph.mul(counted, mean)
            }
        }
    }

    /// Returns the initial outputs for a column, with the heads first. They are computed from the mean of the column,
    /// and parameters that are not in the list start at 0. For shares, half a record with the value 0 and half a record
    /// with the value 1 are added to the data. The logits then stay finite even if all records have the same value.
    pub(crate) fn start(self, column: &Column) -> Vec<f64> {
        let Column { count, mean, .. } = *column;
        let odds = (mean * count + 0.5) / ((1.0 - mean) * count + 0.5);
        match self {
            Self::Bernoulli | Self::Gaussian { bounded: true } => vec![odds.ln()],
            Self::Gaussian { bounded: false } => vec![mean],
            Self::StudentT { degrees } => student::start(column, degrees),
            Self::Categorical { .. } => vec![(mean + 0.5 / count).ln()],
            Self::Poisson => vec![counts::log_mean(column)],
            Self::NegativeBinomial => vec![counts::log_mean(column), counts::log_size(column)],
            Self::ZeroInflatedNegativeBinomial => vec![
                counts::log_mean(column),
                counts::log_odds_of_excess(column),
                counts::log_size(column),
            ],
        }
    }

    /// Draws a record and writes it to `x`. `outputs` contains the outputs of one head after another.
    pub fn draw(
        self,
        mean: &[f32],
        outputs: &[f32],
        stream: &mut jensen_math::rng::Stream,
        x: &mut [f32],
    ) {
        let output = |which: usize, i: usize| f64::from(outputs[which * mean.len() + i]);
        match self {
            Self::Bernoulli => {
                for (x, &p) in x.iter_mut().zip(mean) {
                    *x = f32::from(stream.uniform() < f64::from(p));
                }
            }
            Self::Gaussian { .. } => {
                for (i, (x, &m)) in x.iter_mut().zip(mean).enumerate() {
                    let z = jensen_math::special::inv_phi(stream.uniform());
                    *x = (f64::from(m) + (0.5 * output(1, i)).exp() * z) as f32;
                }
            }
            Self::StudentT { degrees } => {
                for (i, (x, &m)) in x.iter_mut().zip(mean).enumerate() {
                    let degrees = degrees.map_or_else(|| output(2, i).exp(), f64::from);
                    *x = student::draw((f64::from(m), output(1, i).exp(), degrees), stream);
                }
            }
            Self::Categorical { categories } => {
                for (x, p) in x.chunks_mut(categories).zip(mean.chunks(categories)) {
                    draw_category(p, stream, x);
                }
            }
            Self::Poisson => {
                for (x, &m) in x.iter_mut().zip(mean) {
                    *x = counts::draw_poisson(f64::from(m), stream);
                }
            }
            Self::NegativeBinomial => {
                for (i, (x, &m)) in x.iter_mut().zip(mean).enumerate() {
                    let size = output(1, i).exp();
                    *x = counts::draw_negative_binomial(f64::from(m), size, stream);
                }
            }
            Self::ZeroInflatedNegativeBinomial => {
                for (i, x) in x.iter_mut().enumerate() {
                    let counted = stream.uniform() < jensen_math::special::inv_logit(-output(1, i));
                    let (mean, size) = (output(0, i).exp(), output(2, i).exp());
                    *x = match counted {
                        true => counts::draw_negative_binomial(mean, size, stream),
                        false => 0.0,
                    };
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
            Self::Gaussian { .. } | Self::StudentT { .. } => {
                match record.iter().position(|x| !x.is_finite()) {
                    Some(at) => Err(bad(at, "a finite number")),
                    None => Ok(()),
                }
            }
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
            Self::Poisson | Self::NegativeBinomial | Self::ZeroInflatedNegativeBinomial => {
                counts::check(record)
            }
        }
    }
}

fn draw_category(p: &[f32], stream: &mut jensen_math::rng::Stream, x: &mut [f32]) {
    let total: f64 = p.iter().map(|&p| f64::from(p)).sum();
    let mut left = stream.uniform() * total;
    x.fill(0.0);
    let mut chosen = p.len() - 1;
    for (k, &p) in p.iter().enumerate() {
        left -= f64::from(p);
        if left < 0.0 {
            chosen = k;
            break;
        }
    }
    x[chosen] = 1.0;
}

fn log_softmax(graph: &mut Graph, logits: NodeId, categories: usize) -> NodeId {
    let width = graph.shape(logits).len as usize;
    let groups: Vec<NodeId> = (0..width / categories)
        .map(|group| {
            let logits = graph.slice(logits, group * categories, categories);
            let normaliser = log_sum_exp(graph, logits);
            graph.sub(logits, normaliser)
        })
        .collect();
    graph.concat(&groups)
}

/// Builds `log Σ eˣ`, which is shifted by the largest element to avoid overflow.
pub(crate) fn log_sum_exp(graph: &mut Graph, x: NodeId) -> NodeId {
    let largest = graph.max(x);
    let pivot = graph.elem(ElemOp::Pivot, &[largest]);
    let shifted = graph.sub(x, pivot);
    let exponentials = graph.exp(shifted);
    let total = graph.sum(exponentials);
    let log = graph.log(total);
    graph.add(log, pivot)
}
