//! Topics of a corpus whose shards other processes evaluate. The module contains the step for a block of shards, the
//! scores of held-out documents, and the fit that the driver runs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jensen::Error;
use jensen::conjugate::documents::Documents;
use jensen::conjugate::lda::{self, Ask, BlockMemory, Part, Piece, Score, Shards, Spare};
use jensen::data::corpus::{Corpus, CorpusFile, Split, shards};
use jensen::job::{Around, MEMORY_LIMIT, ResultFolder, request};
use jensen::topics::stored::{self, TopicsRun};
use jensen::topics::{Collection, ShardDocuments, TopicsRequest, fit_topics_on};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::{computed, read_request};
use crate::error::raise;
use crate::watch::{Eyes, supervised};

/// Opens a shard. Each process opens a shard only once, because opening reads the whole shard.
fn shard(corpus: &Path, number: usize, digest: &str) -> Result<Arc<CorpusFile>, Error> {
    type Open = HashMap<(PathBuf, usize, String), Arc<CorpusFile>>;
    static OPEN: Mutex<Option<Open>> = Mutex::new(None);
    let key = (corpus.to_owned(), number, digest.to_owned());
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    if let Some(file) = open.get(&key) {
        return Ok(Arc::clone(file));
    }
    let file = if corpus.is_dir() {
        shards::open_shard(corpus, number)?
    } else {
        CorpusFile::open(corpus)?
    };
    if file.digest() != digest {
        return Err(Error::Input(format!(
            "shard {number} of the corpus `{}` differs from the driver's: all machines must see the same files",
            corpus.display()
        )));
    }
    Ok(Arc::clone(open.entry(key).or_insert(Arc::new(file))))
}

type ShardShare = (usize, String, Vec<usize>);

static MEMORY: Mutex<Option<BlockMemory>> = Mutex::new(None);

/// Runs the step of a block of shards and returns the sum of their parts. `ask` is read in place. If `answer` is given
/// and large enough, the function writes the sum to `answer` and returns the number of bytes that it has written.
#[pyfunction]
pub fn shard_step<'py>(
    py: Python<'py>,
    corpus: PathBuf,
    ask: PyReadonlyArray1<'py, u8>,
    block: Vec<ShardShare>,
    answer: Option<PyReadwriteArray1<'py, u8>>,
) -> PyResult<Bound<'py, PyAny>> {
    let ask = ask.as_slice()?;
    let part = computed(py, Some(1), || {
        let files: Result<Vec<_>, Error> = (block.iter())
            .map(|(number, digest, _)| shard(&corpus, *number, digest))
            .collect();
        let files = files?;
        let documents: Vec<ShardDocuments<'_>> = (files.iter())
            .map(|file| ShardDocuments::new(file, Split::Train))
            .collect();
        let shards: Vec<(&dyn Documents, &[usize])> = (documents.iter().zip(&block))
            .map(|(shard, (.., share))| (shard as &dyn Documents, share.as_slice()))
            .collect();
        let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        let part = lda::block_step(&shards, ask, memory.get_or_insert_default());
        files.iter().try_for_each(|file| file.check_unchanged())?;
        part.map_err(Error::Input)
    })?;
    let size = part.size();
    if let Some(mut answer) = answer
        && let Some(memory) = answer.as_slice_mut()?.get_mut(..size)
    {
        part.encode(memory);
        let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        memory.get_or_insert_default().done(part);
        return Ok(size.into_pyobject(py)?.into_any());
    }
    let mut bytes = vec![0; size];
    part.encode(&mut bytes);
    Ok(PyArray1::from_vec(py, bytes).into_any())
}

/// A range of held-out documents in a shard. The tuple contains the number and the digest of the shard, the index of
/// the first document, the number of documents, and the index of the first document among the held-out documents of all
/// shards.
type HeldoutPiece = (usize, String, usize, usize, u64);

/// Scores pieces of held-out documents and returns the concatenated scores. The score of a document consists of its log
/// probability and its number of words. `ask` is read in place.
#[pyfunction]
pub fn heldout_step<'py>(
    py: Python<'py>,
    corpus: PathBuf,
    ask: PyReadonlyArray1<'py, u8>,
    seed: u64,
    pieces: Vec<HeldoutPiece>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let ask = ask.as_slice()?;
    let scores = computed(py, Some(1), || {
        let files: Result<Vec<_>, Error> = (pieces.iter())
            .map(|(number, digest, ..)| shard(&corpus, *number, digest))
            .collect();
        let files = files?;
        let documents: Vec<ShardDocuments<'_>> = (files.iter())
            .map(|file| ShardDocuments::new(file, Split::Heldout))
            .collect();
        let asked: Vec<Piece<'_>> = (documents.iter().zip(&pieces))
            .map(|(documents, &(.., first, count, number))| Piece {
                documents,
                first,
                count,
                number,
            })
            .collect();
        let scores = lda::score_step(&asked, ask, seed);
        files.iter().try_for_each(|file| file.check_unchanged())?;
        scores.map_err(Error::Input)
    })?;
    let numbers = scores.iter().flat_map(|s| [s.log_probability, s.words]);
    Ok(PyArray1::from_iter(py, numbers))
}

/// The number of held-out documents that each call scores. With this number, computing the rows of their words takes
/// little time compared with the sweeps over the documents.
const HELDOUT: usize = 64;

fn pieces(corpus: &Corpus, first: usize, count: usize) -> Vec<HeldoutPiece> {
    let (mut start, mut found) = (0, Vec::new());
    for (number, file) in corpus.shards().iter().enumerate() {
        let end = start + file.documents(Split::Heldout);
        let (from, to) = (first.max(start), (first + count).min(end));
        if from < to {
            let digest = file.digest().to_owned();
            found.push((number, digest, from - start, to - from, from as u64));
        }
        start = end;
    }
    found
}

/// Shards whose steps are computed by functions written in Python.
struct Elsewhere<'a> {
    corpus: &'a Corpus,
    workers: usize,
    /// A function that allocates an array with a given number of bytes. The array stores the request that all shards
    /// have in common.
    room: &'a Py<PyAny>,
    /// A function that receives a list of blocks and returns their parts.
    solve: &'a Py<PyAny>,
    /// A function that receives a seed and a list of lists of parts, and returns the scores of the parts.
    score: &'a Py<PyAny>,
    spare: Spare,
    raised: &'a Mutex<Option<PyErr>>,
}

impl Elsewhere<'_> {
    fn write(&self, py: Python<'_>, ask: &Ask<'_>) -> PyResult<()> {
        let size = ask.size();
        let memory = self.room.call1(py, (size,))?;
        let mut memory: PyReadwriteArray1<'_, u8> = memory.extract(py)?;
        ask.encode(&mut memory.as_slice_mut()?[..size]);
        Ok(())
    }

    fn scores(&self, ask: &Ask<'_>, seed: u64, count: usize) -> PyResult<Vec<Score>> {
        Python::attach(|py| {
            self.write(py, ask)?;
            let firsts = (0..count).step_by(HELDOUT);
            let calls: Vec<Vec<HeldoutPiece>> = firsts
                .map(|first| pieces(self.corpus, first, HELDOUT.min(count - first)))
                .collect();
            let scores = self.score.call1(py, (seed, calls))?;
            let scores: Vec<PyReadonlyArray1<'_, f64>> = scores.extract(py)?;
            let mut found = Vec::with_capacity(count);
            for scores in &scores {
                let pairs = scores.as_slice()?.as_chunks().0.iter();
                found.extend(pairs.map(|&[log_probability, words]| Score {
                    log_probability,
                    words,
                }));
            }
            Ok(found)
        })
    }

    /// Stores the exception that a function raised, if it raised one.
    fn kept<T>(&self, found: PyResult<T>) -> Result<T, String> {
        found.map_err(|error| {
            let said = error.to_string();
            *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            said
        })
    }

    fn call(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> PyResult<Result<Part, String>> {
        Python::attach(|py| {
            self.write(py, ask)?;
            let files = shares.iter().zip(self.corpus.shards()).enumerate();
            let shards: Vec<(usize, &str, &Vec<usize>)> = files
                .map(|(number, (share, file))| (number, file.digest(), share))
                .collect();
            let block = lda::block_size(shards.len(), self.workers);
            let blocks: Vec<&[_]> = shards.chunks(block).collect();
            let parts = self.solve.call1(py, (blocks,))?;
            let parts: Vec<PyReadonlyArray1<'_, u8>> = parts.extract(py)?;
            let bytes: Result<Vec<&[u8]>, _> = parts.iter().map(|part| part.as_slice()).collect();
            let bytes = bytes?;
            let spare = &mut self.spare;
            Ok(py.detach(|| ask.sum(bytes.into_iter(), spare)))
        })
    }
}

impl Shards for Elsewhere<'_> {
    fn solve(&mut self, ask: &Ask<'_>, shares: &[Vec<usize>]) -> Result<Part, String> {
        let found = self.call(ask, shares);
        self.kept(found)?
    }

    fn done(&mut self, part: Part) {
        self.spare.done(part);
    }

    fn score(&mut self, ask: &Ask<'_>, seed: u64, count: usize) -> Result<Vec<Score>, String> {
        self.kept(self.scores(ask, seed, count))
    }
}

/// Learns topics from a corpus and returns the contents of `fit.json`. If `out` is given, the fit stores its files in
/// this folder.
#[pyfunction]
#[pyo3(signature = (corpus, request, out, resume, workers, room, solve, score, threads))]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
pub fn fit_corpus(
    py: Python<'_>,
    corpus: PathBuf,
    request: &str,
    out: Option<PathBuf>,
    resume: bool,
    workers: usize,
    room: Py<PyAny>,
    solve: Py<PyAny>,
    score: Py<PyAny>,
    threads: Option<usize>,
) -> PyResult<String> {
    let flags: TopicsRequest = read_request(request)?;
    if resume && out.is_none() {
        return Err(PyValueError::new_err(
            "resume= continues a run in its folder: give out=",
        ));
    }
    let raised = Mutex::new(None);
    let made = supervised(py, threads, None, |watch| {
        let path = std::path::absolute(&corpus).unwrap_or(corpus);
        let mut flags = flags;
        let results = match &out {
            Some(out) if resume => {
                let (folder, stored) = stored::open(out)?;
                flags = request::over(&flags, &stored.flags)?;
                let force = false;
                ResultFolder::Resumed { folder, force }
            }
            out => ResultFolder::new(out.as_deref()),
        };
        // The settings are checked first, before any file is read.
        flags.settings()?;
        let corpus = Corpus::open(&path)?;
        let collection = Collection::of_corpus(&corpus);
        let shards = Elsewhere {
            corpus: &corpus,
            workers,
            room: &room,
            solve: &solve,
            score: &score,
            spare: Spare::default(),
            raised: &raised,
        };
        let run = TopicsRun {
            corpus: path,
            digest: corpus.digest().to_owned(),
            update: false,
            flags,
        };
        let around = Around {
            results,
            checkpoint_every: run.flags.checkpoint_every,
            memory_limit: MEMORY_LIMIT,
            clock: &|| watch.seconds(),
            cancel: Some(&watch.cancel),
            // A run that is stopped leaves only its checkpoint.
            partial: false,
            observer: &mut Eyes(watch),
        };
        let seconds = watch.seconds();
        let done = fit_topics_on(
            &collection,
            run,
            None,
            seconds,
            Some(Box::new(shards)),
            around,
        )?;
        jensen::job::to_json(&done.summary)
    })?;
    if let Some(error) = raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    made.map_err(|error| raise(&error))
}
