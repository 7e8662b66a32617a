//! Programs over exchangeable records: prior and likelihood apart, fitted by minibatches.
//!
//! [`compile`] takes the name of the data variable that counts the records; [`fit`] runs an algorithm of
//! [`jensen_blackbox::records`] and judges its result on all records.
//!
//! ```
//! use jensen::exchangeable::{self, RecordMethod};
//! use jensen::prelude::*;
//!
//! # fn main() -> Result<(), Error> {
//! let data = DataSet::from_json(br#"{"N": 10, "y": [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]}"#, "data")?;
//! let source = "
//!     data { int<lower=0> N; array[N] int<lower=0, upper=1> y; }
//!     parameters { real<lower=0, upper=1> theta; }
//!     model { theta ~ beta(1, 1); y ~ bernoulli(theta); }";
//! let model = exchangeable::compile(source, "bernoulli.stan", &data, &Build::default(), "N")?;
//! let method = RecordMethod::minibatch(5);
//! let epoch = std::time::Instant::now();
//! let clock = move || epoch.elapsed().as_secs_f64();
//! let mut silent = Silent;
//! let control = Control::new(Budget::iterations(20_000), &clock, &mut silent);
//! let fitted = exchangeable::fit(&model, &Options::default(), &method, control, Vec::new())?;
//! // The posterior is beta(3, 9).
//! assert!((fitted.parameters()[0].mean - 0.25).abs() < 0.05);
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use jensen_blackbox::records::{
    Minibatch, MinibatchSettings, RecordEstimator, Smiso, SmisoSettings,
};
use jensen_blackbox::{
    Calls, FamilyChoice, FamilyKind, FamilyResult, Fit, FitError, GRADIENT_BATCH, Init,
    NoiseSource, Oracle, Purpose, Settings, Subject, Subsampled, Trust, TrustSettings, evaluate,
};
use jensen_data::DataSet;
use jensen_density::{AllRecords, Lanes, LogDensity, Posterior, RecordDensity};
use jensen_graph::RecordGraph;
use jensen_run::{Control, Identity, Observer, Progress, Record, Status, Store, run};
use jensen_stan::lower::lower_records;
use serde::{Deserialize, Serialize};

pub use crate::variances::{EstimatorVariance, VariancePoint, variance_section};

use crate::fit::Historian;
use crate::memory::TRUST_LANES;
use crate::outputs::HistoryPoint;
use crate::sample::{SampleRequest, sample};
use crate::stan::{Build, Model};
use crate::{Error, Fitted, Footprint, Options, Problem};

/// A program over exchangeable records.
pub type RecordModel = Model<AllRecords<RecordGraph>>;

/// Evaluations of one record that the final bound may take at first.
const EVALUATIONS: usize = 20_000_000;

/// Draws of the final bound, at the least.
const LEAST_DRAWS: usize = 64;

/// Points that are tried for a random start.
const ATTEMPTS: u64 = 100;

/// Half-width of random starting points, as in Stan.
const RADIUS: f64 = 2.0;

/// How records are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordMethod {
    /// Stochastic gradients of minibatches.
    Minibatch(MinibatchSettings),
    /// Incremental minimisation with exponential averages.
    Smiso(SmisoSettings),
    /// Stochastic trust regions in which every pair of draws sees a minibatch of its own.
    Trust(RecordTrust),
}

/// Settings of [`RecordMethod::Trust`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordTrust {
    /// Of the method.
    pub trust: TrustSettings,
    /// Records of a minibatch.
    pub batch: usize,
}

impl RecordMethod {
    /// Minibatches of `batch` records with the usual settings.
    pub fn minibatch(batch: usize) -> Self {
        Self::Minibatch(MinibatchSettings {
            batch,
            ..MinibatchSettings::default()
        })
    }

    /// Draws whose derivatives it holds at once.
    fn lanes(&self) -> u64 {
        match self {
            Self::Minibatch(settings) => {
                settings.judge.map_or(settings.draws, |judge| judge.draws) as u64
            }
            Self::Smiso(settings) => settings.draws as u64,
            Self::Trust(_) => TRUST_LANES,
        }
    }

    /// The same with batches of no more than `records` records.
    #[must_use]
    pub fn with_at_most(mut self, records: usize) -> Self {
        let batch = match &mut self {
            Self::Minibatch(settings) => &mut settings.batch,
            Self::Smiso(settings) => &mut settings.batch,
            Self::Trust(settings) => &mut settings.batch,
        };
        *batch = records.min(*batch);
        self
    }

    /// The same with the estimator that suits model and family: `joint-exact` where the draw can be
    /// integrated out, `joint` for other likelihoods of few linear predictors, whose table is small, and
    /// `joint-svrg` for other models.
    #[must_use]
    pub fn with_usual_estimator(mut self, model: &RecordModel, family: FamilyChoice) -> Self {
        if let Self::Minibatch(settings) = &mut self {
            let mean_field = matches!(
                family,
                FamilyChoice::Auto | FamilyChoice::Only(FamilyKind::MeanField)
            );
            settings.estimator = match model.records().linear() {
                Some(linear) if mean_field && linear.expectations().is_some() => {
                    RecordEstimator::JointExact
                }
                Some(_) => RecordEstimator::Joint,
                None => RecordEstimator::JointSvrg,
            };
        }
        self
    }

    /// The method's name in traces and checkpoints.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Minibatch(_) => "minibatch",
            Self::Smiso(_) => "smiso",
            Self::Trust(_) => "trust",
        }
    }
}

/// Parses, checks, binds and lowers a program whose `int` data variable `count` counts exchangeable
/// records.
///
/// # Errors
/// As [`Model::compile`], and where the log density is no sum over the records, with the line that makes
/// it none.
pub fn compile(
    source: &str,
    name: &str,
    data: &DataSet,
    build: &Build<'_>,
    count: &str,
) -> Result<RecordModel, Error> {
    Model::build(
        source,
        name,
        data,
        build,
        |posterior, options, execution| {
            let lowered = lower_records(posterior, options, count)?;
            let graph = RecordGraph::new(&lowered.prior, &lowered.likelihood, execution);
            Ok(AllRecords::new(graph))
        },
    )
}

impl RecordModel {
    /// Prior and likelihood of any records.
    pub fn records(&self) -> &RecordGraph {
        self.of().density()
    }
}

impl Problem for RecordModel {
    type Density = AllRecords<RecordGraph>;

    fn density(&self) -> &Self::Density {
        self.of()
    }

    fn posterior(&self) -> &dyn Posterior {
        self.bound()
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
        self.records().block_bytes()
    }
}

/// What a checkpoint of such a fit must match.
pub fn identity(settings: &Settings, method: &RecordMethod, subject: &Subject) -> Identity {
    let mut identity = jensen_blackbox::identity(settings, subject);
    identity.algorithm = method.name().to_owned();
    identity.settings = serde_json::json!({
        "method": method,
        "family": settings.family,
        "start": settings.start,
        "evaluation_draws": settings.evaluation_draws,
    });
    identity
}

/// Fits a program over exchangeable records; `control` and `history` as for [`crate::fit_with`]. The
/// method of `options.settings` is not looked at, and its family is mean-field unless it names one. The
/// final bound is that of all records on fresh draws, fewer of them where there are many records.
///
/// # Errors
/// When method or memory do not suit the records, no starting point has a finite density, or a checkpoint
/// does not belong to this run.
pub fn fit(
    model: &RecordModel,
    options: &Options,
    method: &RecordMethod,
    control: Control<'_>,
    history: Vec<HistoryPoint>,
) -> Result<Fitted, Error> {
    let settings = &options.settings;
    let density = model.records();
    let dim = density.dim();
    if dim == 0 {
        return Err(FitError::NoParameters.into());
    }
    settings
        .validate()
        .map_err(|text| Error::from(FitError::Setting(text)))?;
    let posterior = model.posterior();
    let width = posterior.variables().iter().map(|v| v.len()).sum();
    let beside = Footprint::of_fit(
        settings.family,
        method.lanes(),
        dim,
        options.draws,
        width,
        options.threads.max(1),
        model.block_bytes(),
    );
    beside.check(options.memory_limit, "raise the limit")?;
    let kind = match settings.family {
        FamilyChoice::Auto => FamilyKind::MeanField,
        FamilyChoice::Only(kind) => kind,
    };
    let family = kind.build(dim);
    let source = NoiseSource::new(settings.seed, settings.simd);
    let point = starting_point(model, &settings.start.init, source)?;
    let start = family.diagonal(&point, &vec![0.0; dim]);

    let identity = identity(settings, method, &model.subject());
    let clock = control.clock;
    let mut counter = Counter {
        inner: Historian {
            inner: control.observer,
            history,
        },
        calls: 0,
    };
    let mut control = Control {
        budget: control.budget,
        clock,
        cancel: control.cancel,
        observer: &mut counter,
        store: control.store.map(|store| store as &mut dyn Store),
        checkpoint_seconds: control.checkpoint_seconds,
        resume: control.resume,
        force_resume: control.force_resume,
    };
    let seed = settings.seed;
    // Methods count parameters themselves.
    let limit = Some(options.memory_limit - (beside.total() - beside.family));
    let (outcome, last) = match *method {
        RecordMethod::Minibatch(settings) => {
            let settings = MinibatchSettings {
                memory_limit: settings.memory_limit.or(limit),
                ..settings
            };
            let mut algorithm =
                Minibatch::new(density, Arc::clone(&family), seed, settings, start)?;
            let outcome = run(&mut algorithm, &identity, &mut control);
            (outcome, settings.judge.is_some())
        }
        RecordMethod::Smiso(settings) => {
            let settings = SmisoSettings {
                memory_limit: settings.memory_limit.or(limit),
                ..settings
            };
            let mut algorithm = Smiso::new(density, Arc::clone(&family), seed, settings, start)?;
            (run(&mut algorithm, &identity, &mut control), false)
        }
        RecordMethod::Trust(settings) => {
            let setting = |text| Error::from(FitError::Setting(text));
            settings.trust.validate().map_err(setting)?;
            let subsampled = Subsampled::new(density, settings.batch, source).map_err(setting)?;
            let family = Arc::clone(&family);
            let mut algorithm =
                Trust::on_records(&subsampled, family, source, settings.trust, start);
            (run(&mut algorithm, &identity, &mut control), true)
        }
    };
    let outcome = outcome.map_err(FitError::Run)?;
    let omega = outcome
        .output
        .ok_or_else(|| FitError::CannotStart(outcome.status.clone()))?;
    let before = clock.seconds();
    let all = AllRecords::new(density);
    let mut oracle = Oracle::new(&all, family);
    let draws = (EVALUATIONS / density.records())
        .max(LEAST_DRAWS)
        .min(settings.evaluation_draws);
    let evaluation = evaluate(&mut oracle, &omega, source, draws);
    let result = FamilyResult {
        kind,
        omega,
        status: last.then(|| outcome.status.clone()),
        evaluation,
        polish: None,
    };
    // The methods of gradients alone count records, the one with products minibatches.
    let unit = match method {
        RecordMethod::Trust(_) => GRADIENT_BATCH as u64,
        RecordMethod::Minibatch(_) | RecordMethod::Smiso(_) => 1,
    };
    let calls = Calls {
        gradients: unit * counter.calls,
        ..Calls::default()
    };
    let seconds = outcome.seconds + clock.seconds() - before;
    let fit = Fit::of_family(
        result,
        outcome.status,
        outcome.iterations,
        calls,
        seconds,
        dim,
    );
    let before_draws = clock.seconds();
    let request = SampleRequest {
        first: 0,
        draws: options.draws,
        resample: options.resample,
        source,
        seed,
        threads: options.threads,
    };
    let sample = sample(model, &fit.approximation(), &request)?;
    Ok(Fitted {
        fit,
        identity,
        sample,
        history: counter.inner.history,
        build_seconds: model.build_seconds(),
        draws_seconds: clock.seconds() - before_draws,
        settings: settings.clone(),
        model_remarks: model.remarks(),
    })
}

/// A point with a finite density.
fn starting_point(
    model: &RecordModel,
    init: &Init,
    source: NoiseSource,
) -> Result<Vec<f64>, Error> {
    let density = model.density();
    let dim = density.dim();
    let mut ws = density.workspace(1);
    let mut finite = |point: &[f64]| {
        let mut value = [0.0];
        density.value(&mut ws, Lanes::new(point, dim, 1), &mut value);
        value[0].is_finite()
    };
    let fixed = match init {
        Init::Point(point) if point.len() != dim => {
            return Err(FitError::InitialPoint {
                expected: dim,
                found: point.len(),
            }
            .into());
        }
        Init::Point(point) => Some(point.clone()),
        Init::Zero => Some(vec![0.0; dim]),
        Init::Random => None,
    };
    if let Some(point) = fixed.filter(|point| finite(point)) {
        return Ok(point);
    }
    if !matches!(init, Init::Point(_)) {
        let mut point = vec![0.0; dim];
        for attempt in 0..ATTEMPTS {
            source.uniforms(Purpose::Start, 0, attempt, &mut point);
            point
                .iter_mut()
                .for_each(|x| *x = RADIUS * (2.0 * *x - 1.0));
            if finite(&point) {
                return Ok(point);
            }
        }
    }
    let reason = "no starting point has a finite log density".to_owned();
    Err(FitError::CannotStart(Status::Diverged { at: 0, reason }).into())
}

/// Counts evaluations on the way.
struct Counter<'a> {
    inner: Historian<'a>,
    calls: u64,
}

impl Observer for Counter<'_> {
    fn record(&mut self, record: &Record) {
        self.calls = record.oracle_calls;
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
