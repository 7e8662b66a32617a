//! Computes log C(T) for latent Dirichlet allocation.
//!
//! The complete data of a token are its topic and its term. With N tokens in each of D documents, C is
//!
//! ```text
//! C(T) = E_β [ ( E_θ [ (Σ_k θ_k^s h_k(β))^N ] )^D ],   h_k = Σ_v β_kv^s,   s = 1/T.
//! ```
//!
//! Supplement B.1 of Mandt et al. (2016) sums out the assignments before tempering, so its formula contains Σ_v (Σ_k
//! θ_k β_kv)^s. The updates of the paper (B.2), however, temper the complete data. This module computes the normaliser
//! for these updates.
//!
//! Simple Monte Carlo fails here. Because of the powers N and N D, extremely rare draws dominate the average, and an
//! average over a hundred draws is too small by several nats per token. However, the Dirichlet average of a power of
//! power sums is a coefficient of a power series,
//!
//! ```text
//! E[(Σ_j p_j^s)^n] = n! Γ(J a) / Γ(J a + s n) · [x^n] g(x)^J,   g(x) = Σ_m Γ(a + s m) / (Γ(a) m!) x^m,
//! ```
//!
//! for J categories with parameter a each. The coefficient is computed as a probability. Tilted by x, g is the
//! generating function of a count. The coefficient then follows from the probability that the sum of J such counts is
//! n.
//!
//! As a sum over assignments, C(T) = Σ_z W(z) Π_k M(n_k(z)). Here W(z) is the tempered weight of the documents'
//! proportions, and n_k(z) is the number of tokens in topic k. M(n) = E[(Σ_v β_v^s)^n] is the moment of a topic with n
//! tokens. Because log M is convex, tokens concentrate in few topics as the temperature rises, and a computation that
//! spreads the tokens evenly gives too small a value. The same convexity gives a lower bound on the sum. It uses
//! tangents of log M with slopes λ_k at any counts n̂_k:
//!
//! ```text
//! log C ≥ Σ_k (log M(n̂_k) − λ_k n̂_k) + D log E_θ[(Σ_k e^{λ_k} θ_k^s)^N].
//! ```
//!
//! The best n̂ are the expected counts of the documents under the weights e^λ, because the sum is concentrated around
//! these counts. The bound omits only the spread of the counts around n̂. For each topic, this spread contributes about
//! the logarithm of the counts, which is small compared with a sum over tokens. In the patterns over which
//! [`log_partition`] maximises the bound, all m used topics have the same count, and all other topics have another
//! count.
//!
//! | file | subject |
//! | --- | --- |
//! | `moments` | M(n): coefficients of power series |
//! | `draws` | simple Monte Carlo, as in the paper |
//! | `annealed` | annealed importance sampling, with which tests check the bound |

mod annealed;
mod draws;
mod moments;
#[cfg(test)]
mod tests;

use rayon::prelude::*;

use crate::engine::Partition;

pub use annealed::{Annealed, Origin, log_partition_annealed};
pub use draws::log_partition_by_draws;

use moments::{Power, SINGLE, log_mean, log_moment};

/// The sizes and priors that determine log C.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Number K of topics.
    pub topics: usize,
    /// Number V of terms.
    pub terms: usize,
    /// Dirichlet parameter of topic proportions.
    pub alpha: f64,
    /// Dirichlet parameter of a topic's word probabilities.
    pub eta: f64,
    /// Number D of documents.
    pub documents: f64,
    /// Mean number N of tokens per document.
    pub tokens: f64,
}

/// Computes the bound from the documentation of this module, in nats, and returns its largest value over patterns of
/// topics. `lower` is Jensen's bound with the averages inside the powers, N D log E[Σ_k θ_k^s h_k].
///
/// Each temperature costs about thirty saddle points of a thousand terms each.
pub fn log_partition(prior: &Sizes, inverse: &[f64]) -> Partition {
    let each = inverse.par_iter().map(|&s| {
        let first = log_mean(prior.topics, prior.alpha, s) + log_mean(prior.terms, prior.eta, s);
        (
            best_pattern(prior, s),
            prior.tokens * prior.documents * first,
        )
    });
    let (log_c, lower) = each.unzip();
    Partition { log_c, lower }
}

/// Largest number of steps in the search for a pattern's best counts. The search also stops after a step without gain.
const STEPS: usize = 20;

fn best_pattern(prior: &Sizes, s: f64) -> f64 {
    if s == 1.0 {
        return 0.0;
    }
    let bound = |used: usize| confined(prior, used, s);
    let mut used = 1;
    let mut best = (bound(1), 1);
    while used < prior.topics {
        used = (used + used.div_ceil(2)).min(prior.topics);
        let value = bound(used);
        if value > best.0 {
            best = (value, used);
        }
    }
    // The search continues with smaller and smaller steps between the neighbours of the best value so far.
    let mut step = best.1 / 4;
    while step > 0 {
        for near in [
            best.1.saturating_sub(step).max(1),
            (best.1 + step).min(prior.topics),
        ] {
            let value = bound(near);
            if value > best.0 {
                best = (value, near);
            }
        }
        step /= 2;
    }
    let (mut value, used) = best;
    let rest = prior.topics - used;
    if rest == 0 {
        return value;
    }
    let mut counts = [prior.tokens * prior.documents / used as f64, 0.0];
    for _ in 0..STEPS {
        let found;
        (found, counts) = loosened(prior, [used, rest], counts, s);
        if found <= value {
            break;
        }
        value = found;
    }
    value
}

fn confined(prior: &Sizes, used: usize, s: f64) -> f64 {
    let documents = Power::new(prior.topics, prior.alpha, prior.tokens, s);
    let (theta, _) = documents.moment(&[(used, 0.0)]);
    let tokens = prior.tokens * prior.documents / used as f64;
    prior.documents * theta + used as f64 * log_moment(prior.terms, prior.eta, tokens, s)
}

/// Returns the bound for given counts of two kinds of topics, and the documents' expected counts under the weights of
/// this bound. `topics` contains the number of topics of each kind.
fn loosened(prior: &Sizes, topics: [usize; 2], counts: [f64; 2], s: f64) -> (f64, [f64; 2]) {
    let lines = counts.map(|count| tangent(prior.terms, prior.eta, count, s));
    let groups = [(topics[0], lines[0].1), (topics[1], lines[1].1)];
    let documents = Power::new(prior.topics, prior.alpha, prior.tokens, s);
    let (theta, expected) = documents.moment(&groups);
    let words: f64 = (0..2)
        .map(|g| topics[g] as f64 * (lines[g].0 - lines[g].1 * counts[g]))
        .sum();
    let next = [0, 1].map(|g| prior.documents * expected[g]);
    (prior.documents * theta + words, next)
}

/// Returns the height and the slope of a line that touches log M of a topic from below near a given count.
fn tangent(terms: usize, eta: f64, count: f64, s: f64) -> (f64, f64) {
    let at = |n: f64| log_moment(terms, eta, n, s);
    if count < SINGLE as f64 {
        // log M is convex at the integers, so it has no value below the line through two adjacent integers.
        let (below, above) = (at(count.floor()), at(count.floor() + 1.0));
        let slope = above - below;
        return (below + slope * (count - count.floor()), slope);
    }
    let step = SLOPE * count;
    (
        at(count),
        (at(count + step) - at(count - step)) / (2.0 * step),
    )
}

/// The relative step of a central difference. The function is nearly linear. Over one step, the slope changes by only
/// 1e-6 of its value.
const SLOPE: f64 = 1e-3;
