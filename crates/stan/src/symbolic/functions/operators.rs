//! The operators of the language on values that depend on parameters.

use crate::symbolic::functions::complex;
use crate::symbolic::functions::elementwise::{map, scalars};
use crate::symbolic::functions::matrices::{multiply, solve_left, solve_right};
use crate::symbolic::functions::{Build, Cx};
use std::rc::Rc;

use crate::program::{BinaryOp, UnaryOp};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Cell, Dims, Leaf, Sym, e_cell};
use crate::value::error::FnResult;

/// Operators that are also library functions.
pub const TABLE: &[(&str, Build)] = &[
    ("add", |cx, args| {
        binary(cx, BinaryOp::Add, &args[0], &args[1])
    }),
    ("subtract", |cx, args| {
        binary(cx, BinaryOp::Sub, &args[0], &args[1])
    }),
    ("multiply", |cx, args| {
        binary(cx, BinaryOp::Mul, &args[0], &args[1])
    }),
    ("divide", |cx, args| {
        binary(cx, BinaryOp::Div, &args[0], &args[1])
    }),
    ("elt_multiply", |cx, args| {
        binary(cx, BinaryOp::EltMul, &args[0], &args[1])
    }),
    ("elt_divide", |cx, args| {
        binary(cx, BinaryOp::EltDiv, &args[0], &args[1])
    }),
    ("mdivide_left", |cx, args| {
        solve_left(cx, &args[0], &args[1])
    }),
    ("mdivide_right", |cx, args| {
        solve_right(cx, &args[0], &args[1])
    }),
    ("logical_eq", |cx, args| {
        binary(cx, BinaryOp::Eq, &args[0], &args[1])
    }),
    ("logical_gt", |cx, args| {
        binary(cx, BinaryOp::Gt, &args[0], &args[1])
    }),
    ("logical_gte", |cx, args| {
        binary(cx, BinaryOp::Ge, &args[0], &args[1])
    }),
    ("logical_lt", |cx, args| {
        binary(cx, BinaryOp::Lt, &args[0], &args[1])
    }),
    ("logical_lte", |cx, args| {
        binary(cx, BinaryOp::Le, &args[0], &args[1])
    }),
    ("logical_neq", |cx, args| {
        binary(cx, BinaryOp::Ne, &args[0], &args[1])
    }),
    ("transpose", |cx, args| transpose(cx, &args[0])),
];

/// Computes `a op b`.
///
/// # Errors
/// Fails if the sizes of the operands do not match.
pub fn binary(cx: &Cx<'_>, op: BinaryOp, a: &Sym, b: &Sym) -> FnResult<Sym> {
    use BinaryOp::*;
    if a.parts().is_some() || b.parts().is_some() {
        return complex::binary(cx, op, a, b);
    }
    let args = [a.clone(), b.clone()];
    let each = |f: for<'g> fn(E<'g>, E<'g>) -> E<'g>| map(cx, &args, |e| f(e[0], e[1]));
    match op {
        Add => each(|x, y| x + y),
        Sub => each(|x, y| x - y),
        EltMul => each(|x, y| x * y),
        EltDiv => each(|x, y| x / y),
        Mul if a.is_scalar() || b.is_scalar() => each(|x, y| x * y),
        Mul => multiply(cx, a, b),
        Div if matches!(b.dims()?.leaf, Leaf::Matrix(..)) => {
            if a.is_scalar() {
                return Err(cx.mismatch(a, b));
            }
            solve_right(cx, a, b)
        }
        Div => each(|x, y| x / y),
        LeftDiv => solve_left(cx, a, b),
        Pow | EltPow => each(|x, y| x.pow(y)),
        Eq => each(|x, y| x.eq(y)),
        Ne => each(|x, y| x.eq(y).not()),
        Lt => each(|x, y| x.lt(y)),
        Le => each(|x, y| x.le(y)),
        Gt => each(|x, y| y.lt(x)),
        Ge => each(|x, y| y.le(x)),
        And => each(|x, y| x.not().not() * y.not().not()),
        Or => each(|x, y| (x.not() * y.not()).not()),
        IntDiv => each(|x, y| (x / y).op1(jensen_graph::ElemOp::Trunc)),
        Mod => each(|x, y| x.op2(jensen_graph::ElemOp::Fmod, y)),
    }
}

/// Computes `op a`.
///
/// # Errors
/// Fails for tuples and complex numbers.
pub fn unary(cx: &Cx<'_>, op: UnaryOp, a: &Sym) -> FnResult<Sym> {
    if let (Some([re, im]), UnaryOp::Neg) = (a.parts(), op) {
        return Ok(Sym::complex(unary(cx, op, &re)?, unary(cx, op, &im)?));
    }
    let args = [a.clone()];
    match op {
        UnaryOp::Neg => map(cx, &args, |e| -e[0]),
        UnaryOp::Not => map(cx, &args, |e| e[0].not()),
    }
}

/// Computes `a'`.
///
/// # Errors
/// Fails if `a` is neither a vector nor a matrix. The checker excludes this case.
pub fn transpose(cx: &Cx<'_>, a: &Sym) -> FnResult<Sym> {
    if let Some([re, im]) = a.parts() {
        // The transpose of a complex matrix is not conjugated.
        return Ok(Sym::complex(transpose(cx, &re)?, transpose(cx, &im)?));
    }
    let dims = a.dims()?;
    let leaf = match dims.leaf {
        Leaf::Vector(n) => Leaf::Row(n),
        Leaf::Row(n) => Leaf::Vector(n),
        Leaf::Matrix(rows, cols) => Leaf::Matrix(cols, rows),
        Leaf::Scalar => return Err(cx.invalid(format!("cannot transpose {}", dims.describe()))),
    };
    let (rows, cols) = dims.leaf.extents();
    let to = Dims::leaf(leaf);
    if let Sym::Flat(flat) = a
        && flat.is_table()
    {
        let cells = (0..rows)
            .flat_map(|i| (0..cols).map(move |j| j * rows + i))
            .map(|at| flat.cell(at))
            .collect();
        return Ok(Sym::cells(to, cells));
    }
    Ok(Sym::flat(to, cx.e(a)?.transpose(rows, cols)))
}

/// Builds `[a, b, …]`: a row vector, or a matrix from its rows.
///
/// # Errors
/// Fails if rows have different sizes.
pub fn row_vector(cx: &Cx<'_>, parts: &[Sym], matrix: bool) -> FnResult<Sym> {
    if parts.iter().any(|p| p.parts().is_some()) {
        let (re, im): (Vec<Sym>, Vec<Sym>) = parts.iter().map(|p| p.as_complex().into()).unzip();
        return Ok(Sym::complex(
            row_vector(cx, &re, matrix)?,
            row_vector(cx, &im, matrix)?,
        ));
    }
    if !matrix {
        let cells = parts
            .iter()
            .map(|p| cx.e(p).map(e_cell))
            .collect::<FnResult<Vec<_>>>()?;
        return Ok(Sym::cells(Dims::leaf(Leaf::Row(cells.len())), cells));
    }
    let rows = parts.len();
    let cols = parts
        .first()
        .map_or(Ok(0), |p| p.dims().map(|d| d.size()))?;
    let mut by_row = Vec::with_capacity(rows);
    for part in parts {
        let cells = part.to_cells(cx.tape)?;
        if cells.len() != cols {
            return Err(cx.mismatch(&parts[0], part));
        }
        by_row.push(cells);
    }
    let cells = (0..cols)
        .flat_map(|j| by_row.iter().map(move |row| row[j]))
        .collect();
    Ok(Sym::cells(Dims::leaf(Leaf::Matrix(rows, cols)), cells))
}

/// Computes `c ? a : b` element by element, for values of the same shape. An element that is the same on both sides is
/// used without a selection.
///
/// # Errors
/// Fails if the shapes differ.
pub fn select<'g>(cx: &Cx<'g>, c: E<'g>, a: &Sym, b: &Sym) -> FnResult<Sym> {
    if let (Some(x), Some(y)) = (a.known(), b.known()) {
        let same = x
            .numbers()
            .iter()
            .zip(y.numbers())
            .all(|(x, y)| x.to_bits() == y.to_bits());
        if same && x.same_shape(&y) {
            return Ok(a.clone());
        }
    }
    if a.parts().is_some() || b.parts().is_some() {
        let ([x, y], [z, w]) = (a.as_complex(), b.as_complex());
        return Ok(Sym::complex(select(cx, c, &x, &z)?, select(cx, c, &y, &w)?));
    }
    if a.dims().is_err()
        && let (Some(x), Some(y)) = (a.unpacked(), b.unpacked())
    {
        let all = |x: &[Sym], y: &[Sym]| -> FnResult<Rc<Vec<Sym>>> {
            let parts = x.iter().zip(y).map(|(x, y)| select(cx, c, x, y));
            Ok(Rc::new(parts.collect::<FnResult<_>>()?))
        };
        return match (&x, &y) {
            (Sym::Tuple(x), Sym::Tuple(y)) => Ok(Sym::Tuple(all(x, y)?)),
            (Sym::Array(x), Sym::Array(y)) if x.len() == y.len() => Ok(Sym::Array(all(x, y)?)),
            _ => Err(cx.mismatch(a, b)),
        };
    }
    if let (Sym::Records(x), Sym::Records(y)) = (a, b) {
        return Ok(Sym::Records(Rc::new(select(cx, c, x, y)?)));
    }
    let (dims, other) = (a.dims()?, b.dims()?);
    if dims != other && (dims.size() > 0 || other.size() > 0) {
        return Err(cx.invalid(format!(
            "the branches of a condition that depends on parameters give values of different shapes: {} and {}",
            a.describe(),
            b.describe()
        )));
    }
    if a.is_scalar() {
        return Ok(c.select(cx.e(a)?, cx.e(b)?).into());
    }
    let table = |x: &Sym| matches!(x, Sym::Flat(flat) if flat.is_table());
    if !table(a) && !table(b) && !c.is_record() {
        return Ok(Sym::flat(dims, c.select(cx.e(a)?, cx.e(b)?)));
    }
    let (x, y) = (a.to_cells(cx.tape)?, b.to_cells(cx.tape)?);
    let same = |p: &Cell, q: &Cell| match (p, q) {
        (Cell::Const(p), Cell::Const(q)) => p.to_bits() == q.to_bits(),
        _ => p == q,
    };
    let cells = x
        .iter()
        .zip(&y)
        .map(|(p, q)| {
            if same(p, q) {
                *p
            } else {
                let both = scalars(cx, &[*p, *q]);
                e_cell(c.select(both[0], both[1]))
            }
        })
        .collect();
    Ok(Sym::cells(dims, cells))
}
