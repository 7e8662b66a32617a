//! Complex numbers.

use num_complex::Complex64;

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
    ("fft", Pure(|a| fourier("fft", a[0], -1.0))),
    ("inv_fft", Pure(|a| fourier("inv_fft", a[0], 1.0))),
    ("fft2", Pure(|a| fourier2(a[0], -1.0))),
    ("inv_fft2", Pure(|a| fourier2(a[0], 1.0))),
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

/// The discrete Fourier transform from its definition; the inverse divides by the length.
fn transform(x: &[Complex64], sign: f64) -> Vec<Complex64> {
    let n = x.len();
    let scale = if sign > 0.0 { 1.0 / n as f64 } else { 1.0 };
    (0..n)
        .map(|k| {
            let sum: Complex64 = (0..n)
                .map(|j| {
                    let turn = sign * 2.0 * std::f64::consts::PI * ((j * k) % n) as f64 / n as f64;
                    x[j] * Complex64::from_polar(1.0, turn)
                })
                .sum();
            sum * scale
        })
        .collect()
}

fn fourier(name: &str, x: &Value, sign: f64) -> FnResult<Value> {
    match x {
        Value::ComplexVector(x) => Ok(Value::ComplexVector(transform(x, sign))),
        other => Err(FnError::invalid(format!("{name} of {}", other.describe()))),
    }
}

fn fourier2(x: &Value, sign: f64) -> FnResult<Value> {
    let Value::ComplexMatrix(m) = x else {
        return Err(FnError::invalid(format!("fft2 of {}", x.describe())));
    };
    let mut out = m.clone();
    for j in 0..out.cols() {
        let column = transform(out.column(j), sign);
        column
            .iter()
            .enumerate()
            .for_each(|(i, z)| out[(i, j)] = *z);
    }
    for i in 0..out.rows() {
        let row = transform(&out.row(i), sign);
        row.iter().enumerate().for_each(|(j, z)| out[(i, j)] = *z);
    }
    Ok(Value::ComplexMatrix(out))
}
