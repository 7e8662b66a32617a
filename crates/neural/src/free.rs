//! Free bits (Kingma et al. 2016): divergences that the objective does not count.

use jensen_graph::Unsupported;
use jensen_math::simd::Simd;

use crate::evaluate::LANES;
use crate::forward::Forward;
use crate::model::Encoder;

/// Computes the weights of the divergences of the latent values in a minibatch.
///
/// The objective contains `max(λ, KL_j)` in place of the divergence KL_j of latent value j, where KL_j is an average over
/// the minibatch. Its gradient is that of KL_j if KL_j is above λ, and 0 otherwise.
pub(crate) struct FreeBits {
    least: f64,
    divergences: Forward,
    width: usize,
    latent: usize,
}

impl FreeBits {
    pub fn new(encoder: &Encoder, least: f64, simd: Simd) -> Result<Self, Unsupported> {
        let divergences = Forward::new(&encoder.specs(), &[encoder.width()], simd, |g, t, v| {
            let (mean, log_variance) = encoder.build(g, t, v[0]);
            vec![encoder.family.divergences(g, mean, log_variance)]
        })?;
        Ok(Self {
            least,
            divergences,
            width: encoder.width(),
            latent: encoder.latent,
        })
    }

    /// Returns `weight` for each latent value whose average divergence is above the limit, and 0 for the others.
    pub fn weights(&mut self, tensors: &[&[f32]], records: &[f32], weight: f32) -> Vec<f32> {
        let mut sums = vec![0.0; self.latent];
        for block in records.chunks(LANES * self.width) {
            let lanes = block.len() / self.width;
            let [terms] = self.divergences.run(tensors, &[block], lanes);
            for record in terms.chunks(self.latent) {
                let pairs = sums.iter_mut().zip(record);
                pairs.for_each(|(sum, term)| *sum += f64::from(*term));
            }
        }
        let count = (records.len() / self.width) as f64;
        let costs = |sum: f64| {
            if sum / count > self.least {
                weight
            } else {
                0.0
            }
        };
        sums.into_iter().map(costs).collect()
    }
}
