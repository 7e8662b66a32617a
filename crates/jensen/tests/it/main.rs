//! The integration tests of `jensen`. They form one binary with a module for each subject.

#[cfg(feature = "latent")]
mod censored;
#[cfg(feature = "full")]
mod common;
mod kinds;
mod known_errors;
#[cfg(feature = "latent")]
mod latent_tables;
mod memory;
mod mixing;
mod mixture_files;
mod own_family;
mod pipeline;
#[cfg(feature = "latent")]
mod points;
mod records;
mod regress;
mod regress_effects;
mod regress_references;
mod skewed;
mod tables;
mod units;
mod weights;
