//! Regressions: turns a formula and a table into a readable Stan program and its data.
//!
//! This crate does not fit models, open files or print. Jensen fits the programs like any other Stan program.
//!
//! | file | subject |
//! | --- | --- |
//! | `syntax` | formulas as trees with places |
//! | `formula` | what a formula says: response, additions, terms |
//! | `frame` | [`Frame`]: the table |
//! | `evaluate` | values of expressions, and what calls learn from the data |
//! | `basis` | polynomials and splines |
//! | `design` | [`design()`]: columns of terms, as R's `model.matrix` has them |
//! | `smooth`, `predictor` | smooths, groups and what else a linear predictor adds up |
//! | `response`, `range` | the left side over the rows, and whether its values are the family's |
//! | `family` | [`FAMILIES`]: one table |
//! | `prior` | priors that are given and used |
//! | `asked`, `rank` | the formulas with their rows; columns that are sums of others |
//! | `regression` | [`Regression`]: all put together |
//! | `effects` | [`contrasts()`], [`curves()`]: tables that ask what a column does |
//! | `program` | [`program()`], [`predictions`]: Stan |
//! | `error` | [`Error`]: what is wrong, where, and the way out |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod asked;
mod basis;
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
