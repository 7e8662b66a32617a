//! The training and validation rows of an auto-encoder, and the checks of their values.

use std::path::Path;

use jensen_data::Rows;
use jensen_math::sum::ColumnMoments;
use jensen_neural::{Likelihood, Records, Selection};

use super::data::VaeData;
use super::layout::TableLayout;
use super::{UnitRecords, check_values, split};
use crate::Error;
use crate::units::{Standardise, Units};

pub(super) fn extents(rows: &Rows, image: Option<(usize, usize)>) -> Result<Vec<usize>, Error> {
    let Some((width, height)) = image else {
        return Ok(rows.extents().to_vec());
    };
    if width * height != rows.width() {
        return Err(Error::Setting(format!(
            "--image {width}x{height} means {} pixels, but a row of `{}` has {} numbers",
            width * height,
            rows.source(),
            rows.width()
        )));
    }
    Ok(vec![height, width])
}

/// Converts rows to the values that a likelihood expects. Bytes are treated as grey levels, unless the values are
/// counts.
pub fn read_as(rows: Rows, likelihood: Likelihood) -> Rows {
    match likelihood.is_of_counts() {
        true => rows.of_counts(),
        false => rows,
    }
}

/// Checks that every row is in the domain of the decoder and has the same number of values as the rows of the fit.
///
/// # Errors
/// Fails with [`Error::Input`] if a row is rejected. The message gives the first such row.
pub fn check_rows(
    rows: &Rows,
    width: usize,
    likelihood: Likelihood,
    missing: bool,
) -> Result<(), Error> {
    if rows.width() != width {
        return Err(Error::Input(format!(
            "rows of `{}` have {} numbers, but rows of the fit have {width}",
            rows.source(),
            rows.width()
        )));
    }
    check_present(rows, missing, &vec![true; width])?;
    check_values(rows, likelihood).map_err(|error| {
        Error::Input(format!(
            "{error}\nscale the data to the decoder's domain, or choose another decoder (--decoder gaussian)"
        ))
    })
}

/// Returns the names of the columns, which are `x1`, `x2`, … if the data had no names.
pub(super) fn names_or_numbers(names: &[String], columns: usize) -> Vec<String> {
    match names.len() == columns {
        true => names.to_vec(),
        false => (1..=columns).map(|i| format!("x{i}")).collect(),
    }
}

/// The maximum number of values that are searched for copies of columns. Reading this many values takes about a second.
const COMPARED: usize = 20_000_000;

const BLOCK: usize = 4096;

/// Computes the standardised units of the columns from the training rows. Only decoders of real numbers use standardised
/// units. For other decoders the values remain unchanged.
///
/// The function computes the moments of the columns block by block in one pass. The function searches for copies of
/// columns only if the values fit in memory. The function returns an error if all columns are constant.
pub(super) fn units(
    rows: &Rows,
    train: &[usize],
    likelihood: Likelihood,
    asked: Standardise,
) -> Result<Units, Error> {
    let asked = match likelihood {
        Likelihood::Gaussian { bounded: true } => Standardise::Off,
        likelihood if likelihood.is_of_reals() => asked,
        _ => return Ok(Units::as_they_are(rows.width())),
    };
    let width = rows.width();
    let read = |indices: &[usize]| {
        let mut block = vec![0.0; width * indices.len()];
        let pairs = block.chunks_exact_mut(width).zip(indices);
        pairs.for_each(|(out, index)| rows.read_exact(*index, out));
        block
    };
    let named = |error: Error| Error::Input(format!("`{}`: {error}", rows.source()));
    if width * train.len() <= COMPARED {
        return Units::of_rows(width, &read(train), asked).map_err(named);
    }
    let mut moments = vec![ColumnMoments::default(); width];
    for block in train.chunks(BLOCK) {
        let of_block = ColumnMoments::of(width, &read(block));
        let pairs = moments.iter_mut().zip(of_block);
        pairs.for_each(|(all, more)| *all = all.plus(more));
    }
    Units::of_moments(&moments, asked).map_err(named)
}

/// Checks that values are missing only if `missing` allows it, and that every row has a value in one of the `modelled`
/// columns.
pub(super) fn check_present(rows: &Rows, missing: bool, modelled: &[bool]) -> Result<(), Error> {
    let mut record = vec![0.0; rows.width()];
    for row in (0..rows.rows()).filter(|_| rows.missing() > 0) {
        rows.read(row, &mut record);
        let absent = record.iter().filter(|x| x.is_nan()).count();
        let location = format!("`{}`, row {}", rows.source(), row + 1);
        if absent > 0 && !missing {
            return Err(Error::Input(format!(
                "{location}: a value is missing, but none was missing in the rows of the fit; fill it in, or fit to rows \
                 with missing values"
            )));
        }
        let mut values = record.iter().zip(modelled).filter(|(_, own)| **own);
        if values.all(|(x, _)| x.is_nan()) {
            let text = format!("{location}: every value is missing; remove the row");
            return Err(Error::Input(text));
        }
    }
    Ok(())
}

pub(super) fn check_columns(rows: &Rows, train: &[usize]) -> Result<(), Error> {
    if rows.missing() == 0 {
        return Ok(());
    }
    let (mut row, mut present) = (vec![0.0; rows.width()], vec![false; rows.width()]);
    for index in train {
        rows.read(*index, &mut row);
        let pairs = present.iter_mut().zip(&row);
        pairs.for_each(|(present, x)| *present |= !x.is_nan());
    }
    match present.iter().position(|present| !present) {
        Some(column) => Err(Error::Input(format!(
            "`{}`: column {} has no values in the training rows; remove the column",
            rows.source(),
            column + 1
        ))),
        None => Ok(()),
    }
}

/// Returns the logarithms of the scales of the values of a record.
pub(super) fn log_scales(units: &Units, layout: Option<&TableLayout>) -> Vec<f64> {
    match layout {
        Some(layout) => layout.log_scales(units),
        None => units.log_scales(),
    }
}

/// Returns the log density of each record in the units of the data, minus its log density in the units of the networks.
/// Only observed values contribute to the difference.
pub(super) fn log_jacobians(log_scales: &[f64], records: &dyn Records) -> Vec<f64> {
    let mut record = vec![0.0; records.width()];
    let mut of_record = |index| {
        records.read(index, &mut record);
        let present = record.iter().zip(log_scales).filter(|(x, _)| !x.is_nan());
        -present.map(|(_, log_scale)| log_scale).sum::<f64>()
    };
    (0..records.len()).map(&mut of_record).collect()
}

pub(super) fn mean_log_jacobian(log_scales: &[f64], records: &dyn Records, missing: bool) -> f64 {
    match missing {
        true => log_jacobians(log_scales, records).iter().sum::<f64>() / records.len() as f64,
        false => -log_scales.iter().sum::<f64>(),
    }
}

pub(super) fn mean_total(rows: &Rows, train: &[usize]) -> Result<f32, Error> {
    let mut row = vec![0.0; rows.width()];
    let total = |index: &usize| -> f64 {
        rows.read_exact(*index, &mut row);
        row.iter().filter(|x| !x.is_nan()).sum()
    };
    let mean = train.iter().map(total).sum::<f64>() / train.len() as f64;
    if mean > 0.0 {
        return Ok(mean as f32);
    }
    Err(Error::Input(format!(
        "every count in `{}` is zero, so no row has a library size; remove --library-size",
        rows.source()
    )))
}

pub(super) enum Apart {
    None,
    File(Box<Rows>),
    Share(f64),
}

impl Apart {
    /// Parses the value of `--validation`. If the value is the name of a file, the function opens the file by `open`.
    pub fn open(
        given: Option<&str>,
        open: impl FnOnce(&Path) -> Result<Rows, Error>,
    ) -> Result<Self, Error> {
        let Some(given) = given else {
            return Ok(Self::None);
        };
        match given.parse::<f64>() {
            Ok(share) if share > 0.0 && share < 1.0 => Ok(Self::Share(share)),
            Ok(_) => Err(Error::setting(
                "--validation: a share must be between 0 and 1, such as 0.1; otherwise name a file",
            )),
            Err(_) => Ok(Self::File(Box::new(open(Path::new(given))?))),
        }
    }

    /// Returns the number of missing values in the validation file, or 0 if there is no such file.
    pub fn missing(&self) -> usize {
        match self {
            Self::File(rows) => rows.missing(),
            Self::None | Self::Share(_) => 0,
        }
    }

    /// Returns the number of values in the validation file, or 0 if there is no such file.
    pub fn values(&self) -> usize {
        match self {
            Self::File(rows) => rows.rows() * rows.width(),
            Self::None | Self::Share(_) => 0,
        }
    }

    /// Returns a digest that identifies how the validation records were chosen.
    pub fn digest(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::File(rows) => format!("+{}", rows.digest()),
            Self::Share(share) => format!("+{share}"),
        }
    }
}

pub(super) struct Parts<'a> {
    all: UnitRecords<'a>,
    other: Option<UnitRecords<'a>>,
    indices: Option<(Vec<usize>, Vec<usize>)>,
}

impl<'a> Parts<'a> {
    /// Divides the rows into training records and validation records.
    pub fn new(data: &'a VaeData, seed: u64) -> Result<Self, Error> {
        let records = |rows: &'a Rows| UnitRecords {
            rows,
            units: &data.units,
            layout: data.layout.as_ref(),
        };
        let rows = &data.rows;
        let mut parts = Self {
            all: records(rows),
            other: None,
            indices: None,
        };
        match &data.apart {
            Apart::None => {}
            Apart::File(other) => parts.other = Some(records(other)),
            Apart::Share(_) if rows.rows() < 2 => {
                return Err(Error::Input(format!(
                    "`{}` has only one row, so none can be held out for validation",
                    rows.source()
                )));
            }
            Apart::Share(share) => parts.indices = Some(split(rows.rows(), *share, seed)),
        }
        Ok(parts)
    }

    /// Returns the training records.
    pub fn train(&self) -> Selection<'_> {
        Selection {
            records: &self.all,
            indices: match &self.indices {
                Some((train, _)) => train.clone(),
                None => (0..self.all.len()).collect(),
            },
        }
    }

    /// Returns the validation records, or `None` if there are none.
    pub fn validation(&self) -> Option<Selection<'_>> {
        match (&self.indices, &self.other) {
            (Some((_, apart)), _) => Some(Selection {
                records: &self.all,
                indices: apart.clone(),
            }),
            (None, Some(other)) => Some(first(other, other.len())),
            (None, None) => None,
        }
    }
}

/// Selects the first `count` of the given records.
pub fn first(records: &dyn Records, count: usize) -> Selection<'_> {
    Selection {
        records,
        indices: (0..count.min(records.len())).collect(),
    }
}

pub(super) fn spread(records: &dyn Records, count: usize) -> Selection<'_> {
    let step = records.len().div_ceil(count.max(1)).max(1);
    Selection {
        records,
        indices: (0..records.len()).step_by(step).collect(),
    }
}
