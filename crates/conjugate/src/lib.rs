//! Conditionally conjugate models at scale, fitted by batch or stochastic variational inference, with variational
//! tempering.
//!
//! | file | subject |
//! | --- | --- |
//! | [`driver`] | batch coordinate ascent and stochastic variational inference |
//! | [`ends`] | two runs of an inferred temperature, from either end |
//! | [`contest`] | a run of several fits of an engine, which keeps the best one |
//! | [`engine`] | the interface of a model to the drivers |
//! | [`temper`], [`policy`] | temperature policies and their settings |
//! | [`documents`] | bags of words that can be streamed, and orders of visits |
//! | [`lda`] | latent Dirichlet allocation |
//! | [`family`], [`model`] | the class of models: families of global parameters, and the interface of a model |
//! | [`pointwise`] | an engine of any model with one vector of global parameters |
//! | [`shards`] | points whose local steps other processes run |
//! | [`models`] | Gaussian, Bernoulli and multinomial mixtures, factorial mixtures, hidden Markov chains |
//! | [`plain`] | the model of one part, which fits are compared with |
//! | [`fit`](mod@fit) | fits of a model in the common loop |
//! | [`several`] | several starts or sizes of a model in one run |
//!
//! ## Topics
//!
//! A corpus implements [`documents::Documents`]. [`lda::fit`] runs an [`lda::LdaJob`] under a [`jensen_run::Control`],
//! and returns an [`lda::LdaFit`] with [`lda::Topics`]. [`lda::Predictor`] computes the topic proportions of new
//! documents and scores held-out words. To update topics with new documents, run a job on these documents. Its `start`
//! contains the earlier topics, and its `population` is the total number of earlier and new documents.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod contest;
pub mod documents;
mod draws;
pub mod driver;
pub mod ends;
pub mod engine;
pub mod family;
pub mod fit;
pub mod lda;
pub mod model;
pub mod models;
pub mod plain;
pub mod pointwise;
pub mod policy;
pub mod several;
pub mod shards;
pub mod temper;
