//! Sites. A site is a likelihood under a bound.
//!
//! | file | subject |
//! | --- | --- |
//! | `bound` | the bounds by name |
//! | `table` | form of a likelihood × bound → site |
//! | `convex` | scalar bounds with a convex conjugate: value, feasible set, conjugate, maximiser, derivatives |
//! | `given` | user-defined sites |
//! | `lanes` | logistic sites of `convex`, eight at a time |
//! | `multinomial` | the vector site of the multinomial-logit likelihood under the log bound |
//! | `contrasts` | the expectation of the multinomial-logit likelihood, with a predictor for each pair of categories |
//! | `logistic` | likelihoods whose only hard term is log(1 + e^η), and their bounds without a conjugate |
//! | `expectation` | expectations by quadrature |
//! | `piecewise` | the pieces of the piecewise quadratic bound |

mod bound;
pub(crate) mod contrasts;
pub(crate) mod convex;
pub(crate) mod expectation;
pub(crate) mod given;
mod lanes;
pub(crate) mod logistic;
pub(crate) mod multinomial;
pub(crate) mod piecewise;
pub(crate) mod scalar;
mod table;

pub use bound::SiteBound;
pub use convex::{Curve, Value};
pub use given::{Site, check_site};
pub(crate) use table::{Curves, DualSites, Sites};
