//! Operations on the side of a branch that a draw does not take.
//!
//! Both sides of a branch on parameters are computed for every draw. What is not taken counts with weight 0, also in
//! the gradient; but where a function has no value or an infinite slope, 0 times that slope is NaN. So the arguments of
//! such functions are replaced, for draws that do not come by, with a harmless number.

use jensen_graph::ElemOp;

use crate::symbolic::known::{self, Range};
use crate::symbolic::tape::E;

/// For each argument, a number where the operation is finite and smooth, unless arguments in `ranges` always are.
fn harmless(op: ElemOp, which: usize, range: Range) -> Option<f64> {
    use ElemOp::*;
    // Far from overflow.
    let modest = range.low > -700.0 && range.high < 700.0;
    match (op, which) {
        (Recip | Sqrt | Cbrt | Log | Log2 | Log10 | Lgamma | Digamma | Trigamma, _) => {
            (!range.positive()).then_some(0.5)
        }
        (Log1p, _) => (!range.nonnegative()).then_some(0.5),
        (Div, 1) | (Pow, 0) => (!range.positive()).then_some(0.5),
        (Pow, 1) | (Exp | Exp2 | Expm1 | Sinh | Cosh, _) => (!modest).then_some(0.5),
        (Logit | Asin | Acos | Atanh | NormalQuantile | Hypot | Atan2, _) => Some(0.5),
        (Log1mExp, _) => Some(-0.5),
        (Acosh, _) => Some(2.0),
        _ => None,
    }
}

/// `e` as argument number `which` of `op`: where the draw does not come by, a harmless number.
pub(super) fn argument<'g>(op: ElemOp, which: usize, e: E<'g>) -> E<'g> {
    let Some(taken) = e.tape.taken.get() else {
        return e;
    };
    if e.is_constant() {
        return e;
    }
    match harmless(op, which, known::range(e)) {
        Some(number) => e.tape.e(taken).select(e, e.num(number)),
        None => e,
    }
}
