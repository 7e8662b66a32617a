//! The constraining transforms as functions: `…_constrain`, `…_jacobian` and `…_unconstrain`.

use std::cell::Cell;

use crate::functions::{Builtin, NamedBuiltin};
use crate::transform::{Limit, Transform};
use crate::value::error::{FnError, FnResult};
use crate::value::shape::extents;
use crate::value::{Mat, Value};

use Builtin::{Constrain, Pure};

macro_rules! functions {
    ($($name:literal: $constrain:expr, $free:expr;)*) => {
        &[$(
            (concat!($name, "_constrain"), Constrain($constrain)),
            (concat!($name, "_jacobian"), Constrain($constrain)),
            (concat!($name, "_unconstrain"), Pure($free)),
        )*]
    };
}

pub(super) const TABLE: &[NamedBuiltin] = functions! {
    "lower_bound": |a| bounded(a, lower), |a| unbounded(a, lower);
    "upper_bound": |a| bounded(a, upper), |a| unbounded(a, upper);
    "lower_upper_bound": |a| bounded(a, lower_upper), |a| unbounded(a, lower_upper);
    "offset_multiplier": |a| bounded(a, affine), |a| unbounded(a, affine);
    "ordered": |a| vector(a, &Transform::Ordered, 0), |a| free(a[0], &Transform::Ordered);
    "positive_ordered":
        |a| vector(a, &Transform::PositiveOrdered, 0), |a| free(a[0], &Transform::PositiveOrdered);
    "simplex": |a| vector(a, &Transform::Simplex, 1), |a| free(a[0], &Transform::Simplex);
    "unit_vector": |a| vector(a, &Transform::UnitVector, 0), |a| free(a[0], &Transform::UnitVector);
    "sum_to_zero": |a| matrix(a, &Transform::SumToZero, 1, 1), |a| free(a[0], &Transform::SumToZero);
    "stochastic_column":
        |a| matrix(a, &Transform::ColumnStochastic, 1, 0), |a| free(a[0], &Transform::ColumnStochastic);
    "stochastic_row":
        |a| matrix(a, &Transform::RowStochastic, 0, 1), |a| free(a[0], &Transform::RowStochastic);
    "cholesky_factor_corr":
        |a| sized(a, &Transform::CholeskyFactorCorr), |a| free(a[0], &Transform::CholeskyFactorCorr);
    "cholesky_factor_cov":
        |a| sized(a, &Transform::CholeskyFactorCov), |a| free(a[0], &Transform::CholeskyFactorCov);
    "corr_matrix": |a| sized(a, &Transform::CorrMatrix), |a| free(a[0], &Transform::CorrMatrix);
    "cov_matrix": |a| sized(a, &Transform::CovMatrix), |a| free(a[0], &Transform::CovMatrix);
};

fn bound(x: &Value) -> FnResult<Limit> {
    Ok(if x.is_scalar() {
        Limit::All(x.real()?)
    } else {
        Limit::Each(x.numbers())
    })
}

fn lower(a: &[&Value]) -> FnResult<Transform> {
    Ok(Transform::Lower(bound(a[1])?))
}

fn upper(a: &[&Value]) -> FnResult<Transform> {
    Ok(Transform::Upper(bound(a[1])?))
}

fn lower_upper(a: &[&Value]) -> FnResult<Transform> {
    Ok(Transform::LowerUpper(bound(a[1])?, bound(a[2])?))
}

fn affine(a: &[&Value]) -> FnResult<Transform> {
    Ok(Transform::OffsetMultiplier(bound(a[1])?, bound(a[2])?))
}

fn like(x: &Value, numbers: &[f64]) -> FnResult<Value> {
    let at = Cell::new(0);
    x.map_real(&|_| {
        let i = at.get();
        at.set(i + 1);
        numbers.get(i).copied().unwrap_or(f64::NAN)
    })
}

fn check_bounds(x: &[f64], bounds: &[&Value]) -> FnResult<()> {
    for b in bounds {
        if !b.is_scalar() && b.numbers().len() != x.len() {
            return Err(FnError::invalid(format!(
                "{} bounds for {} numbers",
                b.numbers().len(),
                x.len()
            )));
        }
    }
    Ok(())
}

fn bounded(
    a: &[&Value],
    transform: fn(&[&Value]) -> FnResult<Transform>,
) -> FnResult<(Value, f64)> {
    let z = a[0].numbers();
    check_bounds(&z, &a[1..])?;
    let mut out = Vec::with_capacity(z.len());
    let jacobian = transform(a)?.constrain(&z, z.len(), 1, &mut out);
    Ok((like(a[0], &out)?, jacobian))
}

fn unbounded(a: &[&Value], transform: fn(&[&Value]) -> FnResult<Transform>) -> FnResult<Value> {
    let x = a[0].numbers();
    check_bounds(&x, &a[1..])?;
    let mut out = Vec::with_capacity(x.len());
    transform(a)?
        .unconstrain(&x, x.len(), 1, &mut out)
        .map_err(violation)?;
    like(a[0], &out)
}

fn violation(v: crate::transform::Violation) -> FnError {
    FnError::domain(format!("expected {}, found {}", v.expected, v.found))
}

fn each(x: &Value, f: &mut impl FnMut(&Value) -> FnResult<(Value, f64)>) -> FnResult<(Value, f64)> {
    match x {
        Value::Array(x) => {
            let mut total = 0.0;
            let mut out = Vec::with_capacity(x.len());
            for x in x {
                let (value, jacobian) = each(x, f)?;
                total += jacobian;
                out.push(value);
            }
            Ok((Value::Array(out), total))
        }
        leaf => f(leaf),
    }
}

fn constrain(
    t: &Transform,
    z: &[f64],
    rows: usize,
    cols: usize,
    column: bool,
) -> FnResult<(Value, f64)> {
    let expected = t.coordinates(rows, cols);
    if z.len() != expected {
        return Err(FnError::invalid(format!(
            "{} for {rows} × {cols} elements needs {expected} coordinates, found {}",
            t.describe(),
            z.len()
        )));
    }
    crate::value::error::check_bytes(
        "the constrained value",
        rows as f64 * cols as f64,
        8,
        crate::value::error::MAX_VALUE_BYTES,
    )?;
    let mut out = Vec::with_capacity(rows * cols);
    let jacobian = t.constrain(z, rows, cols, &mut out);
    Ok((
        if column {
            Value::Vector(out)
        } else {
            Value::Matrix(Mat::new(rows, cols, out))
        },
        jacobian,
    ))
}

fn vector(a: &[&Value], t: &Transform, more: usize) -> FnResult<(Value, f64)> {
    each(a[0], &mut |z| {
        let z = z.slice()?;
        constrain(t, z, z.len() + more, 1, true)
    })
}

/// The constrained matrix has `rows` more rows and `cols` more columns than the matrix of its coordinates. A
/// constrained vector has `rows` more elements than its coordinates.
fn matrix(a: &[&Value], t: &Transform, rows: usize, cols: usize) -> FnResult<(Value, f64)> {
    each(a[0], &mut |z| match z {
        Value::Matrix(m) => constrain(t, m.data(), m.rows() + rows, m.cols() + cols, false),
        other => {
            let z = other.slice()?;
            constrain(t, z, z.len() + rows, 1, true)
        }
    })
}

fn sized(a: &[&Value], t: &Transform) -> FnResult<(Value, f64)> {
    let rows = a[1].size_arg("rows")?;
    let cols = a.get(2).map_or(Ok(rows), |n| n.size_arg("columns"))?;
    each(a[0], &mut |z| constrain(t, z.slice()?, rows, cols, false))
}

fn free(x: &Value, t: &Transform) -> FnResult<Value> {
    each(x, &mut |x| {
        let (rows, cols) = extents(x);
        let mut out = Vec::new();
        t.unconstrain(x.slice()?, rows, cols, &mut out)
            .map_err(violation)?;
        let less = |n: usize| n.saturating_sub(1);
        let value = match (x, t) {
            (Value::Matrix(_), Transform::SumToZero) => {
                Value::Matrix(Mat::new(less(rows), less(cols), out))
            }
            (_, Transform::ColumnStochastic) => Value::Matrix(Mat::new(less(rows), cols, out)),
            (_, Transform::RowStochastic) => Value::Matrix(Mat::new(rows, less(cols), out)),
            _ => Value::Vector(out),
        };
        Ok((value, 0.0))
    })
    .map(|(value, _)| value)
}
