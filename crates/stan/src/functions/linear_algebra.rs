//! Factorisations, inverses and systems of equations.

use jensen_math::complex;
use num_complex::Complex64;

use crate::functions::{Builtin, NamedBuiltin};
use crate::value::dense;
use crate::value::error::{FnError, FnResult, MAX_VALUE_BYTES, check_bytes};
use crate::value::{Mat, Matrix, Value};

use Builtin::Pure;

pub(super) const TABLE: &[NamedBuiltin] = &[
    (
        "chol2inv",
        Pure(|a| {
            let l = lower_triangle("chol2inv", a[0].matrix()?)?;
            Ok(Value::Matrix(dense::solve_cholesky(
                &l,
                &dense::identity(l.rows()),
            )))
        }),
    ),
    (
        "cholesky_decompose",
        Pure(|a| {
            Ok(Value::Matrix(dense::cholesky(
                "cholesky_decompose",
                a[0].matrix()?,
            )?))
        }),
    ),
    (
        "determinant",
        Pure(|a| {
            let m = a[0].matrix()?;
            dense::check_square("determinant", m)?;
            let lu = dense::lu(m);
            Ok(Value::Real(lu.sign() * lu.diagonal().product::<f64>()))
        }),
    ),
    (
        "log_determinant",
        Pure(|a| {
            let m = a[0].matrix()?;
            dense::check_square("log_determinant", m)?;
            Ok(Value::Real(
                dense::lu(m).diagonal().map(|d| d.abs().ln()).sum(),
            ))
        }),
    ),
    (
        "log_determinant_spd",
        Pure(|a| {
            let l = dense::cholesky("log_determinant_spd", a[0].matrix()?)?;
            Ok(Value::Real(dense::log_det_cholesky(&l)))
        }),
    ),
    (
        "complex_schur_decompose",
        Pure(|a| {
            let (u, t) = schur("complex_schur_decompose", a[0])?;
            Ok(Value::Tuple(vec![u, t]))
        }),
    ),
    (
        "complex_schur_decompose_t",
        Pure(|a| Ok(schur("complex_schur_decompose_t", a[0])?.1)),
    ),
    (
        "complex_schur_decompose_u",
        Pure(|a| Ok(schur("complex_schur_decompose_u", a[0])?.0)),
    ),
    (
        "eigendecompose",
        Pure(|a| {
            let (values, vectors) = general("eigendecompose", a[0])?;
            Ok(Value::Tuple(vec![vectors, values]))
        }),
    ),
    ("eigenvalues", Pure(|a| Ok(general("eigenvalues", a[0])?.0))),
    (
        "eigenvectors",
        Pure(|a| Ok(general("eigenvectors", a[0])?.1)),
    ),
    (
        "eigendecompose_sym",
        Pure(|a| {
            let (values, vectors) = symmetric("eigendecompose_sym", a[0])?;
            Ok(Value::Tuple(vec![vectors, values]))
        }),
    ),
    (
        "eigenvalues_sym",
        Pure(|a| Ok(symmetric("eigenvalues_sym", a[0])?.0)),
    ),
    (
        "eigenvectors_sym",
        Pure(|a| Ok(symmetric("eigenvectors_sym", a[0])?.1)),
    ),
    ("generalized_inverse", Pure(generalized_inverse)),
    (
        "inverse",
        Pure(|a| {
            let m = a[0].matrix()?;
            let n = dense::check_square("inverse", m)?;
            Ok(Value::Matrix(dense::solve(m, &dense::identity(n))?))
        }),
    ),
    (
        "inverse_spd",
        Pure(|a| {
            let l = dense::cholesky("inverse_spd", a[0].matrix()?)?;
            Ok(Value::Matrix(dense::solve_cholesky(
                &l,
                &dense::identity(l.rows()),
            )))
        }),
    ),
    (
        "matrix_exp",
        Pure(|a| {
            let m = a[0].matrix()?;
            dense::check_square("matrix_exp", m)?;
            Ok(Value::Matrix(dense::exponential(m)))
        }),
    ),
    (
        "matrix_exp_multiply",
        Pure(|a| exp_multiply(1.0, a[0], a[1])),
    ),
    (
        "scale_matrix_exp_multiply",
        Pure(|a| exp_multiply(a[0].real()?, a[1], a[2])),
    ),
    ("matrix_power", Pure(matrix_power)),
    (
        "mdivide_left_spd",
        Pure(|a| {
            let l = dense::cholesky("mdivide_left_spd", a[0].matrix()?)?;
            left(a[1], l.rows(), "mdivide_left_spd", |b| {
                dense::solve_cholesky(&l, b)
            })
        }),
    ),
    (
        "mdivide_left_tri_low",
        Pure(|a| {
            let l = lower_triangle("mdivide_left_tri_low", a[0].matrix()?)?;
            left(a[1], l.rows(), "mdivide_left_tri_low", |b| {
                dense::solve_lower(&l, b)
            })
        }),
    ),
    (
        "mdivide_right_spd",
        Pure(|a| {
            let l = dense::cholesky("mdivide_right_spd", a[1].matrix()?)?;
            right(a[0], l.rows(), "mdivide_right_spd", |b| {
                dense::solve_cholesky(&l, b)
            })
        }),
    ),
    (
        "mdivide_right_tri_low",
        Pure(|a| {
            let l = lower_triangle("mdivide_right_tri_low", a[1].matrix()?)?;
            // x L = b is Lᵀ xᵀ = bᵀ.
            right(a[0], l.rows(), "mdivide_right_tri_low", |b| {
                dense::solve_lower_transposed(&l, b)
            })
        }),
    ),
    (
        "qr",
        Pure(|a| {
            let m = a[0].matrix()?;
            check_full("qr", m)?;
            let (q, r) = dense::qr(m, m.rows());
            Ok(Value::Tuple(vec![Value::Matrix(q), Value::Matrix(r)]))
        }),
    ),
    (
        "qr_Q",
        Pure(|a| {
            let m = a[0].matrix()?;
            check_full("qr_Q", m)?;
            Ok(Value::Matrix(dense::qr(m, m.rows()).0))
        }),
    ),
    (
        "qr_R",
        Pure(|a| {
            let m = a[0].matrix()?;
            Ok(Value::Matrix(dense::qr(m, m.rows().min(m.cols())).1))
        }),
    ),
    (
        "qr_thin",
        Pure(|a| {
            let (q, r) = thin(a[0].matrix()?);
            Ok(Value::Tuple(vec![Value::Matrix(q), Value::Matrix(r)]))
        }),
    ),
    (
        "qr_thin_Q",
        Pure(|a| Ok(Value::Matrix(thin(a[0].matrix()?).0))),
    ),
    (
        "qr_thin_R",
        Pure(|a| Ok(Value::Matrix(thin(a[0].matrix()?).1))),
    ),
    ("singular_values", Pure(|a| Ok(Value::Vector(svd(a[0])?.1)))),
    (
        "svd",
        Pure(|a| {
            let (u, s, v) = svd(a[0])?;
            Ok(Value::Tuple(vec![u, Value::Vector(s), v]))
        }),
    ),
    ("svd_U", Pure(|a| Ok(svd(a[0])?.0))),
    ("svd_V", Pure(|a| Ok(svd(a[0])?.2))),
    (
        "symmetrize_from_lower_tri",
        Pure(|a| {
            Ok(match a[0] {
                Value::ComplexMatrix(m) => {
                    Value::ComplexMatrix(Mat::from_fn(m.rows(), m.cols(), |i, j| {
                        if i >= j {
                            m[(i, j)]
                        } else {
                            Complex64::conj(&m[(j, i)])
                        }
                    }))
                }
                other => {
                    let m = other.matrix()?;
                    let n = dense::check_square("symmetrize_from_lower_tri", m)?;
                    Value::Matrix(Mat::from_fn(n, n, |i, j| m[(i.max(j), i.min(j))]))
                }
            })
        }),
    ),
];

fn lower_triangle(name: &str, m: &Matrix) -> FnResult<Matrix> {
    let n = dense::check_square(name, m)?;
    Ok(Mat::from_fn(
        n,
        n,
        |i, j| if i >= j { m[(i, j)] } else { 0.0 },
    ))
}

fn square(name: &str, m: &Value) -> FnResult<(Vec<Complex64>, usize)> {
    let m = match m {
        Value::ComplexMatrix(m) => m.clone(),
        real => real.matrix()?.map(Complex64::from),
    };
    let n = dense::check_square(name, &m)?;
    if m.data().iter().any(|z| !z.is_finite()) {
        return Err(FnError::domain(format!("{name}: the matrix is not finite")));
    }
    Ok((m.into_data(), n))
}

fn spectrum(found: complex::Eigen) -> (Value, Value) {
    let n = found.values.len();
    (
        Value::ComplexVector(found.values),
        Value::ComplexMatrix(Mat::new(n, n, found.vectors)),
    )
}

fn unfinished(name: &str) -> FnError {
    FnError::domain(format!(
        "{name}: the iteration for eigenvalues does not converge"
    ))
}

fn general(name: &str, m: &Value) -> FnResult<(Value, Value)> {
    let (a, n) = square(name, m)?;
    let found = complex::eigen(&a, n);
    if found.values.iter().any(|z| z.is_nan()) {
        return Err(unfinished(name));
    }
    Ok(spectrum(found))
}

/// A = U T Uᴴ
fn schur(name: &str, m: &Value) -> FnResult<(Value, Value)> {
    let (a, n) = square(name, m)?;
    let (u, t) = complex::schur(&a, n).ok_or_else(|| unfinished(name))?;
    let matrix = |data| Value::ComplexMatrix(Mat::new(n, n, data));
    Ok((matrix(u), matrix(t)))
}

fn symmetric(name: &str, m: &Value) -> FnResult<(Value, Value)> {
    if !matches!(m, Value::ComplexMatrix(_)) {
        let m = m.matrix()?;
        dense::check_symmetric(name, m)?;
        let (values, vectors) = dense::eigen_symmetric(m);
        return Ok((Value::Vector(values), Value::Matrix(vectors)));
    }
    let (a, n) = square(name, m)?;
    for j in 0..n {
        for i in j..n {
            let gap = (a[j * n + i] - a[i * n + j].conj()).norm();
            if gap > dense::SYMMETRY {
                return Err(FnError::domain(format!(
                    "{name}: the matrix is not Hermitian: element [{}, {}] is not the conjugate of element [{}, {}]",
                    i + 1,
                    j + 1,
                    j + 1,
                    i + 1
                )));
            }
        }
    }
    Ok(spectrum(complex::eigen_hermitian(&a, n)))
}

fn svd(m: &Value) -> FnResult<(Value, Vec<f64>, Value)> {
    Ok(match m {
        Value::ComplexMatrix(m) => {
            let (u, s, v) = dense::complex_svd(m);
            (Value::ComplexMatrix(u), s, Value::ComplexMatrix(v))
        }
        real => {
            let (u, s, v) = dense::svd(real.matrix()?);
            (Value::Matrix(u), s, Value::Matrix(v))
        }
    })
}

fn fits(name: &str, n: usize, found: usize) -> FnResult<()> {
    if n != found {
        return Err(FnError::invalid(format!(
            "{name}: a {n} × {n} matrix does not match {found} elements"
        )));
    }
    Ok(())
}

fn left(b: &Value, n: usize, name: &str, solve: impl Fn(&Matrix) -> Matrix) -> FnResult<Value> {
    Ok(match b {
        Value::Vector(x) => {
            fits(name, n, x.len())?;
            Value::Vector(solve(&Mat::new(n, 1, x.clone())).into_data())
        }
        other => {
            let m = other.matrix()?;
            fits(name, n, m.rows())?;
            Value::Matrix(solve(m))
        }
    })
}

fn right(b: &Value, n: usize, name: &str, solve: impl Fn(&Matrix) -> Matrix) -> FnResult<Value> {
    Ok(match b {
        Value::RowVector(x) => {
            fits(name, n, x.len())?;
            Value::RowVector(solve(&Mat::new(n, 1, x.clone())).into_data())
        }
        other => {
            let m = other.matrix()?;
            fits(name, n, m.cols())?;
            Value::Matrix(solve(&m.transpose()).transpose())
        }
    })
}

/// Checks that the full orthogonal factor, which is square, is small enough to be stored.
fn check_full(name: &str, m: &Matrix) -> FnResult<()> {
    let elements = (m.rows() as f64).powi(2);
    check_bytes(&format!("{name}: the factor"), elements, 8, MAX_VALUE_BYTES)
}

fn thin(m: &Matrix) -> (Matrix, Matrix) {
    let k = m.rows().min(m.cols());
    let (q, r) = dense::qr(m, k);
    (q, Mat::from_fn(k, m.cols(), |i, j| r[(i, j)]))
}

fn exp_multiply(t: f64, a: &Value, b: &Value) -> FnResult<Value> {
    let (a, b) = (a.matrix()?, b.matrix()?);
    let n = dense::check_square("matrix_exp_multiply", a)?;
    fits("matrix_exp_multiply", n, b.rows())?;
    let e = dense::exponential(&a.map(|x| t * x));
    Ok(Value::Matrix(dense::multiply(&e, b)))
}

fn matrix_power(args: &[&Value]) -> FnResult<Value> {
    let m = args[0].matrix()?;
    let n = dense::check_square("matrix_power", m)?;
    let mut power = args[1].size_arg("matrix_power: exponent")?;
    let (mut result, mut square) = (dense::identity(n), m.clone());
    while power > 0 {
        if power % 2 == 1 {
            result = dense::multiply(&result, &square);
        }
        square = dense::multiply(&square, &square);
        power /= 2;
    }
    Ok(Value::Matrix(result))
}

/// Computes the Moore–Penrose inverse from the singular values.
fn generalized_inverse(args: &[&Value]) -> FnResult<Value> {
    let m = args[0].matrix()?;
    let (u, s, v) = dense::svd(m);
    let largest = s.first().copied().unwrap_or(0.0);
    let cutoff = largest * f64::EPSILON * m.rows().max(m.cols()) as f64;
    let kept = s.iter().take_while(|s| **s > cutoff).count();
    let scaled = Mat::from_fn(m.cols(), kept, |i, k| v[(i, k)] / s[k]);
    let left = Mat::from_fn(kept, m.rows(), |k, j| u[(j, k)]);
    Ok(Value::Matrix(dense::multiply(&scaled, &left)))
}
