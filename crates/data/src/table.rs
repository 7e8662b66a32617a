//! Tables of named columns. Models that are not defined by a program take their data from such tables.
//!
//! A table can be read from CSV and other text files ([`crate::table_csv`]) and from NPY and NPZ files
//! ([`crate::npy`]). In builds with the feature `parquet`, it can also be read from Parquet files.

use std::collections::HashMap;
use std::path::Path;

use crate::bytes::Bytes;
#[cfg(feature = "parquet")]
use crate::columns::table as parquet_columns;
use crate::error::{DataError, ParseError};
use crate::files::{self, HELD, bytes_in_words, held};
use crate::{npy, table_csv};

/// The cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// Numbers. A missing value is represented by NaN.
    Numbers(Vec<f64>),
    /// Words. A missing value is represented by `None`. A column has words if at least one cell is neither missing nor
    /// a number.
    Words(Vec<Option<String>>),
}

impl Cells {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(x) => x.len(),
            Self::Words(x) => x.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the indices of the rows whose value is missing.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.len()).filter(|i| self.is_missing(*i)).collect()
    }

    /// Returns whether the value in the given row is missing.
    pub fn is_missing(&self, row: usize) -> bool {
        match self {
            Self::Numbers(x) => x[row].is_nan(),
            Self::Words(x) => x[row].is_none(),
        }
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The cells of the column.
    pub cells: Cells,
    /// The location of the first cell that is not a number, if the words of the column were read from a file.
    pub(crate) first_word: Option<Box<ParseError>>,
    /// The error to report if no value may be missing. The error is present if the column was read from a file and has
    /// an empty cell.
    pub(crate) first_gap: Option<DataError>,
}

impl Column {
    /// Creates a column that was not read from a file.
    pub fn new(name: impl Into<String>, cells: Cells) -> Self {
        Self {
            name: name.into(),
            cells,
            first_word: None,
            first_gap: None,
        }
    }

    /// Returns the numbers of the column. A missing value is represented by NaN.
    ///
    /// # Errors
    /// Fails if a cell is not a number. The message contains the location of the first such cell.
    pub fn numbers(&self) -> Result<&[f64], DataError> {
        match &self.cells {
            Cells::Numbers(x) => Ok(x),
            Cells::Words(_) => Err(self.no_numbers()),
        }
    }

    pub(crate) fn no_numbers(&self) -> DataError {
        if let Some(location) = &self.first_word {
            return DataError::Parse(location.clone());
        }
        let first = match &self.cells {
            Cells::Numbers(_) => None,
            Cells::Words(words) => words
                .iter()
                .enumerate()
                .find_map(|(row, word)| Some((row, word.as_deref()?))),
        };
        let (row, word) = first.unwrap_or((0, ""));
        DataError::invalid(format!(
            "the column `{}` has words, but Jensen expects numbers (row {}: `{word}`)",
            self.name,
            row + 1,
        ))
    }

    pub(crate) fn is_mixed(&self) -> bool {
        match &self.cells {
            Cells::Numbers(_) => false,
            Cells::Words(words) => words
                .iter()
                .flatten()
                .any(|word| word.parse::<f64>().is_ok()),
        }
    }

    /// Returns the distinct values of the column, without missing values. Numbers are sorted by size, and words are
    /// sorted alphabetically.
    pub fn levels(&self) -> Vec<String> {
        match &self.cells {
            Cells::Numbers(x) => {
                let mut present: Vec<f64> = x.iter().copied().filter(|x| !x.is_nan()).collect();
                present.sort_by(f64::total_cmp);
                present.dedup();
                present.iter().map(f64::to_string).collect()
            }
            Cells::Words(x) => {
                let mut present: Vec<String> = x.iter().flatten().cloned().collect();
                present.sort();
                present.dedup();
                present
            }
        }
    }

    /// Returns, for each row, the index of its value in `levels`. The index of a missing value is `None`.
    ///
    /// # Errors
    /// Fails if a value is not one of the levels.
    pub fn codes(&self, levels: &[String]) -> Result<Vec<Option<usize>>, DataError> {
        let positions: HashMap<&str, usize> = levels
            .iter()
            .enumerate()
            .map(|(at, level)| (level.as_str(), at))
            .collect();
        let code = |text: String, row: usize| {
            positions
                .get(text.as_str())
                .map(|at| Some(*at))
                .ok_or_else(|| {
                    DataError::invalid(format!(
                        "the column `{}` has `{text}` in row {}, but must have one of {}",
                        self.name,
                        row + 1,
                        levels
                            .iter()
                            .take(12)
                            .map(|l| format!("`{l}`"))
                            .collect::<Vec<_>>()
                            .join(", ")
                    ))
                })
        };
        match &self.cells {
            Cells::Numbers(x) => x
                .iter()
                .enumerate()
                .map(|(row, x)| {
                    if x.is_nan() {
                        Ok(None)
                    } else {
                        code(x.to_string(), row)
                    }
                })
                .collect(),
            Cells::Words(x) => x
                .iter()
                .enumerate()
                .map(|(row, x)| x.clone().map_or(Ok(None), |x| code(x, row)))
                .collect(),
        }
    }
}

/// A table of named columns of equal length.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    source: String,
    columns: Vec<Column>,
    positions: HashMap<String, usize>,
    rows: usize,
}

impl Table {
    /// Creates a table from columns.
    ///
    /// # Errors
    /// Fails if the columns differ in length, or if two columns have the same name.
    pub fn new(source: impl Into<String>, columns: Vec<Column>) -> Result<Self, DataError> {
        let source = source.into();
        let rows = columns.first().map_or(0, |c| c.cells.len());
        let mut positions = HashMap::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            if column.cells.len() != rows {
                return Err(DataError::invalid(format!(
                    "{source}: the column `{}` has {} rows, but `{}` has {rows}",
                    column.name,
                    column.cells.len(),
                    columns[0].name
                )));
            }
            if positions.insert(column.name.clone(), at).is_some() {
                return Err(DataError::invalid(format!(
                    "{source}: two columns are called `{}`; rename one",
                    column.name
                )));
            }
        }
        Ok(Self {
            source,
            columns,
            positions,
            rows,
        })
    }

    /// Reads a table. The extensions `.npy`, `.npz` and `.parquet` select these formats. Any other file is read as text
    /// whose cells are separated by commas, semicolons, tabs or blanks. A file whose name ends in `.gz` is decompressed
    /// first.
    ///
    /// # Errors
    /// Fails if the file cannot be read or does not follow its format.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::read_within(path, HELD)
    }

    /// Like [`read`](Self::read), but with a limit on the number of decompressed bytes.
    ///
    /// # Errors
    /// Fails under the same conditions as [`read`](Self::read), and if the file exceeds the limit.
    pub fn read_within(path: &Path, most: u64) -> Result<Self, DataError> {
        Self::parse(
            &Bytes::read_within(path, most)?,
            &path.display().to_string(),
        )
    }

    /// Parses the decompressed bytes of a file. `label` is the name of the file, and its extension determines the
    /// format.
    ///
    /// # Errors
    /// Fails if the bytes do not follow the format.
    pub fn parse(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        let name = label.strip_suffix(".gz").unwrap_or(label);
        if name.ends_with(".npy") {
            Table::from_npy(bytes, label)
        } else if name.ends_with(".npz") {
            Table::from_npz(bytes, label)
        } else if name.ends_with(".parquet") {
            Table::from_parquet(bytes, label)
        } else {
            table_csv::parse(bytes, label, table_csv::Header::Auto)
        }
    }

    /// Parses a matrix in NPY format. The columns of the table are called `V1`, `V2`, ….
    ///
    /// # Errors
    /// Fails if the bytes are not an NPY file of numbers with one or two dimensions.
    pub fn from_npy(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        Self::new(label, npy::columns(bytes, "V", label)?)
    }

    /// Parses the arrays of an NPZ file. A vector becomes a column of the same name, and a matrix `x` becomes the
    /// columns `x1`, `x2`, ….
    ///
    /// # Errors
    /// Fails if the bytes are not an NPZ file, or if the arrays do not have the same number of rows.
    pub fn from_npz(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        Self::new(label, npy::npz_columns(bytes, label)?)
    }

    /// Parses the columns of a Parquet file. The columns may contain numbers, booleans (which become 0 and 1) or words.
    /// If each row of a column `x` is a list of numbers, the column becomes `x1`, `x2`, …. Null values are treated as
    /// missing values.
    ///
    /// # Errors
    /// Fails if the bytes are not a Parquet file, if a column has an unsupported type, or if the lists of a column
    /// differ in length. Always fails in a build without a Parquet reader.
    pub fn from_parquet(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        Self::new(label, parquet_columns(bytes, label)?)
    }

    /// Returns the name of the file from which the table was read, or the label that the caller supplied.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the columns in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the names of the columns in order.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|c| c.name.as_str()).collect()
    }

    /// Returns a column by its name. If no column has this name, `name` may also be the number of a column, counted
    /// from 1.
    ///
    /// # Errors
    /// Fails if the column does not exist. The message suggests the name of a similar column.
    pub fn column(&self, name: &str) -> Result<&Column, DataError> {
        if let Some(at) = self.positions.get(name) {
            return Ok(&self.columns[*at]);
        }
        if let Ok(number @ 1..) = name.parse::<usize>()
            && let Some(column) = self.columns.get(number - 1)
        {
            return Ok(column);
        }
        let names = self.names();
        let near = crate::lookup::similar_name(name, names.iter().copied());
        let hint = match near {
            Some(near) => format!("; did you mean `{near}`?"),
            None => {
                let shown: Vec<String> = names.iter().take(12).map(|n| format!("`{n}`")).collect();
                let more = names.len().saturating_sub(12);
                let tail = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("; it has {}{tail}", shown.join(", "))
            }
        };
        Err(DataError::invalid(format!(
            "{}: there is no column `{name}`{hint}",
            self.source
        )))
    }

    /// Returns the numbers of the column with the given name. A missing value is represented by NaN.
    ///
    /// # Errors
    /// Fails if the column does not exist or if it contains words.
    pub fn numbers(&self, name: &str) -> Result<&[f64], DataError> {
        self.column(name)?.numbers()
    }
}

#[cfg(not(feature = "parquet"))]
fn parquet_columns(_: &[u8], label: &str) -> Result<Vec<Column>, DataError> {
    Err(DataError::invalid(format!(
        "`{label}`: this build does not read Parquet: install Jensen with `--features parquet`"
    )))
}

/// Reads all bytes of a file. If its name ends in `.gz`, decompresses them.
///
/// # Errors
/// Fails if the file cannot be read, if its compressed stream is damaged, or if it decompresses to more than a
/// gibibyte.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    read_bytes_within(path, HELD)
}

/// Like [`read_bytes`], but with the given limit on the number of decompressed bytes.
///
/// # Errors
/// Fails under the same conditions as [`read_bytes`], but with the given limit.
pub fn read_bytes_within(path: &Path, most: u64) -> Result<Vec<u8>, DataError> {
    let bytes = files::read_bytes_within(path, most)?;
    if path.extension().is_none_or(|e| e != "gz") {
        return Ok(bytes);
    }
    let plain = held(flate2::read::MultiGzDecoder::new(bytes.as_slice()), most).map_err(|e| {
        DataError::invalid(format!(
            "`{}` is not a complete gzip file: {e}",
            path.display()
        ))
    })?;
    plain.ok_or_else(|| {
        DataError::invalid(format!(
            "`{}` has more than {} of data, the memory limit: raise the limit, or decompress the file first \
             (`gunzip`)",
            path.display(),
            bytes_in_words(most)
        ))
    })
}
