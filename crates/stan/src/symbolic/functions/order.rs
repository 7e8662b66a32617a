//! Sorts containers by selecting each element according to its rank. A rank is constant except where elements are
//! equal.

use crate::symbolic::functions::{Build, Cx};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Dims, Leaf, Sym};
use crate::value::error::{FnResult, MAX_VALUE_BYTES, check_bytes};

/// The functions that this file defines.
pub const TABLE: &[(&str, Build)] = &[
    ("rank", rank),
    ("sort_asc", |cx, args| sort(cx, &args[0], false)),
    ("sort_desc", |cx, args| sort(cx, &args[0], true)),
    ("sort_indices_asc", |cx, args| order(cx, &args[0], false)),
    ("sort_indices_desc", |cx, args| order(cx, &args[0], true)),
];

fn rank(cx: &Cx<'_>, args: &[Sym]) -> FnResult<Sym> {
    let n = args[0].dims()?.size();
    let s = args[1].size("the index")?;
    if !(1..=n).contains(&s) {
        return Err(cx.invalid(format!("index {s} is out of bounds, expected 1 to {n}")));
    }
    let x = cx.e(&args[0])?;
    Ok(x.lt(x.at(s - 1)).sum().into())
}

/// Builds the n × n matrix whose element (k, i) is 1 if element i has rank k. Equal elements keep their order. The
/// function fails if the matrix would be too large.
fn permutation<'g>(cx: &Cx<'g>, x: E<'g>, n: usize, descending: bool) -> FnResult<E<'g>> {
    /// The memory that each element of the matrix needs, in bytes. This includes the intermediate values of the draws
    /// that are evaluated together.
    const BYTES: usize = 128;
    let elements = (n as f64).powi(2);
    check_bytes("the table of ranks", elements, BYTES, MAX_VALUE_BYTES)?;
    let x = if descending { -x } else { x };
    let index = |of: fn(usize, usize) -> usize| -> Vec<u32> {
        (0..n * n).map(|at| of(at, n) as u32).collect()
    };
    let (rows, columns) = (
        x.gather(&index(|at, n| at % n)),
        x.gather(&index(|at, n| at / n)),
    );
    let earlier: Vec<f64> = (0..n * n).map(|at| f64::from(at / n < at % n)).collect();
    let before = columns.lt(rows) + columns.eq(rows) * cx.tape.vector(&earlier);
    let ones = cx.tape.vector(&vec![1.0; n]);
    let ranks = before.matmul(ones, n, n, 1);
    let positions: Vec<f64> = (0..n * n).map(|at| (at % n) as f64).collect();
    Ok(ranks
        .gather(&index(|at, n| at / n))
        .eq(cx.tape.vector(&positions)))
}

fn sort(cx: &Cx<'_>, x: &Sym, descending: bool) -> FnResult<Sym> {
    let dims = x.dims()?;
    let n = dims.size();
    let e = cx.e(x)?;
    if n < 2 {
        return Ok(x.clone());
    }
    let sorted = permutation(cx, e, n, descending)?.matmul(e, n, n, 1);
    Ok(Sym::flat(dims, sorted))
}

fn order(cx: &Cx<'_>, x: &Sym, descending: bool) -> FnResult<Sym> {
    let n = x.dims()?.size();
    let dims = Dims {
        array: vec![n],
        leaf: Leaf::Scalar,
    };
    if n < 2 {
        return Ok(crate::value::Value::Ints((1..=n as i32).collect()).into());
    }
    let positions: Vec<f64> = (1..=n).map(|i| i as f64).collect();
    let order = permutation(cx, cx.e(x)?, n, descending)?;
    Ok(Sym::flat(
        dims,
        order.matmul(cx.tape.vector(&positions), n, n, 1),
    ))
}
