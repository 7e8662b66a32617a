//! Reads, writes and lists complete files and folders.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::DataError;

/// The default limit, in bytes, on inputs whose length is not known in advance: pipes, devices and compressed files.
pub const HELD: u64 = 1 << 30;

/// Reads all bytes of a file.
///
/// # Errors
/// Fails if the file cannot be read, or if it is a pipe or a device that supplies more than a gibibyte.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, DataError> {
    read_bytes_within(path, HELD)
}

/// Reads a file of at most `most` bytes. For a pipe or a device, the limit is a gibibyte.
///
/// # Errors
/// Fails if the file cannot be read or exceeds the limit.
pub fn read_bytes_within(path: &Path, most: u64) -> Result<Vec<u8>, DataError> {
    let failed = |e| DataError::io("read", path, &e);
    let mut file = File::open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if about.is_file() || about.is_dir() {
        let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
        file.read_to_end(&mut bytes).map_err(failed)?;
        return Ok(bytes);
    }
    let most = most.min(HELD);
    let bytes = held(file, most).map_err(failed)?;
    bytes.ok_or_else(|| {
        DataError::invalid(format!(
            "`{}` is not a file and yields more than {}: write its content to a file",
            path.display(),
            bytes_in_words(most)
        ))
    })
}

/// Formats a number of bytes in the largest unit that gives an integer, for example as `256 MiB`.
pub(crate) fn bytes_in_words(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = |(shift, _): &(u32, &str)| bytes > 0 && bytes.trailing_zeros() >= *shift;
    match units.iter().find(|unit| whole(unit)) {
        Some((shift, unit)) => format!("{} {unit}", bytes >> shift),
        None => format!("{bytes} bytes"),
    }
}

pub(crate) fn held(reader: impl Read, most: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Checks that the path is a file or a folder. Reading anything else could block indefinitely.
///
/// # Errors
/// Fails if the path is a pipe, a socket or a device.
pub(crate) fn check_plain(path: &Path) -> Result<(), DataError> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() && !about.is_dir() => Err(DataError::invalid(format!(
            "`{}` is a pipe or a device, but Jensen needs a file",
            path.display()
        ))),
        _ => Ok(()),
    }
}

/// Reads a text file.
///
/// # Errors
/// Fails if the file cannot be read or is not UTF-8. If the file is not UTF-8, the message contains the location of the
/// invalid byte.
pub fn read_text(path: &Path) -> Result<String, DataError> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        DataError::invalid(format!(
            "`{}` is not UTF-8 text: see byte {}",
            path.display(),
            error.utf8_error().valid_up_to() + 1
        ))
    })
}

/// Reads the file `name` from the first of the `folders` that contains it, or returns `None` if none of them contains
/// it. After symbolic links are resolved, the file must still be inside the folder.
///
/// # Errors
/// Fails if the file cannot be read, or if its resolved path is outside the folder.
pub fn read_within(folders: &[PathBuf], name: &str) -> Result<Option<String>, DataError> {
    for folder in folders {
        let (Ok(root), Ok(file)) = (folder.canonicalize(), folder.join(name).canonicalize()) else {
            continue;
        };
        if !file.starts_with(&root) {
            return Err(DataError::invalid(format!(
                "it points outside `{}`",
                folder.display()
            )));
        }
        check_plain(&file)?;
        return read_text(&file).map(Some);
    }
    Ok(None)
}

/// Reads the bytes of a file, or returns `None` if the file does not exist.
///
/// # Errors
/// Fails if the file exists but cannot be read.
pub fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, DataError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(DataError::io("read", path, &e)),
    }
}

/// Creates a folder, including its parent folders, unless it already exists.
///
/// # Errors
/// Fails if the folder cannot be created.
pub fn create_folder(path: &Path) -> Result<(), DataError> {
    fs::create_dir_all(path).map_err(|e| DataError::io("create the folder", path, &e))
}

/// Removes a file if it exists.
///
/// # Errors
/// Fails if the file exists but cannot be removed.
pub fn remove_file(path: &Path) -> Result<(), DataError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(DataError::io("remove", path, &error))
        }
        _ => Ok(()),
    }
}

/// Lists the entries of a folder, sorted by name. Returns an empty list if the folder does not exist.
///
/// # Errors
/// Fails if the folder exists but cannot be read.
pub fn list_folder(path: &Path) -> Result<Vec<PathBuf>, DataError> {
    let failed = |e: std::io::Error| DataError::io("read the folder", path, &e);
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

/// Removes the files with the given extension from a folder. Files in subfolders are not removed.
///
/// # Errors
/// Fails if one of the files cannot be removed.
pub fn remove_files(folder: &Path, extension: &str) -> Result<(), DataError> {
    for path in list_folder(folder)? {
        if path.is_file() && path.extension().is_some_and(|e| e == extension) {
            fs::remove_file(&path).map_err(|e| DataError::io("remove", &path, &e))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shown_as_they_were_given() {
        let shown = [1 << 30, 256 << 20, 3 << 10, 5, 0].map(bytes_in_words);
        assert_eq!(shown, ["1 GiB", "256 MiB", "3 KiB", "5 bytes", "0 bytes"]);
    }

    #[test]
    fn what_has_no_end_is_not_read_to_it() {
        let read = |count| held(std::io::repeat(7).take(count), 1000).unwrap();
        assert_eq!(read(1000), Some(vec![7; 1000]));
        assert_eq!(read(1001), None);
        assert_eq!(held(std::io::repeat(0), 1000).unwrap(), None);
    }

    #[test]
    fn files_come_in_order_and_only_the_named_kind_goes() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        assert_eq!(list_folder(&folder).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(read_optional(&folder.join("x.json")).unwrap(), None);
        create_folder(&folder).unwrap();
        for name in ["y.json", "x.json", "x.txt"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let names = |paths: Vec<PathBuf>| -> Vec<String> {
            let name = |p: &PathBuf| p.file_name().unwrap().to_string_lossy().into_owned();
            paths.iter().map(name).collect()
        };
        assert_eq!(
            names(list_folder(&folder).unwrap()),
            ["x.json", "x.txt", "y.json"]
        );
        assert_eq!(read_bytes(&folder.join("x.txt")).unwrap(), b"x.txt");
        remove_files(&folder, "json").unwrap();
        assert_eq!(names(list_folder(&folder).unwrap()), ["x.txt"]);
        let missing = read_bytes(&folder.join("x.json")).unwrap_err();
        assert!(missing.to_string().contains("x.json"), "{missing}");
    }
}
