//! Tempering: particles move from the widened approximation to the posterior by small changes of the target (Del Moral,
//! Doucet and Jasra 2006).

use jensen_math::special::log_sum_exp_slice;

use super::mixing::Ensemble;
use super::target::base_log_density;
use crate::noise::{NoisePurpose, NoiseSource};

/// The effective share of the particles after a change of the temperature. Weights with a coefficient of variation of
/// .8 have this share, `1/(1 + .8²)`.
const SHARE: f64 = 0.6;

/// Computes `log p − log t`, the change of a particle's log weight per unit of inverse temperature.
pub(super) fn log_ratios(dim: usize, log_p: &[f64], squares: &[f64]) -> Vec<f64> {
    let base = base_log_density(dim, squares);
    log_p.iter().zip(base).map(|(p, b)| p - b).collect()
}

fn share(ratios: &[f64], change: f64) -> f64 {
    let weights: Vec<f64> = ratios.iter().map(|r| change * r).collect();
    let squares: Vec<f64> = weights.iter().map(|w| 2.0 * w).collect();
    let log_share = 2.0 * log_sum_exp_slice(&weights) - log_sum_exp_slice(&squares);
    log_share.exp() / ratios.len() as f64
}

pub(super) fn next_beta(beta: f64, ratios: &[f64]) -> (f64, f64) {
    let possible: Vec<f64> = ratios.iter().copied().filter(|r| r.is_finite()).collect();
    let whole = 1.0 - beta;
    let at_once = share(&possible, whole);
    if at_once >= SHARE {
        return (1.0, at_once);
    }
    let (mut low, mut high) = (0.0, whole);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if share(&possible, middle) >= SHARE {
            low = middle;
        } else {
            high = middle;
        }
    }
    (beta + low, SHARE)
}

/// Resamples systematically within each population. For each lane, the result contains the index of the lane from which
/// it takes its particle. Returns `None` if all particles of some population have zero weight.
pub(super) fn resample(
    ensemble: Ensemble,
    ratios: &[f64],
    change: f64,
    source: NoiseSource,
    iteration: u64,
) -> Option<Vec<usize>> {
    let mut ancestors = Vec::with_capacity(ratios.len());
    for (p, ratios) in ratios.chunks(ensemble.chains).enumerate() {
        let weights: Vec<f64> = ratios.iter().map(|r| change * r).collect();
        let total = log_sum_exp_slice(&weights);
        if !total.is_finite() {
            return None;
        }
        let mut u = [0.0];
        source.uniforms(NoisePurpose::Particle, iteration, p as u64, &mut u);
        let count = ratios.len() as f64;
        let (mut reached, mut from) = ((weights[0] - total).exp() * count, 0);
        for k in 0..ratios.len() {
            while reached < k as f64 + u[0] && from + 1 < ratios.len() {
                from += 1;
                reached += (weights[from] - total).exp() * count;
            }
            ancestors.push(p * ensemble.chains + from);
        }
    }
    Some(ancestors)
}

pub(super) fn memory(anchor: &[f64], now: &[f64], lanes: usize) -> f64 {
    let correlation = |(a, b): (&[f64], &[f64])| {
        let n = lanes as f64;
        let (ma, mb) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for (a, b) in a.iter().zip(b) {
            ab += (a - ma) * (b - mb);
            aa += (a - ma) * (a - ma);
            bb += (b - mb) * (b - mb);
        }
        let root = (aa * bb).sqrt();
        if root > 0.0 { ab / root } else { 1.0 }
    };
    let rows = anchor.chunks(lanes).zip(now.chunks(lanes));
    rows.map(correlation).fold(0.0, f64::max)
}
