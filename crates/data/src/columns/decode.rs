//! Decodes the values of a Parquet column in a range of consecutive rows.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use crate::error::DataError;
use crate::table::{Cells, Column};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Integers. The value is `true` if they are unsigned.
    Whole(bool),
    Truth,
    Real,
    Text,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub name: String,
    /// The index of the column among the leaf columns of the schema.
    pub leaf: usize,
    kind: Result<Kind, String>,
    max_def: i16,
    lists: bool,
}

impl Field {
    pub fn all(schema: &SchemaDescriptor) -> Vec<Self> {
        let fields = schema.root_schema().get_fields();
        let leaves: Vec<usize> = (0..schema.num_columns())
            .map(|leaf| schema.get_column_root_idx(leaf))
            .collect();
        let fields = fields.iter().enumerate().map(|(at, field)| {
            let leaf = leaves.iter().position(|root| *root == at).unwrap_or(0);
            let column = schema.column(leaf);
            let count = leaves.iter().filter(|root| **root == at).count();
            let deep = column.path().parts().len() > 1;
            let lists = column.max_rep_level() == 1;
            let kind = if count != 1 || column.max_rep_level() > 1 || (deep && !lists) {
                Err("a structure or lists of lists".to_owned())
            } else {
                kind(&column)
            };
            Self {
                name: field.name().to_owned(),
                leaf,
                kind,
                max_def: column.max_def_level(),
                lists,
            }
        });
        fields.collect()
    }

    /// Returns whether a column of another file has the same name and type. One of the columns may allow nulls when the
    /// other does not.
    pub fn agrees(&self, other: &Self) -> bool {
        self.name == other.name && self.kind == other.kind && self.lists == other.lists
    }

    pub fn check(&self, path: &Path) -> Result<(), DataError> {
        match &self.kind {
            Ok(_) => Ok(()),
            Err(found) => Err(DataError::invalid(format!(
                "`{}`, column `{}`: expected numbers, truth values or words, or lists of them, found {found}",
                path.display(),
                self.name
            ))),
        }
    }

    pub fn is_whole(&self) -> bool {
        self.kind != Ok(Kind::Real)
    }

    pub fn is_text(&self) -> bool {
        self.kind == Ok(Kind::Text)
    }

    pub fn decode(
        &self,
        column: ColumnReader,
        rows: &Range<usize>,
    ) -> Result<Decoded, ParquetError> {
        let unsigned = self.kind == Ok(Kind::Whole(true));
        let mut levels = Levels {
            max_def: self.max_def,
            lists: self.lists,
            ..Levels::default()
        };
        let elements = match column {
            ColumnReader::BoolColumnReader(mut column) => {
                let found = levels.read(&mut column, rows)?;
                Elements::Ints(found.into_iter().map(i64::from).collect())
            }
            ColumnReader::Int32ColumnReader(mut column) => {
                let found = levels.read(&mut column, rows)?.into_iter();
                Elements::Ints(match unsigned {
                    true => found.map(|x| i64::from(x as u32)).collect(),
                    false => found.map(i64::from).collect(),
                })
            }
            ColumnReader::Int64ColumnReader(mut column) => {
                Elements::Ints(levels.read(&mut column, rows)?)
            }
            ColumnReader::FloatColumnReader(mut column) => {
                let found = levels.read(&mut column, rows)?.into_iter();
                Elements::Reals(found.map(f64::from).collect())
            }
            ColumnReader::DoubleColumnReader(mut column) => {
                Elements::Reals(levels.read(&mut column, rows)?)
            }
            ColumnReader::ByteArrayColumnReader(mut column) => {
                Elements::Texts(levels.read(&mut column, rows)?)
            }
            _ => return Err(ParquetError::General("a column of an unknown type".into())),
        };
        Ok(Decoded {
            elements,
            levels,
            unsigned,
        })
    }
}

fn kind(column: &ColumnDescriptor) -> Result<Kind, String> {
    use ConvertedType as C;
    let name = || match column.logical_type_ref() {
        Some(logical) => format!("{logical:?}"),
        None => format!("{} ({})", column.physical_type(), column.converted_type()),
    };
    let plain = matches!(
        column.logical_type_ref(),
        None | Some(LogicalType::Integer { .. } | LogicalType::String | LogicalType::Enum)
    );
    let whole = match column.converted_type() {
        C::NONE | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64 => Some(false),
        C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64 => Some(true),
        _ => None,
    };
    match (column.physical_type(), whole) {
        _ if !plain => Err(name()),
        (Physical::INT32 | Physical::INT64, Some(unsigned)) => Ok(Kind::Whole(unsigned)),
        (Physical::BOOLEAN, _) => Ok(Kind::Truth),
        (Physical::FLOAT | Physical::DOUBLE, _) => Ok(Kind::Real),
        (Physical::BYTE_ARRAY, _) => match column.converted_type() {
            C::NONE | C::UTF8 | C::ENUM => Ok(Kind::Text),
            _ => Err(name()),
        },
        _ => Err(name()),
    }
}

#[derive(Default)]
struct Levels {
    max_def: i16,
    lists: bool,
    defs: Vec<i16>,
    reps: Vec<i16>,
}

impl Levels {
    fn read<T: DataType>(
        &mut self,
        column: &mut ColumnReaderImpl<T>,
        rows: &Range<usize>,
    ) -> Result<Vec<T::T>, ParquetError> {
        let skipped = column.skip_records(rows.start)?;
        // The number of rows is read from the file and may be wrong, so memory is reserved for only a limited number of
        // rows.
        let mut values = Vec::with_capacity(rows.len().min(1 << 20));
        let defs = (self.max_def > 0).then_some(&mut self.defs);
        let reps = self.lists.then_some(&mut self.reps);
        let (found, _, _) = column.read_records(rows.len(), defs, reps, &mut values)?;
        if skipped + found != rows.end {
            return Err(ParquetError::EOF(format!(
                "a row group ends after {} rows, before row {}",
                skipped + found,
                rows.end
            )));
        }
        Ok(values)
    }

    /// Returns the values of the next `rows` rows. A missing value is represented by `None`.
    fn each<T>(
        &self,
        rows: usize,
        mut next: impl FnMut() -> Option<T>,
    ) -> impl Iterator<Item = Option<T>> {
        (0..rows).map(move |row| {
            let present = self.defs.get(row).is_none_or(|def| *def == self.max_def);
            present.then(&mut next).flatten()
        })
    }

    fn missing(&self) -> Option<usize> {
        let at = self.defs.iter().position(|def| *def < self.max_def)?;
        Some(match self.lists {
            true => self.reps[..=at].iter().filter(|rep| **rep == 0).count() - 1,
            false => at,
        })
    }

    fn length(&self) -> (usize, Option<usize>) {
        let starts: Vec<usize> = self
            .reps
            .iter()
            .enumerate()
            .filter_map(|(at, rep)| (*rep == 0).then_some(at))
            .chain([self.reps.len()])
            .collect();
        let lengths = starts.windows(2).map(|pair| pair[1] - pair[0]);
        let first = lengths.clone().next().unwrap_or(0);
        (first, lengths.clone().position(|length| length != first))
    }
}

enum Elements {
    Ints(Vec<i64>),
    Reals(Vec<f64>),
    Texts(Vec<ByteArray>),
}

pub(super) struct Decoded {
    elements: Elements,
    levels: Levels,
    unsigned: bool,
}

#[derive(Default)]
pub(super) struct Numbers {
    pub ints: Vec<i64>,
    pub reals: Vec<f64>,
    /// The length of the list in each row, if the column consists of lists.
    pub length: Option<usize>,
}

impl Decoded {
    pub fn words(&self, words: &mut BTreeSet<String>) {
        if let Elements::Texts(texts) = &self.elements {
            let mut last: Option<&ByteArray> = None;
            for text in texts {
                if last == Some(text) {
                    continue;
                }
                last = Some(text);
                let word = String::from_utf8_lossy(text.data());
                if !words.contains(&*word) {
                    words.insert(word.into_owned());
                }
            }
        }
    }

    /// Appends the numbers to `all`. Returns an error if a value is missing. The error message starts with the text
    /// that `location` returns for the index of the row within the range.
    pub fn into_numbers(
        self,
        rows: usize,
        words: Option<&[String]>,
        all: &mut Numbers,
        location: &dyn Fn(usize) -> String,
    ) -> Result<(), DataError> {
        let refuse =
            |row: usize, what: &str| Err(DataError::invalid(format!("{}: {what}", location(row))));
        if let Some(row) = self.levels.missing() {
            let what = match self.levels.lists {
                true => {
                    "a list is missing, is empty or has a null, but every row needs a list with the same \
                     number of values"
                }
                false => "a null: fill it in, or remove the row",
            };
            return refuse(row, what);
        }
        let mut length = 1;
        if self.levels.lists {
            let (found, other) = self.levels.length();
            let expected = all.length.unwrap_or(found);
            let other = if found == expected { other } else { Some(0) };
            if let Some(row) = other {
                return refuse(
                    row,
                    &format!("a list whose length differs from the {expected} of the earlier rows"),
                );
            }
            all.length = Some(expected);
            length = expected;
        }
        debug_assert_eq!(self.levels.defs.len().max(rows * length), rows * length);
        match self.elements {
            Elements::Ints(ints) => {
                // An unsigned number of 64 bits looks negative if its highest bit is set.
                if let Some(at) = ints.iter().position(|x| self.unsigned && *x < 0) {
                    return refuse(at / length, &format!("{} is too large", ints[at] as u64));
                }
                append(&mut all.ints, ints);
            }
            Elements::Reals(reals) => {
                if let Some(at) = reals.iter().position(|x| x.is_nan()) {
                    return refuse(
                        at / length,
                        "NaN is not a number: fill it in, or remove the row",
                    );
                }
                append(&mut all.reals, reals);
            }
            Elements::Texts(texts) => {
                let words = words.unwrap_or_default();
                let code = |text: &ByteArray| {
                    let word = String::from_utf8_lossy(text.data());
                    let at = words.binary_search_by(|known| known.as_str().cmp(&word));
                    // An unknown word means that the file has changed. A later check detects the change.
                    at.map_or(0, |at| at as i64 + 1)
                };
                all.ints.extend(texts.iter().map(code));
            }
        }
        Ok(())
    }
}

pub(super) enum CellsOfColumn {
    Numbers(Vec<f64>),
    Words(Vec<Option<String>>),
    /// The lists of all rows, and whether their numbers are integers.
    Lists(Numbers, bool),
}

impl CellsOfColumn {
    /// Fails if the field contains lists of words, because such lists cannot be columns of a table.
    pub fn of(field: &Field, path: &Path) -> Result<Self, DataError> {
        match (field.lists, field.is_text()) {
            (true, true) => Err(DataError::invalid(format!(
                "`{}`, column `{}`: a table cannot have lists of words: remove the column",
                path.display(),
                field.name
            ))),
            (true, false) => Ok(Self::Lists(Numbers::default(), field.is_whole())),
            (false, true) => Ok(Self::Words(Vec::new())),
            (false, false) => Ok(Self::Numbers(Vec::new())),
        }
    }

    /// Appends the values of the next `rows` rows.
    ///
    /// # Errors
    /// Fails if a list is missing, contains a null value or differs in length from earlier lists. Also fails if a value
    /// is not a number.
    pub fn add(
        &mut self,
        decoded: Decoded,
        rows: usize,
        location: &dyn Fn(usize) -> String,
    ) -> Result<(), DataError> {
        let Decoded {
            elements,
            levels,
            unsigned,
        } = decoded;
        match (self, elements) {
            (Self::Lists(all, _), elements) => {
                let decoded = Decoded {
                    elements,
                    levels,
                    unsigned,
                };
                decoded.into_numbers(rows, None, all, location)?;
            }
            (Self::Numbers(all), Elements::Reals(reals)) => {
                let mut reals = reals.into_iter();
                all.extend(
                    levels
                        .each(rows, || reals.next())
                        .map(|x| x.unwrap_or(f64::NAN)),
                );
            }
            (Self::Numbers(all), Elements::Ints(ints)) => {
                let number = |x: i64| if unsigned { x as u64 as f64 } else { x as f64 };
                let mut ints = ints.into_iter().map(number);
                all.extend(
                    levels
                        .each(rows, || ints.next())
                        .map(|x| x.unwrap_or(f64::NAN)),
                );
            }
            (Self::Words(all), Elements::Texts(texts)) => {
                let word = |text: ByteArray| String::from_utf8_lossy(text.data()).into_owned();
                let mut words = texts.into_iter().map(word);
                all.extend(levels.each(rows, || words.next()));
            }
            (Self::Numbers(_) | Self::Words(_), _) => {}
        }
        Ok(())
    }

    /// Returns the values as one column. If the rows are lists, returns one column for each element.
    pub fn into_columns(self, name: &str) -> Vec<Column> {
        match self {
            Self::Numbers(numbers) => vec![Column::new(name, Cells::Numbers(numbers))],
            Self::Words(words) => vec![Column::new(name, Cells::Words(words))],
            Self::Lists(all, whole) => {
                let length = all.length.unwrap_or(0);
                let numbers = match whole {
                    true => all.ints.iter().map(|x| *x as f64).collect(),
                    false => all.reals,
                };
                let column = |k: usize| numbers.iter().skip(k).step_by(length).copied().collect();
                let made =
                    |k: usize| Column::new(format!("{name}{}", k + 1), Cells::Numbers(column(k)));
                (0..length).map(made).collect()
            }
        }
    }
}

fn append<T>(all: &mut Vec<T>, mut more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.append(&mut more);
    }
}
