//! Fits on minibatches with any gradient estimator, family and optimiser. The records are reshuffled in each epoch.

mod settings;
mod stored;

use std::sync::Arc;

use jensen_density::{AllRecords, Lanes, RecordDensity};
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Evidence, Record, Status, Step};

pub use self::settings::{Judge, MinibatchSettings};
use crate::calls::Calls;
use crate::certificate::{PATIENCE, certify};
use crate::engine::MethodState;
use crate::family::Family;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::optimiser::OptimiserState;
use crate::oracle::{Estimate, Oracle, Stream};
use crate::records::{
    Batches, EvaluationPoint, Footprint, GradientRequest, Gradients, Order, RecordError,
    RecordEstimator, Table, Watch, admit, trace_variances, watched,
};

/// The smallest number of iterations of a window, whose average parameters are compared with the best so far.
const WINDOW: u64 = 500;

/// A fit ends after this many iterations without a finite gradient, because its steps are too large.
pub(super) const REJECTED: u64 = 100;

/// After this many consecutive segments without gain, the run is certified. Each of these segments halves the step
/// size.
const STILL: u64 = 3;

/// Variational inference with stochastic gradients on minibatches. Its result is the vector of parameters ω.
///
/// Iteration t uses `draws` draws and batch `(t − 1) mod ⌈N/B⌉` of its epoch. The records are shuffled before each
/// epoch. The batch and the draws are functions of the seed and t. If a gradient is not finite, the algorithm skips the
/// iteration and counts the skip.
///
/// With a [`Judge`], the algorithm compares the average of the iterates in each segment with the best average so far.
/// If a segment improves the ELBO by no more than the tolerance, the algorithm halves the step size. After three such
/// segments in a row, the fit has converged, unless the settings request a second-order polish. If they do, the polish
/// estimates the remaining gain on all records, and the fit has converged only if this gain is within the tolerance.
pub struct Minibatch<'a, D: RecordDensity> {
    density: &'a D,
    all: AllRecords<&'a D>,
    settings: MinibatchSettings,
    seed: u64,
    batches: Batches,
    footprint: Footprint,
    start: Vec<f64>,
    gradients: Gradients<'a, D>,
    watched: Vec<RecordEstimator>,
    order: Order,
    noise: Vec<f64>,
    gradient: Vec<f64>,
    unused: Vec<f64>,
}

/// The state of [`Minibatch`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct MinibatchState {
    omega: Vec<f64>,
    optimiser: OptimiserState,
    table: Table,
    watches: Vec<Watch>,
    sum: Vec<f64>,
    summed: u64,
    best: Vec<f64>,
    scale: f64,
    still: u64,
    failed: u64,
    rejected: u64,
    clean: bool,
    calls: u64,
}

impl MethodState for MinibatchState {
    /// Returns the best average of iterates if there is one, and otherwise the current iterate.
    fn omega(&self) -> &[f64] {
        if self.best.is_empty() {
            &self.omega
        } else {
            &self.best
        }
    }

    /// Counts each gradient of a single record at a single draw.
    fn calls(&self) -> Calls {
        Calls {
            gradients: self.calls,
            ..Calls::default()
        }
    }
}

impl MinibatchState {
    /// Returns the current iterate.
    pub fn iterate(&self) -> &[f64] {
        &self.omega
    }

    /// Returns the stored table of the estimator.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

impl<'a, D: RecordDensity> Minibatch<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`.
    ///
    /// # Errors
    /// Fails if the batch size or the required memory is out of range, if the estimator needs a warm-up but the
    /// settings have none, or if `start` has the wrong length.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        seed: u64,
        settings: MinibatchSettings,
        start: Vec<f64>,
    ) -> Result<Self, RecordError> {
        let batches = Batches::new(seed, density.records(), settings.batch)?;
        let batches = batches.in_blocks(density.blocks());
        let (estimator, draws) = (settings.estimator, settings.draws);
        let limit = settings.memory_limit;
        let footprint = admit(density, &*family, estimator, &batches, draws, limit)?;
        if estimator.remembers() && settings.warm_up == 0 {
            return Err(RecordError::Setting(format!(
                "the estimator `{estimator}` needs at least one epoch of warm-up"
            )));
        }
        if start.len() != family.parameters() {
            return Err(RecordError::Setting(format!(
                "{} starting values for {} parameters",
                start.len(),
                family.parameters()
            )));
        }
        let mut footprint = footprint;
        let watched = match settings.variance {
            Some(_) => watched(
                density,
                &*family,
                estimator,
                &batches,
                draws,
                limit,
                &mut footprint,
            ),
            None => Vec::new(),
        };
        Ok(Self {
            density,
            all: AllRecords::new(density),
            settings,
            seed,
            batches,
            footprint,
            gradient: vec![0.0; start.len()],
            unused: vec![0.0; start.len()],
            start,
            gradients: Gradients::new(density, family, draws, settings.batch),
            watched,
            order: Order::default(),
            noise: Vec::new(),
        })
    }

    /// Uses the kernels of the given SIMD level instead of the fastest kernels of this machine.
    pub fn with_simd(self, simd: Simd) -> Self {
        Self {
            gradients: self.gradients.with_simd(simd),
            ..self
        }
    }

    /// Returns the memory that the fit needs.
    pub fn footprint(&self) -> Footprint {
        self.footprint
    }

    /// Returns the sequence of batches in each epoch.
    pub fn batches(&self) -> &Batches {
        &self.batches
    }

    fn visits(&self, epoch: u64) -> bool {
        epoch + 1 >= self.settings.warm_up
    }

    fn prepare(&mut self, state: &mut MinibatchState, iteration: u64) {
        let d = self.density.dim();
        let mean = &state.omega[..d];
        let (estimator, clean) = (self.settings.estimator, &mut state.clean);
        self.prepare_table(estimator, mean, &mut state.table, clean, iteration);
        for i in 0..self.watched.len() {
            let Watch { table, clean } = &mut state.watches[i];
            self.prepare_table(self.watched[i], mean, table, clean, iteration);
        }
    }

    fn prepare_table(
        &mut self,
        estimator: RecordEstimator,
        mean: &[f64],
        table: &mut Table,
        clean: &mut bool,
        iteration: u64,
    ) {
        let (epoch, k) = self.batches.position(iteration);
        if k == 0 {
            *clean = true;
        }
        if estimator == RecordEstimator::JointSvrg {
            let first = self.settings.warm_up * self.batches.per_epoch() as u64 + 1;
            let every = self
                .settings
                .refresh
                .unwrap_or(self.batches.per_epoch() as u64);
            if iteration >= first && (iteration - first).is_multiple_of(every.max(1)) {
                self.gradients.anchor(mean, table);
            }
        } else if estimator.remembers() && k == 0 && self.visits(epoch) && !table.complete {
            // The first epoch fills the table. So does the epoch after an epoch with a rejected iteration.
            *table = self.gradients.table(estimator);
        }
    }

    fn watch(&mut self, omega: &[f64], watches: &mut [Watch], iteration: u64) {
        let (epoch, k) = self.batches.position(iteration);
        if !self.visits(epoch) {
            return;
        }
        let last = k + 1 == self.batches.per_epoch();
        let rows = self.gradients.family().noise_dim();
        for (&estimator, watch) in self.watched.iter().zip(watches) {
            let request = GradientRequest {
                estimator,
                omega,
                noise: Lanes::new(&self.noise, rows, self.settings.draws),
                batch: self.order.batch(&self.batches, iteration),
                visit: true,
            };
            // The other estimators read all records when they are evaluated, and store only the parameters.
            let needed = estimator.remembers_means()
                || matches!(
                    estimator,
                    RecordEstimator::JointExact | RecordEstimator::JointPaper
                );
            let gradients = &mut self.gradients;
            if needed && !gradients.evaluate(&request, &watch.table, &mut self.unused) {
                watch.clean = false;
                watch.table.complete = false;
                continue;
            }
            let complete = watch.table.complete || (last && watch.clean);
            gradients.visit(&request, &mut watch.table, complete);
        }
    }

    fn window(&self, judge: &Judge) -> u64 {
        let epoch = self.batches.per_epoch() as u64;
        let epochs = WINDOW.div_ceil(epoch).max(judge.draws as u64 / 2);
        judge.window.unwrap_or(epoch * epochs).max(1)
    }

    fn end_window(
        &mut self,
        judge: &Judge,
        state: &mut MinibatchState,
        iteration: u64,
        record: Record,
    ) -> (Record, Option<Status>) {
        let family = self.gradients.family().clone();
        let mut oracle = Oracle::new(&self.all, family.clone());
        let source = NoiseSource::new(self.seed, self.gradients.simd);
        let stream = Stream {
            source,
            purpose: NoisePurpose::Bound,
            iteration,
        };
        let noise = stream.lanes(0, family.noise_dim(), judge.draws);
        let noise = Lanes::new(&noise, family.noise_dim(), judge.draws);
        let n = state.summed.max(1) as f64;
        let candidate: Vec<f64> = state.sum.iter().map(|s| s / n).collect();
        state.sum.fill(0.0);
        state.summed = 0;
        let finite: Vec<f64> = oracle
            .log_weights(&candidate, noise)
            .into_iter()
            .filter(|w| w.is_finite())
            .collect();
        let elbo = Estimate::of(&finite);
        state.calls += (judge.draws * self.density.records()) as u64;
        let mut record = record
            .with_elbo(elbo.mean, Some(elbo.standard_error))
            .with("step_scale", state.scale);
        if state.best.is_empty() {
            state.best = candidate;
            return (record, None);
        }
        let (gain, _) = oracle.matched_difference(&state.best, &candidate, noise);
        state.calls += 2 * (judge.draws * self.density.records()) as u64;
        record = record
            .with("gain", gain.mean)
            .with("gain_se", gain.standard_error);
        if gain.mean > 0.0 {
            state.best = candidate;
        }
        if gain.mean > judge.tolerance.min(0.1) + gain.standard_error {
            state.still = 0;
            return (record, None);
        }
        state.scale *= 0.5;
        state.still += 1;
        if state.still < STILL {
            return (record, None);
        }
        state.still = 0;
        let evidence = if judge.certify {
            let tolerance = judge.tolerance;
            let certificate = certify(
                &self.all,
                &family,
                &state.best,
                source,
                iteration,
                tolerance,
            );
            state.calls += certificate.calls.lanes() * self.density.records() as u64;
            let improvement = certificate.improvement;
            record = record
                .with("gap", improvement.mean)
                .with("gap_se", improvement.standard_error);
            if !certificate.within(tolerance) {
                state.failed += 1;
                let status = (state.failed >= PATIENCE).then(|| Status::Stalled {
                    at: iteration,
                    reason: format!(
                        "Jensen halved the step size until the bound no longer rose, but a second-order polish \
                         on all records finds {:.2} ± {:.2} nats more",
                        improvement.mean, improvement.standard_error
                    ),
                });
                return (record, status);
            }
            Evidence {
                rule: format!(
                    "a second-order polish on all records finds no more than {tolerance} nats"
                ),
                remaining: Some(improvement.mean),
                standard_error: Some(improvement.standard_error),
            }
        } else {
            Evidence {
                rule: format!(
                    "{STILL} windows of {} iterations at falling step sizes gained at most {} nats each",
                    self.window(judge),
                    judge.tolerance.min(0.1)
                ),
                remaining: Some(gain.mean),
                standard_error: Some(gain.standard_error),
            }
        };
        (record, Some(Status::Converged { evidence }))
    }
}

impl<D: RecordDensity> Algorithm for Minibatch<'_, D> {
    type State = MinibatchState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<MinibatchState, Status> {
        let n = self.start.len();
        Ok(MinibatchState {
            omega: self.start.clone(),
            optimiser: OptimiserState::new(n),
            table: self.gradients.table(self.settings.estimator),
            watches: self
                .watched
                .iter()
                .map(|&estimator| Watch::new(self.gradients.table(estimator)))
                .collect(),
            sum: vec![0.0; n],
            summed: 0,
            best: Vec::new(),
            scale: 1.0,
            still: 0,
            failed: 0,
            rejected: 0,
            clean: true,
            calls: 0,
        })
    }

    fn step(&mut self, state: &mut MinibatchState, iteration: u64) -> Step {
        self.prepare(state, iteration);
        let (epoch, k) = self.batches.position(iteration);
        let last = k + 1 == self.batches.per_epoch();
        self.gradients.noise(self.seed, iteration, &mut self.noise);
        let rows = self.gradients.family().noise_dim();
        let visit = self.settings.estimator.remembers() && self.visits(epoch);
        let request = GradientRequest {
            estimator: self.settings.estimator,
            omega: &state.omega,
            noise: Lanes::new(&self.noise, rows, self.settings.draws),
            batch: self.order.batch(&self.batches, iteration),
            visit,
        };
        let mut record = Record::default();
        let mut status = None;
        // The step changes the iterate at which tables are renewed.
        let before = match self.watched.is_empty() {
            true => Vec::new(),
            false => state.omega.clone(),
        };
        if let Some(variance) = &self.settings.variance
            && iteration.is_multiple_of(variance.every.max(1))
        {
            let point = EvaluationPoint {
                omega: &state.omega,
                table: &state.table,
                batches: &self.batches,
                seed: self.seed,
                iteration,
                samples: variance.samples,
            };
            let own = (self.settings.estimator, &state.table);
            let others = state.watches.iter().map(|watch| &watch.table);
            let others: Vec<_> = self.watched.iter().copied().zip(others).collect();
            record = trace_variances(&mut self.gradients, own, &others, &point, record);
        }
        let finite = self
            .gradients
            .evaluate(&request, &state.table, &mut self.gradient);
        if finite {
            state.rejected = 0;
            if visit {
                let complete = state.table.complete || (last && state.clean);
                self.gradients.visit(&request, &mut state.table, complete);
            }
            let (optimiser, scale) = (&self.settings.optimiser, state.scale);
            let memory = &mut state.optimiser;
            optimiser.step(memory, &self.gradient, scale, &mut state.omega);
            if self.settings.judge.is_some() {
                crate::reduce::axpy(1.0, &state.omega, &mut state.sum);
                state.summed += 1;
            }
        } else {
            state.clean = false;
            state.rejected += 1;
            record = record.with("rejected", 1.0);
            if state.rejected >= REJECTED {
                status = Some(Status::Diverged {
                    at: iteration,
                    reason: format!(
                        "no finite gradient in {REJECTED} iterations; try a smaller step size"
                    ),
                });
            }
        }
        if let Some(judge) = self.settings.judge
            && status.is_none()
            && iteration.is_multiple_of(self.window(&judge))
            && state.summed > 0
        {
            (record, status) = self.end_window(&judge, state, iteration, record);
        }
        state.calls += self.gradients.take_calls();
        if !self.watched.is_empty() {
            self.watch(&before, &mut state.watches, iteration);
            self.gradients.take_calls();
        }
        record.oracle_calls = state.calls;
        Step { record, status }
    }

    fn output(&mut self, state: &MinibatchState) -> Vec<f64> {
        MethodState::omega(state).to_vec()
    }
}
