//! Reads tables from text. Cells are separated by commas, semicolons, tabs or blanks, and a header is optional.
//!
//! A cell is missing if it is empty or if it is one of the words in [`MISSING`]. A column is numeric if all cells that
//! are not missing are numbers. Lines before the first row that start with `#` are comments.

use std::borrow::Cow;
use std::collections::HashSet;

use jensen_math::text::harmless;

use crate::error::DataError;
use crate::source::Cursor;
use crate::table::{Cells, Column, Table};

/// The words that stand for a missing value. The words may be written in upper or lower case.
pub const MISSING: [&str; 6] = ["na", "n/a", "nan", "null", ".", "?"];

fn no_value(cell: &str) -> String {
    let found = match cell {
        "" => "this cell is empty".to_owned(),
        word => format!("this cell contains `{word}`, which stands for a missing value"),
    };
    format!(
        "a value in every row, but {found}: remove such rows, or give the missing values parameters of their own"
    )
}

/// The largest number of columns for which locations in the file are stored. Determining a location requires a scan of
/// the preceding text. Messages about further columns do not contain a line number.
const REPORTED: usize = 100;

/// Whether the first row contains the names of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Header {
    /// The first row is a header if none of its cells is missing or a number.
    #[default]
    Auto,
    /// The first row is always a header.
    Yes,
    /// The text has no header. The columns are called `V1`, `V2`, ….
    No,
}

/// Formats a word as a cell of a CSV table. The word is quoted if necessary, and control characters are escaped. If a
/// spreadsheet would interpret the word as a formula, the word is preceded by an apostrophe.
pub fn quoted(word: &str) -> String {
    let word = harmless(word);
    let formula = word.starts_with(['=', '@', '+', '-']) && !is_number(&word);
    let word = match formula {
        true => Cow::Owned(format!("'{word}")),
        false => word,
    };
    match word.contains([',', '"', '\n', '\t']) {
        true => format!("\"{}\"", word.replace('"', "\"\"")),
        false => word.into_owned(),
    }
}

/// Parses a table from text.
///
/// # Errors
/// Fails if the bytes are not UTF-8 text, if the rows differ in their number of cells, if a quote is not closed, or if
/// two columns have the same name. The message contains the location of the error.
pub fn parse(bytes: &[u8], label: &str, header: Header) -> Result<Table, DataError> {
    let text = Cursor::text_of(bytes, label)?;
    let text = Text::new(text, label);
    let mut names: Option<Vec<String>> = None;
    let mut columns: Vec<Vec<f64>> = Vec::new();
    // For each column, the location of the first cell that is not a number, and the location and the text of the first
    // missing value.
    let mut words: Vec<Option<usize>> = Vec::new();
    let mut gaps: Vec<Option<(usize, String)>> = Vec::new();
    let mut width = 0;
    let mut body = false;
    text.rows(&mut |row| {
        if width == 0 {
            width = row.len();
            columns = vec![Vec::new(); width];
            words = vec![None; width];
            gaps = vec![None; width];
            let titles = match header {
                Header::Yes => true,
                Header::No => false,
                Header::Auto => row
                    .iter()
                    .all(|c| !is_missing(&c.text) && !is_number(&c.text)),
            };
            if titles {
                names = Some(text.names(row)?);
                return Ok(());
            }
        }
        if row.len() != width {
            let last = row.last().map_or(0, |cell| cell.at);
            return Err(text.error(
                last,
                format!(
                    "this row has {}, but the first one has {width}",
                    cells(row.len())
                ),
            ));
        }
        body = true;
        let locations = words.iter_mut().zip(&mut gaps);
        for ((cell, numbers), (word, gap)) in row.iter().zip(&mut columns).zip(locations) {
            let missing = is_missing(&cell.text);
            if missing && gap.is_none() {
                *gap = Some((cell.at, cell.text.trim().to_owned()));
            }
            if word.is_some() {
                continue;
            }
            if missing {
                numbers.push(f64::NAN);
            } else if let Ok(x) = cell.text.parse() {
                numbers.push(x);
            } else {
                *word = Some(cell.at);
                *numbers = Vec::new();
            }
        }
        Ok(())
    })?;
    if !body {
        return Err(text.error(text.body.len(), "the table has no rows"));
    }
    let titled = names.is_some();
    let names = names.unwrap_or_else(|| (1..=width).map(|i| format!("V{i}")).collect());
    let found = words_of(&text, titled, &words)?;
    let mut reported = 0;
    let columns = names
        .into_iter()
        .zip(columns)
        .zip(words.into_iter().zip(found).zip(gaps))
        .map(|((name, numbers), ((word, found), gap))| {
            let mut location = |at: usize, what: &str| {
                reported += 1;
                let message = format!("the column `{name}` needs {what}");
                match reported <= REPORTED {
                    true => text.error(at, message),
                    false => DataError::invalid(format!("{label}: {message}")),
                }
            };
            Column {
                first_word: word.and_then(|at| {
                    match location(at, "numbers, but this is not a number") {
                        DataError::Parse(location) => Some(location),
                        _ => None,
                    }
                }),
                first_gap: gap.map(|(at, text)| location(at, &no_value(&text))),
                cells: match word {
                    None => Cells::Numbers(numbers),
                    Some(_) => Cells::Words(found),
                },
                name,
            }
        })
        .collect();
    Table::new(label, columns)
}

/// Collects the cells of columns that contain words. This is a second pass, because few tables have such columns.
fn words_of(
    text: &Text<'_>,
    titled: bool,
    words: &[Option<usize>],
) -> Result<Vec<Vec<Option<String>>>, DataError> {
    let mut found = vec![Vec::new(); words.len()];
    if words.iter().all(Option::is_none) {
        return Ok(found);
    }
    let mut skip = titled;
    text.rows(&mut |row| {
        if !std::mem::take(&mut skip) {
            for ((cell, word), found) in row.iter().zip(words).zip(&mut found) {
                if word.is_some() {
                    found.push((!is_missing(&cell.text)).then(|| cell.text.to_string()));
                }
            }
        }
        Ok(())
    })?;
    Ok(found)
}

fn is_missing(cell: &str) -> bool {
    cell.is_empty() || MISSING.iter().any(|m| m.eq_ignore_ascii_case(cell))
}

fn is_number(cell: &str) -> bool {
    cell.parse::<f64>().is_ok()
}

fn cells(n: usize) -> String {
    match n {
        1 => "1 cell".into(),
        n => format!("{n} cells"),
    }
}

struct Cell<'a> {
    text: Cow<'a, str>,
    at: usize,
}

struct Text<'a> {
    cursor: Cursor<'a>,
    /// The text without the comments that precede the first row.
    body: &'a str,
    offset: usize,
    separator: Option<u8>,
}

type Visit<'v> = &'v mut dyn FnMut(&[Cell<'_>]) -> Result<(), DataError>;

impl<'a> Text<'a> {
    fn new(text: &'a str, label: &'a str) -> Self {
        let cursor = Cursor::new(text, label);
        let mut offset = cursor.pos;
        for line in text[cursor.pos..].split_inclusive('\n') {
            let content = line.trim();
            if !content.is_empty() && !content.starts_with('#') {
                break;
            }
            offset += line.len();
        }
        let body = &text[offset..];
        let first = body.lines().next().unwrap_or("");
        let separator = [b',', b';', b'\t']
            .into_iter()
            .find(|s| first.as_bytes().contains(s))
            .or((!first.trim().contains([' ', '\t'])).then_some(b','));
        Self {
            cursor,
            body,
            offset,
            separator,
        }
    }

    fn error(&self, at: usize, message: impl Into<String>) -> DataError {
        self.cursor.error(self.offset + at, message)
    }

    fn names(&self, row: &[Cell<'_>]) -> Result<Vec<String>, DataError> {
        let mut names: Vec<String> = Vec::with_capacity(row.len());
        let mut seen = HashSet::with_capacity(row.len());
        for (i, cell) in row.iter().enumerate() {
            let name = if cell.text.is_empty() {
                format!("V{}", i + 1)
            } else {
                cell.text.to_string()
            };
            if !seen.insert(name.clone()) {
                return Err(self.error(
                    cell.at,
                    format!("two columns are called `{name}`; rename one"),
                ));
            }
            names.push(name);
        }
        Ok(names)
    }

    fn rows(&self, visit: Visit<'_>) -> Result<(), DataError> {
        match self.separator {
            None => self.blank_rows(visit),
            Some(separator) => self.separated_rows(separator, visit),
        }
    }

    fn blank_rows(&self, visit: Visit<'_>) -> Result<(), DataError> {
        let mut start = 0;
        for line in self.body.split_inclusive('\n') {
            let row: Vec<Cell<'_>> = line
                .split_ascii_whitespace()
                .map(|word| Cell {
                    // Words are slices of the line, so the position of a word follows from its address.
                    at: start + (word.as_ptr() as usize - line.as_ptr() as usize),
                    text: unquoted(word).into(),
                })
                .collect();
            if !row.is_empty() {
                visit(&row)?;
            }
            start += line.len();
        }
        Ok(())
    }

    fn separated_rows(&self, separator: u8, visit: Visit<'_>) -> Result<(), DataError> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .from_reader(self.body.as_bytes());
        let mut record = csv::StringRecord::new();
        loop {
            let more = reader
                .read_record(&mut record)
                .map_err(|error| DataError::invalid(error.to_string()))?;
            if !more {
                return Ok(());
            }
            let start = record.position().map_or(0, csv::Position::byte) as usize;
            let ends = reader.position().byte() as usize;
            if record.len() == 1 && record.get(0).is_some_and(|c| c.trim().is_empty()) {
                continue;
            }
            let raw = &self.body.as_bytes()[start..ends];
            let mut locations = raw_cells(raw, separator);
            if locations.quoted {
                return Err(self.error(
                    start + locations.starts.pop().unwrap_or(0),
                    "this quote is not closed",
                ));
            }
            let row: Vec<Cell<'_>> = record
                .iter()
                .enumerate()
                .map(|(i, cell)| Cell {
                    text: cell.trim().into(),
                    at: start + locations.starts.get(i).copied().unwrap_or(0),
                })
                .collect();
            visit(&row)?;
        }
    }
}

struct RawCells {
    starts: Vec<usize>,
    quoted: bool,
}

fn raw_cells(raw: &[u8], separator: u8) -> RawCells {
    // The reader may have counted the line end of the preceding row as part of this row.
    let first = raw
        .iter()
        .position(|b| !matches!(b, b'\n' | b'\r'))
        .unwrap_or(0);
    let mut starts = vec![first];
    let mut quoted = false;
    let mut fresh = true;
    for (i, byte) in raw.iter().enumerate().skip(first) {
        match *byte {
            // Inside a cell that is not quoted, a quote is an ordinary character.
            b'"' if fresh || quoted || raw[i - 1] == b'"' => quoted = !quoted,
            b if b == separator && !quoted => {
                starts.push(i + 1);
                fresh = true;
                continue;
            }
            _ => {}
        }
        fresh = false;
    }
    RawCells { starts, quoted }
}

fn unquoted(word: &str) -> &str {
    word.strip_prefix('"')
        .and_then(|w| w.strip_suffix('"'))
        .unwrap_or(word)
}
