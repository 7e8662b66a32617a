//! Syntax tree to typed program: names, types, block rules.

pub mod signatures;
