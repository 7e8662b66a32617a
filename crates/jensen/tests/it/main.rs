//! Integration tests of `jensen`: one binary, a module for each subject.

mod blocks;
mod memory;
mod mixture_files;
mod pipeline;
mod regress;
