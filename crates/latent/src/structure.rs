//! The interface between priors, solvers and the search for hyperparameters.
//!
//! A solver receives a prior at fixed hyperparameters as a [`Structure`]. It is a Gaussian distribution of L latent
//! variables z ~ N(μ, Σ), given by a covariance, by variances, by a sparse precision or as a Markov chain. Observations depend on z
//! through a [`Design`] W: the linear predictor is η = offset + W z.
//!
//! A [`Prior`] has the hyperparameters θ and builds the structure at θ. A solver returns the derivative of the bound
//! with respect to μ and to Σ or Σ⁻¹ as a [`Sensitivity`]. The prior converts this derivative to the derivative with
//! respect to θ. By the envelope theorem, α and λ are constants in this derivative at the dual optimum.

use std::sync::Arc;

use jensen_math::special::inv_logit;

use crate::{Copies, Dense, Error, PriorDensity, Sparse};

/// The prior covariance at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Covariance {
    /// Σ as a symmetric L × L matrix, with both triangles stored.
    Dense(Dense),
    /// Independent latent variables, with one variance each.
    Diagonal(Vec<f64>),
    /// Σ⁻¹ as a sparse matrix.
    Precision(Precision),
    /// A Markov chain of states, followed by independent variables.
    Chain(Chain),
}

/// A 3 × 3 matrix by rows. Rows and columns beyond the size of a state are 0.
pub type Square = [[f64; 3]; 3];

/// A Markov chain `x₀ ~ N(0, initial)`, `x_{k+1} = transition · x_k + N(0, noise)`, followed by independent variables.
/// Coordinate i of the state of node k is the latent variable `k · size + i`. Predictors depend on the first coordinate
/// of at most one state.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Number of coordinates of a state, at most 3.
    pub size: usize,
    /// The covariance of the first state.
    pub initial: Square,
    /// The steps from each node to the next one.
    pub steps: Vec<ChainStep>,
    /// The variances of the independent variables.
    pub others: Vec<f64>,
}

/// A step of a [`Chain`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ChainStep {
    /// The matrix that maps a state to the mean of the next state.
    pub transition: Square,
    /// The covariance of the next state given the state.
    pub noise: Square,
}

impl Chain {
    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.steps.len() + 1
    }

    /// Returns the number of latent variables of all states.
    pub fn states(&self) -> usize {
        self.size * self.nodes()
    }

    /// Returns the number of latent variables.
    pub fn latents(&self) -> usize {
        self.states() + self.others.len()
    }
}

/// A sparse precision matrix Q = Σ⁻¹. The prior is intrinsic (Q is singular) if `null_space` is given.
#[derive(Clone, Debug, PartialEq)]
pub struct Precision {
    /// Q, an L × L symmetric matrix with both triangles and every diagonal entry stored.
    pub matrix: Sparse,
    /// An L × r matrix whose independent columns span the null space of an intrinsic prior. For an ICAR prior, the
    /// columns are indicators of the connected components. The density is then `(2π)^(−(L−r)/2) |Q|₊^½ exp(−½
    /// (z−μ)ᵀQ(z−μ))`, where |Q|₊ is the product of the non-zero eigenvalues. The density is flat along the null space.
    pub null_space: Option<Dense>,
    /// log |Q|₊, if the prior can compute it. For a structure matrix times τ it is `(L − r) log τ + const`. If it is
    /// `None`, the solver computes it by factorising Q.
    pub log_determinant: Option<f64>,
}

/// A Gaussian prior at fixed hyperparameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Structure {
    /// The mean μ, one element per latent variable.
    pub mean: Vec<f64>,
    /// The covariance Σ, or its inverse.
    pub covariance: Covariance,
}

impl Structure {
    /// Returns the number of latent variables.
    pub fn len(&self) -> usize {
        self.mean.len()
    }

    /// Whether there are no latent variables.
    pub fn is_empty(&self) -> bool {
        self.mean.is_empty()
    }
}

/// The matrix W that maps latent variables to linear predictors, with one row per linear predictor. Vector sites
/// (multinomial) have several rows per observation, which are adjacent.
#[derive(Clone, Debug, PartialEq)]
pub enum Design {
    /// Predictor n is latent variable n.
    Identity,
    /// Predictor n is latent variable `index[n]`. Several predictors may share a variable, and a variable may have no
    /// predictor.
    Select(Vec<usize>),
    /// A shared dense N × L matrix.
    Dense(Arc<Dense>),
    /// A sparse N × L matrix.
    Sparse(Sparse),
    /// Copies of a dense matrix, one for each predictor of an observation.
    Copies(Copies),
    /// A dense N × L matrix, and a residual of each predictor with the given variance. The residuals are independent of the
    /// latent variables, and their posterior is their prior. With inducing points, they are the part of a process that
    /// its values at the inducing points leave open (Titsias 2009).
    Projected(Arc<Dense>, Arc<Vec<f64>>),
}

impl Design {
    /// Returns the variances of the residuals of the predictors. The default is no residual.
    pub fn residuals(&self) -> Option<&[f64]> {
        match self {
            Self::Projected(_, residuals) => Some(residuals),
            _ => None,
        }
    }

    /// Returns every `step`-th row of a projected design, or `None` for other designs.
    pub(crate) fn thinned(&self, step: usize) -> Option<Self> {
        let Self::Projected(w, residuals) = self else {
            return None;
        };
        Some(Self::Projected(
            Arc::new(w.thinned(step)),
            Arc::new(residuals.iter().step_by(step).copied().collect()),
        ))
    }
}

/// Derivatives of the bound with respect to the content of a [`Structure`], at the dual optimum.
#[derive(Clone, Debug, PartialEq)]
pub struct Sensitivity {
    /// The derivative with respect to the mean, dBound/dμ = −Wᵀα, of length L.
    pub mean: Vec<f64>,
    /// The derivative with respect to the covariance, in the same form as the structure's covariance.
    pub covariance: CovarianceSensitivity,
    /// The derivative with respect to the parameters of the likelihood, in the order of
    /// [`Likelihood::parameters`](crate::Likelihood::parameters).
    pub likelihood: Vec<f64>,
    /// The derivative with respect to the design, if its residuals show that it depends on hyperparameters.
    pub design: Option<DesignSensitivity>,
}

/// The derivative of the bound with respect to a [projected](Design::Projected) design.
#[derive(Clone, Debug, PartialEq)]
pub struct DesignSensitivity {
    /// The matrix W of the design.
    pub at: Arc<Dense>,
    /// The derivative with respect to each element of W, an N × L matrix.
    pub weights: Dense,
    /// The derivative with respect to the variance of each residual, −λ/2.
    pub residuals: Vec<f64>,
}

/// The derivative of the bound with respect to the prior covariance.
#[derive(Clone, Debug, PartialEq)]
pub enum CovarianceSensitivity {
    /// A symmetric L × L matrix G with `dBound = Σ_ij G_ij dΣ_ij`, where the sum is over *all* (i, j). The matrix is
    /// `G = ½ Wᵀ(ααᵀ − (Λ⁻¹ + WΣWᵀ)⁻¹)W`.
    Dense(Dense),
    /// The vector g with `dBound = Σ_l g_l dvariance_l`.
    Diagonal(Vec<f64>),
    /// The derivative on the pattern of the precision: `dBound = Σ_k value[k] dQ[k] + log_determinant · d log |Q|₊`.
    /// The sum is over all stored entries, in the order of `Precision::matrix`.
    Precision {
        /// The elements of `−½ (m−μ)(m−μ)ᵀ − ½ V`, plus `½ Q⁻` if the solver computes the determinant.
        value: Vec<f64>,
        /// ½ if the structure supplies its log determinant, and 0 otherwise.
        log_determinant: f64,
    },
    /// The derivative with respect to each number of the chain. Derivatives with respect to covariances are symmetric
    /// matrices G with `dBound = Σ_ij G_ij dΣ_ij`.
    Chain(Chain),
}

/// The range of a hyperparameter. The range determines the unconstrained coordinate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Range {
    /// Any real number. The coordinate is the number itself.
    Real,
    /// Any positive number. The coordinate is the logarithm.
    Positive,
    /// Any number strictly between two limits. The coordinate is a logit.
    Between(f64, f64),
}

impl Range {
    /// Maps a value to its unconstrained coordinate.
    pub fn inward(self, value: f64) -> f64 {
        match self {
            Self::Real => value,
            Self::Positive => value.ln(),
            Self::Between(low, high) => ((value - low) / (high - value)).ln(),
        }
    }

    /// Maps an unconstrained coordinate to its value.
    pub fn outward(self, x: f64) -> f64 {
        match self {
            Self::Real => x,
            Self::Positive => x.exp(),
            Self::Between(low, high) => low + (high - low) * inv_logit(x),
        }
    }

    pub(crate) fn suits(self, density: &PriorDensity) -> bool {
        match density {
            PriorDensity::Flat => true,
            PriorDensity::Correlation { .. } | PriorDensity::Lkj { .. } => {
                self == Self::Between(-1.0, 1.0)
            }
            PriorDensity::Positive(_) | PriorDensity::Share { .. } | PriorDensity::Beta { .. } => {
                self == Self::Between(0.0, 1.0)
            }
            PriorDensity::Power { .. }
            | PriorDensity::Gamma { .. }
            | PriorDensity::InverseGamma { .. }
            | PriorDensity::LogNormal { .. } => self == Self::Positive,
        }
    }

    /// Computes the derivatives of [`outward`](Self::outward) and of its logarithm.
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
    /// The name of the hyperparameter in tables, such as `lengthscale` or `lengthscale[3]`.
    pub name: String,
    /// The value at which learning starts.
    pub start: f64,
    /// The allowed values.
    pub range: Range,
    /// The prior of the hyperparameter.
    pub density: PriorDensity,
}

/// A prior with free hyperparameters θ, each on its natural scale.
pub trait Prior: Sync {
    /// Returns the free hyperparameters in the order of θ. The list is empty if all hyperparameters are fixed.
    fn parameters(&self) -> Vec<Parameter>;

    /// Builds the prior at θ.
    ///
    /// # Errors
    /// Fails if θ is outside its range or does not give a valid prior.
    fn structure(&self, theta: &[f64]) -> Result<Structure, Error>;

    /// Returns the design at θ. `design` is the design of the same rows at other hyperparameters. By default, a design
    /// does not depend on hyperparameters.
    ///
    /// # Errors
    /// Fails if θ is outside its range.
    fn design(&self, theta: &[f64], design: &Design) -> Result<Design, Error> {
        let _ = theta;
        Ok(design.clone())
    }

    /// Computes dBound/dθ from the derivative with respect to the structure. [`structure`](Self::structure) must have
    /// built this structure at the same θ.
    fn gradient(&self, theta: &[f64], at: &Structure, sensitivity: &Sensitivity) -> Vec<f64>;

    /// Returns the same prior for every `step`-th row, starting with the first, if fits of fewer rows are faster in
    /// proportion. The search for hyperparameters then begins with few rows. The default is `None`.
    fn thinned(&self, step: usize) -> Option<Box<dyn Prior + '_>> {
        let _ = step;
        None
    }
}

/// The prior quantities that a prediction needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// New latent variables z* of the same Gaussian process.
    Cross {
        /// Cov(z*, z), with one row per new variable and L columns.
        covariance: Dense,
        /// Variances of z*.
        variance: Vec<f64>,
        /// Means of z*.
        mean: Vec<f64>,
    },
    /// Linear combinations of the existing latent variables.
    Rows(Design),
    /// Linear combinations of the latent variables of a longer chain, which contains the chain of the fit.
    Extended {
        /// The prior of the longer chain.
        prior: Box<Structure>,
        /// The map from its latent variables to the linear predictors of the fit.
        design: Design,
        /// The map from its latent variables to the new linear predictors.
        rows: Design,
    },
}
