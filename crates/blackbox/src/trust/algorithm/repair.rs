//! What an iteration changes after a step without the predicted gain: the draws of the next Hessian, and scales that reach
//! too far into the tails.

use jensen_density::TwiceDifferentiable;

use super::{FAR, Trust};
use crate::trust::assessment::{Assessment, Sample, assess};
use crate::trust::state::TrustState;
use crate::trust::trial::{Proposal, Trial};

/// The norm of a step, in units of the region, within which the quadratic model should hold.
const BELIEVED: f64 = 1.5;

/// The share of the predicted gain that such a step should achieve.
const FAIR: f64 = 0.6;

/// The largest factor by which contradicted Hessians raise their number of draws.
const BOOST: usize = 32;

/// The current scales are assumed to reach too far into the tails if the standard error of the ELBO exceeds the
/// predicted gain of a step by this factor. This rule also applies near an optimum.
const WILD: f64 = 10.0;

/// The number of draws for the comparison of halved scales. Scales are halved only if their noise halves too, which a
/// hundred draws show.
const RETREAT_DRAWS: usize = 128;

/// The largest number of halvings per iteration, which together divide a scale by 256.
const HALVINGS: usize = 8;

impl<D: TwiceDifferentiable> Trust<'_, D> {
    /// If a few draws in the tails dominate the ELBO, few gradients contain such draws. A model of the ELBO then
    /// provides no direction, and every step is random. After a step without a clear gain, the method therefore halves
    /// the scales repeatedly, as long as the ELBO on the draws of that step becomes higher and more precise.
    pub(super) fn retreat(
        &mut self,
        state: &mut TrustState,
        found: &Assessment,
        promised: f64,
        key: u64,
    ) {
        let noise = found.before.standard_error;
        let wild = noise > WILD * promised.max(1.0);
        let clear = found.change.mean > 2.0 * found.change.standard_error;
        if !(wild || (promised > FAR && noise > 1.0)) || clear {
            return;
        }
        let draws = found.draws.min(RETREAT_DRAWS);
        let sample = Sample {
            source: self.source,
            key,
            draws,
            precision: f64::INFINITY,
            most: draws,
            records: self.records,
        };
        for _ in 0..HALVINGS {
            let trial = self.family.shrink(&state.omega, 0.5);
            let again = assess(&mut self.oracle, &state.omega, &trial, sample, None);
            state.calls += self.oracle.take_calls();
            let noise = again.before.standard_error;
            let clearer = again.after.standard_error < 0.5 * noise;
            let better = again.change.mean > 0.5 * noise;
            if !(clearer && better) {
                return;
            }
            state.omega = trial;
            state.explicit = None;
            state.moved = f64::MAX;
            state.uses = 0;
            state.rejected = 0;
            state.change_draws = self.settings.change_draws;
            state.radius = state.radius.max(1.0);
        }
    }
}

/// Returns whether a step was clearly worse than predicted although it was within the range of the quadratic model. In
/// this case, the Hessian is probably inaccurate, and the next Hessian uses more draws. Far from the optimum, a step
/// may also be worse than predicted because the ELBO is not quadratic.
pub(super) fn weigh_hessian(state: &mut TrustState, proposal: &Proposal, trial: &Trial) -> bool {
    let promised = proposal.promised;
    let contradicted = proposal.solution.norm <= BELIEVED
        && trial.found.as_ref().is_some_and(|found| {
            found.change.mean + 2.0 * found.change.standard_error < FAIR * promised
        });
    let far = promised > FAR;
    if contradicted && !(far && trial.accepted) {
        state.boost = (2 * state.boost).min(BOOST);
    } else if far && trial.accepted {
        state.boost = (state.boost / 2).max(1);
    }
    contradicted
}
