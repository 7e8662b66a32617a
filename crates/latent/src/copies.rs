//! The design of a likelihood with several predictors per observation, if all predictors of an observation have the same
//! weights.

use std::sync::Arc;

use crate::{Dense, Sparse};

/// Copies of a dense matrix X. Predictor k of observation g is the product of row g of X and copy k of the latent
/// variables. Copy k of latent variable l has the index `l · copies + k`, and predictor k of observation g has the row
/// `g · copies + k`.
#[derive(Clone, Debug, PartialEq)]
pub struct Copies {
    pub(crate) one: Arc<Dense>,
    pub(crate) copies: usize,
    /// Whether an observation also has rows for the differences of its predictors, after the rows of the predictors.
    pub(crate) contrasts: bool,
}

/// Returns the number of contrasts of an observation with `size` predictors.
pub(crate) fn count(size: usize) -> usize {
    size * (size + 1) / 2
}

/// Returns the pairs of predictors in the order of their contrasts. Pairs with the reference are not included.
pub(crate) fn pairs(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).flat_map(move |j| (j + 1..size).map(move |k| (j, k)))
}

/// Converts the values of an observation's predictors to the values of its contrasts, for each observation in turn.
pub(crate) fn contrasted(values: &[f64], size: usize) -> Vec<f64> {
    values
        .chunks(size)
        .flat_map(|own| {
            let differences = pairs(size).map(|(j, k)| own[j] - own[k]);
            own.iter().copied().chain(differences)
        })
        .collect()
}

impl Copies {
    /// Returns the design with `copies` predictors per row of `one`.
    pub fn new(one: Arc<Dense>, copies: usize) -> Self {
        Self {
            one,
            copies,
            contrasts: false,
        }
    }

    pub(crate) fn with_contrasts(&self) -> Self {
        Self {
            contrasts: true,
            ..self.clone()
        }
    }

    /// Returns the matrix X.
    pub fn one(&self) -> &Dense {
        &self.one
    }

    /// Returns the number of rows of W.
    pub fn rows(&self) -> usize {
        self.one.rows * self.stride()
    }

    /// Returns the number of columns of W.
    pub fn cols(&self) -> usize {
        self.one.cols * self.copies
    }

    /// Returns the number of rows of an observation.
    pub(crate) fn stride(&self) -> usize {
        match self.contrasts {
            true => count(self.copies),
            false => self.copies,
        }
    }

    /// Returns the pairs of copies whose difference has a row.
    pub(crate) fn differences(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        pairs(if self.contrasts { self.copies } else { 0 })
    }

    /// Returns the nonzeros of a row, in the order of the latent variables.
    pub fn row(&self, n: usize) -> Vec<(usize, f64)> {
        let (g, k) = (n / self.stride(), n % self.stride());
        let signs = match k.checked_sub(self.copies) {
            None => vec![(k, 1.0)],
            Some(nth) => {
                let (j, k) = self.differences().nth(nth).expect("a row of the design");
                vec![(j, 1.0), (k, -1.0)]
            }
        };
        let nonzero = (0..self.one.cols).filter(|l| self.one.get(g, *l) != 0.0);
        nonzero
            .flat_map(|l| {
                let signs = signs.iter();
                signs.map(move |(k, sign)| (l * self.copies + k, sign * self.one.get(g, l)))
            })
            .collect()
    }

    pub(crate) fn to_dense(&self) -> Dense {
        let mut out = Dense::zeros(self.rows(), self.cols());
        let rows = out.rows;
        for n in 0..rows {
            for (l, x) in self.row(n) {
                out.data[l * rows + n] = x;
            }
        }
        out
    }

    pub(crate) fn to_sparse_transposed(&self) -> Sparse {
        let mut out = Sparse {
            rows: self.cols(),
            cols: self.rows(),
            col_start: vec![0],
            row: Vec::new(),
            value: Vec::new(),
        };
        for n in 0..out.cols {
            let (index, values): (Vec<usize>, Vec<f64>) = self.row(n).into_iter().unzip();
            out.row.extend(index);
            out.value.extend(values);
            out.col_start.push(out.row.len());
        }
        out
    }
}
