//! Computes factorisations and powers of matrices from operations that have derivatives.

use std::rc::Rc;

use crate::symbolic::functions::matrices::identity;
use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::error::FnResult;

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[
    ("determinant", determinant),
    ("eigenvalues_sym", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(vector(cx.e(&args[0])?.eigen_sym(n).0, n))
    }),
    ("eigenvectors_sym", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(cx.matrix(cx.e(&args[0])?.eigen_sym(n).1, n, n))
    }),
    ("eigendecompose_sym", |cx, args| {
        let n = cx.square(&args[0])?;
        let (values, vectors) = cx.e(&args[0])?.eigen_sym(n);
        Ok(tuple([cx.matrix(vectors, n, n), vector(values, n)]))
    }),
    ("eigenvalues", |cx, args| Ok(eigen(cx, &args[0], false)?.0)),
    ("eigenvectors", |cx, args| Ok(eigen(cx, &args[0], false)?.1)),
    ("eigendecompose", |cx, args| {
        let (values, vectors) = eigen(cx, &args[0], false)?;
        Ok(tuple([vectors, values]))
    }),
    ("singular_values", |cx, args| Ok(svd(cx, &args[0])?.1)),
    ("svd_U", |cx, args| Ok(svd(cx, &args[0])?.0)),
    ("svd_V", |cx, args| Ok(svd(cx, &args[0])?.2)),
    ("svd", |cx, args| {
        let (u, s, v) = svd(cx, &args[0])?;
        Ok(tuple([u, s, v]))
    }),
    ("qr", |cx, args| Ok(tuple(qr(cx, &args[0], false)?))),
    ("qr_Q", |cx, args| qr(cx, &args[0], false).map(|[q, _]| q)),
    ("qr_R", |cx, args| qr(cx, &args[0], false).map(|[_, r]| r)),
    ("qr_thin", |cx, args| Ok(tuple(qr(cx, &args[0], true)?))),
    ("qr_thin_Q", |cx, args| {
        qr(cx, &args[0], true).map(|[q, _]| q)
    }),
    ("qr_thin_R", |cx, args| {
        qr(cx, &args[0], true).map(|[_, r]| r)
    }),
    ("generalized_inverse", generalized_inverse),
    ("matrix_power", matrix_power),
    ("matrix_exp", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(cx.matrix(exponential(cx, cx.e(&args[0])?, n), n, n))
    }),
    ("matrix_exp_multiply", |cx, args| {
        let a = cx.e(&args[0])?;
        exp_multiply(cx, a, &args[0], &args[1])
    }),
    ("scale_matrix_exp_multiply", |cx, args| {
        let n = cx.square(&args[1])?;
        let a = (cx.e(&args[0])? * cx.e(&args[1])?).repeat(n * n);
        exp_multiply(cx, a, &args[1], &args[2])
    }),
    ("trace_dot", |cx, args| {
        let ((n, k), (l, m)) = (cx.extents(&args[0])?, cx.extents(&args[1])?);
        if (n, k) != (m, l) {
            return Err(cx.mismatch(&args[0], &args[1]));
        }
        Ok((cx.e(&args[0])? * cx.e(&args[1])?.transpose(l, m))
            .sum()
            .into())
    }),
];

fn vector(e: E<'_>, n: usize) -> Sym {
    Sym::flat(Dims::leaf(Leaf::Vector(n)), e)
}

fn tuple<const N: usize>(parts: [Sym; N]) -> Sym {
    Sym::Tuple(Rc::new(parts.to_vec()))
}

/// The result of a reduction by reflections: the upper triangular matrix, the orthogonal factor and the diagonal. The
/// signs of the diagonal may differ from Stan's.
struct Reflected<'g> {
    q: E<'g>,
    r: E<'g>,
    diagonal: Vec<E<'g>>,
}

fn reflected<'g>(cx: &Cx<'g>, a: E<'g>, m: usize, n: usize) -> Reflected<'g> {
    let (mut q, mut r) = (identity(cx, m), a);
    let mut diagonal = Vec::with_capacity(m.min(n));
    for k in 0..m.min(n) {
        let below: Vec<f64> = (0..m).map(|i| f64::from(i >= k)).collect();
        let unit: Vec<f64> = (0..m).map(|i| f64::from(i == k)).collect();
        let column = r.slice(k * m, m) * cx.tape.vector(&below);
        let norm = column.square().sum().sqrt();
        let first = r.at(k * m + k);
        let pivot = cx.num(0.0).lt(first).select(-norm, norm);
        let v = column - pivot * cx.tape.vector(&unit);
        // A column of zeros needs no reflection.
        let (length, zero) = (v.square().sum(), cx.num(0.0));
        let none = length.eq(zero);
        let scale = none.select(zero, 2.0 / none.select(cx.num(1.0), length));
        let row = v.matmul_with(r, 1, m, n, true, false);
        r = r - (scale * v.matmul(row, m, 1, n)).repeat(m * n);
        let image = q.matmul(v, m, m, 1);
        q = q - (scale * image.matmul_with(v, m, 1, m, false, true)).repeat(m * m);
        diagonal.push(pivot);
    }
    Reflected { q, r, diagonal }
}

fn qr(cx: &Cx<'_>, a: &Sym, thin: bool) -> FnResult<[Sym; 2]> {
    let (m, n) = cx.extents(a)?;
    let inner = if thin { m.min(n) } else { m };
    if m * n == 0 {
        let empty = cx.tape.vector(&[]);
        return Ok([cx.matrix(identity(cx, m), m, m), cx.matrix(empty, m, n)]);
    }
    let Reflected { q, r, diagonal } = reflected(cx, cx.e(a)?, m, n);
    let one = cx.num(1.0);
    let mut signs: Vec<E<'_>> = diagonal
        .iter()
        .map(|d| d.lt(cx.num(0.0)).select(-one, one))
        .collect();
    signs.resize(m, one);
    let signs = cx.tape.concat(&signs);
    let of = |at: fn(usize, usize) -> usize, cols: usize| -> E<'_> {
        let index: Vec<u32> = (0..m * cols).map(|i| at(i, m) as u32).collect();
        if m == 1 { signs } else { signs.gather(&index) }
    };
    let q = q * of(|at, m| at / m, m);
    let upper: Vec<f64> = (0..m * n).map(|at| f64::from(at / m >= at % m)).collect();
    let r = r * of(|at, m| at % m, n) * cx.tape.vector(&upper);
    let rows: Vec<u32> = (0..inner * n)
        .map(|at| (at / inner * m + at % inner) as u32)
        .collect();
    let r = if inner == m { r } else { r.gather(&rows) };
    Ok([
        cx.matrix(q.slice(0, m * inner), m, inner),
        cx.matrix(r, inner, n),
    ])
}

/// The largest number of rows for which a determinant is the product of the diagonal after reflections. Its derivatives
/// are then accurate even if the matrix is nearly singular, but they need the memory of n matrices. For larger matrices
/// the derivatives contain the inverse, as in Stan.
const REFLECTED: usize = 16;

fn determinant(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let n = cx.square(&args[0])?;
    if n == 0 {
        return Ok(Sym::Real(1.0));
    }
    let a = cx.e(&args[0])?;
    let det = match n {
        1 => a.at(0),
        2 => a.at(0) * a.at(3) - a.at(1) * a.at(2),
        // Each reflection changes the sign of the product.
        3..=REFLECTED => {
            let diagonal = reflected(cx, a, n, n).diagonal;
            diagonal.into_iter().fold(cx.num(1.0), |det, d| det * -d)
        }
        _ => a.determinant(n),
    };
    Ok(det.into())
}

/// Returns U, the singular values and V. The function computes the eigenvectors of the symmetric matrix with the
/// off-diagonal blocks A and Aᵀ. The eigenvalues of this matrix are the singular values and their negatives. Small
/// singular values remain accurate in this computation.
fn svd(cx: &Cx<'_>, a: &Sym) -> FnResult<(Sym, Sym, Sym)> {
    let (m, n) = cx.extents(a)?;
    let (k, size) = (m.min(n), m + n);
    if k == 0 {
        let empty = |rows, cols| cx.matrix(cx.tape.vector(&[]), rows, cols);
        return Ok((empty(m, 0), vector(cx.tape.vector(&[]), 0), empty(n, 0)));
    }
    let a = cx.e(a)?;
    let [left, right] = beside(m, n);
    let both = a.scatter(&left, size * size) + a.scatter(&right, size * size);
    let (values, vectors) = both.eigen_sym(size);
    let last: Vec<u32> = (0..k).map(|j| (size - 1 - j) as u32).collect();
    let part = |from: usize, rows: usize| -> E<'_> {
        let index = last_vectors(size, k, from, rows);
        std::f64::consts::SQRT_2 * vectors.gather(&index)
    };
    let (u, v) = (part(0, m), part(m, n));
    Ok((
        cx.matrix(u, m, k),
        vector(values.gather(&last), k),
        cx.matrix(v, n, k),
    ))
}

fn eigen(cx: &Cx<'_>, a: &Sym, hermitian: bool) -> FnResult<(Sym, Sym)> {
    let [re, im] = a.as_complex();
    let n = cx.square(&re)?;
    let [values, vectors] = cx.e(&re)?.eigen(cx.e(&im)?, n, hermitian);
    let [values_re, values_im] = values.map(|e| vector(e, n));
    let [vectors_re, vectors_im] = vectors.map(|e| cx.matrix(e, n, n));
    Ok((
        Sym::complex(values_re, values_im),
        Sym::complex(vectors_re, vectors_im),
    ))
}

/// Computes a decomposition of a complex matrix. Returns `None` if the function is not a decomposition.
///
/// # Errors
/// Fails if the function needs a square matrix and the argument is not square.
pub fn of_complex(cx: &Cx<'_>, a: &Sym) -> FnResult<Option<Sym>> {
    Ok(Some(match cx.name {
        "eigenvalues" => eigen(cx, a, false)?.0,
        "eigenvectors" => eigen(cx, a, false)?.1,
        "eigendecompose" => {
            let (values, vectors) = eigen(cx, a, false)?;
            tuple([vectors, values])
        }
        "eigenvalues_sym" => eigen(cx, a, true)?.0,
        "eigenvectors_sym" => eigen(cx, a, true)?.1,
        "eigendecompose_sym" => {
            let (values, vectors) = eigen(cx, a, true)?;
            tuple([vectors, values])
        }
        "singular_values" => complex_svd(cx, a)?.1,
        "svd_U" => complex_svd(cx, a)?.0,
        "svd_V" => complex_svd(cx, a)?.2,
        "svd" => {
            let (u, s, v) = complex_svd(cx, a)?;
            tuple([u, s, v])
        }
        _ => return Ok(None),
    }))
}

/// Computes the decomposition from a Hermitian matrix with the off-diagonal blocks A and Aᴴ, as [`svd`] does from a
/// symmetric matrix.
fn complex_svd(cx: &Cx<'_>, a: &Sym) -> FnResult<(Sym, Sym, Sym)> {
    let [re, im] = a.as_complex();
    let (m, n) = cx.extents(&re)?;
    let (k, size) = (m.min(n), m + n);
    if k == 0 {
        let empty = |rows, cols| {
            let part = || cx.matrix(cx.tape.vector(&[]), rows, cols);
            Sym::complex(part(), part())
        };
        return Ok((empty(m, 0), vector(cx.tape.vector(&[]), 0), empty(n, 0)));
    }
    let (re, im) = (cx.e(&re)?, cx.e(&im)?);
    let [left, right] = beside(m, n);
    let real = re.scatter(&left, size * size) + re.scatter(&right, size * size);
    let imaginary = im.scatter(&right, size * size) - im.scatter(&left, size * size);
    let [[values, _], vectors] = real.eigen(imaginary, size, true);
    let last: Vec<u32> = (0..k).map(|j| (size - 1 - j) as u32).collect();
    let part = |from: usize, rows: usize| -> Sym {
        let index = last_vectors(size, k, from, rows);
        let [re, im] = vectors.map(|e| {
            let part = std::f64::consts::SQRT_2 * e.gather(&index);
            cx.matrix(part, rows, k)
        });
        Sym::complex(re, im)
    };
    Ok((part(0, m), vector(values.gather(&last), k), part(m, n)))
}

/// Returns where the elements of an m × n matrix are stored in a square matrix with m + n rows. The first list contains
/// the positions of the transpose, which is below the diagonal. The second list contains the positions of the matrix,
/// which is above the diagonal.
fn beside(m: usize, n: usize) -> [Vec<u32>; 2] {
    let size = m + n;
    [
        (0..m * n)
            .map(|at| ((at % m) * size + at / m + m) as u32)
            .collect(),
        (0..m * n)
            .map(|at| ((at / m + m) * size + at % m) as u32)
            .collect(),
    ]
}

/// Returns the positions of the elements `from .. from + rows` of the last k eigenvectors, the last vector first.
fn last_vectors(size: usize, k: usize, from: usize, rows: usize) -> Vec<u32> {
    (0..rows * k)
        .map(|at| ((size - 1 - at / rows) * size + from + at % rows) as u32)
        .collect()
}

/// Returns (AᵀA)⁻¹Aᵀ, or Aᵀ(AAᵀ)⁻¹ for a wide matrix. The rank must be full.
fn generalized_inverse(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (m, n) = cx.extents(&args[0])?;
    let a = cx.e(&args[0])?;
    if m * n == 0 {
        return Ok(cx.matrix(cx.tape.vector(&[]), n, m));
    }
    let at = a.transpose(m, n);
    let x = if m == n {
        a.solve(identity(cx, n), n, n, false)
    } else if m > n {
        a.matmul_with(a, n, m, n, true, false)
            .solve(at, n, m, false)
    } else {
        let solved = a.matmul_with(a, m, n, m, false, true).solve(a, m, n, false);
        solved.transpose(m, n)
    };
    Ok(cx.matrix(x, n, m))
}

fn matrix_power(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let n = cx.square(&args[0])?;
    let mut power = args[1].size("the exponent")?;
    let mut square = cx.e(&args[0])?;
    let mut result: Option<E<'_>> = None;
    while power > 0 {
        if power % 2 == 1 {
            result = Some(result.map_or(square, |x| x.matmul(square, n, n, n)));
        }
        power /= 2;
        if power > 0 {
            square = square.matmul(square, n, n, n);
        }
    }
    Ok(cx.matrix(result.unwrap_or_else(|| identity(cx, n)), n, n))
}

/// The number of times that a matrix is halved. For norms up to 2⁸ · 5, Padé's approximation of the halved matrix is
/// accurate.
const SQUARINGS: i32 = 8;

/// The coefficients of Padé's approximation of degree 13 (Higham 2005).
const PADE: [f64; 14] = [
    64_764_752_532_480_000.0,
    32_382_376_266_240_000.0,
    7_771_770_303_897_600.0,
    1_187_353_796_428_800.0,
    129_060_195_264_000.0,
    10_559_470_521_600.0,
    670_442_572_800.0,
    33_522_128_640.0,
    1_323_241_920.0,
    40_840_800.0,
    960_960.0,
    16_380.0,
    182.0,
    1.0,
];

/// The norm is unknown while the graph is built, so every matrix is scaled by the same rule.
fn exponential<'g>(cx: &Cx<'g>, a: E<'g>, n: usize) -> E<'g> {
    if n == 0 {
        return a;
    }
    let product = |x: E<'g>, y: E<'g>| x.matmul(y, n, n, n);
    let a = a * 0.5f64.powi(SQUARINGS);
    let eye = identity(cx, n);
    let a2 = product(a, a);
    let a4 = product(a2, a2);
    let a6 = product(a4, a2);
    let b = PADE;
    let sum = |i: usize| b[i + 6] * a6 + b[i + 4] * a4 + b[i + 2] * a2;
    let high = |i: usize| b[i + 12] * a6 + b[i + 10] * a4 + b[i + 8] * a2;
    let odd = product(a, product(a6, high(1)) + sum(1) + b[1] * eye);
    let even = product(a6, high(0)) + sum(0) + b[0] * eye;
    let mut e = (even - odd).solve(even + odd, n, n, false);
    for _ in 0..SQUARINGS {
        e = product(e, e);
    }
    e
}

fn exp_multiply<'g>(cx: &Cx<'g>, scaled: E<'g>, a: &Sym, b: &Sym) -> FnResult<Sym> {
    let (n, (rows, cols)) = (cx.square(a)?, cx.extents(b)?);
    if n != rows {
        return Err(cx.mismatch(a, b));
    }
    let x = exponential(cx, scaled, n).matmul(cx.e(b)?, n, n, cols);
    Ok(Sym::flat(b.dims()?, x))
}
