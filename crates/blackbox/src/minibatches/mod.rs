//! Variational inference on minibatches of exchangeable records.
//!
//! The methods take a [`RecordDensity`](jensen_density::RecordDensity) and return a Gaussian approximation. For models
//! with hand-written kernels, and for an example of a complete fit, see the crate `jensen-glm`.
//!
//! | file | subject |
//! | --- | --- |
//! | `minibatch` | [`Minibatch`]: estimator × family × optimiser as an algorithm, with a stopping rule |
//! | `smiso` | [`Smiso`]: incremental minimisation |

mod minibatch;
mod smiso;

pub use minibatch::{Judge, Minibatch, MinibatchSettings, MinibatchState};
pub use smiso::{Smiso, SmisoSettings, SmisoState};
