//! Tests of the lowering.
