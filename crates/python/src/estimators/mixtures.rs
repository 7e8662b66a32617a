//! Mixtures of rows in files that other processes evaluate. The module contains the step that a worker runs for a
//! shard, and the fit that the driver runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jensen::job::{Around, MEMORY_LIMIT, ResultFolder, folder, request};
use jensen::points::{MIXTURE, MixtureRequest, PointShard, fit_mixture_files, point_step as step};
use jensen::records::RecordSteps;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{computed, read_request};
use crate::error::raise;
use crate::records::Elsewhere;
use crate::watch::{Eyes, supervised};

/// The maximum size of the rows that a process keeps in memory between steps, in bytes. The process always keeps the
/// shard of the last step.
const KEPT: usize = 2 << 30;

type Key = (String, PathBuf, String);

/// The shards that this process has read. The most recently used shard is last.
static READ: Mutex<Vec<(Key, Arc<PointShard>)>> = Mutex::new(Vec::new());

/// Runs the step of a shard for a share of its rows.
#[pyfunction]
pub fn point_step<'py>(
    py: Python<'py>,
    plan: &str,
    path: PathBuf,
    digest: &str,
    ask: &[u8],
    share: &[u8],
) -> PyResult<Bound<'py, PyBytes>> {
    let answer = computed(py, Some(1), || {
        let key = (plan.to_owned(), path, digest.to_owned());
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let known = read.iter().position(|(known, _)| *known == key);
        let mut shard = known.map(|at| read.remove(at).1);
        let answer = step(plan, &key.1, digest, ask, share, &mut shard)?;
        if let Some(shard) = shard {
            let mut bytes = shard.bytes();
            let fits = |(_, other): &&(Key, Arc<PointShard>)| {
                bytes += other.bytes();
                bytes <= KEPT
            };
            let stay = read.iter().rev().take_while(fits).count();
            let gone = read.len() - stay;
            read.drain(..gone);
            read.push((key, shard));
        }
        Ok(answer)
    })?;
    Ok(PyBytes::new(py, &answer))
}

/// Fits a mixture to the rows of files and returns the contents of `fit.json`. If `out` is given, the fit stores its
/// files in this folder.
#[pyfunction]
#[pyo3(signature = (files, request, out, resume, solve, threads))]
pub fn fit_point_shards(
    py: Python<'_>,
    files: Vec<PathBuf>,
    request: &str,
    out: Option<PathBuf>,
    resume: bool,
    solve: Py<PyAny>,
    threads: Option<usize>,
) -> PyResult<String> {
    let given: MixtureRequest = read_request(request)?;
    if resume && out.is_none() {
        return Err(PyValueError::new_err(
            "resume= continues a run in its folder: give out=",
        ));
    }
    let solve = Arc::new(solve);
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let made = supervised(py, threads, None, |watch| {
        let mut request = given;
        let results = match &out {
            Some(out) if resume => {
                let folder = folder::open(out, MIXTURE)?;
                if folder::has_request(&folder) {
                    request = request::over(&request, &folder::read_request(&folder)?)?;
                }
                let force = false;
                ResultFolder::Resumed { folder, force }
            }
            out => ResultFolder::new(out.as_deref()),
        };
        let steps = |plan: &str| -> Box<dyn RecordSteps> {
            Box::new(Elsewhere {
                program: plan.to_owned(),
                solve: Arc::clone(&solve),
                raised: Arc::clone(&raised),
            })
        };
        let around = Around {
            results,
            checkpoint_every: None,
            memory_limit: MEMORY_LIMIT,
            clock: &|| watch.seconds(),
            cancel: Some(&watch.cancel),
            // A run that is stopped leaves only its checkpoint.
            partial: false,
            observer: &mut Eyes(watch),
        };
        let (_, summary) = fit_mixture_files(&request, &files, &steps, around)?;
        jensen::job::to_json(&summary)
    })?;
    let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    match raised {
        Some(error) => Err(error),
        None => made.map_err(|error| raise(&error)),
    }
}
