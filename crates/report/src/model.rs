//! The content of a report, as plain data.

use crate::figure::Figure;
use crate::text;

/// The outcome of a run, which determines the colour of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// The result is satisfactory.
    #[default]
    Good,
    /// The result is usable with care.
    Fair,
    /// The result must not be used.
    Poor,
}

/// A report with everything on the page. The page omits the parts whose lists or texts are empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The headline.
    pub title: String,
    /// Facts about the model and the data, each with its label and its value.
    pub subject: Vec<(String, String)>,
    /// The verdict on the results.
    pub verdict: Verdict,
    /// The short facts at the top.
    pub facts: Vec<Fact>,
    /// Notes for the reader, one sentence each.
    pub warnings: Vec<String>,
    /// The sections in order of interest.
    pub sections: Vec<Section>,
    /// The settings of the run, each with its name and its value.
    pub settings: Vec<(String, String)>,
    /// The stages of the run, each with its wall-clock time in seconds.
    pub timing: Vec<(String, f64)>,
    /// The explanation of the numbers on the page, in one or two sentences.
    pub footnote: String,
    /// The version of the program that computed the fit.
    pub version: String,
}

/// The verdict at the top of a report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// The colour of the verdict.
    pub tone: Tone,
    /// The verdict in a few words.
    pub headline: String,
    /// The reason why the run ended, in one sentence.
    pub status: String,
    /// Advice, one sentence each.
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

/// A short fact with a name, a value, and an aside such as a unit or an error.
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

    /// Creates a fact that states the ELBO in nats, with as many decimals as its Monte Carlo standard error allows.
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

    /// Creates a fact that states the Pareto k̂ and its limit.
    pub fn khat(khat: Khat) -> Self {
        Self::new(
            "Pareto k̂",
            text::fixed(khat.value, 2),
            format!("trusted to {}", text::fixed(khat.threshold, 2)),
        )
    }
}

/// A section of a report. Empty sections are omitted.
#[derive(Debug, Clone, PartialEq)]
pub enum Section {
    /// A heading with figures and a table.
    Exhibit(Exhibit),
    /// The ELBO during the run, with one entry per stage (adaptation, mean-field, full-rank, …) in order.
    Bound(Vec<Stage>),
    /// The importance weights of the draws.
    Weights(Weights),
    /// The posterior of named parameters.
    Posterior(Posterior),
    /// The topics of documents, with their positions on a map and their words.
    Topics(TopicMap),
}

impl From<Exhibit> for Section {
    fn from(exhibit: Exhibit) -> Self {
        Self::Exhibit(exhibit)
    }
}

/// A section that consists of a heading, figures and a table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exhibit {
    /// The heading.
    pub heading: String,
    /// One or two sentences below the heading.
    pub note: String,
    /// The figures with their captions.
    pub figures: Vec<(Figure, String)>,
    /// The column heads and the rows of the table.
    pub table: (Vec<String>, Vec<Vec<String>>),
}

/// A map of topics.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicMap {
    /// The topics, the largest first.
    pub topics: Vec<MappedTopic>,
}

/// A topic on the map.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedTopic {
    /// The number of the topic.
    pub number: usize,
    /// The topic's fraction of all tokens.
    pub share: f64,
    /// The position of the topic on the map. Topics with similar words are close to each other.
    pub position: (f64, f64),
    /// The most relevant words of the topic. It is empty if words are not shown.
    pub words: Vec<TopicWord>,
}

/// A word of a topic.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicWord {
    /// The text of the word.
    pub word: String,
    /// The fraction of all tokens that are this word and belong to this topic.
    pub within: f64,
    /// The fraction of all tokens that are this word.
    pub overall: f64,
}

/// A stage of the run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// The name of the stage in the legend of the chart.
    pub name: String,
    /// The estimates of the ELBO in order.
    pub points: Vec<TracePoint>,
}

/// The ELBO at one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// The iteration, counted within the stage or over the whole run. In both cases the chart shows the stages in
    /// sequence.
    pub iteration: u64,
    /// The wall-clock time since the start in seconds.
    pub seconds: f64,
    /// The estimate of the ELBO in nats.
    pub elbo: f64,
    /// The Monte Carlo standard error of the estimate in nats, or NaN.
    pub se: f64,
}

/// The Pareto k̂ of importance weights, with its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Khat {
    /// The estimate of k̂, which is not finite if it cannot be computed.
    pub value: f64,
    /// The largest value at which draws are trusted, which is min(1 − 1/log₁₀ S, 0.7) for S draws.
    pub threshold: f64,
}

/// The importance weights p/q of the draws.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// The Pareto k̂ of the weights.
    pub khat: Option<Khat>,
    /// Whether the fit was refined. If so, k̂ refers to the approximation before the refinement.
    pub refined: bool,
    /// The log importance weights log p − log q of the draws, neither smoothed nor normalised.
    pub log_weights: Vec<f64>,
}

/// The posterior of named parameters: summaries, and densities if there are draws.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Posterior {
    /// The summaries, one per scalar parameter.
    pub parameters: Vec<Parameter>,
    /// The draws of scalar parameters, in decreasing order of interest. The page shows only some of them, and states
    /// how many it omits.
    pub marginals: Vec<Marginal>,
    /// The names of variables that other sections show, such as predictions. The table and the figures omit them.
    pub elsewhere: Vec<String>,
}

/// The posterior summary of a scalar parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name with subscripts, such as `theta[2]`. Parameters with the same stem share a forest plot.
    pub name: String,
    /// The mean, or NaN if there is none.
    pub mean: f64,
    /// The standard deviation, or NaN if there is none.
    pub sd: f64,
    /// The 5 % quantile.
    pub q05: f64,
    /// The median.
    pub q50: f64,
    /// The 95 % quantile.
    pub q95: f64,
    /// The Monte Carlo standard error of the mean.
    pub mcse: Option<f64>,
}

impl Parameter {
    /// Returns the spread of the parameter, which determines the number of decimals. It is the standard deviation or,
    /// if that is unknown, the standard deviation of a normal distribution with the same 90 % interval.
    pub(crate) fn spread(&self) -> f64 {
        match self.sd.is_nan() {
            true => (self.q95 - self.q05) / 3.29,
            false => self.sd,
        }
    }
}

/// The draws of a scalar parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Marginal {
    /// The name with subscripts.
    pub name: String,
    /// The draws in their original order, because correlations pair them by position.
    pub draws: Vec<f64>,
}
