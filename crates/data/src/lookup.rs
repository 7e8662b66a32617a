//! Looks up data variables by name and type, as declared in the `data` block of a model.
//!
//! An error message contains the name of the variable, its declared type, and a description of the value in the data.
//! An array that is declared without elements may be omitted from the data, or written as any empty list, as in
//! CmdStan. Where reals are declared, integers are accepted. Where integers are declared, reals are not accepted.

use std::borrow::Cow;

use crate::dataset::{DataSet, Elements, Value, checked_len};
use crate::error::DataError;

/// A value with its name. The value is either a data variable or a slot of a tuple, which [`Entry::field`] returns.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    name: String,
    value: &'a Value,
}

impl<'a> Entry<'a> {
    /// Returns the name of the variable. For a slot of a tuple, the number of the slot is appended, as in `t.1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value.
    pub fn value(&self) -> &'a Value {
        self.value
    }

    /// Returns slot number `slot`, counted from 1, of a tuple that is declared with `slots` slots. `declared` is the
    /// type in the model, which is used in error messages.
    pub fn field(&self, slot: usize, slots: usize, declared: &str) -> Result<Entry<'a>, DataError> {
        match self.value.elements() {
            Elements::Tuple(values) if values.len() == slots && (1..=slots).contains(&slot) => {
                Ok(Entry {
                    name: format!("{}.{slot}", self.name),
                    value: &values[slot - 1],
                })
            }
            _ => Err(self.mismatch(declared, describe(self.value))),
        }
    }

    /// Returns the elements as reals in row-major order, and converts integers to reals. `dims` contains the declared
    /// sizes. `declared` is the type in the model, such as `vector[8]`, which is used in error messages.
    pub fn reals(&self, dims: &[usize], declared: &str) -> Result<Cow<'a, [f64]>, DataError> {
        self.check_shape(dims, declared)?;
        match self.value.elements() {
            Elements::Real(v) => Ok(Cow::Borrowed(v)),
            Elements::Int(v) => Ok(Cow::Owned(v.iter().map(|i| *i as f64).collect())),
            Elements::Tuple(_) => Err(self.mismatch(declared, describe(self.value))),
        }
    }

    /// Returns the elements as integers in row-major order. A literal with a decimal point is not accepted as an
    /// integer.
    pub fn ints(&self, dims: &[usize], declared: &str) -> Result<&'a [i64], DataError> {
        self.check_shape(dims, declared)?;
        match self.value.elements() {
            Elements::Int(v) => Ok(v),
            Elements::Tuple(_) => Err(self.mismatch(declared, describe(self.value))),
            Elements::Real(v) => {
                let found = match v
                    .iter()
                    .position(|x| !(x.fract() == 0.0 && x.abs() < 9.2e18))
                {
                    Some(i) if v.len() == 1 => format!("{:?}", v[i]),
                    Some(i) => format!(
                        "{}[{}] = {:?}",
                        self.name,
                        subscript(i, self.value.shape()),
                        v[i]
                    ),
                    None if v.len() == 1 => {
                        format!(
                            "{:?}: an integer must not have a decimal point or exponent",
                            v[0]
                        )
                    }
                    None => format!(
                        "{} of which some have a decimal point or exponent, but integers must not have one",
                        describe(self.value)
                    ),
                };
                Err(self.mismatch(declared, found))
            }
        }
    }

    fn check_shape(&self, dims: &[usize], declared: &str) -> Result<(), DataError> {
        let shape = self.value.shape();
        let is_tuple = matches!(self.value.elements(), Elements::Tuple(_));
        let both_empty = self.value.is_empty() && checked_len(dims) == Some(0);
        if !is_tuple && (shape == dims || both_empty) {
            return Ok(());
        }
        let mut found = describe(self.value);
        if !is_tuple {
            if dims.is_empty() && shape == [1] {
                found.push_str("; write the number without brackets");
            } else if dims == [1] && shape.is_empty() {
                found.push_str("; write it in brackets");
            } else if shape.len() >= 2 && shape.iter().rev().eq(dims) {
                found.push_str(
                    "; the outermost list is the first dimension (a matrix is a list of its rows)",
                );
            }
        }
        Err(self.mismatch(declared, found))
    }

    fn mismatch(&self, declared: &str, found: String) -> DataError {
        DataError::Mismatch {
            variable: self.name.clone(),
            expected: declared.to_string(),
            found,
        }
    }
}

impl DataSet {
    /// Returns a variable that must exist. `declared` is the type in the model for the error message, and may be empty.
    pub fn entry(&self, name: &str, declared: &str) -> Result<Entry<'_>, DataError> {
        match self.get(name) {
            Some(value) => Ok(Entry {
                name: name.to_string(),
                value,
            }),
            None => Err(DataError::Missing {
                name: name.to_string(),
                expected: declared.to_string(),
                suggestion: similar_name(name, self.names()),
                available: self.names().map(str::to_string).collect(),
            }),
        }
    }

    /// Returns the elements of a variable as reals in row-major order, and converts integers to reals. `declared` is
    /// the declared type, for example `vector[8]`, and `dims` contains its sizes. A variable that is declared without
    /// elements may be missing.
    pub fn reals_as(
        &self,
        name: &str,
        dims: &[usize],
        declared: &str,
    ) -> Result<Cow<'_, [f64]>, DataError> {
        if checked_len(dims) == Some(0) && self.get(name).is_none() {
            return Ok(Cow::Borrowed(&[]));
        }
        self.entry(name, declared)?.reals(dims, declared)
    }

    /// Returns the elements of a variable as integers in row-major order. `declared` is the declared type, and `dims`
    /// contains its sizes. A variable that is declared without elements may be missing.
    pub fn ints_as(&self, name: &str, dims: &[usize], declared: &str) -> Result<&[i64], DataError> {
        if checked_len(dims) == Some(0) && self.get(name).is_none() {
            return Ok(&[]);
        }
        self.entry(name, declared)?.ints(dims, declared)
    }

    /// Like [`DataSet::reals_as`], for the type `array[dims] real`.
    pub fn reals(&self, name: &str, dims: &[usize]) -> Result<Cow<'_, [f64]>, DataError> {
        self.reals_as(name, dims, &array_type("real", dims))
    }

    /// Like [`DataSet::ints_as`], for the type `array[dims] int`.
    pub fn ints(&self, name: &str, dims: &[usize]) -> Result<&[i64], DataError> {
        self.ints_as(name, dims, &array_type("int", dims))
    }

    /// Returns the value of a real scalar. If the value in the data is an integer, converts it.
    pub fn real(&self, name: &str) -> Result<f64, DataError> {
        self.reals(name, &[]).map(|v| v[0])
    }

    /// Returns an integer scalar.
    pub fn int(&self, name: &str) -> Result<i64, DataError> {
        self.ints(name, &[]).map(|v| v[0])
    }
}

/// Returns the name that Stan uses for a scalar type or for an array of scalars, such as `real` or `array[2,3] real`.
fn array_type(scalar: &str, dims: &[usize]) -> String {
    if dims.is_empty() {
        return scalar.to_string();
    }
    let sizes: Vec<_> = dims.iter().map(usize::to_string).collect();
    format!("array[{}] {scalar}", sizes.join(","))
}

fn describe(value: &Value) -> String {
    let shape = value.shape();
    match value.elements() {
        Elements::Tuple(slots) if shape.is_empty() => format!("a tuple of {}", slots.len()),
        Elements::Tuple(slots) => {
            format!("an array of tuples of {} (shape {shape:?})", slots.len())
        }
        _ if value.is_empty() => format!("an empty array (shape {shape:?})"),
        Elements::Int(v) if shape.is_empty() => format!("the single number {}", v[0]),
        Elements::Real(v) if shape.is_empty() => format!("the single number {:?}", v[0]),
        _ if value.len() == 1 => format!("1 number (shape {shape:?})"),
        _ => format!("{} numbers (shape {shape:?})", value.len()),
    }
}

/// Returns the subscripts, counted from 1 as in Stan, of the element at a row-major offset.
fn subscript(mut offset: usize, shape: &[usize]) -> String {
    let mut indices: Vec<String> = Vec::with_capacity(shape.len());
    for &length in shape.iter().rev() {
        indices.push((offset % length + 1).to_string());
        offset /= length;
    }
    indices.reverse();
    indices.join(",")
}

/// Returns the known name that is most similar to `name`. Names that differ from `name` in more than about a third of
/// the characters are ignored. If several names are equally similar, returns the first of them.
pub fn similar_name<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let limit = (name.chars().count() / 3).max(1);
    known
        .map(|k| (edit_distance(&name.to_lowercase(), &k.to_lowercase()), k))
        // A name of one letter is one edit away from every other such name. A typing error is likely only if the case
        // differs.
        .filter(|(d, _)| *d <= limit && (name.chars().count() > 1 || *d == 0))
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k.to_string())
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
