//! Programs and their fits.

use std::path::PathBuf;
use std::sync::Arc;

use jensen::blackbox::{Init, NoiseSource};
use jensen::data::{
    DataFile, DrawsTable, DrawsVariable, Elements, FitSummary, Labels, StanCsvComments,
    read_draws_csv, write_draws_csv,
};
use jensen::density::{Variable, VariableKind};
use jensen::job::{Around, ResultFolder, request};
use jensen::program::{self, FitRequest, Includes, Source, StoredFit};
use jensen::regress::Regression;
use jensen::stan::{Build, Halt};
use jensen::{About, Error, Generator, SampleRequest, Save};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::data::{self, data_set};
use crate::error::raise;
use crate::regress::{Columns, frame};
use crate::watch::{Eyes, supervised};

/// A program that is compiled for a fit.
#[pyclass(frozen)]
pub struct Program {
    inner: Arc<program::Program>,
    threads: Option<usize>,
}

type Written = (Program, Vec<String>, Vec<(String, String, bool)>);

/// Parses a fit request in JSON. The keys are the names of the command's flags.
pub fn read_request(text: &str) -> PyResult<FitRequest> {
    data::read_request("a setting of jensen.fit", text)
}

#[pymethods]
impl Program {
    /// Compiles a program with data from a file, or from arrays by name.
    #[staticmethod]
    #[pyo3(signature = (name, text, include, data, data_file, request, threads))]
    #[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
    fn compile(
        py: Python<'_>,
        name: &str,
        text: &str,
        include: Vec<PathBuf>,
        data: Option<&Bound<'_, PyDict>>,
        data_file: Option<PathBuf>,
        request: &str,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let request = read_request(request)?;
        let values = data.map(data_set).transpose()?;
        let made = supervised(py, threads, None, |watch| {
            let mut source =
                Source::of(name, text, Includes::of_folders(&include), values.as_ref());
            if let Some(path) = &data_file {
                source.data = Some(DataFile::read(path)?);
            }
            let threads = rayon::current_num_threads();
            let halt = watch.halt(request.max_seconds);
            program::Program::compile(source, request, threads, halt)
        })?;
        Ok(Self {
            inner: Arc::new(made.map_err(|error| raise(&error))?),
            threads,
        })
    }

    /// Compiles the program of a regression over a table: columns, or a file.
    #[staticmethod]
    #[pyo3(signature = (columns, table, regression, request, threads))]
    fn regression(
        py: Python<'_>,
        columns: Option<Columns<'_>>,
        table: Option<PathBuf>,
        regression: &str,
        request: &str,
        threads: Option<usize>,
    ) -> PyResult<Written> {
        let settings = read_request(request)?;
        let asked = data::read_request("an argument of jensen.regress", regression)?;
        let frame = frame(columns, table)?;
        let made = supervised(py, threads, None, |_| {
            let Regression { source, kept, .. } = Regression::new(&asked, &frame)?;
            let threads = rayon::current_num_threads();
            let program = program::Program::compile(source, settings, threads, Halt::default())?;
            Ok((program, kept))
        })?;
        let (program, kept) = made.map_err(|error: Error| raise(&error))?;
        let inner = Arc::new(program);
        Ok((Self { inner, threads }, kept.notes, kept.priors))
    }

    /// Opens the folder of an earlier fit: its compiled program with its settings, except the given ones.
    #[staticmethod]
    fn stored(
        py: Python<'_>,
        folder: PathBuf,
        request: &str,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let given = read_request(request)?;
        let made = supervised(py, threads, None, |watch| {
            let (run, stored) = StoredFit::open(&folder)?;
            let request = request::over(&given, &stored.flags)?;
            let source = stored.source(&run)?;
            let threads = rayon::current_num_threads();
            program::Program::of_stored(&stored, source, request, threads, watch.halt(None))
        })?;
        Ok(Self {
            inner: Arc::new(made.map_err(|error| raise(&error))?),
            threads,
        })
    }

    /// Messages of the program before it is fitted.
    fn remarks(&self) -> Vec<String> {
        self.inner.remarks()
    }

    /// Name, shape, part of the program and whether values are integers, for every variable of the draws, in order.
    fn variables(&self) -> Vec<Reported> {
        let variables = self.inner.variables();
        let kept = variables.iter().filter(|variable| !variable.is_empty());
        kept.map(reported).collect()
    }

    /// The labels of dimensions, and the dimensions of parameters and data by name, as in `draws.nc`.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Named<'py>> {
        labels(py, &self.inner)
    }

    /// The data by name, except tuples.
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = PyDict::new(py);
        for (name, value) in self.inner.data().iter() {
            let shape = value.shape().to_vec();
            match value.elements() {
                Elements::Int(x) => {
                    data.set_item(name, x.clone().into_pyarray(py).reshape(shape)?)?;
                }
                Elements::Real(x) => {
                    data.set_item(name, x.clone().into_pyarray(py).reshape(shape)?)?;
                }
                Elements::Tuple(_) => {}
            }
        }
        Ok(data)
    }

    /// Fits. `point` is an unconstrained point, `values` are parameter values by name.
    #[pyo3(signature = (out, resume, force, point, values, progress))]
    #[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
    fn fit(
        &self,
        py: Python<'_>,
        out: Option<PathBuf>,
        resume: bool,
        force: bool,
        point: Option<Vec<f64>>,
        values: Option<&Bound<'_, PyDict>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Fitted> {
        let values = values.map(data_set).transpose()?;
        let program = &self.inner;
        let made = supervised(py, self.threads, progress.as_ref(), |watch| {
            let mut stored = None;
            let results = match (&out, resume) {
                (Some(path), true) => {
                    let (folder, kept) = StoredFit::open(path)?;
                    stored = Some(kept.init);
                    ResultFolder::Resumed { folder, force }
                }
                (out, _) => ResultFolder::new(out.as_deref()),
            };
            let init = match (point, &values) {
                (Some(point), _) => Init::Point(point),
                (None, Some(values)) => program.start_at(values)?,
                (None, None) => program.start(stored)?,
            };
            program.fit(
                init,
                Around {
                    results,
                    checkpoint_every: program.request().checkpoint_every,
                    memory_limit: program.request().memory_limit(),
                    clock: &|| watch.seconds(),
                    cancel: Some(&watch.cancel),
                    // Partial results can be written only if there is a folder.
                    partial: out.is_some(),
                    observer: &mut Eyes(watch),
                },
            )
        })?;
        let (fitted, summary) = made.map_err(|error| raise(&error))?;
        Ok(Fitted {
            about: program.about_fit(&fitted),
            fitted,
            summary,
            program: Some(Arc::clone(program)),
            threads: self.threads,
        })
    }
}

/// A finished fit.
#[pyclass(frozen)]
pub struct Fitted {
    pub fitted: jensen::Fitted,
    pub summary: FitSummary,
    pub about: About,
    pub program: Option<Arc<program::Program>>,
    pub threads: Option<usize>,
}

/// The draws, one per row, and the log density of each draw under the model and under the approximation.
type Drawn<'py> = (
    Bound<'py, PyArray2<f64>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<f64>>,
);

/// The description of a variable: its name, its shape, its part of the program, and whether its values are integers.
pub type Reported = (String, Vec<usize>, &'static str, bool);

pub fn reported(variable: &Variable) -> Reported {
    let part = match variable.kind {
        VariableKind::Parameter => "parameters",
        VariableKind::Transformed => "transformed parameters",
        VariableKind::Generated => "generated quantities",
    };
    (
        variable.name.clone(),
        variable.shape.clone(),
        part,
        variable.integer,
    )
}

/// The contents of a Stan CSV file apart from the draws: the row with the mean, the comments above the header, and the
/// scale of the step size.
type Besides<'py> = (Option<Bound<'py, PyArray1<f64>>>, String, f64);

fn besides<'py>(py: Python<'py>, table: &DrawsTable, comments: StanCsvComments) -> Besides<'py> {
    let mean = table.mean().map(|mean| mean.to_vec().into_pyarray(py));
    (mean, comments.above, comments.eta)
}

/// Reads the draws and the other contents of a file `draws.csv`.
#[pyfunction]
pub fn read_draws(py: Python<'_>, path: PathBuf) -> PyResult<(Drawn<'_>, Besides<'_>)> {
    let read = py.detach(|| read_draws_csv(&path));
    let (table, comments) = read.map_err(|error| raise(&error.into()))?;
    Ok((arrays(py, &table)?, besides(py, &table, comments)))
}

/// The labels along each dimension, and the dimensions of each variable.
type Named<'py> = (Bound<'py, PyDict>, Bound<'py, PyDict>);

fn labels<'py>(py: Python<'py>, program: &program::Program) -> PyResult<Named<'py>> {
    let coordinates = program.coordinates();
    let (coords, dims) = (PyDict::new(py), PyDict::new(py));
    for (name, labels) in &coordinates.coords {
        match labels {
            Labels::Whole(labels) => coords.set_item(name, labels)?,
            Labels::Numbers(labels) => coords.set_item(name, labels)?,
            Labels::Words(labels) => coords.set_item(name, labels)?,
        }
    }
    for variable in program.variables() {
        dims.set_item(
            &variable.name,
            coordinates.names(&variable.name, variable.shape.len()),
        )?;
    }
    for (name, value) in program.data().iter() {
        dims.set_item(name, coordinates.names(name, value.shape().len()))?;
    }
    Ok((coords, dims))
}

/// Writes draws as Stan CSV, with one row per draw. The caller passes the names and the shapes of the variables.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
pub fn write_draws(
    py: Python<'_>,
    path: PathBuf,
    variables: Vec<(String, Vec<usize>)>,
    draws: PyReadonlyArray2<'_, f64>,
    log_p: PyReadonlyArray1<'_, f64>,
    log_q: PyReadonlyArray1<'_, f64>,
    mean: PyReadonlyArray1<'_, f64>,
    above: String,
    eta: f64,
) -> PyResult<()> {
    let numbers = |array: &PyReadonlyArray1<'_, f64>| array.as_array().to_vec();
    let columns = variables.into_iter();
    let columns = columns.map(|(name, shape)| DrawsVariable::new(name, shape));
    let (columns, mean) = (columns.collect(), numbers(&mean));
    let rows = draws.as_array().iter().copied().collect();
    let table = DrawsTable::new(columns, rows, numbers(&log_p), numbers(&log_q));
    let comments = StanCsvComments { above, eta };
    let written = py.detach(|| write_draws_csv(&path, &table?.with_mean(mean)?, &comments));
    written.map_err(|error| raise(&error.into()))
}

fn arrays<'py>(py: Python<'py>, table: &DrawsTable) -> PyResult<Drawn<'py>> {
    let (rows, width) = (table.len(), table.width());
    let mut all = Vec::with_capacity(rows * width);
    for draw in 0..rows {
        all.extend_from_slice(table.row(draw));
    }
    Ok((
        all.into_pyarray(py).reshape([rows, width])?,
        table.log_p().to_vec().into_pyarray(py),
        table.log_g().to_vec().into_pyarray(py),
    ))
}

#[pymethods]
impl Fitted {
    /// `fit.json`.
    fn summary(&self) -> PyResult<String> {
        jensen::job::to_json(&self.summary).map_err(|error| raise(&error))
    }

    /// Name, shape, part of the program and whether values are integers, for every variable, in the order of the
    /// columns of the draws.
    fn variables(&self) -> Vec<Reported> {
        self.fitted.sample.variables.iter().map(reported).collect()
    }

    /// The labels of dimensions, and the dimensions of parameters and data by name; empty for a density in Python.
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Named<'py>> {
        match &self.program {
            Some(program) => labels(py, program),
            None => Ok((PyDict::new(py), PyDict::new(py))),
        }
    }

    /// The draws.
    fn draws<'py>(&self, py: Python<'py>) -> PyResult<Drawn<'py>> {
        arrays(py, &self.fitted.sample.table)
    }

    /// The content of Stan CSV besides the draws.
    fn besides<'py>(&self, py: Python<'py>) -> Besides<'py> {
        let comments = self.fitted.csv_comments(&self.about);
        besides(py, &self.fitted.sample.table, comments)
    }

    /// Draws of the approximation.
    fn more_draws<'py>(
        &self,
        py: Python<'py>,
        draws: usize,
        seed: Option<u64>,
        resample: bool,
    ) -> PyResult<Drawn<'py>> {
        let Some(program) = &self.program else {
            return Err(PyValueError::new_err(
                "a fit of a density in Python keeps only its draws: request more with `draws=` when fitting",
            ));
        };
        let settings = &self.fitted.settings;
        let seed = seed.unwrap_or(settings.seed);
        let approximation = self.fitted.approximation();
        let sample = supervised(py, self.threads, None, |_| {
            let request = SampleRequest {
                first: 0,
                draws,
                resample,
                source: NoiseSource::new(seed, settings.simd),
                seed,
                threads: rayon::current_num_threads(),
            };
            program.sample(&approximation, &request)
        })?;
        arrays(py, &sample.map_err(|error| raise(&error))?.table)
    }

    /// Whether the draws are refined, and so come from the posterior instead of the approximation.
    fn refined(&self) -> bool {
        self.fitted.encode_refined().is_some()
    }

    /// The report of the fit.
    fn report(&self) -> String {
        jensen::report::render(&self.fitted.report(&self.about))
    }

    /// The bound along the run: iteration, stage, seconds, estimate.
    fn history(&self) -> Vec<(u64, String, f64, f64)> {
        let history = self.fitted.history.iter();
        history
            .map(|p| (p.iteration, p.stage.clone(), p.seconds, p.elbo))
            .collect()
    }
}

/// Computes the values that a program reports for the given draws. The draws must contain the parameters of the program
/// by name. Returns the variables, the draws, the number of rejected draws, and the reason for the first rejection.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "named in the Python layer")]
#[pyo3(signature = (name, text, include, data, data_file, variables, draws, log_p, log_q, save, seed, threads))]
pub fn generate<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    include: Vec<PathBuf>,
    data: Option<&Bound<'_, PyDict>>,
    data_file: Option<PathBuf>,
    variables: Vec<(String, Vec<usize>)>,
    draws: PyReadonlyArray2<'_, f64>,
    log_p: PyReadonlyArray1<'_, f64>,
    log_q: PyReadonlyArray1<'_, f64>,
    save: &str,
    seed: u64,
    threads: Option<usize>,
) -> PyResult<(Vec<Reported>, Drawn<'py>, usize, Option<String>)> {
    let values = data.map(data_set).transpose()?;
    let numbers = |array: &PyReadonlyArray1<'_, f64>| array.as_array().to_vec();
    let columns = variables.into_iter();
    let columns = columns.map(|(name, shape)| DrawsVariable::new(name, shape));
    let rows = draws.as_array().iter().copied().collect();
    let table = DrawsTable::new(columns.collect(), rows, numbers(&log_p), numbers(&log_q));
    let table = table.map_err(|error| raise(&error.into()))?;
    let made = supervised(py, threads, None, |_| -> Result<_, Error> {
        let includes = Includes::of_folders(&include);
        let mut source = Source::of(name, text, includes, values.as_ref());
        if let Some(path) = &data_file {
            let data = DataFile::read(path)?;
            // The levels that the fit used are unknown here, so words cannot be converted.
            if let Some(column) = data.levels()?.keys().next() {
                return Err(Error::Input(format!(
                    "`{}`: Jensen would number the words of column `{column}` again, perhaps differently from \
                     the fit: give their numbers, or use the command `jensen generate` on the fit's folder",
                    path.display()
                )));
            }
            source.data = Some(data);
        }
        let build = Build {
            includes: &source.includes,
            data_name: source.data_name(),
            seed,
            threads: rayon::current_num_threads(),
            save: Save::of_words(save),
            ..Build::default()
        };
        let values = source.values()?;
        let generator = Generator::compile(&source.text, &source.model, &values, &build)?;
        generator.generate(&table, seed)
    })?;
    let sample = made.map_err(|error| raise(&error))?;
    let reported = sample.variables.iter().map(reported).collect();
    let drawn = arrays(py, &sample.table)?;
    Ok((reported, drawn, sample.rejected, sample.rejection))
}
