//! Lower triangular matrices with the pattern of a sparse Cholesky factor.
//!
//! | file | subject |
//! | --- | --- |
//! | `ordering` | in which order coordinates are eliminated |
//! | `symbolic` | where a factor is not zero |
//! | `numeric` | factors, solutions and selected elements of the inverse |
//! | `colouring` | directions whose Hessian products show all elements |

mod colouring;
mod numeric;
mod ordering;
mod symbolic;

pub(crate) use colouring::Colouring;
pub(crate) use symbolic::Symbolic;
