//! The interface of the components of a mixture, or of the states of a chain.

use jensen_math::rng::Stream;

use crate::family::ExponentialFamily;
#[cfg(doc)]
use crate::model::ConjugateModel;
use crate::model::count_sizes;
use crate::models::seeding::looked_at;
use crate::shards::PointShards;

/// The components of a mixture, or the states of a chain, together with their data.
pub trait Components: Sync {
    /// Returns the name of the components in files.
    fn name(&self) -> &'static str;

    /// Returns the number of data points.
    fn points(&self) -> usize;

    /// Returns the size on which a point's normaliser depends. Points of size 0 are skipped.
    fn size(&self, point: usize) -> f64 {
        let _ = point;
        1.0
    }

    /// Returns the distinct sizes of points, each with the number of points that have it (see
    /// [`ConjugateModel::sizes`]).
    fn sizes(&self) -> Vec<(f64, f64)> {
        count_sizes((0..self.points()).map(|point| self.size(point)))
    }

    /// Returns the shards that have the points (see [`ConjugateModel::elsewhere`]).
    fn elsewhere(&self) -> Option<&dyn PointShards> {
        None
    }

    /// Adds `weight` · T(x) for every point, for the initialisation of components.
    fn add_all(&self, weight: f64, out: &mut [f64]) {
        for point in 0..self.points() {
            self.add(point, weight, out);
        }
    }

    /// Returns the points from which starts are chosen.
    fn looked_at(&self, stream: &mut Stream) -> Vec<usize> {
        looked_at(self.points(), stream).unwrap_or_else(|| (0..self.points()).collect())
    }

    /// Returns the families and prior parameters of one component, block by block.
    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)>;

    /// Returns the families and prior parameters of `count` components, component by component. If components share
    /// parameters, one family contains all components (see [`ExponentialFamily::NormalWishart`]).
    fn priors(&self, count: usize) -> Vec<(ExponentialFamily, Vec<f64>)> {
        repeated(&self.prior(), count)
    }

    /// Returns the natural parameters of the marginal distribution of component `k`, which belongs to the families of
    /// [`prior`](Self::prior). `all` contains the parameters of all components, each of which has `width` numbers.
    fn marginal(&self, all: &[f64], width: usize, k: usize) -> Vec<f64> {
        all[k * width..(k + 1) * width].to_vec()
    }

    /// Returns the number of parameters that a component does not share with others, where all its parameters have
    /// `width` numbers.
    fn own(&self, width: usize) -> usize {
        width
    }

    /// Returns `E[log p(x | component)]` if `t` is `E[t]`, and log p(x | component) if `t` is a value of t.
    fn log_density(&self, t: &[f64], point: usize) -> f64;

    /// Adds `weight` · T(x), for the initialisation of components. If missing values have an effect on the density,
    /// they are replaced by guesses.
    fn add(&self, point: usize, weight: f64, out: &mut [f64]);

    /// Integrates out the missing values of a point at an inverse temperature, and appends E[T(x)] under their
    /// distribution to `statistics`. Returns `None` if no values are missing, or if missing values have no effect on
    /// [`log_density`](Self::log_density) and [`add`](Self::add).
    fn complete(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Option<Completed> {
        let _ = (t, point, inverse, statistics);
        None
    }

    /// Returns log ∫ p(x | component) q(component), in nats. Components implement this method if a(λ + T(x)) cannot be
    /// computed because of missing values, or if this method is faster.
    fn log_predictive(&self, lambda: &[f64], point: usize) -> Option<f64> {
        let _ = (lambda, point);
        None
    }

    /// Returns log ∫ p(x | component)^s dx for a point of size `size`, where `t` contains the coefficients of the
    /// statistics.
    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64;

    /// Returns the sum of the logarithms of the scales by which the known values of a point were divided.
    fn log_scale(&self, point: usize) -> f64 {
        let _ = point;
        0.0
    }

    /// Returns the amount that the units of the data add to the bound (see [`ConjugateModel::log_jacobian`]).
    fn log_jacobian(&self) -> f64 {
        -(0..self.points())
            .map(|point| self.log_scale(point))
            .sum::<f64>()
    }

    /// Returns the largest share of the random start in hot iterations (see [`ConjugateModel::lean`]).
    fn lean(&self) -> f64 {
        0.1
    }

    /// Returns whether C(T) is finite (see [`ConjugateModel::partition_is_finite`]).
    fn partition_is_finite(&self) -> bool {
        true
    }
}

pub(super) fn repeated(
    prior: &[(ExponentialFamily, Vec<f64>)],
    count: usize,
) -> Vec<(ExponentialFamily, Vec<f64>)> {
    let all = std::iter::repeat_n(prior, count);
    all.flatten().cloned().collect()
}

/// A point after integration over its missing values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Completed {
    /// The integral log ∫ exp(inverse · E[log p(x | component)]) over the missing values, in nats.
    pub log_integral: f64,
    /// The mean of E[log p(x | component)] over the missing values. Their density is proportional to the integrand of
    /// `log_integral`.
    pub energy: f64,
}

/// A reference is enough, so several models can share components and data.
impl<C: Components> Components for &C {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn points(&self) -> usize {
        (**self).points()
    }

    fn size(&self, point: usize) -> f64 {
        (**self).size(point)
    }

    fn sizes(&self) -> Vec<(f64, f64)> {
        (**self).sizes()
    }

    fn elsewhere(&self) -> Option<&dyn PointShards> {
        (**self).elsewhere()
    }

    fn add_all(&self, weight: f64, out: &mut [f64]) {
        (**self).add_all(weight, out);
    }

    fn looked_at(&self, stream: &mut Stream) -> Vec<usize> {
        (**self).looked_at(stream)
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        (**self).prior()
    }

    fn priors(&self, count: usize) -> Vec<(ExponentialFamily, Vec<f64>)> {
        (**self).priors(count)
    }

    fn marginal(&self, all: &[f64], width: usize, k: usize) -> Vec<f64> {
        (**self).marginal(all, width, k)
    }

    fn own(&self, width: usize) -> usize {
        (**self).own(width)
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        (**self).log_density(t, point)
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        (**self).add(point, weight, out);
    }

    fn complete(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Option<Completed> {
        (**self).complete(t, point, inverse, statistics)
    }

    fn log_predictive(&self, lambda: &[f64], point: usize) -> Option<f64> {
        (**self).log_predictive(lambda, point)
    }

    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64 {
        (**self).log_power(t, size, s)
    }

    fn log_scale(&self, point: usize) -> f64 {
        (**self).log_scale(point)
    }

    fn log_jacobian(&self) -> f64 {
        (**self).log_jacobian()
    }

    fn lean(&self) -> f64 {
        (**self).lean()
    }

    fn partition_is_finite(&self) -> bool {
        (**self).partition_is_finite()
    }
}
