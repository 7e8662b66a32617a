//! Sites: a likelihood under a bound.

pub(crate) mod convex;
mod names;
pub(crate) mod scalar;

pub use names::{Bound, Likelihood};
