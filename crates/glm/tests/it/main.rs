//! Integration tests of `glm` in one binary, with a module for each subject.

mod doubly_stochastic;
mod ppca;
mod records;
