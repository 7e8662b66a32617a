//! The Stan language: parser, checker, interpreter and lowering to the expression graph.
//!
//! Text goes through [`syntax`] (lexer and parser; knows nothing of types) and [`mod@check`] (names, types, block rules)
//! to the typed [`program`], which the evaluators start from. What is wrong is said in [`diagnostic`]s; [`pretty`] shows
//! the stages as text.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod check;
pub mod diagnostic;
pub mod interpret;
pub mod lower;
pub mod pretty;
pub mod program;
pub mod syntax;
pub mod transform;

pub use check::{Checked, check};
pub use syntax::lexer::{IncludeResolver, NoIncludes};
