//! The folder of a run: what `--resume` and `jensen draws` need, checkpoints and the trace.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jensen::blackbox::Init;
use jensen::data::{Artefact, RunDir, TraceWriter, read_trace, write_atomic_bytes};
use jensen::run::{
    Checkpoint, CheckpointError, Identity, Observer, Progress, Record, Store, StoreError,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::{Failure, remark};
use crate::flags::FitFlags;
use crate::input::{DataFile, Format, Includes, read_bytes, read_text};
use crate::progress::Display;

/// What was run; the file beside the model and the data.
const REQUEST: &str = "run.json";

/// The copy of the model.
const MODEL: &str = "model.stan";

/// Version of [`Stored`].
const LAYOUT: u32 = 1;

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
    layout: u32,
    version: String,
    /// The model's name in messages.
    pub model: String,
    /// Included files by the name in the program.
    pub includes: BTreeMap<String, String>,
    /// The data's name and format.
    pub data: Option<(String, Format)>,
    /// The flags, with the instruction set resolved.
    pub flags: FitFlags,
    /// Where the run starts.
    pub init: Init,
}

/// Everything that a run is made from.
pub struct Inputs {
    /// The model's name.
    pub model: String,
    /// Its text.
    pub text: String,
    /// Its includes.
    pub includes: Includes,
    /// Its data.
    pub data: Option<DataFile>,
}

/// The file name of a copy of the data.
fn data_file(format: Format) -> &'static str {
    match format {
        Format::Json => "data.json",
        Format::Rdump => "data.R",
    }
}

/// Stores what is to be run.
pub fn store(
    folder: &RunDir,
    inputs: &Inputs,
    flags: &FitFlags,
    init: &Init,
) -> Result<(), Failure> {
    let write = |name: &str, bytes: &[u8]| {
        write_atomic_bytes(&folder.path().join(name), bytes).map_err(Failure::output)
    };
    write(MODEL, inputs.text.as_bytes())?;
    if let Some(data) = &inputs.data {
        write(data_file(data.format), &data.bytes)?;
    }
    let stored = Stored {
        layout: LAYOUT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        model: inputs.model.clone(),
        includes: inputs.includes.found(),
        data: inputs
            .data
            .as_ref()
            .map(|data| (data.name.clone(), data.format)),
        flags: flags.clone(),
        init: init.clone(),
    };
    let text = serde_json::to_string_pretty(&stored).map_err(Failure::output)?;
    write(REQUEST, format!("{text}\n").as_bytes())
}

/// Opens the folder of an earlier fit.
pub fn open(path: &Path) -> Result<(RunDir, Stored), Failure> {
    let folder = RunDir::open(path).map_err(|error| Failure::input(error.to_string()))?;
    if folder.command() != "fit" {
        return Err(Failure::input(format!(
            "the folder `{}` holds results of `jensen {}`, not of a fit",
            path.display(),
            folder.command()
        )));
    }
    let request = path.join(REQUEST);
    let stored: Stored = serde_json::from_str(&read_text(&request)?)
        .map_err(|error| Failure::input(format!("`{}` is damaged: {error}", request.display())))?;
    if stored.layout != LAYOUT {
        return Err(Failure::input(format!(
            "the folder `{}` was written by jensen {}, this is {}: use that version",
            path.display(),
            stored.version,
            env!("CARGO_PKG_VERSION")
        )));
    }
    Ok((folder, stored))
}

/// The copies of model and data.
pub fn inputs(folder: &RunDir, stored: &Stored) -> Result<Inputs, Failure> {
    let data = stored
        .data
        .as_ref()
        .map(|(name, format)| {
            Ok::<_, Failure>(DataFile {
                name: name.clone(),
                format: *format,
                bytes: read_bytes(&folder.path().join(data_file(*format)))?,
            })
        })
        .transpose()?;
    Ok(Inputs {
        model: stored.model.clone(),
        text: read_text(&folder.path().join(MODEL))?,
        includes: Includes::stored(stored.includes.clone()),
        data,
    })
}

/// The last checkpoint, if one was written, and the trace lines before it.
pub fn checkpoint(folder: &RunDir) -> Result<Option<(Checkpoint, Vec<Record>)>, Failure> {
    if !folder.has(Artefact::Checkpoint) {
        return Ok(None);
    }
    let path = folder.artefact(Artefact::Checkpoint);
    let checkpoint = Checkpoint::decode(&read_bytes(&path)?)
        .map_err(|error| Failure::input(format!("`{}`: {error}", path.display())))?;
    let mut records: Vec<Record> = read_trace(&folder.artefact(Artefact::Trace))
        .map_err(|error| Failure::input(error.to_string()))?;
    records.truncate(usize::try_from(checkpoint.iteration).unwrap_or(usize::MAX));
    Ok(Some((checkpoint, records)))
}

/// Refuses a checkpoint of another run, unless forced.
pub fn accept(checkpoint: &Checkpoint, present: &Identity, force: bool) -> Result<(), Failure> {
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

/// The trace file of a run, shared by its observer and its store: lines are on disk before the
/// checkpoint that knows of them.
pub struct Trace {
    writer: RefCell<Option<TraceWriter>>,
}

impl Trace {
    /// No trace.
    pub fn none() -> Self {
        Self {
            writer: RefCell::new(None),
        }
    }

    /// The trace of a folder, continued after `lines` lines.
    pub fn open(folder: &RunDir, lines: u64) -> Result<Self, Failure> {
        let path = folder.artefact(Artefact::Trace);
        let writer = if lines == 0 {
            TraceWriter::create(&path)
        } else {
            TraceWriter::resume(&path, lines)
        };
        Ok(Self {
            writer: RefCell::new(Some(writer.map_err(Failure::output)?)),
        })
    }

    fn append(&self, record: &Record) {
        let mut writer = self.writer.borrow_mut();
        if let Some(Err(error)) = writer.as_mut().map(|writer| writer.append(record)) {
            remark(&format!("warning: the trace ends here: {error}"));
            *writer = None;
        }
    }

    /// Hands all lines to the disk.
    pub fn flush(&self) -> Result<(), String> {
        match self.writer.borrow_mut().as_mut() {
            Some(writer) => writer.flush().map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

/// Where checkpoints go.
pub struct Checkpoints<'a> {
    /// The file.
    pub path: PathBuf,
    /// The trace that belongs to it.
    pub trace: &'a Trace,
}

impl Store for Checkpoints<'_> {
    fn save(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.trace.flush().map_err(StoreError)?;
        write_atomic_bytes(&self.path, bytes).map_err(|error| StoreError(error.to_string()))
    }
}

/// Watches a run: trace lines, the display, notes.
pub struct Watch<'a> {
    /// Where lines go.
    pub trace: &'a Trace,
    /// What the user sees.
    pub display: Display,
}

impl Observer for Watch<'_> {
    fn record(&mut self, record: &Record) {
        self.trace.append(record);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.display.update(progress);
    }

    fn note(&mut self, note: &str) {
        self.display.remark(&format!("warning: {note}"));
    }
}
