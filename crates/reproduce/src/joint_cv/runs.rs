//! Optimisation runs and the bound along them.

use std::sync::Arc;
use std::time::Instant;

use jensen::blackbox::family::MeanField;
use jensen::blackbox::records::{
    Minibatch, MinibatchSettings, MinibatchState, RecordError, RecordEstimator, Smiso,
    SmisoSettings, SmisoState,
};
use jensen::blackbox::{Family, NoiseSource, Optimiser, Oracle, Purpose, Rule, Schedule, Stream};
use jensen::density::{AllRecords, Lanes, RecordDensity};
use jensen::math::rng;
use jensen::math::simd::Simd;
use jensen::math::sum::Moments;
use jensen::run::Algorithm;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::failure::Failure;

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Method(error.to_string())
    }
}

/// How parameters are moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// An estimator under SGD or Adam.
    Estimator(RecordEstimator, Rule),
    /// SMISO with α = 0.9.
    Smiso,
}

impl Method {
    /// Its name in rows and legends.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Estimator(estimator, _) => estimator.name(),
            Self::Smiso => "smiso",
        }
    }
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) method: Method,
    /// Step size, or SMISO's γ.
    pub(super) step: f64,
    pub(super) batch: usize,
    pub(super) iterations: u64,
    /// How many times the bound is estimated.
    pub(super) points: u64,
    /// Draws of an estimate.
    pub(super) draws: usize,
    pub(super) seed: u64,
}

/// The bound along a run; `None` from the iteration at which it diverged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trace {
    pub(super) iterations: Vec<u64>,
    /// Seconds of optimisation alone.
    pub(super) seconds: Vec<f64>,
    pub(super) elbo: Vec<Option<f64>>,
}

/// ω with every coordinate standard normal, as the paper starts.
pub(super) fn start(parameters: usize, seed: u64) -> Vec<f64> {
    let mut out = vec![0.0; parameters];
    let purpose = rng::Purpose::new("reproduce").fold("joint-cv start");
    rng::fill_normals(Simd::detect(), seed, purpose, 0, 0, 1, parameters, &mut out);
    out
}

/// Numbers of a block of draws: few enough to stay in cache, enough to fill vectors.
const BLOCK: usize = 1 << 21;

/// The bound at ω on all records, with its standard error.
pub(super) fn bound<D: RecordDensity>(
    density: &D,
    omega: &[f64],
    draws: usize,
    seed: u64,
) -> (f64, f64) {
    let all = AllRecords::new(density);
    let d = density.dim();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(d));
    let mut oracle = Oracle::new(&all, family);
    let stream = Stream {
        source: NoiseSource::new(seed, Simd::detect()),
        purpose: Purpose::Final,
        iteration: 0,
    };
    let lanes = (BLOCK / d).clamp(4, 128).min(draws);
    let mut weights = Vec::with_capacity(draws);
    while weights.len() < draws {
        let count = lanes.min(draws - weights.len());
        let noise = stream.lanes(weights.len(), d, count);
        weights.extend(oracle.log_weights(omega, Lanes::new(&noise, d, count)));
    }
    let moments = Moments::of(&weights);
    (moments.mean(), moments.standard_error())
}

/// The iterations after which the bound is estimated: closer together at the beginning.
fn points(plan: &Plan) -> Vec<u64> {
    let (n, last) = (plan.points.max(2) as f64, plan.iterations as f64);
    let mut points: Vec<u64> = (1..=plan.points)
        .map(|k| ((k as f64 / n).powi(2) * last).ceil() as u64)
        .collect();
    points.dedup();
    points
}

/// Runs a plan.
pub(super) fn run<D: RecordDensity>(
    context: &Context<'_>,
    density: &D,
    plan: &Plan,
) -> Result<Trace, Failure> {
    let family = Arc::new(MeanField::new(density.dim()));
    let omega = start(family.parameters(), plan.seed);
    match plan.method {
        Method::Estimator(estimator, rule) => {
            let settings = settings(estimator, rule, plan.step, plan.batch);
            let fit = Minibatch::new(density, family, plan.seed, settings, omega)?;
            follow(context, density, fit, MinibatchState::omega, plan)
        }
        Method::Smiso => {
            let settings = SmisoSettings {
                alpha: 0.9,
                gamma: plan.step,
                batch: plan.batch,
                draws: 1,
                memory_limit: None,
            };
            let fit = Smiso::new(density, family, plan.seed, settings, omega)?;
            follow(context, density, fit, SmisoState::omega, plan)
        }
    }
}

/// An estimator with the paper's settings.
pub(super) fn settings(
    estimator: RecordEstimator,
    rule: Rule,
    step_size: f64,
    batch: usize,
) -> MinibatchSettings {
    MinibatchSettings {
        estimator,
        optimiser: Optimiser {
            rule,
            step_size,
            schedule: Schedule::Constant,
        },
        batch,
        judge: None,
        ..MinibatchSettings::default()
    }
}

fn follow<D: RecordDensity, A: Algorithm>(
    context: &Context<'_>,
    density: &D,
    mut fit: A,
    omega: fn(&A::State) -> &[f64],
    plan: &Plan,
) -> Result<Trace, Failure> {
    let mut trace = Trace {
        iterations: Vec::new(),
        seconds: Vec::new(),
        elbo: Vec::new(),
    };
    let mut state = fit
        .init()
        .map_err(|status| Failure::Method(status.to_string()))?;
    let (mut seconds, mut iteration, mut diverged) = (0.0, 0, false);
    for point in points(plan) {
        context.check_stopped()?;
        let begin = Instant::now();
        while iteration < point && !diverged {
            iteration += 1;
            diverged = fit.step(&mut state, iteration).status.is_some();
        }
        seconds += begin.elapsed().as_secs_f64();
        let elbo = if diverged {
            f64::NAN
        } else {
            bound(density, omega(&state), plan.draws, plan.seed).0
        };
        diverged |= !elbo.is_finite();
        trace.iterations.push(point);
        trace.seconds.push(seconds);
        trace.elbo.push(elbo.is_finite().then_some(elbo));
    }
    Ok(trace)
}
