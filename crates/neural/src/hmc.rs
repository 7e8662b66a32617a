//! Hamiltonian Monte Carlo over the latent values of many records at once. Each lane is a chain.

use jensen_math::rng::{Purpose, fill_uniforms};

use crate::evaluate::normals;
use crate::forward::Forward;

/// Settings of the Hamiltonian transitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HmcSettings {
    /// Number of leapfrog steps in a transition.
    pub leapfrog: usize,
    /// The acceptance rate for which step sizes are tuned.
    pub acceptance: f64,
    /// The step size before tuning.
    pub initial_step: f64,
}

impl Default for HmcSettings {
    /// Returns settings with ten leapfrog steps and a target acceptance rate of 90 % (appendix E).
    fn default() -> Self {
        Self {
            leapfrog: 10,
            acceptance: 0.9,
            initial_step: 0.1,
        }
    }
}

pub(crate) struct Chains {
    pub positions: Vec<f32>,
    pub steps: Vec<f64>,
    momenta: Vec<f32>,
    proposal: Vec<f32>,
    slope: Vec<f32>,
    scratch: Vec<f64>,
}

#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub seed: u64,
    pub purpose: Purpose,
    pub iteration: u64,
    /// The index of the block's first lane among the chains of all blocks.
    pub first_lane: u64,
}

impl Chains {
    pub(crate) fn new(positions: Vec<f32>, lanes: usize, step: f64) -> Self {
        Self {
            positions,
            steps: vec![step; lanes],
            momenta: Vec::new(),
            proposal: Vec::new(),
            slope: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Makes one transition of every chain. Returns the acceptance probabilities, and the log densities at the new
    /// positions.
    pub(crate) fn transition(
        &mut self,
        posterior: &mut Forward,
        tensors: &[&[f32]],
        x: &[f32],
        leapfrog: usize,
        moment: Moment,
    ) -> (Vec<f64>, Vec<f64>) {
        let lanes = self.steps.len();
        let latent = self.positions.len() / lanes.max(1);
        let simd = posterior.program().simd();
        normals(
            simd,
            moment.seed,
            moment.purpose.fold("momenta"),
            moment.iteration,
            moment.first_lane,
            latent,
            lanes,
            &mut self.scratch,
            &mut self.momenta,
        );
        let kinetic = |momenta: &[f32]| -> Vec<f64> {
            let energy = |p: &[f32]| 0.5 * p.iter().map(|&p| f64::from(p * p)).sum::<f64>();
            momenta.chunks(latent).map(energy).collect()
        };
        let before = kinetic(&self.momenta);
        let [value, slope] = posterior.run(tensors, &[x, &self.positions], lanes);
        let start: Vec<f64> = value.iter().map(|&v| f64::from(v)).collect();
        self.slope.clear();
        self.slope.extend_from_slice(slope);
        self.proposal.clone_from(&self.positions);
        let mut end = start.clone();
        let half_kick = |momenta: &mut [f32], slope: &[f32], steps: &[f64]| {
            for (i, (p, g)) in momenta.iter_mut().zip(slope).enumerate() {
                *p += 0.5 * steps[i / latent] as f32 * g;
            }
        };
        for _ in 0..leapfrog {
            half_kick(&mut self.momenta, &self.slope, &self.steps);
            for (i, (z, p)) in self.proposal.iter_mut().zip(&self.momenta).enumerate() {
                *z += self.steps[i / latent] as f32 * p;
            }
            let [value, slope] = posterior.run(tensors, &[x, &self.proposal], lanes);
            for (end, &v) in end.iter_mut().zip(value) {
                *end = f64::from(v);
            }
            self.slope.copy_from_slice(slope);
            half_kick(&mut self.momenta, &self.slope, &self.steps);
        }
        let after = kinetic(&self.momenta);
        let mut uniforms = vec![0.0; lanes];
        fill_uniforms(
            simd,
            moment.seed,
            moment.purpose.fold("acceptance"),
            moment.iteration,
            moment.first_lane,
            1,
            lanes,
            &mut uniforms,
        );
        let mut acceptance = vec![0.0; lanes];
        let mut here = start;
        for lane in 0..lanes {
            let gain = (end[lane] - after[lane]) - (here[lane] - before[lane]);
            // A trajectory that produces non-finite numbers is rejected.
            acceptance[lane] = if gain.is_nan() {
                0.0
            } else {
                gain.min(0.0).exp()
            };
            if uniforms[lane] < acceptance[lane] {
                let at = lane * latent..(lane + 1) * latent;
                self.positions[at.clone()].copy_from_slice(&self.proposal[at]);
                here[lane] = end[lane];
            }
        }
        (acceptance, here)
    }

    /// Adjusts the step size of every chain to bring its acceptance rate closer to the target. Callers decrease `rate`
    /// during tuning.
    pub(crate) fn tune(&mut self, acceptance: &[f64], wanted: f64, rate: f64) {
        for (step, accepted) in self.steps.iter_mut().zip(acceptance) {
            *step = (*step * (rate * (accepted - wanted)).exp()).clamp(1e-4, 2.0);
        }
    }
}
