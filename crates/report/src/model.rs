//! The content of a report, represented by plain data structures.

use crate::figure::Figure;
use crate::text;

/// The quality of a result, which determines the colour of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// The result is satisfactory and can be used.
    #[default]
    Good,
    /// The result can be used, but only with care.
    Fair,
    /// The result must not be used.
    Poor,
}

/// A report with all of its content. A part of the page is omitted if the corresponding list or text is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The headline of the page.
    pub title: String,
    /// Facts about the model and the data. Each fact consists of a label and a value.
    pub subject: Vec<(String, String)>,
    /// The verdict on the results.
    pub verdict: Verdict,
    /// The facts that are displayed at the top of the page.
    pub facts: Vec<Fact>,
    /// Notes for the reader. Each note is one sentence.
    pub warnings: Vec<String>,
    /// The sections of the page, with the most important section first.
    pub sections: Vec<Section>,
    /// The settings of the run. Each setting consists of a name and a value.
    pub settings: Vec<(String, String)>,
    /// The stages of the run. Each stage consists of a name and its wall-clock time in seconds.
    pub timing: Vec<(String, f64)>,
    /// An explanation of the numbers on the page, in one or two sentences.
    pub footnote: String,
    /// The version of the program that computed the fit.
    pub version: String,
}

/// The verdict on the results, which is displayed at the top of a report.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verdict {
    /// The colour of the verdict.
    pub tone: Tone,
    /// The verdict itself, in a few words.
    pub headline: String,
    /// The reason why the run ended, in one sentence.
    pub status: String,
    /// Advice for the reader. Each item is one sentence.
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

/// A short fact. It has a label, a value, and an aside such as a unit or a standard error.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fact {
    /// The label of the fact, such as the name of a quantity.
    pub label: String,
    /// The value of the fact.
    pub value: String,
    /// The small text that is displayed below the value. It may be empty.
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

    /// Creates a fact that states the ELBO in nats. The Monte Carlo standard error determines the number of decimals.
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

    /// Creates a fact that states the Pareto k̂ together with its limit.
    pub fn khat(khat: Khat) -> Self {
        Self::new(
            "Pareto k̂",
            text::fixed(khat.value, 2),
            format!("trusted to {}", text::fixed(khat.threshold, 2)),
        )
    }
}

/// A section of a report. The page omits sections that are empty.
#[derive(Debug, Clone, PartialEq)]
pub enum Section {
    /// A section that consists of a heading, figures and a table.
    Exhibit(Exhibit),
    /// The history of the ELBO during the run. There is one entry for each stage (adaptation, mean-field, full-rank,
    /// …), in order.
    Bound(Vec<Stage>),
    /// The importance weights of the draws.
    Weights(Weights),
    /// The posterior distribution of named parameters.
    Posterior(Posterior),
    /// The topics of a topic model, with their positions on a map and their most relevant words.
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
    /// A note of one or two sentences, which is displayed below the heading.
    pub note: String,
    /// The figures of the section. Each figure has a caption.
    pub figures: Vec<(Figure, String)>,
    /// The headings of the columns of the table, followed by its rows.
    pub table: (Vec<String>, Vec<Vec<String>>),
}

/// A map that shows the topics of a topic model.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TopicMap {
    /// The topics, sorted by size. The largest topic comes first.
    pub topics: Vec<MappedTopic>,
}

/// A topic of a topic model, with its position on the map.
#[derive(Debug, Clone, PartialEq)]
pub struct MappedTopic {
    /// The number of the topic, as it is displayed on the page.
    pub number: usize,
    /// The fraction of all tokens that belong to the topic.
    pub share: f64,
    /// The position of the topic on the map. Topics that contain similar words are close to each other.
    pub position: (f64, f64),
    /// The most relevant words of the topic. The list is empty if the page does not show words.
    pub words: Vec<TopicWord>,
}

/// A word of a topic, with its frequencies.
#[derive(Debug, Clone, PartialEq)]
pub struct TopicWord {
    /// The text of the word.
    pub word: String,
    /// The fraction of all tokens that are occurrences of this word and belong to this topic.
    pub within: f64,
    /// The fraction of all tokens that are occurrences of this word.
    pub overall: f64,
}

/// A stage of the run, such as the adaptation or the mean-field stage.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stage {
    /// The name of the stage, which is displayed in the legend of the chart.
    pub name: String,
    /// The estimates of the ELBO, in the order in which they were computed.
    pub points: Vec<TracePoint>,
}

/// An estimate of the ELBO at one iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracePoint {
    /// The number of the iteration. Iterations may be counted within the stage or over the whole run. In either case,
    /// the chart shows the stages one after another.
    pub iteration: u64,
    /// The wall-clock time since the start of the run, in seconds.
    pub seconds: f64,
    /// The estimate of the ELBO in nats.
    pub elbo: f64,
    /// The Monte Carlo standard error of the estimate in nats. The value is NaN if the standard error is unknown.
    pub se: f64,
}

/// The Pareto k̂ of importance weights, together with its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Khat {
    /// The estimate of k̂. The value is not finite if k̂ could not be computed.
    pub value: f64,
    /// The largest k̂ for which draws are trusted. For S draws it is min(1 − 1/log₁₀ S, 0.7).
    pub threshold: f64,
}

/// The importance weights p/q of draws from the approximation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Weights {
    /// The Pareto k̂ of the importance weights.
    pub khat: Option<Khat>,
    /// Whether the fit was refined. If so, k̂ refers to the approximation and not to the refined draws.
    pub refined: bool,
    /// The log importance weights log p − log q of the draws. The weights are neither smoothed nor normalised.
    pub log_weights: Vec<f64>,
}

/// The posterior distribution of named parameters. It consists of summaries and, if there are draws, of densities.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Posterior {
    /// The summary of each scalar parameter.
    pub parameters: Vec<Parameter>,
    /// The draws of scalar parameters, with the most interesting parameters first. The page shows only some of them,
    /// and states how many are omitted.
    pub marginals: Vec<Marginal>,
    /// The names of variables that other sections show, such as predictions. The table and the figures of this section
    /// omit these variables.
    pub elsewhere: Vec<String>,
}

/// The posterior summary of a scalar parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name of the parameter with its subscripts, such as `theta[2]`. Parameters with the same stem share a forest
    /// plot.
    pub name: String,
    /// The mean, or NaN if the parameter has no mean.
    pub mean: f64,
    /// The standard deviation, or NaN if the parameter has no standard deviation.
    pub sd: f64,
    /// The 5 % quantile.
    pub q05: f64,
    /// The median.
    pub q50: f64,
    /// The 95 % quantile.
    pub q95: f64,
    /// The Monte Carlo standard error of the mean, if it is known.
    pub mcse: Option<f64>,
}

impl Parameter {
    /// Returns the spread of the parameter, which determines the number of decimals. The spread is the standard
    /// deviation if that is known. Otherwise, the spread is computed from the 90 % interval as if the distribution were
    /// normal.
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
    /// The name of the parameter with its subscripts.
    pub name: String,
    /// The draws in their original order. The order matters because correlations are computed from draws at the same
    /// position.
    pub draws: Vec<f64>,
}
