//! The Stan language: parser, checker, interpreter and lowering to the expression graph.
//!
//! [`syntax`] parses the text without types. [`mod@check`] then resolves names, checks types and the rules of each
//! block, and returns the typed [`program`]. Two evaluators use the typed program: [`interpret`] runs it on known
//! values, and [`lower`] builds the graph of its log density. Both evaluators use the modules [`value`], `functions`,
//! `library`, `symbolic` and `distributions`.
//!
//! Errors are reported as [`diagnostic`]s. [`pretty`] shows the stages as text, [`outputs`] computes the reported
//! values of many draws, and [`evaluable`] reports the constructs of a correct program that cannot be computed.
//! `xtask/src/modules.rs` lists the dependencies that are allowed between modules.

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
