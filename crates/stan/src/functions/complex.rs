//! Functions of complex numbers.

use num_complex::Complex64;
use rustfft::{FftDirection, FftPlanner};

use crate::functions::{Builtin, NamedBuiltin};
use crate::value::Value;
use crate::value::error::{FnError, FnResult};

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    ("arg", Pure(|a| Ok(Value::Real(a[0].complex()?.arg())))),
    ("conj", Pure(|a| a[0].map_complex(&|z| z.conj()))),
    ("get_imag", Pure(|a| parts(a[0], &|z| z.im))),
    ("get_real", Pure(|a| parts(a[0], &|z| z.re))),
    (
        "norm",
        Pure(|a| Ok(Value::Real(a[0].complex()?.norm_sqr()))),
    ),
    (
        "polar",
        Pure(|a| {
            Ok(Value::Complex(Complex64::from_polar(
                a[0].real()?,
                a[1].real()?,
            )))
        }),
    ),
    (
        "proj",
        Pure(|a| {
            let z = a[0].complex()?;
            Ok(Value::Complex(
                if z.re.is_infinite() || z.im.is_infinite() {
                    Complex64::new(f64::INFINITY, 0f64.copysign(z.im))
                } else {
                    z
                },
            ))
        }),
    ),
    ("to_complex", Pure(to_complex)),
    ("fft", Pure(|a| fourier("fft", a[0], FftDirection::Forward))),
    (
        "inv_fft",
        Pure(|a| fourier("inv_fft", a[0], FftDirection::Inverse)),
    ),
    ("fft2", Pure(|a| fourier2(a[0], FftDirection::Forward))),
    ("inv_fft2", Pure(|a| fourier2(a[0], FftDirection::Inverse))),
];

fn parts(x: &Value, f: &impl Fn(Complex64) -> f64) -> FnResult<Value> {
    Ok(match x {
        Value::ComplexVector(x) => Value::Vector(x.iter().map(|z| f(*z)).collect()),
        Value::ComplexRowVector(x) => Value::RowVector(x.iter().map(|z| f(*z)).collect()),
        Value::ComplexMatrix(m) => Value::Matrix(m.map(f)),
        Value::Array(x) => {
            let parts: Vec<Value> = x.iter().map(|v| parts(v, f)).collect::<FnResult<_>>()?;
            match parts.first() {
                Some(Value::Real(_)) => Value::array(parts, &crate::program::Type::Real),
                _ => Value::Array(parts),
            }
        }
        scalar => Value::Real(f(scalar.complex()?)),
    })
}

fn to_complex(args: &[&Value]) -> FnResult<Value> {
    match args {
        [] => Ok(Value::Complex(Complex64::new(0.0, 0.0))),
        [x] => x.map_complex(&|z| z),
        [re, im, ..] => crate::value::vectorise::map2_complex("to_complex", re, im, &|re, im| {
            Complex64::new(re.re, im.re)
        }),
    }
}

/// Computes the Fourier transform in time proportional to n log n, for every length n. The inverse transform divides by
/// n.
fn transform(x: &[Complex64], direction: FftDirection) -> Vec<Complex64> {
    let mut out = x.to_vec();
    if !out.is_empty() {
        FftPlanner::new()
            .plan_fft(out.len(), direction)
            .process(&mut out);
    }
    if direction == FftDirection::Inverse {
        let n = out.len() as f64;
        out.iter_mut().for_each(|z| *z /= n);
    }
    out
}

fn fourier(name: &str, x: &Value, direction: FftDirection) -> FnResult<Value> {
    match x {
        Value::ComplexVector(x) => Ok(Value::ComplexVector(transform(x, direction))),
        other => Err(FnError::invalid(format!("{name} of {}", other.describe()))),
    }
}

fn fourier2(x: &Value, direction: FftDirection) -> FnResult<Value> {
    let Value::ComplexMatrix(m) = x else {
        return Err(FnError::invalid(format!("fft2 of {}", x.describe())));
    };
    let mut out = m.clone();
    for j in 0..out.cols() {
        let column = transform(out.column(j), direction);
        column
            .iter()
            .enumerate()
            .for_each(|(i, z)| out[(i, j)] = *z);
    }
    for i in 0..out.rows() {
        let row = transform(&out.row(i), direction);
        row.iter().enumerate().for_each(|(j, z)| out[(i, j)] = *z);
    }
    Ok(Value::ComplexMatrix(out))
}
