//! One Hamiltonian transition of all particles, computed for all lanes at once.
//!
//! All lanes take the same number of [steps], so every step is one call of the density. Step sizes differ between lanes
//! by up to a quarter, which prevents periodic orbits. If the energy of a lane varies by more than [`WANDER`] nats
//! along its trajectory, the lane starts again with more steps, which are a quarter as long. A lane may start again up
//! to [`LEVELS`] times. Lanes that do not start again cause no additional cost. The level at which a lane ends is a
//! function of its position and momentum. The transition proposes the end of the trajectory, with reversed momentum,
//! only if the reverse trajectory ends at the same level. This is the case if no coarser trajectory from the end is
//! accurate enough. With this condition, the transition preserves the target. Step sizes are chosen as in Bou-Rabee,
//! Carpenter and Marsden, *GIST: Gibbs self-tuning for locally adaptive Hamiltonian Monte Carlo*, 2024, except that the
//! choice is deterministic. Steps are small in the neck of a funnel and large elsewhere, and detailed balance holds
//! exactly.

use jensen_density::LogDensity;
use rayon::prelude::*;

use super::map::Map;
use super::steps;
use super::target::{Evaluator, Particles, Target, beside, gather, tempered};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::sizes::GRAIN;

/// The acceptance rate to which the step size adapts, as in Stan. It is slightly above the optimum of .65 for many
/// coordinates (Beskos, Pillai, Roberts, Sanz-Serna and Stuart 2013), because too small steps cost less than
/// rejections.
pub(super) const ACCEPTANCE: f64 = 0.8;

/// The largest step size, in standard deviations.
pub(super) const LARGEST_STEP: f64 = 1.0;

/// The number of levels. At the last level, steps are 1/64 as long as at the first, which suffices for a funnel of four
/// standard deviations of a log scale.
const LEVELS: u32 = 4;

/// The ratio of the step sizes of successive levels.
const SHRINK: usize = 4;

/// The ratio of the numbers of steps of successive levels. Trajectories become half as long, because the neck of a
/// funnel is also shorter.
const GROWTH: usize = SHRINK / 2;

/// If the energy along a trajectory varies by more than this number of nats, the transition tries smaller steps.
const WANDER: f64 = 2.0;

/// The largest number of steps of a trajectory at the first level.
const LONGEST: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct Stride<'s> {
    pub circles: &'s [bool],
    pub beta: f64,
    pub size: f64,
    pub length: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moved {
    /// The mean acceptance probability of the largest steps. It determines the step size of later transitions.
    pub acceptance: f64,
    pub moved: usize,
    /// The number of lanes for which no step size was small enough. Lanes that left the support are not counted.
    pub stuck: usize,
    pub steps: usize,
}

pub(super) fn leapfrog_step(dim: usize) -> f64 {
    1.2 * (dim as f64).powf(-0.25)
}

pub(super) fn steered(log_size: f64, moved: Moved, gain: f64) -> f64 {
    (log_size + gain * (moved.acceptance - ACCEPTANCE)).min(LARGEST_STEP.ln())
}

struct Arrival {
    particles: Particles,
    momentum: Vec<f64>,
    error: Vec<f64>,
    /// The difference between the largest and the smallest energy along the trajectory. A difference that is too large
    /// is stored as infinity.
    wander: Vec<f64>,
    outside: Vec<bool>,
    steps: usize,
}

impl Arrival {
    fn join(parts: &[Self]) -> Self {
        Self {
            particles: Particles::join(parts.iter().map(|part| &part.particles)),
            momentum: beside(
                parts
                    .iter()
                    .map(|part| (&part.momentum[..], part.error.len())),
            ),
            error: parts.iter().flat_map(|part| part.error.clone()).collect(),
            wander: parts.iter().flat_map(|part| part.wander.clone()).collect(),
            outside: parts.iter().flat_map(|part| part.outside.clone()).collect(),
            steps: parts.iter().map(|part| part.steps).max().unwrap_or(0),
        }
    }
}

pub(super) fn transition<D: LogDensity>(
    target: &mut Target<'_, D>,
    particles: &mut Particles,
    stride: Stride<'_>,
    source: NoiseSource,
    iteration: u64,
) -> Moved {
    let (dim, lanes) = (target.dim(), particles.lanes());
    let mut momentum = vec![0.0; dim * lanes];
    source.fill(
        NoisePurpose::Momentum,
        iteration,
        0,
        dim,
        lanes,
        &mut momentum,
    );
    let mut shared = [0.0];
    source.uniforms(NoisePurpose::Momentum, iteration, lanes as u64, &mut shared);
    let (mut sizes, mut chances) = (Vec::new(), Vec::new());
    for l in 0..lanes {
        let mut own = [0.0; 2];
        source.uniforms(NoisePurpose::Momentum, iteration, l as u64, &mut own);
        sizes.push(stride.size * (0.75 + 0.5 * own[0]));
        chances.push(own[1]);
    }
    let steps = (stride.length * (0.5 + shared[0]) / stride.size).round();
    let steps = (steps as usize).clamp(1, LONGEST);
    let mut result = Moved {
        steps,
        ..Moved::default()
    };
    let mut pending: Vec<usize> = (0..lanes).collect();
    for level in 0..LEVELS {
        let start = particles.gather(&pending);
        let push = gather(&momentum, lanes, &pending);
        let own: Vec<f64> = pending.iter().map(|&l| sizes[l]).collect();
        let arrival = trajectory(target, &start, &push, &own, steps, level, stride);
        if level == 0 {
            let chance = |error: &f64| (-error).exp().min(1.0);
            result.acceptance = arrival.error.iter().map(chance).sum::<f64>() / lanes as f64;
        }
        let good: Vec<usize> = (0..pending.len())
            .filter(|&k| arrival.wander[k] <= WANDER)
            .collect();
        let mut accepted = reversible(target, &arrival, good, &own, steps, level, stride);
        accepted.retain(|&k| chances[pending[k]] < (-arrival.error[k]).exp());
        let pairs: Vec<_> = accepted.iter().map(|&k| (pending[k], k)).collect();
        particles.replace(&arrival.particles, &pairs);
        result.moved += pairs.len();
        let bad = (0..pending.len()).filter(|&k| arrival.wander[k] > WANDER);
        let bad: Vec<usize> = bad.collect();
        if level + 1 == LEVELS {
            result.stuck = bad.iter().filter(|&&k| !arrival.outside[k]).count();
        }
        pending = bad.into_iter().map(|k| pending[k]).collect();
        if pending.is_empty() {
            break;
        }
    }
    result
}

fn reversible<D: LogDensity>(
    target: &mut Target<'_, D>,
    arrival: &Arrival,
    mut good: Vec<usize>,
    sizes: &[f64],
    steps: usize,
    level: u32,
    stride: Stride<'_>,
) -> Vec<usize> {
    for coarser in 0..level {
        if good.is_empty() {
            break;
        }
        let start = arrival.particles.gather(&good);
        let mut momentum = gather(&arrival.momentum, arrival.error.len(), &good);
        momentum.iter_mut().for_each(|r| *r = -*r);
        let own: Vec<f64> = good.iter().map(|&k| sizes[k]).collect();
        let back = trajectory(target, &start, &momentum, &own, steps, coarser, stride);
        let wander = back.wander.iter();
        good = good
            .into_iter()
            .zip(wander)
            .filter_map(|(k, wander)| (*wander > WANDER).then_some(k))
            .collect();
    }
    good
}

/// The lanes are independent of each other. Threads process parts of them if the work is large enough.
fn trajectory<D: LogDensity>(
    target: &mut Target<'_, D>,
    start: &Particles,
    momentum: &[f64],
    sizes: &[f64],
    steps: usize,
    level: u32,
    stride: Stride<'_>,
) -> Arrival {
    let lanes = start.lanes();
    let shrink = (SHRINK as f64).powi(-(level as i32));
    let sizes: Vec<f64> = sizes.iter().map(|h| h * shrink).collect();
    let steps = steps * GROWTH.pow(level);
    let (threads, block) = (rayon::current_num_threads(), target.map.block());
    let most = (momentum.len() * steps / GRAIN).min(lanes / block);
    // If there are many values, there are more parts than threads. For each part, every step reads a dozen matrices,
    // which then fit in the cache.
    let strips = (momentum.len() / (4 * GRAIN))
        .max(1)
        .next_multiple_of(threads);
    let parts = most.clamp(1, strips);
    let width = lanes.div_ceil(parts).next_multiple_of(block);
    let parts: Vec<Arrival> = target
        .evaluators(lanes.div_ceil(width), width)
        .par_iter_mut()
        .enumerate()
        .map(|(k, evaluator)| {
            let own: Vec<usize> = (k * width..lanes.min((k + 1) * width)).collect();
            let push = gather(momentum, lanes, &own);
            let sizes = own.iter().map(|&l| sizes[l]).collect();
            part(evaluator, &start.gather(&own), &push, sizes, steps, stride)
        })
        .collect();
    let arrival = Arrival::join(&parts);
    // The number of steps is counted for all lanes together, so that no limit depends on the number of threads.
    target.count(lanes * arrival.steps);
    arrival
}

/// Returns the density's own gradient if it equals the gradient of the tempered density.
fn own_or<'g>(slope: &'g [f64], grad: &'g [f64]) -> &'g [f64] {
    if slope.is_empty() { grad } else { slope }
}

fn part<D: LogDensity>(
    target: &mut Evaluator<'_, D>,
    start: &Particles,
    momentum: &[f64],
    mut sizes: Vec<f64>,
    steps: usize,
    Stride { circles, beta, .. }: Stride<'_>,
) -> Arrival {
    let lanes = start.lanes();
    let mut particles = start.clone();
    let mut momentum = momentum.to_vec();
    let mut slope = Vec::new();
    let energy = |values: &[f64], squares: &[f64]| -> Vec<f64> {
        let pairs = squares.iter().zip(values);
        pairs.map(|(square, value)| 0.5 * square - value).collect()
    };
    let values = tempered(beta, &particles, &mut slope);
    let begin = energy(&values, &Map::squares(&momentum, lanes));
    let (mut low, mut high) = (begin.clone(), begin.clone());
    let mut end = begin.clone();
    let mut outside = vec![false; lanes];
    let (mut alive, mut taken) = (lanes, 0);
    while taken < steps && alive > 0 {
        taken += 1;
        steps::begin(
            circles,
            &mut particles.x,
            &mut momentum,
            own_or(&slope, &particles.grad),
            &sizes,
        );
        target.evaluate(&mut particles);
        let values = tempered(beta, &particles, &mut slope);
        let grad = own_or(&slope, &particles.grad);
        let squares = steps::end(circles, &particles.x, &mut momentum, grad, &sizes);
        end = energy(&values, &squares);
        for l in 0..lanes {
            if high[l] == f64::INFINITY {
                end[l] = f64::INFINITY;
                continue;
            }
            low[l] = low[l].min(end[l]);
            high[l] = high[l].max(end[l]);
            let lost = !end[l].is_finite() || high[l] - low[l] > WANDER;
            if lost {
                // The lane rests during the remaining steps, at a point where the density can be evaluated.
                outside[l] = !values[l].is_finite();
                (high[l], end[l], sizes[l]) = (f64::INFINITY, f64::INFINITY, 0.0);
                particles.replace(start, &[(l, l)]);
                alive -= 1;
            }
        }
    }
    Arrival {
        particles,
        momentum,
        error: end.iter().zip(&begin).map(|(e, b)| e - b).collect(),
        wander: high.iter().zip(&low).map(|(h, l)| h - l).collect(),
        outside,
        steps: taken,
    }
}
