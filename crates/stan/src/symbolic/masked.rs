//! Protects operations on the untaken side of a branch.
//!
//! The graph computes both sides of a branch on parameters for every draw. The untaken side has weight 0, also in the
//! gradient. If a function is undefined there or has an infinite slope, however, 0 times that slope is NaN. For draws
//! that skip the branch, a valid number therefore replaces the arguments of such functions.

use jensen_graph::ElemOp;

use crate::symbolic::known;
use crate::symbolic::tape::E;

/// Returns `e` as argument number `which` of `op`, with a valid number for draws that skip the branch.
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
