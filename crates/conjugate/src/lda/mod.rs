//! Latent Dirichlet allocation over streamed documents.
//!
//! | file | subject |
//! | --- | --- |
//! | `settings` | [`LdaSettings`] |
//! | `fit` | [`LdaJob`], [`fit`]: settings and corpus to topics |
//! | `topics` | [`Topics`]: q(β) |
//! | `predict` | [`Predictor`]: proportions of new documents, document completion |
//! | `engine` | batches: rows of words, local steps, statistics |
//! | `local` | the local step of a document, its own temperature included |
//! | `kernel` | inner loops in single precision |
//! | `globals` | λ under way, decayed all at once |
//! | `powers` | Σ_v E[β^s], for local temperatures |
//! | `partition` | log C(T) |

mod engine;
mod fit;
mod globals;
mod kernel;
mod local;
mod partition;
mod powers;
mod predict;
mod settings;
#[cfg(test)]
mod tests;
mod topics;

pub use engine::LdaEngine;
pub use fit::{LdaError, LdaFit, LdaJob, fit, identity, planned_iterations};
pub use globals::LdaGlobals;
pub use powers::PowerTable;
pub use predict::{Completion, Predictor, PredictorScratch, RULE};
pub use settings::{LdaSettings, LocalRule};
pub use topics::Topics;
