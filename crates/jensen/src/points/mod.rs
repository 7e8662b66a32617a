//! Models of points. Each point is a row of a table. The module contains three kinds of models: mixtures (of Gaussians,
//! binary vectors or counts), factorial mixtures, and hidden Markov models for sequences of rows.
//!
//! | file | subject |
//! | --- | --- |
//! | `request` | [`MixtureRequest`] and [`FactorsRequest`]: the settings of a fit, with their defaults |
//! | `table` | [`Points`]: training rows and held-out rows |
//! | `job` | the fit job of these models |
//! | `mixture`, `factors` | [`fit_mixture`] and [`fit_factors`], and the descriptions of their results |
//! | `files`, `shards` | [`fit_mixture_files`] and [`point_step`]: mixtures of rows in files, which other processes
//! evaluate |
//! | `chains` | [`ChainsRequest`], [`Sequences`] and [`fit_chains`]: hidden Markov models |
//! | `stored` | [`Globals`] and [`stored_globals`]: a fit as stored in a file |
//! | `kinds` | [`ColumnKind`]: tables whose columns have different kinds |
//! | `model` | [`MixtureModel`]: a fitted mixture that is applied to new points |
//! | `explained` | [`Explained`]: predictions of points |
//! | `summary` | [`PointsSummary`]: the contents of `fit.json` |
//! | `report_page` | the report of a fit |

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
mod stored;
mod summary;
mod table;

pub use chains::{
    ChainsRequest, HMM, Sequences, decode_chains, explain_chains, fit_chains, without,
};
pub use explained::Explained;
pub use factors::{FACTORS, explain_factors, fit_factors};
pub use files::fit_mixture_files;
pub use job::{Course, Described, Made, Picture};
pub use kinds::{ColumnDistribution, ColumnKind, ColumnPart};
pub use mixture::{MIXTURE, PointsFit, fit_mixture};
pub use model::MixtureModel;
pub use request::{
    CovarianceShape, FactorsRequest, Kind, MixingPrior, MixtureRequest, PointRequest,
};
pub use shards::{PointShard, point_step};
pub use stored::{Globals, stored_globals};
pub use summary::{CandidateRow, Chain, Component, Emission, Parts, PointsSeconds, PointsSummary};
pub use table::{Labels, Points};
