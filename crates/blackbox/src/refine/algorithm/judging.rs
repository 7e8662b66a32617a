//! Whether the draws of a round that is over are the posterior's, and what comes after it.

use jensen_density::LogDensity;
use jensen_run::{Evidence, Status};
use rayon::prelude::*;

use super::Refine;
use crate::oracle::Estimate;
use crate::reduce::mean_se;
use crate::refine::excursions::{CHAINS, shelves};
use crate::refine::kernel::Stride;
use crate::refine::leaps;
use crate::refine::mixing::{ESS_LIMIT, Ensemble, Mixing, RHAT_LIMIT, chance, drift_limit};
use crate::refine::state::{Phase, RefineState, Tape};

/// Relative standard error of a hub's standard deviation beyond which a round goes on once where it may. In a series of volatilities of a
/// thousand times, 700 effective draws left the sd of the level, whose tails are those of a persistence near 1, at 0.201 with one
/// seed of the chains and at 0.224 with another.
const VAGUE: f64 = 0.04;

/// Largest spread of the populations' log evidence, in nats, and share of transitions without a step size small
/// enough, of draws that are trusted.
const LIMITS: (f64, f64) = (0.5, 0.01);

/// What speaks against draws that have mixed where shelves are found and not explored.
const SHELF: &str = "chains that are led far out along the logarithm or logit of a parameter stay there: it is a part of the \
                     posterior that the draws do not answer for, and the gradients allowed leave no room to explore it";

impl<D: LogDensity> Refine<'_, D> {
    /// Judges a round that is over, and ends or begins the next one.
    ///
    /// Where its draws are too few alone, those of the round before are judged with them: they are draws of the same
    /// posterior, and their drift is judged too.
    pub(super) fn judge(&mut self, state: &mut RefineState, iteration: u64) -> Option<Status> {
        let lanes = state.cloud.lanes();
        let both = (state.kept > 0).then(|| state.tape.clone());
        state.tape.drop_times(state.kept, lanes);
        state.kept = 0;
        let quantities = quantities(self.target.dim());
        let before = state.rounds.last().expect("a round was begun").mixing;
        let went_on = before.is_good_of(quantities);
        let mut reasons = self.weigh(state);
        if let Some(both) = both.filter(|_| !reasons.is_empty()) {
            let alone = std::mem::replace(&mut state.tape, both);
            let own = *state.rounds.last().expect("a round was begun");
            let together = self.weigh(state);
            if together.is_empty() {
                reasons = together;
            } else {
                state.tape = alone;
                *state.rounds.last_mut().expect("a round was begun") = own;
            }
        }
        let round = *state.rounds.last().expect("a round was begun");
        let mixed = reasons.is_empty();
        // A round costs in proportion to its transitions; one that is less than half of the last is not worth it.
        let cost = state.calls.gradients - state.calls_before;
        let room = self.limit(state).saturating_sub(state.calls.gradients) * 9 / 10;
        let affordable = (round.transitions as u64 * room / cost.max(1)) as usize;
        if mixed {
            let vague = !went_on && self.vagueness(state) > VAGUE;
            if vague && affordable >= round.transitions {
                self.go_on(state);
                return None;
            }
            let shelves = self.look_out(state);
            if shelves.is_empty() {
                return Some(have_mixed(round.mixing));
            }
            self.join(state, &shelves);
            reasons.push(SHELF.to_owned());
        }
        if 2 * affordable < round.transitions {
            let reason = reasons.join("; ");
            state.failure = mixed.then(|| reason.clone());
            return Some(Status::Stalled {
                at: iteration,
                reason,
            });
        }
        let times = state.tape.log_p.len() / lanes;
        self.whiten(state);
        self.choose_circles(state, state.log_size.exp());
        let length = self.choose_length(&state.tape.x, (lanes, times));
        state.length = length.unwrap_or(state.length);
        state.distances = leaps::shown(&state.tape.x, self.target.dim(), lanes);
        if mixed {
            // What was drawn before shelves were seen is no posterior.
            state.tape = Tape::default();
        }
        self.begin_round(state, affordable.min(2 * round.transitions));
        None
    }

    /// Chains on shelves that the draws do not answer for; looked for once.
    fn look_out(&self, state: &mut RefineState) -> Vec<Vec<f64>> {
        let looked_out = std::mem::replace(&mut state.looked_out, true);
        if looked_out || self.target.work().is_none() {
            return Vec::new();
        }
        let stride = Stride {
            circles: &state.circles,
            beta: 1.0,
            size: state.log_size.exp(),
            length: state.length,
        };
        let posterior = (self.target.density(), &self.target.map);
        let (cloud, scales) = (&state.cloud, &self.scales);
        let (found, calls) = shelves(posterior, cloud, scales, stride, self.source);
        state.calls += calls;
        found
    }

    /// Lets the chains of a shelf join a population, in the place of some of its own.
    fn join(&mut self, state: &mut RefineState, shelves: &[Vec<f64>]) {
        let Ensemble {
            populations,
            chains,
        } = self.ensemble();
        let lanes = state.cloud.lanes();
        let mut x = std::mem::take(&mut state.cloud.x);
        for (p, shelf) in shelves.iter().enumerate().take(populations) {
            for (row, places) in x.chunks_mut(lanes).zip(shelf.chunks(CHAINS)) {
                let own = row[p * chains..(p + 1) * chains].iter_mut();
                own.zip(places).for_each(|(x, place)| *x = *place);
            }
        }
        state.cloud = self.target.at(x);
    }

    /// Lets a round that is over take as many transitions again, as it is.
    fn go_on(&self, state: &mut RefineState) {
        let round = state.rounds.last_mut().expect("a round is over");
        round.transitions *= 2;
        let before = state.every;
        state.every = before * round.transitions.div_ceil(self.times() * before);
        state.tape.thin(state.every / before, state.cloud.lanes());
    }

    /// The largest relative standard error of a standard deviation of hubs, where the map has some: those have tails on which
    /// everything else hangs, and effective draws that are enough for a normal leave a tenth of their sd to chance. Of the
    /// logarithm of a scale it is the scale's: that may be near zero as often as it likes.
    fn vagueness(&self, state: &RefineState) -> f64 {
        let hubs = self.base.hubs();
        if hubs.is_empty() {
            return 0.0;
        }
        let lanes = state.cloud.lanes();
        let clouds = state.tape.x.chunks(state.cloud.x.len());
        let places: Vec<Vec<f64>> = clouds.map(|x| self.target.map.draws(x, lanes)).collect();
        let error = |hub: &usize| {
            let rows = places.iter().map(|z| &z[hub * lanes..(hub + 1) * lanes]);
            let draws: Vec<f64> = rows.flatten().copied().collect();
            let (mean, _) = mean_se(&draws);
            let scale = self.scales.get(*hub).copied().unwrap_or_default();
            let values: Vec<f64> = draws.iter().map(|z| scale.beside(*z, mean)).collect();
            self.ensemble().error_of_spread(&values)
        };
        hubs.iter().map(error).fold(0.0, f64::max)
    }

    /// Writes what the tape says into the present round; what speaks against its draws.
    fn weigh(&self, state: &mut RefineState) -> Vec<String> {
        let mixing = mixing_of(self.ensemble(), self.target.dim(), &state.tape);
        let evidence = self.evidence(state);
        let round = state.rounds.last_mut().expect("a round was begun");
        round.mixing = mixing;
        round.log_evidence = evidence;
        state.reasons()
    }
}

/// How the draws of the round that is over have mixed; the next one may have begun.
pub(super) fn judged(state: &RefineState) -> Option<Mixing> {
    let before = match state.phase {
        Phase::Settle => 2,
        Phase::Temper | Phase::Draw => 1,
    };
    let at = state.rounds.len().checked_sub(before)?;
    state.rounds.get(at).map(|round| round.mixing)
}

/// The end of a refinement whose draws have mixed.
fn have_mixed(Mixing { rhat, ess, .. }: Mixing) -> Status {
    Status::Converged {
        evidence: Evidence {
            rule: format!(
                "refined draws have mixed: nested R̂ {rhat:.3} (limit {RHAT_LIMIT}), {ess:.0} effective draws or more of \
                 every coordinate (limit {ESS_LIMIT})"
            ),
            remaining: None,
            standard_error: None,
        },
    }
}

/// Whether twice as many draws would be enough.
pub(super) fn nearly(mixing: &Mixing) -> bool {
    mixing.rhat - 1.0 <= 2.0 * (RHAT_LIMIT - 1.0) && mixing.ess >= 0.5 * ESS_LIMIT
}

/// The worst mixing of the coordinates, their squares and the log density.
fn mixing_of(ensemble: Ensemble, dim: usize, tape: &Tape) -> Mixing {
    let lanes = ensemble.lanes();
    let chance = chance(ensemble.populations, quantities(dim));
    let coordinate = |i: usize| {
        let rows = tape.x.chunks(dim * lanes);
        let rows = rows.map(|cloud| &cloud[i * lanes..(i + 1) * lanes]);
        let draws: Vec<f64> = rows.flatten().copied().collect();
        ensemble.worst_with_spread(&draws, chance)
    };
    let each: Vec<Mixing> = (0..dim).into_par_iter().map(coordinate).collect();
    each.into_iter()
        .fold(ensemble.worst(&tape.log_p, chance), Mixing::join)
}

/// Quantities that are judged: coordinates, their spreads and the log density.
pub(super) fn quantities(dim: usize) -> usize {
    2 * dim + 1
}

impl RefineState {
    /// How well the last finished round has mixed.
    pub(super) fn mixing(&self) -> Mixing {
        self.rounds
            .last()
            .map_or(Mixing::UNKNOWN, |round| round.mixing)
    }

    /// The log evidence as of the last finished round.
    pub(super) fn evidence(&self) -> Estimate {
        self.rounds
            .last()
            .map_or(Estimate::UNKNOWN, |round| round.log_evidence)
    }

    /// What speaks against the draws; empty where they have mixed.
    pub(super) fn reasons(&self) -> Vec<String> {
        if let Some(failure) = &self.failure {
            return vec![failure.clone()];
        }
        let mixing = self.mixing();
        if mixing.rhat.is_nan() {
            return vec!["refinement was not finished".to_owned()];
        }
        let mut reasons = Vec::new();
        if mixing.rhat > RHAT_LIMIT {
            reasons.push(format!(
                "chains remember their start: nested R̂ is {:.3}, above {RHAT_LIMIT}",
                mixing.rhat
            ));
        }
        if mixing.ess < ESS_LIMIT {
            reasons.push(format!(
                "some quantity has {:.0} effective draws, fewer than {ESS_LIMIT}",
                mixing.ess
            ));
        }
        let limit = drift_limit(quantities(self.cloud.x.len() / self.cloud.lanes()));
        if mixing.drift > limit {
            reasons.push(format!(
                "chains have not arrived: some quantity drifts by {:.1} standard errors, above {limit:.1}",
                mixing.drift
            ));
        }
        let spread = self.evidence().standard_error;
        if spread.is_nan() || spread > LIMITS.0 {
            reasons.push(format!(
                "populations disagree on the log evidence by {spread:.1} nats"
            ));
        }
        let stuck = self.rounds.last().map_or(0.0, |round| round.stuck);
        if stuck > LIMITS.1 {
            reasons.push(format!(
                "{:.1} % of the transitions found no step size that keeps the energy",
                100.0 * stuck
            ));
        }
        reasons
    }
}
