//! The constraining transforms as functions: `…_constrain`, `…_jacobian` and `…_unconstrain`.

use crate::symbolic::functions::Cx;
use crate::symbolic::functions::matrices::cholesky;
use crate::symbolic::tape::E;
use crate::symbolic::transforms::{
    Bound, Bounds, basis, bound, elementwise, elementwise_free, structured,
};
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::transform::{Limit, Transform};
use crate::value::error::FnResult;

/// The direction of a transform, which distinguishes its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// `_constrain`, and also `_jacobian`, which adds the log-Jacobian to the log density.
    Constrain,
    /// `_unconstrain`.
    Free,
}

/// Splits a function's name into the name of a transform and a direction.
pub fn named(name: &str) -> Option<(&'static str, Direction)> {
    let ways = [
        ("_constrain", Direction::Constrain),
        ("_jacobian", Direction::Constrain),
        ("_unconstrain", Direction::Free),
    ];
    ways.iter().find_map(|(suffix, direction)| {
        let base = name.strip_suffix(suffix)?;
        let found = NAMES.iter().find(|(name, _)| *name == base)?;
        Some((found.0, *direction))
    })
}

/// The transforms of whole values, by name. Transforms of single elements are not listed, because they have bounds
/// among their arguments.
const NAMES: &[(&str, Transform)] = &[
    ("lower_bound", Transform::Lower(Limit::All(0.0))),
    ("upper_bound", Transform::Upper(Limit::All(0.0))),
    (
        "lower_upper_bound",
        Transform::LowerUpper(Limit::All(0.0), Limit::All(0.0)),
    ),
    (
        "offset_multiplier",
        Transform::OffsetMultiplier(Limit::All(0.0), Limit::All(0.0)),
    ),
    ("ordered", Transform::Ordered),
    ("positive_ordered", Transform::PositiveOrdered),
    ("simplex", Transform::Simplex),
    ("unit_vector", Transform::UnitVector),
    ("sum_to_zero", Transform::SumToZero),
    ("stochastic_column", Transform::ColumnStochastic),
    ("stochastic_row", Transform::RowStochastic),
    ("cholesky_factor_corr", Transform::CholeskyFactorCorr),
    ("cholesky_factor_cov", Transform::CholeskyFactorCov),
    ("corr_matrix", Transform::CorrMatrix),
    ("cov_matrix", Transform::CovMatrix),
];

/// Returns the result of a transform's function, and the log-Jacobian.
///
/// # Errors
/// Fails if the sizes or the bounds do not match the value.
pub fn transformed<'g>(
    cx: &Cx<'g>,
    base: &str,
    direction: Direction,
    args: &[Sym],
) -> FnResult<(Sym, E<'g>)> {
    let found = NAMES.iter().find(|(name, _)| *name == base);
    let (_, transform) = found.ok_or_else(|| cx.invalid("no transform"))?;
    let dims = args[0].dims()?;
    if transform.is_elementwise() {
        return each_element(cx, transform, direction, &dims, args);
    }
    let each = dims.leaf.size();
    let whole = cx.e(&args[0])?;
    let mut parts = Vec::with_capacity(dims.count());
    let mut terms = Vec::new();
    let mut leaf = dims.leaf;
    for k in 0..dims.count() {
        let x = if whole.len() == each {
            whole
        } else {
            whole.slice(k * each, each)
        };
        let (part, jacobian);
        (leaf, part, jacobian) = match direction {
            Direction::Constrain => constrained(cx, transform, x, dims.leaf, &args[1..])?,
            Direction::Free => freed(cx, transform, x, dims.leaf)?,
        };
        parts.push(part);
        terms.push(jacobian);
    }
    let jacobian = cx.tape.add_all(&terms);
    let dims = Dims {
        array: dims.array,
        leaf,
    };
    if parts.is_empty() || dims.size() == 0 {
        return Ok((dims.value(&[]).into(), jacobian));
    }
    Ok((Sym::flat(dims, cx.tape.concat(&parts)), jacobian))
}

fn each_element<'g>(
    cx: &Cx<'g>,
    transform: &Transform,
    direction: Direction,
    dims: &Dims,
    args: &[Sym],
) -> FnResult<(Sym, E<'g>)> {
    let (low, high) = (f64::NEG_INFINITY, f64::INFINITY);
    let at = |i: usize, infinity: f64| bound(cx.tape, &args[i], dims, infinity);
    let bounds = match transform {
        Transform::Lower(_) => Bounds::Within(at(1, low)?, Bound::None),
        Transform::Upper(_) => Bounds::Within(Bound::None, at(1, high)?),
        Transform::LowerUpper(..) => Bounds::Within(at(1, low)?, at(2, high)?),
        _ => Bounds::Scaled(at(1, f64::NAN)?, at(2, f64::NAN)?),
    };
    if dims.size() == 0 {
        return Ok((args[0].clone(), cx.num(0.0)));
    }
    let x = cx.e(&args[0])?;
    let (y, jacobian) = match direction {
        Direction::Constrain => elementwise(cx.name, x, bounds)?,
        Direction::Free => (elementwise_free(x, bounds), cx.num(0.0)),
    };
    Ok((Sym::flat(dims.clone(), y.repeat(dims.size())), jacobian))
}

/// Returns the constrained value, the log-Jacobian, and the extents of the value, which follow from the extents of its
/// coordinates.
fn constrained<'g>(
    cx: &Cx<'g>,
    transform: &Transform,
    z: E<'g>,
    leaf: Leaf,
    sizes: &[Sym],
) -> FnResult<(Leaf, E<'g>, E<'g>)> {
    let (rows, cols) = leaf.extents();
    let to = match (transform, leaf) {
        (Transform::Simplex, _) | (Transform::SumToZero, Leaf::Vector(_)) => Leaf::Vector(rows + 1),
        (Transform::SumToZero, _) => Leaf::Matrix(rows + 1, cols + 1),
        (Transform::ColumnStochastic, _) => Leaf::Matrix(rows + 1, cols),
        (Transform::RowStochastic, _) => Leaf::Matrix(rows, cols + 1),
        (_, leaf) if sizes.is_empty() => leaf,
        _ => {
            let rows = sizes[0].size("rows")?;
            let cols = sizes.get(1).map_or(Ok(rows), |n| n.size("columns"))?;
            Leaf::Matrix(rows, cols)
        }
    };
    let (rows, cols) = to.extents();
    let expected = transform.coordinates(rows, cols);
    if leaf.size() != expected {
        return Err(cx.invalid(format!(
            "{} for {rows} × {cols} elements needs {expected} coordinates, found {}",
            transform.describe(),
            leaf.size()
        )));
    }
    let (cells, jacobian) = structured(cx.tape, transform, z, rows, cols);
    let value = crate::symbolic::value::assemble(cx.tape, &cells);
    Ok((to, value, jacobian))
}

/// Returns the coordinates of a constrained value, with their extents. For draws that violate the constraint, the
/// coordinates are undefined or NaN.
fn freed<'g>(
    cx: &Cx<'g>,
    transform: &Transform,
    x: E<'g>,
    leaf: Leaf,
) -> FnResult<(Leaf, E<'g>, E<'g>)> {
    let (rows, cols) = leaf.extents();
    let zero = cx.num(0.0);
    let count = transform.coordinates(rows, cols);
    let empty = (Leaf::Vector(0), cx.tape.vector(&[]), zero);
    let less = |n: usize| n.saturating_sub(1);
    let to = match (transform, leaf) {
        (Transform::SumToZero, Leaf::Matrix(..)) => Leaf::Matrix(less(rows), less(cols)),
        (Transform::ColumnStochastic, _) => Leaf::Matrix(less(rows), cols),
        (Transform::RowStochastic, _) => Leaf::Matrix(rows, less(cols)),
        _ => Leaf::Vector(count),
    };
    if count == 0 {
        return Ok((to, empty.1, zero));
    }
    let contrasts =
        |x: E<'g>| basis(cx.tape, rows).matmul_with(x, rows - 1, rows, cols, true, false);
    let free = match transform {
        Transform::Ordered | Transform::PositiveOrdered => {
            let first = match transform {
                Transform::Ordered => x.at(0),
                _ => x.at(0).log(),
            };
            let steps = (x.slice(1, rows - 1) - x.slice(0, rows - 1)).log();
            if rows == 1 {
                first
            } else {
                cx.tape.concat(&[first, steps])
            }
        }
        Transform::Simplex | Transform::ColumnStochastic => contrasts(x.log()),
        Transform::RowStochastic => {
            let basis = basis(cx.tape, cols);
            x.log().matmul(basis, rows, cols, cols - 1)
        }
        Transform::SumToZero if cols == 1 => contrasts(x),
        Transform::SumToZero => {
            // In matrices, the first row and column come last in the basis.
            let position = |i: usize, n: usize| (i + n - 1) % n;
            let index: Vec<u32> = (0..rows * cols)
                .map(|at| (position(at / rows, cols) * rows + position(at % rows, rows)) as u32)
                .collect();
            let left = contrasts(x.gather(&index));
            left.matmul(basis(cx.tape, cols), rows - 1, cols, cols - 1)
        }
        Transform::CholeskyFactorCorr => partial_correlations(cx, x, rows, false),
        Transform::CorrMatrix => partial_correlations(cx, cholesky(cx, x, rows)?, rows, true),
        Transform::CholeskyFactorCov => triangle(x, rows, cols),
        Transform::CovMatrix => triangle(cholesky(cx, x, rows)?, rows, rows),
        _ => x,
    };
    Ok((to, free, zero))
}

fn triangle(l: E<'_>, rows: usize, cols: usize) -> E<'_> {
    let positions: Vec<(usize, usize)> = (0..rows)
        .flat_map(|i| (0..cols.min(i + 1)).map(move |j| (i, j)))
        .collect();
    let index: Vec<u32> = positions
        .iter()
        .map(|(i, j)| (j * rows + i) as u32)
        .collect();
    let parts: Vec<E<'_>> = positions
        .iter()
        .zip(&index)
        .map(|((i, j), at)| {
            let x = l.at(*at as usize);
            if i == j { x.log() } else { x }
        })
        .collect();
    l.tape.concat(&parts)
}

/// The coordinates are row by row, or column by column if `by_column` is true.
fn partial_correlations<'g>(cx: &Cx<'g>, l: E<'g>, n: usize, by_column: bool) -> E<'g> {
    let mut found = vec![vec![cx.num(0.0); n]; n];
    for (i, row) in found.iter_mut().enumerate().skip(1) {
        let mut rest = cx.num(1.0);
        for (j, z) in row.iter_mut().enumerate().take(i) {
            let v = l.at(j * n + i);
            *z = (v / rest.sqrt()).op1(jensen_graph::ElemOp::Atanh);
            rest = rest - v.square();
        }
    }
    let rows = (1..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let columns = (0..n).flat_map(|j| (j + 1..n).map(move |i| (i, j)));
    let order: Vec<(usize, usize)> = if by_column {
        columns.collect()
    } else {
        rows.collect()
    };
    let parts: Vec<E<'g>> = order.iter().map(|(i, j)| found[*i][*j]).collect();
    cx.tape.concat(&parts)
}
