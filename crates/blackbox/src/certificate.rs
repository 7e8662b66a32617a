//! An independent check of stochastic fits, based on the gain of a second-order polish.
//!
//! A stopping rule on a noisy objective responds to slow progress, and not to the distance from the optimum. The
//! certificate instead takes a few trust-region Newton steps from the fitted ω, using separate draws. It then estimates
//! the resulting difference in the ELBO on another set of matched draws. This estimate is unbiased, and the difference
//! shows how much the fit can still be improved.

use std::sync::Arc;

use jensen_density::{Lanes, TwiceDifferentiable};

use crate::calls::Calls;
use crate::family::Family;
use crate::newton::{Effort, Newton};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;
use crate::oracle::{Estimate, Oracle};

/// The result of the second-order polish.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The ELBO after the polish minus the ELBO before it, on fresh matched draws.
    pub improvement: Estimate,
    /// The number of evaluations of the density.
    pub calls: Calls,
}

impl Certificate {
    /// Returns whether the estimated improvement plus one standard error is at most `tolerance`.
    pub fn within(&self, tolerance: f64) -> bool {
        self.improvement.mean + self.improvement.standard_error <= tolerance
    }
}

/// After this many certificates that find more than the tolerance, a fit has stalled. Before each of them, two or three
/// windows without a gain have halved the step size.
pub(crate) const PATIENCE: u64 = 4;

/// The largest number of fresh draws that judge a polish. Their standard error is then 1/128 of the standard deviation
/// of one draw's gain.
const MAX_JUDGES: usize = 16_384;

/// Polishes `omega` and estimates the improvement of the ELBO. `iteration` is part of the key of the draws. The
/// function adds draws until the standard error of the improvement is below half of `tolerance`.
pub fn certify<D: TwiceDifferentiable>(
    density: &D,
    family: &Arc<dyn Family>,
    omega: &[f64],
    source: NoiseSource,
    iteration: u64,
    tolerance: f64,
) -> Certificate {
    let rows = family.noise_dim();
    let lanes = (4 * rows).next_power_of_two().clamp(128, 1024);
    let noise = source.matched(NoisePurpose::Polish, iteration, rows, lanes);
    let mut objective = Objective::new(density, family.clone(), noise, lanes);
    let Some(mut newton) = Newton::start(&mut objective, omega.to_vec()) else {
        return Certificate {
            improvement: Estimate {
                mean: f64::INFINITY,
                standard_error: 0.0,
            },
            calls: objective.take_calls(),
        };
    };
    let effort = Effort {
        refine: 0.05,
        max_inner: 50,
    };
    for _ in 0..12 {
        if newton
            .step(&mut objective, effort)
            .is_last(0.05 * tolerance)
        {
            break;
        }
    }
    let mut oracle = Oracle::new(density, family.clone());
    let mut differences = Vec::new();
    let mut judges = 1024;
    loop {
        let first = differences.len();
        for block in (first..judges).step_by(512) {
            let lanes = 512.min(judges - block);
            let mut noise = vec![0.0; rows * lanes];
            source.fill(
                NoisePurpose::Judge,
                iteration,
                block as u64,
                rows,
                lanes,
                &mut noise,
            );
            let noise = Lanes::new(&noise, rows, lanes);
            differences.extend(oracle.lane_differences(omega, &newton.omega, noise));
        }
        let kept: Vec<f64> = differences
            .iter()
            .copied()
            .filter(|x| x.is_finite())
            .collect();
        let improvement = Estimate::of(&kept);
        let precise = improvement.standard_error <= 0.5 * tolerance;
        let clear = improvement.mean - 3.0 * improvement.standard_error > tolerance;
        if precise || clear || judges >= MAX_JUDGES {
            return Certificate {
                improvement,
                calls: objective.take_calls() + oracle.take_calls(),
            };
        }
        judges *= 4;
    }
}
