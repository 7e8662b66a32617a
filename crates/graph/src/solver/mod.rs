//! Builds the graphs that the passes of a solver evaluate, and runs the passes.
//!
//! The derivatives of the body are obtained by differentiating its graph. Three kinds of graphs are built. The first
//! computes the Jacobian of the body. The second computes the body together with its tangent. The third computes
//! products of weights with derivatives, either of the body or of the second graph. [`jensen_math::solvers`] implements
//! the numerical methods. The executor and the reference evaluator each provide an [`Engine`], which evaluates the
//! graphs.

use jensen_math::simd::Simd;
use jensen_math::solvers::{
    Arguments, Differentiable, Integral, Method, Ode, Point, Root, System, Trajectory,
};

use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{Pass, Solver, SolverKind};
use crate::passes;

pub(crate) trait Engine {
    const GRANULE: usize;

    fn simd(&self) -> Simd;

    /// Evaluates the function and writes all outputs. Each element of an input or output is a row of lanes.
    fn run(&mut self, inputs: &[&[f64]], lanes: usize, outputs: &mut [&mut [f64]]);

    /// Adds work that the solver does outside the runs to the number of computed values. Returns whether the solver
    /// should stop.
    fn gives_up(&mut self, _worked: usize) -> bool {
        false
    }
}

pub(crate) struct Roles<T> {
    pub base: Option<T>,
    /// The derivatives of the rates with respect to the states.
    pub jacobian: Option<T>,
    /// The body together with its derivative along a direction.
    pub moving: Option<T>,
    /// The vector-Jacobian products of `moving` if it is present, and otherwise those of the body.
    pub pull: Option<T>,
    /// The function that a root maximises.
    pub objective: Option<T>,
}

impl<T> Roles<T> {
    pub fn map<'a, U>(&'a self, mut f: impl FnMut(&'a T) -> U) -> Roles<U> {
        Roles {
            base: self.base.as_ref().map(&mut f),
            jacobian: self.jacobian.as_ref().map(&mut f),
            moving: self.moving.as_ref().map(&mut f),
            pull: self.pull.as_ref().map(&mut f),
            objective: self.objective.as_ref().map(&mut f),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let all = [
            &self.base,
            &self.jacobian,
            &self.moving,
            &self.pull,
            &self.objective,
        ];
        all.into_iter().flatten()
    }
}

impl Roles<Graph> {
    pub fn of(solver: &Solver, pass: Pass) -> Self {
        let implicit = match &solver.kind {
            SolverKind::Ode(ode) => matches!(ode.method, Method::Radau | Method::Implicit),
            SolverKind::Root(_) => true,
            SolverKind::Integral(_) => false,
        };
        let is_root = matches!(solver.kind, SolverKind::Root(_));
        let rates = part(&solver.body, 0);
        Roles {
            base: (!pass.moves() || is_root).then(|| rates.clone()),
            jacobian: implicit.then(|| match solver.body.outputs() {
                [_] => jacobian(&rates),
                _ => part(&solver.body, 1),
            }),
            objective: (pass == Pass::Value && solver.body.outputs().len() > 2)
                .then(|| part(&solver.body, 2)),
            moving: pass.moves().then(|| moving(&rates).0),
            pull: pass.pulls().then(|| {
                let (graph, inputs) = if pass.moves() {
                    moving(&rates)
                } else {
                    let mut graph = rates.clone();
                    let inputs = (1..3).map(|slot| graph.input_node(slot)).collect();
                    (graph, inputs)
                };
                pull(graph, &inputs, wanted(&solver.kind))
            }),
        }
    }
}

fn part(body: &Graph, output: usize) -> Graph {
    if body.outputs().len() == 1 {
        return body.clone();
    }
    let mut graph = body.clone();
    graph.set_outputs(vec![body.outputs()[output]]);
    passes::compact(&graph)
}

/// Builds the matrix ∂rates/∂states, column by column. If the rates are residuals, the matrix is followed by the
/// derivatives with respect to the time derivatives of the states.
fn jacobian(body: &Graph) -> Graph {
    let mut graph = body.clone();
    let rates = graph.outputs()[0];
    let states = graph.input_node(1);
    let n = graph.shape(states).len as usize;
    let columns: Vec<NodeId> = (0..n)
        .map(|j| {
            let unit: Vec<f64> = (0..n).map(|i| f64::from(u8::from(i == j))).collect();
            let seed = graph.vector(&unit);
            let column = graph.tangent(&[rates], &[(states, seed)])[0];
            column.unwrap_or_else(|| {
                let rows = graph.shape(rates).len as usize;
                graph.vector(&vec![0.0; rows])
            })
        })
        .collect();
    let all = graph.concat(&columns);
    graph.set_outputs(vec![all]);
    passes::compact(&graph)
}

/// Builds the body with additional inputs for the tangents of the states and parameters. The outputs of the graph are
/// the rates and the tangents of the rates. Also returns all inputs except the clock.
fn moving(body: &Graph) -> (Graph, Vec<NodeId>) {
    let mut graph = body.clone();
    let rates = graph.outputs()[0];
    let (states, parameters) = (graph.input_node(1), graph.input_node(2));
    let [of_states, of_parameters] = [states, parameters].map(|id| graph.shape(id).len as usize);
    let (dy, dp) = (graph.input(of_states), graph.input(of_parameters));
    let moved = graph.tangent(&[rates], &[(states, dy), (parameters, dp)])[0];
    let moved = moved.unwrap_or_else(|| {
        let rows = graph.shape(rates).len as usize;
        graph.vector(&vec![0.0; rows])
    });
    graph.set_outputs(vec![rates, moved]);
    (graph, vec![states, parameters, dy, dp])
}

/// Returns how many parameters of the first copy need derivatives, or `None` if the parameters of all copies need them.
/// If the times of a differential equation are not data, the two ends of the interval are counted as parameters.
fn wanted(kind: &SolverKind) -> Option<usize> {
    match kind {
        SolverKind::Ode(ode) if ode.fixed_times => Some(ode.parameters),
        SolverKind::Ode(ode) => Some(ode.system_parameters()),
        SolverKind::Root(_) | SolverKind::Integral(_) => None,
    }
}

/// Builds the products of weights with the derivatives with respect to `inputs`, which are the states and parameters of
/// each copy. The graph has one additional input for the weights of each output. Parameters that are not `wanted` get a
/// derivative of 0.
fn pull(mut graph: Graph, inputs: &[NodeId], wanted: Option<usize>) -> Graph {
    let outputs = graph.outputs().to_vec();
    let terms: Vec<NodeId> = outputs
        .into_iter()
        .map(|out| {
            let Shape { len, .. } = graph.shape(out);
            let weights = graph.input(len as usize);
            let product = graph.mul(weights, out);
            graph.sum(product)
        })
        .collect();
    let total = graph.add_all(&terms);
    let mut gradients = graph.gradient(total, inputs);
    if let Some(wanted) = wanted {
        for (copy, of_parameters) in gradients
            .chunks_exact_mut(2)
            .map(|pair| &mut pair[1])
            .enumerate()
        {
            let wanted = if copy == 0 { wanted } else { 0 };
            let rest = graph.shape(*of_parameters).len as usize - wanted;
            let (some, none) = (
                graph.slice(*of_parameters, 0, wanted),
                graph.vector(&vec![0.0; rest]),
            );
            *of_parameters = graph.concat(&[some, none]);
        }
    }
    graph.set_outputs(gradients);
    passes::compact(&graph)
}

struct Body<'a, E> {
    rate: &'a mut E,
    jacobian: Option<&'a mut E>,
    pull: Option<&'a mut E>,
    objective: Option<&'a mut E>,
    copies: usize,
}

const COPIES: usize = 2;

fn parts(rows: &[f64], copies: usize) -> impl Iterator<Item = &[f64]> {
    let each = rows.len() / copies;
    (0..copies).map(move |copy| &rows[copy * each..(copy + 1) * each])
}

/// Returns mutable slices of `rows`, one for each copy. The slice of a copy that does not exist is empty.
fn parts_mut(rows: &mut [f64], copies: usize) -> [&mut [f64]; COPIES] {
    let (first, second) = rows.split_at_mut(rows.len() / copies);
    [first, second]
}

struct Inputs<'a> {
    all: [&'a [f64]; 1 + 3 * COPIES],
    count: usize,
}

impl<'a> Inputs<'a> {
    fn at(point: &Point<'a>, copies: usize) -> Self {
        let mut inputs = Self {
            all: [&[]; 1 + 3 * COPIES],
            count: 0,
        };
        inputs.push(point.clock);
        let parameters = parts(point.parameters, copies);
        for (states, parameters) in parts(point.states, copies).zip(parameters) {
            inputs.push(states);
            inputs.push(parameters);
        }
        inputs
    }

    fn push(&mut self, rows: &'a [f64]) {
        self.all[self.count] = rows;
        self.count += 1;
    }

    fn all(&self) -> &[&'a [f64]] {
        &self.all[..self.count]
    }
}

impl<E: Engine> System for Body<'_, E> {
    fn rate(&mut self, at: Point<'_>, out: &mut [f64]) {
        let inputs = Inputs::at(&at, self.copies);
        let mut outputs = parts_mut(out, self.copies);
        self.rate
            .run(inputs.all(), at.lanes, &mut outputs[..self.copies]);
    }

    fn jacobian(&mut self, at: Point<'_>, _states: usize, out: &mut [f64]) {
        let inputs = Inputs::at(&at, self.copies);
        let engine = self.jacobian.as_mut().expect("implicit solvers have one");
        engine.run(&inputs.all()[..3], at.lanes, &mut [out]);
    }

    fn objective(&mut self, at: Point<'_>, out: &mut [f64]) -> bool {
        let inputs = Inputs::at(&at, self.copies);
        let Some(engine) = self.objective.as_mut() else {
            return false;
        };
        engine.run(inputs.all(), at.lanes, &mut [out]);
        true
    }

    fn gives_up(&mut self, worked: usize) -> bool {
        self.rate.gives_up(worked)
    }

    fn granule(&self) -> usize {
        E::GRANULE
    }

    fn simd(&self) -> Simd {
        self.rate.simd()
    }
}

impl<E: Engine> Differentiable for Body<'_, E> {
    fn pull(&mut self, at: Point<'_>, weights: &[f64], states: &mut [f64], parameters: &mut [f64]) {
        let mut inputs = Inputs::at(&at, self.copies);
        parts(weights, self.copies).for_each(|weights| inputs.push(weights));
        let [first, second] = parts_mut(states, self.copies);
        let [of_first, of_second] = parts_mut(parameters, self.copies);
        let engine = self.pull.as_mut().expect("passes that pull have one");
        let mut outputs = [first, of_first, second, of_second];
        engine.run(inputs.all(), at.lanes, &mut outputs[..2 * self.copies]);
    }
}

pub(crate) enum Memo {
    Steps(Trajectory),
    Roots(Vec<f64>),
    Levels(Vec<u32>),
}

/// The results of a pass, and whether they are valid. If they are invalid, the next pass reuses only their memory.
#[derive(Default)]
pub(crate) struct Kept {
    memo: Option<Memo>,
    stale: bool,
}

impl Kept {
    pub fn forget(&mut self) {
        self.stale = true;
    }

    fn old_steps(&mut self) -> Trajectory {
        match self.memo.take() {
            Some(Memo::Steps(steps)) => steps,
            _ => Trajectory::default(),
        }
    }
}

fn body<E: Engine>(roles: &mut Roles<E>, copies: usize) -> Body<'_, E> {
    let rate = if copies == 2 {
        &mut roles.moving
    } else {
        &mut roles.base
    };
    Body {
        rate: rate.as_mut().expect("a pass has the rates of its copies"),
        jacobian: roles.jacobian.as_mut(),
        pull: roles.pull.as_mut(),
        objective: roles.objective.as_mut(),
        copies,
    }
}

/// Solves for all copies and writes `results` rows per copy to `out`. If `keep` is true, returns the results that the
/// backward pass needs. The memory of `steps`, which belongs to an earlier solution, is reused.
pub(crate) fn forward<E: Engine>(
    solver: &Solver,
    roles: &mut Roles<E>,
    x: Arguments<'_>,
    out: &mut [f64],
    (keep, mut steps): (bool, Trajectory),
) -> Option<Memo> {
    match &solver.kind {
        SolverKind::Ode(ode) => {
            let into = keep.then_some(&mut steps);
            Ode::solve(ode, &mut body(roles, x.copies), x, out, into, ode.longest());
            keep.then_some(Memo::Steps(steps))
        }
        SolverKind::Root(root) => {
            let (y, moved) = out.split_at_mut(root.unknowns * x.lanes);
            Root::solve(root, &mut body(roles, 1), x.rows, x.lanes, y);
            if x.copies == 2 {
                root.tangent(&mut body(roles, 2), y, x.rows, x.lanes, moved);
            }
            keep.then(|| Memo::Roots(out.to_vec()))
        }
        SolverKind::Integral(integral) => {
            let system = &mut body(roles, x.copies);
            let levels = Integral::solve(integral, system, x.copies, x.rows, x.lanes, out);
            keep.then_some(Memo::Levels(levels))
        }
    }
}

/// Computes the products of `weights` with the derivatives with respect to the first copy of the arguments. `weights`
/// has `results` rows per copy.
pub(crate) fn backward<E: Engine>(
    solver: &Solver,
    roles: &mut Roles<E>,
    x: Arguments<'_>,
    memo: &Memo,
    weights: &[f64],
    out: &mut [f64],
) {
    let copies = x.copies;
    let system = &mut body(roles, copies);
    match (&solver.kind, memo) {
        (SolverKind::Ode(ode), Memo::Steps(kept)) => ode.pull(system, x, kept, weights, out),
        (SolverKind::Root(root), Memo::Roots(y)) => {
            root.pull(system, (y, x.rows, copies), x.lanes, weights, out);
        }
        (SolverKind::Integral(integral), Memo::Levels(levels)) => {
            integral.pull(system, (copies, x.rows, levels), x.lanes, weights, out);
        }
        _ => unreachable!("a memo of the same solver"),
    }
}

/// Runs one pass. The arguments and the result of the pass are rows of lanes. A pass with weights uses the results in
/// `kept` if they are valid, and otherwise solves again. Other passes always solve, and leave their results in `kept`
/// if `keep` is true.
pub(crate) fn run<E: Engine>(
    solver: &Solver,
    pass: Pass,
    roles: &mut Roles<E>,
    args: &[&[f64]],
    lanes: usize,
    kept: &mut Kept,
    (keep, out): (bool, &mut [f64]),
) {
    let joined;
    let rows = match (pass, args) {
        (Pass::Tangent, [x, dx]) | (Pass::AdjointTangent, [x, _, dx, _]) => {
            joined = [*x, *dx].concat();
            &joined[..]
        }
        _ => args[0],
    };
    let copies = pass.copies();
    let x = Arguments {
        rows,
        copies,
        lanes,
    };
    if kept.stale || kept.memo.is_none() || !pass.pulls() {
        let mut results = vec![0.0; copies * solver.results() * lanes];
        let keep = (keep || pass.pulls(), kept.old_steps());
        kept.memo = forward(solver, roles, x, &mut results, keep);
        kept.stale = false;
        if !pass.pulls() {
            out.copy_from_slice(&results[(copies - 1) * solver.results() * lanes..]);
            return;
        }
    }
    let both;
    let weights = match args {
        // The weights w belong to the tangent of the results, and their tangents dw belong to the results themselves.
        [_, w, _, dw] => {
            both = [*dw, *w].concat();
            &both[..]
        }
        _ => args[1],
    };
    let memo = kept.memo.as_ref().expect("made above");
    backward(solver, roles, x, memo, weights, out);
}
