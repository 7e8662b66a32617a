//! Regressions. The crate turns a formula and a table into a readable Stan program and its data.
//!
//! This crate does not fit models, open files or print. Other crates fit its programs as they fit any Stan program.
//!
//! | file | subject |
//! | --- | --- |
//! | `syntax` | formulas as trees with locations |
//! | `formula` | the content of a formula: response, additions, terms |
//! | `frame` | [`Frame`]: the table |
//! | `evaluate` | values of expressions, and the states that calls estimate from the data |
//! | `basis` | polynomials and splines |
//! | `design` | [`design()`]: columns of terms, equal to those of R's `model.matrix` |
//! | `smooth`, `predictor` | smooths, groups and the other terms of a linear predictor |
//! | `response`, `range` | the left side over the rows, and the range of its values |
//! | `family` | [`FAMILIES`]: the table of families |
//! | `prior` | priors of the user and priors that the program uses |
//! | `asked`, `rank` | the formulas with their rows; columns that are sums of others |
//! | `covariates` | [`Covariates`]: the design of a formula without a response |
//! | `regression` | [`Regression`]: a request with its table |
//! | `effects` | [`contrasts()`], [`curves()`]: tables for the effects of columns |
//! | `program` | [`program()`], [`predictions`]: Stan programs |
//! | `error` | [`Error`]: an error with its location and a remedy |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod asked;
mod basis;
mod covariates;
mod design;
mod effects;
mod error;
mod evaluate;
mod family;
mod formula;
mod frame;
mod predictor;
mod prior;
mod program;
mod range;
mod rank;
mod regression;
mod response;
mod smooth;
mod syntax;

pub use covariates::Covariates;
pub use design::{Contrasts, Design, design};
pub use effects::{Contrast, Curve, contrasts, curves};
pub use error::{Error, Result, Span};
pub use evaluate::{Evaluator, State, States};
pub use family::{FAMILIES, Family, LINKS, Link, Parameter, Response};
pub use formula::{Formula, Terms, expand};
pub use frame::{Factor, Frame, FrameColumn};
pub use predictor::Learnt;
pub use prior::Used;
pub use program::{Program, predictions, program};
pub use regression::{Regression, Request};
