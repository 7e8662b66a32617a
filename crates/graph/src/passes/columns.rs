//! Multiplies the columns of a linear predictor by data that would otherwise multiply the predictor.
//!
//! In a logistic regression, for example, each predictor is multiplied by the sign of the outcome. If no other node
//! reads the predictor, the columns can be multiplied by the sign once, when data are bound. Neither the value nor the
//! gradient then computes the product again.

use crate::ir::{Graph, NodeId};
use crate::ops::{ElemOp, Op, streamed};
use crate::passes::compact::{compact, import};

const MOST: usize = 1 << 26;

pub(super) fn fold_factors(graph: Graph) -> Graph {
    let folder = Folder::new(&graph);
    if !graph.ids().any(|id| folder.foldable(id).is_some()) {
        return graph;
    }
    let mut out = graph.like();
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    for id in graph.ids() {
        map[id.index()] = Some(match folder.foldable(id) {
            Some((data, predictor)) => {
                let data = graph
                    .constant_value(data)
                    .expect("data are constant")
                    .to_vec();
                out.set_site(graph.node(id).site);
                folder.scaled(predictor, &data, &map, &mut out)
            }
            None => import(&graph, id, &map, &mut out),
        });
    }
    let outputs = graph
        .outputs()
        .iter()
        .map(|id| map[id.index()].expect("every node is made"));
    let outputs = outputs.collect();
    out.set_outputs(outputs);
    compact(&out)
}

struct Folder<'a> {
    graph: &'a Graph,
    uses: Vec<u32>,
}

impl<'a> Folder<'a> {
    fn new(graph: &'a Graph) -> Self {
        let mut uses = vec![0; graph.len()];
        let read = graph
            .ids()
            .flat_map(|id| graph.args(id))
            .chain(graph.outputs());
        read.for_each(|id| uses[id.index()] += 1);
        Self { graph, uses }
    }

    fn foldable(&self, id: NodeId) -> Option<(NodeId, NodeId)> {
        let graph = self.graph;
        let (data, predictor) = graph.data_factor(id)?;
        let mut open = vec![predictor];
        let (mut columns, mut nodes) = (0, 0);
        while let Some(at) = open.pop() {
            nodes += 1;
            if graph.shape(at).is_scalar() || graph.constant_value(at).is_some() {
                columns += 1;
                continue;
            }
            if self.uses[at.index()] != 1 || nodes > MOST {
                return None;
            }
            match graph.op(at) {
                Op::Elem(ElemOp::Add | ElemOp::Sub) => open.extend(graph.args(at)),
                Op::Elem(ElemOp::Mul) => {
                    let (_, other) = graph.data_factor(at)?;
                    if !graph.shape(other).is_scalar() {
                        return None;
                    }
                    columns += 1;
                }
                _ => {
                    let product = streamed(graph, at).filter(|product| {
                        !product.contracts && self.uses[product.matrix.index()] == 1
                    })?;
                    columns += product.columns;
                }
            }
        }
        // If there are only one or two columns, the original product costs no more.
        let room = columns * graph.shape(id).len as usize <= MOST;
        (columns > 2 && room).then_some((data, predictor))
    }

    fn scaled(&self, at: NodeId, data: &[f64], map: &[Option<NodeId>], out: &mut Graph) -> NodeId {
        let graph = self.graph;
        let made = |id: NodeId| map[id.index()].expect("arguments precede the nodes that use them");
        let times =
            |values: &[f64]| -> Vec<f64> { values.iter().zip(data).map(|(x, d)| x * d).collect() };
        if let Some(values) = graph
            .constant_value(at)
            .filter(|values| values.len() == data.len())
        {
            return out.vector(&times(values));
        }
        if graph.shape(at).is_scalar() {
            let column = out.vector(data);
            return out.mul(column, made(at));
        }
        match graph.op(at) {
            Op::Elem(ElemOp::Mul) => {
                let (column, scalar) = graph.data_factor(at).expect("a column times a scalar");
                let column = out.vector(&times(
                    graph.constant_value(column).expect("data are constant"),
                ));
                out.mul(column, made(scalar))
            }
            Op::Elem(op) => {
                let args: Vec<NodeId> = graph
                    .args(at)
                    .iter()
                    .map(|&arg| self.scaled(arg, data, map, out))
                    .collect();
                out.elem(op, &args)
            }
            Op::MatMul(dims) => {
                let product = streamed(graph, at).expect("a product with a long matrix");
                let mut matrix = graph
                    .constant_value(product.matrix)
                    .expect("a matrix of data")
                    .to_vec();
                for (row, factor) in data.iter().enumerate() {
                    let first = &mut matrix[row * product.row_stride..];
                    first
                        .iter_mut()
                        .step_by(product.column_stride)
                        .take(product.columns)
                        .for_each(|x| *x *= factor);
                }
                let matrix = out.vector(&matrix);
                out.matmul(matrix, made(product.vector), dims)
            }
            _ => unreachable!("a sum of columns and products"),
        }
    }
}
