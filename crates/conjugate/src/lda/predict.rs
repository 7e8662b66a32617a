//! Topic proportions of new documents.

use jensen_math::simd::Simd;
use rayon::prelude::*;

use super::globals::LdaGlobals;
use super::local::{Prior, Rows, Solver, Spec, Want};
use super::settings::LocalRule;
use super::shard::{Lambda, WordRows};
use super::topics::Topics;
use crate::documents::{Bag, Documents};

/// The default stopping rule of predictions. It is stricter than the rule of training, because in training later steps
/// correct the errors of earlier ones.
pub const RULE: LocalRule = LocalRule {
    tolerance: 1e-4,
    max_iterations: 200,
};

/// Scratch memory that successive predictions reuse.
#[derive(Clone, Debug, Default)]
pub struct PredictorScratch {
    solver: Solver,
    slots: Vec<u32>,
    counts: Vec<f32>,
    expected: Vec<f32>,
}

/// Topics that are prepared for predictions. The prepared form needs as much memory as the topics themselves.
pub struct Predictor<'a> {
    topics: &'a Topics,
    spec: Spec,
    prior: Prior,
    rows: Vec<f32>,
    maxima: Vec<f32>,
}

const CHUNK: usize = 16;

impl<'a> Predictor<'a> {
    /// Prepares topics for predictions.
    pub fn new(topics: &'a Topics, rule: LocalRule, simd: Simd) -> Self {
        let globals = LdaGlobals::of(topics);
        let spec = Spec {
            simd,
            topics: topics.topics,
            inference: topics.inference,
            learns: false,
            rule,
        };
        let stride = globals.stride;
        let mut maxima = vec![0.0f32; topics.terms];
        let mut rows = vec![0.0f32; globals.mass.len()];
        let of = WordRows::of(&spec, &globals, Lambda::Here(&globals.mass));
        rows.par_chunks_exact_mut(stride)
            .zip(&mut maxima)
            .enumerate()
            .for_each_init(Vec::new, |scratch, (term, (row, m))| {
                *m = of.weights(term as u32, 1.0, scratch, row);
            });
        Self {
            topics,
            prior: Prior::of(&topics.alpha),
            spec,
            rows,
            maxima,
        }
    }

    /// Writes `E[θ]` of a document, which consists of K numbers that sum to 1. Returns how many of the document's
    /// tokens are in the vocabulary of the topics. A document without such tokens receives the prior mean, α_k / Σα.
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
        means(
            &self.spec,
            &self.topics.alpha,
            rows,
            (slots, counts),
            (solver, expected),
            out,
        )
    }

    /// Returns `E[θ]` of the documents `first .. first + count`, with one row of K numbers per document.
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
}

/// Writes `E[θ]` of a document that contains only known words, given by slots and counts. Returns the number of its
/// tokens.
pub(super) fn means(
    spec: &Spec,
    alpha: &[f64],
    rows: Rows<'_>,
    (slots, counts): (&[u32], &[f32]),
    (solver, expected): (&mut Solver, &mut Vec<f32>),
    out: &mut [f64],
) -> f64 {
    let found = if spec.collapsed() {
        solver.solve_collapsed(spec, rows, slots, counts, expected)
    } else {
        solver.solve(spec, rows, slots, counts, 1.0, Want::default())
    };
    out.copy_from_slice(alpha);
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
