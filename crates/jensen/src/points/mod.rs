//! Models of points, the rows of a table: mixtures of Gaussians, of binary vectors or of counts, factorial mixtures,
//! and hidden Markov models of sequences of rows.
//!
//! | file | subject |
//! | --- | --- |
//! | `request` | [`MixtureRequest`], [`FactorsRequest`]: the settings of a fit, with their defaults |
//! | `table` | [`Points`]: rows to learn from, and rows held out |
//! | `job` | the fit job that all of them share |
//! | `mixture`, `factors` | [`fit_mixture`], [`fit_factors`], and the description of their global parameters |
//! | `files`, `shards` | [`fit_mixture_files`], [`point_step`]: mixtures of rows in files that other processes evaluate |
//! | `chains` | [`ChainsRequest`], [`Sequences`], [`fit_chains`]: rows in sequence |
//! | `stored` | [`Globals`], [`stored_globals`]: a fit as it is kept on disk |
//! | `kinds` | [`ColumnKind`]: tables whose columns are of several kinds |
//! | `sizes` | [`ComponentRange`]: a number of components, or a range to choose from |
//! | `model` | [`MixtureModel`]: a fitted mixture, stored and applied to new points |
//! | `explained` | [`Explained`]: predictions of points |
//! | `summary` | [`PointsSummary`]: a fit in numbers, `fit.json` |
//! | `report_page` | the page about a fit |

mod chains;
mod explained;
mod factors;
mod files;
mod job;
mod kinds;
mod mixture;
mod model;
mod report_page;
mod request;
mod shards;
mod sizes;
mod stored;
mod summary;
mod table;

pub use chains::{ChainsRequest, HMM, Sequences, decode_chains, explain_chains, fit_chains};
pub use explained::Explained;
pub use factors::{FACTORS, explain_factors, fit_factors};
pub use files::fit_mixture_files;
pub use job::{Course, Described, Made, Picture};
pub use kinds::{ColumnDistribution, ColumnKind, ColumnPart};
pub use mixture::{MIXTURE, PointsFit, fit_mixture};
pub use model::MixtureModel;
pub use request::{CovarianceShape, FactorsRequest, Kind, MixtureRequest, PointRequest};
pub use shards::{PointShard, point_step};
pub use sizes::ComponentRange;
pub use stored::{Globals, stored_globals};
pub use summary::{CandidateRow, Chain, Component, Emission, Parts, PointsSeconds, PointsSummary};
pub use table::Points;
