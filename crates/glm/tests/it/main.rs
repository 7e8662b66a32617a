//! Integration tests of `glm`: one binary, a module for each subject.

mod doubly_stochastic;
mod ppca;
mod records;
