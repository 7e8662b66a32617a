//! Builds a corpus of shards. Other processes build the parts of the corpus.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jensen::Error;
use jensen::data::corpus::Corpus;
use jensen::data::corpus::apart::{Answer, Task, Workshop, build_apart};
use jensen::data::corpus::build::Choice;
use jensen::topics::CorpusRequest;
use pyo3::prelude::*;

use super::{computed, read_request};

fn text(value: &impl serde::Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

fn value<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// Runs a task, which builds a part of a corpus. `choice` and `task` are texts that the driver sends.
#[pyfunction]
pub fn corpus_step(
    py: Python<'_>,
    request: &str,
    out: PathBuf,
    choice: &str,
    task: &str,
) -> PyResult<String> {
    let request: CorpusRequest = read_request(request)?;
    computed(py, Some(1), || {
        let sources = request.sources()?;
        let workshop = Workshop {
            settings: &request.settings(&sources)?,
            sources: &sources,
            out: &out,
        };
        let choice: Choice = value(choice).map_err(Error::Input)?;
        let task: Task = value(task).map_err(Error::Input)?;
        text(&workshop.step(&choice, &task)?).map_err(Error::Input)
    })
}

/// Builds a corpus with the given number of shards in a folder. The function `work` receives the choice and a list of
/// tasks, and returns the answer to each task. Returns the result of the build as JSON.
#[pyfunction]
pub fn build_corpus(
    py: Python<'_>,
    request: &str,
    out: PathBuf,
    shards: usize,
    work: Py<PyAny>,
) -> PyResult<String> {
    let request: CorpusRequest = read_request(request)?;
    let raised = Mutex::new(None);
    let built = computed(py, None, || {
        refuse_others(&out)?;
        let sources = request.sources()?;
        let workshop = Workshop {
            settings: &request.settings(&sources)?,
            sources: &sources,
            out: &out,
        };
        let built = build_apart(&workshop, shards, &mut |choice, tasks| {
            let tasks: Result<Vec<String>, _> = tasks.iter().map(text).collect();
            let asked = (text(choice)?, tasks?);
            let answers = Python::attach(|py| {
                let answers = work.call1(py, asked)?;
                answers.extract::<Vec<String>>(py)
            });
            let answers = answers.map_err(|error| {
                let said = error.to_string();
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                said
            })?;
            answers
                .iter()
                .map(|answer| value::<Answer>(answer))
                .collect()
        })?;
        text(&built).map_err(Error::Input)
    });
    if let Some(error) = raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    built
}

fn refuse_others(out: &Path) -> Result<(), Error> {
    let empty = || out.is_dir() && out.read_dir().is_ok_and(|mut files| files.next().is_none());
    if !out.exists() || (out.is_dir() && Corpus::is_corpus(out)) || empty() {
        return Ok(());
    }
    Err(Error::Input(format!(
        "`{}` is not a corpus of shards, so Jensen does not replace it: name another folder",
        out.display()
    )))
}
