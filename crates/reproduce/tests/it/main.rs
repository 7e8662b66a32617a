//! Integration tests of `jensen-reproduce` in one binary, with a module for each subject.

mod framework;
mod joint_cv;
