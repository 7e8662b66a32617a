//! Auto-encoders for rows of numbers. This module applies the networks of `jensen-neural` to the files of
//! `jensen-data`.
//!
//! | file | subject |
//! | --- | --- |
//! | here | [`RowRecords`] and [`UnitRecords`]: rows as records; [`check_values`] and [`split`] |
//! | `request` | [`VaeRequest`]: the settings of a fit, with their defaults |
//! | `words` | the words of settings |
//! | `decoder` | the names of decoders and of the kinds of columns |
//! | `rows` | training and validation rows, and their checks |
//! | `table` | [`TableColumn`]: the use of the columns of a table |
//! | `layout` | [`TableLayout`]: the positions of these columns in a record |
//! | `data` | [`VaeData`]: the data of a fit |
//! | `job` | [`fit_vae`]: the fit job |
//! | `export` | networks in the ONNX format |
//! | `course` | curves from the records of a run |
//! | `stored` | [`VaeModel`]: architecture and weights, and the file format |
//! | `plain` | the plain models that serve as baselines |
//! | `pictures` | [`mosaic`]: records as images |
//! | `summary` | [`VaeSummary`]: the contents of `fit.json` |
//! | `report_page` | [`report_page()`]: the report of a fit |
//!
//! The method is auto-encoding variational Bayes (Kingma and Welling 2014). The crate [`jensen_neural`] contains the
//! models, the training and the evaluation. This module re-exports that crate.

mod course;
mod data;
mod decoder;
mod export;
mod job;
mod layout;
mod pictures;
mod plain;
mod report_page;
mod request;
mod rows;
mod stored;
mod summary;
mod table;
mod words;

use jensen_data::Rows;
use jensen_math::rng::{Purpose, permutation};
pub use jensen_neural::*;

use crate::Error;
use crate::units::Units;

pub use course::VaeCourse;
pub use data::VaeData;
pub use export::VaeNetwork;
pub use job::{COLUMNS, SCORED, VaeJob, VaeMade, VaeRun, beside, fit_vae, open_vae, vae_model};
pub use layout::{TableLayout, columns_in_words};
pub use pictures::{PictureFrame, mosaic};
pub use report_page::{Pictures, VaeCurves, report_page};
pub use request::{LibrarySize, VaeRequest};
pub use rows::{check_rows, first, read_as};
pub use stored::{VaeModel, VaeModelError};
pub use summary::{TrainingPoint, VaeSeconds, VaeSummary};
pub use table::{ColumnRole, TableColumn};

/// The rows of a table in the form of an auto-encoder's records.
#[derive(Clone, Copy, Debug)]
pub struct RowRecords<'a>(pub &'a Rows);

impl Records for RowRecords<'_> {
    fn len(&self) -> usize {
        self.0.rows()
    }

    fn width(&self) -> usize {
        self.0.width()
    }

    fn read(&self, index: usize, out: &mut [f32]) {
        self.0.read(index, out);
    }
}

/// The rows of a table in standardised units, in the form of an auto-encoder's records.
#[derive(Clone, Copy, Debug)]
pub struct UnitRecords<'a> {
    /// The rows.
    pub rows: &'a Rows,
    /// The standardised units of the columns.
    pub units: &'a Units,
    /// The positions of the columns in a record, if columns have different uses.
    pub layout: Option<&'a TableLayout>,
}

impl Records for UnitRecords<'_> {
    fn len(&self) -> usize {
        self.rows.rows()
    }

    fn width(&self) -> usize {
        match self.layout {
            Some(layout) => layout.width(),
            None => self.units.width(),
        }
    }

    fn read(&self, index: usize, out: &mut [f32]) {
        if let Some(layout) = self.layout {
            let mut row = vec![0.0; self.rows.width()];
            self.rows.read_exact(index, &mut row);
            layout.record(self.units, &row, out);
            return;
        }
        if self.units.change_nothing() {
            self.rows.read(index, out);
            return;
        }
        let mut row = vec![0.0; self.rows.width()];
        self.rows.read_exact(index, &mut row);
        let inside = self.units.row(&row);
        out.iter_mut()
            .zip(inside)
            .for_each(|(out, x)| *out = x as f32);
    }
}

/// Checks that all values are in the domain of the likelihood. Missing values are allowed in every domain.
///
/// # Errors
/// Fails with [`Error::Input`] if a value is outside the domain. The message gives the row of the first such value.
pub fn check_values(rows: &Rows, likelihood: Likelihood) -> Result<(), Error> {
    let (low, high) = rows.range();
    let unit = low >= 0.0 && high <= 1.0;
    let missing = rows.missing() > 0;
    match likelihood {
        _ if missing => {}
        // The reader of the rows accepts only finite values.
        Likelihood::Gaussian { .. } | Likelihood::StudentT { .. } => return Ok(()),
        Likelihood::Bernoulli if unit => return Ok(()),
        _ => {}
    }
    let observation = Observation {
        missing,
        ..Observation::new(rows.width(), likelihood)
    };
    let mut record = vec![0.0; rows.width()];
    for row in 0..rows.rows() {
        rows.read(row, &mut record);
        if let Err(error) = observation.check(&record) {
            return Err(Error::Input(format!(
                "`{}`, row {}: {error} for the decoder `{}`",
                rows.source(),
                row + 1,
                likelihood.name()
            )));
        }
    }
    Ok(())
}

const SPLIT: Purpose = Purpose::new("autoencoder validation split");

/// Divides the indices of `rows` rows into training and validation rows and returns both lists in ascending order.
/// `share` is the fraction of the rows that become validation rows. Each list contains at least one row. The seed
/// determines which rows are chosen.
pub fn split(rows: usize, share: f64, seed: u64) -> (Vec<usize>, Vec<usize>) {
    let apart = ((rows as f64 * share).round() as usize).clamp(1, rows.saturating_sub(1).max(1));
    let mut order = permutation(seed, SPLIT, 0, rows);
    let mut train = order.split_off(apart);
    order.sort_unstable();
    train.sort_unstable();
    (train, order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_leaves_no_row_out() {
        let (train, apart) = split(10, 0.3, 1);
        assert_eq!((train.len(), apart.len()), (7, 3));
        let mut all = [train.clone(), apart].concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_ne!(train, split(10, 0.3, 2).0);
        let (train, apart) = split(2, 0.001, 1);
        assert_eq!((train.len(), apart.len()), (1, 1));
    }
}
