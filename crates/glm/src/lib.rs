//! Generalised linear models of exchangeable records, and two related models, with hand-written kernels.
//!
//! Every model is a density p(z) ∏ₙ p(yₙ | z) over N records in nats, with all normalising constants. [`Glm`] has K
//! linear predictors per record, ηₙ = xₙ W. It consists of features ([`Dense`] rows of numbers or bytes, or [`Sparse`]
//! rows), a [`Link`] from predictors to outcomes, and a [`Prior`] of the weights. The model has the same coordinates as
//! its prior, and the last of them are the D × K weights. [`Ppca`] is probabilistic principal components with the
//! scores integrated out (Tipping and Bishop 1999). Both models implement
//! [`RecordDensity`](jensen_density::RecordDensity). Minibatch methods use them directly, and
//! [`AllRecords`](jensen_density::AllRecords) turns them into ordinary densities for every other method.
//! [`GaussianDropout`] is a [`DoublyStochastic`](jensen_blackbox::records::DoublyStochastic) objective with noise in
//! its features. Wang, Geffner and Domke use these models in the experiments of *Joint control variate for faster
//! black-box variational inference* (2024).
//!
//! The following example fits a logistic regression on minibatches, with a mean-field approximation:
//!
//! ```
//! use jensen_blackbox::minibatches::MinibatchSettings;
//! use jensen_blackbox::{Settings, Subject, fit};
//! use jensen_density::AllRecords;
//! use jensen_glm::{Dense, Features, Glm, Link, StandardNormal};
//! use jensen_run::{Budget, Control, Silent};
//!
//! // Students with more hours pass more often. A row contains 1 and the deviation of the hours from their mean.
//! let hours = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0];
//! let passed = [false, false, false, true, false, true, false, true, true, true];
//! let rows = hours.iter().flat_map(|h| [1.0, h - 2.75]).collect();
//! let features = Features::Dense(Dense::new(rows, 2)?);
//! let model = Glm::new(features, Link::bernoulli(&passed), StandardNormal(2))?;
//!
//! let settings = Settings { method: MinibatchSettings::of(5).into(), ..Settings::default() };
//! let clock = || 0.0;
//! let mut observer = Silent;
//! let mut control = Control::new(Budget::iterations(20_000), &clock, &mut observer);
//! let fitted = fit(&AllRecords::new(model), &settings, &Subject::default(), &mut control)?;
//! let mean = fitted.approximation().mean();
//! assert!(mean[1] > 0.5, "an hour more helps: {mean:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | file | subject |
//! | --- | --- |
//! | `features` | [`Features`]: the rows of a design matrix; [`Dense`] ones, gathered a batch at a time |
//! | `sparse` | [`Sparse`]: rows with few entries, and their products |
//! | `link` | [`Link`]: Bernoulli-logit and categorical-logit, their derivatives in the predictors |
//! | `product` | matrix products whose bits do not depend on threads |
//! | `prior` | [`Prior`]: independent normals, normals with a common mean and scale |
//! | `glm` | [`Glm`]: features, link and prior as one density |
//! | `dropout` | [`GaussianDropout`]: softmax regression with noise on its features |
//! | `ppca` | [`Ppca`]: probabilistic principal components with the scores integrated out |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

mod dropout;
mod features;
mod glm;
mod link;
mod ppca;
mod prior;
mod product;
mod sparse;

pub use dropout::GaussianDropout;
pub use features::{Dense, Features};
pub use glm::Glm;
pub use link::Link;
pub use ppca::Ppca;
pub use prior::{CommonNormal, Prior, StandardNormal};
pub use sparse::Sparse;

/// The error for inputs that do not define a valid model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError(pub String);

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShapeError {}
