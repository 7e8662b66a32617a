//! Optimisation runs, and the ELBO of their iterates.

use std::sync::Arc;

use jensen::blackbox::family::MeanField;
use jensen::blackbox::minibatches::{
    Minibatch, MinibatchSettings, MinibatchState, Smiso, SmisoSettings, SmisoState,
};
use jensen::blackbox::records::{RecordError, RecordEstimator};
use jensen::blackbox::{
    Family, MethodState as _, NoisePurpose, NoiseSource, Optimiser, Oracle, Rule, Schedule, Stream,
};
use jensen::density::{
    AllRecords, Lanes, LanesMut, LinearPredictor, LinkExpectations, PredictorScratch, RecordDensity,
};
use jensen::glm::{Glm, StandardNormal};
use jensen::math::rng;
use jensen::math::simd::Simd;
use jensen::math::sum::Moments;
use jensen::run::Algorithm;
use serde::{Deserialize, Serialize};

use super::tasks::{RecordModel, with_density};
use crate::failure::Failure;

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        Self::Method(error.to_string())
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    Estimator(RecordEstimator, Rule),
    Smiso { momentum: f64 },
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Estimator(estimator, _) => estimator.name(),
            Self::Smiso { momentum: 0.0 } => "smiso",
            Self::Smiso { .. } => "smiso-momentum",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) method: Method,
    /// The step size of the optimiser, or the parameter γ of SMISO.
    pub(super) step: f64,
    pub(super) batch: usize,
    pub(super) spread: f64,
    pub(super) iterations: u64,
    pub(super) points: u64,
    pub(super) draws: usize,
    pub(super) seed: u64,
}

/// The ELBO at several iterates of a run. After a run has diverged, its values are `None`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Trace {
    pub(super) iterations: Vec<u64>,
    pub(super) elbo: Vec<Option<f64>>,
}

/// Draws a starting point ω whose coordinates are normal with standard deviation `spread`. The paper uses the standard
/// deviation 1.
pub(super) fn start(parameters: usize, seed: u64, spread: f64) -> Vec<f64> {
    let mut out = vec![0.0; parameters];
    let purpose = rng::Purpose::new("reproduce").fold("joint-cv start");
    rng::fill_normals(Simd::detect(), seed, purpose, 0, 0, 1, parameters, &mut out);
    out.iter_mut().for_each(|x| *x *= spread);
    out
}

/// The number of values in a block of draws. A block of this size fits into the cache and is large enough for
/// vectorised loops.
const BLOCK: usize = 1 << 21;

/// Computes the ELBO at ω from all records. The result is exact for logistic regression and a sample mean for other
/// models.
pub(super) fn bound(model: &RecordModel, omega: &[f64], draws: usize, seed: u64) -> f64 {
    match model {
        RecordModel::Logistic(glm) => exact(glm, omega),
        RecordModel::Linear(glm) => sampled(glm, omega, draws, seed),
        RecordModel::Components(ppca) => sampled(ppca, omega, draws, seed),
    }
}

fn sampled<D: RecordDensity>(density: &D, omega: &[f64], draws: usize, seed: u64) -> f64 {
    let all = AllRecords::new(density);
    let d = density.dim();
    let family: Arc<dyn Family> = Arc::new(MeanField::new(d));
    let mut oracle = Oracle::new(&all, family);
    let stream = Stream {
        source: NoiseSource::new(seed, Simd::detect()),
        purpose: NoisePurpose::Final,
        iteration: 0,
    };
    let lanes = (BLOCK / d).clamp(4, 128).min(draws);
    let mut weights = Vec::with_capacity(draws);
    while weights.len() < draws {
        let count = lanes.min(draws - weights.len());
        let noise = stream.lanes(weights.len(), d, count);
        weights.extend(oracle.log_weights(omega, Lanes::new(&noise, d, count)));
    }
    Moments::of(&weights).mean()
}

/// The number of nodes of the trapezoidal rule that computes expectations over normally distributed predictors.
const NODES: usize = 65;
/// The number of standard deviations that the nodes cover on each side of the mean.
const REACH: f64 = 8.0;

const CHUNK: u32 = 1024;

/// Computes the mean-field ELBO of a logistic regression. For each record, the expected log likelihood is an integral
/// over its normally distributed linear predictor. The terms of the prior and of the entropy have closed forms.
fn exact(glm: &Glm<StandardNormal>, omega: &[f64]) -> f64 {
    let d = glm.dim();
    let (mean, log_sd) = omega.split_at(d);
    let variances: Vec<f64> = log_sd.iter().map(|l| (2.0 * l).exp()).collect();
    let at: Vec<f64> = (0..NODES)
        .map(|k| REACH * (2.0 * k as f64 / (NODES - 1) as f64 - 1.0))
        .collect();
    let density: Vec<f64> = at.iter().map(|t| (-0.5 * t * t).exp()).collect();
    let total: f64 = density.iter().sum();
    let records = glm.records() as u32;
    let mut scratch = PredictorScratch::default();
    let mut likelihood = 0.0;
    for first in (0..records).step_by(CHUNK as usize) {
        let batch: Vec<u32> = (first..records.min(first + CHUNK)).collect();
        let (mut eta, mut variance) = (vec![0.0; batch.len()], vec![0.0; batch.len()]);
        let out = LanesMut::new(&mut eta, batch.len(), 1);
        glm.project(&mut scratch, &batch, Lanes::new(mean, d, 1), out);
        glm.project_squares(&mut scratch, &batch, &variances, &mut variance);
        let nodes: Vec<f64> = eta
            .iter()
            .zip(&variance)
            .flat_map(|(m, v)| at.iter().map(move |t| m + v.sqrt() * t))
            .collect();
        let mut values = [0.0; NODES];
        glm.link_value(&batch, Lanes::new(&nodes, batch.len(), NODES), &mut values);
        let sum: f64 = values.iter().zip(&density).map(|(v, w)| v * w).sum();
        likelihood += sum / total;
    }
    let prior_and_entropy: f64 = mean
        .iter()
        .zip(&variances)
        .zip(log_sd)
        .map(|((m, v), l)| -0.5 * (m * m + v) + l + 0.5)
        .sum();
    likelihood + prior_and_entropy
}

/// Returns the iterations at which the ELBO is computed. These iterations are closer together at the beginning of a
/// run.
fn points(plan: &Plan) -> Vec<u64> {
    let (n, last) = (plan.points.max(2) as f64, plan.iterations as f64);
    let mut points: Vec<u64> = (1..=plan.points)
        .map(|k| ((k as f64 / n).powi(2) * last).ceil() as u64)
        .collect();
    points.dedup();
    points
}

/// Executes a run. The function calls `stopped` from time to time to check whether the user has stopped the run.
pub(super) fn run(
    model: &RecordModel,
    plan: &Plan,
    stopped: &(dyn Fn() -> Result<(), Failure> + Sync),
) -> Result<Trace, Failure> {
    with_density!(model, density => {
        let family = Arc::new(MeanField::new(density.dim()));
        let omega = start(family.parameters(), plan.seed, plan.spread);
        match plan.method {
            Method::Estimator(estimator, rule) => {
                let settings = settings(estimator, rule, plan.step, plan.batch);
                let fit = Minibatch::new(density, family, plan.seed, settings, omega)?;
                follow(model, fit, MinibatchState::iterate, plan, stopped)
            }
            Method::Smiso { momentum } => {
                let settings = SmisoSettings {
                    momentum,
                    ..smiso(plan.step, plan.batch)
                };
                let fit = Smiso::new(density, family, plan.seed, settings, omega)?;
                follow(model, fit, SmisoState::omega, plan, stopped)
            }
        }
    })
}

pub(super) const SMISO_ALPHA: f64 = 0.9;

pub(super) fn smiso(gamma: f64, batch: usize) -> SmisoSettings {
    SmisoSettings {
        alpha: SMISO_ALPHA,
        gamma: Some(gamma),
        momentum: 0.0,
        batch,
        draws: 1,
        memory_limit: None,
    }
}

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

fn follow<A: Algorithm>(
    model: &RecordModel,
    mut fit: A,
    omega: fn(&A::State) -> &[f64],
    plan: &Plan,
    stopped: &(dyn Fn() -> Result<(), Failure> + Sync),
) -> Result<Trace, Failure> {
    let mut trace = Trace {
        iterations: Vec::new(),
        elbo: Vec::new(),
    };
    let mut state = fit
        .init()
        .map_err(|status| Failure::Method(status.to_string()))?;
    let (mut iteration, mut diverged) = (0, false);
    for point in points(plan) {
        stopped()?;
        while iteration < point && !diverged {
            iteration += 1;
            diverged = fit.step(&mut state, iteration).status.is_some();
        }
        let elbo = if diverged {
            f64::NAN
        } else {
            bound(model, omega(&state), plan.draws, plan.seed)
        };
        diverged |= !elbo.is_finite();
        trace.iterations.push(point);
        trace.elbo.push(elbo.is_finite().then_some(elbo));
    }
    Ok(trace)
}
