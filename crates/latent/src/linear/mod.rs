//! Linear algebra of the dual. Four implementations share one interface.
//!
//! | file | regime | factorises |
//! | --- | --- | --- |
//! | `wide` | dense prior, N ≤ L | B = I + Λ^½ Σ̃ Λ^½, N × N |
//! | `narrow` | dense prior, L < N | A = I + Rᵀ WᵀΛW R, L × L, Σ = RRᵀ |
//! | `sparse` | sparse precision Q | A = Q + WᵀΛW by a sparse Cholesky factor, its inverse on the factor's pattern by `selected` |
//! | `chained` | Markov chain | the covariances of a Kalman filter (`filter`), and a dense matrix of the other variables |
//! | `design`, `copies` | products with W | |
//! | `kernels` | dense factorisations and sums | |

mod block;
mod chained;
mod copies;
pub(crate) mod design;
mod filter;
pub(crate) mod kernels;
pub(crate) mod narrow;
mod selected;
pub(crate) mod sparse;
pub(crate) mod wide;

pub(crate) use block::Block;
pub(crate) use filter::{square, times};

use rayon::prelude::*;

use crate::{
    Covariance, CovarianceSensitivity, Dense, Design, DesignSensitivity, Error, LatentModel,
};
use chained::ChainField;
use narrow::Narrow;
use sparse::SparseField;
use wide::Wide;

pub(crate) enum Geometry {
    Wide(Wide),
    Narrow(Narrow),
    Sparse(Box<SparseField>),
    Chain(Box<ChainField>),
}

/// With more independent latent variables than this and a sparse design, the posterior precision is stored as a sparse
/// matrix, if it is sparse.
const MANY: usize = 512;

/// The largest number of independent latent variables for which a precision that is not sparse is stored as a dense
/// matrix. The matrix then takes half a gibibyte.
const LARGEST: usize = 8192;

/// The share of pairs of latent variables above which the precision counts as dense. The fill-in of a factor makes such a
/// matrix practically full.
const FULL: f64 = 0.25;

/// Returns whether the posterior precision of independent latent variables is stored as a sparse matrix.
fn is_sparse(design: &Design, latents: usize) -> bool {
    match design {
        _ if latents <= MANY => false,
        Design::Dense(_) | Design::Copies(_) | Design::Projected(..) => false,
        Design::Sparse(_) if latents <= LARGEST => !couples_most(design, latents),
        _ => true,
    }
}

/// Returns whether the predictors couple more than the share [`FULL`] of all pairs of latent variables.
fn couples_most(design: &Design, latents: usize) -> bool {
    let rows = design::to_sparse_transposed(design, latents);
    let most = FULL * (latents * latents) as f64;
    let mut coupled = vec![false; latents * latents];
    let mut pairs = 0;
    for n in 0..rows.cols {
        let (index, _) = rows.col(n);
        for &j in index {
            for &i in index {
                let known = &mut coupled[j * latents + i];
                pairs += usize::from(!*known);
                *known = true;
            }
        }
        if pairs as f64 > most {
            return true;
        }
    }
    false
}

/// The number of matrices with the shape of a dense design that a fit keeps in memory at the same time, as measured.
const DESIGNS: u64 = 3;

/// Returns whether a dense prior has about one latent variable per predictor. If only a few of a Gaussian process's
/// inputs occur more than once, computations over the predictors still cost less than a factorisation of the prior.
pub(crate) fn observed_once(model: &LatentModel) -> bool {
    let (n, latents) = (model.design_rows(), model.prior.len());
    latents >= n || (matches!(model.design, Design::Select(_)) && 10 * latents >= 9 * n)
}

/// Returns the approximate memory of a fit's linear algebra in bytes for the rows of the model's design.
pub(crate) fn footprint(model: &LatentModel) -> Result<u64, Error> {
    let (n, latents) = (model.design_rows() as u64, model.prior.len() as u64);
    match &model.prior.covariance {
        Covariance::Precision(q) => sparse::footprint(model, q),
        Covariance::Chain(chain) => Ok(chained::footprint(chain, n)),
        Covariance::Diagonal(variances) if is_sparse(&model.design, variances.len()) => {
            sparse::footprint(model, &sparse::diagonal(variances))
        }
        // The five matrices are Σ, its factor, its inverse and two work matrices.
        Covariance::Dense(_) => Ok(8 * 5 * latents * latents),
        Covariance::Diagonal(_) => {
            let designs = match &model.design {
                Design::Dense(_) | Design::Projected(..) => DESIGNS * n * latents,
                Design::Copies(w) => DESIGNS * w.one().data.len() as u64,
                _ => 0,
            };
            Ok(8 * (5 * latents.min(n) * latents.min(n) + designs))
        }
    }
}

impl Geometry {
    pub(crate) fn new(
        model: &LatentModel,
        signed: bool,
        notes: &mut Vec<String>,
    ) -> Result<Self, Error> {
        let (n, latents) = (model.design_rows(), model.prior.len());
        match &model.prior.covariance {
            // The factor of Q + WᵀΛW has only the fill-in of the field's graph, whereas the field's covariance would be
            // dense.
            Covariance::Precision(q) => Ok(Self::Sparse(Box::new(SparseField::new(model, q)?))),
            Covariance::Chain(chain) => Ok(Self::Chain(Box::new(ChainField::new(model, chain)?))),
            // Independent variables are coupled only by the predictors, so their posterior precision is sparse. A dense
            // factor would cost the cube of the number of variables.
            Covariance::Diagonal(variances) if is_sparse(&model.design, latents) => {
                let q = sparse::diagonal(variances);
                Ok(Self::Sparse(Box::new(SparseField::new(model, &q)?)))
            }
            // A has one row per latent variable and also exists for negative λ, whereas B needs square roots of λ. For
            // other models, the smaller of A and B is used.
            Covariance::Dense(_) if signed || !observed_once(model) => {
                Ok(Self::Narrow(Narrow::new(model, notes)?))
            }
            // The sensitivity to a projected design needs the covariance of the latent variables.
            Covariance::Diagonal(_)
                if latents < n || signed || model.design.residuals().is_some() =>
            {
                Ok(Self::Narrow(Narrow::new(model, notes)?))
            }
            // With one latent variable per predictor, B is no larger than Σ. It does not need a factor of Σ, which may
            // be singular.
            Covariance::Dense(sigma) => {
                narrow::check_semidefinite(sigma, notes)?;
                Ok(Self::Wide(Wide::new(model)))
            }
            Covariance::Diagonal(_) => Ok(Self::Wide(Wide::new(model))),
        }
    }

    /// Factorises at λ and returns log|I + ΛΣ̃|. For an intrinsic prior with r null directions, the result is `log|A_λ|
    /// − log|Q|₊ − r log 2π`. Returns `None` if the posterior precision is not positive definite.
    pub(crate) fn factor(&mut self, lambda: &[f64]) -> Option<f64> {
        match self {
            Self::Wide(g) => g.factor(lambda),
            Self::Narrow(g) => g.factor(lambda),
            Self::Sparse(g) => g.factor(lambda),
            Self::Chain(g) => g.factor(lambda),
        }
    }

    pub(crate) fn variances(&mut self) -> Vec<f64> {
        match self {
            Self::Wide(g) => g.variances(),
            Self::Narrow(g) => g.variances(),
            Self::Sparse(g) => g.variances(),
            Self::Chain(g) => g.variances(),
        }
    }

    pub(crate) fn posterior_times(&self, x: &[f64]) -> Vec<f64> {
        match self {
            Self::Wide(g) => g.posterior_times(x),
            Self::Narrow(g) => g.posterior_times(x),
            Self::Sparse(g) => g.posterior_times(x),
            Self::Chain(g) => g.posterior_times(x),
        }
    }

    /// Computes m at the factorised λ from α, λ and what the latent variables contribute to the mean of the predictors.
    pub(crate) fn latent_mean(
        &mut self,
        model: &LatentModel,
        alpha: &[f64],
        lambda: &[f64],
        predictor: &[f64],
    ) -> Vec<f64> {
        let mean = &model.prior.mean;
        let pull =
            |weights: &[f64]| design::transposed_times_vector(&model.design, mean.len(), weights);
        match self {
            Self::Wide(_) => {
                let a = pull(alpha);
                let shift = match &model.prior.covariance {
                    Covariance::Dense(sigma) => kernels::symmetric_times(sigma, &a),
                    Covariance::Diagonal(v) => v.iter().zip(&a).map(|(v, a)| v * a).collect(),
                    Covariance::Precision(_) | Covariance::Chain(_) => a,
                };
                mean.iter().zip(&shift).map(|(m, s)| m - s).collect()
            }
            Self::Narrow(g) => {
                let shift = g.prior_times(&pull(alpha));
                mean.iter().zip(&shift).map(|(m, s)| m - s).collect()
            }
            Self::Sparse(g) => {
                let weights: Vec<f64> = (0..alpha.len())
                    .map(|n| lambda[n] * predictor[n] - alpha[n])
                    .collect();
                g.latent_mean(mean, &pull(&weights))
            }
            Self::Chain(g) => {
                let prior = design::times(&model.design, mean);
                let weights: Vec<f64> = (0..alpha.len())
                    .map(|n| lambda[n] * (predictor[n] - prior[n]) - alpha[n])
                    .collect();
                let mut shift = pull(&weights);
                g.solve_latent(&mut shift);
                mean.iter().zip(&shift).map(|(m, s)| m + s).collect()
            }
        }
    }

    pub(crate) fn latent_variances(&mut self, model: &LatentModel) -> Vec<f64> {
        match self {
            Self::Wide(g) => g.latent_variances(model),
            Self::Narrow(g) => g.latent_variances(),
            Self::Sparse(g) => g.latent_variances(),
            Self::Chain(g) => g.latent_variances(),
        }
    }

    /// Computes the derivative of the bound with respect to a projected design, at the optimum and the factorised λ.
    /// With the approximate posterior N(m, V) of the latent variables, it is −α mᵀ − Λ W V.
    pub(crate) fn design_sensitivity(
        &self,
        model: &LatentModel,
        alpha: &[f64],
        lambda: &[f64],
        mean: &[f64],
    ) -> Option<DesignSensitivity> {
        let (Design::Projected(w, _), Self::Narrow(g)) = (&model.design, self) else {
            return None;
        };
        let covariance = g.latent_covariance();
        let mut weights = Dense::zeros(w.rows, w.cols);
        kernels::product(weights.view_mut(), false, w.view(), covariance.view(), 1.0);
        weights
            .data
            .par_chunks_mut(w.rows)
            .zip(mean)
            .for_each(|(column, m)| {
                for ((x, a), l) in column.iter_mut().zip(alpha).zip(lambda) {
                    *x = -a * m - l * *x;
                }
            });
        Some(DesignSensitivity {
            at: w.clone(),
            weights,
            residuals: lambda.iter().map(|l| -0.5 * l).collect(),
        })
    }

    /// Computes the derivative of the bound with respect to the prior's covariance, at the optimum of the dual and the
    /// factorised λ.
    pub(crate) fn sensitivity(
        &mut self,
        model: &LatentModel,
        alpha: &[f64],
        lambda: &[f64],
        mean: &[f64],
    ) -> Result<CovarianceSensitivity, Error> {
        match self {
            Self::Wide(g) => Ok(g.sensitivity(model, alpha)),
            Self::Narrow(g) => Ok(g.sensitivity(model, alpha, lambda)),
            Self::Sparse(g) => g.sensitivity(model, mean),
            Self::Chain(g) => Ok(g.sensitivity(model, alpha, mean)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sparse;

    /// A design in which row n has weights for each of these latent variables.
    fn design(rows: usize, latents: usize, index: impl Fn(usize) -> Vec<usize>) -> Design {
        let triplets: Vec<(usize, usize, f64)> = (0..rows)
            .flat_map(|n| index(n).into_iter().map(move |l| (n, l, 1.0)))
            .collect();
        Design::Sparse(Sparse::from_triplets(rows, latents, &triplets).unwrap())
    }

    #[test]
    fn only_sparse_precisions_are_stored_as_sparse_matrices() {
        let latents = 600;
        // An intercept and two crossed groupings.
        let groups = design(2000, latents, |n| vec![0, 1 + n % 550, 551 + n % 49]);
        assert!(is_sparse(&groups, latents));
        // Coefficients of ten columns in each of 60 categories, of which each row compares two.
        let categories = design(6000, latents, |n| {
            let of = |k: usize| (0..10).map(move |column| 10 * k + column);
            of(n % 60).chain(of((n + 1 + n / 60) % 60)).collect()
        });
        assert!(!is_sparse(&categories, latents));
        assert!(!is_sparse(
            &Design::Dense(Dense::zeros(9, latents).into()),
            latents
        ));
        assert!(!is_sparse(&design(2000, 500, |n| vec![n % 500]), 500));
    }
}
