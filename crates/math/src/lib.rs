//! SIMD special functions, counter-based random streams and small numerics.

pub mod simd;
