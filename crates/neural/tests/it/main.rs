//! Integration tests of `neural`: one binary, a module for each subject.

mod counts;
mod estimators;
mod posterior;
mod start;
mod training;
