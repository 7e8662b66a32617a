//! Atomic writes. After a write, the file contains either the old version or the complete new version.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::DataError;

/// Writes the file `path` atomically. `fill` writes the content to a temporary file in the same folder. This file is
/// then synced to disk and renamed to `path`, and finally the folder is synced.
///
/// If a step fails, an old file at `path` is unchanged, and the temporary file is removed. Error messages refer to
/// `path`, not to the temporary file.
pub fn write_atomic(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), DataError> {
    write_and_rename(path, fill).map_err(|e| DataError::io("write", path, &e))
}

/// Like [`write_atomic`], but writes the given bytes.
pub fn write_atomic_bytes(path: &Path, bytes: &[u8]) -> Result<(), DataError> {
    write_atomic(path, |file| file.write_all(bytes))
}

fn write_and_rename(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("this is not a file name"))?;
    if path.is_dir() {
        return Err(io::Error::other("a folder with this name exists"));
    }
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    let (temporary, file) = create_temporary(folder, name)?;
    let mut writer = BufWriter::with_capacity(1 << 16, file);
    fill(&mut writer)?;
    let file = writer
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary.path, path)?;
    sync_folder(folder)
}

const ENDING: &str = ".tmp";

/// A file that is removed when this value is dropped, unless the file has been renamed.
struct Temporary {
    path: PathBuf,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A failure to remove the file is ignored, because an earlier error is already being reported.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates a hidden file next to the target and opens it. The name contains the process id and a counter, so that
/// concurrent writers use different files.
fn create_temporary(folder: &Path, name: &std::ffi::OsStr) -> io::Result<(Temporary, File)> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(
            ".{}.{}-{count}{ENDING}",
            name.to_string_lossy(),
            std::process::id()
        ));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((Temporary { path }, file)),
            // A process with the same id may have been killed before it removed this file.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(e) => return Err(e),
        }
    }
}

/// Removes temporary files that killed runs left in a folder. No other process may be writing to the folder.
///
/// # Errors
/// Fails if the folder cannot be read, or if a file cannot be removed.
pub fn sweep(folder: &Path) -> Result<(), DataError> {
    let io = |error| DataError::io("read the folder", folder, &error);
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if is_temporary(&entry.file_name().to_string_lossy()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(|error| DataError::io("remove", &path, &error))?;
        }
    }
    Ok(())
}

fn is_temporary(name: &str) -> bool {
    let counted = name
        .strip_prefix('.')
        .and_then(|name| name.strip_suffix(ENDING));
    let numbers = counted
        .and_then(|name| name.rsplit_once('.'))
        .map(|(_, n)| n);
    let pair = numbers.and_then(|numbers| numbers.split_once('-'));
    pair.is_some_and(|(id, count)| id.parse::<u32>().is_ok() && count.parse::<u64>().is_ok())
}

/// Syncs `folder` to disk, so that a new or renamed file in it survives a crash.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Does nothing, because this operating system cannot open a folder as a file.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
