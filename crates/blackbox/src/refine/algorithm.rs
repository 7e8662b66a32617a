//! Refinement as an algorithm. It consists of tempering, followed by stationary phases of Hamiltonian transitions until
//! their draws have mixed.

mod coordinates;
mod judging;

use std::f64::consts::FRAC_PI_2;

use jensen_density::{LogDensity, Scale};
use jensen_run::{Algorithm, Record, Status, Step};

use self::judging::{judged, nearly, quantities};
use super::evidence::RatioSet;
use super::kernel::{ACCEPTANCE, LARGEST_STEP, Moved, Stride, leapfrog_step, steered, transition};
use super::leaps::{self, leap};
use super::map::{Map, Shown};
use super::mixing::Ensemble;
use super::outcome::{Refined, StationaryPhase, TemperatureStep};
use super::settings::RefineSettings;
use super::state::{Phase, Recording, RefineState};
use super::steps::nearly_normal;
use super::target::{Target, base_draws};
use super::tempering::{log_ratios, memory, next_beta, resample};
use super::whitening;
use crate::approximation::{Approximation, Draws};
use crate::calls::Calls;
use crate::noise::NoiseSource;
use crate::policy::Policy;
use crate::sizes::KEPT;

/// The refinement uses steps along circles only if they can be longer than leapfrog steps by at least this factor.
/// Leapfrog steps are more robust to heavy tails.
const CLEARLY: f64 = 2.0;

/// The smallest and the largest number of transitions per temperature. The second transition uses the step size that
/// the first has adapted. Between the two limits, a temperature ends once the particles have forgotten their positions
/// ([`FORGOTTEN`]).
const MOVES: (usize, usize) = (2, 8);

/// A temperature ends early once the correlation of the particles with their positions at its beginning is at most this
/// value.
const FORGOTTEN: f64 = 0.5;

/// The number of recorded transitions in the first stationary phase. Each later phase records twice as many transitions
/// as the phase before it.
const FIRST_STATIONARY_PHASE: usize = 16;

/// The smallest number of warm-up transitions in a stationary phase. The chains of the first phase start far from the
/// centre. With only four warm-up transitions, the log evidence of a normal was wrong by 0.06 ± 0.02 nats.
const SETTLE: usize = FIRST_STATIONARY_PHASE / 2;

/// The largest number of recorded positions of each chain. A phase of 256 chains then has 16 384 draws.
const TIMES: usize = 4 * FIRST_STATIONARY_PHASE;

/// The refinement of an approximation, which computes draws of the density.
pub struct Refine<'a, D: LogDensity> {
    target: Target<'a, D>,
    base: Map,
    approximation: Approximation,
    source: NoiseSource,
    settings: RefineSettings,
    policy: Policy,
    scales: Vec<Scale>,
}

impl<'a, D: LogDensity> Refine<'a, D> {
    /// Creates a refinement that starts from `approximation` and computes draws of `density`.
    pub fn new(
        density: &'a D,
        approximation: &Approximation,
        source: NoiseSource,
        settings: RefineSettings,
    ) -> Self {
        let base = Map::of(approximation);
        Self {
            target: Target::new(density, base.clone()),
            approximation: approximation.clone(),
            base,
            source,
            settings,
            policy: Policy::default(),
            scales: Vec::new(),
        }
    }

    /// Replaces the policy of the refinement.
    pub fn under(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Sets the relation between each coordinate and its reported value.
    pub fn of_scales(mut self, scales: &[Scale]) -> Self {
        self.scales = scales.to_vec();
        self
    }

    fn ensemble(&self) -> Ensemble {
        self.settings.ensemble
    }

    /// Returns the budget of gradients. The budget doubles if a stationary phase has nearly mixed, so that another
    /// phase can finish.
    fn limit(&self, state: &RefineState) -> u64 {
        let dim = self.target.dim();
        let mut limit = self.policy.gradients(dim, self.target.work());
        if self.base.is_sparse() {
            limit = limit.max(self.policy.least_gradients(dim));
        }
        match state
            .stationary_phases
            .iter()
            .any(|stationary_phase| nearly(&stationary_phase.mixing, &self.policy))
        {
            true => 2 * limit,
            false => limit,
        }
    }

    /// Returns whether the refinement must stop because its budget is exhausted. There is one exception: if a mixed
    /// stationary phase was extended because its standard deviations were imprecise, the extension may finish.
    /// Otherwise its draws, which have mixed, would be lost, and the estimate of its cost may have been too low.
    fn is_spent(&self, state: &RefineState) -> bool {
        let (quantities, policy) = (quantities(self.target.dim()), &self.policy);
        let stationary_phase = state.stationary_phases.last();
        let mixed = stationary_phase
            .is_some_and(|stationary_phase| stationary_phase.mixing.is_good_of(quantities, policy));
        let limit = self.limit(state);
        state.calls.gradients > if mixed { 2 * limit } else { limit }
    }

    fn times(&self) -> usize {
        let room = KEPT / (self.ensemble().lanes() * self.target.dim());
        TIMES.min(room).max(4)
    }

    fn transition(&mut self, state: &mut RefineState, iteration: u64) -> Moved {
        let stride = Stride {
            circles: &state.circles,
            beta: state.beta,
            size: state.log_size.exp(),
            length: state.length,
        };
        transition(
            &mut self.target,
            &mut state.particles,
            stride,
            self.source,
            iteration,
        )
    }

    fn is_large(&self, size: f64) -> bool {
        size >= CLEARLY * leapfrog_step(self.target.dim())
    }

    fn choose_circles(&self, state: &mut RefineState, size: f64) {
        state.circles = match self.is_large(size) {
            true => nearly_normal(&state.particles),
            false => vec![false; self.target.dim()],
        };
    }

    fn heat_up(&self, state: &mut RefineState, iteration: u64) -> bool {
        let lanes = state.particles.lanes();
        let squares = Map::squares(&state.particles.x, lanes);
        let ratios = log_ratios(self.target.dim(), &state.particles.log_p, &squares);
        let (beta, share) = next_beta(state.beta, &ratios);
        let change = beta - state.beta;
        let ensemble = self.ensemble();
        let Some(from) = resample(ensemble, &ratios, change, self.source, iteration) else {
            return false;
        };
        state.ratio_sets.push(RatioSet {
            beta: state.beta,
            ratios,
        });
        state.particles = state.particles.gather(&from);
        state.beta = beta;
        state.anchor = state.particles.x.clone();
        state.length = FRAC_PI_2 * whitening::widest(&state.particles.x, lanes, 1);
        self.choose_circles(state, LARGEST_STEP);
        state.ladder.push(TemperatureStep {
            beta,
            share,
            acceptance: 0.0,
            moves: 0,
        });
        true
    }

    fn temper(&mut self, state: &mut RefineState, iteration: u64) -> Result<Moved, String> {
        if state.moves == 0 && !self.heat_up(state, iteration) {
            return Err("no particle of a population has positive density".to_owned());
        }
        let moved = self.transition(state, iteration);
        // Step sizes that suit one temperature are too small for the next temperature.
        let grows = moved.acceptance > ACCEPTANCE && self.is_large(LARGEST_STEP);
        let gain = if grows { 3.0 } else { 1.0 };
        steer(state, moved, gain);
        state.moves += 1;
        let temperature_step = state.ladder.last_mut().expect("a stage was begun");
        temperature_step.acceptance +=
            (moved.acceptance - temperature_step.acceptance) / state.moves as f64;
        temperature_step.moves = state.moves;
        let lanes = state.particles.lanes();
        let forgotten = || memory(&state.anchor, &state.particles.x, lanes) <= FORGOTTEN;
        if state.moves >= MOVES.1 || (state.moves >= MOVES.0 && forgotten()) {
            state.moves = 0;
            if state.beta == 1.0 {
                self.whiten(state);
                self.choose_circles(state, state.log_size.exp());
                state.distances = leaps::shown(&state.particles.x, self.target.dim(), lanes);
                self.collapse(state);
                self.begin_stationary_phase(state, FIRST_STATIONARY_PHASE);
            }
        }
        Ok(moved)
    }

    /// The new phase keeps the draws of the previous phase, at the same spacing as its own draws.
    fn begin_stationary_phase(&self, state: &mut RefineState, transitions: usize) {
        state.phase = Phase::Settle;
        state.moves = 0;
        state.calls_before = state.calls.gradients;
        let before = state.every.max(1);
        state.every = before * transitions.div_ceil(self.times() * before);
        state
            .recording
            .thin(state.every / before, state.particles.lanes());
        state.kept = state.recording.log_p.len() / state.particles.lanes();
        state.stationary_phases.push(StationaryPhase {
            transitions,
            ..StationaryPhase::default()
        });
    }

    /// Performs one transition of a stationary phase. A phase begins with unrecorded transitions that adapt the step
    /// size. There are a quarter as many unrecorded transitions as recorded ones, but at least [`SETTLE`].
    fn stationary_phase(&mut self, state: &mut RefineState, iteration: u64) -> Moved {
        let moved = self.transition(state, iteration);
        leap(
            &mut self.target,
            &mut state.particles,
            &state.distances,
            self.source,
            iteration,
        );
        state.moves += 1;
        let planned = state
            .stationary_phases
            .last()
            .expect("a stationary phase was begun")
            .transitions;
        if state.phase == Phase::Settle {
            steer(state, moved, 2.0 / (1.0 + state.moves as f64).sqrt());
            if state.moves >= (planned / 4).max(SETTLE) {
                state.phase = Phase::Draw;
                state.moves = 0;
            }
            return moved;
        }
        let n = state.moves as f64;
        let lanes = state.particles.lanes();
        if state.moves.is_multiple_of(state.every) {
            state.recording.x.extend_from_slice(&state.particles.x);
            let log_dets = self.target.map.log_dets(&state.particles.x, lanes);
            let log_p = state
                .particles
                .log_p
                .iter()
                .zip(log_dets)
                .map(|(p, d)| p - d);
            state.recording.log_p.extend(log_p);
            let based = self.based(&state.shown, &state.particles.x, lanes);
            state.recording.squares.extend(Map::squares(&based, lanes));
        }
        let size = state.log_size.exp();
        let stationary_phase = state
            .stationary_phases
            .last_mut()
            .expect("a stationary phase was begun");
        stationary_phase.acceptance += (moved.acceptance - stationary_phase.acceptance) / n;
        stationary_phase.stuck += (moved.stuck as f64 / lanes as f64 - stationary_phase.stuck) / n;
        stationary_phase.step_size = size;
        moved
    }
}

fn steer(state: &mut RefineState, moved: Moved, gain: f64) {
    state.log_size = steered(state.log_size, moved, gain);
}

impl<D: LogDensity> Algorithm for Refine<'_, D> {
    type State = RefineState;
    type Output = Refined;

    fn init(&mut self) -> Result<RefineState, Status> {
        let dim = self.target.dim();
        let lanes = self.ensemble().lanes();
        let particles = self.target.at(base_draws(self.source, dim, lanes));
        let calls = self.target.take_calls();
        if particles.log_p.iter().all(|p| !p.is_finite()) {
            return Err(Status::Diverged {
                at: 0,
                reason: "the log density is not finite at any draw of the widened approximation"
                    .into(),
            });
        }
        let size = leapfrog_step(dim).min(LARGEST_STEP);
        Ok(RefineState {
            ensemble: self.ensemble(),
            phase: Phase::Temper,
            circles: Vec::new(),
            anchor: particles.x.clone(),
            particles,
            shown: Shown::default(),
            log_size: size.ln(),
            length: FRAC_PI_2,
            beta: 0.0,
            ratio_sets: Vec::new(),
            moves: 0,
            recording: Recording::default(),
            every: 1,
            kept: 0,
            distances: Vec::new(),
            ladder: Vec::new(),
            stationary_phases: Vec::new(),
            calls_before: 0,
            calls,
            tails_probed: false,
            failure: None,
        })
    }

    fn step(&mut self, state: &mut RefineState, iteration: u64) -> Step {
        // After a resume, this restores the map from the state.
        self.update_map(state);
        let phase = state.phase;
        let moved = match phase {
            Phase::Temper => self.temper(state, iteration),
            Phase::Settle | Phase::Draw => Ok(self.stationary_phase(state, iteration)),
        };
        state.calls += self.target.take_calls();
        let record = Record::new(0)
            .with_text("phase", phase.name())
            .with("beta", state.beta)
            .with("step_size", state.log_size.exp());
        let record = state.calls.on(record);
        let moved = match moved {
            Ok(moved) => moved,
            Err(reason) => {
                state.failure = Some(reason.clone());
                let at = iteration;
                return Step::finish(record, Status::Stalled { at, reason });
            }
        };
        let mut record = record
            .with("acceptance", moved.acceptance)
            .with("steps", moved.steps as f64)
            .with("stuck", moved.stuck as f64);
        let over = phase == Phase::Draw
            && Some(state.moves)
                == state
                    .stationary_phases
                    .last()
                    .map(|stationary_phase| stationary_phase.transitions);
        let status = if over {
            let status = self.judge(state, iteration);
            // Each step adds its own cost, so that the count is complete even if the run is interrupted after this step
            // and resumed later.
            state.calls += self.target.take_calls();
            if let Some(mixing) = judged(state) {
                record = record
                    .with("rhat", mixing.rhat)
                    .with("ess", mixing.ess)
                    .with("drift", mixing.drift);
            }
            status
        } else if self.is_spent(state) {
            let reason = "the particles have not mixed within the gradient budget".to_owned();
            state.failure = Some(reason.clone());
            let at = iteration;
            Some(Status::Stalled { at, reason })
        } else {
            None
        };
        Step { record, status }
    }

    fn output(&mut self, state: &RefineState) -> Refined {
        self.update_map(state);
        let (dim, lanes) = (self.target.dim(), state.particles.lanes());
        let count = state.recording.log_p.len();
        let mut z = vec![0.0; dim * count];
        for (t, x) in state.recording.x.chunks(dim * lanes).enumerate() {
            let placed = self.target.map.draws(x, lanes);
            for (i, row) in placed.chunks(lanes).enumerate() {
                z[i * count + t * lanes..][..lanes].copy_from_slice(row);
            }
        }
        let log_q = self.log_q(state, &z);
        Refined {
            ensemble: state.ensemble,
            draws: Draws {
                z,
                dim,
                count,
                log_q,
            },
            log_p: state.recording.log_p.clone(),
            log_evidence: state.evidence(),
            mixing: state.mixing(),
            ladder: state.ladder.clone(),
            stationary_phases: state.stationary_phases.clone(),
            calls: state.calls,
            reasons: state.reasons(&self.policy),
        }
    }
}

impl RefineState {
    /// Returns the number of evaluations so far.
    pub fn calls(&self) -> Calls {
        self.calls
    }
}
