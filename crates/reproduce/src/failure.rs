//! The reasons why a reproduction ends early.

use std::fmt;

use jensen::data::DataError;

/// The reason why a reproduction ended early. Rows that were already complete have been written to disk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// The user requested an item that does not exist. The message lists the existing items.
    Usage(String),
    /// Data are missing or not in the expected form. The message describes how to obtain them.
    Data(String),
    /// The results of the reproduction could not be written.
    Output(String),
    /// A method could not be run. A fit that was run but failed does not cause this error. Its row contains a note
    /// instead.
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
    /// This conversion is only for errors of readers. Errors of writers are converted where they occur.
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
