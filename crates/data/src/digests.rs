//! The file `digests.json` in the folder of a run. It records the digest that each file in the folder had when it was
//! written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic::write_atomic_bytes;
use crate::error::DataError;
use crate::files::read_optional;
use crate::run_dir::{Artefact, RunDir};

/// The SHA-256 digests of files. The keys of the map are the names of the files in the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests(BTreeMap<String, String>);

/// The content of `digests.json`. The field `digest` is the digest of the list of files, and shows whether the list has
/// changed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    files: BTreeMap<String, String>,
    digest: String,
}

impl Digests {
    /// Computes and records the digest of a file in the folder.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn note(&mut self, folder: &RunDir, name: &str) -> Result<(), DataError> {
        let path = folder.path().join(name);
        let digest = of_file(&path).map_err(|e| DataError::io("read", &path, &e))?;
        self.0.insert(name.to_owned(), digest);
        Ok(())
    }

    /// Records the digest of a file that is about to be written with these bytes.
    pub fn note_bytes(&mut self, name: &str, bytes: &[u8]) {
        self.0.insert(name.to_owned(), hex(Sha256::digest(bytes)));
    }

    /// Writes `digests.json` to the folder.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, folder: &RunDir) -> Result<(), DataError> {
        let stored = Stored {
            files: self.0.clone(),
            digest: of_names(&self.0),
        };
        let text =
            serde_json::to_string_pretty(&stored).map_err(|e| DataError::invalid(e.to_string()))?;
        let path = folder.artefact(Artefact::Digests);
        write_atomic_bytes(&path, format!("{text}\n").as_bytes())
    }

    pub(crate) fn names(folder: &RunDir) -> Option<Vec<String>> {
        let bytes = fs::read(folder.artefact(Artefact::Digests)).ok()?;
        let stored: Stored = serde_json::from_slice(&bytes).ok()?;
        // The name must not refer to a file outside the folder.
        let plain = |name: &String| !name.contains(['/', '\\']) && name != "..";
        Some(stored.files.into_keys().filter(plain).collect())
    }

    /// Reads the digests of a folder. Returns `None` if the run that wrote the folder was killed.
    ///
    /// # Errors
    /// Fails if the digests were changed, or if the folder contains a result but no digests.
    pub fn read(folder: &RunDir) -> Result<Option<Self>, DataError> {
        let path = folder.artefact(Artefact::Digests);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return match folder.has(Artefact::Fit) {
                    false => Ok(None),
                    true => Err(DataError::invalid(format!(
                        "`{}` is missing, so Jensen cannot verify that the files of this folder belong to one \
                         fit; restore the file, or fit again",
                        path.display()
                    ))),
                };
            }
            Err(e) => return Err(DataError::io("read", &path, &e)),
        };
        let stored = serde_json::from_slice::<Stored>(&bytes).ok();
        let stored = stored.filter(|stored| stored.digest == of_names(&stored.files));
        stored
            .map(|stored| Some(Self(stored.files)))
            .ok_or_else(|| changed(&path))
    }

    /// Reads an archive from a folder and checks that it has not changed. An archive contains a digest of its own. This
    /// digest detects damage, but it does not detect that an archive belongs to another fit. Returns `None` if the fit
    /// wrote no archive.
    ///
    /// # Errors
    /// Fails if the archive is missing, cannot be read, or is not the file that the fit wrote.
    pub fn archive(folder: &RunDir, artefact: Artefact) -> Result<Option<Vec<u8>>, DataError> {
        let path = folder.artefact(artefact);
        let noted = Self::read(folder)?.and_then(|all| all.0.get(artefact.file_name()).cloned());
        match (noted, read_optional(&path)?) {
            (None, None) => Ok(None),
            (Some(noted), Some(bytes)) if noted == hex(Sha256::digest(&bytes)) => Ok(Some(bytes)),
            (Some(_), None) => Err(DataError::invalid(format!(
                "`{}` is missing; restore the file, or fit again",
                path.display()
            ))),
            _ => Err(DataError::invalid(format!(
                "the SHA-256 of `{}` is not the one that this fit stored: the file is damaged or from another \
                 fit, and the verdict does not apply to it; restore the file, or fit again",
                path.display()
            ))),
        }
    }

    /// Checks that the files of a folder have not changed. Missing files are ignored, because the functions that read
    /// them report an error. Folders without digests, such as those of killed runs, are also ignored. This function
    /// does not check archives, because [`Digests::archive`] does.
    ///
    /// # Errors
    /// Fails if one of the files or the list of digests has changed.
    pub fn check(folder: &RunDir) -> Result<(), DataError> {
        let files = Self::read(folder)?.unwrap_or_default().0;
        for (name, digest) in files.iter().filter(|(name, _)| !is_archive(name)) {
            let path = folder.path().join(name);
            match of_file(&path) {
                Ok(found) if found == *digest => {}
                Ok(_) => return Err(changed(&path)),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(DataError::io("read", &path, &e)),
            }
        }
        Ok(())
    }
}

fn is_archive(name: &str) -> bool {
    name.ends_with(".safetensors")
}

fn changed(path: &Path) -> DataError {
    DataError::invalid(format!(
        "the SHA-256 of `{}` is not the one that was stored: the file was damaged or changed after it was \
         written; restore the file, or fit again",
        path.display()
    ))
}

fn of_file(path: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut File::open(path)?, &mut hash)?;
    Ok(hex(hash.finalize()))
}

fn of_names(files: &BTreeMap<String, String>) -> String {
    let mut hash = Sha256::new();
    for (name, digest) in files {
        hash.update(format!("{name}\n{digest}\n"));
    }
    hex(hash.finalize())
}

fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}
