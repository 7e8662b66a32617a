//! Mixtures, factors and chains over the rows of a matrix.

use jensen::job::CountRange;
use jensen::points::{
    ChainsRequest, Explained, FactorsRequest, Globals, MixtureModel, MixtureRequest, PointRequest,
    Points, explain_chains, explain_factors, fit_chains, fit_factors, fit_mixture,
};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;

use super::{computed, fitted, matrix, numbered, read_request};
use crate::error::raise;

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PointsRequest {
    Mixture(MixtureRequest),
    Factors(FactorsRequest),
    Chains(ChainsRequest),
}

impl PointsRequest {
    fn points(&self) -> &PointRequest {
        match self {
            Self::Mixture(request) => &request.points,
            Self::Factors(request) => &request.points,
            Self::Chains(request) => &request.points,
        }
    }

    fn width(&self) -> usize {
        let width = match self {
            Self::Mixture(request) => Some(request.sizes().most()),
            Self::Factors(request) => request.factors,
            Self::Chains(request) => request.states.map(CountRange::most),
        };
        width.unwrap_or(1) as usize
    }
}

fn rows(given: &PyReadonlyArray2<'_, f64>, request: &PointRequest) -> PyResult<Points> {
    Points::of_table(&numbered(given, Vec::new())?, request).map_err(|error| raise(&error))
}

/// The name of the column with the weights of the rows.
const WEIGHTS: &str = "sample_weight";

/// Fits a model to the rows of `x`, which may have weights or known states from 0, where −1 is an unknown state. For chains, the rows form sequences with the lengths
/// `lengths`. Returns the contents of `fit.json`, and the data that predictions for other rows need, as bytes.
#[pyfunction]
pub fn fit_points<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    lengths: Vec<usize>,
    request: &str,
    weights: Option<Vec<f64>>,
    labels: Option<Vec<i64>>,
    threads: Option<usize>,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let request: PointsRequest = read_request(request)?;
    let mut points = match weights {
        None => rows(&x, request.points())?,
        Some(weights) => {
            let table = numbered(&x, vec![(WEIGHTS.to_owned(), weights)])?;
            let points = Points::of_weighted(&table, WEIGHTS, request.points());
            points.map_err(|error| raise(&error))?
        }
    };
    if let Some(labels) = labels {
        let states = labels.iter().map(|label| usize::try_from(*label).ok());
        points.labels.states = states.collect();
    }
    let (summary, kept) = fitted(py, threads, |around| {
        let (made, summary) = match &request {
            PointsRequest::Mixture(request) => fit_mixture(request, &points, around)?,
            PointsRequest::Factors(request) => fit_factors(request, &points, around)?,
            PointsRequest::Chains(request) => fit_chains(request, &points, &lengths, around)?,
        };
        Ok((jensen::job::to_json(&summary)?, made.kept))
    })?;
    Ok((summary, PyBytes::new(py, &kept)))
}

type Seen<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

/// Returns the assignments of the rows of `x` under a stored fit, and lower bounds on the log predictive densities.
/// Each row of the assignments contains responsibilities, probabilities that factors are active, or marginal
/// probabilities of states. There is one bound per row, or one bound per sequence for chains.
#[pyfunction]
pub fn explain_points<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    lengths: Vec<usize>,
    request: &str,
    kept: &[u8],
    threads: Option<usize>,
) -> PyResult<Seen<'py>> {
    let request: PointsRequest = read_request(request)?;
    let points = rows(&x, &PointRequest::default())?;
    let explained = computed(py, threads, || match &request {
        PointsRequest::Mixture(_) => {
            let model = MixtureModel::decode(kept)?;
            model.explain(&points)
        }
        PointsRequest::Factors(request) => {
            explain_factors(request, &Globals::decode(kept)?, &points)
        }
        PointsRequest::Chains(request) => {
            let globals = Globals::decode(kept)?;
            explain_chains(request, &globals, &points, &lengths)
        }
    })?;
    let Explained {
        assignments,
        bounds,
    } = explained;
    let assignments = matrix(py, assignments, request.width())?;
    Ok((assignments, bounds.into_pyarray(py)))
}
