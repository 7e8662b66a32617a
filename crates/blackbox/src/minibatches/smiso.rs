//! Incremental minimisation with exponential averages (SMISO; Bietti and Mairal 2017).

use std::sync::Arc;

use jensen_density::{AllRecords, Lanes, LanesMut, LogDensity, RecordDensity, TwiceDifferentiable};
use jensen_math::rng;
use jensen_math::simd::Simd;
use jensen_run::{Algorithm, Archive, ArchiveError, Record, SettingError, Snapshot, Status, Step};
use serde::{Deserialize, Serialize};

use super::minibatch::REJECTED;
use crate::calls::Calls;
use crate::engine::{Beginning, Engine, Fitting, MethodSettings, MethodState};
use crate::error::{FitError, positive};
use crate::family::Family;
use crate::records::{Batches, GradientRequest, Gradients, RecordError, RecordEstimator, Table};
use crate::reduce::{axpy, dot};

/// The settings of [`Smiso`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SmisoSettings {
    /// The weight α of the most recent step in an entry, in (0, 1].
    pub alpha: f64,
    /// The step size γ of an entry. The iterate moves by `α γ |B| / N` times the gradient. The default is half the
    /// reciprocal of the largest curvature of the log density at the start, which is computed from Hessian-vector
    /// products.
    pub gamma: Option<f64>,
    /// The weight β of the previous step in the next one, in [0, 1). The value 0 gives the algorithm of the paper.
    pub momentum: f64,
    /// The number of records per batch.
    pub batch: usize,
    /// The number of draws per iteration.
    pub draws: usize,
    /// The largest number of bytes for the entries.
    pub memory_limit: Option<u64>,
}

impl MethodSettings for SmisoSettings {
    const NAME: &'static str = "smiso";

    fn validate(&self) -> Result<(), SettingError> {
        positive([
            ("alpha", self.alpha),
            ("gamma", self.gamma.unwrap_or(1.0)),
            ("draws", self.draws as f64),
        ])?;
        if (0.0..1.0).contains(&self.momentum) {
            return Ok(());
        }
        Err(SettingError::new(format!(
            "the setting momentum must be at least 0 and below 1, not {}",
            self.momentum
        )))
    }

    fn lanes(&self, _dim: usize) -> usize {
        self.draws
    }

    fn batch(&self) -> Option<usize> {
        Some(self.batch)
    }
}

impl Fitting for SmisoSettings {
    type State = SmisoState;

    fn begin<'a, D: TwiceDifferentiable>(
        &self,
        at: Beginning<'a, D>,
    ) -> Result<Box<dyn Engine + 'a>, FitError> {
        let prepared = at.prepared()?;
        let settings = Self {
            memory_limit: self.memory_limit.or(prepared.memory_limit()),
            ..*self
        };
        let seed = at.source.seed();
        let fit = Smiso::new(prepared.records(), at.family, seed, settings, at.omega)?;
        Ok(Box::new(fit.with_simd(at.source.simd())))
    }

    fn share(&self, records: u64) -> (u64, u64) {
        (1, records)
    }
}

/// The SMISO algorithm (Eqs. 18, 19 and 25 of Wang, Geffner and Domke 2024, written for the ELBO instead of its
/// negative). Its result is the vector of parameters ω.
///
/// ```text
/// w_g ← (1 − α) w_g + α (w̄ + γ ∇L_g(w̄))      w̄ ← w̄ + |g|/N (w_g' − w_g)
/// ```
///
/// The records are divided into batches once, and each epoch only reorders the batches. The method therefore stores one
/// mean entry per batch, that is, ⌈N/B⌉ entries instead of N. The iterate is always the weighted mean of the entries,
/// which makes the steps unbiased. Adaptive steps would violate this property, so the method has none.
///
/// The paper leaves open how to add momentum without violating the property. Jensen adds the momentum β v to the iterate
/// and to *every* entry, where v is the previous change of the iterate (Polyak 1964, the heavy ball):
///
/// ```text
/// u ← |g|/N (w_g' − w_g)      w̄ ← w̄ + u + β v      w_n ← w_n + β v for all n      v ← u + β v
/// ```
///
/// A common translation preserves the mean of the entries and every difference w̄ − w_n, which is the control variate of
/// the step. The steps therefore remain unbiased. The method stores the sum of all translations instead of moving the
/// entries, so momentum costs two vectors and no pass over the entries.
pub struct Smiso<'a, D: RecordDensity> {
    density: &'a D,
    settings: SmisoSettings,
    seed: u64,
    batches: Batches,
    groups: Batches,
    members: Vec<u32>,
    start: Vec<f64>,
    gradients: Gradients<'a, D>,
    order: (Option<u64>, Vec<u32>),
    noise: Vec<f64>,
    gradient: Vec<f64>,
}

/// The state of [`Smiso`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct SmisoState {
    omega: Vec<f64>,
    /// The entries without their common translation.
    entries: Vec<f64>,
    /// The common translation of the entries, which is the sum of all momentum.
    translation: Vec<f64>,
    /// The last change of the iterate.
    velocity: Vec<f64>,
    gamma: f64,
    rejected: u64,
    calls: u64,
}

impl SmisoState {
    /// Moves the iterate and all entries by the momentum, after the iterate has changed by `share` times `change`.
    fn push(&mut self, momentum: f64, share: f64, change: &[f64]) {
        if momentum == 0.0 {
            return;
        }
        self.velocity.iter_mut().for_each(|v| *v *= momentum);
        axpy(1.0, &self.velocity, &mut self.omega);
        axpy(1.0, &self.velocity, &mut self.translation);
        axpy(share, change, &mut self.velocity);
    }
}

impl MethodState for SmisoState {
    fn omega(&self) -> &[f64] {
        &self.omega
    }

    /// Counts each gradient of a single record at a single draw.
    fn calls(&self) -> Calls {
        Calls {
            gradients: self.calls,
            ..Calls::default()
        }
    }
}

/// The number of iterations of the power method. They determine the largest curvature to within a tenth.
const PRODUCTS: usize = 12;

const DIRECTION: rng::Purpose = rng::Purpose::new("blackbox")
    .fold("records")
    .fold("smiso direction");

/// Returns the largest curvature of the log density at a point, or 1 if there is no curvature.
fn largest_curvature<D: RecordDensity>(density: &D, point: &[f64], seed: u64) -> f64 {
    let all = AllRecords::new(density);
    let d = point.len();
    let mut ws = all.workspace(1);
    all.linearize(&mut ws, Lanes::new(point, d, 1));
    let mut v = vec![0.0; d];
    let mut stream = rng::Stream::new(seed, DIRECTION, 0, 0);
    v.iter_mut().for_each(|x| *x = 2.0 * stream.uniform() - 1.0);
    let mut product = vec![0.0; d];
    let mut size = 0.0;
    for _ in 0..PRODUCTS {
        let length = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|x| *x /= length);
        all.apply(
            &mut ws,
            Lanes::new(&v, d, 1),
            LanesMut::new(&mut product, d, 1),
        );
        size = dot(&product, &product).sqrt();
        if !(size > 0.0 && size.is_finite()) {
            return 1.0;
        }
        std::mem::swap(&mut v, &mut product);
    }
    size
}

impl<'a, D: RecordDensity> Smiso<'a, D> {
    /// Creates a fit of `family` that starts at the parameters `start`.
    ///
    /// # Errors
    /// Fails if the combination of batch size, draws and α is invalid, or if the entries would exceed the memory limit.
    pub fn new(
        density: &'a D,
        family: Arc<dyn Family>,
        seed: u64,
        settings: SmisoSettings,
        start: Vec<f64>,
    ) -> Result<Self, RecordError> {
        let batches = Batches::new(seed, density.records(), settings.batch)?;
        let groups = Batches::new(seed, batches.per_epoch(), 1)?;
        if !(settings.alpha > 0.0 && settings.alpha <= 1.0) || settings.draws == 0 {
            return Err(RecordError::Setting(format!(
                "SMISO needs a weight in (0, 1] and at least one draw, but the weight is {} and the number of \
                 draws {}",
                settings.alpha, settings.draws
            )));
        }
        if start.len() != family.parameters() {
            return Err(RecordError::Setting(format!(
                "{} starting values for {} parameters",
                start.len(),
                family.parameters()
            )));
        }
        let needed = 8 * (batches.per_epoch() as u64 + 8) * start.len() as u64;
        if let Some(limit) = settings.memory_limit
            && needed > limit
        {
            return Err(RecordError::Memory {
                what: "an entry a batch for SMISO",
                needed,
                limit,
                svrg: None,
            });
        }
        if let Some(gamma) = settings.gamma
            && !(gamma > 0.0 && gamma.is_finite())
        {
            return Err(RecordError::Setting(format!(
                "SMISO needs a positive step size, not {gamma}"
            )));
        }
        if !(0.0..1.0).contains(&settings.momentum) {
            return Err(RecordError::Setting(format!(
                "SMISO needs a momentum of at least 0 and below 1, not {}",
                settings.momentum
            )));
        }
        Ok(Self {
            density,
            settings,
            seed,
            members: batches.order(0),
            batches,
            groups,
            gradient: vec![0.0; start.len()],
            start,
            gradients: Gradients::new(density, family, settings.draws, settings.batch),
            order: (None, Vec::new()),
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
}

impl<D: RecordDensity> Algorithm for Smiso<'_, D> {
    type State = SmisoState;
    type Output = Vec<f64>;

    fn init(&mut self) -> Result<SmisoState, Status> {
        let mean = &self.start[..self.density.dim()];
        let gamma = self
            .settings
            .gamma
            .unwrap_or_else(|| 0.5 / largest_curvature(self.density, mean, self.seed));
        Ok(SmisoState {
            omega: self.start.clone(),
            entries: self.start.repeat(self.batches.per_epoch()),
            translation: vec![0.0; self.start.len()],
            velocity: vec![0.0; self.start.len()],
            gamma,
            rejected: 0,
            calls: 0,
        })
    }

    fn step(&mut self, state: &mut SmisoState, iteration: u64) -> Step {
        let (epoch, k) = self.batches.position(iteration);
        if self.order.0 != Some(epoch) {
            self.order = (Some(epoch), self.groups.order(epoch));
        }
        let group = self.order.1[k] as usize;
        let batch = &self.members[self.batches.range(group)];
        self.gradients.noise(self.seed, iteration, &mut self.noise);
        let rows = self.gradients.family().noise_dim();
        let request = GradientRequest {
            estimator: RecordEstimator::Naive,
            omega: &state.omega,
            noise: Lanes::new(&self.noise, rows, self.settings.draws),
            batch,
            visit: false,
        };
        let share = batch.len() as f64 / self.batches.records() as f64;
        let finite = self
            .gradients
            .evaluate(&request, &Table::nothing(), &mut self.gradient);
        let mut record = Record::default();
        let mut status = None;
        if finite {
            state.rejected = 0;
            let n = state.omega.len();
            let entry = &mut state.entries[group * n..(group + 1) * n];
            let (alpha, gamma) = (self.settings.alpha, state.gamma);
            // The change of the entry is written over the gradient.
            for (((g, w), mean), moved) in self
                .gradient
                .iter_mut()
                .zip(entry.iter_mut())
                .zip(&state.omega)
                .zip(&state.translation)
            {
                *g = alpha * (mean + gamma * *g - (*w + moved));
                *w += *g;
            }
            axpy(share, &self.gradient, &mut state.omega);
            state.push(self.settings.momentum, share, &self.gradient);
        } else {
            state.rejected += 1;
            // The last change led to a point without a finite gradient, so it is not continued.
            state.velocity.fill(0.0);
            record = record.with("rejected", 1.0);
            status = (state.rejected >= REJECTED).then(|| Status::Diverged {
                at: iteration,
                reason: format!(
                    "no finite gradient in {REJECTED} iterations; try a smaller step size γ"
                ),
            });
        }
        state.calls += self.gradients.take_calls();
        record.oracle_calls = state.calls;
        Step { record, status }
    }

    fn output(&mut self, state: &SmisoState) -> Vec<f64> {
        state.omega.clone()
    }
}

impl Snapshot for SmisoState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("omega", &self.omega);
        archive.put("entries", &self.entries);
        archive.put("translation", &self.translation);
        archive.put("velocity", &self.velocity);
        archive.put("gamma", &[self.gamma]);
        archive.set("counts", [self.rejected, self.calls]);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let [rejected, calls] = archive.get("counts")?;
        Ok(Self {
            omega: archive.vec("omega")?,
            entries: archive.vec("entries")?,
            translation: archive.vec("translation")?,
            velocity: archive.vec("velocity")?,
            gamma: archive.vec_of("gamma", 1)?[0],
            rejected,
            calls,
        })
    }
}
