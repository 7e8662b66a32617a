//! Stochastic gradient variational Bayes: estimators of the lower bound, expressed as graphs.

use jensen_graph::{Graph, NodeId};
use serde::{Deserialize, Serialize};

use crate::family::PosteriorFamily;
use crate::layers::TensorSpec;
use crate::model::{Encoder, LocalModel};

/// The estimator of the bound whose gradient training follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Estimator A (Eq. 6), which evaluates `log p(x, z) − log q(z | x)` at the draws.
    Joint,
    /// Estimator B (Eq. 7, 10), which computes the divergence from the prior in closed form and the likelihood at the
    /// draws.
    #[default]
    Analytic,
}

/// The graph of a bound, with its inputs and outputs.
///
/// The inputs, in order, are the tensors of the encoder, the tensors of the model, the weight of the likelihood, the
/// weight of the divergence, the record, and `samples × latent` draws of the noise of the encoder's family. The lanes share the tensors
/// and the weights, but each lane has its own record and random numbers. The first output is the log likelihood
/// averaged over the draws. The second is the divergence, which is exact or estimated from the draws. If gradients are
/// requested, the remaining outputs are the gradients of `w₁ · likelihood − w₂ · divergence` with respect to the
/// tensors, summed over the lanes.
#[derive(Clone, Debug)]
pub struct BoundGraph {
    /// The graph.
    pub graph: Graph,
    /// Names and extents of the encoder's tensors, followed by those of the model's tensors.
    pub specs: Vec<TensorSpec>,
    /// Number of the encoder's tensors.
    pub encoder_tensors: usize,
    /// Number of values of a record.
    pub width: usize,
    /// Number of latent values of a record.
    pub latent: usize,
    /// Number of draws of the latent values for each record.
    pub samples: usize,
    /// The family of the guide, which determines the distribution of the noise.
    pub family: PosteriorFamily,
}

impl BoundGraph {
    /// Builds the bound of `model` under the guide `encoder`, with `samples ≥ 1` draws per record.
    ///
    /// # Panics
    /// Panics if the encoder and the model have different extents, which is a bug in the caller.
    pub fn new(
        encoder: &Encoder,
        model: &dyn LocalModel,
        estimator: Estimator,
        samples: usize,
        gradients: bool,
    ) -> Self {
        Self::build(encoder, model, (estimator, false), samples, gradients)
    }

    /// Builds the bound with estimator B and its gradients. The input for the weight of the divergence contains one
    /// weight for each latent value, by which the objective multiplies the divergence of this latent value.
    ///
    /// # Panics
    /// Panics under the same condition as [`new`](Self::new), and if the prior of the model is not standard normal.
    pub fn with_weights(encoder: &Encoder, model: &dyn LocalModel, samples: usize) -> Self {
        assert!(model.standard_prior(), "a standard normal prior");
        Self::build(encoder, model, (Estimator::Analytic, true), samples, true)
    }

    fn build(
        encoder: &Encoder,
        model: &dyn LocalModel,
        (estimator, weighted): (Estimator, bool),
        samples: usize,
        gradients: bool,
    ) -> Self {
        assert_eq!(encoder.latent, model.latent(), "latent values");
        assert_eq!(encoder.width(), model.width(), "values of a record");
        let mut g = Graph::new();
        let mut specs = encoder.specs();
        let encoder_tensors = specs.len();
        specs.extend(model.specs());
        let tensors: Vec<NodeId> = specs
            .iter()
            .map(|spec| g.shared_input(spec.len()))
            .collect();
        let (own, others) = tensors.split_at(encoder_tensors);
        let likelihood_weight = g.shared_input(1);
        let weights = if weighted { encoder.latent } else { 1 };
        let divergence_weight = g.shared_input(weights);
        let x = g.input(model.width());
        let (latent, family) = (encoder.latent, encoder.family);
        let noise = g.input(samples * latent);

        let (mean, log_variance) = encoder.build(&mut g, own, x);
        let half = g.scale(0.5, log_variance);
        let sd = g.exp(half);
        let mut likelihoods = Vec::with_capacity(samples);
        let mut divergences = Vec::with_capacity(samples);
        for sample in 0..samples {
            let noise = g.slice(noise, sample * latent, latent);
            let step = g.mul(sd, noise);
            let z = g.add(mean, step);
            likelihoods.push(model.log_likelihood(&mut g, others, x, z));
            if estimator == Estimator::Joint || !model.standard_prior() {
                let prior = model.log_prior(&mut g, others, z);
                let guide = {
                    // In log q(z | x), the term (z − mean) / sd equals the noise.
                    let base = family.log_densities(&mut g, noise);
                    let scale = g.sum(half);
                    g.sub(base, scale)
                };
                divergences.push(g.sub(guide, prior));
            }
        }
        let share = 1.0 / samples as f64;
        let likelihood = g.add_all(&likelihoods);
        let likelihood = g.scale(share, likelihood);
        let divergence = if divergences.is_empty() {
            family.divergence(&mut g, mean, log_variance)
        } else {
            let sum = g.add_all(&divergences);
            g.scale(share, sum)
        };
        let mut outputs = vec![likelihood, divergence];
        if gradients {
            let gain = g.mul(likelihood_weight, likelihood);
            let cost = match weighted {
                true => {
                    let terms = family.divergences(&mut g, mean, log_variance);
                    let costs = g.mul(divergence_weight, terms);
                    g.sum(costs)
                }
                false => g.mul(divergence_weight, divergence),
            };
            let objective = g.sub(gain, cost);
            outputs.extend(g.gradient(objective, &tensors));
        }
        g.set_outputs(outputs);
        Self {
            graph: g,
            specs,
            encoder_tensors,
            width: model.width(),
            latent,
            samples,
            family,
        }
    }
}

/// Builds `KL(N(mean, diag exp(log_variance)) ‖ N(0, I))` (appendix B).
pub(crate) fn normal_divergence(g: &mut Graph, mean: NodeId, log_variance: NodeId) -> NodeId {
    let variance = g.exp(log_variance);
    let square = g.square(mean);
    let spread = g.add(square, variance);
    let difference = g.sub(spread, log_variance);
    let sum = g.sum(difference);
    let count = g.constant(f64::from(g.shape(mean).len));
    let total = g.sub(sum, count);
    g.scale(0.5, total)
}

/// Builds the divergence of each latent value from its prior. The sum is that of [`normal_divergence`].
pub(crate) fn normal_divergences(g: &mut Graph, mean: NodeId, log_variance: NodeId) -> NodeId {
    let variance = g.exp(log_variance);
    let square = g.square(mean);
    let spread = g.add(square, variance);
    let difference = g.sub(spread, log_variance);
    let one = g.constant(1.0);
    let total = g.sub(difference, one);
    g.scale(0.5, total)
}
