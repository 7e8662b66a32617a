//! Variational inference with evidence: a model and data in, a checked posterior out.
//!
//! A [`Problem`] is a log density with names for its values: a Stan program bound to data
//! ([`stan::Model`]), or any density written in Rust ([`Bare`]). [`fit`] turns it into a [`Fitted`]
//! posterior, which says whether it can be trusted and why not.
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
//! assert!((fitted.parameters()[0].mean - 0.25).abs() < 0.02);
//! // The optimiser's word, and what speaks against using the result nevertheless.
//! assert!(fitted.fit.converged());
//! assert_eq!(fitted.trusted(), fitted.warnings().is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `predictive` | [`Predictive`]: replicated data and leave-one-out on the page |
//! | `problem` | [`Problem`], [`Bare`]: what can be fitted |
//! | [`stan`] | [`stan::Model`]: a program bound to data and lowered to a density |
//! | `fit` | [`fit`], [`fit_with`], [`Options`], [`Fitted`] |
//! | [`program`] | Stan programs from files: request, compilation, a fit in a folder |
//! | [`exchangeable`] | programs over exchangeable records, fitted by minibatches |
//! | `centring` | [`Centring`], [`CentredModel`]: how the groups of a hierarchical program are taken |
//! | [`compare`] | several fits of the same observations: leave-one-out and evidence |
//! | `covariance` | [`Covariance`]: of the family, or by linear response |
//! | `haste` | what is made of a run that was ended from outside |
//! | `sample` | [`sample`]: constrained draws with importance weights |
//! | `summaries` | what summaries rest on: weighted or refined draws |
//! | `outputs` | the summary and the report of a fit |
//! | [`calibration`] | simulation-based calibration: ranks of what data were simulated with, and tests of them |
//! | [`many`] | many fits of one program, a row of one table each |
//! | `query` | [`evaluate`]: values, gradients and Hessian-vector products at given points |
//! | `timing` | [`time_density`]: what an evaluation costs |
//! | `memory` | what a fit will take, before it is taken |
//! | [`latent`] | latent Gaussian models of tables |
//! | [`neural`] | auto-encoders of images and tables |
//! | [`points`] | mixtures and factors of points |
//! | [`regress`] | regressions: a formula and a table, fitted as a program |
//! | [`study`] | one skeleton for everything that is fitted: folder, run, verdict, files |
//! | [`topics`] | topic models of memory-mapped corpora |
//! | `error` | [`Error`] |
//!
//! The crates underneath are re-exported under their own names. Nothing here prints, reads the
//! environment or opens a file.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod blocks;
pub mod calibration;
mod centring;
pub mod compare;
mod covariance;
mod error;
pub mod exchangeable;
mod fit;
mod generate;
mod haste;
#[cfg(feature = "latent")]
pub mod latent;
pub mod many;
mod memory;
#[cfg(feature = "neural")]
pub mod neural;
mod outputs;
#[cfg(feature = "conjugate")]
pub mod points;
mod predictive;
pub mod prelude;
mod problem;
pub mod program;
mod query;
mod refinement;
pub mod regress;
mod sample;
mod save;
pub mod stan;
pub mod study;
mod summaries;
mod timing;
#[cfg(feature = "topics")]
pub mod topics;
mod variances;

pub use jensen_blackbox as blackbox;
#[cfg(feature = "conjugate")]
pub use jensen_conjugate as conjugate;
pub use jensen_data as data;
pub use jensen_density as density;
#[cfg(feature = "glm")]
pub use jensen_glm as glm;
pub use jensen_graph as graph;
pub use jensen_math as math;
pub use jensen_report as report;
pub use jensen_run as run;

pub use centring::{CentredModel, Centring};
pub use covariance::Covariance;
pub use error::Error;
pub use fit::{Fitted, Options, fit, fit_with};
pub use generate::Generator;
pub use memory::{Footprint, format_bytes};
pub use outputs::{About, HistoryPoint, advi_config};
pub use predictive::Predictive;
pub use problem::{Bare, Problem};
pub use query::{Answer, Query, evaluate};
pub use sample::{Sample, SampleRequest, sample, sample_refined};
pub use save::Save;
pub use timing::{DensityTiming, time_density};

/// The README's program is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
