//! Sums, extremes and norms of containers, and functions that use these.

use num_complex::Complex64;

use jensen_math::special::{log_sum_exp, log_sum_exp_slice};

use crate::functions::{Builtin, NamedBuiltin};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};
use crate::value::vectorise::map2;

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    (
        "sum",
        Pure(|a| {
            fold(
                a[0],
                Complex64::new(0.0, 0.0),
                0.0,
                0,
                |x, y| x + y,
                |x, y| x + y,
                i32::checked_add,
            )
        }),
    ),
    (
        "prod",
        Pure(|a| {
            fold(
                a[0],
                Complex64::new(1.0, 0.0),
                1.0,
                1,
                |x, y| x * y,
                |x, y| x * y,
                i32::checked_mul,
            )
        }),
    ),
    (
        "max",
        Pure(|a| extreme("max", a, f64::NEG_INFINITY, |x, best| x > best)),
    ),
    (
        "min",
        Pure(|a| extreme("min", a, f64::INFINITY, |x, best| x < best)),
    ),
    ("log_sum_exp", Pure(log_sum_exp_of)),
    ("log_mix", Pure(log_mix)),
    (
        "softmax",
        Pure(|a| {
            let x = a[0].slice()?;
            let total = log_sum_exp_slice(x);
            Ok(Value::Vector(x.iter().map(|x| (x - total).exp()).collect()))
        }),
    ),
    (
        "log_softmax",
        Pure(|a| {
            let x = a[0].slice()?;
            let total = log_sum_exp_slice(x);
            Ok(Value::Vector(x.iter().map(|x| x - total).collect()))
        }),
    ),
    ("cumulative_sum", Pure(cumulative_sum)),
    (
        "norm1",
        Pure(|a| Ok(Value::Real(a[0].slice()?.iter().map(|x| x.abs()).sum()))),
    ),
    (
        "norm2",
        Pure(|a| Ok(Value::Real(squares(a[0].slice()?).sqrt()))),
    ),
    (
        "distance",
        Pure(|a| Ok(Value::Real(squared_distance(a)?.sqrt()))),
    ),
    (
        "squared_distance",
        Pure(|a| Ok(Value::Real(squared_distance(a)?))),
    ),
    ("dot_self", Pure(|a| dot(a[0], a[0]))),
    ("dot_product", Pure(|a| dot(a[0], a[1]))),
];

fn squares(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum()
}

#[allow(clippy::too_many_arguments)]
fn fold(
    x: &Value,
    complex_start: Complex64,
    start: f64,
    int_start: i32,
    complex: fn(Complex64, Complex64) -> Complex64,
    real: fn(f64, f64) -> f64,
    int: fn(i32, i32) -> Option<i32>,
) -> FnResult<Value> {
    Ok(match x {
        Value::Int(i) => Value::Int(*i),
        Value::Ints(x) => {
            let total = x.iter().try_fold(int_start, |a, b| int(a, *b));
            Value::Int(
                total
                    .ok_or_else(|| FnError::domain("the result overflows the 32 bits of an int"))?,
            )
        }
        Value::ComplexVector(x) | Value::ComplexRowVector(x) => {
            Value::Complex(x.iter().fold(complex_start, |a, b| complex(a, *b)))
        }
        Value::ComplexMatrix(m) => {
            Value::Complex(m.data().iter().fold(complex_start, |a, b| complex(a, *b)))
        }
        Value::Array(x) if x.iter().any(Value::has_complex) => {
            let mut total = complex_start;
            for v in x {
                total = complex(total, v.complex()?);
            }
            Value::Complex(total)
        }
        other => Value::Real(other.numbers().iter().fold(start, |a, b| real(a, *b))),
    })
}

fn extreme(
    name: &str,
    args: &[&Value],
    start: f64,
    better: fn(f64, f64) -> bool,
) -> FnResult<Value> {
    if let (Value::Int(a), Some(Value::Int(b))) = (args[0], args.get(1)) {
        let first = better(f64::from(*a), f64::from(*b));
        return Ok(Value::Int(if first { *a } else { *b }));
    }
    match args[0] {
        Value::Ints(x) => {
            let mut best = *x
                .first()
                .ok_or_else(|| FnError::invalid(format!("{name}: the array is empty")))?;
            for v in x {
                if better(f64::from(*v), f64::from(best)) {
                    best = *v;
                }
            }
            Ok(Value::Int(best))
        }
        x => {
            let mut best = start;
            for v in x.slice()? {
                if v.is_nan() {
                    return Ok(Value::Real(f64::NAN));
                }
                if better(*v, best) {
                    best = *v;
                }
            }
            Ok(Value::Real(best))
        }
    }
}

fn log_sum_exp_of(args: &[&Value]) -> FnResult<Value> {
    match args {
        [x] => Ok(Value::Real(log_sum_exp_slice(&x.numbers()))),
        [a, b, ..] => map2("log_sum_exp", a, b, &log_sum_exp),
        [] => Err(FnError::invalid("log_sum_exp of nothing")),
    }
}

fn log_mix(args: &[&Value]) -> FnResult<Value> {
    if let [theta, a, b] = args {
        let theta = theta.real()?;
        if !(0.0..=1.0).contains(&theta) {
            return Err(FnError::domain(format!(
                "log_mix: theta is {theta}, but must be between 0 and 1"
            )));
        }
        return Ok(Value::Real(log_sum_exp(
            theta.ln() + a.real()?,
            (-theta).ln_1p() + b.real()?,
        )));
    }
    let theta = args[0].slice()?;
    if theta.iter().any(|t| !(0.0..=1.0).contains(t)) {
        return Err(FnError::domain("log_mix: theta must be between 0 and 1"));
    }
    let mix = |lambda: &[f64]| -> FnResult<f64> {
        if lambda.len() != theta.len() {
            return Err(FnError::invalid(format!(
                "log_mix: {} weights, but {} components",
                theta.len(),
                lambda.len()
            )));
        }
        let terms: Vec<f64> = theta.iter().zip(lambda).map(|(t, l)| t.ln() + l).collect();
        Ok(log_sum_exp_slice(&terms))
    };
    match args[1] {
        Value::Array(many) => many
            .iter()
            .map(|lambda| mix(lambda.slice()?))
            .sum::<FnResult<f64>>()
            .map(Value::Real),
        lambda => mix(lambda.slice()?).map(Value::Real),
    }
}

fn cumulative_sum(args: &[&Value]) -> FnResult<Value> {
    let run = |x: &[f64]| {
        let mut total = 0.0;
        x.iter()
            .map(|x| {
                total += x;
                total
            })
            .collect::<Vec<f64>>()
    };
    let run_complex = |x: &[Complex64]| {
        let mut total = Complex64::new(0.0, 0.0);
        x.iter()
            .map(|x| {
                total += x;
                total
            })
            .collect::<Vec<Complex64>>()
    };
    Ok(match args[0] {
        Value::Ints(x) => {
            let mut total = 0i32;
            let sums: Option<Vec<i32>> = x
                .iter()
                .map(|x| {
                    total = total.checked_add(*x)?;
                    Some(total)
                })
                .collect();
            Value::Ints(
                sums.ok_or_else(|| {
                    FnError::domain("cumulative_sum overflows the 32 bits of an int")
                })?,
            )
        }
        Value::Reals(x) => Value::Reals(run(x)),
        Value::Vector(x) => Value::Vector(run(x)),
        Value::RowVector(x) => Value::RowVector(run(x)),
        Value::ComplexVector(x) => Value::ComplexVector(run_complex(x)),
        Value::ComplexRowVector(x) => Value::ComplexRowVector(run_complex(x)),
        Value::Array(x) => {
            let x: Vec<Complex64> = x.iter().map(Value::complex).collect::<FnResult<_>>()?;
            Value::Array(run_complex(&x).into_iter().map(Value::Complex).collect())
        }
        other => {
            return Err(FnError::invalid(format!(
                "cumulative_sum of {}",
                other.describe()
            )));
        }
    })
}

fn same_len(name: &str, a: usize, b: usize) -> FnResult<()> {
    if a != b {
        return Err(FnError::invalid(format!(
            "{name}: sizes do not match: {a} and {b}"
        )));
    }
    Ok(())
}

fn squared_distance(args: &[&Value]) -> FnResult<f64> {
    if args[0].is_scalar() {
        let d = args[0].real()? - args[1].real()?;
        return Ok(d * d);
    }
    let (a, b) = (args[0].slice()?, args[1].slice()?);
    same_len("distance", a.len(), b.len())?;
    Ok(a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum())
}

/// Σ aᵢ bᵢ. If the vectors are complex, the first one is conjugated.
fn dot(a: &Value, b: &Value) -> FnResult<Value> {
    same_len("dot_product", a.len(), b.len())?;
    if a.has_complex() || b.has_complex() {
        let list = |x: &Value| -> FnResult<Vec<Complex64>> {
            match x.map_complex(&|z| z)? {
                Value::ComplexVector(x) | Value::ComplexRowVector(x) => Ok(x),
                other => Err(FnError::invalid(format!(
                    "dot product of {}",
                    other.describe()
                ))),
            }
        };
        let (a, b) = (list(a)?, list(b)?);
        return Ok(Value::Complex(
            a.iter().zip(&b).map(|(a, b)| a.conj() * b).sum(),
        ));
    }
    let (a, b) = (a.slice()?, b.slice()?);
    Ok(Value::Real(a.iter().zip(b).map(|(a, b)| a * b).sum()))
}
