//! Families of your own.
//!
//! A family is a set of approximations of one shape: draws `z = T(ω, ε)` from normal noise ε, with parameters ω. Jensen has
//! [several](FamilyKind). A type that implements [`Family`] is another, and [`Options::family`](crate::Options::family)
//! accepts it. Starts, methods, checks, refinement and files are those of a family of Jensen.
//! [`Approximation::decode_as`](crate::Approximation::decode_as) reads a stored approximation.
//!
//! | [`Smoothness`] | maps besides draws and density | fitted by |
//! | --- | --- | --- |
//! | [`Path`](Smoothness::Path) | [`pull`](Family::pull), [`score`](Family::score) | stochastic gradients |
//! | [`Twice`](Smoothness::Twice) | also [`push`](Family::push), [`pull_second`](Family::pull_second) and the entropy's derivatives | Newton's method, and all others |
//!
//! [`check_family`] finds a wrong map. `examples/student_t.rs` is a complete family.

pub use jensen_blackbox::family::Curvature;
pub use jensen_blackbox::{Family, FamilyFault, FamilyKind, FamilyName, Smoothness, check_family};
