//! Turns text into a syntax tree, without types and without the function library.

pub mod ast;
pub mod lexer;
pub mod old;
pub mod parser;
mod scan;
pub mod token;
