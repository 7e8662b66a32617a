//! The result folder of a topic model.

use std::path::{Path, PathBuf};

use jensen_conjugate::lda::Inference;
use jensen_data::corpus::Corpus;
use jensen_data::{Artefact, RunDir, read_bytes};
use serde::{Deserialize, Serialize};

use super::{TopicModel, TopicsRequest, TopicsSummary};
use crate::Error;
use crate::job::folder;

/// The name of the command, as stored in its result folders.
pub const COMMAND: &str = "topics";

pub(super) const START: &str = "start.safetensors";

const DOCUMENTS: &str = "documents.corpus";

/// The stored request of a fit, with information about its corpus.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicsRun {
    /// The path of the corpus. If the run is an update, the corpus is in the result folder.
    pub corpus: PathBuf,
    /// The digest of the corpus.
    pub digest: String,
    /// Whether the run updates topics that an earlier run has stored.
    pub update: bool,
    /// The settings of the fit, with the instruction set that was chosen.
    pub flags: TopicsRequest,
}

impl TopicsRun {
    /// Opens the corpus to which the run fits topics.
    ///
    /// # Errors
    /// Fails if the corpus was moved or is damaged.
    pub fn open_corpus(&self, folder: &RunDir) -> Result<Corpus, Error> {
        let path = if self.update {
            folder.path().join(&self.corpus)
        } else {
            self.corpus.clone()
        };
        Ok(Corpus::open(&path)?)
    }
}

/// Opens the folder of an earlier fit.
///
/// # Errors
/// Fails if the folder does not contain a topic model or if its request is damaged.
pub fn open(path: &Path) -> Result<(RunDir, TopicsRun), Error> {
    let run = folder::open(path, COMMAND)?;
    let mut stored: TopicsRun = folder::read_request(&run)?;
    // Earlier versions of Jensen did not store the name of the inference method if it was mean-field inference.
    let mean_field = || Inference::MeanField.name().to_owned();
    stored.flags.inference.get_or_insert_with(mean_field);
    Ok((run, stored))
}

/// Reads the topics that a finished fit has stored.
///
/// # Errors
/// Fails if the fit has not finished or if the file is damaged.
pub fn model(run: &RunDir) -> Result<TopicModel, Error> {
    let encoded = folder::approximation(run, "jensen topics fit")?;
    TopicModel::decode(&encoded).map_err(|error| folder::bad_approximation(run, error))
}

/// Reads the summary that a finished fit has stored.
///
/// # Errors
/// Fails if the file is missing or damaged.
pub fn summary(run: &RunDir) -> Result<TopicsSummary, Error> {
    let path = run.artefact(Artefact::Fit);
    serde_json::from_slice(&read_bytes(&path)?)
        .map_err(|error| Error::Input(format!("`{}` is damaged: {error}", path.display())))
}

/// Returns the path of the corpus of an update, first relative to its folder and then absolute.
pub fn update_corpus(folder: &RunDir) -> (PathBuf, PathBuf) {
    (DOCUMENTS.into(), folder.path().join(DOCUMENTS))
}

/// Reads the topics from which an update starts.
///
/// # Errors
/// Fails if the file is missing or damaged.
pub fn start(run: &RunDir) -> Result<TopicModel, Error> {
    let path = run.path().join(START);
    TopicModel::decode(&read_bytes(&path)?)
        .map_err(|error| Error::Input(format!("`{}`: {error}", path.display())))
}
