//! Sites: a likelihood under a bound.
//!
//! | file | subject |
//! | --- | --- |
//! | `names` | likelihoods, bounds, and which go together |
//! | `table` | likelihood × bound → site |
//! | `convex` | scalar bounds with a convex conjugate: value, feasible set, conjugate, maximiser, derivatives |
//! | `lanes` | logistic sites of `convex`, eight at a time |
//! | `multinomial` | the vector site of the multinomial-logit likelihood |
//! | `expectation` | bounds without a convex conjugate: quadrature, Jaakkola's, piecewise quadratic |
//! | `piecewise` | the pieces of the piecewise quadratic bound |

pub(crate) mod convex;
pub(crate) mod expectation;
mod lanes;
pub(crate) mod multinomial;
mod names;
pub(crate) mod piecewise;
pub(crate) mod scalar;
mod table;

pub use names::{Bound, Likelihood};
pub(crate) use table::{DualSites, Sites};
