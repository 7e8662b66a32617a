//! A fit of topics in numbers: `fit.json`.

use jensen_conjugate::documents::Documents;
use jensen_conjugate::lda::Rest;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Coherence, TopicModel, coherence};
use crate::job::Judgement;

/// A topic in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicRow {
    /// The number of the topic, from 0.
    pub topic: usize,
    /// The topic's share of the tokens.
    pub proportion: f64,
    /// The topic's most probable words with their probabilities.
    pub words: Vec<(String, f64)>,
    /// Do they occur together?
    #[serde(flatten)]
    pub coherence: Coherence,
}

/// Wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicsSeconds {
    /// Opening and checking the corpus.
    pub open: f64,
    /// The run, including intermediate held-out scores.
    pub fit: f64,
    /// Coherence and results.
    pub evaluate: f64,
}

/// A fit in numbers. Field names and meanings are stable, and fields may be added at the end. Numbers that are not
/// finite, or that were not requested, are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicsSummary {
    /// Status and verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// All passes were completed.
    pub finished: bool,
    /// Evidence lower bound under the untempered model, in nats, estimated from a sample of the training documents.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// Standard error of `elbo`.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
    /// Temperature at the end: the global temperature, or the mean over the last documents if each has its own.
    #[serde(deserialize_with = "null_is_nan")]
    pub temperature: f64,
    /// Mean log predictive probability of a held-out word by document completion, in nats per word.
    pub heldout_log_predictive: Option<f64>,
    /// Standard error of `heldout_log_predictive` over documents.
    pub heldout_log_predictive_se: Option<f64>,
    /// exp(−`heldout_log_predictive`).
    pub heldout_perplexity: Option<f64>,
    /// Held-out words that were scored.
    pub heldout_words: u64,
    /// Held-out documents that were scored.
    pub heldout_documents: u64,
    /// Documents per second of training.
    pub docs_per_second: Option<f64>,
    /// Number of documents processed in all passes together.
    pub documents_processed: u64,
    /// Number of training documents.
    pub documents: u64,
    /// Number of skipped documents without words.
    pub documents_skipped: u64,
    /// The number of documents in the bound: the training documents and, for an update, the older ones.
    pub population: f64,
    /// Tokens for training.
    pub tokens: f64,
    /// Number of words in the vocabulary.
    pub terms: usize,
    /// Number of topics.
    pub topics: usize,
    /// Dirichlet parameter of the topic proportions; the mean over topics if each has its own.
    pub alpha: f64,
    /// Dirichlet parameter of word proportions.
    pub eta: f64,
    /// The temperature policy.
    pub temper: String,
    /// Number of iterations taken.
    pub iterations: u64,
    /// Seconds by stage.
    pub seconds: TopicsSeconds,
    /// Mean coherence over topics in the training documents; see [`Coherence`].
    pub coherence: Coherence,
    /// Seed of the run.
    pub seed: u64,
    /// Version of Jensen.
    pub version: String,
    /// The topics, the largest first.
    pub topic_rows: Vec<TopicRow>,
    /// The local inference: `cvb0` or `mean-field`.
    #[serde(default)]
    pub inference: String,
    /// Number of topics in use: exp of the entropy of their shares of the tokens, between 1 and the number of topics.
    #[serde(default)]
    pub topics_in_use: f64,
    /// Number of topics with less than a tenth of an even share of the tokens.
    #[serde(default)]
    pub dead_topics: usize,
    /// The final values of an inferred global temperature, the chosen one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<Rest>,
    /// Dirichlet parameters of topic proportions by topic, if they are learned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned_alpha: Vec<f64>,
}

/// Returns the number of topics in use: exp of the entropy of shares that sum to 1. It equals the number of topics if
/// all shares are equal.
pub fn in_use(shares: &[f64]) -> f64 {
    let positive = shares.iter().filter(|share| **share > 0.0);
    (-positive.map(|share| share * share.ln()).sum::<f64>()).exp()
}

/// Returns the number of shares below a tenth of an even share.
pub fn dead(shares: &[f64]) -> usize {
    let least = DEAD / shares.len() as f64;
    shares.iter().filter(|share| **share < least).count()
}

/// A topic with less than this fraction of an even share is dead.
const DEAD: f64 = 0.1;

/// Reads `null` as NaN, because numbers that are not finite are written as `null`.
fn null_is_nan<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(json)?.unwrap_or(f64::NAN))
}

/// Returns topics in numbers, the largest first. Each has its `count` top words and their coherence over `documents`.
pub fn rows(model: &TopicModel, count: usize, documents: &dyn Documents) -> Vec<TopicRow> {
    let proportions = model.topics.shares();
    let top = model.top_words(count);
    let terms: Vec<Vec<u32>> = top
        .iter()
        .map(|words| words.iter().map(|word| word.0).collect())
        .collect();
    let judged = coherence(documents, &terms);
    let mut rows: Vec<TopicRow> = top
        .into_iter()
        .zip(judged)
        .enumerate()
        .map(|(topic, (words, coherence))| TopicRow {
            topic,
            proportion: proportions[topic],
            words: words
                .into_iter()
                .map(|(term, probability)| (model.words[term as usize].clone(), probability))
                .collect(),
            coherence,
        })
        .collect();
    rows.sort_by(|a, b| {
        b.proportion
            .total_cmp(&a.proportion)
            .then(a.topic.cmp(&b.topic))
    });
    rows
}

impl Coherence {
    /// Returns the mean over topics with a coherence.
    pub fn mean(rows: &[TopicRow]) -> Self {
        let mean = |values: Vec<f64>| {
            let count = values.len() as f64;
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
        };
        Self {
            npmi: mean(rows.iter().filter_map(|row| row.coherence.npmi).collect()),
            umass: mean(rows.iter().filter_map(|row| row.coherence.umass).collect()),
            cv: mean(rows.iter().filter_map(|row| row.coherence.cv).collect()),
        }
    }
}
