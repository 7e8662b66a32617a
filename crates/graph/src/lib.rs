//! The expression graph engine: draws as SIMD lanes, graph-to-graph differentiation.
//!
//! A [`Graph`] is built once for a model and its data, differentiated into graphs, optimised, and
//! executed for a block of draws at a time with the draws as the innermost, contiguous dimension.
//!
//! | module | subject |
//! | --- | --- |
//! | [`ir`] | the tables: nodes, constants, index lists, record columns |
//! | [`ops`] | the operations: one entry each |
//! | [`build`] | constructors with shape checks, folding and simplification |
//! | `diff` | gradients and directional derivatives as graphs |

pub mod build;
mod diff;
pub mod ir;
pub mod ops;

pub use ir::{Graph, NodeId, Placement, Record, RecordId, Shape};
pub use ops::{ElemOp, MatMul, Op};
