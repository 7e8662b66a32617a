//! Executes graphs in single precision, for networks. A minibatch is a block of lanes.
//!
//! In this module, a lane is a record of a minibatch together with its draw. The elements *of a lane* are contiguous:
//! element d of lane l is `data[l * len + d]`, as in files of records. A product of a shared matrix with per-lane
//! vectors is then one matrix product over the minibatch. The gradient of the matrix is a sum of outer products over
//! the lanes, which is also one matrix product. All elementwise operations between two products are one pass over tiles
//! that stay in L1.
//!
//! | file | subject |
//! | --- | --- |
//! | `plan` | steps, operands, locations |
//! | `kernels` | elementwise runs |
//! | `product` | matrix products |
//! | `program` | phases and their memory |
//! | `block` | steps over one block of lanes |
//! | `sums` | sums over lanes, tile by tile |
//!
//! An evaluation has four phases. They compute the shared values that lanes read, the lanes (in blocks), the sums over
//! lanes, and the values that depend on these sums. Blocks and tiles depend only on extents, and every reduction runs
//! in a fixed order, so the bits do not depend on the number of threads.

mod block;
mod kernels;
mod phases;
mod plan;
mod product;
mod program;
mod sums;

use std::fmt;

use crate::ops::Op;

pub use program::{SingleProgram, SingleWorkspace};
pub use sums::Tile;

/// The error for a graph that this executor does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(pub String);

impl Unsupported {
    fn op(op: Op) -> Self {
        Self(format!(
            "`{}` has no single-precision kernel: evaluate this graph in double precision",
            op.name()
        ))
    }

    fn records() -> Self {
        Self("a record axis is not supported in single precision: records are lanes".to_owned())
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsupported {}
