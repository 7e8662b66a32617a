//! Topic proportions of new documents, and how well topics predict words that they have not seen.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::globals::LdaGlobals;
use super::kernel;
use super::leaf::totals_log;
use super::local::{Prior, Rows, Solver, Spec, Want};
use super::settings::LocalRule;
use super::topics::Topics;
use crate::documents::{Bag, Documents};

/// The local rule of predictions: stricter than in training, where the next step corrects what this one leaves.
pub const RULE: LocalRule = LocalRule {
    tolerance: 1e-4,
    max_iterations: 200,
};

const SPLIT: Purpose = Purpose::new("split of held-out words");

/// Document completion: half of a document's words, chosen by a seeded shuffle, give q(θ); the others are scored with
/// log Σ_k `E[θ_k]` `E[β_kv]`, under the untempered model (Hoffman et al. 2013).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Mean log predictive probability, natural logarithm, in nats per scored word.
    pub log_predictive: f64,
    /// Its standard error over documents.
    pub standard_error: f64,
    /// Words that were scored.
    pub words: u64,
    /// Documents that were scored.
    pub documents: u64,
    /// Documents with fewer than two words, which cannot be split.
    pub skipped: u64,
}

impl Completion {
    /// exp(−log predictive): the perplexity per word.
    pub fn perplexity(&self) -> f64 {
        (-self.log_predictive).exp()
    }
}

/// Memory that predictions reuse.
#[derive(Clone, Debug, Default)]
pub struct PredictorScratch {
    solver: Solver,
    slots: Vec<u32>,
    counts: Vec<f32>,
    expected: Vec<f32>,
}

/// Topics prepared for predictions; as much memory again as the topics.
pub struct Predictor<'a> {
    topics: &'a Topics,
    spec: Spec,
    prior: Prior,
    totals: Vec<f64>,
    rows: Vec<f32>,
    maxima: Vec<f32>,
}

/// Documents that are solved together.
const CHUNK: usize = 16;

impl<'a> Predictor<'a> {
    /// Prepares topics.
    pub fn new(topics: &'a Topics, rule: LocalRule, simd: Simd) -> Self {
        let mut globals = LdaGlobals::of(topics);
        let spec = Spec {
            simd,
            topics: topics.topics,
            inference: topics.inference,
            learns: false,
            rule,
        };
        let (mut psi, mut psi32) = (Vec::new(), Vec::new());
        totals_log(&globals, &spec, &mut psi, &mut psi32);
        let stride = globals.stride;
        let eta = topics.eta as f32;
        let mut maxima = vec![0.0f32; topics.terms];
        // The rows take the place of the masses they are made of.
        globals
            .mass
            .par_chunks_exact_mut(stride)
            .zip(&mut maxima)
            .for_each_init(
                || vec![0.0f32; stride],
                |mass, (row, m)| {
                    mass.copy_from_slice(row);
                    *m = kernel::log_row(simd, mass, 1.0, eta, spec.collapsed(), &psi32, row);
                    kernel::exp_in_place(simd, 1.0, row);
                },
            );
        Self {
            topics,
            prior: Prior::of(&topics.alpha),
            spec,
            totals: topics.totals(),
            rows: globals.mass,
            maxima,
        }
    }

    /// Writes `E[θ]` of a document, K numbers that sum to 1, and returns how many of its tokens were used: those of terms
    /// that the topics know. A document without any has the prior's mean, α_k / Σα.
    pub fn theta(&self, bag: &Bag, scratch: &mut PredictorScratch, out: &mut [f64]) -> f64 {
        let PredictorScratch {
            solver,
            slots,
            counts,
            expected,
        } = scratch;
        slots.clear();
        counts.clear();
        for (&term, &n) in bag.terms.iter().zip(&bag.counts) {
            if (term as usize) < self.topics.terms {
                slots.push(term);
                counts.push(n);
            }
        }
        if slots.is_empty() {
            let means = self
                .topics
                .alpha
                .iter()
                .map(|alpha| alpha / self.prior.total);
            out.iter_mut()
                .zip(means)
                .for_each(|(out, mean)| *out = mean);
            return 0.0;
        }
        let rows = Rows {
            prior: &self.prior,
            values: &self.rows,
            maxima: &self.maxima,
        };
        let found = if self.spec.collapsed() {
            solver.solve_collapsed(&self.spec, rows, slots, counts, expected)
        } else {
            solver.solve(&self.spec, rows, slots, counts, 1.0, Want::default())
        };
        out.copy_from_slice(&self.topics.alpha);
        if solver.active.is_empty() {
            for (x, &g) in out.iter_mut().zip(&solver.gamma) {
                *x = f64::from(g);
            }
        } else {
            for (&k, &g) in solver.active.iter().zip(&solver.gamma) {
                out[k as usize] = f64::from(g);
            }
        }
        let total: f64 = out.iter().sum();
        out.iter_mut().for_each(|x| *x /= total);
        found.tokens
    }

    /// `E[θ]` of the documents `first .. first + count`, a row of K numbers each.
    pub fn thetas(&self, documents: &dyn Documents, first: usize, count: usize) -> Vec<f64> {
        let topics = self.topics.topics;
        let mut out = vec![0.0; count * topics];
        out.par_chunks_mut(CHUNK * topics)
            .enumerate()
            .for_each_init(
                || (PredictorScratch::default(), Bag::new()),
                |(scratch, bag), (chunk, rows)| {
                    for (i, row) in rows.chunks_exact_mut(topics).enumerate() {
                        documents.read(first + chunk * CHUNK + i, bag);
                        self.theta(bag, scratch, row);
                    }
                },
            );
        out
    }

    /// Log predictive probability of the words of `rest`, given `E[θ]`, and their number.
    fn score(&self, theta: &[f64], rest: &[u32]) -> f64 {
        rest.iter()
            .map(|&term| {
                let beta = self.topics.proportions(term as usize, &self.totals);
                let p: f64 = theta.iter().zip(beta).map(|(t, b)| t * b).sum();
                p.ln()
            })
            .sum()
    }

    /// Document completion over a corpus. The split of document `i` depends on the seed and `i` alone.
    pub fn completion(&self, documents: &dyn Documents, seed: u64) -> Completion {
        let topics = self.topics.topics;
        let n = documents.len();
        let scores: Vec<Vec<(f64, f64)>> = (0..n.div_ceil(CHUNK))
            .into_par_iter()
            .map_init(
                || (PredictorScratch::default(), Bag::new(), vec![0.0; topics]),
                |(scratch, bag, theta), chunk| {
                    let mut scores = Vec::with_capacity(CHUNK);
                    for index in chunk * CHUNK..((chunk + 1) * CHUNK).min(n) {
                        documents.read(index, bag);
                        let (seen, rest) = split(bag, self.topics.terms, seed, index as u64);
                        if seen.is_empty() {
                            scores.push((0.0, 0.0));
                            continue;
                        }
                        self.theta(&seen, scratch, theta);
                        scores.push((self.score(theta, &rest), rest.len() as f64));
                    }
                    scores
                },
            )
            .collect();
        let scores: Vec<(f64, f64)> = scores.into_iter().flatten().collect();
        let words: f64 = scores.iter().map(|s| s.1).sum();
        let total: f64 = scores.iter().map(|s| s.0).sum();
        let used = scores.iter().filter(|s| s.1 > 0.0).count();
        let mean = total / words;
        let squares: f64 = scores.iter().map(|s| (s.0 - mean * s.1).powi(2)).sum();
        // The delta method for a ratio of means, with the correction for one estimated mean.
        let correction = used as f64 / (used as f64 - 1.0);
        Completion {
            log_predictive: mean,
            standard_error: (squares * correction).sqrt() / words,
            words: words as u64,
            documents: used as u64,
            skipped: (n - used) as u64,
        }
    }
}

/// Splits the tokens of known terms into halves by a shuffle: a bag of the first (rounded down) and a list of the others.
/// Counts are rounded to whole tokens. Both are empty when there are fewer than two tokens.
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
