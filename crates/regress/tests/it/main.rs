//! Tests of regressions as programs, in one binary.

mod designs;
mod errors;
mod programs;
