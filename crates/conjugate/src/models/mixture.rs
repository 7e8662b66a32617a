//! Mixtures with symmetric Dirichlet weights over components of any kind.

use std::ops::Range;

use jensen_math::rng::Stream;

use crate::family::{Blocks, ExponentialFamily};
use crate::model::{ConjugateModel, Local};
use crate::policy::softmax;

/// What the components of a mixture (or the states of a chain) are, with the data they explain.
pub trait Components: Sync {
    /// A word for files.
    fn name(&self) -> &'static str;

    /// Number of data points.
    fn points(&self) -> usize;

    /// What a point's normaliser depends on; 0 skips the point.
    fn size(&self, point: usize) -> f64 {
        let _ = point;
        1.0
    }

    /// Families and prior parameters of one component, block by block.
    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)>;

    /// `E[log p(x | component)]` from `E[t]` (or log p at a value of t).
    fn log_density(&self, t: &[f64], point: usize) -> f64;

    /// Adds `weight` T(x).
    fn add(&self, point: usize, weight: f64, out: &mut [f64]);

    /// log ∫ p(x | component)^s dx at a value of t, for a point of a size.
    fn log_power(&self, t: &[f64], size: f64, s: f64) -> f64;

    /// See [`ConjugateModel::lean`].
    fn lean(&self) -> f64 {
        0.1
    }

    /// Whether C(T) is finite; see [`ConjugateModel::partition_is_finite`].
    fn partition_is_finite(&self) -> bool {
        true
    }
}

/// Natural parameters for one component to start from: the prior and a share of the data, half of it made of one random
/// point and half of the average point.
pub(super) fn seeded<C: Components>(
    components: &C,
    prior: &[f64],
    share: f64,
    stream: &mut Stream,
) -> Vec<f64> {
    let n = components.points();
    let mut out = prior.to_vec();
    for point in 0..n {
        components.add(point, 0.5 * share / n as f64, &mut out);
    }
    if n > 0 {
        components.add(stream.below(n as u64) as usize, 0.5 * share, &mut out);
    }
    out
}

/// A mixture of K components.
pub struct Mixture<C> {
    components: C,
    k: usize,
    width: usize,
    blocks: Blocks,
}

impl<C: Components> Mixture<C> {
    /// A mixture of `k` components with weights from Dirichlet(`concentration`, …).
    pub fn new(components: C, k: usize, concentration: f64) -> Self {
        let mut blocks = Blocks::default();
        blocks.push(
            ExponentialFamily::Dirichlet { n: k },
            &vec![concentration; k],
        );
        let prior = components.prior();
        for _ in 0..k {
            for (family, parameters) in &prior {
                blocks.push(*family, parameters);
            }
        }
        Self {
            k,
            width: prior.iter().map(|(family, _)| family.len()).sum(),
            blocks,
            components,
        }
    }

    /// The components with their data.
    pub fn components(&self) -> &C {
        &self.components
    }

    /// Expected weights of the components.
    pub fn weights(&self, lambda: &[f64]) -> Vec<f64> {
        let total: f64 = lambda[..self.k].iter().sum();
        lambda[..self.k].iter().map(|x| x / total).collect()
    }

    /// The part of λ, or of t, that belongs to a component.
    pub fn component<'a>(&self, vector: &'a [f64], k: usize) -> &'a [f64] {
        let start = self.k + k * self.width;
        &vector[start..start + self.width]
    }
}

impl<C: Components> ConjugateModel for Mixture<C> {
    type Scratch = Vec<f64>;

    fn name(&self) -> &'static str {
        self.components.name()
    }

    fn points(&self) -> usize {
        self.components.points()
    }

    fn size(&self, point: usize) -> f64 {
        self.components.size(point)
    }

    fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    fn start(&self, stream: &mut Stream) -> Vec<f64> {
        let mut lambda = self.blocks.prior().to_vec();
        let share = self.points() as f64 / self.k as f64;
        lambda[..self.k].iter_mut().for_each(|x| *x += share);
        let prior = self.component(self.blocks.prior(), 0);
        for k in 0..self.k {
            let start = self.k + k * self.width;
            let seeded = seeded(&self.components, prior, share, stream);
            lambda[start..start + self.width].copy_from_slice(&seeded);
        }
        lambda
    }

    fn lean(&self) -> f64 {
        self.components.lean()
    }

    fn parts(&self) -> Vec<Range<usize>> {
        let start = |k: usize| self.k + k * self.width;
        (0..self.k).map(|k| start(k)..start(k + 1)).collect()
    }

    fn local(
        &self,
        expected: &[f64],
        point: usize,
        inverse: f64,
        _memory: &mut [f64],
        r: &mut Vec<f64>,
    ) -> Local {
        let joint = |k: usize| {
            expected[k]
                + self
                    .components
                    .log_density(self.component(expected, k), point)
        };
        let energies: Vec<f64> = (0..self.k).map(joint).collect();
        r.clear();
        r.extend(energies.iter().map(|e| inverse * e));
        softmax(r);
        let mut local = Local {
            converged: true,
            sweeps: 1,
            ..Local::default()
        };
        for (&r, e) in r.iter().zip(energies) {
            if r > 0.0 {
                local.energy += r * e;
                local.entropy -= r * r.ln();
            }
        }
        local
    }

    fn add_statistics(&self, point: usize, weight: f64, r: &Vec<f64>, out: &mut [f64]) {
        for (k, &r) in r.iter().enumerate() {
            if r > 1e-300 {
                out[k] += weight * r;
                let start = self.k + k * self.width;
                self.components
                    .add(point, weight * r, &mut out[start..start + self.width]);
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
