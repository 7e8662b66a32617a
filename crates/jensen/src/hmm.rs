//! Hidden Markov chains of rows in sequence (`jensen hmm`).

pub use crate::points::{
    Chain, ChainsRequest, Emission, Explained, Fitted, Globals, HMM, Points, PointsSummary,
    Sequences, Sizes, decode_chains, explain_chains, fit_chains,
};
