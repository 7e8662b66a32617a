//! User-defined families of approximations.
//!
//! A family is a set of distributions that share a map `z = T(ω, ε)`, where ω are the parameters, ε is normal noise and
//! z is a draw. Jensen provides [several families](FamilyKind). To add another family, implement the trait [`Family`]
//! and pass the type to [`Options::family`](crate::Options::family). Starting points, methods, checks, refinement and
//! files then work in the same way as for the families of Jensen.
//! [`Approximation::decode_as`](crate::Approximation::decode_as) reads a stored approximation of a user-defined family.
//!
//! | [`Smoothness`] | maps in addition to draws and density | methods |
//! | --- | --- | --- |
//! | [`Path`](Smoothness::Path) | [`pull`](Family::pull), [`score`](Family::score) | stochastic gradients |
//! | [`Twice`](Smoothness::Twice) | also [`push`](Family::push), [`pull_second`](Family::pull_second) and the
//! derivatives of the entropy | Newton's method and all others |
//!
//! [`check_family`] tests the maps for errors. The file `examples/student_t.rs` contains a complete family.

pub use jensen_blackbox::family::Curvature;
pub use jensen_blackbox::{Family, FamilyFault, FamilyKind, FamilyName, Smoothness, check_family};
