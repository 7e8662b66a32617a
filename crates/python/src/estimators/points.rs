//! Mixtures, factors, chains.

use jensen::Error;
use jensen::points::{
    self, ChainsRequest, Explained, FactorsRequest, Fitted, MixtureRequest, PointRequest, Points,
};
use jensen::study::Around;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::{around, matrix, numbered, read_request, table};
use crate::error::raise;
use crate::watch::{Eyes, supervised};

/// `fit.json`, and the natural parameters of the globals.
type Made<'py> = (String, Bound<'py, PyArray1<f64>>);

/// Assignments, a row a point, and a bound a point.
type Seen<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

fn rows(given: &PyReadonlyArray2<'_, f64>, request: &PointRequest) -> PyResult<Points> {
    let points = table(numbered(given), given, Vec::new())
        .and_then(|table| Points::of_table(&table, request));
    points.map_err(|error| raise(&error))
}

fn fit<'py>(
    py: Python<'py>,
    threads: Option<usize>,
    fit: impl FnOnce(Around<'_>) -> Result<Fitted, Error> + Send,
) -> PyResult<Made<'py>> {
    let made = supervised(py, threads, None, |watch| -> Result<_, Error> {
        let clock = || watch.seconds();
        let mut eyes = Eyes(watch);
        let (made, summary) = fit(around(watch, &clock, &mut eyes))?;
        Ok((jensen::study::to_json(&summary)?, made.fit.lambda))
    })?;
    let (summary, lambda) = made.map_err(|error| raise(&error))?;
    Ok((summary, lambda.into_pyarray(py)))
}

fn explain<'py>(
    py: Python<'py>,
    threads: Option<usize>,
    width: Option<u64>,
    explain: impl FnOnce() -> Result<Explained, Error> + Send,
) -> PyResult<Seen<'py>> {
    let seen = supervised(py, threads, None, |_| explain())?;
    let Explained {
        assignments,
        bounds,
    } = seen.map_err(|error| raise(&error))?;
    let width = width.unwrap_or(1) as usize;
    Ok((matrix(py, assignments, width)?, bounds.into_pyarray(py)))
}

/// Fits a mixture to the rows of `x`.
#[pyfunction]
pub fn fit_mixture<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    request: &str,
    threads: Option<usize>,
) -> PyResult<Made<'py>> {
    let request: MixtureRequest = read_request(request)?;
    let points = rows(&x, &request.points)?;
    fit(py, threads, |around| {
        points::fit_mixture(&request, &points, around)
    })
}

/// Responsibilities and bounds of the rows of `x` under the globals of a mixture.
#[pyfunction]
pub fn explain_mixture<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    request: &str,
    globals: PyReadonlyArray1<'py, f64>,
    threads: Option<usize>,
) -> PyResult<Seen<'py>> {
    let request: MixtureRequest = read_request(request)?;
    let points = rows(&x, &PointRequest::default())?;
    let globals = globals.as_slice()?;
    explain(py, threads, request.components, || {
        points::explain_mixture(&request, globals, &points)
    })
}

/// Fits binary factors to the rows of `x`.
#[pyfunction]
pub fn fit_factors<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    request: &str,
    threads: Option<usize>,
) -> PyResult<Made<'py>> {
    let request: FactorsRequest = read_request(request)?;
    let points = rows(&x, &request.points)?;
    fit(py, threads, |around| {
        points::fit_factors(&request, &points, around)
    })
}

/// Probabilities of factors to be on, and bounds, of the rows of `x`.
#[pyfunction]
pub fn explain_factors<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    request: &str,
    globals: PyReadonlyArray1<'py, f64>,
    threads: Option<usize>,
) -> PyResult<Seen<'py>> {
    let request: FactorsRequest = read_request(request)?;
    let points = rows(&x, &PointRequest::default())?;
    let globals = globals.as_slice()?;
    explain(py, threads, request.factors, || {
        points::explain_factors(&request, globals, &points)
    })
}

/// Fits hidden Markov chains to sequences of rows of `x`.
#[pyfunction]
pub fn fit_chains<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    lengths: Vec<usize>,
    request: &str,
    threads: Option<usize>,
) -> PyResult<Made<'py>> {
    let request: ChainsRequest = read_request(request)?;
    let points = rows(&x, &request.points)?;
    fit(py, threads, |around| {
        points::fit_chains(&request, &points, &lengths, around)
    })
}

/// Marginals of the states at every row of `x`, and a bound a sequence.
#[pyfunction]
pub fn explain_chains<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    lengths: Vec<usize>,
    request: &str,
    globals: PyReadonlyArray1<'py, f64>,
    threads: Option<usize>,
) -> PyResult<Seen<'py>> {
    let request: ChainsRequest = read_request(request)?;
    let points = rows(&x, &PointRequest::default())?;
    let globals = globals.as_slice()?;
    explain(py, threads, request.states, || {
        points::explain_chains(&request, globals, &points, &lengths)
    })
}
