//! Calls functions that take functions as arguments.

use std::cell::Cell;

use super::solvers;
use crate::functions::solvers::{Form, integral_tolerance};
use crate::interpret::machine::Machine;
use crate::program::{BuiltinId, Expr, ExprKind, FunRef, Span};
use crate::value::error::{Eval, FnError};
use crate::value::{Operand, Value};

pub(crate) fn call(
    machine: &mut Machine<'_>,
    id: BuiltinId,
    args: &[Expr],
    span: Span,
) -> Eval<Value> {
    let Some((
        Expr {
            kind: ExprKind::FunRef(function),
            ..
        },
        rest,
    )) = args.split_first()
    else {
        let message = format!("{}: the first argument is not a function", id.name());
        return Err(FnError::invalid(message).at(span));
    };
    let values = machine.eval_all(rest)?;
    let name = id.name();
    match Form::of(name, values.len()) {
        Some(Form::Ode(form)) => {
            return solvers::ode(machine, (function, name), form, &values, span);
        }
        Some(Form::Dae(form)) => {
            return solvers::dae(machine, (function, name), form, &values, span);
        }
        Some(Form::Root(form)) => {
            return solvers::root(machine, (function, name), form, &values, span);
        }
        Some(Form::Integral) => return integrate(machine, function, values, span),
        Some(Form::Map) => return map_rect(machine, function, values, span),
        None => {}
    }
    match name {
        "reduce_sum" | "reduce_sum_static" => reduce_sum(machine, function, values, span),
        _ => Err(crate::library::unsupported(id).at(span)),
    }
}

pub(super) fn invoke(
    machine: &mut Machine<'_>,
    function: &FunRef,
    args: Vec<Operand>,
    span: Span,
) -> Eval<Value> {
    let drop = function.unnormalised && machine.drop_constants;
    machine
        .apply(function.callee, args, &[], drop, span)
        .map(Operand::into_value)
}

/// Evaluates `reduce_sum` as a single partial sum over the whole list.
fn reduce_sum(
    machine: &mut Machine<'_>,
    function: &FunRef,
    mut values: Vec<Operand>,
    span: Span,
) -> Eval<Value> {
    let n = values.first().map_or(0, |list| list.len());
    if n == 0 {
        return Ok(Value::Real(0.0));
    }
    // The arguments list, grain size and shared arguments become slice, start, end and shared arguments.
    values[1] = Operand::Owned(Value::Int(1));
    values.insert(2, Operand::Owned(Value::Int(n as i32)));
    invoke(machine, function, values, span)
}

fn map_rect(
    machine: &mut Machine<'_>,
    function: &FunRef,
    values: Vec<Operand>,
    span: Span,
) -> Eval<Value> {
    let list = |v: &Operand| -> Eval<Vec<Value>> {
        v.elements().map(|x| x.into_owned()).map_err(|e| e.at(span))
    };
    let [phi, theta, reals, ints] = &values[..] else {
        return Err(FnError::invalid("map_rect: four arguments are needed").at(span));
    };
    let (theta, reals, ints) = (list(theta)?, list(reals)?, list(ints)?);
    if theta.len() != reals.len() || theta.len() != ints.len() {
        let message = "map_rect: the lists of job parameters and data have different sizes";
        return Err(FnError::invalid(message).at(span));
    }
    let mut out = Vec::new();
    for ((theta, reals), ints) in theta.into_iter().zip(reals).zip(ints) {
        let args = vec![
            phi.clone(),
            Operand::Owned(theta),
            Operand::Owned(reals),
            Operand::Owned(ints),
        ];
        out.extend(invoke(machine, function, args, span)?.numbers());
    }
    Ok(Value::Vector(out))
}

/// Computes ∫ f(x, xc, θ, data) dx by double-exponential quadrature. The interval may be infinite.
fn integrate(
    machine: &mut Machine<'_>,
    function: &FunRef,
    values: Vec<Operand>,
    span: Span,
) -> Eval<Value> {
    let number = |v: &Operand| v.real().map_err(|e| e.at(span));
    let (a, b) = (number(&values[0])?, number(&values[1])?);
    if a.is_nan() || b.is_nan() || b < a {
        let message = format!("integrate_1d: the limits are {a} and {b}, but must increase");
        return Err(FnError::domain(message).at(span));
    }
    if a == b {
        return Ok(Value::Real(0.0));
    }
    let half_pi = std::f64::consts::FRAC_PI_2;
    // The point x(t), the derivative of x, and the signed distance of x to the nearer limit (NaN for an infinite
    // limit).
    let node = |t: f64| -> (f64, f64, f64) {
        let (s, c) = (half_pi * t.sinh(), half_pi * t.cosh());
        match (a.is_finite(), b.is_finite()) {
            (true, true) => {
                let half = 0.5 * (b - a);
                let distance = 2.0 * half / (1.0 + (2.0 * s.abs()).exp());
                let (x, xc) = if t < 0.0 {
                    (a + distance, -distance)
                } else {
                    (b - distance, distance)
                };
                (x, half * c / s.cosh().powi(2), xc)
            }
            (true, false) => (a + s.exp(), c * s.exp(), f64::NAN),
            (false, true) => (b - s.exp(), c * s.exp(), f64::NAN),
            (false, false) => (s.sinh(), c * s.cosh(), f64::NAN),
        }
    };
    // The integral of the absolute value of the function, divided by the step.
    let mass = Cell::new(0.0);
    let mut value = |t: f64| -> Eval<f64> {
        let (x, weight, xc) = node(t);
        // On infinite intervals, the nodes end where powers of x are still finite.
        let far = !(a.is_finite() && b.is_finite()) && x.abs() > 1e50;
        if far || !x.is_finite() || !weight.is_finite() || weight == 0.0 || x <= a || x >= b {
            return Ok(0.0);
        }
        let mut args = vec![
            Operand::Owned(Value::Real(x)),
            Operand::Owned(Value::Real(xc)),
        ];
        args.extend(values[2..5.min(values.len())].iter().cloned());
        let y = invoke(machine, function, args, span)?;
        let y = y.real().map_err(|e| e.at(span))? * weight;
        mass.set(mass.get() + y.abs());
        Ok(y)
    };
    let given = values.get(5).map(number).transpose()?;
    let tolerance = integral_tolerance(given).map_err(|e| e.at(span))?;
    let reach = 6.0;
    let mut h = 1.0;
    let mut sum = value(0.0)?;
    for k in 1..=6 {
        sum += value(f64::from(k) * h)? + value(-f64::from(k) * h)?;
    }
    let mut integral = sum * h;
    for _ in 0..10 {
        h *= 0.5;
        let count = (reach / h) as i32;
        for k in (1..=count).step_by(2) {
            sum += value(f64::from(k) * h)? + value(-f64::from(k) * h)?;
        }
        let refined = sum * h;
        let change = (refined - integral).abs();
        integral = refined;
        if change <= 0.1 * tolerance * mass.get() * h {
            return Ok(Value::Real(integral));
        }
    }
    Err(FnError::domain(format!(
        "integrate_1d: the integral did not converge; its last value is {integral}"
    ))
    .at(span))
}
