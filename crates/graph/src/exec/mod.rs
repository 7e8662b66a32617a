//! The executor, which evaluates graphs over blocks of lanes. A [`Program`] is a planned graph with bound data, and an
//! [`Arena`] is the scratch memory of one thread.
//!
//! | file | subject |
//! | --- | --- |
//! | `stages` | the kernel that computes each value |
//! | `plan` | steps, operands, memory |
//! | `fuse` | instructions of one kernel |
//! | `memory` | arena rows over lifetimes |
//! | `kernels` | row kernels of elementwise operations |
//! | `linear` | linear predictors of a kernel, and its sums by columns of data |
//! | `product` | lane kernels of `linear` |
//! | `softplus` | sums of log(1 + exp(·)) of a kernel, with their lane kernels |
//! | `dense` | lane kernels of matrix operations |
//! | `packed` | lane kernels of operations on larger matrices |
//! | `program` | binding data, running blocks |
//! | `solver` | solver steps, which run programs of their own |
//! | `bytecode` | small programs of solvers, as straight-line code over rows |
//! | `shared` | shared inputs and sums over lanes |

mod bytecode;
mod dense;
mod fuse;
mod kernels;
mod linear;
pub(crate) mod memory;
mod packed;
mod plan;
mod product;
mod program;
mod shared;
mod softplus;
mod solver;
pub(crate) mod stages;

pub use program::{Arena, Program};
pub use shared::SharedProgram;
