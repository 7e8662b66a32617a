//! `fit`: a problem in, a judged posterior with draws out.

use std::time::Instant;

use jensen_blackbox::{Approximation, Fit, NoiseSource, Settings};
use jensen_density::LogDensity;
use jensen_run::{Budget, Control, Identity, Observer, Progress, Record, Silent, Status, Store};

use crate::covariance::Covariance;
use crate::memory::lanes_of;
use crate::outputs::HistoryPoint;
use crate::sample::{Sample, SampleRequest, sample};
use crate::{Error, Footprint, Problem};

/// Iterations that [`fit`] allows; every method stops on its own long before.
const MAX_ITERATIONS: u64 = 100_000;

/// What a fit is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Everything that influences the approximation.
    pub settings: Settings,
    /// Number of posterior draws.
    pub draws: usize,
    /// Whether draws are resampled by their importance weights.
    pub resample: bool,
    /// Threads that constrain draws; those of the density are the problem's own.
    pub threads: usize,
    /// Bytes that the fit may take.
    pub memory_limit: u64,
    /// Where the covariances of the draws come from.
    pub covariance: Covariance,
}

impl Default for Options {
    /// The default settings, 1000 draws as the approximation gives them, one thread, 8 GiB.
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            draws: 1000,
            resample: false,
            threads: 1,
            memory_limit: 8 << 30,
            covariance: Covariance::Family,
        }
    }
}

/// A finished fit with its draws.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The judged result of the optimisation.
    pub fit: Fit,
    /// What was run, as checkpoints know it.
    pub identity: Identity,
    /// Draws of the posterior.
    pub sample: Sample,
    /// Estimates of the bound along the run, those before a resume included.
    pub history: Vec<HistoryPoint>,
    /// Seconds that the problem took to build.
    pub build_seconds: f64,
    /// Seconds for the draws.
    pub draws_seconds: f64,
    /// The settings of the fit.
    pub settings: Settings,
    /// What the user should know of the model, whatever its fit.
    pub model_remarks: Vec<String>,
}

impl Fitted {
    /// Whether the fit converged, its k̂ is good, and every draw can be used.
    pub fn trusted(&self) -> bool {
        self.fit.trusted && self.sample.rejected == 0
    }

    /// The chosen approximation.
    pub fn approximation(&self) -> Approximation {
        self.fit.approximation()
    }

    /// The chosen approximation as safetensors bytes.
    pub fn encode_approximation(&self) -> Vec<u8> {
        self.approximation().encode(&self.identity)
    }
}

/// Fits a problem without a limit on time, progress or checkpoints.
///
/// A fit that is not to be trusted is returned all the same: [`Fitted::trusted`] and
/// [`Fitted::warnings`] say so.
///
/// # Errors
/// When the problem has no parameters, no starting point has a finite density, or it would take more
/// memory than allowed.
#[allow(clippy::disallowed_methods, reason = "whoever brings a clock calls `fit_with`")]
pub fn fit<P: Problem>(problem: &P, options: &Options) -> Result<Fitted, Error> {
    let epoch = Instant::now();
    let clock = move || epoch.elapsed().as_secs_f64();
    let mut silent = Silent;
    let budget = Budget::iterations(MAX_ITERATIONS);
    fit_with(
        problem,
        options,
        Control::new(budget, &clock, &mut silent),
        Vec::new(),
    )
}

/// Fits a problem under a budget, with an observer, checkpoints and interruption as `control` says.
/// `history` is that of the run's earlier part where it is resumed, else empty.
///
/// # Errors
/// As [`fit`], and when a checkpoint does not belong to this run.
pub fn fit_with<P: Problem>(
    problem: &P,
    options: &Options,
    control: Control<'_>,
    history: Vec<HistoryPoint>,
) -> Result<Fitted, Error> {
    let posterior = problem.posterior();
    let width = posterior.variables().iter().map(|v| v.len()).sum();
    let dim = problem.density().dim();
    Footprint::of_fit(
        options.settings.family,
        lanes_of(&options.settings.method, dim),
        dim,
        options.draws,
        width,
        options.threads.max(1),
        problem.block_bytes(),
    )
    .check(
        options.memory_limit,
        "choose a method with fewer draws an iteration (`--method bbvi`), or raise the limit",
    )?;

    options.covariance.check(problem)?;
    let subject = problem.subject();
    let identity = jensen_blackbox::identity(&options.settings, &subject);
    let clock = control.clock;
    let mut historian = Historian {
        inner: control.observer,
        history,
    };
    let mut control = Control {
        budget: control.budget,
        clock,
        cancel: control.cancel,
        observer: &mut historian,
        // An unsizing coercion shortens the lifetime, which invariance forbids otherwise.
        store: control.store.map(|store| store as &mut dyn Store),
        checkpoint_seconds: control.checkpoint_seconds,
        resume: control.resume,
        force_resume: control.force_resume,
    };
    let mut fit =
        jensen_blackbox::fit(problem.density(), &options.settings, &subject, &mut control)?;
    let before_response = clock.seconds();
    options
        .covariance
        .apply(problem, &mut fit, &options.settings)?;
    fit.seconds += clock.seconds() - before_response;
    let before_draws = clock.seconds();
    let request = SampleRequest {
        first: 0,
        draws: options.draws,
        resample: options.resample,
        source: NoiseSource::new(options.settings.seed, options.settings.simd),
        seed: options.settings.seed,
        threads: options.threads,
    };
    let sample = sample(problem, &fit.approximation(), &request)?;
    Ok(Fitted {
        fit,
        identity,
        sample,
        history: historian.history,
        build_seconds: problem.build_seconds(),
        draws_seconds: clock.seconds() - before_draws,
        settings: options.settings.clone(),
        model_remarks: problem.remarks(),
    })
}

/// Keeps the estimates of the bound and passes everything on.
pub(crate) struct Historian<'a> {
    pub(crate) inner: &'a mut dyn Observer,
    pub(crate) history: Vec<HistoryPoint>,
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
