//! Matrix products whose bits do not depend on the number of threads.

use gemm::Parallelism;

/// A product uses several threads of the current pool only if it takes at least this number of flops. For smaller
/// products, waking threads costs more time than it saves.
const PARALLEL: usize = 20_000_000;

#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    data: &'a [f64],
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
}

impl<'a> Matrix<'a> {
    pub(crate) fn new(data: &'a [f64], rows: usize, columns: usize) -> Self {
        assert!(data.len() >= rows * columns, "a {rows} × {columns} matrix");
        Self {
            data,
            rows,
            columns,
            row_stride: columns as isize,
            column_stride: 1,
        }
    }

    pub(crate) fn transposed(self) -> Self {
        Self {
            data: self.data,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }
}

/// Computes `out = A B + keep · out` for row-major matrices. The bits of an element do not depend on the number of
/// threads, because the threads share out rows and columns but never the terms of one element's sum.
pub(crate) fn multiply(a: Matrix<'_>, b: Matrix<'_>, keep: f64, out: &mut [f64]) {
    assert_eq!(a.columns, b.rows, "inner extents");
    assert!(out.len() >= a.rows * b.columns, "room for the product");
    if a.rows == 0 || b.columns == 0 {
        return;
    }
    let flops = 2 * a.rows * a.columns * b.columns;
    let parallelism = if flops >= PARALLEL {
        Parallelism::Rayon(0)
    } else {
        Parallelism::None
    };
    // SAFETY: the extents and strides describe memory inside the slices, by the checks here and in
    // `Matrix::new`; `out` is not borrowed elsewhere.
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            out.as_mut_ptr(),
            1,
            b.columns as isize,
            keep != 0.0,
            a.data.as_ptr(),
            a.column_stride,
            a.row_stride,
            b.data.as_ptr(),
            b.column_stride,
            b.row_stride,
            keep,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
