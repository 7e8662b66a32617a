//! Runs the steps of a plan over one block of lanes.

use crate::ops::MatMul;
use crate::single::kernels::{Run, run_sum, slow_map};
use crate::single::plan::{Instruction, Location, Plan, Region, Span, Step, TILE};
use crate::single::product::{View, multiply};
use crate::single::program::{Memory, SingleProgram};

pub(super) struct Runner<'a> {
    pub program: &'a SingleProgram,
    pub memory: Memory<'a>,
    pub block: *mut f32,
    pub registers: *mut f32,
    pub first: usize,
    pub lanes: usize,
}

fn tiles(total: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..total)
        .step_by(TILE)
        .map(move |start| (start, TILE.min(total - start)))
}

impl Runner<'_> {
    #[inline]
    unsafe fn at(&self, location: &Location) -> *mut f32 {
        // SAFETY: the offsets of the plan are inside the memory, whose size the program has chosen accordingly.
        unsafe {
            match location.region {
                Region::Block => self
                    .block
                    .add(location.offset * self.lanes + location.inner),
                Region::Register => self.registers.add(location.offset * TILE),
                _ => self.memory.at(location, self.first),
            }
        }
    }

    /// # Safety
    /// The inputs and the workspace must fit the program.
    pub(super) unsafe fn run(&self, plan: &Plan) {
        for step in &plan.steps {
            // SAFETY: these steps belong to the plan of the program that created the memory of this runner.
            unsafe { self.step(step) };
        }
    }

    unsafe fn rows(
        &self,
        target: &Location,
        source: &Location,
    ) -> impl Iterator<Item = (*mut f32, *const f32)> {
        // SAFETY: the offsets of the plan are inside the memory that the program created for the lanes of this block.
        let (to, from) = unsafe { (self.at(target), self.at(source)) };
        let (down, across) = (target.stride, source.stride);
        (0..self.lanes).map(move |lane| {
            (
                to.wrapping_add(lane * down),
                from.wrapping_add(lane * across).cast_const(),
            )
        })
    }

    /// Copies the elements of the spans to consecutive elements of the target.
    unsafe fn copy(&self, target: &Location, source: &Location, spans: &[Span]) {
        // SAFETY: the plan has created the spans from a list of elements of the source, and the target has as many
        // elements as the list.
        unsafe {
            for (mut to, from) in self.rows(target, source) {
                for span in spans {
                    if source.uniform {
                        (0..span.len).for_each(|i| *to.add(i) = *from);
                    } else {
                        let from = from.add(span.first);
                        (0..span.len).for_each(|i| *to.add(i) = *from.add(i));
                    }
                    to = to.add(span.len);
                }
            }
        }
    }

    /// Adds consecutive elements of the source to the elements of the spans.
    unsafe fn scatter(&self, target: &Location, source: &Location, spans: &[Span]) {
        // SAFETY: the plan has created the spans from a list of elements of the target, and the source has as many
        // elements as the list.
        unsafe {
            for (to, mut from) in self.rows(target, source) {
                for span in spans {
                    let to = to.add(span.first);
                    if source.uniform {
                        (0..span.len).for_each(|i| *to.add(i) += *from);
                    } else {
                        (0..span.len).for_each(|i| *to.add(i) += *from.add(i));
                        from = from.add(span.len);
                    }
                }
            }
        }
    }

    unsafe fn step(&self, step: &Step) {
        // SAFETY: the offsets of the plan are inside the memory that the program created. A target overlaps an operand
        // only if both are the same, element by element.
        unsafe {
            match step {
                Step::Fused {
                    len,
                    flat: true,
                    instructions,
                } => {
                    for (start, n) in tiles(len * self.lanes) {
                        for instruction in instructions {
                            self.flat(instruction, start, n);
                        }
                    }
                }
                Step::Fused {
                    len, instructions, ..
                } => {
                    for lane in 0..self.lanes {
                        for (start, n) in tiles(*len) {
                            for instruction in instructions {
                                self.row(instruction, lane, start, n);
                            }
                        }
                    }
                }
                Step::Product {
                    target,
                    left,
                    right,
                    dims,
                    whole,
                } => self.product(target, left, right, *dims, *whole),
                Step::Copy {
                    target,
                    source,
                    spans,
                    len,
                } => {
                    let whole = [Span {
                        first: 0,
                        len: *len,
                    }];
                    self.copy(target, source, spans.as_deref().unwrap_or(&whole));
                }
                Step::Zero { target, len } => {
                    for lane in 0..self.lanes {
                        let to = self.at(target).add(lane * target.stride);
                        std::ptr::write_bytes(to, 0, *len);
                    }
                }
                Step::Scatter {
                    target,
                    source,
                    spans,
                } => self.scatter(target, source, spans),
                Step::Max {
                    target,
                    source,
                    len,
                } => {
                    for (to, from) in self.rows(target, source) {
                        let elements =
                            (0..*len).map(|i| *from.add(if source.uniform { 0 } else { i }));
                        *to = elements.fold(f32::NEG_INFINITY, |m, x| {
                            if x.is_nan() || x > m { x } else { m }
                        });
                    }
                }
                Step::CumSum {
                    target,
                    source,
                    len,
                    reverse,
                } => {
                    for (to, from) in self.rows(target, source) {
                        let mut total = 0.0;
                        for k in 0..*len {
                            let i = if *reverse { len - 1 - k } else { k };
                            total += *from.add(if source.uniform { 0 } else { i });
                            *to.add(i) = total;
                        }
                    }
                }
            }
        }
    }

    /// Executes an instruction over `n` consecutive elements. The range may extend over several lanes.
    #[inline]
    unsafe fn flat(&self, instruction: &Instruction, start: usize, n: usize) {
        let Instruction::Map {
            op,
            kernel,
            target,
            args,
            arity,
        } = instruction
        else {
            unreachable!("sums run lane by lane")
        };
        // SAFETY: the offsets of the plan, for `len` elements in each lane, are inside the memory that the program
        // created.
        unsafe {
            let mut runs = [Run::NONE; 3];
            for (run, location) in runs.iter_mut().zip(&args[..*arity]) {
                let splat = location.region != Region::Register && location.stride == 0;
                let skip = if splat || location.region == Region::Register {
                    0
                } else {
                    start
                };
                *run = Run {
                    at: self.at(location).add(skip),
                    splat,
                };
            }
            let skip = if target.region == Region::Register {
                0
            } else {
                start
            };
            let dst = self.at(target).add(skip);
            match kernel {
                Some(kernel) => kernel(dst, runs.as_ptr(), n),
                None => slow_map(*op, dst, &runs[..*arity], n),
            }
        }
    }

    #[inline]
    unsafe fn run_of(&self, location: &Location, lane: usize, start: usize) -> Run {
        // SAFETY: the offset of the plan is inside the memory that the program created, and registers have room for a
        // tile.
        unsafe {
            let at = self.at(location);
            if location.region == Region::Register {
                return Run { at, splat: false };
            }
            let skip = if location.uniform { 0 } else { start };
            Run {
                at: at.add(lane * location.stride + skip),
                splat: location.uniform,
            }
        }
    }

    /// Executes an instruction over the elements `start .. start + n` of one lane.
    #[inline]
    unsafe fn row(&self, instruction: &Instruction, lane: usize, start: usize, n: usize) {
        // SAFETY: the offsets of the plan are inside the memory that the program created, and `first + n` is at most
        // the length of the value.
        unsafe {
            match instruction {
                Instruction::Map {
                    op,
                    kernel,
                    target,
                    args,
                    arity,
                } => {
                    let mut runs = [Run::NONE; 3];
                    for (run, location) in runs.iter_mut().zip(&args[..*arity]) {
                        *run = self.run_of(location, lane, start);
                    }
                    let dst = match target.region {
                        Region::Register => self.at(target),
                        _ => self.at(target).add(lane * target.stride + start),
                    };
                    match kernel {
                        Some(kernel) => kernel(dst, runs.as_ptr(), n),
                        None => slow_map(*op, dst, &runs[..*arity], n),
                    }
                }
                Instruction::Sum { target, arg } => {
                    let run = self.run_of(arg, lane, start);
                    let part = if run.splat {
                        n as f32 * *run.at
                    } else {
                        run_sum(self.program.simd, run.at, n)
                    };
                    let to = self.at(target).add(lane * target.stride);
                    *to = if start == 0 { part } else { *to + part };
                }
            }
        }
    }

    unsafe fn product(
        &self,
        target: &Location,
        left: &Location,
        right: &Location,
        dims: MatMul,
        whole: bool,
    ) {
        let (m, k, n) = (dims.m as usize, dims.k as usize, dims.n as usize);
        // SAFETY: the offsets of the plan are inside the memory that the program created, and the planner checked that
        // the strides are right for the whole product.
        unsafe {
            let a = View::stored(self.at(left), m, k, dims.left_transposed);
            if whole {
                let b = View {
                    at: self.at(right),
                    row_stride: 1,
                    column_stride: if n == 1 { right.stride } else { k },
                };
                let simd = self.program.simd;
                multiply(simd, self.at(target), m, a, b, m, k, n * self.lanes, false);
                return;
            }
            for lane in 0..self.lanes {
                let a = View {
                    at: a.at.add(lane * left.stride),
                    ..a
                };
                let at = self.at(right).add(lane * right.stride);
                let b = View::stored(at, k, n, dims.right_transposed);
                let to = self.at(target).add(lane * target.stride);
                multiply(self.program.simd, to, m, a, b, m, k, n, false);
            }
        }
    }
}
