//! Mixtures, factors, chains.

use jensen::points::{
    ChainsRequest, Explained, FactorsRequest, MixtureRequest, PointRequest, Points, explain_chains,
    explain_factors, explain_mixture, fit_chains, fit_factors, fit_mixture,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use serde::Deserialize;

use super::{computed, fitted, matrix, numbered, read_request};
use crate::error::raise;

/// What is asked for, by kind.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Mixture(MixtureRequest),
    Factors(FactorsRequest),
    Chains(ChainsRequest),
}

impl Request {
    fn points(&self) -> &PointRequest {
        match self {
            Self::Mixture(request) => &request.points,
            Self::Factors(request) => &request.points,
            Self::Chains(request) => &request.points,
        }
    }

    /// The number of columns of assignments.
    fn width(&self) -> usize {
        let width = match self {
            Self::Mixture(request) => Some(request.sizes().most()),
            Self::Factors(request) => request.factors,
            Self::Chains(request) => request.states,
        };
        width.unwrap_or(1) as usize
    }
}

fn rows(given: &PyReadonlyArray2<'_, f64>, request: &PointRequest) -> PyResult<Points> {
    Points::of_table(&numbered(given)?, request).map_err(|error| raise(&error))
}

/// Fits to the rows of `x`, which for chains are sequences of `lengths`: `fit.json`, and the natural parameters of the
/// globals.
#[pyfunction]
pub fn fit_points<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    lengths: Vec<usize>,
    request: &str,
    threads: Option<usize>,
) -> PyResult<(String, Bound<'py, PyArray1<f64>>)> {
    let request: Request = read_request(request)?;
    let points = rows(&x, request.points())?;
    let (summary, globals) = fitted(py, threads, |around| {
        let (made, summary) = match &request {
            Request::Mixture(request) => fit_mixture(request, &points, around)?,
            Request::Factors(request) => fit_factors(request, &points, around)?,
            Request::Chains(request) => fit_chains(request, &points, &lengths, around)?,
        };
        Ok((jensen::study::to_json(&summary)?, made.fit.lambda))
    })?;
    Ok((summary, globals.into_pyarray(py)))
}

/// Assignments, a row a point, and bounds.
type Seen<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Assignments of the rows of `x` under the globals of a fit, a row each (responsibilities, probabilities of factors to be
/// on, marginals of states), and bounds, one a row or a sequence.
#[pyfunction]
pub fn explain_points<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    lengths: Vec<usize>,
    request: &str,
    globals: PyReadonlyArray1<'py, f64>,
    threads: Option<usize>,
) -> PyResult<Seen<'py>> {
    let request: Request = read_request(request)?;
    let points = rows(&x, &PointRequest::default())?;
    let globals = globals.as_slice()?;
    let explained = computed(py, threads, || match &request {
        Request::Mixture(request) => explain_mixture(request, globals, &points),
        Request::Factors(request) => explain_factors(request, globals, &points),
        Request::Chains(request) => explain_chains(request, globals, &points, &lengths),
    })?;
    let Explained {
        assignments,
        bounds,
    } = explained;
    let assignments = matrix(py, assignments, request.width())?;
    Ok((assignments, bounds.into_pyarray(py)))
}
