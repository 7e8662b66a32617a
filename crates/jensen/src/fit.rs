//! The function [`fit`], which approximates the posterior of a problem and returns draws with a verdict.

use std::cell::RefCell;
use std::time::Instant;

use jensen_blackbox::{
    Approximation, FamilyChoice, Fit, Method, NoiseSource, RefineWhen, Settings, Space,
};
use jensen_data::ParameterSummary;
use jensen_density::{LogDensity, VariableKind};
use jensen_run::{
    Budget, Control, Identity, Observer, Progress, Reason, Record, Silent, Status, Store, Verdict,
};

use crate::covariance::Covariance;
use crate::haste::Haste;
use crate::outputs::HistoryPoint;
use crate::sample::{Reported, Sample, SampleRequest, report, report_weighted};
use crate::{Error, Footprint, Problem};

/// The maximum number of iterations of [`fit`]. In practice every method stops long before it reaches this number.
const MAX_ITERATIONS: u64 = 100_000;

pub(crate) const DRAWS: usize = 1000;

/// The settings of a fit. Start from [`Options::default`] and call a method for each setting that you want to change.
///
/// ```
/// use jensen::prelude::*;
///
/// let options = Options::default().seed(7).draws(4000).refine(RefineWhen::Always);
/// assert_eq!(options.draws, 4000);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Options {
    /// The settings that influence the fitted approximation.
    pub settings: Settings,
    /// The number of draws that the fit reports.
    pub draws: usize,
    /// Whether to resample the draws according to their importance weights.
    pub resample: bool,
    /// The number of threads that compute the constrained values of the draws. The number of threads that evaluate the
    /// density is a setting of the problem.
    pub threads: usize,
    /// The maximum memory that the fit may use, in bytes.
    pub memory_limit: u64,
    /// The method that determines the covariances of the draws.
    pub covariance: Covariance,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            draws: DRAWS,
            resample: false,
            threads: 1,
            memory_limit: 8 << 30,
            covariance: Covariance::Family,
        }
    }
}

impl Options {
    /// Sets the seed of all random numbers. The default seed is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Sets the number of draws that the fit reports. The default is 1000.
    pub fn draws(mut self, draws: usize) -> Self {
        self.draws = draws;
        self
    }

    /// Sets the family of the approximation. The argument is a [`FamilyKind`](jensen_blackbox::FamilyKind) or a
    /// [user-defined family](crate::family). By default, Jensen chooses the family.
    pub fn family(mut self, family: impl Into<FamilyChoice>) -> Self {
        self.settings.family = family.into();
        self
    }

    /// Sets the optimisation method. The argument is a [`Method`] or the settings of a method. By default, Jensen
    /// chooses the method.
    pub fn method(mut self, method: impl Into<Method>) -> Self {
        self.settings.method = method.into();
        self
    }

    /// Sets when Jensen refines the approximation to draws from the posterior. By default, Jensen refines an
    /// approximation that fails its checks.
    pub fn refine(mut self, when: RefineWhen) -> Self {
        self.settings.refine.when = when;
        self
    }

    /// Sets whether Jensen creates ten times as many draws and resamples them according to their importance weights. By
    /// default, draws are not resampled.
    pub fn resample(mut self, resample: bool) -> Self {
        self.resample = resample;
        self
    }

    /// Sets the method that determines the covariances of the draws. By default, the draws have the covariances of the
    /// fitted approximation.
    pub fn covariance(mut self, covariance: Covariance) -> Self {
        self.covariance = covariance;
        self
    }

    /// Sets the number of threads that compute the constrained values of the draws. The default is 1. For a Stan
    /// program, [`Build`](crate::stan::Build) sets the number of threads that evaluate the density.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets the maximum memory that the fit may use, in bytes. The default is 8 GiB.
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = bytes;
        self
    }
}

/// The result of a fit, with its draws.
///
/// [`trusted`](Self::trusted) and [`warnings`](Self::warnings) return the verdict on the fit. [`draws`](Self::draws)
/// and [`parameter`](Self::parameter) look up draws and summaries by name. [`summary`](Self::summary) returns the
/// contents of `fit.json`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fitted {
    /// The result of the optimisation and of its checks.
    pub fit: Fit,
    /// The identity of the run, as stored in its checkpoints.
    pub identity: Identity,
    /// The draws of the refinement if it has mixed, and draws from the approximation otherwise.
    pub sample: Sample,
    /// The summaries of all reported scalars, in the order of the columns. Each summary is computed from refined draws,
    /// from weighted draws of the approximation, or from `sample`.
    pub(crate) summaries: Vec<ParameterSummary>,
    /// The first quantity for which even the weighted draws of the approximation do not represent the posterior.
    moved: Option<String>,
    /// The estimates of the ELBO during the run. If the run was resumed, the list includes the estimates before the
    /// resume.
    pub history: Vec<HistoryPoint>,
    /// The time in seconds that was needed to build the problem.
    pub build_seconds: f64,
    /// The time in seconds that was needed to compute the draws.
    pub draws_seconds: f64,
    /// The settings of the fit.
    pub settings: Settings,
    /// The names of the unconstrained coordinates.
    pub coordinates: Vec<String>,
    /// Remarks on the model, which are the same for every fit.
    pub model_remarks: Vec<String>,
}

impl Fitted {
    /// Returns the verdict on the draws. The verdict contains the reasons not to trust the [fit](Fit::verdict) and the
    /// reasons why the draws cannot be used.
    pub fn verdict(&self) -> Verdict {
        let mut verdict = self.fit.verdict();
        if self.sample.rejected > 0 {
            let total = self.sample.rejected + self.sample.table.len();
            let reason = self.sample.rejection.as_deref().unwrap_or("");
            verdict.against(Reason::bare(format!(
                "the model rejects {} of {total} draws, which are omitted; the first because: {reason}",
                self.sample.rejected
            )));
        }
        if self.sample.unmade > 0 {
            let total = self.sample.unmade + self.sample.rejected + self.sample.table.len();
            verdict.against(Reason::new(
                format!(
                    "{} of the {total} requested draws are missing, because the time limit left no time to compute and \
                     write them",
                    self.sample.unmade
                ),
                "Allow more seconds, or request fewer draws.",
            ));
        }
        if let Some(name) = &self.moved {
            verdict.against(Reason::new(
                format!(
                    "the importance weights change the mean or the standard deviation of {name}, but the \
                     number of effective draws is too small for weighted summaries"
                ),
                self.fit.advice(),
            ));
        }
        // This check comes last, because the earlier checks describe the cause more precisely.
        if verdict.trusted()
            && let Some(name) = self.beyond_numbers()
        {
            verdict.against(Reason::bare(format!(
                "the draws of {name} are too large to compute a mean or standard deviation: the posterior may \
                 be improper or have infinite moments. Give {name} a proper prior."
            )));
        }
        verdict
    }

    /// Returns the first parameter whose draws have no finite mean or standard deviation. The function skips a
    /// parameter if its tail index already explains the missing moment.
    fn beyond_numbers(&self) -> Option<&str> {
        if self.sample.table.is_empty() {
            return None;
        }
        let variables = self.sample.variables.iter();
        let kinds =
            variables.flat_map(|variable| std::iter::repeat_n(variable.kind, variable.len()));
        let mut parameters =
            (self.summaries.iter().zip(kinds)).filter(|(_, kind)| *kind == VariableKind::Parameter);
        let beyond = parameters.find(|(summary, _)| {
            summary.undefined.is_none() && !(summary.mean + summary.sd).is_finite()
        });
        beyond.map(|(summary, _)| summary.name.as_str())
    }

    /// Returns whether the verdict trusts the draws.
    pub fn trusted(&self) -> bool {
        self.verdict().trusted()
    }

    /// Returns the approximation that the fit has chosen.
    pub fn approximation(&self) -> Approximation {
        self.fit.approximation()
    }

    /// Encodes the refined draws on the unconstrained scale in the safetensors format, or returns `None` if no
    /// refinement has mixed. The file contains the matrix `z` with shape `coordinates × draws`, the vector `log_p`, and
    /// the log densities `log_q` of the draws under the approximation.
    pub fn encode_refined(&self) -> Option<Vec<u8>> {
        let refined = self.fit.refined.as_ref().filter(|r| r.mixed())?;
        Some(refined.encode(&self.identity))
    }

    /// Encodes the approximation that the fit has chosen in the safetensors format.
    pub fn encode_approximation(&self) -> Vec<u8> {
        self.approximation().encode(&self.identity)
    }
}

/// Fits a problem without a time limit, a progress bar or checkpoints.
///
/// The function also returns the result of a fit that is not trusted. Call [`Fitted::trusted`] and [`Fitted::warnings`]
/// to check the result.
///
/// # Errors
/// Fails if the problem has no parameters, if the density is not finite at any starting point, or if the fit needs more
/// memory than the limit allows.
#[allow(
    clippy::disallowed_methods,
    reason = "a caller with a clock calls `fit_with`"
)]
pub fn fit<P: Problem>(problem: &P, options: &Options) -> Result<Fitted, Error> {
    let epoch = Instant::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let mut silent = Silent;
    let budget = Budget::iterations(MAX_ITERATIONS);
    fit_with(problem, options, Control::new(budget, &clock, &mut silent))
}

/// Fits a problem with the budget, the observer, the checkpoints and the cancellation flag of `control`.
///
/// # Errors
/// Returns the same errors as [`fit`]. Also fails if a checkpoint belongs to another run.
pub fn fit_with<P: Problem>(
    problem: &P,
    options: &Options,
    control: Control<'_>,
) -> Result<Fitted, Error> {
    let beside = footprint(problem, options);
    beside
        .need(&options.settings.method)
        .check(options.memory_limit)?;
    let names = problem.posterior().unconstrained_names();
    // Minibatch methods check the memory for their own parameters and tables.
    let settings = Settings {
        memory_limit: Some(options.memory_limit - (beside.total() - beside.family)),
        variables: variables_of(&names),
        names: names.iter().map(|name| subscripted(name)).collect(),
        scales: problem.posterior().scales(),
        ..options.settings.clone()
    };

    options.covariance.check(problem)?;
    let subject = problem.subject();
    let identity = jensen_blackbox::identity(&settings, &subject);
    let clock = control.clock;
    let haste = Haste::of(&control);
    let mut historian = Historian {
        inner: control.observer,
        history: Vec::new(),
    };
    let mut control = Control {
        budget: control.budget,
        clock,
        cancel: control.cancel,
        partial: control.partial,
        observer: &mut historian,
        // This coercion to `dyn Store` shortens the lifetime. Without it, the invariance of the mutable reference would
        // forbid the conversion.
        store: control.store.map(|store| store as &mut dyn Store),
        checkpoint_seconds: control.checkpoint_seconds,
        resume: control.resume,
        force_resume: control.force_resume,
    };
    let request = SampleRequest {
        first: 0,
        draws: options.draws,
        resample: options.resample,
        source: NoiseSource::new(settings.seed, settings.simd),
        seed: settings.seed,
        threads: options.threads,
    };
    let weighted =
        settings.is_policy() && options.covariance == Covariance::Family && !options.resample;
    // The check needs the reported quantities on their reported scale. The quantities are stored here, so that they
    // need not be computed again for the report.
    let made = RefCell::new(None);
    let usable = |approximation: &Approximation| {
        if !weighted {
            return true;
        }
        // An error can be ignored here, because the computation of the report below fails with the same error.
        let reported =
            report_weighted(problem, approximation, (&request, &settings.policy), &haste).ok();
        let usable = reported.as_ref().is_none_or(|r| r.moved.is_none());
        made.replace(reported);
        usable
    };
    let density = problem.density();
    let mut fit =
        jensen_blackbox::fit_reporting(density, &settings, &subject, &mut control, &usable)?;
    let before_response = clock.seconds();
    options.covariance.apply(problem, &mut fit, &settings)?;
    fit.seconds += clock.seconds() - before_response;
    let before_draws = clock.seconds();
    let Reported {
        sample,
        summaries,
        moved,
    } = report(problem, &fit, weighted, &request, &haste, made.take())?;
    Ok(Fitted {
        fit,
        identity,
        sample,
        summaries,
        moved,
        history: historian.history,
        build_seconds: problem.build_seconds(),
        draws_seconds: clock.seconds() - before_draws,
        settings,
        coordinates: problem.posterior().unconstrained_names(),
        model_remarks: problem.remarks(),
    })
}

/// The name of the variable is the part of the coordinate's name before the first dot.
fn variables_of(coordinates: &[String]) -> Vec<usize> {
    let mut known: Vec<&str> = Vec::new();
    let numbers = coordinates.iter().map(|name| {
        let variable = name.split('.').next().unwrap_or_default();
        if known.last() != Some(&variable) {
            known.push(variable);
        }
        known.len()
    });
    numbers.collect()
}

/// Converts the name of a coordinate to Stan's syntax: `theta.3.1` becomes `theta[3,1]`.
fn subscripted(name: &str) -> String {
    match name.split_once('.') {
        Some((variable, subscripts)) => format!("{variable}[{}]", subscripts.replace('.', ",")),
        None => name.to_owned(),
    }
}

pub(crate) fn footprint<P: Problem>(problem: &P, options: &Options) -> Footprint {
    let posterior = problem.posterior();
    let width = posterior.variables().iter().map(|v| v.len()).sum();
    let dim = problem.density().dim();
    Footprint::of_fit(
        &options.settings.family,
        options.settings.method.lanes(dim),
        &Space::of(problem.density()),
        options.draws,
        width,
        options.threads.max(1),
        problem.block_bytes(),
    )
}

struct Historian<'a> {
    inner: &'a mut dyn Observer,
    history: Vec<HistoryPoint>,
}

impl Observer for Historian<'_> {
    fn record(&mut self, record: &Record) {
        self.history.extend(HistoryPoint::of(record));
        self.inner.record(record);
    }

    fn progress(&mut self, progress: &Progress<'_>) {
        self.inner.progress(progress);
    }

    fn note(&mut self, note: &str) {
        self.inner.note(note);
    }

    fn finished(&mut self, status: &Status) {
        self.inner.finished(status);
    }
}
