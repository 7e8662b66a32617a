//! User-defined families of approximations.
//!
//! A family is a set of distributions that share a map `z = T(ω, ε)` from normal noise ε to draws, with parameters ω.
//! Jensen provides [several](FamilyKind). A type that implements [`Family`] adds another, and
//! [`Options::family`](crate::Options::family) accepts it. Starts, methods, checks, refinement and files work as for
//! the families of Jensen. [`Approximation::decode_as`](crate::Approximation::decode_as) reads a stored approximation.
//!
//! | [`Smoothness`] | maps in addition to draws and density | methods |
//! | --- | --- | --- |
//! | [`Path`](Smoothness::Path) | [`pull`](Family::pull), [`score`](Family::score) | stochastic gradients |
//! | [`Twice`](Smoothness::Twice) | also [`push`](Family::push), [`pull_second`](Family::pull_second) and the
//! derivatives of the entropy | Newton's method and all others |
//!
//! [`check_family`] finds errors in the maps. `examples/student_t.rs` is a complete family.

pub use jensen_blackbox::family::Curvature;
pub use jensen_blackbox::{Family, FamilyFault, FamilyKind, FamilyName, Smoothness, check_family};
