//! Factorial mixtures, in which each point is a sum of binary factors plus noise (`jensen factors`).

pub use crate::points::{
    Explained, FACTORS, FactorsRequest, Globals, Points, PointsFit, PointsSummary, explain_factors,
    fit_factors,
};
