//! Gradients from minibatches of exchangeable records, for the methods in [`minibatches`](crate::minibatches).
//!
//! The gradients have two sources of noise: the minibatch and the draw. For models with hand-written kernels, and for
//! an example of a complete fit, see the crate `jensen-glm`.
//!
//! | file | subject |
//! | --- | --- |
//! | `estimator` | [`RecordEstimator`]: naive, stl, cv, inc, ens, joint, joint-paper, joint-svrg, joint-exact |
//! | `gradients` | [`Gradients`]: an estimate from a batch, draws and a table |
//! | `predictors`, `snapshots` | estimates for linear predictors, and for any other model |
//! | `expected` | estimates with the draw integrated out |
//! | `literal` | the joint control variate as published |
//! | `table` | [`Table`]: the results stored from earlier iterations |
//! | `change` | the change of a table's sums when a batch's entries are renewed |
//! | `batches` | [`Batches`]: reshuffled epochs |
//! | `subsampled` | [`Subsampled`]: a density in which every pair of draws uses a minibatch |
//! | `expansion` | the second-order expansion of a likelihood, which reduces the noise of `subsampled` |
//! | `generic` | [`DoublyStochastic`], [`Generic`]: estimators for any doubly stochastic objective |
//! | `prepared` | [`Prepared`]: a density's records as a fit uses them |
//! | `variance` | [`variances`]: total, subsampling and Monte-Carlo variance at an iterate |
//! | `memory` | [`footprint`], [`admit`]: estimates of the memory that a fit needs |

mod batches;
mod change;
mod estimator;
mod expansion;
mod expected;
mod generic;
mod gradients;
mod literal;
mod memory;
mod predictors;
mod prepared;
mod snapshots;
mod subsampled;
mod table;
mod variance;

pub use crate::error::RecordError;
pub use batches::Batches;
pub use estimator::RecordEstimator;
pub use generic::{DoublyStochastic, Generic, GenericSettings, GenericState};
pub use gradients::{GradientRequest, Gradients};
pub use memory::{Footprint, admit, footprint};
pub use prepared::Prepared;
pub use subsampled::{Subsampled, SubsampledWorkspace};
pub use table::Table;
pub use variance::{EvaluationPoint, VarianceSettings, Variances, variances};

pub(crate) use batches::Order;
pub(crate) use subsampled::{Choose, Layout, StreamPosition};
pub(crate) use variance::{Watch, trace_variances, watched};
