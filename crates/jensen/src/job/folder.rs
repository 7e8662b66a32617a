//! The folder of a fit job. A new run claims the folder, and later commands open it.

use std::fmt::Display;
use std::path::Path;

use jensen_blackbox::FamilyChoice;
use jensen_data::{
    Artefact, Digests, RunDir, read_bytes, read_trace, remove_file, write_atomic_bytes,
};
use jensen_run::{Checkpoint, Identity, Observer, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Job;
use crate::Error;

pub(super) const REQUEST: &str = "run.json";

const LAYOUT: u64 = 1;

/// Checks that a resumed run writes to the folder of the stored run.
///
/// # Errors
/// Fails if `out` is given and is a different folder.
pub fn check_in_place(out: Option<&Path>, resumed: &Path) -> Result<(), Error> {
    match out {
        Some(out) if out.canonicalize().ok() != resumed.canonicalize().ok() => Err(Error::Setting(
            "a resumed run continues in its own folder: remove --out".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// Prepares a folder for a new run of `command`. The caller must have locked the folder. If the folder contains a
/// finished fit, the function moves it aside. The function removes all other files of an earlier run, including the
/// files in `own` that only this job writes.
///
/// # Errors
/// Fails if the folder is not empty and does not contain a run of this command, or if it cannot be written.
pub fn take(path: &Path, command: &str, own: &[&str]) -> Result<RunDir, Error> {
    let folder = RunDir::create(path, command).map_err(Error::output)?;
    folder.make_room().map_err(Error::output)?;
    let removed: Result<(), _> = own
        .iter()
        .try_for_each(|name| remove_file(&folder.path().join(name)));
    if let Err(error) = removed {
        // An error of this call is ignored, because the original error is more important to the user.
        drop(folder.bring_back());
        return Err(Error::output(error));
    }
    Ok(folder)
}

/// Opens the folder of an earlier run of `command` and verifies the digests of its files.
///
/// # Errors
/// Fails if the folder does not belong to this command or if one of its files has changed.
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

pub(super) fn write_request(folder: &RunDir, request: &impl Serialize) -> Result<(), Error> {
    let mut stored = json!({ "layout": LAYOUT, "version": env!("CARGO_PKG_VERSION") });
    let fields = serde_json::to_value(request).map_err(Error::output)?;
    if let (Value::Object(stored), Value::Object(fields)) = (&mut stored, fields) {
        stored.extend(fields);
    }
    let text = super::to_json(&stored)?;
    write_atomic_bytes(&folder.path().join(REQUEST), text.as_bytes()).map_err(Error::output)
}

/// Returns whether the folder contains the request of a fit job.
pub fn has_request(folder: &RunDir) -> bool {
    folder.path().join(REQUEST).is_file()
}

/// Reads the request of a fit job from the folder. If the type denies unknown fields, as all requests of this crate do,
/// an unknown name is an error.
///
/// # Errors
/// Fails if the file is missing or damaged, or if its layout has another version.
pub fn read_request<T: DeserializeOwned>(folder: &RunDir) -> Result<T, Error> {
    let path = folder.path().join(REQUEST);
    let damaged = |error| Error::Input(format!("`{}` is damaged: {error}", path.display()));
    let mut stored: Value = serde_json::from_slice(&read_bytes(&path)?).map_err(damaged)?;
    if stored["layout"] != LAYOUT {
        return Err(Error::Input(format!(
            "the folder `{}` was written by Jensen {}, but this is Jensen {}: use the version that wrote it",
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

/// Reads the approximation that a finished run has stored. The error message recommends the command `again` to finish
/// the run.
///
/// # Errors
/// Fails if the run has not finished or if the file cannot be read.
pub fn approximation(folder: &RunDir, again: &str) -> Result<Vec<u8>, Error> {
    Digests::archive(folder, Artefact::Approximation)?.ok_or_else(|| {
        Error::Input(format!(
            "the fit in `{0}` has not finished: resume it first (`{again} --resume {0}`)",
            folder.path().display()
        ))
    })
}

/// Creates the error for an approximation file that is damaged.
pub fn bad_approximation(folder: &RunDir, error: impl Display) -> Error {
    let path = folder.artefact(Artefact::Approximation);
    Error::Input(format!("`{}`: {error}", path.display()))
}

pub(super) struct Position {
    /// The last checkpoint of the stored run. The identity in this checkpoint has been replaced by the identity of the
    /// resumed run.
    pub(super) checkpoint: Checkpoint,
    pub(super) records: Vec<Record>,
}

/// Returns the state from which a stored run resumes, or `None` if the folder contains no checkpoint. The function
/// rejects the checkpoint of another run unless `force` is true. The budgets of the two runs may differ. The function
/// does not change the folder, so the folder remains intact if the resume is rejected.
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
    // The loop compares the identities again, so the checkpoint must contain the values that were accepted here.
    checkpoint.version = env!("CARGO_PKG_VERSION").to_owned();
    checkpoint.identity = present;
    let mut records: Vec<Record> = read_trace(&folder.artefact(Artefact::Trace))?;
    records.truncate(usize::try_from(checkpoint.iteration).unwrap_or(usize::MAX));
    Ok(Some(Position {
        checkpoint,
        records,
    }))
}

fn set_aside(settings: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(Value::Object(fields)) = settings.pointer_mut(parent) {
        fields.shift_remove(name);
    }
}

fn differences(checkpoint: &Checkpoint, present: &Identity) -> Vec<String> {
    let mut changes = Vec::new();
    for difference in checkpoint.differences(present) {
        if difference.field == "settings" {
            let (stored, now) = (&checkpoint.identity.settings, &present.settings);
            leaves("settings", stored, now, &mut changes);
        } else if difference.field != "seed"
            || !changes.iter().any(|text| text.starts_with("seed:"))
        {
            // Most settings include the seed, so this difference may already be in the list.
            changes.push(difference.to_string());
        }
    }
    changes
}

fn leaves(name: &str, stored: &Value, now: &Value, changes: &mut Vec<String>) {
    match (stored, now) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for ((key, stored), now) in a.iter().zip(b.values()) {
                leaves(key, stored, now, changes);
            }
        }
        _ if stored != now => {
            let [stored, now] = [stored, now].map(|value| shown(name, value));
            changes.push(format!("{name}: stored {stored}, now {now}"));
        }
        _ => {}
    }
}

/// Formats a setting for a message. A family is shown as on the command line, and a choice with settings of its own by
/// its name.
fn shown(name: &str, value: &Value) -> String {
    let family = || serde_json::from_value::<FamilyChoice>(value.clone()).ok();
    match value {
        Value::String(text) => text.clone(),
        Value::Object(_) if name == "family" => {
            family().map_or_else(|| value.to_string(), |family| family.to_string())
        }
        Value::Object(fields) if fields.len() == 1 => fields.keys().cloned().collect(),
        _ => value.to_string(),
    }
}
