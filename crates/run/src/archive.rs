//! The archive, which is a set of named tensors and scalars. An archive stores the state of an algorithm.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A dense tensor of double-precision numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The length of each dimension.
    pub shape: Vec<usize>,
    /// The elements in row-major order.
    pub data: Vec<f64>,
}

/// A set of named tensors and scalars for storing the state of an algorithm.
///
/// Store floating-point numbers as tensors. Tensors preserve every bit of a number, including NaN and infinities. Store
/// counters, flags and words as JSON values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Archive {
    pub(crate) tensors: BTreeMap<String, Tensor>,
    pub(crate) scalars: Map<String, Value>,
}

/// The error returned if an entry of an archive is missing or has the wrong type or length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveError(pub String);

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArchiveError {}

/// A state that can be stored in an archive and restored from it without changing a bit.
pub trait Snapshot: Sized {
    /// Stores everything that later steps depend on.
    fn save(&self) -> Archive;

    /// Restores a state from the archive that [`save`](Self::save) returned.
    ///
    /// # Errors
    /// Fails if an entry is missing or has the wrong type or length.
    fn restore(archive: &Archive) -> Result<Self, ArchiveError>;
}

impl Archive {
    /// Creates an empty archive.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores a vector as a one-dimensional tensor.
    pub fn put(&mut self, name: &str, data: &[f64]) {
        self.put_tensor(name, vec![data.len()], data.to_vec());
    }

    /// Stores a tensor with the given shape and elements.
    ///
    /// # Panics
    /// Panics if the number of elements does not match the shape, which is a bug in the caller.
    pub fn put_tensor(&mut self, name: &str, shape: Vec<usize>, data: Vec<f64>) {
        assert_eq!(
            shape.iter().product::<usize>(),
            data.len(),
            "shape of {name}"
        );
        self.tensors.insert(name.to_owned(), Tensor { shape, data });
    }

    /// Stores a counter, a flag, a word or any other JSON value.
    ///
    /// # Panics
    /// Panics if the value cannot be serialised to JSON. An example of such a value is a map whose keys are not
    /// strings.
    pub fn set(&mut self, name: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).expect("a plain value");
        self.scalars.insert(name.to_owned(), value);
    }

    /// Stores all entries of another archive, with `prefix.` in front of their names.
    pub fn nest(&mut self, prefix: &str, inner: Archive) {
        for (name, tensor) in inner.tensors {
            self.tensors.insert(format!("{prefix}.{name}"), tensor);
        }
        for (name, value) in inner.scalars {
            self.scalars.insert(format!("{prefix}.{name}"), value);
        }
    }

    /// Returns the archive that [`nest`](Self::nest) stored under `prefix.`, or an empty archive if no entry has this
    /// prefix.
    pub fn nested(&self, prefix: &str) -> Archive {
        let inner = |name: &String| {
            name.strip_prefix(prefix)
                .and_then(|rest| rest.strip_prefix('.'))
                .map(str::to_owned)
        };
        Archive {
            tensors: self
                .tensors
                .iter()
                .filter_map(|(name, tensor)| Some((inner(name)?, tensor.clone())))
                .collect(),
            scalars: self
                .scalars
                .iter()
                .filter_map(|(name, value)| Some((inner(name)?, value.clone())))
                .collect(),
        }
    }

    /// Returns the tensor with this name.
    ///
    /// # Errors
    /// Fails if the archive contains no tensor with this name.
    pub fn tensor(&self, name: &str) -> Result<&Tensor, ArchiveError> {
        self.tensors
            .get(name)
            .ok_or_else(|| ArchiveError(format!("the tensor `{name}` is missing")))
    }

    /// Returns a copy of the elements of the tensor with this name.
    ///
    /// # Errors
    /// Fails if the archive contains no tensor with this name.
    pub fn vec(&self, name: &str) -> Result<Vec<f64>, ArchiveError> {
        Ok(self.tensor(name)?.data.clone())
    }

    /// Returns a copy of the elements of the tensor with this name. The tensor must have exactly `len` elements.
    ///
    /// # Errors
    /// Fails if the tensor is missing or does not have `len` elements.
    pub fn vec_of(&self, name: &str, len: usize) -> Result<Vec<f64>, ArchiveError> {
        let data = self.vec(name)?;
        if data.len() != len {
            let found = data.len();
            return Err(ArchiveError(format!(
                "the tensor `{name}` has {found} elements, expected {len}"
            )));
        }
        Ok(data)
    }

    /// Returns the counter, flag, word or other JSON value with this name.
    ///
    /// # Errors
    /// Fails if the value is missing or cannot be deserialised as `T`.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArchiveError> {
        let value = self
            .scalars
            .get(name)
            .ok_or_else(|| ArchiveError(format!("the value `{name}` is missing")))?;
        serde_json::from_value(value.clone())
            .map_err(|error| ArchiveError(format!("the value `{name}`: {error}")))
    }
}
