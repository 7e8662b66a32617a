//! Solves differential equations and systems of equations with interpreted functions.

use std::borrow::Cow;

use jensen_math::solvers::{Arguments, Method, Ode, Point, SHORTEST, System};

use super::higher_order::invoke;
use super::machine::Machine;
use crate::functions::solvers::{DaeForm, OdeForm, RootForm, check_start, check_times};
use crate::program::{FunRef, Span};
use crate::value::error::{ErrorKind, Eval, EvalError, FnError};
use crate::value::{Operand, Value};

struct Interpreted<'a, 'm> {
    machine: &'a mut Machine<'m>,
    function: &'a FunRef,
    rest: Vec<Operand>,
    name: &'static str,
    span: Span,
    /// Whether the last parameters are the ends of the interval of a differential equation.
    clocked: bool,
    /// Whether the function returns residuals. Such a function takes the derivatives of the states as its argument
    /// after the states.
    implicit: bool,
    arrays: bool,
    /// The error that ended the evaluation. If the function rejects, no error is recorded here: the solver receives
    /// NaN, and it may continue at another point.
    error: Option<Box<EvalError>>,
}

impl Interpreted<'_, '_> {
    fn evaluate(&mut self, at: Point<'_>) -> Eval<Vec<f64>> {
        let owned = |value| Operand::Owned(value);
        let mut args = Vec::new();
        let mut extent = 1.0;
        if self.clocked {
            let [.., a, b] = *at.parameters else {
                unreachable!("an interval has two ends")
            };
            extent = b - a;
            args.push(owned(Value::Real(a + extent * at.clock[0])));
        }
        let count = at.states.len() / if self.implicit { 2 } else { 1 };
        let (states, derivatives) = at.states.split_at(count);
        args.push(owned(if self.arrays {
            Value::Reals(states.to_vec())
        } else {
            Value::Vector(states.to_vec())
        }));
        if self.implicit {
            let extent = extent.max(SHORTEST);
            let slopes = derivatives.iter().map(|v| v / extent).collect();
            args.push(owned(Value::Vector(slopes)));
        }
        args.extend(self.rest.iter().cloned());
        let rates = invoke(self.machine, self.function, args, self.span)?.numbers();
        if rates.len() != count {
            return Err(wrong_size(self.name, rates.len(), count).at(self.span));
        }
        if self.implicit {
            return Ok(rates);
        }
        Ok(rates.into_iter().map(|rate| extent * rate).collect())
    }
}

fn wrong_size(name: &str, found: usize, expected: usize) -> FnError {
    FnError::invalid(format!(
        "{name}: the function returns {found} values for {expected} states"
    ))
}

impl System for Interpreted<'_, '_> {
    fn rate(&mut self, at: Point<'_>, out: &mut [f64]) {
        out.fill(f64::NAN);
        if self.error.is_some() {
            return;
        }
        match self.evaluate(at) {
            Ok(rates) => out.copy_from_slice(&rates),
            Err(error) if error.kind == ErrorKind::Rejected => {}
            Err(error) => self.error = Some(error),
        }
    }
}

fn rest(values: &[Operand], from: usize, count: Option<usize>) -> Vec<Operand> {
    let rest = values.iter().skip(from).cloned();
    rest.take(count.unwrap_or(usize::MAX)).collect()
}

pub(super) fn ode(
    machine: &mut Machine<'_>,
    (function, name): (&FunRef, &'static str),
    form: OdeForm,
    values: &[Operand],
    span: Span,
) -> Eval<Value> {
    let [start, first, times] = [0, 1, 2].map(|k| values[k].numbers());
    let at = |e: FnError| e.at(span);
    check_times(name, first[0], &times).map_err(at)?;
    if let Some(y) = start.iter().find(|y| !y.is_finite()) {
        let message = format!("{name}: a state at the start is {y}, but must be finite");
        return Err(FnError::domain(message).at(span));
    }
    let setting = |k: usize| Ok(Cow::Borrowed(&*values[k]));
    let ode = form
        .ode(name, (start.len(), 0, times.len()), &setting)
        .map_err(at)?;
    let system = Interpreted {
        machine,
        function,
        rest: rest(values, form.rest, form.count),
        name,
        span,
        clocked: true,
        implicit: false,
        arrays: form.arrays,
        error: None,
    };
    let rows = [start, first, times].concat();
    let x = Arguments {
        rows: &rows,
        copies: 1,
        lanes: 1,
    };
    let out = solved(system, &ode, x)?;
    let state = |part: &[f64]| {
        if form.arrays {
            Value::Reals(part.to_vec())
        } else {
            Value::Vector(part.to_vec())
        }
    };
    Ok(Value::Array(out.chunks(ode.states).map(state).collect()))
}

pub(super) fn dae(
    machine: &mut Machine<'_>,
    (function, name): (&FunRef, &'static str),
    form: DaeForm,
    values: &[Operand],
    span: Span,
) -> Eval<Value> {
    let [start, slopes, first, times] = [0, 1, 2, 3].map(|k| values[k].numbers());
    let at = |e: FnError| e.at(span);
    check_start(name, "initial state", &start).map_err(at)?;
    check_start(name, "initial state derivative", &slopes).map_err(at)?;
    check_times(name, first[0], &times).map_err(at)?;
    let setting = |k: usize| Ok(Cow::Borrowed(&*values[k]));
    let ode = form
        .ode(name, (start.len(), slopes.len(), 0, times.len()), &setting)
        .map_err(at)?;
    let system = Interpreted {
        machine,
        function,
        rest: rest(values, form.rest, None),
        name,
        span,
        clocked: true,
        implicit: true,
        arrays: false,
        error: None,
    };
    let rows = [start, slopes, first, times].concat();
    let x = Arguments {
        rows: &rows,
        copies: 1,
        lanes: 1,
    };
    let out = solved(system, &ode, x)?;
    let state = |part: &[f64]| Value::Vector(part.to_vec());
    Ok(Value::Array(out.chunks(ode.states).map(state).collect()))
}

fn solved(mut system: Interpreted<'_, '_>, ode: &Ode, x: Arguments<'_>) -> Eval<Vec<f64>> {
    let (name, span) = (system.name, system.span);
    let mut out = vec![0.0; ode.results()];
    ode.solve(&mut system, x, &mut out, None, u64::MAX);
    if let Some(error) = system.error {
        return Err(error);
    }
    if let Some(k) = out.iter().position(|y| y.is_nan()) {
        let k = k / ode.states;
        let consistent = if ode.method == Method::Implicit {
            "; the initial state must satisfy the equations without derivatives"
        } else {
            ""
        };
        let message = format!(
            "{name}: the solver found no solution up to output time {} (at most {} steps between times, \
             relative tolerance {}){consistent}",
            k + 1,
            ode.max_steps,
            ode.relative
        );
        return Err(FnError::domain(message).at(span));
    }
    Ok(out)
}

pub(super) fn root(
    machine: &mut Machine<'_>,
    (function, name): (&FunRef, &'static str),
    form: RootForm,
    values: &[Operand],
    span: Span,
) -> Eval<Value> {
    let start = values[0].numbers();
    let setting = |k: usize| Ok(Cow::Borrowed(&*values[k]));
    let root = form
        .root(name, (start.len(), 0), &setting)
        .map_err(|e| e.at(span))?;
    let mut system = Interpreted {
        machine,
        function,
        rest: rest(values, form.rest, form.count),
        name,
        span,
        clocked: false,
        implicit: false,
        arrays: false,
        error: None,
    };
    let mut out = vec![0.0; start.len()];
    root.solve(&mut system, &start, 1, &mut out);
    if let Some(error) = system.error {
        return Err(error);
    }
    if out.iter().any(|y| y.is_nan()) {
        let message = format!(
            "{name}: the solver found no root within {} steps to {}",
            root.max_steps, root.tolerance
        );
        return Err(FnError::domain(message).at(span));
    }
    Ok(Value::Vector(out))
}
