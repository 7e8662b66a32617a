//! Integration tests of `conjugate` in one binary, with a module for each subject.

mod factors;
mod paths;
