//! Builds sums over elements, and simplifies sums of expressions that are linear in columns of data. Such a sum is a
//! linear combination of a few terms, whose coefficients can be computed when the data are bound.
//!
//! A Poisson regression, for example, needs Σ y η. If η = X b, the sum is (Xᵀy)·b and the gradient is Xᵀy. Neither of
//! them needs a pass over all rows.

use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{ElemOp, Op, SHORTEST, streamed};

/// The largest number of terms in a linear expression. Expressions with more terms are not treated as linear.
const MOST_TERMS: usize = 256;

impl Graph {
    /// Returns the sum of all elements. If x runs along the record axis, the sum extends over all records.
    pub fn sum(&mut self, x: NodeId) -> NodeId {
        let shape = self.shape(x);
        if shape.is_scalar() {
            return x;
        }
        if let Some(values) = self.constant_value(x) {
            let total = sum_of_numbers(values.iter().copied());
            return self.constant(total);
        }
        if self.is_linear(x) {
            return self.sum_of_linear(x, &vec![1.0; shape.len as usize]);
        }
        match self.op(x) {
            Op::Broadcast => {
                let scalar = self.args(x)[0];
                let count = self.element_count(shape);
                return self.mul(count, scalar);
            }
            Op::Elem(ElemOp::Neg) => {
                let inner = self.args(x)[0];
                let sum = self.sum(inner);
                return self.neg(sum);
            }
            Op::Elem(op @ (ElemOp::Add | ElemOp::Sub)) => {
                let (a, b) = (self.args(x)[0], self.args(x)[1]);
                let parts = [a, b];
                // The pivot must be subtracted from each element, because a difference of two sums would lose digits.
                let pivoted = parts
                    .iter()
                    .any(|&part| self.elem_op(part) == Some(ElemOp::Pivot));
                let simple =
                    |part: &NodeId| self.constant_value(*part).is_some() || self.is_linear(*part);
                let apart = self.shape(a).is_scalar() != self.shape(b).is_scalar()
                    || parts.iter().any(simple);
                if apart && !pivoted {
                    let count = self.element_count(shape);
                    let [a, b] = parts.map(|part| match self.shape(part).is_scalar() {
                        true => self.mul(count, part),
                        false => self.sum(part),
                    });
                    return self.elem(op, &[a, b]);
                }
            }
            Op::Elem(ElemOp::Mul) => {
                if let Some((scalar, rest)) = self.scalar_of_product(x) {
                    let sum = self.sum(rest);
                    return self.mul(scalar, sum);
                }
            }
            Op::Elem(ElemOp::Square) => {
                if let Some((scalar, rest)) = self.split_scalar_factor(self.args(x)[0]) {
                    let (factor, squares) = (self.square(scalar), self.square(rest));
                    let sum = self.sum(squares);
                    return self.mul(factor, sum);
                }
            }
            Op::Concat => {
                let parts = self.args(x).to_vec();
                let sums: Vec<NodeId> = parts.into_iter().map(|part| self.sum(part)).collect();
                return self.add_all(&sums);
            }
            _ => {}
        }
        self.push(Op::Sum, &[x], Shape::SCALAR)
    }

    /// Splits a product into a scalar and the remaining factor. The scalar is either one of the two factors, or a
    /// factor of a nested product that is multiplied by data.
    fn scalar_of_product(&mut self, x: NodeId) -> Option<(NodeId, NodeId)> {
        if let Some(split) = self.split_scalar_factor(x) {
            return Some(split);
        }
        let (data, other) = self.data_factor(x)?;
        let (scalar, rest) = self.split_scalar_factor(other)?;
        Some((scalar, self.mul(data, rest)))
    }

    pub(crate) fn data_factor(&self, product: NodeId) -> Option<(NodeId, NodeId)> {
        let [a, b] = self.args(product)[..] else {
            return None;
        };
        let is_vector = |id: NodeId| !self.shape(id).is_scalar();
        let is_data = |id: NodeId| self.constant_value(id).is_some() && is_vector(id);
        if self.elem_op(product) != Some(ElemOp::Mul) {
            return None;
        }
        match (is_data(a), is_data(b)) {
            (true, false) => Some((a, b)),
            (false, true) => Some((b, a)),
            _ => None,
        }
    }

    /// Returns whether the sum of a vector reduces to a few terms. Each term of the vector must have one of three
    /// forms: a data column times a scalar, a long data matrix times a vector, or elements of a much shorter vector.
    /// The elements of a shorter vector may be multiplied by data.
    fn is_linear(&self, x: NodeId) -> bool {
        let shape = self.shape(x);
        if shape.record || (shape.len as usize) < SHORTEST {
            return false;
        }
        let mut open = vec![x];
        let mut terms = 0;
        while let Some(at) = open.pop() {
            terms += 1;
            if terms > MOST_TERMS {
                return false;
            }
            if self.elem_op(at) == Some(ElemOp::Pivot) {
                // The pivot must be subtracted from each element to preserve digits.
                return false;
            }
            if self.shape(at).is_scalar() {
                continue;
            }
            let args = self.args(at);
            match self.op(at) {
                Op::Elem(ElemOp::Neg | ElemOp::Add) => open.extend(args),
                // The difference between data and a predictor is a residual. Its digits would be lost in a difference
                // of two sums.
                Op::Elem(ElemOp::Sub)
                    if args.iter().all(|arg| self.constant_value(*arg).is_none()) =>
                {
                    open.extend(args);
                }
                Op::Elem(ElemOp::Mul) => {
                    let Some((_, other)) = self
                        .data_factor(at)
                        .or_else(|| self.split_scalar_factor(at))
                    else {
                        return false;
                    };
                    open.push(other);
                }
                Op::Gather(_) if 2 * self.shape(args[0]).len <= shape.len => {}
                Op::MatMul(_) if streamed(self, at).is_some_and(|product| !product.contracts) => {}
                Op::Broadcast | Op::Const(_) if at != x => {}
                _ => return false,
            }
        }
        true
    }

    fn sum_of_linear(&mut self, x: NodeId, weights: &[f64]) -> NodeId {
        if self.shape(x).is_scalar() {
            let total = sum_of_numbers(weights.iter().copied());
            return self.scale(total, x);
        }
        let args = self.args(x).to_vec();
        match self.op(x) {
            Op::Const(table) => {
                let total = dot(self.const_data(table), weights);
                self.constant(total)
            }
            Op::Broadcast => self.sum_of_linear(args[0], weights),
            Op::Elem(ElemOp::Mul) => match self.data_factor(x) {
                Some((data, other)) => {
                    let data = self.constant_value(data).expect("data are constant");
                    let weights: Vec<f64> = data.iter().zip(weights).map(|(x, w)| x * w).collect();
                    self.sum_of_linear(other, &weights)
                }
                None => {
                    let (scalar, rest) = self
                        .split_scalar_factor(x)
                        .expect("the other kind of product");
                    let sum = self.sum_of_linear(rest, weights);
                    self.mul(scalar, sum)
                }
            },
            Op::Elem(op) => {
                let sums: Vec<NodeId> = args
                    .iter()
                    .map(|&arg| self.sum_of_linear(arg, weights))
                    .collect();
                self.elem(op, &sums)
            }
            Op::Gather(indices) => {
                let mut table = vec![0.0; self.shape(args[0]).len as usize];
                for (index, weight) in self.index_data(indices).iter().zip(weights) {
                    table[*index as usize] += weight;
                }
                self.sum_of_weighted(&table, args[0])
            }
            _ => {
                let product = streamed(self, x).expect("a product with a long matrix");
                let matrix = self
                    .constant_value(product.matrix)
                    .expect("a matrix of data");
                let column = |j: usize| {
                    let from = matrix[j * product.column_stride..].iter();
                    sum_of_numbers(
                        from.step_by(product.row_stride)
                            .zip(weights)
                            .map(|(x, w)| x * w),
                    )
                };
                let table: Vec<f64> = (0..product.columns).map(column).collect();
                self.sum_of_weighted(&table, product.vector)
            }
        }
    }

    fn sum_of_weighted(&mut self, weights: &[f64], x: NodeId) -> NodeId {
        let weights = self.vector(weights);
        let product = self.mul(weights, x);
        self.sum(product)
    }

    pub(crate) fn element_count(&mut self, shape: Shape) -> NodeId {
        let len = self.constant(f64::from(shape.len));
        if shape.record {
            let records = self.records_in_batch();
            return self.mul(len, records);
        }
        len
    }

    /// Returns the sum of several values, added in a balanced tree.
    pub fn add_all(&mut self, terms: &[NodeId]) -> NodeId {
        match *terms {
            [] => self.constant(0.0),
            [one] => one,
            _ => {
                let (left, right) = terms.split_at(terms.len() / 2);
                let (left, right) = (self.add_all(left), self.add_all(right));
                self.add(left, right)
            }
        }
    }
}

/// Computes Neumaier's compensated sum. Folding must be as precise as the evaluation at run time.
fn sum_of_numbers(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = sum + value;
        if next.is_finite() {
            lost += if sum.abs() >= value.abs() {
                (sum - next) + value
            } else {
                (value - next) + sum
            };
        }
        sum = next;
    }
    sum + lost
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum_of_numbers(a.iter().zip(b).map(|(a, b)| a * b))
}
