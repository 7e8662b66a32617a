//! Latent Gaussian models of tables: what joins a specification and the files of `jensen-data` with the methods of
//! `jensen-latent`, which is re-exported here.
//!
//! | file | subject |
//! | --- | --- |
//! | `request` | [`Request`]: prior, likelihood and columns as the user names them |
//! | `table_model` | [`TableModel`]: a request on a table: observations, prior and design |
//! | `observe` | densities and means of observations given their linear predictor |
//! | `outcome` | what a fitted model says of observations: means, intervals, scores |
//! | `stored` | [`Stored`]: a fit as it is kept on disk |
//! | `summary` | [`LatentSummary`]: a fit in numbers, `fit.json` |
//! | `maps` | fields over lines, grids and regions as figures |
//! | `sheet` | [`sheet()`]: the page about a fit |

mod maps;
mod observe;
mod outcome;
mod request;
mod sheet;
mod stored;
mod summary;
mod table_model;

pub use jensen_latent::*;

pub use outcome::{Bin, Outcome, fitted, outcome};
pub use request::{Request, parse_likelihood};
pub use sheet::{Curve, Page, sheet};
pub use stored::Stored;
pub use summary::{Hyperparameter, LatentSeconds, LatentSummary, Made, summary};
pub use table_model::{Files, Prediction, TableModel};
