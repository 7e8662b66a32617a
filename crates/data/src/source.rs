//! A cursor over the text of a data file. The cursor adds the location to error messages.

use crate::error::{DataError, ParseError};

/// The number of characters that are shown on either side of an error. A data file often has megabytes of text on one
/// line.
const EXCERPT_REACH: usize = 36;

pub(crate) struct Cursor<'a> {
    pub text: &'a str,
    pub bytes: &'a [u8],
    pub pos: usize,
    label: &'a str,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str, label: &'a str) -> Self {
        // A byte-order mark is not part of either format, but some editors write one.
        let pos = if text.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        Self {
            text,
            bytes: text.as_bytes(),
            pos,
            label,
        }
    }

    /// Returns the bytes as text. Fails at the first byte that is not valid UTF-8.
    pub fn text_of(bytes: &'a [u8], label: &'a str) -> Result<&'a str, DataError> {
        std::str::from_utf8(bytes).map_err(|e| {
            let valid = std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default();
            Cursor::new(valid, label)
                .error(valid.len(), "the file is not UTF-8 text from this byte on")
        })
    }

    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Consumes `byte` if it is the next byte.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.pos += usize::from(hit);
        hit
    }

    /// Consumes `word` if it is next and if the following character cannot be part of a name.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let hit = self.bytes[self.pos..].starts_with(word.as_bytes())
            && !self
                .bytes
                .get(self.pos + word.len())
                .is_some_and(|b| is_name_byte(*b));
        if hit {
            self.pos += word.len();
        }
        hit
    }

    /// Describes the text at the cursor, for use in messages of the form "found …".
    pub fn found(&self) -> String {
        let rest = &self.text[self.pos..];
        match rest.chars().next() {
            None => "the end of the file".to_string(),
            Some(c) if c.is_alphanumeric() || c == '_' => {
                let word: String = rest
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .take(20)
                    .collect();
                format!("`{word}`")
            }
            Some(c) if c.is_control() => format!("the control character U+{:04X}", u32::from(c)),
            Some(c) => format!("`{c}`"),
        }
    }

    /// Creates an error at the cursor. The message states what was expected and, if it is known, the `location`.
    pub fn unexpected(&self, wanted: &str, location: Option<String>) -> DataError {
        let prefix = location.map_or_else(String::new, |location| format!("{location}: "));
        let message = match self.peek() {
            None => format!("{prefix}the file ends where {wanted} should follow; is it truncated?"),
            Some(_) => format!("{prefix}expected {wanted}, found {}", self.found()),
        };
        self.error(self.pos, message)
    }

    /// Creates an error at byte offset `at`, which must be a character boundary.
    pub fn error(&self, at: usize, message: impl Into<String>) -> DataError {
        let at = at.min(self.text.len());
        let before = &self.text[..at];
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let end = self.text[at..]
            .find('\n')
            .map_or(self.text.len(), |i| at + i);
        let column = self.text[start..at].chars().count() + 1;

        let skipped = (column - 1).saturating_sub(EXCERPT_REACH);
        let left: String = self.text[start..at].chars().skip(skipped).collect();
        let mut right: String = self.text[at..end].chars().take(EXCERPT_REACH).collect();
        if right.len() < end - at {
            right.push('…');
        }
        let left = if skipped > 0 {
            format!("…{left}")
        } else {
            left
        };
        let printable = |s: &str| {
            s.chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect::<String>()
        };
        DataError::Parse(Box::new(ParseError {
            source: self.label.to_string(),
            line,
            column,
            message: message.into(),
            excerpt: format!("{}{}", printable(&left), printable(&right).trim_end()),
            excerpt_offset: left.chars().count(),
        }))
    }
}

pub(crate) fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'.'
}
