//! Verifies graphs between passes. A well-formed graph satisfies these conditions:
//!
//! 1. Every argument precedes its user.
//! 2. The shape of every node follows from its operation and the shapes of its arguments.
//! 3. Index lists have the required length, and every index is in range.
//! 4. All record columns have the same number of records, and their indices are in range.
//! 5. The placement of a node is the latest placement among its arguments. For record data it is at least shared.
//! 6. Every output is a node of the graph.

use std::fmt;

use crate::ir::{Graph, NodeId, RecordColumn, Shape};
use crate::ops::{Op, ScatterMap};

/// The description of an invariant that a graph violates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Malformed {}

/// Checks the invariants of a graph. The error describes the first invariant that is violated.
pub fn verify(graph: &Graph) -> Result<(), Malformed> {
    for id in graph.ids() {
        verify_node(graph, id)
            .map_err(|problem| Malformed(format!("{id} ({}): {problem}", graph.op(id).name())))?;
    }
    let count = graph.record_count();
    for record in &graph.records {
        let here = record.count();
        if Some(here) != count {
            return Err(Malformed(format!(
                "a record column has {here} records, another {count:?}"
            )));
        }
    }
    match graph.outputs().iter().find(|id| id.index() >= graph.len()) {
        Some(id) => Err(Malformed(format!("output {id} is not a node"))),
        None => Ok(()),
    }
}

/// Runs [`verify`] in debug builds. A violation means that a pass has a bug.
pub(crate) fn debug_verify(graph: &Graph) {
    if cfg!(debug_assertions)
        && let Err(problem) = verify(graph)
    {
        panic!("malformed graph after a pass: {problem}");
    }
}

fn expect(actual: Shape, wanted: Shape, what: &str) -> Result<(), String> {
    if actual == wanted {
        Ok(())
    } else {
        Err(format!("{what} has shape {actual:?}, expected {wanted:?}"))
    }
}

/// Checks the invariants of a node, whose table entries must exist. The error describes the first invariant that is
/// violated.
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: what each operation asks of its arguments"
)]
pub(crate) fn verify_node(graph: &Graph, id: NodeId) -> Result<(), String> {
    let args = graph.args(id);
    if let Some(late) = args.iter().find(|arg| **arg >= id) {
        return Err(format!(
            "argument {late} is not defined before the node that uses it"
        ));
    }
    let shape = graph.shape(id);
    let arity = |count: usize| {
        if args.len() == count {
            Ok(())
        } else {
            Err(format!("{} arguments, expected {count}", args.len()))
        }
    };
    let of = |which: usize| graph.shape(args[which]);
    let matrix = |rows: u32, cols: u32| {
        rows.checked_mul(cols)
            .map(|len| Shape { len, record: false })
            .ok_or_else(|| format!("a {rows} × {cols} matrix is too large"))
    };
    let fixed = |which: usize| {
        if of(which).record {
            Err("runs along the record axis".to_owned())
        } else {
            Ok(())
        }
    };
    let in_range = |index: &[u32], len: u32| match index.iter().find(|&&i| i >= len) {
        Some(i) => Err(format!("index {i} is out of range for {len} elements")),
        None => Ok(()),
    };
    match graph.op(id) {
        Op::Const(table) => {
            arity(0)?;
            let len = graph.const_data(table).len();
            expect(shape, Shape::fixed(len), "a constant")
        }
        Op::Input(slot) => {
            arity(0)?;
            match graph.inputs().get(slot as usize) {
                Some(input) => expect(shape, Shape::fixed(input.len), "an input"),
                None => Err(format!("no input {slot}")),
            }
        }
        Op::Record(column) => {
            arity(0)?;
            match graph.record_data(column) {
                RecordColumn::Values { width, .. } => {
                    expect(shape, Shape::per_record(*width), "a record column")
                }
                RecordColumn::Indices(_) => Err("an index column is not a value".into()),
            }
        }
        Op::RecordCount => arity(0).and_then(|()| expect(shape, Shape::SCALAR, "a count")),
        Op::Elem(op) => {
            arity(op.arity())?;
            let mut wanted = Shape::SCALAR;
            for (which, _) in args.iter().enumerate() {
                let this = of(which);
                if !this.is_scalar() {
                    if !wanted.is_scalar() {
                        expect(this, wanted, "an argument")?;
                    }
                    wanted = this;
                }
            }
            expect(shape, wanted, "the result")
        }
        Op::Broadcast => arity(1).and_then(|()| expect(of(0), Shape::SCALAR, "the argument")),
        Op::Gather(index) => {
            arity(1)?;
            fixed(0)?;
            let index = graph.index_data(index);
            in_range(index, of(0).len)?;
            expect(shape, Shape::fixed(index.len()), "the result")
        }
        Op::GatherRecord(column) => {
            arity(1)?;
            fixed(0)?;
            match graph.record_data(column) {
                RecordColumn::Indices(index) => in_range(index, of(0).len)?,
                RecordColumn::Values { .. } => return Err("not an index column".into()),
            }
            expect(shape, Shape::per_record(1), "the result")
        }
        Op::Scatter(maps) => {
            if args.is_empty() || args.len() > maps.len() {
                return Err(format!("{} sources", args.len()));
            }
            if shape.record {
                return Err("the result runs along the record axis".into());
            }
            for (which, map) in maps.iter().enumerate().take(args.len()) {
                match map {
                    ScatterMap::All => expect(of(which), shape, "a whole source")?,
                    ScatterMap::Index(index) => {
                        let index = graph.index_data(*index);
                        in_range(index, shape.len)?;
                        expect(of(which), Shape::fixed(index.len()), "a source")?;
                    }
                    ScatterMap::Record(column) => {
                        expect(of(which), Shape::per_record(1), "a record source")?;
                        match graph.record_data(*column) {
                            RecordColumn::Indices(index) => in_range(index, shape.len)?,
                            RecordColumn::Values { .. } => return Err("not an index column".into()),
                        }
                    }
                }
            }
            Ok(())
        }
        Op::Concat => {
            (0..args.len()).try_for_each(fixed)?;
            let len = args
                .iter()
                .try_fold(0_u32, |sum, &arg| sum.checked_add(graph.shape(arg).len))
                .ok_or("too many elements")?;
            expect(shape, Shape { len, record: false }, "the result")
        }
        Op::Sum | Op::Max => arity(1).and_then(|()| expect(shape, Shape::SCALAR, "the result")),
        Op::CumSum { .. } => {
            arity(1)?;
            fixed(0)?;
            expect(shape, of(0), "the result")
        }
        Op::LaneSum => arity(1).and_then(|()| expect(shape, of(0), "the result")),
        Op::MatMul(dims) => {
            arity(2)?;
            expect(of(0), matrix(dims.m, dims.k)?, "the left factor")?;
            expect(of(1), matrix(dims.k, dims.n)?, "the right factor")?;
            expect(shape, matrix(dims.m, dims.n)?, "the result")
        }
        Op::Cholesky { n } => {
            arity(1)?;
            expect(of(0), matrix(n, n)?, "the argument")?;
            expect(shape, matrix(n, n)?, "the result")
        }
        Op::TriSolve { n, cols, .. } | Op::Solve { n, cols, .. } => {
            arity(2)?;
            expect(of(0), matrix(n, n)?, "the matrix")?;
            expect(of(1), matrix(n, cols)?, "the right-hand side")?;
            expect(shape, of(1), "the result")
        }
        Op::Determinant { n, .. } => {
            arity(1)?;
            expect(of(0), matrix(n, n)?, "the argument")?;
            expect(shape, Shape::SCALAR, "the result")
        }
        Op::EigenSym { n } => {
            arity(1)?;
            expect(of(0), matrix(n, n)?, "the argument")?;
            expect(shape, matrix(n, n + 1)?, "the result")
        }
        Op::Eigen { n, .. } => {
            arity(1)?;
            expect(of(0), matrix(n, n.saturating_mul(2))?, "the argument")?;
            let columns = n.saturating_mul(3).saturating_add(2);
            expect(shape, matrix(n, columns)?, "the result")
        }
        Op::Hypergeometric {
            above,
            below,
            order,
        } => {
            arity(1)?;
            let n = above.saturating_add(below).saturating_add(1);
            expect(of(0), Shape::fixed(n as usize), "the argument")?;
            let result = match order {
                0 => Shape::SCALAR,
                1 => Shape::fixed(n as usize),
                2 => matrix(n, n)?,
                _ => return Err(format!("derivatives of order {order}")),
            };
            expect(shape, result, "the result")
        }
        Op::Solver(solver, pass) => {
            let solver = graph.solver(solver);
            if let Some(problem) = solver.problem() {
                return Err(problem);
            }
            let (lengths, result) = solver.signature(pass);
            arity(lengths.len())?;
            for (which, len) in lengths.into_iter().enumerate() {
                expect(of(which), Shape::fixed(len), "an argument")?;
            }
            expect(shape, Shape::fixed(result), "the result")
        }
    }?;
    let leaf = matches!(
        graph.op(id),
        Op::Const(_) | Op::Input(_) | Op::Record(_) | Op::RecordCount | Op::LaneSum
    );
    let latest = args.iter().map(|&arg| graph.placement(arg)).max();
    match latest {
        Some(latest) if !leaf && graph.placement(id) < latest => {
            Err("is bound before its arguments".into())
        }
        _ => Ok(()),
    }
}
