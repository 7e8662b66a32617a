//! The reasons to end a reproduction early.

use std::fmt;

use jensen::data::DataError;

/// The reason why a reproduction ended early. Complete rows are already on disk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// The user requested an unknown item. The message lists the alternatives.
    Usage(String),
    /// Data are missing or not as expected. The message describes how to obtain them.
    Data(String),
    /// Results could not be written.
    Output(String),
    /// A method could not run. A fit that ran and failed is a row with a note instead of an error.
    Method(String),
    /// The user interrupted the command.
    Stopped,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message)
            | Self::Data(message)
            | Self::Output(message)
            | Self::Method(message) => f.write_str(message),
            Self::Stopped => f.write_str("stopped; run the same command with --resume to continue"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<DataError> for Failure {
    /// Converts errors of readers. Errors of writers are converted where they occur.
    fn from(error: DataError) -> Self {
        Self::Data(error.to_string())
    }
}

impl From<jensen::Error> for Failure {
    fn from(error: jensen::Error) -> Self {
        match error {
            jensen::Error::Data(error) => error.into(),
            other => Self::Method(other.to_string()),
        }
    }
}
