//! Re-rolls loops: N unrolled copies of a small template become a single vector operation.
//!
//! Elementwise nodes, concatenations and sums of a few elements are sorted into *packs*. The members of a pack have the
//! same operation, the same source expression ([`crate::ir::Node::site`]) and the same length, and their arguments have
//! the same classes. The class of an argument is one of the following: its pack, the vector from which it is selected,
//! "constant", or the node itself. The key of a pack refers only to classes that existed before its first member, so no
//! member of a pack can depend on another member. Therefore a recursion, such as an autoregression in the state,
//! becomes one pack per step. Every pack with several members becomes one vector node. The arguments of this node are
//! gathered from the packs of the members' arguments, but no gather is needed if the order already matches.
//!
//! A long sum of scalars, such as the terms of a log density, becomes a sum over packs. If several terms are equal, the
//! sum contains one of them, multiplied by their number.

use std::collections::HashMap;

use crate::ir::{Graph, NodeId, Placement, Shape};
use crate::ops::{ElemOp, Op};
use crate::passes::compact::{compact, import};

const LONG_SUM: usize = 16;

/// A vector may be packed together with its copies only if it has at most this many elements.
const SMALL: u32 = 32;

/// The smallest number of members that a pack of small vectors must have. Fewer members are not worth packing, because
/// the operations on each of them are already vector operations.
const VECTOR_MEMBERS: usize = 4;

/// A pack is split if one of its arguments is an element of a vector and has at most this many distinct values. Each
/// distinct element must also occur at least [`SPLIT_SHARE`] times. Each of the new packs uses a single element. In a
/// loop over records and a few components, `mu[k]` is therefore broadcast, whereas `alpha[county]` is gathered.
const SPLIT_VALUES: usize = 6;
const SPLIT_SHARE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Class {
    Constant,
    Element(NodeId),
    Unique(NodeId),
    Pack(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Template {
    Map(ElemOp),
    Concat,
    Sum,
    LongSum,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    template: Template,
    site: u32,
    len: u32,
    args: Vec<(Class, u32)>,
    split: Vec<NodeId>,
}

struct Pack {
    template: Template,
    len: u32,
    members: Vec<NodeId>,
}

impl Pack {
    fn rolls(&self) -> bool {
        let small_vector =
            self.len > 1 || matches!(self.template, Template::Sum | Template::Concat);
        self.members.len() >= if small_vector { VECTOR_MEMBERS } else { 2 }
    }
}

struct Classes {
    of: Vec<Class>,
    packs: Vec<Pack>,
    start: Vec<u32>,
}

type Weights = HashMap<(u32, u32), f64>;

type Leaf = (NodeId, f64);

struct Sums {
    leaves: HashMap<NodeId, Vec<Leaf>>,
    interior: Vec<bool>,
}

/// Returns a graph with the same outputs, in which unrolled copies are replaced by vector operations; see the module
/// documentation.
pub fn reroll(graph: &Graph) -> Graph {
    let sums = find_sums(graph);
    let coarse = classify(graph, &sums, |_| Vec::new());
    let splits = find_splits(graph, &coarse);
    let fine = if splits.iter().all(Vec::is_empty) {
        coarse
    } else {
        // The split positions refer to arguments that are sorted by their coarse classes.
        classify(graph, &sums, |id| match coarse.of[id.index()] {
            Class::Pack(pack) if !splits[pack as usize].is_empty() => {
                let args = ordered_args(graph, &coarse.of, id);
                splits[pack as usize]
                    .iter()
                    .map(|&which| args[which])
                    .collect()
            }
            _ => Vec::new(),
        })
    };
    if !fine.packs.iter().any(Pack::rolls) && sums.leaves.is_empty() {
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

/// Returns the arguments of a node. The arguments of commutative operations are sorted by class. Constructors sort them
/// by age, which differs between the copies of an expression.
fn ordered_args(graph: &Graph, of: &[Class], id: NodeId) -> Vec<NodeId> {
    let mut args = graph.args(id).to_vec();
    let commutes = matches!(graph.elem_op(id), Some(ElemOp::Add | ElemOp::Mul));
    if commutes && of[args[1].index()] < of[args[0].index()] {
        args.swap(0, 1);
    }
    args
}

fn classify(graph: &Graph, sums: &Sums, split: impl Fn(NodeId) -> Vec<NodeId>) -> Classes {
    let mut classes = Classes {
        of: Vec::with_capacity(graph.len()),
        packs: Vec::new(),
        start: vec![0; graph.len()],
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
    split: &impl Fn(NodeId) -> Vec<NodeId>,
    id: NodeId,
) -> Class {
    if sums.interior[id.index()] {
        return Class::Unique(id);
    }
    let shape = graph.shape(id);
    let small = |id: NodeId| {
        let shape = graph.shape(id);
        !shape.record && shape.len > 0 && shape.len <= SMALL
    };
    let site = graph.node(id).site;
    let classed = |args: &[NodeId]| -> Vec<(Class, u32)> {
        args.iter()
            .map(|arg| (classes.of[arg.index()], graph.shape(*arg).len))
            .collect()
    };
    let key = if let Some(leaves) = sums.leaves.get(&id) {
        let mut kinds: Vec<(Class, u32)> = Vec::new();
        for (leaf, _) in leaves {
            let kind = (classes.of[leaf.index()], 1);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
            if kinds.len() > LONG_SUM {
                return Class::Unique(id);
            }
        }
        kinds.sort_unstable();
        Key {
            template: Template::LongSum,
            site,
            len: 1,
            args: kinds,
            split: Vec::new(),
        }
    } else {
        let lane = graph.placement(id) == Placement::Lane;
        match graph.op(id) {
            Op::Const(_) => return Class::Constant,
            Op::Gather(_) => {
                let source = graph.args(id)[0];
                return match classes.of[source.index()] {
                    Class::Pack(pack) => Class::Pack(pack),
                    _ => Class::Element(source),
                };
            }
            Op::Elem(op) if lane && small(id) => {
                let args = ordered_args(graph, &classes.of, id);
                let split = split(id);
                Key {
                    template: Template::Map(op),
                    site,
                    len: shape.len,
                    args: classed(&args),
                    split,
                }
            }
            Op::Concat if lane && small(id) => {
                let args = classed(graph.args(id));
                Key {
                    template: Template::Concat,
                    site,
                    len: shape.len,
                    args,
                    split: Vec::new(),
                }
            }
            Op::Sum if lane && small(graph.args(id)[0]) => {
                let args = classed(graph.args(id));
                Key {
                    template: Template::Sum,
                    site,
                    len: 1,
                    args,
                    split: Vec::new(),
                }
            }
            _ => return Class::Unique(id),
        }
    };
    let (template, len) = (key.template, key.len);
    let next = classes.packs.len() as u32;
    let pack = *lookup.entry(key).or_insert(next);
    if pack == next {
        classes.packs.push(Pack {
            template,
            len,
            members: Vec::new(),
        });
    }
    let members = &mut classes.packs[pack as usize].members;
    classes.start[id.index()] = members.len() as u32 * len;
    members.push(id);
    Class::Pack(pack)
}

fn find_splits(graph: &Graph, classes: &Classes) -> Vec<Vec<usize>> {
    classes
        .packs
        .iter()
        .map(|pack| {
            if pack.members.len() < 2 * SPLIT_SHARE
                || !matches!(pack.template, Template::Map(_))
                || pack.len > 1
            {
                return Vec::new();
            }
            let columns: Vec<Vec<NodeId>> = pack
                .members
                .iter()
                .map(|&member| ordered_args(graph, &classes.of, member))
                .collect();
            (0..columns[0].len())
                .filter(|&which| {
                    let mut counts: Vec<(NodeId, usize)> = Vec::new();
                    for args in &columns {
                        let arg = args[which];
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

#[derive(Clone, Copy)]
enum Element {
    Constant(f64),
    Of(NodeId, u32),
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
        match emitter.rolled_pack(id) {
            Some(pack) => emitter.emit_pack(pack),
            None => emitter.emit_single(id),
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
    fn rolled_pack(&self, id: NodeId) -> Option<u32> {
        match self.classes.of[id.index()] {
            Class::Pack(pack) if !matches!(self.graph.op(id), Op::Gather(_)) => {
                self.classes.packs[pack as usize].rolls().then_some(pack)
            }
            _ => None,
        }
    }

    /// Returns the node of the new graph that corresponds to `id`. Members of packs become elements when they are first
    /// needed.
    fn mapped(&mut self, id: NodeId) -> NodeId {
        if let Some(node) = self.map[id.index()] {
            return node;
        }
        if self.graph.shape(id).record {
            self.emit_single(id);
            return self.map[id.index()].expect("just emitted");
        }
        let elements = self.elements(id);
        let node = self.assemble(&elements);
        self.map[id.index()] = Some(node);
        node
    }

    /// Returns each element of `id` as an element of a node of the new graph. `id` must have a fixed shape.
    fn elements(&mut self, id: NodeId) -> Vec<Element> {
        let len = self.graph.shape(id).len;
        if let Some(values) = self.graph.constant_value(id) {
            return values
                .iter()
                .map(|&value| Element::Constant(value))
                .collect();
        }
        if let Some(vector) = self
            .rolled_pack(id)
            .and_then(|pack| self.vectors[pack as usize])
        {
            let start = self.classes.start[id.index()];
            return (start..start + len)
                .map(|at| Element::Of(vector, at))
                .collect();
        }
        if let Op::Gather(index) = self.graph.op(id) {
            let source = self.graph.args(id)[0];
            let of = self.elements_at(source, self.graph.index_data(index).clone().as_ref());
            return of;
        }
        // A pack that is too small is not re-rolled. Its members may come after the first member of a pack that uses
        // them.
        if self.map[id.index()].is_none() {
            match self.rolled_pack(id) {
                Some(pack) => {
                    self.emit_pack(pack);
                    return self.elements(id);
                }
                None => self.emit_single(id),
            }
        }
        let node = self.map[id.index()].expect("just emitted");
        (0..len).map(|at| Element::Of(node, at)).collect()
    }

    fn elements_at(&mut self, id: NodeId, index: &[u32]) -> Vec<Element> {
        if let Some(values) = self.graph.constant_value(id) {
            return index
                .iter()
                .map(|&i| Element::Constant(values[i as usize]))
                .collect();
        }
        let (node, start) = match self
            .rolled_pack(id)
            .and_then(|pack| self.vectors[pack as usize])
        {
            Some(vector) => (vector, self.classes.start[id.index()]),
            None => (self.mapped(id), 0),
        };
        index
            .iter()
            .map(|&i| Element::Of(node, start + i))
            .collect()
    }

    fn emit_single(&mut self, id: NodeId) {
        if self.map[id.index()].is_some() {
            return;
        }
        if let Some(leaves) = self.sums.leaves.get(&id) {
            let total = self.sums_of(std::slice::from_ref(leaves));
            self.map[id.index()] = Some(total);
            return;
        }
        let fixed = !self.graph.shape(id).record;
        match self.graph.op(id) {
            Op::Concat => {
                let parts = self.graph.args(id).to_vec();
                let elements: Vec<Element> = parts
                    .into_iter()
                    .flat_map(|part| self.elements(part))
                    .collect();
                let whole = self.assemble(&elements);
                self.map[id.index()] = Some(whole);
            }
            // Elements are extracted when they are used.
            Op::Gather(_) if fixed && self.graph.shape(id).len <= SMALL => {}
            _ => {
                for arg in self.graph.args(id).to_vec() {
                    self.mapped(arg);
                }
                let node = import(self.graph, id, &self.map, &mut self.out);
                self.map[id.index()] = Some(node);
            }
        }
    }

    /// Builds a vector of the given elements. Of four possible forms, the shortest is chosen: a table, a gather from
    /// one vector, a concatenation of runs, or a gather from the concatenation of all source vectors.
    fn assemble(&mut self, elements: &[Element]) -> NodeId {
        let mut sources: Vec<NodeId> = Vec::new();
        let mut offsets: HashMap<NodeId, u32> = HashMap::new();
        let mut total = 0;
        let mut runs = 0;
        let mut last: Option<Option<NodeId>> = None;
        for element in elements {
            let source = match *element {
                Element::Constant(_) => None,
                Element::Of(vector, _) => {
                    offsets.entry(vector).or_insert_with(|| {
                        sources.push(vector);
                        total += self.out.shape(vector).len;
                        total - self.out.shape(vector).len
                    });
                    Some(vector)
                }
            };
            runs += usize::from(last != Some(source));
            last = Some(source);
        }
        if runs > sources.len() + 1 {
            let mut table: Vec<f64> = Vec::new();
            let index: Vec<u32> = elements
                .iter()
                .map(|element| match *element {
                    Element::Constant(value) => {
                        table.push(value);
                        total + table.len() as u32 - 1
                    }
                    Element::Of(vector, at) => offsets[&vector] + at,
                })
                .collect();
            if !table.is_empty() {
                sources.push(self.out.vector(&table));
            }
            let whole = self.out.concat(&sources);
            return self.out.gather(whole, &index);
        }
        let mut pieces: Vec<NodeId> = Vec::new();
        let mut rest = elements;
        while let Some(first) = rest.first() {
            let same = |element: &Element| match (first, element) {
                (Element::Constant(_), Element::Constant(_)) => true,
                (Element::Of(a, _), Element::Of(b, _)) => a == b,
                _ => false,
            };
            let count = rest
                .iter()
                .position(|element| !same(element))
                .unwrap_or(rest.len());
            let (run, tail) = rest.split_at(count);
            rest = tail;
            pieces.push(match *first {
                Element::Constant(_) => {
                    let values: Vec<f64> = run
                        .iter()
                        .filter_map(|element| match element {
                            Element::Constant(value) => Some(*value),
                            Element::Of(..) => None,
                        })
                        .collect();
                    self.out.vector(&values)
                }
                Element::Of(vector, _) => {
                    let index: Vec<u32> = run
                        .iter()
                        .filter_map(|element| match element {
                            Element::Of(_, at) => Some(*at),
                            Element::Constant(_) => None,
                        })
                        .collect();
                    self.out.gather(vector, &index)
                }
            });
        }
        self.out.concat(&pieces)
    }

    fn emit_pack(&mut self, pack: u32) {
        if self.vectors[pack as usize].is_some() {
            return;
        }
        let classes = self.classes;
        let Pack {
            template,
            len,
            members,
        } = &classes.packs[pack as usize];
        let len = *len as usize;
        self.out.set_site(self.graph.node(members[0]).site);
        let vector = match template {
            Template::Map(op) => {
                let columns: Vec<Vec<NodeId>> = members
                    .iter()
                    .map(|&member| ordered_args(self.graph, &classes.of, member))
                    .collect();
                let args: Vec<NodeId> = (0..op.arity())
                    .map(|which| {
                        let column: Vec<NodeId> = columns.iter().map(|args| args[which]).collect();
                        self.column(&column, len)
                    })
                    .collect();
                self.out.elem(*op, &args)
            }
            Template::Concat => {
                let parts: Vec<NodeId> = members
                    .iter()
                    .flat_map(|&member| self.graph.args(member).to_vec())
                    .collect();
                let elements: Vec<Element> = parts
                    .into_iter()
                    .flat_map(|part| self.elements(part))
                    .collect();
                self.assemble(&elements)
            }
            Template::Sum => {
                let parts: Vec<NodeId> = members
                    .iter()
                    .map(|&member| self.graph.args(member)[0])
                    .collect();
                let width = self.graph.shape(parts[0]).len as usize;
                let terms = self.column(&parts, width);
                let owners: Vec<u32> = (0..members.len() * width)
                    .map(|k| (k / width) as u32)
                    .collect();
                let shape = Shape::fixed(owners.len());
                let terms = if self.out.shape(terms) == shape {
                    terms
                } else {
                    self.out.broadcast(terms, shape)
                };
                self.out.scatter_add(terms, &owners, members.len())
            }
            Template::LongSum => {
                let leaves: Vec<Vec<Leaf>> = members
                    .iter()
                    .map(|id| self.sums.leaves[id].clone())
                    .collect();
                self.sums_of(&leaves)
            }
        };
        let shape = Shape::fixed(members.len() * len);
        let vector = if self.out.shape(vector) == shape {
            vector
        } else {
            self.out.broadcast(vector, shape)
        };
        self.vectors[pack as usize] = Some(vector);
    }

    /// Builds one argument for all members of a pack, each of which has `len` elements. The result is either a scalar
    /// that all members share, or the concatenation of the members' elements, in which scalars are repeated.
    fn column(&mut self, column: &[NodeId], len: usize) -> NodeId {
        let scalar = self.graph.shape(column[0]).is_scalar();
        if scalar && column.iter().all(|&id| id == column[0]) {
            return self.mapped(column[0]);
        }
        let repeat = if scalar { len } else { 1 };
        let elements: Vec<Element> = column
            .iter()
            .flat_map(|&id| {
                let elements = self.elements(id);
                elements
                    .into_iter()
                    .flat_map(move |element| std::iter::repeat_n(element, repeat))
                    .collect::<Vec<_>>()
            })
            .collect();
        self.assemble(&elements)
    }

    /// Builds the values of several long sums whose terms have the same classes. Terms are grouped by the vector from
    /// which they are selected.
    fn sums_of(&mut self, sums: &[Vec<Leaf>]) -> NodeId {
        let mut constants = vec![0.0; sums.len()];
        let mut sources: Vec<(NodeId, Weights)> = Vec::new();
        let mut source_at: HashMap<NodeId, usize> = HashMap::new();
        let mut singles: Vec<NodeId> = Vec::new();
        for (owner, leaves) in sums.iter().enumerate() {
            for &(leaf, sign) in leaves {
                let element = self.elements(leaf)[0];
                let single = match element {
                    Element::Of(node, _) => self.out.shape(node).is_scalar(),
                    Element::Constant(_) => false,
                };
                if let Element::Constant(value) = element {
                    constants[owner] += sign * value;
                } else if let (Element::Of(vector, position), false) = (element, single) {
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
