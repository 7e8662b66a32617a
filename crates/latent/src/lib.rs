//! Latent Gaussian models by dual variational inference.
//!
//! Latent variables z ~ N(μ, Σ), observations y_n with density p(y_n | η_n) and η = offset + W z. The posterior is
//! approximated by a Gaussian N(m, V) that maximises a lower bound on log p(y); for the bounds with a convex dual
//! (Khan, Aravkin, Friedlander and Seeger 2013) the duality gap certifies the distance from the optimum in nats.
//!
//! | file | subject |
//! | --- | --- |
//! | `structure` | what a prior is to a solver; hyperparameters and how their gradients flow |
//! | `model` | prior, design, likelihood, bound and observations; what is refused |
//! | `fit` | settings and results |
//! | `solve` | the solvers: the dual, the natural-gradient fixed point, baselines |
//! | `learn` | hyperparameters by maximising the bound |
//! | `predict` | the posterior at new places |
//! | `tightness` | how far the bound lies from the expectation that it stands for |
//! | `factors` | factor analysis with missing entries |
//! | `linear` | three regimes of linear algebra under one interface |
//! | `matrix` | plain dense and sparse matrices |
//! | `likelihood` | the densities of observations, one row each |
//! | `site` | likelihood × bound: the table of sites |
//! | [`prior`] | Gaussian processes, Markov fields, covariates; their specification as text |
//! | `error` | what can be wrong with a model or its data |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod error;
mod factors;
mod fit;
mod learn;
mod likelihood;
mod linear;
mod matrix;
mod model;
mod predict;
pub mod prior;
mod site;
mod solve;
mod structure;
mod tightness;

pub use error::Error;
pub use factors::{FactorFit, FactorModel, FactorSettings, NO_NOISE, fit_factors};
pub use fit::{Fit, Settings, Solver, Warm};
pub use learn::{LearnSettings, Learned, learn};
pub use likelihood::{Likelihood, Predictive, Response, Size};
pub use matrix::{Dense, Sparse};
pub use model::{LatentModel, Observations};
pub use predict::{draw, predict};
pub use site::SiteBound;
pub use solve::fit;
pub use structure::{
    Covariance, CovarianceSensitivity, Design, Parameter, Precision, Prior, Query, Range,
    Sensitivity, Structure,
};
pub use tightness::{Tightness, tightness};
