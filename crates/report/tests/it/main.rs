//! Integration tests of `jensen-report`, as one binary with one module per subject.

mod figures;
mod render;
