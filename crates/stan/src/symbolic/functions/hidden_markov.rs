//! Functions of hidden Markov models.

use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::value::Sym;
use crate::value::error::FnResult;

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[("hmm_marginal", marginal)];

/// Computes the log likelihood by forward filtering. The arguments are the log likelihoods of the states at each time,
/// the transitions and the initial probabilities. The filtered probabilities are rescaled at each time. Otherwise the
/// probabilities would underflow in a long series.
fn marginal(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let ((states, times), n) = (cx.extents(&args[0])?, cx.square(&args[1])?);
    if states != n || args[2].dims()?.size() != n {
        return Err(cx.mismatch(&args[0], &args[1]));
    }
    let (logs, transitions, first) = (cx.e(&args[0])?, cx.e(&args[1])?, cx.e(&args[2])?);
    if n * times == 0 {
        return Ok(Sym::Real(0.0));
    }
    let mut terms = Vec::with_capacity(2 * times);
    let mut ahead = first;
    for t in 0..times {
        let seen = logs.slice(t * n, n);
        let shift = seen.max().pivot();
        let joint = ahead * (seen - shift).exp();
        let total = joint.sum();
        terms.extend([total.log(), shift]);
        ahead = transitions.matmul_with(joint / total, n, n, 1, true, false);
    }
    Ok(cx.tape.add_all(&terms).into())
}
