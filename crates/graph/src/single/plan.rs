//! Plans the steps that a program runs over blocks of lanes, and the locations of values.
//!
//! [`Stages`] groups elementwise values into kernels, in the same way as for the double-precision executor. A product
//! with a shared matrix is a single step for the whole block.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jensen_math::simd::Simd;

use crate::exec::memory::{Slot, allocate};
use crate::exec::stages::{KernelDraft, Role, Sink, Stages};
use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{ElemOp, MatMul, Op, ScatterMap};
use crate::single::Unsupported;
use crate::single::kernels::{MapKernel, map_kernel};

pub(super) const TILE: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    Pool,
    SharedInput(u32),
    LaneInput(u32),
    Shared,
    /// A value that is stored for all lanes. Its location is `offset` times the number of lanes.
    Kept,
    /// A value that is stored for one block. During planning, `offset` is the number of its slot. Afterwards, its
    /// location is `offset` times the number of lanes.
    Block,
    Register,
}

/// The location of a value, or of some of its elements. Element i of lane l is `l * stride + i` elements after the
/// first element of the value. For a value that is the same in all elements, i is always 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Location {
    pub region: Region,
    pub offset: usize,
    /// The offset, in elements, of a part of a value from the start of the value's first lane. For a whole value, it is
    /// 0.
    pub inner: usize,
    pub stride: usize,
    pub uniform: bool,
}

#[derive(Clone)]
pub(super) enum Instruction {
    Map {
        op: ElemOp,
        kernel: Option<MapKernel>,
        target: Location,
        args: [Location; 3],
        arity: usize,
    },
    Sum {
        target: Location,
        arg: Location,
    },
}

type Map = (NodeId, ElemOp, Vec<NodeId>);

/// Returns whether all operands and targets of the operations are stored as rows of `len` elements, one row per lane.
fn in_rows(instructions: &[Instruction], len: usize) -> bool {
    let row = |location: &Location| match location.region {
        Region::Register => true,
        _ if location.uniform => location.stride == 0 || len == 1,
        _ => location.stride == len,
    };
    instructions.iter().all(|instruction| match instruction {
        Instruction::Map {
            target,
            args,
            arity,
            ..
        } => row(target) && args[..*arity].iter().all(row),
        Instruction::Sum { .. } => false,
    })
}

/// Consecutive elements of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub first: usize,
    pub len: usize,
}

/// Divides a list of elements into spans. The windows of a convolution consist of long spans, which are copied faster than
/// single elements.
fn spans(index: &[u32]) -> Arc<[Span]> {
    let mut spans: Vec<Span> = Vec::new();
    for first in index.iter().map(|i| *i as usize) {
        match spans.last_mut() {
            Some(last) if last.first + last.len == first => last.len += 1,
            _ => spans.push(Span { first, len: 1 }),
        }
    }
    spans.into()
}

#[derive(Clone)]
pub(super) enum Step {
    /// Makes one pass over `len` elements of every lane. `flat` is true if the lanes are contiguous in memory.
    Fused {
        len: usize,
        flat: bool,
        instructions: Vec<Instruction>,
    },
    /// Computes a matrix product. If the left factor is shared, the step is a single product for the whole block.
    Product {
        target: Location,
        left: Location,
        right: Location,
        dims: MatMul,
        whole: bool,
    },
    /// Copies elements of a value into a row of `target`. If `spans` are given, copies only their elements.
    Copy {
        target: Location,
        source: Location,
        spans: Option<Arc<[Span]>>,
        len: usize,
    },
    /// Sets all elements of the target to zero.
    Zero { target: Location, len: usize },
    /// Adds elements to the elements of the target that the spans list.
    Scatter {
        target: Location,
        source: Location,
        spans: Arc<[Span]>,
    },
    Max {
        target: Location,
        source: Location,
        len: usize,
    },
    CumSum {
        target: Location,
        source: Location,
        len: usize,
        reverse: bool,
    },
}

#[derive(Clone, Default)]
pub(super) struct Plan {
    pub steps: Vec<Step>,
    /// The number of elements of block memory that each lane needs.
    pub block_len: usize,
    pub registers: usize,
}

pub(super) struct Planner<'a> {
    graph: &'a Graph,
    simd: Simd,
    stages: Stages,
    locations: &'a mut HashMap<NodeId, Location>,
    /// The targets that are elements of other values and that no step has copied yet.
    not_copied: HashSet<NodeId>,
    slots: Vec<Slot>,
    steps: Vec<Step>,
    registers: usize,
}

impl<'a> Planner<'a> {
    /// Plans the computation of `targets`. `locations` must already contain the locations of the targets and of all
    /// `known` values.
    pub(super) fn plan(
        graph: &'a Graph,
        simd: Simd,
        targets: &[NodeId],
        known: impl Fn(NodeId) -> bool,
        locations: &'a mut HashMap<NodeId, Location>,
    ) -> Result<Plan, Unsupported> {
        let stages = Stages::from_known(graph, targets, known);
        let (kernels, mut dense) = stages.kernels(graph);
        let is_view = |id: &NodeId| stages.roles[id.index()] == Role::View;
        let mut planner = Self {
            graph,
            simd,
            not_copied: targets.iter().copied().filter(is_view).collect(),
            stages,
            locations,
            slots: Vec::new(),
            steps: Vec::new(),
            registers: 0,
        };
        // Scatters are initialised to zero, because several kernels may add to them. If a scatter adds to another
        // scatter, both have the same location.
        for id in graph.ids().rev() {
            if planner.stages.needed[id.index()]
                && planner.stages.roles[id.index()] == Role::Sink
                && matches!(graph.op(id), Op::Scatter(_))
            {
                let target = planner.target(id);
                match planner.stages.continued_scatter(graph, id) {
                    Some(source) => {
                        planner.locations.insert(source, target);
                    }
                    None => planner.steps.push(Step::Zero {
                        target,
                        len: graph.shape(id).len as usize,
                    }),
                }
            }
        }
        let mut order: Vec<u32> = kernels
            .keys()
            .map(|key| key.0)
            .chain(dense.keys().copied())
            .collect();
        order.sort_unstable();
        order.dedup();
        let mut kernels = kernels.into_iter().peekable();
        for stage in order {
            while let Some(((_, shape), draft)) = kernels.next_if(|entry| entry.0.0 == stage) {
                planner.kernel(shape, draft)?;
            }
            for id in dense.remove(&stage).unwrap_or_default() {
                planner.dense(id)?;
            }
        }
        // No step has read these targets.
        for id in targets {
            if planner.not_copied.contains(id) {
                planner.operand(*id)?;
            }
        }
        Ok(planner.finish())
    }

    fn target(&mut self, id: NodeId) -> Location {
        if let Some(&location) = self.locations.get(&id) {
            return location;
        }
        let location = self.new_slot(self.graph.shape(id).len as usize);
        self.locations.insert(id, location);
        location
    }

    fn new_slot(&mut self, len: usize) -> Location {
        self.slots.push(Slot {
            rows: len,
            first: usize::MAX,
            last: 0,
            offset: 0,
        });
        Location {
            region: Region::Block,
            offset: self.slots.len() - 1,
            inner: 0,
            stride: len,
            uniform: false,
        }
    }

    fn operand(&mut self, id: NodeId) -> Result<Location, Unsupported> {
        if self.not_copied.remove(&id) {
            return self.copied(id);
        }
        if let Some(&location) = self.locations.get(&id) {
            let uniform = self.graph.shape(id).is_scalar();
            return Ok(Location {
                uniform,
                ..location
            });
        }
        if let Some(view) = self.view(id)? {
            return Ok(view);
        }
        let target = self.new_slot(self.graph.shape(id).len as usize);
        self.locations.insert(id, target);
        self.gather(id, target)?;
        Ok(target)
    }

    /// Copies a target that consists of elements of another value to its location.
    fn copied(&mut self, id: NodeId) -> Result<Location, Unsupported> {
        let target = self.locations[&id];
        match self.view(id)? {
            Some(source) => self.steps.push(Step::Copy {
                target,
                source,
                spans: None,
                len: self.graph.shape(id).len as usize,
            }),
            None => self.gather(id, target)?,
        }
        self.operand(id)
    }

    /// Returns the location of a broadcast or of gathered elements, or `None` if the elements are not contiguous.
    fn view(&mut self, id: NodeId) -> Result<Option<Location>, Unsupported> {
        let location = match self.graph.op(id) {
            Op::Broadcast => {
                let base = self.operand(self.graph.args(id)[0])?;
                Location {
                    uniform: true,
                    ..base
                }
            }
            Op::Gather(index) => {
                let base = self.operand(self.graph.args(id)[0])?;
                let list = self.graph.index_data(index);
                let first = list.first().copied().unwrap_or(0);
                let contiguous = list.iter().enumerate().all(|(k, &i)| i == first + k as u32);
                let constant = list.iter().all(|&i| i == first);
                if base.uniform {
                    base
                } else if contiguous || constant {
                    Location {
                        inner: base.inner + first as usize,
                        uniform: !contiguous || list.len() == 1,
                        ..base
                    }
                } else {
                    return Ok(None);
                }
            }
            op => return Err(Unsupported::op(op)),
        };
        Ok(Some(location))
    }

    /// Copies gathered elements to `target`.
    fn gather(&mut self, id: NodeId, target: Location) -> Result<(), Unsupported> {
        let Op::Gather(index) = self.graph.op(id) else {
            return Err(Unsupported::op(self.graph.op(id)));
        };
        let list = self.graph.index_data(index).clone();
        let source = self.operand(self.graph.args(id)[0])?;
        self.steps.push(Step::Copy {
            target,
            source,
            len: list.len(),
            spans: Some(spans(&list)),
        });
        Ok(())
    }

    fn kernel(&mut self, shape: Shape, draft: KernelDraft) -> Result<(), Unsupported> {
        let len = shape.len as usize;
        let inside = draft.reads(self.graph, |sink| sink.map.is_none());
        let maps = self.merged(&draft, &inside);
        let (sums, scatters): (Vec<_>, Vec<_>) =
            draft.sinks.into_iter().partition(|sink| sink.map.is_none());
        let read = self.read(&maps, &sums, len)?;
        let instructions = self.instructions(&maps, &sums, read, &inside);
        if !instructions.is_empty() {
            let flat = sums.is_empty() && in_rows(&instructions, len);
            self.steps.push(Step::Fused {
                len,
                flat,
                instructions,
            });
        }
        for sink in scatters {
            let target = self.target(sink.node);
            let source = self.operand(sink.source)?;
            let spans = match sink.map {
                Some(ScatterMap::Index(index)) => spans(self.graph.index_data(index)),
                Some(ScatterMap::All) => [Span { first: 0, len }].into(),
                _ => return Err(Unsupported::records()),
            };
            self.steps.push(Step::Scatter {
                target,
                source,
                spans,
            });
        }
        Ok(())
    }

    /// Returns the operations of a kernel with their operands. A product is merged with the addition that uses it if
    /// the product has no other user.
    fn merged(&self, draft: &KernelDraft, inside: &HashMap<NodeId, u32>) -> Vec<Map> {
        let graph = self.graph;
        let sole = |id: NodeId| {
            graph.elem_op(id) == Some(ElemOp::Mul)
                && inside.get(&id) == Some(&1)
                && self.stages.uses[id.index()] == 1
                && !self.locations.contains_key(&id)
        };
        let mut absorbed: Vec<NodeId> = Vec::new();
        let mut maps: Vec<Map> = Vec::with_capacity(draft.maps.len());
        for &id in &draft.maps {
            let op = graph.elem_op(id).expect("a map");
            let args = graph.args(id).to_vec();
            let product = match op {
                ElemOp::Add => (0..2).find(|&which| sole(args[which])),
                _ => None,
            };
            maps.push(match product {
                Some(which) => {
                    let factors = graph.args(args[which]);
                    absorbed.push(args[which]);
                    (
                        id,
                        ElemOp::Fma,
                        vec![factors[0], factors[1], args[1 - which]],
                    )
                }
                None => (id, op, args),
            });
        }
        maps.retain(|(id, ..)| !absorbed.contains(id));
        maps
    }

    /// Determines where the operands are in memory. This must happen before the kernel is added, because reading an
    /// operand may add a step.
    fn read(
        &mut self,
        maps: &[Map],
        sums: &[Sink],
        len: usize,
    ) -> Result<HashMap<NodeId, Location>, Unsupported> {
        let made: HashSet<NodeId> = maps.iter().map(|map| map.0).collect();
        let mut read: HashMap<NodeId, Location> = HashMap::new();
        let sources = sums.iter().map(|sink| &sink.source);
        for &arg in maps.iter().flat_map(|(_, _, args)| args).chain(sources) {
            if !made.contains(&arg) && !read.contains_key(&arg) {
                let location = self.operand(arg)?;
                let location = self.lane_contiguous(location, len);
                read.insert(arg, location);
            }
        }
        Ok(read)
    }

    /// Returns the instructions for operations and sums. Values that no node outside the kernel uses stay in registers.
    fn instructions(
        &mut self,
        maps: &[Map],
        sums: &[Sink],
        read: HashMap<NodeId, Location>,
        inside: &HashMap<NodeId, u32>,
    ) -> Vec<Instruction> {
        let mut last_use: HashMap<NodeId, usize> = HashMap::new();
        for (time, (_, _, args)) in maps.iter().enumerate() {
            last_use.extend(args.iter().map(|&arg| (arg, time)));
        }
        last_use.extend(sums.iter().map(|sink| (sink.source, usize::MAX)));
        let mut free: Vec<usize> = Vec::new();
        let mut in_use = 0;
        let mut at = read;
        let mut instructions = Vec::with_capacity(maps.len() + sums.len());
        for (time, (id, op, args)) in maps.iter().enumerate() {
            let mut locations = [Location::NONE; 3];
            for (location, arg) in locations.iter_mut().zip(args) {
                *location = at[arg];
            }
            // Operations read elements before they write them, so the result may be written to a register that is freed
            // here.
            for arg in args {
                if last_use.get(arg) == Some(&time)
                    && let Some(location) = at.get(arg)
                    && location.region == Region::Register
                {
                    free.push(location.offset);
                    at.remove(arg);
                }
            }
            let kept = self.locations.contains_key(id) || self.stages.uses[id.index()] > inside[id];
            let target = if kept {
                self.target(*id)
            } else {
                let register = free.pop().unwrap_or_else(|| {
                    in_use += 1;
                    in_use - 1
                });
                Location {
                    region: Region::Register,
                    offset: register,
                    inner: 0,
                    stride: 0,
                    uniform: false,
                }
            };
            at.insert(*id, target);
            instructions.push(Instruction::Map {
                op: *op,
                kernel: map_kernel(*op, self.simd),
                target,
                args: locations,
                arity: args.len(),
            });
        }
        for sink in sums {
            let target = self.target(sink.node);
            instructions.push(Instruction::Sum {
                target,
                arg: at[&sink.source],
            });
        }
        self.registers = self.registers.max(in_use);
        instructions
    }

    /// Stores a value with one element per lane so that the lanes are contiguous in memory. Kernels over scalars
    /// require this layout.
    fn lane_contiguous(&mut self, location: Location, len: usize) -> Location {
        if len != 1 || location.stride <= 1 {
            return location;
        }
        let target = self.new_slot(1);
        self.steps.push(Step::Copy {
            target,
            source: location,
            spans: None,
            len: 1,
        });
        Location {
            uniform: true,
            ..target
        }
    }

    fn dense(&mut self, id: NodeId) -> Result<(), Unsupported> {
        let graph = self.graph;
        let args = graph.args(id).to_vec();
        let len = graph.shape(id).len as usize;
        match graph.op(id) {
            Op::MatMul(dims) => {
                let left = self.stored(args[0])?;
                let right = self.stored(args[1])?;
                let target = self.target(id);
                let columns = (dims.k * dims.n) as usize;
                let whole = left.stride == 0
                    && right.stride != 0
                    && (dims.n == 1
                        || ((!dims.right_transposed || dims.k == 1) && right.stride == columns));
                self.steps.push(Step::Product {
                    target,
                    left,
                    right,
                    dims,
                    whole,
                });
            }
            Op::Concat => {
                let mut target = self.target(id);
                for arg in args {
                    let source = self.operand(arg)?;
                    let len = graph.shape(arg).len as usize;
                    self.steps.push(Step::Copy {
                        target,
                        source,
                        spans: None,
                        len,
                    });
                    target.inner += len;
                }
            }
            Op::Max => {
                let source = self.operand(args[0])?;
                let target = self.target(id);
                self.steps.push(Step::Max {
                    target,
                    source,
                    len: graph.shape(args[0]).len as usize,
                });
            }
            Op::CumSum { reverse } => {
                let source = self.operand(args[0])?;
                let target = self.target(id);
                self.steps.push(Step::CumSum {
                    target,
                    source,
                    len,
                    reverse,
                });
            }
            op => return Err(Unsupported::op(op)),
        }
        Ok(())
    }

    fn stored(&mut self, id: NodeId) -> Result<Location, Unsupported> {
        let len = self.graph.shape(id).len as usize;
        let location = self.operand(id)?;
        if !location.uniform || len == 1 {
            return Ok(location);
        }
        let target = self.new_slot(len);
        self.steps.push(Step::Copy {
            target,
            source: location,
            spans: None,
            len,
        });
        Ok(target)
    }

    fn finish(mut self) -> Plan {
        let mut touched: Vec<(usize, usize)> = Vec::new();
        for (time, step) in self.steps.iter_mut().enumerate() {
            step.visit(&mut |location| {
                if location.region == Region::Block {
                    touched.push((location.offset, time));
                }
            });
        }
        for (slot, time) in touched {
            let slot = &mut self.slots[slot];
            slot.first = slot.first.min(time);
            slot.last = slot.last.max(time);
        }
        let block_len = allocate(&mut self.slots);
        let slots = self.slots;
        for step in &mut self.steps {
            step.visit(&mut |location| {
                if location.region == Region::Block {
                    location.offset = slots[location.offset].offset;
                }
            });
        }
        Plan {
            steps: self.steps,
            block_len,
            registers: self.registers,
        }
    }
}

impl Location {
    pub(super) const NONE: Self = Self {
        region: Region::Pool,
        offset: 0,
        inner: 0,
        stride: 0,
        uniform: true,
    };
}

impl Step {
    fn visit(&mut self, each: &mut impl FnMut(&mut Location)) {
        match self {
            Self::Fused { instructions, .. } => {
                for instruction in instructions {
                    match instruction {
                        Instruction::Map {
                            target,
                            args,
                            arity,
                            ..
                        } => {
                            each(target);
                            args[..*arity].iter_mut().for_each(&mut *each);
                        }
                        Instruction::Sum { target, arg } => {
                            each(target);
                            each(arg);
                        }
                    }
                }
            }
            Self::Product {
                target,
                left,
                right,
                ..
            } => {
                each(target);
                each(left);
                each(right);
            }
            Self::Copy { target, source, .. }
            | Self::Scatter { target, source, .. }
            | Self::Max { target, source, .. }
            | Self::CumSum { target, source, .. } => {
                each(target);
                each(source);
            }
            Self::Zero { target, .. } => each(target),
        }
    }
}
