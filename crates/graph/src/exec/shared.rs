//! Runs graphs with shared inputs. A shared input, such as the weights of a network, is the same for all lanes, and the
//! gradient with respect to it is a sum over the lanes.
//!
//! An evaluation has three parts. The first part computes the shared values that the lanes read, the second computes
//! the lanes block by block, and the third computes the values that depend on sums over lanes. The first and the third
//! part are computed once. Sums over lanes add the blocks in a fixed order, so the bits of the result do not depend on
//! the number of threads.

use jensen_math::simd::{LANES, Simd};
use jensen_math::sum::pairwise_sum;

use crate::exec::Program;
use crate::ir::{Graph, NodeId, Placement};
use crate::ops::Op;
use crate::scalar;

/// A planned graph that may have shared inputs and sums over lanes.
pub struct SharedProgram {
    graph: Graph,
    lanes: Program,
    sums: Vec<NodeId>,
}

impl SharedProgram {
    /// Plans `graph`, which must not have a record axis.
    ///
    /// # Panics
    /// Panics if lanes read a value that itself depends on a sum over lanes.
    pub fn new(graph: &Graph, simd: Simd) -> Self {
        let graph = crate::passes::compact(graph);
        let sums: Vec<NodeId> = graph
            .ids()
            .filter(|&id| graph.op(id) == Op::LaneSum)
            .collect();
        let mut after_sum = vec![false; graph.len()];
        for id in graph.ids() {
            let follows = graph.op(id) == Op::LaneSum
                || graph.args(id).iter().any(|arg| after_sum[arg.index()]);
            after_sum[id.index()] = follows;
            assert!(
                !follows || graph.placement(id) != Placement::Lane,
                "lanes cannot read a sum over lanes"
            );
        }
        let mut lane_graph = graph.clone();
        let mut outputs: Vec<NodeId> = sums.iter().map(|&id| graph.args(id)[0]).collect();
        outputs.extend(
            graph
                .outputs()
                .iter()
                .filter(|id| graph.placement(**id) == Placement::Lane),
        );
        lane_graph.set_outputs(outputs);
        let lanes = Program::new(crate::passes::compact(&lane_graph), simd, 0);
        Self { graph, lanes, sums }
    }

    /// Evaluates the graph and returns all outputs. A shared output has `len` elements, whereas a per-lane output has
    /// `len × lanes` elements. Each entry of `inputs` has the same layout as an output.
    ///
    /// # Panics
    /// Panics if an input does not have the length that the graph declares for it.
    pub fn run(&mut self, inputs: &[&[f64]], lanes: usize) -> Vec<Vec<f64>> {
        self.lanes.bind_shared(&[], inputs);
        let block = self.lanes.block();
        let mut arena = self.lanes.arena(false);
        let declared = self.graph.inputs().to_vec();
        let mut packed: Vec<Vec<f64>> = declared
            .iter()
            .map(|input| vec![0.0; input.len * block])
            .collect();
        let sizes: Vec<usize> = (0..self.lanes.graph().outputs().len())
            .map(|k| self.lanes.output_len(k))
            .collect();
        let mut rows: Vec<Vec<f64>> = sizes.iter().map(|len| vec![0.0; len * lanes]).collect();
        for first in (0..lanes).step_by(block) {
            let count = block.min(lanes - first);
            for ((input, source), out) in declared.iter().zip(inputs).zip(&mut packed) {
                if input.placement == Placement::Lane {
                    Program::pack(source, lanes, first, count, input.len, out);
                }
            }
            let views: Vec<&[f64]> = packed.iter().map(Vec::as_slice).collect();
            let width = count.next_multiple_of(LANES);
            self.lanes.run(&mut arena, &views, width);
            for (which, rows) in rows.iter_mut().enumerate() {
                self.lanes.output(&arena, &views, which, width, |i, row| {
                    rows[i * lanes + first..i * lanes + first + count]
                        .copy_from_slice(&row[..count]);
                });
            }
        }
        let mut lane_rows = rows.split_off(self.sums.len()).into_iter();
        let known: Vec<(NodeId, Vec<f64>)> = self
            .sums
            .iter()
            .zip(rows)
            .map(|(&id, rows)| (id, rows.chunks(lanes.max(1)).map(pairwise_sum).collect()))
            .collect();
        let wanted: Vec<NodeId> = self
            .graph
            .outputs()
            .iter()
            .copied()
            .filter(|id| self.graph.placement(*id) != Placement::Lane)
            .collect();
        let mut shared =
            scalar::evaluate_with(&self.graph, &wanted, inputs, &[], &known).into_iter();
        self.graph
            .outputs()
            .iter()
            .map(|&id| {
                let next = if self.graph.placement(id) == Placement::Lane {
                    lane_rows.next()
                } else {
                    shared.next()
                };
                next.expect("one value an output")
            })
            .collect()
    }
}
