//! Lower triangular matrices that have the sparsity pattern of a Cholesky factor.
//!
//! | file | subject |
//! | --- | --- |
//! | `ordering` | the order of elimination |
//! | `symbolic` | the nonzeros of a factor |
//! | `numeric` | factors, solutions and selected elements of the inverse |
//! | `colouring` | directions whose Hessian products determine all elements |

mod colouring;
mod numeric;
mod ordering;
mod symbolic;

pub(crate) use colouring::Colouring;
pub(crate) use symbolic::Symbolic;
