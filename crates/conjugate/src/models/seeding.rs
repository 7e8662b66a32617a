//! Starts of mixtures and chains.

use jensen_math::rng::Stream;
use rayon::prelude::*;

use crate::family::ExponentialFamily;
use crate::models::components::Components;
use crate::models::predictive::normaliser;

const LOOKED_AT: usize = 10_000;

/// Returns the points from which starts are chosen, or `None` for all points.
pub(super) fn looked_at(points: usize, stream: &mut Stream) -> Option<Vec<usize>> {
    let any = |_| stream.below(points as u64) as usize;
    (points > LOOKED_AT).then(|| (0..LOOKED_AT).map(any).collect())
}

/// Returns initial natural parameters for `k` components. Each component combines the prior with statistics that have
/// the weight of an equal share of the data. Half of this weight goes to one point, and the other half goes to the
/// average point.
///
/// The point of the first component is arbitrary. For each further component, each point has a log density under the
/// previous components. The probability of drawing a point is proportional to the largest of these log densities minus
/// that of the point. For Gaussian components, this is the initialisation of k-means++ (Arthur and Vassilvitskii 2007).
///
/// If `weights` is not empty, it contains the number of equal points that each point stands for.
pub(super) fn seeded<C: Components>(
    components: &C,
    k: usize,
    weights: &[f64],
    stream: &mut Stream,
) -> Vec<f64> {
    let n = components.points();
    let blocks = components.prior();
    let mut average: Vec<f64> = blocks.iter().flat_map(|block| block.1.clone()).collect();
    let total = match weights.is_empty() {
        true => n as f64,
        false => weights.iter().sum(),
    };
    let share = total / k as f64;
    match weights.is_empty() {
        true => components.add_all(0.5 * share / total, &mut average),
        false => weights.iter().enumerate().for_each(|(point, weight)| {
            components.add(point, 0.5 * share * weight / total, &mut average);
        }),
    }
    let weight = |point: &usize| weights.get(*point).copied().unwrap_or(1.0);
    let families: Vec<ExponentialFamily> = blocks.iter().map(|block| block.0).collect();
    let looked_at = components.looked_at(stream);
    let mut best = vec![f64::NEG_INFINITY; looked_at.len()];
    let mut out = Vec::with_capacity(k * average.len());
    for component in 0..k {
        let mut lambda = average.clone();
        if n > 0 {
            let most = best.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let pairs = best.iter().zip(&looked_at);
            let mut far: Vec<f64> = pairs.map(|(b, at)| weight(at) * (most - b)).collect();
            if component == 0 && !weights.is_empty() {
                far = looked_at.iter().map(weight).collect();
            }
            let total: f64 = far.iter().sum();
            let point = if total.is_finite() && total > 0.0 {
                let mut left = stream.uniform() * total;
                let at = far.iter().position(|far| {
                    left -= far;
                    left < 0.0
                });
                looked_at[at.unwrap_or(far.len() - 1)]
            } else {
                looked_at[stream.below(looked_at.len() as u64) as usize]
            };
            components.add(point, 0.5 * share, &mut lambda);
            let (_, t) = normaliser(&families, &lambda);
            let here: Vec<f64> = looked_at
                .par_iter()
                .map(|&point| {
                    let mut unused = Vec::new();
                    match components.complete(&t, point, 1.0, &mut unused) {
                        Some(completed) => completed.log_integral,
                        None => components.log_density(&t, point),
                    }
                })
                .collect();
            best.iter_mut()
                .zip(here)
                .for_each(|(best, here)| *best = best.max(here));
        }
        out.extend(lambda);
    }
    out
}
