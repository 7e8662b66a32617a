//! Functions that build, reshape and cut containers.

use num_complex::Complex64;

use crate::functions::{Builtin, NamedBuiltin};
use crate::program::Type;
use crate::value::error::{FnError, FnResult, MAX_VALUE_BYTES, check_bytes};
use crate::value::index::{self, Idx};
use crate::value::laplace;
use crate::value::{Mat, Value};

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    ("append_array", Pure(append_array)),
    ("append_col", Pure(append_col)),
    ("append_row", Pure(append_row)),
    (
        "block",
        Pure(|a| {
            let (i, j) = (at(a, 1)?, at(a, 2)?);
            let (rows, cols) = (
                a[3].size_arg("block: rows")?,
                a[4].size_arg("block: columns")?,
            );
            cut("block", a[0], &[span(i, rows), span(j, cols)])
        }),
    ),
    (
        "col",
        Pure(|a| cut("col", a[0], &[Idx::All, Idx::One(at(a, 1)?)])),
    ),
    ("row", Pure(|a| cut("row", a[0], &[Idx::One(at(a, 1)?)]))),
    (
        "sub_col",
        Pure(|a| {
            let n = a[3].size_arg("sub_col: rows")?;
            cut("sub_col", a[0], &[span(at(a, 1)?, n), Idx::One(at(a, 2)?)])
        }),
    ),
    (
        "sub_row",
        Pure(|a| {
            let n = a[3].size_arg("sub_row: columns")?;
            cut("sub_row", a[0], &[Idx::One(at(a, 1)?), span(at(a, 2)?, n)])
        }),
    ),
    (
        "head",
        Pure(|a| {
            let n = a[1].size_arg("head: size")?;
            cut("head", a[0], &[span(1, n)])
        }),
    ),
    (
        "tail",
        Pure(|a| {
            let n = a[1].size_arg("tail: size")?;
            let from = a[0].len() as i64 - n as i64 + 1;
            cut("tail", a[0], &[span(from as i32, n)])
        }),
    ),
    (
        "segment",
        Pure(|a| {
            let n = a[2].size_arg("segment: size")?;
            cut("segment", a[0], &[span(at(a, 1)?, n)])
        }),
    ),
    (
        "reverse",
        Pure(|a| {
            let last = a[0].len() as i32;
            cut("reverse", a[0], &[Idx::Many((1..=last).rev().collect())])
        }),
    ),
    ("cols", Pure(|a| Ok(Value::Int(extents(a[0]).1 as i32)))),
    ("rows", Pure(|a| Ok(Value::Int(extents(a[0]).0 as i32)))),
    (
        "dims",
        Pure(|a| Ok(Value::Ints(a[0].dims().iter().map(|d| *d as i32).collect()))),
    ),
    ("size", Pure(|a| Ok(Value::Int(a[0].len() as i32)))),
    (
        "num_elements",
        Pure(|a| {
            let scale = if a[0].has_complex() { 2 } else { 1 };
            Ok(Value::Int((a[0].numbers().len() / scale) as i32))
        }),
    ),
    (
        "identity_matrix",
        Pure(|a| {
            let n = count(a[0], "identity_matrix: size")?;
            allocate((n * n) as f64)?;
            Ok(Value::Matrix(crate::value::dense::identity(n)))
        }),
    ),
    ("linspaced_array", Pure(|a| linspaced(a).map(Value::Reals))),
    ("linspaced_int_array", Pure(linspaced_int)),
    (
        "linspaced_row_vector",
        Pure(|a| linspaced(a).map(Value::RowVector)),
    ),
    (
        "linspaced_vector",
        Pure(|a| linspaced(a).map(Value::Vector)),
    ),
    ("one_hot_array", Pure(|a| one_hot(a).map(Value::Reals))),
    (
        "one_hot_int_array",
        Pure(|a| Ok(Value::Ints(one_hot(a)?.iter().map(|x| *x as i32).collect()))),
    ),
    (
        "one_hot_row_vector",
        Pure(|a| one_hot(a).map(Value::RowVector)),
    ),
    ("one_hot_vector", Pure(|a| one_hot(a).map(Value::Vector))),
    ("ones_array", Pure(|a| constant(a, 1.0).map(Value::Reals))),
    (
        "ones_int_array",
        Pure(|a| Ok(Value::Ints(vec![1; count(a[0], "ones_int_array: size")?]))),
    ),
    (
        "ones_row_vector",
        Pure(|a| constant(a, 1.0).map(Value::RowVector)),
    ),
    ("ones_vector", Pure(|a| constant(a, 1.0).map(Value::Vector))),
    ("zeros_array", Pure(|a| constant(a, 0.0).map(Value::Reals))),
    (
        "zeros_int_array",
        Pure(|a| Ok(Value::Ints(vec![0; count(a[0], "zeros_int_array: size")?]))),
    ),
    (
        "zeros_row_vector",
        Pure(|a| constant(a, 0.0).map(Value::RowVector)),
    ),
    (
        "generate_laplace_options",
        Pure(|a| {
            let start = match a[0] {
                Value::Vector(start) => start.clone(),
                size => vec![0.0; count(size, "generate_laplace_options: size")?],
            };
            let mut all = vec![Value::Vector(start), Value::Real(laplace::TOLERANCE)];
            all.extend(laplace::COUNTS.map(Value::Int));
            Ok(Value::Tuple(all))
        }),
    ),
    (
        "zeros_vector",
        Pure(|a| constant(a, 0.0).map(Value::Vector)),
    ),
    (
        "uniform_simplex",
        Pure(|a| {
            let n = count(a[0], "uniform_simplex: size")?;
            if n == 0 {
                return Err(FnError::invalid(
                    "uniform_simplex: size is 0, but must be positive",
                ));
            }
            Ok(Value::Vector(vec![1.0 / n as f64; n]))
        }),
    ),
    ("rep_array", Pure(rep_array)),
    ("rep_matrix", Pure(rep_matrix)),
    (
        "rep_row_vector",
        Pure(|a| rep(a, Value::RowVector, Value::ComplexRowVector)),
    ),
    (
        "rep_vector",
        Pure(|a| rep(a, Value::Vector, Value::ComplexVector)),
    ),
    ("to_array_1d", Pure(|a| flat(a[0], None))),
    ("to_array_2d", Pure(to_array_2d)),
    ("to_matrix", Pure(to_matrix)),
    ("to_row_vector", Pure(|a| flat(a[0], Some(true)))),
    ("to_vector", Pure(|a| flat(a[0], Some(false)))),
];

/// Returns the numbers of rows and columns. A row vector has one row, and any other list has one column.
fn extents(x: &Value) -> (usize, usize) {
    match x {
        Value::Matrix(m) => (m.rows(), m.cols()),
        Value::ComplexMatrix(m) => (m.rows(), m.cols()),
        Value::RowVector(x) => (1, x.len()),
        Value::ComplexRowVector(x) => (1, x.len()),
        other => (other.len(), 1),
    }
}

fn at(args: &[&Value], i: usize) -> FnResult<i32> {
    args[i].int()
}

fn span(from: i32, n: usize) -> Idx {
    if n == 0 {
        return Idx::Between(1, 0);
    }
    // Sizes are below 2³¹, so saturation affects only an index that is out of bounds in any case.
    Idx::Between(from, from.saturating_add((n - 1) as i32))
}

fn cut(name: &str, x: &Value, idx: &[Idx]) -> FnResult<Value> {
    // An empty part of an array of scalars keeps its type.
    let ty = match x {
        Value::Ints(_) => Some(Type::Int.array(1)),
        Value::Reals(_) => Some(Type::Real.array(1)),
        _ => None,
    };
    index::get(x, idx, ty.as_ref()).map_err(|e| FnError::invalid(format!("{name}: {e}")))
}

fn allocate(elements: f64) -> FnResult<()> {
    check_bytes("the result", elements, 8, MAX_VALUE_BYTES)
}

fn count(x: &Value, what: &str) -> FnResult<usize> {
    let n = x.size_arg(what)?;
    allocate(n as f64)?;
    Ok(n)
}

fn constant(args: &[&Value], x: f64) -> FnResult<Vec<f64>> {
    Ok(vec![x; count(args[0], "size")?])
}

fn one_hot(args: &[&Value]) -> FnResult<Vec<f64>> {
    let n = count(args[0], "one_hot: size")?;
    let k = args[1].int()?;
    let mut out = vec![0.0; n];
    match usize::try_from(k) {
        Ok(k) if (1..=n).contains(&k) => out[k - 1] = 1.0,
        _ => {
            return Err(FnError::invalid(format!(
                "one_hot: index is {k}, but must be between 1 and {n}"
            )));
        }
    }
    Ok(out)
}

fn linspaced(args: &[&Value]) -> FnResult<Vec<f64>> {
    let n = count(args[0], "linspaced: size")?;
    let (low, high) = (args[1].real()?, args[2].real()?);
    Ok((0..n)
        .map(|i| {
            if i + 1 == n {
                high
            } else {
                low + (high - low) * i as f64 / (n - 1) as f64
            }
        })
        .collect())
}

/// Implements `linspaced_int_array`. As in Stan, the step is rounded down, so that all steps are equal if possible.
fn linspaced_int(args: &[&Value]) -> FnResult<Value> {
    let n = count(args[0], "linspaced_int_array: size")?;
    let (low, high) = (i64::from(args[1].int()?), i64::from(args[2].int()?));
    if high < low {
        return Err(FnError::domain(format!(
            "linspaced_int_array: the upper bound is {high}, but must be at least {low}"
        )));
    }
    if n == 0 {
        return Ok(Value::Ints(Vec::new()));
    }
    if n == 1 {
        return Ok(Value::Ints(vec![high as i32]));
    }
    let (range, gaps) = (high - low, n as i64 - 1);
    let high = if range >= gaps {
        high - range % gaps
    } else {
        high
    };
    let range = high - low;
    Ok(Value::Ints(
        (0..n as i64)
            .map(|i| {
                if range >= gaps {
                    (low + i * (range / gaps)) as i32
                } else {
                    let per = (n as i64) / (range + 1);
                    (low + (i / per.max(1)).min(range)) as i32
                }
            })
            .collect(),
    ))
}

fn rep(
    args: &[&Value],
    real: fn(Vec<f64>) -> Value,
    complex: fn(Vec<Complex64>) -> Value,
) -> FnResult<Value> {
    let n = count(args[1], "rep: size")?;
    Ok(match args[0] {
        Value::Complex(z) => complex(vec![*z; n]),
        x => real(vec![x.real()?; n]),
    })
}

fn rep_array(args: &[&Value]) -> FnResult<Value> {
    let mut total = args[0].numbers().len() as f64;
    let mut value = args[0].clone();
    for n in args[1..].iter().rev() {
        let n = n.size_arg("rep_array: size")?;
        total *= n as f64;
        allocate(total)?;
        value = match value {
            Value::Int(i) => Value::Ints(vec![i; n]),
            Value::Real(x) => Value::Reals(vec![x; n]),
            other => Value::Array(vec![other; n]),
        };
    }
    Ok(value)
}

fn rep_matrix(args: &[&Value]) -> FnResult<Value> {
    let n = args[1].size_arg("rep_matrix: size")?;
    let of = |x: &Value| -> FnResult<Value> {
        allocate(x.len() as f64 * n as f64)?;
        Ok(match x {
            Value::Vector(x) => Value::Matrix(Mat::from_fn(x.len(), n, |i, _| x[i])),
            Value::RowVector(x) => Value::Matrix(Mat::from_fn(n, x.len(), |_, j| x[j])),
            Value::ComplexVector(x) => Value::ComplexMatrix(Mat::from_fn(x.len(), n, |i, _| x[i])),
            Value::ComplexRowVector(x) => {
                Value::ComplexMatrix(Mat::from_fn(n, x.len(), |_, j| x[j]))
            }
            other => {
                return Err(FnError::invalid(format!(
                    "rep_matrix of {}",
                    other.describe()
                )));
            }
        })
    };
    if args.len() < 3 {
        return of(args[0]);
    }
    let m = args[2].size_arg("rep_matrix: size")?;
    allocate(n as f64 * m as f64)?;
    Ok(match args[0] {
        Value::Complex(z) => Value::ComplexMatrix(Mat::filled(n, m, *z)),
        x => Value::Matrix(Mat::filled(n, m, x.real()?)),
    })
}

fn append_array(args: &[&Value]) -> FnResult<Value> {
    Ok(match (args[0], args[1]) {
        (Value::Ints(a), Value::Ints(b)) => Value::Ints([&a[..], b].concat()),
        (Value::Reals(a), Value::Reals(b)) => Value::Reals([&a[..], b].concat()),
        (a, b) if a.is_empty() => b.clone(),
        (a, b) => {
            let (a, b) = (a.elements()?, b.elements()?);
            if let (Some(x), Some(y)) = (a.first(), b.first())
                && !x.same_shape(y)
            {
                return Err(FnError::invalid(format!(
                    "append_array: elements of different sizes: {} and {}",
                    x.describe(),
                    y.describe()
                )));
            }
            Value::Array([&a[..], &b[..]].concat())
        }
    })
}

fn append_col(args: &[&Value]) -> FnResult<Value> {
    match (args[0], args[1]) {
        (a, b) if is_row(a) && is_row(b) => {
            if a.has_complex() || b.has_complex() {
                Ok(Value::ComplexRowVector(
                    [complexes(a)?, complexes(b)?].concat(),
                ))
            } else {
                Ok(Value::RowVector([a.numbers(), b.numbers()].concat()))
            }
        }
        (a, b) => {
            let (r, c) = (extents(a), extents(b));
            if r.0 != c.0 {
                return Err(FnError::invalid(format!(
                    "append_col: different numbers of rows: {} and {}",
                    a.describe(),
                    b.describe()
                )));
            }
            joined(a, b, r.0, r.1 + c.1)
        }
    }
}

fn joined(a: &Value, b: &Value, rows: usize, cols: usize) -> FnResult<Value> {
    if a.has_complex() || b.has_complex() {
        let data = [complexes(a)?, complexes(b)?].concat();
        return Ok(Value::ComplexMatrix(Mat::new(rows, cols, data)));
    }
    Ok(Value::Matrix(Mat::new(
        rows,
        cols,
        [a.numbers(), b.numbers()].concat(),
    )))
}

fn complexes(x: &Value) -> FnResult<Vec<Complex64>> {
    Ok(match x.map_complex(&|z| z)? {
        Value::Complex(z) => vec![z],
        Value::ComplexVector(x) | Value::ComplexRowVector(x) => x,
        Value::ComplexMatrix(m) => m.into_data(),
        other => {
            return Err(FnError::invalid(format!(
                "complex numbers, not {}",
                other.describe()
            )));
        }
    })
}

fn is_row(x: &Value) -> bool {
    x.is_scalar() || matches!(x, Value::RowVector(_) | Value::ComplexRowVector(_))
}

fn is_column(x: &Value) -> bool {
    x.is_scalar() || matches!(x, Value::Vector(_) | Value::ComplexVector(_))
}

fn append_row(args: &[&Value]) -> FnResult<Value> {
    let (a, b) = (args[0], args[1]);
    if is_column(a) && is_column(b) {
        return if a.has_complex() || b.has_complex() {
            Ok(Value::ComplexVector(
                [complexes(a)?, complexes(b)?].concat(),
            ))
        } else {
            Ok(Value::Vector([a.numbers(), b.numbers()].concat()))
        };
    }
    let (r, c) = (extents(a), extents(b));
    if r.1 != c.1 {
        return Err(FnError::invalid(format!(
            "append_row: different numbers of columns: {} and {}",
            a.describe(),
            b.describe()
        )));
    }
    let (at, bt) = (
        crate::value::ops::transpose(a)?,
        crate::value::ops::transpose(b)?,
    );
    crate::value::ops::transpose(&joined(&at, &bt, r.1, r.0 + c.0)?)
}

/// Flattens matrices column by column, and nested arrays element by element. The result is an array if `row` is `None`,
/// a row vector if `row` is true, and a vector if `row` is false.
fn flat(x: &Value, row: Option<bool>) -> FnResult<Value> {
    fn all_ints(x: &Value) -> bool {
        match x {
            Value::Ints(_) => true,
            Value::Array(x) => !x.is_empty() && x.iter().all(all_ints),
            _ => false,
        }
    }
    if x.has_complex() {
        let parts: Vec<Complex64> = x
            .numbers()
            .chunks_exact(2)
            .map(|z| Complex64::new(z[0], z[1]))
            .collect();
        return Ok(match row {
            Some(true) => Value::ComplexRowVector(parts),
            Some(false) => Value::ComplexVector(parts),
            None => Value::Array(parts.into_iter().map(Value::Complex).collect()),
        });
    }
    let numbers = x.numbers();
    Ok(match row {
        Some(true) => Value::RowVector(numbers),
        Some(false) => Value::Vector(numbers),
        None if all_ints(x) => Value::Ints(numbers.iter().map(|x| *x as i32).collect()),
        None => Value::Reals(numbers),
    })
}

fn to_array_2d(args: &[&Value]) -> FnResult<Value> {
    Ok(match args[0] {
        Value::ComplexMatrix(m) => Value::Array(
            (0..m.rows())
                .map(|i| Value::Array(m.row(i).into_iter().map(Value::Complex).collect()))
                .collect(),
        ),
        other => {
            let m = other.matrix()?;
            Value::Array((0..m.rows()).map(|i| Value::Reals(m.row(i))).collect())
        }
    })
}

fn to_matrix(args: &[&Value]) -> FnResult<Value> {
    let x = args[0];
    if args.len() == 1 {
        return Ok(match x {
            Value::Vector(v) => Value::Matrix(Mat::new(v.len(), 1, v.clone())),
            Value::RowVector(v) => Value::Matrix(Mat::new(1, v.len(), v.clone())),
            Value::ComplexVector(v) => Value::ComplexMatrix(Mat::new(v.len(), 1, v.clone())),
            Value::ComplexRowVector(v) => Value::ComplexMatrix(Mat::new(1, v.len(), v.clone())),
            // The rows of the matrix are the elements of the outer array, which are row vectors or arrays.
            Value::Array(rows) if !rows.is_empty() => {
                let cols = rows[0].len();
                if rows.iter().any(|r| r.len() != cols) {
                    return Err(FnError::invalid("to_matrix: rows of different sizes"));
                }
                if x.has_complex() {
                    let rows: Vec<Vec<Complex64>> = rows
                        .iter()
                        .map(|r| match r {
                            Value::Array(r) => r.iter().map(Value::complex).collect(),
                            r => complexes(r),
                        })
                        .collect::<FnResult<_>>()?;
                    Value::ComplexMatrix(Mat::from_fn(rows.len(), cols, |i, j| rows[i][j]))
                } else {
                    let rows: Vec<Vec<f64>> = rows.iter().map(Value::numbers).collect();
                    Value::Matrix(Mat::from_fn(rows.len(), cols, |i, j| rows[i][j]))
                }
            }
            Value::Array(_) => Value::Matrix(Mat::new(0, 0, Vec::new())),
            other => other.clone(),
        });
    }
    let (rows, cols) = (
        args[1].size_arg("to_matrix: rows")?,
        args[2].size_arg("to_matrix: columns")?,
    );
    let by_column = args.get(3).map_or(Ok(1), |x| x.int())? != 0;
    let scale = if x.has_complex() { 2 } else { 1 };
    let numbers = x.numbers();
    if numbers.len() != scale * rows * cols {
        return Err(FnError::invalid(format!(
            "to_matrix: {} elements do not fill a {rows} × {cols} matrix",
            numbers.len() / scale
        )));
    }
    let position = |i: usize, j: usize| {
        if by_column {
            j * rows + i
        } else {
            i * cols + j
        }
    };
    Ok(if scale == 2 {
        Value::ComplexMatrix(Mat::from_fn(rows, cols, |i, j| {
            let k = 2 * position(i, j);
            Complex64::new(numbers[k], numbers[k + 1])
        }))
    } else {
        Value::Matrix(Mat::from_fn(rows, cols, |i, j| numbers[position(i, j)]))
    })
}
