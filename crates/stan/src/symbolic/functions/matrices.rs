//! Functions of linear algebra.

use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Cell, Dims, Leaf, Sym, e_cell};
use crate::value::Value;
use crate::value::error::FnResult;

/// A product is expanded into scalars if its left factor has at most this many elements and the elements are handled
/// separately.
const SMALL: usize = 16;

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[
    ("crossprod", |cx, args| {
        let (rows, cols) = cx.extents(&args[0])?;
        let x = cx.e(&args[0])?;
        Ok(cx.matrix(x.matmul_with(x, cols, rows, cols, true, false), cols, cols))
    }),
    ("tcrossprod", |cx, args| {
        let (rows, cols) = cx.extents(&args[0])?;
        let x = cx.e(&args[0])?;
        Ok(cx.matrix(x.matmul_with(x, rows, cols, rows, false, true), rows, rows))
    }),
    ("multiply_lower_tri_self_transpose", |cx, args| {
        let (rows, cols) = cx.extents(&args[0])?;
        let keep: Vec<f64> = (0..rows * cols)
            .map(|at| f64::from(at % rows >= at / rows))
            .collect();
        let l = lower_triangle(cx, &args[0], keep)?;
        Ok(cx.matrix(l.matmul_with(l, rows, cols, rows, false, true), rows, rows))
    }),
    ("diag_pre_multiply", |cx, args| {
        diag_multiply(cx, &args[0], &args[1], true)
    }),
    ("diag_post_multiply", |cx, args| {
        diag_multiply(cx, &args[1], &args[0], false)
    }),
    ("quad_form", |cx, args| quad_form(cx, args)),
    ("quad_form_sym", |cx, args| quad_form(cx, args)),
    ("quad_form_diag", |cx, args| {
        let left = diag_multiply(cx, &args[1], &args[0], true)?;
        diag_multiply(cx, &args[1], &left, false)
    }),
    ("trace", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(cx.e(&args[0])?.diagonal(n, n).sum().into())
    }),
    ("trace_quad_form", |cx, args| {
        // trace(Bᵀ A B) = Σ B ∘ (A B)
        let (n, (rows, cols)) = (cx.square(&args[0])?, cx.extents(&args[1])?);
        fits(cx, n == rows, args)?;
        let b = cx.e(&args[1])?;
        Ok((b * cx.e(&args[0])?.matmul(b, n, n, cols)).sum().into())
    }),
    ("trace_gen_quad_form", |cx, args| {
        // trace(D Bᵀ A B) = Σ (B Dᵀ) ∘ (A B)
        let (d, a, b) = (&args[0], &args[1], &args[2]);
        let (n, k, (rows, cols)) = (cx.square(a)?, cx.square(d)?, cx.extents(b)?);
        fits(cx, n == rows && k == cols, args)?;
        let (d, a, b) = (cx.e(d)?, cx.e(a)?, cx.e(b)?);
        let left = b.matmul_with(d, n, k, k, false, true);
        Ok((left * a.matmul(b, n, n, k)).sum().into())
    }),
    ("cholesky_decompose", |cx, args| {
        let n = cx.square(&args[0])?;
        let l = cholesky(cx, cx.e(&args[0])?, n)?;
        Ok(cx.matrix(l, n, n))
    }),
    ("mdivide_left_tri_low", |cx, args| {
        tri_solve(cx, &args[0], &args[1])
    }),
    ("mdivide_right_tri_low", |cx, args| {
        // X L = B is Lᵀ Xᵀ = Bᵀ.
        let (b, l) = (&args[0], &args[1]);
        let (n, (rows, cols)) = (cx.square(l)?, cx.extents(b)?);
        fits(cx, n == cols, args)?;
        let bt = cx.e(b)?.transpose(rows, cols);
        let x = cx.e(l)?.tri_solve(bt, n, rows, true).transpose(cols, rows);
        Ok(shaped(
            x,
            rows,
            cols,
            matches!(b.dims()?.leaf, Leaf::Row(_)),
            false,
        ))
    }),
    ("mdivide_left_spd", |cx, args| {
        let (n, (rows, cols)) = (cx.square(&args[0])?, cx.extents(&args[1])?);
        fits(cx, n == rows, args)?;
        let l = cholesky(cx, cx.e(&args[0])?, n)?;
        let x = spd_solve(l, cx.e(&args[1])?, n, cols);
        Ok(shaped(
            x,
            n,
            cols,
            false,
            matches!(args[1].dims()?.leaf, Leaf::Vector(_)),
        ))
    }),
    ("mdivide_right_spd", |cx, args| {
        let (n, (rows, cols)) = (cx.square(&args[1])?, cx.extents(&args[0])?);
        fits(cx, n == cols, args)?;
        let l = cholesky(cx, cx.e(&args[1])?, n)?;
        let bt = cx.e(&args[0])?.transpose(rows, cols);
        let x = spd_solve(l, bt, n, rows).transpose(n, rows);
        Ok(shaped(
            x,
            rows,
            n,
            matches!(args[0].dims()?.leaf, Leaf::Row(_)),
            false,
        ))
    }),
    ("inverse", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(cx.matrix(cx.e(&args[0])?.solve(identity(cx, n), n, n, false), n, n))
    }),
    ("inverse_spd", |cx, args| {
        let n = cx.square(&args[0])?;
        let l = cholesky(cx, cx.e(&args[0])?, n)?;
        Ok(cx.matrix(spd_solve(l, identity(cx, n), n, n), n, n))
    }),
    ("chol2inv", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(cx.matrix(spd_solve(cx.e(&args[0])?, identity(cx, n), n, n), n, n))
    }),
    ("log_determinant", |cx, args| {
        let n = cx.square(&args[0])?;
        Ok(cx.e(&args[0])?.log_abs_det(n).into())
    }),
    ("log_determinant_spd", |cx, args| {
        let n = cx.square(&args[0])?;
        let l = cholesky(cx, cx.e(&args[0])?, n)?;
        Ok((2.0 * l.diagonal(n, n).log().sum()).into())
    }),
    ("csr_matrix_times_vector", csr_times_vector),
    ("csr_to_dense_matrix", csr_to_dense),
    ("csr_extract", |cx, args| {
        let [w, v, u] = csr_extract(cx, &args[0])?;
        Ok(Sym::Tuple(std::rc::Rc::new(vec![w, v, u])))
    }),
    ("csr_extract_w", |cx, args| {
        csr_extract(cx, &args[0]).map(|[w, _, _]| w)
    }),
    ("csr_extract_v", |cx, args| {
        csr_extract(cx, &args[0]).map(|[_, v, _]| v)
    }),
    ("csr_extract_u", |cx, args| {
        csr_extract(cx, &args[0]).map(|[_, _, u]| u)
    }),
];

fn fits(cx: &Cx<'_>, ok: bool, args: &[Sym]) -> FnResult<()> {
    if ok {
        return Ok(());
    }
    Err(cx.mismatch(&args[args.len() - 2], &args[args.len() - 1]))
}

/// Creates the identity matrix.
pub fn identity<'g>(cx: &Cx<'g>, n: usize) -> E<'g> {
    let elements: Vec<f64> = (0..n * n).map(|at| f64::from(at / n == at % n)).collect();
    cx.tape.vector(&elements)
}

fn lower_triangle<'g>(cx: &Cx<'g>, x: &Sym, keep: Vec<f64>) -> FnResult<E<'g>> {
    if let Sym::Flat(flat) = x {
        let upper_is_zero = |at: usize| keep[at] != 0.0 || flat.cell(at) == Cell::Const(0.0);
        if flat.is_table() && (0..keep.len()).all(upper_is_zero) {
            return cx.e(x);
        }
    }
    Ok(cx.e(x)? * cx.tape.vector(&keep))
}

/// Computes the lower Cholesky factor. If the matrix depends on parameters, the factor is NaN for draws where the
/// matrix is not positive definite.
///
/// # Errors
/// Fails if a known matrix is not symmetric or not positive definite.
pub fn cholesky<'g>(cx: &Cx<'g>, x: E<'g>, n: usize) -> FnResult<E<'g>> {
    if let Some(values) = x.values() {
        for i in 0..n {
            for j in 0..i {
                let (a, b) = (values[j * n + i], values[i * n + j]);
                if (a - b).abs() > 1e-8 {
                    return Err(cx.domain(format!(
                        "the matrix is not symmetric: element [{},{}] is {b}, but [{},{}] is {a}",
                        j + 1,
                        i + 1,
                        i + 1,
                        j + 1
                    )));
                }
            }
        }
    }
    let l = x.cholesky(n);
    match l.values() {
        Some(values) if values.iter().any(|v| v.is_nan()) => {
            Err(cx.domain("the matrix is not positive definite"))
        }
        _ => Ok(l),
    }
}

/// Returns A⁻¹ B with A = L Lᵀ.
pub fn spd_solve<'g>(l: E<'g>, b: E<'g>, n: usize, cols: usize) -> E<'g> {
    l.tri_solve(l.tri_solve(b, n, cols, false), n, cols, true)
}

fn tri_solve(cx: &Cx<'_>, l: &Sym, b: &Sym) -> FnResult<Sym> {
    let (n, (rows, cols)) = (cx.square(l)?, cx.extents(b)?);
    if n != rows {
        return Err(cx.mismatch(l, b));
    }
    let x = cx.e(l)?.tri_solve(cx.e(b)?, n, cols, false);
    Ok(shaped(
        x,
        n,
        cols,
        false,
        matches!(b.dims()?.leaf, Leaf::Vector(_)),
    ))
}

fn shaped(x: E<'_>, rows: usize, cols: usize, row: bool, column: bool) -> Sym {
    let leaf = match (row, column) {
        (true, true) => Leaf::Scalar,
        (true, false) => Leaf::Row(cols),
        (false, true) => Leaf::Vector(rows),
        (false, false) => Leaf::Matrix(rows, cols),
    };
    Sym::flat(Dims::leaf(leaf), x)
}

/// Multiplies matrices and vectors.
///
/// # Errors
/// Fails if the sizes of the operands do not match.
pub fn multiply(cx: &Cx<'_>, a: &Sym, b: &Sym) -> FnResult<Sym> {
    let ((m, k), (l, n)) = (cx.extents(a)?, cx.extents(b)?);
    if k != l {
        return Err(cx.mismatch(a, b));
    }
    let row = matches!(a.dims()?.leaf, Leaf::Row(_));
    let column = matches!(b.dims()?.leaf, Leaf::Vector(_));
    let table = |x: &Sym| matches!(x, Sym::Flat(flat) if flat.is_table());
    let unrolling = cx.tape.unrolling.get();
    let small = m * k <= SMALL && k * n <= SMALL;
    let records = a.has_records(cx.tape) || b.has_records(cx.tape);
    if (records || small && (unrolling || table(a) || table(b))) && m * n > 0 && k > 0 {
        return written_out(cx, a, b, (m, k, n), row, column);
    }
    if table(a) && m * k <= SMALL && m > 0 && k > 0 {
        return rows_written_out(cx, a, b, (m, k, n));
    }
    let x = cx.e(a)?.matmul(cx.e(b)?, m, k, n);
    Ok(shaped(x, m, n, row, column))
}

/// Computes Σ aᵢ bᵢ without the structural zeros of a matrix. Zeros in the data do not count as structural. `structure`
/// states which of the two factors have structural zeros.
fn sparse_dot<'g>(cx: &Cx<'g>, pairs: &[(E<'g>, E<'g>)], structure: (bool, bool)) -> E<'g> {
    let zero = |e: &E<'g>| e.scalar() == Some(0.0);
    let terms: Vec<E<'g>> = pairs
        .iter()
        .filter(|(a, b)| !(structure.0 && zero(a) || structure.1 && zero(b)))
        .map(|(a, b)| *a * *b)
        .collect();
    cx.tape.add_all(&terms)
}

fn written_out(
    cx: &Cx<'_>,
    a: &Sym,
    b: &Sym,
    (m, k, n): (usize, usize, usize),
    row: bool,
    column: bool,
) -> FnResult<Sym> {
    let (x, y) = (cx.elements(a)?, cx.elements(b)?);
    let structure = (!a.is_known(), !b.is_known());
    let mut cells = Vec::with_capacity(m * n);
    for j in 0..n {
        for i in 0..m {
            let pairs: Vec<_> = (0..k).map(|l| (x[l * m + i], y[j * k + l])).collect();
            cells.push(sparse_dot(cx, &pairs, structure));
        }
    }
    let leaf = match (row, column) {
        (true, true) => return Ok(cells[0].into()),
        (true, false) => Leaf::Row(n),
        (false, true) => Leaf::Vector(m),
        (false, false) => Leaf::Matrix(m, n),
    };
    Ok(Sym::cells(
        Dims::leaf(leaf),
        cells.into_iter().map(e_cell).collect(),
    ))
}

/// Each row of the result is a sum of scaled rows of the wide matrix.
fn rows_written_out(
    cx: &Cx<'_>,
    a: &Sym,
    b: &Sym,
    (m, k, n): (usize, usize, usize),
) -> FnResult<Sym> {
    let (x, y) = (cx.elements(a)?, cx.e(b)?);
    let structure = (!a.is_known(), false);
    let rows: Vec<E<'_>> = (0..k)
        .map(|l| {
            let index: Vec<u32> = (0..n).map(|j| (j * k + l) as u32).collect();
            y.gather(&index)
        })
        .collect();
    let mut parts = Vec::with_capacity(m);
    for i in 0..m {
        let pairs: Vec<_> = (0..k).map(|l| (x[l * m + i], rows[l])).collect();
        parts.push(sparse_dot(cx, &pairs, structure).repeat(n));
    }
    let by_row = cx.tape.concat(&parts);
    let leaf = if matches!(a.dims()?.leaf, Leaf::Row(_)) {
        Leaf::Row(n)
    } else {
        Leaf::Matrix(m, n)
    };
    Ok(Sym::flat(Dims::leaf(leaf), by_row.transpose(n, m)))
}

/// Returns A⁻¹ B.
///
/// # Errors
/// Fails if the sizes of the operands do not match.
pub fn solve_left(cx: &Cx<'_>, a: &Sym, b: &Sym) -> FnResult<Sym> {
    let (n, (rows, cols)) = (cx.square(a)?, cx.extents(b)?);
    if n != rows {
        return Err(cx.mismatch(a, b));
    }
    let x = cx.e(a)?.solve(cx.e(b)?, n, cols, false);
    Ok(shaped(
        x,
        n,
        cols,
        false,
        matches!(b.dims()?.leaf, Leaf::Vector(_)),
    ))
}

/// Returns B A⁻¹, computed from Aᵀ Xᵀ = Bᵀ.
///
/// # Errors
/// Fails if the sizes of the operands do not match.
pub fn solve_right(cx: &Cx<'_>, b: &Sym, a: &Sym) -> FnResult<Sym> {
    let (n, (rows, cols)) = (cx.square(a)?, cx.extents(b)?);
    if n != cols {
        return Err(cx.mismatch(b, a));
    }
    let bt = cx.e(b)?.transpose(rows, cols);
    let x = cx.e(a)?.solve(bt, n, rows, true).transpose(cols, rows);
    Ok(shaped(
        x,
        rows,
        cols,
        matches!(b.dims()?.leaf, Leaf::Row(_)),
        false,
    ))
}

/// Returns diag(d) M if `pre` is true, and M diag(d) otherwise.
fn diag_multiply(cx: &Cx<'_>, d: &Sym, m: &Sym, pre: bool) -> FnResult<Sym> {
    let (rows, cols) = cx.extents(m)?;
    let n = d.dims()?.size();
    if n != if pre { rows } else { cols } {
        return Err(cx.mismatch(d, m));
    }
    let position = |at: usize| if pre { at % rows } else { at / rows };
    let table = matches!(m, Sym::Flat(flat) if flat.is_table());
    if rows * cols <= SMALL && !m.is_known() && (table || cx.tape.unrolling.get())
        || d.has_records(cx.tape)
        || m.has_records(cx.tape)
    {
        let (d, m) = (cx.elements(d)?, cx.elements(m)?);
        let cells = m
            .iter()
            .enumerate()
            .map(|(at, x)| e_cell(d[position(at)] * *x));
        return Ok(Sym::cells(
            Dims::leaf(Leaf::Matrix(rows, cols)),
            cells.collect(),
        ));
    }
    let index: Vec<u32> = (0..rows * cols).map(|at| position(at) as u32).collect();
    let scale = if n == 1 {
        cx.e(d)?
    } else {
        cx.e(d)?.gather(&index)
    };
    Ok(cx.matrix((scale * cx.e(m)?).repeat(rows * cols), rows, cols))
}

fn quad_form(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (n, (rows, cols)) = (cx.square(&args[0])?, cx.extents(&args[1])?);
    fits(cx, n == rows, args)?;
    let b = cx.e(&args[1])?;
    let ab = cx.e(&args[0])?.matmul(b, n, n, cols);
    let x = b.matmul_with(ab, cols, n, cols, true, false);
    let vector = matches!(args[1].dims()?.leaf, Leaf::Vector(_));
    Ok(shaped(x, cols, cols, vector, vector))
}

struct Sparse<'g> {
    rows: usize,
    cols: usize,
    values: E<'g>,
    /// The row and column of each value, from 0.
    entries: Vec<(usize, usize)>,
}

/// The arguments are the numbers of rows and columns, the values, the column of each value, and the start of each row.
fn sparse<'g>(cx: &Cx<'g>, args: &[Sym]) -> FnResult<Sparse<'g>> {
    let rows = args[0].size("the number of rows")?;
    let cols = args[1].size("the number of columns")?;
    let known = |x: &Sym| -> FnResult<Vec<usize>> {
        let ints = x
            .known()
            .ok_or_else(|| cx.invalid("entries depend on parameters"))?;
        let entries = ints.ints()?.iter().map(|i| usize::try_from(*i - 1));
        entries
            .collect::<Result<_, _>>()
            .map_err(|_| cx.invalid("entries are numbered from 1"))
    };
    let (columns, starts) = (known(&args[3])?, known(&args[4])?);
    let fits = starts.len() == rows + 1
        && starts.windows(2).all(|w| w[0] <= w[1])
        && starts.last() == Some(&columns.len())
        && columns.iter().all(|c| *c < cols)
        && args[2].dims()?.size() == columns.len();
    if !fits {
        return Err(cx.invalid("the parts of the sparse matrix do not fit together"));
    }
    let row_of = (0..rows).flat_map(|i| std::iter::repeat_n(i, starts[i + 1] - starts[i]));
    Ok(Sparse {
        rows,
        cols,
        values: cx.e(&args[2])?,
        entries: row_of.zip(columns).collect(),
    })
}

/// The vector is the last argument.
fn csr_times_vector(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let Sparse {
        rows,
        cols,
        values,
        entries,
    } = sparse(cx, args)?;
    let x = cx.e(&args[5])?;
    if args[5].dims()?.size() != cols {
        return Err(cx.invalid("the parts of the sparse matrix do not fit together"));
    }
    if entries.is_empty() {
        return Ok(Dims::leaf(Leaf::Vector(rows))
            .value(&vec![0.0; rows])
            .into());
    }
    let row_of: Vec<u32> = entries.iter().map(|(row, _)| *row as u32).collect();
    let picked: Vec<u32> = entries.iter().map(|(_, col)| *col as u32).collect();
    let x = if cols == 1 { x } else { x.gather(&picked) };
    let products = (values * x).repeat(entries.len());
    Ok(Sym::flat(
        Dims::leaf(Leaf::Vector(rows)),
        products.scatter(&row_of, rows),
    ))
}

fn csr_to_dense(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let Sparse {
        rows,
        cols,
        values,
        entries,
    } = sparse(cx, args)?;
    if entries.is_empty() {
        return Ok(cx.matrix(cx.tape.vector(&vec![0.0; rows * cols]), rows, cols));
    }
    let index: Vec<u32> = entries.iter().map(|(i, j)| (j * rows + i) as u32).collect();
    Ok(cx.matrix(values.scatter(&index, rows * cols), rows, cols))
}

/// Returns the values, columns and row starts of a matrix. Elements that depend on parameters count as nonzero.
fn csr_extract(cx: &Cx<'_>, x: &Sym) -> FnResult<[Sym; 3]> {
    let (rows, cols) = cx.extents(x)?;
    let all = x.to_cells(cx.tape)?;
    let (mut values, mut columns, mut starts) = (Vec::new(), Vec::new(), vec![1]);
    for i in 0..rows {
        for j in 0..cols {
            let cell = all[j * rows + i];
            if cell != Cell::Const(0.0) {
                values.push(cell);
                columns.push(j as i32 + 1);
            }
        }
        starts.push(values.len() as i32 + 1);
    }
    let values = Sym::cells(Dims::leaf(Leaf::Vector(values.len())), values);
    Ok([
        values,
        Value::Ints(columns).into(),
        Value::Ints(starts).into(),
    ])
}
