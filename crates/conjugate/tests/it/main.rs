//! Integration tests of `conjugate`: one binary, a module for each subject.

mod factors;
mod paths;
