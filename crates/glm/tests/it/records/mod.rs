//! Tests of minibatches of exchangeable records.

mod estimators;
mod models;
mod runs;
mod support;
mod trust;
mod variance;
