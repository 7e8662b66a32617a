//! Estimates log C(T) by simple Monte Carlo.

use jensen_math::{rng, special};
use rayon::prelude::*;

use super::Sizes;
use crate::draws::log_dirichlet;
use crate::engine::Partition;

const DRAWS: rng::Purpose = rng::Purpose::new("conjugate").fold("lda partition");

/// Estimates log C(T) by simple Monte Carlo as in the paper, but in the log domain. The function makes `draws` draws of
/// β. For each of them it makes the same number of draws of θ, which all documents share. Results are in nats. `lower`
/// is the mean over the draws of c, the logarithm of the quantity that is averaged.
///
/// The function is only meant for comparison, because the largest draw dominates these averages of high powers (see the
/// documentation of the module). A draw costs K V powers, and a pair of draws costs K operations.
pub fn log_partition_by_draws(
    prior: &Sizes,
    inverse: &[f64],
    draws: usize,
    seed: u64,
) -> Partition {
    let (k, v) = (prior.topics, prior.terms);
    let mut log_theta = vec![0.0; draws * k];
    for (j, row) in log_theta.chunks_exact_mut(k).enumerate() {
        let mut stream = rng::Stream::new(seed, DRAWS, 0, j as u64);
        log_dirichlet(&vec![prior.alpha; k], &mut stream, row);
    }
    // The rows are the inverse temperatures and contain log h_k for every draw.
    let of_draw = |r: usize| -> Vec<Vec<f64>> {
        let mut rows = vec![vec![0.0; k]; inverse.len()];
        let mut log_beta = vec![0.0; v];
        let parameters = vec![prior.eta; v];
        let mut stream = rng::Stream::new(seed, DRAWS, 1, r as u64);
        for topic in 0..k {
            log_dirichlet(&parameters, &mut stream, &mut log_beta);
            for (row, s) in rows.iter_mut().zip(inverse) {
                let powers: Vec<f64> = log_beta.iter().map(|l| s * l).collect();
                row[topic] = special::log_sum_exp_slice(&powers);
            }
        }
        rows
    };
    // The value of c for every draw, with one row per draw.
    let conditional: Vec<Vec<[f64; 2]>> = (0..draws)
        .into_par_iter()
        .map(|r| {
            let rows = of_draw(r);
            let pairs = rows.iter().zip(inverse);
            pairs
                .map(|(log_h, s)| {
                    let tokens = log_theta.chunks_exact(k).map(|theta| {
                        let terms: Vec<f64> =
                            theta.iter().zip(log_h).map(|(t, h)| s * t + h).collect();
                        prior.tokens * special::log_sum_exp_slice(&terms)
                    });
                    let of_document: Vec<f64> = tokens.collect();
                    let mean = of_document.iter().sum::<f64>() / draws as f64;
                    [
                        prior.documents * log_mean_exp(&of_document),
                        prior.documents * mean,
                    ]
                })
                .collect()
        })
        .collect();
    let column =
        |m: usize, i: usize| -> Vec<f64> { conditional.iter().map(|row| row[m][i]).collect() };
    let mean = |x: Vec<f64>| x.iter().sum::<f64>() / x.len() as f64;
    Partition {
        log_c: (0..inverse.len())
            .map(|m| log_mean_exp(&column(m, 0)))
            .collect(),
        lower: (0..inverse.len()).map(|m| mean(column(m, 1))).collect(),
    }
}

fn log_mean_exp(x: &[f64]) -> f64 {
    special::log_sum_exp_slice(x) - (x.len() as f64).ln()
}
