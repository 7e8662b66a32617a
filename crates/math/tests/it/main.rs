//! Integration tests of `math`, as one binary with a module for each subject.

mod gamma_steps;
mod rng;
mod special_functions;
mod vector_functions;
