//! Data frames as the tables of regressions.

use std::path::PathBuf;

use jensen::job::MEMORY_LIMIT;
use jensen::regress::{Column, Factor, Frame, Predicted, predict, read_frame};
use jensen::stan::Halt;
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::raise;
use crate::watch::supervised;

/// Columns by name: numbers, whether they are truth values, and of factors the levels and whether these are ordered; numbers are
/// the codes of levels then, NaN where a value is missing.
pub type Columns<'py> = Vec<(
    String,
    PyReadonlyArray1<'py, f64>,
    bool,
    Option<(Vec<String>, bool)>,
)>;

/// The table of a file, or of columns.
pub fn frame(columns: Option<Columns<'_>>, path: Option<PathBuf>) -> PyResult<Frame> {
    let Some(columns) = columns else {
        let path = path.ok_or_else(|| PyTypeError::new_err("no table is given"))?;
        return read_frame(&path, MEMORY_LIMIT).map_err(|error| raise(&error));
    };
    let column = |(name, values, truth, levels): (String, PyReadonlyArray1<'_, f64>, bool, _)| {
        let values = values.to_vec()?;
        let column = match (levels, truth) {
            (None, false) => Column::Numbers(values),
            (None, true) => Column::Truth(values),
            (Some((levels, ordered)), _) => Column::Factor(Factor {
                codes: values
                    .iter()
                    .map(|x| (!x.is_nan()).then_some(*x as u32))
                    .collect(),
                levels,
                ordered,
            }),
        };
        Ok((name, column))
    };
    let columns = columns.into_iter().map(column).collect::<PyResult<_>>()?;
    Frame::new("the data frame", columns).map_err(|error| raise(&error.into()))
}

/// Rows that have predictions, the names and shapes of what is predicted, and draws of it, one a row.
type Predictions<'py> = (
    Vec<usize>,
    Vec<(String, Vec<usize>)>,
    Bound<'py, PyArray2<f64>>,
);

/// Predicts rows of a table by a fit in a folder.
#[pyfunction]
pub fn regress_predict<'py>(
    py: Python<'py>,
    folder: PathBuf,
    columns: Option<Columns<'py>>,
    path: Option<PathBuf>,
    seed: Option<u64>,
    threads: Option<usize>,
) -> PyResult<Predictions<'py>> {
    let frame = frame(columns, path)?;
    let made = supervised(py, threads, None, |_| {
        predict(
            &folder,
            &frame,
            seed,
            rayon::current_num_threads(),
            Halt::default(),
        )
    })?;
    let Predicted { sample, rows, .. } = made.map_err(|error| raise(&error))?;
    let variables = sample.variables.iter();
    let variables = variables
        .map(|v| (v.name.clone(), v.shape.to_vec()))
        .collect();
    let draws: Vec<Vec<f64>> = (0..sample.table.len())
        .map(|at| sample.table.row(at).to_vec())
        .collect();
    Ok((rows, variables, PyArray2::from_vec2(py, &draws)?))
}
