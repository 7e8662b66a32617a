//! Sums over lanes, computed one tile at a time. Sums of outer products are computed as matrix products over the
//! minibatch.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::ir::{Graph, NodeId, Placement};
use crate::ops::{ElemOp, MatMul, Op};
use crate::single::kernels::accumulate_rows;
use crate::single::plan::{Location, Region};
use crate::single::product::{View, multiply};
use crate::single::program::{Memory, SingleProgram, SingleWorkspace};

/// The number of elements in a tile of a sum. A tile is small enough to stay in the L2 cache until its next use. At the
/// same time, a tile is so large that copying the left factor of its product is only a small part of the work.
const TILE_ELEMENTS: usize = 1 << 13;

/// A range of consecutive elements of an output that is a sum over lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// The index of the output.
    pub output: usize,
    /// The first element of the tile.
    pub start: usize,
    /// The number of elements.
    pub len: usize,
}

pub(super) enum Term {
    Plain(NodeId),
    /// A matrix product in each lane. The sum of these products over the lanes is computed as a single matrix product.
    Outer(NodeId, NodeId, MatMul),
}

impl Term {
    pub(super) fn values(&self) -> Vec<NodeId> {
        match *self {
            Self::Plain(id) => vec![id],
            Self::Outer(a, b, _) => vec![a, b],
        }
    }
}

pub(super) struct SumPlan {
    node: NodeId,
    pub terms: Vec<Term>,
}

enum Addend {
    Plain(Location),
    Outer(Location, Location, MatMul),
}

pub(super) struct LaneSum {
    pub target: Location,
    len: usize,
    /// The number of elements in a column of the result. Each tile consists of whole columns.
    column: usize,
    addends: Vec<Addend>,
    /// Whether shared values that are computed later read this sum.
    pub followed: bool,
}

pub(super) fn lane_sums(graph: &Graph, nodes: &[NodeId]) -> Vec<SumPlan> {
    nodes
        .iter()
        .map(|&node| {
            let mut terms = Vec::new();
            collect(graph, graph.args(node)[0], &mut terms);
            SumPlan { node, terms }
        })
        .collect()
}

fn collect(graph: &Graph, id: NodeId, terms: &mut Vec<Term>) {
    match graph.op(id) {
        Op::Elem(ElemOp::Add) if has_product(graph, id) => {
            for &arg in graph.args(id) {
                collect(graph, arg, terms);
            }
        }
        Op::MatMul(dims) if is_outer(graph, id, dims) => {
            terms.push(Term::Outer(graph.args(id)[0], graph.args(id)[1], dims));
        }
        _ => terms.push(Term::Plain(id)),
    }
}

fn is_outer(graph: &Graph, id: NodeId, dims: MatMul) -> bool {
    let lane = |id: NodeId| graph.placement(id) == Placement::Lane;
    graph.args(id).iter().all(|&arg| lane(arg))
        && (dims.k == 1 || (!dims.left_transposed && dims.right_transposed))
}

fn has_product(graph: &Graph, id: NodeId) -> bool {
    let shape = graph.shape(id);
    graph.args(id).iter().all(|&arg| graph.shape(arg) == shape)
        && graph.args(id).iter().any(|&arg| match graph.op(arg) {
            Op::MatMul(dims) => is_outer(graph, arg, dims),
            Op::Elem(ElemOp::Add) => has_product(graph, arg),
            _ => false,
        })
}

impl SumPlan {
    pub(super) fn location(
        self,
        graph: &Graph,
        locations: &HashMap<NodeId, Location>,
        followed: &[bool],
    ) -> LaneSum {
        let len = graph.shape(self.node).len as usize;
        let column = self
            .terms
            .iter()
            .find_map(|term| match term {
                Term::Outer(_, _, dims) => Some(dims.m as usize),
                Term::Plain(_) => None,
            })
            .unwrap_or(1);
        let addends = self
            .terms
            .into_iter()
            .map(|term| match term {
                Term::Plain(id) => Addend::Plain(locations[&id]),
                Term::Outer(a, b, dims) => Addend::Outer(locations[&a], locations[&b], dims),
            })
            .collect();
        LaneSum {
            target: locations[&self.node],
            followed: followed[self.node.index()],
            len,
            column,
            addends,
        }
    }
}

impl LaneSum {
    /// Returns the number of elements in a tile. A tile consists of whole columns, and has about [`TILE_ELEMENTS`]
    /// elements.
    fn tile(&self) -> usize {
        (TILE_ELEMENTS / self.column).max(1) * self.column
    }

    /// Computes the elements `start .. start + dst.len()` of the sum. The range must consist of whole columns.
    ///
    /// # Safety
    /// The memory must belong to the program that contains this sum.
    unsafe fn compute(
        &self,
        program: &SingleProgram,
        memory: &Memory<'_>,
        start: usize,
        dst: &mut [f32],
    ) {
        let lanes = memory.total;
        let mut written = false;
        for addend in &self.addends {
            // SAFETY: `check` compared the inputs and the workspace with the program before `memory` was created from
            // them, so the offsets of the plan are inside both. The length of `dst` bounds the elements that are
            // written.
            unsafe {
                match addend {
                    Addend::Outer(a, b, dims) => {
                        // Column c of lane l is column l k + c of the summed extent.
                        let (m, k, n) = (dims.m as usize, dims.k as usize, dims.n as usize);
                        let first = start / m;
                        let columns = dst.len() / m;
                        let stored = |location: &Location, extent: usize| View {
                            at: memory.at(location, 0),
                            row_stride: 1,
                            column_stride: if k == 1 { location.stride } else { extent },
                        };
                        let right = stored(b, n);
                        let right = View {
                            at: right.at.add(first),
                            row_stride: right.column_stride,
                            column_stride: 1,
                        };
                        let to = dst.as_mut_ptr();
                        let left = stored(a, m);
                        let simd = program.simd;
                        multiply(simd, to, m, left, right, m, k * lanes, columns, written);
                    }
                    Addend::Plain(location) => {
                        if !written {
                            dst.fill(0.0);
                        }
                        let uniform_row = location.uniform && self.len > 1;
                        let from = memory
                            .at(location, 0)
                            .add(if uniform_row { 0 } else { start });
                        if uniform_row {
                            let total: f32 =
                                (0..lanes).map(|l| *from.add(l * location.stride)).sum();
                            dst.iter_mut().for_each(|x| *x += total);
                        } else {
                            accumulate_rows(
                                program.simd,
                                dst.as_mut_ptr(),
                                from,
                                location.stride,
                                lanes,
                                dst.len(),
                            );
                        }
                    }
                }
            }
            written = true;
        }
    }
}

impl SingleProgram {
    /// Returns the tiles of all outputs that are shared by the lanes, in the order of the outputs. Most of these
    /// outputs are gradients with respect to shared inputs. Outputs that are constants have no tiles.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    pub(super) fn cut_tiles(&self) -> Vec<Tile> {
        let mut tiles = Vec::new();
        for (output, (location, id)) in self.outputs.iter().zip(self.graph.outputs()).enumerate() {
            if location.region != Region::Shared {
                continue;
            }
            let whole = self.graph.shape(*id).len as usize;
            let size = self.sum_at(location).map_or(TILE_ELEMENTS, LaneSum::tile);
            for start in (0..whole).step_by(size.max(1)) {
                let len = size.min(whole - start);
                tiles.push(Tile { output, start, len });
            }
        }
        tiles
    }

    fn sum_at(&self, location: &Location) -> Option<&LaneSum> {
        self.sums
            .iter()
            .find(|sum| sum.target == *location && location.region == Region::Shared)
    }

    /// Computes the tiles of the shared outputs. [`run_lanes`](Self::run_lanes) must have been called with the same
    /// inputs. For each tile, the function calls `consume(part, tile, values)` with the corresponding element of
    /// `parts`, while the tile is still in the cache. Shared inputs are not read and may be empty, so `consume` may
    /// modify the memory that contained their values.
    ///
    /// # Panics
    /// Panics if an input has the wrong length, or if the number of parts differs from the number of tiles.
    pub fn consume_sums<P: Send>(
        &self,
        workspace: &SingleWorkspace,
        inputs: &[&[f32]],
        lanes: usize,
        parts: &mut [P],
        consume: impl Fn(&mut P, Tile, &[f32]) + Sync,
    ) {
        let tiles = &self.tiles;
        assert_eq!(tiles.len(), parts.len(), "one part a tile");
        self.check(workspace, inputs, lanes, false);
        let memory = self.read_only(workspace, inputs, lanes);
        tiles
            .par_iter()
            .zip(parts.par_iter_mut())
            .with_max_len(1)
            .for_each(|(tile, part)| {
                let location = &self.outputs[tile.output];
                match self.sum_at(location).filter(|sum| !sum.followed) {
                    Some(sum) => workspace.with_tile(sum.tile(), |dst| {
                        let dst = &mut dst[..tile.len];
                        // SAFETY: the inputs and the workspace were checked, and a sum writes only to its tile.
                        unsafe { sum.compute(self, &memory, tile.start, dst) };
                        consume(part, *tile, dst);
                    }),
                    None => {
                        let first = location.offset + tile.start;
                        consume(part, *tile, &workspace.shared[first..first + tile.len]);
                    }
                }
            });
    }

    /// Computes either the sums over lanes that later shared values read, or those that no later shared value reads.
    pub(super) fn run_sums(
        &self,
        workspace: &mut SingleWorkspace,
        inputs: &[&[f32]],
        lanes: usize,
        followed: bool,
    ) {
        let memory = self.memory(workspace, inputs, lanes);
        for sum in self.sums.iter().filter(|sum| sum.followed == followed) {
            let target = &mut workspace.shared[sum.target.offset..sum.target.offset + sum.len];
            target
                .par_chunks_mut(sum.tile())
                .enumerate()
                .for_each(|(which, dst)| {
                    // SAFETY: `run_lanes`, which precedes all sums, calls `check` on the inputs and the workspace.
                    // Tiles are disjoint chunks of one target, and no sum reads another.
                    unsafe { sum.compute(self, &memory, which * sum.tile(), dst) };
                });
        }
    }

    /// Evaluates all outputs. This function calls [`run_lanes`](Self::run_lanes) and then computes the sums over lanes.
    ///
    /// # Panics
    /// Panics under the same conditions as [`run_lanes`](Self::run_lanes).
    pub fn run(&self, workspace: &mut SingleWorkspace, inputs: &[&[f32]], lanes: usize) {
        self.run_lanes(workspace, inputs, lanes);
        self.run_sums(workspace, inputs, lanes, false);
    }
}
