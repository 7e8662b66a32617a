//! Integration tests of `neural` in one binary, with a module for each subject.

mod convolution;
mod counts;
mod estimators;
mod family;
mod mixed;
mod posterior;
mod start;
mod training;
