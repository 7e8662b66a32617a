//! Converts data frames to the tables of regressions.

use std::path::PathBuf;

use jensen::job::MEMORY_LIMIT;
use jensen::regress::{
    EffectSummary, Factor, Frame, FrameColumn, Predicted, curves, effects, predict, read_frame,
};
use jensen::stan::Halt;
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::raise;
use crate::watch::supervised;

/// Named columns. A column consists of numbers, a flag for truth values, and for a factor the levels and whether they
/// are ordered. The numbers of a factor are the codes of its levels. NaN marks a missing value.
pub type Columns<'py> = Vec<(
    String,
    PyReadonlyArray1<'py, f64>,
    bool,
    Option<(Vec<String>, bool)>,
)>;

/// Reads the table from a file, or converts the given columns.
pub fn frame(columns: Option<Columns<'_>>, path: Option<PathBuf>) -> PyResult<Frame> {
    let Some(columns) = columns else {
        let path = path.ok_or_else(|| PyTypeError::new_err("no table is given"))?;
        return read_frame(&path, MEMORY_LIMIT).map_err(|error| raise(&error));
    };
    let column = |(name, values, truth, levels): (String, PyReadonlyArray1<'_, f64>, bool, _)| {
        let values = values.to_vec()?;
        let column = match (levels, truth) {
            (None, false) => FrameColumn::Numbers(values),
            (None, true) => FrameColumn::Truth(values),
            (Some((levels, ordered)), _) => FrameColumn::Factor(Factor {
                codes: values
                    .iter()
                    .map(|x| (!x.is_nan()).then_some(*x as u32))
                    .collect(),
                levels: Vec::into(levels),
                ordered,
            }),
        };
        Ok((name, column))
    };
    let columns = columns.into_iter().map(column).collect::<PyResult<_>>()?;
    Frame::new("the data frame", columns).map_err(|error| raise(&error.into()))
}

/// The rows that have predictions, the names and shapes of the predicted quantities, and their draws, with one draw per
/// row.
type Predictions<'py> = (
    Vec<usize>,
    Vec<(String, Vec<usize>)>,
    Bound<'py, PyArray2<f64>>,
);

/// Predicts the rows of a table from the fit in a folder.
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

/// The words and the statistics of each row. The statistics are the mean, the standard deviation, and both ends of the
/// central 90 % interval.
type Summaries = Vec<(Vec<Option<String>>, [f64; 4])>;

fn numbers(summary: &EffectSummary) -> [f64; 4] {
    let [low, high] = summary.interval;
    [summary.mean, summary.sd, low, high]
}

/// Computes the average effects of columns over the rows of a table from the fit in a folder.
#[pyfunction]
pub fn regress_effects(
    py: Python<'_>,
    folder: PathBuf,
    columns: Option<Columns<'_>>,
    path: Option<PathBuf>,
    threads: Option<usize>,
) -> PyResult<Summaries> {
    let frame = frame(columns, path)?;
    let made = supervised(py, threads, None, |_| {
        effects(
            &folder,
            &frame,
            rayon::current_num_threads(),
            Halt::default(),
        )
    })?;
    let found = made.map_err(|error| raise(&error))?.into_iter();
    let row = |e: jensen::regress::Effect| {
        let estimate = numbers(&e.estimate);
        (vec![Some(e.column), Some(e.contrast), e.category], estimate)
    };
    Ok(found.map(row).collect())
}

/// Computes the expected response along each column from the fit in a folder.
#[pyfunction]
pub fn regress_curves(
    py: Python<'_>,
    folder: PathBuf,
    threads: Option<usize>,
) -> PyResult<Summaries> {
    let made = supervised(py, threads, None, |_| {
        curves(&folder, rayon::current_num_threads(), Halt::default())
    })?;
    let lines = made.map_err(|error| raise(&error))?;
    let rows = lines.iter().flat_map(|line| {
        let (by, value) = line
            .by
            .clone()
            .map_or((None, None), |(by, value)| (Some(by), Some(value)));
        line.at
            .iter()
            .zip(&line.expected)
            .map(move |(at, expected)| {
                let words = vec![
                    Some(line.column.clone()),
                    Some(at.clone()),
                    by.clone(),
                    value.clone(),
                    line.category.clone(),
                ];
                (words, numbers(expected))
            })
    });
    Ok(rows.collect())
}
