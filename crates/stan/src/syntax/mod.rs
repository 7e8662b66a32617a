//! Text to syntax tree. Knows nothing of types or of the function library.

pub mod ast;
pub mod lexer;
pub mod old;
pub mod parser;
mod scan;
pub mod token;
