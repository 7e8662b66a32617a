//! The interface between priors, solvers and hyperparameters.
//!
//! A solver receives a prior at fixed hyperparameters as a [`Structure`]: a Gaussian on L latent variables z ~ N(μ, Σ)
//! given by a covariance, by variances or by a sparse precision. Observations depend on z through a [`Design`] W: the
//! linear predictor is η = offset + W z.
//!
//! A [`Prior`] owns the hyperparameters. It builds the structure at θ, and converts the solver's [`Sensitivity`] — the
//! derivative of the bound with respect to μ and to Σ or its inverse, at the dual optimum, where by the envelope
//! theorem α and λ are constants — to the derivative with respect to θ.

use std::sync::Arc;

use jensen_math::special::inv_logit;

use crate::{Dense, Error, PriorDensity, Sparse};

/// The prior covariance at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Covariance {
    /// Σ, L × L and symmetric, with both triangles stored.
    Dense(Dense),
    /// Independent latent variables, with one variance each.
    Diagonal(Vec<f64>),
    /// Σ⁻¹, sparse.
    Precision(Precision),
}

/// A sparse precision matrix Q = Σ⁻¹, which is intrinsic (singular) if `null_space` is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Q, L × L and symmetric, both triangles stored and every diagonal entry present.
    pub matrix: Sparse,
    /// L × r with independent columns that span the null space of an intrinsic prior (for an ICAR prior
    /// the indicators of the connected components). The density is then
    /// `(2π)^(−(L−r)/2) |Q|₊^½ exp(−½ (z−μ)ᵀQ(z−μ))`, flat along the null space, with the product of the
    /// non-zero eigenvalues |Q|₊.
    pub null_space: Option<Dense>,
    /// log |Q|₊ if the prior can compute it (it is `(L − r) log τ + const` for a structure matrix times τ). Otherwise
    /// the solver factorises Q for it.
    pub log_determinant: Option<f64>,
}

/// A prior at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// μ, one element per latent variable.
    pub mean: Vec<f64>,
    /// Σ or its inverse.
    pub covariance: Covariance,
}

impl Structure {
    /// Number of latent variables.
    pub fn len(&self) -> usize {
        self.mean.len()
    }

    /// Whether there are no latent variables.
    pub fn is_empty(&self) -> bool {
        self.mean.is_empty()
    }
}

/// The mapping W from latent variables to linear predictors, with one row per linear predictor. Rows of vector sites
/// (multinomial) are observation-major.
#[derive(Clone, Debug, PartialEq)]
pub enum Design {
    /// Predictor n is latent variable n.
    Identity,
    /// Predictor n is latent variable `index[n]` (repeated measurements, groups, unobserved cells).
    Select(Vec<usize>),
    /// A shared dense N × L matrix.
    Dense(Arc<Dense>),
    /// A sparse N × L matrix.
    Sparse(Sparse),
}

/// Derivative of the bound with respect to the content of a [`Structure`], at the dual optimum.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// dBound/dμ = −Wᵀα, length L.
    pub mean: Vec<f64>,
    /// With respect to the covariance, in the form of the structure.
    pub covariance: CovarianceSensitivity,
    /// With respect to the parameters of the likelihood, in the order of
    /// [`Likelihood::parameters`](crate::Likelihood::parameters).
    pub likelihood: Vec<f64>,
}

/// Derivative of the bound with respect to the prior covariance.
#[derive(Clone, Debug, PartialEq)]
pub enum CovarianceSensitivity {
    /// A symmetric L × L matrix G with `dBound = Σ_ij G_ij dΣ_ij` over *all* (i, j):
    /// `G = ½ Wᵀ(ααᵀ − (Λ⁻¹ + WΣWᵀ)⁻¹)W`.
    Dense(Dense),
    /// `dBound = Σ_l g_l dvariance_l`.
    Diagonal(Vec<f64>),
    /// On the pattern of the precision: `dBound = Σ_k value[k] dQ[k] + log_determinant · d log |Q|₊`, k over all
    /// stored entries, with the same order as `Precision::matrix`.
    Precision {
        /// `−½ (m−μ)(m−μ)ᵀ − ½ V`, and `+ ½ Q⁻` if the solver computes the determinant.
        value: Vec<f64>,
        /// ½ if the structure gives its log determinant, otherwise 0.
        log_determinant: f64,
    },
}

/// The range of a hyperparameter, which determines its unconstrained coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Any real number, which is already unconstrained.
    Real,
    /// Positive. The coordinate is the logarithm.
    Positive,
    /// Strictly between two numbers. The coordinate is the logit.
    Between(f64, f64),
}

impl Range {
    /// To the unconstrained coordinate.
    pub fn inward(self, value: f64) -> f64 {
        match self {
            Self::Real => value,
            Self::Positive => value.ln(),
            Self::Between(low, high) => ((value - low) / (high - value)).ln(),
        }
    }

    /// From the unconstrained coordinate.
    pub fn outward(self, x: f64) -> f64 {
        match self {
            Self::Real => x,
            Self::Positive => x.exp(),
            Self::Between(low, high) => low + (high - low) * inv_logit(x),
        }
    }

    /// Whether a prior density has values in this range.
    pub(crate) fn suits(self, density: &PriorDensity) -> bool {
        match density {
            PriorDensity::Flat => true,
            PriorDensity::Correlation { .. } | PriorDensity::Lkj { .. } => {
                self == Self::Between(-1.0, 1.0)
            }
            PriorDensity::Share { .. } | PriorDensity::Beta { .. } => {
                self == Self::Between(0.0, 1.0)
            }
            PriorDensity::Power { .. }
            | PriorDensity::Gamma { .. }
            | PriorDensity::InverseGamma { .. }
            | PriorDensity::LogNormal { .. } => self == Self::Positive,
        }
    }

    /// The derivative of [`outward`](Self::outward), and that of its logarithm.
    pub(crate) fn slopes(self, x: f64) -> (f64, f64) {
        match self {
            Self::Real => (1.0, 0.0),
            Self::Positive => (x.exp(), 1.0),
            Self::Between(low, high) => {
                let (p, q) = (inv_logit(x), inv_logit(-x));
                ((high - low) * p * q, q - p)
            }
        }
    }
}

/// A free hyperparameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name for tables, like `lengthscale` or `lengthscale[3]`.
    pub name: String,
    /// The starting point of learning.
    pub start: f64,
    /// The allowed values.
    pub range: Range,
    /// The prior of the free hyperparameter.
    pub density: PriorDensity,
}

/// A prior with free hyperparameters θ, each on its natural scale.
pub trait Prior: Sync {
    /// The free hyperparameters, in the order of θ, or empty if all are fixed.
    fn parameters(&self) -> Vec<Parameter>;

    /// The prior at θ.
    ///
    /// # Errors
    /// Fails if θ is outside its range or gives no valid prior.
    fn structure(&self, theta: &[f64]) -> Result<Structure, Error>;

    /// dBound/dθ from the derivative with respect to the structure that [`structure`](Self::structure) built at θ.
    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64>;
}

/// The prior's quantities for a prediction.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// New latent variables z* of the same Gaussian process.
    Cross {
        /// Cov(z*, z), with one row per new variable and L columns.
        covariance: Dense,
        /// Var(z*).
        variance: Vec<f64>,
        /// E z*.
        mean: Vec<f64>,
    },
    /// Linear combinations of the existing latent variables.
    Rows(Design),
}
