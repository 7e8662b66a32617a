//! The log evidence, estimated from particles at all temperatures.
//!
//! Every density on the path is proportional to `t(x) e^(β r(x))`, with `r = log p − log t`. The evidences therefore
//! depend only on the values of `r` for particles at known temperatures. The estimate is the multistate Bennett
//! acceptance ratio (Shirts and Chodera 2008): with `N_k` particles at β_k, `log Z_k = log Σ_n e^(β_k r_n) / Σ_j N_j
//! e^(β_j r_n) / Z_j`. Forward weights alone miss regions that no particle found at the earlier temperature, such as
//! the neck of a funnel. The estimate therefore also uses the draws of the last stationary phase, which cover such
//! regions.

use jensen_math::special::log_sum_exp_slice;

use super::mixing::Ensemble;
use crate::oracle::Estimate;
use crate::reduce::mean_se;
use crate::sizes::ITERATIONS;

/// The iterations end when no log evidence changes by this number of nats.
const TOLERANCE: f64 = 1e-4;

/// If a log evidence differs from the initial guess by more than this number of nats, the mixture shares are computed
/// again. For smaller changes, terms that underflowed to zero remain negligible.
const FAR: f64 = 30.0;

/// The values of `r` for particles at one temperature, in any number of consecutive sets of particles. A value is −∞ if
/// the density is zero.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RatioSet {
    pub beta: f64,
    pub ratios: Vec<f64>,
}

pub(super) fn log_evidence(ensemble: Ensemble, ratio_sets: &[RatioSet]) -> Estimate {
    let betas: Vec<f64> = ratio_sets.iter().map(|ratio_set| ratio_set.beta).collect();
    let own = |p: usize| -> Vec<Vec<f64>> {
        let chains = p * ensemble.chains..(p + 1) * ensemble.chains;
        let of = |ratio_set: &RatioSet| {
            let particle_sets = ratio_set.ratios.chunks(ensemble.lanes());
            particle_sets
                .flat_map(|particles| particles[chains.clone()].to_vec())
                .collect()
        };
        ratio_sets.iter().map(of).collect()
    };
    let all: Vec<Vec<f64>> = ratio_sets
        .iter()
        .map(|ratio_set| ratio_set.ratios.clone())
        .collect();
    let mean = bridge(&betas, &all, &forward(&betas, &all));
    let each: Vec<f64> = (0..ensemble.populations)
        .map(|p| bridge(&betas, &own(p), &mean)[betas.len() - 1])
        .collect();
    Estimate {
        mean: mean[betas.len() - 1],
        standard_error: mean_se(&each).1,
    }
}

fn forward(betas: &[f64], ratios: &[Vec<f64>]) -> Vec<f64> {
    let mut log_z = vec![0.0];
    for (pair, ratios) in betas.windows(2).zip(ratios) {
        let weights: Vec<f64> = ratios.iter().map(|r| (pair[1] - pair[0]) * r).collect();
        let change = log_sum_exp_slice(&weights) - (ratios.len() as f64).ln();
        log_z.push(log_z[log_z.len() - 1] + change);
    }
    log_z
}

/// Computes the log evidences by a self-consistent iteration that starts from an initial guess.
///
/// Let `E_nk` be the share of temperature k in the mixture at particle n under the guess. The evidences relative to the
/// guess then satisfy `u_k = (1/N_k) Σ_n E_nk / Σ_j E_nj / u_j`. Only the shares require exponentials. They are
/// computed again if the guess was far from the result.
fn bridge(betas: &[f64], ratios: &[Vec<f64>], guess: &[f64]) -> Vec<f64> {
    let power = |beta: f64, r: f64| if beta == 0.0 { 0.0 } else { beta * r };
    let mut log_z = guess.to_vec();
    let mut left = ITERATIONS;
    while left > 0 {
        let weights: Vec<f64> = ratios
            .iter()
            .zip(&log_z)
            .map(|(own, z)| (own.len() as f64).ln() - z)
            .collect();
        let mut shares = Vec::new();
        for &r in ratios.iter().flatten() {
            let logs = betas.iter().zip(&weights).map(|(b, w)| power(*b, r) + w);
            let most = logs.clone().fold(f64::NEG_INFINITY, f64::max);
            shares.extend(logs.map(|log| (log - most).exp()));
        }
        let mut relative = vec![1.0_f64; betas.len()];
        let mut change = f64::INFINITY;
        while left > 0 && change >= TOLERANCE && relative.iter().all(|u| u.ln().abs() < FAR) {
            left -= 1;
            let inverse: Vec<f64> = relative.iter().map(|u| 1.0 / u).collect();
            let mut next = vec![0.0; betas.len()];
            for shares in shares.chunks(betas.len()) {
                let mixture: f64 = shares.iter().zip(&inverse).map(|(e, u)| e * u).sum();
                for (next, e) in next.iter_mut().zip(shares) {
                    *next += e / mixture;
                }
            }
            for (next, own) in next.iter_mut().zip(ratios) {
                *next /= own.len() as f64;
            }
            let first = next[0];
            next.iter_mut().for_each(|u| *u /= first);
            let pairs = next.iter().zip(&relative);
            change = pairs
                .map(|(a, b)| (a / b).ln().abs())
                .fold(0.0, |a, b| if b.is_nan() { b } else { b.max(a) });
            relative = next;
        }
        for (z, u) in log_z.iter_mut().zip(&relative) {
            *z += u.ln();
        }
        if change < TOLERANCE || change.is_nan() {
            break;
        }
    }
    log_z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{NoisePurpose, NoiseSource};
    use jensen_math::simd::Simd;

    /// The standard deviation of the normal densities decreases from 2 to 1 along the path. For p without its
    /// normalising constant, log Z is therefore ½ log(2π) − log √(2π) 2.
    #[test]
    fn the_evidence_of_a_normal() {
        let ensemble = Ensemble {
            populations: 8,
            chains: 32,
        };
        let ratio_sets: Vec<RatioSet> = [0.0_f64, 0.3, 1.0]
            .iter()
            .enumerate()
            .map(|(k, &beta)| {
                let mut x = vec![0.0; 256];
                let source = NoiseSource::new(k as u64, Simd::detect());
                source.fill(NoisePurpose::Draws, 0, 0, 1, 256, &mut x);
                let sd = (0.25 * (1.0 - beta) + beta).powf(-0.5);
                let base = |x: f64| -0.125 * x * x - (2.0 * std::f64::consts::TAU.sqrt()).ln();
                let ratio = |x: &f64| -0.5 * (sd * x).powi(2) - base(sd * x);
                RatioSet {
                    beta,
                    ratios: x.iter().map(ratio).collect(),
                }
            })
            .collect();
        let found = log_evidence(ensemble, &ratio_sets);
        let error = found.mean - 0.5 * std::f64::consts::TAU.ln();
        assert!(found.standard_error < 0.05);
        assert!(error.abs() < 3.0 * found.standard_error, "{found:?}");
    }
}
