//! Derives the sign and the range of a value from the operations that compute the value. If a condition is known to
//! hold, it needs no guard.

use jensen_graph::{Graph, NodeId, Op, RecordColumn, ValueRange};

use crate::symbolic::tape::{E, Tape};

const DEPTH: u32 = 7;

/// Returns a range that contains all elements of a value.
pub fn range(e: E<'_>) -> ValueRange {
    of(&e.tape.graph.borrow(), e.id, DEPTH)
}

fn of_numbers(values: &[f64]) -> ValueRange {
    if values.iter().any(|v| v.is_nan()) {
        return ValueRange::ALL;
    }
    values.iter().fold(
        ValueRange::between(f64::INFINITY, f64::NEG_INFINITY),
        |r, v| ValueRange::between(r.low.min(*v), r.high.max(*v)),
    )
}

fn of(g: &Graph, id: NodeId, depth: u32) -> ValueRange {
    if let Some(values) = g.constant_value(id) {
        return of_numbers(values);
    }
    if depth == 0 {
        return ValueRange::ALL;
    }
    let arg = |k: usize| of(g, g.args(id)[k], depth - 1);
    match g.op(id) {
        Op::Elem(op) => op.range(&arg),
        Op::Gather(_) | Op::GatherRecord(_) | Op::Broadcast | Op::Max => arg(0),
        Op::Record(column) => match g.record_data(column) {
            RecordColumn::Values { values, .. } => of_numbers(values),
            RecordColumn::Indices(_) => ValueRange::ALL,
        },
        Op::Sum | Op::CumSum { .. } => {
            let r = arg(0);
            if r.nonnegative() {
                ValueRange::at_least(0.0, r.positive() && matches!(g.op(id), Op::Sum))
            } else {
                ValueRange::ALL
            }
        }
        Op::Concat if g.args(id).len() <= 16 => (0..g.args(id).len())
            .map(arg)
            .reduce(ValueRange::join)
            .unwrap_or(ValueRange::ALL),
        Op::MatMul(_) if arg(0).nonnegative() && arg(1).nonnegative() => {
            ValueRange::at_least(0.0, false)
        }
        _ => ValueRange::ALL,
    }
}

/// A property of a whole container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// The elements are not negative and sum to 1.
    Simplex,
    /// The elements are increasing.
    Ordered,
    /// The matrix is lower triangular with a positive diagonal.
    LowerFactor,
}

fn has(tape: &Tape, e: E<'_>, fact: Fact) -> bool {
    tape.facts.borrow().contains(&(e.id, fact))
}

/// Records a fact about the value `e`.
pub fn note(e: E<'_>, fact: Fact) {
    e.tape.facts.borrow_mut().insert((e.id, fact));
}

/// Returns whether the value is known to be a simplex.
pub fn is_simplex(tape: &Tape, e: E<'_>) -> bool {
    has(tape, e, Fact::Simplex)
}

/// Returns whether the value is known to be increasing.
pub fn is_ordered(tape: &Tape, e: E<'_>) -> bool {
    let increasing = |v: Vec<f64>| v.windows(2).all(|w| w[0] < w[1]);
    has(tape, e, Fact::Ordered) || e.values().is_some_and(increasing)
}

/// Returns whether the value is known to be lower triangular with a positive diagonal.
pub fn is_lower_factor(tape: &Tape, e: E<'_>) -> bool {
    has(tape, e, Fact::LowerFactor)
}

/// Returns whether an `n × n` matrix is symmetric by construction.
pub fn is_symmetric(tape: &Tape, e: E<'_>, n: usize) -> bool {
    symmetric(&tape.graph.borrow(), e.id, n as u32, DEPTH)
}

fn symmetric(g: &Graph, id: NodeId, n: u32, depth: u32) -> bool {
    let mirror = |at: u32| at % n * n + at / n;
    if g.shape(id).is_scalar() {
        return true;
    }
    if depth == 0 || g.shape(id).len != n * n {
        return false;
    }
    if let Some(values) = g.constant_value(id) {
        return (0..n * n)
            .all(|at| (values[at as usize] - values[mirror(at) as usize]).abs() <= 1e-8);
    }
    let args = g.args(id);
    match g.op(id) {
        Op::Elem(_) => args.iter().all(|a| symmetric(g, *a, n, depth - 1)),
        Op::MatMul(dims) => args[0] == args[1] && dims.left_transposed != dims.right_transposed,
        Op::Gather(index) => {
            let index = g.index_data(index);
            (0..n * n).all(|at| index[at as usize] == index[mirror(at) as usize])
        }
        Op::Scatter(maps) => {
            // Elements are only added to the diagonal.
            args.iter().zip(maps).all(|(_, map)| match map {
                jensen_graph::ops::ScatterMap::Index(index) => {
                    g.index_data(index).iter().all(|at| at % n == at / n)
                }
                _ => false,
            })
        }
        Op::Broadcast => true,
        Op::Concat => cells_symmetric(g, args, n),
        _ => false,
    }
}

fn cells_symmetric(g: &Graph, args: &[NodeId], n: u32) -> bool {
    let mut cells: Vec<(NodeId, u32)> = Vec::new();
    for arg in args {
        match g.op(*arg) {
            Op::Gather(index) => {
                cells.extend(g.index_data(index).iter().map(|i| (g.args(*arg)[0], *i)))
            }
            _ => cells.extend((0..g.shape(*arg).len).map(|i| (*arg, i))),
        }
    }
    let same = |a: (NodeId, u32), b: (NodeId, u32)| {
        a == b
            || matches!((g.constant_value(a.0), g.constant_value(b.0)), (Some(x), Some(y)) if x[a.1 as usize] == y[b.1 as usize])
    };
    (0..n * n).all(|at| same(cells[at as usize], cells[(at % n * n + at / n) as usize]))
}
