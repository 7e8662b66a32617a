//! Errors of files and of the data in them.

use std::fmt;
use std::path::{Path, PathBuf};

/// The error type of this crate. `Display` prints the full message for the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DataError {
    /// A file operation failed.
    Io {
        /// The operation as a verb phrase, such as `write`, `read` or `create the folder`.
        action: &'static str,
        /// The file or folder that the user named, which is never a temporary file.
        path: PathBuf,
        /// The kind of the error, for programs.
        kind: std::io::ErrorKind,
        /// The message of the operating system, with advice if the cause is well known.
        message: String,
    },
    /// A data file does not follow its format.
    Parse(Box<ParseError>),
    /// A variable is not in the data.
    Missing {
        /// The name of the variable.
        name: String,
        /// The type that the model declares, or an empty text if the caller did not state it.
        expected: String,
        /// The most similar name in the data, if one is close.
        suggestion: Option<String>,
        /// The names in the data, in the order of the file.
        available: Vec<String>,
    },
    /// A variable has a type or shape other than the declared one.
    Mismatch {
        /// The name of the variable, to which tuple slots are appended as in `t.1`.
        variable: String,
        /// The declared type with its sizes, for example `array[8] real`.
        expected: String,
        /// A description of the data, for example `7 numbers (shape [7])`.
        found: String,
    },
    /// An input of the caller is inconsistent, such as wrong lengths, a foreign folder, or an unreadable artefact.
    Invalid {
        /// The full message.
        message: String,
    },
}

/// An error at a position of a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The name of the file, or the caller's label for a text.
    pub source: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// A description of the error.
    pub message: String,
    /// The part of the line around the position.
    pub excerpt: String,
    /// The number of characters of `excerpt` before the position.
    pub excerpt_offset: usize,
}

const TOO_MANY_FILES: i32 = 24;

impl DataError {
    /// Creates an error from an error of the operating system. `path` is the file that the user named.
    pub fn io(action: &'static str, path: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let advice = match error.kind() {
            K::StorageFull | K::QuotaExceeded => "; free some space or choose another folder",
            K::PermissionDenied => "; check the permissions of the folder",
            K::ReadOnlyFilesystem => "; choose a folder that you can write to",
            _ if cfg!(unix) && error.raw_os_error() == Some(TOO_MANY_FILES) => {
                "; raise `ulimit -n`"
            }
            _ => "",
        };
        // `kind` describes most errors of the operating system clearly. For other errors, the system's own text is
        // used.
        let text = match error.raw_os_error() {
            Some(_) if error.kind() == K::NotFound => "there is no such file or folder".to_owned(),
            Some(_) if error.kind().to_string() != "uncategorized error" => {
                error.kind().to_string()
            }
            _ => error.to_string(),
        };
        Self::Io {
            action,
            path: path.to_path_buf(),
            kind: error.kind(),
            message: format!("{text}{advice}"),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid {
            message: message.into(),
        }
    }
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io {
                action,
                path,
                message,
                ..
            } => write!(f, "cannot {action} `{}`: {message}", path.display()),
            Self::Parse(error) => error.fmt(f),
            Self::Missing {
                name,
                expected,
                suggestion,
                available,
            } => {
                write!(f, "data variable `{name}` is missing")?;
                if !expected.is_empty() {
                    write!(f, ": expected {expected}")?;
                }
                match suggestion {
                    Some(near) => write!(f, "; did you mean `{near}`?"),
                    None if available.is_empty() => write!(f, "; the data have no variables"),
                    None => {
                        const SHOWN: usize = 12;
                        let names: Vec<_> = available
                            .iter()
                            .take(SHOWN)
                            .map(|n| format!("`{n}`"))
                            .collect();
                        write!(f, "; the data holds {}", names.join(", "))?;
                        match available.len().checked_sub(SHOWN) {
                            Some(more @ 1..) => write!(f, " and {more} more"),
                            _ => Ok(()),
                        }
                    }
                }
            }
            Self::Mismatch {
                variable,
                expected,
                found,
            } => {
                write!(
                    f,
                    "data variable `{variable}`: expected {expected}, found {found}"
                )
            }
            Self::Invalid { message } => f.write_str(message),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        writeln!(
            f,
            "{}:{}:{}: {}",
            self.source, self.line, self.column, self.message
        )?;
        writeln!(f, " {number} | {}", self.excerpt)?;
        write!(f, " {margin} | {}^", " ".repeat(self.excerpt_offset))
    }
}

impl std::error::Error for DataError {}
impl std::error::Error for ParseError {}
