//! Matrix products in single precision.
//!
//! Both factors are read where they are stored, and a tile of the result stays in registers during the whole summation.
//! For products of large matrices, it is usual to copy the factors into panels first. Here this would cost as much as
//! it saves, because the weights are used for only a few lanes at a time. If the rows of the left factor are
//! contiguous, a tile consists of a few vectors of rows times a few columns. If the summed extent is contiguous, a tile
//! is a block of inner products. The bits of an element do not depend on the tile to which it belongs.

use std::mem::MaybeUninit;

use gemm::Parallelism;
use jensen_math::simd::{F32x16, LANES32, Simd};

#[derive(Clone, Copy)]
pub(super) struct View {
    pub at: *const f32,
    pub row_stride: usize,
    pub column_stride: usize,
}

impl View {
    /// Creates a view of a column-major matrix with `rows` rows, or of the transpose of a matrix stored in this form.
    pub(super) fn stored(at: *const f32, rows: usize, columns: usize, transposed: bool) -> Self {
        let (row_stride, column_stride) = if transposed { (columns, 1) } else { (1, rows) };
        Self {
            at,
            row_stride,
            column_stride,
        }
    }
}

/// Computes `dst = a b`, or `dst += a b`, on the calling thread. The factors are `m × k` and `k × n` matrices. The
/// result consists of columns of `m` contiguous elements, and the columns are `dst_stride` elements apart. This
/// function uses a single thread. Callers divide the work among threads themselves, and always in the same way.
///
/// # Safety
/// The views must describe memory that can be read, and the destination must describe memory that can be written. The
/// destination must not overlap a view.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn multiply(
    simd: Simd,
    dst: *mut f32,
    dst_stride: usize,
    a: View,
    b: View,
    m: usize,
    k: usize,
    n: usize,
    add: bool,
) {
    let task = Task {
        dst,
        dst_stride,
        a,
        b,
        m,
        k,
        n,
        add,
    };
    let (rows, inner) = (a.row_stride == 1, a.column_stride == 1 && b.row_stride == 1);
    match simd {
        Simd::Avx512 { .. } if rows => strips::<Wide>(simd, &task),
        Simd::Avx512 { .. } if inner => inner_products::<Wide>(simd, &task),
        Simd::Avx2 { .. } if rows => strips::<Narrow>(simd, &task),
        Simd::Avx2 { .. } if inner => inner_products::<Narrow>(simd, &task),
        // SAFETY: the task has the views and the extents of this call. The contract of `multiply` requires their memory
        // to be valid.
        _ => unsafe { task.general() },
    }
}

struct Task {
    dst: *mut f32,
    dst_stride: usize,
    a: View,
    b: View,
    m: usize,
    k: usize,
    n: usize,
    add: bool,
}

impl Task {
    unsafe fn general(&self) {
        // SAFETY: the extents and strides are those of the task's matrices, and the destination overlaps neither
        // factor.
        unsafe {
            gemm::gemm(
                self.m,
                self.n,
                self.k,
                self.dst,
                self.dst_stride as isize,
                1,
                self.add,
                self.a.at,
                self.a.column_stride as isize,
                self.a.row_stride as isize,
                self.b.at,
                self.b.column_stride as isize,
                self.b.row_stride as isize,
                1.0,
                1.0,
                false,
                false,
                false,
                Parallelism::None,
            );
        }
    }
}

/// The size of a tile. A tile is as large as possible while enough registers remain for the operands.
trait Tiling {
    /// The number of vectors of rows in a tile of [`COLUMNS`] columns, if the rows are contiguous.
    const VECTORS: usize;
    /// The number of rows and of columns in a tile of inner products, if the summed extents are contiguous.
    const INNER: (usize, usize);
}

/// Tiles for instruction sets with 32 registers. A vector occupies one register.
struct Wide;

/// Tiles for instruction sets with 16 registers. A vector occupies two registers.
struct Narrow;

impl Tiling for Wide {
    const VECTORS: usize = 4;
    const INNER: (usize, usize) = (6, 4);
}

impl Tiling for Narrow {
    const VECTORS: usize = 1;
    const INNER: (usize, usize) = (2, 2);
}

const COLUMNS: usize = 6;

/// Divides `n` into the smallest number of groups that have at most `most` elements each. The groups are as equal as
/// possible. Returns the start and the extent of group `which`.
#[inline(always)]
fn group(n: usize, most: usize, which: usize) -> (usize, usize) {
    let groups = n.div_ceil(most);
    let start = which * n / groups;
    (start, (which + 1) * n / groups - start)
}

jensen_math::simd_fn! {
    fn strips, strips_fn = <V, T: Tiling>(task: &Task) {
        let mut row = 0;
        while row < task.m {
            let vectors = (task.m - row).div_ceil(LANES32).min(T::VECTORS);
            // SAFETY: only `multiply` creates tasks, and its contract requires the memory of their matrices to be
            // valid. In the loop, rows are less than `task.m`.
            unsafe {
match vectors {
    1 => strip::<V::Single, 1>(task, row),
    2 => strip::<V::Single, 2>(task, row),
    3 => strip::<V::Single, 3>(task, row),
    _ => strip::<V::Single, 4>(task, row),
}
}
            row += vectors * LANES32;
        }
    }

    fn inner_products, inner_products_fn = <V, T: Tiling>(task: &Task) {
        let (most_rows, most_columns) = T::INNER;
        let mut which = 0;
        while which < task.m.div_ceil(most_rows) {
            let (row, rows) = group(task.m, most_rows, which);
            // SAFETY: only `multiply` creates tasks, and its contract requires the memory of their matrices to be
            // valid. In the loop, rows are less than `task.m`.
            unsafe {
match rows {
    1 => inner_strip::<V::Single, 1>(task, row, most_columns),
    2 => inner_strip::<V::Single, 2>(task, row, most_columns),
    3 => inner_strip::<V::Single, 3>(task, row, most_columns),
    4 => inner_strip::<V::Single, 4>(task, row, most_columns),
    5 => inner_strip::<V::Single, 5>(task, row, most_columns),
    _ => inner_strip::<V::Single, 6>(task, row, most_columns),
}
}
            which += 1;
        }
    }
}

#[inline(always)]
unsafe fn strip<S: F32x16, const R: usize>(task: &Task, row: usize) {
    let mut which = 0;
    while which < task.n.div_ceil(COLUMNS) {
        let (column, width) = group(task.n, COLUMNS, which);
        // SAFETY: the strip has `width` vectors of columns, which start at `column`, and its rows start at `row`. All
        // of them are within the matrices of the task.
        unsafe {
            match width {
                1 => tile::<S, R, 1>(task, row, column),
                2 => tile::<S, R, 2>(task, row, column),
                3 => tile::<S, R, 3>(task, row, column),
                4 => tile::<S, R, 4>(task, row, column),
                5 => tile::<S, R, 5>(task, row, column),
                _ => tile::<S, R, 6>(task, row, column),
            }
        }
        which += 1;
    }
}

const INNER_SUMS: usize = 24;

/// Computes `R` rows of the result, starting at `row`, for a product whose summed extents are contiguous.
#[inline(always)]
unsafe fn inner_strip<S: F32x16, const R: usize>(task: &Task, row: usize, most: usize) {
    let mut which = 0;
    while which < task.n.div_ceil(most) {
        let (column, width) = group(task.n, most, which);
        // SAFETY: the strip has `width` columns, which start at `column`, and its rows start at `row`. All of them are
        // within the matrices of the task.
        unsafe {
            match width {
                1 => inner_tile::<S, R, 1>(task, row, column),
                2 => inner_tile::<S, R, 2>(task, row, column),
                3 => inner_tile::<S, R, 3>(task, row, column),
                _ => inner_tile::<S, R, 4>(task, row, column),
            }
        }
        which += 1;
    }
}

/// Reads vector `which` of the `R` vectors that start at `at`. The last vector has `last` elements.
#[inline(always)]
unsafe fn read<S: F32x16, const R: usize>(at: *const f32, which: usize, last: usize) -> S {
    // SAFETY: `tile` passes the first of `R` vectors of rows in one column. It has computed that the last of these
    // vectors has `last` elements before the end of the matrix.
    unsafe {
        let at = at.add(which * LANES32);
        if which + 1 == R {
            S::load_part(at, last)
        } else {
            S::load(at)
        }
    }
}

/// Computes `R` vectors of rows and `N` columns of the result. The extents are constants, so the compiler keeps the
/// sums in registers.
#[inline(always)]
unsafe fn tile<S: F32x16, const R: usize, const N: usize>(task: &Task, row: usize, column: usize) {
    let last = (task.m - row - (R - 1) * LANES32).min(LANES32);
    let (next_a, next_b, step_b) = (
        task.a.column_stride,
        task.b.row_stride,
        task.b.column_stride,
    );
    // SAFETY: `strips` and `strip` divide rows and columns into groups that end with the matrices of the task. The last
    // vector reads and writes only the remaining `last` elements.
    unsafe {
        let mut total = [[S::zero(); R]; N];
        let mut a = task.a.at.add(row);
        let mut b = task.b.at.add(column * step_b);
        for _ in 0..task.k {
            let mut rows = [S::zero(); R];
            let mut r = 0;
            while r < R {
                rows[r] = read::<S, R>(a, r, last);
                r += 1;
            }
            let mut c = 0;
            while c < N {
                let factor = S::splat(*b.add(c * step_b));
                let mut r = 0;
                while r < R {
                    total[c][r] = rows[r].fma(factor, total[c][r]);
                    r += 1;
                }
                c += 1;
            }
            a = a.wrapping_add(next_a);
            b = b.wrapping_add(next_b);
        }
        let mut c = 0;
        while c < N {
            let to = task.dst.add((column + c) * task.dst_stride + row);
            let mut r = 0;
            while r < R {
                let mut x = total[c][r];
                if task.add {
                    x = x + read::<S, R>(to, r, last);
                }
                let to = to.add(r * LANES32);
                if r + 1 == R {
                    x.store_part(to, last);
                } else {
                    x.store(to);
                }
                r += 1;
            }
            c += 1;
        }
    }
}

/// SAFETY: `strips` and `strip` divide rows and columns into groups that end with the task's matrices. The last vector
/// reads and writes only the remaining `last` elements.
#[inline(always)]
unsafe fn inner_tile<S: F32x16, const R: usize, const N: usize>(
    task: &Task,
    row: usize,
    column: usize,
) {
    let (step_a, step_b, depth) = (task.a.row_stride, task.b.column_stride, task.k);
    let mut total = [[S::zero(); R]; N];
    // SAFETY: `inner_products` and `inner_strip` divide rows and columns into groups that end with the matrices of the
    // task. The last vector of a contraction reads only the remaining elements.
    unsafe {
        let rows = task.a.at.add(row * step_a);
        let columns = task.b.at.add(column * step_b);
        let whole = depth / LANES32 * LANES32;
        let mut k = 0;
        while k < whole {
            let mut x = [S::zero(); R];
            let mut r = 0;
            while r < R {
                x[r] = S::load(rows.add(r * step_a + k));
                r += 1;
            }
            let mut c = 0;
            while c < N {
                let y = S::load(columns.add(c * step_b + k));
                let mut r = 0;
                while r < R {
                    total[c][r] = x[r].fma(y, total[c][r]);
                    r += 1;
                }
                c += 1;
            }
            k += LANES32;
        }
        if depth > whole {
            let n = depth - whole;
            let mut c = 0;
            while c < N {
                let y = S::load_part(columns.add(c * step_b + whole), n);
                let mut r = 0;
                while r < R {
                    let x = S::load_part(rows.add(r * step_a + whole), n);
                    total[c][r] = x.fma(y, total[c][r]);
                    r += 1;
                }
                c += 1;
            }
        }
        // The sums are copied through memory here. If a loop ran over the registers themselves, the compiler would keep
        // them in memory from the start.
        let mut sums = [const { MaybeUninit::<f32>::uninit() }; INNER_SUMS * LANES32];
        let sums: *mut f32 = sums.as_mut_ptr().cast();
        let mut c = 0;
        while c < N {
            let mut r = 0;
            while r < R {
                total[c][r].store(sums.add((c * R + r) * LANES32));
                r += 1;
            }
            c += 1;
        }
        for c in 0..N {
            for r in 0..R {
                let to = task.dst.add((column + c) * task.dst_stride + row + r);
                let sum = S::load(sums.add((c * R + r) * LANES32)).sum();
                *to = if task.add { *to + sum } else { sum };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize, step: f64) -> Vec<f32> {
        (0..n).map(|i| (i as f64 * step).sin() as f32).collect()
    }

    /// Multiplies column-major matrices, either of which may be stored transposed. The columns of the result have space
    /// for three more elements than needed.
    fn product(
        simd: Simd,
        m: usize,
        k: usize,
        n: usize,
        turned: (bool, bool),
        add: bool,
    ) -> Vec<f32> {
        let (a, b) = (wave(m * k, 0.7), wave(k * n, 1.3));
        let mut to = wave((m + 3) * n, 0.1);
        let left = View::stored(a.as_ptr(), m, k, turned.0);
        let right = View::stored(b.as_ptr(), k, n, turned.1);
        // SAFETY: the matrices have these extents.
        unsafe { multiply(simd, to.as_mut_ptr(), m + 3, left, right, m, k, n, add) };
        for (i, column) in to.chunks(m + 3).enumerate() {
            for (j, &found) in column.iter().enumerate() {
                let was = f64::from(wave(i * (m + 3) + j + 1, 0.1)[i * (m + 3) + j]);
                let term = |l: usize| {
                    let a = a[if turned.0 { j * k + l } else { l * m + j }];
                    let b = b[if turned.1 { l * n + i } else { i * k + l }];
                    f64::from(a) * f64::from(b)
                };
                let expected = match j {
                    _ if j >= m => was,
                    _ if add => was + (0..k).map(term).sum::<f64>(),
                    _ => (0..k).map(term).sum(),
                };
                let error = (f64::from(found) - expected).abs();
                assert!(
                    error <= 2e-6 * (1.0 + k as f64),
                    "{m}×{k}×{n} {turned:?} {simd}: {found} for {expected}"
                );
            }
        }
        to
    }

    #[test]
    fn products_of_all_extents_are_right_and_vector_levels_agree() {
        let extents = [
            (1, 1, 1),
            (5, 3, 2),
            (16, 16, 6),
            (17, 33, 7),
            (64, 5, 13),
            (70, 40, 11),
            (20, 500, 50),
            (131, 17, 3),
        ];
        for (m, k, n) in extents {
            for turned in [(false, false), (true, false), (false, true), (true, true)] {
                for add in [false, true] {
                    let levels: Vec<(Simd, Vec<f32>)> = Simd::available()
                        .into_iter()
                        .map(|simd| (simd, product(simd, m, k, n, turned, add)))
                        .collect();
                    let vector: Vec<_> = levels
                        .iter()
                        .filter(|(simd, _)| *simd != Simd::Scalar)
                        .collect();
                    for pair in vector.windows(2) {
                        assert_eq!(pair[0].1, pair[1].1, "{m}×{k}×{n} {turned:?}");
                    }
                }
            }
        }
    }
}
