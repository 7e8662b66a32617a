//! A binary format for arrays. Each array is preceded by its length, and all numbers are little-endian.

use std::fmt;

/// A writer that encodes arrays into memory whose size was computed beforehand.
pub struct Writer<'a> {
    /// This field is `None` while [`size`] counts the bytes.
    memory: Option<&'a mut [u8]>,
    written: usize,
}

/// Returns the number of bytes that `write` writes.
pub fn size(write: impl Fn(&mut Writer<'_>)) -> usize {
    let mut writer = Writer {
        memory: None,
        written: 0,
    };
    write(&mut writer);
    writer.written
}

/// Writes the output of `write` into `memory`. The length of `memory` must equal the result of [`size`] for `write`.
pub fn fill(memory: &mut [u8], write: impl Fn(&mut Writer<'_>)) {
    let memory = Some(memory);
    write(&mut Writer { memory, written: 0 });
}

/// Returns the bytes that `write` writes.
pub fn bytes(write: impl Fn(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = vec![0; size(&write)];
    fill(&mut out, write);
    out
}

impl Writer<'_> {
    fn put<const N: usize, T: Copy>(&mut self, x: &[T], bytes: impl Fn(T) -> [u8; N]) {
        let start = self.written;
        self.written += 8 + N * x.len();
        let Some(memory) = &mut self.memory else {
            return;
        };
        let out = &mut memory[start..self.written];
        let (length, out) = out.split_at_mut(8);
        length.copy_from_slice(&(x.len() as u64).to_le_bytes());
        // The compiler turns this loop over allocated memory into a single copy. Appending would check the capacity for
        // every element.
        for (out, &x) in out.as_chunks_mut().0.iter_mut().zip(x) {
            *out = bytes(x);
        }
    }

    /// Writes a string as an array of bytes.
    pub fn text(&mut self, text: &str) {
        self.put(text.as_bytes(), |x| [x]);
    }

    /// Writes an array of 64-bit integers.
    pub fn counts(&mut self, x: &[u64]) {
        self.put(x, u64::to_le_bytes);
    }

    /// Writes an array of 32-bit integers.
    pub fn numbers(&mut self, x: &[u32]) {
        self.put(x, u32::to_le_bytes);
    }

    /// Writes an array of single-precision numbers.
    pub fn singles(&mut self, x: &[f32]) {
        self.put(x, f32::to_le_bytes);
    }

    /// Writes an array of double-precision numbers.
    pub fn reals(&mut self, x: &[f64]) {
        self.put(x, f64::to_le_bytes);
    }
}

/// A reader that decodes arrays in the order in which a [`Writer`] wrote them.
pub struct Reader<'a>(&'a [u8]);

/// The error for bytes that do not have the expected form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(String);

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WireError {}

impl From<WireError> for String {
    fn from(error: WireError) -> Self {
        error.0
    }
}

fn cut() -> WireError {
    WireError("the message is incomplete".to_owned())
}

impl<'a> Reader<'a> {
    /// Creates a reader for bytes that a [`Writer`] wrote.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [[u8; N]], WireError> {
        let (length, rest) = self.0.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let bytes = length
            .and_then(|length| length.checked_mul(N))
            .ok_or_else(cut)?;
        let (array, rest) = rest.split_at_checked(bytes).ok_or_else(cut)?;
        self.0 = rest;
        Ok(array.as_chunks().0)
    }

    /// Reads a string.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with a string in UTF-8.
    pub fn text(&mut self) -> Result<String, WireError> {
        let bytes = self.array::<1>()?.as_flattened();
        String::from_utf8(bytes.to_vec()).map_err(|error| WireError(error.to_string()))
    }

    /// Reads an array of `N` 64-bit integers.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with an array of this length.
    pub fn counts<const N: usize>(&mut self) -> Result<[u64; N], WireError> {
        let read: Vec<u64> = self
            .array()?
            .iter()
            .map(|x| u64::from_le_bytes(*x))
            .collect();
        read.try_into().map_err(|_| cut())
    }

    /// Reads an array of 32-bit integers.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with a complete array of 32-bit integers.
    pub fn numbers(&mut self) -> Result<Vec<u32>, WireError> {
        Ok(self
            .array()?
            .iter()
            .map(|x| u32::from_le_bytes(*x))
            .collect())
    }

    /// Reads an array of single-precision numbers.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with a complete array of single-precision numbers.
    pub fn singles(&mut self) -> Result<Vec<f32>, WireError> {
        Ok(self
            .array()?
            .iter()
            .map(|x| f32::from_le_bytes(*x))
            .collect())
    }

    /// Reads an array of single-precision numbers without copying it. Each element of the result contains the bytes of
    /// one number.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with a complete array of single-precision numbers.
    pub fn singles_in_place(&mut self) -> Result<&'a [[u8; 4]], WireError> {
        self.array()
    }

    /// Reads an array of double-precision numbers.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with a complete array of double-precision numbers.
    pub fn reals(&mut self) -> Result<Vec<f64>, WireError> {
        Ok(self
            .array()?
            .iter()
            .map(|x| f64::from_le_bytes(*x))
            .collect())
    }

    /// Reads an array of `N` double-precision numbers.
    ///
    /// # Errors
    /// Fails if the remaining bytes do not begin with an array of this length.
    pub fn fixed_reals<const N: usize>(&mut self) -> Result<[f64; N], WireError> {
        self.reals()?.try_into().map_err(|_| cut())
    }
}
