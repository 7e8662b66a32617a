//! Values and derivatives of a program's log density.

use std::path::PathBuf;

use jensen::data::{DataFile, DrawsVariable};
use jensen::density::{
    AllRecords, DrawKey, Lanes, LanesMut, LogDensity, Posterior, RecordDensity,
    TwiceDifferentiable, Variable,
};
use jensen::exchangeable::{self, RecordModel};
use jensen::program::{Includes, Source};
use jensen::stan::{self, Build};
use jensen::{Error, Problem};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::data::data_set;
use crate::error::{StanError, raise};
use crate::program::{Reported, reported};
use crate::watch::supervised;

/// Checks a program without data. Returns the remarks of the compiler, and the names and types of the data that the
/// program declares.
#[pyfunction]
pub fn check(
    py: Python<'_>,
    name: &str,
    text: &str,
    include: Vec<PathBuf>,
) -> PyResult<(String, Vec<(String, String)>)> {
    let checked = supervised(py, Some(1), None, |_| {
        let text = stan::in_todays_syntax(text.to_owned());
        let checked = stan::check(&text, name, &Includes::of_folders(&include));
        let remarks = checked.render(false).trim_end().to_owned();
        let Some(program) = checked.program else {
            return Err(remarks);
        };
        let declared = program.data.iter().map(|declared| {
            let name = program.var(declared.var).name.clone();
            (name, declared.ty.unsized_type().to_string())
        });
        Ok((remarks, declared.collect()))
    })?;
    checked.map_err(StanError::new_err)
}

/// A program that is bound to its data.
#[pyclass(frozen)]
pub struct BoundModel {
    inner: Lowered,
}

enum Lowered {
    Whole(Box<stan::Model>),
    Records(Box<RecordModel>),
}

macro_rules! with_density {
    ($bound:expr, $records:expr, |$density:ident| $work:expr) => {
        match (&$bound.inner, $records) {
            (Lowered::Whole(model), _) => {
                let $density = model.density();
                $work
            }
            (Lowered::Records(model), None) => {
                let $density = model.density();
                $work
            }
            (Lowered::Records(model), Some(records)) => {
                let $density = &AllRecords::sample(model.records(), records);
                $work
            }
        }
    };
}

/// Converts points to lanes. In `points`, each row contains one point. In the result, the values of each coordinate are
/// adjacent.
pub fn lanes_of(points: &[f64], rows: usize, dim: usize) -> Vec<f64> {
    transposed(points, rows, dim)
}

/// Converts lanes back to points. Each row of the result contains one point.
pub fn rows_of(lanes: &[f64], rows: usize, dim: usize) -> Vec<f64> {
    transposed(lanes, dim, rows)
}

fn transposed(matrix: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    let mut out = vec![0.0; rows * columns];
    let mut from = 0;
    for row in 0..rows {
        let mut to = row;
        for _ in 0..columns {
            out[to] = matrix[from];
            from += 1;
            to += rows;
        }
    }
    out
}

type WithVectors<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray2<f64>>);

type Records<'py> = Option<PyReadonlyArray1<'py, u32>>;

impl BoundModel {
    fn dimension(&self) -> usize {
        with_density!(self, None, |density| density.dim())
    }

    fn posterior(&self) -> &dyn Posterior {
        match &self.inner {
            Lowered::Whole(model) => model.posterior(),
            Lowered::Records(model) => model.posterior(),
        }
    }

    fn points(
        &self,
        what: &str,
        points: &PyReadonlyArray2<'_, f64>,
    ) -> PyResult<(usize, Vec<f64>)> {
        let (rows, columns) = (points.shape()[0], points.shape()[1]);
        let dim = self.dimension();
        if columns != dim {
            return Err(PyValueError::new_err(format!(
                "{what} of shape ({rows}, {columns}): expected (n, {dim}), where {dim} is the unconstrained \
                 dimension of the model"
            )));
        }
        Ok((rows, lanes_of(points.as_slice()?, rows, dim)))
    }

    fn chosen(&self, records: Records<'_>) -> PyResult<Option<Vec<u32>>> {
        let Some(records) = records else {
            return Ok(None);
        };
        let records = records.as_slice()?.to_vec();
        let count = self.records().unwrap_or(0);
        if let Some(beyond) = records.iter().find(|n| **n as usize >= count) {
            return Err(PyIndexError::new_err(format!(
                "record {beyond} of {count}: record numbers start at 0"
            )));
        }
        Ok(Some(records))
    }
}

#[pymethods]
impl BoundModel {
    /// Compiles a program with data from a file, or from arrays by name. `count` names the data variable that counts
    /// exchangeable records, for a density of records.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
    #[pyo3(signature = (name, text, include, data, data_file, count, seed, propto, jacobian, threads))]
    fn compile(
        py: Python<'_>,
        name: &str,
        text: &str,
        include: Vec<PathBuf>,
        data: Option<&Bound<'_, PyDict>>,
        data_file: Option<PathBuf>,
        count: Option<String>,
        seed: u64,
        propto: bool,
        jacobian: bool,
        threads: usize,
    ) -> PyResult<Self> {
        let values = data.map(data_set).transpose()?;
        let given = values.is_some();
        let made = supervised(py, Some(1), None, |_| -> Result<_, Error> {
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
                data_name: if given { "data" } else { source.data_name() },
                seed,
                threads,
                propto,
                jacobian,
                ..Build::default()
            };
            let (text, name) = (&source.text, &source.model);
            Ok(match &count {
                None => {
                    Lowered::Whole(Box::new(stan::Model::compile(text, name, &values, &build)?))
                }
                Some(count) => {
                    let model = exchangeable::compile(text, name, &values, &build, count)?;
                    Lowered::Records(Box::new(model))
                }
            })
        })?;
        Ok(Self {
            inner: made.map_err(|error| raise(&error))?,
        })
    }

    /// The unconstrained dimension.
    fn dim(&self) -> usize {
        self.dimension()
    }

    /// The number of exchangeable records, if the program was compiled as a density of records.
    fn records(&self) -> Option<usize> {
        match &self.inner {
            Lowered::Whole(_) => None,
            Lowered::Records(model) => Some(model.records().records()),
        }
    }

    /// Names of the unconstrained coordinates.
    fn unconstrained_names(&self) -> Vec<String> {
        self.posterior().unconstrained_names()
    }

    /// Every variable that `constrain` returns, in order, each column-major.
    fn variables(&self) -> Vec<Reported> {
        self.posterior().variables().iter().map(reported).collect()
    }

    /// Names of the scalars of these variables, in their order.
    fn names(&self) -> Vec<String> {
        let variables = self.posterior().variables().into_iter();
        variables
            .flat_map(|v| DrawsVariable::new(v.name, v.shape).display_names())
            .collect()
    }

    /// Log densities at points, one per row.
    fn log_density<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        records: Records<'py>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let (rows, z) = self.points("points", &points)?;
        let records = self.chosen(records)?;
        let values = py.detach(|| {
            with_density!(self, records, |density| {
                let mut values = vec![0.0; rows];
                let mut ws = density.workspace(rows);
                density.value(&mut ws, Lanes::new(&z, density.dim(), rows), &mut values);
                values
            })
        });
        Ok(values.into_pyarray(py))
    }

    /// Log densities and gradients at points, one per row.
    fn gradient<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        records: Records<'py>,
    ) -> PyResult<WithVectors<'py>> {
        let (rows, z) = self.points("points", &points)?;
        let records = self.chosen(records)?;
        let dim = self.dimension();
        let (values, gradients) = py.detach(|| {
            with_density!(self, records, |density| {
                let mut values = vec![0.0; rows];
                let mut gradients = vec![0.0; rows * dim];
                let mut ws = density.workspace(rows);
                let out = LanesMut::new(&mut gradients, dim, rows);
                density.value_grad(&mut ws, Lanes::new(&z, dim, rows), &mut values, out);
                (values, rows_of(&gradients, rows, dim))
            })
        });
        let gradients = gradients.into_pyarray(py).reshape([rows, dim])?;
        Ok((values.into_pyarray(py), gradients))
    }

    /// Products of the Hessian at each point with a direction for each point.
    fn hessian_vector<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        directions: PyReadonlyArray2<'py, f64>,
        records: Records<'py>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (rows, z) = self.points("points", &points)?;
        let (given, v) = self.points("directions", &directions)?;
        if given != rows {
            return Err(PyValueError::new_err(format!(
                "{given} directions for {rows} points: expected one per point"
            )));
        }
        let records = self.chosen(records)?;
        let dim = self.dimension();
        let products = py.detach(|| {
            with_density!(self, records, |density| {
                let mut products = vec![0.0; rows * dim];
                let mut ws = density.workspace(rows);
                let out = LanesMut::new(&mut products, dim, rows);
                let (z, v) = (Lanes::new(&z, dim, rows), Lanes::new(&v, dim, rows));
                density.hvp(&mut ws, z, v, out);
                rows_of(&products, rows, dim)
            })
        });
        products.into_pyarray(py).reshape([rows, dim])
    }

    /// Constrained values at unconstrained points, one per row; the generated quantities of row i are those of draw i
    /// of the seed.
    fn constrain<'py>(
        &self,
        py: Python<'py>,
        points: PyReadonlyArray2<'py, f64>,
        seed: u64,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        // The points are checked in the same way as in the other methods.
        let (rows, _) = self.points("points", &points)?;
        let z = points.as_slice()?.to_vec();
        let posterior = self.posterior();
        let made = supervised(py, Some(1), None, |_| -> Result<_, Error> {
            let keys = (0..rows as u64).map(|index| DrawKey { seed, index });
            let keys: Vec<DrawKey> = keys.collect();
            let mut values = Vec::new();
            for made in posterior.constrain_all(&z, &keys) {
                values.extend(made.map_err(|error| Error::Input(error.to_string()))?);
            }
            Ok(values)
        })?;
        let width = posterior.variables().iter().map(Variable::len).sum();
        let values = made.map_err(|error| raise(&error))?;
        values.into_pyarray(py).reshape([rows, width])
    }

    /// The unconstrained point of parameter values by name.
    fn unconstrain<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let values = data_set(values)?;
        let made = supervised(py, Some(1), None, |_| match &self.inner {
            Lowered::Whole(model) => model.unconstrain(&values),
            Lowered::Records(model) => model.unconstrain(&values),
        })?;
        Ok(made.map_err(|error| raise(&error))?.into_pyarray(py))
    }
}
