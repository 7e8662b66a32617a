//! The Stan language: parser, checker, interpreter and lowering to the expression graph.
