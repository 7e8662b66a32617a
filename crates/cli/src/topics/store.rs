//! The folder of a fit of topics.

use std::path::{Path, PathBuf};

use jensen::data::corpus::Corpus;
use jensen::data::{Artefact, RunDir, write_atomic_bytes};
use jensen::topics::{TopicModel, TopicsSummary};
use serde::{Deserialize, Serialize};

use super::flags::TopicsFlags;
use crate::failure::Failure;
use crate::input::{read_bytes, read_text};

/// The command, as the folder's marker has it.
pub const COMMAND: &str = "topics";

/// What was run.
const REQUEST: &str = "run.json";

/// The topics that an update starts from.
const START: &str = "start.safetensors";

/// The corpus of an update.
const DOCUMENTS: &str = "documents.corpus";

/// Version of [`Stored`].
const LAYOUT: u32 = 1;

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
    layout: u32,
    version: String,
    /// Where the corpus is; of an update, inside the folder.
    pub corpus: PathBuf,
    /// Its digest.
    pub digest: String,
    /// The run goes on from stored topics.
    pub update: bool,
    /// The flags, with the instruction set resolved.
    pub flags: TopicsFlags,
}

impl Stored {
    /// What is to be run.
    pub fn new(corpus: &Corpus, path: PathBuf, update: bool, flags: TopicsFlags) -> Self {
        Self {
            layout: LAYOUT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            corpus: path,
            digest: corpus.digest().to_owned(),
            update,
            flags,
        }
    }

    /// Writes it down.
    pub fn write(&self, folder: &RunDir) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(self).map_err(Failure::output)?;
        write(&folder.path().join(REQUEST), format!("{text}\n").as_bytes())
    }

    /// Opens the corpus of the run.
    pub fn open_corpus(&self, folder: &RunDir) -> Result<Corpus, Failure> {
        let path = if self.update {
            folder.path().join(&self.corpus)
        } else {
            self.corpus.clone()
        };
        open_corpus(&path)
    }
}

/// Opens a corpus.
pub fn open_corpus(path: &Path) -> Result<Corpus, Failure> {
    Corpus::open(path).map_err(|error| Failure::input(error.to_string()))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_atomic_bytes(path, bytes).map_err(Failure::output)
}

/// Takes a folder for a new run.
pub fn take(path: &Path) -> Result<RunDir, Failure> {
    let folder = RunDir::create(path, COMMAND).map_err(Failure::output)?;
    folder.clear().map_err(Failure::output)?;
    Ok(folder)
}

/// Opens the folder of an earlier fit.
pub fn open(path: &Path) -> Result<(RunDir, Stored), Failure> {
    let folder = RunDir::open(path).map_err(|error| Failure::input(error.to_string()))?;
    if folder.command() != COMMAND {
        return Err(Failure::input(format!(
            "the folder `{}` holds results of `jensen {}`, not of `jensen topics`",
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

fn decode(path: &Path) -> Result<TopicModel, Failure> {
    TopicModel::decode(&read_bytes(path)?)
        .map_err(|error| Failure::input(format!("`{}`: {error}", path.display())))
}

/// The topics of a finished fit.
pub fn model(folder: &RunDir) -> Result<TopicModel, Failure> {
    if !folder.has(Artefact::Approximation) {
        return Err(Failure::input(format!(
            "the fit in `{}` has not finished: resume it first (`jensen topics fit --resume {}`)",
            folder.path().display(),
            folder.path().display()
        )));
    }
    decode(&folder.artefact(Artefact::Approximation))
}

/// The summary of a finished fit.
pub fn summary(folder: &RunDir) -> Result<TopicsSummary, Failure> {
    let path = folder.artefact(Artefact::Fit);
    serde_json::from_str(&read_text(&path)?)
        .map_err(|error| Failure::input(format!("`{}` is damaged: {error}", path.display())))
}

/// Stores finished topics.
pub fn write_model(folder: &RunDir, model: &TopicModel) -> Result<(), Failure> {
    write(&folder.artefact(Artefact::Approximation), &model.encode())
}

/// Where the corpus of an update goes, within its folder.
pub fn update_corpus(folder: &RunDir) -> (PathBuf, PathBuf) {
    (DOCUMENTS.into(), folder.path().join(DOCUMENTS))
}

/// Stores the topics that an update starts from.
pub fn write_start(folder: &RunDir, model: &TopicModel) -> Result<(), Failure> {
    write(&folder.path().join(START), &model.encode())
}

/// The topics that an update starts from.
pub fn start(folder: &RunDir) -> Result<TopicModel, Failure> {
    decode(&folder.path().join(START))
}
