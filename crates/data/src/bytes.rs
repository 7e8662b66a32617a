//! The bytes of a file. A large uncompressed file is mapped, and any other file is read into memory.

use std::fs::{File, Metadata};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memmap2::Mmap;

use crate::error::DataError;
use crate::files::HELD;
use crate::table::read_bytes_within;

/// The smallest length, in bytes, of a file that is mapped. Shorter files are copied into memory, where other processes
/// cannot change them.
const MAPPED: u64 = 64 << 20;

/// The bytes of a file, which are either mapped or held in memory.
#[derive(Debug)]
pub enum Bytes {
    /// The content of a file that is mapped into memory.
    Mapped(Mapped),
    /// The content of a file that was read into memory.
    Held(Vec<u8>),
}

impl Bytes {
    /// Reads a file. If its name ends in `.gz`, decompresses it.
    ///
    /// # Errors
    /// Fails if the file cannot be read or if its compressed stream is damaged.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::read_within(path, HELD)
    }

    /// Like [`read`](Self::read), but with a limit on the number of decompressed bytes.
    ///
    /// # Errors
    /// Fails under the same conditions as [`read`](Self::read), and if the file exceeds the limit.
    pub fn read_within(path: &Path, most: u64) -> Result<Self, DataError> {
        let failed = |error| DataError::io("read", path, &error);
        if path.extension().is_some_and(|e| e == "gz") {
            return read_bytes_within(path, most).map(Self::Held);
        }
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() || about.len() < MAPPED {
            return read_bytes_within(path, most).map(Self::Held);
        }
        Mapped::of(file, path).map(Self::Mapped)
    }

    /// Checks that the file has not changed since it was opened. This check always succeeds for bytes that were read
    /// into memory.
    ///
    /// # Errors
    /// Fails if the file has changed.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        match self {
            Self::Mapped(mapped) => mapped.check_unchanged(),
            Self::Held(_) => Ok(()),
        }
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

/// A file that is mapped into memory. Jensen cannot prevent other processes from writing to the file. Every reader must
/// therefore call [`Mapped::check_unchanged`] before it uses results that it computed from the bytes. If another
/// process truncates the file, reading a missing page raises a signal, which the command converts to an error.
#[derive(Debug)]
pub struct Mapped {
    map: Mmap,
    file: File,
    path: PathBuf,
    stamp: Stamp,
}

/// The length and the modification time of a file. If either of them differs, the file is regarded as changed.
type Stamp = (u64, Option<SystemTime>);

fn stamp(about: &Metadata) -> Stamp {
    (about.len(), about.modified().ok())
}

impl Mapped {
    /// Maps a file.
    ///
    /// # Errors
    /// Fails if the file cannot be mapped.
    pub fn of(file: File, path: &Path) -> Result<Self, DataError> {
        let failed = |error| DataError::io("read", path, &error);
        let stamp = stamp(&file.metadata().map_err(failed)?);
        // SAFETY: the mapping is read-only, and every bit pattern is a valid byte. Other processes may change the
        // bytes, but no code relies on the bytes being unchanged. Readers check the bytes that they decode, and call
        // `check_unchanged` before they use results.
        let map = unsafe { Mmap::map(&file) }.map_err(failed)?;
        Ok(Self {
            map,
            file,
            path: path.to_owned(),
            stamp,
        })
    }

    /// Checks that the file has not changed since it was mapped.
    ///
    /// # Errors
    /// Fails if the length or the modification time of the file has changed.
    pub fn check_unchanged(&self) -> Result<(), DataError> {
        let now = self.file.metadata();
        let now = now.map_err(|error| DataError::io("read", &self.path, &error))?;
        if stamp(&now) == self.stamp {
            return Ok(());
        }
        Err(DataError::invalid(format!(
            "`{}` changed while Jensen read it, so the results are not valid: run again, and replace a file \
             only by renaming a complete new one",
            self.path.display()
        )))
    }

    /// Removes the mapped pages from the memory of this process. The operating system keeps them in its cache.
    pub fn release(&self) {
        #[cfg(unix)]
        {
            // SAFETY: the operating system reads the pages of a read-only mapping again when they are accessed. If it
            // ignores the advice, nothing changes.
            let _ = unsafe {
                self.map
                    .unchecked_advise(memmap2::UncheckedAdvice::DontNeed)
            };
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
