//! The integration tests of `jensen-reproduce`. They form one binary with a module for each subject.

mod framework;
mod given;
mod joint_cv;
