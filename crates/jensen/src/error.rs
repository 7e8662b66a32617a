//! The errors that can occur between a model and its posterior.

use std::fmt;

use jensen_blackbox::FitError;
use jensen_blackbox::records::RecordError;
use jensen_data::DataError;
use jensen_run::{RunError, SettingError};

use crate::stan::ModelError;

/// An error that ends a fit without a result. A fit that is not trusted is not an error.
///
/// A variant that wraps an error of another crate displays it unchanged and exposes its
/// [source](std::error::Error::source).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error in the program, or data that do not match its declarations.
    Model(Box<ModelError>),
    /// An error in a data file, in points or in draws.
    Data(DataError),
    /// The fit could not be run.
    Fit(FitError),
    /// No starting point has a finite density. The message quotes the model's reason.
    NoStart(String),
    /// Records cannot be fitted by minibatches as requested.
    Records(RecordError),
    /// A run cannot be resumed from its checkpoint.
    Run(RunError),
    /// An error in the formula of a regression, or in its table.
    Regression(jensen_regress::Error),
    /// An error in a latent Gaussian model or its fit.
    #[cfg(feature = "latent")]
    Latent(jensen_latent::Error),
    /// The job needs more memory than the limit.
    Memory {
        /// The task.
        what: String,
        /// Needed bytes.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
        /// The advice.
        advice: String,
    },
    /// An input that does not match the model, such as points of another dimension.
    Input(String),
    /// A setting that is invalid or conflicts with another setting.
    Setting(String),
    /// An output that cannot be written to.
    Output(String),
}

impl Error {
    /// Returns an error of writing results.
    pub fn output(error: impl fmt::Display) -> Self {
        Self::Output(error.to_string())
    }

    /// Returns an error of a setting.
    pub fn setting(error: impl fmt::Display) -> Self {
        Self::Setting(error.to_string())
    }

    /// Returns an error of an input.
    pub fn input(error: impl fmt::Display) -> Self {
        Self::Input(error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(error) => error.fmt(f),
            Self::Data(error) => error.fmt(f),
            Self::Fit(error) => error.fmt(f),
            Self::Records(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Regression(error) => error.fmt(f),
            #[cfg(feature = "latent")]
            Self::Latent(error) => error.fmt(f),
            Self::Memory {
                what,
                needed,
                limit,
                advice,
            } => write!(
                f,
                "{what} would take {}, but the limit is {}; {advice}",
                crate::format_bytes(*needed),
                crate::format_bytes(*limit)
            ),
            Self::NoStart(message)
            | Self::Input(message)
            | Self::Setting(message)
            | Self::Output(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Model(error) => error.source(),
            Self::Data(error) => error.source(),
            Self::Fit(error) => error.source(),
            Self::Records(error) => error.source(),
            Self::Run(error) => error.source(),
            Self::Regression(error) => error.source(),
            #[cfg(feature = "latent")]
            Self::Latent(error) => error.source(),
            _ => None,
        }
    }
}

impl From<jensen_regress::Error> for Error {
    fn from(error: jensen_regress::Error) -> Self {
        Self::Regression(error)
    }
}

impl From<ModelError> for Error {
    fn from(error: ModelError) -> Self {
        Self::Model(Box::new(error))
    }
}

impl From<DataError> for Error {
    fn from(error: DataError) -> Self {
        Self::Data(error)
    }
}

impl From<SettingError> for Error {
    fn from(error: SettingError) -> Self {
        Self::setting(error)
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        Self::Records(error)
    }
}

impl From<FitError> for Error {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Records(error) => Self::Records(error),
            FitError::Run(error) => Self::Run(error),
            error => Self::Fit(error),
        }
    }
}

#[cfg(feature = "latent")]
impl From<jensen_latent::Error> for Error {
    fn from(error: jensen_latent::Error) -> Self {
        Self::Latent(error)
    }
}

impl From<RunError> for Error {
    /// Returns the error of a run that cannot be resumed with these settings.
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}
