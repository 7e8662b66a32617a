//! Products of matrices with special structure.

use num_complex::Complex64;

use crate::functions::{Builtin, NamedBuiltin};
use crate::value::dense::{self, multiply};
use crate::value::error::{FnError, FnResult};
use crate::value::{Mat, Matrix, Value};

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    ("add_diag", Pure(add_diag)),
    ("columns_dot_product", Pure(|a| dots(a[0], a[1], true))),
    ("columns_dot_self", Pure(|a| dots(a[0], a[0], true))),
    ("rows_dot_product", Pure(|a| dots(a[0], a[1], false))),
    ("rows_dot_self", Pure(|a| dots(a[0], a[0], false))),
    (
        "crossprod",
        Pure(|a| {
            let m = a[0].matrix()?;
            Ok(Value::Matrix(multiply(&m.transpose(), m)))
        }),
    ),
    (
        "tcrossprod",
        Pure(|a| {
            let m = a[0].matrix()?;
            Ok(Value::Matrix(multiply(m, &m.transpose())))
        }),
    ),
    (
        "multiply_lower_tri_self_transpose",
        Pure(|a| {
            let m = a[0].matrix()?;
            let l = Mat::from_fn(
                m.rows(),
                m.cols(),
                |i, j| if i >= j { m[(i, j)] } else { 0.0 },
            );
            Ok(Value::Matrix(multiply(&l, &l.transpose())))
        }),
    ),
    (
        "diag_matrix",
        Pure(|a| {
            Ok(match a[0] {
                Value::ComplexVector(x) => {
                    let zero = Complex64::new(0.0, 0.0);
                    Value::ComplexMatrix(Mat::from_fn(x.len(), x.len(), |i, j| {
                        if i == j { x[i] } else { zero }
                    }))
                }
                other => {
                    let x = other.slice()?;
                    Value::Matrix(Mat::from_fn(x.len(), x.len(), |i, j| {
                        if i == j { x[i] } else { 0.0 }
                    }))
                }
            })
        }),
    ),
    (
        "diagonal",
        Pure(|a| {
            Ok(match a[0] {
                Value::ComplexMatrix(m) => {
                    Value::ComplexVector((0..m.rows().min(m.cols())).map(|i| m[(i, i)]).collect())
                }
                other => {
                    let m = other.matrix()?;
                    Value::Vector((0..m.rows().min(m.cols())).map(|i| m[(i, i)]).collect())
                }
            })
        }),
    ),
    ("diag_pre_multiply", Pure(|a| scale(a[1], a[0], true))),
    ("diag_post_multiply", Pure(|a| scale(a[0], a[1], false))),
    (
        "quad_form",
        Pure(|a| quad_form("quad_form", a[0], a[1], false)),
    ),
    (
        "quad_form_sym",
        Pure(|a| {
            dense::check_symmetric("quad_form_sym", a[0].matrix()?)?;
            quad_form("quad_form_sym", a[0], a[1], true)
        }),
    ),
    (
        "quad_form_diag",
        Pure(|a| {
            let (m, x) = (a[0].matrix()?, a[1].slice()?);
            let n = dense::check_square("quad_form_diag", m)?;
            fits("quad_form_diag", n, x.len())?;
            Ok(Value::Matrix(Mat::from_fn(n, n, |i, j| {
                x[i] * m[(i, j)] * x[j]
            })))
        }),
    ),
    (
        "trace",
        Pure(|a| {
            Ok(match a[0] {
                Value::ComplexMatrix(m) => {
                    Value::Complex((0..m.rows().min(m.cols())).map(|i| m[(i, i)]).sum())
                }
                other => Value::Real(trace(other.matrix()?)),
            })
        }),
    ),
    (
        "trace_quad_form",
        Pure(|a| match a[1] {
            Value::Vector(_) => quad_form("trace_quad_form", a[0], a[1], false),
            _ => {
                let product = quad_form("trace_quad_form", a[0], a[1], false)?;
                Ok(Value::Real(trace(product.matrix()?)))
            }
        }),
    ),
    (
        "trace_gen_quad_form",
        Pure(|a| {
            let (d, m, b) = (a[0].matrix()?, a[1].matrix()?, a[2]);
            let inner = quad_form("trace_gen_quad_form", &Value::Matrix(m.clone()), b, false)?;
            let inner = inner.matrix()?;
            fits("trace_gen_quad_form", d.cols(), inner.rows())?;
            Ok(Value::Real(trace(&multiply(d, inner))))
        }),
    ),
    (
        "trace_dot",
        Pure(|a| {
            let (x, y) = (a[0].matrix()?, a[1].matrix()?);
            fits("trace_dot", x.cols(), y.rows())?;
            fits("trace_dot", x.rows(), y.cols())?;
            Ok(Value::Real(trace(&multiply(x, y))))
        }),
    ),
    (
        "csr_extract",
        Pure(|a| {
            let (w, v, u) = csr(a[0].matrix()?);
            Ok(Value::Tuple(vec![
                Value::Vector(w),
                Value::Ints(v),
                Value::Ints(u),
            ]))
        }),
    ),
    (
        "csr_extract_w",
        Pure(|a| Ok(Value::Vector(csr(a[0].matrix()?).0))),
    ),
    (
        "csr_extract_v",
        Pure(|a| Ok(Value::Ints(csr(a[0].matrix()?).1))),
    ),
    (
        "csr_extract_u",
        Pure(|a| Ok(Value::Ints(csr(a[0].matrix()?).2))),
    ),
    (
        "csr_to_dense_matrix",
        Pure(|a| Ok(Value::Matrix(csr_dense("csr_to_dense_matrix", a)?))),
    ),
    (
        "csr_matrix_times_vector",
        Pure(|a| {
            let m = csr_dense("csr_matrix_times_vector", a)?;
            let b = a[5].slice()?;
            fits("csr_matrix_times_vector", m.cols(), b.len())?;
            Ok(Value::Vector(
                multiply(&m, &Mat::new(b.len(), 1, b.to_vec())).into_data(),
            ))
        }),
    ),
];

fn fits(name: &str, n: usize, found: usize) -> FnResult<()> {
    if n != found {
        return Err(FnError::invalid(format!(
            "{name}: sizes do not match: {n} and {found}"
        )));
    }
    Ok(())
}

fn trace(m: &Matrix) -> f64 {
    (0..m.rows().min(m.cols())).map(|i| m[(i, i)]).sum()
}

fn add_diag(args: &[&Value]) -> FnResult<Value> {
    if args[0].has_complex() || args[1].has_complex() {
        let Value::ComplexMatrix(mut m) = args[0].map_complex(&|z| z)? else {
            return Err(FnError::invalid("add_diag of no matrix"));
        };
        let d = args[1].map_complex(&|z| z)?;
        let n = m.rows().min(m.cols());
        for i in 0..n {
            let x = match &d {
                Value::Complex(z) => *z,
                Value::ComplexVector(x) | Value::ComplexRowVector(x) => {
                    fits("add_diag", n, x.len())?;
                    x[i]
                }
                other => other.complex()?,
            };
            m[(i, i)] += x;
        }
        return Ok(Value::ComplexMatrix(m));
    }
    let mut m = args[0].matrix()?.clone();
    let n = m.rows().min(m.cols());
    if args[1].is_scalar() {
        let x = args[1].real()?;
        (0..n).for_each(|i| m[(i, i)] += x);
    } else {
        let x = args[1].slice()?;
        fits("add_diag", n, x.len())?;
        (0..n).for_each(|i| m[(i, i)] += x[i]);
    }
    Ok(Value::Matrix(m))
}

/// Returns the dot products of the columns, or of the rows, of two containers of the same shape. If the containers are
/// complex, the first is conjugated.
fn dots(a: &Value, b: &Value, columns: bool) -> FnResult<Value> {
    let as_matrix = |x: &Value| -> FnResult<Mat<Complex64>> {
        Ok(match x.map_complex(&|z| z)? {
            Value::ComplexMatrix(m) => m,
            Value::ComplexVector(x) => Mat::new(x.len(), 1, x),
            Value::ComplexRowVector(x) => Mat::new(1, x.len(), x),
            other => {
                return Err(FnError::invalid(format!(
                    "dot products of {}",
                    other.describe()
                )));
            }
        })
    };
    let complex = a.has_complex() || b.has_complex();
    let (a, b) = (as_matrix(a)?, as_matrix(b)?);
    fits("dot products", a.rows(), b.rows())?;
    fits("dot products", a.cols(), b.cols())?;
    let (outer, inner) = if columns {
        (a.cols(), a.rows())
    } else {
        (a.rows(), a.cols())
    };
    let sums: Vec<Complex64> = (0..outer)
        .map(|o| {
            (0..inner)
                .map(|i| {
                    let at = if columns { (i, o) } else { (o, i) };
                    a[at].conj() * b[at]
                })
                .sum()
        })
        .collect();
    let real = || sums.iter().map(|z| z.re).collect();
    Ok(match (complex, columns) {
        (false, true) => Value::RowVector(real()),
        (false, false) => Value::Vector(real()),
        (true, true) => Value::ComplexRowVector(sums),
        (true, false) => Value::ComplexVector(sums),
    })
}

/// Multiplies the rows of a matrix by the elements of a vector if `rows` is true, and multiplies the columns otherwise.
fn scale(m: &Value, d: &Value, rows: bool) -> FnResult<Value> {
    let pick = |i: usize, j: usize| if rows { i } else { j };
    if m.has_complex() || d.has_complex() {
        let (m, d) = (m.map_complex(&|z| z)?, d.map_complex(&|z| z)?);
        let (Value::ComplexMatrix(m), Value::ComplexVector(d) | Value::ComplexRowVector(d)) =
            (m, d)
        else {
            return Err(FnError::invalid("a matrix and a vector are needed"));
        };
        fits(
            "diag multiply",
            if rows { m.rows() } else { m.cols() },
            d.len(),
        )?;
        return Ok(Value::ComplexMatrix(Mat::from_fn(
            m.rows(),
            m.cols(),
            |i, j| m[(i, j)] * d[pick(i, j)],
        )));
    }
    let (m, d) = (m.matrix()?, d.slice()?);
    fits(
        "diag multiply",
        if rows { m.rows() } else { m.cols() },
        d.len(),
    )?;
    Ok(Value::Matrix(Mat::from_fn(m.rows(), m.cols(), |i, j| {
        m[(i, j)] * d[pick(i, j)]
    })))
}

/// Bᵀ A B
fn quad_form(name: &str, a: &Value, b: &Value, symmetric: bool) -> FnResult<Value> {
    let a = a.matrix()?;
    let n = dense::check_square(name, a)?;
    match b {
        Value::Vector(x) => {
            fits(name, n, x.len())?;
            let b = Mat::new(n, 1, x.clone());
            let product = multiply(&b.transpose(), &multiply(a, &b));
            Ok(Value::Real(product.data().iter().sum()))
        }
        other => {
            let b = other.matrix()?;
            fits(name, n, b.rows())?;
            let product = multiply(&b.transpose(), &multiply(a, b));
            Ok(Value::Matrix(if symmetric {
                let k = product.rows();
                Mat::from_fn(k, k, |i, j| 0.5 * (product[(i, j)] + product[(j, i)]))
            } else {
                product
            }))
        }
    }
}

/// Returns the values, columns and row starts of the nonzero elements. Columns and row starts are counted from 1.
fn csr(m: &Matrix) -> (Vec<f64>, Vec<i32>, Vec<i32>) {
    let (mut w, mut v, mut u) = (Vec::new(), Vec::new(), vec![1]);
    for i in 0..m.rows() {
        for j in 0..m.cols() {
            if m[(i, j)] != 0.0 {
                w.push(m[(i, j)]);
                v.push(j as i32 + 1);
            }
        }
        u.push(w.len() as i32 + 1);
    }
    (w, v, u)
}

fn csr_dense(name: &str, args: &[&Value]) -> FnResult<Matrix> {
    let rows = args[0].size_arg("rows")?;
    let cols = args[1].size_arg("columns")?;
    let (w, v, u) = (args[2].slice()?, args[3].ints()?, args[4].ints()?);
    fits(name, w.len(), v.len())?;
    fits(name, rows + 1, u.len())?;
    let bad = |what: &str, i: i32| FnError::invalid(format!("{name}: {what} {i} is out of bounds"));
    let elements = rows as f64 * cols as f64;
    crate::value::error::check_bytes(
        "the dense matrix",
        elements,
        8,
        crate::value::error::MAX_VALUE_BYTES,
    )?;
    let mut out = Mat::filled(rows, cols, 0.0);
    for i in 0..rows {
        let (from, to) = (u[i], u[i + 1]);
        if from < 1 || to < from || to as usize > w.len() + 1 {
            return Err(bad("row start", to));
        }
        for k in from as usize - 1..to as usize - 1 {
            let j = usize::try_from(v[k]).unwrap_or(0);
            if j < 1 || j > cols {
                return Err(bad("column", v[k]));
            }
            out[(i, j - 1)] = w[k];
        }
    }
    Ok(out)
}
