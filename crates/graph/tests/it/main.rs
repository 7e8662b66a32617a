//! Integration tests of `jensen-graph`, as one binary with one module per subject.

mod boundaries;
mod ending;
mod expr;
mod operations;
mod properties;
mod random_graphs;
mod records;
mod regressions;
mod running;
mod shared;
mod single;
mod solver_bodies;
mod special_values;
mod text;
