//! Plans a graph as a list of steps, which a program runs over blocks of lanes.
//!
//! *Fusion.* Elementwise nodes of the same shape form *kernels* by the rules of [`super::stages`]. A kernel makes a
//! single pass over the elements, in tiles that stay in the L1 cache. Intermediate values are kept in tile registers.
//! Sums and scatters are accumulated during the pass, and gathered operands are read through their index lists.
//!
//! *Memory.* A value that is read after its kernel has finished is stored in a slot. A slot is a range of rows in an
//! arena. After the last read of the value, another value can use the slot. An evaluation needs no other memory than
//! the arena for one block of lanes.

use std::collections::HashMap;

use jensen_math::simd::Simd;

use crate::exec::dense::{DenseKernel, dense_kernel};
use crate::exec::kernels::{MapKernel, ScatterKernel, SumKernel, copy_kernel};
use crate::exec::memory::{Slot, allocate};
use crate::exec::product::{ColumnsKernel, RowsKernel};
use crate::exec::softplus::{Classes, SoftplusKernel};
use crate::exec::solver::Call;
use crate::exec::stages::{DenseNodes, Kernels, Role, Stages};
use crate::ir::{Graph, NodeId, Placement, Shape};
use crate::ops::Op;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Region {
    /// Scratch memory. During planning, the number identifies a slot. Afterwards, the operand is in the rows of the
    /// arena.
    Arena(u32),
    Input(u32),
    Pool,
    Register(u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IndexRef {
    Const(crate::ir::IndexId),
    Record(crate::ir::RecordId),
}

/// An operand of a step. It consists of the rows `offset + step · i`, or `offset + index[i]`, of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arg {
    pub region: Region,
    pub offset: usize,
    pub step: usize,
    pub index: Option<IndexRef>,
}

impl Arg {
    pub(super) fn is_splat(&self) -> bool {
        self.region == Region::Pool
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Register(u32),
    /// The row `offset + i` of a slot.
    Rows {
        slot: u32,
        offset: usize,
    },
}

#[derive(Clone)]
pub(crate) enum Instruction {
    Map {
        kernel: MapKernel,
        target: Target,
        args: [Arg; 3],
        arity: usize,
    },
    Sum {
        kernel: SumKernel,
        slot: u32,
        offset: usize,
        args: [Arg; 2],
        arity: usize,
    },
    Scatter {
        kernel: ScatterKernel,
        slot: u32,
        offset: usize,
        index: Option<IndexRef>,
        args: [Arg; 2],
        arity: usize,
    },
    /// Sums log(1 + exp(·)) of the first operand, both without weights and weighted by the second operand. The
    /// instruction also computes the inverse logits of the first operand.
    Softplus {
        kernel: SoftplusKernel,
        target: Option<Target>,
        sums: [Option<(u32, usize)>; 2],
        args: [Arg; 2],
        arity: usize,
        classes: Option<Classes>,
    },
    Rows {
        kernel: RowsKernel,
        target: Target,
        terms: Box<[[Arg; 2]]>,
        added: Option<Arg>,
    },
    Columns {
        kernel: ColumnsKernel,
        arg: Arg,
        into: Box<[ColumnSum]>,
    },
}

#[derive(Clone, Copy)]
pub(crate) struct ColumnSum {
    pub column: Arg,
    pub slot: u32,
    pub offset: usize,
}

impl Instruction {
    /// Calls `arg` for every operand. Calls `written` for the slot and the offset of the result, unless the result is a
    /// register.
    fn visit(&mut self, arg: &mut dyn FnMut(&mut Arg), written: &mut dyn FnMut(u32, &mut usize)) {
        let target_rows = |target: &mut Target, written: &mut dyn FnMut(u32, &mut usize)| {
            if let Target::Rows { slot, offset } = target {
                written(*slot, offset);
            }
        };
        match self {
            Self::Map {
                args,
                arity,
                target,
                ..
            } => {
                args[..*arity].iter_mut().for_each(arg);
                target_rows(target, written);
            }
            Self::Softplus {
                target,
                sums,
                args,
                arity,
                classes,
                ..
            } => {
                args[..*arity].iter_mut().for_each(arg);
                if let Some(target) = target {
                    target_rows(target, written);
                }
                if let Some(classes) = classes {
                    written(classes.products.0, &mut classes.products.1);
                }
                for (slot, offset) in sums.iter_mut().flatten() {
                    written(*slot, offset);
                }
            }
            Self::Rows {
                terms,
                added,
                target,
                ..
            } => {
                terms.iter_mut().flatten().chain(added).for_each(arg);
                target_rows(target, written);
            }
            Self::Sum {
                args,
                arity,
                slot,
                offset,
                ..
            }
            | Self::Scatter {
                args,
                arity,
                slot,
                offset,
                ..
            } => {
                args[..*arity].iter_mut().for_each(arg);
                written(*slot, offset);
            }
            Self::Columns { arg: x, into, .. } => {
                arg(x);
                for sum in into {
                    arg(&mut sum.column);
                    written(sum.slot, &mut sum.offset);
                }
            }
        }
    }

    fn streams(&self) -> bool {
        matches!(self, Self::Rows { .. } | Self::Columns { .. })
    }

    fn weight(&self) -> usize {
        match self {
            Self::Rows { terms, .. } => terms.len(),
            Self::Columns { into, .. } => into.len(),
            _ => 1,
        }
    }
}

pub(crate) enum Step {
    Zero {
        slot: u32,
        offset: usize,
        rows: usize,
    },
    Fused {
        shape: Shape,
        instructions: Vec<Instruction>,
    },
    Copy {
        kernel: MapKernel,
        slot: u32,
        offset: usize,
        arg: Arg,
        shape: Shape,
    },
    Dense {
        kernel: DenseKernel,
        slot: u32,
        offset: usize,
        args: Vec<(Arg, Shape)>,
        shape: Shape,
    },
    Solver {
        call: usize,
        slot: u32,
        offset: usize,
        args: Vec<(Arg, usize)>,
        rows: usize,
    },
}

/// A plan that does not depend on the number of lanes or on the data.
pub(crate) struct Plan {
    pub steps: Vec<Step>,
    /// The constants. After the constants, there is memory for the shared values, which are computed when data are
    /// bound.
    pub constants: Vec<f64>,
    /// The shared values. Each entry contains the node of a value, its offset in the pool, and its number of elements
    /// for the largest batch.
    pub shared: Vec<(NodeId, usize, usize)>,
    pub pool_len: usize,
    pub arena_rows: usize,
    pub registers: usize,
    /// The calls of solvers, in the order of their steps.
    pub calls: Vec<Call>,
    pub outputs: Vec<(Arg, Shape)>,
    /// Whether a kernel includes products with long matrices.
    pub streams: bool,
    pub instructions: usize,
    /// For each step, the approximate number of rows that the step reads and writes per lane.
    pub costs: Vec<usize>,
}

pub(super) struct Planner<'a> {
    pub(super) graph: &'a Graph,
    pub(super) simd: Simd,
    pub(super) records: usize,
    pub(super) stages: Stages,
    pub(super) args_of: HashMap<NodeId, Arg>,
    pub(super) slots: Vec<Slot>,
    pub(super) steps: Vec<Step>,
    pub(super) calls: Vec<Call>,
    pub(super) constants: Vec<f64>,
    pub(super) shared: Vec<(NodeId, usize, usize)>,
    pub(super) shared_len: usize,
    pub(super) registers: usize,
    pub(super) zeroed: Vec<bool>,
    /// An operand that is the number one in every row.
    pub(super) ones: Arg,
}

pub(crate) fn plan(graph: &Graph, simd: Simd, records: usize) -> Plan {
    let mut planner = Planner {
        graph,
        simd,
        records,
        stages: Stages::new(graph),
        args_of: HashMap::new(),
        slots: Vec::new(),
        steps: Vec::new(),
        calls: Vec::new(),
        constants: Vec::new(),
        shared: Vec::new(),
        shared_len: 0,
        registers: 0,
        zeroed: Vec::new(),
        ones: Arg {
            region: Region::Pool,
            offset: 0,
            step: 0,
            index: None,
        },
    };
    planner.constants.push(1.0);
    planner.allocate_leaves();
    let (kernels, dense) = planner.stages.kernels(graph);
    planner.emit(kernels, dense);
    planner.finish()
}

impl Planner<'_> {
    fn allocate_leaves(&mut self) {
        let mut read = vec![false; self.graph.len()];
        for id in self.graph.ids().filter(|id| self.stages.needed[id.index()]) {
            if self.stages.roles[id.index()] != Role::Leaf {
                self.graph
                    .args(id)
                    .iter()
                    .for_each(|arg| read[arg.index()] = true);
            }
        }
        self.graph
            .outputs()
            .iter()
            .for_each(|id| read[id.index()] = true);
        let mut shared = Vec::new();
        for id in self
            .graph
            .ids()
            .filter(|id| read[id.index()] && self.stages.roles[id.index()] == Role::Leaf)
        {
            let shape = self.graph.shape(id);
            let step = usize::from(!shape.is_scalar());
            let arg = match self.graph.op(id) {
                Op::Input(slot) if self.graph.placement(id) == Placement::Lane => Arg {
                    region: Region::Input(slot),
                    offset: 0,
                    step,
                    index: None,
                },
                Op::Const(table) => {
                    let offset = self.constants.len();
                    self.constants
                        .extend_from_slice(self.graph.const_data(table));
                    Arg {
                        region: Region::Pool,
                        offset,
                        step,
                        index: None,
                    }
                }
                _ => {
                    shared.push((id, step));
                    continue;
                }
            };
            self.args_of.insert(id, arg);
        }
        let mut end = self.constants.len();
        for (id, step) in shared {
            let len = self.graph.shape(id).elements(self.records);
            self.args_of.insert(
                id,
                Arg {
                    region: Region::Pool,
                    offset: end,
                    step,
                    index: None,
                },
            );
            self.shared.push((id, end, len));
            end += len;
        }
        self.shared_len = end - self.constants.len();
    }

    fn emit(&mut self, kernels: Kernels, mut dense: DenseNodes) {
        // In a chain of scatters, all scatters share the slot of their sink. The chains are searched from the innermost
        // scatter outwards.
        for id in self.graph.ids() {
            if !self.stages.needed[id.index()] || self.stages.roles[id.index()] != Role::Sink {
                continue;
            }
            let arg = match self.stages.continued_scatter(self.graph, id) {
                Some(source) => self.args_of[&source],
                None => self.new_rows(self.graph.shape(id)),
            };
            self.args_of.insert(id, arg);
        }
        self.zeroed = vec![false; self.slots.len()];
        let mut stages: Vec<u32> = kernels
            .keys()
            .map(|key| key.0)
            .chain(dense.keys().copied())
            .collect();
        stages.sort_unstable();
        stages.dedup();
        let mut kernels = kernels.into_iter().peekable();
        for stage in stages {
            while let Some(((_, shape), draft)) = kernels.next_if(|entry| entry.0.0 == stage) {
                self.emit_kernel(shape, draft);
            }
            for id in dense.remove(&stage).unwrap_or_default() {
                self.emit_dense(id);
            }
        }
    }

    pub(super) fn new_rows(&mut self, shape: Shape) -> Arg {
        let slot = self.slots.len() as u32;
        self.slots.push(Slot {
            rows: shape.elements(self.records),
            first: usize::MAX,
            last: 0,
            offset: 0,
        });
        Arg {
            region: Region::Arena(slot),
            offset: 0,
            step: usize::from(!shape.is_scalar()),
            index: None,
        }
    }

    pub(super) fn operand(&mut self, id: NodeId) -> Arg {
        if let Some(arg) = self.args_of.get(&id) {
            return *arg;
        }
        let source = self.graph.args(id)[0];
        let base = self.operand(source);
        let arg = match self.graph.op(id) {
            Op::Broadcast => Arg { step: 0, ..base },
            Op::Gather(index) => {
                let list = self.graph.index_data(index);
                let (first, count) = (list.first().copied().unwrap_or(0), list.len());
                let contiguous = list.iter().enumerate().all(|(k, &i)| i == first + k as u32);
                let constant = list.iter().all(|&i| i == first);
                if let (true, None) = (count == 1 || contiguous || constant, base.index) {
                    let step = if count > 1 && contiguous {
                        base.step
                    } else {
                        0
                    };
                    Arg {
                        offset: base.offset + first as usize * base.step,
                        step,
                        ..base
                    }
                } else {
                    let base = self.without_index(source, base);
                    Arg {
                        index: Some(IndexRef::Const(index)),
                        ..base
                    }
                }
            }
            Op::GatherRecord(index) => {
                let base = self.without_index(source, base);
                Arg {
                    index: Some(IndexRef::Record(index)),
                    ..base
                }
            }
            _ => unreachable!("values have offsets before they are read"),
        };
        self.args_of.insert(id, arg);
        arg
    }

    /// Returns an operand without an index list. If `arg` has an index list, its elements are copied first.
    fn without_index(&mut self, id: NodeId, arg: Arg) -> Arg {
        if arg.index.is_some() {
            self.copied(id, arg)
        } else {
            arg
        }
    }

    pub(super) fn copied(&mut self, id: NodeId, arg: Arg) -> Arg {
        let shape = self.graph.shape(id);
        let rows = self.new_rows(shape);
        self.zeroed.push(false);
        let Region::Arena(slot) = rows.region else {
            unreachable!("rows of the arena")
        };
        self.steps.push(Step::Copy {
            kernel: copy_kernel(self.simd, arg.is_splat()),
            slot,
            offset: 0,
            arg,
            shape,
        });
        rows
    }

    pub(super) fn plain(&mut self, id: NodeId, splat: bool) -> Arg {
        let arg = self.operand(id);
        let consecutive = arg.step == 1 || self.graph.shape(id).is_scalar();
        if arg.index.is_none() && consecutive && (splat || !arg.is_splat()) {
            arg
        } else {
            self.copied(id, arg)
        }
    }

    fn emit_dense(&mut self, id: NodeId) {
        let graph = self.graph;
        let shape = graph.shape(id);
        let parts: Vec<NodeId> = graph.args(id).to_vec();
        if graph.op(id) == Op::Concat {
            let operands: Vec<Arg> = parts.iter().map(|&part| self.operand(part)).collect();
            let rows = self.new_rows(shape);
            self.zeroed.push(false);
            let Region::Arena(slot) = rows.region else {
                unreachable!("rows of the arena")
            };
            let mut offset = 0;
            for (arg, &part) in operands.into_iter().zip(&parts) {
                let shape = graph.shape(part);
                let kernel = copy_kernel(self.simd, arg.is_splat());
                self.steps.push(Step::Copy {
                    kernel,
                    slot,
                    offset,
                    arg,
                    shape,
                });
                offset += shape.len as usize;
            }
            self.args_of.insert(id, rows);
            return;
        }
        let args: Vec<Arg> = parts.iter().map(|&part| self.plain(part, true)).collect();
        let rows = self.new_rows(shape);
        self.zeroed.push(false);
        let Region::Arena(slot) = rows.region else {
            unreachable!("rows of the arena")
        };
        if let Op::Solver(solver, pass) = graph.op(id) {
            let call = self.calls.len();
            let solver = graph.solver(solver).clone();
            self.calls.push(Call::new(solver, pass, self.simd));
            let extents = parts.iter().map(|part| graph.shape(*part).len as usize);
            self.steps.push(Step::Solver {
                call,
                slot,
                offset: 0,
                args: args.into_iter().zip(extents).collect(),
                rows: shape.len as usize,
            });
            self.args_of.insert(id, rows);
            return;
        }
        let splat: Vec<bool> = args.iter().map(Arg::is_splat).collect();
        let first = graph.shape(parts[0]);
        let kernel = dense_kernel(graph.op(id), self.simd, &splat, first, self.records);
        self.steps.push(Step::Dense {
            kernel,
            slot,
            offset: 0,
            args: args
                .into_iter()
                .zip(parts.iter().map(|part| graph.shape(*part)))
                .collect(),
            shape,
        });
        self.args_of.insert(id, rows);
    }

    /// Lets a backward pass use the intermediate results of the forward pass with the same arguments. This function
    /// identifies arguments by their offsets, so it must be called before different values share rows.
    fn share_memos(&mut self) {
        let solvers: Vec<(usize, Vec<Arg>)> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Solver { call, args, .. } => {
                    let args: Vec<Arg> = args.iter().map(|(arg, _)| *arg).collect();
                    Some((*call, self.calls[*call].forward_args(&args)))
                }
                _ => None,
            })
            .collect();
        let mut memos = 0;
        for (k, (call, args)) in solvers.iter().enumerate() {
            for (other, others) in &solvers[k + 1..] {
                if args == others && self.calls[*call].serves(&self.calls[*other]) {
                    let memo = self.calls[*call].memo.unwrap_or(memos);
                    memos = memos.max(memo + 1);
                    self.calls[*call].memo = Some(memo);
                    self.calls[*other].memo = Some(memo);
                }
            }
        }
    }

    fn finish(mut self) -> Plan {
        self.share_memos();
        let outputs: Vec<(Arg, Shape)> = self
            .graph
            .outputs()
            .to_vec()
            .into_iter()
            .map(|id| (self.operand(id), self.graph.shape(id)))
            .collect();
        let end = self.steps.len();
        let mut touched: Vec<(u32, usize)> = Vec::new();
        for (time, step) in self.steps.iter().enumerate() {
            step.visit_slots(&mut |slot| touched.push((slot, time)));
        }
        for (arg, _) in &outputs {
            if let Region::Arena(slot) = arg.region {
                touched.push((slot, end));
            }
        }
        for (slot, time) in touched {
            let slot = &mut self.slots[slot as usize];
            slot.first = slot.first.min(time);
            slot.last = slot.last.max(time);
        }
        let arena_rows = allocate(&mut self.slots);
        let slots = std::mem::take(&mut self.slots);
        let resolve = |arg: &mut Arg| {
            if let Region::Arena(slot) = arg.region {
                arg.offset += slots[slot as usize].offset;
                arg.region = Region::Arena(0);
            }
        };
        let mut outputs = outputs;
        outputs.iter_mut().for_each(|(arg, _)| resolve(arg));
        let (mut instructions, mut costs) = (0, Vec::with_capacity(self.steps.len()));
        for step in &mut self.steps {
            step.resolve(&resolve, &|slot| slots[slot as usize].offset);
            let (count, rows) = step.cost(self.records, &self.calls);
            instructions += count;
            costs.push(rows);
        }
        let streams = self.steps.iter().any(|step| match step {
            Step::Fused { instructions, .. } => instructions.iter().any(Instruction::streams),
            _ => false,
        });
        Plan {
            streams,
            steps: self.steps,
            pool_len: self.constants.len() + self.shared_len,
            constants: self.constants,
            shared: self.shared,
            arena_rows,
            registers: self.registers,
            calls: self.calls,
            outputs,
            instructions,
            costs,
        }
    }
}

impl Step {
    fn visit_slots(&self, visit: &mut impl FnMut(u32)) {
        let mut arg = |arg: &Arg| {
            if let Region::Arena(slot) = arg.region {
                visit(slot);
            }
        };
        match self {
            Step::Zero { slot, .. } => visit(*slot),
            Step::Copy {
                slot, arg: source, ..
            } => {
                arg(source);
                visit(*slot);
            }
            Step::Dense { slot, args, .. } => {
                args.iter().for_each(|(source, _)| arg(source));
                visit(*slot);
            }
            Step::Solver { slot, args, .. } => {
                args.iter().for_each(|(source, _)| arg(source));
                visit(*slot);
            }
            Step::Fused { instructions, .. } => {
                for mut instruction in instructions.iter().cloned() {
                    let mut slots = Vec::new();
                    instruction.visit(&mut |operand| arg(operand), &mut |slot, _| slots.push(slot));
                    for slot in slots {
                        arg(&Arg {
                            region: Region::Arena(slot),
                            offset: 0,
                            step: 0,
                            index: None,
                        });
                    }
                }
            }
        }
    }

    fn resolve(&mut self, arg: &impl Fn(&mut Arg), offset_of: &impl Fn(u32) -> usize) {
        match self {
            Step::Zero { slot, offset, .. } => *offset += offset_of(*slot),
            Step::Copy {
                slot,
                offset,
                arg: source,
                ..
            } => {
                *offset += offset_of(*slot);
                arg(source);
            }
            Step::Dense {
                slot, offset, args, ..
            } => {
                *offset += offset_of(*slot);
                args.iter_mut().for_each(|(source, _)| arg(source));
            }
            Step::Solver {
                slot, offset, args, ..
            } => {
                *offset += offset_of(*slot);
                args.iter_mut().for_each(|(source, _)| arg(source));
            }
            Step::Fused { instructions, .. } => {
                for instruction in instructions {
                    instruction.visit(&mut |operand| arg(operand), &mut |slot, offset| {
                        *offset += offset_of(slot);
                    });
                }
            }
        }
    }

    fn cost(&self, records: usize, calls: &[Call]) -> (usize, usize) {
        match self {
            Step::Zero { rows, .. } => (1, *rows),
            Step::Copy { shape, .. } => (1, shape.elements(records)),
            Step::Fused {
                shape,
                instructions,
            } => (
                instructions.len(),
                instructions.iter().map(Instruction::weight).sum::<usize>()
                    * shape.elements(records),
            ),
            Step::Dense { kernel, .. } => (1, kernel.work()),
            Step::Solver { call, .. } => (1, calls[*call].work()),
        }
    }
}
