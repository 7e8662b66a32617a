//! Integration tests of `math`: one binary, a module for each subject.

mod gamma_steps;
mod rng;
mod special_functions;
mod vector_functions;
