//! Evaluates a graph as a log density. Separate programs compute the value, the gradient and Hessian-vector products.
//! The programs process blocks of lanes on several threads.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jensen_density::{Lanes, LanesMut, LogDensity, Pattern, TwiceDifferentiable};
use jensen_math::simd::{LANES, Simd};

use crate::ending::Ending;
use crate::exec::{Arena, Program};
use crate::ir::{Graph, NodeId, Placement};
use crate::ops::{ElemOp, Op};
use crate::passes;
use crate::pattern::pattern;

/// The largest size, in bytes, of the stored values of a linearisation. Reading more stored values back from memory
/// would cost more than computing them again. If the limit is exceeded, every product recomputes the primal values.
const SAVED_LIMIT: usize = 4 << 20;

/// Settings for executing a graph.
#[derive(Clone, Copy, Debug)]
pub struct Execution {
    /// The SIMD instruction set.
    pub simd: Simd,
    /// The largest number of threads. If it is 1, all work is done on the caller's thread.
    pub threads: usize,
}

impl Default for Execution {
    fn default() -> Self {
        Self {
            simd: Simd::detect(),
            threads: 1,
        }
    }
}

/// A log density that is given by a graph. The first input of the graph is the draw z, a per-lane vector of length d.
/// The first output is the log density, a scalar. The constructor optimises, differentiates and plans the graph. The
/// programs for second derivatives are built when they are first used.
pub struct GraphDensity {
    dim: usize,
    execution: Execution,
    differentiated: Graph,
    value: Program,
    gradient: Program,
    second: OnceLock<SecondOrder>,
    making: Mutex<()>,
    pattern: OnceLock<Option<Arc<Pattern>>>,
    ending: Ending,
    capacity: usize,
    /// The bound records. `None` stands for the first `capacity` records.
    batch: Option<Vec<u32>>,
}

struct SecondOrder {
    /// Computes the primal and adjoint values that Hessian-vector products need. The only input of the program is z.
    linearise: Program,
    saved_rows: usize,
    /// Computes the Hessian-vector product from z, v and the saved values.
    apply: Program,
    /// Computes the Hessian-vector product from z and v alone, without saved values.
    recompute: Program,
}

impl SecondOrder {
    fn programs(&mut self) -> impl Iterator<Item = &mut Program> {
        [&mut self.linearise, &mut self.apply, &mut self.recompute].into_iter()
    }
}

/// The scratch memory of a [`GraphDensity`]. The memory contains one arena per thread for each program in use, and the
/// most recent linearisation.
#[derive(Default)]
pub struct GraphWorkspace {
    value: Threads,
    gradient: Threads,
    linearise: Threads,
    apply: Threads,
    recompute: Threads,
    draws: Vec<f64>,
    saved: Vec<Vec<f64>>,
    lanes: usize,
    keeps: bool,
}

#[derive(Default)]
pub(crate) struct Threads {
    states: Vec<ThreadState>,
    rough: bool,
}

pub(crate) struct ThreadState {
    pub(crate) arena: Arena,
    pub(crate) inputs: Vec<Vec<f64>>,
}

#[derive(Clone, Copy)]
pub(crate) struct Columns {
    data: *mut f64,
    total: usize,
    rows: usize,
}

// SAFETY: every thread writes only to the lanes of its own blocks.
unsafe impl Send for Columns {}
// SAFETY: every thread writes only to the lanes of its own blocks.
unsafe impl Sync for Columns {}

impl Columns {
    pub(crate) fn new(data: &mut [f64], rows: usize, total: usize) -> Self {
        assert_eq!(data.len(), rows * total, "a {rows} × {total} result");
        Self {
            data: data.as_mut_ptr(),
            total,
            rows,
        }
    }

    /// # Safety
    /// No two threads may write the same lanes.
    pub(crate) unsafe fn write(&self, row: usize, first: usize, lanes: &[f64]) {
        debug_assert!(row < self.rows && first + lanes.len() <= self.total);
        // SAFETY: `new` checked that the matrix has `rows` rows of `total` lanes, and the output of the program has the
        // same number of rows. `for_blocks` divides `total` into blocks, so all lanes are inside the matrix.
        unsafe {
            std::ptr::copy_nonoverlapping(
                lanes.as_ptr(),
                self.data.add(row * self.total + first),
                lanes.len(),
            )
        };
    }
}

impl Columns {
    /// Adds to the lanes of a row.
    ///
    /// # Safety
    /// The same conditions hold as for [`write`](Self::write).
    pub(crate) unsafe fn add(&self, row: usize, first: usize, lanes: &[f64]) {
        debug_assert!(row < self.rows && first + lanes.len() <= self.total);
        for (i, value) in lanes.iter().enumerate() {
            // SAFETY: `new` checked that the matrix has `rows` rows of `total` lanes, and the output of the program has
            // the same number of rows. `for_blocks` divides `total` into blocks, so all lanes are inside the matrix.
            unsafe { *self.data.add(row * self.total + first + i) += value };
        }
    }
}

/// The error that reports that the construction of a density was interrupted. The text states the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted(String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

impl GraphDensity {
    /// Optimises, differentiates and plans `graph`. If the graph has a record axis, all records are bound.
    ///
    /// # Panics
    /// Panics if the graph does not have the required form. This would be a bug in the front end.
    pub fn new(graph: &Graph, execution: Execution) -> Self {
        Self::for_batches(graph, execution, usize::MAX)
    }

    /// Like [`new`](Self::new), but plans for batches of at most `capacity` records, or of all records if the graph has
    /// fewer. Memory and blocks of lanes have the sizes that the largest batch requires. Initially, the first records
    /// are bound.
    ///
    /// # Panics
    /// Panics under the same conditions as [`new`](Self::new).
    pub fn for_batches(graph: &Graph, execution: Execution, capacity: usize) -> Self {
        match Self::made(graph, execution, capacity, &|| None) {
            Ok(density) => density,
            Err(_) => unreachable!("nobody asks for an end"),
        }
    }

    /// Like [`new`](Self::new), but stops as soon as `asked` returns a reason. The constructor calls `asked` before
    /// each of its steps, and repeatedly during differentiation.
    ///
    /// # Errors
    /// Returns the reason that `asked` returned.
    ///
    /// # Panics
    /// Panics under the same conditions as [`new`](Self::new).
    pub fn new_unless(
        graph: &Graph,
        execution: Execution,
        asked: &dyn Fn() -> Option<String>,
    ) -> Result<Self, Interrupted> {
        Self::made(graph, execution, usize::MAX, asked).map_err(Interrupted)
    }

    fn made(
        graph: &Graph,
        execution: Execution,
        capacity: usize,
        asked: &dyn Fn() -> Option<String>,
    ) -> Result<Self, String> {
        let go_on = || asked().map_or(Ok(()), Err);
        go_on()?;
        let mut graph = passes::optimise_unless(graph, asked)?;
        assert_eq!(graph.outputs().len(), 1, "one output, the log density");
        assert_eq!(graph.inputs().len(), 1, "one input, the draw");
        let log_density = graph.outputs()[0];
        assert!(
            graph.shape(log_density).is_scalar(),
            "the log density is a scalar"
        );
        let dim = graph.inputs()[0].len;
        let capacity = graph.record_count().unwrap_or(0).min(capacity);
        let program = |graph: &Graph| -> Result<Program, String> {
            go_on()?;
            let graph = passes::compact(graph);
            crate::verify::debug_verify(&graph);
            Ok(Program::new(graph, execution.simd, capacity))
        };
        let value = program(&graph)?;
        let z = graph.input_node(0);
        let gradient = graph.gradient_unless(log_density, &[z], asked)?[0];
        graph.set_outputs(vec![log_density, gradient]);
        let gradient = program(&graph)?;
        go_on()?;
        Ok(Self {
            dim,
            execution,
            differentiated: passes::compact(&graph),
            value,
            gradient,
            second: OnceLock::new(),
            making: Mutex::new(()),
            pattern: OnceLock::new(),
            ending: Ending::default(),
            capacity,
            batch: None,
        })
    }

    /// Sets an interrupt that can end evaluations from outside. Values that have not been computed when the interrupt
    /// occurs are NaN. Callers must not use the results of an interrupted evaluation.
    #[must_use]
    pub fn ended_by(mut self, ending: Ending) -> Self {
        self.value.end_by(&ending);
        self.gradient.end_by(&ending);
        if let Some(second) = self.second.get_mut() {
            second
                .programs()
                .for_each(|program| program.end_by(&ending));
        }
        Self { ending, ..self }
    }

    /// Returns the number of instructions in the program that computes one gradient.
    pub fn instructions(&self) -> usize {
        self.gradient.instructions()
    }

    /// Returns the optimised graph, whose outputs are the log density and its gradient.
    pub fn graph(&self) -> &Graph {
        &self.differentiated
    }

    /// Returns the planned program that computes the gradient.
    pub fn gradient_program(&self) -> &Program {
        &self.gradient
    }

    /// Returns the memory, in bytes, for computing the gradient on one thread. This memory contains the constants, the
    /// data and one block of lanes.
    pub fn peak_bytes(&self) -> usize {
        self.gradient.data_bytes() + self.gradient.arena_bytes()
    }

    /// Sets the largest number of threads.
    pub fn set_threads(&mut self, threads: usize) {
        self.execution.threads = threads.max(1);
    }

    /// Binds a batch of records, in which a record may occur several times. Values, gradients and Hessian-vector
    /// products then refer to the density of these records. The plan is unchanged, but earlier linearisations become
    /// invalid.
    ///
    /// # Panics
    /// Panics if the batch has more records than the plan allows, or if it contains the index of a record that does not
    /// exist.
    pub fn bind_records(&mut self, batch: &[u32]) {
        self.value.bind(batch);
        self.gradient.bind(batch);
        if let Some(second) = self.second.get_mut() {
            second.programs().for_each(|program| program.bind(batch));
        }
        self.batch = Some(batch.to_vec());
    }

    fn width(&self, program: &Program, total: usize) -> usize {
        block_width(program, self.execution.threads, total)
    }

    /// Returns the programs for second derivatives, or `None` if an interrupt stopped their construction.
    fn second(&self) -> Option<&SecondOrder> {
        if self.second.get().is_none() {
            let making = self.making.lock();
            let _making = making.unwrap_or_else(PoisonError::into_inner);
            if self.second.get().is_none() {
                let made = self.second_order()?;
                return Some(self.second.get_or_init(|| made));
            }
        }
        self.second.get()
    }

    fn second_order(&self) -> Option<SecondOrder> {
        let go_on = || (!self.ending.is_due()).then_some(());
        go_on()?;
        let mut graph = self.differentiated.clone();
        let gradient = graph.outputs()[1];
        let z = graph.input_node(0);
        let v = graph.input(self.dim);
        let product = graph.tangent(&[gradient], &[(z, v)])[0]
            .unwrap_or_else(|| graph.vector(&vec![0.0; self.dim]));
        graph.set_outputs(vec![product]);
        go_on()?;
        let cut = cut_set(&graph, v);
        let mut primal = graph.clone();
        primal.set_outputs(cut.clone());
        let saved_rows = cut.iter().map(|&id| graph.shape(id).len as usize).sum();

        let mut tangent = graph.like();
        let saved = tangent.input(saved_rows);
        let mut offset = 0;
        let replaced: Vec<(NodeId, NodeId)> = cut
            .iter()
            .map(|&id| {
                let len = graph.shape(id).len as usize;
                let part = tangent.slice(saved, offset, len);
                offset += len;
                (id, part)
            })
            .collect();
        let outputs = passes::transplant(&graph, &[product], &replaced, &mut tangent);
        tangent.set_outputs(outputs);
        let program = |graph: &Graph| {
            go_on()?;
            let graph = passes::compact(graph);
            go_on()?;
            let mut program = Program::new(graph, self.execution.simd, self.capacity);
            program.end_by(&self.ending);
            Some(program)
        };
        let mut second = SecondOrder {
            linearise: program(&primal)?,
            saved_rows,
            apply: program(&tangent)?,
            recompute: program(&graph)?,
        };
        if let Some(batch) = &self.batch {
            second.programs().for_each(|program| program.bind(batch));
        }
        Some(second)
    }

    /// Computes the products of the Hessians at `z` with `v`. `saved` contains one piece for each block. If `saved` is
    /// empty, the program also computes the values that would otherwise have been saved.
    fn product(
        &self,
        program: &Program,
        states: &mut Threads,
        saved: &[Vec<f64>],
        z: Lanes<'_>,
        v: Lanes<'_>,
        mut out: LanesMut<'_>,
    ) {
        assert_eq!(
            (z.rows(), v.rows(), out.rows()),
            (self.dim, self.dim, self.dim),
            "rows of z, v and the product"
        );
        assert_eq!(z.lanes(), v.lanes(), "one direction a draw");
        let products = Columns::new(out.as_mut_slice(), self.dim, v.lanes());
        for_blocks(
            self.execution.threads,
            program,
            states,
            v.lanes(),
            |first, count, state| {
                let lanes = pack(z, first, count, &mut state.inputs[0]);
                pack(v, first, count, &mut state.inputs[1]);
                let mut inputs = views(&state.inputs);
                if let Some(piece) = saved.get(first / self.width(program, v.lanes())) {
                    inputs[2] = piece;
                }
                program.run(&mut state.arena, &inputs, lanes);
                // SAFETY: different blocks write to different lanes.
                program.output(&state.arena, &inputs, 0, lanes, |i, row| unsafe {
                    products.write(i, first, &row[..count]);
                });
            },
        );
    }
}

/// Another thread is used only if each thread then has at least this many values. With fewer values, waking the thread
/// costs more time than it saves.
const GRAIN: usize = 1 << 15;

/// Returns the number of lanes in a block. If the program contains solvers, blocks are made small enough for every
/// thread to have one.
fn block_width(program: &Program, threads: usize, total: usize) -> usize {
    match program.solves() {
        false => program.block(),
        true => {
            let share = total.div_ceil(threads.max(1)).next_multiple_of(LANES);
            program.block().min(share.max(LANES))
        }
    }
}

/// Runs a program over all blocks of `total` lanes. The closure `block(first, count, state)` evaluates each block.
pub(crate) fn for_blocks(
    threads: usize,
    program: &Program,
    Threads { states, rough }: &mut Threads,
    total: usize,
    block: impl Fn(usize, usize, &mut ThreadState) + Sync,
) {
    let width = block_width(program, threads, total);
    let blocks = total.div_ceil(width);
    let worthwhile = 1 + program.work().saturating_mul(total) / GRAIN;
    let threads = threads.min(blocks).min(worthwhile).max(1);
    while states.len() < threads {
        let inputs = program
            .graph()
            .inputs()
            .iter()
            .map(|input| vec![0.0; input.len * program.block()])
            .collect();
        states.push(ThreadState {
            arena: program.arena(*rough),
            inputs,
        });
    }
    let run = |k: usize, state: &mut ThreadState| {
        let first = k * width;
        block(first, width.min(total - first), state);
    };
    if threads == 1 {
        (0..blocks).for_each(|k| run(k, &mut states[0]));
        return;
    }
    // Which thread evaluates a block varies from run to run, but the result of the block does not.
    let next = AtomicUsize::new(0);
    rayon::scope(|scope| {
        for state in &mut states[..threads] {
            let (next, run) = (&next, &run);
            scope.spawn(move |_| {
                loop {
                    let k = next.fetch_add(1, Ordering::Relaxed);
                    if k >= blocks {
                        break;
                    }
                    run(k, state);
                }
            });
        }
    });
}

/// Returns the values to save for Hessian-vector products. A value is saved if a product needs it, if it does not
/// depend on `v`, and if computing it again costs more than reading it from memory. Such values are transcendental
/// functions, reductions and matrix results. Cheap arithmetic is repeated instead.
fn cut_set(graph: &Graph, v: NodeId) -> Vec<NodeId> {
    let mut tangent = vec![false; graph.len()];
    for id in graph.ids() {
        tangent[id.index()] = id == v || graph.args(id).iter().any(|arg| tangent[arg.index()]);
    }
    let mut wanted = graph.needed_for(graph.outputs());
    let mut visit = vec![false; graph.len()];
    let mut cut = Vec::new();
    for id in graph
        .ids()
        .rev()
        .filter(|id| std::mem::take(&mut wanted[id.index()]))
    {
        if tangent[id.index()] {
            graph
                .args(id)
                .iter()
                .for_each(|arg| visit[arg.index()] = true);
        }
    }
    for id in graph.ids().rev() {
        if !visit[id.index()] || tangent[id.index()] || graph.placement(id) != Placement::Lane {
            continue;
        }
        let cheap = match graph.op(id) {
            Op::Input(_) | Op::Gather(_) | Op::Broadcast | Op::GatherRecord(_) | Op::Concat => true,
            Op::Elem(op) => matches!(
                op,
                ElemOp::Neg
                    | ElemOp::Add
                    | ElemOp::Sub
                    | ElemOp::Mul
                    | ElemOp::Fma
                    | ElemOp::Square
                    | ElemOp::Select
                    | ElemOp::Lt
                    | ElemOp::Le
                    | ElemOp::Eq
                    | ElemOp::Abs
                    | ElemOp::Sign
            ),
            _ => false,
        };
        if cheap || graph.shape(id).record {
            graph
                .args(id)
                .iter()
                .for_each(|arg| visit[arg.index()] = true);
        } else {
            cut.push(id);
        }
    }
    cut.reverse();
    cut
}

pub(crate) fn pack(z: Lanes<'_>, first: usize, count: usize, out: &mut [f64]) -> usize {
    Program::pack(z.as_slice(), z.lanes(), first, count, z.rows(), out)
}

pub(crate) fn views(inputs: &[Vec<f64>]) -> Vec<&[f64]> {
    inputs.iter().map(Vec::as_slice).collect()
}

impl LogDensity for GraphDensity {
    type Workspace = GraphWorkspace;

    fn dim(&self) -> usize {
        self.dim
    }

    fn workspace(&self, _lanes: usize) -> GraphWorkspace {
        GraphWorkspace::default()
    }

    fn rough_workspace(&self, _lanes: usize) -> GraphWorkspace {
        let rough = || Threads {
            rough: true,
            ..Threads::default()
        };
        GraphWorkspace {
            value: rough(),
            gradient: rough(),
            linearise: rough(),
            apply: rough(),
            recompute: rough(),
            ..GraphWorkspace::default()
        }
    }

    fn work(&self) -> Option<u64> {
        // The cost of a solver varies from point to point, so no estimate of the work is reported.
        (!self.gradient.solves()).then(|| self.gradient.work() as u64)
    }

    fn pattern(&self) -> Option<Arc<Pattern>> {
        let found = self.pattern.get_or_init(|| pattern(&self.differentiated));
        found.clone()
    }

    fn value(&self, ws: &mut GraphWorkspace, z: Lanes<'_>, out: &mut [f64]) {
        assert_eq!(z.rows(), self.dim, "rows of z");
        let values = Columns::new(out, 1, z.lanes());
        for_blocks(
            self.execution.threads,
            &self.value,
            &mut ws.value,
            z.lanes(),
            |first, count, state| {
                let lanes = pack(z, first, count, &mut state.inputs[0]);
                let inputs = views(&state.inputs);
                self.value.run(&mut state.arena, &inputs, lanes);
                // SAFETY: different blocks write to different lanes.
                self.value
                    .output(&state.arena, &inputs, 0, lanes, |_, row| unsafe {
                        values.write(0, first, &row[..count])
                    });
            },
        );
    }

    fn value_grad(
        &self,
        ws: &mut GraphWorkspace,
        z: Lanes<'_>,
        out: &mut [f64],
        mut grad: LanesMut<'_>,
    ) {
        assert_eq!(
            (z.rows(), grad.rows()),
            (self.dim, self.dim),
            "rows of z and of the gradient"
        );
        let values = Columns::new(out, 1, z.lanes());
        let gradients = Columns::new(grad.as_mut_slice(), self.dim, z.lanes());
        for_blocks(
            self.execution.threads,
            &self.gradient,
            &mut ws.gradient,
            z.lanes(),
            |first, count, state| {
                let lanes = pack(z, first, count, &mut state.inputs[0]);
                let inputs = views(&state.inputs);
                self.gradient.run(&mut state.arena, &inputs, lanes);
                for (which, columns) in [values, gradients].into_iter().enumerate() {
                    // SAFETY: different blocks write to different lanes.
                    self.gradient
                        .output(&state.arena, &inputs, which, lanes, |i, row| unsafe {
                            columns.write(i, first, &row[..count]);
                        });
                }
            },
        );
    }
}

impl TwiceDifferentiable for GraphDensity {
    fn linearize(&self, ws: &mut GraphWorkspace, z: Lanes<'_>) {
        assert_eq!(z.rows(), self.dim, "rows of z");
        ws.draws.clear();
        ws.draws.extend_from_slice(z.as_slice());
        ws.lanes = z.lanes();
        let Some(second) = self.second() else {
            ws.keeps = false;
            return;
        };
        let width = self.width(&second.apply, z.lanes());
        let padded = z.lanes().next_multiple_of(LANES);
        ws.keeps = second.saved_rows * padded * 8 <= SAVED_LIMIT;
        if !ws.keeps {
            ws.saved.clear();
            return;
        }
        // The pieces correspond to the blocks of the program that will read them.
        let blocks = z.lanes().div_ceil(width);
        ws.saved.resize(blocks, Vec::new());
        let pieces: Vec<Columns> = (0..blocks)
            .map(|k| {
                let lanes = width.min(z.lanes() - k * width).next_multiple_of(LANES);
                let piece = &mut ws.saved[k];
                piece.clear();
                piece.resize(second.saved_rows * lanes, 0.0);
                Columns::new(piece, second.saved_rows, lanes)
            })
            .collect();
        for_blocks(
            self.execution.threads,
            &second.linearise,
            &mut ws.linearise,
            z.lanes(),
            |first, count, state| {
                let lanes = pack(z, first, count, &mut state.inputs[0]);
                let inputs = views(&state.inputs);
                second.linearise.run(&mut state.arena, &inputs, lanes);
                let mut start = 0;
                for which in 0..second.linearise.outputs() {
                    second
                        .linearise
                        .output(&state.arena, &inputs, which, lanes, |i, row| {
                            let mut done = 0;
                            while done < lanes {
                                let (k, at) = ((first + done) / width, (first + done) % width);
                                let take = (lanes - done).min(pieces[k].total - at);
                                // SAFETY: different blocks write to different lanes.
                                unsafe { pieces[k].write(start + i, at, &row[done..done + take]) };
                                done += take;
                            }
                        });
                    start += second.linearise.output_len(which);
                }
            },
        );
    }

    fn apply(&self, ws: &mut GraphWorkspace, v: Lanes<'_>, mut out: LanesMut<'_>) {
        assert_eq!(
            v.lanes(),
            ws.lanes,
            "`v` and the linearisation have different numbers of draws"
        );
        let Some(second) = self.second() else {
            return out.as_mut_slice().fill(f64::NAN);
        };
        if !ws.keeps {
            let draws = std::mem::take(&mut ws.draws);
            let z = Lanes::new(&draws, self.dim, v.lanes());
            self.product(&second.recompute, &mut ws.recompute, &[], z, v, out);
            ws.draws = draws;
            return;
        }
        let z = Lanes::new(&ws.draws, self.dim, ws.lanes);
        self.product(&second.apply, &mut ws.apply, &ws.saved, z, v, out);
    }

    /// Computes a single product. The primal values are used immediately, so they are not stored.
    fn hvp(&self, ws: &mut GraphWorkspace, z: Lanes<'_>, v: Lanes<'_>, mut out: LanesMut<'_>) {
        match self.second() {
            Some(second) => self.product(&second.recompute, &mut ws.recompute, &[], z, v, out),
            None => out.as_mut_slice().fill(f64::NAN),
        }
    }
}
