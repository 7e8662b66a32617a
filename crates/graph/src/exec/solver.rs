//! Solver steps: programs of a body, run as often as the solver asks.

use std::sync::Arc;

use jensen_math::simd::{LANES, Simd};

use crate::exec::program::{Arena, Program};
use crate::ops::{Pass, Solver};
use crate::passes;
use crate::solver::{self, Engine, Memo, Roles};

/// A planned pass of a solver.
pub(crate) struct Call {
    solver: Arc<Solver>,
    /// The same with looser tolerances.
    rough: Solver,
    pass: Pass,
    programs: Roles<Program>,
    /// Lanes that are solved together.
    group: usize,
    /// The memo that it shares with another pass of the same arguments.
    pub memo: Option<usize>,
}

/// Runs of the body that one solve is reckoned as, for sharing work among threads.
const RUNS: usize = 200;

/// Scratch memory of the solvers of a program.
#[derive(Default)]
pub(crate) struct SolverScratch {
    arenas: Vec<Roles<Arena>>,
    /// For each memo one a group of lanes; emptied when a program starts.
    memos: Vec<Vec<Option<Memo>>>,
    /// Whether solvers are rough.
    rough: bool,
}

struct Running<'a> {
    program: &'a Program,
    arena: &'a mut Arena,
}

impl Engine for Running<'_> {
    const GRANULE: usize = LANES;

    fn simd(&self) -> Simd {
        self.program.simd()
    }

    fn run(&mut self, inputs: &[&[f64]], lanes: usize, outputs: &mut [&mut [f64]]) {
        self.program.run(self.arena, inputs, lanes);
        let mut which = 0;
        for out in outputs {
            let mut rows = &mut **out;
            while !rows.is_empty() {
                let (own, rest) = rows.split_at_mut(self.program.output_len(which) * lanes);
                self.program
                    .output(self.arena, inputs, which, lanes, |i, row| {
                        own[i * lanes..(i + 1) * lanes].copy_from_slice(row);
                    });
                (rows, which) = (rest, which + 1);
            }
        }
    }
}

impl Call {
    /// Plans a pass.
    pub fn new(solver: Arc<Solver>, pass: Pass, simd: Simd) -> Self {
        let programs = Roles::of(&solver, pass).map(|graph| {
            let by_numbers = passes::scalarise(graph);
            Program::new(
                by_numbers.unwrap_or_else(|| passes::optimise(graph)),
                simd,
                0,
            )
        });
        let group = programs.iter().map(Program::block).min().unwrap_or(LANES);
        Self {
            rough: solver.roughly(),
            solver,
            pass,
            programs,
            group,
            memo: None,
        }
    }

    /// Rows of lanes that one run moves, roughly.
    pub fn work(&self) -> usize {
        RUNS * self.programs.iter().map(Program::work).sum::<usize>()
    }

    /// Whether a backward pass of these arguments can use what this one computes.
    pub fn serves(&self, other: &Call) -> bool {
        Arc::ptr_eq(&self.solver, &other.solver)
            && self.pass.moves() == other.pass.moves()
            && self.pass.pulls() != other.pass.pulls()
    }

    /// The arguments on which the forward pass depends.
    pub fn forward_args<T: Copy>(&self, args: &[T]) -> Vec<T> {
        match (self.pass, args) {
            (Pass::AdjointTangent, [x, _, dx, _]) | (Pass::Tangent, [x, dx]) => vec![*x, *dx],
            _ => vec![args[0]],
        }
    }

    /// Scratch memory for the solvers of a program.
    pub fn scratch(calls: &[Call], rough: bool) -> SolverScratch {
        let memos = calls.iter().filter_map(|call| call.memo).max();
        SolverScratch {
            arenas: calls
                .iter()
                .map(|call| call.programs.map(|program| program.arena(rough)))
                .collect(),
            memos: (0..memos.map_or(0, |last| last + 1))
                .map(|_| Vec::new())
                .collect(),
            rough,
        }
    }

    /// Runs the pass as call number `which` of its program: rows of `lanes` lanes.
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
        let arenas = &mut scratch.arenas[which];
        let mut roles = Roles {
            base: engine(&self.programs.base, &mut arenas.base),
            jacobian: engine(&self.programs.jacobian, &mut arenas.jacobian),
            moving: engine(&self.programs.moving, &mut arenas.moving),
            pull: engine(&self.programs.pull, &mut arenas.pull),
        };
        let groups = lanes.div_ceil(self.group);
        let mut none = Vec::new();
        let memos = match self.memo {
            Some(memo) => &mut scratch.memos[memo],
            None => &mut none,
        };
        memos.resize_with(groups, || None);
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

fn engine<'a>(program: &'a Option<Program>, arena: &'a mut Option<Arena>) -> Option<Running<'a>> {
    Some(Running {
        program: program.as_ref()?,
        arena: arena.as_mut()?,
    })
}

impl SolverScratch {
    /// Forgets what the last run computed.
    pub fn forget(&mut self) {
        self.memos.iter_mut().for_each(Vec::clear);
    }
}
