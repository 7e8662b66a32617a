//! Batch coordinate ascent and stochastic variational inference, for every engine and every temperature policy.
//!
//! [`Driver`] is an [`Algorithm`] of [`jensen_run`]. One step is one iteration of batch ascent or one minibatch. All
//! random numbers are keyed by seed, pass and block, and the state contains everything on which later steps depend. A
//! short run is therefore a prefix of a longer one, and a resumed run is bitwise identical to an uninterrupted one.
//!
//! Because of the order of its updates, a batch iteration is coordinate ascent on the tempered bound. The local steps
//! come first, at the current temperature. Then the temperature's distribution makes a damped step, based on the
//! expected log likelihood from the local steps. The global parameters are updated last. The bound is concave in the
//! temperature's distribution, so the damped step raises the bound. The trace shows the bound after the local steps.
//! Local tempering is not coordinate ascent, and its bound need not rise. Its global step matches only the first
//! sufficient statistic and counts every point as if its temperature were 1 (Mandt et al. 2016, Eq. 11).
//!
//! **Cooling.** At high temperatures, all components of a mixture are equal. If the components of a fit are still equal
//! when the temperature reaches 1, they remain equal. If merged components have their own variances, they explain the
//! whole spread of the data. At a temperature T above 1, small differences between them do not grow, because an
//! iteration multiplies them by at most 1/T. While a cooling policy is hot, part of the statistics therefore comes from
//! the random start ([`Engine::lean`]). Near T = 1, differences between merged components grow again, so this part
//! restores the differences that the components had at the start. At T = 1 the part is 0. Batch ascent then makes a
//! second run without tempering from the same start, and keeps the better of the two results. The final bound is
//! therefore never below the bound of a fit without cooling. Stochastic fits have no bounds to compare and make no
//! second run. They restart their step sizes when T reaches 1, because little has converged by then.
//!
//! **Twins.** If components still become equal, the driver restarts one component of each pair
//! ([`Engine::part_twins`]), up to three times. Batch ascent does so when it converges, and again keeps the better
//! result. Stochastic fits do so before passes 3, 5 and 9 after the cooling, and then also restart the step sizes.

use jensen_run::{
    Algorithm, Archive, ArchiveError, Evidence, Limit, Record, Snapshot, Status, Step,
};
use serde::{Deserialize, Serialize};

use crate::documents::Order;
use crate::engine::{Engine, Heat, Measure, Sums};
use crate::policy::{Thermostat, floor, scheduled, settled};
use crate::temper::Temper;

/// The order in which iterations visit the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Coordinate ascent, which visits all points in every iteration.
    Batch {
        /// Relative tolerance of the bound. The run has converged when, in three consecutive iterations after the
        /// temperature schedule, the bound changed by less than this share of its magnitude.
        tolerance: f64,
        /// Largest number of iterations.
        max_iterations: u64,
    },
    /// Minibatches with Robbins–Monro step sizes ρ_t = (τ + t)^(−κ), t = 0, 1, …. The points are reshuffled before
    /// every pass.
    Stochastic {
        /// Number of points in a minibatch.
        batch: usize,
        /// Delay τ of the step sizes, which is at least 1.
        tau: f64,
        /// Forgetting rate κ of the step sizes, in (0.5, 1].
        kappa: f64,
        /// Number of passes over the data, which need not be an integer.
        passes: f64,
        /// Number of points that the statistics represent. By default it is the number of points in the data.
        population: Option<f64>,
        /// Number of steps that earlier fits made. A continued fit continues the sequence of step sizes after this
        /// step.
        steps_before: u64,
    },
}

/// Settings of a driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverSettings {
    /// The order in which iterations visit the data.
    pub mode: Mode,
    /// The temperature policy.
    pub temper: Temper,
    /// Seed of every random number.
    pub seed: u64,
    /// Number of times per pass that the driver adds the engine's scores to the trace. In batch mode, 1 adds the scores
    /// in every iteration, and 0 never adds them.
    pub scores_per_pass: f64,
}

/// The state of a fit.
#[derive(Clone, Debug)]
pub struct FitState<G, T> {
    /// The global parameters of the engine.
    pub globals: G,
    /// The expected log normalisers of local tempering.
    pub table: Option<T>,
    moved: f64,
    /// The distribution q(y) of the temperature, for global tempering.
    pub thermostat: Option<Thermostat>,
    /// The mean inverse temperature of the last step.
    pub inverse: f64,
    /// Number of points used so far.
    pub used: u64,
    /// Number of empty points that were skipped.
    pub skipped: u64,
    bound: Option<f64>,
    calm: u64,
    /// The best result of batch ascent so far, with its bound, while the run searches for a better result.
    aside: Option<(G, f64)>,
    /// Whether the plain run after a cooling has started.
    plain: bool,
    parted: u64,
    /// The iteration at which the sequence of step sizes started.
    counted: u64,
}

impl<G, T> FitState<G, T> {
    pub(crate) fn cool(&mut self) {
        if let Some(thermostat) = &mut self.thermostat {
            thermostat.cool();
            self.inverse = 1.0;
        }
    }
}

impl<G: Snapshot, T: Snapshot> Snapshot for FitState<G, T> {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("globals", self.globals.save());
        if let Some(table) = &self.table {
            archive.nest("table", table.save());
        }
        if let Some(thermostat) = &self.thermostat {
            archive.nest("thermostat", thermostat.save());
        }
        archive.set("has_table", self.table.is_some());
        archive.set("has_thermostat", self.thermostat.is_some());
        archive.put("inverse", &[self.inverse, self.moved]);
        archive.set("used", self.used);
        archive.set("skipped", self.skipped);
        archive.put("bound", self.bound.as_slice());
        archive.set("calm", self.calm);
        archive.set("has_cooled", self.aside.is_some());
        if let Some((globals, bound)) = &self.aside {
            archive.nest("cooled", globals.save());
            archive.put("cooled_bound", &[*bound]);
        }
        archive.set("plain", self.plain);
        archive.set("parted", self.parted);
        archive.set("counted", self.counted);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let scalars = archive.vec_of("inverse", 2)?;
        let table = archive.get::<bool>("has_table")?;
        let thermostat = archive.get::<bool>("has_thermostat")?;
        Ok(Self {
            globals: G::restore(&archive.nested("globals"))?,
            table: table
                .then(|| T::restore(&archive.nested("table")))
                .transpose()?,
            thermostat: thermostat
                .then(|| Thermostat::restore(&archive.nested("thermostat")))
                .transpose()?,
            inverse: scalars[0],
            moved: scalars[1],
            used: archive.get("used")?,
            skipped: archive.get("skipped")?,
            bound: archive.vec("bound")?.first().copied(),
            calm: archive.get("calm")?,
            // Checkpoints of earlier versions contain no second run, except the run after a cooling.
            aside: if archive.get("has_cooled").unwrap_or(false) {
                let globals = G::restore(&archive.nested("cooled"))?;
                Some((globals, archive.vec_of("cooled_bound", 1)?[0]))
            } else {
                None
            },
            plain: (archive.get("plain"))
                .unwrap_or_else(|_| archive.get("has_cooled").unwrap_or(false)),
            parted: archive.get("parted").unwrap_or(0),
            counted: archive.get("counted").unwrap_or(0),
        })
    }
}

/// The algorithm that fits an engine's model.
pub struct Driver<E: Engine> {
    /// The model with its data.
    pub engine: E,
    settings: DriverSettings,
    start: Option<E::Globals>,
    order: Option<Order>,
    indices: Vec<usize>,
}

struct Local {
    sums: Sums,
    rho: f64,
    scale: f64,
}

impl Local {
    fn mean_inverse(&self) -> f64 {
        self.sums.inverse / self.sums.points.max(1) as f64
    }
}

/// Near T = 1, the share of the random start in the statistics is this slope times 1 − 1/T. With this value, four
/// fifths of the differences between the components at the start remain at T = 1.
const SLOPE: f64 = 4.0;

/// Numbers of passes after which a stochastic fit restarts equal components. Batch ascent restarts them the same number
/// of times.
const PARTED: [u64; 3] = [2, 4, 8];

/// Batch ascent stops after this number of iterations without a noticeable change.
const CALM: u64 = 3;

impl<E: Engine> Driver<E> {
    /// Creates a run of `engine` from its random start.
    pub fn new(engine: E, settings: DriverSettings) -> Self {
        Self {
            engine,
            settings,
            start: None,
            order: None,
            indices: Vec::new(),
        }
    }

    /// Creates a run of `engine` from given global parameters.
    pub fn starting_at(engine: E, settings: DriverSettings, start: E::Globals) -> Self {
        Self {
            start: Some(start),
            ..Self::new(engine, settings)
        }
    }

    /// Returns the number of iterations in one pass.
    pub fn iterations_per_pass(&self) -> u64 {
        match self.settings.mode {
            Mode::Batch { .. } => 1,
            Mode::Stochastic { batch, .. } => self.engine.points().div_ceil(batch).max(1) as u64,
        }
    }

    /// Returns the number of iterations that the settings allow.
    pub fn planned_iterations(&self) -> u64 {
        match self.settings.mode {
            Mode::Batch { max_iterations, .. } => max_iterations,
            Mode::Stochastic { passes, .. } => {
                ((passes * self.iterations_per_pass() as f64).ceil() as u64).max(1)
            }
        }
    }

    fn due(rate: f64, done: u64, per_pass: u64) -> bool {
        let count = |n: u64| (n as f64 * rate / per_pass as f64).floor();
        done > 0 && count(done) > count(done - 1)
    }

    /// Runs the local steps of a batch. No inverse temperature is below `floor`.
    fn local(
        &mut self,
        state: &mut FitState<E::Globals, E::Table>,
        done: u64,
        floor: f64,
        measure: Measure,
    ) -> Option<Local> {
        let n = self.engine.points();
        let (batch, rho, population) = match &self.settings.mode {
            Mode::Batch { .. } => (n, 1.0, n as f64),
            Mode::Stochastic {
                batch,
                tau,
                kappa,
                population,
                steps_before,
                ..
            } => (
                *batch,
                (tau + (steps_before + self.steps(done, state.counted)) as f64).powf(-kappa),
                population.unwrap_or(n as f64),
            ),
        };
        let per_pass = self.iterations_per_pass();
        self.indices.clear();
        if matches!(self.settings.mode, Mode::Batch { .. }) {
            self.indices.extend(0..n);
        } else {
            let pass = done / per_pass;
            let order = match &mut self.order {
                Some(order) if order.pass() == pass => order,
                slot => slot.insert(Order::new(self.settings.seed, pass, n, self.engine.block())),
            };
            let first = (done % per_pass) as usize * batch;
            let last = (first + batch).min(n);
            self.indices.extend((first..last).map(|p| order.at(p)));
        }
        let grid;
        let heat = match (&self.settings.temper, &state.table) {
            (Temper::Local(_), Some(_)) if floor >= 1.0 => Heat::Uniform(1.0),
            (Temper::Local(local), Some(table)) => {
                grid = local.grid();
                Heat::Local {
                    grid: &grid,
                    floor,
                    // Starting at the mean of the last batch saves sweeps. Before the first visit of a point, only the
                    // prior determines the point's temperature. If points started hotter, one hot batch would keep all
                    // later batches hot.
                    first: state.inverse.max(grid.mean()).max(floor),
                    table,
                }
            }
            _ => Heat::Uniform(state.inverse),
        };
        let sums = self
            .engine
            .local_steps(&mut state.globals, &self.indices, &heat, measure)?;
        // Points without content also count as members of the population.
        let scale = population / self.indices.len().max(1) as f64;
        Some(Local { sums, rho, scale })
    }
}

impl<E: Engine> Algorithm for Driver<E> {
    type State = FitState<E::Globals, E::Table>;
    type Output = Self::State;

    fn init(&mut self) -> Result<Self::State, Status> {
        let seed = self.settings.seed;
        let globals = match self.start.take() {
            Some(globals) => globals,
            None => self.engine.start(seed),
        };
        let mut state = FitState {
            globals,
            table: None,
            moved: 0.0,
            thermostat: None,
            inverse: scheduled(&self.settings.temper, 0.0),
            used: 0,
            skipped: 0,
            bound: None,
            calm: 0,
            aside: None,
            plain: false,
            parted: 0,
            counted: 0,
        };
        let batch = matches!(self.settings.mode, Mode::Batch { .. });
        match &self.settings.temper {
            Temper::Global(global) => {
                let inverse: Vec<f64> = global.grid().iter().map(|t| 1.0 / t).collect();
                let partition = self.engine.log_partition(&inverse, global.draws, seed);
                if let Some(at) = partition.log_c.iter().position(|c| !c.is_finite()) {
                    return Err(Status::Diverged {
                        at: 0,
                        reason: format!("log C(T) is not finite at T = {:.3}", 1.0 / inverse[at]),
                    });
                }
                let thermostat = Thermostat::new(global, partition.log_c, batch);
                state.inverse = thermostat.mean_inverse();
                state.thermostat = Some(thermostat);
            }
            Temper::Local(local) => {
                let grid = local.grid();
                state.inverse = grid.mean();
                state.table = Some(self.engine.table(&state.globals, &grid.values, seed));
            }
            _ => {}
        }
        Ok(state)
    }

    fn step(&mut self, state: &mut Self::State, iteration: u64) -> Step {
        let done = iteration - 1;
        let per_pass = self.iterations_per_pass();
        let batch_mode = matches!(self.settings.mode, Mode::Batch { .. });
        let pass = done as f64 / per_pass as f64;
        self.part(state, done);
        let floor = self.warm(state, done, pass);
        let update = match &self.settings.temper {
            Temper::Global(global) => {
                let due = match global.every {
                    Some(every) => iteration.is_multiple_of(every),
                    None => Self::due(global.updates_per_pass, iteration, per_pass),
                };
                floor < 1.0 && (batch_mode || due)
            }
            _ => false,
        };
        let measure = Measure {
            energy: update,
            bound: batch_mode,
        };
        let Some(local) = self.local(state, done, floor, measure) else {
            // Repeating `warm` gives the same result.
            return Step {
                record: Record::new(state.used),
                status: Some(Status::Interrupted { at: done }),
            };
        };
        state.moved += local.rho;
        state.used += local.sums.points as u64;
        state.skipped += local.sums.skipped as u64;

        let mut record = Record::new(state.used).with("pass", iteration as f64 / per_pass as f64);
        let mut status = None;
        if batch_mode {
            let bound = self.bound(state, &local.sums, floor);
            record = record.with_elbo(bound, None);
            status = self.judge(state, bound, iteration, pass);
        }
        record = self.update(state, &local, update.then_some(floor), record);
        if let Some((_, bound)) = &state.aside {
            record = record.with("best_elbo", *bound);
        }
        let points = local.sums.points.max(1) as f64;
        record = record
            .with("temperature", 1.0 / local.mean_inverse())
            .with("step_size", local.rho)
            .with("sweeps", local.sums.sweeps as f64 / points);
        if local.sums.unconverged > 0 {
            record = record.with("unconverged", local.sums.unconverged as f64);
        }
        if Self::due(self.settings.scores_per_pass, iteration, per_pass) {
            record = self.engine.score(&state.globals, record);
        }
        if matches!(status, Some(Status::Converged { .. })) && self.goes_on(state) {
            status = None;
        }
        if status.is_none() && iteration >= self.planned_iterations() {
            status = Some(self.planned_end(iteration));
        }
        Step { record, status }
    }

    fn output(&mut self, state: &Self::State) -> Self::Output {
        let mut state = state.clone();
        if state.aside.is_some() {
            self.keep_better(&mut state);
        }
        state
    }
}

impl<E: Engine> Driver<E> {
    fn warm(&mut self, state: &mut FitState<E::Globals, E::Table>, done: u64, pass: f64) -> f64 {
        let temper = &self.settings.temper;
        let floor = floor(temper, pass);
        match temper {
            Temper::Global(_) => {}
            Temper::Local(local) => {
                let batch_mode = matches!(self.settings.mode, Mode::Batch { .. });
                let stale = batch_mode || state.moved >= local.refresh;
                if done > 0 && floor < 1.0 && stale {
                    state.moved = 0.0;
                    let grid = local.grid().values;
                    state.table =
                        Some(self.engine.table(&state.globals, &grid, self.settings.seed));
                }
            }
            _ => state.inverse = scheduled(temper, pass),
        }
        if state.thermostat.is_some() {
            state.inverse = state.inverse.max(floor);
        }
        floor
    }

    fn bound(&self, state: &FitState<E::Globals, E::Table>, sums: &Sums, floor: f64) -> f64 {
        // A cooling prescribes the temperature, so the temperature is then not a variable of the model.
        let inferred = state
            .thermostat
            .as_ref()
            .filter(|t| t.mean_inverse() >= floor);
        let y = inferred.map_or(0.0, Thermostat::bound);
        self.engine.global_bound(&state.globals) + sums.bound + y
    }

    /// Updates the global parameters. If `due` contains the lowest allowed inverse temperature, the distribution of the
    /// temperature makes a step first.
    fn update(
        &mut self,
        state: &mut FitState<E::Globals, E::Table>,
        local: &Local,
        due: Option<f64>,
        record: Record,
    ) -> Record {
        if let (Some(thermostat), Temper::Global(global), Some(floor)) =
            (&mut state.thermostat, &self.settings.temper, due)
        {
            // Batch ascent computes the energy exactly and needs no average over batches. Both modes damp the steps of
            // the temperature's distribution.
            let weight = match self.settings.mode {
                Mode::Batch { .. } => 1.0,
                Mode::Stochastic { .. } => global.damping,
            };
            thermostat.observe(local.sums.energy * local.scale, weight);
            thermostat.update(global.damping);
            let next = thermostat.mean_inverse().max(floor);
            let record = record.with("energy_noise", thermostat.energy_noise.sqrt());
            // The statistics contain the inverse temperature of the local steps, but the global step uses the new one.
            let scale = local.scale * (next / state.inverse);
            self.lean(next);
            self.engine
                .global_step(&mut state.globals, local.rho, scale);
            state.inverse = next;
            return record;
        }
        let mean_inverse = local.mean_inverse();
        self.lean(mean_inverse);
        self.engine
            .global_step(&mut state.globals, local.rho, local.scale);
        if state.table.is_some() {
            state.inverse = mean_inverse;
        }
        record
    }

    fn keep_better(&self, state: &mut FitState<E::Globals, E::Table>) {
        let Some((globals, bound)) = state.aside.take() else {
            return;
        };
        // The bound of an iteration does not include the gain from the next local steps.
        let at = |globals: &E::Globals| self.engine.untempered_bound(globals);
        let present = at(&state.globals).or(state.bound);
        let aside = at(&globals).unwrap_or(bound);
        if present.is_none_or(|present| present <= aside) {
            state.globals = globals;
            state.bound = Some(bound);
        }
    }

    /// Returns whether batch ascent continues to search for a better result after it has converged. After a cooling,
    /// batch ascent runs again from the start without a policy. If some components are equal, it restarts one component
    /// of each pair.
    fn goes_on(&mut self, state: &mut FitState<E::Globals, E::Table>) -> bool {
        self.keep_better(state);
        let (globals, seed) = (state.globals.clone(), self.settings.seed);
        if !state.plain && self.settings.temper.cooled_after().is_some() {
            state.plain = true;
            state.globals = self.engine.start(seed);
        } else if state.inverse == 1.0
            && state.parted < PARTED.len() as u64
            && self
                .engine
                .part_twins(&mut state.globals, seed, state.parted)
        {
            state.parted += 1;
        } else {
            return false;
        }
        state.aside = state.bound.take().map(|bound| (globals, bound));
        state.calm = 0;
        true
    }

    fn part(&mut self, state: &mut FitState<E::Globals, E::Table>, done: u64) {
        if matches!(self.settings.mode, Mode::Batch { .. }) {
            return;
        }
        let cooled = self.settings.temper.cooled_after().unwrap_or(0.0).ceil() as u64;
        let per_pass = self.iterations_per_pass();
        let passes = (done / per_pass).checked_sub(cooled);
        let due = done.is_multiple_of(per_pass)
            && passes.is_some_and(|passes| PARTED.contains(&passes))
            && state.inverse == 1.0;
        if due
            && self
                .engine
                .part_twins(&mut state.globals, self.settings.seed, done / per_pass)
        {
            state.parted += 1;
            state.counted = done;
        }
    }

    fn planned_end(&self, iteration: u64) -> Status {
        let detail = match self.settings.mode {
            Mode::Batch { .. } => "the bound still changes",
            Mode::Stochastic { .. } => {
                "all planned passes are done; stochastic steps have no stopping rule"
            }
        };
        Status::BudgetReached {
            limit: Limit::Iterations(iteration),
            detail: detail.to_owned(),
        }
    }

    fn lean(&mut self, inverse: f64) {
        let share = match self.settings.temper.cooled_after() {
            Some(_) => self.engine.lean().min(SLOPE * (1.0 - inverse)).max(0.0),
            None => 0.0,
        };
        self.engine
            .lean_on_start(self.settings.seed, share, inverse);
    }

    fn steps(&self, done: u64, counted: u64) -> u64 {
        if counted > 0 {
            return done - counted;
        }
        let cooled = self.settings.temper.cooled_after();
        match cooled.filter(|_| self.engine.lean() > 0.0) {
            Some(passes) => {
                let end = (passes * self.iterations_per_pass() as f64).ceil() as u64;
                done.checked_sub(end).unwrap_or(done)
            }
            None => done,
        }
    }

    fn judge(
        &self,
        state: &mut FitState<E::Globals, E::Table>,
        bound: f64,
        iteration: u64,
        pass: f64,
    ) -> Option<Status> {
        let Mode::Batch { tolerance, .. } = self.settings.mode else {
            return None;
        };
        if !bound.is_finite() {
            return Some(Status::Diverged {
                at: iteration,
                reason: format!("the bound is {bound}"),
            });
        }
        let change = state.bound.map(|before| (bound - before).abs());
        state.bound = Some(bound);
        // Without the log Jacobian, the bound does not depend on the units of the data, and neither does the iteration
        // at which the fit ends.
        let own = (bound - self.engine.log_jacobian()).abs();
        let calm = change.is_some_and(|c| c <= tolerance * own.max(1.0));
        state.calm = if calm && settled(&self.settings.temper, pass) {
            state.calm + 1
        } else {
            0
        };
        (state.calm >= CALM).then(|| Status::Converged {
            evidence: Evidence {
                rule: format!(
                    "the bound changed by less than {tolerance:e} of itself in each of {CALM} iterations"
                ),
                remaining: None,
                standard_error: None,
            },
        })
    }
}
