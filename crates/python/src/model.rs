//! Values and derivatives of a program's log density.

use std::path::PathBuf;
use std::sync::Arc;

use jensen::Problem;
use jensen::data::DataFile;
use jensen::density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen::program::{Includes, Source};
use jensen::stan::{self, Build};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::data::data_set;
use crate::error::raise;
use crate::watch::supervised;

/// A program bound to its data.
#[pyclass(frozen)]
pub struct Model {
    inner: Arc<stan::Model>,
}

/// Points, one a row, as lanes: coordinate after coordinate.
pub fn lanes_of(points: &[f64], rows: usize, dim: usize) -> Vec<f64> {
    let mut lanes = vec![0.0; rows * dim];
    for (row, point) in points.chunks_exact(dim.max(1)).enumerate() {
        for (d, x) in point.iter().enumerate() {
            lanes[d * rows + row] = *x;
        }
    }
    lanes
}

/// Lanes as rows.
pub fn rows_of(lanes: &[f64], rows: usize, dim: usize) -> Vec<f64> {
    let mut out = vec![0.0; rows * dim];
    for (d, lane) in lanes.chunks_exact(rows.max(1)).enumerate().take(dim) {
        for (row, x) in lane.iter().enumerate() {
            out[row * dim + d] = *x;
        }
    }
    out
}

/// Values at points, and vectors at them, one a row.
type WithVectors<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>);

impl Model {
    fn points(
        &self,
        what: &str,
        points: &PyReadonlyArray2<'_, f64>,
    ) -> PyResult<(usize, Vec<f64>)> {
        let (rows, columns) = (points.shape()[0], points.shape()[1]);
        let dim = self.inner.density().dim();
        if columns != dim {
            return Err(PyValueError::new_err(format!(
                "{what} of shape ({rows}, {columns}): expected (n, {dim}), {dim} being the unconstrained dimension of the \
                 model"
            )));
        }
        Ok((rows, lanes_of(points.as_slice()?, rows, dim)))
    }
}

#[pymethods]
impl Model {
    /// Compiles a program with data from a file, or from arrays by name.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
    #[pyo3(signature = (name, text, include, data, data_file, seed, propto, jacobian, threads))]
    fn compile(
        py: Python<'_>,
        name: &str,
        text: &str,
        include: Vec<PathBuf>,
        data: Option<&Bound<'_, PyDict>>,
        data_file: Option<PathBuf>,
        seed: u64,
        propto: bool,
        jacobian: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let values = data.map(data_set).transpose()?;
        let made = supervised(py, Some(1), None, |_| {
            let mut source = Source::of(name, text, Includes::of_folders(&include), None);
            if let Some(path) = &data_file {
                source.data = Some(DataFile::read(path)?);
            }
            let values = match values {
                Some(values) => values,
                None => source.values()?,
            };
            let build = Build {
                includes: &source.includes,
                data_name: source.data_name(),
                seed,
                threads,
                propto,
                jacobian,
                ..Build::default()
            };
            stan::Model::compile(&source.text, &source.model, &values, &build)
        })?;
        Ok(Self {
            inner: Arc::new(made.map_err(|error| raise(&error))?),
        })
    }

    /// The unconstrained dimension.
    fn dim(&self) -> usize {
        self.inner.density().dim()
    }

    /// Names of the unconstrained coordinates.
    fn unconstrained_names(&self) -> Vec<String> {
        self.inner.posterior().unconstrained_names()
    }

    /// Name and shape of every variable that `constrain` gives, in order; each column-major.
    fn variables(&self) -> Vec<(String, Vec<usize>)> {
        let variables = self.inner.posterior().variables();
        variables.into_iter().map(|v| (v.name, v.shape)).collect()
    }

    /// Log densities at points, one a row.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (rows, z) = self.points("points", &points)?;
        let density = self.inner.density();
        let values = py.detach(|| {
            let mut values = vec![0.0; rows];
            let mut ws = density.workspace(rows);
            density.value(&mut ws, Lanes::new(&z, density.dim(), rows), &mut values);
            values
        });
        Ok(values.into_pyarray(py))
    }

    /// Log densities and gradients at points, one a row.
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<WithVectors<'py>> {
        let (rows, z) = self.points("points", &points)?;
        let density = self.inner.density();
        let dim = density.dim();
        let (values, gradients) = py.detach(|| {
            let mut values = vec![0.0; rows];
            let mut gradients = vec![0.0; rows * dim];
            let mut ws = density.workspace(rows);
            let out = LanesMut::new(&mut gradients, dim, rows);
            density.value_grad(&mut ws, Lanes::new(&z, dim, rows), &mut values, out);
            (values, rows_of(&gradients, rows, dim))
        });
        let gradients = gradients.into_pyarray(py).reshape([rows, dim])?;
        Ok((values.into_pyarray(py), gradients))
    }

    /// Products of the Hessian at each point with a direction for each.
    fn hessian_vector<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        directions: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, z) = self.points("points", &points)?;
        let (given, v) = self.points("directions", &directions)?;
        if given != rows {
            return Err(PyValueError::new_err(format!(
                "{given} directions for {rows} points: expected one for each"
            )));
        }
        let density = self.inner.density();
        let dim = density.dim();
        let products = py.detach(|| {
            let mut products = vec![0.0; rows * dim];
            let mut ws = density.workspace(rows);
            let out = LanesMut::new(&mut products, dim, rows);
            density.hvp(
                &mut ws,
                Lanes::new(&z, dim, rows),
                Lanes::new(&v, dim, rows),
                out,
            );
            rows_of(&products, rows, dim)
        });
        products.into_pyarray(py).reshape([rows, dim])
    }

    /// Constrained values at an unconstrained point, generated quantities with the randomness of a seed.
    fn constrain<'py>(
        &self,
        py: Python<'py>,
        point: Vec<f64>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let dim = self.inner.density().dim();
        if point.len() != dim {
            return Err(PyValueError::new_err(format!(
                "a point of {} coordinates: expected {dim}",
                point.len()
            )));
        }
        let model = Arc::clone(&self.inner);
        let made = supervised(py, Some(1), None, |_| model.constrain(&point, seed))?;
        Ok(made.map_err(|error| raise(&error))?.into_pyarray(py))
    }

    /// The unconstrained point of parameter values by name.
    fn unconstrain<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let values = data_set(values)?;
        let model = Arc::clone(&self.inner);
        let made = supervised(py, Some(1), None, |_| model.unconstrain(&values))?;
        Ok(made.map_err(|error| raise(&error))?.into_pyarray(py))
    }
}
