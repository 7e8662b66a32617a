//! The folder of a fit job, which is claimed for a new run or opened to resume or read it.

use std::fmt::Display;
use std::path::Path;

use jensen_data::{
    Artefact, Digests, RunDir, read_bytes, read_trace, remove_file, write_atomic_bytes,
};
use jensen_run::{Checkpoint, Identity, Observer, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Job;
use crate::Error;

/// The file of the request.
pub(super) const REQUEST: &str = "run.json";

/// Version of the layout of [`REQUEST`].
const LAYOUT: u64 = 1;

/// Rejects a resume into a different folder.
///
/// # Errors
/// `out` is not the folder of the run.
pub fn check_in_place(out: Option<&Path>, resumed: &Path) -> Result<(), Error> {
    match out {
        Some(out) if out.canonicalize().ok() != resumed.canonicalize().ok() => Err(Error::Setting(
            "a resumed run continues in its own folder: remove --out".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Prepares a folder that the caller has locked for a new run of `command`. Moves a finished fit aside, and removes all
/// other files of an earlier run, including its `own` files.
///
/// # Errors
/// Fails if the folder is not empty and belongs to no run of this command, or it cannot be written.
pub fn take(path: &Path, command: &str, own: &[&str]) -> Result<RunDir, Error> {
    let folder = RunDir::create(path, command).map_err(Error::output)?;
    folder.make_room().map_err(Error::output)?;
    let removed: Result<(), _> = own
        .iter()
        .try_for_each(|name| remove_file(&folder.path().join(name)));
    if let Err(error) = removed {
        // The error that led here is the one to report.
        drop(folder.bring_back());
        return Err(Error::output(error));
    }
    Ok(folder)
}

/// Opens the folder of an earlier run of `command` after checking the digests of its files.
///
/// # Errors
/// Fails if the folder does not belong to that command, or one of its files has changed.
pub fn open(path: &Path, command: &str) -> Result<RunDir, Error> {
    let folder = RunDir::open(path)?;
    if folder.command() != command {
        return Err(Error::Input(format!(
            "the folder `{}` has results of `jensen {}`, not of `jensen {command}`",
            path.display(),
            folder.command()
        )));
    }
    Digests::check(&folder)?;
    Ok(folder)
}

/// Stores the request of a fit job.
pub(super) fn write_request(folder: &RunDir, request: &impl Serialize) -> Result<(), Error> {
    let mut stored = json!({ "layout": LAYOUT, "version": env!("CARGO_PKG_VERSION") });
    let fields = serde_json::to_value(request).map_err(Error::output)?;
    if let (Value::Object(stored), Value::Object(fields)) = (&mut stored, fields) {
        stored.extend(fields);
    }
    let text = super::to_json(&stored)?;
    write_atomic_bytes(&folder.path().join(REQUEST), text.as_bytes()).map_err(Error::output)
}

/// Returns whether the folder has a request.
pub fn has_request(folder: &RunDir) -> bool {
    folder.path().join(REQUEST).is_file()
}

/// Reads the request. Unknown names are errors if the type denies unknown fields, as the requests of this crate do.
///
/// # Errors
/// Fails if the file is missing, damaged or has another layout.
pub fn read_request<T: DeserializeOwned>(folder: &RunDir) -> Result<T, Error> {
    let path = folder.path().join(REQUEST);
    let damaged = |error| Error::Input(format!("`{}` is damaged: {error}", path.display()));
    let mut stored: Value = serde_json::from_slice(&read_bytes(&path)?).map_err(damaged)?;
    if stored["layout"] != LAYOUT {
        return Err(Error::Input(format!(
            "the folder `{}` comes from jensen {}, but this is {}: use that version",
            folder.path().display(),
            stored["version"].as_str().unwrap_or("of another version"),
            env!("CARGO_PKG_VERSION")
        )));
    }
    if let Value::Object(fields) = &mut stored {
        fields.remove("layout");
        fields.remove("version");
    }
    serde_json::from_value(stored).map_err(damaged)
}

/// Returns the bytes of the approximation of a finished run. `again` is the command that would finish the run.
///
/// # Errors
/// Fails if the run has not finished, or the file cannot be read.
pub fn approximation(folder: &RunDir, again: &str) -> Result<Vec<u8>, Error> {
    Digests::archive(folder, Artefact::Approximation)?.ok_or_else(|| {
        Error::Input(format!(
            "the fit in `{0}` has not finished: resume it first (`{again} --resume {0}`)",
            folder.path().display()
        ))
    })
}

/// Returns the error of a damaged approximation, with its path.
pub fn bad_approximation(folder: &RunDir, error: impl Display) -> Error {
    let path = folder.artefact(Artefact::Approximation);
    Error::Input(format!("`{}`: {error}", path.display()))
}

/// The state from which a run continues: its last checkpoint, and the trace lines before it.
pub(super) struct Position {
    /// The checkpoint, with the identity of the continuing run.
    pub(super) checkpoint: Checkpoint,
    /// The lines.
    pub(super) records: Vec<Record>,
}

/// Returns the state from which a stored run continues, if a checkpoint exists. A checkpoint of another run is rejected
/// unless forced. Budgets may differ. The function does not change the folder, so a rejected resume leaves it as it
/// was.
pub(super) fn position<S: Job>(
    folder: &RunDir,
    job: &S,
    force: bool,
    observer: &mut dyn Observer,
) -> Result<Option<Position>, Error> {
    if !folder.has(Artefact::Checkpoint) {
        observer.note("the run has no checkpoint yet, so it starts again");
        return Ok(None);
    }
    let path = folder.artefact(Artefact::Checkpoint);
    let mut checkpoint = Checkpoint::decode(&read_bytes(&path)?)
        .map_err(|error| Error::Input(format!("`{}`: {error}", path.display())))?;
    let present = job.identity();
    let mut bare = present.clone();
    for identity in [&mut checkpoint.identity, &mut bare] {
        for pointer in job.budgets() {
            set_aside(&mut identity.settings, pointer);
        }
    }
    let changes = differences(&checkpoint, &bare);
    if !changes.is_empty() {
        if !force {
            return Err(Error::Setting(format!(
                "the stored run differs: {}; use the same model, data and flags, or add --force, which gives \
                 up reproducibility",
                changes.join("; ")
            )));
        }
        observer.note(&format!(
            "resumed with a different setting: {}",
            changes.join("; ")
        ));
    }
    job.can_go_on_from(&checkpoint.identity)?;
    // The loop compares again, and accepts differences that were accepted here.
    checkpoint.version = env!("CARGO_PKG_VERSION").to_owned();
    checkpoint.identity = present;
    let mut records: Vec<Record> = read_trace(&folder.artefact(Artefact::Trace))?;
    records.truncate(usize::try_from(checkpoint.iteration).unwrap_or(usize::MAX));
    Ok(Some(Position {
        checkpoint,
        records,
    }))
}

/// Removes the value at a JSON pointer.
fn set_aside(settings: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(Value::Object(fields)) = settings.pointer_mut(parent) {
        fields.shift_remove(name);
    }
}

/// Returns the differences between a checkpoint and a run of this identity, one phrase each.
fn differences(checkpoint: &Checkpoint, present: &Identity) -> Vec<String> {
    let mut changes = Vec::new();
    for difference in checkpoint.differences(present) {
        if difference.field == "settings" {
            let (stored, now) = (&checkpoint.identity.settings, &present.settings);
            leaves("settings", stored, now, &mut changes);
        } else if difference.field != "seed"
            || !changes.iter().any(|text| text.starts_with("seed:"))
        {
            // Most settings include the seed.
            changes.push(difference.to_string());
        }
    }
    changes
}

/// Collects the innermost values in which two settings differ.
fn leaves(name: &str, stored: &Value, now: &Value, changes: &mut Vec<String>) {
    match (stored, now) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for ((key, stored), now) in a.iter().zip(b.values()) {
                leaves(key, stored, now, changes);
            }
        }
        _ if stored != now => changes.push(format!("{name}: stored {stored}, now {now}")),
        _ => {}
    }
}
