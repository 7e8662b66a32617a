//! Fits topics to documents. The inputs are a corpus and settings, and the result contains [`Topics`].

use std::fmt;

use jensen_math::rng::Purpose;
use jensen_math::rng::permutation;
use jensen_math::simd::Simd;
use jensen_math::sum::Moments;
use jensen_run::{Clock, Control, Identity, Outcome, RunError, run};
use serde::{Deserialize, Serialize};

use super::engine::LdaEngine;
use super::globals::LdaGlobals;
use super::local::Spec;
use super::powers::PowerTable;
use super::process::Process;
use super::score::Completion;
use super::settings::LdaSettings;
use super::shards::{LocalShards, Shards};
use super::topics::Topics;
use crate::documents::Documents;
use crate::driver::{Driver, DriverSettings, FitState, Mode};
use crate::ends::Ends;
use crate::engine::{Engine, Heat, Measure};
use crate::temper::Temper;

/// The inputs of a fit.
pub struct LdaJob<'a> {
    /// The training documents.
    pub documents: &'a dyn Documents,
    /// Held-out documents that the run scores.
    pub heldout: Option<&'a dyn Documents>,
    /// Number of held-out documents that are scored during the run. At the end of the run, all of them are scored.
    pub scored: usize,
    /// Topics from which the fit starts. Their vocabulary must be the vocabulary of the documents, or its first part.
    pub start: Option<&'a Topics>,
    /// Settings of the model and of the fit.
    pub settings: LdaSettings,
    /// The instruction set of the inner loops.
    pub simd: Simd,
    /// Digest of the documents and of the initial topics, which checkpoints store.
    pub data_hash: String,
}

/// Fitted topics together with their bound and scores.
#[derive(Clone, Debug)]
pub struct LdaFit {
    /// The fitted topics q(β).
    pub topics: Topics,
    /// The evidence lower bound at T = 1, in nats. It is estimated from a random sample of the documents, with q(θ) and
    /// q(z) optimised for the sample.
    pub elbo: f64,
    /// Standard error of `elbo` that is due to the sampling of documents.
    pub elbo_se: f64,
    /// The final temperature, 1 / E[1/T]. For local tempering, it is computed from the mean inverse temperature of the
    /// last batch.
    pub temperature: f64,
    /// The final state of each run that inferred the global temperature. If there were two runs, the selected run comes
    /// first.
    pub rests: Vec<Rest>,
    /// The temperature of each document. The list is empty if the policy does not infer a temperature for each
    /// document, or if all temperatures are 1. The temperature of a document without words is NaN.
    pub temperatures: Vec<f64>,
    /// The posterior means of α₀ and γ, if the fit learnt a hierarchical Dirichlet process.
    pub concentrations: Option<[f64; 2]>,
    /// The score over all held-out documents.
    pub completion: Option<Completion>,
    /// Time in seconds that the fit spent on the bound and on the score of all held-out documents.
    pub evaluate_seconds: f64,
    /// Number of training documents that were used, summed over all passes.
    pub documents: u64,
    /// Number of empty documents that were skipped, summed over all passes.
    pub skipped: u64,
}

/// The final state of a run that inferred the global temperature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rest {
    /// The final temperature, 1 / E[1/T].
    pub temperature: f64,
    /// The bound of the tempered model in nats, including the terms of the temperature and log C(T). It is estimated
    /// from the same documents as the untempered bound. If the fit made two runs, they are compared by this number.
    pub tempered_elbo: f64,
    /// Standard error of `tempered_elbo`.
    pub tempered_elbo_se: f64,
}

/// An error in a fit of topics.
#[derive(Debug)]
pub enum LdaError {
    /// The settings, the documents and the initial topics do not match. The text is one sentence for the user.
    Input(String),
    /// The run could not be resumed.
    Run(RunError),
    /// A shard did not answer. The text contains the reason. A run with a checkpoint can be resumed.
    Lost(String),
}

impl fmt::Display for LdaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Input(what) | Self::Lost(what) => f.write_str(what),
            Self::Run(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LdaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Run(error) => error.source(),
            Self::Input(_) | Self::Lost(_) => None,
        }
    }
}

const ELBO_SAMPLE: usize = 2000;
const SAMPLE: Purpose = Purpose::new("sample for the bound");

/// Returns the number of iterations that a job needs. Callers use it to compute the budget.
pub fn planned_iterations(documents: usize, settings: &LdaSettings) -> u64 {
    let per_pass = documents.div_ceil(settings.batch.max(1)).max(1) as f64;
    ((settings.passes * per_pass).ceil() as u64).max(1)
}

/// Returns the identity that the checkpoint of a job must match.
pub fn identity(job: &LdaJob<'_>) -> Identity {
    Identity {
        algorithm: "lda".to_owned(),
        settings: serde_json::to_value(&job.settings).expect("plain settings"),
        seed: job.settings.seed,
        model_hash: String::new(),
        data_hash: job.data_hash.clone(),
        simd: job.simd.name().to_owned(),
    }
}

/// Fits topics by stochastic variational inference in the loop that all fits share.
///
/// One iteration is one minibatch. The trace shows `pass`, `temperature`, `step_size`, `sweeps` (the mean number of
/// sweeps over a document's words) and `unconverged` (the number of documents whose local step reached its largest
/// number of iterations). The run ends after the planned passes with
/// [`Status::BudgetReached`](jensen_run::Status::BudgetReached), because stochastic steps have no stopping rule. The
/// final score and the bound are computed after the last iteration, so the time in the last line of the trace covers
/// only the training, without intermediate scores.
///
/// # Errors
/// Fails if the settings, the documents and the start do not match, or if a checkpoint comes from another run.
pub fn fit(job: &LdaJob<'_>, control: &mut Control<'_>) -> Result<Outcome<LdaFit>, LdaError> {
    let shards = LocalShards::new(
        job.documents,
        job.heldout,
        Spec::of(&job.settings, job.simd),
    );
    fit_on(job, Box::new(shards), control)
}

/// Fits topics as [`fit`] does, but delegates the local steps to `shards`. The results are bitwise identical.
///
/// # Errors
/// Fails for the same reasons as [`fit`], and if a shard does not answer. In that case, the last checkpoint is that of
/// the last complete step.
pub fn fit_on<'a>(
    job: &'a LdaJob<'a>,
    shards: Box<dyn Shards + 'a>,
    control: &mut Control<'_>,
) -> Result<Outcome<LdaFit>, LdaError> {
    check(job).map_err(LdaError::Input)?;
    let mut driver = driver(job, shards);
    let identity = identity(job);
    let (outcome, mut engine) = if job.settings.temper.from_both_ends() {
        let mut ends = Ends(driver);
        let outcome = run(&mut ends, &identity, control).map_err(LdaError::Run)?;
        (with_output(outcome, Vec::from), ends.0.engine)
    } else {
        let outcome = run(&mut driver, &identity, control).map_err(LdaError::Run)?;
        (with_output(outcome, |end| vec![end]), driver.engine)
    };
    let lost = |engine: &LdaEngine<'_>| engine.lost().map(|why| LdaError::Lost(why.to_owned()));
    if let Some(lost) = lost(&engine) {
        return Err(lost);
    }
    let iterations = outcome.iterations;
    let outcome = with_output(outcome, |ends| {
        finished(job, &mut engine, ends, iterations, control.clock)
    });
    match lost(&engine) {
        Some(lost) => Err(lost),
        None => Ok(outcome),
    }
}

/// Creates the run of a job.
pub(super) fn driver<'a>(job: &LdaJob<'a>, shards: Box<dyn Shards + 'a>) -> Driver<LdaEngine<'a>> {
    let settings = &job.settings;
    let engine = LdaEngine::with_shards(job.documents, job.heldout, settings, job.simd, shards)
        .scoring(job.scored);
    let driver_settings = DriverSettings {
        mode: Mode::Stochastic {
            batch: settings.batch,
            tau: settings.tau,
            kappa: settings.kappa,
            passes: settings.passes,
            population: settings.population,
            steps_before: job.start.map_or(0, |start| start.steps),
        },
        temper: settings.temper.clone(),
        seed: settings.seed,
        scores_per_pass: settings.evaluations_per_pass,
    };
    match job.start {
        None => Driver::new(engine, driver_settings),
        Some(start) => {
            let globals = widened(start, job.documents.terms(), settings);
            Driver::starting_at(engine, driver_settings, globals)
        }
    }
}

/// Computes the results of a run that has ended after `iterations` iterations.
pub(super) fn finished(
    job: &LdaJob<'_>,
    engine: &mut LdaEngine<'_>,
    ends: Vec<State>,
    iterations: u64,
    clock: &dyn Clock,
) -> LdaFit {
    let settings = &job.settings;
    let before = job.start.map_or(0, |start| start.steps);
    let population = settings.population.unwrap_or(job.documents.len() as f64);
    let begun = clock.seconds();
    let (mut state, rests) = better(engine, ends, settings, population);
    state.globals.with_alpha(settings.alpha());
    let heat = Heat::Uniform(1.0);
    let (elbo, elbo_se) = bound(engine, &mut state.globals, &heat, settings, population);
    let temperatures = temperatures(engine, &mut state, settings);
    let topics = state
        .globals
        .to_topics(settings.inference, before + iterations, population);
    let completion = engine.whole_completion(&topics);
    LdaFit {
        elbo,
        elbo_se,
        completion,
        evaluate_seconds: clock.seconds() - begun,
        temperature: 1.0 / state.inverse,
        rests,
        temperatures,
        concentrations: (state.globals.process.as_ref()).map(Process::means),
        documents: state.used,
        skipped: state.skipped,
        topics,
    }
}

pub(super) fn with_output<T, U>(outcome: Outcome<T>, change: impl FnOnce(T) -> U) -> Outcome<U> {
    Outcome {
        output: outcome.output.map(change),
        status: outcome.status,
        iterations: outcome.iterations,
        seconds: outcome.seconds,
    }
}

pub(super) type State = FitState<LdaGlobals, PowerTable>;

/// Returns the final state with the larger bound of the tempered model, or the first state if all runs were stopped.
fn better(
    engine: &mut LdaEngine<'_>,
    ends: Vec<State>,
    settings: &LdaSettings,
    population: f64,
) -> (State, Vec<Rest>) {
    let mut found: Vec<(State, Option<Rest>)> = ends
        .into_iter()
        .map(|mut state| {
            let rest = rest(engine, &mut state, settings, population);
            (state, rest)
        })
        .collect();
    // The sort is stable, so the cold end comes first if both bounds are equal.
    let value = |rest: &Option<Rest>| rest.map_or(f64::NEG_INFINITY, |rest| rest.tempered_elbo);
    found.sort_by(|a, b| value(&b.1).total_cmp(&value(&a.1)));
    let rests = found.iter().filter_map(|(_, rest)| *rest).collect();
    let (state, _) = found.swap_remove(0);
    (state, rests)
}

fn rest(
    engine: &mut LdaEngine<'_>,
    state: &mut State,
    settings: &LdaSettings,
    population: f64,
) -> Option<Rest> {
    let thermostat = state.thermostat.as_ref()?.bound();
    state.globals.with_alpha(settings.alpha());
    // The bound is linear in 1/T, apart from the terms that contain only the temperature y.
    let heat = Heat::Uniform(state.inverse);
    let (elbo, tempered_elbo_se) = bound(engine, &mut state.globals, &heat, settings, population);
    Some(Rest {
        temperature: 1.0 / state.inverse,
        tempered_elbo: elbo + thermostat,
        tempered_elbo_se,
    })
}

/// Returns the temperatures of all documents at the end of a run that infers these temperatures. The vector is empty if
/// all temperatures are 1.
fn temperatures(engine: &mut LdaEngine<'_>, state: &mut State, settings: &LdaSettings) -> Vec<f64> {
    let (Temper::Local(local), Some(table)) = (&settings.temper, &state.table) else {
        return Vec::new();
    };
    if state.inverse >= 1.0 {
        return Vec::new();
    }
    let grid = local.grid();
    let heat = Heat::Local {
        first: state.inverse.max(grid.mean()),
        floor: 0.0,
        grid: &grid,
        table,
    };
    let measure = Measure {
        energy: false,
        bound: true,
    };
    let all: Vec<usize> = (0..engine.points()).collect();
    let mut found = Vec::with_capacity(all.len());
    for chunk in all.chunks(settings.batch) {
        let globals = &mut state.globals;
        if engine.local_steps(globals, chunk, &heat, measure).is_none() {
            break;
        }
        let of = |&inverse: &f64| {
            if inverse > 0.0 {
                1.0 / inverse
            } else {
                f64::NAN
            }
        };
        found.extend(engine.inverses().iter().map(of));
    }
    found
}

/// Estimates the bound at a given temperature, and the standard error of the estimate, from a sample of the documents.
/// The bound does not include the terms that contain only the temperature.
fn bound(
    engine: &mut LdaEngine<'_>,
    globals: &mut LdaGlobals,
    heat: &Heat<'_, PowerTable>,
    settings: &LdaSettings,
    population: f64,
) -> (f64, f64) {
    let mut chosen = permutation(settings.seed, SAMPLE, 0, engine.points());
    chosen.truncate(ELBO_SAMPLE);
    let measure = Measure {
        energy: false,
        bound: true,
    };
    let mut values = Vec::with_capacity(chosen.len());
    for chunk in chosen.chunks(settings.batch) {
        if engine.local_steps(globals, chunk, heat, measure).is_none() {
            break;
        }
        values.extend_from_slice(engine.bounds());
    }
    let moments = Moments::of(&values);
    let elbo = engine.global_bound(globals) + population * moments.mean();
    // The result has no sampling error if the sample contains every document to which the topics were fitted, including
    // the documents of earlier fits.
    let left = 1.0 - values.len() as f64 / population.max(1.0);
    (
        elbo,
        population * moments.standard_error() * left.max(0.0).sqrt(),
    )
}

/// Extends earlier topics to a vocabulary that may have grown. New terms start at the mean of the random
/// initialisation.
fn widened(start: &Topics, terms: usize, settings: &LdaSettings) -> LdaGlobals {
    if terms == start.terms {
        return LdaGlobals::of(start);
    }
    let mut topics = start.clone();
    let fresh = 1.0f32.max(settings.eta() as f32);
    topics.lambda.resize(terms * start.topics, fresh);
    topics.terms = terms;
    LdaGlobals::of(&topics)
}

pub(super) fn check(job: &LdaJob<'_>) -> Result<(), String> {
    let settings = &job.settings;
    settings.check().map_err(|error| error.to_string())?;
    let documents = job.documents;
    if documents.is_empty() || documents.tokens() <= 0.0 {
        return Err("the corpus has no words".to_owned());
    }
    if documents.len() > u32::MAX as usize {
        return Err("a corpus can have at most 4294967295 documents".to_owned());
    }
    if settings.topics as f64 > documents.tokens() {
        return Err(format!(
            "{} topics are more than the {} tokens of the corpus; use fewer",
            settings.topics,
            documents.tokens()
        ));
    }
    if let Some(heldout) = job.heldout
        && heldout.terms() != documents.terms()
    {
        return Err(format!(
            "the held-out documents have a vocabulary of {} terms, but the other documents one of {}",
            heldout.terms(),
            documents.terms()
        ));
    }
    if let Some(start) = job.start {
        if start.topics != settings.topics {
            return Err(format!(
                "the stored fit has {} topics, but the settings ask for {}",
                start.topics, settings.topics
            ));
        }
        if start.terms > documents.terms() {
            return Err(format!(
                "the stored fit has {} terms, but the vocabulary has only {}",
                start.terms,
                documents.terms()
            ));
        }
        // The fit continues with the learnt α of each topic.
        let alike = start.alpha.iter().all(|alpha| *alpha == start.alpha[0]);
        let other_alpha = alike && settings.alpha() != start.mean_alpha();
        if settings.eta() != start.eta || other_alpha {
            return Err("alpha or eta differs from the stored fit".to_owned());
        }
        if start.inference != settings.inference {
            return Err("the stored fit used another kind of inference".to_owned());
        }
    }
    Ok(())
}
