//! Structural operations: their values for the slow evaluator, and their derivative rules as graph expressions.

use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{ElemOp, MatMul, Op, Pass, ScatterMap, hypergeometric, spectra};

/// The largest extent of a product that is expanded to elementwise multiplications with constant columns. These
/// multiplications fuse with the operations before and after them.
const SMALL_EXTENT: u32 = 8;

/// Computes a structural operation at one draw. The operation must not use record columns.
pub(crate) fn value(graph: &Graph, op: Op, args: &[&[f64]], len: usize) -> Vec<f64> {
    match op {
        Op::Broadcast => vec![args[0][0]; len],
        Op::Gather(index) => graph
            .index_data(index)
            .iter()
            .map(|&i| args[0][i as usize])
            .collect(),
        Op::Scatter(maps) => {
            let mut out = vec![0.0; len];
            for (x, map) in args.iter().zip(maps) {
                match map {
                    ScatterMap::All => out.iter_mut().zip(*x).for_each(|(o, x)| *o += x),
                    ScatterMap::Index(index) => {
                        for (&i, x) in graph.index_data(index).iter().zip(*x) {
                            out[i as usize] += x;
                        }
                    }
                    ScatterMap::Record(_) => {
                        unreachable!("record scatters have their own evaluation")
                    }
                }
            }
            out
        }
        Op::Concat => args.concat(),
        Op::Sum => vec![args[0].iter().sum()],
        Op::Max => {
            vec![args[0].iter().fold(
                f64::NEG_INFINITY,
                |m, &x| if x.is_nan() || x > m { x } else { m },
            )]
        }
        Op::CumSum { reverse } => {
            let mut out = args[0].to_vec();
            if reverse {
                (0..len.saturating_sub(1))
                    .rev()
                    .for_each(|i| out[i] += out[i + 1]);
            } else {
                (1..len).for_each(|i| out[i] += out[i - 1]);
            }
            out
        }
        Op::MatMul(dims) => matmul_value(dims, args[0], args[1]),
        Op::Cholesky { n } => cholesky_value(n as usize, args[0]),
        Op::TriSolve {
            n,
            cols,
            transposed,
        } => tri_solve_value(n as usize, cols as usize, transposed, args[0], args[1]),
        Op::Solve {
            n,
            cols,
            transposed,
        } => solve_value(n as usize, cols as usize, transposed, args[0], args[1]).0,
        Op::Determinant { n, log } => {
            let (_, pivots) = solve_value(n as usize, 0, false, args[0], &[]);
            vec![match log {
                true => pivots.iter().map(|pivot| pivot.abs().ln()).sum(),
                false => pivots.iter().product(),
            }]
        }
        Op::EigenSym { n } => eigen_value(n as usize, args[0]),
        Op::Eigen { n, hermitian } => spectra::value(n as usize, hermitian, args[0]),
        Op::Hypergeometric { above, order, .. } => {
            hypergeometric::value(above as usize, order as usize, args[0])
        }
        Op::Const(_)
        | Op::Input(_)
        | Op::Record(_)
        | Op::RecordCount
        | Op::Elem(_)
        | Op::GatherRecord(_)
        | Op::Solver(..)
        | Op::LaneSum => {
            unreachable!("not a structural operation on fixed-size values")
        }
    }
}

fn matmul_value(dims: MatMul, left: &[f64], right: &[f64]) -> Vec<f64> {
    let (m, k, n) = (dims.m as usize, dims.k as usize, dims.n as usize);
    let a = |i: usize, j: usize| {
        if dims.left_transposed {
            left[i * k + j]
        } else {
            left[j * m + i]
        }
    };
    let b = |i: usize, j: usize| {
        if dims.right_transposed {
            right[i * n + j]
        } else {
            right[j * k + i]
        }
    };
    let mut out = vec![0.0; m * n];
    for j in 0..n {
        for i in 0..m {
            out[j * m + i] = (0..k).map(|l| a(i, l) * b(l, j)).sum();
        }
    }
    out
}

/// Returns the lower Cholesky factor, or NaN for every element if the matrix is not positive definite.
pub(crate) fn cholesky_value(n: usize, a: &[f64]) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    for j in 0..n {
        for i in j..n {
            let dot: f64 = (0..j).map(|k| l[k * n + i] * l[k * n + j]).sum();
            let rest = a[j * n + i] - dot;
            if i == j {
                if rest.is_nan() || rest <= 0.0 {
                    return vec![f64::NAN; n * n];
                }
                l[j * n + j] = rest.sqrt();
            } else {
                l[j * n + i] = rest / l[j * n + j];
            }
        }
    }
    l
}

pub(crate) fn eigen_value(n: usize, a: &[f64]) -> Vec<f64> {
    let symmetric: Vec<f64> = (0..n * n)
        .map(|at| 0.5 * (a[at] + a[at % n * n + at / n]))
        .collect();
    let (mut values, vectors) = jensen_math::dense::eigen_symmetric(&symmetric, n);
    values.extend(vectors);
    values
}

fn tri_solve_value(n: usize, cols: usize, transposed: bool, l: &[f64], b: &[f64]) -> Vec<f64> {
    let mut x = b.to_vec();
    for column in x.chunks_exact_mut(n.max(1)).take(cols) {
        if transposed {
            for i in (0..n).rev() {
                let dot: f64 = (i + 1..n).map(|k| l[i * n + k] * column[k]).sum();
                column[i] = (column[i] - dot) / l[i * n + i];
            }
        } else {
            for i in 0..n {
                let dot: f64 = (0..i).map(|k| l[k * n + i] * column[k]).sum();
                column[i] = (column[i] - dot) / l[i * n + i];
            }
        }
    }
    x
}

/// Solves a linear system by elimination with pivoting. Returns the solution and log |det|. Both are NaN if the matrix
/// is singular or if the right-hand side is not finite.
pub(crate) fn solve_value(
    n: usize,
    cols: usize,
    transposed: bool,
    a: &[f64],
    b: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let mut m: Vec<f64> = (0..n * n)
        .map(|at| {
            let (row, col) = (at / n, at % n);
            if transposed {
                a[row * n + col]
            } else {
                a[col * n + row]
            }
        })
        .collect();
    if a.iter().any(|x| !x.is_finite()) {
        return (vec![f64::NAN; b.len()], vec![f64::NAN; n]);
    }
    let mut x = b.to_vec();
    for column in x.chunks_exact_mut(n.max(1)) {
        if column.iter().any(|x| !x.is_finite()) {
            column.fill(f64::NAN);
        }
    }
    let mut pivots = vec![0.0; n];
    for p in 0..n {
        let pivot = (p..n)
            .max_by(|&i, &j| m[i * n + p].abs().total_cmp(&m[j * n + p].abs()))
            .unwrap_or(p);
        if pivot != p {
            (0..n).for_each(|j| m.swap(p * n + j, pivot * n + j));
            (0..cols).for_each(|j| x.swap(j * n + p, j * n + pivot));
        }
        let head = m[p * n + p];
        pivots[p] = if pivot == p { head } else { -head };
        for i in p + 1..n {
            // All other elements of the column are also zero if the largest is.
            let factor = if head == 0.0 {
                0.0
            } else {
                m[i * n + p] / head
            };
            for j in p..n {
                m[i * n + j] -= factor * m[p * n + j];
            }
            for j in 0..cols {
                x[j * n + i] -= factor * x[j * n + p];
            }
        }
    }
    for j in 0..cols {
        for i in (0..n).rev() {
            let dot: f64 = (i + 1..n).map(|k| m[i * n + k] * x[j * n + k]).sum();
            x[j * n + i] = (x[j * n + i] - dot) / m[i * n + i];
        }
    }
    (x, pivots)
}

pub(crate) fn small_matmul(
    g: &mut Graph,
    left: NodeId,
    right: NodeId,
    dims: MatMul,
) -> Option<NodeId> {
    if dims.m == 1 && dims.n > 1 {
        // The product of a row with a matrix is computed as the product of the transposed matrix with a column.
        let flipped = MatMul {
            m: dims.n,
            n: 1,
            k: dims.k,
            left_transposed: !dims.right_transposed,
            right_transposed: false,
        };
        return Some(g.matmul(right, left, flipped));
    }
    if dims.n != 1 {
        return None;
    }
    let (m, k) = (dims.m as usize, dims.k as usize);
    if m == 1 || k == 1 {
        let product = g.mul(left, right);
        return Some(if m == 1 { g.sum(product) } else { product });
    }
    let table = g.constant_value(left)?.to_vec();
    let at = |i: usize, j: usize| {
        if dims.left_transposed {
            table[i * k + j]
        } else {
            table[j * m + i]
        }
    };
    if dims.k <= SMALL_EXTENT && dims.k <= dims.m {
        let mut sum = g.constant(0.0);
        for j in 0..k {
            let column: Vec<f64> = (0..m).map(|i| at(i, j)).collect();
            let column = g.vector(&column);
            let x = g.element(right, j);
            let term = g.mul(column, x);
            sum = g.add(sum, term);
        }
        let shape = Shape::fixed(m);
        Some(if g.shape(sum) == shape {
            sum
        } else {
            g.broadcast(sum, shape)
        })
    } else if dims.m <= SMALL_EXTENT {
        let parts: Vec<NodeId> = (0..m)
            .map(|i| {
                let row: Vec<f64> = (0..k).map(|j| at(i, j)).collect();
                let row = g.vector(&row);
                let product = g.mul(row, right);
                g.sum(product)
            })
            .collect();
        Some(g.concat(&parts))
    } else {
        None
    }
}

/// Creates a constant lower triangular matrix with ones below the diagonal and `diagonal` on the diagonal.
fn lower_mask(g: &mut Graph, n: usize, diagonal: f64) -> NodeId {
    let mask: Vec<f64> = (0..n * n)
        .map(|at| {
            let (col, row) = (at / n, at % n);
            if row > col {
                1.0
            } else if row == col {
                diagonal
            } else {
                0.0
            }
        })
        .collect();
    g.vector(&mask)
}

fn square(n: usize, left_transposed: bool, right_transposed: bool) -> MatMul {
    let n = n as u32;
    MatMul {
        m: n,
        k: n,
        n,
        left_transposed,
        right_transposed,
    }
}

/// Returns the adjoint of argument `which` of `node`. The given adjoint of the node has the full shape of the node.
/// Also returns the positions of the argument's elements to which the adjoint belongs.
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: the derivative of each operation"
)]
pub(crate) fn vjp(
    g: &mut Graph,
    node: NodeId,
    adjoint: NodeId,
    which: usize,
) -> (NodeId, ScatterMap) {
    let args = g.args(node).to_vec();
    let whole = |x: NodeId| (x, ScatterMap::All);
    match g.op(node) {
        Op::Broadcast => whole(g.sum(adjoint)),
        Op::Gather(index) => (adjoint, ScatterMap::Index(index)),
        Op::GatherRecord(index) => (adjoint, ScatterMap::Record(index)),
        Op::Scatter(maps) => match maps[which] {
            ScatterMap::All => whole(adjoint),
            ScatterMap::Index(index) => {
                let index = g.index_data(index).clone();
                whole(g.gather(adjoint, &index))
            }
            ScatterMap::Record(index) => whole(g.gather_record(adjoint, index)),
        },
        Op::Concat => {
            let start: usize = args[..which]
                .iter()
                .map(|&arg| g.shape(arg).len as usize)
                .sum();
            let len = g.shape(args[which]).len as usize;
            whole(g.slice(adjoint, start, len))
        }
        Op::Sum => unreachable!("sums have scalar adjoints, which need no full shape"),
        Op::Max => {
            let share = share_of_max(g, args[0], node);
            whole(g.mul(share, adjoint))
        }
        Op::CumSum { reverse } => whole(g.directed_cumsum(adjoint, !reverse)),
        Op::LaneSum => whole(adjoint),
        Op::MatMul(MatMul {
            m,
            k,
            n,
            left_transposed: lt,
            right_transposed: rt,
        }) => whole(if which == 0 {
            if lt {
                let dims = MatMul {
                    m: k,
                    k: n,
                    n: m,
                    left_transposed: rt,
                    right_transposed: true,
                };
                g.matmul(args[1], adjoint, dims)
            } else {
                let dims = MatMul {
                    m,
                    k: n,
                    n: k,
                    left_transposed: false,
                    right_transposed: !rt,
                };
                g.matmul(adjoint, args[1], dims)
            }
        } else if rt {
            let dims = MatMul {
                m: n,
                k: m,
                n: k,
                left_transposed: true,
                right_transposed: lt,
            };
            g.matmul(adjoint, args[0], dims)
        } else {
            let dims = MatMul {
                m: k,
                k: m,
                n,
                left_transposed: !lt,
                right_transposed: false,
            };
            g.matmul(args[0], adjoint, dims)
        }),
        Op::Cholesky { n } => {
            // Murray (2016), "Differentiation of the Cholesky decomposition", equation 10.
            let n = n as usize;
            let keep = lower_mask(g, n, 1.0);
            let bar = g.mul(keep, adjoint);
            let product = g.matmul(node, bar, square(n, true, false));
            let half = lower_mask(g, n, 0.5);
            let p = g.mul(half, product);
            let t = g.tri_solve(node, p, n, n, true);
            let t = g.transpose(t, n, n);
            let st = g.tri_solve(node, t, n, n, true);
            let s = g.transpose(st, n, n);
            let sum = g.add(s, st);
            whole(g.mul(half, sum))
        }
        Op::TriSolve {
            n,
            cols,
            transposed,
        } => {
            let (n, cols) = (n as usize, cols as usize);
            let bbar = g.tri_solve(args[0], adjoint, n, cols, !transposed);
            if which == 1 {
                return whole(bbar);
            }
            let outer = solve_factor_adjoint(g, n, cols, transposed, bbar, node);
            let keep = lower_mask(g, n, 1.0);
            whole(g.mul(keep, outer))
        }
        Op::Solve {
            n,
            cols,
            transposed,
        } => {
            let (n, cols) = (n as usize, cols as usize);
            let bbar = g.solve(args[0], adjoint, n, cols, !transposed);
            if which == 1 {
                return whole(bbar);
            }
            whole(solve_factor_adjoint(g, n, cols, transposed, bbar, node))
        }
        Op::Determinant { n, log } => {
            let inverse = transposed_inverse(g, args[0], n as usize);
            let factor = if log { adjoint } else { g.mul(adjoint, node) };
            whole(g.mul(inverse, factor))
        }
        Op::EigenSym { n } => whole(eigen_adjoint(g, node, n as usize, adjoint)),
        Op::Eigen { n, hermitian } => {
            whole(spectra::adjoint(g, node, n as usize, hermitian, adjoint))
        }
        Op::Hypergeometric {
            above,
            below,
            order,
        } => whole(hypergeometric::along(
            g,
            [above, below, order],
            args[0],
            adjoint,
        )),
        Op::Solver(id, pass) => whole(solver_vjp(g, id, pass, &args, adjoint, which)),
        Op::Const(_) | Op::Input(_) | Op::Record(_) | Op::RecordCount | Op::Elem(_) => {
            unreachable!("leaves have no arguments and elementwise rules are in their table")
        }
    }
}

/// Returns the derivative of the maximum of x. If several elements attain the maximum, each of them receives an equal
/// share, so that the shares add up to 1.
fn share_of_max(g: &mut Graph, x: NodeId, max: NodeId) -> NodeId {
    let at = g.elem(ElemOp::Eq, &[x, max]);
    let count = g.sum(at);
    g.div(at, count)
}

/// Returns the adjoint of the matrix of a linear solve: `-B̄ Xᵀ`, or `-X B̄ᵀ` for a transposed solve.
fn solve_factor_adjoint(
    g: &mut Graph,
    n: usize,
    cols: usize,
    transposed: bool,
    bbar: NodeId,
    x: NodeId,
) -> NodeId {
    let dims = MatMul {
        m: n as u32,
        k: cols as u32,
        n: n as u32,
        left_transposed: false,
        right_transposed: true,
    };
    let outer = if transposed {
        g.matmul(x, bbar, dims)
    } else {
        g.matmul(bbar, x, dims)
    };
    g.neg(outer)
}

fn eigen_adjoint(g: &mut Graph, node: NodeId, n: usize, adjoint: NodeId) -> NodeId {
    let (vectors, gaps) = eigen_parts(g, node, n);
    let (of_values, of_vectors) = (g.slice(adjoint, 0, n), g.slice(adjoint, n, n * n));
    let pull = g.matmul(vectors, of_vectors, square(n, true, false));
    let pull = g.mul(gaps, pull);
    let diagonal: Vec<u32> = (0..n).map(|i| (i * (n + 1)) as u32).collect();
    let on = g.scatter_add(of_values, &diagonal, n * n);
    let middle = g.add(pull, on);
    let left = g.matmul(vectors, middle, square(n, false, false));
    let all = g.matmul(left, vectors, square(n, false, true));
    symmetric_part(g, all, n)
}

fn eigen_tangent(g: &mut Graph, node: NodeId, n: usize, tangent: NodeId) -> NodeId {
    let (vectors, gaps) = eigen_parts(g, node, n);
    let tangent = symmetric_part(g, tangent, n);
    let left = g.matmul(vectors, tangent, square(n, true, false));
    let inside = g.matmul(left, vectors, square(n, false, false));
    let diagonal: Vec<u32> = (0..n).map(|i| (i * (n + 1)) as u32).collect();
    let of_values = g.gather(inside, &diagonal);
    let turn = g.mul(gaps, inside);
    let of_vectors = g.matmul(vectors, turn, square(n, false, false));
    g.concat(&[of_values, of_vectors])
}

fn symmetric_part(g: &mut Graph, a: NodeId, n: usize) -> NodeId {
    let half = g.constant(0.5);
    let transposed = g.transpose(a, n, n);
    let sum = g.add(a, transposed);
    g.mul(half, sum)
}

/// Returns the eigenvectors V and the matrix of 1/(λⱼ − λᵢ), in which infinite terms are replaced by 0. These terms
/// rotate eigenvectors that belong to the same eigenvalue into each other. Functions of the space that these
/// eigenvectors span do not depend on such rotations.
fn eigen_parts(g: &mut Graph, node: NodeId, n: usize) -> (NodeId, NodeId) {
    let (values, vectors) = (g.slice(node, 0, n), g.slice(node, n, n * n));
    let index = |of: fn(usize, usize) -> usize| -> Vec<u32> {
        (0..n * n).map(|at| of(at, n) as u32).collect()
    };
    let rows = g.gather(values, &index(|at, n| at % n));
    let columns = g.gather(values, &index(|at, n| at / n));
    let gap = g.sub(columns, rows);
    let (size, magnitudes) = (g.elem(ElemOp::Abs, &[gap]), g.elem(ElemOp::Abs, &[values]));
    let largest = g.max(magnitudes);
    let rounding = g.constant(4.0 * n as f64 * f64::EPSILON);
    let rounding = g.mul(rounding, largest);
    let rounding = g.broadcast(rounding, Shape::fixed(n * n));
    let equal = g.elem(ElemOp::Le, &[size, rounding]);
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let divisor = g.select(equal, one, gap);
    let inverse = g.recip(divisor);
    (vectors, g.select(equal, zero, inverse))
}

fn transposed_inverse(g: &mut Graph, a: NodeId, n: usize) -> NodeId {
    let identity: Vec<f64> = (0..n * n).map(|at| f64::from(at / n == at % n)).collect();
    let identity = g.vector(&identity);
    g.solve(a, identity, n, n, true)
}

/// Returns the tangent of `node`, given the tangents of its arguments at full shape. `None` stands for a tangent of
/// zero.
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: the derivative of each operation"
)]
pub(crate) fn jvp(g: &mut Graph, node: NodeId, tangents: &[Option<NodeId>]) -> Option<NodeId> {
    let args = g.args(node).to_vec();
    let shape = g.shape(node);
    match g.op(node) {
        op @ (Op::Broadcast
        | Op::Gather(_)
        | Op::GatherRecord(_)
        | Op::Sum
        | Op::CumSum { .. }
        | Op::LaneSum) => {
            let tangent = tangents[0]?;
            Some(g.rebuild(op, &[tangent], shape))
        }
        Op::Scatter(maps) => {
            let sources: Vec<_> = tangents
                .iter()
                .zip(maps)
                .filter_map(|(tangent, map)| Some(((*tangent)?, map)))
                .collect();
            (!sources.is_empty()).then(|| g.scatter(&sources, shape.len as usize))
        }
        Op::Concat => {
            let parts: Vec<NodeId> = tangents
                .iter()
                .zip(&args)
                .map(|(tangent, &arg)| {
                    tangent.unwrap_or_else(|| {
                        let zeros = vec![0.0; g.shape(arg).len as usize];
                        g.vector(&zeros)
                    })
                })
                .collect();
            Some(g.concat(&parts))
        }
        Op::Max => {
            let share = share_of_max(g, args[0], node);
            let product = g.mul(share, tangents[0]?);
            Some(g.sum(product))
        }
        Op::MatMul(dims) => {
            let left = tangents[0].map(|t| g.matmul(t, args[1], dims));
            let right = tangents[1].map(|t| g.matmul(args[0], t, dims));
            match (left, right) {
                (Some(a), Some(b)) => Some(g.add(a, b)),
                (a, b) => a.or(b),
            }
        }
        Op::Cholesky { n } => {
            let n = n as usize;
            let symmetric: Vec<u32> = (0..n * n)
                .map(|at| {
                    let (col, row) = (at / n, at % n);
                    (col.min(row) * n + col.max(row)) as u32
                })
                .collect();
            let da = g.gather(tangents[0]?, &symmetric);
            let x = g.tri_solve(node, da, n, n, false);
            let x = g.transpose(x, n, n);
            let y = g.tri_solve(node, x, n, n, false);
            let half = lower_mask(g, n, 0.5);
            let phi = g.mul(half, y);
            Some(g.matmul(node, phi, square(n, false, false)))
        }
        Op::TriSolve {
            n,
            cols,
            transposed,
        } => {
            let (n, cols) = (n as usize, cols as usize);
            let dl = tangents[0].map(|dl| {
                let keep = lower_mask(g, n, 1.0);
                g.mul(keep, dl)
            });
            let rhs = solve_tangent_rhs(g, n, cols, transposed, dl, tangents[1], node)?;
            Some(g.tri_solve(args[0], rhs, n, cols, transposed))
        }
        Op::Solve {
            n,
            cols,
            transposed,
        } => {
            let (n, cols) = (n as usize, cols as usize);
            let rhs = solve_tangent_rhs(g, n, cols, transposed, tangents[0], tangents[1], node)?;
            Some(g.solve(args[0], rhs, n, cols, transposed))
        }
        Op::Determinant { n, log } => {
            let inverse = transposed_inverse(g, args[0], n as usize);
            let product = g.mul(inverse, tangents[0]?);
            let sum = g.sum(product);
            Some(if log { sum } else { g.mul(sum, node) })
        }
        Op::EigenSym { n } => Some(eigen_tangent(g, node, n as usize, tangents[0]?)),
        Op::Eigen { n, hermitian } => Some(spectra::tangent(
            g,
            node,
            n as usize,
            hermitian,
            tangents[0]?,
        )),
        Op::Hypergeometric {
            above,
            below,
            order,
        } => {
            let tangent = tangents[0]?;
            if order == 2 {
                return Some(g.vector(&vec![f64::NAN; shape.len as usize]));
            }
            let along = hypergeometric::along(g, [above, below, order], args[0], tangent);
            Some(if order == 0 { g.sum(along) } else { along })
        }
        Op::Solver(id, pass) => solver_jvp(g, id, pass, &args, tangents),
        Op::Const(_) | Op::Input(_) | Op::Record(_) | Op::RecordCount | Op::Elem(_) => {
            unreachable!("leaves have no arguments and elementwise rules are in their table")
        }
    }
}

/// Returns `dB - dA X`, or `dB - dAᵀ X`.
fn solve_tangent_rhs(
    g: &mut Graph,
    n: usize,
    cols: usize,
    transposed: bool,
    da: Option<NodeId>,
    db: Option<NodeId>,
    x: NodeId,
) -> Option<NodeId> {
    let dims = MatMul {
        m: n as u32,
        k: n as u32,
        n: cols as u32,
        left_transposed: transposed,
        right_transposed: false,
    };
    let product = da.map(|da| g.matmul(da, x, dims));
    match (db, product) {
        (Some(db), Some(product)) => Some(g.sub(db, product)),
        (None, Some(product)) => Some(g.neg(product)),
        (db, None) => db,
    }
}

/// Returns the adjoint of argument `which` of a pass of a solver. The product J dx is linear in dx, and `wᵀJ` is linear
/// in w, so their adjoints with respect to dx and w need no derivative of J. Derivatives of the third order are NaN,
/// because values, gradients and Hessian-vector products need only derivatives of the first and the second order.
fn solver_vjp(
    g: &mut Graph,
    id: crate::ir::SolverId,
    pass: Pass,
    args: &[NodeId],
    adjoint: NodeId,
    which: usize,
) -> NodeId {
    let zeros = |g: &mut Graph, like: NodeId| {
        let len = g.shape(like).len as usize;
        g.vector(&vec![0.0; len])
    };
    match (pass, which) {
        (Pass::Value, _) | (Pass::Tangent, 1) => {
            g.solver_pass(id, Pass::Adjoint, &[args[0], adjoint])
        }
        (Pass::Tangent, _) => {
            let still = zeros(g, adjoint);
            g.solver_pass(
                id,
                Pass::AdjointTangent,
                &[args[0], adjoint, args[1], still],
            )
        }
        (Pass::Adjoint, 1) => g.solver_pass(id, Pass::Tangent, &[args[0], adjoint]),
        (Pass::Adjoint, _) => {
            let still = zeros(g, args[1]);
            g.solver_pass(
                id,
                Pass::AdjointTangent,
                &[args[0], args[1], adjoint, still],
            )
        }
        (Pass::AdjointTangent, _) => {
            let len = g.shape(args[which]).len as usize;
            g.vector(&vec![f64::NAN; len])
        }
    }
}

fn solver_jvp(
    g: &mut Graph,
    id: crate::ir::SolverId,
    pass: Pass,
    args: &[NodeId],
    tangents: &[Option<NodeId>],
) -> Option<NodeId> {
    let full = |g: &mut Graph, which: usize| {
        tangents[which].unwrap_or_else(|| {
            let len = g.shape(args[which]).len as usize;
            g.vector(&vec![0.0; len])
        })
    };
    match pass {
        Pass::Value => Some(g.solver_pass(id, Pass::Tangent, &[args[0], tangents[0]?])),
        Pass::Tangent if tangents[0].is_none() => {
            Some(g.solver_pass(id, Pass::Tangent, &[args[0], tangents[1]?]))
        }
        Pass::Adjoint if tangents[0].is_none() => {
            Some(g.solver_pass(id, Pass::Adjoint, &[args[0], tangents[1]?]))
        }
        Pass::Adjoint => {
            let (dx, dw) = (full(g, 0), full(g, 1));
            Some(g.solver_pass(id, Pass::AdjointTangent, &[args[0], args[1], dx, dw]))
        }
        Pass::Tangent | Pass::AdjointTangent => {
            let (_, len) = g.solver(id).signature(pass);
            Some(g.vector(&vec![f64::NAN; len]))
        }
    }
}
