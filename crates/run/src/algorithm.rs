//! The trait that all iterative methods implement, and the result of a single step.

use crate::{Record, Snapshot, Status};

/// The result of one step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The trace line of this step. [`run`](crate::run()) fills in its fields `iteration` and `seconds`.
    pub record: Record,
    /// The status with which this step ended the run, or `None` if the run continues.
    pub status: Option<Status>,
}

impl Step {
    /// Returns the result of a step that does not end the run.
    pub fn go_on(record: Record) -> Self {
        Self {
            record,
            status: None,
        }
    }

    /// Returns the result of a step that ends the run with `status`.
    pub fn finish(record: Record, status: Status) -> Self {
        Self {
            record,
            status: Some(status),
        }
    }
}

/// An iterative method that [`run`](crate::run()) executes. The loop calls `init` once, and then calls `step` until a
/// step returns a status or the budget is exhausted. At the end of the run, the loop calls `output`.
///
/// `self` contains the settings, the problem and scratch memory. The state must contain everything that later steps
/// depend on, so that a run can be resumed from its stored state. Implementations may reuse scratch memory between
/// steps, but its contents must not influence results. An algorithm must derive its random numbers from the seed in the
/// settings and the iteration number, not from a random number generator that keeps its own state.
pub trait Algorithm {
    /// The state between two steps.
    type State: Snapshot;
    /// The result of a run.
    type Output;

    /// Returns the state before the first step.
    ///
    /// # Errors
    /// Fails with a [`Status`] (usually [`Status::Diverged`]) if there is no valid initial state.
    fn init(&mut self) -> Result<Self::State, Status>;

    /// Performs the step with number `iteration`. The first step has number 1.
    fn step(&mut self, state: &mut Self::State, iteration: u64) -> Step;

    /// Computes the output of the algorithm from `state`. The loop calls this method at most once, at the end of the
    /// run.
    fn output(&mut self, state: &Self::State) -> Self::Output;
}
