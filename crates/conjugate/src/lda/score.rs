//! The predictive quality of topics on held-out words.
//!
//! The score of a held-out document depends only on the topics, the seed and the number of the document. Therefore the
//! documents may be scored by this process or by the shards, and may be divided among them in any way.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::globals::{CHUNK, LdaGlobals};
use super::local::{Prior, Rows, Solver, Spec};
use super::predict::{RULE, means};
use super::settings::Inference;
use super::shard::{Lambda, WordRows};
use super::shards::Ask;
use super::topics::Topics;
use crate::documents::{Bag, Documents};
use crate::engine::{Heat, Measure};

const SPLIT: Purpose = Purpose::new("split of held-out words");

/// The result of document completion. Half of a document's words, chosen by a seeded shuffle, determine q(θ). The other
/// words are scored by log Σ_k `E[θ_k]` `E[β_kv]` under the untempered model (Hoffman et al. 2013).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Mean log predictive probability per scored word, in nats.
    pub log_predictive: f64,
    /// Standard error of `log_predictive`, estimated from the variation between documents.
    pub standard_error: f64,
    /// Number of words that were scored.
    pub words: u64,
    /// Number of documents that were scored.
    pub documents: u64,
    /// Number of documents with fewer than two words, which cannot be split into halves.
    pub skipped: u64,
}

/// The score of one held-out document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Log predictive probability of the scored words, in nats.
    pub log_probability: f64,
    /// Number of scored words.
    pub words: f64,
}

/// Documents are scored in groups of this size. The row of a word is computed only once per group, and only the rows of
/// one group are in memory.
const TOGETHER: usize = 1024;

const PIECE: usize = 16;

impl Completion {
    /// Returns exp(−log predictive), which is the perplexity per word.
    pub fn perplexity(&self) -> f64 {
        (-self.log_predictive).exp()
    }

    pub(crate) fn of(scores: &[Score]) -> Self {
        let words: f64 = scores.iter().map(|s| s.words).sum();
        let total: f64 = scores.iter().map(|s| s.log_probability).sum();
        let used = scores.iter().filter(|s| s.words > 0.0).count();
        let mean = total / words;
        let squares = |s: &Score| (s.log_probability - mean * s.words).powi(2);
        let squares: f64 = scores.iter().map(squares).sum();
        // This is the delta method for a ratio of means, with the correction for one estimated mean.
        let correction = used as f64 / (used as f64 - 1.0);
        Self {
            log_predictive: mean,
            standard_error: (squares * correction).sqrt() / words,
            words: words as u64,
            documents: used as u64,
            skipped: (scores.len() - used) as u64,
        }
    }
}

/// Scores topics by document completion. The split of document `i` depends only on the seed and on `i`.
pub fn completion(topics: &Topics, documents: &dyn Documents, seed: u64, simd: Simd) -> Completion {
    let globals = LdaGlobals::of(topics);
    let ask = Ask {
        spec: spec(topics.inference, topics.topics, simd),
        globals: &globals,
        heat: &Heat::Uniform(1.0),
        measure: Measure::default(),
    };
    Completion::of(&here(&ask, documents, seed, documents.len()))
}

pub(crate) fn here(
    ask: &Ask<'_>,
    documents: &dyn Documents,
    seed: u64,
    count: usize,
) -> Vec<Score> {
    let piece = Piece {
        documents,
        first: 0,
        count,
        number: 0,
    };
    let lambda = Lambda::Here(&ask.globals.mass);
    scores(&ask.spec, ask.globals, lambda, seed, &piece)
}

pub(crate) fn spec(inference: Inference, topics: usize, simd: Simd) -> Spec {
    Spec {
        simd,
        topics,
        inference,
        learns: false,
        rule: RULE,
    }
}

/// A range of held-out documents that one process scores.
#[derive(Clone, Copy)]
pub struct Piece<'a> {
    /// The corpus that contains the documents.
    pub documents: &'a dyn Documents,
    /// The index of the first document in this corpus.
    pub first: usize,
    /// The number of documents.
    pub count: usize,
    /// The number of the first document among all held-out documents.
    pub number: u64,
}

pub(crate) fn scores(
    spec: &Spec,
    globals: &LdaGlobals,
    lambda: Lambda<'_>,
    seed: u64,
    piece: &Piece<'_>,
) -> Vec<Score> {
    let of = WordRows::of(spec, globals, lambda);
    let prior = Prior::of(&globals.alpha);
    let totals: Vec<f64> = globals.lambda_totals().collect();
    let mut slots = vec![0; globals.terms];
    let mut scores = Vec::with_capacity(piece.count);
    for done in (0..piece.count).step_by(TOGETHER) {
        let halves = halves(globals.terms, seed, piece, done);
        let mut terms: Vec<u32> = halves
            .iter()
            .flat_map(|(seen, _)| seen.terms.iter().copied())
            .collect();
        terms.sort_unstable();
        terms.dedup();
        for (slot, &term) in terms.iter().enumerate() {
            slots[term as usize] = slot as u32;
        }
        let (values, maxima) = rows(&of, globals.stride, &terms);
        let rows = Rows {
            prior: &prior,
            values: &values,
            maxima: &maxima,
        };
        let found: Vec<Vec<Score>> = halves
            .par_chunks(PIECE)
            .map_init(Scorer::default, |scorer, halves| {
                let score = |half: &(Bag, Vec<u32>)| {
                    scorer.score(spec, globals, lambda, rows, (&slots, &totals), half)
                };
                halves.iter().map(score).collect()
            })
            .collect();
        scores.extend(found.into_iter().flatten());
    }
    scores
}

/// Reads at most [`TOGETHER`] documents of a range, starting at `done`, and splits each of them into halves.
fn halves(terms: usize, seed: u64, piece: &Piece<'_>, done: usize) -> Vec<(Bag, Vec<u32>)> {
    let end = piece.count.min(done + TOGETHER);
    (done..end)
        .into_par_iter()
        .map_init(Bag::new, |bag, i| {
            piece.documents.read(piece.first + i, bag);
            split(bag, terms, seed, piece.number + i as u64)
        })
        .collect()
}

fn rows(of: &WordRows<'_>, stride: usize, terms: &[u32]) -> (Vec<f32>, Vec<f32>) {
    let mut values = vec![0.0; terms.len() * stride];
    let mut maxima = vec![0.0; terms.len()];
    values
        .par_chunks_exact_mut(stride)
        .zip(&mut maxima)
        .enumerate()
        .with_min_len(CHUNK)
        .for_each_init(Vec::new, |scratch, (word, (row, m))| {
            *m = of.weights(terms[word], 1.0, scratch, row);
        });
    (values, maxima)
}

#[derive(Default)]
struct Scorer {
    solver: Solver,
    slots: Vec<u32>,
    expected: Vec<f32>,
    /// The weights `E[θ_k]` / Σ_v λ_kv of the topics.
    weights: Vec<f64>,
    row: Vec<f32>,
}

impl Scorer {
    fn score(
        &mut self,
        spec: &Spec,
        globals: &LdaGlobals,
        lambda: Lambda<'_>,
        rows: Rows<'_>,
        (slots, totals): (&[u32], &[f64]),
        (seen, rest): &(Bag, Vec<u32>),
    ) -> Score {
        if seen.is_empty() {
            return Score::default();
        }
        self.slots.clear();
        let own = seen.terms.iter().map(|term| slots[*term as usize]);
        self.slots.extend(own);
        self.weights.resize(globals.topics, 0.0);
        means(
            spec,
            &globals.alpha,
            rows,
            (&self.slots, &seen.counts),
            (&mut self.solver, &mut self.expected),
            &mut self.weights,
        );
        for (weight, total) in self.weights.iter_mut().zip(totals) {
            *weight /= total;
        }
        // λ is η plus its row, and η contributes the same amount for all words.
        let least = globals.eta * self.weights.iter().sum::<f64>();
        let mut log_probability = 0.0;
        for &term in rest {
            let row = lambda.row(term as usize, globals.stride, &mut self.row);
            let pairs = self.weights.iter().zip(row);
            let counted: f64 = pairs.map(|(weight, &m)| weight * f64::from(m)).sum();
            log_probability += (least + globals.decay * counted).ln();
        }
        Score {
            log_probability,
            words: rest.len() as f64,
        }
    }
}

/// Splits the tokens of known terms into halves by a shuffle. Returns a bag of the first half (rounded down) and a list
/// of the other tokens. Counts are rounded to integers. If there are fewer than two tokens, both halves are empty.
fn split(bag: &Bag, terms: usize, seed: u64, index: u64) -> (Bag, Vec<u32>) {
    let mut tokens = Vec::new();
    for (&term, &n) in bag.terms.iter().zip(&bag.counts) {
        if (term as usize) < terms {
            tokens.extend(std::iter::repeat_n(term, n.round() as usize));
        }
    }
    if tokens.len() < 2 {
        return (Bag::new(), Vec::new());
    }
    Stream::new(seed, SPLIT, 0, index).shuffle(&mut tokens);
    let rest = tokens.split_off(tokens.len() / 2);
    tokens.sort_unstable();
    let mut seen = Bag::new();
    for term in tokens {
        if seen.terms.last() == Some(&term) {
            *seen.counts.last_mut().expect("a count for every term") += 1.0;
        } else {
            seen.push(term, 1.0);
        }
    }
    (seen, rest)
}
