//! The interface between models and inference algorithms. A model is a log density that is evaluated for several lanes
//! at once.
//!
//! A *lane* is one draw. Matrices of draws have one row per coordinate and one column per lane, and they are stored in
//! row-major order. The lanes of one coordinate are therefore contiguous: coordinate `d` of draw `l` is `data[d *
//! lanes + l]`.
//!
//! | file | subject |
//! | --- | --- |
//! | `lanes` | borrowed views of such matrices |
//! | `density` | [`LogDensity`], [`TwiceDifferentiable`] |
//! | `difference` | [`Differenced`]: second derivatives by differences of gradients |
//! | `erased_density` | [`ErasedDensity`]: a density of any type behind a pointer |
//! | `erased_records` | [`ErasedRecords`]: records of any model behind a pointer |
//! | `pattern` | [`Pattern`]: which mixed second derivatives vanish |
//! | `posterior` | [`Posterior`]: names, shapes, constrained values and generated quantities |
//! | `records` | [`RecordDensity`], [`LinearPredictor`]: exchangeable data, one minibatch at a time |
//!
//! The documentation of each trait states the guarantees on which inference relies.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod density;
mod difference;
mod erased_density;
mod erased_records;
mod lanes;
mod pattern;
mod posterior;
mod records;

pub use density::{LogDensity, TwiceDifferentiable};
pub use difference::{Differenced, DifferencedWorkspace};
pub use erased_density::{DensityWorkspace, ErasedDensity};
pub use erased_records::{ErasedRecords, ErasedWorkspace};
pub use lanes::{Lanes, LanesMut};
pub use pattern::Pattern;
pub use posterior::{
    ConstrainError, Constrained, DrawKey, Posterior, Scale, Unconstrained, Variable, VariableKind,
};
pub use records::{
    AllRecords, AllRecordsWorkspace, Group, LinearPredictor, LinkExpectations, PredictorScratch,
    RecordDensity,
};
