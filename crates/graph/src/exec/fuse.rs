//! Instructions of one fused kernel: multiplications merged with the addition or reduction that uses
//! them, tile registers, and what is kept in memory.

use std::collections::HashMap;

use crate::exec::kernels::{MapOp, map_kernel, scatter_kernel, sum_kernel};
use crate::exec::plan::{Arg, IndexRef, Instruction, Planner, Region, Step, Target};
use crate::exec::stages::{KernelDraft, Sink};
use crate::ir::{NodeId, Shape};
use crate::ops::{ElemOp, ScatterMap};

impl Planner<'_> {
    pub(super) fn emit_kernel(&mut self, shape: Shape, draft: KernelDraft) {
        let graph = self.graph;
        let mut inside: HashMap<NodeId, u32> = draft.maps.iter().map(|&id| (id, 0)).collect();
        for &id in &draft.maps {
            for arg in graph.args(id) {
                if let Some(count) = inside.get_mut(arg) {
                    *count += 1;
                }
            }
        }
        for sink in &draft.sinks {
            if let Some(count) = inside.get_mut(&sink.source) {
                *count += 1;
            }
        }
        // A value is kept when something outside reads it.
        let kept = |planner: &Self, id: NodeId| planner.stages.uses[id.index()] > inside[&id];
        let mut absorbed: HashMap<NodeId, ()> = HashMap::new();
        let absorbable = |planner: &Self, id: NodeId, op: ElemOp| {
            graph.elem_op(id) == Some(op)
                && inside.get(&id) == Some(&1)
                && planner.stages.uses[id.index()] == 1
        };
        // Multiplications merge with the one addition or reduction that uses them.
        let mut plans: Vec<(NodeId, MapOp, Vec<NodeId>)> = Vec::with_capacity(draft.maps.len());
        for &id in &draft.maps {
            let op = graph.elem_op(id).expect("a map");
            let args = graph.args(id);
            let merged = match op {
                ElemOp::Add => [(0, 1), (1, 0)].into_iter().find_map(|(product, other)| {
                    absorbable(self, args[product], ElemOp::Mul).then(|| {
                        let factors = graph.args(args[product]);
                        (
                            MapOp::Elem(ElemOp::Fma),
                            args[product],
                            vec![factors[0], factors[1], args[other]],
                        )
                    })
                }),
                ElemOp::Sub if absorbable(self, args[0], ElemOp::Mul) => {
                    let factors = graph.args(args[0]);
                    Some((
                        MapOp::MulSub,
                        args[0],
                        vec![factors[0], factors[1], args[1]],
                    ))
                }
                ElemOp::Sub if absorbable(self, args[1], ElemOp::Mul) => {
                    let factors = graph.args(args[1]);
                    Some((
                        MapOp::NegMulAdd,
                        args[1],
                        vec![factors[0], factors[1], args[0]],
                    ))
                }
                _ => None,
            };
            match merged {
                Some((op, product, args)) => {
                    absorbed.insert(product, ());
                    plans.push((id, op, args));
                }
                None => plans.push((id, MapOp::Elem(op), args.to_vec())),
            }
        }
        let mut sinks: Vec<(Sink, Vec<NodeId>)> = Vec::with_capacity(draft.sinks.len());
        for sink in draft.sinks {
            let factors = if absorbable(self, sink.source, ElemOp::Mul) {
                Some(graph.args(sink.source).to_vec())
            } else if absorbable(self, sink.source, ElemOp::Square) {
                Some(vec![graph.args(sink.source)[0]; 2])
            } else {
                None
            };
            match factors {
                Some(factors) => {
                    absorbed.insert(sink.source, ());
                    sinks.push((sink, factors));
                }
                None => sinks.push((sink, vec![sink.source])),
            }
        }
        plans.retain(|(id, ..)| !absorbed.contains_key(id));

        // Last use of each register value, by position.
        let mut last_use: HashMap<NodeId, usize> = HashMap::new();
        let positions = plans
            .iter()
            .map(|plan| &plan.2)
            .chain(sinks.iter().map(|sink| &sink.1));
        for (position, args) in positions.enumerate() {
            args.iter().for_each(|&arg| {
                last_use.insert(arg, position);
            });
        }
        // Sinks run right after their last operand is made, which frees registers early.
        let made: HashMap<NodeId, usize> = plans
            .iter()
            .enumerate()
            .map(|(k, plan)| (plan.0, k))
            .collect();
        let mut schedule: Vec<(usize, usize)> = (0..plans.len()).map(|k| (k, usize::MAX)).collect();
        for (k, (_, args)) in sinks.iter().enumerate() {
            let after = args.iter().filter_map(|arg| made.get(arg)).max().copied();
            schedule.push((after.unwrap_or(0), k));
        }
        schedule.sort_by_key(|&(position, sink)| (position, sink != usize::MAX, sink));
        let order: Vec<(bool, usize)> = schedule
            .into_iter()
            .map(|(position, sink)| {
                if sink == usize::MAX {
                    (true, position)
                } else {
                    (false, sink)
                }
            })
            .collect();
        let mut last_use: HashMap<NodeId, usize> = last_use.keys().map(|&id| (id, 0)).collect();
        for (time, &(is_map, k)) in order.iter().enumerate() {
            let args = if is_map { &plans[k].2 } else { &sinks[k].1 };
            args.iter().for_each(|&arg| {
                last_use.insert(arg, time);
            });
        }

        let mut free: Vec<u32> = Vec::new();
        let mut in_use = 0_u32;
        let mut registers: HashMap<NodeId, u32> = HashMap::new();
        let mut instructions = Vec::with_capacity(order.len());
        for (time, &(is_map, k)) in order.iter().enumerate() {
            let nodes = if is_map { &plans[k].2 } else { &sinks[k].1 };
            let args: Vec<Arg> = nodes
                .iter()
                .map(|&arg| match registers.get(&arg) {
                    Some(&register) => Arg {
                        region: Region::Register(register),
                        offset: 0,
                        step: 1,
                        index: None,
                    },
                    None => self.operand(arg),
                })
                .collect();
            // Operations read a row before they write it, so a register freed here can be the target.
            for &arg in nodes {
                if last_use.get(&arg) == Some(&time)
                    && let Some(register) = registers.remove(&arg)
                {
                    free.push(register);
                }
            }
            if is_map {
                let (id, op, _) = &plans[k];
                let target = if kept(self, *id) {
                    let rows = self.new_rows(shape);
                    self.zeroed.push(false);
                    self.args_of.insert(*id, rows);
                    let Region::Arena(slot) = rows.region else {
                        unreachable!("rows of the arena")
                    };
                    Target::Rows { slot, offset: 0 }
                } else {
                    let register = free.pop().unwrap_or_else(|| {
                        in_use += 1;
                        in_use - 1
                    });
                    registers.insert(*id, register);
                    Target::Register(register)
                };
                instructions.push(self.map_instruction(*op, target, &args));
            } else {
                let sink = sinks[k].0;
                let instruction = self.sink_instruction(sink, args);
                instructions.push(instruction);
            }
        }
        self.registers = self.registers.max(in_use as usize);
        self.steps.push(Step::Fused {
            shape,
            instructions,
        });
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

    fn sink_instruction(&mut self, sink: Sink, mut args: Vec<Arg>) -> Instruction {
        let Region::Arena(slot) = self.args_of[&sink.node].region else {
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
        if args.len() == 2 && args[0].is_splat() {
            args.swap(0, 1);
        }
        if args[0].is_splat() {
            // Shared values only: through a copied row.
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
