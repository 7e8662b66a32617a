//! Functions that build, cut and join containers.

use std::rc::Rc;

use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::value::{Cell, Dims, Leaf, Sym};
use crate::value::error::{FnResult, MAX_VALUE_BYTES, check_bytes};
use crate::value::laplace;

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[
    ("to_vector", |cx, args| {
        reshape(cx, &args[0], |n| Dims::leaf(Leaf::Vector(n)))
    }),
    ("to_row_vector", |cx, args| {
        reshape(cx, &args[0], |n| Dims::leaf(Leaf::Row(n)))
    }),
    ("to_array_1d", |cx, args| {
        reshape(cx, &args[0], |n| Dims {
            array: vec![n],
            leaf: Leaf::Scalar,
        })
    }),
    ("generate_laplace_options", |_, args| {
        let mut all = vec![args[0].clone(), Sym::Real(laplace::TOLERANCE)];
        all.extend(laplace::COUNTS.map(Sym::Int));
        Ok(Sym::Tuple(Rc::new(all)))
    }),
    ("to_array_2d", to_array_2d),
    ("to_matrix", to_matrix),
    ("append_row", append_row),
    ("append_col", append_col),
    ("append_array", append_array),
    ("rep_vector", |cx, args| rep(cx, args, Leaf::Vector)),
    ("rep_row_vector", |cx, args| rep(cx, args, Leaf::Row)),
    ("rep_matrix", rep_matrix),
    ("rep_array", rep_array),
    ("head", |cx, args| {
        let n = args[1].size("the number of elements")?;
        segment(cx, &args[0], 0, n)
    }),
    ("tail", |cx, args| {
        let n = args[1].size("the number of elements")?;
        let total = first_extent(&args[0])?;
        if n > total {
            return Err(cx.invalid(format!("cannot take {n} of {total} elements")));
        }
        segment(cx, &args[0], total - n, n)
    }),
    ("segment", |cx, args| {
        let from = position(cx, &args[1])?;
        let n = args[2].size("the number of elements")?;
        segment(cx, &args[0], from, n)
    }),
    ("block", |cx, args| {
        let (i, j) = (position(cx, &args[1])?, position(cx, &args[2])?);
        let (rows, cols) = (
            args[3].size("the number of rows")?,
            args[4].size("the number of columns")?,
        );
        block(cx, &args[0], (i, rows), (j, cols), Leaf::Matrix(rows, cols))
    }),
    ("sub_col", |cx, args| {
        let (i, j) = (position(cx, &args[1])?, position(cx, &args[2])?);
        let n = args[3].size("the number of rows")?;
        block(cx, &args[0], (i, n), (j, 1), Leaf::Vector(n))
    }),
    ("sub_row", |cx, args| {
        let (i, j) = (position(cx, &args[1])?, position(cx, &args[2])?);
        let n = args[3].size("the number of columns")?;
        block(cx, &args[0], (i, 1), (j, n), Leaf::Row(n))
    }),
    ("col", |cx, args| {
        let rows = cx.extents(&args[0])?.0;
        block(
            cx,
            &args[0],
            (0, rows),
            (position(cx, &args[1])?, 1),
            Leaf::Vector(rows),
        )
    }),
    ("row", |cx, args| {
        let cols = cx.extents(&args[0])?.1;
        block(
            cx,
            &args[0],
            (position(cx, &args[1])?, 1),
            (0, cols),
            Leaf::Row(cols),
        )
    }),
    ("diagonal", |cx, args| {
        let (rows, cols) = cx.extents(&args[0])?;
        let n = rows.min(cols);
        let index: Vec<usize> = (0..n).map(|i| i * rows + i).collect();
        args[0].pick(cx.tape, &index, Dims::leaf(Leaf::Vector(n)))
    }),
    ("diag_matrix", diag_matrix),
    ("add_diag", add_diag),
    ("reverse", reverse),
    ("symmetrize_from_lower_tri", |cx, args| {
        let n = cx.square(&args[0])?;
        let index: Vec<usize> = (0..n * n)
            .map(|at| (at / n).min(at % n) * n + (at / n).max(at % n))
            .collect();
        args[0].pick(cx.tape, &index, Dims::leaf(Leaf::Matrix(n, n)))
    }),
    ("size", |_, args| {
        Ok(int(args[0].dims()?.extents().first().copied().unwrap_or(1)))
    }),
    ("num_elements", |_, args| Ok(int(args[0].dims()?.size()))),
    ("rows", |cx, args| Ok(int(cx.extents(&args[0])?.0))),
    ("cols", |cx, args| Ok(int(cx.extents(&args[0])?.1))),
    ("dims", |_, args| {
        let extents = args[0].dims()?.extents();
        let ints = extents
            .into_iter()
            .map(|n| i32::try_from(n).unwrap_or(i32::MAX));
        Ok(crate::value::Value::Ints(ints.collect()).into())
    }),
    ("is_inf", |cx, args| {
        let infinite = f64::INFINITY;
        Ok(cx.e(&args[0])?.abs().eq(cx.num(infinite)).into())
    }),
    ("is_nan", |cx, args| {
        let x = cx.e(&args[0])?;
        Ok(x.eq(x).not().into())
    }),
];

fn int(n: usize) -> Sym {
    Sym::Int(i32::try_from(n).unwrap_or(i32::MAX))
}

fn position(cx: &Cx<'_>, x: &Sym) -> FnResult<usize> {
    let i = x.int()?;
    usize::try_from(i)
        .ok()
        .and_then(|i| i.checked_sub(1))
        .ok_or_else(|| {
            cx.invalid(format!(
                "index {i} is out of bounds; positions are numbered from 1"
            ))
        })
}

fn first_extent(x: &Sym) -> FnResult<usize> {
    Ok(x.dims()?.extents().first().copied().unwrap_or(1))
}

fn reshape(cx: &Cx<'_>, x: &Sym, to: impl Fn(usize) -> Dims) -> FnResult<Sym> {
    let dims = to(x.dims()?.size());
    with_dims(cx, x, dims)
}

fn with_dims(cx: &Cx<'_>, x: &Sym, dims: Dims) -> FnResult<Sym> {
    match x {
        Sym::Flat(flat) if flat.is_table() => Ok(Sym::cells(dims, x.to_cells(cx.tape)?)),
        _ => Ok(Sym::flat(dims, cx.e(x)?)),
    }
}

fn to_array_2d(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (rows, cols) = cx.extents(&args[0])?;
    let index: Vec<usize> = (0..rows * cols)
        .map(|at| at % cols * rows + at / cols)
        .collect();
    let dims = Dims {
        array: vec![rows, cols],
        leaf: Leaf::Scalar,
    };
    args[0].pick(cx.tape, &index, dims)
}

fn to_matrix(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let dims = args[0].dims()?;
    if args.len() == 1 {
        let (rows, cols) = match (&dims.array[..], dims.leaf) {
            ([], leaf) => leaf.extents(),
            ([rows, cols], Leaf::Scalar) => (*rows, *cols),
            ([rows], Leaf::Row(cols)) => (*rows, cols),
            _ => return Err(cx.invalid(format!("cannot make a matrix of {}", dims.describe()))),
        };
        let to = Dims::leaf(Leaf::Matrix(rows, cols));
        if dims.array.is_empty() {
            return with_dims(cx, &args[0], to);
        }
        let index: Vec<usize> = (0..rows * cols)
            .map(|at| at % rows * cols + at / rows)
            .collect();
        return args[0].pick(cx.tape, &index, to);
    }
    let (rows, cols) = (
        args[1].size("the number of rows")?,
        args[2].size("the number of columns")?,
    );
    if rows * cols != dims.size() {
        return Err(cx.invalid(format!(
            "{} elements do not fill a {rows} × {cols} matrix",
            dims.size()
        )));
    }
    let to = Dims::leaf(Leaf::Matrix(rows, cols));
    let column_major = args
        .get(3)
        .map_or(Ok(true), |flag| flag.int().map(|i| i != 0))?;
    if column_major {
        return with_dims(cx, &args[0], to);
    }
    let index: Vec<usize> = (0..rows * cols)
        .map(|at| at % rows * cols + at / rows)
        .collect();
    args[0].pick(cx.tape, &index, to)
}

fn cells(cx: &Cx<'_>, x: &Sym) -> FnResult<Vec<Cell>> {
    x.to_cells(cx.tape)
}

fn append_row(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (a, b) = (&args[0], &args[1]);
    let ((m, k), (n, l)) = (cx.extents(a)?, cx.extents(b)?);
    let vectors = matches!(a.dims()?.leaf, Leaf::Vector(_) | Leaf::Scalar);
    let (x, y) = (cells(cx, a)?, cells(cx, b)?);
    if vectors {
        let all: Vec<Cell> = x.into_iter().chain(y).collect();
        return Ok(Sym::joined(
            cx.tape,
            Dims::leaf(Leaf::Vector(all.len())),
            all,
        ));
    }
    if k != l {
        return Err(cx.mismatch(a, b));
    }
    let mut all = Vec::with_capacity(x.len() + y.len());
    for j in 0..k {
        all.extend_from_slice(&x[j * m..(j + 1) * m]);
        all.extend_from_slice(&y[j * n..(j + 1) * n]);
    }
    Ok(Sym::joined(
        cx.tape,
        Dims::leaf(Leaf::Matrix(m + n, k)),
        all,
    ))
}

fn append_col(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (a, b) = (&args[0], &args[1]);
    let ((m, k), (n, l)) = (cx.extents(a)?, cx.extents(b)?);
    let rows = |x: &Sym| {
        x.dims()
            .map(|d| matches!(d.leaf, Leaf::Row(_) | Leaf::Scalar))
    };
    let mut all = cells(cx, a)?;
    all.extend(cells(cx, b)?);
    if rows(a)? && rows(b)? {
        return Ok(Sym::joined(cx.tape, Dims::leaf(Leaf::Row(all.len())), all));
    }
    if m != n {
        return Err(cx.mismatch(a, b));
    }
    Ok(Sym::joined(
        cx.tape,
        Dims::leaf(Leaf::Matrix(m, k + l)),
        all,
    ))
}

fn append_array(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (a, b) = (args[0].dims()?, args[1].dims()?);
    let empty = |d: &Dims| d.array.first() == Some(&0);
    if empty(&a) {
        return Ok(args[1].clone());
    }
    if empty(&b) {
        return Ok(args[0].clone());
    }
    if a.leaf != b.leaf || a.array[1..] != b.array[1..] {
        return Err(cx.mismatch(&args[0], &args[1]));
    }
    let mut all = cells(cx, &args[0])?;
    all.extend(cells(cx, &args[1])?);
    let mut array = a.array.clone();
    array[0] += b.array[0];
    let dims = Dims {
        array,
        leaf: a.leaf,
    };
    Ok(Sym::joined(cx.tape, dims, all))
}

fn fits(cx: &Cx<'_>, extents: &[usize]) -> FnResult<()> {
    let elements = extents.iter().map(|n| *n as f64).product();
    check_bytes(cx.name, elements, 8, MAX_VALUE_BYTES)
}

fn rep(cx: &Cx<'_>, args: &[Sym], leaf: fn(usize) -> Leaf) -> FnResult<Sym> {
    let n = args[1].size("the number of elements")?;
    fits(cx, &[n])?;
    Ok(Sym::flat(Dims::leaf(leaf(n)), cx.e(&args[0])?.repeat(n)))
}

fn rep_matrix(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let x = &args[0];
    if let [_, rows, cols] = args {
        let (rows, cols) = (
            rows.size("the number of rows")?,
            cols.size("the number of columns")?,
        );
        fits(cx, &[rows, cols])?;
        return Ok(cx.matrix(cx.e(x)?.repeat(rows * cols), rows, cols));
    }
    let n = args[1].size("the number of repetitions")?;
    fits(cx, &[n, x.dims()?.size()])?;
    match x.dims()?.leaf {
        Leaf::Row(cols) => {
            let index: Vec<usize> = (0..n * cols).map(|at| at / n).collect();
            x.pick(cx.tape, &index, Dims::leaf(Leaf::Matrix(n, cols)))
        }
        _ => {
            let rows = x.dims()?.size();
            let index: Vec<usize> = (0..n * rows).map(|at| at % rows).collect();
            x.pick(cx.tape, &index, Dims::leaf(Leaf::Matrix(rows, n)))
        }
    }
}

fn rep_array(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let mut array = args[1..]
        .iter()
        .map(|n| n.size("the number of elements"))
        .collect::<FnResult<Vec<_>>>()?;
    let inner = args[0].dims()?;
    let size = inner.size();
    fits(cx, &[array.as_slice(), &[size]].concat())?;
    let copies: usize = array.iter().product();
    array.extend(&inner.array);
    let dims = Dims {
        array,
        leaf: inner.leaf,
    };
    if args[0].is_scalar() {
        return Ok(Sym::flat(dims, cx.e(&args[0])?.repeat(copies)));
    }
    let index: Vec<usize> = (0..copies * size).map(|at| at % size).collect();
    args[0].pick(cx.tape, &index, dims)
}

fn segment(cx: &Cx<'_>, x: &Sym, from: usize, n: usize) -> FnResult<Sym> {
    let dims = x.dims()?;
    let total = first_extent(x)?;
    if from + n > total {
        return Err(cx.invalid(format!(
            "elements {} to {} do not exist, because there are only {total}",
            from + 1,
            from + n
        )));
    }
    let (to, each) = match dims.leaf {
        Leaf::Vector(_) if dims.array.is_empty() => (Dims::leaf(Leaf::Vector(n)), 1),
        Leaf::Row(_) if dims.array.is_empty() => (Dims::leaf(Leaf::Row(n)), 1),
        _ => {
            let mut array = dims.array.clone();
            if let Some(first) = array.first_mut() {
                *first = n;
            }
            let to = Dims {
                array,
                leaf: dims.leaf,
            };
            (to, dims.size() / total.max(1))
        }
    };
    let index: Vec<usize> = (from * each..(from + n) * each).collect();
    x.pick(cx.tape, &index, to)
}

/// Rows and columns are given as (first, count).
fn block(
    cx: &Cx<'_>,
    x: &Sym,
    (i, m): (usize, usize),
    (j, n): (usize, usize),
    leaf: Leaf,
) -> FnResult<Sym> {
    let (rows, cols) = cx.extents(x)?;
    if i + m > rows || j + n > cols {
        return Err(cx.invalid(format!(
            "rows {}:{} and columns {}:{} reach beyond a {rows} × {cols} matrix",
            i + 1,
            i + m,
            j + 1,
            j + n
        )));
    }
    let index: Vec<usize> = (j..j + n)
        .flat_map(|col| (i..i + m).map(move |row| col * rows + row))
        .collect();
    x.pick(cx.tape, &index, Dims::leaf(leaf))
}

fn diag_matrix(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let x = cx.e(&args[0])?;
    let n = args[0].dims()?.size();
    let index: Vec<u32> = (0..n).map(|i| (i * n + i) as u32).collect();
    Ok(cx.matrix(x.scatter(&index, n * n), n, n))
}

fn add_diag(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let (rows, cols) = cx.extents(&args[0])?;
    let n = rows.min(cols);
    let d = cx.e(&args[1])?;
    if d.len() != n && !args[1].is_scalar() {
        return Err(cx.mismatch(&args[0], &args[1]));
    }
    let index: Vec<u32> = (0..n).map(|i| (i * rows + i) as u32).collect();
    let diagonal = d.repeat(n).scatter(&index, rows * cols);
    Ok(cx.matrix(cx.e(&args[0])? + diagonal, rows, cols))
}

fn reverse(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let dims = args[0].dims()?;
    let n = first_extent(&args[0])?;
    let each = dims.size() / n.max(1);
    let index: Vec<usize> = (0..dims.size())
        .map(|at| (n - 1 - at / each) * each + at % each)
        .collect();
    args[0].pick(cx.tape, &index, dims)
}
