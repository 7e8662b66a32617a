//! Topics of a corpus whose leaves are worked at elsewhere: the step of a leaf, and the driver's fit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jensen::Error;
use jensen::conjugate::lda::{self, Ask, Leaves, Part};
use jensen::data::corpus::{Corpus, CorpusFile, leaves};
use jensen::study::{Around, MEMORY_LIMIT, Place, request};
use jensen::topics::stored::{self, TopicsRun};
use jensen::topics::{Collection, LeafDocuments, TopicsRequest, fit_topics_on};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{computed, read_request};
use crate::error::raise;
use crate::watch::{Eyes, supervised};

/// Opens a leaf, once for a process: opening reads all of it.
fn leaf(corpus: &Path, number: usize, digest: &str) -> Result<Arc<CorpusFile>, Error> {
    type Open = HashMap<(PathBuf, usize, String), Arc<CorpusFile>>;
    static OPEN: Mutex<Option<Open>> = Mutex::new(None);
    let key = (corpus.to_owned(), number, digest.to_owned());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    if let Some(file) = open.get(&key) {
        return Ok(Arc::clone(file));
    }
    let file = if corpus.is_dir() {
        leaves::open_leaf(corpus, number)?
    } else {
        CorpusFile::open(corpus)?
    };
    if file.digest() != digest {
        return Err(Error::Input(format!(
            "leaf {number} of the corpus `{}` is not the driver's: let all machines see the same files",
            corpus.display()
        )));
    }
    Ok(Arc::clone(open.entry(key).or_insert(Arc::new(file))))
}

/// The step of a leaf: its part, of a share of its documents.
#[pyfunction]
pub fn leaf_step<'py>(
    py: Python<'py>,
    corpus: PathBuf,
    number: usize,
    digest: &str,
    ask: &[u8],
    share: Vec<usize>,
) -> PyResult<Bound<'py, PyBytes>> {
    let part = computed(py, Some(1), || {
        let file = leaf(&corpus, number, digest)?;
        let part = lda::leaf_step(&LeafDocuments(&file), ask, &share);
        file.check_unchanged()?;
        Ok(part.map_err(Error::Input)?.encode())
    })?;
    Ok(PyBytes::new(py, &part))
}

/// Leaves that a function of Python has solved.
struct Elsewhere<'a> {
    corpus: &'a Corpus,
    /// Of what all are asked and a list of leaves, each its number, digest and share, to their parts.
    solve: &'a Py<PyAny>,
    /// What the function raised.
    raised: &'a Mutex<Option<PyErr>>,
}

impl Elsewhere<'_> {
    fn call(&self, ask: &[u8], shares: &[Vec<usize>]) -> PyResult<Vec<Vec<u8>>> {
        Python::attach(|py| {
            let files = shares.iter().zip(self.corpus.leaves()).enumerate();
            let asked: Vec<(usize, &str, &Vec<usize>)> = files
                .filter(|(_, (share, _))| !share.is_empty())
                .map(|(number, (share, file))| (number, file.digest(), share))
                .collect();
            let parts = self.solve.call1(py, (PyBytes::new(py, ask), asked))?;
            parts.extract(py)
        })
    }
}

impl Leaves for Elsewhere<'_> {
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Vec<Part>, String> {
        let answers = self.call(&ask.encode(), shares).map_err(|error| {
            let said = error.to_string();
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            said
        })?;
        let mut answers = answers.iter();
        let parts = shares.iter().map(|share| match share.is_empty() {
            true => Ok(Part::default()),
            false => Part::decode(answers.next().map_or(&[], Vec::as_slice)),
        });
        parts.collect()
    }
}

/// Learns topics from a corpus, in a folder where one is named: `fit.json`.
#[pyfunction]
#[pyo3(signature = (corpus, request, out, resume, solve, threads))]
pub fn fit_corpus(
    py: Python<'_>,
    corpus: PathBuf,
    request: &str,
    out: Option<PathBuf>,
    resume: bool,
    solve: Py<PyAny>,
    threads: Option<usize>,
) -> PyResult<String> {
    let flags: TopicsRequest = read_request(request)?;
    if resume && out.is_none() {
        return Err(PyValueError::new_err(
            "resume goes on in a folder: give out=",
        ));
    }
    let raised = Mutex::new(None);
    let made = supervised(py, threads, None, |watch| {
        let path = std::path::absolute(&corpus).unwrap_or(corpus);
        let mut flags = flags;
        let place = match &out {
            Some(out) if resume => {
                let (folder, stored) = stored::open(out)?;
                flags = request::over(&flags, &stored.flags)?;
                let force = false;
                Place::Resumed { folder, force }
            }
            out => Place::new(out.as_deref()),
        };
        // Wrong settings are said before anything is read.
        flags.settings()?;
        let corpus = Corpus::open(&path)?;
        let collection = Collection::of_corpus(&corpus);
        let leaves = Elsewhere {
            corpus: &corpus,
            solve: &solve,
            raised: &raised,
        };
        let run = TopicsRun {
            corpus: path,
            digest: corpus.digest().to_owned(),
            update: false,
            flags,
        };
        let around = Around {
            place,
            checkpoint_every: run.flags.checkpoint_every,
            memory_limit: MEMORY_LIMIT,
            clock: &|| watch.seconds(),
            cancel: Some(&watch.cancel),
            // A run that is stopped leaves its checkpoint.
            partial: false,
            observer: &mut Eyes(watch),
        };
        let seconds = watch.seconds();
        let done = fit_topics_on(
            &collection,
            run,
            None,
            seconds,
            Some(Box::new(leaves)),
            around,
        )?;
        jensen::study::to_json(&done.summary)
    })?;
    if let Some(error) = raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    made.map_err(|error| raise(&error))
}
