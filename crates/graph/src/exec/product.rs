//! Computes linear predictors, and sums of residuals weighted by columns of data, within the tiles of a kernel.
//!
//! In a regression with N rows and K predictors, X b has one element per row and Xᵀr is a sum over the rows. A chain of
//! additions, or a separate pass for each column, would read and write the tile in every step. Here, one step processes
//! many columns while its sums stay in registers. The N individual products or residuals are never stored.

use jensen_math::simd::{F64x8, LANES, Simd};

use crate::exec::kernels::Operand;

/// The largest number of columns in one step. The coefficients for a block of lanes then fit in the L1 cache.
pub(crate) const COLUMNS_OF_STEP: usize = 16;

/// Computes `dst[r] = Σ_j terms[j][0][r] · terms[j][1] (+ added[r])` for `rows` rows of `lanes` lanes. Each term is the
/// product of a column of numbers and a row of lanes. The operands must not have index lists.
pub(crate) type RowsKernel =
    unsafe fn(*mut f64, *const [Operand; 2], usize, *const Operand, usize, usize);

/// A column of data, and the row of lanes to which the weighted sum is added.
#[derive(Clone, Copy)]
pub(crate) struct Into {
    pub column: Operand,
    pub dst: *mut f64,
}

/// Computes `into[j] += Σ_r column_j[r] · x[r]` over `rows` rows of `lanes` lanes.
pub(crate) type ColumnsKernel = unsafe fn(*const Into, usize, *const Operand, usize, usize);

/// Specifies at compile time what kind of value is added to a linear predictor.
trait Added {
    const PRESENT: bool;
    const SPLAT: bool;
}

struct Addition<const PRESENT: bool, const SPLAT: bool>;

impl<const PRESENT: bool, const SPLAT: bool> Added for Addition<PRESENT, SPLAT> {
    const PRESENT: bool = PRESENT;
    const SPLAT: bool = SPLAT;
}

const ROWS: usize = 4;

/// Computes `R` rows of linear predictors, starting at row `r`, for `W` vectors of lanes that start at `lane`.
///
/// # Safety
/// Rows and lanes must be within the operands and the destination.
#[inline(always)]
unsafe fn predictors<V: F64x8, A: Added, const R: usize, const W: usize>(
    dst: *mut f64,
    (terms, added): (&[[Operand; 2]], *const Operand),
    r: usize,
    lane: usize,
    lanes: usize,
) {
    // SAFETY: this function requires that all of these rows and lanes exist.
    unsafe {
        let mut sum = [[V::zero(); W]; R];
        if A::PRESENT {
            for (t, sum) in sum.iter_mut().enumerate() {
                let row = (*added).row(r + t);
                for (w, sum) in sum.iter_mut().enumerate() {
                    *sum = if A::SPLAT {
                        V::splat(*row)
                    } else {
                        V::load(row.add(lane + w * LANES))
                    };
                }
            }
        }
        for [column, coefficient] in terms {
            let mut x = [V::zero(); W];
            for (w, x) in x.iter_mut().enumerate() {
                *x = V::load(coefficient.base.add(lane + w * LANES));
            }
            let from = column.base.add(r * column.stride);
            for (t, sum) in sum.iter_mut().enumerate() {
                let factor = V::splat(*from.add(t * column.stride));
                for (w, sum) in sum.iter_mut().enumerate() {
                    *sum = factor.fma(x[w], *sum);
                }
            }
        }
        for (t, sum) in sum.iter().enumerate() {
            for (w, sum) in sum.iter().enumerate() {
                sum.store(dst.add((r + t) * lanes + lane + w * LANES));
            }
        }
    }
}

/// Computes the sums of `x` weighted by each of `C` columns, for `W` vectors of lanes that start at `lane`.
///
/// # Safety
/// There must be `C` columns. All rows and lanes must be within the columns and within `x`.
#[inline(always)]
unsafe fn sums<V: F64x8, const C: usize, const W: usize>(
    into: &[Into],
    x: &Operand,
    rows: usize,
    lane: usize,
) {
    // SAFETY: this function requires that all of these rows, columns and lanes exist.
    unsafe {
        let mut sum = [[V::zero(); W]; C];
        for r in 0..rows {
            let row = x.row(r).add(lane);
            let mut x = [V::zero(); W];
            for (w, x) in x.iter_mut().enumerate() {
                *x = V::load(row.add(w * LANES));
            }
            for (t, sum) in sum.iter_mut().enumerate() {
                let column = &into.get_unchecked(t).column;
                let factor = V::splat(*column.base.add(r * column.stride));
                for (w, sum) in sum.iter_mut().enumerate() {
                    *sum = factor.fma(x[w], *sum);
                }
            }
        }
        for (t, sum) in sum.iter().enumerate() {
            for (w, sum) in sum.iter().enumerate() {
                let out = into.get_unchecked(t).dst.add(lane + w * LANES);
                V::load(out).add(*sum).store(out);
            }
        }
    }
}

/// Computes all rows of linear predictors for `W` vectors of lanes that start at `lane`.
///
/// # Safety
/// Rows and lanes must be within the operands and the destination.
#[inline(always)]
unsafe fn rows_of_predictors<V: F64x8, A: Added, const W: usize>(
    dst: *mut f64,
    read: (&[[Operand; 2]], *const Operand),
    lane: usize,
    [rows, lanes]: [usize; 2],
) {
    let mut r = 0;
    // SAFETY: this function requires that all of these rows and lanes exist.
    unsafe {
        while r + ROWS <= rows {
            predictors::<V, A, ROWS, W>(dst, read, r, lane, lanes);
            r += ROWS;
        }
        for r in r..rows {
            predictors::<V, A, 1, W>(dst, read, r, lane, lanes);
        }
    }
}

/// Computes the sums for all columns, for `W` vectors of lanes that start at `lane`. The columns are divided into
/// groups whose sums fit in registers. No group consists of a single column, because each addition would then have to
/// wait for the one before it.
///
/// # Safety
/// Rows and lanes must be within the columns and within `x`.
#[inline(always)]
unsafe fn by_some_columns<V: F64x8, const W: usize>(
    mut into: &[Into],
    x: &Operand,
    rows: usize,
    lane: usize,
) {
    while !into.is_empty() {
        let count = match (V::REGISTERS, into.len()) {
            (1, n @ ..=10) => n,
            (1, n @ 11..=15) => n.div_ceil(2),
            (1, _) => 8,
            (_, n @ ..=6) => n,
            (_, 7 | 8) => 4,
            _ => 5,
        };
        // SAFETY: this function requires that all of these rows, columns and lanes exist.
        unsafe {
            match count {
                1 => sums::<V, 1, W>(into, x, rows, lane),
                2 => sums::<V, 2, W>(into, x, rows, lane),
                3 => sums::<V, 3, W>(into, x, rows, lane),
                4 => sums::<V, 4, W>(into, x, rows, lane),
                5 => sums::<V, 5, W>(into, x, rows, lane),
                6 => sums::<V, 6, W>(into, x, rows, lane),
                7 => sums::<V, 7, W>(into, x, rows, lane),
                8 => sums::<V, 8, W>(into, x, rows, lane),
                9 => sums::<V, 9, W>(into, x, rows, lane),
                _ => sums::<V, 10, W>(into, x, rows, lane),
            }
        }
        into = &into[count..];
    }
}

jensen_math::simd_fn! {
    fn by_rows, by_rows_fn = <V, A: Added>(dst: *mut f64, terms: *const [Operand; 2], count: usize, added: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies this number of terms. They have the same rows and lanes as the destination.
        unsafe {
            let read = (std::slice::from_raw_parts(terms, count), added);
            let mut lane = 0;
            // The sums of this number of vectors fit in registers, and there are enough of them to hide the latency of
            // an addition.
            while V::REGISTERS == 1 && lane + 2 * LANES <= lanes {
                rows_of_predictors::<V, A, 2>(dst, read, lane, [rows, lanes]);
                lane += 2 * LANES;
            }
            while lane < lanes {
                rows_of_predictors::<V, A, 1>(dst, read, lane, [rows, lanes]);
                lane += LANES;
            }
        }
    }

    fn by_columns, by_columns_fn = <V>(into: *const Into, count: usize, x: *const Operand, rows: usize, lanes: usize) {
        // SAFETY: the planner supplies this number of columns and one operand. All of them have these rows and lanes.
        unsafe {
            let (into, x) = (std::slice::from_raw_parts(into, count), &*x);
            let mut lane = 0;
            while V::REGISTERS == 1 && lane + 2 * LANES <= lanes {
                by_some_columns::<V, 2>(into, x, rows, lane);
                lane += 2 * LANES;
            }
            while lane < lanes {
                by_some_columns::<V, 1>(into, x, rows, lane);
                lane += LANES;
            }
        }
    }
}

pub(crate) fn rows_kernel(simd: Simd, splat: Option<bool>) -> RowsKernel {
    match splat {
        None => by_rows_fn::<Addition<false, false>>(simd),
        Some(false) => by_rows_fn::<Addition<true, false>>(simd),
        Some(true) => by_rows_fn::<Addition<true, true>>(simd),
    }
}

pub(crate) fn columns_kernel(simd: Simd) -> ColumnsKernel {
    by_columns_fn(simd)
}
