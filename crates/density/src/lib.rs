//! The contract between models and inference: batched log densities over lanes.
