//! The folder of a run: taken for a new one, opened to go on with or to read from.

use jensen::data::{Artefact, RunDir, read_trace, write_atomic_bytes};
use jensen::run::{Checkpoint, CheckpointError, Identity, Record};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::{Failure, remark};
use crate::input::read_bytes;

/// What was run.
const REQUEST: &str = "run.json";

/// Version of what stands in [`REQUEST`].
const LAYOUT: u64 = 1;

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
