//! Errors that occur while files are read and written, and errors in the data that the files contain.

use std::fmt;
use std::path::{Path, PathBuf};

/// The error type of this crate. Its `Display` implementation prints the complete message for the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DataError {
    /// A file operation failed.
    Io {
        /// The operation that failed. It is a verb phrase such as `write`, `read` or `create the folder`.
        action: &'static str,
        /// The file or folder that the user specified, even if the operation failed on a temporary file.
        path: PathBuf,
        /// The kind of the error, for use by programs.
        kind: std::io::ErrorKind,
        /// The message of the operating system. If a likely cause is known, the message includes advice.
        message: String,
    },
    /// A data file does not follow its format.
    Parse(Box<ParseError>),
    /// A variable is missing from the data.
    Missing {
        /// The name of the variable.
        name: String,
        /// The type that the model declares. The text is empty if the caller did not specify the type.
        expected: String,
        /// The name in the data that is most similar to the missing name, if there is a similar one.
        suggestion: Option<String>,
        /// The names of all variables in the data, in the order of the file.
        available: Vec<String>,
    },
    /// The type or the shape of a variable differs from the declaration in the model.
    Mismatch {
        /// The name of the variable. For a slot of a tuple, the number of the slot is appended, as in `t.1`.
        variable: String,
        /// The declared type including its sizes, for example `array[8] real`.
        expected: String,
        /// A description of the value in the data, for example `7 numbers (shape [7])`.
        found: String,
    },
    /// An argument of the caller is invalid. Examples are wrong lengths, a folder that was not written by Jensen, and
    /// an artefact that cannot be read.
    Invalid {
        /// The complete error message.
        message: String,
    },
}

/// An error at a particular position of a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The name of the file. For a text that is not a file, it is the label that the caller supplied.
    pub source: String,
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The position in the line in characters, counted from 1.
    pub column: usize,
    /// A description of what is wrong at this position.
    pub message: String,
    /// The part of the line that surrounds the position.
    pub excerpt: String,
    /// The number of characters of `excerpt` that precede the position.
    pub excerpt_offset: usize,
}

const TOO_MANY_FILES: i32 = 24;

impl DataError {
    /// Creates an error from an error of the operating system. `path` is the file or folder that the user specified.
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
        // For most errors of the operating system, `kind` is a clear description. For other errors, the text of the
        // operating system is used.
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
