//! Applies scalar functions to containers.

use num_complex::Complex64;

use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Value};

/// An `array[,]` is treated as a matrix, given row by row, so that it can be paired with a matrix.
fn at_matrix(v: &Value, i: usize, j: usize) -> FnResult<Value> {
    let out_of_shape = || FnError::invalid("containers of different shapes".to_string());
    match v {
        Value::Matrix(m) if i < m.rows() && j < m.cols() => Ok(Value::Real(m[(i, j)])),
        Value::Array(rows) => {
            let row = rows.get(i).ok_or_else(out_of_shape)?;
            row.elements()?.get(j).cloned().ok_or_else(out_of_shape)
        }
        _ => Err(out_of_shape()),
    }
}

fn mismatch(name: &str, a: &Value, b: &Value) -> FnError {
    FnError::invalid(format!(
        "{name}: sizes do not match: {} and {}",
        a.describe(),
        b.describe()
    ))
}

/// Applies `f` to two arguments, element by element. A scalar is paired with every element of the other argument.
///
/// # Errors
/// Fails if both are containers of different shapes.
pub fn map2(name: &str, a: &Value, b: &Value, f: &impl Fn(f64, f64) -> f64) -> FnResult<Value> {
    if a.is_scalar() && b.is_scalar() {
        return Ok(Value::Real(f(a.real()?, b.real()?)));
    }
    if a.is_scalar() {
        let x = a.real()?;
        return b.map_real(&|y| f(x, y));
    }
    if b.is_scalar() {
        let y = b.real()?;
        return a.map_real(&|x| f(x, y));
    }
    let zip = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect();
    match (a, b) {
        (Value::Matrix(m), other) | (other, Value::Matrix(m)) => {
            let rows = other.dims();
            if rows != [m.rows(), m.cols()] && m.data().len() + other.numbers().len() > 0 {
                return Err(mismatch(name, a, b));
            }
            let mut out = Mat::filled(m.rows(), m.cols(), 0.0);
            for j in 0..m.cols() {
                for i in 0..m.rows() {
                    out[(i, j)] = f(at_matrix(a, i, j)?.real()?, at_matrix(b, i, j)?.real()?);
                }
            }
            Ok(Value::Matrix(out))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => Ok(Value::Array(
            x.iter()
                .zip(y)
                .map(|(x, y)| map2(name, x, y, f))
                .collect::<FnResult<_>>()?,
        )),
        (Value::Array(x), y) | (y, Value::Array(x)) if x.is_empty() && y.is_empty() => {
            Ok(Value::Array(Vec::new()))
        }
        (Value::Array(_), _) | (_, Value::Array(_)) => Err(mismatch(name, a, b)),
        _ if a.len() != b.len() => Err(mismatch(name, a, b)),
        _ => {
            let out = zip(&a.numbers(), &b.numbers());
            Ok(match (a, b) {
                (Value::Vector(_), _) | (_, Value::Vector(_)) => Value::Vector(out),
                (Value::RowVector(_), _) | (_, Value::RowVector(_)) => Value::RowVector(out),
                _ => Value::Reals(out),
            })
        }
    }
}

/// Applies `f` to two complex arguments, element by element. A scalar is paired with every element of the other
/// argument.
///
/// # Errors
/// Fails if both are containers of different shapes.
pub fn map2_complex(
    name: &str,
    a: &Value,
    b: &Value,
    f: &impl Fn(Complex64, Complex64) -> Complex64,
) -> FnResult<Value> {
    if a.is_scalar() {
        let x = a.complex()?;
        return b.map_complex(&|y| f(x, y));
    }
    if b.is_scalar() {
        let y = b.complex()?;
        return a.map_complex(&|x| f(x, y));
    }
    let zip = |x: &[Complex64], y: &[Complex64]| x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect();
    match (a.map_complex(&|z| z)?, b.map_complex(&|z| z)?) {
        (Value::ComplexVector(x), Value::ComplexVector(y)) if x.len() == y.len() => {
            Ok(Value::ComplexVector(zip(&x, &y)))
        }
        (Value::ComplexRowVector(x), Value::ComplexRowVector(y)) if x.len() == y.len() => {
            Ok(Value::ComplexRowVector(zip(&x, &y)))
        }
        (Value::ComplexMatrix(x), Value::ComplexMatrix(y))
            if x.rows() == y.rows() && x.cols() == y.cols() =>
        {
            Ok(Value::ComplexMatrix(Mat::new(
                x.rows(),
                x.cols(),
                zip(x.data(), y.data()),
            )))
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => Ok(Value::Array(
            x.iter()
                .zip(&y)
                .map(|(x, y)| map2_complex(name, x, y, f))
                .collect::<FnResult<_>>()?,
        )),
        _ => Err(mismatch(name, a, b)),
    }
}

/// Applies `f` to three arguments, element by element. A scalar is paired with every element of the other arguments.
///
/// # Errors
/// Fails if containers have different shapes.
pub fn map3(
    name: &str,
    a: &Value,
    b: &Value,
    c: &Value,
    f: &impl Fn(f64, f64, f64) -> f64,
) -> FnResult<Value> {
    if c.is_scalar() {
        let z = c.real()?;
        return map2(name, a, b, &|x, y| f(x, y, z));
    }
    if b.is_scalar() {
        let y = b.real()?;
        return map2(name, a, c, &|x, z| f(x, y, z));
    }
    if a.is_scalar() {
        let x = a.real()?;
        return map2(name, b, c, &|y, z| f(x, y, z));
    }
    match (a, b, c) {
        (Value::Array(x), Value::Array(y), Value::Array(z))
            if x.len() == y.len() && y.len() == z.len() =>
        {
            let parts = (0..x.len()).map(|i| map3(name, &x[i], &y[i], &z[i], f));
            Ok(Value::Array(parts.collect::<FnResult<_>>()?))
        }
        _ => {
            if !a.same_shape(b) || !b.same_shape(c) {
                return Err(mismatch(name, a, if a.same_shape(b) { c } else { b }));
            }
            let (x, y, z) = (a.numbers(), b.numbers(), c.numbers());
            let out: Vec<f64> = (0..x.len()).map(|i| f(x[i], y[i], z[i])).collect();
            Ok(match a {
                Value::Vector(_) => Value::Vector(out),
                Value::RowVector(_) => Value::RowVector(out),
                Value::Matrix(m) => Value::Matrix(Mat::new(m.rows(), m.cols(), out)),
                _ => Value::Reals(out),
            })
        }
    }
}
