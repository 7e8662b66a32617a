//! The contents of `fit.json` of topic models.

use jensen_conjugate::documents::Documents;
use jensen_conjugate::lda::Rest;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Coherence, TopicModel, coherence};
use crate::job::Judgement;

/// The summary of a topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicRow {
    /// The number of the topic, from 0.
    pub topic: usize,
    /// The share of the tokens.
    pub proportion: f64,
    /// The most probable words with their probabilities.
    pub words: Vec<(String, f64)>,
    /// The coherence of these words.
    #[serde(flatten)]
    pub coherence: Coherence,
}

/// The wall-clock seconds of the parts of a fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicsSeconds {
    /// Seconds for opening and checking the corpus.
    pub open: f64,
    /// Seconds for the run, including intermediate held-out scores.
    pub fit: f64,
    /// Seconds for the coherence and other results.
    pub evaluate: f64,
}

/// The contents of `fit.json` of a topic model. The names and meanings of the fields are stable. Later versions may add
/// fields at the end. Numbers that are not finite or were not requested are `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicsSummary {
    /// The status and the verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Whether all passes were completed.
    pub finished: bool,
    /// The ELBO of the untempered model in nats, estimated from a sample of the training documents.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The standard error of `elbo`.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
    /// The final temperature. If each document has its own, it is the mean over the last documents.
    #[serde(deserialize_with = "null_is_nan")]
    pub temperature: f64,
    /// The mean log predictive probability of a held-out word by document completion, in nats.
    pub heldout_log_predictive: Option<f64>,
    /// The standard error of `heldout_log_predictive` over documents.
    pub heldout_log_predictive_se: Option<f64>,
    /// The perplexity exp(−`heldout_log_predictive`).
    pub heldout_perplexity: Option<f64>,
    /// The number of held-out words that were scored.
    pub heldout_words: u64,
    /// The number of held-out documents that were scored.
    pub heldout_documents: u64,
    /// The number of documents per second during training.
    pub docs_per_second: Option<f64>,
    /// The number of documents that were processed in all passes together.
    pub documents_processed: u64,
    /// The number of training documents.
    pub documents: u64,
    /// The number of documents that were skipped because they have no words.
    pub documents_skipped: u64,
    /// The number of documents in the ELBO: the training documents and, for an update, the earlier ones.
    pub population: f64,
    /// The number of training tokens.
    pub tokens: f64,
    /// The number of words in the vocabulary.
    pub terms: usize,
    /// The number of topics.
    pub topics: usize,
    /// The Dirichlet parameter of the topic proportions. If each topic has its own, it is the mean.
    pub alpha: f64,
    /// The Dirichlet parameter of the word proportions.
    pub eta: f64,
    /// The name of the temperature policy.
    pub temper: String,
    /// The number of iterations.
    pub iterations: u64,
    /// The seconds of the parts of the fit.
    pub seconds: TopicsSeconds,
    /// The mean coherence over topics in the training documents.
    pub coherence: Coherence,
    /// The seed.
    pub seed: u64,
    /// The version of Jensen.
    pub version: String,
    /// The summaries of the topics, the largest first.
    pub topic_rows: Vec<TopicRow>,
    /// The local inference, `cvb0` or `mean-field`.
    #[serde(default)]
    pub inference: String,
    /// The number of topics in use, which is the exponential of the entropy of their shares of the tokens. It is
    /// between 1 and the number of topics.
    #[serde(default)]
    pub topics_in_use: f64,
    /// The number of topics with less than a tenth of an even share of the tokens.
    #[serde(default)]
    pub dead_topics: usize,
    /// The final values of an inferred global temperature, the chosen one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<Rest>,
    /// The Dirichlet parameters of the topic proportions by topic, if they are learnt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned_alpha: Vec<f64>,
}

/// Returns the number of topics in use, which is the exponential of the entropy of shares that sum to 1. It equals the
/// number of topics if all shares are equal.
pub fn in_use(shares: &[f64]) -> f64 {
    let positive = shares.iter().filter(|share| **share > 0.0);
    (-positive.map(|share| share * share.ln()).sum::<f64>()).exp()
}

/// Returns the number of shares below a tenth of an even share.
pub fn dead(shares: &[f64]) -> usize {
    let least = DEAD / shares.len() as f64;
    shares.iter().filter(|share| **share < least).count()
}

/// The fraction of an even share below which a topic is dead.
const DEAD: f64 = 0.1;

/// Numbers that are not finite are written as `null`.
fn null_is_nan<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(json)?.unwrap_or(f64::NAN))
}

/// Returns the summaries of the topics, the largest first. Each has its `count` top words and their coherence over
/// `documents`.
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
    /// Returns the mean over the topics that have a coherence.
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
