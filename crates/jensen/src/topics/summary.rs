//! The contents of `fit.json` for topic models.

use std::convert::Infallible;

use jensen_conjugate::documents::Documents;
use jensen_conjugate::lda::Rest;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Coherence, TopicModel, coherence};
use crate::job::Judgement;

/// The summary of one topic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicRow {
    /// The zero-based index of the topic.
    pub topic: usize,
    /// The fraction of the tokens that are assigned to the topic.
    pub proportion: f64,
    /// The most probable words of the topic with their probabilities.
    pub words: Vec<(String, f64)>,
    /// The coherence of the words in `words`.
    #[serde(flatten)]
    pub coherence: Coherence,
}

/// The score of a number of topics, beside the score of the chosen number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicsCandidate {
    /// The number of topics.
    pub topics: usize,
    /// The mean log predictive probability of held-out words, in nats per word.
    #[serde(deserialize_with = "null_is_nan")]
    pub heldout_log_predictive: f64,
    /// The score minus the score of the chosen number of topics, in nats per word.
    #[serde(deserialize_with = "null_is_nan")]
    pub difference: f64,
    /// The standard error of `difference`, estimated from the differences of the single documents.
    #[serde(deserialize_with = "null_is_nan")]
    pub difference_se: f64,
    /// Whether this number was chosen.
    pub chosen: bool,
    /// The score of each start in nats per word. `heldout_log_predictive` is the largest of these scores.
    #[serde(default, deserialize_with = "nulls_are_nan")]
    pub starts: Vec<f64>,
}

impl TopicsCandidate {
    /// Returns the heads and the rows of a table of candidates.
    pub fn table(rows: &[Self]) -> (Vec<String>, Vec<Vec<String>>) {
        let heads = [
            "topics",
            "held out, nats/word",
            "difference",
            "standard error",
            "",
        ];
        let row = |row: &Self| {
            vec![
                row.topics.to_string(),
                format!("{:.4}", row.heldout_log_predictive),
                format!("{:.4}", row.difference),
                format!("{:.4}", row.difference_se),
                if row.chosen { "kept" } else { "" }.to_owned(),
            ]
        };
        (
            heads.map(str::to_owned).to_vec(),
            rows.iter().map(row).collect(),
        )
    }
}

/// The wall-clock time that each stage of a fit took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicsSeconds {
    /// The time for opening and checking the corpus, in seconds.
    pub open: f64,
    /// The time for the run in seconds, including held-out scores during the run.
    pub fit: f64,
    /// The time for the coherence and the other results, in seconds.
    pub evaluate: f64,
}

/// The contents of `fit.json` for a topic model. The names and meanings of the fields do not change between versions.
/// Later versions may add fields at the end. Numbers that are not finite or were not requested are written as `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopicsSummary {
    /// The status at the end of the run, with the verdict.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Whether the run completed all planned passes.
    pub finished: bool,
    /// The ELBO of the model without tempering, in nats. It is estimated from a sample of the training documents.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo: f64,
    /// The standard error of `elbo`.
    #[serde(deserialize_with = "null_is_nan")]
    pub elbo_se: f64,
    /// The temperature at the end of the run. If each document has its own temperature, this is the mean over the last
    /// documents.
    #[serde(deserialize_with = "null_is_nan")]
    pub temperature: f64,
    /// The mean log predictive probability of held-out words in nats per word, computed by document completion.
    pub heldout_log_predictive: Option<f64>,
    /// The standard error of `heldout_log_predictive`, estimated from the variation between documents.
    pub heldout_log_predictive_se: Option<f64>,
    /// The held-out perplexity, which is exp(−`heldout_log_predictive`).
    pub heldout_perplexity: Option<f64>,
    /// The number of held-out words that were scored.
    pub heldout_words: u64,
    /// The number of held-out documents that were scored.
    pub heldout_documents: u64,
    /// The number of documents that training processes per second.
    pub docs_per_second: Option<f64>,
    /// The total number of documents that were processed in all passes.
    pub documents_processed: u64,
    /// The number of training documents.
    pub documents: u64,
    /// The number of documents that were skipped because they contain no words.
    pub documents_skipped: u64,
    /// The number of documents to which the ELBO refers. The ELBO refers to the training documents and, for an update,
    /// to the documents of the earlier fits.
    pub population: f64,
    /// The number of tokens in the training documents.
    pub tokens: f64,
    /// The number of words in the vocabulary.
    pub terms: usize,
    /// The number of topics.
    pub topics: usize,
    /// The Dirichlet parameter of the topic proportions. If each topic has its own parameter, this is the mean of the
    /// parameters.
    pub alpha: f64,
    /// The Dirichlet parameter of the word proportions.
    pub eta: f64,
    /// The name of the temperature policy.
    pub temper: String,
    /// The number of iterations.
    pub iterations: u64,
    /// The wall-clock time that each stage of the fit took.
    pub seconds: TopicsSeconds,
    /// The mean of the coherence of all topics, computed from the training documents.
    pub coherence: Coherence,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The version of Jensen that wrote the file.
    pub version: String,
    /// The summaries of the topics, sorted by decreasing proportion.
    pub topic_rows: Vec<TopicRow>,
    /// The method of local inference, `cvb0` or `mean-field`.
    #[serde(default)]
    pub inference: String,
    /// The effective number of topics in use. It lies between 1 and the number of topics. The effective number is the
    /// exponential of the entropy of the fractions of tokens that are assigned to the topics.
    #[serde(default)]
    pub topics_in_use: f64,
    /// The number of topics to which less than a tenth of an equal share of the tokens is assigned.
    #[serde(default)]
    pub dead_topics: usize,
    /// The final state of each run with an inferred global temperature. The selected run comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rests: Vec<Rest>,
    /// The scores of all numbers of topics that the run compared, in ascending order of the number. The list is empty if
    /// there was only one number and one start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<TopicsCandidate>,
    /// The Dirichlet parameter of the topic proportions for each topic. The list is empty unless these parameters are
    /// learnt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned_alpha: Vec<f64>,
    /// The smallest number of topics that together hold 99 % of the tokens, if the fit learnt a hierarchical Dirichlet
    /// process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topics_found: Option<usize>,
    /// The posterior means of the concentrations α₀ and γ of the hierarchical Dirichlet process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concentrations: Option<[f64; 2]>,
}

/// Returns the effective number of topics in use, computed as the exponential of the entropy of `shares`. The shares
/// must sum to 1. If all shares are equal, the result is the number of topics.
pub fn in_use(shares: &[f64]) -> f64 {
    let positive = shares.iter().filter(|share| **share > 0.0);
    (-positive.map(|share| share * share.ln()).sum::<f64>()).exp()
}

/// Returns the smallest number of topics whose shares sum to [`MOST_TOKENS`]. The shares must sum to 1.
pub fn found(shares: &[f64]) -> usize {
    let mut shares = shares.to_vec();
    shares.sort_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let below = shares.iter().take_while(|share| {
        let goes_on = sum < MOST_TOKENS;
        sum += **share;
        goes_on
    });
    below.count()
}

/// The share of the tokens that the topics found by a hierarchical Dirichlet process hold. The topics beyond them are
/// empty, or hold a few rare words.
const MOST_TOKENS: f64 = 0.99;

/// Returns the number of shares that are smaller than a tenth of an equal share.
pub fn dead(shares: &[f64]) -> usize {
    let least = DEAD / shares.len() as f64;
    shares.iter().filter(|share| **share < least).count()
}

/// A topic is counted as dead if its share is smaller than this fraction of an equal share.
const DEAD: f64 = 0.1;

/// Reads `null` as NaN, because numbers that are not finite are written as `null`.
fn null_is_nan<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(json)?.unwrap_or(f64::NAN))
}

/// Reads `null` in a list as NaN.
fn nulls_are_nan<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<f64>, D::Error> {
    let list = Vec::<Option<f64>>::deserialize(json)?;
    Ok(list.into_iter().map(|x| x.unwrap_or(f64::NAN)).collect())
}

/// Returns the summaries of the topics, sorted by decreasing proportion. Each summary contains the `count` most
/// probable words of the topic and the coherence of these words over `documents`.
pub fn rows(model: &TopicModel, count: usize, documents: &dyn Documents) -> Vec<TopicRow> {
    let judge = |terms: &[Vec<u32>]| Ok::<_, Infallible>(coherence(documents, terms));
    let Ok(rows) = rows_judged(model, count, judge);
    rows
}

/// Returns the summaries of the topics as [`rows`] does. The function `judge` computes the coherence of the most
/// probable words of each topic.
///
/// # Errors
/// Returns the errors of `judge`.
pub fn rows_judged<E>(
    model: &TopicModel,
    count: usize,
    judge: impl FnOnce(&[Vec<u32>]) -> Result<Vec<Coherence>, E>,
) -> Result<Vec<TopicRow>, E> {
    let proportions = model.topics.shares();
    let top = model.top_words(count);
    let terms: Vec<Vec<u32>> = top
        .iter()
        .map(|words| words.iter().map(|word| word.0).collect())
        .collect();
    let judged = judge(&terms)?;
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
    Ok(rows)
}

impl Coherence {
    /// Returns the mean coherence of the topics. Topics without a coherence are not included.
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
