//! The functions that implement `jensen.sklearn`. They take and return arrays. Each fit runs as a fit job in memory and
//! returns arrays or bytes. This module has no state, because the estimators store the results and pass them to later
//! calls.
//!
//! | file | subject |
//! | --- | --- |
//! | `topics` | topics of documents |
//! | `shards` | topics of a corpus whose shards other processes solve |
//! | `mixtures` | mixtures of rows in files that other processes read |
//! | `points` | mixtures, factors, chains |
//! | `latent` | latent Gaussian models |
//! | `neural` | auto-encoders |

mod corpus;
mod latent;
mod mixtures;
mod neural;
mod points;
mod shards;
mod topics;

use jensen::Error;
use jensen::data::{Cells, Column, Table};
use jensen::job::{Around, MEMORY_LIMIT, ResultFolder};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::data;
use crate::error::raise;
use crate::watch::{Eyes, supervised};

/// Adds the functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(topics::fit_topics, module)?)?;
    module.add_function(wrap_pyfunction!(topics::topic_proportions, module)?)?;
    module.add_function(wrap_pyfunction!(topics::topic_completion, module)?)?;
    module.add_function(wrap_pyfunction!(topics::topic_effects, module)?)?;
    module.add_function(wrap_pyfunction!(corpus::corpus_step, module)?)?;
    module.add_function(wrap_pyfunction!(corpus::build_corpus, module)?)?;
    module.add_function(wrap_pyfunction!(shards::shard_step, module)?)?;
    module.add_function(wrap_pyfunction!(shards::heldout_step, module)?)?;
    module.add_function(wrap_pyfunction!(shards::fit_corpus, module)?)?;
    module.add_function(wrap_pyfunction!(mixtures::point_step, module)?)?;
    module.add_function(wrap_pyfunction!(mixtures::fit_point_shards, module)?)?;
    module.add_function(wrap_pyfunction!(points::fit_points, module)?)?;
    module.add_function(wrap_pyfunction!(points::explain_points, module)?)?;
    module.add_function(wrap_pyfunction!(latent::fit_latent, module)?)?;
    module.add_function(wrap_pyfunction!(latent::predict_latent, module)?)?;
    module.add_function(wrap_pyfunction!(latent::draw_latent, module)?)?;
    module.add_function(wrap_pyfunction!(neural::fit_autoencoder, module)?)?;
    module.add_function(wrap_pyfunction!(neural::encode, module)?)?;
    module.add_function(wrap_pyfunction!(neural::decode, module)?)?;
    module.add_function(wrap_pyfunction!(neural::reconstruct, module)?)?;
    module.add_function(wrap_pyfunction!(neural::draw_records, module)?)?;
    module.add_function(wrap_pyfunction!(neural::export_network, module)?)?;
    module.add_function(wrap_pyfunction!(neural::score_records, module)?)
}

fn read_request<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    data::read_request("a parameter", text)
}

/// Runs a fit job in memory, without any files. Python can interrupt it.
fn fitted<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    fit: impl FnOnce(Around<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let made = supervised(py, threads, None, |watch| {
        fit(Around {
            results: ResultFolder::None,
            checkpoint_every: None,
            memory_limit: MEMORY_LIMIT,
            clock: &|| watch.seconds(),
            cancel: Some(&watch.cancel),
            partial: false,
            observer: &mut Eyes(watch),
        })
    })?;
    made.map_err(|error| raise(&error))
}

/// Runs a computation on a finished fit and checks for signals during the computation.
pub fn computed<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    compute: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    supervised(py, threads, None, |_| compute())?.map_err(|error| raise(&error))
}

fn table(
    names: Vec<String>,
    matrix: &PyReadonlyArray2<'_, f64>,
    more: Vec<(String, Vec<f64>)>,
) -> PyResult<Table> {
    let matrix = matrix.as_array();
    let columns = matrix
        .columns()
        .into_iter()
        .map(|column| column.to_vec())
        .collect::<Vec<_>>();
    let all = names.into_iter().zip(columns).chain(more);
    let columns = all.map(|(name, numbers)| Column::new(name, Cells::Numbers(numbers)));
    Table::new("X", columns.collect()).map_err(|error| raise(&error.into()))
}

fn numbered(matrix: &PyReadonlyArray2<'_, f64>, more: Vec<(String, Vec<f64>)>) -> PyResult<Table> {
    let names = (1..=matrix.shape()[1]).map(|i| format!("x{i}"));
    table(names.collect(), matrix, more)
}

fn matrix(py: Python<'_>, rows: Vec<f64>, columns: usize) -> PyResult<Bound<'_, PyArray2<f64>>> {
    let count = rows.len() / columns.max(1);
    rows.into_pyarray(py).reshape([count, columns])
}
