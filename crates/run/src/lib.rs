//! The loop that runs the iterative methods of Jensen, with budgets, traces and checkpoints.
//!
//! Every iterative method of Jensen implements [`Algorithm`] and keeps its state as plain data. The function [`run`]
//! provides budgets, interruption, traces, progress reports and checkpoints for all of these methods. The crate does
//! not access files, clocks or the terminal. Instead, the caller passes a [`Clock`], an [`Observer`] and a [`Store`].
//!
//! | file | subject |
//! | --- | --- |
//! | `algorithm` | [`Algorithm`]: the trait of iterative methods |
//! | `archive` | [`Archive`] and [`Snapshot`]: a state as named tensors and scalars |
//! | `checkpoint` | [`Checkpoint`]: encoding, integrity, and the properties that a resumed run must match |
//! | `interrupt` | [`Interrupt`]: interruption of a step before it is complete |
//! | `run` | [`run`]: the loop; [`Budget`], [`Control`], [`Outcome`] |
//! | `setting` | [`SettingError`]: the error of an invalid setting |
//! | `status` | [`Status`]: the end of a run, with advice |
//! | [`temperature`] | temperature schedules |
//! | `trace` | [`Record`] and [`Observer`]: one line per iteration |
//! | `tree` | [`tree_sum`]: sums that do not depend on the number of workers |
//! | [`wire`] | arrays as bytes, for messages between processes |
//! | `verdict` | [`Verdict`]: whether a result is trusted, with the reasons against it |
//!
//! Two guarantees hold for every algorithm that derives its random numbers only from the seed and the iteration number.
//! The iterations of a short run are identical to the first iterations of a longer run. The results of a resumed run
//! are bitwise identical to those of an uninterrupted run, except for the elapsed time.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod algorithm;
mod archive;
mod checkpoint;
mod interrupt;
mod run;
mod setting;
mod status;
pub mod temperature;
mod trace;
mod tree;
mod verdict;
pub mod wire;

pub use algorithm::{Algorithm, Step};
pub use archive::{Archive, ArchiveError, Snapshot, Tensor};
pub use checkpoint::{
    Checkpoint, CheckpointError, Difference, FORMAT_VERSION, Identity, RngPosition,
};
pub use interrupt::Interrupt;
pub use run::{
    Budget, Clock, Control, Outcome, RunError, Store, StoreError, run, run_interruptibly,
};
pub use setting::SettingError;
pub use status::{Evidence, Limit, Status};
pub use trace::{Observer, Progress, Record, Silent};
pub use tree::tree_sum;
pub use verdict::{Reason, Verdict};
