//! The bound as a function of (m, λ) (Opper and Archambeau 2009).
//!
//! With m = μ − ΣWᵀν and V = A_λ⁻¹, the bound is `−Σ f(m̄, v̄) − ½ (νᵀΣ̃ν + log|I + ΛΣ̃| − λᵀv̄)`. Its gradient with
//! respect to ν is `Σ̃(∂f/∂m − ν)`, and its gradient with respect to λ is `(S∘S)(∂f/∂v − ½λ)`. The bound is not concave
//! in these coordinates. The optimiser uses the logarithm of λ as coordinate.

use rayon::prelude::*;

use super::lbfgs::Objective;
use super::{Problem, Solution};
use crate::Dense;
use crate::linear::kernels::{dot, map, sum};
use crate::linear::{Geometry, design, kernels};
use crate::site::Sites;

pub(crate) struct Opper<'p, 'm> {
    pub problem: &'p mut Problem<'m>,
    pub sites: &'p Sites,
}

impl Opper<'_, '_> {
    fn product(&self, x: &[f64]) -> Vec<f64> {
        match &self.problem.geometry {
            Geometry::Wide(g) => g.covariance_times(x),
            Geometry::Narrow(g) => g.covariance_times(x),
            // Precisions have already been converted to covariances.
            Geometry::Sparse(_) | Geometry::Chain(_) => vec![f64::NAN; x.len()],
        }
    }

    /// Computes (S∘S) x at the factorised λ.
    fn squared_times(&mut self, x: &[f64]) -> Vec<f64> {
        let model = self.problem.model;
        match &mut self.problem.geometry {
            Geometry::Wide(g) => {
                let s = g.posterior_covariance();
                (0..x.len())
                    .into_par_iter()
                    .map(|j| {
                        let column = s.col(j);
                        (0..x.len()).map(|i| column[i] * column[i] * x[i]).sum()
                    })
                    .collect()
            }
            Geometry::Narrow(g) => {
                // The diagonal of S diag(x) S is wᵀ (V Wᵀ diag(x) W V) w for every row w.
                let latents = model.prior.len();
                let v = g.latent_covariance();
                let gram = design::gram(&model.design, latents, x);
                let mut t = Dense::zeros(latents, latents);
                kernels::product(t.view_mut(), false, gram.view(), v.view(), 1.0);
                let mut inner = Dense::zeros(latents, latents);
                kernels::product(inner.view_mut(), false, v.view(), t.view(), 1.0);
                let w = design::to_dense(&model.design, latents);
                let mut right = Dense::zeros(w.rows, latents);
                kernels::product(right.view_mut(), false, w.view(), inner.view(), 1.0);
                let mut out = vec![0.0; w.rows];
                for l in 0..latents {
                    for ((o, a), b) in out.iter_mut().zip(w.col(l)).zip(right.col(l)) {
                        *o += a * b;
                    }
                }
                out
            }
            Geometry::Sparse(_) | Geometry::Chain(_) => vec![f64::NAN; x.len()],
        }
    }
}

impl Objective for Opper<'_, '_> {
    fn start(&self) -> Vec<f64> {
        let n = self.problem.centre.len();
        let values = self.sites.values(&self.problem.centre, &vec![1.0; n]);
        let mut x = vec![0.0; n];
        x.extend(values.iter().map(|v| (2.0 * v.by_variance).max(1e-6).ln()));
        x
    }

    fn evaluate(&mut self, x: &[f64]) -> Option<(f64, Vec<f64>)> {
        let n = self.problem.centre.len();
        let (nu, lambda) = (&x[..n], map(n, |i| x[n + i].exp()));
        let log_determinant = self.problem.geometry.factor(&lambda)?;
        let variances = self.problem.geometry.variances();
        let product = self.product(nu);
        let centre = &self.problem.centre;
        let predictor = map(n, |i| centre[i] - product[i]);
        let values = self.sites.values(&predictor, &variances);
        let quadratic = dot(nu, &product) - dot(&lambda, &variances);
        let value = -sum(n, |i| values[i].f) - 0.5 * (quadratic + log_determinant);
        if !value.is_finite() {
            return None;
        }
        let off = map(n, |i| values[i].by_mean - nu[i]);
        let mut gradient = self.product(&off);
        let excess = map(n, |i| values[i].by_variance - 0.5 * lambda[i]);
        let by_lambda = self.squared_times(&excess);
        gradient.extend((0..n).map(|i| by_lambda[i] * lambda[i]));
        Some((value, gradient))
    }

    fn solution(&mut self, x: &[f64], value: f64) -> Solution {
        let n = self.problem.centre.len();
        let lambda = map(n, |i| x[n + i].exp());
        self.problem.geometry.factor(&lambda);
        let variances = self.problem.geometry.variances();
        let product = self.product(&x[..n]);
        let predictor = map(n, |i| self.problem.centre[i] - product[i]);
        super::solution(self.problem, self.sites, predictor, &variances, value)
    }
}
