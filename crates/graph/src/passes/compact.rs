//! Eliminates dead code, and copies parts of graphs.

use crate::ir::{Graph, NodeId};
use crate::ops::{Op, ScatterMap};

/// Returns a graph with the same outputs. The graph contains only the nodes, constants and index lists on which the
/// outputs depend.
pub fn compact(graph: &Graph) -> Graph {
    let mut out = graph.like();
    let outputs = transplant(graph, graph.outputs(), &[], &mut out);
    out.set_outputs(outputs);
    out
}

/// Returns a graph without a record axis that computes `roots`. The given graph may still be under construction, and
/// may contain unused columns of different lengths.
pub fn settled(graph: &Graph, roots: &[NodeId]) -> Graph {
    let mut out = Graph::new();
    out.inputs.clone_from(&graph.inputs);
    let outputs = transplant(graph, roots, &[], &mut out);
    out.set_outputs(outputs);
    out
}

/// Copies the computation of `graph` to `out` and returns the nodes of its outputs. `inputs` lists, for each input of
/// `graph`, the node that replaces it. If an entry is `None`, no output may depend on this input.
pub fn inlined(graph: &Graph, inputs: &[Option<NodeId>], out: &mut Graph) -> Vec<NodeId> {
    let replaced: Vec<(NodeId, NodeId)> = graph
        .ids()
        .filter_map(|id| match graph.op(id) {
            Op::Input(slot) => Some((id, inputs[slot as usize]?)),
            _ => None,
        })
        .collect();
    transplant(graph, graph.outputs(), &replaced, out)
}

/// Rebuilds the nodes `roots` of `graph` in `out`. `out` must have the same record columns and at least the same
/// inputs. If a node is a key of `replaced`, it becomes the corresponding node of `out`.
pub(crate) fn transplant(
    graph: &Graph,
    roots: &[NodeId],
    replaced: &[(NodeId, NodeId)],
    out: &mut Graph,
) -> Vec<NodeId> {
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    replaced
        .iter()
        .for_each(|(from, to)| map[from.index()] = Some(*to));
    let mut needed = vec![false; graph.len()];
    roots.iter().for_each(|root| needed[root.index()] = true);
    for id in graph.ids().rev() {
        if needed[id.index()] && map[id.index()].is_none() {
            graph
                .args(id)
                .iter()
                .for_each(|arg| needed[arg.index()] = true);
        }
    }
    for id in graph.ids().filter(|id| needed[id.index()]) {
        if map[id.index()].is_none() {
            map[id.index()] = Some(import(graph, id, &map, out));
        }
    }
    roots
        .iter()
        .map(|root| map[root.index()].expect("roots are needed"))
        .collect()
}

/// Copies node `id` of `graph` to `out`, which has the same inputs and record columns.
pub(crate) fn import(graph: &Graph, id: NodeId, map: &[Option<NodeId>], out: &mut Graph) -> NodeId {
    let args: Vec<NodeId> = graph
        .args(id)
        .iter()
        .map(|arg| map[arg.index()].expect("arguments precede the nodes that use them"))
        .collect();
    out.set_site(graph.node(id).site);
    let op = import_op(graph, graph.op(id), out);
    if let Op::Const(_) = op {
        let Op::Const(table) = graph.op(id) else {
            unreachable!()
        };
        let shared = out.intern_shared(graph.const_data(table));
        return out.push(Op::Const(shared), &[], graph.shape(id));
    }
    out.rebuild(op, &args, graph.shape(id))
}

fn import_op(graph: &Graph, op: Op, out: &mut Graph) -> Op {
    match op {
        Op::Gather(index) => Op::Gather(out.intern_index(graph.index_data(index))),
        Op::Scatter(mut maps) => {
            for map in &mut maps {
                if let ScatterMap::Index(index) = map {
                    *map = ScatterMap::Index(out.intern_index(graph.index_data(*index)));
                }
            }
            Op::Scatter(maps)
        }
        Op::Solver(id, pass) => Op::Solver(out.intern_solver(graph.solver(id)), pass),
        op => op,
    }
}

/// Returns a graph with the given outputs. The graph has only the first input, and only the record columns that are in
/// use.
///
/// # Panics
/// Panics if an output depends on any input except the first.
pub fn extract(graph: &Graph, outputs: &[NodeId]) -> Graph {
    let mut out = Graph::new();
    out.inputs.extend_from_slice(&graph.inputs[..1]);
    let mut needed = vec![false; graph.len()];
    outputs.iter().for_each(|root| needed[root.index()] = true);
    for id in graph.ids().rev() {
        if needed[id.index()] {
            graph
                .args(id)
                .iter()
                .for_each(|arg| needed[arg.index()] = true);
        }
    }
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    for id in graph.ids().filter(|id| needed[id.index()]) {
        let column = match graph.op(id) {
            Op::Record(column) | Op::GatherRecord(column) => Some(column),
            Op::Input(slot) => {
                assert_eq!(slot, 0, "outputs of the first input");
                None
            }
            _ => None,
        };
        map[id.index()] = Some(match column {
            None => import(graph, id, &map, &mut out),
            Some(column) => {
                out.set_site(graph.node(id).site);
                let column = out.intern_record(graph.record_data(column).clone());
                let args: Vec<NodeId> = graph
                    .args(id)
                    .iter()
                    .map(|arg| map[arg.index()].expect("arguments precede the nodes that use them"))
                    .collect();
                let op = match graph.op(id) {
                    Op::Record(_) => Op::Record(column),
                    _ => Op::GatherRecord(column),
                };
                out.rebuild(op, &args, graph.shape(id))
            }
        });
    }
    let outputs = outputs
        .iter()
        .map(|root| map[root.index()].expect("outputs are needed"))
        .collect();
    out.set_outputs(outputs);
    out
}
