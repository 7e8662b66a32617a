//! The fit loop: algorithms as init, step and output, with traces, budgets and checkpoints.
//!
//! Every iterative method of Jensen is an [`Algorithm`] with plain, storable state. A single loop, [`run`], provides
//! budgets, interruption, traces, progress and checkpoints for all of them. The crate opens no file, reads no clock and
//! prints nothing. The caller passes a [`Clock`], an [`Observer`] and a [`Store`].
//!
//! | file | subject |
//! | --- | --- |
//! | `algorithm` | [`Algorithm`]: init, step, output |
//! | `archive` | [`Archive`] and [`Snapshot`]: named tensors and scalars, as a state is stored |
//! | `checkpoint` | [`Checkpoint`]: versioned bytes, integrity, what must match to resume |
//! | `interrupt` | [`Interrupt`]: stopping in the middle of a step |
//! | `run` | [`run`]: the loop; [`Budget`], [`Control`], [`Outcome`] |
//! | `setting` | [`SettingError`]: a setting outside its range |
//! | `status` | [`Status`]: how a fit ended, with advice |
//! | [`temperature`] | temperatures that the passes made prescribe |
//! | `trace` | [`Record`] and [`Observer`]: one line an iteration |
//! | `tree` | [`tree_sum`]: sums of what leaves found, the same for any number of workers |
//! | [`wire`] | arrays as bytes, for what leaves are asked and answer |
//! | `verdict` | [`Verdict`]: whether a result is to be trusted, and why not |
//!
//! Two guarantees hold for every algorithm that derives its random numbers from (seed, iteration) alone. A shorter run
//! is a prefix of a longer one, and a resumed run has the same bits as an uninterrupted one, except for the seconds.

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
