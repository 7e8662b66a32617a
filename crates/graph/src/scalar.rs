//! The slow reference evaluator, which computes one draw and one node at a time from the scalar definitions. The
//! evaluator and the executor share no code for evaluation, and tests compare their results.

use crate::ir::{Graph, NodeId, RecordColumn};
use crate::ops::{Op, Pass, ScatterMap, Solver, structural};
use crate::solver::{self, Engine, Roles};
use jensen_math::simd::Simd;

/// Returns the values of all outputs at one draw. `inputs[slot]` contains the elements of input `slot`. If the graph
/// has a record axis, `batch` lists the records to use, and `None` stands for all records in order.
///
/// # Panics
/// Panics if an input does not have the length that the graph declares for it.
pub fn evaluate(graph: &Graph, inputs: &[&[f64]], batch: Option<&[u32]>) -> Vec<Vec<f64>> {
    let all: Vec<u32>;
    let batch = match batch {
        Some(batch) => batch,
        None => {
            all = (0..graph.record_count().unwrap_or(0) as u32).collect();
            &all
        }
    };
    evaluate_with(graph, graph.outputs(), inputs, batch, &[])
}

/// Returns the values of all nodes at one draw. The index of a node is also the index of its value in the result.
///
/// # Panics
/// Panics under the same conditions as [`evaluate`].
pub fn node_values(graph: &Graph, inputs: &[&[f64]]) -> Vec<Vec<f64>> {
    let batch: Vec<u32> = (0..graph.record_count().unwrap_or(0) as u32).collect();
    let nodes: Vec<NodeId> = graph.ids().collect();
    evaluate_with(graph, &nodes, inputs, &batch, &[])
}

pub(crate) fn evaluate_with(
    graph: &Graph,
    nodes: &[NodeId],
    inputs: &[&[f64]],
    batch: &[u32],
    known: &[(NodeId, Vec<f64>)],
) -> Vec<Vec<f64>> {
    let mut values: Vec<Vec<f64>> = vec![Vec::new(); graph.len()];
    let mut needed = vec![false; graph.len()];
    nodes.iter().for_each(|id| needed[id.index()] = true);
    for id in graph
        .ids()
        .rev()
        .filter(|id| !known.iter().any(|(node, _)| node == id))
    {
        if needed[id.index()] {
            graph
                .args(id)
                .iter()
                .for_each(|arg| needed[arg.index()] = true);
        }
    }
    for id in graph.ids().filter(|id| needed[id.index()]) {
        values[id.index()] = match known.iter().find(|(node, _)| *node == id) {
            Some((_, value)) => value.clone(),
            None => node_value(graph, id, inputs, batch, &values),
        };
    }
    nodes.iter().map(|id| values[id.index()].clone()).collect()
}

fn record_index(graph: &Graph, id: crate::ir::RecordId) -> &[u32] {
    match graph.record_data(id) {
        RecordColumn::Indices(indices) => indices,
        RecordColumn::Values { .. } => unreachable!("an index column"),
    }
}

fn node_value(
    graph: &Graph,
    id: NodeId,
    inputs: &[&[f64]],
    batch: &[u32],
    values: &[Vec<f64>],
) -> Vec<f64> {
    let len = graph.shape(id).elements(batch.len());
    let args: Vec<&[f64]> = graph
        .args(id)
        .iter()
        .map(|arg| values[arg.index()].as_slice())
        .collect();
    match graph.op(id) {
        Op::Const(table) => graph.const_data(table).to_vec(),
        Op::Input(slot) => {
            assert_eq!(inputs[slot as usize].len(), len, "length of input {slot}");
            inputs[slot as usize].to_vec()
        }
        Op::Record(column) => match graph.record_data(column) {
            RecordColumn::Values { width, values } => batch
                .iter()
                .flat_map(|&r| values[r as usize * width..(r as usize + 1) * width].to_vec())
                .collect(),
            RecordColumn::Indices(_) => unreachable!("a column of numbers"),
        },
        Op::RecordCount => vec![batch.len() as f64],
        Op::Elem(op) => {
            let mut row = vec![0.0; args.len()];
            (0..len)
                .map(|i| {
                    for (slot, arg) in row.iter_mut().zip(&args) {
                        *slot = arg[if arg.len() == 1 { 0 } else { i }];
                    }
                    op.value(&row)
                })
                .collect()
        }
        Op::GatherRecord(column) => {
            let index = record_index(graph, column);
            batch
                .iter()
                .map(|&r| args[0][index[r as usize] as usize])
                .collect()
        }
        Op::Scatter(maps)
            if maps[..args.len()]
                .iter()
                .any(|map| matches!(map, ScatterMap::Record(_))) =>
        {
            let mut out = vec![0.0; len];
            for (x, map) in args.iter().zip(maps) {
                match map {
                    ScatterMap::All => out.iter_mut().zip(*x).for_each(|(o, x)| *o += x),
                    ScatterMap::Index(index) => {
                        for (&i, x) in graph.index_data(index).iter().zip(*x) {
                            out[i as usize] += x;
                        }
                    }
                    ScatterMap::Record(column) => {
                        let index = record_index(graph, column);
                        for (&r, x) in batch.iter().zip(*x) {
                            out[index[r as usize] as usize] += x;
                        }
                    }
                }
            }
            out
        }
        // The sum over one lane is the lane itself.
        Op::LaneSum => args[0].to_vec(),
        Op::Solver(id, pass) => solved(graph.solver(id), pass, &args, len),
        op => structural::value(graph, op, &args, len),
    }
}

struct Slow(Graph);

impl Engine for Slow {
    const GRANULE: usize = 1;

    fn simd(&self) -> Simd {
        Simd::Scalar
    }

    fn run(&mut self, inputs: &[&[f64]], lanes: usize, outputs: &mut [&mut [f64]]) {
        for lane in 0..lanes {
            let own: Vec<Vec<f64>> = inputs
                .iter()
                .map(|rows| rows.iter().skip(lane).step_by(lanes).copied().collect())
                .collect();
            let views: Vec<&[f64]> = own.iter().map(Vec::as_slice).collect();
            for (out, values) in outputs.iter_mut().zip(evaluate(&self.0, &views, None)) {
                for (i, value) in values.into_iter().enumerate() {
                    out[i * lanes + lane] = value;
                }
            }
        }
    }
}

fn solved(solver: &Solver, pass: Pass, args: &[&[f64]], len: usize) -> Vec<f64> {
    let mut roles = Roles::of(solver, pass).map(|graph| Slow(graph.clone()));
    let mut out = vec![0.0; len];
    solver::run(
        solver,
        pass,
        &mut roles,
        args,
        1,
        &mut solver::Kept::default(),
        (false, &mut out),
    );
    out
}
