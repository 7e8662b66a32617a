//! Named values. A data set represents the content of a data file before a model has declared the types of its
//! variables.

use std::collections::BTreeMap;
use std::path::Path;

use crate::data_file::DataFile;
use crate::error::DataError;
use crate::table::{Cells, Table};
use crate::{json, rdump};

/// A scalar, a rectangular array of any rank, a tuple, or a rectangular array of tuples.
///
/// `shape` contains the length of each level of nesting, starting with the outermost list. It is empty for a scalar.
/// Elements are in row-major order, in which the last index changes fastest. A Stan matrix is a list of rows. A complex
/// number is represented by an additional last dimension of length 2, for the real and the imaginary part.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    shape: Vec<usize>,
    elements: Elements,
}

/// The elements of a [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub enum Elements {
    /// Integers. All literals were written as integers, or the array has no elements.
    Int(Vec<i64>),
    /// Real numbers. At least one literal had a decimal point or an exponent, was not finite, or did not fit into 64
    /// bits.
    Real(Vec<f64>),
    /// The slots of a tuple, in order. For an array of tuples, each slot contains the values of this slot in *all*
    /// tuples. The shape of such a value is the shape of the array, followed by the shape of the slot.
    Tuple(Vec<Value>),
}

impl Value {
    /// Creates an integer scalar.
    pub fn int(x: i64) -> Self {
        Self {
            shape: Vec::new(),
            elements: Elements::Int(vec![x]),
        }
    }

    /// Creates a real scalar.
    pub fn real(x: f64) -> Self {
        Self {
            shape: Vec::new(),
            elements: Elements::Real(vec![x]),
        }
    }

    /// Creates an array of integers in row-major order. Fails if the number of elements differs from the product of
    /// `shape`.
    pub fn ints(shape: Vec<usize>, elements: Vec<i64>) -> Result<Self, DataError> {
        check_length(&shape, elements.len())?;
        Ok(Self {
            shape,
            elements: Elements::Int(elements),
        })
    }

    /// Creates an array of reals in row-major order. Fails if the number of elements differs from the product of
    /// `shape`.
    pub fn reals(shape: Vec<usize>, elements: Vec<f64>) -> Result<Self, DataError> {
        check_length(&shape, elements.len())?;
        Ok(Self {
            shape,
            elements: Elements::Real(elements),
        })
    }

    /// Creates a tuple with the given slots.
    pub fn tuple(slots: Vec<Value>) -> Self {
        Self {
            shape: Vec::new(),
            elements: Elements::Tuple(slots),
        }
    }

    pub(crate) fn from_parts(shape: Vec<usize>, elements: Elements) -> Self {
        Self { shape, elements }
    }

    /// Returns the length of each level of nesting, starting with the outermost list. The shape of a scalar is empty.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the elements in row-major order.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// Returns the number of elements. The elements of an array of tuples are tuples, and all other elements are
    /// numbers.
    pub fn len(&self) -> usize {
        match &self.elements {
            Elements::Int(v) => v.len(),
            Elements::Real(v) => v.len(),
            Elements::Tuple(_) => self.shape.iter().product(),
        }
    }

    /// Returns whether the value is an array without elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the product of the sizes in a shape, or `None` if the product overflows.
pub(crate) fn checked_len(shape: &[usize]) -> Option<usize> {
    // If one length is zero, the array is empty, regardless of the other lengths.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d))
}

fn check_length(shape: &[usize], found: usize) -> Result<(), DataError> {
    match checked_len(shape) {
        Some(n) if n == found => Ok(()),
        _ => Err(DataError::invalid(format!(
            "{found} elements do not fill an array of shape {shape:?}"
        ))),
    }
}

/// The value 2⁵³. A cell of a table can store every integer from 0 to this value exactly.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Named values in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataSet {
    entries: Vec<(String, Value)>,
    index: BTreeMap<String, usize>,
    /// The number of rows, if the values are the columns of a table.
    rows: Option<usize>,
    refused: BTreeMap<String, DataError>,
    /// The columns that contain words, each with the location of its first word. The values of such a column are the
    /// numbers that represent its words.
    words: BTreeMap<String, DataError>,
}

impl DataSet {
    /// Creates an empty data set, for models that need no data.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a data file. [`DataFile::read`] determines the format.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        DataFile::read(path)?.parse()
    }

    /// Parses Stan JSON, which [`json`] describes. `label` is the name of the text in error messages.
    ///
    /// # Errors
    /// Fails if the text does not follow the format, or if a value cannot be used as data.
    pub fn from_json(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        json::parse(bytes, label)?.whole()
    }

    /// Returns the data as Stan JSON. Parsing the text returns the same values.
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// Parses an R dump, which [`rdump`] describes. `label` is the name of the text in error messages.
    ///
    /// # Errors
    /// Fails if the text does not follow the format, or if a value cannot be used as data.
    pub fn from_rdump(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        rdump::parse(bytes, label)?.whole()
    }

    pub(crate) fn whole(mut self) -> Result<Self, DataError> {
        match self.refused.pop_first() {
            Some((_, error)) => Err(error),
            None => Ok(self),
        }
    }

    pub(crate) fn refuse(&mut self, name: String, error: DataError) {
        self.refused.insert(name, error);
    }

    /// Returns the reason why the value of a variable cannot be used as data. A file may contain values that a program
    /// does not use, such as strings.
    pub fn refusal(&self, name: &str) -> Option<&DataError> {
        self.refused.get(name)
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.index.contains_key(name) || self.refused.contains_key(name)
    }

    /// Parses a table in CSV or another text format. `label` is the name of the table in error messages.
    ///
    /// A column of integers becomes an array of integers, and a column of other numbers becomes an array of reals.
    /// Words are numbered from 1 in alphabetical order, and [`words`](Self::words) reports whether a column contains
    /// words. A column that contains both numbers and words, or an empty cell, is [refused](Self::refusal).
    pub fn from_csv(bytes: &[u8], label: &str) -> Result<Self, DataError> {
        Self::from_csv_like(bytes, label, &BTreeMap::new())
    }

    /// Like [`from_csv`](Self::from_csv), but numbers the words of some columns according to `levels`, which contains
    /// the ordered words of an earlier table. A word is then represented by the same number in both tables.
    ///
    /// # Errors
    /// Fails under the same conditions as [`from_csv`](Self::from_csv), and if a word is not among the levels of its
    /// column.
    pub fn from_csv_like(
        bytes: &[u8],
        label: &str,
        levels: &BTreeMap<String, Vec<String>>,
    ) -> Result<Self, DataError> {
        let table = Table::parse(bytes, label)?;
        let mut data = Self {
            rows: Some(table.rows()),
            ..Self::default()
        };
        for column in table.columns() {
            if let Some(error) = &column.first_gap {
                data.refuse(column.name.clone(), error.clone());
                continue;
            }
            let numbers = match &column.cells {
                Cells::Numbers(numbers) => numbers.clone(),
                Cells::Words(_) if column.is_mixed() => {
                    data.refuse(column.name.clone(), column.no_numbers());
                    continue;
                }
                Cells::Words(_) => {
                    data.words.insert(column.name.clone(), column.no_numbers());
                    let codes = match levels.get(&column.name) {
                        Some(levels) => column.codes(levels)?,
                        None => column.codes(&column.levels())?,
                    };
                    // At this point every cell contains a word.
                    codes
                        .into_iter()
                        .flatten()
                        .map(|k| (k + 1) as f64)
                        .collect()
                }
            };
            let whole = |x: &f64| x.fract() == 0.0 && x.abs() <= WHOLE;
            let value = match numbers.iter().all(whole) {
                true => Value::ints(
                    vec![table.rows()],
                    numbers.iter().map(|x| *x as i64).collect(),
                ),
                false => Value::reals(vec![table.rows()], numbers),
            };
            // Different columns have different names.
            data.insert(&column.name, value?);
        }
        Ok(data)
    }

    /// If the values of a variable are numbers that represent words, returns the location of the first word. Such a
    /// variable identifies groups and is not a measurement.
    pub fn words(&self, name: &str) -> Option<&DataError> {
        self.words.get(name)
    }

    /// Returns the number of rows, or `None` if the data are not a table.
    pub fn rows(&self) -> Option<usize> {
        self.rows
    }

    /// Adds a variable. If the name already exists, returns `false` and changes nothing.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) -> bool {
        let name = name.into();
        if self.index.contains_key(&name) {
            return false;
        }
        self.index.insert(name.clone(), self.entries.len());
        self.entries.push((name, value));
        true
    }

    /// Returns the value of a variable.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.index.get(name).map(|i| &self.entries[*i].1)
    }

    /// Iterates over the variables in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), value))
    }

    /// Converts the data set to an iterator over the variables, in the order in which they were written.
    pub fn into_entries(self) -> impl Iterator<Item = (String, Value)> {
        self.entries.into_iter()
    }

    /// Appends each array of `more` to the array of the same name, along the first dimension. A variable is unchanged
    /// if only one of the data sets contains it, or if its kind differs between the two.
    #[must_use]
    pub fn followed_by(mut self, mut more: Self) -> Self {
        for (name, value) in &mut self.entries {
            let Some(at) = more.index.get(name.as_str()) else {
                continue;
            };
            let other = &mut more.entries[*at].1;
            let fits = !value.shape.is_empty() && value.shape.get(1..) == other.shape.get(1..);
            match (&mut value.elements, &mut other.elements) {
                (Elements::Int(ours), Elements::Int(theirs)) if fits => ours.append(theirs),
                (Elements::Real(ours), Elements::Real(theirs)) if fits => ours.append(theirs),
                _ => continue,
            }
            value.shape[0] += other.shape[0];
        }
        self
    }

    /// Iterates over the names of the variables, in the order in which they were written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.iter().map(|(name, _)| name)
    }

    /// Returns the number of variables.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
