//! Latent Gaussian models of tables. This module re-exports `jensen-latent` and applies its methods to specifications
//! and to the files of `jensen-data`.
//!
//! | file | subject |
//! | --- | --- |
//! | `request` | [`LatentSpec`]: prior, likelihood and columns |
//! | `settings` | [`LatentRequest`]: the settings of a fit, with their defaults |
//! | `files` | [`LatentRun`], [`LatentData`] and [`PriorFiles`]: input and stored files of a fit |
//! | `job` | [`fit_latent`] and [`fit_latent_in_memory`]: fits of tables |
//! | `predictions` | predictions as a table |
//! | `draws` | joint draws at the rows of another table |
//! | `view` | the columns of a table that a specification uses |
//! | `units` | standardised units of responses and columns, and their inverse |
//! | `table_model` | [`TableModel`]: observations, prior and design of a request on a table |
//! | `learn` | fits with fixed, learnt or integrated hyperparameters |
//! | `plain` | the comparison of a fit with a plain model |
//! | `left_out` | leave-one-out cross-validation |
//! | `posterior` | the posterior of a fit: a mixture over hyperparameters |
//! | `outcome` | predictions of observations: means, intervals, scores |
//! | `points` | [`fit_points`]: log-Gaussian Cox processes of point patterns |
//! | `window` | [`Window`]: the polygon of a point pattern, divided into cells |
//! | `analysis` | [`fit_analysis`]: factor analysis of tables |
//! | `stored` | [`StoredPosterior`]: a fit as stored in a file |
//! | `summary` | [`LatentSummary`]: the contents of `fit.json` |
//! | `maps` | figures of fields over lines, grids and regions |
//! | `report_page` | [`report_page()`]: the report of a fit |

mod analysis;
mod draws;
mod files;
mod job;
mod learn;
mod left_out;
mod maps;
mod outcome;
mod plain;
mod points;
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
mod window;

pub use jensen_latent::*;

pub use analysis::{
    AnalysisData, AnalysisJob, AnalysisRequest, AnalysisSummary, FACTOR_ANALYSIS, fit_analysis,
};
pub use draws::{Drawn, drawn, draws_at};
pub use files::{LatentData, LatentFolder, LatentRun, PriorFiles, open_latent, stored_posterior};
pub use job::{LatentJob, fit_latent, fit_latent_in_memory};
pub use learn::{Hyperposterior, Learning, Learnt, fit_table};
pub use left_out::{CrossValidation, LARGEST_SHARE, LeftOutRows, cross_validated};
pub use outcome::{Bin, PredictedRows, fitted, outcome};
pub use plain::Comparison;
pub use points::{Intensity, PointPattern, PointsSummary, fit_points, intensity_table};
pub use posterior::{Known, Part, posterior_at};
pub use predictions::predictions;
pub use report_page::{Curve, Page, report_page};
pub use request::{LatentSpec, parse_likelihood};
pub use settings::LatentRequest;
pub use stored::{StoredPoint, StoredPosterior};
pub use summary::{Hyperparameter, LatentSeconds, LatentSummary, Made, evidence, summary};
pub use table_model::{ObservedRows, TableModel};
pub use view::Files;
pub use window::{Cell, Location, Window};

/// Returns the digest of `bytes`. The digest is part of the identity of a run.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
