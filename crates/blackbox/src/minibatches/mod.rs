//! Variational inference on minibatches of exchangeable records.
//!
//! A [`RecordDensity`](jensen_density::RecordDensity) is the input, a Gaussian approximation the output. The crate
//! `jensen-glm` has models with hand-written kernels, and an example of a whole fit.
//!
//! | file | subject |
//! | --- | --- |
//! | `minibatch` | [`Minibatch`]: estimator × family × optimiser as an algorithm, with a stopping rule |
//! | `smiso` | [`Smiso`]: an incremental method of its own |

mod minibatch;
mod smiso;

pub use minibatch::{Judge, Minibatch, MinibatchSettings, MinibatchState};
pub use smiso::{Smiso, SmisoSettings, SmisoState};
