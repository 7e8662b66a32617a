//! Runs the steps of a plan that call solvers. A solver runs the programs of its body many times.

use std::sync::Arc;

use jensen_math::simd::{LANES, Simd};

use crate::ending::{Ending, LONG, Patience};
use crate::exec::bytecode::{Bytecode, BytecodeArena};
use crate::exec::program::{Arena, Program};
use crate::ir::Graph;
use crate::ops::{Pass, Solver};
use crate::passes;
use crate::solver::{self, Engine, Kept, Roles};

pub(crate) struct Call {
    solver: Arc<Solver>,
    rough: Solver,
    pass: Pass,
    programs: Roles<Code>,
    group: usize,
    /// The index of this call's memo. Another pass with the same arguments uses the same memo.
    pub memo: Option<usize>,
}

/// The estimated number of runs of the body per solve. The estimate is used to divide work among threads.
const RUNS: usize = 200;

pub(crate) struct SolverScratch {
    arenas: Vec<Roles<Memory>>,
    /// The memos, each with one entry per group of lanes. A program clears them whenever it starts to run.
    memos: Vec<Vec<Kept>>,
    rough: bool,
    patience: Patience,
}

/// The evaluator of a body. It is straight-line code if the body can be converted to scalar form, and a program
/// otherwise.
enum Code {
    Bytecode(Bytecode),
    Program(Program),
}

enum Memory {
    Bytecode(BytecodeArena),
    Program(Arena),
}

impl Code {
    fn new(graph: &Graph, simd: Simd) -> Self {
        let outputs = graph.outputs().iter();
        let lens = outputs.map(|id| graph.shape(*id).len as usize).collect();
        let bytecode =
            passes::scalarise(graph).and_then(|numbers| Bytecode::new(&numbers, lens, simd));
        match bytecode {
            Some(bytecode) => Self::Bytecode(bytecode),
            None => Self::Program(Program::new(passes::optimise(graph), simd, 0)),
        }
    }

    fn block(&self) -> usize {
        match self {
            Self::Bytecode(bytecode) => bytecode.block(),
            Self::Program(program) => program.block(),
        }
    }

    fn work(&self) -> usize {
        match self {
            Self::Bytecode(bytecode) => bytecode.work(),
            Self::Program(program) => program.work(),
        }
    }

    fn memory(&self, rough: bool) -> Memory {
        match self {
            Self::Bytecode(bytecode) => Memory::Bytecode(bytecode.arena()),
            Self::Program(program) => Memory::Program(program.arena(rough)),
        }
    }
}

/// Runs code until an interrupt occurs. After an interrupt all results are NaN, and a solver stops at the first NaN.
struct Running<'a> {
    code: Machine<'a>,
    /// The additional work, per lane and run, of solving a factorised system. The code does not do this work.
    beside: usize,
    patience: &'a Patience,
}

enum Machine<'a> {
    Bytecode(&'a Bytecode, &'a mut BytecodeArena),
    Program(&'a Program, &'a mut Arena),
}

impl Engine for Running<'_> {
    const GRANULE: usize = LANES;

    fn gives_up(&mut self, worked: usize) -> bool {
        self.patience.worked(worked);
        self.patience.is_over()
    }

    fn simd(&self) -> Simd {
        match &self.code {
            Machine::Bytecode(bytecode, _) => bytecode.simd(),
            Machine::Program(program, _) => program.simd(),
        }
    }

    fn run(&mut self, inputs: &[&[f64]], lanes: usize, outputs: &mut [&mut [f64]]) {
        if self.patience.is_over() {
            outputs.iter_mut().for_each(|rows| rows.fill(f64::NAN));
            return;
        }
        let (program, arena) = match &mut self.code {
            Machine::Bytecode(bytecode, arena) => {
                let work = bytecode.work() + self.beside;
                self.patience.worked(work * lanes);
                return bytecode.run(arena, inputs, lanes, outputs);
            }
            Machine::Program(program, arena) => (program, arena),
        };
        let work = program.work() + self.beside;
        self.patience.worked(work * lanes);
        program.run(arena, inputs, lanes);
        let mut which = 0;
        for out in outputs {
            let mut rows = &mut **out;
            while !rows.is_empty() {
                let (own, rest) = rows.split_at_mut(program.output_len(which) * lanes);
                program.output(arena, inputs, which, lanes, |i, row| {
                    own[i * lanes..(i + 1) * lanes].copy_from_slice(row);
                });
                (rows, which) = (rest, which + 1);
            }
        }
    }
}

impl Call {
    pub fn new(solver: Arc<Solver>, pass: Pass, simd: Simd) -> Self {
        let programs = Roles::of(&solver, pass).map(|graph| Code::new(graph, simd));
        let mut group = programs.iter().map(Code::block).min().unwrap_or(LANES);
        // The factorisation of the matrix of a root does not check the interrupt, so the group must be small.
        while group > LANES && group * solver.factored().pow(3) > LONG {
            group /= 2;
        }
        Self {
            rough: solver.roughly(),
            solver,
            pass,
            programs,
            group,
            memo: None,
        }
    }

    /// Returns the approximate number of rows of lanes that this call reads and writes.
    pub fn work(&self) -> usize {
        RUNS * self.programs.iter().map(Code::work).sum::<usize>()
    }

    /// Returns whether one of the two passes is a backward pass that can use the results of the other.
    pub fn serves(&self, other: &Call) -> bool {
        Arc::ptr_eq(&self.solver, &other.solver)
            && self.pass.moves() == other.pass.moves()
            && self.pass.pulls() != other.pass.pulls()
    }

    /// Returns those arguments that the forward pass depends on.
    pub fn forward_args<T: Copy>(&self, args: &[T]) -> Vec<T> {
        match (self.pass, args) {
            (Pass::AdjointTangent, [x, _, dx, _]) | (Pass::Tangent, [x, dx]) => vec![*x, *dx],
            _ => vec![args[0]],
        }
    }

    pub fn scratch(calls: &[Call], rough: bool, ending: &Ending) -> SolverScratch {
        let memos = calls.iter().filter_map(|call| call.memo).max();
        SolverScratch {
            arenas: calls
                .iter()
                .map(|call| call.programs.map(|program| program.memory(rough)))
                .collect(),
            memos: (0..memos.map_or(0, |last| last + 1))
                .map(|_| Vec::new())
                .collect(),
            rough,
            patience: Patience::new(ending),
        }
    }

    /// Runs the pass as call number `which` of its program. The arguments and results are rows of `lanes` lanes.
    pub fn run(
        &self,
        which: usize,
        scratch: &mut SolverScratch,
        args: &[Vec<f64>],
        lanes: usize,
        out: &mut [f64],
    ) {
        let solver = if scratch.rough {
            &self.rough
        } else {
            &*self.solver
        };
        scratch.patience.begin();
        let (arenas, patience) = (&mut scratch.arenas[which], &scratch.patience);
        let beside = solver.factored().pow(2);
        let engine = |program, memory| {
            Some(Running {
                code: machine(program, memory)?,
                beside,
                patience,
            })
        };
        let mut roles = Roles {
            base: engine(&self.programs.base, &mut arenas.base),
            jacobian: engine(&self.programs.jacobian, &mut arenas.jacobian),
            moving: engine(&self.programs.moving, &mut arenas.moving),
            pull: engine(&self.programs.pull, &mut arenas.pull),
            objective: engine(&self.programs.objective, &mut arenas.objective),
        };
        let groups = lanes.div_ceil(self.group);
        let mut none = Vec::new();
        let memos = match self.memo {
            Some(memo) => &mut scratch.memos[memo],
            None => &mut none,
        };
        memos.resize_with(groups, Kept::default);
        if groups == 1 {
            let views: Vec<&[f64]> = args.iter().map(Vec::as_slice).collect();
            let into = (self.memo.is_some(), out);
            solver::run(
                solver,
                self.pass,
                &mut roles,
                &views,
                lanes,
                &mut memos[0],
                into,
            );
            return;
        }
        for (k, memo) in memos.iter_mut().enumerate() {
            let first = k * self.group;
            let count = self.group.min(lanes - first);
            let part = |rows: &Vec<f64>| -> Vec<f64> {
                rows.chunks_exact(lanes)
                    .flat_map(|row| &row[first..first + count])
                    .copied()
                    .collect()
            };
            let parts: Vec<Vec<f64>> = args.iter().map(part).collect();
            let views: Vec<&[f64]> = parts.iter().map(Vec::as_slice).collect();
            let mut own = vec![0.0; out.len() / lanes * count];
            let into = (self.memo.is_some(), &mut own[..]);
            solver::run(solver, self.pass, &mut roles, &views, count, memo, into);
            for (row, own) in out.chunks_exact_mut(lanes).zip(own.chunks_exact(count)) {
                row[first..first + count].copy_from_slice(own);
            }
        }
    }
}

fn machine<'a>(program: &'a Option<Code>, memory: &'a mut Option<Memory>) -> Option<Machine<'a>> {
    match (program.as_ref()?, memory.as_mut()?) {
        (Code::Bytecode(bytecode), Memory::Bytecode(arena)) => {
            Some(Machine::Bytecode(bytecode, arena))
        }
        (Code::Program(program), Memory::Program(arena)) => Some(Machine::Program(program, arena)),
        _ => unreachable!("memory of the same code"),
    }
}

impl SolverScratch {
    pub fn forget(&mut self) {
        self.memos.iter_mut().flatten().for_each(Kept::forget);
    }
}
