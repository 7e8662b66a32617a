//! The folder of a fit of topics.

use std::path::{Path, PathBuf};

use jensen::data::corpus::Corpus;
use jensen::data::{Artefact, RunDir};
use jensen::topics::{TopicModel, TopicsSummary};
use serde::{Deserialize, Serialize};

use super::flags::TopicsFlags;
use crate::failure::Failure;
use crate::input::{read_bytes, read_text};
use crate::run::folder;

/// The command, as the folder's marker has it.
pub const COMMAND: &str = "topics";

/// The topics that an update starts from.
const START: &str = "start.safetensors";

/// The corpus of an update.
const DOCUMENTS: &str = "documents.corpus";

/// A run as its folder keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stored {
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
            corpus: path,
            digest: corpus.digest().to_owned(),
            update,
            flags,
        }
    }

    /// Writes it down.
    pub fn write(&self, run: &RunDir) -> Result<(), Failure> {
        folder::write_request(run, self)
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

/// Opens the folder of an earlier fit.
pub fn open(path: &Path) -> Result<(RunDir, Stored), Failure> {
    let run = folder::open(path, COMMAND)?;
    let stored = folder::read_request(&run)?;
    Ok((run, stored))
}

/// The topics of a finished fit.
pub fn model(run: &RunDir) -> Result<TopicModel, Failure> {
    let encoded = folder::approximation(run, "jensen topics fit")?;
    TopicModel::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}

/// The summary of a finished fit.
pub fn summary(folder: &RunDir) -> Result<TopicsSummary, Failure> {
    let path = folder.artefact(Artefact::Fit);
    serde_json::from_str(&read_text(&path)?)
        .map_err(|error| Failure::input(format!("`{}` is damaged: {error}", path.display())))
}

/// Stores finished topics.
pub fn write_model(run: &RunDir, model: &TopicModel) -> Result<(), Failure> {
    folder::write(run, Artefact::Approximation.file_name(), &model.encode())
}

/// Where the corpus of an update goes, within its folder.
pub fn update_corpus(folder: &RunDir) -> (PathBuf, PathBuf) {
    (DOCUMENTS.into(), folder.path().join(DOCUMENTS))
}

/// Stores the topics that an update starts from.
pub fn write_start(run: &RunDir, model: &TopicModel) -> Result<(), Failure> {
    folder::write(run, START, &model.encode())
}

/// The topics that an update starts from.
pub fn start(run: &RunDir) -> Result<TopicModel, Failure> {
    let path = run.path().join(START);
    TopicModel::decode(&read_bytes(&path)?)
        .map_err(|error| Failure::input(format!("`{}`: {error}", path.display())))
}
