//! Estimates log C(T) by annealed importance sampling, as a check on the bound.
//!
//! After the proportions and the topics are integrated out, the complete data of D documents with N tokens each have
//! the following weight W at the inverse temperature s:
//!
//! ```text
//! W_s(z, w) = Π_d [Γ(Kα)/Γ(Kα + sN) Π_k Γ(α + s n_dk)/Γ(α)] · Π_k [Γ(Vη)/Γ(Vη + s n_k) Π_v Γ(η + s n_kv)/Γ(η)],
//! ```
//!
//! C is the sum of this weight over all assignments and words. At s = 1 the sum is 1, and urn schemes draw exactly from
//! W. At s = 0 it is (KV)^(DN), and all data are equally likely. From either end, particles move to s in small steps
//! and accumulate Σ log W_next − log W_present. In each step, a particle moves by a sweep of Gibbs updates that draw
//! the topic and the word of a token together (Neal, *Annealed importance sampling*, 2001). The mean of the
//! exponentials is an unbiased estimate of the ratio of the two sums. Its logarithm is therefore too small on average.
//! If the estimates from both ends agree, this bias is small.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::special;
use rayon::prelude::*;

use super::Sizes;

/// The distribution from which particles start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Draws from the model, which is the distribution at s = 1.
    Model,
    /// Uniform data, which is the distribution at s = 0.
    Uniform,
}

/// An estimate of log C and its standard error over particles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Annealed {
    /// The estimate of log C in nats. On average it is too small.
    pub log_c: f64,
    /// The relative standard error of the mean of the weights.
    pub standard_error: f64,
}

const ANNEALED: Purpose = Purpose::new("conjugate").fold("lda partition annealed");

/// Estimates log C at the inverse temperature `s`. Each of the `particles` particles moves from `origin` to `s` in
/// `steps` steps.
///
/// D and N are rounded to integers. The cost is proportional to particles × steps × tokens × (K + V).
pub fn log_partition_annealed(
    prior: &Sizes,
    s: f64,
    origin: Origin,
    (particles, steps): (usize, usize),
    seed: u64,
) -> Annealed {
    let logs: Vec<f64> = (0..particles)
        .into_par_iter()
        .map(|number| {
            let mut stream = Stream::new(seed, ANNEALED, 0, number as u64);
            let mut state = State::drawn(prior, origin, &mut stream);
            let from = if origin == Origin::Model { 1.0 } else { 0.0 };
            let mut present = Tables::new(&state, from);
            let mut total = if origin == Origin::Model {
                0.0
            } else {
                state.z.len() as f64 * ((state.topics * state.terms) as f64).ln()
            };
            for step in 1..=steps {
                let at = from + (s - from) * step as f64 / steps as f64;
                let next = Tables::new(&state, at);
                total += next.log_weight(&state) - present.log_weight(&state);
                present = next;
                if step < steps {
                    state.sweep(&present, &mut stream);
                }
            }
            total
        })
        .collect();
    let log_sum = special::log_sum_exp_slice(&logs);
    let n = particles as f64;
    let squares: Vec<f64> = logs.iter().map(|x| 2.0 * (x - log_sum)).collect();
    // The squared relative error is Var(w) / (n mean²), computed from the sum of the squared normalised weights.
    let relative = special::log_sum_exp_slice(&squares).exp() - 1.0 / n;
    Annealed {
        log_c: log_sum - n.ln(),
        standard_error: relative.max(0.0).sqrt(),
    }
}

struct State {
    topics: usize,
    terms: usize,
    alpha: f64,
    eta: f64,
    /// Number N of tokens per document.
    length: usize,
    /// The topic and the word of each token, one document after another.
    z: Vec<(usize, usize)>,
    /// Counts n_dk, one row per document.
    of_document: Vec<u32>,
    /// Counts n_kv, one row per topic.
    of_topic: Vec<u32>,
    /// The number n_k of all tokens in each topic.
    totals: Vec<u32>,
}

impl State {
    fn drawn(prior: &Sizes, origin: Origin, stream: &mut Stream) -> Self {
        let (documents, length) = (
            prior.documents.round() as usize,
            prior.tokens.round() as usize,
        );
        let (topics, terms) = (prior.topics, prior.terms);
        let mut state = Self {
            topics,
            terms,
            alpha: prior.alpha,
            eta: prior.eta,
            length,
            z: Vec::with_capacity(documents * length),
            of_document: vec![0; documents * topics],
            of_topic: vec![0; topics * terms],
            totals: vec![0; topics],
        };
        for document in 0..documents {
            for _ in 0..length {
                let (k, v) = match origin {
                    Origin::Uniform => (
                        stream.below(topics as u64) as usize,
                        stream.below(terms as u64) as usize,
                    ),
                    Origin::Model => {
                        let row = &state.of_document[document * topics..][..topics];
                        let k = urn(row, state.alpha, stream);
                        (
                            k,
                            urn(&state.of_topic[k * terms..][..terms], state.eta, stream),
                        )
                    }
                };
                state.z.push((k, v));
                state.count(document, (k, v), 1);
            }
        }
        state
    }

    fn count(&mut self, document: usize, (k, v): (usize, usize), by: i32) {
        for cell in [
            &mut self.of_document[document * self.topics + k],
            &mut self.of_topic[k * self.terms + v],
            &mut self.totals[k],
        ] {
            *cell = cell.wrapping_add_signed(by);
        }
    }

    fn sweep(&mut self, tables: &Tables, stream: &mut Stream) {
        let (topics, terms) = (self.topics, self.terms);
        // For each topic, the sum over v of the ratios of its words.
        let ratio = |n: u32| tables.word.ratio[n as usize];
        let mut words: Vec<f64> = (self.of_topic.chunks_exact(terms))
            .map(|row| row.iter().map(|&n| ratio(n)).sum())
            .collect();
        let mut weights = vec![0.0; topics];
        for token in 0..self.z.len() {
            let document = token / self.length;
            let (k, v) = self.z[token];
            let before = ratio(self.of_topic[k * terms + v]);
            self.count(document, (k, v), -1);
            words[k] += ratio(self.of_topic[k * terms + v]) - before;
            for (k, weight) in weights.iter_mut().enumerate() {
                let held = self.of_document[document * topics + k] as usize;
                *weight = tables.topic.ratio[held] * words[k]
                    / tables.total.ratio[self.totals[k] as usize];
            }
            let k = chosen(weights.iter().copied(), stream);
            let row = &self.of_topic[k * terms..][..terms];
            let v = chosen(row.iter().map(|&n| ratio(n)), stream);
            let before = ratio(row[v]);
            self.z[token] = (k, v);
            self.count(document, (k, v), 1);
            words[k] += ratio(self.of_topic[k * terms + v]) - before;
        }
    }
}

/// Draws the kind of a ball from an urn. The urn contains `counts[k] + a` balls of each kind k.
fn urn(counts: &[u32], a: f64, stream: &mut Stream) -> usize {
    chosen(counts.iter().map(|&n| a + f64::from(n)), stream)
}

fn chosen(weights: impl Iterator<Item = f64> + Clone, stream: &mut Stream) -> usize {
    let mut left = stream.uniform() * weights.clone().sum::<f64>();
    let mut last = 0;
    for (i, weight) in weights.enumerate() {
        left -= weight;
        last = i;
        if left < 0.0 {
            break;
        }
    }
    last
}

/// A table of log Γ(a + s n) − log Γ(a) over counts n, and of the ratios of Γ at successive counts.
struct Gamma {
    log: Vec<f64>,
    ratio: Vec<f64>,
}

impl Gamma {
    fn new(a: f64, s: f64, most: usize) -> Self {
        let base = special::lgamma(a);
        let log: Vec<f64> = (0..=most + 1)
            .map(|n| special::lgamma(a + s * n as f64) - base)
            .collect();
        let ratio = log
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).exp())
            .collect();
        Self { log, ratio }
    }

    fn sum(&self, counts: &[u32]) -> f64 {
        counts.iter().map(|&n| self.log[n as usize]).sum()
    }
}

struct Tables {
    topic: Gamma,
    word: Gamma,
    total: Gamma,
    /// The constant Σ_d log Γ(Kα)/Γ(Kα + sN).
    documents: f64,
}

impl Tables {
    fn new(state: &State, s: f64) -> Self {
        let tokens = state.z.len();
        let whole = state.alpha * state.topics as f64;
        let each = special::lgamma(whole) - special::lgamma(whole + s * state.length as f64);
        Self {
            topic: Gamma::new(state.alpha, s, state.length),
            word: Gamma::new(state.eta, s, tokens),
            total: Gamma::new(state.eta * state.terms as f64, s, tokens),
            documents: (tokens / state.length) as f64 * each,
        }
    }

    fn log_weight(&self, state: &State) -> f64 {
        self.documents + self.topic.sum(&state.of_document) + self.word.sum(&state.of_topic)
            - self.total.sum(&state.totals)
    }
}
