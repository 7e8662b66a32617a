//! The Stan language: parser, checker, interpreter and lowering to the expression graph.
//!
//! Text goes through [`syntax`] (lexer and parser; knows nothing of types) and [`mod@check`] (names, types, block rules)
//! to the typed [`program`], which the evaluators start from: [`interpret`] runs it on known values, [`lower`] makes
//! the graph of its log density. They share [`value`]s, library functions (`functions`, `library`), `symbolic` values
//! and `distributions`, each of which is one row. What is wrong is said in [`diagnostic`]s; [`pretty`] shows the stages
//! as text; [`outputs`] computes what a program reports of many draws; [`evaluable`] says what of a
//! correct program nothing computes. Which module may use which is written down in `xtask/src/modules.rs`.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod check;
pub mod diagnostic;
mod distributions;
pub mod evaluable;
mod functions;
pub mod interpret;
mod library;
pub mod lower;
pub mod outputs;
pub mod pretty;
pub mod program;
pub mod source;
mod spelling;
mod symbolic;
pub mod syntax;
pub mod transform;
pub mod value;

pub use check::{Checked, check, in_todays_syntax, modernise};
pub use syntax::lexer::{IncludeResolver, NoIncludes};
