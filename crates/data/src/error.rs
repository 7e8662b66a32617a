//! Errors of files and of their data.

use std::fmt;
use std::path::{Path, PathBuf};

/// Every error of this crate. `Display` is the full message meant for the user.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum DataError {
    /// The operating system refused a file operation.
    Io {
        /// The failed action, as a verb phrase: `write`, `read`, `create the folder`.
        action: &'static str,
        /// The file or folder in the user's terms (never a temporary file).
        path: PathBuf,
        /// The kind of failure, for programs.
        kind: std::io::ErrorKind,
        /// The system's message, with advice if the cause is well known.
        message: String,
    },
    /// A data file does not follow its format.
    Parse(Box<ParseError>),
    /// A variable is not in the data.
    Missing {
        /// The requested variable.
        name: String,
        /// The type that the model declares, if the caller gave it.
        expected: String,
        /// The most similar name in the data, if one is close.
        suggestion: Option<String>,
        /// The names in the data, in file order.
        available: Vec<String>,
    },
    /// A variable has another type or shape.
    Mismatch {
        /// The variable, with tuple fields appended as `t.1`.
        variable: String,
        /// The declared type with its sizes, for example `array[8] real`.
        expected: String,
        /// The content of the data, for example `7 numbers (shape [7])`.
        found: String,
    },
    /// The caller's own input is inconsistent (wrong lengths, a foreign folder, an unreadable artefact).
    Invalid {
        /// The full message.
        message: String,
    },
}

/// A position in a data file and the error there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The file, or the caller's label for a text.
    pub source: String,
    /// 1-based line.
    pub line: usize,
    /// 1-based column in characters.
    pub column: usize,
    /// The message.
    pub message: String,
    /// The part of the line around the position.
    pub excerpt: String,
    /// Number of characters of `excerpt` before the position.
    pub excerpt_offset: usize,
}

/// The number of the error `EMFILE` on Unix.
const TOO_MANY_FILES: i32 = 24;

impl DataError {
    /// Wraps a system error with the file's name for the user.
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
        // `kind` has a clear description for most system errors. Other errors have their own text.
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
