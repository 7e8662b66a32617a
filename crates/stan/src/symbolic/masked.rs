//! Operations on the side of a branch that a draw does not take.
//!
//! Both sides of a branch on parameters are computed for every draw. The untaken side has weight 0, also in the
//! gradient; but if a function is undefined or has an infinite slope, 0 times that slope is NaN. So for draws that skip
//! the branch, the arguments of such functions are replaced with a harmless number.

use jensen_graph::ElemOp;

use crate::symbolic::known;
use crate::symbolic::tape::E;

/// `e` as argument number `which` of `op`: for draws that skip the branch, a harmless number.
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
