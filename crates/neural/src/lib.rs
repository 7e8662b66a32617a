//! Auto-encoding variational Bayes. The crate contains networks, estimators, training and evaluation in single
//! precision.
//!
//! A model with one latent vector per record is a set of graph expressions ([`LocalModel`]). The generative network
//! [`Decoder`] of an auto-encoder is such a model. A recognition network ([`Encoder`]) computes the approximate
//! posterior of a record's latent values. [`Trainer`] maximises the bound over the weights of both networks, in the
//! loop that all fits share. Minibatches are the lanes of the graph's single-precision executor.
//!
//! | module | subject |
//! | --- | --- |
//! | [`layers`] | activations, layers, networks |
//! | [`convolution`] | convolutional layers of images |
//! | [`likelihood`] | distributions of the values of a record, one row each |
//! | [`observation`] | the values of a record, the encoder's inputs for them, and their density |
//! | [`parts`] | parts of a record with different distributions |
//! | [`model`] | models, architectures, initial weights |
//! | [`family`] | families of q(z given x), one file each |
//! | [`bound`] | estimators A and B of the bound as graphs |
//! | [`optimise`] | SGD, Adagrad, Adam |
//! | [`temper`] | temperatures of the likelihood |
//! | [`train`] | the training algorithm |
//! | [`guide`] | amortised posteriors of densities that are not graphs |
//! | [`evaluate`] | bounds of unseen records |
//! | [`autoencoder`] | codes, samples, pictures, importance-weighted bounds |
//! | [`marginal`], [`hmc`] | the marginal likelihood from posterior draws |
//! | [`sleep`], [`expectation`] | the baselines: wake-sleep, Monte-Carlo EM |
//! | [`posterior`] | posteriors of weights, and expectations over them |
//! | [`records`] | sources of records |
//! | [`onnx`] | networks in the format of other programs |
//!
//! The method is that of Kingma and Welling (2014), "Auto-Encoding Variational Bayes". Equation numbers in the
//! documentation refer to this paper.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod autoencoder;
pub mod bound;
pub mod convolution;
pub mod evaluate;
pub mod expectation;
pub mod family;
mod forward;
mod free;
pub mod guide;
pub mod hmc;
pub mod layers;
pub mod likelihood;
pub mod marginal;
pub mod model;
pub mod observation;
pub mod onnx;
pub mod optimise;
mod parameters;
pub mod parts;
pub mod posterior;
pub mod records;
pub mod sleep;
pub mod temper;
pub mod train;

pub use autoencoder::{
    ACTIVE_THRESHOLD, ActiveUnits, Autoencoder, AutoencoderError, Codes, LogMarginal, Samples,
};
pub use bound::{BoundGraph, Estimator};
pub use convolution::{Convolutions, Grid};
pub use evaluate::{BoundEstimate, BoundEvaluator};
pub use expectation::{EmState, MonteCarloEm};
pub use family::PosteriorFamily;
pub use guide::{Amortisation, LocalDensity};
pub use hmc::HmcSettings;
pub use layers::{Activation, Layer, Network, TensorSpec};
pub use likelihood::{Likelihood, OutOfDomain};
pub use marginal::MarginalSettings;
pub use model::{
    Architecture, ArchitectureError, Decoder, Encoder, LocalModel, RecordError, Tensor,
    initial_weights,
};
pub use observation::Observation;
pub use optimise::Optimiser;
pub use parts::Part;
pub use posterior::WEIGHT_DRAWS;
pub use records::{ByteRecords, FloatRecords, Records, Selection};
pub use sleep::WakeSleep;
pub use temper::Temper;
pub use train::{TrainError, TrainSettings, TrainState, Trained, Trainer};
