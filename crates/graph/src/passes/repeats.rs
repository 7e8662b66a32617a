//! Evaluates equal elements of a sum only once, which saves work if records are repeated.
//!
//! Two elements of a vector are equal if they are computed from equal entries of constant tables, from the same
//! elements of other vectors, and from equal rows of matrices. If a vector has few distinct elements, the sum over the
//! vector becomes a weighted sum over the distinct elements.

use std::collections::HashMap;

use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{MatMul, Op};
use crate::passes::compact::import;

const SHORT: usize = 16;

/// The number of elements in the first sample. The remaining elements are examined only if the sample contains repeats.
const SAMPLE: usize = 512;

const MOST: usize = 4096;

/// Replaces sums over repeated elements by weighted sums over distinct elements. The outputs have the same values as
/// before.
pub fn repeats(graph: Graph) -> Graph {
    let needed = graph.needed_for(graph.outputs());
    let sums = graph
        .ids()
        .filter(|id| needed[id.index()] && graph.op(*id) == Op::Sum);
    let repeated: HashMap<NodeId, Once> = sums
        .filter_map(|id| {
            let region = Region::of(&graph, graph.args(id)[0])?;
            Some((id, region.once(&graph)?))
        })
        .collect();
    if repeated.is_empty() {
        return graph;
    }
    let mut out = graph.like();
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    for id in graph.ids().filter(|id| needed[id.index()]) {
        map[id.index()] = Some(match repeated.get(&id) {
            Some(once) => once.sum(&graph, &map, &mut out, graph.args(id)[0]),
            None => import(&graph, id, &map, &mut out),
        });
    }
    let outputs = graph.outputs().iter();
    let outputs = outputs.map(|id| map[id.index()].expect("outputs are needed"));
    out.set_outputs(outputs.collect());
    out
}

/// The operations that compute a vector element by element. Arguments come before their users.
struct Region {
    len: usize,
    nodes: Vec<NodeId>,
}

/// The distinct elements with their multiplicities. Each element is identified by the index of its first copy.
struct Once {
    nodes: Vec<NodeId>,
    positions: Vec<usize>,
    counts: Vec<f64>,
}

/// Returns the constant matrix of a product, if each row of the matrix is multiplied by the same vector.
fn rows(graph: &Graph, id: NodeId) -> Option<(&[f64], MatMul)> {
    let Op::MatMul(dims) = graph.op(id) else {
        return None;
    };
    let [left, right] = graph.args(id) else {
        return None;
    };
    let table = graph.constant_value(*left)?;
    let plain = dims.n == 1 && graph.constant_value(*right).is_none();
    plain.then_some((table, dims))
}

fn row_element(dims: MatMul, i: usize, k: usize) -> usize {
    match dims.left_transposed {
        true => i * dims.k as usize + k,
        false => k * dims.m as usize + i,
    }
}

impl Region {
    fn of(graph: &Graph, root: NodeId) -> Option<Region> {
        let shape = graph.shape(root);
        let len = shape.len as usize;
        if shape.record || len < SHORT {
            return None;
        }
        let mut nodes = vec![root];
        let mut seen = std::collections::HashSet::from([root]);
        let mut at = 0;
        while at < nodes.len() {
            let id = nodes[at];
            at += 1;
            match graph.op(id) {
                Op::Elem(_) => {
                    for arg in graph.args(id) {
                        if graph.shape(*arg).len > 1 && seen.insert(*arg) {
                            nodes.push(*arg);
                        }
                    }
                }
                Op::Const(_) | Op::Gather(_) | Op::Broadcast => {}
                _ if rows(graph, id).is_some() => {}
                _ => return None,
            }
            if nodes.len() > MOST {
                return None;
            }
        }
        nodes.sort_unstable();
        Some(Region { len, nodes })
    }

    fn among(&self, graph: &Graph, len: usize) -> (Vec<usize>, Vec<f64>) {
        let mut class = vec![0u32; len];
        let mut count = 1;
        let mut refine = |value: &dyn Fn(usize) -> u64| {
            let mut found: HashMap<(u32, u64), u32> = HashMap::new();
            for (i, class) in class.iter_mut().enumerate() {
                let next = found.len() as u32;
                *class = *found.entry((*class, value(i))).or_insert(next);
            }
            count = found.len();
        };
        for id in &self.nodes {
            match graph.op(*id) {
                Op::Const(table) => {
                    let values = graph.const_data(table);
                    refine(&|i| values[i].to_bits());
                }
                Op::Gather(index) => {
                    let index = graph.index_data(index);
                    refine(&|i| u64::from(index[i]));
                }
                Op::MatMul(_) => {
                    if let Some((table, dims)) = rows(graph, *id) {
                        for k in 0..dims.k as usize {
                            refine(&|i| table[row_element(dims, i, k)].to_bits());
                        }
                    }
                }
                _ => {}
            }
        }
        let (mut positions, mut counts) = (vec![usize::MAX; count], vec![0.0; count]);
        for (i, class) in class.iter().enumerate() {
            let class = *class as usize;
            positions[class] = positions[class].min(i);
            counts[class] += 1.0;
        }
        (positions, counts)
    }

    fn once(self, graph: &Graph) -> Option<Once> {
        if self.len > 2 * SAMPLE && self.among(graph, SAMPLE).0.len() * 2 > SAMPLE {
            return None;
        }
        let (positions, counts) = self.among(graph, self.len);
        (positions.len() * 2 <= self.len).then_some(Once {
            nodes: self.nodes,
            positions,
            counts,
        })
    }
}

impl Once {
    fn sum(&self, graph: &Graph, map: &[Option<NodeId>], out: &mut Graph, root: NodeId) -> NodeId {
        let mut made: HashMap<NodeId, NodeId> = HashMap::new();
        let old = |id: NodeId| map[id.index()].expect("arguments precede the nodes that use them");
        for &id in &self.nodes {
            out.set_site(graph.node(id).site);
            let node = match graph.op(id) {
                Op::Const(table) => {
                    let values = graph.const_data(table);
                    let few: Vec<f64> = self.positions.iter().map(|i| values[*i]).collect();
                    out.vector(&few)
                }
                Op::Gather(index) => {
                    let index = graph.index_data(index);
                    let few: Vec<u32> = self.positions.iter().map(|i| index[*i]).collect();
                    out.gather(old(graph.args(id)[0]), &few)
                }
                Op::MatMul(dims) => {
                    let args = graph.args(id);
                    let table = graph.constant_value(args[0]).expect("a table of rows");
                    let few: Vec<f64> = (0..dims.k as usize)
                        .flat_map(|k| self.positions.iter().map(move |i| row_element(dims, *i, k)))
                        .map(|at| table[at])
                        .collect();
                    let few = out.vector(&few);
                    let dims = MatMul {
                        m: self.positions.len() as u32,
                        left_transposed: false,
                        ..dims
                    };
                    out.matmul(few, old(args[1]), dims)
                }
                Op::Elem(op) => {
                    let new = |a: &NodeId| made.get(a).copied().unwrap_or_else(|| old(*a));
                    let args: Vec<NodeId> = graph.args(id).iter().map(new).collect();
                    out.elem(op, &args)
                }
                _ => out.broadcast(old(graph.args(id)[0]), Shape::fixed(self.positions.len())),
            };
            made.insert(id, node);
        }
        let weights = out.vector(&self.counts);
        let root = made[&root];
        let weighted = out.mul(weights, root);
        if self.positions.len() == 1 {
            return weighted;
        }
        out.sum(weighted)
    }
}
