//! Constraints of transformed parameters: the conditions under which they are violated.

use crate::program::Constraint;
use crate::symbolic::functions::Cx;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::FnResult;

/// The condition under which a value violates the constraint of its declaration, `None` if it never does.
///
/// # Errors
/// When a known value violates it.
pub(super) fn violated<'g>(
    cx: &Cx<'g>,
    constraint: &Constraint,
    bounds: &[Sym],
    value: &Sym,
) -> FnResult<Option<E<'g>>> {
    use crate::symbolic::known::range;
    let dims = value.dims()?;
    if dims.size() == 0 {
        return Ok(None);
    }
    let x = cx.e(value)?;
    let one = cx.num(1.0);
    let below = |a: E<'g>| -> Option<E<'g>> {
        // x < a, and NaN is no number within bounds
        let (r, low) = (range(x), range(a));
        (r.low < low.high || r.low.is_nan()).then(|| a.le(x).not().sum())
    };
    let above = |b: E<'g>| -> Option<E<'g>> {
        let (r, high) = (range(x), range(b));
        (r.high > high.low || r.high.is_nan()).then(|| x.le(b).not().sum())
    };
    let far = |e: E<'g>| cx.num(1e-8).lt(e.abs()).sum();
    let join = |a: Option<E<'g>>, b: Option<E<'g>>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    let (rows, cols) = dims.leaf.extents();
    let each = dims.leaf.size();
    let leaves: Vec<E<'g>> = if dims.count() == 1 {
        vec![x]
    } else {
        (0..dims.count())
            .map(|k| {
                if each == 1 {
                    x.at(k)
                } else {
                    x.slice(k * each, each)
                }
            })
            .collect()
    };
    let every = |f: &dyn Fn(E<'g>) -> Option<E<'g>>| {
        leaves.iter().fold(None, |sum, leaf| join(sum, f(*leaf)))
    };
    Ok(match constraint {
        Constraint::None
        | Constraint::Offset(_)
        | Constraint::Multiplier(_)
        | Constraint::OffsetMultiplier(..) => None,
        Constraint::Lower(_) => below(cx.e(&bounds[0])?),
        Constraint::Upper(_) => above(cx.e(&bounds[0])?),
        Constraint::LowerUpper(..) => join(below(cx.e(&bounds[0])?), above(cx.e(&bounds[1])?)),
        Constraint::Ordered | Constraint::PositiveOrdered => {
            let positive = matches!(constraint, Constraint::PositiveOrdered);
            every(&|leaf| {
                let steps =
                    (each > 1 && !crate::symbolic::known::is_ordered(cx.tape, leaf)).then(|| {
                        let (low, high) = (leaf.slice(0, each - 1), leaf.slice(1, each - 1));
                        low.lt(high).not().sum()
                    });
                let first = positive.then(|| cx.num(0.0).le(leaf.at(0)).not());
                join(steps, first)
            })
        }
        Constraint::Simplex => every(&|leaf| {
            if crate::symbolic::known::is_simplex(cx.tape, leaf) {
                return None;
            }
            let negative = (!range(leaf).nonnegative()).then(|| cx.num(0.0).le(leaf).not().sum());
            join(negative, Some(far(leaf.sum() - 1.0)))
        }),
        Constraint::UnitVector => every(&|leaf| Some(far(leaf.square().sum() - 1.0))),
        Constraint::SumToZero => every(&|leaf| Some(far(leaf.sum()))),
        Constraint::ColumnStochastic | Constraint::RowStochastic => {
            let by_column = matches!(constraint, Constraint::ColumnStochastic);
            every(&|leaf| {
                let ones = |n: usize| cx.tape.vector(&vec![1.0; n]);
                let sums = if by_column {
                    leaf.matmul_with(ones(rows), cols, rows, 1, true, false)
                } else {
                    leaf.matmul(ones(cols), rows, cols, 1)
                };
                join(
                    Some(cx.num(0.0).le(leaf).not().sum()),
                    Some(far(sums - 1.0)),
                )
            })
        }
        Constraint::CholeskyFactorCorr | Constraint::CholeskyFactorCov => {
            let correlation = matches!(constraint, Constraint::CholeskyFactorCorr);
            every(&|leaf| {
                let upper: Vec<u32> = (0..(rows * cols) as u32)
                    .filter(|at| *at as usize % rows < *at as usize / rows)
                    .collect();
                let nonzero =
                    (!upper.is_empty()).then(|| leaf.gather(&upper).eq(cx.num(0.0)).not().sum());
                let diagonal = leaf.diagonal(rows, cols);
                let small =
                    (!range(diagonal).positive()).then(|| cx.num(0.0).lt(diagonal).not().sum());
                let norms = correlation.then(|| {
                    far(leaf
                        .square()
                        .matmul(cx.tape.vector(&vec![1.0; cols]), rows, cols, 1)
                        - 1.0)
                });
                join(join(nonzero, small), norms)
            })
        }
        Constraint::CorrMatrix | Constraint::CovMatrix => {
            let correlation = matches!(constraint, Constraint::CorrMatrix);
            every(&|leaf| {
                let asymmetric = (rows > 1
                    && !crate::symbolic::known::is_symmetric(cx.tape, leaf, rows))
                .then(|| {
                    let (low, high): (Vec<u32>, Vec<u32>) = (0..rows * rows)
                        .filter(|at| at % rows > at / rows)
                        .map(|at| (at as u32, (at % rows * rows + at / rows) as u32))
                        .unzip();
                    far(leaf.gather(&low) - leaf.gather(&high))
                });
                let corner = leaf.cholesky(rows).at(0);
                let indefinite = Some(corner.eq(corner).not());
                let diagonal = correlation.then(|| far(leaf.diagonal(rows, rows) - one));
                join(join(asymmetric, indefinite), diagonal)
            })
        }
    })
}
