//! A test whether chains that start at other optima reach the region of the refined draws.
//!
//! The ELBO of a simple family can have optima at points where the posterior has no mode. Hamiltonian transitions move
//! from such a point to the refined draws, but they do not leave a mode of the posterior.

use std::f64::consts::FRAC_PI_2;

use jensen_density::LogDensity;

use super::kernel::{Stride, leapfrog_step, steered, transition};
use super::map::Map;
use super::target::Target;
use super::whitening;
use crate::approximation::{Approximation, Draws};
use crate::calls::Calls;
use crate::family::{FamilyKind, Space};
use crate::noise::NoiseSource;

/// The number of chains per optimum. All of them must reach the draws, so one chain in a separate mode suffices for an
/// objection.
const CHAINS: usize = 8;

/// The number of transitions of these chains, which is that of the fourth stationary phase.
const TRANSITIONS: usize = 128;

/// A chain has reached the region of the draws if its distance from their mean is at most this quantile of the draws'
/// own distances, in coordinates with unit variances.
const WITHIN: f64 = 0.999;

pub(super) fn convergence<D: LogDensity>(
    density: &D,
    draws: &Draws,
    points: &[Vec<f64>],
    (source, iteration): (NoiseSource, u64),
) -> (Vec<Vec<f64>>, Calls) {
    let (dim, count) = (draws.dim, draws.count);
    let lanes = points.len() * CHAINS;
    if lanes == 0 || count <= dim {
        return (Vec::new(), Calls::default());
    }
    let (mut mean, mut log_sd) = (Vec::new(), Vec::new());
    for row in draws.z.chunks(count) {
        let middle = row.iter().sum::<f64>() / count as f64;
        let variance = row.iter().map(|x| (x - middle).powi(2)).sum::<f64>() / count as f64;
        mean.push(middle);
        log_sd.push(0.5 * variance.ln());
    }
    let standardise = |z: &mut [f64], lanes: usize| {
        for (row, (mean, log_sd)) in z.chunks_mut(lanes).zip(mean.iter().zip(&log_sd)) {
            row.iter_mut().for_each(|x| *x = (*x - mean) / log_sd.exp());
        }
    };
    let mut of_draws = draws.z.clone();
    standardise(&mut of_draws, count);
    let mut x: Vec<f64> = (0..dim)
        .flat_map(|i| points.iter().flat_map(move |point| vec![point[i]; CHAINS]))
        .collect();
    standardise(&mut x, lanes);
    let omega = [mean.clone(), log_sd.clone()].concat();
    let Some(spread) = Approximation::new(FamilyKind::MeanField, Space::of(density), omega) else {
        return (Vec::new(), Calls::default());
    };
    let mut map = Map::of(&spread);
    if let Some(root) = whitening::estimate(&of_draws, count, 1) {
        root.solve(&mut of_draws, count);
        root.solve(&mut x, lanes);
        map = map.after_root(&root);
    }
    let mut distances = Map::squares(&of_draws, count);
    distances.sort_by(f64::total_cmp);
    let reach = distances[((count - 1) as f64 * WITHIN) as usize];
    let mut target = Target::new(density, map);
    let mut particles = target.at(x);
    let mut log_size = leapfrog_step(dim).min(1.0).ln();
    let straight = vec![false; dim];
    for step in 0..TRANSITIONS as u64 {
        let stride = Stride {
            circles: &straight,
            beta: 1.0,
            size: log_size.exp(),
            length: FRAC_PI_2,
        };
        let moved = transition(
            &mut target,
            &mut particles,
            stride,
            source,
            iteration + step,
        );
        log_size = steered(log_size, moved, 2.0 / (1.0 + step as f64).sqrt());
    }
    let ends = Map::squares(&particles.x, lanes);
    let converged = ends.chunks(CHAINS).zip(points);
    let converged_from = converged
        .filter(|(ends, _)| ends.iter().all(|square| *square <= reach))
        .map(|(_, point)| point.clone());
    (converged_from.collect(), target.take_calls())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::NoisePurpose;
    use jensen_math::simd::Simd;
    use jensen_testkit::{Mixture, Scalar};

    fn draws(dim: usize, distance: f64) -> Draws {
        let count = 2048;
        let mut z = vec![0.0; dim * count];
        let source = NoiseSource::new(3, Simd::detect());
        source.fill(NoisePurpose::Draws, 0, 0, dim, count, &mut z);
        z.iter_mut().for_each(|z| *z += 0.5 * distance);
        Draws {
            z,
            dim,
            count,
            log_q: vec![0.0; count],
        }
    }

    #[test]
    fn chains_come_home_from_a_slope_and_not_from_a_mode() {
        for (dim, distance) in [(1, 12.0), (3, 9.0), (20, 8.0)] {
            let density = Scalar(Mixture {
                dim,
                distance,
                log_odds: 0.0,
            });
            let (mode, slope) = (vec![-0.5 * distance; dim], vec![0.5 * distance + 40.0; dim]);
            let source = NoiseSource::new(1, Simd::detect());
            let draws = draws(dim, distance);
            let points = [mode, slope.clone()];
            let (converged_from, calls) = convergence(&density, &draws, &points, (source, 7));
            assert_eq!(
                converged_from,
                [slope],
                "{dim} coordinates, {distance} apart"
            );
            assert!(calls.gradients > 0);
            let nowhere = convergence(&density, &draws, &[], (source, 7));
            assert_eq!(nowhere, (Vec::new(), Calls::default()));
        }
    }
}
