//! Finds the conditions under which transformed parameters violate their constraints.

use crate::program::Constraint;
use crate::symbolic::functions::Cx;
use crate::symbolic::known::{is_ordered, is_simplex, is_symmetric, range};
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::FnResult;

/// Returns the condition under which a value violates the constraint of its declaration, or `None` if no violation is
/// possible.
///
/// # Errors
/// Fails if a known value violates the constraint.
pub(super) fn violated<'g>(
    cx: &Cx<'g>,
    constraint: &Constraint,
    bounds: &[Sym],
    value: &Sym,
) -> FnResult<Option<E<'g>>> {
    let dims = value.dims()?;
    if dims.size() == 0 {
        return Ok(None);
    }
    let x = cx.e(value)?;
    let each = dims.leaf.size();
    let (rows, cols) = dims.leaf.extents();
    let shape = Extents { cx, rows, cols };
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
        Constraint::Lower(_) => below(x, cx.e(&bounds[0])?),
        Constraint::Upper(_) => above(x, cx.e(&bounds[0])?),
        Constraint::LowerUpper(..) => {
            join(below(x, cx.e(&bounds[0])?), above(x, cx.e(&bounds[1])?))
        }
        Constraint::Ordered => every(&|leaf| shape.unordered(leaf, each)),
        Constraint::PositiveOrdered => every(&|leaf| {
            let steps = shape.unordered(leaf, each);
            join(steps, Some(cx.num(0.0).le(leaf.at(0)).not()))
        }),
        Constraint::Simplex => every(&|leaf| shape.no_simplex(leaf)),
        Constraint::UnitVector => every(&|leaf| Some(shape.far(leaf.square().sum() - 1.0))),
        Constraint::SumToZero => every(&|leaf| Some(shape.far(leaf.sum()))),
        Constraint::ColumnStochastic => every(&|leaf| {
            let ones = cx.tape.vector(&vec![1.0; rows]);
            let sums = leaf.matmul_with(ones, cols, rows, 1, true, false);
            shape.not_stochastic(leaf, sums)
        }),
        Constraint::RowStochastic => every(&|leaf| {
            let ones = cx.tape.vector(&vec![1.0; cols]);
            let sums = leaf.matmul(ones, rows, cols, 1);
            shape.not_stochastic(leaf, sums)
        }),
        Constraint::CholeskyFactorCorr => every(&|leaf| shape.no_factor(leaf, true)),
        Constraint::CholeskyFactorCov => every(&|leaf| shape.no_factor(leaf, false)),
        Constraint::CorrMatrix => every(&|leaf| shape.no_covariance(leaf, true)),
        Constraint::CovMatrix => every(&|leaf| shape.no_covariance(leaf, false)),
    })
}

fn join<'g>(a: Option<E<'g>>, b: Option<E<'g>>) -> Option<E<'g>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// Returns the condition x < a. NaN also violates the bound.
fn below<'g>(x: E<'g>, a: E<'g>) -> Option<E<'g>> {
    let (r, low) = (range(x), range(a));
    (r.low < low.high || r.low.is_nan()).then(|| a.le(x).not().sum())
}

fn above<'g>(x: E<'g>, b: E<'g>) -> Option<E<'g>> {
    let (r, high) = (range(x), range(b));
    (r.high > high.low || r.high.is_nan()).then(|| x.le(b).not().sum())
}

struct Extents<'c, 'g> {
    cx: &'c Cx<'g>,
    rows: usize,
    cols: usize,
}

impl<'g> Extents<'_, 'g> {
    /// Returns a number that is nonzero for draws where `e` differs from 0 by more than rounding error.
    fn far(&self, e: E<'g>) -> E<'g> {
        self.cx.num(1e-8).lt(e.abs()).sum()
    }

    fn unordered(&self, leaf: E<'g>, n: usize) -> Option<E<'g>> {
        (n > 1 && !is_ordered(self.cx.tape, leaf)).then(|| {
            let (low, high) = (leaf.slice(0, n - 1), leaf.slice(1, n - 1));
            low.lt(high).not().sum()
        })
    }

    fn no_simplex(&self, leaf: E<'g>) -> Option<E<'g>> {
        if is_simplex(self.cx.tape, leaf) {
            return None;
        }
        let zero = self.cx.num(0.0);
        let negative = (!range(leaf).nonnegative()).then(|| zero.le(leaf).not().sum());
        join(negative, Some(self.far(leaf.sum() - 1.0)))
    }

    fn not_stochastic(&self, leaf: E<'g>, sums: E<'g>) -> Option<E<'g>> {
        join(
            Some(self.cx.num(0.0).le(leaf).not().sum()),
            Some(self.far(sums - 1.0)),
        )
    }

    /// Elements above the diagonal of a Cholesky factor are 0, and its diagonal elements are positive. The rows of the
    /// factor of a correlation matrix have length 1.
    fn no_factor(&self, leaf: E<'g>, correlation: bool) -> Option<E<'g>> {
        let (cx, rows, cols) = (self.cx, self.rows, self.cols);
        let upper: Vec<u32> = (0..(rows * cols) as u32)
            .filter(|at| *at as usize % rows < *at as usize / rows)
            .collect();
        let nonzero = (!upper.is_empty()).then(|| leaf.gather(&upper).eq(cx.num(0.0)).not().sum());
        let diagonal = leaf.diagonal(rows, cols);
        let small = (!range(diagonal).positive()).then(|| cx.num(0.0).lt(diagonal).not().sum());
        let norms = correlation.then(|| {
            let ones = cx.tape.vector(&vec![1.0; cols]);
            self.far(leaf.square().matmul(ones, rows, cols, 1) - 1.0)
        });
        join(join(nonzero, small), norms)
    }

    /// The matrix must be symmetric and positive definite, and the diagonal of a correlation matrix must be 1.
    fn no_covariance(&self, leaf: E<'g>, correlation: bool) -> Option<E<'g>> {
        let n = self.rows;
        let asymmetric = (n > 1 && !is_symmetric(self.cx.tape, leaf, n)).then(|| {
            let (low, high): (Vec<u32>, Vec<u32>) = (0..n * n)
                .filter(|at| at % n > at / n)
                .map(|at| (at as u32, (at % n * n + at / n) as u32))
                .unzip();
            self.far(leaf.gather(&low) - leaf.gather(&high))
        });
        let corner = leaf.cholesky(n).at(0);
        let indefinite = Some(corner.eq(corner).not());
        let diagonal = correlation.then(|| self.far(leaf.diagonal(n, n) - 1.0));
        join(join(asymmetric, indefinite), diagonal)
    }
}
