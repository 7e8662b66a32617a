//! The folder of a run, which the user specifies with the option `--out DIR`.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::atomic::{sweep, write_atomic_bytes};
use crate::digests::Digests;
use crate::error::DataError;
use crate::files::{check_plain, list_folder};

const LAYOUT: u32 = 1;

/// A file that a fit may write to the folder of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Artefact {
    /// The marker. This file shows that the folder belongs to Jensen, and states the command that wrote the folder.
    Marker,
    /// The summary of the fit, which is a [`crate::FitSummary`].
    Fit,
    /// The posterior draws in the format of Stan CSV.
    DrawsCsv,
    /// The posterior draws in the NetCDF-4 format, for ArviZ.
    DrawsNetcdf,
    /// The trace of the optimisation, which contains one JSON object per iteration.
    Trace,
    /// The HTML report.
    Report,
    /// The parameters of the approximation.
    Approximation,
    /// The state of an unfinished run.
    Checkpoint,
    /// The refined draws on the unconstrained scale.
    Refined,
    /// The digest that each file had when it was written; see [`crate::Digests`].
    Digests,
}

impl Artefact {
    /// All artefacts, together with their file names.
    pub const ALL: [(Artefact, &'static str); 10] = [
        (Artefact::Marker, "jensen.json"),
        (Artefact::Fit, "fit.json"),
        (Artefact::DrawsCsv, "draws.csv"),
        (Artefact::DrawsNetcdf, "draws.nc"),
        (Artefact::Trace, "trace.jsonl"),
        (Artefact::Report, "report.html"),
        (Artefact::Approximation, "approximation.safetensors"),
        (Artefact::Checkpoint, "checkpoint.safetensors"),
        (Artefact::Refined, "refined.safetensors"),
        (Artefact::Digests, "digests.json"),
    ];

    /// Returns the name of the artefact's file in the folder of a run.
    pub fn file_name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

#[derive(Serialize, Deserialize)]
struct Marker {
    layout: u32,
    command: String,
    version: String,
}

/// The folder to which a finished fit is moved while a new run writes its files.
const EARLIER: &str = ".earlier";

fn move_files(names: &[String], from: &Path, to: &Path) -> Result<(), DataError> {
    for name in names {
        let path = from.join(name);
        match fs::rename(&path, to.join(name)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(DataError::io("move", &path, &e));
            }
            _ => {}
        }
    }
    Ok(())
}

fn remove_files(paths: &[PathBuf]) -> Result<(), DataError> {
    for path in paths {
        fs::remove_file(path).map_err(|e| DataError::io("remove", path, &e))?;
    }
    Ok(())
}

/// A folder that belongs to one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
    command: String,
}

impl RunDir {
    /// Prepares a folder for a run of `command` (such as `fit`). If the folder does not exist, it is created with its
    /// parents. An existing folder must be empty or belong to an earlier run of the same command. The files of an
    /// earlier run remain until they are replaced or until [`RunDir::clear`] is called. Fails if the path is a file, or
    /// if the folder contains foreign files.
    pub fn create(path: &Path, command: &str) -> Result<Self, DataError> {
        if path.exists() && !path.is_dir() {
            return Err(DataError::invalid(format!(
                "cannot write results to `{}`: it is a file; name a folder",
                path.display()
            )));
        }
        fs::create_dir_all(path).map_err(|e| DataError::io("create the folder", path, &e))?;
        let marker_path = path.join(Artefact::Marker.file_name());
        if marker_path.exists() {
            let run = Self::open(path)?;
            if run.command != command {
                return Err(DataError::invalid(format!(
                    "the folder `{}` has results of `jensen {}`; choose another one for `jensen {command}`",
                    path.display(),
                    run.command
                )));
            }
            return Ok(run);
        }
        sweep(path)?;
        let mut entries =
            fs::read_dir(path).map_err(|e| DataError::io("read the folder", path, &e))?;
        if let Some(entry) = entries.next() {
            let entry = entry.map_err(|e| DataError::io("read the folder", path, &e))?;
            return Err(DataError::invalid(format!(
                "the folder `{}` is not empty and was not written by jensen (it has `{}`); choose a new or \
                 empty folder",
                path.display(),
                entry.file_name().to_string_lossy()
            )));
        }
        let marker = Marker {
            layout: LAYOUT,
            command: command.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
        };
        let text = serde_json::to_string(&marker).map_err(|e| DataError::invalid(e.to_string()))?;
        write_atomic_bytes(&marker_path, format!("{text}\n").as_bytes())?;
        Ok(Self {
            path: path.to_path_buf(),
            command: command.to_string(),
        })
    }

    /// Opens the folder of an earlier run, in order to resume the run or to read its results.
    pub fn open(path: &Path) -> Result<Self, DataError> {
        let marker_path = path.join(Artefact::Marker.file_name());
        let foreign = |why: &str| {
            DataError::invalid(format!(
                "Jensen did not write the folder `{}`: {why}",
                path.display()
            ))
        };
        if !path.is_dir() {
            return Err(foreign("there is no such folder"));
        }
        for entry in list_folder(path)? {
            check_plain(&entry)?;
        }
        let text = match fs::read_to_string(&marker_path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(foreign("it has no `jensen.json`"));
            }
            Err(e) => return Err(DataError::io("read", &marker_path, &e)),
        };
        let marker: Marker = serde_json::from_str(&text)
            .map_err(|_| foreign("its `jensen.json` has another format"))?;
        if marker.layout > LAYOUT {
            return Err(DataError::invalid(format!(
                "the folder `{}` was written by a newer version of Jensen ({}); this version reads folder layout {LAYOUT}",
                path.display(),
                marker.version
            )));
        }
        Ok(Self {
            path: path.to_path_buf(),
            command: marker.command,
        })
    }

    /// Removes the temporary files of killed runs. Only the owner of the folder's [`Claim`] may call this function.
    pub fn sweep(&self) -> Result<(), DataError> {
        sweep(&self.path)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the command that wrote the results in the folder.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns the path of an artefact, whether or not the file exists.
    pub fn artefact(&self, artefact: Artefact) -> PathBuf {
        self.path.join(artefact.file_name())
    }

    /// Returns whether an artefact exists.
    pub fn has(&self, artefact: Artefact) -> bool {
        self.artefact(artefact).is_file()
    }

    /// Returns the paths of the existing artefacts except the marker, in the order of [`Artefact::ALL`].
    pub fn artefacts(&self) -> Vec<PathBuf> {
        let listed = Artefact::ALL
            .iter()
            .filter(|(a, _)| *a != Artefact::Marker && self.has(*a));
        listed.map(|(a, _)| self.artefact(*a)).collect()
    }

    /// Removes the artefacts of an earlier run. If the new run is interrupted, old artefacts could otherwise be
    /// mistaken for its own.
    pub fn clear(&self) -> Result<(), DataError> {
        remove_files(&self.artefacts())
    }

    /// Prepares the folder for a new run. A finished fit is moved to a subfolder, and the files of an unfinished run
    /// are removed. [`RunDir::bring_back`] restores the finished fit, and [`RunDir::forget_earlier`] removes it.
    ///
    /// # Errors
    /// Fails if a file cannot be moved or removed. In this case, the finished fit stays where it was.
    pub fn make_room(&self) -> Result<(), DataError> {
        let names = Digests::names(self).filter(|_| self.has(Artefact::Fit));
        let Some(mut names) = names else {
            return self.clear();
        };
        self.forget_earlier()?;
        let aside = self.path.join(EARLIER);
        fs::create_dir(&aside).map_err(|e| DataError::io("create the folder", &aside, &e))?;
        names.extend(
            Artefact::ALL[1..]
                .iter()
                .map(|(_, name)| (*name).to_owned()),
        );
        let marker = self.artefact(Artefact::Marker);
        let moved = fs::copy(&marker, aside.join(Artefact::Marker.file_name()))
            .map_err(|e| DataError::io("copy", &marker, &e))
            .and_then(|_| move_files(&names, &self.path, &aside));
        if moved.is_err() {
            // The files that have already been moved are moved back. If this fails as well, the second error is
            // ignored, because the first error is reported.
            names.retain(|name| aside.join(name).exists());
            drop(move_files(&names, &aside, &self.path).and_then(|()| self.forget_earlier()));
        }
        moved
    }

    /// Restores the fit that was moved to a subfolder, and removes the files of the failed run.
    ///
    /// # Errors
    /// Fails if a file cannot be moved or removed.
    pub fn bring_back(&self) -> Result<(), DataError> {
        let aside = Self {
            path: self.path.join(EARLIER),
            command: self.command.clone(),
        };
        let Some(mut names) = Digests::names(&aside) else {
            return Ok(());
        };
        names.extend(
            Artefact::ALL[1..]
                .iter()
                .map(|(_, name)| (*name).to_owned()),
        );
        // The fit is moved back first, so that it is complete even if a file of the failed run cannot be removed.
        let ours = |path: &PathBuf| {
            !aside
                .path
                .join(path.file_name().unwrap_or_default())
                .exists()
        };
        let failed: Vec<PathBuf> = self.artefacts().into_iter().filter(ours).collect();
        move_files(&names, &aside.path, &self.path)?;
        remove_files(&failed)?;
        self.forget_earlier()
    }

    /// Removes the fit that was moved to a subfolder, if there is one.
    ///
    /// # Errors
    /// Fails if a file of the fit cannot be removed.
    pub fn forget_earlier(&self) -> Result<(), DataError> {
        let aside = self.path.join(EARLIER);
        match fs::remove_dir_all(&aside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(DataError::io("remove", &aside, &e))
            }
            _ => Ok(()),
        }
    }

    /// Removes an artefact if it exists. For example, the checkpoint is removed when a run has finished.
    pub fn remove(&self, artefact: Artefact) -> Result<(), DataError> {
        let path = self.artefact(artefact);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                Err(DataError::io("remove", &path, &e))
            }
            _ => Ok(()),
        }
    }
}

/// A lock on a folder, which reserves the folder for one run. The lock is released when this value is dropped or when
/// the process ends.
#[derive(Debug)]
pub struct Claim(Option<File>);

impl Claim {
    /// Locks a folder, which is created if it does not exist. If the path cannot be a folder, this function does
    /// nothing, and [`RunDir::create`] reports the error.
    ///
    /// # Errors
    /// Fails if another run holds the lock, either in this process or in another process.
    pub fn of(path: &Path) -> Result<Self, DataError> {
        // The lock is on the folder itself and not on a file in it, because files are replaced by new files. If the
        // operating system cannot open or lock folders, users have to ensure that runs do not share a folder.
        let opened = fs::create_dir_all(path).and_then(|()| File::open(path));
        let Ok(folder) = opened else {
            return Ok(Self(None));
        };
        match folder.try_lock() {
            Ok(()) => Ok(Self(Some(folder))),
            Err(TryLockError::WouldBlock) => Err(DataError::invalid(format!(
                "another run is writing to the folder `{}`: wait until it has ended, or choose another folder",
                path.display()
            ))),
            Err(TryLockError::Error(_)) => Ok(Self(None)),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // Closing the folder usually releases the lock. It does not if a forked child process also has the folder
            // open.
            let _ = folder.unlock();
        }
    }
}
