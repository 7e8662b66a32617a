//! The joint control variate for arbitrary doubly stochastic objectives.

use jensen_math::rng;
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Archive, ArchiveError, Record, Snapshot, Status, Step};
use serde::{Deserialize, Serialize};

use super::batches::{Batches, Order};
use super::gradients::{all_finite, fill_noise};
use super::table::{Slots, Store, Table};
use super::{RecordError, RecordEstimator};
use crate::noise::NoiseSource;
use crate::optimiser::{Optimiser, OptimiserState};
use crate::reduce::axpy;

/// An objective `f(w) = Eₙ E_ε f(w; n, ε)` that is to be minimised, together with an approximation f̃ whose expectation
/// over ε is known. The index n is uniform over N records, and each record has an independent standard normal ε.
///
/// The noise of a batch is a `batch × noise_dim` matrix, stored row by row. Every method adds its result to the output
/// with the factor `scale`.
pub trait DoublyStochastic: Sync {
    /// Returns the number of parameters in w.
    fn parameters(&self) -> usize;

    /// Returns the number N of records.
    fn records(&self) -> usize;

    /// Returns the number of standard normal numbers that each record needs in each iteration.
    fn noise_dim(&self) -> usize;

    /// Adds `Σ ∇f(w; n, εₙ)` to `out`, and returns `Σ f(w; n, εₙ)`. Both sums are over the records of the batch.
    fn add_gradient(
        &self,
        w: &[f64],
        batch: &[u32],
        noise: &[f64],
        scale: f64,
        out: &mut [f64],
    ) -> f64;

    /// Adds `Σ ∇f̃(w; n, εₙ)` to `at_noise` and `Σ E_ξ ∇f̃(w; n, ξ)` to `expected`. Both sums are over the records of
    /// the batch.
    fn add_surrogate(
        &self,
        w: &[f64],
        batch: &[u32],
        noise: &[f64],
        scale: f64,
        at_noise: &mut [f64],
        expected: &mut [f64],
    );
}

/// The settings of [`Generic`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenericSettings {
    /// The gradient estimator, which is `naive`, `cv`, `joint` or `joint-svrg`.
    pub estimator: RecordEstimator,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The number of records per batch.
    pub batch: usize,
    /// The number of initial epochs that use the naive estimator. For `joint` it is at least 1.
    pub warm_up: u64,
    /// The largest number of bytes for the snapshots of parameters.
    pub memory_limit: Option<u64>,
}

/// Stochastic gradient descent on a [`DoublyStochastic`] objective. Its result is the parameter vector w. It is
/// Algorithm 3 of Wang, Geffner and Domke (2024). The other estimators that the paper compares are also available.
///
/// ```text
/// g = 1/|B| Σ_B [∇f(w; n, ε) − ∇f̃(wⁿ; n, ε)] + G      G = 1/N Σₘ E_ξ ∇f̃(wᵐ; m, ξ)
/// ```
///
/// The listing in the paper initialises G at the current w, while the table contains older parameters. The resulting
/// bias never decays. This implementation instead accumulates G while it fills the table.
pub struct Generic<'a, O: DoublyStochastic> {
    objective: &'a O,
    settings: GenericSettings,
    source: NoiseSource,
    batches: Batches,
    start: Vec<f64>,
    order: Order,
    noise: Vec<f64>,
}

/// The state of [`Generic`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct GenericState {
    w: Vec<f64>,
    optimiser: OptimiserState,
    table: Table,
}

impl GenericState {
    /// Returns the current iterate w.
    pub fn w(&self) -> &[f64] {
        &self.w
    }
}

const NOISE: rng::Purpose = rng::Purpose::new("blackbox")
    .fold("records")
    .fold("generic");

impl<'a, O: DoublyStochastic> Generic<'a, O> {
    /// Creates a run that starts at the parameters `start`.
    ///
    /// # Errors
    /// Fails if the combination of batch size, warm-up and estimator is invalid, or if the snapshots would exceed the
    /// memory limit.
    pub fn new(
        objective: &'a O,
        seed: u64,
        settings: GenericSettings,
        start: Vec<f64>,
    ) -> Result<Self, RecordError> {
        let batches = Batches::new(seed, objective.records(), settings.batch)?;
        let estimator = settings.estimator;
        if !matches!(
            estimator,
            RecordEstimator::Naive
                | RecordEstimator::Cv
                | RecordEstimator::Joint
                | RecordEstimator::JointSvrg
        ) {
            return Err(RecordError::Setting(format!(
                "`{estimator}` estimates only gradients of variational bounds; choose naive, cv, joint or \
                 joint-svrg"
            )));
        }
        if estimator.remembers() && settings.warm_up == 0 {
            return Err(RecordError::Setting(format!(
                "the estimator `{estimator}` needs at least one epoch of warm-up"
            )));
        }
        if start.len() != objective.parameters() {
            return Err(RecordError::Setting(format!(
                "{} starting values for {} parameters",
                start.len(),
                objective.parameters()
            )));
        }
        let slots = match estimator {
            RecordEstimator::Joint => 2 * batches.per_epoch() as u64 - 1,
            RecordEstimator::JointSvrg => 1,
            _ => 0,
        };
        let bytes = |slots: u64| 8 * (slots + 8) * start.len() as u64;
        if let Some(limit) = settings.memory_limit
            && bytes(slots) > limit
        {
            return Err(RecordError::Memory {
                what: "the snapshots of the parameters",
                needed: bytes(slots),
                limit,
                svrg: (slots > 1).then(|| bytes(1)),
            });
        }
        Ok(Self {
            objective,
            settings,
            source: NoiseSource::new(seed, Simd::detect()),
            batches,
            start,
            order: Order::default(),
            noise: Vec::new(),
        })
    }

    fn table(&self) -> Table {
        let store = match self.settings.estimator {
            RecordEstimator::Joint => Store::Slots(Slots::new(self.objective.records(), true)),
            RecordEstimator::JointSvrg => Store::Anchor {
                mean: Vec::new(),
                predictors: Vec::new(),
            },
            _ => return Table::nothing(),
        };
        Table {
            store,
            sum: vec![0.0; self.start.len()],
            diagonal: Vec::new(),
            complete: false,
        }
    }

    fn anchor(&self, w: &[f64], table: &mut Table) {
        if let Store::Anchor { mean, .. } = &mut table.store {
            mean.clear();
            mean.extend_from_slice(w);
        }
        table.sum.fill(0.0);
        let n = self.objective.records();
        let all: Vec<u32> = (0..n as u32).collect();
        let mut unused = vec![0.0; w.len()];
        for batch in all.chunks(self.settings.batch) {
            let noise = vec![0.0; batch.len() * self.objective.noise_dim()];
            let scale = 1.0 / n as f64;
            let sum = &mut table.sum;
            self.objective
                .add_surrogate(w, batch, &noise, scale, &mut unused, sum);
        }
        table.complete = true;
    }

    fn control(
        &self,
        state: &GenericState,
        batch: &[u32],
        noise: &[f64],
        g: &mut [f64],
    ) -> Option<Vec<f64>> {
        let (n, count) = (state.w.len(), self.objective.records() as f64);
        let scale = 1.0 / batch.len() as f64;
        let (mut at_noise, mut expected) = (vec![0.0; n], vec![0.0; n]);
        let table = &state.table;
        match (&table.store, self.settings.estimator) {
            (_, RecordEstimator::Cv) => {
                let w = &state.w;
                self.objective
                    .add_surrogate(w, batch, noise, scale, &mut at_noise, &mut expected);
                axpy(1.0, &expected, g);
                axpy(-1.0, &at_noise, g);
                None
            }
            (Store::Anchor { mean, .. }, _) if table.complete => {
                self.objective.add_surrogate(
                    mean,
                    batch,
                    noise,
                    scale,
                    &mut at_noise,
                    &mut expected,
                );
                axpy(1.0, &table.sum, g);
                axpy(-1.0, &at_noise, g);
                None
            }
            (Store::Slots(slots), _) => {
                let width = self.objective.noise_dim();
                let mut old = vec![0.0; n];
                if table.complete {
                    let position = |record: u32| batch.iter().position(|&b| b == record);
                    for (slot, records) in slots.group(batch.iter().copied()).iter() {
                        let rows: Vec<f64> = records
                            .iter()
                            .filter_map(|&record| position(record))
                            .flat_map(|b| noise[b * width..(b + 1) * width].iter().copied())
                            .collect();
                        let w = &slots.slot(slot).values;
                        self.objective.add_surrogate(
                            w,
                            records,
                            &rows,
                            scale,
                            &mut at_noise,
                            &mut old,
                        );
                    }
                    axpy(1.0, &table.sum, g);
                    axpy(-1.0, &at_noise, g);
                }
                let w = &state.w;
                self.objective
                    .add_surrogate(w, batch, noise, scale, &mut at_noise, &mut expected);
                axpy(-1.0, &old, &mut expected);
                let share = batch.len() as f64 / count;
                expected.iter_mut().for_each(|x| *x *= share);
                Some(expected)
            }
            _ => None,
        }
    }
}

impl<O: DoublyStochastic> Algorithm for Generic<'_, O> {
    type State = GenericState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<GenericState, Status> {
        Ok(GenericState {
            w: self.start.clone(),
            optimiser: OptimiserState::new(self.start.len()),
            table: self.table(),
        })
    }

    fn step(&mut self, state: &mut GenericState, iteration: u64) -> Step {
        let (epoch, k) = self.batches.position(iteration);
        let warm = epoch < self.settings.warm_up;
        if self.settings.estimator == RecordEstimator::JointSvrg && k == 0 && !warm {
            self.anchor(&state.w, &mut state.table);
        }
        let batch = self.order.batch(&self.batches, iteration).to_vec();
        let (width, n) = (self.objective.noise_dim(), state.w.len());
        let numbers = width * batch.len();
        fill_noise(self.source, NOISE, iteration, numbers, 1, &mut self.noise);
        let mut g = vec![0.0; n];
        let scale = 1.0 / batch.len() as f64;
        let value = self
            .objective
            .add_gradient(&state.w, &batch, &self.noise, scale, &mut g);
        let visits =
            self.settings.estimator == RecordEstimator::Joint && epoch + 1 >= self.settings.warm_up;
        let controlled = match self.settings.estimator {
            RecordEstimator::Cv => true,
            RecordEstimator::JointSvrg => !warm,
            _ => visits,
        };
        let mut change = None;
        if controlled {
            change = self.control(state, &batch, &self.noise, &mut g);
        }
        let mut record = Record::new(iteration).with("value", value * scale);
        let finite = all_finite(&g) && change.iter().all(|part| all_finite(part));
        if !finite {
            let reason = "the gradient is not finite; try a smaller step size".to_owned();
            record = record.with("rejected", 1.0);
            return Step::finish(
                record,
                Status::Diverged {
                    at: iteration,
                    reason,
                },
            );
        }
        if let Some(change) = change {
            axpy(1.0, &change, &mut state.table.sum);
            if let Store::Slots(slots) = &mut state.table.store {
                slots.assign(&batch, &[], &state.w);
            }
            state.table.complete |= k + 1 == self.batches.per_epoch();
        }
        // The optimisers maximise, so the gradient changes sign.
        g.iter_mut().for_each(|g| *g = -*g);
        let optimiser = &self.settings.optimiser;
        optimiser.step(&mut state.optimiser, &g, 1.0, &mut state.w);
        Step::go_on(record)
    }

    fn output(&mut self, state: &GenericState) -> Vec<f64> {
        state.w.clone()
    }
}

impl Snapshot for GenericState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("w", &self.w);
        archive.nest("optimiser", self.optimiser.save());
        archive.nest("table", self.table.save());
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            w: archive.vec("w")?,
            optimiser: OptimiserState::restore(&archive.nested("optimiser"))?,
            table: Table::restore(&archive.nested("table"))?,
        })
    }
}
