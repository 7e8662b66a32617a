//! Errors of a model, its data or a request.

use std::fmt;

use jensen_run::RunError;

/// An error in a latent Gaussian model, its data or a request. A fit that does not converge is not an error: its
/// [`jensen_run::Status`] says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The observations do not match the likelihood, the design or each other.
    Data(String),
    /// The prior is indefinite, disconnected or of the wrong size, or one of its hyperparameters is out of range.
    Prior(String),
    /// The combination of likelihood, bound, solver and prior is not supported.
    Unsupported(String),
    /// A run could not be resumed.
    Run(RunError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(text) | Self::Prior(text) | Self::Unsupported(text) => f.write_str(text),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Self::Run(error)
    }
}
