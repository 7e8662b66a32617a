//! Assigns nodes to steps, according to the role of each node and to the stage of its kernel.
//!
//! The arguments of a node that are elementwise values of the same shape can be computed in the same kernel. The stage
//! of the node is at least the stage of these arguments. All other arguments must be complete before the node is
//! computed, and the stage of the node exceeds their stage by at least one. All nodes with the same stage and shape
//! form one kernel. Finally, a node whose users all run later moves to the stage of the earliest user if the value then
//! need not be stored.

use std::collections::{BTreeMap, HashMap};

use crate::ir::{Graph, NodeId, Placement, Shape};
use crate::ops::{Op, ScatterMap, streamed};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    Leaf,
    /// A gather or broadcast. Kernels read it as an operand, and no step computes a value for it.
    View,
    /// An elementwise value, or a product with a long matrix that is computed row by row.
    Map,
    Sink,
    Dense,
}

/// A sum, or one source of a scatter. The sink belongs to the kernel that computes or reads its source.
#[derive(Clone, Copy)]
pub(crate) struct Sink {
    pub node: NodeId,
    pub source: NodeId,
    pub map: Option<ScatterMap>,
}

#[derive(Default)]
pub(crate) struct KernelDraft {
    pub maps: Vec<NodeId>,
    pub sinks: Vec<Sink>,
}

impl KernelDraft {
    /// Counts the reads of each operation of the kernel. Other operations of the kernel can read it, and so can the
    /// sinks for which `inside` is true.
    pub(crate) fn reads(
        &self,
        graph: &Graph,
        inside: impl Fn(&Sink) -> bool,
    ) -> HashMap<NodeId, u32> {
        let mut reads: HashMap<NodeId, u32> = self.maps.iter().map(|&id| (id, 0)).collect();
        let operands = self.maps.iter().flat_map(|&id| graph.args(id));
        let sources = self.sinks.iter().filter(|sink| inside(sink));
        for read in operands.chain(sources.map(|sink| &sink.source)) {
            if let Some(count) = reads.get_mut(read) {
                *count += 1;
            }
        }
        reads
    }
}

pub(crate) type Kernels = BTreeMap<(u32, Shape), KernelDraft>;

pub(crate) type DenseNodes = BTreeMap<u32, Vec<NodeId>>;

pub(crate) struct Stages {
    pub needed: Vec<bool>,
    pub roles: Vec<Role>,
    pub uses: Vec<u32>,
    /// The stage of each node. An elementwise node has the stage of its kernel, and a dense node has the stage of its
    /// step.
    stage: Vec<u32>,
    /// The first stage in which any step can read each value.
    ready: Vec<u32>,
}

fn role(graph: &Graph, id: NodeId, known: bool) -> Role {
    if known {
        return Role::Leaf;
    }
    match graph.op(id) {
        Op::Input(_) => Role::Leaf,
        Op::Gather(_) | Op::Broadcast | Op::GatherRecord(_) => Role::View,
        Op::Elem(_) => Role::Map,
        Op::Sum | Op::Scatter(_) => Role::Sink,
        _ => Role::Dense,
    }
}

/// Returns the operands that are read by a sum or scatter. For a product with a long matrix, this is the vector.
fn sources(graph: &Graph, id: NodeId) -> &[NodeId] {
    let args = graph.args(id);
    match streamed(graph, id) {
        Some(product) => {
            let at = args.iter().position(|&arg| arg == product.vector);
            at.map_or(args, |at| &args[at..=at])
        }
        None => args,
    }
}

impl Stages {
    /// Determines the role, the number of uses and the stage of each node that the outputs need. Constants and shared
    /// values are treated as leaves.
    pub(crate) fn new(graph: &Graph) -> Self {
        let shared = |id| graph.placement(id) != Placement::Lane;
        let mut stages = Self::unstaged(graph, graph.needed_for(graph.outputs()), shared);
        for id in graph.ids() {
            let dense = stages.roles[id.index()] == Role::Dense;
            if let Some(product) = dense.then(|| streamed(graph, id)).flatten() {
                stages.roles[id.index()] = match product.contracts {
                    true => Role::Sink,
                    false => Role::Map,
                };
            }
        }
        stages.finish(graph, graph.outputs());
        stages
    }

    #[cfg(feature = "single")]
    pub(crate) fn from_known(
        graph: &Graph,
        outputs: &[NodeId],
        known: impl Fn(NodeId) -> bool,
    ) -> Self {
        let mut needed = vec![false; graph.len()];
        outputs.iter().for_each(|id| needed[id.index()] = true);
        for id in graph.ids().rev() {
            if needed[id.index()] && !known(id) {
                graph
                    .args(id)
                    .iter()
                    .for_each(|arg| needed[arg.index()] = true);
            }
        }
        let mut stages = Self::unstaged(graph, needed, known);
        stages.finish(graph, outputs);
        stages
    }

    fn unstaged(graph: &Graph, needed: Vec<bool>, known: impl Fn(NodeId) -> bool) -> Self {
        Self {
            needed,
            roles: graph.ids().map(|id| role(graph, id, known(id))).collect(),
            uses: vec![0; graph.len()],
            stage: vec![0; graph.len()],
            ready: vec![0; graph.len()],
        }
    }

    fn finish(&mut self, graph: &Graph, outputs: &[NodeId]) {
        for id in graph.ids().filter(|id| self.needed[id.index()]) {
            graph
                .args(id)
                .iter()
                .for_each(|arg| self.uses[arg.index()] += 1);
        }
        outputs.iter().for_each(|id| self.uses[id.index()] += 1);
        self.assign(graph);
        self.delay(graph, outputs);
    }

    fn assign(&mut self, graph: &Graph) {
        for id in graph.ids() {
            let at = id.index();
            if !self.needed[at] {
                continue;
            }
            let args = graph.args(id);
            let latest =
                |of: &dyn Fn(NodeId) -> u32| args.iter().map(|&arg| of(arg)).max().unwrap_or(0);
            match self.roles[at] {
                Role::Leaf => {}
                Role::View => self.ready[at] = self.ready[args[0].index()],
                Role::Map => {
                    let shape = graph.shape(id);
                    self.stage[at] = latest(&|arg| self.stage_after(graph, arg, shape));
                    self.ready[at] = self.stage[at] + 1;
                }
                Role::Sink => {
                    let sources = sources(graph, id).iter().map(|&source| {
                        let continued = if self.accumulates_into(graph, id, source) {
                            self.ready[source.index()]
                        } else {
                            0
                        };
                        continued.max(self.stage_after(graph, source, graph.shape(source)) + 1)
                    });
                    self.ready[at] = sources.max().unwrap_or(0);
                }
                Role::Dense => {
                    self.stage[at] = latest(&|arg| self.ready[arg.index()]);
                    self.ready[at] = self.stage[at] + 1;
                }
            }
        }
    }

    fn stage_after(&self, graph: &Graph, arg: NodeId, shape: Shape) -> u32 {
        if self.roles[arg.index()] == Role::Map && graph.shape(arg) == shape {
            self.stage[arg.index()]
        } else {
            self.ready[arg.index()]
        }
    }

    /// Moves an elementwise node to the stage of its earliest user, provided that all users are elementwise values of
    /// the same shape in later kernels. A node is not moved if an argument would then have to be stored instead.
    fn delay(&mut self, graph: &Graph, outputs: &[NodeId]) {
        // The stage of the earliest fused user, or `None` if a user requires the node to stay in its stage.
        let mut earliest: Vec<Option<u32>> = vec![Some(u32::MAX); graph.len()];
        for id in outputs {
            earliest[id.index()] = None;
        }
        for id in graph.ids().rev() {
            let at = id.index();
            if !self.needed[at] {
                continue;
            }
            let args = graph.args(id);
            if self.roles[at] != Role::Map {
                args.iter().for_each(|arg| earliest[arg.index()] = None);
                continue;
            }
            let shape = graph.shape(id);
            let fused =
                |arg: NodeId| self.roles[arg.index()] == Role::Map && graph.shape(arg) == shape;
            if let Some(user) = earliest[at]
                && user != u32::MAX
                && user > self.stage[at]
                && args
                    .iter()
                    .all(|&arg| !fused(arg) || self.uses[arg.index()] == 1)
            {
                self.stage[at] = user;
                self.ready[at] = user + 1;
            }
            for &arg in args {
                earliest[arg.index()] = if fused(arg) {
                    earliest[arg.index()].map(|stage| stage.min(self.stage[at]))
                } else {
                    None
                };
            }
        }
    }

    fn accumulates_into(&self, graph: &Graph, node: NodeId, source: NodeId) -> bool {
        self.continued_scatter(graph, node) == Some(source)
    }

    /// Returns the first source of the scatter `node` that can be merged with `node`. Such a source is added as a
    /// whole, and it is itself a scatter that no other node uses.
    pub(crate) fn continued_scatter(&self, graph: &Graph, node: NodeId) -> Option<NodeId> {
        let Op::Scatter(maps) = graph.op(node) else {
            return None;
        };
        let sources = graph.args(node).iter().zip(maps);
        sources
            .filter(|(_, map)| *map == ScatterMap::All)
            .map(|(source, _)| *source)
            .find(|source| {
                matches!(graph.op(*source), Op::Scatter(_))
                    && self.roles[source.index()] == Role::Sink
                    && self.uses[source.index()] == 1
            })
    }

    pub(crate) fn kernels(&self, graph: &Graph) -> (Kernels, DenseNodes) {
        let mut kernels = Kernels::new();
        let mut dense = DenseNodes::new();
        for id in graph.ids().filter(|id| self.needed[id.index()]) {
            match self.roles[id.index()] {
                Role::Leaf | Role::View => {}
                Role::Map => {
                    kernels
                        .entry((self.stage[id.index()], graph.shape(id)))
                        .or_default()
                        .maps
                        .push(id);
                }
                Role::Sink => {
                    let maps = match graph.op(id) {
                        Op::Scatter(maps) => Some(maps),
                        _ => None,
                    };
                    for (which, &source) in sources(graph, id).iter().enumerate() {
                        if self.accumulates_into(graph, id, source) {
                            continue;
                        }
                        let shape = graph.shape(source);
                        let stage = self.stage_after(graph, source, shape);
                        let sink = Sink {
                            node: id,
                            source,
                            map: maps.map(|maps| maps[which]),
                        };
                        kernels.entry((stage, shape)).or_default().sinks.push(sink);
                    }
                }
                Role::Dense => dense.entry(self.stage[id.index()]).or_default().push(id),
            }
        }
        (kernels, dense)
    }
}
