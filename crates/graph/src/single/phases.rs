//! Assigns each value to a phase. The phases compute the shared values that lanes read, then the lanes themselves, and
//! finally the values that depend on sums over lanes. Values that are still needed after their phase are assigned
//! locations in memory.

use std::collections::HashMap;

use crate::ir::{Graph, NodeId, Placement};
use crate::ops::Op;
use crate::single::Unsupported;
use crate::single::plan::{Location, Region};
use crate::single::sums::SumPlan;

pub(super) struct Phases<'a> {
    graph: &'a Graph,
    /// For each value, whether it is a sum over lanes or depends on such a sum.
    after_sum: Vec<bool>,
}

impl<'a> Phases<'a> {
    /// Fails with [`Unsupported`] if the lanes read a value that depends on a sum over lanes.
    pub(super) fn of(graph: &'a Graph) -> Result<Self, Unsupported> {
        let mut after_sum = vec![false; graph.len()];
        for id in graph.ids() {
            let follows = graph.op(id) == Op::LaneSum
                || graph.args(id).iter().any(|arg| after_sum[arg.index()]);
            after_sum[id.index()] = follows;
            if follows && graph.placement(id) == Placement::Lane {
                let message = "lanes cannot read a sum over lanes";
                return Err(Unsupported(message.to_owned()));
            }
        }
        Ok(Self { graph, after_sum })
    }

    /// Returns whether a value is a constant or an input. No phase computes such a value.
    pub(super) fn leaf(&self, id: NodeId) -> bool {
        matches!(self.graph.op(id), Op::Const(_) | Op::Input(_))
    }

    fn lane(&self, id: NodeId) -> bool {
        self.graph.placement(id) == Placement::Lane
    }

    pub(super) fn early(&self) -> Vec<NodeId> {
        let graph = self.graph;
        let is_early = |id: NodeId| !self.lane(id) && !self.after_sum[id.index()] && !self.leaf(id);
        let mut early: Vec<NodeId> = Vec::new();
        for id in graph.ids() {
            if self.lane(id) || self.after_sum[id.index()] {
                early.extend(graph.args(id).iter().filter(|&&arg| is_early(arg)));
            }
        }
        early.extend(graph.outputs().iter().filter(|&&id| is_early(id)));
        early.sort_unstable();
        early.dedup();
        early
    }

    pub(super) fn sums(&self) -> Vec<NodeId> {
        let is_sum = |id: &NodeId| self.graph.op(*id) == Op::LaneSum;
        self.graph.ids().filter(is_sum).collect()
    }

    pub(super) fn kept(&self, sums: &[SumPlan]) -> Vec<NodeId> {
        let terms = sums.iter().flat_map(|sum| &sum.terms);
        let mut kept: Vec<NodeId> = terms.flat_map(|term| term.values()).collect();
        kept.extend(self.graph.outputs());
        kept.retain(|&id| self.lane(id) && !self.leaf(id));
        kept.sort_unstable();
        kept.dedup();
        kept
    }

    pub(super) fn known_to_lanes(&self, id: NodeId) -> bool {
        !self.lane(id) || self.leaf(id)
    }

    pub(super) fn late(&self) -> Vec<NodeId> {
        let outputs = self.graph.outputs().iter().copied();
        let is_late = |id: &NodeId| self.after_sum[id.index()] && self.graph.op(*id) != Op::LaneSum;
        outputs.filter(is_late).collect()
    }

    pub(super) fn followed(&self, late: &[NodeId]) -> Vec<bool> {
        let graph = self.graph;
        let mut followed = vec![false; graph.len()];
        late.iter().for_each(|id| followed[id.index()] = true);
        for id in graph.ids().rev() {
            if followed[id.index()] && graph.op(id) != Op::LaneSum {
                let args = graph.args(id).iter();
                args.filter(|arg| self.after_sum[arg.index()])
                    .for_each(|arg| followed[arg.index()] = true);
            }
        }
        followed
    }

    /// Returns whether a value is known as soon as all sums over lanes are computed.
    pub(super) fn known_after_sums(&self, id: NodeId) -> bool {
        !self.after_sum[id.index()] || self.graph.op(id) == Op::LaneSum
    }
}

/// The locations of all values, and the memory for values that are still needed after their phase.
#[derive(Default)]
pub(super) struct Layout {
    pub(super) locations: HashMap<NodeId, Location>,
    pub(super) pool: Vec<f32>,
    pub(super) shared_len: usize,
    pub(super) kept_len: usize,
}

impl Layout {
    pub(super) fn of_leaves(graph: &Graph) -> Self {
        let mut layout = Self::default();
        for id in graph.ids() {
            let uniform = graph.shape(id).is_scalar();
            let location = match graph.op(id) {
                Op::Const(table) => {
                    let offset = layout.pool.len();
                    let elements = graph.const_data(table).iter();
                    layout.pool.extend(elements.map(|&x| x as f32));
                    Location {
                        offset,
                        uniform,
                        ..Location::NONE
                    }
                }
                Op::Input(slot) => {
                    let input = graph.inputs()[slot as usize];
                    let (region, stride) = match input.placement {
                        Placement::Lane => (Region::LaneInput(slot), input.len),
                        _ => (Region::SharedInput(slot), 0),
                    };
                    Location {
                        region,
                        stride,
                        uniform,
                        ..Location::NONE
                    }
                }
                _ => continue,
            };
            layout.locations.insert(id, location);
        }
        layout
    }

    pub(super) fn share(&mut self, graph: &Graph, values: &[NodeId]) {
        for &id in values {
            self.locations.entry(id).or_insert_with(|| {
                let offset = self.shared_len;
                self.shared_len += graph.shape(id).len as usize;
                Location {
                    region: Region::Shared,
                    offset,
                    uniform: graph.shape(id).is_scalar(),
                    ..Location::NONE
                }
            });
        }
    }

    pub(super) fn keep(&mut self, graph: &Graph, values: &[NodeId]) {
        for &id in values {
            let len = graph.shape(id).len as usize;
            let location = Location {
                region: Region::Kept,
                offset: self.kept_len,
                stride: len,
                inner: 0,
                uniform: false,
            };
            self.locations.insert(id, location);
            self.kept_len += len;
        }
    }

    pub(super) fn end_phase(&mut self) {
        self.locations
            .retain(|_, location| location.region != Region::Block);
    }
}
