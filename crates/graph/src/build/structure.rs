//! Constructors of structural operations: gathers, scatters, reductions and matrix operations.

use std::sync::Arc;

use crate::ir::{Graph, NodeId, Placement, RecordColumn, Shape};
use crate::ops::{
    ElemOp, MAX_SCATTER, MatMul, Op, Pass, ScatterMap, ScatterMaps, Solver, structural,
};

/// Structural operations on a constant are computed when the graph is built, unless the constant has more than this
/// number of elements.
const FOLD_LIMIT: usize = 1 << 22;

impl Graph {
    /// Repeats the scalar `x` to fill `shape`.
    pub fn broadcast(&mut self, x: NodeId, shape: Shape) -> NodeId {
        assert!(self.shape(x).is_scalar(), "only scalars broadcast");
        if shape.is_scalar() {
            return x;
        }
        if let (Some(value), false) = (self.scalar_value(x), shape.record) {
            return self.vector(&vec![value; shape.len as usize]);
        }
        self.push(Op::Broadcast, &[x], shape)
    }

    /// Gathers elements: `out[i] = x[index[i]]`.
    ///
    /// # Panics
    /// Panics if an index is out of range. This would be a bug in the caller.
    pub fn gather(&mut self, x: NodeId, index: &[u32]) -> NodeId {
        let from = self.shape(x);
        assert!(!from.record, "gather from a fixed-size value");
        assert!(
            index.iter().all(|&i| i < from.len),
            "gather index out of range"
        );
        if index.len() == from.len as usize
            && index.iter().enumerate().all(|(k, &i)| i as usize == k)
        {
            return x;
        }
        match self.op(x) {
            Op::Const(_) => {
                let data = self.constant_value(x).expect("a constant");
                let picked: Vec<f64> = index.iter().map(|&i| data[i as usize]).collect();
                return self.vector(&picked);
            }
            Op::Gather(inner) => {
                let inner = self.index_data(inner).clone();
                let composed: Vec<u32> = index.iter().map(|&i| inner[i as usize]).collect();
                let source = self.args(x)[0];
                return self.gather(source, &composed);
            }
            Op::Broadcast => {
                let source = self.args(x)[0];
                return self.broadcast(source, Shape::fixed(index.len()));
            }
            Op::Concat => {
                // An element of a concatenation is taken directly from the part that contains it.
                if let Some(result) = self.gather_from_part(x, index) {
                    return result;
                }
            }
            _ => {}
        }
        if let (false, true) = (index.is_empty(), from.len == 1) {
            return self.broadcast(x, Shape::fixed(index.len()));
        }
        let id = self.intern_index(index);
        self.push(Op::Gather(id), &[x], Shape::fixed(index.len()))
    }

    fn gather_from_part(&mut self, concat: NodeId, index: &[u32]) -> Option<NodeId> {
        let (&low, &high) = (index.iter().min()?, index.iter().max()?);
        let mut start = 0;
        for position in 0..self.args(concat).len() {
            let part = self.args(concat)[position];
            let end = start + self.shape(part).len;
            if low >= start && high < end {
                let shifted: Vec<u32> = index.iter().map(|i| i - start).collect();
                return Some(self.gather(part, &shifted));
            }
            start = end;
        }
        None
    }

    /// Returns the elements `start .. start + len` of x.
    pub fn slice(&mut self, x: NodeId, start: usize, len: usize) -> NodeId {
        let index: Vec<u32> = (start as u32..(start + len) as u32).collect();
        self.gather(x, &index)
    }

    /// Returns element `i` of x as a scalar.
    pub fn element(&mut self, x: NodeId, i: usize) -> NodeId {
        self.gather(x, &[i as u32])
    }

    /// Gathers elements by record: `out[r] = x[index of record r]`.
    pub fn gather_record(&mut self, x: NodeId, index: crate::ir::RecordId) -> NodeId {
        assert!(!self.shape(x).record, "gather from a fixed-size value");
        let RecordColumn::Indices(indices) = self.record_data(index) else {
            panic!("a record column of indices");
        };
        let len = self.shape(x).len;
        assert!(
            indices.iter().all(|&i| i < len),
            "record index out of range"
        );
        self.push(Op::GatherRecord(index), &[x], Shape::per_record(1))
    }

    /// Creates a vector of `len` zeros, and adds the elements of every source to it. The map of a source contains the
    /// indices at which its elements are added.
    pub fn scatter(&mut self, sources: &[(NodeId, ScatterMap)], len: usize) -> NodeId {
        let sources: Vec<_> = sources
            .iter()
            .copied()
            .filter(|&(x, _)| !self.is_uniform(x, 0.0))
            .collect();
        if sources.is_empty() {
            return self.vector(&vec![0.0; len]);
        }
        if let [(x, ScatterMap::All)] = sources[..] {
            return x;
        }
        if sources.len() > MAX_SCATTER {
            // This is a loop because a recursion over the remaining sources would copy them at every level. There can
            // be tens of thousands of sources.
            let (head, mut left) = sources.split_at(MAX_SCATTER);
            let mut sum = self.scatter(head, len);
            while !left.is_empty() {
                let (next, after) = left.split_at(left.len().min(MAX_SCATTER - 1));
                let mut some = vec![(sum, ScatterMap::All)];
                some.extend_from_slice(next);
                sum = self.scatter(&some, len);
                left = after;
            }
            return sum;
        }
        let mut maps: ScatterMaps = [ScatterMap::All; MAX_SCATTER];
        let mut args = Vec::with_capacity(sources.len());
        for (slot, (x, map)) in maps.iter_mut().zip(&sources) {
            *slot = *map;
            args.push(*x);
        }
        let shape = Shape::fixed(len);
        if args
            .iter()
            .all(|&arg| self.placement(arg) == Placement::Constant)
        {
            return self.fold_structural(Op::Scatter(maps), &args, shape);
        }
        // A common scalar factor is applied to the sums instead of to every element of the source.
        if let [(x, map @ (ScatterMap::Index(_) | ScatterMap::Record(_)))] = sources[..]
            && let Some((scalar, rest)) = self.split_scalar_factor(x)
            && (self.shape(x).record || self.shape(x).len as usize > len)
        {
            let inner = self.scatter(&[(rest, map)], len);
            return self.mul(scalar, inner);
        }
        self.push(Op::Scatter(maps), &args, shape)
    }

    /// Creates a vector of `len` zeros, and adds elements to it at indices: `out[index[i]] += x[i]`.
    pub fn scatter_add(&mut self, x: NodeId, index: &[u32], len: usize) -> NodeId {
        assert!(
            index.iter().all(|&i| (i as usize) < len),
            "scatter index out of range"
        );
        assert_eq!(
            index.len(),
            self.shape(x).len as usize,
            "one index an element"
        );
        let id = self.intern_index(index);
        self.scatter(&[(x, ScatterMap::Index(id))], len)
    }

    pub(super) fn split_scalar_factor(&self, x: NodeId) -> Option<(NodeId, NodeId)> {
        if self.shape(x).is_scalar() || self.elem_op(x) != Some(ElemOp::Mul) {
            return None;
        }
        let (a, b) = (self.args(x)[0], self.args(x)[1]);
        match (self.shape(a).is_scalar(), self.shape(b).is_scalar()) {
            (true, false) => Some((a, b)),
            (false, true) => Some((b, a)),
            _ => None,
        }
    }

    /// Concatenates values.
    pub fn concat(&mut self, parts: &[NodeId]) -> NodeId {
        let mut flat: Vec<NodeId> = Vec::with_capacity(parts.len());
        for &part in parts {
            assert!(
                !self.shape(part).record,
                "concatenation of fixed-size values"
            );
            match self.op(part) {
                _ if self.shape(part).len == 0 => {}
                Op::Concat => flat.extend_from_slice(self.args(part)),
                _ => flat.push(part),
            }
        }
        let merged = self.merge_constant_runs(&flat);
        match merged[..] {
            [] => self.vector(&[]),
            [one] => one,
            _ => {
                if let Some(whole) = self.adjacent_gathers(&merged) {
                    return whole;
                }
                let len = merged
                    .iter()
                    .map(|&part| self.shape(part).len as usize)
                    .sum();
                self.push(Op::Concat, &merged, Shape::fixed(len))
            }
        }
    }

    fn merge_constant_runs(&mut self, parts: &[NodeId]) -> Vec<NodeId> {
        let mut merged: Vec<NodeId> = Vec::with_capacity(parts.len());
        let mut run: Vec<f64> = Vec::new();
        for &part in parts {
            if let Some(values) = self.constant_value(part) {
                run.extend_from_slice(values);
                continue;
            }
            if !run.is_empty() {
                merged.push(self.vector(&run));
                run.clear();
            }
            merged.push(part);
        }
        if !run.is_empty() {
            merged.push(self.vector(&run));
        }
        merged
    }

    fn adjacent_gathers(&mut self, parts: &[NodeId]) -> Option<NodeId> {
        let source = match self.op(parts[0]) {
            Op::Gather(_) => self.args(parts[0])[0],
            _ => return None,
        };
        let mut index = Vec::new();
        for &part in parts {
            match self.op(part) {
                Op::Gather(id) if self.args(part)[0] == source => {
                    index.extend_from_slice(self.index_data(id));
                }
                _ => return None,
            }
        }
        Some(self.gather(source, &index))
    }

    /// Returns the largest element.
    pub fn max(&mut self, x: NodeId) -> NodeId {
        if self.shape(x).is_scalar() {
            return x;
        }
        self.structural(Op::Max, &[x], Shape::SCALAR)
    }

    /// Returns the cumulative sums. The first of them is the first element.
    pub fn cumsum(&mut self, x: NodeId) -> NodeId {
        self.directed_cumsum(x, false)
    }

    pub(crate) fn directed_cumsum(&mut self, x: NodeId, reverse: bool) -> NodeId {
        let shape = self.shape(x);
        assert!(!shape.record, "running sums of fixed-size values");
        if shape.is_scalar() {
            return x;
        }
        self.structural(Op::CumSum { reverse }, &[x], shape)
    }

    /// Sums a per-lane value over all lanes. The result is a shared value.
    pub fn lane_sum(&mut self, x: NodeId) -> NodeId {
        let shape = self.shape(x);
        self.push(Op::LaneSum, &[x], shape)
    }

    /// Multiplies two matrices.
    pub fn matmul(&mut self, left: NodeId, right: NodeId, dims: MatMul) -> NodeId {
        assert_eq!(
            self.shape(left),
            Shape::fixed((dims.m * dims.k) as usize),
            "left factor"
        );
        assert_eq!(
            self.shape(right),
            Shape::fixed((dims.k * dims.n) as usize),
            "right factor"
        );
        if self.is_uniform(left, 0.0) || self.is_uniform(right, 0.0) {
            return self.vector(&vec![0.0; (dims.m * dims.n) as usize]);
        }
        structural::small_matmul(self, left, right, dims).unwrap_or_else(|| {
            self.structural(
                Op::MatMul(dims),
                &[left, right],
                Shape::fixed((dims.m * dims.n) as usize),
            )
        })
    }

    /// Transposes a column-major `rows × cols` matrix.
    pub fn transpose(&mut self, x: NodeId, rows: usize, cols: usize) -> NodeId {
        let index: Vec<u32> = (0..rows)
            .flat_map(|r| (0..cols).map(move |c| (c * rows + r) as u32))
            .collect();
        self.gather(x, &index)
    }

    /// Returns the lower Cholesky factor of an `n × n` matrix. Only the lower triangle of the matrix is read.
    pub fn cholesky(&mut self, x: NodeId, n: usize) -> NodeId {
        self.structural(Op::Cholesky { n: n as u32 }, &[x], Shape::fixed(n * n))
    }

    /// Solves `L X = B` (or `Lᵀ X = B`) for X.
    pub fn tri_solve(
        &mut self,
        l: NodeId,
        b: NodeId,
        n: usize,
        cols: usize,
        transposed: bool,
    ) -> NodeId {
        if let Some(x) = self.unmultiplied(l, b, n, cols).filter(|_| !transposed) {
            return x;
        }
        let op = Op::TriSolve {
            n: n as u32,
            cols: cols as u32,
            transposed,
        };
        self.structural(op, &[l, b], Shape::fixed(n * cols))
    }

    /// Returns X if B is the product `L X` and all elements of L above the diagonal are zero.
    fn unmultiplied(&self, l: NodeId, b: NodeId, n: usize, cols: usize) -> Option<NodeId> {
        let plain = MatMul {
            m: n as u32,
            k: n as u32,
            n: cols as u32,
            left_transposed: false,
            right_transposed: false,
        };
        let is_made = self.op(b) == Op::MatMul(plain)
            && self.args(b)[0] == l
            && matches!(self.op(l), Op::Cholesky { .. });
        is_made.then(|| self.args(b)[1])
    }

    /// Solves `A X = B` (or `Aᵀ X = B`) for X.
    pub fn solve(
        &mut self,
        a: NodeId,
        b: NodeId,
        n: usize,
        cols: usize,
        transposed: bool,
    ) -> NodeId {
        let op = Op::Solve {
            n: n as u32,
            cols: cols as u32,
            transposed,
        };
        self.structural(op, &[a, b], Shape::fixed(n * cols))
    }

    /// Returns `log |det A|`.
    pub fn log_abs_det(&mut self, a: NodeId, n: usize) -> NodeId {
        let op = Op::Determinant {
            n: n as u32,
            log: true,
        };
        self.structural(op, &[a], Shape::SCALAR)
    }

    /// Returns `det A`. The derivatives at a singular matrix are NaN.
    pub fn determinant(&mut self, a: NodeId, n: usize) -> NodeId {
        let op = Op::Determinant {
            n: n as u32,
            log: false,
        };
        self.structural(op, &[a], Shape::SCALAR)
    }

    /// Returns the eigenvalues of a symmetric `n × n` matrix, followed by its eigenvectors.
    pub fn eigen_sym(&mut self, a: NodeId, n: usize) -> NodeId {
        let op = Op::EigenSym { n: n as u32 };
        self.structural(op, &[a], Shape::fixed(n * (n + 1)))
    }

    /// Returns the eigenvalues and eigenvectors of a complex matrix, or of the Hermitian part of the matrix, in the
    /// layout of [`Op::Eigen`].
    pub fn eigen(&mut self, a: NodeId, n: usize, hermitian: bool) -> NodeId {
        let op = Op::Eigen {
            n: n as u32,
            hermitian,
        };
        self.structural(op, &[a], Shape::fixed(n * (3 * n + 2)))
    }

    /// Evaluates the hypergeometric function, or the derivatives of the given order. `x` is a vector of `above`
    /// numerator parameters, `below` denominator parameters and the argument of the function.
    pub fn hypergeometric(
        &mut self,
        x: NodeId,
        above: usize,
        below: usize,
        order: usize,
    ) -> NodeId {
        let op = Op::Hypergeometric {
            above: above as u32,
            below: below as u32,
            order: order as u32,
        };
        let len = (above + below + 1).pow(order as u32);
        self.structural(op, &[x], Shape::fixed(len))
    }

    /// Returns the results of a solver, whose arguments form the vector `x`.
    ///
    /// # Panics
    /// Panics if the body does not have the form that the kind of solver requires, or if `x` does not have the required
    /// length. In either case, the caller has a bug.
    pub fn solver_value(&mut self, solver: Solver, x: NodeId) -> NodeId {
        if let Some(problem) = solver.problem() {
            panic!("{problem}");
        }
        let id = self.intern_solver(&Arc::new(solver));
        self.solver_pass(id, Pass::Value, &[x])
    }

    pub(crate) fn solver_pass(
        &mut self,
        id: crate::ir::SolverId,
        pass: Pass,
        args: &[NodeId],
    ) -> NodeId {
        let (lengths, result) = self.solver(id).signature(pass);
        let found: Vec<usize> = args
            .iter()
            .map(|arg| self.shape(*arg).len as usize)
            .collect();
        assert_eq!(
            found,
            lengths,
            "arguments of the {} of a solver",
            pass.name()
        );
        self.push(Op::Solver(id, pass), args, Shape::fixed(result))
    }

    fn structural(&mut self, op: Op, args: &[NodeId], shape: Shape) -> NodeId {
        let constant = args
            .iter()
            .all(|&arg| self.placement(arg) == Placement::Constant);
        if constant && shape.len as usize <= FOLD_LIMIT {
            return self.fold_structural(op, args, shape);
        }
        self.push(op, args, shape)
    }

    fn fold_structural(&mut self, op: Op, args: &[NodeId], shape: Shape) -> NodeId {
        let tables: Vec<Vec<f64>> = args
            .iter()
            .map(|&arg| self.constant_value(arg).expect("a constant").to_vec())
            .collect();
        let views: Vec<&[f64]> = tables.iter().map(Vec::as_slice).collect();
        let values = structural::value(self, op, &views, shape.len as usize);
        self.vector(&values)
    }

    /// Rebuilds the node `op(args)` in this graph through the constructors, which fold and simplify. The ids in `op`
    /// must already refer to tables of this graph.
    pub(crate) fn rebuild(&mut self, op: Op, args: &[NodeId], shape: Shape) -> NodeId {
        match op {
            Op::Elem(op) => self.elem(op, args),
            Op::Broadcast => self.broadcast(args[0], shape),
            Op::Gather(index) => {
                let index = self.index_data(index).clone();
                self.gather(args[0], &index)
            }
            Op::Scatter(maps) => {
                let sources: Vec<_> = args.iter().copied().zip(maps).collect();
                self.scatter(&sources, shape.len as usize)
            }
            Op::Concat => self.concat(args),
            Op::Sum => self.sum(args[0]),
            Op::MatMul(dims) => self.matmul(args[0], args[1], dims),
            Op::Max
            | Op::CumSum { .. }
            | Op::Cholesky { .. }
            | Op::TriSolve { .. }
            | Op::Solve { .. }
            | Op::Determinant { .. }
            | Op::EigenSym { .. }
            | Op::Eigen { .. }
            | Op::Hypergeometric { .. } => self.structural(op, args, shape),
            Op::Const(_)
            | Op::Input(_)
            | Op::Record(_)
            | Op::RecordCount
            | Op::GatherRecord(_)
            | Op::Solver(..)
            | Op::LaneSum => self.push(op, args, shape),
        }
    }
}
