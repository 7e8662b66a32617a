//! Tests of regressions as programs: one binary.

mod designs;
mod errors;
mod programs;
