//! What is wrong with a formula, a prior or a table, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Bytes of a text, the end not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first.
    pub start: usize,
    /// The one after the last.
    pub end: usize,
}

impl Span {
    /// From where this one begins to where the other one ends.
    pub fn to(self, other: Self) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}

/// One thing that is wrong; `Display` shows the place underlined and the way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What, in a sentence without full stop.
    pub message: String,
    /// The text and the place in it, where it is in one.
    pub place: Option<(String, Span)>,
    /// The way out; may be empty.
    pub help: String,
}

/// What this crate answers.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Something that is in no text.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            place: None,
            help: String::new(),
        }
    }

    /// Something at a place of a text.
    pub fn at(text: &str, span: Span, message: impl Into<String>) -> Self {
        Self {
            place: Some((text.to_owned(), span)),
            ..Self::new(message)
        }
    }

    /// The same with the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }

    /// The same at this place, where it has none.
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
            // A formula may come over several lines, and is shown as one.
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
