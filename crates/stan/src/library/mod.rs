//! Maps each library function to the code that computes it from known values.

#[cfg(test)]
mod tests;

use std::sync::OnceLock;

use crate::distributions::{self, Suffix, Univariate};
use crate::functions::random::Draws;
use crate::functions::{self, Builtin, Keep};
use crate::program::{BinaryOp, BuiltinId, Span};
use crate::value::error::{Eval, FnError, FnResult, Halt};
use crate::value::{Value, ops, vectorise};

#[derive(Clone, Copy)]
enum Implementation {
    Function(Builtin),
    Univariate(&'static Univariate, Suffix),
}

fn table() -> &'static [Option<Implementation>] {
    static TABLE: OnceLock<Vec<Option<Implementation>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = vec![None; BuiltinId::count()];
        let mut add = |name: &str, implementation: Implementation| {
            if let Some(id) = BuiltinId::from_name(name) {
                table[id.index()] = Some(implementation);
            }
        };
        for (name, builtin) in functions::TABLES.iter().copied().flatten() {
            add(name, Implementation::Function(*builtin));
        }
        for row in distributions::multivariate() {
            for (name, builtin) in row.functions() {
                add(name, Implementation::Function(builtin));
            }
        }
        for (name, builtin) in distributions::FUNCTIONS.iter().copied().flatten() {
            add(name, Implementation::Function(*builtin));
        }
        for row in distributions::univariate() {
            for (name, suffix) in row.functions() {
                add(&name, Implementation::Univariate(row, suffix));
            }
        }
        table
    })
}

fn implementation(id: BuiltinId) -> Option<Implementation> {
    table()[id.index()]
}

/// Returns whether a library function belongs to a univariate distribution. Such functions are applied to containers
/// element by element.
pub fn is_univariate(id: BuiltinId) -> bool {
    matches!(implementation(id), Some(Implementation::Univariate(..)))
}

/// Returns whether this module implements a function for the given number of arguments.
pub fn takes(id: BuiltinId, arguments: usize) -> bool {
    match implementation(id) {
        Some(Implementation::Univariate(row, Suffix::Random)) => row.params.len() == arguments,
        Some(Implementation::Univariate(row, suffix)) => {
            row.params.len() + 1 == arguments || row.longer(suffix, arguments).is_some()
        }
        Some(Implementation::Function(_)) => true,
        None => false,
    }
}

/// Returns the error for a function that this module does not implement.
pub fn unsupported(id: BuiltinId) -> FnError {
    FnError::unsupported(format!(
        "function `{}` is known but not supported yet by the interpreter",
        id.name()
    ))
}

/// Calls a library function that takes no function as an argument and draws no random numbers.
///
/// # Errors
/// Fails if an argument is outside its domain, if the sizes of the arguments do not match, or if this module does not
/// implement the function.
pub fn call(id: BuiltinId, keep: Keep, args: &[&Value]) -> FnResult<Value> {
    let implementation = implementation(id).ok_or_else(|| unsupported(id))?;
    let argument = |i: usize| -> FnResult<&Value> {
        args.get(i)
            .copied()
            .ok_or_else(|| FnError::invalid(format!("{}: too few arguments", id.name())))
    };
    let builtin = match implementation {
        Implementation::Function(builtin) => builtin,
        Implementation::Univariate(row, suffix) => {
            return row.call(suffix, keep, args).map(Value::Real);
        }
    };
    match builtin {
        Builtin::Map(f) => argument(0)?.map_real(&f),
        Builtin::MapComplex(f, g) => {
            let x = argument(0)?;
            if x.has_complex() {
                x.map_complex(&g)
            } else {
                x.map_real(&f)
            }
        }
        Builtin::Map2(f) => vectorise::map2(id.name(), argument(0)?, argument(1)?, &f),
        Builtin::Operator(op) => ops::binary(op, argument(0)?, argument(1)?),
        Builtin::Pure(f) => f(args),
        Builtin::Constrain(f) => f(args).map(|(value, _)| value),
        Builtin::Density(f) => f(keep, args).map(Value::Real),
        Builtin::Random(_) => Err(FnError::invalid(format!(
            "{}: there are no random numbers here",
            id.name()
        ))),
    }
}

/// Calls a function as [`call`] does, but checks `halt` during long computations.
///
/// # Errors
/// Fails as [`call`] does. Also fails if an interrupt is pending.
pub fn call_under(
    halt: &Halt,
    id: BuiltinId,
    keep: Keep,
    args: &[&Value],
    span: Span,
) -> Eval<FnResult<Value>> {
    let name = id.name();
    let long = if name.ends_with("cdf") {
        LONG_TAILS
    } else if name.ends_with("_lpdf") || name.ends_with("_lpmf") {
        LONG_DENSITY
    } else {
        usize::MAX
    };
    let takes_long = |arg: &&Value| is_long(arg) || count(arg) >= long;
    if !halt.is_apart() || !args.iter().any(takes_long) {
        return Ok(call(id, keep, args));
    }
    let owned: Vec<Value> = args.iter().copied().cloned().collect();
    halt.during(span, move || {
        call(id, keep, &owned.iter().collect::<Vec<_>>())
    })
}

/// Applies an operator as [`ops::binary`] does, but checks `halt` during long computations.
///
/// # Errors
/// Fails as the operator does. Also fails if an interrupt is pending.
pub fn binary_under(halt: &Halt, op: BinaryOp, a: &Value, b: &Value, span: Span) -> Eval<Value> {
    let takes_long = match op {
        BinaryOp::Mul => is_long(a) && is_long(b),
        BinaryOp::Div => is_long(b),
        BinaryOp::LeftDiv => is_long(a),
        _ => false,
    };
    let made = match takes_long && halt.is_apart() {
        false => ops::binary(op, a, b),
        true => {
            let (a, b) = (a.clone(), b.clone());
            halt.during(span, move || ops::binary(op, &a, &b))?
        }
    };
    made.map_err(|error| error.at(span))
}

/// Factorising a matrix takes more than a few milliseconds if it has at least this many rows and columns.
const LONG_EXTENT: usize = 128;

/// Sorting at least this many elements takes a few tenths of a second.
const LONG: usize = 1 << 22;

/// A Fourier transform of at least this many elements takes a few hundredths of a second.
const LONG_TRANSFORM: usize = 1 << 16;

/// A distribution function of at least this many elements may take seconds, because the series for one element may have
/// a hundred million terms.
const LONG_TAILS: usize = 256;

/// A density of at least this many elements takes a tenth of a second or more, because one element may take two
/// microseconds, as for `beta_neg_binomial`.
const LONG_DENSITY: usize = 1 << 16;

fn is_long(value: &Value) -> bool {
    let extents = match value {
        Value::Matrix(m) => (m.rows(), m.cols()),
        Value::ComplexMatrix(m) => (m.rows(), m.cols()),
        Value::ComplexVector(all) => return all.len() >= LONG_TRANSFORM,
        Value::Array(all) => return all.first().is_some_and(is_long) || count(value) >= LONG,
        other => return other.len() >= LONG,
    };
    extents.0.min(extents.1) >= LONG_EXTENT
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(all) => all.len() * all.first().map_or(0, count),
        other => other.len(),
    }
}

/// Calls a library function with the suffix `_jacobian`. Returns the constrained value and the log-Jacobian, which the
/// caller adds to the log density.
///
/// # Errors
/// Fails as [`call`] does.
pub fn constrain(id: BuiltinId, args: &[&Value]) -> FnResult<(Value, f64)> {
    match implementation(id) {
        Some(Implementation::Function(Builtin::Constrain(f))) => f(args),
        _ => Err(unsupported(id)),
    }
}

/// Draws as [`draw`] does, but checks `halt` during long computations.
///
/// # Errors
/// Fails as [`draw`] does. Also fails if an interrupt is pending.
pub fn draw_under(
    halt: &Halt,
    id: BuiltinId,
    rng: &mut Draws,
    args: &[&Value],
    span: Span,
) -> Eval<FnResult<Value>> {
    if !halt.is_apart() || !args.iter().any(|arg| is_long(arg)) {
        return Ok(draw(id, rng, args));
    }
    let owned: Vec<Value> = args.iter().copied().cloned().collect();
    let mut own = rng.clone();
    let (made, after) = halt.during(span, move || {
        let made = draw(id, &mut own, &owned.iter().collect::<Vec<_>>());
        (made, own)
    })?;
    *rng = after;
    Ok(made)
}

/// Calls a library function that draws random numbers.
///
/// # Errors
/// Fails as [`call`] does.
pub fn draw(id: BuiltinId, rng: &mut Draws, args: &[&Value]) -> FnResult<Value> {
    match implementation(id).ok_or_else(|| unsupported(id))? {
        Implementation::Function(Builtin::Random(f)) => f(rng, args),
        Implementation::Univariate(row, Suffix::Random) => row.draw(rng, args),
        _ => Err(unsupported(id)),
    }
}
