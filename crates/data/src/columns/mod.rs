//! Reads named columns of Parquet files. Callers read ranges of rows, so the data need not fit into memory.
//!
//! | subject | module |
//! | --- | --- |
//! | files, their columns and row groups | this module |
//! | the numbers of a column in a range of rows | `decode` |
//!
//! A column of numbers or booleans has one value per row. A column of lists has one vector per row, and the lists must
//! have equal length. Words are numbered from 1 in alphabetical order, as in CSV files. Reading fails if a value is
//! missing or is not a number. The error message contains the location of the value. Pages may be uncompressed or
//! compressed with Snappy.

mod decode;

use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use sha2::{Digest, Sha256};

use crate::dataset::{DataSet, Value};
use crate::error::DataError;
use crate::files::list_folder;
use crate::table::Column;
use decode::{CellsOfColumn, Field, Numbers};

const WORDS: usize = 1 << 20;

/// A range of consecutive rows within a single row group of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The index of the file.
    pub file: usize,
    /// The index of the row group.
    pub group: usize,
    /// The indices of the rows within the row group.
    pub rows: Range<usize>,
    /// The index of the first row of the range, counted over all files.
    pub first: u64,
}

/// Several Parquet files with the same columns, which are read as a single table.
pub struct RowFiles {
    files: Vec<RowFile>,
    fields: Vec<Field>,
    rows: u64,
    words: Vec<OnceLock<Vec<String>>>,
}

struct RowFile {
    path: PathBuf,
    stamp: Stamp,
    /// The reader has only one position, so only one thread at a time may use it.
    reader: Mutex<SerializedFileReader<File>>,
    groups: Vec<usize>,
}

/// The length and the modification time of a file. If either of them differs, the file is regarded as changed.
type Stamp = (u64, Option<SystemTime>);

fn stamp(about: &Metadata) -> Stamp {
    (about.len(), about.modified().ok())
}

/// Returns all Parquet files among `paths` and in the folders among them. The files in a folder are sorted by name.
///
/// # Errors
/// Fails if no Parquet file is found.
pub fn parquet_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, DataError> {
    let mut found = Vec::new();
    for path in paths {
        if !path.is_dir() {
            found.push(path.clone());
            continue;
        }
        let before = found.len();
        let is_parquet = |path: &PathBuf| path.extension().is_some_and(|e| e == "parquet");
        found.extend(list_folder(path)?.into_iter().filter(is_parquet));
        if found.len() == before {
            return Err(DataError::invalid(format!(
                "the folder `{}` has no file whose name ends in .parquet",
                path.display()
            )));
        }
    }
    Ok(found)
}

impl RowFile {
    fn open(path: &Path) -> Result<Self, DataError> {
        let failed = |error| DataError::io("read", path, &error);
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let stamp = stamp(&about);
        let reader = SerializedFileReader::new(file).map_err(|error| unreadable(path, &error))?;
        check_within(reader.metadata(), about.len(), path)?;
        let groups = reader.metadata().row_groups().iter();
        let groups = groups
            .map(|group| group.num_rows().max(0) as usize)
            .collect();
        Ok(Self {
            path: path.to_owned(),
            stamp,
            reader: Mutex::new(reader),
            groups,
        })
    }

    fn check_unchanged(&self) -> Result<(), DataError> {
        let now = std::fs::metadata(&self.path);
        let now = now.map_err(|error| DataError::io("read", &self.path, &error))?;
        if stamp(&now) == self.stamp {
            return Ok(());
        }
        Err(DataError::invalid(format!(
            "`{}` changed while Jensen read it, so the results are not valid: run again, and replace a file \
             only by renaming a complete new one between runs",
            self.path.display()
        )))
    }
}

/// Checks that the data of all columns lie within the file. The library that reads Parquet files does not check this.
fn check_within(metadata: &ParquetMetaData, len: u64, path: &Path) -> Result<(), DataError> {
    let groups = metadata.row_groups().iter();
    for column in groups.flat_map(|group| group.columns()) {
        let begin = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        let size = column.compressed_size();
        let within = |at: i64| u64::try_from(at).is_ok_and(|at| at <= len);
        if !within(begin) || !within(size) || !within(begin.saturating_add(size)) {
            return Err(DataError::invalid(format!(
                "`{}` cannot be read as Parquet: a column lies outside the file",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Reads all columns of a Parquet file into memory. If each row of a column `x` is a list of k numbers, the column
/// becomes the k columns `x1`, `x2`, ….
///
/// # Errors
/// Fails if the bytes are not a Parquet file. Also fails if a column contains anything other than numbers, booleans,
/// words, or lists of equal length.
pub(crate) fn table(bytes: &[u8], label: &str) -> Result<Vec<Column>, DataError> {
    let path = Path::new(label);
    let failed = |error: ParquetError| unreadable(path, &error);
    let owned = ::bytes::Bytes::copy_from_slice(bytes);
    let reader = SerializedFileReader::new(owned).map_err(failed)?;
    let metadata = reader.metadata();
    check_within(metadata, bytes.len() as u64, path)?;
    let mut columns = Vec::new();
    for field in Field::all(metadata.file_metadata().schema_descr()) {
        field.check(path)?;
        let mut cells = CellsOfColumn::of(&field, path)?;
        let mut before = 0;
        for group in 0..metadata.num_row_groups() {
            let rows = metadata.row_group(group).num_rows().max(0) as usize;
            let decoded = reader
                .get_row_group(group)
                .and_then(|group| group.get_column_reader(field.leaf))
                .and_then(|column| field.decode(column, &(0..rows)));
            let location = |row: usize| {
                let number = before + row + 1;
                format!("`{label}`, row {number}, column `{}`", field.name)
            };
            cells.add(decoded.map_err(failed)?, rows, &location)?;
            before += rows;
        }
        columns.extend(cells.into_columns(&field.name));
    }
    Ok(columns)
}

fn unreadable(path: &Path, error: &ParquetError) -> DataError {
    let text = error.to_string();
    let advice = if text.contains("Disabled feature") {
        ": write it with Snappy or without compression"
    } else {
        ""
    };
    DataError::invalid(format!(
        "`{}` cannot be read as Parquet: {text}{advice}",
        path.display()
    ))
}

impl RowFiles {
    /// Opens the given files and all Parquet files in the given folders.
    ///
    /// # Errors
    /// Fails if there are no files, if a file cannot be read, or if the files do not have the same columns.
    pub fn open(paths: &[PathBuf]) -> Result<Self, DataError> {
        let mut files: Vec<RowFile> = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        for path in parquet_files(paths)? {
            let file = RowFile::open(&path)?;
            let found = {
                let reader = file.reader.lock().unwrap_or_else(PoisonError::into_inner);
                Field::all(reader.metadata().file_metadata().schema_descr())
            };
            if let Some(first) = files.first() {
                let differs = |(a, b): (&Field, &Field)| (!a.agrees(b)).then(|| a.name.clone());
                let names = |fields: &[Field]| -> BTreeSet<String> {
                    fields.iter().map(|field| field.name.clone()).collect()
                };
                let (ours, theirs) = (names(&fields), names(&found));
                let other = ours
                    .symmetric_difference(&theirs)
                    .next()
                    .cloned()
                    .or_else(|| fields.iter().zip(&found).find_map(differs));
                if let Some(name) = other {
                    return Err(DataError::invalid(format!(
                        "`{}` and `{}` differ in the column `{name}`, its position or its type: all files need the same \
                         columns in the same order",
                        first.path.display(),
                        path.display()
                    )));
                }
            } else {
                fields = found;
            }
            files.push(file);
        }
        let rows = files.iter().flat_map(|file| &file.groups);
        let rows: u64 = rows.map(|rows| *rows as u64).sum();
        if rows == 0 {
            let names: Vec<String> = paths
                .iter()
                .map(|path| format!("`{}`", path.display()))
                .collect();
            return Err(DataError::invalid(format!(
                "{}: there are no rows",
                names.join(", ")
            )));
        }
        let words = fields.iter().map(|_| OnceLock::new()).collect();
        Ok(Self {
            files,
            fields,
            rows,
            words,
        })
    }

    /// Returns the total number of rows in all files.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the paths of the files, in the order in which they are read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_str())
    }

    /// Returns one range for each row group of all files, in order.
    pub fn groups(&self) -> Vec<Stretch> {
        let mut first = 0;
        let mut all = Vec::new();
        for (file, found) in self.files.iter().enumerate() {
            for (group, &rows) in found.groups.iter().enumerate() {
                if rows > 0 {
                    all.push(Stretch {
                        file,
                        group,
                        rows: 0..rows,
                        first,
                    });
                }
                first += rows as u64;
            }
        }
        all
    }

    /// Returns a digest that changes if a file is rewritten with other data. The digest covers the lengths and the
    /// columns of the files, and the offsets, sizes and statistics of all column chunks. The values in the files are
    /// not read.
    pub fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for file in &self.files {
            hash.update(file.stamp.0.to_le_bytes());
            let reader = file.reader.lock().unwrap_or_else(PoisonError::into_inner);
            for group in reader.metadata().row_groups() {
                hash.update(group.num_rows().to_le_bytes());
                for column in group.columns() {
                    hash.update(column.column_path().string().as_bytes());
                    hash.update(column.data_page_offset().to_le_bytes());
                    hash.update(column.compressed_size().to_le_bytes());
                    if let Some(statistics) = column.statistics() {
                        for bytes in [statistics.min_bytes_opt(), statistics.max_bytes_opt()] {
                            hash.update(bytes.unwrap_or_default());
                        }
                    }
                }
            }
        }
        let digest = hash.finalize();
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads the columns `names` in the given ranges of rows, one range after another. Each column becomes an array of
    /// shape `[rows]`, or of shape `[rows, length]` if the rows are lists.
    ///
    /// # Errors
    /// Fails if a column does not exist or has an unsupported type, if a value is missing or is not a number, or if
    /// lists differ in length. Also fails if a file cannot be read or has changed.
    pub fn read(&self, names: &[&str], stretches: &[Stretch]) -> Result<DataSet, DataError> {
        let mut data = DataSet::new();
        for name in names {
            let at = self.column(name)?;
            let field = &self.fields[at];
            field.check(&self.files[0].path)?;
            let mut all = Numbers::default();
            for stretch in stretches {
                self.add(at, stretch, &mut all)?;
            }
            let rows: usize = stretches.iter().map(|stretch| stretch.rows.len()).sum();
            let shape = match all.length {
                Some(length) => vec![rows, length],
                None => vec![rows],
            };
            let value = if field.is_whole() {
                Value::ints(shape, all.ints)
            } else {
                Value::reals(shape, all.reals)
            };
            data.insert(*name, value?);
        }
        Ok(data)
    }

    /// Returns the length of the lists in a column, which is read from the first row. Returns `None` if the column does
    /// not contain lists.
    ///
    /// # Errors
    /// Fails under the same conditions as [`read`](Self::read).
    pub fn list_length(&self, name: &str) -> Result<Option<usize>, DataError> {
        let mut first = self.groups().swap_remove(0);
        first.rows = 0..1;
        let data = self.read(&[name], &[first])?;
        Ok(data
            .get(name)
            .and_then(|value| value.shape().get(1).copied()))
    }

    /// Describes the location of a row in a range, for use in error messages. The description contains the name of the
    /// file and the number of the row in the file, counted from 1.
    pub fn location(&self, stretch: &Stretch, row: usize) -> String {
        let file = &self.files[stretch.file];
        let before: usize = file.groups[..stretch.group].iter().sum();
        let number = before + stretch.rows.start + row + 1;
        format!("`{}`, row {number}", file.path.display())
    }

    fn column(&self, name: &str) -> Result<usize, DataError> {
        let at = self.fields.iter().position(|field| field.name == name);
        at.ok_or_else(|| {
            let names: Vec<String> = self.names().map(|name| format!("`{name}`")).collect();
            DataError::invalid(format!(
                "`{}` has no column `{name}`; its columns are {}",
                self.files[0].path.display(),
                names.join(", ")
            ))
        })
    }

    fn add(&self, at: usize, stretch: &Stretch, all: &mut Numbers) -> Result<(), DataError> {
        let field = &self.fields[at];
        let words = match field.is_text() {
            true => Some(self.words_of(at)?),
            false => None,
        };
        self.decoded(at, stretch, |numbers| {
            let location =
                |row: usize| format!("{}, column `{}`", self.location(stretch, row), field.name);
            numbers.into_numbers(stretch.rows.len(), words, all, &location)
        })
    }

    /// Calls `each` with the content of a column in a range of rows. Before and after the call, checks that the file
    /// has not changed.
    fn decoded<T>(
        &self,
        at: usize,
        stretch: &Stretch,
        each: impl FnOnce(decode::Decoded) -> Result<T, DataError>,
    ) -> Result<T, DataError> {
        let (file, field) = (&self.files[stretch.file], &self.fields[at]);
        file.check_unchanged()?;
        let decoded = {
            let reader = file.reader.lock().unwrap_or_else(PoisonError::into_inner);
            reader
                .get_row_group(stretch.group)
                .and_then(|group| group.get_column_reader(field.leaf))
                .and_then(|column| field.decode(column, &stretch.rows))
        };
        // If the file has changed, this error is reported in place of any error that results from the change.
        file.check_unchanged()?;
        each(decoded.map_err(|error| unreadable(&file.path, &error))?)
    }

    fn words_of(&self, at: usize) -> Result<&[String], DataError> {
        if let Some(words) = self.words[at].get() {
            return Ok(words);
        }
        let name = &self.fields[at].name;
        let mut words = BTreeSet::new();
        for stretch in self.groups() {
            self.decoded(at, &stretch, |decoded| {
                decoded.words(&mut words);
                Ok(())
            })?;
            if words.len() > WORDS {
                return Err(DataError::invalid(format!(
                    "the column `{name}` has more than {WORDS} distinct words, too many for groups"
                )));
            }
        }
        Ok(self.words[at].get_or_init(|| words.into_iter().collect()))
    }
}

#[cfg(test)]
mod tests;
