//! Rows and what they are checked for.

use std::path::Path;

use jensen_data::Rows;
use jensen_neural::{Likelihood, Records, Selection};

use super::{RowRecords, check_values, split};
use crate::Error;

/// Extents of a record: as the file has them, or of the images that the user says they are.
pub(super) fn extents(rows: &Rows, image: Option<(usize, usize)>) -> Result<Vec<usize>, Error> {
    let Some((width, height)) = image else {
        return Ok(rows.extents().to_vec());
    };
    if width * height != rows.width() {
        return Err(Error::Setting(format!(
            "--image {width}x{height} are {} pixels, and a row of `{}` has {} numbers",
            width * height,
            rows.source(),
            rows.width()
        )));
    }
    Ok(vec![height, width])
}

/// Refuses rows that the decoder cannot have made, or that are not as wide as those of the fit.
///
/// # Errors
/// What is wrong with them.
pub fn check_rows(rows: &Rows, width: usize, likelihood: Likelihood) -> Result<(), Error> {
    if rows.width() != width {
        return Err(Error::Input(format!(
            "rows of `{}` have {} numbers, those of the fit {width}",
            rows.source(),
            rows.width()
        )));
    }
    check_values(rows, likelihood).map_err(|error| {
        Error::Input(format!(
            "{error}\nscale the data to its domain, or choose another decoder (--decoder gaussian)"
        ))
    })
}

/// Where validation records come from.
pub(super) enum Apart {
    /// There are none.
    None,
    /// From a file.
    File(Rows),
    /// So many of the data.
    Share(f64),
}

impl Apart {
    /// Reads `--validation`.
    pub fn open(given: Option<&str>) -> Result<Self, Error> {
        let Some(given) = given else {
            return Ok(Self::None);
        };
        match given.parse::<f64>() {
            Ok(share) if share > 0.0 && share < 1.0 => Ok(Self::Share(share)),
            Ok(_) => Err(Error::setting(
                "--validation: a share lies between 0 and 1, such as 0.1; otherwise name a file",
            )),
            Err(_) => Ok(Self::File(Rows::open(Path::new(given))?)),
        }
    }

    /// A digest of what is validated on.
    pub fn digest(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::File(rows) => format!("+{}", rows.digest()),
            Self::Share(share) => format!("+{share}"),
        }
    }
}

/// Training and validation records.
pub(super) struct Parts<'a> {
    all: RowRecords<'a>,
    other: Option<RowRecords<'a>>,
    indices: Option<(Vec<usize>, Vec<usize>)>,
}

impl<'a> Parts<'a> {
    /// Sets records apart.
    pub fn new(rows: &'a Rows, apart: &'a Apart, seed: u64) -> Result<Self, Error> {
        let mut parts = Self {
            all: RowRecords(rows),
            other: None,
            indices: None,
        };
        match apart {
            Apart::None => {}
            Apart::File(other) => parts.other = Some(RowRecords(other)),
            Apart::Share(_) if rows.rows() < 2 => {
                return Err(Error::Input(format!(
                    "`{}` has one row, of which none can be set apart for validation",
                    rows.source()
                )));
            }
            Apart::Share(share) => parts.indices = Some(split(rows.rows(), *share, seed)),
        }
        Ok(parts)
    }

    /// The training records.
    pub fn train(&self) -> Selection<'_> {
        Selection {
            records: &self.all,
            indices: match &self.indices {
                Some((train, _)) => train.clone(),
                None => (0..self.all.len()).collect(),
            },
        }
    }

    /// The validation records.
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

/// The first `count` records.
pub fn first(records: &dyn Records, count: usize) -> Selection<'_> {
    Selection {
        records,
        indices: (0..count.min(records.len())).collect(),
    }
}

/// At most `count` records, evenly spaced.
pub(super) fn spread(records: &dyn Records, count: usize) -> Selection<'_> {
    let step = records.len().div_ceil(count.max(1)).max(1);
    Selection {
        records,
        indices: (0..records.len()).step_by(step).collect(),
    }
}
