//! SIMD special functions, counter-based random streams and small numerics.

pub mod simd;
pub mod special;
pub mod vmath;
