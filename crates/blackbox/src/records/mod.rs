//! Variational inference on minibatches of exchangeable records.
//!
//! A [`RecordDensity`](jensen_density::RecordDensity) in, a Gaussian approximation out, from gradients
//! that are noisy twice: through the minibatch and through the draw.
//!
//! ```
//! use std::sync::Arc;
//!
//! use jensen_blackbox::family::{Family, MeanField};
//! use jensen_blackbox::records::models::{Features, Glm, Link, Sparse, StandardNormal};
//! use jensen_blackbox::records::{Minibatch, MinibatchSettings};
//! use jensen_run::Algorithm;
//!
//! // Three players; a row is a match, +1 for who won it and −1 for who lost.
//! let matches = [[(0, 1.0), (1, -1.0)], [(1, 1.0), (2, -1.0)], [(0, 1.0), (2, -1.0)]];
//! let features = Features::Sparse(Sparse::new(3, matches)?);
//! let model = Glm::new(features, Link::bernoulli(&[true; 3]), StandardNormal(3))?;
//!
//! let family = Arc::new(MeanField::new(3));
//! let start = family.diagonal(&[0.0; 3], &[0.0; 3]);
//! let settings = MinibatchSettings { batch: 2, judge: None, ..MinibatchSettings::default() };
//! let mut fit = Minibatch::new(&model, family, 1, settings, start)?;
//! let mut state = fit.init().expect("a start");
//! for iteration in 1..=2000 {
//!     fit.step(&mut state, iteration);
//! }
//! let mean = &fit.output(&state)[..3];
//! assert!(mean[0] > mean[1] && mean[1] > mean[2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `estimator` | [`RecordEstimator`]: naive, stl, cv, inc, ens, joint, joint-svrg, joint-exact |
//! | `gradients` | [`Gradients`]: an estimate from a batch, draws and a table |
//! | `predictors`, `snapshots` | the same through linear predictors, and for any other model |
//! | `expected` | the same with the draw integrated out |
//! | `table` | [`Table`]: what is remembered of earlier iterations |
//! | `change` | what renewing a batch's entries changes in a table's sums |
//! | `batches` | [`Batches`]: reshuffled epochs |
//! | `minibatch` | [`Minibatch`]: estimator × family × optimiser as an algorithm, with a stopping rule |
//! | `smiso` | [`Smiso`]: an incremental method of its own |
//! | `generic` | [`DoublyStochastic`], [`Generic`]: the same for any doubly stochastic objective |
//! | `prepared` | [`Prepared`]: a density's records as a fit uses them |
//! | `variance` | [`variances`]: total, subsampling and Monte-Carlo variance at an iterate |
//! | `memory` | [`footprint`], [`admit`]: memory before it is taken |
//! | `error` | [`RecordError`]: what is refused, with the way out |
//! | `models` | models with hand-written kernels |

mod batches;
mod change;
mod error;
mod estimator;
mod expected;
#[cfg(feature = "models")]
pub(crate) mod gemm;
mod generic;
mod gradients;
mod memory;
mod minibatch;
#[cfg(feature = "models")]
pub mod models;
mod predictors;
mod prepared;
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
pub use prepared::Prepared;
pub(crate) use prepared::evaluation_draws;
pub use smiso::{Smiso, SmisoSettings, SmisoState};
pub use table::Table;
pub use variance::{Place, VarianceSettings, Variances, variances};
