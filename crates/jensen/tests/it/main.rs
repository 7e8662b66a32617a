//! Integration tests of `jensen`: one binary, a module for each subject.

mod blocks;
#[cfg(feature = "full")]
mod common;
mod memory;
mod mixture_files;
mod pipeline;
mod tables;
mod units;
