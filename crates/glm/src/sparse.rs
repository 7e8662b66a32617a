//! Rows with few entries, and products with the rows of a batch.

use jensen_math::simd::{F64x8, LANES, Simd, prefetch};

use crate::ShapeError;
use crate::features::whole_rows;

/// Sparse rows. Their columns and values are stored row by row.
#[derive(Clone, Debug)]
pub struct Sparse {
    columns: usize,
    starts: Vec<usize>,
    entries: Entries,
}

#[derive(Clone, Debug)]
enum Entries {
    Floats {
        column: Vec<u32>,
        value: Vec<f64>,
    },
    /// Each value is stored as a byte and read as `byte · scale`.
    Bytes {
        column: Vec<u16>,
        byte: Vec<u8>,
        scale: f64,
    },
}

trait SparseRow: Copy {
    fn len(self) -> usize;

    fn entry(self, i: usize) -> (usize, f64);

    fn prefetch(self);

    fn each(self, mut f: impl FnMut(usize, f64)) {
        for i in 0..self.len() {
            let (column, value) = self.entry(i);
            f(column, value);
        }
    }
}

#[derive(Clone, Copy)]
struct Floats<'a> {
    column: &'a [u32],
    value: &'a [f64],
}

impl SparseRow for Floats<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.value.len()
    }

    #[inline(always)]
    fn entry(self, i: usize) -> (usize, f64) {
        (self.column[i] as usize, self.value[i])
    }

    #[inline(always)]
    fn prefetch(self) {
        prefetch(self.column);
        prefetch(self.value);
    }
}

#[derive(Clone, Copy)]
struct Bytes<'a> {
    column: &'a [u16],
    byte: &'a [u8],
    scale: f64,
}

impl SparseRow for Bytes<'_> {
    #[inline(always)]
    fn len(self) -> usize {
        self.byte.len()
    }

    #[inline(always)]
    fn entry(self, i: usize) -> (usize, f64) {
        (
            usize::from(self.column[i]),
            f64::from(self.byte[i]) * self.scale,
        )
    }

    #[inline(always)]
    fn prefetch(self) {
        prefetch(self.column);
        prefetch(self.byte);
    }
}

/// While a row is processed, the row this many rows further on is prefetched.
const AHEAD: usize = 6;

macro_rules! with_row {
    ($sparse:expr, $n:expr, $row:ident => $body:expr) => {{
        let range = $sparse.starts[$n as usize]..$sparse.starts[$n as usize + 1];
        match &$sparse.entries {
            Entries::Floats { column, value } => {
                let $row = Floats {
                    column: &column[range.clone()],
                    value: &value[range],
                };
                $body
            }
            Entries::Bytes {
                column,
                byte,
                scale,
            } => {
                let $row = Bytes {
                    column: &column[range.clone()],
                    byte: &byte[range],
                    scale: *scale,
                };
                $body
            }
        }
    }};
}

impl Sparse {
    /// Creates rows from `(column, value)` pairs. If a row contains a column twice, the two values are added.
    ///
    /// # Errors
    /// Fails if a column is not below `columns`.
    pub fn new<R>(columns: usize, rows: R) -> Result<Self, ShapeError>
    where
        R: IntoIterator<Item: AsRef<[(u32, f64)]>>,
    {
        let (mut starts, mut column, mut value) = (vec![0], Vec::new(), Vec::new());
        for (n, row) in rows.into_iter().enumerate() {
            let first = column.len();
            for &(c, v) in row.as_ref() {
                if c as usize >= columns {
                    return Err(ShapeError(format!(
                        "row {n} refers to column {c} of {columns} columns (counted from 0)"
                    )));
                }
                match column[first..].iter().position(|&other| other == c) {
                    Some(at) => value[first + at] += v,
                    None => {
                        column.push(c);
                        value.push(v);
                    }
                }
            }
            starts.push(column.len());
        }
        Ok(Self {
            columns,
            starts,
            entries: Entries::Floats { column, value },
        })
    }

    /// Creates sparse rows from dense rows of bytes, such as the pixels of images. The values are read as `byte ·
    /// scale`, and each non-zero byte takes three bytes of memory.
    ///
    /// # Errors
    /// Fails if the bytes do not fill whole rows, or if there are more than 65 536 columns.
    pub fn bytes(data: &[u8], columns: usize, scale: f64) -> Result<Self, ShapeError> {
        whole_rows(data.len(), columns)?;
        if columns > usize::from(u16::MAX) + 1 {
            return Err(ShapeError(format!(
                "{columns} columns are more than the 65536 that sparse rows of bytes can have"
            )));
        }
        let kept = data.iter().filter(|&&b| b != 0).count();
        let mut starts = Vec::with_capacity(data.len() / columns + 1);
        let (mut column, mut byte) = (Vec::with_capacity(kept), Vec::with_capacity(kept));
        starts.push(0);
        for row in data.chunks_exact(columns) {
            for (c, &b) in row.iter().enumerate().filter(|(_, b)| **b != 0) {
                column.push(c as u16);
                byte.push(b);
            }
            starts.push(byte.len());
        }
        Ok(Self {
            columns,
            starts,
            entries: Entries::Bytes {
                column,
                byte,
                scale,
            },
        })
    }

    /// Returns the number of columns P.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the memory of the entries, in bytes.
    pub fn size(&self) -> usize {
        let entries = match &self.entries {
            Entries::Floats { value, .. } => 12 * value.len(),
            Entries::Bytes { byte, .. } => 3 * byte.len(),
        };
        8 * self.starts.len() + entries
    }

    pub(super) fn columns_of(&self, n: u32, out: &mut Vec<u32>) {
        with_row!(self, n, row => row.each(|c, _| out.push(c as u32)));
    }

    /// Returns whether a batch uses so few columns that finding these columns is worthwhile. Rows of bytes are assumed
    /// to be images. Together, the images of a batch use almost all columns.
    pub(super) fn leaves_out(&self) -> bool {
        matches!(self.entries, Entries::Floats { .. })
    }

    /// Computes `out = X_batch W`, where `W` has `P × width` elements in contiguous rows.
    pub(super) fn times(&self, batch: &[u32], w: &[f64], width: usize, out: &mut [f64]) {
        assert!(w.len() >= self.columns * width, "a row of W a column");
        let simd = Simd::detect();
        for (b, (out, &n)) in out.chunks_exact_mut(width).zip(batch).enumerate() {
            // The rows of a random batch are far apart in memory, so they are prefetched.
            if let Some(&n) = batch.get(b + AHEAD) {
                with_row!(self, n, row => row.prefetch());
            }
            with_row!(self, n, row => if width < LANES {
                out.fill(0.0);
                row.each(|c, v| {
                    for (out, w) in out.iter_mut().zip(&w[c * width..][..width]) {
                        *out += v * w;
                    }
                });
            } else {
                combine(simd, row, w, out);
            });
        }
    }

    /// Computes `out += X_batchᵀ R`, where `R` has `batch × width` elements in contiguous rows.
    pub(super) fn transposed_times(&self, batch: &[u32], r: &[f64], width: usize, out: &mut [f64]) {
        assert!(out.len() >= self.columns * width, "a row of out a column");
        let simd = Simd::detect();
        for (r, &n) in r.chunks_exact(width).zip(batch) {
            with_row!(self, n, row => if width < LANES {
                row.each(|c, v| {
                    for (out, r) in out[c * width..][..width].iter_mut().zip(r) {
                        *out += v * r;
                    }
                });
            } else {
                distribute(simd, row, r, out);
            });
        }
    }

    pub(super) fn squares_times(&self, batch: &[u32], w: &[f64], out: &mut [f64]) {
        for (out, &n) in out.iter_mut().zip(batch) {
            *out = 0.0;
            with_row!(self, n, row => row.each(|c, v| *out += v * v * w[c]));
        }
    }

    pub(super) fn transposed_squares_times(&self, batch: &[u32], r: &[f64], out: &mut [f64]) {
        for (r, &n) in r.iter().zip(batch) {
            with_row!(self, n, row => row.each(|c, v| out[c] += v * v * r));
        }
    }
}

jensen_math::simd_fn! {
    /// Computes `out = Σᵢ xᵢ W[cᵢ, ·]` over the entries of a row. W must have at least eight columns.
    fn combine, combine_fn = <V, R: SparseRow>(row: R, w: &[f64], out: &mut [f64]) {
        let vectors = out.len().div_ceil(LANES);
        let mut first = 0;
        while first < vectors {
            let count = block(vectors - first);
            // SAFETY: `times`, the only function that combines, asserts that W has a row of `out.len()` numbers for every column.
            unsafe {
                match count {
                    1 => combine_block::<V, R, 1>(row, w, first, out),
                    2 => combine_block::<V, R, 2>(row, w, first, out),
                    3 => combine_block::<V, R, 3>(row, w, first, out),
                    _ => combine_block::<V, R, 4>(row, w, first, out),
                }
            }
            first += count;
        }
    }

    /// Computes `out[cᵢ, ·] += xᵢ r` over the entries of a row. `r` must have at least eight elements.
    fn distribute, distribute_fn = <V, R: SparseRow>(row: R, r: &[f64], out: &mut [f64]) {
        let vectors = r.len().div_ceil(LANES);
        let mut first = 0;
        while first < vectors {
            let count = block(vectors - first);
            // SAFETY: `transposed_times`, the only function that distributes, asserts that `out` has a row of `r.len()` numbers for
            // every column.
            unsafe {
                match count {
                    1 => distribute_block::<V, R, 1>(row, r, first, out),
                    2 => distribute_block::<V, R, 2>(row, r, first, out),
                    3 => distribute_block::<V, R, 3>(row, r, first, out),
                    _ => distribute_block::<V, R, 4>(row, r, first, out),
                }
            }
            first += count;
        }
    }
}

/// Returns the number of vectors in the next block, which is at most four, if `left` vectors remain. A block of a
/// single vector never follows another block.
#[inline(always)]
fn block(left: usize) -> usize {
    match left {
        0..=4 => left,
        5 => 3,
        _ => 4,
    }
}

/// Returns the offsets of the vectors in a block. The last vector of a row ends where the row ends, so it may overlap
/// the vector before it. Both vectors belong to the same block.
#[inline(always)]
fn starts<const C: usize>(first: usize, width: usize) -> [usize; C] {
    let mut starts = [0; C];
    for (k, start) in starts.iter_mut().enumerate() {
        *start = ((first + k) * LANES).min(width - LANES);
    }
    starts
}

/// Computes a block of [`combine`]. Even-numbered and odd-numbered entries are summed separately, which hides the
/// latency of additions.
///
/// # Safety
/// W must have a row of `out.len() ≥ 8` numbers for every column that the sparse row uses.
#[inline(always)]
unsafe fn combine_block<V: F64x8, R: SparseRow, const C: usize>(
    row: R,
    w: &[f64],
    first: usize,
    out: &mut [f64],
) {
    let width = out.len();
    let starts = starts::<C>(first, width);
    let (mut even, mut odd) = ([V::splat(0.0); C], [V::splat(0.0); C]);
    let pairs = row.len() / 2;
    for i in 0..pairs {
        // SAFETY: `starts` are at most `width − 8`, and `combine` requires W to have a row of `width` for every column.
        unsafe {
            add_scaled(row.entry(2 * i), w, width, starts, &mut even);
            add_scaled(row.entry(2 * i + 1), w, width, starts, &mut odd);
        }
    }
    if row.len() > 2 * pairs {
        // SAFETY: `starts` are at most `width − 8`, and `combine` requires W to have a row of `width` for every column.
        unsafe { add_scaled(row.entry(2 * pairs), w, width, starts, &mut even) };
    }
    for ((even, odd), start) in even.into_iter().zip(odd).zip(starts) {
        // SAFETY: `start + 8 ≤ width`.
        unsafe { (even + odd).store(out.as_mut_ptr().add(start)) };
    }
}

#[inline(always)]
unsafe fn add_scaled<V: F64x8, const C: usize>(
    (column, value): (usize, f64),
    w: &[f64],
    width: usize,
    starts: [usize; C],
    sums: &mut [V; C],
) {
    let value = V::splat(value);
    for (sum, start) in sums.iter_mut().zip(starts) {
        // SAFETY: `combine_block` passes columns of the row, for which W has `width` numbers each, and starts that are at
        // most `width − 8`.
        *sum = value.fma(
            unsafe { V::load(w.as_ptr().add(column * width + start)) },
            *sum,
        );
    }
}

/// Computes a block of [`distribute`]. All loads of an entry come before its stores, so the vectors may overlap.
///
/// # Safety
/// `out` must have a row of `r.len() ≥ 8` numbers for every column that the sparse row uses.
#[inline(always)]
unsafe fn distribute_block<V: F64x8, R: SparseRow, const C: usize>(
    row: R,
    r: &[f64],
    first: usize,
    out: &mut [f64],
) {
    let width = r.len();
    let starts = starts::<C>(first, width);
    let mut rates = [V::splat(0.0); C];
    for (rate, start) in rates.iter_mut().zip(starts) {
        // SAFETY: `start + 8 ≤ width`.
        *rate = unsafe { V::load(r.as_ptr().add(start)) };
    }
    let mut sums = [V::splat(0.0); C];
    for i in 0..row.len() {
        let (column, value) = row.entry(i);
        let value = V::splat(value);
        // SAFETY: `distribute` requires `out` to have a row of `width` numbers for every column.
        let target = unsafe { out.as_mut_ptr().add(column * width) };
        for ((sum, rate), start) in sums.iter_mut().zip(rates).zip(starts) {
            // SAFETY: `start + 8 ≤ width`.
            *sum = value.fma(rate, unsafe { V::load(target.add(start)) });
        }
        for (sum, start) in sums.into_iter().zip(starts) {
            // SAFETY: `start + 8 ≤ width`, within the row of `out` that `target` begins.
            unsafe { sum.store(target.add(start)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares products with sums over entries. A third of the bytes are non-zero, and some of the widths are
    /// multiples of a vector's length while others are not.
    #[test]
    fn products_are_sums_over_entries() {
        let (rows, columns) = (7, 23);
        let bytes: Vec<u8> = (0..rows * columns)
            .map(|i| {
                if i % 3 == 1 {
                    (i * 37 % 255) as u8 + 1
                } else {
                    0
                }
            })
            .collect();
        let scale = 1.0 / 255.0;
        let row = |n: usize| &bytes[n * columns..(n + 1) * columns];
        let pairs = (0..rows).map(|n| {
            let entries = row(n).iter().enumerate().filter(|(_, b)| **b > 0);
            let pairs = entries.map(|(c, &b)| (c as u32, f64::from(b) * scale));
            pairs.collect::<Vec<_>>()
        });
        let forms = [
            Sparse::bytes(&bytes, columns, scale).unwrap(),
            Sparse::new(columns, pairs).unwrap(),
        ];
        let batch = [6, 0, 3];
        for width in [
            1, 2, 7, 8, 9, 10, 16, 23, 30, 32, 33, 35, 40, 41, 64, 67, 72, 73,
        ] {
            let w: Vec<f64> = (0..columns * width)
                .map(|i| (i as f64 * 0.7).sin())
                .collect();
            let r: Vec<f64> = (0..batch.len() * width).map(|i| (i as f64).cos()).collect();
            let mut times = vec![0.0; batch.len() * width];
            let mut back = vec![0.5; columns * width];
            for (b, &n) in batch.iter().enumerate() {
                for (c, &byte) in row(n as usize).iter().enumerate() {
                    for k in 0..width {
                        let x = f64::from(byte) * scale;
                        times[b * width + k] += x * w[c * width + k];
                        back[c * width + k] += x * r[b * width + k];
                    }
                }
            }
            for form in &forms {
                let mut out = vec![f64::NAN; times.len()];
                form.times(&batch, &w, width, &mut out);
                let mut transposed = vec![0.5; back.len()];
                form.transposed_times(&batch, &r, width, &mut transposed);
                let pairs = out.iter().chain(&transposed).zip(times.iter().chain(&back));
                for (found, expected) in pairs {
                    assert!(
                        (found - expected).abs() < 1e-13,
                        "{width}: {found}, not {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_fill_whole_rows_of_few_columns() {
        assert!(Sparse::bytes(&[1, 2, 3], 2, 1.0).is_err());
        assert!(Sparse::bytes(&vec![0; 70_000], 70_000, 1.0).is_err());
    }
}
