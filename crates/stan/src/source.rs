//! Source files and positions in them.

/// The index of a source file. File 0 is the main file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u32);

/// A byte range in one file. A span that crosses an `#include` ends at the end of the file in which it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The file that contains the range.
    pub file: FileId,
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the range from the start of `self` to the end of `last`.
    pub fn to(self, last: Span) -> Span {
        if self.file == last.file && last.end >= self.end {
            Span {
                end: last.end,
                ..self
            }
        } else {
            self
        }
    }
}

/// A source file with its name and text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The name shown in messages.
    pub name: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// Returns the line and column of a byte offset. Lines and columns are counted from 1, and columns count
    /// characters.
    pub fn line_column(&self, offset: u32) -> (usize, usize) {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.text[..offset];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}
