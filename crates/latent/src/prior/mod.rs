//! Priors with hyperparameters.
//!
//! | file | subject |
//! | --- | --- |
//! | `setting` | hyperparameters, fixed or free |
//! | `kernel` | the table of covariance functions: values and derivatives |
//! | `gp` | Gaussian processes: sums of products of covariance functions |

mod gp;
mod kernel;
mod setting;

pub use gp::{Factor, GaussianProcess};
pub use kernel::Shape;
pub use setting::Setting;
