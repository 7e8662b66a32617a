//! Matrix products in single precision.

use gemm::Parallelism;

/// A matrix in memory.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub at: *const f32,
    pub row_stride: usize,
    pub column_stride: usize,
}

impl View {
    /// A column-major matrix of that many rows, or the transpose of one stored so.
    pub(super) fn stored(at: *const f32, rows: usize, columns: usize, transposed: bool) -> Self {
        let (row_stride, column_stride) = if transposed { (columns, 1) } else { (1, rows) };
        Self {
            at,
            row_stride,
            column_stride,
        }
    }
}

/// `dst = a b`, or `dst += a b`: `m × k` times `k × n` into columns of `m` contiguous elements,
/// `dst_stride` apart. Runs on the calling thread: callers divide the work themselves, always alike.
///
/// # Safety
/// The views and the destination describe memory that can be read and written; the destination is
/// not part of a view.
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn multiply(
    dst: *mut f32,
    dst_stride: usize,
    a: View,
    b: View,
    m: usize,
    k: usize,
    n: usize,
    add: bool,
) {
    // SAFETY: the caller's.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            dst,
            dst_stride as isize,
            1,
            add,
            a.at,
            a.column_stride as isize,
            a.row_stride as isize,
            b.at,
            b.column_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
