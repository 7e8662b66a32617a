//! Models of exchangeable records with hand-written kernels.
//!
//! | file | subject |
//! | --- | --- |
//! | `features` | [`Features`]: the rows of a design matrix; [`Dense`] ones, gathered a batch at a time |
//! | `sparse` | [`Sparse`]: rows with few entries, and their products |
//! | `link` | [`Link`]: Bernoulli-logit and categorical-logit, their derivatives in the predictors |
//! | `prior` | [`Prior`]: independent normals, normals with a common mean and scale |
//! | `glm` | [`Glm`]: features, link and prior as one density |
//! | `dropout` | [`GaussianDropout`]: softmax regression with noise on its features |
//! | `ppca` | [`Ppca`]: probabilistic principal components with the scores integrated out |

mod dropout;
mod features;
mod glm;
mod link;
mod ppca;
mod prior;
mod sparse;

pub use dropout::GaussianDropout;
pub use features::{Dense, Features};
pub use glm::Glm;
pub use link::Link;
pub use ppca::Ppca;
pub use prior::{CommonNormal, Prior, StandardNormal};
pub use sparse::Sparse;

/// A model that cannot be built from what was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapeError(pub String);

impl std::fmt::Display for ShapeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ShapeError {}
