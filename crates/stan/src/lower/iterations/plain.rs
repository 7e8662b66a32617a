//! Converts columns, which have one value per iteration, to plain vectors.

use jensen_graph::{ElemOp, Graph, MatMul, NodeId, Op, RecordColumn, RecordId, Shape};

use super::super::Lower;
use super::one_by_one;
use crate::symbolic::tape::E;
use crate::value::error::{FnError, FnResult};

const MOST_TERMS: usize = 512;

/// A sum of columns, split into products of data with values that all iterations share, and a remainder.
#[derive(Default)]
struct Linear {
    /// For each product: the data, the factor, and whether the product is subtracted.
    products: Vec<(RecordId, NodeId, bool)>,
    rest: Vec<(NodeId, bool)>,
}

impl Linear {
    /// Returns `None` unless the sum has several products with data.
    fn of(g: &Graph, root: NodeId) -> Option<Linear> {
        let mut found = Linear::default();
        let mut open = vec![(root, false)];
        while let Some((id, negative)) = open.pop() {
            if open.len() + found.rest.len() > MOST_TERMS {
                return None;
            }
            let args = g.args(id);
            match g.op(id) {
                Op::Elem(op @ (ElemOp::Add | ElemOp::Sub)) if g.shape(id).record => {
                    // The first term must be the first from the stack.
                    open.push((args[1], negative != (op == ElemOp::Sub)));
                    open.push((args[0], negative));
                }
                Op::Elem(ElemOp::Mul) => match product(g, args) {
                    Some((data, factor)) => found.products.push((data, factor, negative)),
                    None => found.rest.push((id, negative)),
                },
                _ => found.rest.push((id, negative)),
            }
        }
        (found.products.len() > 1).then_some(found)
    }

    /// Computes the sum as a vector over `count` iterations. The vector is the remainder, which is already computed,
    /// plus a single product of a matrix and a vector.
    fn made(&self, g: &mut Graph, rest: &[NodeId], count: usize) -> NodeId {
        let mut matrix = Vec::with_capacity(self.products.len() * count);
        let mut factors = Vec::with_capacity(self.products.len());
        for (data, factor, negative) in &self.products {
            if let RecordColumn::Values { values, .. } = g.record_data(*data) {
                matrix.extend_from_slice(values);
            }
            factors.push(if *negative { g.neg(*factor) } else { *factor });
        }
        let matrix = g.vector(&matrix);
        let factors = g.concat(&factors);
        let dims = MatMul {
            m: count as u32,
            k: self.products.len() as u32,
            n: 1,
            left_transposed: false,
            right_transposed: false,
        };
        let mut sum = g.matmul(matrix, factors, dims);
        for (term, (_, negative)) in rest.iter().zip(&self.rest) {
            sum = if *negative {
                g.sub(sum, *term)
            } else {
                g.add(sum, *term)
            };
        }
        sum
    }
}

/// If the arguments of a multiplication are a column of data and a factor that all iterations share, returns these two.
fn product(g: &Graph, args: &[NodeId]) -> Option<(RecordId, NodeId)> {
    let data = |id: NodeId| match g.op(id) {
        Op::Record(column) => match g.record_data(column) {
            RecordColumn::Values { width: 1, .. } => Some(column),
            _ => None,
        },
        _ => None,
    };
    let shared = |id: NodeId| !g.shape(id).record && g.constant_value(id).is_none();
    match (data(args[0]), data(args[1])) {
        (Some(column), None) if shared(args[1]) => Some((column, args[1])),
        (None, Some(column)) if shared(args[0]) => Some((column, args[0])),
        _ => None,
    }
}

impl<'g> Lower<'_, 'g> {
    pub(super) fn plain(&mut self, root: NodeId) -> FnResult<E<'g>> {
        let tape = self.tape;
        let Some(iterations) = self.turning.iterations.last_mut() else {
            return Ok(tape.e(root));
        };
        let (map, count) = (&mut iterations.plain, iterations.count);
        let mut graph = tape.graph.borrow_mut();
        let site = graph.site();
        let mut stack = vec![root];
        while let Some(&id) = stack.last() {
            if !graph.shape(id).record || map.contains_key(&id) {
                stack.pop();
                continue;
            }
            let linear = Linear::of(&graph, id);
            let args: Vec<NodeId> = match &linear {
                Some(linear) => linear.rest.iter().map(|(term, _)| *term).collect(),
                None => graph.args(id).to_vec(),
            };
            let open = |a: &NodeId| graph.shape(*a).record && !map.contains_key(a);
            let missing: Vec<NodeId> = args.iter().copied().filter(open).collect();
            if !missing.is_empty() {
                stack.extend(missing);
                continue;
            }
            let made: Vec<NodeId> = args.iter().map(|a| *map.get(a).unwrap_or(a)).collect();
            let site = graph.node(id).site;
            graph.set_site(site);
            let node = match linear {
                Some(linear) => linear.made(&mut graph, &made, count),
                None => vector(&mut graph, id, &made)?,
            };
            map.insert(id, node);
            stack.pop();
        }
        graph.set_site(site);
        let id = *map.get(&root).unwrap_or(&root);
        drop(graph);
        Ok(tape.e(id))
    }

    /// The result has an element for each iteration, even if all iterations share the value.
    pub(super) fn spread(&mut self, id: NodeId) -> FnResult<E<'g>> {
        let count = self.iteration_count();
        let e = self.plain(id)?;
        if e.len() == count {
            return Ok(e);
        }
        let mut graph = e.tape.graph.borrow_mut();
        let id = graph.broadcast(e.id, Shape::fixed(count));
        drop(graph);
        Ok(e.tape.e(id))
    }

    pub(super) fn column_of(&self, vector: E<'g>) -> E<'g> {
        let index: Vec<u32> = (0..vector.len() as u32).collect();
        vector.gather_record(&index)
    }
}

fn vector(graph: &mut Graph, id: NodeId, args: &[NodeId]) -> Result<NodeId, FnError> {
    Ok(match graph.op(id) {
        Op::Record(column) => match graph.record_data(column) {
            RecordColumn::Values { width: 1, values } => {
                let values = values.clone();
                graph.vector(&values)
            }
            _ => return Err(one_by_one("a column of several numbers")),
        },
        Op::GatherRecord(column) => match graph.record_data(column) {
            RecordColumn::Indices(index) => {
                let index = index.clone();
                graph.gather(args[0], &index)
            }
            RecordColumn::Values { .. } => return Err(one_by_one("a column of numbers")),
        },
        Op::Elem(op) => graph.elem(op, args),
        _ => return Err(one_by_one("an operation on all iterations")),
    })
}
