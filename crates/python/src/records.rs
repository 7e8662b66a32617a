//! Records in shards that other processes evaluate. The module contains the step that a worker runs for a shard, and
//! the fit that the driver runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jensen::Error;
use jensen::blackbox::Init;
use jensen::data::DataFile;
use jensen::exchangeable::BlockModel;
use jensen::job::{Around, ResultFolder, request};
use jensen::program::{Includes, Program, Source, StoredFit};
use jensen::records::{RecordSteps, ShardProgram, ShardShare, record_step as step};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::data::data_set;
use crate::error::raise;
use crate::estimators::computed;
use crate::program::read_request;
use crate::watch::{Eyes, supervised};

/// The maximum number of compiled shards that a process keeps in memory. Each compiled shard keeps two blocks of its
/// records in memory.
const KEPT: usize = 8;

/// Returns a compiled shard. A process keeps the most recently used shards and compiles only shards that it does not
/// keep.
fn shard(program: &str, path: PathBuf, digest: &str) -> Result<Arc<BlockModel>, Error> {
    type Kept = Vec<((String, PathBuf, String), Arc<BlockModel>)>;
    static KEPT_HERE: Mutex<Kept> = Mutex::new(Vec::new());
    let key = (program.to_owned(), path, digest.to_owned());
    let mut kept = KEPT_HERE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = match kept.iter().position(|(known, _)| *known == key) {
        Some(at) => kept.remove(at).1,
        None => {
            let program: ShardProgram = serde_json::from_str(program).map_err(Error::input)?;
            Arc::new(program.open(&key.1, digest)?)
        }
    };
    if kept.len() >= KEPT {
        kept.remove(0);
    }
    kept.push((key, Arc::clone(&found)));
    Ok(found)
}

/// Runs the step of a shard for a share of its records.
#[pyfunction]
pub fn record_step<'py>(
    py: Python<'py>,
    program: &str,
    path: PathBuf,
    digest: &str,
    ask: &[u8],
    share: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let part = computed(py, Some(1), || {
        step(&*shard(program, path, digest)?, ask, share)
    })?;
    Ok(PyBytes::new(py, &part))
}

pub(crate) struct Elsewhere {
    /// The program of the shards. Each shard needs the program in addition to its file.
    pub program: String,
    /// A function that receives the program, the request that all shards have in common, and a list of shards. The list
    /// contains the number, the file, the digest and the share of each shard. The function returns the parts of the
    /// shards.
    pub solve: Arc<Py<PyAny>>,
    pub raised: Arc<Mutex<Option<PyErr>>>,
}

impl RecordSteps for Elsewhere {
    fn solve(&self, ask: &[u8], shares: &[ShardShare<'_>]) -> Result<Vec<Vec<u8>>, Error> {
        let answered = Python::attach(|py| {
            let asked: Vec<_> = shares
                .iter()
                .map(|(number, path, digest, share)| {
                    (
                        *number,
                        path.display().to_string(),
                        *digest,
                        PyBytes::new(py, share),
                    )
                })
                .collect();
            let parts = self
                .solve
                .call1(py, (&self.program, PyBytes::new(py, ask), asked))?;
            parts.extract(py)
        });
        answered.map_err(|error: PyErr| {
            let said = error.to_string();
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            raised.get_or_insert(error);
            Error::Input(said)
        })
    }
}

/// Fits a program to records in shards and returns the contents of `fit.json`. If `out` is given, the fit stores its
/// files in this folder.
#[pyfunction]
#[pyo3(signature = (name, text, include, data, data_file, request, out, resume, solve, threads))]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
pub fn fit_shards(
    py: Python<'_>,
    name: &str,
    text: &str,
    include: Vec<PathBuf>,
    data: Option<&Bound<'_, PyDict>>,
    data_file: Option<PathBuf>,
    request: &str,
    out: Option<PathBuf>,
    resume: bool,
    solve: Py<PyAny>,
    threads: Option<usize>,
) -> PyResult<String> {
    let given = read_request(request)?;
    if resume && out.is_none() {
        return Err(PyValueError::new_err(
            "resume= continues a run in its folder: give out=",
        ));
    }
    let values = data.map(data_set).transpose()?;
    let solve = Arc::new(solve);
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let made = supervised(py, threads, None, |watch| {
        let mut source = Source::of(name, text, Includes::of_folders(&include), values.as_ref());
        if let Some(path) = &data_file {
            source.data = Some(DataFile::read(path)?);
        }
        let (mut flags, mut init) = (given, Init::Zero);
        let results = match &out {
            Some(out) if resume => {
                let (folder, stored) = StoredFit::open(out)?;
                flags = request::over(&flags, &stored.flags)?;
                init = stored.init;
                let force = false;
                ResultFolder::Resumed { folder, force }
            }
            out => ResultFolder::new(out.as_deref()),
        };
        let steps = |program: &ShardProgram| -> Box<dyn RecordSteps> {
            Box::new(Elsewhere {
                program: serde_json::to_string(program).unwrap_or_default(),
                solve: Arc::clone(&solve),
                raised: Arc::clone(&raised),
            })
        };
        let threads = rayon::current_num_threads();
        let program = Program::compile_shards(source, flags, threads, steps)?;
        let init = if resume { init } else { program.start(None)? };
        let around = Around {
            results,
            checkpoint_every: program.request().checkpoint_every,
            memory_limit: program.request().memory_limit(),
            clock: &|| watch.seconds(),
            cancel: Some(&watch.cancel),
            // A run that is stopped leaves only its checkpoint.
            partial: false,
            observer: &mut Eyes(watch),
        };
        let (_, summary) = program.fit(init, around)?;
        jensen::job::to_json(&summary)
    })?;
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    match raised {
        Some(error) => Err(error),
        None => made.map_err(|error| raise(&error)),
    }
}
