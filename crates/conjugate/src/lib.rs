//! Conditionally conjugate models at scale: batch and stochastic variational inference, variational tempering.
//!
//! | file | subject |
//! | --- | --- |
//! | [`documents`] | bags of words that can be streamed, and orders to visit them in |
//! | [`temper`] | temperature policies |
//! | [`lda`] | latent Dirichlet allocation |
//!
//! ## Topics
//!
//! The way of a topic model through this crate, from a corpus that implements [`documents::Documents`]:
//!
//! ```text
//! lda::LdaJob { documents: &dyn Documents, heldout: Option<&dyn Documents>, start: Option<&Topics>,
//!               settings: LdaSettings, simd: Simd, data_hash: String }
//! lda::fit(job, &mut jensen_fit::Control) -> Result<jensen_fit::Outcome<LdaFit>, LdaError>
//! LdaFit  { topics: Topics, elbo, temperature, documents, skipped, heldout: Option<Completion> }
//! Topics  { topics, terms, alpha, eta, lambda: Vec<f32> (terms × topics), iterations }   top_words(topic, n), Snapshot
//! Predictor::new(&Topics, LocalRule, Simd)   theta(&Bag, &mut [f64]), completion(&dyn Documents, seed) -> Completion
//! Completion { log_predictive: f64 (nats per word), standard_error, words, documents, skipped }
//! ```

pub mod documents;
pub mod lda;
pub mod temper;
