//! Integration tests of `reproduce`: one binary, a module for each subject.

mod framework;
mod joint_cv;
