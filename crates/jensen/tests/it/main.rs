//! Integration tests of `jensen`: one binary, a module for each subject.

mod blocks;
#[cfg(feature = "latent")]
mod latent_tables;
mod memory;
mod mixture_files;
mod pipeline;
mod regress;
