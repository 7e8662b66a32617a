//! Variational inference with automatic checks of every result.
//!
//! A [`Problem`] is a log density whose variables have names. The problem can be a Stan program bound to data
//! ([`stan::Model`]) or a density written in Rust ([`Bare`]). The function [`fit`] approximates the posterior of a
//! problem and returns a [`Fitted`], which contains draws and a verdict with its reasons.
//!
//! ```
//! use jensen::prelude::*;
//!
//! # fn main() -> Result<(), Error> {
//! let data = DataSet::from_json(br#"{"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}"#, "data")?;
//! let source = "
//!     data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
//!     parameters { real<lower=0, upper=1> theta; }
//!     model { theta ~ beta(1, 1); y ~ bernoulli(theta); }";
//! let model = Model::compile(source, "bernoulli.stan", &data, &Build::default())?;
//! let fitted = fit(&model, &Options::default())?;
//! // The posterior is beta(3, 9).
//! assert!((fitted.parameter("theta")?.mean - 0.25).abs() < 0.02);
//! assert!(fitted.draws("theta")?.element(0).all(|theta| theta < 1.0));
//! // The optimiser has converged, and the warnings are the reasons not to trust the draws.
//! assert!(fitted.fit.converged());
//! assert_eq!(fitted.trusted(), fitted.warnings().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `predictive` | [`Predictive`]: replicated data and leave-one-out cross-validation in the report |
//! | `problem` | [`Problem`] and [`Bare`]: the input of a fit |
//! | [`stan`] | [`stan::Model`]: a program bound to data and lowered to a density |
//! | `fit` | [`fit`], [`fit_with`], [`Options`], [`Fitted`] |
//! | [`family`] | user-defined families: [`Family`](family::Family) |
//! | `by_name` | [`VariableDraws`]: draws and summaries by the names of the program |
//! | [`program`] | Stan programs from files: request, compilation, a fit in a folder |
//! | [`exchangeable`] | programs over exchangeable records, fitted by minibatches |
//! | `centring` | [`Centring`] and [`CentredModel`]: the parameterisation of groups in a hierarchical program |
//! | [`compare`] | comparison of fits by leave-one-out cross-validation and evidence |
//! | `covariance` | [`Covariance`]: the source of the covariances |
//! | `haste` | time limits for the output of an interrupted run |
//! | `sample` | [`sample`]: constrained draws with importance weights |
//! | `summaries` | summaries of weighted or refined draws |
//! | `outputs` | the summary and the report of a fit |
//! | `remarks` | remarks on a fit that do not affect its verdict |
//! | [`calibration`] | simulation-based calibration: ranks of simulated parameters, and tests of the ranks |
//! | [`fit_many`] | many fits of one program, with one table row per fit |
//! | `query` | [`evaluate`]: values, gradients and Hessian-vector products at given points |
//! | `timing` | [`time_density`]: the cost of an evaluation |
//! | `memory` | an estimate of the memory of a fit |
//! | [`latent`] | latent Gaussian models of tables |
//! | [`vae`] | auto-encoders of images and tables |
//! | [`mixture`], [`factors`], [`hmm`] | mixtures, factorial mixtures and hidden Markov chains |
//! | `points` | the fit job of these three |
//! | [`regress`] | regressions: a formula and a table, fitted as a Stan program |
//! | [`job`] | the common part of all fit jobs: folder, run, verdict and files |
//! | [`topics`] | topic models of memory-mapped corpora |
//! | [`units`] | standardised columns |
//! | `error` | [`Error`] |
//!
//! Applications depend on this crate. The module [`data`] reads and writes files, and the module [`density`] contains
//! the traits that a log density implements. The command and the Python package also use modules that are hidden in
//! this documentation, such as `jensen::blackbox`. Hidden modules may change in every version. This crate prints
//! nothing and does not read environment variables.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod by_name;
pub mod calibration;
mod centring;
pub mod compare;
mod covariance;
mod error;
pub mod exchangeable;
#[cfg(feature = "mixture")]
pub mod factors;
pub mod family;
mod fit;
pub mod fit_many;
mod generate;
mod haste;
#[cfg(feature = "mixture")]
pub mod hmm;
#[doc(hidden)]
pub mod job;
#[cfg(feature = "latent")]
pub mod latent;
mod memory;
#[cfg(feature = "mixture")]
pub mod mixture;
mod outputs;
#[cfg(feature = "mixture")]
#[doc(hidden)]
pub mod points;
mod predictive;
pub mod prelude;
mod problem;
pub mod program;
mod query;
#[doc(hidden)]
pub mod records;
mod refinement;
pub mod regress;
mod remarks;
mod sample;
mod save;
pub mod stan;
mod summaries;
mod timing;
#[cfg(feature = "topics")]
pub mod topics;
pub mod units;
#[cfg(feature = "vae")]
pub mod vae;
mod variances;

#[doc(hidden)]
pub use jensen_blackbox as blackbox;
#[cfg(feature = "mixture")]
#[doc(hidden)]
pub use jensen_conjugate as conjugate;
pub use jensen_data as data;
pub use jensen_density as density;
#[cfg(feature = "glm")]
pub use jensen_glm as glm;
pub use jensen_graph as graph;
#[doc(hidden)]
pub use jensen_math as math;
#[doc(hidden)]
pub use jensen_report as report;
pub use jensen_run as run;

pub use by_name::VariableDraws;
pub use centring::{CentredModel, Centring};
pub use covariance::Covariance;
pub use error::Error;
pub use fit::{Fitted, Options, fit, fit_with};
pub use generate::Generator;
pub use jensen_blackbox::{Approximation, LoadError};
pub use memory::{Footprint, format_bytes};
#[doc(hidden)]
pub use outputs::advi_config;
pub use outputs::{About, HistoryPoint};
pub use predictive::Predictive;
pub use problem::{Bare, Problem};
pub use query::{Answer, Query, evaluate};
pub use sample::{Sample, SampleRequest, sample, sample_refined};
pub use save::Save;
pub use timing::{DensityTiming, time_density};

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
