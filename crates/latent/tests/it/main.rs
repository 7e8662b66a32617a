//! Integration tests of `latent` in one binary, with a module for each subject.

mod assemble;
mod common;
mod copies;
mod factors;
mod given;
mod inducing;
mod integrate;
mod interactions;
mod intervals;
mod joint;
mod left_out;
mod likelihoods;
mod mesh;
mod moments;
mod normality;
mod periodic;
mod prior;
mod quantiles;
mod radial;
mod solvers;
mod states;
mod tensor;
mod tightness;
mod times;
mod uses;
