//! Lowers calls of solvers. The passed function is lowered once, to a separate graph. Arguments of the call that depend
//! on the program's parameters become parameters of this graph, and arguments that are data become constants.

use std::borrow::Cow;
use std::rc::Rc;

use jensen_graph::{Graph, NodeId, Solver, SolverKind, passes};
use jensen_math::solvers::{Ends, Integral, NODE, SHORTEST};

use super::Lower;
use crate::functions::solvers::{
    DaeForm, Form, OdeForm, RootForm, check_start, check_times, integral_tolerance,
};
use crate::program::{Expr, FunRef, Level, Span, function_locals};
use crate::symbolic::index;
use crate::symbolic::tape::{E, Tape};
use crate::symbolic::value::{Cell, Dims, Flat, Leaf, Store, Sym, assemble};
use crate::value::Value;
use crate::value::error::{Eval, FnError, FnResult};
use crate::value::index::Idx;

struct Call<'a> {
    name: &'static str,
    function: &'a FunRef,
    values: &'a [Sym],
    span: Span,
    site: u32,
}

impl Call<'_> {
    /// The checker has ensured that the setting is data.
    fn setting(&self, k: usize) -> FnResult<Cow<'_, Value>> {
        self.values[k]
            .known()
            .ok_or_else(|| FnError::invalid(format!("{}: settings must be data", self.name)))
    }

    fn rest(&self, from: usize, count: Option<usize>) -> &[Sym] {
        let end = count.map_or(self.values.len(), |count| from + count);
        &self.values[from..end]
    }
}

pub(super) fn unknown_parts(tape: &Tape, value: &Sym, parts: &mut Vec<NodeId>) {
    match value {
        Sym::Int(_) | Sym::Real(_) | Sym::Data(_) | Sym::Records(_) | Sym::Overlay(_) => {}
        Sym::Scalar(id) => parts.push(*id),
        Sym::Flat(Flat { store, .. }) => match store {
            Store::Node(id) => parts.push(*id),
            Store::Table(cells) => {
                let unknown: Vec<Cell> = cells
                    .iter()
                    .filter(|cell| matches!(cell, Cell::Elem(..)))
                    .copied()
                    .collect();
                if !unknown.is_empty() {
                    parts.push(assemble(tape, &unknown).id);
                }
            }
        },
        Sym::Array(values) | Sym::Tuple(values) => {
            values
                .iter()
                .for_each(|value| unknown_parts(tape, value, parts));
        }
        Sym::Complex(both) => both
            .iter()
            .for_each(|value| unknown_parts(tape, value, parts)),
    }
}

/// Returns `value` for use inside the body. The parts that depend on parameters become elements of `p`, starting at
/// `at`.
pub(super) fn inside(value: &Sym, p: E<'_>, at: &mut usize) -> Sym {
    let each =
        |values: &[Sym], at: &mut usize| Rc::new(values.iter().map(|v| inside(v, p, at)).collect());
    match value {
        Sym::Int(_) | Sym::Real(_) | Sym::Data(_) | Sym::Records(_) | Sym::Overlay(_) => {
            value.clone()
        }
        Sym::Scalar(_) => {
            *at += 1;
            p.at(*at - 1).into()
        }
        Sym::Flat(Flat { dims, store }) => {
            let store = match store {
                Store::Node(_) => {
                    *at += dims.size();
                    Store::Node(p.slice(*at - dims.size(), dims.size()).id)
                }
                Store::Table(cells) => {
                    let moved = cells.iter().map(|cell| match cell {
                        Cell::Const(x) => Cell::Const(*x),
                        Cell::Elem(..) => {
                            *at += 1;
                            Cell::Elem(p.id, *at as u32 - 1)
                        }
                    });
                    Store::Table(Rc::new(moved.collect()))
                }
            };
            Sym::Flat(Flat {
                dims: dims.clone(),
                store,
            })
        }
        Sym::Array(values) => Sym::Array(each(values, at)),
        Sym::Tuple(values) => Sym::Tuple(each(values, at)),
        Sym::Complex(parts) => {
            let [re, im] = &**parts;
            Sym::complex(inside(re, p, at), inside(im, p, at))
        }
    }
}

impl<'p, 'g> Lower<'p, 'g> {
    pub(super) fn solver(
        &mut self,
        expr: &Expr,
        (name, form): (&'static str, Form),
        function: &FunRef,
        args: &[Expr],
    ) -> Eval<Sym> {
        let values = self.exprs(args)?;
        if values.iter().any(|value| value.has_records(self.tape)) {
            let message = format!("records interact: an argument of {name} differs by record");
            return Err(FnError::records(message).at(expr.span));
        }
        self.site(expr);
        let call = Call {
            name,
            function,
            values: &values,
            span: expr.span,
            site: expr.id.0,
        };
        match form {
            Form::Ode(form) => self.ode(&call, form),
            Form::Dae(form) => self.dae(&call, form),
            Form::Root(form) => self.root(&call, form),
            Form::Integral => self.integral(&call),
            Form::Map => self.map_rect(&call),
        }
    }

    /// Lowers a body with a clock, states and parameters as inputs. Where the function rejects, the rates are NaN.
    pub(super) fn body(
        &mut self,
        inputs: [usize; 3],
        rates: impl for<'h> FnOnce(&mut Lower<'p, 'h>, [E<'h>; 3]) -> Eval<E<'h>>,
    ) -> Eval<Graph> {
        let tape = Tape::default();
        tape.limits.replace(self.tape.limits.borrow().clone());
        let inputs = inputs.map(|len| tape.e(tape.graph.borrow_mut().input(len)));
        let mut lower = Lower {
            program: self.program,
            tape: &tape,
            options: self.options,
            halt: self.halt.clone(),
            slots: vec![None; self.slots.len()],
            locals: function_locals(self.program),
            terms: Vec::new(),
            exits: Vec::new(),
            loops: Vec::new(),
            builders: std::mem::take(&mut self.builders),
            products: Vec::new(),
            turning: super::iterations::Turning::default(),
            assigned: std::mem::take(&mut self.assigned),
            drop_constants: false,
            axis: None,
            random: None,
            address: self.address,
            site_base: self.site_base,
            depth: self.depth,
            steps: self.steps,
        };
        let result = rates(&mut lower, inputs);
        self.steps = lower.steps;
        self.builders = std::mem::take(&mut lower.builders);
        self.assigned = std::mem::take(&mut lower.assigned);
        let turned = lower.turning.turned;
        drop(lower);
        let rates = result?;
        let guards: Vec<E<'_>> = tape.guards.borrow().iter().map(|id| tape.e(*id)).collect();
        let rates = if guards.is_empty() {
            rates.id
        } else {
            let rejected = tape.add_all(&guards);
            rejected.select(tape.constant(f64::NAN), rates).id
        };
        let mut graph = tape.graph.into_inner();
        graph.set_outputs(vec![rates]);
        Ok(if turned {
            passes::settled(&graph, &[rates])
        } else {
            graph
        })
    }

    /// The function must return `size` values.
    fn rates<'h>(
        lower: &mut Lower<'p, 'h>,
        call: &Call<'_>,
        args: &[Sym],
        size: usize,
    ) -> Eval<E<'h>> {
        let levels = vec![Level::Param; args.len()];
        let (callee, span) = (call.function.callee, call.span);
        let value = lower.apply(callee, args, &levels, false, span, call.site)?;
        let found = value.dims().map_err(|e| e.at(span))?.size();
        if found != size {
            let message = format!(
                "{}: the function returns {found} values for {size} states",
                call.name
            );
            return Err(FnError::invalid(message).at(span));
        }
        value.e(lower.tape).map_err(|e| e.at(span))
    }

    fn passed_on(&self, rest: &[Sym]) -> (Vec<E<'g>>, usize) {
        let mut parts = Vec::new();
        rest.iter()
            .for_each(|value| unknown_parts(self.tape, value, &mut parts));
        let parts: Vec<E<'g>> = parts.into_iter().map(|id| self.tape.e(id)).collect();
        let size = parts.iter().map(|part| part.len()).sum();
        (parts, size)
    }

    pub(super) fn solved(&self, kind: SolverKind, body: Graph, parts: &[E<'g>]) -> E<'g> {
        let parts: Vec<NodeId> = parts.iter().map(|part| part.id).collect();
        let mut graph = self.tape.graph.borrow_mut();
        let x = graph.concat(&parts);
        let out = graph.solver_value(Solver { kind, body }, x);
        drop(graph);
        self.tape.e(out)
    }

    fn ode(&mut self, call: &Call<'_>, form: OdeForm) -> Eval<Sym> {
        let at = |e: FnError| e.at(call.span);
        let tape = self.tape;
        let [start, first, times] = [0, 1, 2].map(|k| call.values[k].e(tape));
        let (start, first, times) = (start.map_err(at)?, first.map_err(at)?, times.map_err(at)?);
        let n = call.values[0].dims().map_err(at)?.size();
        let count = call.values[2].dims().map_err(at)?.size();
        if let (Some(first), Some(times)) = (call.values[1].known(), call.values[2].known()) {
            let first = first.real().map_err(at)?;
            check_times(call.name, first, &times.numbers()).map_err(at)?;
        }
        if let Some(known) = call.values[0].known()
            && let Some(y) = known.numbers().iter().find(|y| !y.is_finite())
        {
            let message = format!(
                "{}: a state at the start is {y}, but must be finite",
                call.name
            );
            return Err(FnError::domain(message).at(call.span));
        }
        let rest = call.rest(form.rest, form.count);
        let (mut parts, m) = self.passed_on(rest);
        let mut ode = form
            .ode(call.name, (n, m, count), &|k| call.setting(k))
            .map_err(at)?;
        ode.fixed_times = [1, 2].iter().all(|k| call.values[*k].known().is_some());
        if count == 0 {
            return Ok(Value::Array(Vec::new()).into());
        }
        let state = |n: usize| {
            if form.arrays {
                Dims {
                    array: vec![n],
                    leaf: Leaf::Scalar,
                }
            } else {
                Dims::leaf(Leaf::Vector(n))
            }
        };
        let body = self.body([1, n, m + 2], |lower, [clock, y, p]| {
            let (a, b) = (p.at(m), p.at(m + 1));
            let extent = b - a;
            let mut args = vec![(a + extent * clock).into(), Sym::flat(state(n), y)];
            let mut from = 0;
            args.extend(rest.iter().map(|value| inside(value, p, &mut from)));
            Ok(extent * Self::rates(lower, call, &args, n)?)
        })?;
        parts.insert(0, start);
        parts.extend([first, times]);
        let out = self.solved(SolverKind::Ode(ode), body, &parts);
        let mut dims = state(n);
        dims.array.insert(0, count);
        Ok(Sym::flat(dims, out))
    }

    fn dae(&mut self, call: &Call<'_>, form: DaeForm) -> Eval<Sym> {
        let at = |e: FnError| e.at(call.span);
        let tape = self.tape;
        for (k, what) in [(0, "initial state"), (1, "initial state derivative")] {
            if let Some(known) = call.values[k].known() {
                check_start(call.name, what, &known.numbers()).map_err(at)?;
            }
        }
        let [n, derivatives, count] = [0, 1, 3].map(|k| call.values[k].dims());
        let (n, count) = (n.map_err(at)?.size(), count.map_err(at)?.size());
        let derivatives = derivatives.map_err(at)?.size();
        let first = call.setting(2).and_then(|t| t.real()).map_err(at)?;
        let times = call.setting(3).map_err(at)?.numbers();
        check_times(call.name, first, &times).map_err(at)?;
        let rest = call.rest(form.rest, None);
        let (mut parts, m) = self.passed_on(rest);
        let ode = form
            .ode(call.name, (n, derivatives, m, count), &|k| call.setting(k))
            .map_err(at)?;
        if count == 0 {
            return Ok(Value::Array(Vec::new()).into());
        }
        let vector = |n: usize| Dims::leaf(Leaf::Vector(n));
        let body = self.body([1, 2 * n, m + n + 2], |lower, [clock, both, p]| {
            let (a, b) = (p.at(m + n), p.at(m + n + 1));
            let extent = b - a;
            let shortest = extent.num(SHORTEST);
            let divisor = shortest.lt(extent).select(extent, shortest);
            let slopes = both.slice(n, n) / divisor;
            let mut args = vec![
                (a + extent * clock).into(),
                Sym::flat(vector(n), both.slice(0, n)),
                Sym::flat(vector(n), slopes),
            ];
            let mut from = 0;
            args.extend(rest.iter().map(|value| inside(value, p, &mut from)));
            Self::rates(lower, call, &args, n)
        })?;
        parts.insert(0, call.values[0].e(tape).map_err(at)?);
        parts.push(call.values[1].e(tape).map_err(at)?);
        for k in [2, 3] {
            parts.push(call.values[k].e(tape).map_err(at)?);
        }
        let out = self.solved(SolverKind::Ode(ode), body, &parts);
        let mut dims = vector(n);
        dims.array.insert(0, count);
        Ok(Sym::flat(dims, out))
    }

    fn root(&mut self, call: &Call<'_>, form: RootForm) -> Eval<Sym> {
        let at = |e: FnError| e.at(call.span);
        let start = call.values[0].e(self.tape).map_err(at)?;
        let n = call.values[0].dims().map_err(at)?.size();
        let rest = call.rest(form.rest, form.count);
        let (mut parts, m) = self.passed_on(rest);
        let root = form
            .root(call.name, (n, m), &|k| call.setting(k))
            .map_err(at)?;
        let body = self.body([0, n, m], |lower, [_, y, p]| {
            let mut args = vec![Sym::flat(Dims::leaf(Leaf::Vector(n)), y)];
            let mut from = 0;
            args.extend(rest.iter().map(|value| inside(value, p, &mut from)));
            Self::rates(lower, call, &args, n)
        })?;
        parts.insert(0, start);
        let out = self.solved(SolverKind::Root(root), body, &parts);
        Ok(Sym::flat(Dims::leaf(Leaf::Vector(n)), out))
    }

    fn integral(&mut self, call: &Call<'_>) -> Eval<Sym> {
        let at = |e: FnError| e.at(call.span);
        let tape = self.tape;
        let limit = |k: usize| -> Eval<(E<'g>, Option<f64>)> {
            let known = match call.values[k].known() {
                Some(value) => Some(value.real().map_err(at)?),
                None => None,
            };
            Ok((call.values[k].e(tape).map_err(at)?, known))
        };
        let ((a, low), (b, high)) = (limit(0)?, limit(1)?);
        let disordered = match (low, high) {
            (Some(low), Some(high)) => low.is_nan() || high.is_nan() || high < low,
            (Some(end), None) => end.is_nan() || end == f64::INFINITY,
            (None, Some(end)) => end.is_nan() || end == f64::NEG_INFINITY,
            (None, None) => false,
        };
        if disordered {
            let message = "integrate_1d: the limits must increase and be no NaN";
            return Err(FnError::domain(message).at(call.span));
        }
        let ends = Ends {
            lower: low != Some(f64::NEG_INFINITY),
            upper: high != Some(f64::INFINITY),
        };
        let tolerance = match call.values.get(5) {
            Some(_) => Some(call.setting(5).and_then(|t| t.real()).map_err(at)?),
            None => None,
        };
        let rest = call.rest(2, Some(3));
        let (mut parts, m) = self.passed_on(rest);
        let integral = Integral {
            ends,
            parameters: m + 2,
            relative: integral_tolerance(tolerance).map_err(at)?,
        };
        let body = self.body([NODE, 0, m + 2], |lower, [node, _, p]| {
            // Limits that are data are not parameters, so an infinite derivative at such a limit cannot affect other
            // derivatives.
            let limit = |k: usize, known: Option<f64>| known.map_or_else(|| p.at(k), |x| p.num(x));
            let abscissa = QuadratureNode::of(node, [limit(0, low), limit(1, high)], ends);
            let mut args = vec![abscissa.x.into(), abscissa.distance.into()];
            let mut from = 2;
            args.extend(rest.iter().map(|value| inside(value, p, &mut from)));
            let f = Self::rates(lower, call, &args, 1)?;
            Ok(abscissa.within.select(f * abscissa.counts, f.num(0.0)))
        })?;
        // Infinite limits do not enter the nodes.
        let zero = tape.constant(0.0);
        parts.splice(
            0..0,
            [
                if ends.lower { a } else { zero },
                if ends.upper { b } else { zero },
            ],
        );
        let out = self.solved(SolverKind::Integral(integral), body, &parts);
        Ok(out.into())
    }

    fn map_rect(&mut self, call: &Call<'_>) -> Eval<Sym> {
        let at = |e: FnError| e.at(call.span);
        let [phi, theta, reals, ints] = call.values else {
            return Err(FnError::invalid("map_rect: four arguments are needed").at(call.span));
        };
        let extent = |value: &Sym| -> Eval<usize> {
            Ok(value
                .dims()
                .map_err(at)?
                .extents()
                .first()
                .copied()
                .unwrap_or(0))
        };
        let jobs = extent(theta)?;
        if extent(reals)? != jobs || extent(ints)? != jobs {
            let message = "map_rect: the lists of job parameters and data have different sizes";
            return Err(FnError::invalid(message).at(call.span));
        }
        let levels = [Level::Param, Level::Param, Level::Data, Level::Data];
        let mut results = Vec::new();
        for job in 1..=jobs as i32 {
            let own =
                |value: &Sym| index::get(self.tape, value, &[Idx::One(job)], None).map_err(at);
            let args = [phi.clone(), own(theta)?, own(reals)?, own(ints)?];
            let callee = call.function.callee;
            let value = self.apply(callee, &args, &levels, false, call.span, call.site)?;
            results.push(value.e(self.tape).map_err(at)?);
        }
        let out = self.tape.concat(&results);
        Ok(Sym::flat(Dims::leaf(Leaf::Vector(out.len())), out))
    }
}

struct QuadratureNode<'h> {
    /// The point at which the integrand is evaluated, inside the limits.
    x: E<'h>,
    /// The signed distance of the point to the nearer limit, or NaN if a limit is infinite.
    distance: E<'h>,
    counts: E<'h>,
    /// A number that is nonzero if the node lies strictly between the limits after rounding.
    within: E<'h>,
}

impl<'h> QuadratureNode<'h> {
    fn of(node: E<'h>, [a, b]: [E<'h>; 2], ends: Ends) -> Self {
        let n = |i: usize| node.at(i);
        let one = node.num(1.0);
        let (x, within, middle) = match (ends.lower, ends.upper) {
            (true, true) => {
                let x = n(0) * a + n(1) * b;
                (x, a.lt(x) * x.lt(b), (a + b) * 0.5)
            }
            (true, false) => (a + n(2), a.lt(a + n(2)), a + 1.0),
            (false, true) => (b + n(2), (b + n(2)).lt(b), b - 1.0),
            (false, false) => (n(2), one, node.num(0.0)),
        };
        let both = ends.lower && ends.upper;
        QuadratureNode {
            x: within.select(x, middle),
            distance: if both {
                n(3) * (b - a)
            } else {
                node.num(f64::NAN)
            },
            counts: if both { n(4) * (b - a) } else { n(5) },
            within,
        }
    }
}
