//! Densities written in Python as functions of several points at once.

use std::sync::{Mutex, PoisonError};

use jensen::blackbox::Init;
use jensen::data::{Coordinates, DataSet};
use jensen::density::{
    ConstrainError, Differenced, DrawKey, Lanes, LanesMut, LogDensity, Posterior,
    TwiceDifferentiable, Unconstrained, Variable, VariableKind,
};
use jensen::job::{Around, ResultFolder, carry_out, request};
use jensen::program::{FitJob, FitRequest};
use jensen::{About, Error, Problem};
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::raise;
use crate::model::{lanes_of, rows_of};
use crate::program::{Fitted, read_request};
use crate::watch::{Eyes, Watch, supervised};

/// Two functions written in Python. The first returns the log densities and gradients at points, one point per row. The
/// second returns Hessian-vector products.
struct Callback<'a> {
    function: &'a Py<PyAny>,
    products: Option<&'a Py<PyAny>>,
    dim: usize,
    watch: &'a Watch,
    /// The first exception that a function raised. After an exception has been stored, all results are NaN.
    raised: &'a Mutex<Option<PyErr>>,
    turn: &'a Turn,
}

/// Ensures that only one thread at a time calls Python functions. Many functions, such as those of PyTensor, keep a
/// cache in the function itself. Without this mutex, a second thread could take the interpreter's lock during a call
/// and change the cache.
#[derive(Default)]
struct Turn(Mutex<()>);

impl Turn {
    /// Calls into Python. A waiting thread releases the interpreter's lock, because the active thread needs this lock.
    fn take<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> PyResult<T> {
        let _turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Python::attach(call)
    }
}

#[derive(Default)]
struct Points {
    z: Vec<f64>,
    lanes: usize,
}

impl Callback<'_> {
    /// Calls into Python. If the call raises an exception, the function sets the results to NaN and cancels the run.
    fn attempt(&self, out: &mut [f64], call: impl FnOnce(Python<'_>, &mut [f64]) -> PyResult<()>) {
        if let Err(error) = self.turn.take(|py| call(py, out)) {
            out.fill(f64::NAN);
            self.watch
                .cancel
                .store(true, std::sync::atomic::Ordering::Relaxed);
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            raised.get_or_insert(error);
        }
    }

    fn array<'py>(&self, py: Python<'py>, lanes: Lanes<'_>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = rows_of(lanes.as_slice(), lanes.lanes(), self.dim);
        rows.into_pyarray(py).reshape([lanes.lanes(), self.dim])
    }

    fn matrix(&self, what: &str, given: &Bound<'_, PyAny>, lanes: usize) -> PyResult<Vec<f64>> {
        let expected = || format!("{what} of shape ({lanes}, {}) and type float64", self.dim);
        let array: PyReadonlyArray2<'_, f64> = given.extract().map_err(|_| {
            PyTypeError::new_err(format!("the density returned {given:?} for {}", expected()))
        })?;
        if array.shape() != [lanes, self.dim] {
            return Err(PyValueError::new_err(format!(
                "the density returned an array of shape {:?} for {}",
                array.shape(),
                expected()
            )));
        }
        let rows: Vec<f64> = array.as_array().iter().copied().collect();
        Ok(lanes_of(&rows, lanes, self.dim))
    }

    fn evaluate(&self, z: Lanes<'_>, out: &mut [f64], gradients: Option<&mut [f64]>) {
        self.attempt(out, |py, out| {
            let lanes = z.lanes();
            let given = self.function.call1(py, (self.array(py, z)?,))?;
            let (values, slopes): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
                given.extract(py).map_err(|_| {
                    PyTypeError::new_err(
                        "a density must return two arrays for points: values and gradients",
                    )
                })?;
            let values: PyReadonlyArray1<'_, f64> = values.extract().map_err(|_| {
                PyTypeError::new_err(format!(
                    "the density returned {values:?} for {lanes} values of type float64"
                ))
            })?;
            if values.len() != lanes {
                return Err(PyValueError::new_err(format!(
                    "the density returned {} values for {lanes} points",
                    values.len()
                )));
            }
            for (out, value) in out.iter_mut().zip(values.as_array()) {
                *out = *value;
            }
            if let Some(gradients) = gradients {
                gradients.copy_from_slice(&self.matrix("gradients", &slopes, lanes)?);
            }
            Ok(())
        });
    }
}

impl LogDensity for Callback<'_> {
    type Workspace = Points;

    fn dim(&self) -> usize {
        self.dim
    }

    fn workspace(&self, _: usize) -> Points {
        Points::default()
    }

    fn value(&self, _: &mut Points, z: Lanes<'_>, out: &mut [f64]) {
        self.evaluate(z, out, None);
    }

    fn value_grad(&self, _: &mut Points, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        self.evaluate(z, out, Some(grad.as_mut_slice()));
    }
}

impl TwiceDifferentiable for Callback<'_> {
    fn linearize(&self, ws: &mut Points, z: Lanes<'_>) {
        ws.z.clear();
        ws.z.extend_from_slice(z.as_slice());
        ws.lanes = z.lanes();
    }

    fn apply(&self, ws: &mut Points, v: Lanes<'_>, mut out: LanesMut<'_>) {
        let Some(function) = self.products else {
            out.as_mut_slice().fill(f64::NAN);
            return;
        };
        let z = Lanes::new(&ws.z, self.dim, ws.lanes);
        self.attempt(out.as_mut_slice(), |py, out| {
            let given = function.call1(py, (self.array(py, z)?, self.array(py, v)?))?;
            out.copy_from_slice(&self.matrix("products", given.bind(py), z.lanes())?);
            Ok(())
        });
    }
}

struct Described<'a, D> {
    density: D,
    values: Values<'a>,
}

struct Values<'a> {
    names: &'a [String],
    variables: Vec<Variable>,
    constrain: Option<&'a Py<PyAny>>,
    turn: &'a Turn,
}

impl<D: TwiceDifferentiable> Problem for Described<'_, D> {
    type Density = D;

    fn density(&self) -> &D {
        &self.density
    }

    fn posterior(&self) -> &dyn Posterior {
        &self.values
    }
}

impl Posterior for Values<'_> {
    fn variables(&self) -> Vec<Variable> {
        self.variables.clone()
    }

    fn unconstrained_names(&self) -> Vec<String> {
        self.names.to_vec()
    }

    fn constrain(&self, z: &[f64], _: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError> {
        let Some(function) = self.constrain else {
            out.extend_from_slice(z);
            return Ok(());
        };
        let made = self.turn.take(|py| {
            let given = function.call1(py, (PyArray1::from_slice(py, z),))?;
            let values: PyReadonlyArray1<'_, f64> = given.extract(py)?;
            out.extend(values.as_array());
            Ok(())
        });
        made.map_err(|error| ConstrainError::new(error.to_string()))
    }

    fn unconstrain(&self, _: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError> {
        Err(ConstrainError::new(
            "a density in Python starts at an unconstrained point",
        ))
    }
}

fn variables_of(given: Vec<(String, Vec<usize>, String)>) -> Vec<Variable> {
    let variables = given.into_iter();
    variables
        .map(|(name, shape, part)| Variable {
            name,
            shape,
            kind: match part.as_str() {
                "parameters" => VariableKind::Parameter,
                "transformed parameters" => VariableKind::Transformed,
                _ => VariableKind::Generated,
            },
            integer: false,
        })
        .collect()
}

/// Fits a density that is written in Python: `function(points) -> values, gradients`, and optionally `products(points,
/// directions)`. The draws contain the values of `variables`. `constrain(point)` returns the values of all variables as
/// one flat array. In this array, the first index of each variable varies fastest. By default, the variables are the
/// coordinates.
#[pyfunction]
#[pyo3(signature = (function, products, names, variables, constrain, request, point, threads, progress))]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
pub fn fit_density(
    py: Python<'_>,
    function: Py<PyAny>,
    products: Option<Py<PyAny>>,
    names: Vec<String>,
    variables: Vec<(String, Vec<usize>, String)>,
    constrain: Option<Py<PyAny>>,
    request: &str,
    point: Option<Vec<f64>>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Fitted> {
    let request = read_request(request)?;
    let (raised, turn) = (Mutex::new(None), Turn::default());
    let variables = variables_of(variables);
    let made = supervised(py, threads, progress.as_ref(), |watch| {
        let callback = Callback {
            function: &function,
            products: products.as_ref(),
            dim: names.len(),
            watch,
            raised: &raised,
            turn: &turn,
        };
        let values = Values {
            names: &names,
            variables,
            constrain: constrain.as_ref(),
            turn: &turn,
        };
        let run = || match &products {
            Some(_) => fit(callback, values, &request, point, watch),
            None => fit(Differenced(callback), values, &request, point, watch),
        };
        // The thread remains attached to the interpreter, although it holds the interpreter's lock only rarely. If a
        // thread is not attached, a stack for Python is mapped and unmapped at every call. A call then costs 11 µs in
        // addition to the function, instead of 4 µs.
        Python::attach(|py| py.detach(run))
    })?;
    if let Some(error) = raised.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    made.map_err(|error| raise(&error))
}

fn fit<D: TwiceDifferentiable>(
    density: D,
    values: Values<'_>,
    request: &FitRequest,
    point: Option<Vec<f64>>,
    watch: &Watch,
) -> Result<Fitted, Error> {
    let problem = Described { density, values };
    let init = match (point, request.init.as_deref()) {
        (Some(point), _) => Init::Point(point),
        (None, Some("random")) => Init::Random,
        _ => Init::Zero,
    };
    let options = request.options(init, rayon::current_num_threads())?;
    let about = About {
        model: "a density in Python".to_owned(),
        data: String::new(),
        settings: request::listed(request),
        ..About::default()
    };
    let data = DataSet::new();
    let job = FitJob {
        resumable: true,
        problem: &problem,
        options: &options,
        request,
        inputs: Vec::new(),
        budget: request.budget(),
        about: about.clone(),
        data: &data,
        coordinates: Coordinates::default(),
    };
    let done = carry_out(
        job,
        Around {
            results: ResultFolder::None,
            checkpoint_every: None,
            memory_limit: request.memory_limit(),
            clock: &|| watch.seconds(),
            cancel: Some(&watch.cancel),
            partial: false,
            observer: &mut Eyes(watch),
        },
    )?;
    Ok(Fitted {
        fitted: done.made.output,
        summary: done.summary,
        about,
        program: None,
        threads: None,
    })
}
