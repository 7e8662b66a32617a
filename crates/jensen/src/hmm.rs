//! Hidden Markov models for sequences of rows (`jensen hmm`).

pub use crate::job::CountRange;
pub use crate::points::{
    Chain, ChainsRequest, Emission, Explained, Globals, HMM, Labels, Points, PointsFit,
    PointsSummary, Sequences, decode_chains, explain_chains, fit_chains, without,
};
