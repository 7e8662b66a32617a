//! Reads sparse symmetric matrices, such as precision matrices, from files.
//!
//! Files may have one of two formats. The format is determined from the first line of the file:
//!
//! - **Matrix Market**: a line `%%MatrixMarket matrix coordinate real general|symmetric` (or `integer` in place of
//!   `real`), a line with the size, and one line per entry. Rows and columns are numbered from 1. The functions
//!   `writeMM` in R and `mmwrite` in SciPy write this format.
//! - **triplets**: lines that contain a row, a column and a value, separated by commas or blanks. A header is skipped.
//!   If the number 0 occurs among the rows and columns, they are numbered from 0, and otherwise from 1. The largest
//!   number determines the size of the matrix.
//!
//! A file may contain both triangles of the matrix or only one of them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::DataError;
use crate::source::Cursor;
use crate::table::read_bytes;

/// A sparse symmetric matrix.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Symmetric {
    /// The number of rows and of columns.
    pub size: usize,
    /// The entries of both triangles, each given by its row, its column and its value. Rows and columns are numbered
    /// from 0. The entries are in column-major order, and no entry occurs twice.
    pub entries: Vec<(usize, usize, f64)>,
}

struct Entry {
    row: usize,
    column: usize,
    value: f64,
    at: usize,
}

/// The largest number of rows without any entry. A file with more empty rows probably contains a mistyped number.
const MOST_EMPTY: usize = 10_000_000;

/// A tolerance for mirrored entries. A relative difference up to this tolerance is attributed to rounding.
const ROUNDING: f64 = 1e-10;

impl Symmetric {
    /// Reads a matrix from a file.
    ///
    /// # Errors
    /// Fails under the same conditions as [`parse`](Self::parse), and if the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::parse(&read_bytes(path)?, &path.display().to_string())
    }

    /// Parses a matrix in either of the two formats. `label` is the name of the file in error messages.
    ///
    /// # Errors
    /// Fails if the bytes follow neither format, or if the matrix is not symmetric. The message contains the position
    /// of the error.
    pub fn parse(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        let text = Cursor::text_of(bytes, label)?;
        let cursor = Cursor::new(text, label);
        let market = text
            .trim_start_matches('\u{feff}')
            .starts_with("%%MatrixMarket");
        let (size, entries) = match market {
            true => matrix_market(&cursor)?,
            false => triplets(&cursor)?,
        };
        mirrored(&cursor, size, entries)
    }
}

fn lines<'t>(cursor: &Cursor<'t>) -> impl Iterator<Item = (usize, Vec<(usize, &'t str)>)> {
    let mut start = cursor.pos;
    let text = cursor.text;
    text[cursor.pos..]
        .split_inclusive('\n')
        .map(move |line| {
            let begin = start;
            start += line.len();
            let content = line.split(['#', '%']).next().unwrap_or("");
            let words = content
                .split([' ', '\t', ',', ';', '\n', '\r'])
                .filter(|word| !word.is_empty())
                .map(|word| {
                    (
                        begin + (word.as_ptr() as usize - line.as_ptr() as usize),
                        word,
                    )
                })
                .collect::<Vec<_>>();
            (begin, words)
        })
        .filter(|(_, words)| !words.is_empty())
}

fn entry(cursor: &Cursor<'_>, words: &[(usize, &str)]) -> Result<Entry, DataError> {
    let [(at, row), (second, column), (third, value)] = words else {
        let message = "expected a row, a column and a value on one line";
        return Err(cursor.error(words[0].0, message));
    };
    let number = |at: usize, word: &str| {
        word.parse::<usize>().map_err(|_| {
            cursor.error(
                at,
                format!("expected the number of a row or column, found `{word}`"),
            )
        })
    };
    let (row, column) = (number(*at, row)?, number(*second, column)?);
    let parsed = value.parse::<f64>().ok().filter(|x| x.is_finite());
    let value = parsed.ok_or_else(|| {
        cursor.error(*third, format!("expected a finite number, found `{value}`"))
    })?;
    Ok(Entry {
        row,
        column,
        value,
        at: *at,
    })
}

fn matrix_market(cursor: &Cursor<'_>) -> Result<(usize, Vec<Entry>), DataError> {
    let head = cursor.text.lines().next().unwrap_or("").to_lowercase();
    let words: Vec<&str> = head.split_whitespace().skip(1).collect();
    let known = matches!(
        words[..],
        [
            "matrix",
            "coordinate",
            "real" | "integer" | "double",
            "general" | "symmetric"
        ]
    );
    if !known {
        return Err(cursor.error(
            0,
            "expected the header `%%MatrixMarket matrix coordinate real symmetric` (or `general`), that is, a sparse \
             matrix of real numbers",
        ));
    }
    let mut all = lines(cursor);
    let end = || {
        cursor.error(
            cursor.text.trim_end().len(),
            "the file ends before its size",
        )
    };
    let (at, size) = all.next().ok_or_else(end)?;
    let numbers: Vec<Option<usize>> = size.iter().map(|(_, word)| word.parse().ok()).collect();
    let [Some(rows), Some(columns), Some(count)] = numbers[..] else {
        return Err(cursor.error(at, "expected the numbers of rows, columns and entries"));
    };
    if rows != columns {
        return Err(cursor.error(
            at,
            format!(
                "a precision matrix must be square, but this one has {rows} rows and {columns} columns"
            ),
        ));
    }
    let mut entries = Vec::new();
    for (_, words) in all {
        let entry = entry(cursor, &words)?;
        if [entry.row, entry.column]
            .iter()
            .any(|i| *i == 0 || *i > rows)
        {
            return Err(cursor.error(
                entry.at,
                format!("rows and columns are numbered from 1 to {rows}"),
            ));
        }
        entries.push(Entry {
            row: entry.row - 1,
            column: entry.column - 1,
            ..entry
        });
    }
    if entries.len() != count {
        return Err(cursor.error(
            at,
            format!(
                "the header declares {count} entries, but there are {}",
                entries.len()
            ),
        ));
    }
    Ok((rows, entries))
}

fn triplets(cursor: &Cursor<'_>) -> Result<(usize, Vec<Entry>), DataError> {
    let mut entries = Vec::new();
    for (number, (_, words)) in lines(cursor).enumerate() {
        let is_header = number == 0 && words.iter().all(|(_, word)| word.parse::<f64>().is_err());
        if !is_header {
            entries.push(entry(cursor, &words)?);
        }
    }
    let numbers = || entries.iter().flat_map(|e| [e.row, e.column]);
    let base = usize::from(numbers().all(|i| i != 0));
    let size = numbers().max().map_or(0, |last| last + 1 - base);
    if size > MOST_EMPTY + entries.len() {
        let message = format!("{size} rows are too many for {} entries", entries.len());
        return Err(cursor.error(0, message));
    }
    for entry in &mut entries {
        entry.row -= base;
        entry.column -= base;
    }
    Ok((size, entries))
}

fn mirrored(cursor: &Cursor<'_>, size: usize, all: Vec<Entry>) -> Result<Symmetric, DataError> {
    if size == 0 {
        return Err(cursor.error(0, "the matrix has no entries"));
    }
    let one = all.iter().all(|e| e.row >= e.column) || all.iter().all(|e| e.row <= e.column);
    // The entries are sorted by column, and within a column by row.
    let mut positions: BTreeMap<(usize, usize), (f64, usize)> = BTreeMap::new();
    for Entry {
        row,
        column,
        value,
        at,
    } in all
    {
        let mut put = |position: (usize, usize)| match positions.insert(position, (value, at)) {
            None => Ok(()),
            Some(_) => Err(cursor.error(at, "this entry appears for the second time")),
        };
        put((column, row))?;
        if one && row != column {
            put((row, column))?;
        }
    }
    let scale = positions
        .values()
        .fold(0.0, |m: f64, (x, _)| m.max(x.abs()));
    for ((column, row), (value, at)) in &positions {
        let other = positions.get(&(*row, *column)).map_or(0.0, |(x, _)| *x);
        if (value - other).abs() > ROUNDING * scale {
            return Err(cursor.error(
                *at,
                format!(
                    "the matrix is not symmetric: this entry is {value}, but its mirror image is {other}"
                ),
            ));
        }
    }
    let entries = positions.into_iter().map(|((j, i), (x, _))| (i, j, x));
    Ok(Symmetric {
        size,
        entries: entries.collect(),
    })
}
