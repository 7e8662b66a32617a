//! Integration tests of `jensen-cli`, as one binary with one module per subject.

mod adversarial;
mod bad_input;
mod calibrate;
mod centring;
mod commands;
mod common;
mod exchangeable;
mod factor_analysis;
mod far;
mod fit;
mod fit_many;
mod hardening;
mod hmm;
mod labellings;
mod latent;
mod latent_bad_data;
mod newcomer;
mod points;
mod regress;
mod reproduce;
mod shards;
mod sparse;
mod stored;
mod topics;
mod vae;
mod vae_tables;
