//! Latent Gaussian models by dual variational inference.
//!
//! A model has latent variables z ~ N(μ, Σ) and observations y_n with density p(y_n | η_n), where η = offset + W z. A
//! fit approximates the posterior by the Gaussian N(m, V) that maximises a lower bound on log p(y). For bounds with a
//! convex dual (Khan, Aravkin, Friedlander and Seeger 2013), the duality gap limits the distance from the optimum, in
//! nats.
//!
//! | file | subject |
//! | --- | --- |
//! | `density` | prior densities of hyperparameters |
//! | `structure` | the interface of priors to solvers; hyperparameters and their gradients |
//! | `model` | prior, design, likelihood, bound and observations, and their checks |
//! | `fit` | settings and results |
//! | `solve` | the solvers: the dual, the natural-gradient fixed point, baselines |
//! | `coordinate` | the coordinates of hyperparameters in searches |
//! | `learn` | hyperparameters by maximising the bound |
//! | `frame` | standard coordinates around a mode |
//! | `modes` | other modes of the hyperparameters' posterior |
//! | `integrate` | integration over hyperparameters |
//! | `rules` | grids and designs around a mode |
//! | `interpolant` | interpolation of scattered values |
//! | `marginal` | marginal posteriors of hyperparameters |
//! | `predict` | the posterior at new locations |
//! | `readout` | latent variables in other units and from other origins |
//! | `loo` | the prediction of each observation from the others |
//! | `tightness` | the distance of the bound from the expectation that it replaces |
//! | `normality` | the distance of the posterior from its best normal approximation |
//! | `factors` | factor analysis with missing entries |
//! | `linear` | four regimes of linear algebra under one interface |
//! | `matrix` | plain dense and sparse matrices |
//! | `copies` | copies of a matrix, for likelihoods with several predictors |
//! | `likelihood` | the densities of observations, one row each |
//! | `site` | likelihood × bound: the table of sites |
//! | [`prior`] | Gaussian processes, Markov fields, covariates; their specification as text |
//! | `error` | errors of a model or its data |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod coordinate;
mod copies;
mod density;
mod error;
mod factors;
mod fit;
mod frame;
mod integrate;
mod interpolant;
mod lattice;
mod learn;
mod likelihood;
mod linear;
mod loo;
mod marginal;
mod matrix;
mod model;
mod modes;
mod normality;
mod predict;
pub mod prior;
mod readout;
mod rules;
mod site;
mod solve;
mod structure;
mod tightness;

pub use copies::Copies;
pub use density::{Curve, PriorDensity, Tail};
pub use error::Error;
pub use factors::{FactorFit, FactorModel, FactorSettings, NO_NOISE, fit_factors};
pub use fit::{Fit, Settings, Solver, Warm};
pub use integrate::{Integrated, Kept, Point, integrate};
pub use lattice::lattice;
pub use learn::{LearnSettings, Learned, learn};
pub use likelihood::{Likelihood, Predictive, Response, Size};
pub use loo::{LeftOut, leave_one_out, left_out};
pub use marginal::{Marginal, mixture_quantile};
pub use matrix::{Dense, Sparse};
pub use model::{LatentModel, Observations};
pub use normality::{Normality, normality};
pub use predict::{draw, predict};
pub use readout::{Move, Readout, read};
pub use rules::points;
pub use site::contrasts::coordinates;
pub use site::{Curve as SiteCurve, Site, SiteBound, Value as SiteValue, check_site};
pub use solve::{fit, fit_sites, footprint};
pub use structure::{
    Chain, ChainStep, Covariance, CovarianceSensitivity, Design, DesignSensitivity, Parameter,
    Precision, Prior, Query, Range, Sensitivity, Square, Structure,
};
pub use tightness::{Tightness, misplacement, tightness};
