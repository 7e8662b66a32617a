//! The errors of fits that cannot start and of invalid requests for records. The module also checks that settings are
//! positive.

use std::fmt;

use jensen_run::{RunError, SettingError, Status};

/// The reason why a fit cannot start.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FitError {
    /// The density has no coordinates.
    NoParameters,
    /// A setting is outside its range. The text identifies the setting.
    Setting(String),
    /// The initial point has the wrong number of coordinates.
    InitialPoint {
        /// The dimension of the density.
        expected: usize,
        /// The number of coordinates of the point.
        found: usize,
    },
    /// No starting point has a finite density.
    CannotStart(Status),
    /// The records cannot be fitted in the requested way.
    Records(RecordError),
    /// A checkpoint cannot be resumed.
    Run(RunError),
}

impl From<SettingError> for FitError {
    fn from(error: SettingError) -> Self {
        Self::Setting(error.to_string())
    }
}

impl From<RecordError> for FitError {
    fn from(error: RecordError) -> Self {
        Self::Records(error)
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoParameters => {
                f.write_str("the model has no parameters, so there is nothing to fit")
            }
            Self::Setting(text) => f.write_str(text),
            Self::InitialPoint { expected, found } => write!(
                f,
                "the initial point has {found} coordinates, but the model has {expected}"
            ),
            Self::CannotStart(status) => write!(f, "{status}. {}", status.advice()),
            Self::Records(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Records(error) => error.source(),
            Self::Run(error) => error.source(),
            _ => None,
        }
    }
}

/// An invalid request for records. The message of the error describes a remedy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RecordError {
    /// There are no records.
    NoRecords,
    /// The density has no parameters.
    NoParameters,
    /// The batch size is 0 or larger than the number of records.
    Batch {
        /// The requested batch size.
        batch: usize,
        /// The number of records.
        records: usize,
    },
    /// The estimator would have to read all records in every iteration.
    TooManyRecords {
        /// The name of the estimator.
        estimator: &'static str,
        /// The number of records.
        records: usize,
        /// The largest allowed number of records.
        limit: usize,
    },
    /// The tables of the estimator need more memory than the limit allows.
    Memory {
        /// The estimator that needs the memory.
        what: &'static str,
        /// The number of bytes needed, including the optimiser and the family.
        needed: u64,
        /// The memory limit in bytes.
        limit: u64,
        /// The number of bytes that the estimator `joint-svrg` needs, if it is a remedy.
        svrg: Option<u64>,
    },
    /// A number in the request is invalid, for example because there are no draws or a weight is outside its interval.
    Setting(String),
}

fn bytes(n: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KiB", "MiB", "GiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0);
    format!("{value:.digits$} {}", UNITS[unit])
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecords => f.write_str(
                "there are no records (N = 0), so there are no minibatches; fit the model without minibatches",
            ),
            Self::NoParameters => f.write_str("the model has no parameters"),
            Self::Batch { batch: 0, .. } => {
                f.write_str("a batch of 0 records: choose a batch size of at least 1")
            }
            Self::Batch { batch, records } => write!(
                f,
                "a batch of {batch} records, but there are only {records}: choose at most that many"
            ),
            Self::TooManyRecords {
                estimator,
                records,
                limit,
            } => write!(
                f,
                "the estimator `{estimator}` passes over all records in every iteration, so Jensen limits it \
                 to {limit} records ({records} here); use `joint`, which has the smaller variance at the cost \
                 of a minibatch"
            ),
            Self::Memory {
                what,
                needed,
                limit,
                svrg,
            } => {
                write!(
                    f,
                    "{what} would need {}, but the limit is {}",
                    bytes(*needed),
                    bytes(*limit)
                )?;
                match svrg {
                    Some(svrg) => write!(
                        f,
                        "; the estimator `joint-svrg` needs only {}, and one more pass over the data per epoch",
                        bytes(*svrg)
                    ),
                    None => f.write_str("; raise the memory limit or use a larger batch"),
                }
            }
            Self::Setting(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for RecordError {}

/// Checks that settings are positive and finite.
///
/// # Errors
/// Fails with a sentence that contains the first setting that is not positive and finite.
pub(crate) fn positive<const N: usize>(settings: [(&str, f64); N]) -> Result<(), SettingError> {
    match settings.iter().find(|(_, x)| !(*x > 0.0 && x.is_finite())) {
        Some((name, value)) => Err(SettingError::new(format!(
            "the setting {name} must be positive, not {value}"
        ))),
        None => Ok(()),
    }
}
