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

/// The number of nonzeros up to which a column of a factor is narrow. Work on a column grows with the square of its
/// nonzeros, and a block of this size costs a thousand multiplications. A family whose columns are wider on average is not
/// chosen if it factorises at every draw, and blocks of wider columns are not used as preconditioners.
pub(crate) const FILL: usize = 32;
