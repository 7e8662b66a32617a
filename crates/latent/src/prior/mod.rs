//! Priors with hyperparameters.
//!
//! | file | subject |
//! | --- | --- |
//! | `setting` | hyperparameters, fixed or free |
//! | `kernel` | the table of covariance functions: values and derivatives |
//! | `gp` | Gaussian processes: sums of products of covariance functions |
//! | `matern` | Matérn processes of one input: transitions and noise of the value and its derivatives |
//! | `states` | such a process with a few effects, for many rows |
//! | `spectral` | Gaussian processes by basis functions: variances of the coefficients |
//! | `basis` | the functions |
//! | `graph` | paths, lattices with holes, graphs of regions |
//! | `field` | Gaussian Markov random fields |
//! | `mesh` | triangulations of locations, and fields on them |
//! | `stationary` | stationary fields on grids and meshes |
//! | `tensor` | smooths of two columns |
//! | `radial` | thin-plate regression splines |
//! | `walk` | random walks over even and uneven distances |
//! | `ornstein` | the autoregression in continuous time |
//! | `times` | nodes at the values of a column; processes at new times |
//! | `copied` | copies of a field for the values of a column, independent, correlated or constrained |
//! | `repeats` | the copy of a field that a row uses |
//! | `contrast` | bases of fields that are constrained along their flat directions |
//! | `exchangeable` | variables of which any two have the same correlation |
//! | `correlated` | correlated effects of groups |
//! | `scaling` | the scale at which an intrinsic field has a generalised variance of 1 |
//! | `stack` | independent parts with concatenated latent variables |
//! | `replicated` | independent copies for the predictors of a vector site |
//! | `spec` | the syntax of priors in text form |
//! | `terms` | the table of terms of priors in text form |
//! | `distribution` | priors of hyperparameters in text form |
//! | `by` | terms that are multiplied by columns |
//! | `term` | the part of the prior for one term in text form |
//! | `columns` | columns in the units of a model |
//! | `pin` | flat directions of intrinsic parts that the rows do not identify |
//! | `inducing` | Gaussian processes by inducing points |
//! | `inputs` | the mapping from rows of a table to nodes |
//! | `read` | the mapping from rows to latent variables: coordinates and designs |
//! | `assemble` | the prior and the design for a text and a table |

mod assemble;
mod basis;
mod by;
mod columns;
mod contrast;
mod copied;
mod correlated;
mod distribution;
mod exchangeable;
mod field;
mod gp;
mod graph;
mod inducing;
mod inputs;
mod kernel;
mod matern;
mod mesh;
mod ornstein;
mod pin;
mod radial;
mod read;
mod repeats;
mod replicated;
mod scaling;
mod setting;
mod spec;
mod spectral;
mod stack;
mod states;
mod stationary;
mod tensor;
mod term;
mod terms;
mod times;
mod walk;

pub use assemble::{Assembled, Fresh, Level, assemble, named_columns};
pub use basis::Basis;
pub use by::Factors;
pub use contrast::Contrast;
pub use correlated::Derived;
pub use distribution::Distribution;
pub use field::Field;
pub use gp::{Factor, GaussianProcess};
pub use graph::{Graph, Lattice};
pub use inducing::{Inducing, InducingError, InducingPoints, Rows};
pub use inputs::{Covariate, Index, Inputs, Source, Units, Wave};
pub use kernel::Shape;
pub use mesh::{Discretisation, Mesh};
pub use pin::Pin;
pub use radial::Radial;
pub use read::{Piece, Reader};
pub use repeats::Repeats;
pub use replicated::{Replicated, replicate_covariance, replicate_design, replicate_query};
pub use setting::Setting;
pub use spec::{Call, Named, Spec, SpecError, Word};
pub use spectral::{Spectral, Truncation};
pub use stack::{Block, Stack};
pub use states::States;
pub use tensor::Tensor;
pub use terms::{DEVIATION, TERMS, Term};
pub use times::{Times, Variable};
