//! The order of the stages, and the starting point of each stage.

use std::sync::Arc;

use jensen_density::TwiceDifferentiable;
use jensen_run::Status;

use super::results::choose;
use super::stage::{Next, Stage};
use super::{Driver, DriverState, FamilyResult};
use crate::calls::Calls;
use crate::evaluation::Successor;
use crate::family::{Family, FamilyKind};
use crate::settings::FamilyChoice;
use crate::starts::{StartOutcome, Starts, best_start};

impl<D: TwiceDifferentiable> Driver<'_, D> {
    pub(super) fn best_of(&self, starts: &[StartOutcome]) -> (Vec<f64>, Calls) {
        let from = self.build(Starts::<D>::KIND);
        self.enrich(&self.first, &*from, &starts[best_start(starts)].omega)
    }

    fn next(&self, state: &mut DriverState, iteration: u64, status: &Status) -> Option<Next> {
        let (name, omega) = match &state.stage {
            Stage::Starts(starts) => {
                state.starts = starts.outcomes();
                let first = &self.first;
                let (omega, calls) = self.best_of(&state.starts);
                state.calls += calls;
                // A family is far from the posterior until its fit reaches the optimum.
                let settled = state.starts[best_start(&state.starts)].settled;
                let richer = settled.then(|| self.skips_to(first, &omega, &mut state.calls));
                if let Some(richer) = richer.flatten() {
                    let method = self.first_method(&**first);
                    let ended = Some((method, left_behind(iteration), iteration));
                    let result =
                        self.result(first, omega, ended, Successor::Richer, &mut state.calls);
                    return Some(self.widened(richer, result, state));
                }
                return Some(self.first_stage(first.clone(), omega));
            }
            Stage::Method { name, state } => (*name, state.omega().to_vec()),
            Stage::Done => return None,
        };
        let family = self.named(&state.family);
        let (method, successor) = self.planned(&*family, name);
        let refinable = self.settings.is_policy() && self.settings.may_refine();
        if let Some(successor) = successor.filter(|_| method.hands_over(status, self.density.dim()))
        {
            let left = refinable && self.is_far_off(&family, &omega, &mut state.calls);
            if !left {
                return Some(Next {
                    family,
                    method: successor,
                    omega,
                });
            }
        }
        if let Some(asked) = &self.asked
            && asked.name() != state.family
        {
            // The requested family starts from this result, which is not itself reported.
            let omega = self.upon(&**asked, &state.starts, &omega);
            return Some(self.first_stage(asked.clone(), omega));
        }
        let ended = Some((method, status.clone(), iteration));
        let first = state.results.is_empty()
            && state.family == self.first.name()
            && self.settings.family == FamilyChoice::Auto;
        let richer = first.then(|| self.second()).flatten();
        let successor = match (richer, refinable) {
            (Some(_), _) => Successor::Richer,
            (None, true) => Successor::Refinement,
            (None, false) => Successor::None,
        };
        let result = self.result(&family, omega, ended, successor, &mut state.calls);
        let good = result.evaluation.is_good(&self.settings.policy);
        if let Some(kind) = richer.filter(|_| !good) {
            return Some(self.widened(kind, result, state));
        }
        let astray = !good && !state.results.is_empty() && self.is_astray(&result);
        state.results.push(result);
        if let Some(kind) = self.richer().filter(|_| astray) {
            return Some(self.begun_at(kind, 0, state));
        }
        self.of_several_modes(state)
    }

    fn widened(&self, kind: FamilyKind, poorer: FamilyResult, state: &mut DriverState) -> Next {
        state.results.push(poorer);
        self.begun_at(kind, state.results.len() - 1, state)
    }

    fn begun_at(&self, kind: FamilyKind, earlier: usize, state: &mut DriverState) -> Next {
        let (family, poorer) = (self.build(kind), &state.results[earlier]);
        let from = self.named(&poorer.family);
        let (omega, calls) = self.enrich(&family, &*from, &poorer.omega);
        state.calls += calls;
        self.first_stage(family, omega)
    }

    pub(super) fn first_stage(&self, family: Arc<dyn Family>, omega: Vec<f64>) -> Next {
        Next {
            method: self.first_method(&*family),
            family,
            omega,
        }
    }

    fn fall_back(&mut self, state: &mut DriverState, iteration: u64) -> Option<Status> {
        match self.begin_starts() {
            Ok(stage) => {
                state.stage = stage;
                state.family = self.first.name();
                state.before = iteration;
                state.calls_before = state.calls;
                None
            }
            Err(failure) => {
                state.stage = Stage::Done;
                Some(failure)
            }
        }
    }

    pub(super) fn advance(
        &mut self,
        state: &mut DriverState,
        iteration: u64,
        status: Status,
    ) -> Option<Status> {
        if self.conditional && state.family == FamilyKind::Conditional && !status.is_converged() {
            return self.fall_back(state, iteration);
        }
        let next = self.next(state, iteration, &status);
        let begun = next.map(|next| (next.family.name(), self.begin(next)));
        match begun {
            Some((family, Ok(stage))) => {
                state.stage = stage;
                state.family = family;
                state.before = iteration;
                state.calls_before = state.calls;
                None
            }
            Some((_, Err(failure))) if state.results.is_empty() => {
                state.stage = Stage::Done;
                Some(failure)
            }
            // If a richer family cannot start at all, the status of the first family remains.
            Some((_, Err(_))) | None => {
                state.stage = Stage::Done;
                let chosen = choose(&state.results, &self.settings.policy);
                Some(state.results[chosen].status.clone().unwrap_or(status))
            }
        }
    }
}

fn left_behind(at: u64) -> Status {
    Status::Stalled {
        at,
        reason: "the optimum of all starts is far from the posterior, so Jensen fits a richer family next"
            .to_owned(),
    }
}
