//! The data of a fit, and their checks.

use std::path::{Path, PathBuf};

use jensen_data::{Cells, Rows, Table};
use jensen_neural::{Architecture, Likelihood, Observation};

use super::layout::TableLayout;
use super::rows::{
    Apart, check_columns, check_present, check_rows, extents, log_scales, mean_total,
    names_or_numbers, read_as, units,
};
use super::{VaeRequest, VaeRun, split, table};
use crate::Error;
use crate::units::Units;

/// The checked data of a fit, with the architecture of the networks.
pub struct VaeData {
    pub(super) rows: Rows,
    pub(super) apart: Apart,
    pub(super) extents: Vec<usize>,
    pub(super) units: Units,
    pub(super) layout: Option<TableLayout>,
    pub(super) architecture: Architecture,
    pub(super) run: VaeRun,
}

struct Read {
    rows: Rows,
    apart: Apart,
    extents: Vec<usize>,
    units: Units,
    layout: Option<TableLayout>,
    observation: Observation,
}

impl VaeData {
    /// Opens the training rows. `validation` is either the name of a file with validation rows, or the fraction of the
    /// training rows that is held out for validation. `most` is the maximum number of bytes of a file after
    /// decompression.
    ///
    /// # Errors
    /// Fails if the data cannot be read, if a value is outside the domain of the decoder, or if a setting is invalid.
    pub fn open(
        data: PathBuf,
        validation: Option<String>,
        flags: VaeRequest,
        most: u64,
    ) -> Result<Self, Error> {
        // Settings that no data could satisfy are reported before any error of the data.
        flags.likelihood(false)?;
        match flags.reads_table() {
            true => Self::of_table(&open_table(&data, Some(most))?, data, validation, flags),
            false => {
                let rows = Rows::open_within(&data, most).map_err(|error| {
                    advised(error.into(), || open_table(&data, Some(most)).ok())
                })?;
                Self::of_rows(rows, data, validation, flags)
            }
        }
    }

    /// Creates the data from training rows in memory. `validation` has the same meaning as for [`open`](Self::open).
    /// Messages refer to the rows by the name `data`.
    ///
    /// # Errors
    /// Fails under the same conditions as [`open`](Self::open), and if a setting needs names of columns.
    pub fn of_rows(
        rows: Rows,
        data: PathBuf,
        validation: Option<String>,
        flags: VaeRequest,
    ) -> Result<Self, Error> {
        if flags.reads_table() {
            return Err(no_table(&data));
        }
        let (low, high) = rows.range();
        let extents = extents(&rows, flags.image())?;
        let images = extents.len() > 1 && low >= 0.0 && high <= 1.0;
        let likelihood = flags.likelihood(images)?;
        // A setting that is invalid for all data of this width is reported before any error of the data.
        flags.architecture(&extents, likelihood)?;
        let rows = read_as(rows, likelihood);
        check_rows(&rows, rows.width(), likelihood, true)?;
        let open = |path: &Path| {
            Ok(read_as(
                Rows::open(path)?.with_columns(rows.columns())?,
                likelihood,
            ))
        };
        let apart = Apart::open(validation.as_deref(), open)?;
        let train = train(&rows, &apart, &flags);
        check_columns(&rows, &train)?;
        let units = units(
            &rows,
            &train,
            likelihood,
            flags.standardise.unwrap_or_default(),
        )?;
        let observation = Observation {
            library_size: library_size(&rows, &train, &flags)?,
            ..Observation::new(units.width(), likelihood)
        };
        if let Apart::File(other) = &apart {
            check_rows(other, rows.width(), likelihood, true)?;
        }
        let read = Read {
            rows,
            apart,
            extents,
            units,
            layout: None,
            observation,
        };
        Self::of_read(read, data, validation, flags)
    }

    /// Creates the data from a table in memory. `validation` has the same meaning as for [`open`](Self::open).
    ///
    /// # Errors
    /// Fails under the same conditions as [`open`](Self::open).
    pub fn of_table(
        table: &Table,
        data: PathBuf,
        validation: Option<String>,
        flags: VaeRequest,
    ) -> Result<Self, Error> {
        if !flags.reads_table() {
            let rows = Rows::of_table(table)
                .map_err(|error| advised(error.into(), || Some(table.clone())))?;
            return Self::of_rows(rows, data, validation, flags);
        }
        let likelihood = flags.likelihood(false)?;
        if flags.convolutions.is_some() {
            return Err(Error::setting(
                "--convolutions has no meaning for the columns of a mixed or conditional model: remove it",
            ));
        }
        flags.architecture(&[1], Likelihood::Bernoulli)?;
        if flags.image.is_some() {
            return Err(Error::setting(
                "--image has no meaning for the columns of a mixed or conditional model: remove it",
            ));
        }
        if flags.has_library_size() && !flags.given.is_empty() {
            return Err(Error::setting(
                "--library-size cannot be combined with --given: remove one of them",
            ));
        }
        let all: Vec<usize> = (0..table.rows()).collect();
        let share = validation.as_deref().and_then(|text| text.parse().ok());
        let chosen = match share {
            Some(share) if share > 0.0 && share < 1.0 && all.len() > 1 => {
                split(all.len(), share, flags.seed()).0
            }
            _ => all,
        };
        let columns = table::roles(table, &flags, likelihood, &chosen)?;
        let rows = table::rows(&columns, table)?;
        let open = |path: &Path| table::rows(&columns, &open_table(path, None)?);
        let apart = Apart::open(validation.as_deref(), open)?;
        let train = train(&rows, &apart, &flags);
        check_columns(&rows, &train)?;
        let units = table::units(
            &columns,
            &rows,
            &train,
            flags.standardise.unwrap_or_default(),
        )?;
        let layout = TableLayout::new(columns, &units)?;
        let modelled = layout.modelled();
        check_present(&rows, true, &modelled)?;
        if let Apart::File(other) = &apart {
            check_present(other, true, &modelled)?;
        }
        let read = Read {
            extents: vec![rows.width()],
            observation: layout.observation(),
            layout: Some(layout),
            rows,
            apart,
            units,
        };
        Self::of_read(read, data, validation, flags)
    }

    fn of_read(
        read: Read,
        data: PathBuf,
        validation: Option<String>,
        flags: VaeRequest,
    ) -> Result<Self, Error> {
        if flags.patience.is_some() && validation.is_none() {
            return Err(Error::setting(
                "early stopping needs records to validate on: give --validation FILE, or a share such as --validation 0.1",
            ));
        }
        let Read {
            rows,
            apart,
            extents,
            units,
            layout,
            observation,
        } = read;
        let observation = Observation {
            missing: rows.missing() + apart.missing() > 0,
            ..observation
        };
        let architecture = flags.architecture_of(observation, &extents)?;
        let simd = flags.simd()?.name().to_owned();
        let run = VaeRun {
            data,
            validation,
            digest: rows.digest().to_owned(),
            architecture: architecture.clone(),
            flags: VaeRequest {
                simd: Some(simd),
                ..flags
            },
        };
        let read = Self {
            rows,
            apart,
            extents,
            units,
            layout,
            architecture,
            run,
        };
        Ok(read)
    }

    pub(super) fn missing(&self) -> usize {
        self.rows.missing() + self.apart.missing()
    }

    pub(super) fn values(&self) -> usize {
        self.rows.rows() * self.rows.width() + self.apart.values()
    }

    pub(super) fn names(&self) -> Vec<String> {
        match &self.layout {
            Some(layout) => layout.names(),
            None => names_or_numbers(self.rows.columns(), self.units.columns()),
        }
    }

    pub(super) fn log_scales(&self) -> Vec<f64> {
        log_scales(&self.units, self.layout.as_ref())
    }
}

fn train(rows: &Rows, apart: &Apart, flags: &VaeRequest) -> Vec<usize> {
    match apart {
        Apart::Share(share) => split(rows.rows(), *share, flags.seed()).0,
        Apart::None | Apart::File(_) => (0..rows.rows()).collect(),
    }
}

fn library_size(rows: &Rows, train: &[usize], flags: &VaeRequest) -> Result<Option<f32>, Error> {
    let typical = flags.has_library_size().then(|| mean_total(rows, train));
    typical.transpose()
}

/// Adds the decoder for columns of words to the error of a table that has such columns.
fn advised(error: Error, table: impl FnOnce() -> Option<Table>) -> Error {
    let has_words = |table: &Table| {
        let mut columns = table.columns().iter();
        columns.any(|column| matches!(column.cells, Cells::Words(_)))
    };
    if !table().is_some_and(|table| has_words(&table)) {
        return error;
    }
    let text = error.to_string();
    // An excerpt of the table follows the first line.
    let (first, excerpt) = text.split_at(text.find('\n').unwrap_or(text.len()));
    Error::Input(format!(
        "{first}; --decoder mixed fits tables with columns of words{excerpt}"
    ))
}

fn no_table(path: &Path) -> Error {
    Error::Input(format!(
        "`{}` has no named columns, which --decoder mixed and --given need: store the data as CSV, NPZ or Parquet",
        path.display()
    ))
}

/// Reads a table if the name of the file is that of one.
pub(super) fn open_table(path: &Path, most: Option<u64>) -> Result<Table, Error> {
    let name = path.display().to_string().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let endings = [".csv", ".txt", ".tsv", ".dat", ".npz", ".npy", ".parquet"];
    if path.is_dir() || !endings.iter().any(|ending| name.ends_with(ending)) {
        return Err(no_table(path));
    }
    Ok(match most {
        Some(most) => Table::read_within(path, most)?,
        None => Table::read(path)?,
    })
}
