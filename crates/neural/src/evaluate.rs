//! Evaluates the bound on records outside the training data.

use jensen_graph::{SingleProgram, SingleWorkspace, Unsupported};
use jensen_math::rng::{Purpose, fill_normals};
use jensen_math::simd::Simd;

use crate::bound::{BoundGraph, Estimator};
use crate::model::{Encoder, LocalModel};
use crate::records::{Records, gather};

pub(crate) const LANES: usize = 500;

/// An estimate of the lower bound, averaged over records, in nats per record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundEstimate {
    /// The estimate of the bound, `likelihood − divergence`.
    pub bound: f64,
    /// Standard error of `bound`. It includes the variation between records and the error of the draws.
    pub standard_error: f64,
    /// The mean of `E_q log p(x | z)`.
    pub likelihood: f64,
    /// The mean of `KL(q(z | x) ‖ p(z))`.
    pub divergence: f64,
}

/// An evaluator for the bounds of records (Eq. 10 without gradients).
pub struct BoundEvaluator {
    bound: BoundGraph,
    program: SingleProgram,
    workspace: SingleWorkspace,
    noise: Vec<f32>,
    data: Vec<f32>,
    scratch: Vec<f64>,
}

/// Draws `per_lane` standard normal numbers for each of `lanes` lanes. The numbers depend only on the seed, the
/// purpose, the iteration and the lane.
#[allow(clippy::too_many_arguments)]
pub(crate) fn normals(
    simd: Simd,
    seed: u64,
    purpose: Purpose,
    iteration: u64,
    first_lane: u64,
    per_lane: usize,
    lanes: usize,
    scratch: &mut Vec<f64>,
    out: &mut Vec<f32>,
) {
    let n = per_lane * lanes;
    scratch.clear();
    scratch.resize(n, 0.0);
    let first = first_lane * per_lane as u64;
    fill_normals(simd, seed, purpose, iteration, first, 1, n, scratch);
    out.clear();
    out.extend(scratch.iter().map(|&x| x as f32));
}

const EVALUATION: Purpose = Purpose::new("neural evaluation");

impl BoundEvaluator {
    /// Creates an evaluator that uses `samples` draws per record.
    ///
    /// # Errors
    /// Fails if the model contains operations without a kernel in single precision.
    pub fn new(
        encoder: &Encoder,
        model: &dyn LocalModel,
        samples: usize,
        simd: Simd,
    ) -> Result<Self, Unsupported> {
        let bound = BoundGraph::new(encoder, model, Estimator::Analytic, samples, false);
        let program = SingleProgram::new(&bound.graph, simd)?;
        let workspace = program.workspace(LANES);
        Ok(Self {
            bound,
            program,
            workspace,
            noise: Vec::new(),
            data: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Estimates the mean bound of `records`. `tensors` contains the tensors of the encoder and of the model. The draws
    /// depend only on the seed and on the record.
    ///
    /// # Panics
    /// Panics if tensors or records have the wrong extents, which is a bug in the caller.
    pub fn bound(&mut self, tensors: &[&[f32]], records: &dyn Records, seed: u64) -> BoundEstimate {
        let (likelihoods, divergences) = self.terms(tensors, records, seed, 0);
        BoundEstimate::from_terms(&likelihoods, &divergences)
    }

    /// Computes the likelihood and the divergence of every record. The latent values depend only on the seed, the draw
    /// and the record.
    pub(crate) fn terms(
        &mut self,
        tensors: &[&[f32]],
        records: &dyn Records,
        seed: u64,
        draw: u64,
    ) -> (Vec<f64>, Vec<f64>) {
        let (mut likelihoods, mut divergences) = (Vec::new(), Vec::new());
        let (one, other) = ([1.0_f32], [1.0_f32]);
        for first in (0..records.len()).step_by(LANES) {
            let lanes = LANES.min(records.len() - first);
            gather(records, first..first + lanes, &mut self.data);
            let per_lane = self.bound.latent * self.bound.samples;
            self.bound.family.draw(
                self.program.simd(),
                seed,
                EVALUATION,
                draw,
                first as u64,
                per_lane,
                lanes,
                &mut self.scratch,
                &mut self.noise,
            );
            let mut inputs: Vec<&[f32]> = tensors.to_vec();
            inputs.extend([&one[..], &other[..], &self.data, &self.noise]);
            self.program.run_lanes(&mut self.workspace, &inputs, lanes);
            let values = |which| self.program.output(&self.workspace, which, lanes);
            likelihoods.extend(values(0).iter().map(|&x| f64::from(x)));
            divergences.extend(values(1).iter().map(|&x| f64::from(x)));
        }
        (likelihoods, divergences)
    }
}

impl BoundEstimate {
    pub(crate) fn from_terms(likelihoods: &[f64], divergences: &[f64]) -> Self {
        let n = likelihoods.len() as f64;
        let likelihood = likelihoods.iter().sum::<f64>() / n;
        let divergence = divergences.iter().sum::<f64>() / n;
        let bound = likelihood - divergence;
        let squares = likelihoods
            .iter()
            .zip(divergences)
            .map(|(l, d)| (l - d - bound).powi(2));
        let variance = squares.sum::<f64>() / (n - 1.0).max(1.0);
        Self {
            bound,
            standard_error: (variance / n).sqrt(),
            likelihood,
            divergence,
        }
    }
}
