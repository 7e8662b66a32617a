//! The folder of a run: taken for a new one, opened to go on with or to read from.

use std::path::Path;

use jensen::data::{Artefact, RunDir, read_trace, write_atomic_bytes};
use jensen::run::{Checkpoint, CheckpointError, Identity, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::failure::{Failure, remark};
use crate::input::{read_bytes, read_text};

/// What was run.
const REQUEST: &str = "run.json";

/// Version of what stands in [`REQUEST`].
const LAYOUT: u64 = 1;

/// Refuses checkpoints that have nowhere to go.
pub fn check_out(out: Option<&Path>, checkpoint_every: Option<f64>) -> Result<(), Failure> {
    if out.is_none() && checkpoint_every.is_some() {
        return Err(Failure::usage(
            "--checkpoint-every needs a folder to write to: add --out DIR",
        ));
    }
    Ok(())
}

/// Refuses to move a run to another folder.
pub fn check_in_place(out: Option<&Path>, resumed: &Path) -> Result<(), Failure> {
    match out {
        Some(out) if out.canonicalize().ok() != resumed.canonicalize().ok() => Err(Failure::usage(
            "a resumed run goes on in its own folder: leave out --out",
        )),
        _ => Ok(()),
    }
}

/// Takes a folder for a new run of `command`, and clears it of an earlier one.
pub fn take(path: &Path, command: &str) -> Result<RunDir, Failure> {
    let folder = RunDir::create(path, command).map_err(Failure::output)?;
    folder.clear().map_err(Failure::output)?;
    Ok(folder)
}

/// Opens the folder of an earlier run of `command`.
pub fn open(path: &Path, command: &str) -> Result<RunDir, Failure> {
    let folder = RunDir::open(path).map_err(|error| Failure::input(error.to_string()))?;
    if folder.command() != command {
        return Err(Failure::input(format!(
            "the folder `{}` holds results of `jensen {}`, not of `jensen {command}`",
            path.display(),
            folder.command()
        )));
    }
    Ok(folder)
}

/// Writes a file of the folder, all or nothing.
pub fn write(folder: &RunDir, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    write_atomic_bytes(&folder.path().join(name), bytes).map_err(Failure::output)
}

/// Writes down what is to be run: an object of the command's own.
pub fn write_request(folder: &RunDir, request: &impl Serialize) -> Result<(), Failure> {
    let mut stored = json!({ "layout": LAYOUT, "version": env!("CARGO_PKG_VERSION") });
    let fields = serde_json::to_value(request).map_err(Failure::output)?;
    if let (Value::Object(stored), Value::Object(fields)) = (&mut stored, fields) {
        stored.extend(fields);
    }
    let text = serde_json::to_string_pretty(&stored).map_err(Failure::output)?;
    write(folder, REQUEST, format!("{text}\n").as_bytes())
}

/// What was to be run.
pub fn read_request<T: DeserializeOwned>(folder: &RunDir) -> Result<T, Failure> {
    let path = folder.path().join(REQUEST);
    let damaged = |error| Failure::input(format!("`{}` is damaged: {error}", path.display()));
    let stored: Value = serde_json::from_str(&read_text(&path)?).map_err(damaged)?;
    if stored["layout"] != LAYOUT {
        return Err(Failure::input(format!(
            "the folder `{}` was written by jensen {}, this is {}: use that version",
            folder.path().display(),
            stored["version"].as_str().unwrap_or("of another version"),
            env!("CARGO_PKG_VERSION")
        )));
    }
    serde_json::from_value(stored).map_err(damaged)
}

/// The bytes of the approximation of a finished run; `again` is the command that finishes one.
pub fn approximation(folder: &RunDir, again: &str) -> Result<Vec<u8>, Failure> {
    if !folder.has(Artefact::Approximation) {
        return Err(Failure::input(format!(
            "the fit in `{0}` has not finished: resume it first (`{again} --resume {0}`)",
            folder.path().display()
        )));
    }
    read_bytes(&folder.artefact(Artefact::Approximation))
}

/// What is wrong with the approximation, with its place.
pub fn bad_approximation(folder: &RunDir, error: impl std::fmt::Display) -> Failure {
    let path = folder.artefact(Artefact::Approximation);
    Failure::input(format!("`{}`: {error}", path.display()))
}

/// Where a run goes on: its last checkpoint, and the trace lines before it.
pub struct Position {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The lines.
    pub records: Vec<Record>,
}

/// Where a resumed run goes on, if a checkpoint was written; one of another run is refused unless forced. Nothing in
/// the folder is touched, so that a refused resume leaves it as it was.
pub fn position(
    folder: &RunDir,
    present: &Identity,
    force: bool,
    quiet: bool,
) -> Result<Option<Position>, Failure> {
    if !folder.has(Artefact::Checkpoint) {
        if !quiet {
            remark("note: the run has no checkpoint yet, so it starts from the beginning");
        }
        return Ok(None);
    }
    let path = folder.artefact(Artefact::Checkpoint);
    let checkpoint = Checkpoint::decode(&read_bytes(&path)?)
        .map_err(|error| Failure::input(format!("`{}`: {error}", path.display())))?;
    accept(&checkpoint, present, force)?;
    let mut records: Vec<Record> = read_trace(&folder.artefact(Artefact::Trace))
        .map_err(|error| Failure::input(error.to_string()))?;
    records.truncate(usize::try_from(checkpoint.iteration).unwrap_or(usize::MAX));
    Ok(Some(Position {
        checkpoint,
        records,
    }))
}

fn accept(checkpoint: &Checkpoint, present: &Identity, force: bool) -> Result<(), Failure> {
    let Err(CheckpointError::Mismatch(differences)) = checkpoint.accept(present, force) else {
        return Ok(());
    };
    let mut told = Vec::new();
    for difference in &differences {
        if difference.field == "settings" {
            let (stored, now) = (&checkpoint.identity.settings, &present.settings);
            leaves("settings", stored, now, &mut told);
        } else if difference.field != "seed" {
            // The seed is among the settings.
            told.push(difference.to_string());
        }
    }
    Err(Failure::usage(format!(
        "this is not the run that was stored: {}; give the same model, data and flags, or add --force and give up \
         reproducibility",
        told.join("; ")
    )))
}

/// The innermost values in which two settings differ.
fn leaves(name: &str, stored: &Value, now: &Value, told: &mut Vec<String>) {
    match (stored, now) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            for ((key, stored), now) in a.iter().zip(b.values()) {
                leaves(key, stored, now, told);
            }
        }
        _ if stored != now => told.push(format!("{name}: stored {stored}, now {now}")),
        _ => {}
    }
}
