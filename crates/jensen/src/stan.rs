//! Stan programs that are bound to data. Such a program provides the density and the posterior that a fit needs.

use std::fmt;
use std::sync::Arc;

use jensen_blackbox::Subject;
use jensen_data::{DataSet, Elements, Value};
use jensen_density::{DrawKey, Posterior, Variable};
use jensen_graph::{Ending, Execution, GraphDensity, Hierarchy, Series};
use jensen_math::simd::Simd;
use jensen_stan::diagnostic::Diagnostic;
pub use jensen_stan::evaluable::unsupported;
pub use jensen_stan::interpret::Halt;
use jensen_stan::interpret::{
    self, BoundModel, DataSource, ErrorKind, EvalError, Input, Interpreter, Limits,
};
pub use jensen_stan::lower::refusals;
use jensen_stan::lower::{LowerError, LowerOptions, lower};
use jensen_stan::outputs::Outputs;
use jensen_stan::program::{Decl, Program, Span};
pub use jensen_stan::{
    Checked, IncludeResolver, NoIncludes, check, diagnostic, in_todays_syntax, modernise, pretty,
};
use sha2::{Digest, Sha256};

use crate::timing::Stopwatch;
use crate::{Error, Problem, Save};

/// A lower bound on the number of bytes that a density needs for each coordinate. For each coordinate, the density
/// stores a name, slots in the graph and in the plan, and one block of lanes of values and gradients.
const BYTES_PER_COORDINATE: u64 = 512;

const PRINTED: usize = 4 << 20;

/// The settings for compiling a model.
#[derive(Clone)]
pub struct Build<'a> {
    /// The resolver of included files.
    pub includes: &'a dyn IncludeResolver,
    /// The name of the data that messages use.
    pub data_name: &'a str,
    /// The seed of the random numbers in the transformed data block.
    pub seed: u64,
    /// The SIMD instruction set that the kernels of the density use.
    pub simd: Simd,
    /// The maximum number of threads that evaluate the density at the same time.
    pub threads: usize,
    /// The maximum number of bytes of all data. The same maximum applies to each single value.
    pub memory_limit: u64,
    /// Whether the density includes the log-Jacobians of the transforms.
    pub jacobian: bool,
    /// Whether `~` statements omit their additive constants.
    pub propto: bool,
    /// The selection of the variables to report.
    pub save: Save,
    /// A signal that interrupts the compilation and later evaluations by the interpreter.
    pub halt: Halt,
}

impl Default for Build<'_> {
    fn default() -> Self {
        Self {
            includes: &NoIncludes,
            data_name: "data",
            seed: 0,
            simd: Simd::detect(),
            threads: 1,
            memory_limit: 8 << 30,
            jacobian: true,
            propto: false,
            save: Save::default(),
            halt: Halt::default(),
        }
    }
}

/// A program that is bound to its data and compiled to a density. The density uses either all data at once or
/// [exchangeable records](crate::exchangeable).
pub struct Model<D = GraphDensity> {
    name: String,
    density: D,
    posterior: Outputs,
    warnings: Vec<Diagnostic>,
    printed: Vec<String>,
    remarks: Vec<String>,
    subject: Subject,
    build_seconds: f64,
    execution: Execution,
    hierarchy: Option<Hierarchy>,
    series: Option<Series>,
}

/// An error that prevents the compilation of a program.
#[derive(Clone, Debug)]
pub struct ModelError {
    /// The kind of error.
    pub kind: ModelErrorKind,
    text: String,
}

/// The kind of a [`ModelError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The program has a syntax error or a type error.
    Program,
    /// The data do not match the declarations of the program.
    Data,
    /// The transformed data cannot be computed, or the evaluation of the log density fails at every point.
    Evaluation,
    /// The program uses a feature of Stan that this version of Jensen does not support.
    Unsupported,
    /// The program exceeds a limit on time, nesting depth or memory.
    Limit,
    /// The log density is not a sum over exchangeable records.
    Records,
}

impl ModelError {
    pub(crate) fn new(kind: ModelErrorKind, text: String) -> Self {
        Self { kind, text }
    }

    /// Returns the message with excerpts of the source, without a line break at the end.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for ModelError {}

impl Model {
    /// Compiles a program and binds it to data. Messages refer to the program by `name`.
    ///
    /// # Errors
    /// Fails with [`Error::Model`] if the program or the data have an error, and with [`Error::Memory`] if the density
    /// needs too much memory. The message of a model error contains diagnostics.
    pub fn compile(
        source: &str,
        name: &str,
        data: &DataSet,
        build: &Build<'_>,
    ) -> Result<Self, Error> {
        let (mut hierarchy, mut series) = (None, None);
        let lower = |posterior: &BoundModel, options, execution| {
            let lowered = lower(posterior, options)?;
            let asked = || posterior.halt().reason();
            hierarchy = Hierarchy::find(&lowered.graph, &lowered.scattered);
            posterior.halt().check(Span::default())?;
            series = Series::find(&lowered.graph, &lowered.scattered);
            GraphDensity::new_unless(&lowered.graph, execution, &asked)
                .map(|density| density.ended_by(ending(posterior)))
                .map_err(|interrupted| LowerError {
                    kind: ErrorKind::Limit,
                    span: Span::default(),
                    message: interrupted.to_string(),
                })
        };
        let model = Self::build(source, name, data, build, lower)?;
        Ok(Self {
            hierarchy,
            series,
            ..model
        })
    }

    pub(crate) fn hierarchy(&self) -> Option<&Hierarchy> {
        self.hierarchy.as_ref()
    }

    pub(crate) fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    pub(crate) fn execution(&self) -> Execution {
        self.execution
    }

    pub(crate) fn ending(&self) -> Ending {
        ending(self.posterior.bound())
    }

    /// Returns the density of the program.
    pub fn graph_density(&self) -> &GraphDensity {
        &self.density
    }
}

fn ending(posterior: &BoundModel) -> Ending {
    let (halt, other) = (posterior.halt().clone(), posterior.halt().clone());
    let ending = Ending::new(move || halt.reason().is_some());
    if !other.is_apart() {
        return ending;
    }
    ending.apart(move |work| other.during(Span::default(), work).is_ok())
}

impl<D> Model<D> {
    /// Builds a model. The function `lower` creates the density from the bound program.
    pub(crate) fn build(
        source: &str,
        name: &str,
        data: &DataSet,
        build: &Build<'_>,
        lower: impl FnOnce(&BoundModel, LowerOptions, Execution) -> Result<D, LowerError>,
    ) -> Result<Self, Error> {
        let stopwatch = Stopwatch::start();
        let (program, diagnostics) = checked(source, name, build)?;
        let mut printed = Vec::new();
        let posterior = bind(program, data, build, &mut printed)?;
        let subject = Subject {
            model_hash: hash_program(posterior.program()),
            data_hash: hash_data(data),
        };
        let (posterior, remarks) = with_usable_generated_quantities(posterior, data, build)?;
        build.save.check(&posterior.variables())?;
        let posterior = posterior.reporting(|variable| build.save.wants(variable));
        let options = LowerOptions {
            propto: build.propto,
            jacobian: build.jacobian,
            node_limit: nodes_within(build.memory_limit),
        };
        let execution = Execution {
            simd: build.simd,
            threads: build.threads.max(1),
        };
        let density = lower(&posterior, options, execution).map_err(|error| {
            let (kind, span) = (error.kind, error.span);
            let missing = posterior.where_missing(&error.message);
            let message = format!("{}{missing}", error.message);
            model_error(posterior.program(), kind, &message, span, build.data_name)
        })?;
        Ok(Self {
            name: name.to_owned(),
            density,
            posterior: Outputs::new(posterior, build.simd),
            warnings: diagnostics,
            printed,
            remarks,
            subject,
            build_seconds: stopwatch.seconds(),
            execution,
            hierarchy: None,
            series: None,
        })
    }

    /// Returns the name of the program.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the syntax tree of the program.
    pub fn program(&self) -> &Arc<Program> {
        self.bound().program()
    }

    /// Returns the program with its data in the form that the interpreter executes.
    pub fn bound(&self) -> &BoundModel {
        self.posterior.bound()
    }

    pub(crate) fn outputs(&self) -> &Outputs {
        &self.posterior
    }

    pub(crate) fn of(&self) -> &D {
        &self.density
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.build_seconds
    }

    pub(crate) fn with_more_data(mut self, digest: &str) -> Self {
        let mut hash = Sha256::new();
        hash_text(&mut hash, &self.subject.data_hash);
        hash_text(&mut hash, digest);
        self.subject.data_hash = hex(hash);
        self
    }

    pub(crate) fn digests(&self) -> Subject {
        self.subject.clone()
    }

    /// Returns remarks on the program that do not depend on the fit.
    pub fn notes(&self) -> Vec<String> {
        self.remarks.clone()
    }

    /// Returns the warnings of the compiler.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    /// Returns the warnings of the compiler as text with excerpts of the source.
    pub fn render_warnings(&self, colour: bool) -> String {
        diagnostic::render(&self.warnings, &self.program().files, colour)
    }

    /// Returns the lines that `print` statements in the transformed data block have written.
    pub fn printed(&self) -> &[String] {
        &self.printed
    }

    /// Returns the reason why the density is not finite at the unconstrained point `z`, as the interpreter reports it.
    /// Returns `None` if the interpreter finds no reason.
    pub fn rejection(&self, z: &[f64]) -> Option<String> {
        match self.bound().log_density(z, true, false) {
            Err(error) => Some(self.bound().locate(&error)),
            Ok(_) => None,
        }
    }

    /// Converts parameter values to an unconstrained point. `values` contains the parameters by name, with arrays and
    /// matrices as nested lists.
    ///
    /// # Errors
    /// Fails if a parameter is missing, has the wrong shape or violates its constraint.
    pub fn unconstrain(&self, values: &DataSet) -> Result<Vec<f64>, Error> {
        self.posterior
            .unconstrain(&|name| parameter(values, name))
            .map_err(|error| Error::Input(error.to_string()))
    }

    /// Converts the values of some parameters to an unconstrained point. The coordinates of the other parameters are
    /// set to 0 on the unconstrained scale.
    ///
    /// # Errors
    /// Fails if a value has the wrong shape or violates its constraint, or if none of the names belongs to a parameter.
    /// Also fails if a parameter is missing and another name is unknown, because the unknown name is then probably
    /// misspelt.
    pub fn unconstrain_some(&self, values: &DataSet) -> Result<Vec<f64>, Error> {
        let program = self.program();
        let of = |decl: &Decl| program.var(decl.var).name.as_str();
        let parameters: Vec<&str> = program.parameters.iter().map(of).collect();
        let given = |name: &&str| values.get(name).is_some();
        let missing: Vec<&str> = (parameters.iter().copied())
            .filter(|name| !given(name))
            .collect();
        let foreign = values
            .names()
            .find(|name| !program.vars.iter().any(|var| var.name == *name));
        let listed = |names: &[&str]| {
            let shown: Vec<String> = names
                .iter()
                .take(6)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = if names.len() > 6 { ", …" } else { "" };
            shown.join(", ") + more
        };
        if let (Some(foreign), false) = (foreign, missing.is_empty()) {
            return Err(Error::Input(format!(
                "`{foreign}` is not a variable of the program, and {} missing: the parameters are {}",
                match missing.len() {
                    1 => format!("{} is", listed(&missing)),
                    _ => format!("{} are", listed(&missing)),
                },
                listed(&parameters)
            )));
        }
        if !parameters.iter().any(&given) {
            return Err(Error::Input(format!(
                "the file has no value of a parameter: the parameters are {}",
                listed(&parameters)
            )));
        }
        self.bound()
            .unconstrain_some(&|name| parameter(values, name), true)
            .map_err(|error| Error::Input(error.to_string()))
    }

    /// Computes the constrained values of all parameters at the unconstrained point `z`. Generated quantities use the
    /// random numbers of the draw with index 0.
    ///
    /// # Errors
    /// Fails if the model rejects the point `z`.
    pub fn constrain(&self, z: &[f64], seed: u64) -> Result<Vec<f64>, Error> {
        let mut out = Vec::new();
        self.posterior
            .constrain(z, DrawKey { seed, index: 0 }, &mut out)
            .map_err(|error| Error::Input(error.to_string()))?;
        Ok(out)
    }
}

impl Problem for Model {
    type Density = GraphDensity;

    fn density(&self) -> &GraphDensity {
        &self.density
    }

    fn posterior(&self) -> &dyn Posterior {
        &self.posterior
    }

    fn reporting(&self, wanted: &dyn Fn(&Variable) -> bool) -> Option<Box<dyn Posterior + '_>> {
        Some(Box::new(self.posterior.reporting(wanted)))
    }

    fn subject(&self) -> Subject {
        self.digests()
    }

    fn build_seconds(&self) -> f64 {
        self.seconds()
    }

    fn remarks(&self) -> Vec<String> {
        self.notes()
    }

    fn block_bytes(&self) -> usize {
        self.density.peak_bytes()
    }
}

/// Returns the values of a parameter, or of one component of a tuple, in column-major order.
fn parameter(values: &DataSet, name: &str) -> Option<Vec<f64>> {
    match name.split_once(':') {
        None => values.get(name).map(column_major),
        Some((tuple, slot)) => match values.get(tuple)?.elements() {
            Elements::Tuple(slots) => {
                let slot: usize = slot.parse().ok()?;
                slots.get(slot.checked_sub(1)?).map(column_major)
            }
            _ => None,
        },
    }
}

fn checked(
    source: &str,
    name: &str,
    build: &Build<'_>,
) -> Result<(Program, Vec<Diagnostic>), Error> {
    let checked = check(source, name, build.includes);
    let text = checked.render(false);
    match checked.program {
        Some(program) => Ok((program, checked.diagnostics)),
        None => Err(ModelError::new(ModelErrorKind::Program, text.trim_end().to_owned()).into()),
    }
}

pub(crate) fn checked_program(
    source: &str,
    name: &str,
    build: &Build<'_>,
) -> Result<Program, Error> {
    Ok(checked(source, name, build)?.0)
}

fn bind(
    program: Program,
    data: &DataSet,
    build: &Build<'_>,
    printed: &mut Vec<String>,
) -> Result<BoundModel, Error> {
    let program = Arc::new(program);
    let limits = Limits::default();
    let interpreter = Interpreter {
        limits: Limits {
            bytes: limits.bytes.min(build.memory_limit),
            ..limits
        },
        seed: build.seed,
        halt: build.halt.clone(),
    };
    let mut room = PRINTED;
    let mut sink = |line: &str| {
        // The number of stored bytes is limited, because a program may print in an endless loop.
        match room.checked_sub(line.len() + 1) {
            Some(left) => {
                room = left;
                printed.push(line.to_owned());
            }
            None if room > 0 => {
                room = 0;
                printed.push("… further output is omitted".to_owned());
            }
            None => {}
        }
    };
    let names = program
        .data
        .iter()
        .map(|d| program.var(d.var).name.as_str());
    if let Some(error) = names.filter_map(|name| data.refusal(name)).next() {
        return Err(error.clone().into());
    }
    let bound = interpreter
        .bind(program.clone(), &Source(data), &mut sink)
        .map_err(|error| {
            let (kind, span) = (error.kind, error.span);
            model_error(&program, kind, &error.message, span, build.data_name)
        })?;
    let dim = bound.unconstrained_dim() as u64;
    let needed = dim.saturating_mul(BYTES_PER_COORDINATE);
    if needed > build.memory_limit {
        return Err(Error::Memory {
            what: format!("evaluating the model ({dim} unconstrained coordinates)"),
            needed,
            limit: build.memory_limit,
            advice: "declare fewer parameters, or raise the limit".into(),
        });
    }
    Ok(bound)
}

/// Removes the generated quantities if they would fail at every draw, so that the posterior of the parameters can still
/// be computed.
fn with_usable_generated_quantities(
    posterior: BoundModel,
    data: &DataSet,
    build: &Build<'_>,
) -> Result<(BoundModel, Vec<String>), Error> {
    if posterior.program().generated_quantities.is_empty() {
        return Ok((posterior, Vec::new()));
    }
    let failure = |posterior: &BoundModel| {
        let key = DrawKey { seed: 0, index: 0 };
        let origin = vec![0.0; posterior.unconstrained_dim()];
        let tried = posterior.constrain_with(&origin, key, &mut Vec::new(), &mut |_| {});
        // A rejection is not counted as a failure, because it may be specific to the origin.
        tried
            .err()
            .filter(|error| error.kind != ErrorKind::Rejected)
    };
    let tried = failure(&posterior);
    if let Some(span) = tried.as_ref().map(|error| error.span) {
        // If the time limit has passed, the program would also fail without its generated quantities.
        build.halt.check(span).map_err(|error| {
            let (kind, program) = (error.kind, posterior.program());
            model_error(program, kind, &error.message, span, build.data_name)
        })?;
    }
    let Some(reason) = tried.map(|error| posterior.locate(&error)) else {
        return Ok((posterior, Vec::new()));
    };
    let mut program = Program::clone(posterior.program());
    program.generated_quantities.clear();
    let without = bind(program, data, build, &mut Vec::new())?;
    if failure(&without).is_some() {
        return Ok((posterior, Vec::new()));
    }
    let remark = format!("generated quantities fail, so Jensen omits them: {reason}");
    Ok((without, vec![remark]))
}

pub(crate) fn bind_block(
    program: &Arc<Program>,
    data: &DataSet,
    memory_limit: u64,
) -> Result<BoundModel, Box<EvalError>> {
    let limits = Limits::default();
    let interpreter = Interpreter {
        limits: Limits {
            bytes: limits.bytes.min(memory_limit),
            ..limits
        },
        seed: 0,
        halt: Halt::default(),
    };
    interpreter.bind(program.clone(), &Source(data), &mut |_| {})
}

const NODE_BYTES: u64 = 400;

/// Returns the maximum number of graph nodes that fit into this number of bytes. The result is never lower than the
/// number that small programs need.
fn nodes_within(bytes: u64) -> usize {
    usize::try_from((bytes / NODE_BYTES).max(1_000_000)).unwrap_or(usize::MAX)
}

pub(crate) fn model_error(
    program: &Program,
    kind: ErrorKind,
    message: &str,
    span: Span,
    data_name: &str,
) -> ModelError {
    let kind = match kind {
        ErrorKind::Data => ModelErrorKind::Data,
        ErrorKind::Unsupported => ModelErrorKind::Unsupported,
        ErrorKind::Limit | ErrorKind::Excess => ModelErrorKind::Limit,
        ErrorKind::Records => ModelErrorKind::Records,
        ErrorKind::Rejected | ErrorKind::Failed => ModelErrorKind::Evaluation,
    };
    let mut text = match kind {
        ModelErrorKind::Data => format!("{data_name}: {message}"),
        _ => message.to_owned(),
    };
    if let Some(shown) = excerpt(program, span) {
        text.push('\n');
        text.push_str(&shown);
    }
    ModelError { kind, text }
}

fn excerpt(program: &Program, span: Span) -> Option<String> {
    let file = program.files.get(span.file.0 as usize)?;
    if span.end == 0 {
        return None;
    }
    let (line, column) = file.line_column(span.start);
    let source = file.text.lines().nth(line - 1)?.trim_end();
    let mark = file
        .text
        .get(span.start as usize..span.end as usize)
        .map_or(1, |text| {
            text.lines().next().map_or(1, |l| l.chars().count())
        });
    // Control characters in the source are replaced, because they must not reach a terminal.
    let source: String = source
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    Some(format!(
        "{margin}--> {}:{line}:{column}\n{number} | {source}\n{margin} | {}{}",
        file.name,
        " ".repeat(column - 1),
        "^".repeat(mark.max(1))
    ))
}

struct Source<'a>(&'a DataSet);

impl DataSource for Source<'_> {
    fn get(&self, name: &str) -> Option<Input<'_>> {
        self.0.get(name).map(input)
    }

    fn names(&self) -> Vec<&str> {
        self.0.names().collect()
    }

    fn rows(&self) -> Option<usize> {
        self.0.rows()
    }

    fn words(&self, name: &str) -> Option<String> {
        self.0.words(name).map(ToString::to_string)
    }
}

fn input(value: &Value) -> Input<'_> {
    let elements = match value.elements() {
        Elements::Int(ints) => interpret::Elements::Ints(ints),
        Elements::Real(reals) => interpret::Elements::Reals(reals),
        Elements::Tuple(slots) => interpret::Elements::Tuple(slots.iter().map(input).collect()),
    };
    Input {
        shape: value.shape(),
        elements,
    }
}

/// Returns the numbers of a value in column-major order, in which the first index varies fastest.
pub(crate) fn column_major(value: &Value) -> Vec<f64> {
    let row_major: Vec<f64> = match value.elements() {
        Elements::Int(ints) => ints.iter().map(|x| *x as f64).collect(),
        Elements::Real(reals) => reals.clone(),
        Elements::Tuple(_) => return Vec::new(),
    };
    let shape = value.shape();
    let mut index = vec![0; shape.len()];
    let mut out = Vec::with_capacity(row_major.len());
    for _ in 0..row_major.len() {
        let at = index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i);
        out.push(row_major[at]);
        for (i, n) in index.iter_mut().zip(shape) {
            *i += 1;
            if *i < *n {
                break;
            }
            *i = 0;
        }
    }
    out
}

fn hex(hash: Sha256) -> String {
    hash.finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn hash_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text.as_bytes());
}

/// Returns a digest of the texts of the program and its included files. The names of the files do not influence the
/// digest.
fn hash_program(program: &Program) -> String {
    let mut hash = Sha256::new();
    for file in &program.files {
        hash_text(&mut hash, &file.text);
    }
    hex(hash)
}

/// Returns a digest of the data. Neither the order of the values nor the format of the file influences the digest.
fn hash_data(data: &DataSet) -> String {
    let mut entries: Vec<_> = data.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    let mut hash = Sha256::new();
    for (name, value) in entries {
        hash_text(&mut hash, name);
        hash_value(&mut hash, value);
    }
    hex(hash)
}

fn hash_value(hash: &mut Sha256, value: &Value) {
    hash.update((value.shape().len() as u64).to_le_bytes());
    for extent in value.shape() {
        hash.update((*extent as u64).to_le_bytes());
    }
    match value.elements() {
        Elements::Int(ints) => {
            hash.update(b"i");
            ints.iter().for_each(|x| hash.update(x.to_le_bytes()));
        }
        Elements::Real(reals) => {
            hash.update(b"r");
            reals.iter().for_each(|x| hash.update(x.to_le_bytes()));
        }
        Elements::Tuple(slots) => {
            hash.update(b"t");
            slots.iter().for_each(|slot| hash_value(hash, slot));
        }
    }
}
