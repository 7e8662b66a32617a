//! The conjugate models. Each file defines one model or one kind of component. A definition consists of priors, a local
//! step, statistics and a tempered normaliser. The drivers and the temperature policies are in other modules.

mod correlation;
mod discrete;
mod factorial;
mod gaussian;
mod hmm;
mod mixture;
mod sampled;
mod several_kinds;
#[cfg(test)]
mod tests;

pub use discrete::{Bernoullis, Categoricals, Multinomials, Poissons};
pub use factorial::{FactorialMixture, FactorialSettings, FactorialStart};
pub use gaussian::{Covariance, GaussianPrior, Gaussians};
pub use hmm::HiddenMarkov;
pub use mixture::{Completed, Components, Mixture, MixtureScratch, Predictive};
pub use sampled::{Sampled, sample};
pub use several_kinds::SeveralKinds;
