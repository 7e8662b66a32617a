//! Matrices in the interface of the crate.

use faer::{MatMut, MatRef};

use crate::Error;

/// A dense matrix, stored column by column.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// The elements. Element (i, j) is `data[j * rows + i]`.
    pub data: Vec<f64>,
}

impl Dense {
    /// Creates a matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self {
            rows,
            cols,
            data: vec![0.0; rows * cols],
        }
    }

    /// Returns every `step`-th row, starting with the first.
    pub(crate) fn thinned(&self, step: usize) -> Self {
        Self::from_fn(self.rows.div_ceil(step), self.cols, |i, j| {
            self.get(i * step, j)
        })
    }

    /// Creates the matrix whose element (i, j) is `f(i, j)`.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for j in 0..cols {
            for i in 0..rows {
                data.push(f(i, j));
            }
        }
        Self { rows, cols, data }
    }

    /// Returns element (i, j).
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.data[j * self.rows + i]
    }

    /// Returns column `j`.
    pub fn col(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Returns a faer view of the matrix for factorisations and products.
    pub fn view(&self) -> MatRef<'_, f64> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.cols)
    }

    /// Returns a mutable faer view of the matrix.
    pub fn view_mut(&mut self) -> MatMut<'_, f64> {
        MatMut::from_column_major_slice_mut(&mut self.data, self.rows, self.cols)
    }
}

/// A sparse matrix in compressed-column form. Within a column, the row indices are in ascending order and without
/// duplicates. A symmetric matrix stores both triangles.
#[derive(Clone, Debug, PartialEq)]
pub struct Sparse {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// The index of the first entry of each column, followed by the number of entries. The entries of column `j` have
    /// the indices `col_start[j]..col_start[j + 1]`.
    pub col_start: Vec<usize>,
    /// The row of every entry.
    pub row: Vec<usize>,
    /// The value of every entry.
    pub value: Vec<f64>,
}

impl Sparse {
    /// Creates a matrix from triplets (row, column, value) in any order. The values of duplicates are added.
    ///
    /// # Errors
    /// Fails if a triplet lies outside the matrix.
    pub fn from_triplets(
        rows: usize,
        cols: usize,
        triplets: &[(usize, usize, f64)],
    ) -> Result<Self, Error> {
        if let Some((i, j, _)) = triplets.iter().find(|(i, j, _)| *i >= rows || *j >= cols) {
            return Err(Error::Data(format!(
                "entry ({i}, {j}) lies outside a sparse matrix of {rows} rows and {cols} columns"
            )));
        }
        let mut order: Vec<usize> = (0..triplets.len()).collect();
        order.sort_by_key(|&k| (triplets[k].1, triplets[k].0));
        let mut matrix = Self {
            rows,
            cols,
            col_start: vec![0; cols + 1],
            row: Vec::with_capacity(triplets.len()),
            value: Vec::with_capacity(triplets.len()),
        };
        let mut last = None;
        for k in order {
            let (i, j, value) = triplets[k];
            if last == Some((i, j)) {
                *matrix.value.last_mut().expect("an entry before") += value;
            } else {
                matrix.row.push(i);
                matrix.value.push(value);
                matrix.col_start[j + 1] += 1;
                last = Some((i, j));
            }
        }
        for j in 0..cols {
            matrix.col_start[j + 1] += matrix.col_start[j];
        }
        Ok(matrix)
    }

    /// Creates an identity matrix.
    pub fn identity(n: usize) -> Self {
        Self {
            rows: n,
            cols: n,
            col_start: (0..=n).collect(),
            row: (0..n).collect(),
            value: vec![1.0; n],
        }
    }

    /// Returns the number of stored entries.
    pub fn len(&self) -> usize {
        self.row.len()
    }

    /// Whether the matrix has no stored entries.
    pub fn is_empty(&self) -> bool {
        self.row.is_empty()
    }

    /// Returns the rows and the values of column `j`.
    pub fn col(&self, j: usize) -> (&[usize], &[f64]) {
        let range = self.col_start[j]..self.col_start[j + 1];
        (&self.row[range.clone()], &self.value[range])
    }

    /// Returns the transpose.
    pub fn transpose(&self) -> Self {
        let mut col_start = vec![0; self.rows + 1];
        for &i in &self.row {
            col_start[i + 1] += 1;
        }
        for i in 0..self.rows {
            col_start[i + 1] += col_start[i];
        }
        let mut next = col_start.clone();
        let mut row = vec![0; self.len()];
        let mut value = vec![0.0; self.len()];
        for j in 0..self.cols {
            let (rows, values) = self.col(j);
            for (&i, &x) in rows.iter().zip(values) {
                row[next[i]] = j;
                value[next[i]] = x;
                next[i] += 1;
            }
        }
        Self {
            rows: self.cols,
            cols: self.rows,
            col_start,
            row,
            value,
        }
    }

    /// Computes the product of the matrix and a vector.
    ///
    /// # Panics
    /// Panics if `x` does not have one element per column.
    pub fn mul(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.cols, "length of the vector");
        let mut out = vec![0.0; self.rows];
        for (j, &xj) in x.iter().enumerate() {
            let (rows, values) = self.col(j);
            for (&i, &a) in rows.iter().zip(values) {
                out[i] += a * xj;
            }
        }
        out
    }

    /// Computes the product of the transposed matrix and a vector.
    ///
    /// # Panics
    /// Panics if `x` does not have one element per row.
    pub fn mul_t(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.rows, "length of the vector");
        (0..self.cols)
            .map(|j| {
                let (rows, values) = self.col(j);
                rows.iter().zip(values).map(|(&i, &a)| a * x[i]).sum()
            })
            .collect()
    }
}
