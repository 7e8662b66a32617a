//! Fits that infer the global temperature in two runs. One run starts at T = 1, and the other starts at a high
//! temperature. Both runs visit the same batches.
//!
//! The objective of variational tempering can have two maxima in T: one near T = 1 and one at a high temperature. The
//! start decides which of them a run finds, but Mandt et al. (2016) do not specify the start. Both runs maximise the
//! same bound of the tempered model, so the driver keeps the result with the larger bound.

use jensen_run::{Algorithm, Archive, ArchiveError, Snapshot, Status, Step};

use crate::driver::{Driver, FitState};
use crate::engine::Engine;

/// A driver that makes both runs of the same engine.
pub struct Ends<E: Engine>(pub Driver<E>);

/// The states of the two runs.
#[derive(Clone, Debug)]
pub struct EndsState<G, T> {
    cold: FitState<G, T>,
    warm: FitState<G, T>,
    /// Whether an interruption came after the hot run made the current step and before the cold run made it.
    ahead: bool,
}

impl<G: Snapshot, T: Snapshot> Snapshot for EndsState<G, T> {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("cold", self.cold.save());
        archive.nest("warm", self.warm.save());
        archive.set("ahead", self.ahead);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            cold: FitState::restore(&archive.nested("cold"))?,
            warm: FitState::restore(&archive.nested("warm"))?,
            ahead: archive.get("ahead")?,
        })
    }
}

impl<E: Engine> Algorithm for Ends<E> {
    type State = EndsState<E::Globals, E::Table>;
    type Output = [FitState<E::Globals, E::Table>; 2];

    fn init(&mut self) -> Result<Self::State, Status> {
        let warm = self.0.init()?;
        let mut cold = warm.clone();
        cold.cool();
        Ok(EndsState {
            cold,
            warm,
            ahead: false,
        })
    }

    /// Advances both runs by one step. The record comes from the cold run and also contains the temperature of the hot
    /// run.
    fn step(&mut self, state: &mut Self::State, iteration: u64) -> Step {
        if !state.ahead {
            let step = self.0.step(&mut state.warm, iteration);
            if let Some(Status::Interrupted { .. }) = step.status {
                return step;
            }
        }
        let step = self.0.step(&mut state.cold, iteration);
        state.ahead = matches!(step.status, Some(Status::Interrupted { .. }));
        let temperature = 1.0 / state.warm.inverse;
        Step {
            record: step.record.with("warm_temperature", temperature),
            status: step.status,
        }
    }

    fn output(&mut self, state: &Self::State) -> Self::Output {
        [&state.cold, &state.warm].map(|end| self.0.output(end))
    }
}
