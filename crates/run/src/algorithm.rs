//! The trait of iterative methods, and the result of one of their steps.

use crate::{Record, Snapshot, Status};

/// The result of one step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line for the trace. [`run`](crate::run()) sets its fields `iteration` and `seconds`.
    pub record: Record,
    /// The status if this step ended the algorithm, successfully or not, and `None` otherwise.
    pub status: Option<Status>,
}

impl Step {
    /// Returns the result of a step after which the run continues.
    pub fn go_on(record: Record) -> Self {
        Self {
            record,
            status: None,
        }
    }

    /// Returns the result of the last step of a run.
    pub fn finish(record: Record, status: Status) -> Self {
        Self {
            record,
            status: Some(status),
        }
    }
}

/// An iterative method. [`run`](crate::run()) calls `init`, then `step` until a step returns a status or the budget is
/// exhausted, and finally `output`.
///
/// `self` contains the settings, the problem and scratch memory. The state contains everything on which a later step
/// depends, so that storing the state stores the run. Scratch memory may be reused, but it must not influence results.
/// An algorithm derives its random numbers from the seed in the settings and the iteration number, and never from a
/// generator with its own state.
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

    /// Performs step number `iteration` (the first is 1).
    fn step(&mut self, state: &mut Self::State, iteration: u64) -> Step;

    /// Returns the result at `state`. The loop calls this once, however the run ends.
    fn output(&mut self, state: &Self::State) -> Self::Output;
}
