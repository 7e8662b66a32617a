//! Integration tests of `report`: one binary, a module for each subject.

mod figures;
mod render;
