//! Named tensors and scalars, the form in which a state is stored.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// A dense tensor of double-precision numbers in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The extents.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Vec<f64>,
}

/// Named tensors and scalars.
///
/// Floating-point numbers belong in tensors, which preserve every bit (including NaN and infinities). Counters, flags
/// and words belong in the JSON part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Archive {
    pub(crate) tensors: BTreeMap<String, Tensor>,
    pub(crate) scalars: Map<String, Value>,
}

/// The error of an archive that lacks an entry or has it with the wrong type or length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveError(pub String);

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArchiveError {}

/// A state that can be stored, and restored to the same bits.
pub trait Snapshot: Sized {
    /// Stores everything on which a later step depends.
    fn save(&self) -> Archive;

    /// Restores the state that [`save`](Self::save) stored.
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

    /// Stores a vector.
    pub fn put(&mut self, name: &str, data: &[f64]) {
        self.put_tensor(name, vec![data.len()], data.to_vec());
    }

    /// Stores a tensor.
    ///
    /// # Panics
    /// Panics if the shape and the number of elements disagree, which is a bug in the caller.
    pub fn put_tensor(&mut self, name: &str, shape: Vec<usize>, data: Vec<f64>) {
        assert_eq!(
            shape.iter().product::<usize>(),
            data.len(),
            "shape of {name}"
        );
        self.tensors.insert(name.to_owned(), Tensor { shape, data });
    }

    /// Stores a counter, flag, word or other JSON value.
    ///
    /// # Panics
    /// Panics if the value does not serialise to JSON (a map with keys that are not strings), which is a bug
    /// in the caller.
    pub fn set(&mut self, name: &str, value: impl Serialize) {
        let value = serde_json::to_value(value).expect("a plain value");
        self.scalars.insert(name.to_owned(), value);
    }

    /// Stores another archive under `prefix.`.
    pub fn nest(&mut self, prefix: &str, inner: Archive) {
        for (name, tensor) in inner.tensors {
            self.tensors.insert(format!("{prefix}.{name}"), tensor);
        }
        for (name, value) in inner.scalars {
            self.scalars.insert(format!("{prefix}.{name}"), value);
        }
    }

    /// Returns the archive that [`nest`](Self::nest) stored under `prefix.`. The archive is empty if there is none.
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

    /// Returns a tensor.
    ///
    /// # Errors
    /// Fails if there is no tensor of that name.
    pub fn tensor(&self, name: &str) -> Result<&Tensor, ArchiveError> {
        self.tensors
            .get(name)
            .ok_or_else(|| ArchiveError(format!("the tensor `{name}` is missing")))
    }

    /// Returns a copy of the elements of a tensor.
    ///
    /// # Errors
    /// Fails if there is no tensor of that name.
    pub fn vec(&self, name: &str) -> Result<Vec<f64>, ArchiveError> {
        Ok(self.tensor(name)?.data.clone())
    }

    /// Returns a copy of the elements of a tensor, which must have `len` of them.
    ///
    /// # Errors
    /// Fails if the tensor is missing or has another number of elements.
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

    /// Returns a counter, a flag, a word or another JSON value.
    ///
    /// # Errors
    /// Fails if the value is missing or has another type.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, ArchiveError> {
        let value = self
            .scalars
            .get(name)
            .ok_or_else(|| ArchiveError(format!("the value `{name}` is missing")))?;
        serde_json::from_value(value.clone())
            .map_err(|error| ArchiveError(format!("the value `{name}`: {error}")))
    }
}
