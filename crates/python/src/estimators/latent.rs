//! Latent Gaussian models over the columns of a matrix.

use jensen::latent::{
    LatentRequest, PriorFiles, StoredPosterior, TableModel, draws_at, fit_latent_in_memory,
    outcome, posterior_at,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{computed, fitted, matrix, read_request, table};

/// Named columns in addition to those of the matrix, such as responses, exposures or trials.
type More = Vec<(String, Vec<f64>)>;

/// Fits a model to the columns of `x` and the columns in `more`. `names` contains the names of the columns of `x`.
/// Returns the contents of `fit.json`, and the posterior as bytes.
#[pyfunction]
pub fn fit_latent<'py>(
    py: Python<'py>,
    names: Vec<String>,
    x: PyReadonlyArray2<'py, f64>,
    more: More,
    request: &str,
    threads: Option<usize>,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let request: LatentRequest = read_request(request)?;
    let table = table(names, &x, more)?;
    let (summary, bytes) = fitted(py, threads, |around| {
        let done = fit_latent_in_memory(request, &table, around, |done| {
            let stored = StoredPosterior::new(&done.made.output.0);
            (done.summary, stored.encode())
        })?;
        Ok((jensen::job::to_json(&done.0)?, done.1))
    })?;
    Ok((summary, PyBytes::new(py, &bytes)))
}

/// Means and variances of the linear predictors, with one column per predictor, and means of the observations. The
/// means have one column per category if there are several categories.
type Predicted<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// Predicts the rows of `at` with the additional columns `beside`. The predictions use the data of a fit and its
/// posterior. The last result contains the log predictive densities of the responses in `beside`, or NaN if there are
/// no responses.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
pub fn predict_latent<'py>(
    py: Python<'py>,
    names: Vec<String>,
    x: PyReadonlyArray2<'py, f64>,
    more: More,
    request: &str,
    posterior: &[u8],
    at: PyReadonlyArray2<'py, f64>,
    beside: More,
    threads: Option<usize>,
) -> PyResult<Predicted<'py>> {
    let request: LatentRequest = read_request(request)?;
    let (old, new) = (table(names.clone(), &x, more)?, table(names, &at, beside)?);
    let outcome = computed(py, threads, || {
        let files = PriorFiles::default();
        let stored = StoredPosterior::decode(posterior)?;
        let model = TableModel::new(&request.request(), &old, &files)?;
        let rows: Vec<usize> = (0..new.rows()).collect();
        let (parts, seen) = posterior_at(&model, &stored, &new, &rows, &files)?;
        Ok(outcome(&model, &parts, &seen))
    })?;
    let (means, variances) = outcome.predictor.into_iter().unzip();
    let categories = outcome.mean.first().map_or(1, Vec::len);
    Ok((
        matrix(py, means, outcome.times)?,
        matrix(py, variances, outcome.times)?,
        matrix(py, outcome.mean.concat(), categories)?,
        outcome.log_density.into_pyarray(py),
    ))
}

/// Draws the linear predictors of the rows of `at` jointly from the posterior of a fit. The result has one row per
/// draw, and one column for each predictor of each row.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
pub fn draw_latent<'py>(
    py: Python<'py>,
    names: Vec<String>,
    x: PyReadonlyArray2<'py, f64>,
    more: More,
    request: &str,
    posterior: &[u8],
    at: PyReadonlyArray2<'py, f64>,
    draws: usize,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let request: LatentRequest = read_request(request)?;
    let (old, new) = (
        table(names.clone(), &x, more)?,
        table(names, &at, Vec::new())?,
    );
    let (etas, columns) = computed(py, threads, || {
        let files = PriorFiles::default();
        let stored = StoredPosterior::decode(posterior)?;
        let model = TableModel::new(&request.request(), &old, &files)?;
        let rows: Vec<usize> = (0..new.rows()).collect();
        let columns = rows.len() * model.likelihood().predictors();
        let drawn = draws_at(&model, &stored, &new, &rows, &files, (draws, seed))?;
        Ok((drawn.predictors, columns))
    })?;
    matrix(py, etas, columns)
}
