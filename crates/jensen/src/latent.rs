//! Latent Gaussian models of tables. This module joins a specification and the files of `jensen-data` with the
//! methods of `jensen-latent`, which it re-exports.
//!
//! | file | subject |
//! | --- | --- |
//! | `request` | [`LatentSpec`]: prior, likelihood and columns as the user names them |
//! | `settings` | [`LatentRequest`]: the settings of a fit, with their defaults |
//! | `files` | [`LatentRun`], [`LatentData`], [`PriorFiles`]: input and stored files of a fit |
//! | `job` | [`fit_latent`]: a table into a posterior, in a folder; [`fit_latent_in_memory`] |
//! | `predictions` | predictions as a table |
//! | `draws` | joint draws at the rows of another table |
//! | `view` | a table as a specification sees it |
//! | `units` | how responses and columns are measured inside, and the way back |
//! | `table_model` | [`TableModel`]: a request on a table: observations, prior and design |
//! | `learn` | fits at given hyperparameters, learning them, and integrating over them |
//! | `plain` | the comparison of a fit with a plain model |
//! | `posterior` | the posterior of a fit: a mixture over hyperparameters |
//! | `outcome` | predictions of observations: means, intervals, scores |
//! | `analysis` | [`fit_analysis`]: factor analysis of tables |
//! | `stored` | [`StoredPosterior`]: a fit as it is kept on disk |
//! | `summary` | [`LatentSummary`]: a fit in numbers, `fit.json` |
//! | `maps` | fields over lines, grids and regions as figures |
//! | `report_page` | [`report_page()`]: the page about a fit |

mod analysis;
mod draws;
mod files;
mod job;
mod learn;
mod maps;
mod outcome;
mod plain;
mod posterior;
mod predictions;
mod report_page;
mod request;
mod settings;
mod stored;
mod summary;
mod table_model;
mod units;
mod view;

pub use jensen_latent::*;

pub use analysis::{
    AnalysisData, AnalysisJob, AnalysisRequest, AnalysisSummary, FACTOR_ANALYSIS, fit_analysis,
};
pub use draws::{Drawn, drawn, draws_at};
pub use files::{LatentData, LatentFolder, LatentRun, PriorFiles, open_latent, stored_posterior};
pub use job::{LatentJob, fit_latent, fit_latent_in_memory};
pub use learn::{Hyperposterior, Learning, Learnt, fit_table};
pub use outcome::{Bin, PredictedRows, fitted, outcome};
pub use plain::Comparison;
pub use posterior::{Known, Part, posterior_at};
pub use predictions::predictions;
pub use report_page::{Curve, Page, report_page};
pub use request::{LatentSpec, parse_likelihood};
pub use settings::LatentRequest;
pub use stored::{StoredPoint, StoredPosterior};
pub use summary::{Hyperparameter, LatentSeconds, LatentSummary, Made, evidence, summary};
pub use table_model::{ObservedRows, TableModel};
pub use view::Files;

/// A digest of bytes, for the identity of runs.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
