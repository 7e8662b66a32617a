//! The stopping rule of a TrustVI run. A run stops if the predicted gain of a Newton step is within the tolerance, or
//! if the predicted gain will apparently never be within the tolerance.

use jensen_run::{Evidence, Limit, Status};

use super::assessment::Assessment;
use super::settings::TrustSettings;
use super::state::TrustState;
use super::subproblem::Solution;

/// After this many rejected steps in a row, the run has stalled. Halving the radius at each of them would divide it by
/// 10¹².
pub(super) const PATIENCE: u64 = 40;

/// After this many iterations near the optimum with the largest samples, the noise counts as too large for the
/// tolerance.
const AT_LIMIT: u64 = 12;

/// The run ends if, in this many consecutive iterations, the model's maximiser is outside the region, but the model
/// predicts no gain above the tolerance inside the region.
const CRAMPED: u64 = 6;

/// The run has converged after this many successive iterations with predicted and measured gains below the tolerance.
/// One may be due to chance.
const QUIET: u64 = 2;

pub(super) fn judge(
    settings: &TrustSettings,
    tolerance: f64,
    state: &mut TrustState,
    iteration: u64,
    solution: &Solution,
    assessment: Option<&Assessment>,
) -> Option<Status> {
    let [predicted, deviation] = state.gap;
    let small = is_near(solution, deviation, tolerance);
    let agrees = assessment.is_some_and(|a| {
        let se = a.change.standard_error;
        a.change.mean + se <= tolerance && a.change.mean + 2.0 * se >= -tolerance
    });
    state.quiet = if small && agrees && state.fine {
        state.quiet + 1
    } else {
        0
    };
    if state.quiet >= QUIET {
        return Some(Status::Converged {
            evidence: Evidence {
                rule: format!(
                    "a Newton step in the trust region predicts at most {tolerance} nats, and fresh draws \
                     confirm it"
                ),
                remaining: Some(predicted),
                standard_error: Some(deviation),
            },
        });
    }
    let largest = state.gradient_draws >= settings.max_draws;
    state.at_limit = if largest && !solution.bounded {
        state.at_limit + 1
    } else {
        0
    };
    let words = format!(
        "the next step is predicted to gain {predicted:.2e} ± {deviation:.1e} nats, tolerance {tolerance}"
    );
    if state.at_limit >= AT_LIMIT {
        return Some(Status::BudgetReached {
            limit: Limit::Draws(settings.max_draws as u64),
            detail: words,
        });
    }
    state.cramped = if solution.bounded && predicted + deviation <= tolerance {
        state.cramped + 1
    } else {
        0
    };
    let reason = if state.rejected >= PATIENCE || state.radius < 1e-12 {
        format!("no step, however short, improves the bound, although {words}")
    } else if state.cramped >= CRAMPED {
        format!(
            "the bound rises as predicted only for steps below {:.1e} standard deviations; {words}",
            state.radius
        )
    } else if iteration >= settings.max_iterations {
        format!("{iteration} iterations; {words}")
    } else {
        return None;
    };
    Some(Status::Stalled {
        at: iteration,
        reason,
    })
}

/// Returns whether the gain that the model predicts, plus one standard error, is within the tolerance even without the
/// region.
pub(super) fn is_near(solution: &Solution, deviation: f64, tolerance: f64) -> bool {
    solution.unbounded.is_some_and(|gain| {
        // The deviation belongs to the step. For a longer step, it grows in proportion to the predicted gain.
        let longer = (gain / solution.predicted).max(1.0);
        gain.max(solution.predicted) + longer * deviation <= tolerance
    })
}
