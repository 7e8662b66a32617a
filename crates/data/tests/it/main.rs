//! Integration tests of `data`: one binary, a module for each subject.

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
