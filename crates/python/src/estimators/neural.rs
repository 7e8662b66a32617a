//! Auto-encoders over the rows of a matrix.

use std::path::PathBuf;

use jensen::Error;
use jensen::job::words;
use jensen::vae::{Autoencoder, VaeData, VaeModel, VaeNetwork, VaeRequest, fit_vae};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{computed, fitted, matrix, read_request, table};

fn by_networks<T: Send>(
    py: Python<'_>,
    weights: &[u8],
    threads: Option<usize>,
    compute: impl FnOnce(&VaeModel, &mut Autoencoder) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let input = |error: &dyn std::fmt::Display| Error::input(error.to_string());
    computed(py, threads, || {
        let model = VaeModel::decode(weights).map_err(|error| input(&error))?;
        let networks = model.autoencoder(words::simd(None)?);
        compute(&model, &mut networks.map_err(|error| input(&error))?)
    })
}

/// Sets the given values of the networks, each of which is written as `NAME=VALUE`. Returns a row of the table that
/// contains them.
fn condition(
    model: &VaeModel,
    networks: &mut Autoencoder,
    given: &[String],
) -> Result<Vec<f64>, Error> {
    match &model.layout {
        Some(layout) => {
            let (values, row) = layout.given(given)?;
            networks.set_given(values).map_err(Error::input)?;
            Ok(row)
        }
        None if given.is_empty() => Ok(Vec::new()),
        None => Err(Error::input("this fit does not condition on any column")),
    }
}

/// Converts records to rows of the data, and fills in the given values.
fn filled(model: &VaeModel, records: &[f32], given: &[f64]) -> Vec<f64> {
    let mut rows = model.rows(records);
    for row in rows.chunks_mut(model.units.columns()) {
        let pairs = row.iter_mut().zip(given).filter(|(x, _)| x.is_nan());
        pairs.for_each(|(x, given)| *x = *given);
    }
    rows
}

fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|x| f64::from(*x)).collect()
}

/// Trains an auto-encoder on the rows of `x` and uses some of these rows for validation. `names` contains the names of
/// the columns. Returns the contents of `fit.json`, and the weights as bytes.
#[pyfunction]
pub fn fit_autoencoder<'py>(
    py: Python<'py>,
    x: PyReadonlyArray2<'py, f64>,
    names: Vec<String>,
    validation: Option<String>,
    request: &str,
    threads: Option<usize>,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let request: VaeRequest = read_request(request)?;
    let table = table(names, &x, Vec::new())?;
    let (summary, bytes) = fitted(py, threads, |around| {
        let data = VaeData::of_table(&table, PathBuf::from("X"), validation, request)?;
        let done = fit_vae(&data, 0.0, around, |done| {
            (done.summary, done.made.output.model.encode())
        })?;
        Ok((jensen::job::to_json(&done.0)?, done.1))
    })?;
    Ok((summary, PyBytes::new(py, &bytes)))
}

/// The means and the standard deviations of the latent values. Both arrays have one row for each row of `x`.
type Codes<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>);

/// Returns q(z) for each row of `x`.
#[pyfunction]
pub fn encode<'py>(
    py: Python<'py>,
    weights: &[u8],
    x: PyReadonlyArray2<'py, f64>,
    names: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Codes<'py>> {
    let table = table(names, &x, Vec::new())?;
    let (codes, latent) = by_networks(py, weights, threads, |model, networks| {
        let rows = model.rows_of(&table)?;
        let latent = model.architecture.latent;
        Ok((networks.encode(&model.records(&rows)), latent))
    })?;
    let deviations = codes
        .log_variance
        .iter()
        .map(|v| f64::from((0.5 * v).exp()));
    Ok((
        matrix(py, wide(&codes.mean), latent)?,
        matrix(py, deviations.collect(), latent)?,
    ))
}

/// Returns the reconstruction of each row of `x`, which is the decoder's mean at the posterior mean of the latent
/// values.
#[pyfunction]
pub fn reconstruct<'py>(
    py: Python<'py>,
    weights: &[u8],
    x: PyReadonlyArray2<'py, f64>,
    names: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let table = table(names, &x, Vec::new())?;
    let (means, width) = by_networks(py, weights, threads, |model, networks| {
        let rows = model.rows_of(&table)?;
        let means = networks.reconstruct(&model.records(&rows));
        Ok((model.rows(&means), model.units.columns()))
    })?;
    matrix(py, means, width)
}

/// Returns the decoder's means for the given latent values, with one row per record.
#[pyfunction]
pub fn decode<'py>(
    py: Python<'py>,
    weights: &[u8],
    z: PyReadonlyArray2<'py, f64>,
    given: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let columns = z.shape()[1];
    let latent: Vec<f32> = z.as_array().iter().map(|x| *x as f32).collect();
    let (means, width) = by_networks(py, weights, threads, |model, networks| {
        let wanted = model.architecture.latent;
        if columns != wanted {
            return Err(Error::input(format!(
                "rows of {columns} latent values, expected {wanted}"
            )));
        }
        let row = condition(model, networks, &given)?;
        let means = networks.decode(&latent);
        Ok((filled(model, &means, &row), model.units.columns()))
    })?;
    matrix(py, means, width)
}

/// Returns a network as an ONNX model.
#[pyfunction]
pub fn export_network<'py>(
    py: Python<'py>,
    weights: &[u8],
    encoder: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let network = match encoder {
        true => VaeNetwork::Encoder,
        false => VaeNetwork::Decoder,
    };
    let bytes = by_networks(py, weights, None, |model, _| model.onnx(network))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Draws latent values from the prior and decodes them. The result contains the means of the records, or draws of the
/// records around these means.
#[pyfunction]
#[allow(
    clippy::too_many_arguments,
    reason = "the arguments of the Python function"
)]
pub fn draw_records<'py>(
    py: Python<'py>,
    weights: &[u8],
    draws: usize,
    seed: u64,
    means: bool,
    given: Vec<String>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let (drawn, width) = by_networks(py, weights, threads, |model, networks| {
        let row = condition(model, networks, &given)?;
        let samples = networks.sample(draws, seed);
        let drawn = if means { samples.mean } else { samples.values };
        Ok((filled(model, &drawn, &row), model.units.columns()))
    })?;
    matrix(py, drawn, width)
}

/// Returns an importance-weighted bound on the log density of each row of `x`, in nats. Each bound uses the given
/// number of draws.
#[pyfunction]
pub fn score_records<'py>(
    py: Python<'py>,
    weights: &[u8],
    x: PyReadonlyArray2<'py, f64>,
    names: Vec<String>,
    draws: usize,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let table = table(names, &x, Vec::new())?;
    let scores = by_networks(py, weights, threads, |model, networks| {
        let rows = model.rows_of(&table)?;
        let score = networks
            .importance_bound(&model.records(&rows), draws, seed)
            .map_err(|error| Error::input(error.to_string()))?;
        let records = model.records(&rows);
        Ok(score.moved(&model.log_jacobians(&records)).records)
    })?;
    Ok(scores.into_pyarray(py))
}
