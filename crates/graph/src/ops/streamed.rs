//! Recognises products of long data matrices with vectors. In a regression, such a product computes either the linear
//! predictors, or sums of the residuals weighted by columns of data.

use crate::ir::{Graph, NodeId};
use crate::ops::Op;

/// A product is computed together with the tiles of a kernel only if its matrix has at least this many rows.
pub(crate) const SHORTEST: usize = 32;

/// The rows of a matrix are processed in tiles only if the matrix has at most this many columns.
const WIDEST: usize = 256;

/// The product of a long constant matrix and a per-lane vector. An element of the matrix is at position `row *
/// row_stride + column * column_stride`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Streamed {
    pub matrix: NodeId,
    pub vector: NodeId,
    pub columns: usize,
    pub row_stride: usize,
    pub column_stride: usize,
    /// Whether the product sums over the rows (Xᵀr) instead of over the columns (X b).
    pub contracts: bool,
}

/// Returns `id` as a product that a kernel can compute tile by tile, if it has this form.
pub(crate) fn streamed(graph: &Graph, id: NodeId) -> Option<Streamed> {
    let Op::MatMul(dims) = graph.op(id) else {
        return None;
    };
    let &[matrix, vector] = graph.args(id) else {
        return None;
    };
    let constant = |id: NodeId| matches!(graph.op(id), Op::Const(_));
    // No product of a row with a matrix occurs here, because it is built as the product of the transposed matrix with a
    // column.
    if dims.n != 1 || !constant(matrix) || constant(vector) {
        return None;
    }
    let (len, contracted) = (dims.m as usize, dims.k as usize);
    // The stride of the matrix along the result, and its stride along the summed extent.
    let strides = match dims.left_transposed {
        true => (contracted, 1),
        false => (1, len),
    };
    let contracts = contracted > len;
    let (rows, columns, strides) = match contracts {
        true => (contracted, len, (strides.1, strides.0)),
        false => (len, contracted, strides),
    };
    let long = rows >= SHORTEST && (1..=WIDEST).contains(&columns) && columns < rows;
    long.then_some(Streamed {
        matrix,
        vector,
        columns,
        row_stride: strides.0,
        column_stride: strides.1,
        contracts,
    })
}
