//! The error type of this crate.

use std::fmt;

use jensen_blackbox::FitError;
use jensen_blackbox::records::RecordError;
use jensen_data::DataError;
use jensen_run::{RunError, SettingError};

use crate::stan::ModelError;

/// An error that prevents a result. A finished fit that is not trusted is not an error.
///
/// A variant that wraps an error of another crate displays the message of that error unchanged and returns its
/// [source](std::error::Error::source).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The program has an error, or the data do not match its declarations.
    Model(Box<ModelError>),
    /// A data file, a set of points or a set of draws has an error.
    Data(DataError),
    /// The fit could not be run.
    Fit(FitError),
    /// The density is not finite at any starting point. The string quotes the reason that the model gives.
    NoStart(String),
    /// The program's records cannot be fitted by minibatches in the requested way.
    Records(RecordError),
    /// The run cannot be resumed from its checkpoint.
    Run(RunError),
    /// The formula or the table of a regression has an error.
    Regression(jensen_regress::Error),
    /// A latent Gaussian model or its fit has an error.
    #[cfg(feature = "latent")]
    Latent(jensen_latent::Error),
    /// The job would need more memory than the memory limit allows.
    Memory {
        /// The part of the job that needs the memory.
        what: String,
        /// The number of bytes that the job needs.
        needed: u64,
        /// The number of bytes that the job is allowed to use.
        limit: u64,
        /// Advice on how to reduce the memory that the job needs.
        advice: String,
    },
    /// An input does not match the model, for example because a point has the wrong dimension.
    Input(String),
    /// A setting is invalid or conflicts with another setting.
    Setting(String),
    /// An output cannot be written.
    Output(String),
}

impl Error {
    /// Creates an error for an output that cannot be written.
    pub fn output(error: impl fmt::Display) -> Self {
        Self::Output(error.to_string())
    }

    /// Creates an error for an invalid setting.
    pub fn setting(error: impl fmt::Display) -> Self {
        Self::Setting(error.to_string())
    }

    /// Creates an error for an invalid input.
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
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}
