//! Many fits of a program. The module contains the function that a worker runs for each task, and the driver's ledger.
//! The driver and the workers exchange fits, tasks and rows as JSON.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jensen::Error;
use jensen::fit_many::{self, FitRow, Fits, Given, Task};
use jensen::stan::Halt;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::data::data_set;
use crate::error::{StanError, raise};
use crate::program::read_request;
use crate::watch::supervised;

fn read<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn write(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Creates the fits of a program, checks them and returns them as JSON. The function searches the folders in `include`
/// for included files.
#[pyfunction]
pub fn plan_fits(name: &str, text: &str, include: Vec<PathBuf>, request: &str) -> PyResult<String> {
    let fits = Fits::new(name, text, &include, read_request(request)?);
    let fits = fits.map_err(|error| match error {
        Error::Input(diagnostics) => StanError::new_err(diagnostics),
        error => raise(&error),
    });
    write(&fits?)
}

/// Returns one task for each combination of a data set and a seed. A data set is a name with values, or the name of a
/// file.
#[pyfunction]
pub fn plan_tasks(
    data: Vec<(String, Option<Bound<'_, PyDict>>)>,
    seeds: Vec<u64>,
) -> PyResult<Vec<String>> {
    let given = data.into_iter().map(|(name, values)| {
        let text = values.map(|values| data_set(&values)).transpose()?;
        Ok(Given {
            name,
            text: text.map(|data| data.to_json()),
        })
    });
    let given = given.collect::<PyResult<Vec<_>>>()?;
    let tasks = fit_many::tasks(&given, &seeds).map_err(|error| raise(&error))?;
    tasks.iter().map(write).collect()
}

/// Runs the fit of a task on one thread and returns the row of the task.
#[pyfunction]
pub fn fit_row(py: Python<'_>, fits: &str, task: &str) -> PyResult<String> {
    let (fits, task): (Fits, Task) = (read(fits)?, read(task)?);
    let row = supervised(py, Some(1), None, |watch| {
        let clock = || watch.seconds();
        fits.row(&task, Halt::default(), &clock, Some(&watch.cancel))
    })?;
    write(&row.ok_or_else(|| PyKeyboardInterrupt::new_err("interrupted"))?)
}

/// Returns the row of a task whose fit has no result.
#[pyfunction]
pub fn failed_row(task: &str, why: &str) -> PyResult<String> {
    write(&FitRow::failed(&read(task)?, why, 0.0))
}

/// The folder of many fits.
#[pyclass]
pub struct Ledger {
    // Python code may use several threads, but the folder can have only one writer.
    inner: Mutex<fit_many::Ledger>,
    tasks: Vec<Task>,
}

#[pymethods]
impl Ledger {
    #[new]
    fn open(folder: PathBuf, fits: &str, tasks: Vec<String>) -> PyResult<Self> {
        let ledger = fit_many::Ledger::open(&folder, &read(fits)?);
        Ok(Self {
            inner: Mutex::new(ledger.map_err(|error| raise(&error))?),
            tasks: tasks
                .iter()
                .map(|task| read(task))
                .collect::<PyResult<_>>()?,
        })
    }

    /// The indices of the tasks without a row.
    fn pending(&self) -> Vec<usize> {
        self.held().pending(&self.tasks)
    }

    /// Keeps a row.
    fn record(&self, row: &str) -> PyResult<()> {
        let kept = self.held().record(read(row)?);
        kept.map_err(|error| raise(&error))
    }

    /// Writes the table and returns its rows.
    fn write_table(&self) -> PyResult<Vec<String>> {
        let ledger = self.held();
        let rows = ledger
            .write_table(&self.tasks)
            .map_err(|error| raise(&error))?;
        rows.iter().map(write).collect()
    }
}

impl Ledger {
    fn held(&self) -> MutexGuard<'_, fit_many::Ledger> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
