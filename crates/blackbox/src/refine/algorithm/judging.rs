//! Decides whether the draws of a finished stationary phase represent the posterior, and chooses the next step.

use jensen_density::LogDensity;
use jensen_run::{Evidence, Status};
use rayon::prelude::*;

use super::Refine;
use crate::oracle::Estimate;
use crate::policy::Policy;
use crate::reduce::mean_se;
use crate::refine::beyond::{Unanswered, unanswered};
use crate::refine::kernel::Stride;
use crate::refine::leaps;
use crate::refine::mixing::{Ensemble, Mixing, RHAT_LIMIT, chance};
use crate::refine::state::{Phase, Recording, RefineState};
use crate::refine::tail_probes::tail_modes;
use crate::starts::SAME;

const TAIL_MODE: &str = "chains that Jensen started in a tail stay there: the draws miss a part of the \
                         posterior, and the gradient budget does not suffice to sample it (--max-gradients \
                         raises it)";

impl<D: LogDensity> Refine<'_, D> {
    /// Judges a finished stationary phase, and then either ends the refinement or begins the next phase.
    ///
    /// If a phase has too few draws by itself, the function adds the draws of the previous phase. Both phases have the
    /// same target, and the function also checks for a drift between them.
    pub(super) fn judge(&mut self, state: &mut RefineState, iteration: u64) -> Option<Status> {
        let lanes = state.particles.lanes();
        let both = (state.kept > 0).then(|| state.recording.clone());
        state.recording.drop_times(state.kept, lanes);
        state.kept = 0;
        // An extended stationary phase has already passed this check.
        let went_on = !state.mixing().rhat.is_nan();
        let mut reasons = self.weigh(state);
        if let Some(both) = both.filter(|_| !reasons.is_empty()) {
            let alone = std::mem::replace(&mut state.recording, both);
            let own = *state
                .stationary_phases
                .last()
                .expect("a stationary phase was begun");
            let together = self.weigh(state);
            if together.is_empty() {
                reasons = together;
            } else {
                state.recording = alone;
                *state
                    .stationary_phases
                    .last_mut()
                    .expect("a stationary phase was begun") = own;
            }
        }
        let stationary_phase = *state
            .stationary_phases
            .last()
            .expect("a stationary phase was begun");
        let mixed = reasons.is_empty();
        // The cost of a stationary phase is proportional to its number of transitions. A phase with less than half as
        // many transitions as the last phase is not worth its cost.
        let cost = state.calls.gradients - state.calls_before;
        let room = self.limit(state).saturating_sub(state.calls.gradients) * 9 / 10;
        let affordable = (stationary_phase.transitions as u64 * room / cost.max(1)) as usize;
        if mixed {
            // This check comes before gradients are spent on smaller errors, because the draws may miss a part of the
            // posterior.
            let mut elsewhere = self.probe_tails(state);
            if !elsewhere.is_empty() {
                reasons.push(TAIL_MODE.to_owned());
            }
            if let Some(Unanswered { share, points }) = self.look_beyond(state) {
                elsewhere.push(points);
                reasons.push(format!(
                    "the posterior has a slab, a long tail, a spike or another mode that the draws miss: it \
                     adds at least {share:.1} times their variance or mass"
                ));
            }
            if elsewhere.is_empty() {
                let is_affordable = affordable >= stationary_phase.transitions;
                if !went_on && is_affordable && self.vagueness(state) > self.policy.vague() {
                    self.go_on(state);
                    return None;
                }
                return Some(have_mixed(stationary_phase.mixing, &self.policy));
            }
            self.join(state, &elsewhere);
        }
        if 2 * affordable < stationary_phase.transitions {
            let reason = reasons.join("; ");
            state.failure = mixed.then(|| reason.clone());
            return Some(Status::Stalled {
                at: iteration,
                reason,
            });
        }
        self.whiten(state);
        self.choose_circles(state, state.log_size.exp());
        if mixed {
            // The draws from before the new chains joined are not draws of the posterior.
            state.recording = Recording::default();
        }
        let shown = match mixed {
            true => &state.particles.x,
            false => &state.recording.x,
        };
        state.distances = leaps::shown(shown, self.target.dim(), lanes);
        self.begin_stationary_phase(state, affordable.min(2 * stationary_phase.transitions));
        None
    }

    fn probe_tails(&self, state: &mut RefineState) -> Vec<Vec<f64>> {
        let tails_probed = std::mem::replace(&mut state.tails_probed, true);
        if tails_probed || self.target.work().is_none() {
            return Vec::new();
        }
        let stride = Stride {
            circles: &state.circles,
            beta: 1.0,
            size: state.log_size.exp(),
            length: state.length,
        };
        let posterior = (self.target.density(), &self.target.map);
        let (particles, scales) = (&state.particles, &self.scales);
        let (found, calls) = tail_modes(posterior, particles, scales, stride, self.source);
        state.calls += calls;
        found
    }

    /// Skips densities of unknown cost, because evaluations far from the draws may take long.
    fn look_beyond(&self, state: &RefineState) -> Option<Unanswered> {
        self.target.work()?;
        let posterior = (self.target.density(), &self.target.map);
        let (x, lanes) = (&state.recording.x[..], state.particles.lanes());
        unanswered(
            posterior,
            state.evidence().mean,
            (x, lanes, state.mixing().ess),
            (self.source, &self.policy),
            state.calls.gradients,
        )
    }

    /// Adds chains that start at other points (sets of `dim × count`) to the populations, one population after another.
    /// Each population replaces half of its own chains by these chains. Some populations then have more of these chains
    /// than others. The populations agree only after chains have moved between the other points and the draws.
    fn join(&mut self, state: &mut RefineState, elsewhere: &[Vec<f64>]) {
        let Ensemble {
            populations,
            chains,
        } = self.ensemble();
        let half = chains.div_ceil(2);
        let slot = |k: usize| k / half * chains + k % half;
        let (dim, lanes) = (self.target.dim(), state.particles.lanes());
        let mut x = std::mem::take(&mut state.particles.x);
        let mut joined = 0;
        for points in elsewhere {
            let count = points.len() / dim;
            for (row, points) in x.chunks_mut(lanes).zip(points.chunks(count)) {
                for (k, point) in (joined..populations * half).zip(points) {
                    row[slot(k)] = *point;
                }
            }
            joined += count;
        }
        state.particles = self.target.at(x);
    }

    fn go_on(&self, state: &mut RefineState) {
        let stationary_phase = state
            .stationary_phases
            .last_mut()
            .expect("a stationary phase is over");
        stationary_phase.transitions *= 2;
        let before = state.every;
        state.every = before * stationary_phase.transitions.div_ceil(self.times() * before);
        state
            .recording
            .thin(state.every / before, state.particles.lanes());
    }

    /// Returns the largest relative standard error among the standard deviations of global parameters. All other
    /// quantities depend on the tails of the global parameters. For a global parameter with long tails, an ESS that
    /// suffices for a normal distribution leaves an error of 10 % in the standard deviation. If a coordinate is the
    /// logarithm of a scale, the function uses the standard deviation of the scale itself, because the scale may often
    /// be near zero.
    fn vagueness(&self, state: &RefineState) -> f64 {
        let globals = self.base.globals();
        if globals.is_empty() {
            return 0.0;
        }
        let lanes = state.particles.lanes();
        let particle_sets = state.recording.x.chunks(state.particles.x.len());
        let points: Vec<Vec<f64>> = particle_sets
            .map(|x| self.target.map.draws(x, lanes))
            .collect();
        let error = |i: &usize| {
            let rows = points.iter().map(|z| &z[i * lanes..(i + 1) * lanes]);
            let draws: Vec<f64> = rows.flatten().copied().collect();
            let (mean, _) = mean_se(&draws);
            let scale = self.scales.get(*i).copied().unwrap_or_default();
            let values: Vec<f64> = draws.iter().map(|z| scale.beside(*z, mean)).collect();
            self.ensemble().error_of_spread(&values)
        };
        globals.iter().map(error).fold(0.0, f64::max)
    }

    fn weigh(&self, state: &mut RefineState) -> Vec<String> {
        let mixing = mixing_of(self.ensemble(), self.target.dim(), &state.recording);
        let evidence = self.evidence(state);
        let stationary_phase = state
            .stationary_phases
            .last_mut()
            .expect("a stationary phase was begun");
        stationary_phase.mixing = mixing;
        stationary_phase.log_evidence = evidence;
        state.reasons(&self.policy)
    }
}

pub(super) fn judged(state: &RefineState) -> Option<Mixing> {
    let before = match state.phase {
        Phase::Settle => 2,
        Phase::Temper | Phase::Draw => 1,
    };
    let at = state.stationary_phases.len().checked_sub(before)?;
    state
        .stationary_phases
        .get(at)
        .map(|stationary_phase| stationary_phase.mixing)
}

fn have_mixed(Mixing { rhat, ess, .. }: Mixing, policy: &Policy) -> Status {
    Status::Converged {
        evidence: Evidence {
            rule: format!(
                "refined draws have mixed: nested R̂ {rhat:.3} (limit {RHAT_LIMIT}), at least {ess:.0} effective draws per \
                 coordinate (limit {})",
                policy.effective_draws
            ),
            remaining: None,
            standard_error: None,
        },
    }
}

pub(super) fn nearly(mixing: &Mixing, policy: &Policy) -> bool {
    mixing.rhat - 1.0 <= 2.0 * (RHAT_LIMIT - 1.0) && mixing.ess >= 0.5 * policy.effective_draws
}

fn mixing_of(ensemble: Ensemble, dim: usize, recording: &Recording) -> Mixing {
    let lanes = ensemble.lanes();
    let chance = chance(ensemble.populations, quantities(dim));
    let coordinate = |i: usize| {
        let rows = recording.x.chunks(dim * lanes);
        let rows = rows.map(|particles| &particles[i * lanes..(i + 1) * lanes]);
        let draws: Vec<f64> = rows.flatten().copied().collect();
        ensemble.worst_with_spread(&draws, chance)
    };
    let each: Vec<Mixing> = (0..dim).into_par_iter().map(coordinate).collect();
    each.into_iter()
        .fold(ensemble.worst(&recording.log_p, chance), Mixing::join)
}

pub(super) fn quantities(dim: usize) -> usize {
    2 * dim + 1
}

impl RefineState {
    pub(super) fn mixing(&self) -> Mixing {
        self.stationary_phases
            .last()
            .map_or(Mixing::UNKNOWN, |stationary_phase| stationary_phase.mixing)
    }

    pub(super) fn evidence(&self) -> Estimate {
        let mut phases = self.stationary_phases.iter().rev();
        let judged = phases.find(|stationary_phase| !stationary_phase.mixing.rhat.is_nan());
        judged.map_or(Estimate::UNKNOWN, |judged| judged.log_evidence)
    }

    pub(super) fn reasons(&self, policy: &Policy) -> Vec<String> {
        if let Some(failure) = &self.failure {
            return vec![failure.clone()];
        }
        let mixing = self.mixing();
        if mixing.rhat.is_nan() {
            return vec!["the refinement did not finish".to_owned()];
        }
        let mut reasons = Vec::new();
        if mixing.rhat > RHAT_LIMIT {
            reasons.push(format!(
                "nested R̂ is {:.3}, above the limit of {RHAT_LIMIT}",
                mixing.rhat
            ));
        }
        if mixing.ess < policy.effective_draws {
            reasons.push(format!(
                "the smallest effective sample size is {:.0}, below the limit of {}",
                mixing.ess, policy.effective_draws
            ));
        }
        let limit =
            policy.confidence_of(quantities(self.particles.x.len() / self.particles.lanes()));
        if mixing.drift > limit {
            reasons.push(format!(
                "a quantity still drifts, by {:.1} standard errors (limit {limit:.1})",
                mixing.drift
            ));
        }
        let spread = self.evidence().standard_error;
        if spread.is_nan() || spread > SAME {
            reasons.push(format!(
                "populations disagree on the log evidence by {spread:.1} nats"
            ));
        }
        reasons
    }
}
