//! Loop re-rolling: N unrolled copies of one small template become one vector operation.
//!
//! Scalar elementwise nodes are sorted into *packs*: same operation, same source expression
//! ([`crate::ir::Node::site`]) and arguments of the same classes, where the class of an argument is
//! its pack, the vector it is an element of, "constant", or the node itself. Because a pack's key
//! only names classes that existed before its first member, no member can depend on another, and a
//! recursion (an autoregression in the state) falls into one pack a step by itself. Every pack of
//! at least two members becomes one vector node whose arguments are gathered from its arguments'
//! packs; an order that agrees needs no gather at all.
//!
//! Long sums of scalars (the terms of a log density) become sums of packs, equal terms counted
//! once with their multiplicity.

use std::collections::HashMap;

use crate::ir::{Graph, NodeId, Placement};
use crate::ops::{ElemOp, Op};
use crate::passes::compact::{compact, import};

/// Sums of at least this many scalar terms are treated as one sum.
const LONG_SUM: usize = 16;

/// A pack is split by the identity of an element argument when that argument takes at most this
/// many values, each at least [`SPLIT_SHARE`] times: `mu[k]` in a loop over records and a few
/// components broadcasts, `alpha[county]` is gathered.
const SPLIT_VALUES: usize = 6;
const SPLIT_SHARE: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Class {
    Constant,
    /// Some element of a vector node.
    Element(NodeId),
    /// This node only.
    Unique(NodeId),
    Pack(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    op: Option<ElemOp>,
    site: u32,
    args: Vec<Class>,
    split: Vec<NodeId>,
}

struct Pack {
    members: Vec<NodeId>,
}

struct Classes {
    of: Vec<Class>,
    packs: Vec<Pack>,
    /// The position of a member in its pack.
    position: Vec<u32>,
}

/// One signed leaf of a long sum.
type Leaf = (NodeId, f64);

struct Sums {
    /// The leaves of each long sum's root.
    leaves: HashMap<NodeId, Vec<Leaf>>,
    /// Nodes inside a long sum.
    interior: Vec<bool>,
}

/// The same outputs with unrolled scalar copies packed into vectors; see the module documentation.
pub fn reroll(graph: &Graph) -> Graph {
    let sums = find_sums(graph);
    let coarse = classify(graph, &sums, |_, _| Vec::new());
    let splits = find_splits(graph, &coarse);
    let fine = if splits.iter().all(Vec::is_empty) {
        coarse
    } else {
        classify(graph, &sums, |id, args| match &coarse.of[id.index()] {
            Class::Pack(pack) => splits[*pack as usize]
                .iter()
                .map(|&which| args[which])
                .collect(),
            _ => Vec::new(),
        })
    };
    if fine.packs.iter().all(|pack| pack.members.len() < 2) && sums.leaves.is_empty() {
        return compact(graph);
    }
    compact(&emit(graph, &sums, &fine))
}

fn is_scalar_elem(graph: &Graph, id: NodeId) -> Option<ElemOp> {
    let scalar = graph.shape(id).is_scalar() && graph.placement(id) == Placement::Lane;
    graph.elem_op(id).filter(|_| scalar)
}

fn find_sums(graph: &Graph) -> Sums {
    let mut uses = vec![0_u32; graph.len()];
    let mut user: Vec<Option<NodeId>> = vec![None; graph.len()];
    for id in graph.ids() {
        for &arg in graph.args(id) {
            uses[arg.index()] += 1;
            user[arg.index()] = Some(id);
        }
    }
    for output in graph.outputs() {
        uses[output.index()] += 2;
    }
    let additive = |id: NodeId| {
        matches!(
            is_scalar_elem(graph, id),
            Some(ElemOp::Add | ElemOp::Sub | ElemOp::Neg)
        )
    };
    let inside = |id: NodeId| {
        additive(id) && uses[id.index()] == 1 && user[id.index()].is_some_and(additive)
    };
    let mut sums = Sums {
        leaves: HashMap::new(),
        interior: vec![false; graph.len()],
    };
    for root in graph.ids().filter(|&id| additive(id) && !inside(id)) {
        let mut leaves: Vec<Leaf> = Vec::new();
        let mut interior: Vec<NodeId> = Vec::new();
        let mut stack = vec![(root, 1.0)];
        while let Some((id, sign)) = stack.pop() {
            if id != root && !inside(id) {
                leaves.push((id, sign));
                continue;
            }
            if id != root {
                interior.push(id);
            }
            let args = graph.args(id);
            match graph.elem_op(id) {
                Some(ElemOp::Neg) => stack.push((args[0], -sign)),
                Some(ElemOp::Sub) => stack.extend([(args[1], -sign), (args[0], sign)]),
                _ => stack.extend([(args[1], sign), (args[0], sign)]),
            }
        }
        if leaves.len() >= LONG_SUM {
            interior
                .iter()
                .for_each(|id| sums.interior[id.index()] = true);
            sums.leaves.insert(root, leaves);
        }
    }
    sums
}

fn classify(
    graph: &Graph,
    sums: &Sums,
    split: impl Fn(NodeId, &[NodeId]) -> Vec<NodeId>,
) -> Classes {
    let mut classes = Classes {
        of: Vec::with_capacity(graph.len()),
        packs: Vec::new(),
        position: vec![0; graph.len()],
    };
    let mut lookup: HashMap<Key, u32> = HashMap::new();
    for id in graph.ids() {
        let class = class_of(graph, sums, &mut classes, &mut lookup, &split, id);
        classes.of.push(class);
    }
    classes
}

fn class_of(
    graph: &Graph,
    sums: &Sums,
    classes: &mut Classes,
    lookup: &mut HashMap<Key, u32>,
    split: &impl Fn(NodeId, &[NodeId]) -> Vec<NodeId>,
    id: NodeId,
) -> Class {
    let args = graph.args(id);
    let key = if let Some(leaves) = sums.leaves.get(&id) {
        let mut kinds: Vec<Class> = Vec::new();
        for (leaf, _) in leaves {
            let class = &classes.of[leaf.index()];
            if !kinds.contains(class) {
                kinds.push(class.clone());
            }
            if kinds.len() > LONG_SUM {
                return Class::Unique(id);
            }
        }
        Key {
            op: None,
            site: graph.node(id).site,
            args: kinds,
            split: Vec::new(),
        }
    } else if sums.interior[id.index()] {
        return Class::Unique(id);
    } else if let Some(op) = is_scalar_elem(graph, id) {
        let kinds = args
            .iter()
            .map(|arg| classes.of[arg.index()].clone())
            .collect();
        Key {
            op: Some(op),
            site: graph.node(id).site,
            args: kinds,
            split: split(id, args),
        }
    } else {
        return match graph.op(id) {
            Op::Const(_) if graph.shape(id).is_scalar() => Class::Constant,
            Op::Gather(_) if graph.shape(id).is_scalar() => Class::Element(args[0]),
            _ => Class::Unique(id),
        };
    };
    let next = classes.packs.len() as u32;
    let pack = *lookup.entry(key).or_insert(next);
    if pack == next {
        classes.packs.push(Pack {
            members: Vec::new(),
        });
    }
    let members = &mut classes.packs[pack as usize].members;
    classes.position[id.index()] = members.len() as u32;
    members.push(id);
    Class::Pack(pack)
}

/// For each pack, the argument positions by whose identity it is split.
fn find_splits(graph: &Graph, classes: &Classes) -> Vec<Vec<usize>> {
    classes
        .packs
        .iter()
        .map(|pack| {
            if pack.members.len() < 2 * SPLIT_SHARE || graph.elem_op(pack.members[0]).is_none() {
                return Vec::new();
            }
            (0..graph.args(pack.members[0]).len())
                .filter(|&which| {
                    let mut counts: Vec<(NodeId, usize)> = Vec::new();
                    for &member in &pack.members {
                        let arg = graph.args(member)[which];
                        if classes.of[arg.index()] == Class::Constant {
                            return false;
                        }
                        match counts.iter_mut().find(|(node, _)| *node == arg) {
                            Some((_, count)) => *count += 1,
                            None => counts.push((arg, 1)),
                        }
                        if counts.len() > SPLIT_VALUES {
                            return false;
                        }
                    }
                    counts.len() > 1 && counts.iter().all(|(_, count)| *count >= SPLIT_SHARE)
                })
                .collect()
        })
        .collect()
}

struct Emitter<'a> {
    graph: &'a Graph,
    sums: &'a Sums,
    classes: &'a Classes,
    out: Graph,
    map: Vec<Option<NodeId>>,
    vectors: Vec<Option<NodeId>>,
}

fn emit(graph: &Graph, sums: &Sums, classes: &Classes) -> Graph {
    let mut emitter = Emitter {
        graph,
        sums,
        classes,
        out: graph.like(),
        map: vec![None; graph.len()],
        vectors: vec![None; classes.packs.len()],
    };
    for id in graph.ids().filter(|id| !sums.interior[id.index()]) {
        match classes.of[id.index()] {
            Class::Pack(pack) if classes.packs[pack as usize].members.len() >= 2 => {
                emitter.emit_pack(pack)
            }
            _ => emitter.emit_single(id),
        }
    }
    let outputs = graph
        .outputs()
        .iter()
        .map(|&id| emitter.mapped(id))
        .collect();
    emitter.out.set_outputs(outputs);
    emitter.out
}

impl Emitter<'_> {
    /// The node of `id` in the new graph; members of packs become elements on demand.
    fn mapped(&mut self, id: NodeId) -> NodeId {
        if let Some(node) = self.map[id.index()] {
            return node;
        }
        let (vector, position) = self.source(id).expect("emitted before its users");
        let node = self.out.gather(vector, &[position]);
        self.map[id.index()] = Some(node);
        node
    }

    /// The vector of the new graph that `id` is an element of, and where.
    fn source(&mut self, id: NodeId) -> Option<(NodeId, u32)> {
        match &self.classes.of[id.index()] {
            Class::Pack(pack) => {
                let vector = self.vectors[*pack as usize]?;
                Some((vector, self.classes.position[id.index()]))
            }
            Class::Element(of) => {
                let Op::Gather(index) = self.graph.op(id) else {
                    unreachable!("element classes are gathers")
                };
                let vector = self.map[of.index()]?;
                Some((vector, self.graph.index_data(index)[0]))
            }
            _ => None,
        }
    }

    fn emit_single(&mut self, id: NodeId) {
        if self.map[id.index()].is_some() {
            return;
        }
        if let Some(leaves) = self.sums.leaves.get(&id) {
            let total = self.sums_of(&[leaves.clone()]);
            self.map[id.index()] = Some(total);
            return;
        }
        let args = self.graph.args(id).to_vec();
        if self.graph.op(id) == Op::Concat {
            let whole = self.assemble(&args);
            self.map[id.index()] = Some(whole);
            return;
        }
        for arg in args {
            self.mapped(arg);
        }
        let node = import(self.graph, id, &self.map, &mut self.out);
        self.map[id.index()] = Some(node);
    }

    /// A concatenation: runs of elements of one vector become one gather.
    fn assemble(&mut self, parts: &[NodeId]) -> NodeId {
        let mut pieces: Vec<NodeId> = Vec::new();
        let mut run: Option<(NodeId, Vec<u32>)> = None;
        for &part in parts {
            let source = if self.graph.shape(part).is_scalar() {
                self.source(part)
            } else {
                None
            };
            match (source, &mut run) {
                (Some((vector, at)), Some((current, index))) if *current == vector => {
                    index.push(at)
                }
                (source, _) => {
                    if let Some((vector, index)) = run.take() {
                        pieces.push(self.out.gather(vector, &index));
                    }
                    match source {
                        Some((vector, at)) => run = Some((vector, vec![at])),
                        None => {
                            let node = self.mapped(part);
                            pieces.push(node);
                        }
                    }
                }
            }
        }
        if let Some((vector, index)) = run {
            pieces.push(self.out.gather(vector, &index));
        }
        self.out.concat(&pieces)
    }

    fn emit_pack(&mut self, pack: u32) {
        if self.vectors[pack as usize].is_some() {
            return;
        }
        let classes = self.classes;
        let members = &classes.packs[pack as usize].members;
        let first = members[0];
        self.out.set_site(self.graph.node(first).site);
        let vector = match self.graph.elem_op(first) {
            Some(op) if !self.sums.leaves.contains_key(&first) => {
                let arity = op.arity();
                let args: Vec<NodeId> = (0..arity)
                    .map(|which| {
                        let column: Vec<NodeId> = members
                            .iter()
                            .map(|&member| self.graph.args(member)[which])
                            .collect();
                        self.column(&column)
                    })
                    .collect();
                self.out.elem(op, &args)
            }
            _ => {
                let leaves: Vec<Vec<Leaf>> = members
                    .iter()
                    .map(|id| self.sums.leaves[id].clone())
                    .collect();
                self.sums_of(&leaves)
            }
        };
        let shape = crate::ir::Shape::fixed(members.len());
        let vector = if self.out.shape(vector) == shape {
            vector
        } else {
            self.out.broadcast(vector, shape)
        };
        self.vectors[pack as usize] = Some(vector);
    }

    /// One argument of a pack: a broadcast scalar, a constant table, or a gather.
    fn column(&mut self, column: &[NodeId]) -> NodeId {
        if column.iter().all(|&id| id == column[0]) {
            return self.mapped(column[0]);
        }
        if let Some(values) = column
            .iter()
            .map(|&id| self.graph.scalar_value(id))
            .collect::<Option<Vec<f64>>>()
        {
            return self.out.vector(&values);
        }
        self.assemble(column)
    }

    /// The values of several long sums whose terms have the same classes: terms are collected by the
    /// vector they are elements of.
    fn sums_of(&mut self, sums: &[Vec<Leaf>]) -> NodeId {
        let mut constants = vec![0.0; sums.len()];
        let mut sources: Vec<(NodeId, HashMap<(u32, u32), f64>)> = Vec::new();
        let mut source_at: HashMap<NodeId, usize> = HashMap::new();
        let mut singles: Vec<NodeId> = Vec::new();
        for (owner, leaves) in sums.iter().enumerate() {
            for &(leaf, sign) in leaves {
                if let Some(value) = self.graph.scalar_value(leaf) {
                    constants[owner] += sign * value;
                } else if let Some((vector, position)) = self.source(leaf) {
                    let at = *source_at.entry(vector).or_insert_with(|| {
                        sources.push((vector, HashMap::new()));
                        sources.len() - 1
                    });
                    *sources[at].1.entry((owner as u32, position)).or_insert(0.0) += sign;
                } else {
                    let mut term = self.mapped(leaf);
                    if sign < 0.0 {
                        term = self.out.neg(term);
                    }
                    if sums.len() > 1 {
                        term = self.out.scatter_add(term, &[owner as u32], sums.len());
                    }
                    singles.push(term);
                }
            }
        }
        let mut terms = vec![self.out.vector(&constants)];
        for (vector, weights) in sources {
            let mut entries: Vec<((u32, u32), f64)> = weights.into_iter().collect();
            entries.sort_unstable_by_key(|entry| entry.0);
            let index: Vec<u32> = entries.iter().map(|entry| entry.0.1).collect();
            let owners: Vec<u32> = entries.iter().map(|entry| entry.0.0).collect();
            let weights: Vec<f64> = entries.iter().map(|entry| entry.1).collect();
            let picked = self.out.gather(vector, &index);
            let weights = self.out.vector(&weights);
            let weighted = self.out.mul(weights, picked);
            terms.push(if sums.len() == 1 {
                self.out.sum(weighted)
            } else {
                self.out.scatter_add(weighted, &owners, sums.len())
            });
        }
        terms.extend(singles);
        self.out.add_all(&terms)
    }
}
