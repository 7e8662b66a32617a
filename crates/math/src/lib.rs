//! SIMD special functions, counter-based random streams and numerical linear algebra.
//!
//! - [`complex`]: eigenvalues, singular values and Schur forms of complex matrices,
//! - [`constants`]: logarithms of π,
//! - [`simd`]: eight virtual lanes with dispatch at run time,
//! - [`vmath`]: special functions on lanes and slices,
//! - [`special`]: scalar special functions,
//! - [`rng`]: random numbers keyed by (seed, purpose, iteration, lane),
//! - [`sum`]: sums, means and their errors,
//! - [`reduce`]: sums and products of vectors, with the same bits at every SIMD level,
//! - [`dense`]: Cholesky factors of small dense matrices,
//! - [`large`]: products and factors of dense matrices beyond a few dozen rows,
//! - [`elimination`]: factors of small real matrices of many lanes,
//! - [`order`]: quantiles and medians,
//! - [`quadrature`]: nodes and weights of Gauss's rules,
//! - [`text`]: escaping of untrusted names and words in output,
//! - [`solvers`]: differential equations, systems of equations and integrals over lanes, with their derivatives.

#![cfg_attr(
    not(test),
    deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout)
)]

pub mod complex;
pub mod constants;
pub mod dense;
pub mod elimination;
pub mod large;
pub mod order;
pub mod quadrature;
pub mod reduce;
pub mod rng;
pub mod simd;
pub mod solvers;
pub mod special;
pub mod sum;
pub mod text;
pub mod vmath;
