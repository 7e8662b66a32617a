//! Hidden Markov models for sequences of rows (`jensen hmm`).

pub use crate::points::{
    Chain, ChainsRequest, ComponentRange, Emission, Explained, Globals, HMM, Points, PointsFit,
    PointsSummary, Sequences, decode_chains, explain_chains, fit_chains,
};
