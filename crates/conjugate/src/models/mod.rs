//! The conjugate models. Each file defines one model or one kind of component. A definition consists of priors, a local
//! step, statistics and a tempered normaliser. The drivers and the temperature policies are in other modules.

mod components;
mod correlation;
mod discrete;
mod factorial;
mod gaussian;
mod hmm;
mod merging;
mod mixture;
mod predictive;
mod sampled;
mod scaled;
mod seeding;
mod several_kinds;
#[cfg(test)]
mod tests;

pub use components::{Completed, Components};
pub use discrete::{Bernoullis, Categoricals, Multinomials, Poissons};
pub use factorial::{FactorialMixture, FactorialSettings, FactorialStart};
pub use gaussian::{Covariance, GaussianPrior, Gaussians};
pub use hmm::HiddenMarkov;
pub use mixture::{Mixing, Mixture, MixtureScratch};
pub use predictive::Predictive;
pub use sampled::{Sampled, sample};
pub use scaled::Scaled;
pub use several_kinds::SeveralKinds;
