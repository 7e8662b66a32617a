//! log C(T) of latent Dirichlet allocation.
//!
//! The complete data of a token are its topic and its term, so that with N tokens in each of D documents
//!
//! ```text
//! C(T) = E_β [ ( E_θ [ X(θ, β; s)^N ] )^D ],   X = Σ_k θ_k^s Σ_v β_kv^s,   s = 1/T.
//! ```
//!
//! Supplement B.1 of Mandt et al. (2016) sums the assignments out first, Σ_v (Σ_k θ_k β_kv)^s; their updates (B.2) temper
//! the complete data, and this is the normaliser that belongs to those. The averages are taken in the log domain, of
//! logarithms of gamma draws: with parameters of 1/500 the numbers themselves underflow.
//!
//! By Jensen's inequality N D E[log X] ≤ N D log E[X] ≤ log C: the powers are convex, so that the second expression,
//! printed as an upper bound in the supplement, is the better of two lower ones.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::special;
use rayon::prelude::*;

use crate::draws::log_dirichlet;
use crate::engine::Partition;

/// The sizes and priors that log C depends on.
pub(crate) struct Prior {
    pub topics: usize,
    pub terms: usize,
    pub alpha: f64,
    pub eta: f64,
    /// D.
    pub documents: f64,
    /// N, the mean number of tokens of a document.
    pub tokens: f64,
}

const BETA: Purpose = Purpose::new("prior topics");
const THETA: Purpose = Purpose::new("prior proportions");

/// Draws of all topics at once, one for so many of the draws asked for: each is K V numbers, and its effect is averaged
/// over the K topics already.
const DRAWS_A_BETA: usize = 25;
/// Draws of topic proportions, so many for one of the draws asked for: each is K numbers.
const THETAS_A_DRAW: usize = 10;
/// Terms e^(s x) with s x below this are dropped.
const NEGLIGIBLE: f64 = -40.0;

/// log Σ_j e^(s x_j) without terms too small to be seen.
fn log_power_sum(sorted: &[f64], s: f64) -> f64 {
    // The logarithms descend and the largest is at least −log of their number.
    let first = s * sorted[0];
    let sum: f64 = sorted
        .iter()
        .map(|x| s * x - first)
        .take_while(|&x| x > NEGLIGIBLE)
        .map(f64::exp)
        .sum();
    first + sum.ln()
}

/// Draws from a symmetric Dirichlet, logarithms, descending.
fn draw(n: usize, parameter: f64, mut stream: Stream) -> Vec<f64> {
    let mut x = vec![0.0; n];
    log_dirichlet(&vec![parameter; n], &mut stream, &mut x);
    x
}

/// See the module's text.
pub(crate) fn log_partition(prior: &Prior, inverse: &[f64], draws: usize, seed: u64) -> Partition {
    let betas = draws.div_ceil(DRAWS_A_BETA).max(1);
    let thetas = (draws * THETAS_A_DRAW).max(1);
    let m = inverse.len();
    // h[b][k · m + i] = Σ_v β_kv^(s_i)
    let h: Vec<Vec<f64>> = (0..betas)
        .map(|b| {
            (0..prior.topics)
                .into_par_iter()
                .flat_map_iter(|k| {
                    let stream = Stream::new(seed, BETA, b as u64, k as u64);
                    let mut x = draw(prior.terms, prior.eta, stream);
                    x.sort_unstable_by(|a, b| b.total_cmp(a));
                    let row: Vec<f64> = inverse
                        .iter()
                        .map(|&s| log_power_sum(&x, s).exp())
                        .collect();
                    row
                })
                .collect()
        })
        .collect();
    // log X for every draw of θ and β, at every temperature: [t][b · m + i].
    let log_x: Vec<Vec<f64>> = (0..thetas)
        .into_par_iter()
        .map(|t| {
            let stream = Stream::new(seed, THETA, 0, t as u64);
            let theta = draw(prior.topics, prior.alpha, stream);
            let mut x = vec![0.0; betas * m];
            let mut powers = vec![0.0; m];
            for (k, &log_theta) in theta.iter().enumerate() {
                if log_theta * inverse.iter().copied().fold(f64::INFINITY, f64::min) < NEGLIGIBLE {
                    continue;
                }
                for (p, &s) in powers.iter_mut().zip(inverse) {
                    *p = (s * log_theta).exp();
                }
                for (b, h) in h.iter().enumerate() {
                    let rows = h[k * m..(k + 1) * m].iter().zip(&powers);
                    for (x, (h, p)) in x[b * m..(b + 1) * m].iter_mut().zip(rows) {
                        *x += h * p;
                    }
                }
            }
            x.iter_mut().for_each(|x| *x = x.ln());
            x
        })
        .collect();
    let (n, d) = (prior.tokens, prior.documents);
    let mut partition = Partition::default();
    for (i, &s) in inverse.iter().enumerate() {
        if s == 1.0 {
            // The model itself: X is 1 for every draw, whatever rounding says.
            partition.log_c.push(0.0);
            partition.lower.push(0.0);
            partition.averaged.push(0.0);
            continue;
        }
        let mut lower = 0.0;
        let mut documents = Vec::with_capacity(betas);
        for b in 0..betas {
            let logs: Vec<f64> = log_x.iter().map(|x| n * x[b * m + i]).collect();
            lower += logs.iter().sum::<f64>() / (thetas * betas) as f64;
            documents.push(d * (special::log_sum_exp_slice(&logs) - (thetas as f64).ln()));
        }
        partition
            .log_c
            .push(special::log_sum_exp_slice(&documents) - (betas as f64).ln());
        partition.lower.push(d * lower);
        partition.averaged.push(n * d * averaged(prior, s));
    }
    partition
}

/// log E[X], in closed form.
fn averaged(prior: &Prior, s: f64) -> f64 {
    let moment = |a: f64, n: usize| {
        let total = a * n as f64;
        (n as f64).ln() + special::lgamma(a + s) - special::lgamma(a) + special::lgamma(total)
            - special::lgamma(total + s)
    };
    moment(prior.alpha, prior.topics) + moment(prior.eta, prior.terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_lie_above_their_lower_bounds_and_match_a_small_integral() {
        // Two topics over two terms with uniform priors: β and θ are uniform on segments, and the integral is three-fold.
        let prior = Prior {
            topics: 2,
            terms: 2,
            alpha: 1.0,
            eta: 1.0,
            documents: 2.0,
            tokens: 3.0,
        };
        let inverse = [1.0, 0.7, 0.4, 0.1];
        let partition = log_partition(&prior, &inverse, 2500, 7);
        let steps = 60;
        let at = |i: usize| (i as f64 + 0.5) / steps as f64;
        for (i, &s) in inverse.iter().enumerate() {
            let power = |x: f64| x.powf(s) + (1.0 - x).powf(s);
            let mut outer = 0.0;
            for a in 0..steps {
                for b in 0..steps {
                    let (ha, hb) = (power(at(a)), power(at(b)));
                    let mut inner = 0.0;
                    for t in 0..steps {
                        let x = at(t).powf(s) * ha + (1.0 - at(t)).powf(s) * hb;
                        inner += x.powf(prior.tokens) / steps as f64;
                    }
                    outer += inner.powf(prior.documents) / (steps * steps) as f64;
                }
            }
            let exact = outer.ln();
            let (c, lower, averaged) = (
                partition.log_c[i],
                partition.lower[i],
                partition.averaged[i],
            );
            assert!((c - exact).abs() < 0.03, "{s}: {c} {exact}");
            assert!(lower <= averaged + 0.02 && averaged <= exact + 1e-3, "{s}");
            assert!(s == 1.0 || lower < exact);
        }
    }

    #[test]
    fn log_c_grows_with_temperature_at_the_size_of_a_corpus() {
        let prior = Prior {
            topics: 20,
            terms: 300,
            alpha: 0.05,
            eta: 0.05,
            documents: 1e4,
            tokens: 60.0,
        };
        let inverse = [1.0, 0.8, 0.6, 0.4, 0.2, 0.1];
        let partition = log_partition(&prior, &inverse, 50, 1);
        assert_eq!(partition.log_c[0], 0.0);
        assert!(
            partition
                .log_c
                .windows(2)
                .all(|p| p[1] > p[0] && p[1].is_finite())
        );
        for i in 0..inverse.len() {
            assert!(partition.lower[i] <= partition.averaged[i]);
        }
    }
}
