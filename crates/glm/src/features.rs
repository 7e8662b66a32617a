//! Rows of a design matrix, with functions that multiply the rows of a batch, or their transpose, by a matrix.

use jensen_math::simd::LANES;

use crate::product::{Matrix, multiply};
use crate::{ShapeError, Sparse};

/// The rows of a design matrix that has P columns.
#[derive(Clone, Debug)]
pub enum Features {
    /// Rows that have a value in every column.
    Dense(Dense),
    /// Rows that have values in only a few columns.
    Sparse(Sparse),
}

/// Dense rows of P columns, stored as double-precision numbers or as bytes.
#[derive(Clone, Debug)]
pub struct Dense {
    columns: usize,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    Floats(Vec<f64>),
    /// Each value is stored as a byte and read as `(byte − shift) · scale`. Every column has its own shift and scale.
    Bytes {
        data: Vec<u8>,
        shift: Vec<f64>,
        scale: Vec<f64>,
    },
}

jensen_math::simd_fn! {
    /// The compiler vectorises these plain loops.
    fn widen, widen_fn = <V>(bytes: &[u8], shift: &[f64], scale: &[f64], out: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for (((out, &b), shift), scale) in out.iter_mut().zip(bytes).zip(shift).zip(scale) {
            *out = (f64::from(b) - shift) * scale;
        }
    }
}

jensen_math::simd_fn! {
    /// Adds to each `strands[k]` the sum of the products `x² w` at the indices k, k + 8, k + 16 and so on.
    fn weigh_squares, weigh_squares_fn = <V>(x: &[f64], w: &[f64], strands: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for (x, w) in x.chunks(LANES).zip(w.chunks(LANES)) {
            for ((s, x), w) in strands.iter_mut().zip(x).zip(w) {
                *s += x * x * w;
            }
        }
    }

    fn add_squares, add_squares_fn = <V>(x: &[f64], r: f64, out: &mut [f64]) {
        let _ = std::marker::PhantomData::<V>;
        for (out, x) in out.iter_mut().zip(x) {
            *out += r * x * x;
        }
    }
}

impl Dense {
    /// Creates dense rows from double-precision numbers, which are stored one row after another.
    ///
    /// # Errors
    /// Fails if the numbers do not fill whole rows.
    pub fn new(values: Vec<f64>, columns: usize) -> Result<Self, ShapeError> {
        whole_rows(values.len(), columns)?;
        Ok(Self {
            columns,
            values: Values::Floats(values),
        })
    }

    /// Creates dense rows from bytes, such as the pixels of an image. The values are read as `(byte − shift) · scale`,
    /// where every column has its own shift and scale. Bytes need an eighth of the memory that double-precision numbers
    /// need.
    ///
    /// # Errors
    /// Fails if the bytes do not fill whole rows, or if `shift` or `scale` does not have one element per column.
    pub fn bytes(data: Vec<u8>, shift: Vec<f64>, scale: Vec<f64>) -> Result<Self, ShapeError> {
        whole_rows(data.len(), shift.len())?;
        if shift.len() != scale.len() {
            return Err(ShapeError(format!(
                "{} shifts but {} scales",
                shift.len(),
                scale.len()
            )));
        }
        Ok(Self {
            columns: shift.len(),
            values: Values::Bytes { data, shift, scale },
        })
    }

    /// Creates dense rows from bytes, and standardises every column to mean 0 and variance 1. Constant columns become 0
    /// everywhere.
    ///
    /// # Errors
    /// Fails if the bytes do not fill whole rows.
    pub fn standardised_bytes(data: Vec<u8>, columns: usize) -> Result<Self, ShapeError> {
        let (mean, variance) = moments(&data, columns)?;
        let scale = variance.iter().map(|&variance| {
            if variance > 1e-9 {
                variance.sqrt().recip()
            } else {
                0.0
            }
        });
        let scale = scale.collect();
        Self::bytes(data, mean, scale)
    }

    /// Creates dense rows from bytes. The values are read as `(byte − m) · scale`, where m is the mean of the column.
    ///
    /// # Errors
    /// Fails if the bytes do not fill whole rows.
    pub fn centred_bytes(data: Vec<u8>, columns: usize, scale: f64) -> Result<Self, ShapeError> {
        let (mean, _) = moments(&data, columns)?;
        Self::bytes(data, mean, vec![scale; columns])
    }

    /// Returns the number of columns P.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match &self.values {
            Values::Floats(data) => data.len() / self.columns,
            Values::Bytes { data, .. } => data.len() / self.columns,
        }
    }

    /// Returns the memory of the values, in bytes.
    pub fn size(&self) -> usize {
        match &self.values {
            Values::Floats(data) => 8 * data.len(),
            Values::Bytes { data, .. } => data.len(),
        }
    }

    /// Writes the rows of a batch to `out`, as an array of `batch × P`.
    pub fn gather(&self, batch: &[u32], out: &mut Vec<f64>) {
        let p = self.columns;
        out.resize(batch.len() * p, 0.0);
        let rows = out.chunks_exact_mut(p).zip(batch);
        match &self.values {
            Values::Floats(data) => {
                for (out, &n) in rows {
                    out.copy_from_slice(&data[n as usize * p..][..p]);
                }
            }
            Values::Bytes { data, shift, scale } => {
                let simd = jensen_math::simd::Simd::detect();
                for (out, &n) in rows {
                    widen(simd, &data[n as usize * p..][..p], shift, scale, out);
                }
            }
        }
    }
}

fn moments(data: &[u8], columns: usize) -> Result<(Vec<f64>, Vec<f64>), ShapeError> {
    whole_rows(data.len(), columns)?;
    let rows = (data.len() / columns) as f64;
    let (mut sums, mut squares) = (vec![0u64; columns], vec![0u64; columns]);
    for row in data.chunks_exact(columns) {
        for ((s, q), &b) in sums.iter_mut().zip(&mut squares).zip(row) {
            *s += u64::from(b);
            *q += u64::from(b) * u64::from(b);
        }
    }
    let mean: Vec<f64> = sums.iter().map(|&s| s as f64 / rows).collect();
    let squares = squares.iter().zip(&mean);
    let variance = squares.map(|(&q, m)| q as f64 / rows - m * m).collect();
    Ok((mean, variance))
}

pub(super) fn whole_rows(numbers: usize, columns: usize) -> Result<(), ShapeError> {
    if columns == 0 || !numbers.is_multiple_of(columns) {
        return Err(ShapeError(format!(
            "{numbers} numbers do not fill rows of {columns} columns"
        )));
    }
    Ok(())
}

impl Features {
    /// Returns the number of columns P.
    pub fn columns(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.columns(),
            Self::Sparse(sparse) => sparse.columns(),
        }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.rows(),
            Self::Sparse(sparse) => sparse.rows(),
        }
    }

    /// Returns the memory of the values, in bytes.
    pub fn size(&self) -> usize {
        match self {
            Self::Dense(dense) => dense.size(),
            Self::Sparse(sparse) => sparse.size(),
        }
    }

    /// Computes `out = X_batch W`, where `W` has `P × width` elements in contiguous rows. If the features are dense,
    /// `gathered` contains the rows of the batch.
    pub(super) fn times(
        &self,
        gathered: &[f64],
        batch: &[u32],
        w: &[f64],
        width: usize,
        out: &mut [f64],
    ) {
        match self {
            Self::Dense(dense) => multiply(
                Matrix::new(gathered, batch.len(), dense.columns),
                Matrix::new(w, dense.columns, width),
                0.0,
                out,
            ),
            Self::Sparse(sparse) => sparse.times(batch, w, width, out),
        }
    }

    pub(super) fn transposed_times(
        &self,
        gathered: &[f64],
        batch: &[u32],
        r: &[f64],
        width: usize,
        out: &mut [f64],
    ) {
        match self {
            Self::Dense(dense) => multiply(
                Matrix::new(gathered, batch.len(), dense.columns).transposed(),
                Matrix::new(r, batch.len(), width),
                1.0,
                out,
            ),
            Self::Sparse(sparse) => sparse.transposed_times(batch, r, width, out),
        }
    }

    pub(super) fn squares_times(
        &self,
        gathered: &[f64],
        batch: &[u32],
        w: &[f64],
        out: &mut [f64],
    ) {
        match self {
            Self::Dense(dense) => {
                let simd = jensen_math::simd::Simd::detect();
                let rows = gathered.chunks_exact(dense.columns);
                for (out, row) in out.iter_mut().zip(rows) {
                    let mut strands = [0.0; LANES];
                    weigh_squares(simd, row, w, &mut strands);
                    *out = strands.iter().sum();
                }
            }
            Self::Sparse(sparse) => sparse.squares_times(batch, w, out),
        }
    }

    pub(super) fn transposed_squares_times(
        &self,
        gathered: &[f64],
        batch: &[u32],
        r: &[f64],
        out: &mut [f64],
    ) {
        match self {
            Self::Dense(dense) => {
                let simd = jensen_math::simd::Simd::detect();
                for (row, r) in gathered.chunks_exact(dense.columns).zip(r) {
                    add_squares(simd, row, *r, out);
                }
            }
            Self::Sparse(sparse) => sparse.transposed_squares_times(batch, r, out),
        }
    }
}
