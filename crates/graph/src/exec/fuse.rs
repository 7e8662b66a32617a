//! Generates the instructions of a fused kernel. Multiplications are merged with the addition or reduction that uses
//! them, and values are assigned to tile registers or to memory.

use std::collections::{HashMap, HashSet};

use crate::exec::kernels::{MapOp, map_kernel, scatter_kernel, sum_kernel};
use crate::exec::linear::Linear;
use crate::exec::plan::{Arg, IndexRef, Instruction, Planner, Region, Step, Target};
use crate::exec::softplus::Softpluses;
use crate::exec::stages::{KernelDraft, Sink};
use crate::ir::{NodeId, Shape};
use crate::ops::{ElemOp, ScatterMap};

#[derive(Clone, Copy)]
enum Work {
    Map(NodeId, MapOp),
    Sink(Sink),
    /// Sums log(1 + exp(·)) of the operand. The number is the index of the sum in the kernel. If a node is given, it is
    /// the inverse logit of the operand, and the instruction computes it as well.
    Softplus(usize, Option<NodeId>),
    Rows(NodeId),
    /// Sums the operand, weighted by columns of data. The number is the index of the sum in the kernel.
    Columns(usize),
}

struct Task {
    work: Work,
    reads: Vec<NodeId>,
}

/// The tile registers. Some of them are free, and each of the others contains the value of a node.
#[derive(Default)]
struct Registers {
    free: Vec<u32>,
    in_use: u32,
    of: HashMap<NodeId, u32>,
}

impl Registers {
    fn take(&mut self, id: NodeId) -> u32 {
        let register = self.free.pop().unwrap_or_else(|| {
            self.in_use += 1;
            self.in_use - 1
        });
        self.of.insert(id, register);
        register
    }

    fn release(&mut self, id: NodeId) {
        self.free.extend(self.of.remove(&id));
    }
}

/// Orders the instructions for execution. Each reduction directly follows the computation of its last operand, so that
/// registers become free early.
fn schedule(maps: Vec<Task>, sinks: Vec<Task>) -> Vec<Task> {
    let mut made: HashMap<NodeId, usize> = HashMap::new();
    for (time, task) in maps.iter().enumerate() {
        if let Work::Map(id, _) | Work::Rows(id) | Work::Softplus(_, Some(id)) = task.work {
            made.insert(id, time);
        }
    }
    let after = |task: &Task| {
        let times = task.reads.iter().filter_map(|read| made.get(read));
        times.max().copied().unwrap_or(0)
    };
    let sinks: Vec<(usize, Task)> = sinks.into_iter().map(|task| (after(&task), task)).collect();
    let mut tasks: Vec<(usize, Task)> = maps.into_iter().enumerate().collect();
    tasks.extend(sinks);
    // The sort is stable. At equal times, operations precede reductions, and reductions stay in their original order.
    tasks.sort_by_key(|task| task.0);
    tasks.into_iter().map(|(_, task)| task).collect()
}

impl Planner<'_> {
    pub(super) fn emit_kernel(&mut self, shape: Shape, draft: KernelDraft) {
        let inside = draft.reads(self.graph, |_| true);
        let softpluses = self.softpluses(&draft, &inside);
        let linear = self.linear(shape, &draft, &inside, &softpluses.taken);
        let (maps, sinks) = self.merged(&draft, &inside, &linear, &softpluses);
        let tasks = schedule(maps, sinks);
        let mut last_use: HashMap<NodeId, usize> = HashMap::new();
        for (time, task) in tasks.iter().enumerate() {
            last_use.extend(task.reads.iter().map(|&read| (read, time)));
        }
        let mut registers = Registers::default();
        let mut instructions = Vec::with_capacity(tasks.len());
        for (time, task) in tasks.iter().enumerate() {
            let args = self.task_operands(task, &registers);
            // Operations read a row before they write it, so the result may be written to a register that is freed
            // here.
            for &read in &task.reads {
                if last_use.get(&read) == Some(&time) {
                    registers.release(read);
                }
            }
            let mut target = |planner: &mut Self, id: NodeId| {
                // A value is stored in memory if a node outside the kernel reads it.
                match planner.stages.uses[id.index()] > inside[&id] {
                    true => planner.kept_rows(id, shape),
                    false => Target::Register(registers.take(id)),
                }
            };
            match task.work {
                Work::Map(id, op) => {
                    let target = target(self, id);
                    instructions.push(self.map_instruction(op, target, &args));
                }
                Work::Rows(id) => {
                    let (target, added) = (target(self, id), args.first().copied());
                    let predictor = &linear.predictors[&id];
                    instructions.extend(self.predictor_instructions(predictor, target, added));
                }
                Work::Softplus(which, inverse) => {
                    let target = inverse.map(|id| target(self, id));
                    let softplus = &softpluses.found[&which];
                    instructions.push(self.softplus_instruction(softplus, &args, target));
                }
                Work::Sink(sink) => instructions.push(self.sink_instruction(sink, args)),
                Work::Columns(which) => {
                    instructions.extend(self.sums_instructions(&linear.sums[which], args[0]));
                }
            }
        }
        self.registers = self.registers.max(registers.in_use as usize);
        self.steps.push(Step::Fused {
            shape,
            instructions,
        });
    }

    fn task_operands(&mut self, task: &Task, registers: &Registers) -> Vec<Arg> {
        task.reads
            .iter()
            .map(|read| match registers.of.get(read) {
                Some(&register) => Arg {
                    region: Region::Register(register),
                    offset: 0,
                    step: 1,
                    index: None,
                },
                None => self.operand(*read),
            })
            .collect()
    }

    /// Returns the operations and reductions of a kernel. If a multiplication is used by only one addition or
    /// reduction, the two are merged.
    fn merged(
        &self,
        draft: &KernelDraft,
        inside: &HashMap<NodeId, u32>,
        linear: &Linear,
        softpluses: &Softpluses,
    ) -> (Vec<Task>, Vec<Task>) {
        let graph = self.graph;
        let only_here = |id: NodeId, op: ElemOp| {
            graph.elem_op(id) == Some(op)
                && inside.get(&id) == Some(&1)
                && self.stages.uses[id.index()] == 1
        };
        let mut absorbed: HashSet<NodeId> = linear.absorbed.clone();
        absorbed.extend(&softpluses.absorbed);
        let mut maps: Vec<(NodeId, Task)> = Vec::with_capacity(draft.maps.len());
        for &id in &draft.maps {
            if absorbed.contains(&id) {
                continue;
            }
            if let Some(predictor) = linear.predictors.get(&id) {
                let (work, reads) = (Work::Rows(id), predictor.added.into_iter().collect());
                maps.push((id, Task { work, reads }));
                continue;
            }
            let op = graph.elem_op(id).expect("a map is elementwise or linear");
            let args = graph.args(id);
            let is_product = |which: usize| only_here(args[which], ElemOp::Mul);
            // Finds the operand that is a product. The result is the merged operation, the two factors of the product,
            // and the other operand.
            let merge = match op {
                ElemOp::Add if is_product(0) => Some((0, MapOp::Elem(ElemOp::Fma))),
                ElemOp::Add if is_product(1) => Some((1, MapOp::Elem(ElemOp::Fma))),
                ElemOp::Sub if is_product(0) => Some((0, MapOp::MulSub)),
                ElemOp::Sub if is_product(1) => Some((1, MapOp::NegMulAdd)),
                _ => None,
            };
            let (op, reads) = match merge {
                Some((product, op)) => {
                    absorbed.insert(args[product]);
                    let factors = graph.args(args[product]);
                    (op, vec![factors[0], factors[1], args[1 - product]])
                }
                None => (MapOp::Elem(op), args.to_vec()),
            };
            let work = Work::Map(id, op);
            maps.push((id, Task { work, reads }));
        }
        let mut sinks = Vec::with_capacity(draft.sinks.len());
        for (which, sums) in linear.sums.iter().enumerate() {
            let (work, reads) = (Work::Columns(which), vec![sums.of]);
            sinks.push(Task { work, reads });
        }
        for (which, &sink) in draft.sinks.iter().enumerate() {
            if let Some(softplus) = softpluses.found.get(&which) {
                let inverse = maps.iter_mut().find(|(id, task)| {
                    matches!(task.work, Work::Map(_, MapOp::Elem(ElemOp::InvLogit)))
                        && graph.args(*id) == [softplus.x]
                });
                let reads = softplus.reads();
                match inverse {
                    Some((id, task)) => {
                        let work = Work::Softplus(which, Some(*id));
                        *task = Task { work, reads };
                    }
                    None => sinks.push(Task {
                        work: Work::Softplus(which, None),
                        reads,
                    }),
                }
            }
            if linear.taken.contains(&which) || softpluses.taken.contains(&which) {
                continue;
            }
            let source = sink.source;
            let factors = if only_here(source, ElemOp::Mul) {
                Some(graph.args(source).to_vec())
            } else if only_here(source, ElemOp::Square) {
                Some(vec![graph.args(source)[0]; 2])
            } else {
                None
            };
            if factors.is_some() {
                absorbed.insert(source);
            }
            sinks.push(Task {
                work: Work::Sink(sink),
                reads: factors.unwrap_or_else(|| vec![source]),
            });
        }
        maps.retain(|(id, _)| !absorbed.contains(id));
        (maps.into_iter().map(|(_, task)| task).collect(), sinks)
    }

    fn kept_rows(&mut self, id: NodeId, shape: Shape) -> Target {
        let rows = self.new_rows(shape);
        self.zeroed.push(false);
        self.args_of.insert(id, rows);
        let Region::Arena(slot) = rows.region else {
            unreachable!("rows of the arena")
        };
        Target::Rows { slot, offset: 0 }
    }

    fn map_instruction(&self, op: MapOp, target: Target, args: &[Arg]) -> Instruction {
        let none = Arg {
            region: Region::Pool,
            offset: 0,
            step: 0,
            index: None,
        };
        let mut padded = [none; 3];
        padded[..args.len()].copy_from_slice(args);
        let mut splat = [false; 3];
        for (flag, arg) in splat.iter_mut().zip(args) {
            *flag = arg.is_splat();
        }
        Instruction::Map {
            kernel: map_kernel(op, self.simd, splat),
            target,
            args: padded,
            arity: args.len(),
        }
    }

    /// Returns the rows to which a sum or scatter adds. These rows are set to zero before the first instruction that
    /// adds to them.
    pub(super) fn sink_rows(&mut self, id: NodeId) -> u32 {
        let Region::Arena(slot) = self.args_of[&id].region else {
            unreachable!("sinks have rows")
        };
        if !std::mem::replace(&mut self.zeroed[slot as usize], true) {
            let rows = self.slots[slot as usize].rows;
            self.steps.push(Step::Zero {
                slot,
                offset: 0,
                rows,
            });
        }
        slot
    }

    fn sink_instruction(&mut self, sink: Sink, mut args: Vec<Arg>) -> Instruction {
        let slot = self.sink_rows(sink.node);
        if args.len() == 2 && args[0].is_splat() {
            args.swap(0, 1);
        }
        if args[0].is_splat() {
            // Only shared values need a row of their own, to which they are copied.
            let arg = args[0];
            args[0] = self.copied(sink.source, arg);
        }
        let second = args.get(1).map(Arg::is_splat);
        let arity = args.len();
        let args = [args[0], *args.get(1).unwrap_or(&args[0])];
        match sink.map {
            None => Instruction::Sum {
                kernel: sum_kernel(self.simd, second),
                slot,
                offset: 0,
                args,
                arity,
            },
            Some(map) => {
                let index = match map {
                    ScatterMap::All => None,
                    ScatterMap::Index(index) => Some(IndexRef::Const(index)),
                    ScatterMap::Record(record) => Some(IndexRef::Record(record)),
                };
                Instruction::Scatter {
                    kernel: scatter_kernel(self.simd, second),
                    slot,
                    offset: 0,
                    index,
                    args,
                    arity,
                }
            }
        }
    }
}
