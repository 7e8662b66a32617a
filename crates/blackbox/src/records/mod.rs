//! Variational inference on minibatches of exchangeable records.
//!
//! A [`RecordDensity`](jensen_density::RecordDensity) in, a Gaussian approximation out, from gradients
//! that are noisy twice: through the minibatch and through the draw.
//!
//! | file | subject |
//! | --- | --- |
//! | `estimator` | [`RecordEstimator`]: naive, stl, cv, inc, ens, joint, joint-svrg |
//! | `gradients` | [`Gradients`]: an estimate from a batch, draws and a table |
//! | `predictors`, `snapshots` | the same through linear predictors, and for any other model |
//! | `table` | [`Table`]: what is remembered of earlier iterations |
//! | `batches` | [`Batches`]: reshuffled epochs |
//! | `minibatch` | [`Minibatch`]: estimator × family × optimiser as an algorithm, with a stopping rule |
//! | `smiso` | [`Smiso`]: an incremental method of its own |
//! | `generic` | [`DoublyStochastic`], [`Generic`]: the same for any doubly stochastic objective |
//! | `variance` | [`variances`]: total, subsampling and Monte-Carlo variance at an iterate |
//! | `memory` | [`footprint`], [`admit`]: memory before it is taken |
//! | `error` | [`RecordError`]: what is refused, with the way out |
//! | `models` | models with hand-written kernels |

mod batches;
mod error;
mod estimator;
pub(crate) mod gemm;
mod generic;
mod gradients;
mod memory;
mod minibatch;
pub mod models;
mod predictors;
mod smiso;
mod snapshots;
mod table;
mod variance;

pub use batches::Batches;
pub use error::RecordError;
pub use estimator::RecordEstimator;
pub use generic::{DoublyStochastic, Generic, GenericSettings, GenericState};
pub use gradients::{Gradients, Request};
pub use memory::{Footprint, admit, footprint};
pub use minibatch::{Judge, Minibatch, MinibatchSettings, MinibatchState};
pub use smiso::{Smiso, SmisoSettings, SmisoState};
pub use table::Table;
pub use variance::{Place, VarianceSettings, Variances, variances};
