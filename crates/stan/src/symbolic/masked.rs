//! Protects operations on the untaken side of a branch.
//!
//! The graph computes both sides of a branch on parameters for every draw. The side that is not taken has weight 0 in
//! the value and in the gradient. If a function on that side is undefined or has an infinite derivative, however, 0
//! times the derivative is NaN. For draws that skip the branch, the arguments of such functions are therefore replaced
//! by a valid number.

use jensen_graph::ElemOp;

use crate::symbolic::known;
use crate::symbolic::tape::E;

/// Returns `e`, but with a valid number for draws that skip the branch. `e` is argument number `which` of `op`.
pub(super) fn argument<'g>(op: ElemOp, which: usize, e: E<'g>) -> E<'g> {
    let Some(taken) = e.tape.taken.get() else {
        return e;
    };
    if e.is_constant() {
        return e;
    }
    match op.harmless(which, known::range(e)) {
        Some(number) => e.tape.e(taken).select(e, e.num(number)),
        None => e,
    }
}
