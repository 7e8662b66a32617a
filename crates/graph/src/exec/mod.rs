//! The blocked lane executor: a [`Program`] is a planned graph with its data bound; an [`Arena`] is
//! the scratch memory of one thread.
//!
//! | file | subject |
//! | --- | --- |
//! | `plan` | fusion, stages, memory |
//! | `kernels` | row kernels of elementwise operations |
//! | `dense` | lane kernels of matrix operations |
//! | `program` | binding data, running blocks |

mod dense;
mod kernels;
mod plan;
mod program;

pub use program::{Arena, Program};
