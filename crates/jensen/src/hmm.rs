//! Hidden Markov models of sequences of rows (`jensen hmm`).

pub use crate::points::{
    Chain, ChainsRequest, Emission, Explained, Fitted, Globals, HMM, Points, PointsSummary,
    Sequences, Sizes, decode_chains, explain_chains, fit_chains,
};
