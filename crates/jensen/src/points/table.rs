//! Rows of numbers.

use std::path::Path;

use jensen_data::Table;
use jensen_math::rng::{Purpose, permutation};

use super::PointRequest;
use crate::Error;

/// Rows of numbers, with those to learn from apart from those held out.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The file, or the caller's label.
    pub source: String,
    /// Names of the columns.
    pub names: Vec<String>,
    /// Rows to learn from, one after the other.
    pub train: Vec<f64>,
    /// Rows to score.
    pub heldout: Vec<f64>,
    /// A digest of the data.
    pub digest: String,
}

const SPLIT: Purpose = Purpose::new("held-out points");

impl Points {
    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.names.len()
    }

    /// Number of rows to learn from.
    pub fn count(&self) -> usize {
        self.train.len() / self.dim().max(1)
    }

    /// Refuses pictures of another number of pixels than there are columns.
    ///
    /// # Errors
    /// They are of another number.
    pub fn check_size(&self, size: Option<(usize, usize)>) -> Result<(), Error> {
        match size {
            Some((width, height)) if width.checked_mul(height) != Some(self.dim()) => {
                Err(Error::Setting(format!(
                    "pictures of {width}x{height} pixels need as many columns, and `{}` has {}",
                    self.source,
                    self.dim()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Reads a table whose columns are all numbers.
    ///
    /// # Errors
    /// It cannot be read, is empty, or has something else than a finite number somewhere.
    pub fn read(path: &Path, request: &PointRequest) -> Result<Self, Error> {
        Self::of_table(&Table::read(path)?, request)
    }

    /// The rows of a table whose columns are all numbers.
    ///
    /// # Errors
    /// It is empty, or has something else than a finite number somewhere.
    pub fn of_table(table: &Table, request: &PointRequest) -> Result<Self, Error> {
        let source = table.source();
        let columns: Vec<&[f64]> = table
            .names()
            .iter()
            .map(|name| table.numbers(name))
            .collect::<Result<_, _>>()?;
        let rows = table.rows();
        if rows == 0 || columns.is_empty() {
            return Err(Error::Input(format!("`{source}` holds no rows")));
        }
        for (column, name) in columns.iter().zip(table.names()) {
            if let Some(row) = column.iter().position(|x| !x.is_finite()) {
                return Err(Error::Input(format!(
                    "`{source}`, row {}: the value of `{name}` is missing or not finite; leave the row out or fill it in",
                    row + 1
                )));
            }
        }
        let order = permutation(request.seed(), SPLIT, 0, rows);
        let apart = (request.heldout() * rows as f64).round() as usize;
        let mut is_heldout = vec![false; rows];
        for &row in &order[..apart.min(rows - 1)] {
            is_heldout[row] = true;
        }
        let gather = |wanted: bool| {
            (0..rows)
                .filter(|&row| is_heldout[row] == wanted)
                .flat_map(|row| columns.iter().map(move |column| column[row]))
                .collect::<Vec<f64>>()
        };
        let digest = columns
            .iter()
            .flat_map(|column| column.iter())
            .fold(0xcbf2_9ce4_8422_2325u64, |hash, x| {
                (hash ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3)
            });
        Ok(Self {
            source: source.to_owned(),
            names: table.names().iter().map(|n| (*n).to_owned()).collect(),
            train: gather(false),
            heldout: gather(true),
            digest: format!("{digest:016x} {rows} {}", columns.len()),
        })
    }
}
