//! Binds data to a plan and runs it over blocks of lanes.

use std::sync::Arc;

use jensen_math::simd::{LANES, Simd};

use crate::ending::{Ending, Patience};
use crate::exec::dense::DenseKernel;
use crate::exec::kernels::Operand;
use crate::exec::plan::{Arg, IndexRef, Instruction, Plan, Region, Step, Target, plan};
use crate::exec::product::{COLUMNS_OF_STEP, Into};
use crate::exec::softplus::Products;
use crate::exec::solver::{Call, SolverScratch};
use crate::ir::{Graph, NodeId, Placement, RecordColumn, Shape};
use crate::ops::Op;
use crate::scalar;

/// The number of elements of a tile register. A dozen registers of this size fit in the L1 cache.
const TILE: usize = 256;

/// The size, in bytes, of the part of the L2 cache that the arena may occupy.
const CACHE_TARGET: usize = 640 * 1024;

const WIDEST: usize = 256;

/// The number of elements of a tile that includes rows of a matrix. In a larger tile, more rows share the loads and
/// stores of every column.
const TILE_OF_PRODUCTS: usize = 1024;

/// The largest number of lanes of a block if tiles include the rows of a matrix.
const WIDEST_PRODUCTS: usize = 64;

/// The largest number of lanes of a block if the graph has solvers. A single solve costs as much as hundreds of
/// kernels.
const WIDEST_SOLVED: usize = 64;

/// A planned graph with bound record data. A program is immutable while it runs, so threads can share it.
///
/// [`Program::bind`] binds another batch of records. Binding gathers the data of these records and leaves the plan
/// unchanged. Clones share the graph and the plan, but each clone has its own batch.
#[derive(Clone)]
pub struct Program {
    graph: Arc<Graph>,
    plan: Arc<Plan>,
    simd: Simd,
    block: usize,
    tile_rows: usize,
    records: usize,
    capacity: usize,
    pool: Vec<f64>,
    indices: Vec<Vec<u32>>,
    ending: Ending,
}

/// The scratch memory of one thread that runs a [`Program`].
pub struct Arena {
    rows: Vec<f64>,
    registers: Vec<f64>,
    solvers: SolverScratch,
    patience: Patience,
}

impl Program {
    /// Plans a graph for batches of at most `capacity` records, and binds the first `capacity` records. `capacity` must
    /// be zero if the graph has no record axis.
    pub fn new(graph: Graph, simd: Simd, capacity: usize) -> Self {
        let plan = plan(&graph, simd, capacity);
        let block = block_lanes(&plan, &graph);
        let tile = match plan.streams {
            true => TILE_OF_PRODUCTS,
            false => TILE,
        };
        let mut pool = plan.constants.clone();
        pool.resize(plan.pool_len, 0.0);
        let indices = vec![Vec::new(); graph.records.len()];
        let mut program = Self {
            graph: Arc::new(graph),
            plan: Arc::new(plan),
            simd,
            block,
            tile_rows: (tile / block).max(1),
            records: 0,
            capacity,
            pool,
            indices,
            ending: Ending::default(),
        };
        let all: Vec<u32> = (0..capacity as u32).collect();
        program.bind(&all);
        program
    }

    /// Sets an interrupt that can end runs from outside. Outputs that have not been computed when the interrupt occurs
    /// are NaN. The interrupt affects only arenas that are created afterwards.
    pub fn end_by(&mut self, ending: &Ending) {
        self.ending = ending.clone();
    }

    /// Binds a batch of records, and recomputes all values that are shared by the lanes.
    ///
    /// # Panics
    /// Panics if the batch is larger than the capacity, or if it contains the index of a record that does not exist.
    pub fn bind(&mut self, batch: &[u32]) {
        self.bind_shared(batch, &[]);
    }

    /// Binds a batch of records and the values of shared inputs. `inputs[slot]` contains the values of a shared input,
    /// and entries for per-lane inputs are ignored.
    pub(crate) fn bind_shared(&mut self, batch: &[u32], inputs: &[&[f64]]) {
        assert!(
            batch.len() <= self.capacity,
            "a batch of at most {} records",
            self.capacity
        );
        self.records = batch.len();
        for (indices, record) in self.indices.iter_mut().zip(&self.graph.records) {
            if let RecordColumn::Indices(all) = record {
                indices.clear();
                indices.extend(batch.iter().map(|&r| all[r as usize]));
            }
        }
        let shared_inputs = self
            .graph
            .inputs()
            .iter()
            .any(|input| input.placement == Placement::Shared);
        if self.plan.shared.is_empty() || (shared_inputs && inputs.is_empty()) {
            return;
        }
        let (columns, computed): (Vec<(NodeId, usize, usize)>, Vec<_>) =
            self.plan.shared.iter().partition(|shared| {
                matches!(self.graph.op(shared.0), Op::Record(_) | Op::RecordCount)
            });
        for (id, at, _) in columns {
            if self.graph.op(id) == Op::RecordCount {
                self.pool[at] = batch.len() as f64;
            } else if let Op::Record(column) = self.graph.op(id)
                && let RecordColumn::Values { width, values } = self.graph.record_data(column)
            {
                let rows = self.pool[at..at + width * batch.len()].chunks_exact_mut(*width);
                for (row, &r) in rows.zip(batch) {
                    let from = r as usize * width;
                    row.copy_from_slice(&values[from..from + width]);
                }
            }
        }
        if computed.is_empty() {
            return;
        }
        let outputs: Vec<_> = computed.iter().map(|shared| shared.0).collect();
        let values = scalar::evaluate_with(&self.graph, &outputs, inputs, batch, &[]);
        for ((_, at, _), value) in computed.into_iter().zip(values) {
            self.pool[at..at + value.len()].copy_from_slice(&value);
        }
    }

    /// Returns the planned graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Returns the number of lanes of one block.
    pub fn block(&self) -> usize {
        self.block
    }

    /// Returns the instruction set in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Returns whether the program contains solvers.
    pub fn solves(&self) -> bool {
        !self.plan.calls.is_empty()
    }

    /// Returns the number of bound records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the number of rows that one evaluation reads and writes per lane. This number is a rough measure of the
    /// cost of an evaluation.
    pub fn work(&self) -> usize {
        self.plan.costs.iter().sum()
    }

    /// Returns the number of instructions in the program.
    pub fn instructions(&self) -> usize {
        self.plan.instructions
    }

    /// Returns the size, in bytes, of the scratch memory of one thread.
    pub fn arena_bytes(&self) -> usize {
        let inputs: usize = self.lane_inputs().map(|(_, len)| len).sum();
        8 * self.block * (self.plan.arena_rows + inputs + self.plan.registers * self.tile_rows)
    }

    /// Returns the size of the constants and of the bound data, in bytes.
    pub fn data_bytes(&self) -> usize {
        8 * self.pool.len()
            + 4 * self.indices.iter().map(Vec::len).sum::<usize>()
            + self.graph.table_bytes()
    }

    fn lane_inputs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.graph
            .inputs()
            .iter()
            .enumerate()
            .map(|(slot, input)| (slot, input.len))
    }

    /// Creates scratch memory for this program. If `rough` is true, solvers use looser tolerances than those in the
    /// graph.
    pub fn arena(&self, rough: bool) -> Arena {
        Arena {
            rows: vec![0.0; self.plan.arena_rows * self.block],
            registers: vec![0.0; self.plan.registers * self.tile_rows * self.block],
            solvers: Call::scratch(&self.plan.calls, rough, &self.ending),
            patience: Patience::new(&self.ending),
        }
    }

    /// Runs one block of `lanes` lanes. `lanes` must be a multiple of eight and at most [`block`](Self::block).
    /// `inputs[slot]` contains the packed block of an input, which consists of `len × lanes` numbers. The results are
    /// available from [`output`](Self::output) until the arena is used again.
    pub fn run(&self, arena: &mut Arena, inputs: &[&[f64]], lanes: usize) {
        assert!(
            lanes.is_multiple_of(LANES) && lanes <= self.block,
            "whole vectors, at most one block"
        );
        for ((_, len), input) in self.lane_inputs().zip(inputs) {
            assert!(
                input.len() >= len * lanes,
                "an input block has all its rows"
            );
        }
        arena.solvers.forget();
        arena.patience.begin();
        let runner = Runner {
            program: self,
            rows: arena.rows.as_mut_ptr(),
            registers: arena.registers.as_mut_ptr(),
            solvers: &raw mut arena.solvers,
            patience: &arena.patience,
            inputs,
            lanes,
        };
        for (step, &cost) in self.plan.steps.iter().zip(&self.plan.costs) {
            // SAFETY: the offsets of the plan are inside the pool and the arena, whose sizes were taken from the plan.
            // They are also inside the inputs, whose lengths were checked above.
            unsafe { runner.step(step, cost * lanes) };
            if arena.patience.is_over() {
                arena.rows.fill(f64::NAN);
                return;
            }
        }
    }

    /// Copies `count` lanes of an input, starting at lane `first`, into a packed block. The input has `rows` rows of
    /// `total` lanes. The last lane is repeated until the block consists of whole vectors. Returns the number of lanes
    /// in the block, including the repetitions.
    pub fn pack(
        source: &[f64],
        total: usize,
        first: usize,
        count: usize,
        rows: usize,
        out: &mut [f64],
    ) -> usize {
        let lanes = count.next_multiple_of(LANES);
        for row in 0..rows {
            let from = &source[row * total + first..row * total + first + count];
            let to = &mut out[row * lanes..(row + 1) * lanes];
            to[..count].copy_from_slice(from);
            to[count..].fill(from[count - 1]);
        }
        lanes
    }

    /// Returns the number of outputs.
    pub fn outputs(&self) -> usize {
        self.plan.outputs.len()
    }

    /// Returns the number of elements of output `which`.
    pub fn output_len(&self, which: usize) -> usize {
        self.plan.outputs[which].1.elements(self.records)
    }

    /// Calls `row` for every element of output `which` of the last run, with the index of the element and its lanes.
    pub fn output(
        &self,
        arena: &Arena,
        inputs: &[&[f64]],
        which: usize,
        lanes: usize,
        mut row: impl FnMut(usize, &[f64]),
    ) {
        let (arg, shape) = &self.plan.outputs[which];
        let mut splat = Vec::new();
        for i in 0..shape.elements(self.records) {
            let at = arg.offset
                + match arg.index {
                    None => i * arg.step,
                    Some(index) => self.index_list(index)[i] as usize * arg.step,
                };
            match arg.region {
                Region::Arena(_) => row(i, &arena.rows[at * lanes..(at + 1) * lanes]),
                Region::Input(slot) => row(i, &inputs[slot as usize][at * lanes..(at + 1) * lanes]),
                Region::Pool => {
                    splat.clear();
                    splat.resize(lanes, self.pool[at]);
                    row(i, &splat);
                }
                Region::Register(_) => unreachable!("outputs outlive their kernel"),
            }
        }
    }

    fn index_list(&self, index: IndexRef) -> &[u32] {
        match index {
            IndexRef::Const(id) => self.graph.index_data(id),
            IndexRef::Record(id) => &self.indices[id.index()],
        }
    }
}

/// Returns the number of lanes in a block, which is a multiple of the vector length. The block is small enough for the
/// rows in use to stay in the L2 cache, and large enough for the dispatch of an instruction to cost less than its work.
fn block_lanes(plan: &Plan, graph: &Graph) -> usize {
    let inputs: usize = graph.inputs().iter().map(|input| input.len).sum();
    let rows = plan.arena_rows + inputs + 1;
    let work: usize = plan.costs.iter().sum();
    let mean_rows = work / plan.instructions.max(1);
    // For a kernel over many rows, the cost of its own dispatch is negligible. With very many rows, a second vector
    // brings no benefit, and the rows of a million records occupy gigabytes.
    let least = match mean_rows {
        0..8 => 64,
        8..4096 => 16,
        _ => 8,
    };
    let mut lanes = match (plan.calls.is_empty(), plan.streams) {
        (true, false) => WIDEST,
        (true, true) => WIDEST_PRODUCTS,
        (false, _) => WIDEST_SOLVED,
    };
    while lanes > least && rows * lanes * 8 > CACHE_TARGET {
        lanes /= 2;
    }
    lanes
}

struct Runner<'a> {
    program: &'a Program,
    rows: *mut f64,
    registers: *mut f64,
    solvers: *mut SolverScratch,
    patience: &'a Patience,
    inputs: &'a [&'a [f64]],
    lanes: usize,
}

impl Runner<'_> {
    #[inline]
    unsafe fn operand(&self, arg: &Arg, first: usize) -> Operand {
        // SAFETY: `Program::run` created this runner from memory that contains all offsets of the plan, and `first` is
        // a row of the step that has this operand.
        unsafe {
            let lanes = self.lanes;
            let (base, unit): (*const f64, usize) = match arg.region {
                Region::Arena(_) => (self.rows.add(arg.offset * lanes), lanes),
                Region::Input(slot) => (
                    self.inputs[slot as usize].as_ptr().add(arg.offset * lanes),
                    lanes,
                ),
                Region::Pool => (self.program.pool.as_ptr().add(arg.offset), 1),
                Region::Register(register) => {
                    let size = self.program.tile_rows * self.program.block;
                    let base = self.registers.add(register as usize * size);
                    return Operand {
                        base,
                        stride: lanes,
                        index: std::ptr::null(),
                    };
                }
            };
            match arg.index {
                None => Operand {
                    base: base.add(first * arg.step * unit),
                    stride: arg.step * unit,
                    index: std::ptr::null(),
                },
                Some(index) => {
                    let list = self.program.index_list(index);
                    Operand {
                        base,
                        stride: arg.step * unit,
                        index: list.as_ptr().add(first),
                    }
                }
            }
        }
    }

    unsafe fn step(&self, step: &Step, cost: usize) {
        let lanes = self.lanes;
        // SAFETY: the plan's offsets are inside the arena, pool and inputs (see `Program::run`).
        unsafe {
            match step {
                Step::Zero { offset, rows, .. } => {
                    std::ptr::write_bytes(self.rows.add(offset * lanes), 0, rows * lanes);
                }
                Step::Copy {
                    kernel,
                    offset,
                    arg,
                    shape,
                    ..
                } => {
                    let operand = self.operand(arg, 0);
                    kernel(
                        self.rows.add(offset * lanes),
                        &operand,
                        shape.elements(self.program.records),
                        lanes,
                    );
                }
                Step::Dense {
                    kernel,
                    offset,
                    args,
                    shape,
                    ..
                } => {
                    let dst = self.rows.add(offset * lanes);
                    let records = self.program.records;
                    if self.patience.is_apart(cost) {
                        let rows = shape.elements(records);
                        self.dense_apart(*kernel, args, dst, rows);
                    } else {
                        let mut operands = [Operand::NONE; 2];
                        for (operand, (arg, _)) in operands.iter_mut().zip(args) {
                            *operand = self.operand(arg, 0);
                        }
                        kernel.run(dst, &operands, records, lanes);
                    }
                }
                Step::Solver {
                    call,
                    offset,
                    args,
                    rows,
                    ..
                } => {
                    let args: Vec<Vec<f64>> = args
                        .iter()
                        .map(|(arg, len)| self.packed(arg, *len))
                        .collect();
                    let out =
                        std::slice::from_raw_parts_mut(self.rows.add(offset * lanes), rows * lanes);
                    self.program.plan.calls[*call].run(
                        *call,
                        &mut *self.solvers,
                        &args,
                        lanes,
                        out,
                    );
                }
                Step::Fused {
                    shape,
                    instructions,
                } => return self.fused(*shape, instructions, cost),
            }
        }
        if !self.patience.is_over() {
            self.patience.worked(cost);
        }
    }

    /// Executes a dense step on copies of its operands. The copies are necessary because an interrupt may abandon the
    /// step while it is running. Writes `rows` rows starting at `dst`.
    unsafe fn dense_apart(
        &self,
        kernel: DenseKernel,
        args: &[(Arg, Shape)],
        dst: *mut f64,
        rows: usize,
    ) {
        let (lanes, records) = (self.lanes, self.program.records);
        let copy = |(arg, shape): &(Arg, Shape)| {
            let width = if arg.is_splat() { 1 } else { lanes };
            let mut copied = Vec::with_capacity(shape.elements(records) * width);
            for i in 0..shape.elements(records) {
                // SAFETY: this is an element of an operand of the step, and every element has `width` numbers.
                copied.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(self.operand(arg, 0).row(i), width)
                });
            }
            (copied, width)
        };
        let copies: Vec<(Vec<f64>, usize)> = args.iter().map(copy).collect();
        let made = self.patience.apart(move || {
            let mut operands = [Operand::NONE; 2];
            for (operand, (copy, width)) in operands.iter_mut().zip(&copies) {
                *operand = Operand {
                    base: copy.as_ptr(),
                    stride: *width,
                    index: std::ptr::null(),
                };
            }
            let mut out = vec![0.0; rows * lanes];
            // SAFETY: the copies have the same elements as the operands of the step, and `out` has the same elements as
            // its destination.
            unsafe { kernel.run(out.as_mut_ptr(), &operands, records, lanes) };
            out
        });
        if let Some(made) = made {
            // SAFETY: the destination of the step has this number of rows, starting at `dst`.
            unsafe { std::ptr::copy_nonoverlapping(made.as_ptr(), dst, made.len()) };
        }
    }

    unsafe fn packed(&self, arg: &Arg, len: usize) -> Vec<f64> {
        let mut out = Vec::with_capacity(len * self.lanes);
        for i in 0..len {
            // SAFETY: each operand of the step has `len` rows of lanes or `len` numbers, and this is one of them.
            unsafe {
                let row = self.operand(arg, 0).row(i);
                if arg.is_splat() {
                    out.resize(out.len() + self.lanes, *row);
                } else {
                    out.extend_from_slice(std::slice::from_raw_parts(row, self.lanes));
                }
            }
        }
        out
    }

    unsafe fn fused(&self, shape: Shape, instructions: &[Instruction], cost: usize) {
        let total = shape.elements(self.program.records);
        let cost_of_row = cost / total.max(1);
        // The size of the tiles does not depend on the number of lanes. Sums are added tile by tile, and the value of a
        // lane must not depend on its neighbours.
        let tile = self.program.tile_rows;
        let mut first = 0;
        while first < total {
            let rows = tile.min(total - first);
            for instruction in instructions {
                // SAFETY: the rows of the tile are rows of the step, and all rows of the step are inside the memory of
                // the plan.
                unsafe { self.instruction(instruction, [first, rows, total]) };
            }
            first += rows;
            self.patience.worked(rows * cost_of_row);
            if self.patience.is_over() {
                return;
            }
        }
    }

    #[inline]
    unsafe fn target(&self, target: &Target, first: usize) -> *mut f64 {
        // SAFETY: the registers and the rows are inside the memory from which `Program::run` created this runner.
        unsafe {
            match target {
                Target::Register(register) => {
                    let size = self.program.tile_rows * self.program.block;
                    self.registers.add(*register as usize * size)
                }
                Target::Rows { offset, .. } => self.rows.add((offset + first) * self.lanes),
            }
        }
    }

    #[inline]
    unsafe fn instruction(&self, instruction: &Instruction, [first, rows, total]: [usize; 3]) {
        let lanes = self.lanes;
        // SAFETY: the offsets of the plan are inside the arena, the pool and the inputs. Registers have room for a
        // tile, and `first + rows` is at most the number of rows of the step.
        unsafe {
            let row = |slot: usize| self.rows.add(slot * lanes);
            match instruction {
                Instruction::Map {
                    kernel,
                    target,
                    args,
                    arity,
                } => {
                    let mut operands = [Operand::NONE; 3];
                    for (operand, arg) in operands.iter_mut().zip(&args[..*arity]) {
                        *operand = self.operand(arg, first);
                    }
                    let dst = self.target(target, first);
                    kernel(dst, operands.as_ptr(), rows, lanes);
                }
                Instruction::Softplus {
                    kernel,
                    target,
                    sums,
                    args,
                    classes,
                    ..
                } => {
                    let operands = [self.operand(&args[0], first), self.operand(&args[1], first)];
                    let tile = [first, first + rows, total];
                    let products = match classes {
                        Some(classes) => classes.of(self.rows, lanes, tile),
                        None => Products::NONE,
                    };
                    let dst = target.map_or(std::ptr::null_mut(), |to| self.target(&to, first));
                    let sums = sums.map(|sum| match sum {
                        Some((_, offset)) => row(offset),
                        None => std::ptr::null_mut(),
                    });
                    kernel(dst, sums, operands.as_ptr(), &products, rows, lanes);
                }
                Instruction::Rows {
                    kernel,
                    target,
                    terms,
                    added,
                } => {
                    let mut operands = [[Operand::NONE; 2]; COLUMNS_OF_STEP];
                    for (operand, [column, coefficient]) in operands.iter_mut().zip(terms) {
                        *operand = [self.operand(column, first), self.operand(coefficient, 0)];
                    }
                    let added = added.map_or(Operand::NONE, |arg| self.operand(&arg, first));
                    let dst = self.target(target, first);
                    kernel(dst, operands.as_ptr(), terms.len(), &added, rows, lanes);
                }
                Instruction::Columns { kernel, arg, into } => {
                    let none = Into {
                        column: Operand::NONE,
                        dst: self.rows,
                    };
                    let mut slots = [none; COLUMNS_OF_STEP];
                    for (slot, sum) in slots.iter_mut().zip(into) {
                        slot.column = self.operand(&sum.column, first);
                        slot.dst = row(sum.offset);
                    }
                    let arg = self.operand(arg, first);
                    kernel(slots.as_ptr(), into.len(), &arg, rows, lanes);
                }
                Instruction::Sum {
                    kernel,
                    offset,
                    args,
                    ..
                } => {
                    let operands = [self.operand(&args[0], first), self.operand(&args[1], first)];
                    kernel(row(*offset), operands.as_ptr(), rows, lanes);
                }
                Instruction::Scatter {
                    kernel,
                    offset,
                    index,
                    args,
                    ..
                } => {
                    let operands = [self.operand(&args[0], first), self.operand(&args[1], first)];
                    let (list, base) = match index {
                        None => (std::ptr::null(), offset + first),
                        Some(index) => {
                            (self.program.index_list(*index).as_ptr().add(first), *offset)
                        }
                    };
                    kernel(row(base), list, operands.as_ptr(), rows, lanes);
                }
            }
        }
    }
}

impl Graph {
    pub(crate) fn table_bytes(&self) -> usize {
        let consts: usize = self.consts.iter().map(|table| 8 * table.len()).sum();
        let indices: usize = self.indices.iter().map(|list| 4 * list.len()).sum();
        let records: usize = self
            .records
            .iter()
            .map(|record| match record {
                RecordColumn::Values { values, .. } => 8 * values.len(),
                RecordColumn::Indices(indices) => 4 * indices.len(),
            })
            .sum();
        consts + indices + records
    }
}
