//! The sample-average approximation of the ELBO. For fixed noise, it is a deterministic function of the parameters.

use std::sync::Arc;

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};

use crate::calls::Calls;
use crate::dense::cholesky;
use crate::family::{Curvature, Family};
use crate::reduce::{axpy, sum};
use crate::sizes::LANES;

/// The negated ELBO `F(ω) = −(1/M) Σ_l log p(T(ω, ε_l)) − H(ω)` for M fixed lanes of noise, with its gradient and
/// Hessian-vector products. Smaller values are better. F is +∞ if the density at any lane is not finite, so a minimiser
/// never moves to such a point.
pub struct Objective<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    noise: Vec<f64>,
    lanes: usize,
    workspace: D::Workspace,
    z: Vec<f64>,
    grad: Vec<f64>,
    directions: Vec<f64>,
    products: Vec<f64>,
    values: Vec<f64>,
    at: Vec<f64>,
    calls: Calls,
    hessian_workspace: Option<D::Workspace>,
}

impl<'a, D: TwiceDifferentiable> Objective<'a, D> {
    /// Creates the objective for the given `noise`, a `family.noise_dim() × lanes` matrix.
    pub fn new(density: &'a D, family: Arc<dyn Family>, noise: Vec<f64>, lanes: usize) -> Self {
        let size = family.dim() * lanes;
        Self {
            density,
            family,
            noise,
            lanes,
            workspace: density.workspace(lanes),
            z: vec![0.0; size],
            grad: vec![0.0; size],
            directions: vec![0.0; size],
            products: vec![0.0; size],
            values: vec![0.0; lanes],
            at: Vec::new(),
            calls: Calls::default(),
            hessian_workspace: None,
        }
    }

    /// Makes the objective evaluate the density with lower accuracy and at a lower cost.
    #[must_use]
    pub fn roughly(mut self) -> Self {
        self.workspace = self.density.rough_workspace(self.lanes);
        self
    }

    /// Returns the family of the objective.
    pub fn family(&self) -> Arc<dyn Family> {
        self.family.clone()
    }

    /// Returns the number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// Returns the number of evaluations so far and resets it.
    pub fn take_calls(&mut self) -> Calls {
        std::mem::take(&mut self.calls)
    }

    /// Returns the log densities of the lanes at the last evaluation.
    pub fn lane_values(&self) -> &[f64] {
        &self.values
    }

    fn noise(&self) -> Lanes<'_> {
        Lanes::new(&self.noise, self.family.noise_dim(), self.lanes)
    }

    fn transform(&mut self, omega: &[f64]) {
        let (dim, lanes) = (self.family.dim(), self.lanes);
        let noise = Lanes::new(&self.noise, self.family.noise_dim(), lanes);
        let z = LanesMut::new(&mut self.z, dim, lanes);
        self.family.transform(omega, noise, z);
    }

    fn finish_value(&self, omega: &[f64]) -> f64 {
        let value = -sum(&self.values) / self.lanes as f64 - self.family.entropy(omega);
        if value.is_finite() && self.values.iter().all(|v| v.is_finite()) {
            value
        } else {
            f64::INFINITY
        }
    }

    /// Computes `F(ω)`.
    pub fn value(&mut self, omega: &[f64]) -> f64 {
        let (dim, lanes) = (self.family.dim(), self.lanes);
        self.at.clear();
        self.transform(omega);
        let z = Lanes::new(&self.z, dim, lanes);
        self.density.value(&mut self.workspace, z, &mut self.values);
        self.calls.values += lanes as u64;
        self.finish_value(omega)
    }

    /// Computes `F(ω)` and writes `∇F` to `out`. If the gradient is not finite, F is infinite.
    pub fn value_gradient(&mut self, omega: &[f64], out: &mut [f64]) -> f64 {
        let (dim, lanes) = (self.family.dim(), self.lanes);
        self.transform(omega);
        let z = Lanes::new(&self.z, dim, lanes);
        let grad = LanesMut::new(&mut self.grad, dim, lanes);
        self.density
            .value_grad(&mut self.workspace, z, &mut self.values, grad);
        self.calls.gradients += lanes as u64;
        self.at.clear();
        self.at.extend_from_slice(omega);
        let value = self.finish_value(omega);
        out.fill(0.0);
        let grad = Lanes::new(&self.grad, dim, lanes);
        self.family.pull(omega, self.noise(), grad, out);
        out.iter_mut().for_each(|x| *x /= lanes as f64);
        self.family.add_entropy_gradient(omega, out);
        out.iter_mut().for_each(|x| *x = -*x);
        if out.iter().all(|x| x.is_finite()) {
            value
        } else {
            f64::INFINITY
        }
    }

    /// Computes the draws and gradients at ω, unless the last evaluation was at ω. The function does not count this
    /// evaluation, because the count must be the same in a resumed run, which starts without stored values. Instead,
    /// callers count it by [`charge`](Self::charge).
    fn visit(&mut self, omega: &[f64]) {
        if self.at != omega {
            let calls = self.calls;
            let mut gradient = vec![0.0; omega.len()];
            self.value_gradient(omega, &mut gradient);
            self.calls = calls;
        }
    }

    /// Counts one evaluation of the gradient.
    pub fn charge(&mut self) {
        self.calls.gradients += self.lanes as u64;
    }

    /// Fixes the ω at which [`hvp`](Self::hvp) evaluates the Hessian.
    pub fn linearize(&mut self, omega: &[f64]) {
        self.visit(omega);
        let z = Lanes::new(&self.z, self.family.dim(), self.lanes);
        self.density.linearize(&mut self.workspace, z);
    }

    /// Computes `out = ∇²F(ω) d` at the ω of the last [`linearize`](Self::linearize).
    pub fn hvp(&mut self, direction: &[f64], out: &mut [f64]) {
        let (dim, lanes) = (self.family.dim(), self.lanes);
        let noise = Lanes::new(&self.noise, self.family.noise_dim(), lanes);
        let pushed = LanesMut::new(&mut self.directions, dim, lanes);
        self.family.push(&self.at, direction, noise, pushed);
        self.density.apply(
            &mut self.workspace,
            Lanes::new(&self.directions, dim, lanes),
            LanesMut::new(&mut self.products, dim, lanes),
        );
        self.calls.products += lanes as u64;
        out.fill(0.0);
        let products = Lanes::new(&self.products, dim, lanes);
        self.family.pull(&self.at, noise, products, out);
        let grad = Lanes::new(&self.grad, dim, lanes);
        self.family
            .pull_second(&self.at, direction, noise, grad, out);
        out.iter_mut().for_each(|x| *x /= lanes as f64);
        self.family.add_entropy_hvp(&self.at, direction, out);
        out.iter_mut().for_each(|x| *x = -*x);
    }

    /// Estimates `−E ∇²log p` from `draws` of the lanes at `omega`. If the estimate is not positive definite, the
    /// function adds multiples of the inverse variances. The cost is `draws × d` lanes of Hessian-vector products.
    pub fn curvature(&mut self, omega: &[f64], draws: usize) -> Option<Curvature> {
        let hessian = self.negated_hessian(omega, draws);
        let dim = self.family.dim();
        let diagonal: Vec<f64> = (0..dim).map(|i| hessian[i * dim + i].max(0.0)).collect();
        let sd = self.family.marginal_sd(omega);
        let mut ridge = 0.0;
        for _ in 0..12 {
            let mut shifted = hessian.clone();
            for i in 0..dim {
                shifted[i * dim + i] += ridge / (sd[i] * sd[i]);
            }
            if let Some(factor) = cholesky(&shifted, dim) {
                return Some(Curvature { factor, diagonal });
            }
            ridge = if ridge == 0.0 { 1e-6 } else { ridge * 10.0 };
        }
        None
    }

    /// Computes `−(1/K) Σ ∇²log p`, a symmetric d × d matrix. The K lanes are the first `draws` lanes and their mirror
    /// images.
    fn negated_hessian(&mut self, omega: &[f64], draws: usize) -> Vec<f64> {
        let dim = self.family.dim();
        let mut unit = vec![0.0; dim * dim];
        (0..dim).for_each(|i| unit[i * dim + i] = 1.0);
        let mut hessian = self.negated_products(omega, draws, &unit);
        for i in 0..dim {
            for j in 0..i {
                let mean = 0.5 * (hessian[i * dim + j] + hessian[j * dim + i]);
                hessian[i * dim + j] = mean;
                hessian[j * dim + i] = mean;
            }
        }
        hessian
    }

    /// Computes `−(1/K) Σ ∇²log p V` for the columns V of `directions`. The K lanes are the first `draws` lanes and
    /// their mirror images.
    pub fn negated_products(
        &mut self,
        omega: &[f64],
        draws: usize,
        directions: &[f64],
    ) -> Vec<f64> {
        let (dim, lanes) = (self.family.dim(), self.lanes);
        let columns = directions.len() / dim;
        self.visit(omega);
        let used = draws.clamp(1, lanes / 2);
        // Each call takes complete draws, up to a few hundred lanes. Lane k·columns + j is draw k times direction j.
        let together = (LANES / columns).clamp(1, used);
        let mut found = vec![0.0; directions.len()];
        let mut workspace = self
            .hessian_workspace
            .take()
            .unwrap_or_else(|| self.density.workspace(LANES.max(columns)));
        for first in (0..used).step_by(together) {
            let count = together.min(used - first);
            let width = count * columns;
            let mut z = vec![0.0; dim * width];
            let mut turned = vec![0.0; dim * width];
            let mut product = vec![0.0; dim * width];
            for k in 0..count {
                // The second half of the lanes mirrors the first half. Alternating between the halves makes odd terms
                // small.
                let draw = first + k;
                let lane = draw / 2 + if draw % 2 == 0 { 0 } else { lanes / 2 };
                for (i, direction) in directions.chunks(columns).enumerate() {
                    let range = i * width + k * columns..i * width + (k + 1) * columns;
                    z[range.clone()].fill(self.z[i * lanes + lane]);
                    turned[range].copy_from_slice(direction);
                }
            }
            self.density.hvp(
                &mut workspace,
                Lanes::new(&z, dim, width),
                Lanes::new(&turned, dim, width),
                LanesMut::new(&mut product, dim, width),
            );
            self.calls.products += width as u64;
            for (row, product) in found.chunks_mut(columns).zip(product.chunks(width)) {
                for products in product.chunks(columns) {
                    axpy(-1.0 / used as f64, products, row);
                }
            }
        }
        self.hessian_workspace = Some(workspace);
        found
    }
}
