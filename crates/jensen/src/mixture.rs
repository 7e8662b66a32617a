//! Mixture models for Gaussian points, binary vectors, counts, or columns of several kinds (`jensen mixture`).

pub use crate::job::CountRange;
pub use crate::points::{
    CandidateRow, ColumnDistribution, ColumnKind, ColumnPart, Component, CovarianceShape,
    Explained, Globals, Kind, MIXTURE, MixingPrior, MixtureModel, MixtureRequest, PointShard,
    Points, PointsFit, PointsSummary, fit_mixture, fit_mixture_files, point_step,
};
