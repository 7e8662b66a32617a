//! Mixtures of components of any kind. The mixture weights have a symmetric Dirichlet prior or come from the broken sticks
//! of a Dirichlet process.

use std::ops::Range;
use std::sync::Arc;

use jensen_math::rng::Stream;
use jensen_math::special::lgamma;

use crate::family::{Blocks, ExponentialFamily, sticks};
use crate::model::{ConjugateModel, Local, count_weighted};
use crate::models::components::Components;
use crate::models::seeding::seeded;
use crate::plain::{Plain, all_the_first, alone};
use crate::pointwise::{VectorGlobals, untempered_bound};
use crate::policy::softmax;
use crate::shards::PointShards;

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
    pub(super) k: usize,
    pub(super) width: usize,
    pub(super) blocks: Blocks,
    weights: Arc<[f64]>,
    mixing: Mixing,
}

/// The prior of the weights of a mixture's components.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mixing {
    /// A symmetric Dirichlet distribution with this parameter.
    Dirichlet(f64),
    /// A Dirichlet process with this concentration, truncated to the number of components (Blei and Jordan, *Variational
    /// inference for Dirichlet process mixtures*, 2006). The sticks are broken in the order of the components.
    Process(f64),
}

impl<C: Components> Mixture<C> {
    /// Creates a mixture of `k` components, whose weights have the prior Dirichlet(`concentration`, …).
    pub fn new(components: C, k: usize, concentration: f64) -> Self {
        Self::with_mixing(components, k, Mixing::Dirichlet(concentration))
    }

    /// Creates a mixture of `k` components, whose weights have a given prior.
    pub fn with_mixing(components: C, k: usize, mixing: Mixing) -> Self {
        let mut blocks = Blocks::default();
        match mixing {
            Mixing::Dirichlet(concentration) => {
                let family = ExponentialFamily::Dirichlet { n: k };
                blocks.push(family, &vec![concentration; k]);
            }
            Mixing::Process(concentration) => {
                let mut prior = vec![0.0; k];
                prior[k - 1] = concentration;
                blocks.push(ExponentialFamily::Sticks { n: k }, &prior);
            }
        }
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
            mixing,
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
        let own = &lambda[..self.k];
        match self.mixing {
            Mixing::Dirichlet(_) => {
                let total: f64 = own.iter().sum();
                own.iter().map(|x| x / total).collect()
            }
            Mixing::Process(_) => sticks::mean(own),
        }
    }

    /// Returns the expected number of points in each component.
    pub fn counts(&self, lambda: &[f64]) -> Vec<f64> {
        let pairs = lambda[..self.k].iter().zip(self.blocks.prior());
        pairs.map(|(l, prior)| (l - prior).max(0.0)).collect()
    }

    /// Returns the log probability that all of `count` points belong to the first component.
    fn all_in_one(&self, count: f64) -> f64 {
        match self.mixing {
            _ if self.k == 1 => 0.0,
            Mixing::Dirichlet(concentration) => all_the_first(self.k, concentration, count),
            Mixing::Process(concentration) => {
                lgamma(1.0 + count) + lgamma(1.0 + concentration)
                    - lgamma(1.0 + concentration + count)
            }
        }
    }

    /// Returns the weights and the parts of the components in another order.
    fn permuted(&self, lambda: &[f64], order: &[usize]) -> Vec<f64> {
        let counts = self.counts(lambda);
        let prior = self.blocks.prior();
        let weights = order.iter().zip(prior).map(|(&from, p)| p + counts[from]);
        let rest = order.iter().flat_map(|&from| self.component(lambda, from));
        weights.chain(rest.copied()).collect()
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
        let sizes = self.sizes().into_iter();
        let held: f64 = sizes.filter(|(size, _)| *size > 0.0).map(|(_, n)| n).sum();
        let share = self.all_in_one(held);
        if self.elsewhere().is_none() {
            let one = Mixture::with_mixing(&self.components, 1, self.mixing);
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

    /// Breaks the sticks of a process in descending order of the numbers of points. This order has the best bound, except
    /// possibly for the last two components (Kurihara, Welling and Teh 2007).
    fn rearrange(&self, lambda: &mut [f64]) {
        if matches!(self.mixing, Mixing::Dirichlet(_)) {
            return;
        }
        let counts = self.counts(lambda);
        let mut order: Vec<usize> = (0..self.k).collect();
        order.sort_by(|a, b| counts[*b].total_cmp(&counts[*a]));
        let other = self.permuted(lambda, &order);
        let family = ExponentialFamily::Sticks { n: self.k };
        let mut unused = vec![0.0; self.k];
        let mut normaliser = |lambda: &[f64]| family.moments(&lambda[..self.k], &mut unused);
        if normaliser(&other) > normaliser(lambda) {
            lambda.copy_from_slice(&other);
        }
    }

    fn merge(&self, lambda: &mut [f64]) -> Option<bool> {
        matches!(self.mixing, Mixing::Process(_)).then(|| self.merge_parts(lambda))
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
