//! Hypergeometric functions and their derivatives. Each order of derivatives is a separate operation.

use jensen_math::special;

use crate::ir::{Graph, NodeId};
use crate::ops::MatMul;

pub(crate) fn value(above: usize, order: usize, x: &[f64]) -> Vec<f64> {
    let (parameters, z) = x.split_at(x.len() - 1);
    let (a, b) = parameters.split_at(above);
    special::hypergeometric(a, b, z[0], order).derivatives(order)
}

/// Multiplies the derivatives of the next order by `along`. The matrix of second derivatives is symmetric, so adjoints
/// and tangents use the same product. Third derivatives are not implemented, and their products are NaN. Values,
/// gradients and Hessian-vector products do not need third derivatives. Laplace approximations need derivatives of a
/// likelihood up to the fourth order, so they do not support this function.
pub(super) fn along(
    g: &mut Graph,
    [above, below, order]: [u32; 3],
    x: NodeId,
    along: NodeId,
) -> NodeId {
    let n = g.shape(x).len as usize;
    let next =
        |g: &mut Graph| g.hypergeometric(x, above as usize, below as usize, order as usize + 1);
    match order {
        0 => {
            let slope = next(g);
            g.mul(slope, along)
        }
        1 => {
            let dims = MatMul {
                m: n as u32,
                k: n as u32,
                n: 1,
                left_transposed: false,
                right_transposed: false,
            };
            let slope = next(g);
            g.matmul(slope, along, dims)
        }
        _ => g.vector(&vec![f64::NAN; n]),
    }
}
