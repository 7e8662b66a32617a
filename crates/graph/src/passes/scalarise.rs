//! Converts small vectors to scalar form, in which every value of the graph is a single number and no elements are
//! moved.
//!
//! The body of a solver has only a few states, but it runs thousands of times per solve. In vector form, its gathers,
//! scatters and concatenations cost as much as its arithmetic. In scalar form they merely rename values, and factors of
//! 0 and 1 are folded away.

use crate::ir::{Graph, NodeId, Placement};
use crate::ops::{MatMul, Op, ScatterMap};

const MOST: usize = 2048;

/// Converts a graph to scalar form. The result has one output for each element of each output of the graph. Returns
/// `None` if the result would be too large, or if an operation has no scalar form.
pub(crate) fn scalarise(graph: &Graph) -> Option<Graph> {
    if graph.record_count().is_some() {
        return None;
    }
    let mut out = graph.like();
    let mut parts: Vec<Vec<NodeId>> = Vec::with_capacity(graph.len());
    for id in graph.ids() {
        let numbers = elements(graph, id, &parts, &mut out)?;
        debug_assert_eq!(numbers.len(), graph.shape(id).len as usize);
        parts.push(numbers);
        if out.len() > MOST {
            return None;
        }
    }
    let outputs = graph.outputs().iter();
    let outputs = outputs.flat_map(|id| &parts[id.index()]).copied();
    out.set_outputs(outputs.collect());
    Some(super::compact(&out))
}

fn elements(
    graph: &Graph,
    id: NodeId,
    parts: &[Vec<NodeId>],
    out: &mut Graph,
) -> Option<Vec<NodeId>> {
    let len = graph.shape(id).len as usize;
    let args: Vec<&[NodeId]> = graph
        .args(id)
        .iter()
        .map(|arg| &parts[arg.index()][..])
        .collect();
    let at = |arg: &[NodeId], i: usize| arg[if arg.len() == 1 { 0 } else { i }];
    Some(match graph.op(id) {
        Op::Const(table) => {
            let values = graph.const_data(table);
            values.iter().map(|value| out.constant(*value)).collect()
        }
        Op::Input(slot) if graph.placement(id) == Placement::Lane => {
            let input = out.input_node(slot as usize);
            (0..len).map(|i| out.element(input, i)).collect()
        }
        Op::Elem(op) => (0..len)
            .map(|i| {
                let row: Vec<NodeId> = args.iter().map(|arg| at(arg, i)).collect();
                out.elem(op, &row)
            })
            .collect(),
        Op::Broadcast => vec![args[0][0]; len],
        Op::Gather(index) => {
            let index = graph.index_data(index).iter();
            index.map(|i| args[0][*i as usize]).collect()
        }
        Op::Scatter(maps) => {
            let mut terms = vec![Vec::new(); len];
            for (source, map) in args.iter().zip(maps) {
                for (i, number) in source.iter().enumerate() {
                    let to = match map {
                        ScatterMap::All => i,
                        ScatterMap::Index(index) => graph.index_data(index)[i] as usize,
                        ScatterMap::Record(_) => return None,
                    };
                    terms[to].push(*number);
                }
            }
            terms.iter().map(|terms| out.add_all(terms)).collect()
        }
        Op::Concat => args.concat(),
        Op::Sum => vec![out.add_all(args[0])],
        Op::MatMul(dims) => product(dims, args[0], args[1], out),
        _ => return None,
    })
}

fn product(dims: MatMul, left: &[NodeId], right: &[NodeId], out: &mut Graph) -> Vec<NodeId> {
    let [m, k, n] = [dims.m, dims.k, dims.n].map(|extent| extent as usize);
    let mut numbers = Vec::with_capacity(m * n);
    for column in 0..n {
        for row in 0..m {
            let terms: Vec<NodeId> = (0..k)
                .map(|inner| {
                    let a = match dims.left_transposed {
                        true => left[row * k + inner],
                        false => left[inner * m + row],
                    };
                    let b = match dims.right_transposed {
                        true => right[inner * n + column],
                        false => right[column * k + inner],
                    };
                    out.mul(a, b)
                })
                .collect();
            numbers.push(out.add_all(&terms));
        }
    }
    numbers
}
