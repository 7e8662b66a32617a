//! Latent Dirichlet allocation on documents that are read as a stream.
//!
//! | file | subject |
//! | --- | --- |
//! | `settings` | [`LdaSettings`] |
//! | `fit` | [`LdaJob`], [`fit`]: settings and corpus to topics |
//! | `topics` | [`Topics`]: q(β) |
//! | `unigram` | [`unigram()`]: one topic for all documents, which fits are compared with |
//! | `predict` | [`Predictor`]: proportions of new documents |
//! | `prevalence` | [`prevalence()`]: effects of covariates on the prevalence of topics |
//! | `score` | [`Completion`]: the predictive quality of topics on held-out words |
//! | `start` | initial topics from dissimilar documents |
//! | `several` | [`fit_best`]: the choice of the number of topics |
//! | `engine` | batches and global steps |
//! | [`Shards`] in `shards` | the interface to the processes that run local steps, and the sum of their parts |
//! | `shard` | a shard's share of a batch: rows of words, local steps, statistics |
//! | `local` | the local step of a document, including its own temperature |
//! | `kernel` | inner loops in single precision |
//! | `globals` | λ during a fit, with a common decay factor |
//! | `powers` | Σ_v E[β^s], for local temperatures |
//! | `process` | the hierarchical Dirichlet process: α from broken sticks |
//! | `redundant` | topics whose words other topics explain |
//! | `partition` | log C(T) |

#[cfg(test)]
mod ends_tests;
mod engine;
mod fit;
mod globals;
mod kernel;
mod local;
pub mod partition;
mod powers;
mod predict;
mod prevalence;
#[cfg(test)]
mod prevalence_tests;
mod process;
#[cfg(test)]
mod process_tests;
mod redundant;
mod score;
mod settings;
mod several;
mod shard;
mod shards;
#[cfg(test)]
mod shards_tests;
mod start;
#[cfg(test)]
mod tests;
mod topics;
mod unigram;

pub use engine::LdaEngine;
pub use fit::{LdaError, LdaFit, LdaJob, Rest, fit, fit_on, identity, planned_iterations};
pub use globals::LdaGlobals;
pub use powers::PowerTable;
pub use predict::{Predictor, PredictorScratch, RULE};
pub use prevalence::{LEAST_SWEEPS, Prevalence, PrevalenceError, PrevalenceSettings, prevalence};
pub use score::{Completion, Piece, Score, completion};
pub use settings::{Inference, LdaSettings, LearnAlpha, LocalRule, Seed, Start};
pub use several::{BestTopics, STARTS, fit_best, identity_of_several, passes_to_compare};
pub use shards::{Ask, BlockMemory, Part, Shards, Spare, block_size, block_step, score_step};
pub use topics::Topics;
pub use unigram::{unigram, unigram_bounds};
