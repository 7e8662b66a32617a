//! Dense linear algebra in observation space, for models with at most as many predictors as latent variables.
//!
//! With Σ̃ = WΣWᵀ and Λ = diag λ ≥ 0, all computations use the N × N matrix B = I + Λ^½ Σ̃ Λ^½, whose eigenvalues are
//! at least 1. Then `log|I + ΛΣ̃| = log|B|` and `S = W A_λ⁻¹ Wᵀ = Σ̃ − Σ̃ Λ^½ B⁻¹ Λ^½ Σ̃`. The inverse of B gives
//! `S_ij = (δ_ij − B⁻¹_ij) / √(λ_i λ_j)`.

use rayon::prelude::*;

use super::kernels::{
    cholesky, dot, inverse_diagonal, inverse_into, log_determinant, mirror, product, solve,
    solve_lower, symmetric_times,
};
use crate::{Covariance, CovarianceSensitivity, Dense, Design, LatentModel};

/// If `λ Σ̃_nn` is below this value, cancellation makes `1 − B⁻¹_nn` too inaccurate to compute the variance from it.
const WEAK: f64 = 1e-2;

const FEW: usize = 1 << 17;

pub(crate) struct Wide {
    /// Σ̃ with both triangles.
    pub(crate) covariance: Dense,
    /// The Cholesky factor of B, in the lower triangle.
    factor: Dense,
    /// B⁻¹ if `inverted` is true. Otherwise the matrix is scratch memory.
    inverse: Dense,
    inverted: bool,
    variances: Option<Vec<f64>>,
    /// Scratch memory for the Newton system. It is kept between steps, because the first access to new memory pages
    /// takes as long as computing the sums that are written there.
    hessian: Dense,
    root: Vec<f64>,
}

impl Wide {
    pub(crate) fn new(model: &LatentModel) -> Self {
        let covariance = predictor_covariance(model);
        let n = covariance.rows;
        Self {
            factor: Dense::zeros(n, n),
            inverse: Dense::zeros(n, n),
            inverted: false,
            variances: None,
            hessian: Dense::zeros(0, 0),
            root: vec![0.0; n],
            covariance,
        }
    }

    /// Factorises B and returns log|B|.
    pub(crate) fn factor(&mut self, lambda: &[f64]) -> Option<f64> {
        let n = self.covariance.rows;
        self.inverted = false;
        self.variances = None;
        self.root = lambda.iter().map(|l| l.sqrt()).collect();
        let (root, covariance) = (&self.root, &self.covariance);
        self.factor
            .data
            .par_chunks_mut(n)
            .with_min_len(1 + FEW / n)
            .enumerate()
            .for_each(|(j, column)| {
                let source = covariance.col(j);
                for i in j..n {
                    column[i] = root[i] * source[i] * root[j];
                }
                column[j] += 1.0;
            });
        cholesky(&mut self.factor)?;
        Some(log_determinant(&self.factor))
    }

    /// Computes B⁻¹ at the factorised λ, in 2n³/3 operations.
    pub(crate) fn inverse(&mut self) -> &Dense {
        if !self.inverted {
            inverse_into(&self.factor, &mut self.inverse);
            self.inverted = true;
        }
        &self.inverse
    }

    /// Computes the diagonal of S at the factorised λ, in n³/3 operations.
    pub(crate) fn variances(&mut self) -> Vec<f64> {
        if let Some(variances) = &self.variances {
            return variances.clone();
        }
        let n = self.root.len();
        let diagonal = if self.inverted {
            (0..n).map(|i| self.inverse.get(i, i)).collect()
        } else {
            inverse_diagonal(&self.factor, &mut self.inverse)
        };
        let this = &*self;
        let variances: Vec<f64> = (0..n)
            .into_par_iter()
            .with_min_len(64)
            .map(|i| {
                let weight = this.root[i] * this.root[i];
                if weight * this.covariance.get(i, i) >= WEAK {
                    (1.0 - diagonal[i]) / weight
                } else {
                    this.variance_of(i)
                }
            })
            .collect();
        self.variances = Some(variances.clone());
        variances
    }

    /// Computes `Σ̃_nn − |L⁻¹Λ^½Σ̃_n|²` in n² operations. Unlike the difference `1 − B⁻¹_nn`, this form is accurate for
    /// predictors with a small λ.
    fn variance_of(&self, n: usize) -> f64 {
        let mut t: Vec<f64> = self
            .covariance
            .col(n)
            .iter()
            .zip(&self.root)
            .map(|(s, r)| s * r)
            .collect();
        let len = t.len();
        solve_lower(
            &self.factor,
            faer::MatMut::from_column_major_slice_mut(&mut t, len, 1),
        );
        self.covariance.get(n, n) - dot(&t, &t)
    }

    pub(crate) fn covariance_times(&self, x: &[f64]) -> Vec<f64> {
        symmetric_times(&self.covariance, x)
    }

    /// Solves `(Σ̃ + ½ (S∘S)_scaled + diag d) x = r` at the factorised λ, where the elements of the middle term are
    /// `slope_i slope_j S_ij²`. The strict upper triangle of the sum is not computed.
    pub(crate) fn newton(
        &mut self,
        slope: &[f64],
        diagonal: &[f64],
        block: &super::Block,
        r: &[f64],
    ) -> Option<Vec<f64>> {
        let n = r.len();
        if self.hessian.rows != n {
            self.hessian = Dense::zeros(n, n);
        }
        let mut hessian = std::mem::replace(&mut self.hessian, Dense::zeros(0, 0));
        let solved = self.newton_in(&mut hessian, slope, diagonal, block, r);
        self.hessian = hessian;
        solved
    }

    fn newton_in(
        &mut self,
        hessian: &mut Dense,
        slope: &[f64],
        diagonal: &[f64],
        block: &super::Block,
        r: &[f64],
    ) -> Option<Vec<f64>> {
        let n = r.len();
        if slope.iter().any(|s| *s != 0.0) {
            let variances = self.variances();
            self.inverse();
            let inverse = &self.inverse;
            let scale: Vec<f64> = self
                .root
                .iter()
                .zip(slope)
                .map(|(r, s)| if *r < 1e-100 { 0.0 } else { s / (r * r) })
                .collect();
            let covariance = &self.covariance;
            hessian
                .data
                .par_chunks_mut(n)
                .with_min_len(1 + FEW / n)
                .enumerate()
                .for_each(|(j, column)| {
                    let (source, inner) = (covariance.col(j), inverse.col(j));
                    let outer = 0.5 * scale[j];
                    for i in j..n {
                        column[i] = source[i] + outer * scale[i] * inner[i] * inner[i];
                    }
                    column[j] = source[j] + diagonal[j] + 0.5 * (slope[j] * variances[j]).powi(2);
                });
        } else {
            hessian.data.copy_from_slice(&self.covariance.data);
            for (j, d) in diagonal.iter().enumerate() {
                hessian.data[j * n + j] += d;
            }
        }
        block.add_to(hessian);
        cholesky(hessian)?;
        let mut x = r.to_vec();
        solve(hessian, &mut x);
        Some(x)
    }

    /// Computes `Λ^½ B⁻¹ Λ^½ x` at the factorised λ.
    pub(crate) fn shrink(&self, x: &[f64]) -> Vec<f64> {
        let mut t: Vec<f64> = x.iter().zip(&self.root).map(|(x, r)| x * r).collect();
        solve(&self.factor, &mut t);
        for (t, r) in t.iter_mut().zip(&self.root) {
            *t *= r;
        }
        t
    }

    pub(crate) fn posterior_times(&self, x: &[f64]) -> Vec<f64> {
        let mut out = self.covariance_times(x);
        let down = self.covariance_times(&self.shrink(&out));
        for (o, d) in out.iter_mut().zip(&down) {
            *o -= d;
        }
        out
    }

    pub(crate) fn posterior_covariance(&mut self) -> Dense {
        let variances = self.variances();
        let n = self.root.len();
        let mut t = self.covariance.clone();
        t.data.par_chunks_mut(n).for_each(|column| {
            for (x, r) in column.iter_mut().zip(&self.root) {
                *x *= r;
            }
        });
        solve_lower(&self.factor, t.view_mut());
        let mut out = self.covariance.clone();
        super::kernels::symmetric_product(
            out.view_mut(),
            true,
            t.view().transpose(),
            t.view(),
            -1.0,
            super::kernels::parallelism(n),
        );
        mirror(&mut out);
        for (i, v) in variances.iter().enumerate() {
            out.data[i * n + i] = *v;
        }
        out
    }

    pub(crate) fn latent_variances(&mut self, model: &LatentModel) -> Vec<f64> {
        if model.design == Design::Identity {
            return self.variances();
        }
        let cross = cross_covariance(model);
        self.reduced_variances(&cross, &prior_variances(model))
    }

    /// Computes `prior_k − |L⁻¹Λ^½ cross_k|²` for each column of `cross`, an N × K matrix of covariances of the
    /// predictors with other variables.
    pub(crate) fn reduced_variances(&self, cross: &Dense, prior: &[f64]) -> Vec<f64> {
        let mut t = cross.clone();
        let n = t.rows;
        t.data.par_chunks_mut(n).for_each(|column| {
            for (x, r) in column.iter_mut().zip(&self.root) {
                *x *= r;
            }
        });
        solve_lower(&self.factor, t.view_mut());
        prior
            .iter()
            .enumerate()
            .map(|(k, p)| p - dot(t.col(k), t.col(k)))
            .collect()
    }

    /// Computes `prior − TᵀT` with `T = L⁻¹Λ^½ cross`. The result is the posterior covariance of other variables, whose
    /// prior covariance is `prior`.
    pub(crate) fn reduced_covariance(&self, cross: &Dense, prior: &Dense) -> Dense {
        let mut t = cross.clone();
        let n = t.rows;
        t.data.par_chunks_mut(n.max(1)).for_each(|column| {
            for (x, r) in column.iter_mut().zip(&self.root) {
                *x *= r;
            }
        });
        solve_lower(&self.factor, t.view_mut());
        let mut out = prior.clone();
        product(out.view_mut(), true, t.view().transpose(), t.view(), -1.0);
        out
    }

    /// Computes `½ Wᵀ(ααᵀ − Λ^½B⁻¹Λ^½)W`, stored like the model's covariance.
    pub(crate) fn sensitivity(
        &mut self,
        model: &LatentModel,
        alpha: &[f64],
    ) -> CovarianceSensitivity {
        self.inverse();
        let inverse = &self.inverse;
        let n = alpha.len();
        let mut inner = Dense::zeros(n, n);
        let root = &self.root;
        inner
            .data
            .par_chunks_mut(n)
            .enumerate()
            .for_each(|(j, column)| {
                let source = inverse.col(j);
                for i in 0..n {
                    column[i] = 0.5 * (alpha[i] * alpha[j] - root[i] * source[i] * root[j]);
                }
            });
        let outer = if model.design == Design::Identity {
            inner
        } else {
            let left = super::design::transposed_times(&model.design, model.prior.len(), &inner);
            let left = transpose(&left);
            super::design::transposed_times(&model.design, model.prior.len(), &left)
        };
        match &model.prior.covariance {
            Covariance::Diagonal(_) => {
                CovarianceSensitivity::Diagonal((0..outer.rows).map(|l| outer.get(l, l)).collect())
            }
            _ => CovarianceSensitivity::Dense(outer),
        }
    }
}

pub(crate) fn transpose(a: &Dense) -> Dense {
    Dense::from_fn(a.cols, a.rows, |i, j| a.get(j, i))
}

/// Returns the prior variances of the latent variables. The prior must not be given by its precision.
pub(crate) fn prior_variances(model: &LatentModel) -> Vec<f64> {
    match &model.prior.covariance {
        Covariance::Dense(sigma) => (0..sigma.rows).map(|l| sigma.get(l, l)).collect(),
        Covariance::Diagonal(variances) => variances.clone(),
        Covariance::Precision(_) | Covariance::Chain(_) => Vec::new(),
    }
}

/// Computes W Σ, an N × L matrix. The prior must not be given by its precision.
pub(crate) fn cross_covariance(model: &LatentModel) -> Dense {
    let w = super::design::to_dense(&model.design, model.prior.len());
    match &model.prior.covariance {
        Covariance::Dense(sigma) => {
            let mut out = Dense::zeros(w.rows, w.cols);
            product(out.view_mut(), false, w.view(), sigma.view(), 1.0);
            out
        }
        Covariance::Diagonal(variances) => {
            let mut out = w;
            let rows = out.rows;
            for (l, v) in variances.iter().enumerate() {
                for x in &mut out.data[l * rows..(l + 1) * rows] {
                    *x *= v;
                }
            }
            out
        }
        Covariance::Precision(_) | Covariance::Chain(_) => Dense::zeros(w.rows, 0),
    }
}

/// Computes Σ̃ = WΣWᵀ, with both triangles.
fn predictor_covariance(model: &LatentModel) -> Dense {
    match (&model.design, &model.prior.covariance) {
        (Design::Identity, Covariance::Dense(sigma)) => sigma.clone(),
        (Design::Select(index), Covariance::Dense(sigma)) => {
            Dense::from_fn(index.len(), index.len(), |i, j| {
                sigma.get(index[i], index[j])
            })
        }
        (design, _) => {
            let cross = cross_covariance(model);
            let w = super::design::to_dense(design, model.prior.len());
            let mut out = Dense::zeros(w.rows, w.rows);
            super::kernels::symmetric_product(
                out.view_mut(),
                false,
                cross.view(),
                w.view().transpose(),
                1.0,
                super::kernels::parallelism(w.rows),
            );
            mirror(&mut out);
            out
        }
    }
}
