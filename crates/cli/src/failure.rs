//! Exit codes of commands, and messages about failures.

use std::io::Write;

use jensen::Error;
use jensen::blackbox::FitError;
pub use jensen::data::text::harmless;
use jensen::run::Status;

/// The outcome of a command. It determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Done = 0,
    Usage = 2,
    Input = 3,
    Untrusted = 4,
    Internal = 5,
    Interrupted = 130,
}

/// A failure that leaves a command without a result.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    message: String,
}

pub type CommandResult = Result<Exit, Failure>;

impl Failure {
    /// Creates the failure that reports a wrong command line.
    pub fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.into(),
        }
    }

    /// Creates the failure that reports an invalid model or invalid data.
    pub fn input(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Input,
            message: message.into(),
        }
    }

    /// Creates the failure that reports that a result cannot be written.
    pub fn output(error: impl std::fmt::Display) -> Self {
        Self::usage(error.to_string())
    }

    /// Returns the JSON object that is printed when a command has no result.
    pub fn to_json(&self) -> String {
        let object = serde_json::json!({
            "status": "failed",
            "trusted": false,
            "error": self.message.trim_end(),
            "exit_code": self.exit as u8,
        });
        format!("{object:#}\n")
    }

    /// Prints the message to standard error.
    pub fn report(&self) {
        let message = self.message.trim_end();
        // Diagnostics already begin with a heading.
        let heading = if message.starts_with("error") || message.starts_with("warning") {
            ""
        } else {
            "error: "
        };
        remark(&format!("{heading}{message}"));
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            // The model is valid, but the run was interrupted before its first evaluations had finished.
            Error::Fit(FitError::CannotStart(Status::Interrupted { .. })) => Exit::Interrupted,
            Error::Fit(FitError::CannotStart(Status::BudgetReached { .. })) => Exit::Usage,
            // If no starting point can be evaluated, the fit has failed. Its status states the reason.
            Error::Fit(FitError::CannotStart(_)) | Error::NoStart(_) => Exit::Untrusted,
            Error::Run(_) | Error::Setting(_) | Error::Output(_) => Exit::Usage,
            _ => Exit::Input,
        };
        Self {
            exit,
            message: error.to_string(),
        }
    }
}

impl From<jensen::data::DataError> for Failure {
    fn from(error: jensen::data::DataError) -> Self {
        Error::from(error).into()
    }
}

/// Prints one line about a panic. This function is installed as the panic hook.
pub fn report_panic(info: &std::panic::PanicHookInfo<'_>) {
    let what = info
        .payload()
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| info.payload().downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown".into());
    let what = what.replace('\n', " ");
    let location = info
        .location()
        .map(|at| format!(" ({}:{})", at.file(), at.line()))
        .unwrap_or_default();
    let _ = writeln!(
        std::io::stderr(),
        "error: this is a bug in Jensen {}; please report it, with the model and data: {what}{location}",
        env!("CARGO_PKG_VERSION")
    );
}

/// Writes to standard output. If the reader has closed the pipe, as in `jensen … | head`, this is not a failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out
        .write_all(harmless(text).as_bytes())
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::output(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Prints a remark to standard error. A remark does not report a failure.
pub fn remark(text: &str) {
    remark_coloured(&harmless(text));
}

/// Like [`remark`], but for text in which the command itself has set colours.
pub fn remark_coloured(text: &str) {
    // If standard error is closed, this failure cannot be reported.
    let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
}
