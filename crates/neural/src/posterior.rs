//! The normal posterior of a model's weights after training, and expectations over this posterior (appendix F).

use jensen_math::rng::Purpose;
use jensen_math::simd::Simd;

use crate::autoencoder::LogMarginal;
use crate::model::Tensor;
use crate::parameters::{DrawKey, divergence, draw_weights};

/// Number of draws of the weights that are averaged in expectations.
pub const WEIGHT_DRAWS: usize = 16;

/// The purpose of the random numbers that draw weights for bounds, means and likelihoods, which are averages over these
/// draws.
pub(crate) const EVALUATED: Purpose = Purpose::new("neural evaluated weights");

/// The purpose of the random numbers that draw weights for sampled records. Every record has one draw of the weights.
pub(crate) const SAMPLED: Purpose = Purpose::new("neural sampled weights");

/// The independent normal posterior q(θ) of a model's weights. If there are no standard deviations, every draw is the
/// point estimate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WeightPosterior {
    means: Vec<Tensor>,
    log_sds: Vec<Tensor>,
    /// Number of tensors before these ones. The lanes of the random numbers depend on it.
    before: usize,
}

impl WeightPosterior {
    pub(crate) fn new(means: Vec<Tensor>, log_sds: Vec<Tensor>, before: usize) -> Self {
        Self {
            means,
            log_sds,
            before,
        }
    }

    pub(crate) fn is_point(&self) -> bool {
        self.log_sds.is_empty()
    }

    pub(crate) fn draws(&self) -> usize {
        if self.is_point() { 1 } else { WEIGHT_DRAWS }
    }

    /// Computes `KL(q(θ) ‖ N(0, I))` in nats. It is 0 for point estimates.
    pub(crate) fn divergence(&self) -> f64 {
        let pairs = self.means.iter().zip(&self.log_sds);
        pairs.map(|(m, s)| divergence(&m.data, &s.data)).sum()
    }

    /// Draws the weights. Each draw depends only on the seed, the purpose and its own number.
    pub(crate) fn draw(&self, simd: Simd, seed: u64, purpose: Purpose, draw: u64) -> Vec<Tensor> {
        let mut drawn = self.means.clone();
        let mut noise = Vec::new();
        for (which, (tensor, log_sd)) in drawn.iter_mut().zip(&self.log_sds).enumerate() {
            let key = DrawKey {
                seed,
                purpose: purpose.fold(&tensor.spec.name),
                iteration: draw,
                first: (self.before + which) as u64,
            };
            noise.resize(tensor.data.len(), 0.0);
            let moments = (&self.means[which].data[..], &log_sd.data[..]);
            draw_weights(simd, key, moments, &mut noise, &mut tensor.data);
        }
        drawn
    }
}

/// Computes `log Σ_d share_d exp(estimate_d)` for every record. The sum is over draws d of the weights, and the shares
/// sum to 1.
///
/// All records use the same draws, so their errors are correlated. The Monte-Carlo error is computed by the jackknife
/// over draws, which takes this correlation into account. The standard error includes the Monte-Carlo error and the
/// variation over records.
pub(crate) fn mixed(estimates: &[Vec<f64>], shares: &[f64]) -> LogMarginal {
    let records = estimates.first().map_or(0, Vec::len);
    let without = |left_out: Option<usize>| -> Vec<f64> {
        let kept = || (0..estimates.len()).filter(move |&d| Some(d) != left_out);
        let total: f64 = kept().map(|d| shares[d]).sum();
        let record = |i: usize| {
            let largest = kept()
                .map(|d| estimates[d][i])
                .fold(f64::NEG_INFINITY, f64::max);
            if !largest.is_finite() {
                return largest;
            }
            let terms = kept().map(|d| shares[d] * (estimates[d][i] - largest).exp());
            largest + (terms.sum::<f64>() / total).ln()
        };
        (0..records).map(record).collect()
    };
    let n = estimates.len() as f64;
    let means: Vec<f64> = (0..estimates.len())
        .map(|d| without(Some(d)).iter().sum::<f64>() / records as f64)
        .collect();
    let centre = means.iter().sum::<f64>() / n;
    let squares: f64 = means.iter().map(|m| (m - centre).powi(2)).sum();
    let error = ((n - 1.0) / n * squares).sqrt();
    let estimate = LogMarginal::new(without(None), 0.0);
    LogMarginal {
        standard_error: estimate.standard_error.hypot(error),
        monte_carlo_error: error,
        ..estimate
    }
}
