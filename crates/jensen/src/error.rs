//! What can go wrong between a model and its posterior.

use std::fmt;

use jensen_blackbox::FitError;
use jensen_blackbox::records::RecordError;
use jensen_data::DataError;
use jensen_run::RunError;

use crate::stan::ModelError;

/// Everything that ends the pipeline without a result. A fit that is not to be trusted is no error.
#[derive(Clone, Debug)]
pub enum Error {
    /// The program, or its data under the program's declarations.
    Model(Box<ModelError>),
    /// A data file, points or draws.
    Data(DataError),
    /// The fit could not be run.
    Fit(FitError),
    /// No starting point has a finite density, with the model's own words for why.
    NoStart(String),
    /// Records cannot be fitted by minibatches as asked.
    Records(RecordError),
    /// A latent Gaussian model, or its fit.
    #[cfg(feature = "latent")]
    Latent(jensen_latent::Error),
    /// It would take more memory than allowed.
    Memory {
        /// What was to be done.
        what: String,
        /// Bytes it would take.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
        /// What to do instead.
        advice: String,
    },
    /// An input that does not fit the model (points of another dimension, …).
    Input(String),
    /// A setting that cannot be, or that does not go with another one.
    Setting(String),
    /// A place that cannot be written to.
    Output(String),
}

impl Error {
    /// What keeps results from being written.
    pub fn output(error: impl fmt::Display) -> Self {
        Self::Output(error.to_string())
    }

    /// What is wrong with a setting.
    pub fn setting(error: impl fmt::Display) -> Self {
        Self::Setting(error.to_string())
    }

    /// What is wrong with an input.
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
            #[cfg(feature = "latent")]
            Self::Latent(error) => error.fmt(f),
            Self::Memory {
                what,
                needed,
                limit,
                advice,
            } => write!(
                f,
                "{what} would take {}, the limit is {}; {advice}",
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

impl std::error::Error for Error {}

impl From<jensen_regress::Error> for Error {
    fn from(error: jensen_regress::Error) -> Self {
        Self::Input(error.to_string())
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

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        Self::Records(error)
    }
}

impl From<FitError> for Error {
    fn from(error: FitError) -> Self {
        match error {
            FitError::Records(error) => Self::Records(error),
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
    /// A run that cannot be resumed was asked for with the wrong settings.
    fn from(error: RunError) -> Self {
        Self::setting(error)
    }
}
