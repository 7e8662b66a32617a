//! Integration tests of `blackbox`, as one binary with a module for each subject.

mod advi;
mod conditional;
mod curved;
mod estimators;
mod fit;
mod linear_response;
mod psis;
mod refine;
mod refined_fits;
mod reproducible;
mod trust;
mod trust_paper;
