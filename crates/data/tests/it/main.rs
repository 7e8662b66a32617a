//! Integration tests of `jensen-data`, as one binary with one module per subject.

mod adjacency;
mod corpus;
mod draws;
mod files;
mod fuzz;
mod json;
mod lookup;
mod rdump;
mod symmetric;
mod table;
