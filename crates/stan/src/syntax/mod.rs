//! Text to syntax tree. Does not depend on types or on the function library.

pub mod ast;
pub mod lexer;
pub mod old;
pub mod parser;
mod scan;
pub mod token;
