//! The content of a report, as plain data.

use crate::figure::Figure;
use crate::text;

/// The outcome of a run, for the colour of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Satisfactory.
    #[default]
    Good,
    /// Usable with care.
    Fair,
    /// Not to be used.
    Poor,
}

/// A report: everything on the page. Empty lists and texts omit the corresponding part.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// Headline.
    pub title: String,
    /// The model and the data: label and value.
    pub subject: Vec<(String, String)>,
    /// Whether the results are trusted.
    pub verdict: Verdict,
    /// Short facts at the top.
    pub facts: Vec<Fact>,
    /// Notes for the reader, one sentence each.
    pub warnings: Vec<String>,
    /// The body, in order of interest.
    pub sections: Vec<Section>,
    /// Settings of the run: name and value.
    pub settings: Vec<(String, String)>,
    /// Stages of the run, each with its wall-clock seconds.
    pub timing: Vec<(String, f64)>,
    /// The meaning of the numbers on the page, in a sentence or two.
    pub footnote: String,
    /// Version of the program that made the fit.
    pub version: String,
}

/// The verdict at the top.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// The colour of the verdict.
    pub tone: Tone,
    /// The verdict in a few words.
    pub headline: String,
    /// The end of the run, in a sentence.
    pub status: String,
    /// Advice, a sentence each.
    pub advice: Vec<String>,
}

impl Verdict {
    /// Creates a verdict without advice.
    pub fn new(tone: Tone, headline: impl Into<String>, status: impl Into<String>) -> Self {
        Self {
            tone,
            headline: headline.into(),
            status: status.into(),
            advice: Vec::new(),
        }
    }
}

/// A short fact: its name, its value, and an aside such as a unit or an error.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fact {
    /// The name of the fact.
    pub label: String,
    /// The value of the fact.
    pub value: String,
    /// The small text below the value, which may be empty.
    pub aside: String,
}

impl Fact {
    /// Creates a fact with an aside, which may be empty.
    pub fn new(
        label: impl Into<String>,
        value: impl Into<String>,
        aside: impl Into<String>,
    ) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
            aside: aside.into(),
        }
    }

    /// Creates a fact that states an evidence lower bound in nats, with as many decimals as its Monte Carlo standard
    /// error allows.
    pub fn elbo(elbo: f64, standard_error: f64) -> Self {
        let decimals = match standard_error.is_finite() {
            true => text::decimals_for(standard_error).saturating_sub(1),
            false => 2,
        };
        Self::new(
            "ELBO",
            text::fixed(elbo, decimals),
            format!("± {} nats", text::number(standard_error, 2)),
        )
    }

    /// Creates a fact that states Pareto k̂ and its limit.
    pub fn khat(khat: Khat) -> Self {
        Self::new(
            "Pareto k̂",
            text::fixed(khat.value, 2),
            format!("trusted to {}", text::fixed(khat.threshold, 2)),
        )
    }
}

/// A part of the body. Empty sections are omitted.
#[derive(Debug, Clone, PartialEq)]
pub enum Section {
    /// A heading with figures and a table.
    Exhibit(Exhibit),
    /// The bound along the run, with one entry per stage (adaptation, mean-field, full-rank, …) in order.
    Bound(Vec<Stage>),
    /// The importance weights of the draws.
    Weights(Weights),
    /// The posterior of named parameters.
    Posterior(Posterior),
    /// Topics of documents, with their positions on a map and their words.
    Topics(TopicMap),
}

impl From<Exhibit> for Section {
    fn from(exhibit: Exhibit) -> Self {
        Self::Exhibit(exhibit)
    }
}

/// A heading with figures and a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exhibit {
    /// Heading.
    pub heading: String,
    /// A sentence or two below it.
    pub note: String,
    /// Figures and their captions.
    pub figures: Vec<(Figure, String)>,
    /// The column heads and the rows of a table.
    pub table: (Vec<String>, Vec<Vec<String>>),
}

/// A map of topics, the largest first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicMap {
    /// The topics.
    pub topics: Vec<MappedTopic>,
}

/// A topic on the map.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedTopic {
    /// The number of the topic.
    pub number: usize,
    /// The topic's share of all tokens.
    pub share: f64,
    /// The position of the topic. Topics with similar words are close to each other.
    pub position: (f64, f64),
    /// The most relevant words of the topic; empty if they are not shown.
    pub words: Vec<TopicWord>,
}

/// A word of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicWord {
    /// The word.
    pub word: String,
    /// Share of all tokens that are this word and belong to this topic.
    pub within: f64,
    /// Share of all tokens that are this word.
    pub overall: f64,
}

/// A stage of the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// The name of the stage, as shown in the legend of the chart.
    pub name: String,
    /// Estimates of the bound in order.
    pub points: Vec<TracePoint>,
}

/// The bound at one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// Iteration, counted within the stage or over the whole run. In both cases the chart shows the stages in sequence.
    pub iteration: u64,
    /// Wall-clock seconds since the start.
    pub seconds: f64,
    /// Estimate of the bound in nats.
    pub elbo: f64,
    /// The Monte Carlo standard error of the estimate, or NaN.
    pub se: f64,
}

/// Pareto k̂ and its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Khat {
    /// The estimate, which is not finite if it cannot be computed.
    pub value: f64,
    /// Largest value for which draws are trusted: min(1 − 1/log₁₀ S, 0.7) for S draws.
    pub threshold: f64,
}

/// Importance weights p/q, draw by draw.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// Pareto k̂ of the weights.
    pub khat: Option<Khat>,
    /// Whether the fit was refined. k̂ then refers to the approximation before refinement.
    pub refined: bool,
    /// Log importance weights log p − log g of the draws, neither smoothed nor normalised.
    pub log_weights: Vec<f64>,
}

/// The posterior of named parameters: numbers, and densities if there are draws.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Posterior {
    /// One row per scalar parameter.
    pub parameters: Vec<Parameter>,
    /// Draws of scalar parameters, most interesting first. The page draws only some of them and states the number of
    /// the others.
    pub marginals: Vec<Marginal>,
    /// Names of variables that have sections of their own, such as predictions. The table and the figures omit them.
    pub elsewhere: Vec<String>,
}

/// Posterior summary of a scalar parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// Name with subscripts, such as `theta[2]`; parameters with the same stem share a forest plot.
    pub name: String,
    /// Mean; NaN if there is none.
    pub mean: f64,
    /// Standard deviation; NaN if there is none.
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

impl Parameter {
    /// Returns the spread of the parameter, which determines the number of decimals. It is the standard deviation, or
    /// if that is unknown, the standard deviation of a normal distribution with the same 90 % interval.
    pub(crate) fn spread(&self) -> f64 {
        match self.sd.is_nan() {
            true => (self.q95 - self.q05) / 3.29,
            false => self.sd,
        }
    }
}

/// Draws of a scalar parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Marginal {
    /// Name with subscripts.
    pub name: String,
    /// Draws in their original order, because correlations pair them by position.
    pub draws: Vec<f64>,
}
