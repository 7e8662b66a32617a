//! Evaluates graphs over exchangeable records. The prior and the likelihood are separate graphs, so that the likelihood
//! of any minibatch can be evaluated.
//!
//! | file | subject |
//! | --- | --- |
//! | `separate` | values that are sums over records, and the two parts of a log density |
//! | `support` | the coordinates on which a batch depends |
//! | `affine` | values that are affine in the draw |
//! | `linear` | likelihoods as functions of few linear predictors per record |

mod affine;
mod linear;
mod separate;
mod support;

use std::sync::OnceLock;

use jensen_density::{
    Group, Lanes, LanesMut, LinearPredictor, LogDensity, RecordDensity, TwiceDifferentiable,
};

use crate::density::{Columns, Execution, GraphDensity, GraphWorkspace, Threads};
use crate::density::{for_blocks, pack, views};
use crate::exec::Program;
use crate::ir::Graph;
use crate::passes;

use linear::Linear;
pub use separate::{Dependence, Separation};
use support::Support;

/// The largest number of records per evaluation. Longer batches are evaluated in pieces.
const CAPACITY: usize = 1024;

/// A prior and a likelihood that are given by graphs of the draw z. The likelihood is a sum over the records of a
/// batch. The constructor optimises, differentiates and plans both graphs. To bind a batch, it is then sufficient to
/// gather data into the workspace.
pub struct RecordGraph {
    dim: usize,
    records: usize,
    execution: Execution,
    prior: GraphDensity,
    differentiated: Graph,
    value: Program,
    gradient: Program,
    product: OnceLock<Program>,
    both: OnceLock<Program>,
    support: Support,
    linear: Option<Linear>,
}

/// The scratch memory of a [`RecordGraph`], including the batch that was gathered last.
#[derive(Default)]
pub struct RecordWorkspace {
    prior: GraphWorkspace,
    value: BoundProgram,
    gradient: BoundProgram,
    product: BoundProgram,
    both: BoundProgram,
}

#[derive(Default)]
struct BoundProgram {
    program: Option<Program>,
    batch: Vec<u32>,
    states: Threads,
}

impl BoundProgram {
    fn to(&mut self, prototype: &Program, batch: &[u32]) -> (&Program, &mut Threads) {
        let program = self.program.get_or_insert_with(|| {
            // No other code binds an empty batch, so the next batch differs from this one and is gathered again.
            self.batch.clear();
            prototype.clone()
        });
        if self.batch != batch {
            program.bind(batch);
            self.batch.clear();
            self.batch.extend_from_slice(batch);
        }
        (program, &mut self.states)
    }
}

impl RecordGraph {
    /// Optimises, differentiates and plans both graphs. In each of them, input 0 is the draw and output 0 is a scalar.
    /// The graph of the likelihood has a record axis.
    ///
    /// # Panics
    /// Panics if the graphs do not have this form. This would be a bug in the front end.
    pub fn new(prior: &Graph, likelihood: &Graph, execution: Execution) -> Self {
        Self::made(prior, likelihood, execution, true)
    }

    /// Like [`new`](Self::new), but for records that are used only briefly. The constructor does not look for linear
    /// predictors, because that search would take longer than it saves.
    ///
    /// # Panics
    /// Panics under the same conditions as [`new`](Self::new).
    pub fn of_passing(prior: &Graph, likelihood: &Graph, execution: Execution) -> Self {
        Self::made(prior, likelihood, execution, false)
    }

    fn made(prior: &Graph, likelihood: &Graph, execution: Execution, linear: bool) -> Self {
        let records = likelihood
            .record_count()
            .expect("the likelihood has a record axis");
        let capacity = records.min(CAPACITY);
        let mut graph = passes::optimise(likelihood);
        let linear = linear.then(|| Linear::of(&passes::compact(&graph), execution));
        let dim = graph.inputs()[0].len;
        let log_density = graph.outputs()[0];
        let program = |graph: &Graph| {
            let graph = passes::compact(graph);
            crate::verify::debug_verify(&graph);
            Program::new(graph, execution.simd, capacity)
        };
        let value = program(&graph);
        let z = graph.input_node(0);
        let gradient = graph.gradient(log_density, &[z])[0];
        graph.set_outputs(vec![log_density, gradient]);
        let gradient = program(&graph);
        Self {
            dim,
            records,
            execution,
            prior: GraphDensity::new(prior, execution),
            support: Support::of(&passes::compact(likelihood)),
            linear: linear.flatten(),
            differentiated: passes::compact(&graph),
            value,
            gradient,
            product: OnceLock::new(),
            both: OnceLock::new(),
        }
    }

    /// Returns the prior as a separate density.
    pub fn prior(&self) -> &GraphDensity {
        &self.prior
    }

    /// Returns the optimised graph of the likelihood. The outputs of this graph are the value and the gradient.
    pub fn likelihood(&self) -> &Graph {
        &self.differentiated
    }

    /// Returns the size, in bytes, of one thread's block of lanes. The data of the records are not included, because
    /// all threads share them.
    pub fn block_bytes(&self) -> usize {
        self.prior.peak_bytes() + self.gradient.arena_bytes()
    }

    fn product(&self) -> &Program {
        self.product.get_or_init(|| self.second_order(false))
    }

    fn both(&self) -> &Program {
        self.both.get_or_init(|| self.second_order(true))
    }

    /// Builds the program that computes the Hessian-vector product from z and v. If `gradient_too` is true, the program
    /// also returns the gradient, as the output before the product.
    fn second_order(&self, gradient_too: bool) -> Program {
        let mut graph = self.differentiated.clone();
        let gradient = graph.outputs()[1];
        let z = graph.input_node(0);
        let v = graph.input(self.dim);
        let product = graph.tangent(&[gradient], &[(z, v)])[0]
            .unwrap_or_else(|| graph.vector(&vec![0.0; self.dim]));
        graph.set_outputs(if gradient_too {
            vec![gradient, product]
        } else {
            vec![product]
        });
        Program::new(
            passes::compact(&graph),
            self.execution.simd,
            self.records.min(CAPACITY),
        )
    }

    /// Runs a program for the records of `batch` over all lanes, and *adds* each output to one matrix of `out`.
    fn add<const N: usize>(
        &self,
        prototype: &Program,
        bound: &mut BoundProgram,
        batch: &[u32],
        inputs: &[Lanes<'_>],
        out: [LanesMut<'_>; N],
    ) {
        let total = inputs[0].lanes();
        for input in inputs {
            assert_eq!(
                (input.rows(), input.lanes()),
                (self.dim, total),
                "rows and lanes of an input"
            );
        }
        let out = out.map(|mut out| {
            let (rows, lanes) = (out.rows(), out.lanes());
            Columns::new(out.as_mut_slice(), rows, lanes)
        });
        for piece in batch.chunks(CAPACITY) {
            let (program, states) = bound.to(prototype, piece);
            let threads = self.execution.threads;
            for_blocks(threads, program, states, total, |first, count, state| {
                let mut lanes = 0;
                for (slot, input) in inputs.iter().enumerate() {
                    lanes = pack(*input, first, count, &mut state.inputs[slot]);
                }
                let inputs = views(&state.inputs);
                program.run(&mut state.arena, &inputs, lanes);
                for (which, columns) in out.iter().enumerate() {
                    // SAFETY: different blocks write to different lanes.
                    program.output(&state.arena, &inputs, which, lanes, |i, row| unsafe {
                        columns.add(i, first, &row[..count]);
                    });
                }
            });
        }
    }
}

impl RecordDensity for RecordGraph {
    type Workspace = RecordWorkspace;

    fn dim(&self) -> usize {
        self.dim
    }

    fn records(&self) -> usize {
        self.records
    }

    fn workspace(&self, _lanes: usize, _batch: usize) -> RecordWorkspace {
        RecordWorkspace::default()
    }

    fn prior_value(&self, ws: &mut RecordWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        self.prior.value(&mut ws.prior, z, out);
    }

    fn prior_value_grad(
        &self,
        ws: &mut RecordWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        grad: LanesMut<'_>,
    ) {
        self.prior.value_grad(&mut ws.prior, z, out, grad);
    }

    fn prior_hvp(&self, ws: &mut RecordWorkspace, z: Lanes<'_>, v: Lanes<'_>, out: LanesMut<'_>) {
        self.prior.hvp(&mut ws.prior, z, v, out);
    }

    fn batch_value(&self, ws: &mut RecordWorkspace, batch: &[u32], z: Lanes<'_>, out: &mut [f64]) {
        out.fill(0.0);
        let values = LanesMut::new(out, 1, z.lanes());
        self.add(&self.value, &mut ws.value, batch, &[z], [values]);
    }

    fn batch_value_grad(
        &self,
        ws: &mut RecordWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        out.fill(0.0);
        grad.as_mut_slice().fill(0.0);
        let values = LanesMut::new(out, 1, z.lanes());
        self.add(
            &self.gradient,
            &mut ws.gradient,
            batch,
            &[z],
            [values, grad],
        );
    }

    fn batch_hvp(
        &self,
        ws: &mut RecordWorkspace,
        batch: &[u32],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        out.as_mut_slice().fill(0.0);
        self.add(self.product(), &mut ws.product, batch, &[z, v], [out]);
    }

    fn grouped(
        &self,
        ws: &mut RecordWorkspace,
        groups: &[Group<'_>],
        v: &[f64],
        grad: &mut [f64],
        product: &mut [f64],
    ) {
        let d = self.dim;
        for group in groups {
            let inputs = [Lanes::new(group.point, d, 1), Lanes::new(v, d, 1)];
            let out = [LanesMut::new(grad, d, 1), LanesMut::new(product, d, 1)];
            self.add(self.both(), &mut ws.both, group.records, &inputs, out);
        }
    }

    fn support(&self, batch: &[u32], coordinates: &mut Vec<u32>) -> bool {
        self.support.of_batch(batch, coordinates)
    }

    fn linear(&self) -> Option<&dyn LinearPredictor> {
        let linear: Option<&Linear> = self.linear.as_ref();
        linear.map(|linear| linear as &dyn LinearPredictor)
    }
}
