//! Fits of Stan programs from files, with results that are stored in a folder.
//!
//! This module fits a program to its data in the same way as the command `jensen fit`. In contrast, the function
//! [`fit`](crate::fit) fits any problem in memory.
//!
//! | file | subject |
//! | --- | --- |
//! | `source` | [`Source`]: program, included files and data |
//! | `request` | [`FitRequest`]: the settings of a fit, with their defaults |
//! | `minibatch` | the settings of exchangeable records |
//! | `trust` | the settings of TrustVI |
//! | `job` | [`FitJob`]: the fit job |
//! | `stored` | [`StoredFit`]: the contents of a result folder |

mod job;
mod minibatch;
mod request;
mod source;
mod stored;
mod trust;

pub use job::{FitCourse, FitJob};
use request::MAX_ITERS;
pub use request::{
    CentringName, CovarianceName, EstimatorName, FitRequest, MethodName, OptimizerName, RefineName,
};
pub(crate) use source::REGRESSION;
pub use source::{Includes, Source};
pub use stored::StoredFit;
pub use trust::TrustRequest;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jensen_blackbox::{
    Approximation, FitError, Init, Refined, RefinedDraws, Settings, Subject, begins_conditional,
};
use jensen_data::{Coordinates, DataFile, DataSet, FitSummary};
use jensen_density::{AllRecords, Variable};
use jensen_run::{Budget, Control, Silent, Status};

use crate::exchangeable::{self, BlockModel, RecordModel, Records, ShardModel};
use crate::job::{Around, Done, ResultFolder, carry_out, request as requests};
use crate::records::{BLOCK, RecordSteps, RecordTable, ShardProgram};
use crate::stan::{Build, Halt, Model};
use crate::{
    About, Centring, Error, Fitted, Options, Predictive, Problem, Sample, SampleRequest, sample,
    sample_refined,
};

/// The maximum fraction of the time limit that Jensen spends on choosing a centring.
const PILOT: f64 = 0.25;

/// The name of the command, as stored in its result folders.
pub const FIT: &str = "fit";

/// A program that was compiled as a request specifies.
pub struct Program {
    source: Source,
    data: DataSet,
    request: FitRequest,
    threads: usize,
    model: Lowered,
    centring: OnceLock<Centring>,
    /// This cell is set if the reported fit uses the parameterisation of the groups that the program itself defines.
    as_written: OnceLock<()>,
}

enum Lowered {
    Whole(Box<Model>),
    Records(Box<RecordModel>),
    Blocks(Box<BlockModel>),
    Shards(Box<ShardModel>),
}

type Steps<'a> = Box<dyn FnOnce(&ShardProgram) -> Box<dyn RecordSteps> + 'a>;

macro_rules! with_model {
    ($lowered:expr, |$model:ident| $work:expr) => {
        match $lowered {
            Lowered::Whole($model) => $work,
            Lowered::Records($model) => $work,
            Lowered::Blocks($model) => $work,
            Lowered::Shards($model) => $work,
        }
    };
}

impl Program {
    /// Compiles a program for a fit on the given number of threads. The signal `halt` interrupts the interpreter during
    /// compilation and during the computation of draws.
    ///
    /// # Errors
    /// Fails if a setting is invalid, or if the program or its data have errors. The settings are checked before
    /// compilation.
    pub fn compile(
        source: Source,
        request: FitRequest,
        threads: usize,
        halt: Halt,
    ) -> Result<Self, Error> {
        Self::compiled(source, request, threads, halt, None)
    }

    /// Compiles a program whose records are divided into shards. The function `steps` receives the input that all
    /// shards need and creates the evaluator of the shards.
    ///
    /// # Errors
    /// Fails under the same conditions as [`compile`](Self::compile) for any of the shards.
    pub fn compile_shards(
        source: Source,
        request: FitRequest,
        threads: usize,
        steps: impl FnOnce(&ShardProgram) -> Box<dyn RecordSteps>,
    ) -> Result<Self, Error> {
        Self::compiled(
            source,
            request,
            threads,
            Halt::default(),
            Some(Box::new(steps)),
        )
    }

    fn compiled(
        source: Source,
        request: FitRequest,
        threads: usize,
        halt: Halt,
        steps: Option<Steps<'_>>,
    ) -> Result<Self, Error> {
        // The settings are checked before any step that takes a long time.
        request.settings(Init::Zero)?;
        let data = source.values()?;
        let build = Build {
            includes: &source.includes,
            data_name: source.data_name(),
            seed: request.seed(),
            simd: request.simd()?,
            threads,
            memory_limit: request.memory_limit(),
            save: request.saved(),
            halt,
            ..Build::default()
        };
        let (text, name) = (&source.text, &source.model);
        let model = match (&request.exchangeable, &request.records, steps) {
            (Some(count), Some(paths), Some(steps)) => {
                let model =
                    exchangeable::compile_shards(&source, &data, &build, count, paths, steps)?;
                Lowered::Shards(Box::new(model))
            }
            (Some(count), Some(paths), None) => {
                let open = |data: &[_]| RecordTable::open(paths, data, BLOCK, None);
                let model = exchangeable::compile_blocks(text, name, &data, &build, count, open)?;
                Lowered::Blocks(Box::new(model))
            }
            (Some(count), None, _) => {
                let model = exchangeable::compile(text, name, &data, &build, count)?;
                Lowered::Records(Box::new(model))
            }
            (None, ..) => Lowered::Whole(Box::new(Model::compile(text, name, &data, &build)?)),
        };
        let program = Self {
            source,
            data,
            request,
            threads,
            model,
            centring: OnceLock::new(),
            as_written: OnceLock::new(),
        };
        program.check_coordinates()?;
        Ok(program)
    }

    /// Compiles the program of an earlier fit in order to resume the fit or to draw from it. Settings in the new
    /// request replace stored settings.
    ///
    /// # Errors
    /// Returns the same errors as [`compile`](Self::compile). Also fails if a file of the earlier fit cannot be read.
    pub fn of_stored(
        stored: &StoredFit,
        source: Source,
        request: FitRequest,
        threads: usize,
        halt: Halt,
    ) -> Result<Self, Error> {
        let program = Self::compile(source, request, threads, halt)?;
        let fits = |centring: &&Centring| match &program.model {
            Lowered::Whole(model) => model.has_site_for(centring),
            _ => centring.is_empty(),
        };
        if let Some(centring) = stored.centring.as_ref().filter(fits) {
            let _ = program.centring.set(centring.clone());
        }
        Ok(program)
    }

    fn recentring(&self) -> Option<&Centring> {
        let chosen = self.centring.get().filter(|centring| !centring.is_empty());
        chosen.filter(|_| self.as_written.get().is_none())
    }

    /// Returns the messages to show before the fit: the output of the transformed data block, the remarks of the
    /// compiler with excerpts of the source, and notes for the user.
    pub fn remarks(&self) -> Vec<String> {
        with_model!(&self.model, |model| remarks(model))
    }

    /// Returns remarks on the program and its data that do not depend on the fit.
    pub fn notes(&self) -> Vec<String> {
        with_model!(&self.model, |model| model.notes())
    }

    /// Returns the number of unconstrained coordinates. The number is 0 for a program without parameters, which cannot
    /// be fitted.
    pub fn dim(&self) -> usize {
        with_model!(&self.model, |model| model.bound().unconstrained_dim())
    }

    /// Returns the request according to which the program was compiled.
    pub fn request(&self) -> &FitRequest {
        &self.request
    }

    /// Returns the data to which the program is bound.
    pub fn data(&self) -> &DataSet {
        &self.data
    }

    /// Returns the parameters, transformed parameters and generated quantities, in the order in which the program
    /// declares them.
    pub fn variables(&self) -> Vec<Variable> {
        with_model!(&self.model, |model| model.posterior().variables())
    }

    /// Returns the names of dimensions and the labels of their elements, as determined by `--coords` and by the
    /// declared sizes.
    pub fn coordinates(&self) -> Coordinates {
        self.source.coordinates.over(self.dimension_names())
    }

    fn dimension_names(&self) -> BTreeMap<String, Vec<Option<String>>> {
        with_model!(&self.model, |model| model.program().dimension_names())
    }

    fn check_coordinates(&self) -> Result<(), Error> {
        let reported = self.variables().into_iter();
        let reported = reported.map(|variable| (variable.name, variable.shape));
        let data = self.data.iter();
        let data = data.map(|(name, value)| (name.to_owned(), value.shape().to_vec()));
        let shapes = reported.chain(data).collect();
        let given = &self.source.coordinates;
        let checked = given.check(&self.dimension_names(), &shapes);
        checked.map_err(|error| Error::Input(format!("--coords: {error}")))
    }

    /// Draws from an approximation of the posterior of this program and computes the reported variables.
    ///
    /// # Errors
    /// Returns the errors of [`sample`].
    pub fn sample(
        &self,
        approximation: &Approximation,
        request: &SampleRequest,
    ) -> Result<Sample, Error> {
        match (&self.model, self.recentring()) {
            (Lowered::Whole(model), Some(centring)) => {
                sample(&model.centred(centring)?, approximation, request)
            }
            (lowered, _) => {
                with_model!(lowered, |model| sample(&**model, approximation, request))
            }
        }
    }

    /// Computes the reported variables of this program at the draws of a refinement.
    ///
    /// # Errors
    /// Returns the errors of [`sample_refined`].
    pub fn sample_refined(
        &self,
        refined: &RefinedDraws,
        request: &SampleRequest,
    ) -> Result<Sample, Error> {
        let (draws, log_p) = (&refined.draws, &refined.log_p);
        match (&self.model, self.recentring()) {
            (Lowered::Whole(model), Some(centring)) => {
                sample_refined(&model.centred(centring)?, draws, log_p, request)
            }
            (lowered, _) => {
                with_model!(lowered, |model| sample_refined(
                    &**model, draws, log_p, request
                ))
            }
        }
    }

    /// Returns the digests of the program and the data. Checkpoints and stored approximations contain these digests.
    ///
    /// # Errors
    /// Fails if the stored centring was computed for another program.
    pub fn subject(&self) -> Result<Subject, Error> {
        Ok(match (&self.model, self.recentring()) {
            (Lowered::Whole(model), Some(centring)) => model.centred(centring)?.subject(),
            (lowered, _) => with_model!(lowered, |model| model.subject()),
        })
    }

    /// Returns the starting point of a fit. The function returns `stored` unless the request specifies a starting
    /// point.
    ///
    /// # Errors
    /// Fails if the file of the starting point cannot be read or does not match the model.
    pub fn start(&self, stored: Option<Init>) -> Result<Init, Error> {
        let given = match (self.request.init.as_deref(), stored) {
            (None, Some(stored)) => return Ok(stored),
            (None | Some("0"), _) => return Ok(Init::Zero),
            (Some("random"), _) => return Ok(Init::Random),
            (Some(file), _) => DataFile::read(file.as_ref()).map_err(|error| {
                Error::Input(format!("--init needs 0, random or a file: {error}"))
            })?,
        };
        if given.is_list() {
            let point = serde_json::from_slice(&given.bytes).map_err(|error| {
                Error::Input(format!(
                    "{}: expected a list with an unconstrained point, or an object with parameter values: {error}",
                    given.name
                ))
            })?;
            return Ok(Init::Point(point));
        }
        let start = self.start_at(&given.parse()?);
        start.map_err(|error| Error::Input(format!("{}: {error}", given.name)))
    }

    /// Returns the starting point with the given parameter values. The coordinates of all other parameters are 0 on the
    /// unconstrained scale.
    ///
    /// # Errors
    /// Fails if a name does not belong to a parameter, or if a value has the wrong shape or violates its constraint.
    pub fn start_at(&self, values: &DataSet) -> Result<Init, Error> {
        with_model!(&self.model, |model| model.unconstrain_some(values)).map(Init::Point)
    }

    /// Fits the program and writes the results to the folder that `around` specifies.
    ///
    /// # Errors
    /// Returns the errors of [`carry_out`]. If the density is not finite at any starting point, the error is
    /// [`Error::NoStart`]. This error contains the reason that the model gives.
    pub fn fit(&self, init: Init, around: Around<'_>) -> Result<(Fitted, FitSummary), Error> {
        let options = self.request.options(init.clone(), self.threads)?;
        match &self.model {
            Lowered::Whole(model) => {
                let done = self.fit_whole(model, options, &init, around);
                done.map_err(|error| explain(error, model, &init))
            }
            Lowered::Records(model) => self.fit_records(model, options, &init, around),
            Lowered::Blocks(model) => self.fit_records(model, options, &init, around),
            Lowered::Shards(model) => self.fit_records(model, options, &init, around),
        }
    }

    /// Fits the program to all data at once. The fit uses a centring if mean-field fits suggest one. A suggested
    /// centring may be unsuitable, because a mean-field fit may be far from the posterior. The function therefore fits
    /// the program again without a centring if the refined draws of the centred fit do not mix.
    fn fit_whole(
        &self,
        model: &Model,
        options: Options,
        init: &Init,
        mut around: Around<'_>,
    ) -> Result<(Fitted, FitSummary), Error> {
        let (clock, begun) = (around.clock, around.clock.seconds());
        let left = || Budget {
            spent: clock.seconds() - begun,
            ..self.request.budget()
        };
        self.choose_centring(model, &options.settings, &around);
        let Some(centring) = self.recentring() else {
            let done = self.carry_out(model, &options, init, left(), around)?;
            return Ok((done.made.output, done.summary));
        };
        let centred = model.centred(centring)?;
        let mut recentred = options.clone();
        recentred.settings.start.init = centred.init(init);
        let results = std::mem::replace(&mut around.results, ResultFolder::None);
        let first = around.again(results);
        let done = self.carry_out(&centred, &recentred, init, left(), first)?;
        let has_failed = |refined: &Refined| !refined.mixed();
        // A refinement that was interrupted has not failed, because a longer run can continue it.
        let stopped = matches!(
            done.made.output.fit.ended,
            Status::Interrupted { .. } | Status::BudgetReached { .. }
        );
        if !done.made.output.refined().is_some_and(has_failed)
            || stopped
            || left().is_spent()
            || centring.is_of_series()
        {
            return Ok((done.made.output, done.summary));
        }
        around.observer.note(
            "under the chosen centring, refined draws did not mix, so Jensen fits the program as written",
        );
        let _ = self.as_written.set(());
        // The current fit is moved aside. If the second fit fails, the current fit is restored.
        let second = around.again(ResultFolder::new(done.folder.as_deref()));
        let done = self.carry_out(model, &options, init, left(), second)?;
        Ok((done.made.output, done.summary))
    }

    fn fit_records<D: Records>(
        &self,
        model: &Model<AllRecords<D>>,
        mut options: Options,
        init: &Init,
        around: Around<'_>,
    ) -> Result<(Fitted, FitSummary), Error> {
        if let Some(method) = minibatch::method(&self.request)? {
            let family = &options.settings.family;
            options.settings.method =
                minibatch::for_records(&self.request, method, model.records(), family)?;
        }
        let _ = self.centring.set(Centring::default());
        let done = self.carry_out(model, &options, init, self.request.budget(), around);
        let done = done.map_err(|error| explain(error, model, init))?;
        Ok((done.made.output, done.summary))
    }

    fn choose_centring(&self, model: &Model, settings: &Settings, around: &Around<'_>) {
        if self.centring.get().is_some() {
            return;
        }
        // The conditionally structured Gaussian describes how local parameters depend on global parameters, so it does
        // not need a centring.
        let wanted = self.request.has_centring(settings)
            && (self.request.centring.is_some()
                || !begins_conditional(model.graph_density(), settings));
        let centring = match wanted {
            true => {
                let mut silent = Silent;
                // The maximum number of iterations here does not depend on the request. If the number depended on the
                // request, a short run would not be a prefix of a longer run.
                let budget = Budget {
                    max_seconds: self.request.max_seconds.map(|seconds| PILOT * seconds),
                    ..Budget::iterations(MAX_ITERS)
                };
                let mut control = Control::new(budget, around.clock, &mut silent);
                control.cancel = around.cancel;
                model.choose_centring(settings, &control)
            }
            false => Some(Centring::default()),
        };
        if let Some(centring) = centring {
            let _ = self.centring.set(centring);
        }
    }

    /// Returns the parts of the report that are not results of the fit.
    pub fn about(&self) -> About {
        let data = self.source.data.as_ref();
        About {
            model: self.source.model.clone(),
            data: data.map_or_else(String::new, |data| data.name.clone()),
            // The request stores the instruction set that was chosen, because a resumed run must use the same one.
            settings: requests::listed(&FitRequest {
                simd: self.request.simd().ok().map(|simd| simd.name().to_owned()),
                ..self.request.clone()
            }),
            ..About::default()
        }
    }

    /// Returns the parts of the report that are not results of the fit, and adds the section that compares predictions
    /// with the data.
    pub fn about_fit(&self, fitted: &Fitted) -> About {
        let refined = fitted.refined().is_some_and(|refined| refined.mixed());
        About {
            predictive: Predictive::of(&fitted.sample, &self.data, !refined),
            ..self.about()
        }
    }

    fn carry_out<'a, P: Problem>(
        &'a self,
        problem: &'a P,
        options: &'a Options,
        init: &Init,
        budget: Budget,
        around: Around<'_>,
    ) -> Result<Done<FitJob<'a, P, StoredFit>>, Error> {
        let chosen = self.centring.get();
        let centring = chosen.map(|_| self.recentring().cloned().unwrap_or_default());
        if centring.is_none() {
            around.observer.note(
                "there was no time to choose a centring, so Jensen fits the program as written; a resumed run chooses one and \
                 starts again",
            );
        }
        let job = FitJob {
            // Without a centring the run cannot be resumed, because a resumed run must end in the same way as an
            // uninterrupted run.
            resumable: centring.is_some(),
            problem,
            options,
            request: StoredFit::of(&self.source, &self.request, init.clone(), centring)?,
            inputs: self.source.copies(),
            budget,
            about: self.about(),
            data: &self.data,
            coordinates: self.coordinates(),
        };
        carry_out(job, around)
    }
}

fn remarks<D>(model: &Model<D>) -> Vec<String> {
    let mut remarks = model.printed().to_vec();
    if !model.warnings().is_empty() {
        remarks.push(model.render_warnings(false));
    }
    let notes = model.notes();
    remarks.extend(notes.iter().map(|note| format!("warning: {note}")));
    remarks
}

fn explain<D>(error: Error, model: &Model<D>, init: &Init) -> Error {
    let Error::Fit(FitError::CannotStart(status)) = &error else {
        return error;
    };
    if status.is_from_outside() {
        return error;
    }
    let reason = match init {
        Init::Point(point) => model.rejection(point),
        _ => model.rejection(&vec![0.0; model.bound().unconstrained_dim()]),
    };
    match reason {
        Some(reason) => Error::NoStart(format!("{}\n{reason}", error.to_string().trim_end())),
        None => error,
    }
}
