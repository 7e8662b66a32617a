//! Runs straight-line code over rows of lanes. Bodies of solvers in scalar form are executed in this way.
//!
//! A [`Program`](super::Program) is designed for kernels over many rows. On a single row of 64 lanes, dispatching an
//! instruction costs several times as much as the eight vector operations that it performs. The body of a solver
//! consists of about a dozen instructions, and each instruction processes one row. The body runs tens of thousands of
//! times per second. Here, a single function runs all operations. Their operands are rows at known positions, and the
//! last result is written directly to the caller's rows. For a right-hand side of ten operations, this code takes a
//! third of the time of a [`Program`](super::Program).

use std::collections::HashMap;

use jensen_math::simd::{F64x8, LANES, Simd};

use crate::exec::kernels::{MapKernel, MapOp, Operand, map_kernel};
use crate::ir::{Graph, NodeId};
use crate::ops::{ElemOp, Op};

const BLOCK: usize = 64;

/// The regions that contain rows. Constants and registers come first, followed by the inputs and then by the outputs.
const CONSTANTS: u32 = 0;
const REGISTERS: u32 = 1;
const INPUTS: u32 = 2;

/// The largest numbers of inputs and outputs of a body. The inputs are the time, and two copies each of the states, the
/// parameters and the weights. The outputs are the derivatives of both copies with respect to the states and the
/// parameters.
const MOST_INPUTS: usize = 7;
const MOST_OUTPUTS: usize = 4;
const OUTPUTS: u32 = INPUTS + MOST_INPUTS as u32;
const REGIONS: usize = OUTPUTS as usize + MOST_OUTPUTS;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct RowAddress {
    region: u32,
    row: u32,
}

/// The work of an instruction. The interpreter itself runs common operations, and calls a kernel for any other
/// operation.
#[derive(Clone, Copy)]
enum Work {
    Copy,
    Neg,
    Add,
    Sub,
    Mul,
    Div,
    Recip,
    Square,
    Sqrt,
    Fma,
    MulSub,
    NegMulAdd,
    Kernel(MapKernel),
}

#[derive(Clone, Copy)]
struct Instruction {
    work: Work,
    out: RowAddress,
    args: [RowAddress; 3],
}

#[derive(Clone, Copy)]
struct Region {
    base: *mut f64,
    stride: usize,
}

/// The code of a graph in which all values are numbers. It is immutable while it runs, so threads can share it.
pub(crate) struct Bytecode {
    code: Vec<Instruction>,
    constants: Vec<f64>,
    registers: usize,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    simd: Simd,
}

pub(crate) struct BytecodeArena {
    constants: Vec<f64>,
    registers: Vec<f64>,
}

/// Computes `out = f(lane)` for all lanes, one SIMD vector at a time.
///
/// # Safety
/// `out` must have `lanes` lanes, and `lanes` must be a multiple of the vector length.
#[inline(always)]
unsafe fn each<V: F64x8>(lanes: usize, out: *mut f64, f: impl Fn(usize) -> V) {
    let mut at = 0;
    while at < lanes {
        // SAFETY: the row consists of whole vectors, and this is one of them.
        unsafe { f(at).store(out.add(at)) };
        at += LANES;
    }
}

jensen_math::simd_fn! {
    fn execute, execute_fn = <V>(code: &[Instruction], regions: &[Region; REGIONS], lanes: usize) {
        // SAFETY: `Bytecode::run` supplies regions that contain all rows of the code. Each row has `lanes` lanes and
        // consists of whole vectors. Only registers and outputs are written, and there are no other references to them
        // at this time.
        unsafe {
            for instruction in code {
                let row = |row: RowAddress| {
                    let Region { base, stride } = *regions.get_unchecked(row.region as usize);
                    base.add(row.row as usize * stride)
                };
                let out = row(instruction.out);
                let [a, b, c] = instruction.args;
                let (a, b, c) = (row(a), row(b), row(c));
                let (x, y, z) = (
                    #[inline(always)]
                    |at: usize| V::load(a.add(at)),
                    #[inline(always)]
                    |at: usize| V::load(b.add(at)),
                    #[inline(always)]
                    |at: usize| V::load(c.add(at)),
                );
                match instruction.work {
                    Work::Copy => each(lanes, out, x),
                    Work::Neg => each(lanes, out, #[inline(always)] |at| x(at).neg()),
                    Work::Add => each(lanes, out, #[inline(always)] |at| x(at).add(y(at))),
                    Work::Sub => each(lanes, out, #[inline(always)] |at| x(at).sub(y(at))),
                    Work::Mul => each(lanes, out, #[inline(always)] |at| x(at).mul(y(at))),
                    Work::Div => each(lanes, out, #[inline(always)] |at| x(at).div(y(at))),
                    Work::Recip => each(lanes, out, #[inline(always)] |at| V::splat(1.0).div(x(at))),
                    Work::Square => each(lanes, out, #[inline(always)] |at| x(at).mul(x(at))),
                    Work::Sqrt => each(lanes, out, #[inline(always)] |at| x(at).sqrt()),
                    Work::Fma => each(lanes, out, #[inline(always)] |at| x(at).fma(y(at), z(at))),
                    Work::MulSub => each(lanes, out, #[inline(always)] |at| x(at).fma(y(at), z(at).neg())),
                    Work::NegMulAdd => each(lanes, out, #[inline(always)] |at| x(at).neg().fma(y(at), z(at))),
                    Work::Kernel(kernel) => {
                        let operands = [a, b, c].map(|base| Operand { base, ..Operand::NONE });
                        kernel(out, operands.as_ptr(), 1, lanes);
                    }
                }
            }
        }
    }
}

impl Bytecode {
    /// Translates a graph in which every value except the inputs is a single number. `outputs` contains the length of
    /// each output of the code. The graph has one output for each element of each output of the code, in the same
    /// order. Returns `None` if the graph contains a value or an operation that the code does not support.
    pub fn new(graph: &Graph, outputs: Vec<usize>, simd: Simd) -> Option<Self> {
        let inputs: Vec<usize> = graph.inputs().iter().map(|input| input.len).collect();
        if inputs.len() > MOST_INPUTS || outputs.len() > MOST_OUTPUTS {
            return None;
        }
        let mut writer = Writer::new(graph, simd)?;
        let rows = outputs.iter().zip(OUTPUTS..);
        let rows = rows
            .flat_map(|(len, region)| (0..*len as u32).map(move |row| RowAddress { region, row }));
        let targets: Vec<(NodeId, RowAddress)> =
            graph.outputs().iter().copied().zip(rows).collect();
        writer.write(&targets);
        Some(Self {
            code: writer.code,
            constants: writer.constants,
            registers: writer.registers as usize,
            inputs,
            outputs,
            simd,
        })
    }

    pub fn block(&self) -> usize {
        BLOCK
    }

    pub fn simd(&self) -> Simd {
        self.simd
    }

    pub fn work(&self) -> usize {
        self.code.len()
    }

    pub fn arena(&self) -> BytecodeArena {
        let constants = self.constants.iter();
        BytecodeArena {
            constants: constants.flat_map(|x| [*x; BLOCK]).collect(),
            registers: vec![0.0; self.registers * BLOCK],
        }
    }

    /// Writes all outputs of a block of `lanes` lanes. `lanes` must be a multiple of the vector length.
    pub fn run(
        &self,
        arena: &mut BytecodeArena,
        inputs: &[&[f64]],
        lanes: usize,
        outputs: &mut [&mut [f64]],
    ) {
        assert!(
            lanes.is_multiple_of(LANES) && lanes <= BLOCK,
            "whole vectors, at most one block"
        );
        assert!(
            self.inputs.len() == inputs.len() && self.outputs.len() == outputs.len(),
            "the inputs and outputs of the body"
        );
        let nothing = Region {
            base: std::ptr::null_mut(),
            stride: 0,
        };
        let mut regions = [nothing; REGIONS];
        regions[CONSTANTS as usize] = Region {
            base: arena.constants.as_mut_ptr(),
            stride: BLOCK,
        };
        regions[REGISTERS as usize] = Region {
            base: arena.registers.as_mut_ptr(),
            stride: BLOCK,
        };
        for ((input, len), region) in inputs.iter().zip(&self.inputs).zip(INPUTS as usize..) {
            assert!(input.len() >= len * lanes, "an input has all its rows");
            // Inputs are only read.
            let base = input.as_ptr().cast_mut();
            let stride = lanes;
            regions[region] = Region { base, stride };
        }
        for ((output, len), region) in outputs
            .iter_mut()
            .zip(&self.outputs)
            .zip(OUTPUTS as usize..)
        {
            assert!(output.len() >= len * lanes, "an output has all its rows");
            let (base, stride) = (output.as_mut_ptr(), lanes);
            regions[region] = Region { base, stride };
        }
        execute(self.simd, &self.code, &regions, lanes);
    }
}

struct Writer<'a> {
    graph: &'a Graph,
    simd: Simd,
    code: Vec<Instruction>,
    constants: Vec<f64>,
    registers: u32,
    free: Vec<u32>,
    position: HashMap<NodeId, RowAddress>,
    reads: Vec<u32>,
    merged: Vec<bool>,
}

fn merging(op: ElemOp, which: usize) -> Option<Work> {
    match (op, which) {
        (ElemOp::Add, _) => Some(Work::Fma),
        (ElemOp::Sub, 0) => Some(Work::MulSub),
        (ElemOp::Sub, _) => Some(Work::NegMulAdd),
        _ => None,
    }
}

impl<'a> Writer<'a> {
    /// Creates the translator. Returns `None` if some value is not a single number.
    fn new(graph: &'a Graph, simd: Simd) -> Option<Self> {
        let mut writer = Self {
            graph,
            simd,
            code: Vec::new(),
            constants: Vec::new(),
            registers: 0,
            free: Vec::new(),
            position: HashMap::new(),
            reads: vec![0; graph.len()],
            merged: vec![false; graph.len()],
        };
        for id in graph.ids() {
            match graph.op(id) {
                Op::Const(table) => {
                    let [value] = **graph.const_data(table) else {
                        return None;
                    };
                    let row = writer.constants.len() as u32;
                    writer.constants.push(value);
                    let region = CONSTANTS;
                    writer.position.insert(id, RowAddress { region, row });
                }
                Op::Input(slot) => {
                    let region = INPUTS + slot;
                    writer.position.insert(id, RowAddress { region, row: 0 });
                }
                Op::Gather(index) => {
                    let source = graph.args(id)[0];
                    let ([row], Op::Input(slot)) = (&**graph.index_data(index), graph.op(source))
                    else {
                        return None;
                    };
                    let (region, row) = (INPUTS + slot, *row);
                    writer.position.insert(id, RowAddress { region, row });
                }
                Op::Elem(_) if graph.shape(id).is_scalar() => {
                    for arg in graph.args(id) {
                        writer.reads[arg.index()] += 1;
                    }
                }
                _ => return None,
            }
        }
        Some(writer)
    }

    fn write(&mut self, targets: &[(NodeId, RowAddress)]) {
        let mut own: HashMap<NodeId, RowAddress> = HashMap::new();
        for (id, row) in targets {
            own.entry(*id).or_insert(*row);
        }
        let elementwise: Vec<(NodeId, ElemOp)> = self
            .graph
            .ids()
            .filter_map(|id| match self.graph.op(id) {
                Op::Elem(op) => Some((id, op)),
                _ => None,
            })
            .collect();
        let mut tasks = Vec::with_capacity(elementwise.len());
        for (id, op) in elementwise {
            let (work, args) = self.task(id, op, &own);
            tasks.push((id, work, args));
        }
        for (id, work, args) in tasks {
            if self.merged[id.index()] {
                continue;
            }
            let positions: Vec<RowAddress> = args.iter().map(|arg| self.position[arg]).collect();
            // An operation reads its operands before it writes its row, one vector at a time. The target may therefore
            // be a row that is freed here.
            for arg in &args {
                self.reads[arg.index()] -= 1;
                let RowAddress { region, row } = self.position[arg];
                if region == REGISTERS && self.reads[arg.index()] == 0 {
                    self.free.push(row);
                }
            }
            let out = own.get(&id).copied().unwrap_or_else(|| self.register());
            self.position.insert(id, out);
            let last = positions[positions.len() - 1];
            let at = |k: usize| positions.get(k).copied().unwrap_or(last);
            let args = [at(0), at(1), at(2)];
            self.code.push(Instruction { work, out, args });
        }
        for (id, out) in targets {
            let from = self.position[id];
            if from != *out {
                let (work, out, args) = (Work::Copy, *out, [from; 3]);
                self.code.push(Instruction { work, out, args });
            }
        }
    }

    fn task(
        &mut self,
        id: NodeId,
        op: ElemOp,
        own: &HashMap<NodeId, RowAddress>,
    ) -> (Work, Vec<NodeId>) {
        let graph = self.graph;
        let args = graph.args(id);
        let product = (0..args.len()).find(|which| {
            let arg = args[*which];
            graph.op(arg) == Op::Elem(ElemOp::Mul)
                && self.reads[arg.index()] == 1
                && !own.contains_key(&arg)
                && merging(op, *which).is_some()
        });
        if let Some(which) = product
            && let Some(work) = merging(op, which)
        {
            let product = args[which];
            self.merged[product.index()] = true;
            let factors = graph.args(product);
            return (work, vec![factors[0], factors[1], args[1 - which]]);
        }
        let work = match op {
            ElemOp::Neg => Work::Neg,
            ElemOp::Add => Work::Add,
            ElemOp::Sub => Work::Sub,
            ElemOp::Mul => Work::Mul,
            ElemOp::Div => Work::Div,
            ElemOp::Recip => Work::Recip,
            ElemOp::Square => Work::Square,
            ElemOp::Sqrt => Work::Sqrt,
            ElemOp::Fma => Work::Fma,
            _ => Work::Kernel(map_kernel(MapOp::Elem(op), self.simd, [false; 3])),
        };
        (work, args.to_vec())
    }

    fn register(&mut self) -> RowAddress {
        let row = self.free.pop().unwrap_or_else(|| {
            self.registers += 1;
            self.registers - 1
        });
        let region = REGISTERS;
        RowAddress { region, row }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a graph that contains every kind of instruction. The outputs include operands, inputs, constants, and one
    /// value that occurs twice.
    fn graph() -> Graph {
        let mut g = Graph::new();
        let (clock, states) = (g.input(1), g.input(3));
        let [x, y, z] = [0, 1, 2].map(|i| g.element(states, i));
        let two = g.constant(2.0);
        let xy = g.mul(x, y);
        let merged = [g.add(xy, z), {
            let yz = g.mul(y, z);
            g.sub(yz, clock)
        }];
        let xz = g.mul(x, z);
        let less = g.sub(clock, xz);
        let kept = g.mul(less, two);
        let twice = g.add(kept, merged[0]);
        let fma = g.elem(ElemOp::Fma, &[x, twice, y]);
        let ratio = g.div(fma, z);
        let back = g.recip(ratio);
        let square = g.square(back);
        let positive = g.add(square, two);
        let root = g.sqrt(positive);
        let negative = g.neg(root);
        let wave = g.elem(ElemOp::Sin, &[negative]);
        let higher = g.elem(ElemOp::Fmax, &[wave, merged[1]]);
        let chosen = g.select(higher, less, wave);
        g.set_outputs(vec![twice, kept, chosen, x, two, chosen, higher]);
        g
    }

    #[test]
    fn code_gives_what_the_slow_evaluator_gives() {
        let graph = graph();
        for simd in Simd::available() {
            let bytecode = Bytecode::new(&graph, vec![3, 0, 4], simd).expect("numbers");
            let mut arena = bytecode.arena();
            for lanes in [8, 24, BLOCK] {
                let row = |salt: usize| (0..lanes).map(move |l| 0.3 + (7 * l + salt) as f64 % 11.0);
                let clock: Vec<f64> = row(5).collect();
                let states: Vec<f64> = (1..4).flat_map(row).collect();
                let (mut first, mut last) = (vec![0.0; 3 * lanes], vec![0.0; 4 * lanes]);
                let outputs = &mut [&mut first[..], &mut [], &mut last[..]];
                bytecode.run(&mut arena, &[&clock, &states], lanes, outputs);
                for lane in 0..lanes {
                    let own = [0, 1, 2].map(|i| states[i * lanes + lane]);
                    let expected = crate::evaluate(&graph, &[&clock[lane..=lane], &own], None);
                    let found = first.chunks(lanes).chain(last.chunks(lanes));
                    for (k, (found, expected)) in found.zip(&expected).enumerate() {
                        let (found, expected) = (found[lane], expected[0]);
                        let off = (found - expected).abs();
                        assert!(
                            off <= 1e-13 * expected.abs().max(1.0),
                            "{simd}, {lanes} lanes, output {k}: {found}, {expected}"
                        );
                    }
                }
            }
        }
    }
}
