//! The interface of an iterative method.

use crate::{Record, Snapshot, Status};

/// The report of one step.
#[derive(Clone, Debug)]
pub struct Step {
    /// The line for the trace. The loop sets `iteration` and `seconds`.
    pub record: Record,
    /// The status of a finished algorithm, successful or not.
    pub status: Option<Status>,
}

impl Step {
    /// The outcome of a step after which the run continues.
    pub fn go_on(record: Record) -> Self {
        Self {
            record,
            status: None,
        }
    }

    /// A last step.
    pub fn finish(record: Record, status: Status) -> Self {
        Self {
            record,
            status: Some(status),
        }
    }
}

/// An iterative method: An iterative method: `init`, then `step` until a status or the budget ends
/// it, then `output`.
///
/// `self` holds settings, the problem and scratch memory. Everything on which a later step depends
/// belongs to the state, so a stored state is a stored run. Scratch memory may be reused, but it must not influence
/// results. Random numbers are derived from the seed in the settings and the iteration number, never from a generator
/// with its own state.
pub trait Algorithm {
    /// Plain data.
    type State: Snapshot;
    /// The input of a run.
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
