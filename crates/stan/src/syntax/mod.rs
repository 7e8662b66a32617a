//! Text to syntax tree. Knows nothing of types or of the function library.

pub mod source;
