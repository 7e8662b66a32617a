//! An expression graph engine with SIMD execution and graph-to-graph differentiation.
//!
//! A [`Graph`] is built once for a model and its data. Further graphs for its derivatives are then constructed from it,
//! and all of these graphs are optimised. The executor evaluates a graph for one block of draws at a time. Values are
//! stored so that the draws of a block are contiguous in memory.
//!
//! | module | subject |
//! | --- | --- |
//! | [`ir`] | the tables: nodes, constants, index lists, record columns |
//! | [`ops`] | the operations, with one entry each |
//! | [`build`] | constructors with shape checks, folding and simplification |
//! | `diff` | gradients and directional derivatives as graphs |
//! | [`passes`] | dead-code elimination, loop re-rolling |
//! | [`verify`] | the invariants of a well-formed graph |
//! | [`exec`] | planning, fusion and the executor of blocks of lanes |
//! | `density` | graphs as log densities, evaluated by several threads |
//! | `records` | separate prior and likelihood, minibatches |
//! | `pattern` | mixed second derivatives that vanish |
//! | [`expr`] | densities written as Rust expressions |
//! | [`text`] | the text form, which can be printed and parsed |
//! | `ending` | interrupts of long evaluations and of constant folding |
//! | `solver` | operations that own a graph: differential equations, roots, integrals |
//! | [`single`] | the single-precision executor for networks |
//! | `centring` | [`Hierarchy`]: groups of coordinates relative to their location and scale |
//! | [`scalar`] | the slow evaluator, with which tests compare the executor |

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod build;
mod centring;
mod density;
mod diff;
mod ending;
pub mod exec;
pub mod expr;
pub mod ir;
pub mod ops;
pub mod passes;
mod pattern;
mod records;
pub mod scalar;
mod series;
#[cfg(feature = "single")]
pub mod single;
mod solver;
pub mod text;
pub mod verify;

pub use centring::{Hierarchy, Placed, Power, Recentred, Scattered, Site, Spread};
pub use density::{Execution, GraphDensity, GraphWorkspace, Interrupted};
pub use ending::Ending;
pub use expr::{Builder, Expr, ExprError, Matrix, RecordIndices, RecordMatrix};
pub use ir::{Graph, NodeId, Placement, RecordColumn, RecordId, Shape};
pub use ops::{ElemOp, MatMul, Op, Pass, Solver, SolverKind, ValueRange};
pub use records::{Dependence, RecordGraph, RecordWorkspace, Separation};
pub use scalar::evaluate;
pub use series::Series;
#[cfg(feature = "single")]
pub use single::{SingleProgram, SingleWorkspace, Unsupported};
pub use text::TextError;
