//! Priors with hyperparameters.
//!
//! | file | subject |
//! | --- | --- |
//! | `setting` | hyperparameters, fixed or free |
//! | `kernel` | the table of covariance functions: values and derivatives |
//! | `gp` | Gaussian processes: sums of products of covariance functions |
//! | `graph` | paths, lattices with holes, graphs of regions |
//! | `field` | Gaussian Markov random fields |
//! | `correlated` | correlated effects of groups |
//! | `scaling` | what gives an intrinsic field a generalised variance of 1 |
//! | `stack` | independent parts side by side |
//! | `replicated` | independent copies for the predictors of a vector site |
//! | `spec` | priors written as text: the syntax |
//! | `terms` | priors written as text: the table of words |
//! | `distribution` | priors of hyperparameters written as text |
//! | `by` | terms scaled by columns |
//! | `term` | priors written as text: one term to a part of the prior |
//! | `columns` | columns as a model measures them |
//! | `pin` | which flat directions of intrinsic parts the rows do not tell apart |
//! | `inputs` | how rows of a table find their latent variables |
//! | `read` | how rows read them: coordinates and designs |
//! | `assemble` | from text and a table to a prior and a design |

mod assemble;
mod by;
mod columns;
mod correlated;
mod distribution;
mod field;
mod gp;
mod graph;
mod inputs;
mod kernel;
mod pin;
mod read;
mod replicated;
mod scaling;
mod setting;
mod spec;
mod stack;
mod term;
mod terms;

pub use assemble::{Assembled, Fresh, Level, assemble, named_columns};
pub use by::Factors;
pub use correlated::Derived;
pub use distribution::Distribution;
pub use field::Field;
pub use gp::{Factor, GaussianProcess};
pub use graph::{Graph, Lattice};
pub use inputs::{Covariate, Index, Inputs, Source, Units};
pub use kernel::Shape;
pub use pin::Pin;
pub use read::{Piece, Reader};
pub use replicated::{Replicated, replicate_covariance, replicate_design, replicate_query};
pub use setting::Setting;
pub use spec::{Call, Named, Spec, SpecError, Word};
pub use stack::{Block, Stack};
pub use terms::{DEVIATION, TERMS, Term};
