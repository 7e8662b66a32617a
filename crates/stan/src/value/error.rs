//! The errors that end an evaluation.

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::program::Span;

/// The reason why an evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The point was rejected. The program called `reject(…)`, an argument was outside a function's domain, or a
    /// transformed parameter violated its constraint. Another point may be valid.
    Rejected,
    /// The program fails at every point, for example because an index is out of bounds, because sizes do not match, or
    /// because the program calls `fatal_error(…)`.
    Failed,
    /// The data do not match their declarations.
    Data,
    /// The program uses a feature of the language that this evaluator lacks.
    Unsupported,
    /// The evaluation reached a limit on steps, time or nodes. An evaluation with a higher limit might succeed.
    Limit,
    /// Calls are nested too deeply, a value is too large, or a call has too many terms. A higher limit on steps or time
    /// does not help.
    Excess,
    /// The log density is not a sum over exchangeable records.
    Records,
}

/// The error that ended an evaluation, with its source location.
#[derive(Clone, Debug, PartialEq)]
pub struct EvalError {
    /// The reason.
    pub kind: ErrorKind,
    /// The message, which consists of one line and does not contain the position.
    pub message: String,
    /// The expression, statement or declaration at which the evaluation ended.
    pub span: Span,
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for EvalError {}

/// The result of an evaluation.
pub type Eval<T> = Result<T, Box<EvalError>>;

/// The error of a library function. The caller adds the location.
#[derive(Clone, Debug, PartialEq)]
pub struct FnError {
    /// The reason.
    pub kind: ErrorKind,
    /// The message, which consists of one line.
    pub message: String,
}

impl FnError {
    /// Creates the error for an argument outside the domain of a function. The error rejects the point.
    pub fn domain(message: impl Into<String>) -> FnError {
        FnError {
            kind: ErrorKind::Rejected,
            message: message.into(),
        }
    }

    /// Creates the error for sizes or values that are wrong at every point.
    pub fn invalid(message: impl Into<String>) -> FnError {
        FnError {
            kind: ErrorKind::Failed,
            message: message.into(),
        }
    }

    /// Creates the error for a feature of the language that this evaluator lacks.
    pub fn unsupported(message: impl Into<String>) -> FnError {
        FnError {
            kind: ErrorKind::Unsupported,
            message: message.into(),
        }
    }

    /// Creates the error for an evaluation that exceeds a limit.
    pub fn limit(message: impl Into<String>) -> FnError {
        FnError {
            kind: ErrorKind::Limit,
            message: message.into(),
        }
    }

    /// Creates the error for an evaluation that exceeds a fixed limit, which the caller cannot raise.
    pub fn excess(message: impl Into<String>) -> FnError {
        FnError {
            kind: ErrorKind::Excess,
            message: message.into(),
        }
    }

    /// Creates the error for a construct that couples records, so that the log density is not a sum over the records.
    pub fn records(message: impl Into<String>) -> FnError {
        FnError {
            kind: ErrorKind::Records,
            message: message.into(),
        }
    }

    /// Adds the source location.
    pub fn at(self, span: Span) -> Box<EvalError> {
        Box::new(EvalError {
            kind: self.kind,
            message: self.message,
            span,
        })
    }
}

impl fmt::Display for FnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for FnError {}

/// The result of a library function.
pub type FnResult<T> = Result<T, FnError>;

/// Returns the reason why evaluations must end, or `None` if they may continue.
type Asked = dyn Fn() -> Option<String> + Send + Sync;

type Start = fn(Box<dyn FnOnce() + Send>);

const PERIOD: Duration = Duration::from_millis(20);

/// An interrupt that ends evaluations on request, for example when a time limit has expired. Without an interrupt, only
/// [`Limits`] end an evaluation.
#[derive(Clone, Default)]
pub struct Halt {
    asked: Option<Arc<Asked>>,
    apart: Option<Start>,
}

impl Halt {
    /// Creates an interrupt that ends evaluations once `asked` returns a reason. Every evaluating thread calls `asked`
    /// a few thousand times per second.
    pub fn new(asked: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self {
            asked: Some(Arc::new(asked)),
            apart: None,
        }
    }

    /// Runs long calls on threads that `start` creates, so that an interrupted evaluation can abandon such a call.
    /// Separate threads are necessary because calls such as factorisations do not check the interrupt. An abandoned
    /// call continues to run until its result is complete or the process ends.
    pub fn apart(self, start: Start) -> Self {
        Self {
            apart: Some(start),
            ..self
        }
    }

    /// Returns whether long calls run on separate threads.
    pub fn is_apart(&self) -> bool {
        self.asked.is_some() && self.apart.is_some()
    }

    /// Runs `work`, which may take a long time.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Limit`] if an interrupt is pending.
    pub fn during<T: Send + 'static>(
        &self,
        span: Span,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Eval<T> {
        let Some(start) = self.apart.filter(|_| self.asked.is_some()) else {
            return Ok(work());
        };
        let (done, waiting) = mpsc::channel();
        // The caller may have stopped waiting.
        start(Box::new(move || drop(done.send(work()))));
        loop {
            match waiting.recv_timeout(PERIOD) {
                Ok(made) => return Ok(made),
                Err(RecvTimeoutError::Timeout) => self.check(span)?,
                Err(RecvTimeoutError::Disconnected) => panic!("a call of the library panicked"),
            }
        }
    }

    /// Returns the error that ends the evaluation at `span`, if an interrupt is pending.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Limit`] if an interrupt is pending.
    pub fn check(&self, span: Span) -> Eval<()> {
        match self.reason() {
            None => Ok(()),
            Some(message) => Err(FnError::limit(message).at(span)),
        }
    }

    /// Returns the reason for a pending interrupt, if any.
    pub fn reason(&self) -> Option<String> {
        self.asked.as_ref().and_then(|asked| asked())
    }
}

impl fmt::Debug for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.asked.is_some() { "Halt" } else { "None" })
    }
}

/// The limits of an evaluation. An evaluation that exceeds one of these limits ends with [`ErrorKind::Limit`] or
/// [`ErrorKind::Excess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest number of statements and calls per evaluation.
    pub steps: u64,
    /// The largest nesting depth of expressions, statements and calls.
    pub depth: u32,
    /// The largest size of one declared value, in bytes.
    pub bytes: u64,
}

impl Default for Limits {
    /// Allows 2·10⁸ steps, which take about ten seconds, a depth of 1000, and 2 GiB per value.
    fn default() -> Self {
        Limits {
            steps: 200_000_000,
            depth: 1000,
            bytes: MAX_VALUE_BYTES,
        }
    }
}

/// The default value of [`Limits::bytes`], and the limit for the values of library functions.
pub const MAX_VALUE_BYTES: u64 = 2 << 30;

/// Fails if a value of `elements` scalars of `size` bytes each would take more than `limit` bytes.
pub fn check_bytes(what: &str, elements: f64, size: usize, limit: u64) -> FnResult<()> {
    let bytes = elements * size as f64;
    if bytes > limit as f64 {
        return Err(FnError::excess(format!(
            "{what} has {elements} elements and would take {}, the limit is {}",
            show_bytes(bytes),
            show_bytes(limit as f64)
        )));
    }
    Ok(())
}

/// One call of a library function may add or multiply at most this many terms. A call with this many terms takes a
/// fraction of a second.
pub const MAX_TERMS: f64 = 4e6;

/// Fails if a call of the function `what` has too many terms.
///
/// # Errors
/// Fails with [`ErrorKind::Excess`] if there are more than [`MAX_TERMS`].
pub fn check_terms(what: &str, terms: f64) -> FnResult<()> {
    if terms > MAX_TERMS {
        return Err(FnError::excess(format!(
            "{what} would go through {terms} terms, the limit is {MAX_TERMS}"
        )));
    }
    Ok(())
}

/// Formats a size in bytes, such as `1.500 GiB`.
pub fn show_bytes(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.3} {}", UNITS[unit])
}

/// Checks that a call of the hypergeometric function 3F2 has three numerator and two denominator parameters.
///
/// # Errors
/// Fails unless `above` is 3 and `below` is 2.
pub fn check_three_two(name: &str, above: usize, below: usize) -> FnResult<()> {
    if (above, below) != (3, 2) {
        return Err(FnError::invalid(format!(
            "{name}: expected 3 numbers above and 2 below, found {above} and {below}"
        )));
    }
    Ok(())
}
