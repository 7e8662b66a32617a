//! Scalar special functions, for interpreters and for the rare arguments of the vector functions.

mod gamma;

pub use gamma::{digamma, lgamma, trigamma};
