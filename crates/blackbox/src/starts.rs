//! Several short fits from different starting points, of which the driver keeps the best.
//!
//! Every start is a mean-field fit on the same few draws, so the ELBOs of the starts are directly comparable. For most
//! of its path, a start uses even fewer draws. A start ends early if it reaches the optimum of an earlier start. The
//! initial spread of a start is computed from the curvature of the density and is at most 1. With larger spreads, the
//! density could overflow at the first draws if scales are extreme. A start maximises the ELBO instead of the density,
//! because the density of a centred hierarchy has no finite mode, whereas its ELBO has an optimum. If starts end in
//! different optima with comparable ELBOs, the posterior has several modes.
//!
//! | file | subject |
//! | --- | --- |
//! | `points` | the initial points |
//! | `outcomes` | the optima of the starts, and whether the posterior has several modes |

mod outcomes;
mod points;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::{Algorithm, Archive, ArchiveError, Interrupt, Record, Snapshot, Status, Step};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::calls::Calls;
use crate::family::{Family, FamilyKind};
use crate::newton::{Effort, Newton, NewtonStep};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::objective::Objective;

pub use outcomes::{OtherMode, StartOutcome};
pub(crate) use outcomes::{SAME, best_start, modes_of, restore_outcomes, save_outcomes, scattered};
pub use points::Init;
use points::{FIRST_WIDE, Points, initial_log_sd};
pub use settings::StartSettings;

/// The number of draws of the first iterations of a start. They decide the way to a region, and the draws that all
/// starts share decide the optimum in it.
const SCOUTING: usize = 8;

/// The number of starts that run side by side. It is the same on every machine, so that the result does not depend on
/// the number of threads.
const WAVE: usize = 4;

/// A start ends when its predicted gain is below this number of nats. The fit of a family follows with a smaller
/// tolerance.
pub(super) const TOLERANCE: f64 = 0.1;

/// The largest lag of a start behind the best start, in nats. A start lags if its ELBO would remain this far below the
/// best ELBO even if each remaining iteration gained twice the last prediction. Rough densities, such as integrals by
/// solvers with loose tolerances, make steps shrink far from any optimum. Each such step costs as much as a useful
/// step.
const BEHIND: f64 = 20.0;
/// The number of iterations that a lagging start may still take.
const PATIENCE: u64 = 5;

/// If a start does not advance although its predicted gain exceeds the size of the ELBO by this factor, rounding errors
/// are assumed to dominate the density. For example, the difference of two log gamma functions of 1e85 consists of
/// rounding errors. Such a value may exceed any ELBO, and its derivatives are about 1e70. The ELBO of such a start
/// counts as not finite.
const ABSURD: f64 = 1e6;

impl StartsState {
    /// Returns the number of evaluations so far.
    pub fn calls(&self) -> Calls {
        self.calls
    }

    fn best(&self) -> f64 {
        let bounds = self.outcomes.iter().map(|outcome| outcome.elbo);
        bounds.fold(f64::NEG_INFINITY, f64::max)
    }

    fn known(&self, found: &StartOutcome) -> Option<StartOutcome> {
        let known = (self.outcomes.iter()).find(|known| known.is_found_by(found))?;
        Some(StartOutcome {
            wide: found.wide,
            ..known.clone()
        })
    }

    /// Returns the results of the finished starts. If no start has finished, the function returns the current points of
    /// the running starts.
    pub fn outcomes(&self) -> Vec<StartOutcome> {
        if !self.outcomes.is_empty() {
            return self.outcomes.clone();
        }
        let running = self.wave.iter().flatten();
        running.map(|running| running.end(false)).collect()
    }
}

#[derive(Clone, Debug, PartialEq)]
struct Running {
    newton: Newton,
    stage: Stage,
    index: u64,
    taken: u64,
    behind: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Scouting,
    Arrived,
    Comparing,
}

impl Running {
    fn is_wide(&self) -> bool {
        self.index >= FIRST_WIDE
    }

    fn end(&self, settled: bool) -> StartOutcome {
        StartOutcome {
            omega: self.newton.omega.clone(),
            elbo: -self.newton.value,
            settled,
            wide: self.is_wide(),
        }
    }

    /// Performs one iteration. Returns `None` if more iterations follow. Otherwise returns whether the start reached an
    /// optimum.
    fn step<D: TwiceDifferentiable>(
        &mut self,
        objective: &mut Objective<'_, D>,
        best: f64,
        most: u64,
    ) -> (NewtonStep, Option<bool>) {
        let effort = Effort {
            refine: 0.1,
            max_inner: (2 * objective.family().dim() as u64 + 10).min(40),
        };
        let report = self.newton.step(objective, effort);
        self.taken += 1;
        let settled = report.is_last(TOLERANCE);
        if self.newton.is_stuck() && report.predicted > ABSURD * (1.0 + self.newton.value.abs()) {
            self.newton.value = f64::INFINITY;
            self.behind = PATIENCE;
            return (report, Some(false));
        }
        let left = most.saturating_sub(self.taken) as f64;
        let gap = best + self.newton.value;
        let behind = gap > BEHIND + 2.0 * left * report.predicted;
        self.behind = if behind { self.behind + 1 } else { 0 };
        let over =
            settled || self.newton.is_stuck() || self.behind >= PATIENCE || self.taken >= most;
        (report, over.then_some(settled))
    }

    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("newton", self.newton.save());
        archive.set("stage", self.stage);
        archive.set("index", self.index);
        archive.set("taken", self.taken);
        archive.set("behind", self.behind);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            newton: Newton::restore(&archive.nested("newton"))?,
            stage: archive.get("stage")?,
            index: archive.get("index")?,
            taken: archive.get("taken")?,
            behind: archive.get("behind")?,
        })
    }
}

/// The starts as an algorithm. One step performs one Newton iteration for each running start.
pub struct Starts<'a, D: TwiceDifferentiable> {
    density: &'a D,
    family: Arc<dyn Family>,
    points: Points,
    settings: StartSettings,
    objective: Objective<'a, D>,
    scouts: Vec<Objective<'a, D>>,
    /// After an interrupt, no further start begins, because the density is no longer evaluated.
    interrupt: Option<&'a Interrupt<'a>>,
}

/// The state of [`Starts`] between iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct StartsState {
    outcomes: Vec<StartOutcome>,
    wave: Vec<Option<Running>>,
    next: u64,
    calls: Calls,
}

impl<'a, D: TwiceDifferentiable> Starts<'a, D> {
    /// The family that the starts fit.
    pub const KIND: FamilyKind = FamilyKind::MeanField;

    /// Creates the starts for a density.
    pub fn new(density: &'a D, source: NoiseSource, settings: StartSettings) -> Self {
        let family = Self::KIND.build(density.dim());
        let lanes = settings.draws.max(2).next_multiple_of(2);
        let on = |key, lanes| {
            let noise = source.matched(NoisePurpose::Start, key, family.noise_dim(), lanes);
            Objective::new(density, family.clone(), noise, lanes).roughly()
        };
        Self {
            density,
            objective: on(u64::MAX, lanes),
            scouts: (0..WAVE)
                .map(|_| on(u64::MAX - 1, SCOUTING.min(lanes)))
                .collect(),
            points: Points {
                dim: density.dim(),
                source,
                init: settings.init.clone(),
                variables: Vec::new(),
            },
            family,
            settings,
            interrupt: None,
        }
    }

    /// Makes the starts end a step when the interrupt is raised.
    pub fn heeding(self, interrupt: &'a Interrupt<'a>) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Sets the array to which each coordinate belongs. The numbers of the arrays are ascending.
    pub fn of_variables(mut self, variables: &[usize]) -> Self {
        self.points.variables = variables.to_vec();
        self
    }

    fn is_over(&self) -> bool {
        self.interrupt.is_some_and(Interrupt::is_over)
    }

    /// Returns the first random point at which the density, its gradient and its curvature are finite.
    pub fn first_finite_point(&self) -> Option<Vec<f64>> {
        (0..self.points.attempts(0))
            .take_while(|_| !self.is_over())
            .map(|attempt| self.points.at(0, attempt))
            .find(|point| initial_log_sd(self.density, point).is_some())
    }

    fn begin(&mut self, slot: usize, index: u64) -> Option<Running> {
        for attempt in 0..self.points.attempts(index) {
            if self.is_over() {
                return None;
            }
            let point = self.points.at(index, attempt);
            let Some(log_sd) = initial_log_sd(self.density, &point) else {
                continue;
            };
            for shrink in [0.0, -3.0, -8.0] {
                let log_sd: Vec<f64> = log_sd.iter().map(|l| l + shrink).collect();
                let omega = self.family.diagonal(&point, &log_sd);
                if let Some(newton) = Newton::start(&mut self.scouts[slot], omega) {
                    return Some(Running {
                        newton,
                        stage: Stage::Scouting,
                        index,
                        taken: 0,
                        behind: 0,
                    });
                }
            }
        }
        None
    }

    fn compare(&mut self, omega: &[f64]) -> Option<Newton> {
        [1.0, 0.5, 0.05, 0.001].into_iter().find_map(|factor| {
            Newton::start(&mut self.objective, self.family.shrink(omega, factor))
        })
    }

    fn arrive(&mut self, running: &mut Running) -> Option<StartOutcome> {
        if running.behind >= PATIENCE {
            return Some(running.end(false));
        }
        let Some(newton) = self.compare(&running.newton.omega) else {
            running.newton.value = f64::INFINITY;
            return Some(running.end(false));
        };
        running.newton = newton;
        running.stage = Stage::Comparing;
        (running.taken, running.behind) = (0, 0);
        None
    }

    fn fill(&mut self, state: &mut StartsState) {
        let dim = self.family.dim();
        for slot in 0..WAVE {
            while state.wave[slot].is_none() {
                let on_their_way = state.wave.iter().any(Option::is_some);
                let following =
                    (self.settings).following(state.next, on_their_way, dim, &state.outcomes);
                let Some(index) = following else {
                    return;
                };
                state.next = index + 1;
                state.wave[slot] = self.begin(slot, index);
                state.calls += self.scouts[slot].take_calls();
            }
        }
    }

    fn compare_arrived(&mut self, state: &mut StartsState) {
        for slot in 0..WAVE {
            let comparing = |running: &Running| running.stage == Stage::Comparing;
            if state.wave.iter().flatten().any(comparing) {
                return;
            }
            let Some(mut running) = state.wave[slot].take() else {
                continue;
            };
            let ended = match running.stage {
                Stage::Arrived => self.arrive(&mut running),
                _ => None,
            };
            state.calls += self.objective.take_calls();
            match ended {
                Some(outcome) => state.outcomes.push(outcome),
                None => state.wave[slot] = Some(running),
            }
        }
    }
}

impl<D: TwiceDifferentiable> Algorithm for Starts<'_, D> {
    type State = StartsState;
    type Output = Vec<StartOutcome>;

    fn init(&mut self) -> Result<StartsState, Status> {
        let first = self.begin(0, 0).ok_or_else(|| Status::Diverged {
            at: 0,
            reason: match self.settings.init {
                Init::Point(_) => {
                    "the log density, its gradient or its curvature is not finite at \
                                   the given point"
                        .to_owned()
                }
                _ => format!(
                    "none of {} starting points has a finite log density and gradient",
                    self.points.attempts(0)
                ),
            },
        })?;
        let mut state = StartsState {
            outcomes: Vec::new(),
            wave: vec![None; WAVE],
            next: 1,
            calls: self.scouts[0].take_calls(),
        };
        state.wave[0] = Some(first);
        self.fill(&mut state);
        Ok(state)
    }

    fn step(&mut self, state: &mut StartsState, _iteration: u64) -> Step {
        let (best, most) = (state.best(), self.settings.iterations);
        let scouts = self.scouts.par_iter_mut().zip(&mut state.wave);
        let scouted: Vec<Option<NewtonStep>> = scouts
            .map(|(objective, running)| {
                let running = running.as_mut()?;
                if running.stage != Stage::Scouting {
                    return None;
                }
                let (report, end) = running.step(objective, best, most);
                if end.is_some() {
                    running.stage = Stage::Arrived;
                }
                Some(report)
            })
            .collect();
        let mut shown = None;
        for (slot, mut report) in scouted.into_iter().enumerate() {
            state.calls += self.scouts[slot].take_calls();
            let Some(mut running) = state.wave[slot].take() else {
                continue;
            };
            let mut ended = None;
            if running.stage == Stage::Comparing {
                let (compared, end) = running.step(&mut self.objective, best, most);
                state.calls += self.objective.take_calls();
                report = Some(compared);
                ended = match end {
                    Some(settled) => Some(running.end(settled)),
                    None => state.known(&running.end(false)),
                };
            }
            if let Some(report) = report {
                let now = (running.newton.value, running.index, report);
                shown = shown.or(Some(now));
            }
            match ended {
                Some(outcome) => state.outcomes.push(outcome),
                None => state.wave[slot] = Some(running),
            }
        }
        self.compare_arrived(state);
        self.fill(state);
        let mut record = state.calls.on(Record::default());
        if let Some((value, index, report)) = shown {
            record = record
                .with_elbo(-value, None)
                .with("start", index as f64)
                .with("predicted", report.predicted)
                .with("radius", report.radius);
        }
        if state.wave.iter().any(Option::is_some) {
            return Step::go_on(record);
        }
        let evidence = jensen_run::Evidence {
            rule: format!("{} starts compared on the same draws", state.outcomes.len()),
            remaining: None,
            standard_error: None,
        };
        Step::finish(record, Status::Converged { evidence })
    }

    fn output(&mut self, state: &StartsState) -> Vec<StartOutcome> {
        state.outcomes()
    }
}

impl Snapshot for StartsState {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        let running: Vec<bool> = self.wave.iter().map(Option::is_some).collect();
        archive.set("running", running);
        for (slot, running) in self.wave.iter().enumerate() {
            if let Some(running) = running {
                archive.nest(&format!("slot{slot}"), running.save());
            }
        }
        archive.set("next", self.next);
        archive.set("calls", self.calls);
        archive.nest("outcomes", save_outcomes(&self.outcomes));
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let outcomes = restore_outcomes(&archive.nested("outcomes"))?;
        let calls = archive.get("calls")?;
        let running: [bool; WAVE] = archive.get("running")?;
        let slot = |(slot, running): (usize, bool)| {
            let stored = archive.nested(&format!("slot{slot}"));
            running.then(|| Running::restore(&stored)).transpose()
        };
        let wave = running.into_iter().enumerate().map(slot);
        Ok(Self {
            wave: wave.collect::<Result<_, _>>()?,
            next: archive.get("next")?,
            calls,
            outcomes,
        })
    }
}
