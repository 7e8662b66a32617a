//! The bytes of a file: mapped where it is large and plain, else held.

use std::fs::File;
use std::ops::Deref;
use std::path::Path;

use memmap2::Mmap;

use crate::error::DataError;
use crate::table::read_bytes;

/// Length from which a file is mapped: reading a small one costs less than its mapping.
const MAPPED: u64 = 1 << 20;

/// The bytes of a file.
#[derive(Debug)]
pub enum Bytes {
    /// A read-only view of the file, which must not be cut short while it is there.
    Mapped(Mmap),
    /// A copy.
    Held(Vec<u8>),
}

impl Bytes {
    /// The bytes of a file, decompressed where its name ends in `.gz`.
    ///
    /// # Errors
    /// When the file cannot be read or its compressed stream is damaged.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let failed = |error| DataError::io("read", path, &error);
        if path.extension().is_some_and(|e| e == "gz") {
            return read_bytes(path).map(Self::Held);
        }
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() || about.len() < MAPPED {
            return read_bytes(path).map(Self::Held);
        }
        // SAFETY: the mapping is read-only. A file that is changed while it is mapped gives other numbers; one that is cut
        // short ends the process, as any mapped file does.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Self::Mapped(map))
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}
