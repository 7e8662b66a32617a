//! Dense linear algebra in latent space, for models with fewer latent variables than predictors.
//!
//! With Σ = RRᵀ, all computations use the L × L matrix `A = I + Rᵀ WᵀΛW R` and its Cholesky factor L. Then `log|I +
//! ΛΣ̃| = log|A|`, and `S = W A_λ⁻¹ Wᵀ = W C (W C)ᵀ` with C = R L⁻ᵀ. Woodbury's identity gives `(Σ̃ + D)⁻¹ = D⁻¹ − D⁻¹
//! W R (I + Rᵀ Wᵀ D⁻¹ W R)⁻¹ Rᵀ Wᵀ D⁻¹`. λ may be negative as long as A is positive definite.

use super::Block;
use super::design;
use super::kernels::{
    cholesky, log_determinant, map, product, solve_lower, solve_lower_transposed,
};
use crate::{Covariance, CovarianceSensitivity, Dense, Design, Error, LatentModel};

/// A square root R of Σ.
enum Root {
    Dense(Dense),
    Diagonal(Vec<f64>),
}

pub(crate) struct Narrow {
    design: Design,
    root: Root,
    latents: usize,
    /// The Cholesky factor of A, in the lower triangle.
    factor: Dense,
}

impl Narrow {
    /// Factorises Σ. If Σ is numerically singular, a small multiple of the diagonal's mean is added to the diagonal,
    /// and a note reports this. The multiple is the smallest power of ten that suffices.
    pub(crate) fn new(model: &LatentModel, notes: &mut Vec<String>) -> Result<Self, Error> {
        let root = match &model.prior.covariance {
            Covariance::Diagonal(v) => Root::Diagonal(v.iter().map(|v| v.sqrt()).collect()),
            Covariance::Dense(sigma) => Root::Dense(root_of(sigma, notes)?),
            Covariance::Precision(_) | Covariance::Chain(_) => {
                return Err(Error::Unsupported(
                    "a sparse precision needs the sparse solver".to_owned(),
                ));
            }
        };
        Ok(Self {
            design: model.design.clone(),
            root,
            latents: model.prior.len(),
            factor: Dense::zeros(0, 0),
        })
    }

    /// Computes Rᵀ G R.
    fn rotate(&self, mut g: Dense) -> Dense {
        match &self.root {
            Root::Diagonal(r) => {
                let n = g.rows;
                for j in 0..n {
                    for i in 0..n {
                        g.data[j * n + i] *= r[i] * r[j];
                    }
                }
                g
            }
            Root::Dense(r) => {
                let mut right = Dense::zeros(g.rows, g.cols);
                product(right.view_mut(), false, g.view(), r.view(), 1.0);
                product(g.view_mut(), false, r.view().transpose(), right.view(), 1.0);
                g
            }
        }
    }

    fn root_times(&self, x: &[f64]) -> Vec<f64> {
        match &self.root {
            Root::Diagonal(r) => r.iter().zip(x).map(|(r, x)| r * x).collect(),
            Root::Dense(r) => {
                let mut out = vec![0.0; x.len()];
                for (j, &xj) in x.iter().enumerate() {
                    for (o, r) in out.iter_mut().zip(r.col(j)) {
                        *o += r * xj;
                    }
                }
                out
            }
        }
    }

    fn root_transposed_times(&self, x: &[f64]) -> Vec<f64> {
        match &self.root {
            Root::Diagonal(_) => self.root_times(x),
            Root::Dense(r) => (0..x.len())
                .map(|j| super::kernels::dot(r.col(j), x))
                .collect(),
        }
    }

    fn factor_of(&self, gram: Dense) -> Option<Dense> {
        let mut a = self.rotate(gram);
        for l in 0..self.latents {
            a.data[l * self.latents + l] += 1.0;
        }
        cholesky(&mut a)?;
        Some(a)
    }

    /// Factorises A and returns log|A|.
    pub(crate) fn factor(&mut self, lambda: &[f64]) -> Option<f64> {
        self.factor = self.factor_of(design::gram(&self.design, self.latents, lambda))?;
        Some(log_determinant(&self.factor))
    }

    /// Computes C = R L⁻ᵀ, for which V = CCᵀ.
    pub(crate) fn half(&self) -> Dense {
        // Cᵀ = L⁻¹Rᵀ.
        let n = self.latents;
        let mut t = match &self.root {
            Root::Diagonal(r) => Dense::from_fn(n, n, |i, j| if i == j { r[i] } else { 0.0 }),
            Root::Dense(r) => super::wide::transpose(r),
        };
        solve_lower(&self.factor, t.view_mut());
        super::wide::transpose(&t)
    }

    /// Computes the diagonal of S at the factorised λ.
    pub(crate) fn variances(&self) -> Vec<f64> {
        design::row_norms(&self.design, &self.half())
    }

    /// Computes the diagonal of V at the factorised λ.
    pub(crate) fn latent_variances(&self) -> Vec<f64> {
        design::row_norms(&Design::Identity, &self.half())
    }

    /// Computes the variances `|Cᵀ w|²` of the rows w of another design.
    pub(crate) fn variances_of(&self, rows: &Design) -> Vec<f64> {
        design::row_norms(rows, &self.half())
    }

    pub(crate) fn latent_covariance(&self) -> Dense {
        let half = self.half();
        let mut out = Dense::zeros(half.rows, half.rows);
        product(
            out.view_mut(),
            false,
            half.view(),
            half.view().transpose(),
            1.0,
        );
        out
    }

    pub(crate) fn prior_times(&self, x: &[f64]) -> Vec<f64> {
        self.root_times(&self.root_transposed_times(x))
    }

    pub(crate) fn covariance_times(&self, x: &[f64]) -> Vec<f64> {
        let inner = design::transposed_times_vector(&self.design, self.latents, x);
        design::times(&self.design, &self.prior_times(&inner))
    }

    pub(crate) fn posterior_times(&self, x: &[f64]) -> Vec<f64> {
        let inner = design::transposed_times_vector(&self.design, self.latents, x);
        design::times(&self.design, &self.solve_latent(&inner))
    }

    /// Solves `(Σ̃ + D) x = r` and returns x and Σ̃x. `weight` is the inverse of D's diagonal part, and `block`
    /// contains the coupling. If `refactor` is false, A must already be factorised at λ = weight.
    pub(crate) fn solve(
        &mut self,
        weight: &[f64],
        block: &Block,
        r: &[f64],
        refactor: bool,
    ) -> Option<(Vec<f64>, Vec<f64>)> {
        if refactor {
            let mut gram = design::gram(&self.design, self.latents, weight);
            block.subtract_from_gram(&self.design, weight, &mut gram);
            self.factor = self.factor_of(gram)?;
        }
        let weighted = block.inverse_times(weight, r);
        let inner = design::transposed_times_vector(&self.design, self.latents, &weighted);
        let mut inner = self.root_transposed_times(&inner);
        super::kernels::solve(&self.factor, &mut inner);
        let product = design::times(&self.design, &self.root_times(&inner));
        let rest = map(r.len(), |n| r[n] - product[n]);
        Some((block.inverse_times(weight, &rest), product))
    }

    /// Computes `½ (Wᵀα)(Wᵀα)ᵀ − ½ WᵀΛ^½B⁻¹Λ^½W`, stored like the model's covariance. The product in the second term is
    /// `R⁻ᵀ(I − A⁻¹)R⁻¹ = G − G V G` with the Gram matrix G = WᵀΛW.
    pub(crate) fn sensitivity(
        &self,
        model: &LatentModel,
        alpha: &[f64],
        lambda: &[f64],
    ) -> CovarianceSensitivity {
        let n = self.latents;
        let a = design::transposed_times_vector(&self.design, n, alpha);
        let gram = design::gram(&self.design, n, lambda);
        let half = self.half();
        let mut t = Dense::zeros(n, n);
        product(t.view_mut(), false, gram.view(), half.view(), 1.0);
        let mut inner = gram;
        product(inner.view_mut(), true, t.view(), t.view().transpose(), -1.0);
        match &model.prior.covariance {
            Covariance::Diagonal(_) => CovarianceSensitivity::Diagonal(
                (0..n)
                    .map(|l| 0.5 * (a[l] * a[l] - inner.get(l, l)))
                    .collect(),
            ),
            _ => CovarianceSensitivity::Dense(Dense::from_fn(n, n, |i, j| {
                0.5 * (a[i] * a[j] - 0.5 * (inner.get(i, j) + inner.get(j, i)))
            })),
        }
    }

    pub(crate) fn solve_latent(&self, x: &[f64]) -> Vec<f64> {
        // V x = R A⁻¹ Rᵀ x.
        let mut inner = self.root_transposed_times(x);
        let n = inner.len();
        let mut view = faer::MatMut::from_column_major_slice_mut(&mut inner, n, 1);
        solve_lower(&self.factor, view.as_mut());
        solve_lower_transposed(&self.factor, view);
        self.root_times(&inner)
    }
}

/// Amounts that may be added to the diagonal of a singular covariance, relative to the mean of the diagonal. The
/// smallest sufficient amount is used.
const JITTERS: [f64; 8] = [0.0, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6];

/// Computes the lower Cholesky factor of a covariance. The strict upper triangle of the result is zero. If jitter is
/// necessary, a note reports it.
pub(crate) fn root_of(sigma: &Dense, notes: &mut Vec<String>) -> Result<Dense, Error> {
    let n = sigma.rows;
    let scale = mean_variance(sigma);
    for relative in JITTERS {
        let jitter = scale * relative;
        let mut root = sigma.clone();
        for i in 0..n {
            root.data[i * n + i] += jitter;
        }
        if cholesky(&mut root).is_some() {
            for j in 1..n {
                root.data[j * n..j * n + j].fill(0.0);
            }
            if jitter > 0.0 {
                notes.push(format!(
                    "the prior covariance is numerically singular, so Jensen added {jitter:.1e} to its diagonal"
                ));
            }
            return Ok(root);
        }
    }
    Err(indefinite())
}

/// Checks that a covariance has no negative eigenvalues. The check is needed for covariances that the fit never
/// factorises. Negative eigenvalues that are smaller than the largest jitter count as rounding errors and are accepted.
pub(crate) fn check_semidefinite(sigma: &Dense, notes: &mut Vec<String>) -> Result<(), Error> {
    let mut root = sigma.clone();
    if cholesky(&mut root).is_some() {
        return Ok(());
    }
    root.data.copy_from_slice(&sigma.data);
    let largest = JITTERS[JITTERS.len() - 1] * mean_variance(sigma);
    for i in 0..sigma.rows {
        root.data[i * sigma.rows + i] += largest;
    }
    cholesky(&mut root).ok_or_else(indefinite)?;
    notes.push(
        "the prior covariance is numerically singular (near-duplicate inputs?), so the fit avoids its inverse".to_owned(),
    );
    Ok(())
}

fn mean_variance(sigma: &Dense) -> f64 {
    let n = sigma.rows;
    (0..n).map(|i| sigma.get(i, i)).sum::<f64>() / n as f64
}

fn indefinite() -> Error {
    Error::Prior(
        "the prior covariance is not positive semi-definite, even with 1e-6 of its mean variance added to the \
         diagonal; check the matrix, or the kernel and its inputs"
            .to_owned(),
    )
}
