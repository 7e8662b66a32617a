//! Computes the reported values of draws. If a graph can be built for the reported values, many draws are computed at
//! once. Otherwise the interpreter computes one draw after another.

use std::sync::OnceLock;

use jensen_density::{
    ConstrainError, Constrained, DrawKey, Posterior, Scale, Unconstrained, Variable,
};
use jensen_graph::exec::Program;
use jensen_graph::passes::{compact, optimise};
use jensen_graph::{Graph, Op};
use jensen_math::simd::{LANES, Simd};

use crate::functions::check_call;
use crate::functions::random::{Draws, RandomUse};
use crate::interpret::BoundModel;
use crate::library;
use crate::lower::{
    Argument, LibraryCall, LoweredOutputs, Numbers, Standard, StandardCall, lower_outputs,
};
use crate::program::Span;
use crate::value::Value;
use crate::value::error::FnResult;
use crate::value::sized::Sized;

/// At most this many values, counted over all draws, are computed together.
const TOGETHER: usize = 1 << 20;

/// Computes the reported values of a program for many draws. If the graph rejects a draw or its values are not finite,
/// the interpreter evaluates this draw again and returns the values or the error.
pub struct Outputs {
    bound: BoundModel,
    simd: Simd,
    programs: OnceLock<Option<Programs>>,
}

struct Programs {
    standard: Vec<StandardCall>,
    stages: Vec<(Program, Vec<LibraryCall>)>,
    /// Computes the reported values, and a number that is nonzero if the draw is rejected.
    values: Program,
    known: Vec<bool>,
    block: usize,
}

impl Outputs {
    /// Creates the outputs of a program. The graph is built when draws are first requested.
    pub fn new(bound: BoundModel, simd: Simd) -> Self {
        Self {
            bound,
            simd,
            programs: OnceLock::new(),
        }
    }

    /// Returns the program with its data.
    pub fn bound(&self) -> &BoundModel {
        &self.bound
    }

    /// Returns the same outputs, but restricted to the wanted variables.
    #[must_use]
    pub fn reporting(&self, wanted: impl Fn(&Variable) -> bool) -> Self {
        let reported = self.variables();
        let bound = self.bound.clone();
        let bound = bound.reporting(|variable| reported.contains(variable) && wanted(variable));
        Self::new(bound, self.simd)
    }

    /// Returns the values at each draw, as [`Posterior::constrain_all`] does, but uses only the graph. The result is
    /// `None` for a draw that needs the interpreter.
    pub fn by_graph(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Option<Vec<f64>>> {
        let dim = self.bound.unconstrained_dim();
        let Some(programs) = self.programs() else {
            return vec![None; keys.len()];
        };
        let blocks = keys.chunks(programs.block).enumerate();
        blocks
            .flat_map(|(block, keys)| {
                let first = block * programs.block * dim;
                // If an interrupt is pending, the interpreter reports it.
                match self.bound.halt().check(Span::default()) {
                    Ok(()) => programs.run(&points[first..first + keys.len() * dim], keys),
                    Err(_) => vec![None; keys.len()],
                }
            })
            .collect()
    }

    fn programs(&self) -> Option<&Programs> {
        let planned = || {
            let lowered = lower_outputs(&self.bound).ok()?;
            Some(Programs::new(lowered, self.simd))
        };
        self.programs.get_or_init(planned).as_ref()
    }
}

impl Programs {
    fn new(lowered: LoweredOutputs, simd: Simd) -> Self {
        let LoweredOutputs {
            graph,
            mut standard,
            stages,
            known,
        } = lowered;
        let outputs = graph.outputs().to_vec();
        let planned = |outputs: &[_]| {
            let mut graph: Graph = graph.clone();
            graph.set_outputs(outputs.to_vec());
            Program::new(compact(&optimise(&graph)), simd, 0)
        };
        let (arguments, values) = outputs.split_at(stages.len());
        let values = planned(values);
        let mut stages: Vec<_> = arguments
            .iter()
            .map(|output| planned(std::slice::from_ref(output)))
            .zip(stages)
            .collect();
        // Random numbers that affect no reported value are not drawn.
        let mut used = vec![false; graph.inputs().len()];
        mark_inputs(&values, &mut used);
        for (program, calls) in stages.iter_mut().rev() {
            calls.retain(|call| used[call.to.input]);
            if !calls.is_empty() {
                mark_inputs(program, &mut used);
            }
        }
        stages.retain(|(_, calls)| !calls.is_empty());
        standard.retain(|call| used[call.to.input]);
        let programs = stages.iter().map(|(program, _)| program);
        let block = programs.chain([&values]).map(Program::block).min();
        let rows = known.len() + graph.inputs().iter().map(|i| i.len).sum::<usize>();
        let most = (TOGETHER / rows.max(1)).next_multiple_of(LANES).max(LANES);
        Self {
            standard,
            stages,
            values,
            known,
            block: block.unwrap_or(LANES).min(most),
        }
    }

    /// Evaluates at most [`block`](Self::block) draws. The result is `None` for a draw that needs the interpreter.
    fn run(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Option<Vec<f64>>> {
        let (count, dim) = (keys.len(), points.len() / keys.len());
        let lanes = count.next_multiple_of(LANES);
        let lens = self.values.graph().inputs().iter().map(|input| input.len);
        let mut inputs: Vec<Vec<f64>> = lens.map(|len| vec![0.0; len * lanes]).collect();
        for lane in 0..lanes {
            let point = &points[lane.min(count - 1) * dim..][..dim];
            for (row, x) in point.iter().enumerate() {
                inputs[0][row * lanes + lane] = *x;
            }
        }
        let mut draws: Vec<Draws> = keys
            .iter()
            .map(|key| Draws::new(key.seed, RandomUse::GeneratedQuantities, key.index))
            .collect();
        for StandardCall { address, of, to } in &self.standard {
            for (lane, draws) in draws.iter_mut().enumerate() {
                draws.go_to(*address);
                for row in to.first..to.first + to.len {
                    inputs[to.input][row * lanes + lane] = match of {
                        Standard::Normal => draws.normal(),
                        Standard::Uniform => draws.uniform(),
                        Standard::Exponential => draws.exponential(),
                    };
                }
            }
        }
        let mut fine = vec![true; count];
        for (program, calls) in &self.stages {
            let found = results(program, &inputs, 0, lanes);
            for call in calls {
                for (lane, (draws, fine)) in draws.iter_mut().zip(&mut fine).enumerate() {
                    match call.numbers(draws, |at| found[at * lanes + lane]) {
                        Some(numbers) => put(&mut inputs, call.to, lanes, lane, &numbers),
                        None => *fine = false,
                    }
                }
            }
        }
        let mut arena = self.values.arena(false);
        let views: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        self.values.run(&mut arena, &views, lanes);
        self.values.output(&arena, &views, 1, lanes, |_, rejected| {
            for (fine, rejected) in fine.iter_mut().zip(rejected) {
                *fine &= *rejected == 0.0;
            }
        });
        let mut rows: Vec<Vec<f64>> = vec![vec![0.0; self.known.len()]; count];
        self.values.output(&arena, &views, 0, lanes, |i, values| {
            for ((row, fine), value) in rows.iter_mut().zip(&mut fine).zip(values) {
                row[i] = *value;
                *fine &= value.is_finite() || self.known[i];
            }
        });
        rows.into_iter()
            .zip(fine)
            .map(|(row, fine)| fine.then_some(row))
            .collect()
    }
}

fn mark_inputs(program: &Program, used: &mut [bool]) {
    let graph = program.graph();
    for id in graph.ids() {
        if let Op::Input(slot) = graph.op(id) {
            used[slot as usize] = true;
        }
    }
}

fn results(program: &Program, inputs: &[Vec<f64>], which: usize, lanes: usize) -> Vec<f64> {
    let views: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
    let mut arena = program.arena(false);
    program.run(&mut arena, &views, lanes);
    let mut found = Vec::with_capacity(program.output_len(which) * lanes);
    program.output(&arena, &views, which, lanes, |_, row| {
        found.extend_from_slice(row);
    });
    found
}

fn put(inputs: &mut [Vec<f64>], to: Numbers, lanes: usize, lane: usize, numbers: &[f64]) {
    let rows = to.first..to.first + to.len;
    for (row, number) in rows.zip(numbers) {
        inputs[to.input][row * lanes + lane] = *number;
    }
}

impl LibraryCall {
    /// Draws numbers from the function, in storage order. `computed` returns the value of an argument by its position.
    /// Returns `None` if the function rejects its arguments.
    fn numbers(&self, draws: &mut Draws, computed: impl Fn(usize) -> f64) -> Option<Vec<f64>> {
        if self.taken.is_some_and(|at| computed(at) == 0.0) {
            return Some(vec![0.0; self.to.len]);
        }
        let mut made = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            made.push(match arg {
                Argument::Known(_) => None,
                Argument::Computed { first, ty } => {
                    let numbers = *first..first + ty.scalars();
                    let whole = *ty.unwind().1 != Sized::Int
                        || numbers.clone().all(|at| computed(at).fract() == 0.0);
                    let mut numbers = numbers.map(&computed);
                    Some(whole.then(|| ty.from_numbers(&mut numbers))?)
                }
            });
        }
        let args: Vec<&Value> = self
            .args
            .iter()
            .zip(&made)
            .filter_map(|(arg, made)| match arg {
                Argument::Known(value) => Some(value),
                Argument::Computed { .. } => made.as_ref(),
            })
            .collect();
        draws.go_to(self.address);
        let drawn: FnResult<Value> = check_call(self.function.name(), &args)
            .and_then(|()| library::draw(self.function, draws, &args));
        let numbers = drawn.ok()?.numbers();
        (numbers.len() == self.to.len).then_some(numbers)
    }
}

impl Posterior for Outputs {
    fn variables(&self) -> Vec<Variable> {
        self.bound.variables()
    }

    fn unconstrained_names(&self) -> Vec<String> {
        self.bound.unconstrained_names()
    }

    fn scales(&self) -> Vec<Scale> {
        self.bound.scales()
    }

    fn constrain(&self, z: &[f64], key: DrawKey, out: &mut Vec<f64>) -> Result<(), ConstrainError> {
        self.bound.constrain(z, key, out)
    }

    fn constrain_all(&self, points: &[f64], keys: &[DrawKey]) -> Vec<Constrained> {
        let dim = self.bound.unconstrained_dim();
        let found = self.by_graph(points, keys).into_iter().zip(keys);
        let each = found.enumerate().map(|(i, (found, key))| match found {
            Some(values) => Ok(values),
            None => {
                let mut out = Vec::new();
                let point = &points[i * dim..(i + 1) * dim];
                self.bound.constrain(point, *key, &mut out).map(|()| out)
            }
        });
        each.collect()
    }

    fn together(&self) -> usize {
        self.programs().map_or(1, |programs| programs.block)
    }

    fn unconstrain(&self, lookup: &Unconstrained<'_>) -> Result<Vec<f64>, ConstrainError> {
        self.bound.unconstrain(lookup)
    }
}
