//! Executes graphs in single precision. The executor is designed for networks, where a minibatch is a block of lanes.
//!
//! In this module, a lane is a record of a minibatch together with its draw. The elements *of a lane* are contiguous,
//! as in files of records: element d of lane l is `data[l * len + d]`. The product of a shared matrix with per-lane
//! vectors is then a single matrix product over the minibatch. The gradient with respect to the matrix is a sum of
//! outer products over the lanes, which is also a single matrix product. All elementwise operations between two
//! products are computed in one pass over tiles that stay in the L1 cache.
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
//! An evaluation has four phases. The first computes the shared values that the lanes read. The second computes the
//! lanes, in blocks. The third computes the sums over lanes, and the fourth computes the values that depend on these
//! sums. The division into blocks and tiles depends only on the extents, and every reduction runs in a fixed order. The
//! bits of the results therefore do not depend on the number of threads.

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

/// The error that reports that this executor does not support a graph. The text states the reason.
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
