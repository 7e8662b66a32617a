//! Components for points that are in other processes. A sample of the points is in memory.

use jensen_math::rng::Stream;

use crate::family::ExponentialFamily;
use crate::models::components::Components;
use crate::models::seeding::looked_at;
use crate::pointwise::start_stream;
use crate::shards::PointShards;

/// Components over many points. They contain the data from which starts and temperatures are computed, and refer to the
/// shards that run the local steps.
pub struct Sampled<'a, C> {
    /// Components over the points of [`sample`]. Their prior is computed from all points.
    pub sample: &'a C,
    /// The total number of points.
    pub points: usize,
    /// The statistics Σ T(x) over all points. Missing values are replaced by guesses, as for starts.
    pub totals: Vec<f64>,
    /// The distinct sizes of points, each with the number of points that have it (see
    /// [`ConjugateModel::sizes`](crate::model::ConjugateModel::sizes)).
    pub sizes: Vec<(f64, f64)>,
    /// The amount that the units of the data add to the bound (see
    /// [`ConjugateModel::log_jacobian`](crate::model::ConjugateModel::log_jacobian)).
    pub log_jacobian: f64,
    /// The shards that run the local steps.
    pub shards: &'a dyn PointShards,
}

/// Returns the points from which the start with this seed is chosen. Returns `None` if it is chosen from all points.
/// Other starts of the same run are chosen from the same points.
pub fn sample(points: usize, seed: u64) -> Option<Vec<usize>> {
    looked_at(points, &mut start_stream(seed))
}

impl<C: Components> Components for Sampled<'_, C> {
    fn name(&self) -> &'static str {
        self.sample.name()
    }

    fn points(&self) -> usize {
        self.points
    }

    fn size(&self, point: usize) -> f64 {
        self.sample.size(point)
    }

    fn sizes(&self) -> Vec<(f64, f64)> {
        self.sizes.clone()
    }

    fn elsewhere(&self) -> Option<&dyn PointShards> {
        Some(self.shards)
    }

    fn add_all(&self, weight: f64, out: &mut [f64]) {
        let pairs = out.iter_mut().zip(&self.totals);
        pairs.for_each(|(out, total)| *out += weight * total);
    }

    fn looked_at(&self, stream: &mut Stream) -> Vec<usize> {
        // The start with the run's own seed equals the start on one machine, which draws its points first from the same
        // stream.
        drop(looked_at(self.points, stream));
        (0..self.sample.points()).collect()
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        self.sample.prior()
    }

    fn priors(&self, count: usize) -> Vec<(ExponentialFamily, Vec<f64>)> {
        self.sample.priors(count)
    }

    fn marginal(&self, all: &[f64], width: usize, k: usize) -> Vec<f64> {
        self.sample.marginal(all, width, k)
    }

    fn own(&self, width: usize) -> usize {
        self.sample.own(width)
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        self.sample.log_density(t, point)
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        self.sample.add(point, weight, out);
    }

    fn complete(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Option<super::Completed> {
        self.sample.complete(t, point, inverse, statistics)
    }

    fn log_predictive(&self, lambda: &[f64], point: usize) -> Option<f64> {
        self.sample.log_predictive(lambda, point)
    }

    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64 {
        self.sample.log_power(t, size, s)
    }

    fn log_jacobian(&self) -> f64 {
        self.log_jacobian
    }

    fn lean(&self) -> f64 {
        self.sample.lean()
    }

    fn partition_is_finite(&self) -> bool {
        self.sample.partition_is_finite()
    }
}
