//! Mixtures of components of any kind. The mixture weights have a symmetric Dirichlet prior.

use std::ops::Range;
use std::sync::Arc;

use jensen_math::rng::Stream;
use rayon::prelude::*;

use crate::family::{Blocks, ExponentialFamily};
use crate::model::{ConjugateModel, Local, count_sizes, count_weighted};
use crate::plain::{Plain, all_the_first, alone};
use crate::pointwise::{VectorGlobals, untempered_bound};
use crate::policy::softmax;
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

/// Memory of a local step. It stores q(z) of the last point.
#[derive(Clone, Debug, Default)]
pub struct MixtureScratch {
    /// Responsibilities of the components.
    pub r: Vec<f64>,
    completed: Vec<f64>,
}

/// A mixture with K components.
pub struct Mixture<C> {
    components: C,
    k: usize,
    width: usize,
    blocks: Blocks,
    weights: Arc<[f64]>,
}

impl<C: Components> Mixture<C> {
    /// Creates a mixture of `k` components, whose weights have the prior Dirichlet(`concentration`, …).
    pub fn new(components: C, k: usize, concentration: f64) -> Self {
        let mut blocks = Blocks::default();
        blocks.push(
            ExponentialFamily::Dirichlet { n: k },
            &vec![concentration; k],
        );
        for (family, parameters) in components.priors(k) {
            blocks.push(family, &parameters);
        }
        let prior = components.prior();
        Self {
            k,
            width: prior.iter().map(|(family, _)| family.len()).sum(),
            blocks,
            components,
            weights: Arc::default(),
        }
    }

    /// Sets the number of equal points that each point stands for. The numbers need not be whole. Without them, every
    /// point stands for itself.
    #[must_use]
    pub fn with_weights(self, weights: &Arc<[f64]>) -> Self {
        let weights = weights.clone();
        Self { weights, ..self }
    }

    /// Returns the components together with their data.
    pub fn components(&self) -> &C {
        &self.components
    }

    fn total(&self) -> f64 {
        match self.weights.is_empty() {
            true => self.components.points() as f64,
            false => self.weights.iter().sum(),
        }
    }

    /// Returns the expected weights of the components.
    pub fn weights(&self, lambda: &[f64]) -> Vec<f64> {
        let total: f64 = lambda[..self.k].iter().sum();
        lambda[..self.k].iter().map(|x| x / total).collect()
    }

    /// Prepares predictions for new points under the fitted q(β).
    pub fn predictive(&self, lambda: &[f64]) -> Predictive<'_, C> {
        let families: Vec<ExponentialFamily> =
            self.components.prior().into_iter().map(|p| p.0).collect();
        let total: f64 = lambda[..self.k].iter().sum();
        let components = (0..self.k).map(|k| {
            let here = self.marginal(lambda, k);
            let (normaliser, expected) = normaliser(&families, &here);
            PredictiveComponent {
                log_weight: (lambda[k] / total).ln(),
                lambda: here,
                normaliser,
                expected,
            }
        });
        Predictive {
            components: components.collect(),
            families,
            data: &self.components,
        }
    }

    /// Returns the natural parameters of the marginal distribution of component `k` (see [`Components::marginal`]).
    pub fn marginal(&self, lambda: &[f64], k: usize) -> Vec<f64> {
        self.components.marginal(&lambda[self.k..], self.width, k)
    }

    /// Returns the part of λ or of t that belongs to component `k`.
    pub fn component<'a>(&self, vector: &'a [f64], k: usize) -> &'a [f64] {
        let start = self.k + k * self.width;
        &vector[start..start + self.width]
    }
}

fn normaliser(families: &[ExponentialFamily], lambda: &[f64]) -> (f64, Vec<f64>) {
    let mut expected = vec![0.0; lambda.len()];
    let (mut start, mut total) = (0, 0.0);
    for family in families {
        let here = start..start + family.len();
        total += family.moments(&lambda[here.clone()], &mut expected[here.clone()]);
        start = here.end;
    }
    (total, expected)
}

/// Computes log ∫ p(x | component) q(component) for a point, in nats. The integral is a(λ + T(x)) − a(λ) plus a term
/// that is the same for all components. `before` contains a(λ) and ∇a(λ).
fn after<C: Components + ?Sized>(
    components: &C,
    families: &[ExponentialFamily],
    lambda: &[f64],
    (before, expected): (f64, &[f64]),
    point: usize,
) -> f64 {
    let mut after = vec![0.0; lambda.len()];
    components.add(point, 1.0, &mut after);
    let linear: f64 = after.iter().zip(expected).map(|(a, b)| a * b).sum();
    let constant = components.log_density(expected, point) - linear;
    after.iter_mut().zip(lambda).for_each(|(s, l)| *s += l);
    normaliser(families, &after).0 - before + constant
}

pub(super) fn predictive<C: Components + ?Sized>(
    components: &C,
    lambda: &[f64],
    point: usize,
) -> f64 {
    components.log_predictive(lambda, point).unwrap_or_else(|| {
        let families: Vec<ExponentialFamily> =
            components.prior().into_iter().map(|p| p.0).collect();
        let (before, expected) = normaliser(&families, lambda);
        after(components, &families, lambda, (before, &expected), point)
    })
}

/// The posterior predictive distribution of a mixture.
pub struct Predictive<'a, C> {
    data: &'a C,
    families: Vec<ExponentialFamily>,
    components: Vec<PredictiveComponent>,
}

struct PredictiveComponent {
    log_weight: f64,
    lambda: Vec<f64>,
    normaliser: f64,
    expected: Vec<f64>,
}

impl<C: Components> Predictive<'_, C> {
    /// Returns log `E[π_k]` + log ∫ p(x | β_k) q(β_k) for every component, in nats, at a point of the mixture's data.
    ///
    /// For conjugate families, the integral is a(λ + T(x)) − a(λ) plus a term that is the same for all components.
    pub fn at(&self, point: usize) -> Vec<f64> {
        if self.data.size(point) == 0.0 {
            return self.components.iter().map(|c| c.log_weight).collect();
        }
        let one = |c: &PredictiveComponent| {
            if let Some(known) = self.data.log_predictive(&c.lambda, point) {
                return c.log_weight + known;
            }
            let before = (c.normaliser, &c.expected[..]);
            c.log_weight + after(self.data, &self.families, &c.lambda, before, point)
        };
        self.components.iter().map(one).collect()
    }
}

impl<C: Components> ConjugateModel for Mixture<C> {
    type Scratch = MixtureScratch;

    fn name(&self) -> &'static str {
        self.components.name()
    }

    fn points(&self) -> usize {
        self.components.points()
    }

    fn size(&self, point: usize) -> f64 {
        self.components.size(point)
    }

    fn weight(&self, point: usize) -> f64 {
        self.weights.get(point).copied().unwrap_or(1.0)
    }

    fn sizes(&self) -> Vec<(f64, f64)> {
        if self.weights.is_empty() {
            return self.components.sizes();
        }
        let all = self.weights.iter().enumerate();
        count_weighted(all.map(|(point, weight)| (self.size(point), *weight)))
    }

    fn elsewhere(&self) -> Option<&dyn PointShards> {
        self.components.elsewhere()
    }

    fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    fn start(&self, stream: &mut Stream) -> Vec<f64> {
        let mut lambda = self.blocks.prior().to_vec();
        let share = self.total() / self.k as f64;
        lambda[..self.k].iter_mut().for_each(|x| *x += share);
        let start = seeded(&self.components, self.k, &self.weights, stream);
        lambda[self.k..].copy_from_slice(&start);
        lambda
    }

    fn log_jacobian(&self) -> f64 {
        if self.weights.is_empty() {
            return self.components.log_jacobian();
        }
        let all = self.weights.iter().enumerate();
        -all.map(|(point, weight)| weight * self.components.log_scale(point))
            .sum::<f64>()
    }

    fn lean(&self) -> f64 {
        self.components.lean()
    }

    fn plain(&self) -> Option<Plain> {
        let concentration = self.blocks.prior()[0];
        let sizes = self.sizes().into_iter();
        let held: f64 = sizes.filter(|(size, _)| *size > 0.0).map(|(_, n)| n).sum();
        let share = all_the_first(self.k, concentration, held);
        if self.elsewhere().is_none() {
            let one = Mixture::new(&self.components, 1, concentration);
            let bound = alone(&one.with_weights(&self.weights));
            let within = bound + share;
            return Some(Plain { bound, within });
        }
        // Shards support only this number of components. The share of the other components is chosen so that the bound
        // is better.
        let mut lambda = self.blocks.prior().to_vec();
        lambda[0] += held;
        let first = &mut lambda[self.k..self.k + self.width];
        self.components.add_all(1.0, first);
        let memory = Vec::new();
        let within = untempered_bound(self, &VectorGlobals { lambda, memory });
        let bound = within - share;
        Some(Plain { bound, within })
    }

    fn parts(&self) -> Vec<Range<usize>> {
        let start = |k: usize| self.k + k * self.width;
        (0..self.k).map(|k| start(k)..start(k + 1)).collect()
    }

    fn own_parameters(&self) -> usize {
        self.components.own(self.width)
    }

    fn local(
        &self,
        expected: &[f64],
        point: usize,
        inverse: f64,
        _memory: &mut [f64],
        scratch: &mut MixtureScratch,
    ) -> Local {
        let MixtureScratch { r, completed } = scratch;
        completed.clear();
        r.clear();
        let mut energies = Vec::with_capacity(self.k);
        for k in 0..self.k {
            let t = self.component(expected, k);
            let (energy, log) = match self.components.complete(t, point, inverse, completed) {
                Some(found) => (
                    expected[k] + found.energy,
                    inverse * expected[k] + found.log_integral,
                ),
                None => {
                    let energy = expected[k] + self.components.log_density(t, point);
                    (energy, inverse * energy)
                }
            };
            // The rest of the log weight is the entropy of the missing values.
            energies.push((energy, log));
            r.push(log);
        }
        softmax(r);
        let mut local = Local {
            converged: true,
            sweeps: 1,
            ..Local::default()
        };
        for (&r, (energy, log)) in r.iter().zip(energies) {
            if r > 0.0 {
                local.energy += r * energy;
                local.entropy += r * (log - inverse * energy - r.ln());
            }
        }
        local
    }

    fn add_statistics(&self, point: usize, weight: f64, q: &MixtureScratch, out: &mut [f64]) {
        for (k, &r) in q.r.iter().enumerate() {
            if r > 1e-300 {
                out[k] += weight * r;
                let start = self.k + k * self.width;
                let here = &mut out[start..start + self.width];
                match q.completed.chunks_exact(self.width).nth(k) {
                    Some(statistics) => here
                        .iter_mut()
                        .zip(statistics)
                        .for_each(|(o, s)| *o += weight * r * s),
                    None => self.components.add(point, weight * r, here),
                }
            }
        }
    }

    fn log_normaliser(&self, t: &[f64], size: f64, s: f64) -> f64 {
        let logs: Vec<f64> = (0..self.k)
            .map(|k| s * t[k] + self.components.log_power(self.component(t, k), size, s))
            .collect();
        jensen_math::special::log_sum_exp_slice(&logs)
    }

    fn partition_is_finite(&self) -> bool {
        self.components.partition_is_finite()
    }
}
