//! The settings and the result of a fit.

use jensen_run::Status;
use serde::{Deserialize, Serialize};

use crate::Sensitivity;

/// The method that maximises the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Solver {
    /// The dual in N variables. If the bound has no convex dual, this solver iterates the natural-gradient fixed point
    /// in the same coordinates.
    Dual,
    /// L-BFGS over the mean and the Cholesky factor of the covariance (Challis and Barber).
    Primal,
    /// L-BFGS over the mean and λ (Opper and Archambeau).
    Opper,
    /// Coordinate ascent (Khan, Mohamed and Murphy 2012), which is available only for Gaussian processes.
    Coordinate,
    /// Expectation maximisation, which optimises the points of contact of Jaakkola's bound.
    Em,
}

impl Solver {
    /// All solvers.
    pub const ALL: [Self; 5] = [
        Self::Dual,
        Self::Primal,
        Self::Opper,
        Self::Coordinate,
        Self::Em,
    ];

    /// Returns the solver's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dual => "dual",
            Self::Primal => "primal",
            Self::Opper => "opper",
            Self::Coordinate => "coordinate",
            Self::Em => "em",
        }
    }

    /// Returns the solver with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// The settings of a fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The solver.
    pub solver: Solver,
    /// The fit has converged when the duality gap is at most this, in nats. Without a dual, the criterion is the
    /// estimated improvement of the next step.
    pub tolerance: f64,
    /// Number of Gauss–Hermite nodes for expectations without a closed form, at most 128. By default, expectations use
    /// the trapezoidal rule, and the spread of each linear predictor determines the number of nodes.
    pub nodes: Option<usize>,
}

impl Default for Settings {
    /// Returns settings with the dual solver and a tolerance of 1e-6 nats. The number of nodes depends on the spread of
    /// each predictor.
    fn default() -> Self {
        Self {
            solver: Solver::Dual,
            tolerance: 1e-6,
            nodes: None,
        }
    }
}

/// A starting point that comes from an earlier fit of a model with the same size. The new fit starts from the sites'
/// natural parameters `λ m̄ − α` and λ, because these remain suitable when the prior changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warm {
    /// The vector α of the earlier fit.
    pub alpha: Vec<f64>,
    /// The vector λ of the earlier fit.
    pub lambda: Vec<f64>,
    /// The means of the linear predictors.
    pub predictor: Vec<f64>,
}

/// A fitted Gaussian posterior N(m, V) with `m = μ − ΣWᵀα` and `V = (Σ⁻¹ + Wᵀ diag(λ) W)⁻¹`.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The maximised lower bound on log p(y), in nats, with all constants.
    pub bound: f64,
    /// The duality gap: the dual minus the primal objective, in nats. The optimum exceeds `bound` by at most this much.
    /// The gap is `None` if the bound has no convex dual.
    pub gap: Option<f64>,
    /// The posterior means m, one per latent variable.
    pub mean: Vec<f64>,
    /// The posterior variances diag V, one per latent variable.
    pub variance: Vec<f64>,
    /// The means offset + W m of the linear predictors, one per predictor.
    pub predictor_mean: Vec<f64>,
    /// The variances of the linear predictors, one per predictor: diag W V Wᵀ and the variances of residuals.
    pub predictor_variance: Vec<f64>,
    /// The variances of the residuals of the linear predictors. The list is empty if the design has no residuals.
    pub residual_variance: Vec<f64>,
    /// The vector α, with one element per predictor. If the exact expectation couples the predictors of an observation,
    /// α has one element for each pair of categories of the observation. The pairs that contain the reference category
    /// come first.
    pub alpha: Vec<f64>,
    /// The vector λ, with the same length as `alpha`.
    pub lambda: Vec<f64>,
    /// Derivatives of the bound with respect to the prior and the likelihood's parameters, if the caller requested
    /// them.
    pub sensitivity: Option<Sensitivity>,
    /// The status at the end of the fit.
    pub status: Status,
    /// Number of iterations.
    pub iterations: u64,
    /// Duration of the whole fit in seconds, including preparation.
    pub seconds: f64,
    /// Notes for the user, for example that jitter was added to the covariance.
    pub notes: Vec<String>,
}

impl Fit {
    /// Returns the starting point for a fit of a similar model.
    pub fn warm(&self) -> Warm {
        Warm {
            alpha: self.alpha.clone(),
            lambda: self.lambda.clone(),
            predictor: self.predictor_mean.clone(),
        }
    }
}
