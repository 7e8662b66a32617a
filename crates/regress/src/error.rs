//! Errors in a formula, a prior or a table, with their locations.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A range of bytes in a text, with an exclusive end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The index of the first byte.
    pub start: usize,
    /// The index of the byte after the last one.
    pub end: usize,
}

impl Span {
    /// Returns the range from the start of this range to the end of the other.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}

/// An error in a formula, a prior or a table. Its `Display` implementation underlines the location and adds the remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// The problem, as a sentence without a full stop.
    pub message: String,
    /// The text that contains the error and the location in it, if the error has a location.
    pub place: Option<(String, Span)>,
    /// The remedy, or an empty string if none is known.
    pub help: String,
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error without a location in a text.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: None,
            help: String::new(),
        }
    }

    /// Creates an error at a location in a text.
    pub fn at(text: &str, span: Span, message: impl Into<String>) -> Self {
        Self {
            place: Some((text.to_owned(), span)),
            ..Self::new(message)
        }
    }

    /// Adds a remedy to the error.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// Adds a location to the error if it has none.
    #[must_use]
    pub fn or_at(mut self, text: &str, span: Span) -> Self {
        self.place.get_or_insert_with(|| (text.to_owned(), span));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some((text, span)) = &self.place {
            // A formula may span several lines, but the message shows it on one line.
            let shown: String = text
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect();
            let before = text[..span.start].chars().count();
            let wide = text[span.start..span.end].chars().count().max(1);
            write!(
                f,
                "\n  {shown}\n  {}{}",
                " ".repeat(before),
                "^".repeat(wide)
            )?;
        }
        if !self.help.is_empty() {
            write!(f, "\n{}", self.help)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
