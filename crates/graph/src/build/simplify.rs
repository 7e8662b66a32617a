//! Local simplifications of elementwise operations.

use crate::ir::{Graph, NodeId, Shape};
use crate::ops::{ElemOp, Op};

impl Graph {
    /// Repeats `x` to fill `shape`. An identity, such as x + 0 = x, may remove an operand that is wider than `x`, but
    /// the result must keep the shape of that operand.
    fn widen(&mut self, x: NodeId, shape: Shape) -> NodeId {
        if self.shape(x) == shape {
            x
        } else {
            self.broadcast(x, shape)
        }
    }

    /// Returns b if the expression is `(a + b) − a`, where both occurrences of a may be selections of the same
    /// elements. The result is exact, whereas the subtraction would return only a rounding error if a is very large.
    /// Such expressions occur if effects have a tiny scale around their location.
    fn rest_of_sum(&mut self, x: NodeId, y: NodeId) -> Option<NodeId> {
        let sum = |graph: &Self, id: NodeId| match graph.elem_op(id) {
            Some(ElemOp::Add) => Some((graph.args(id)[0], graph.args(id)[1])),
            _ => None,
        };
        if let Some((a, b)) = sum(self, x) {
            return match y {
                _ if y == a => Some(b),
                _ if y == b => Some(a),
                _ => None,
            };
        }
        let Op::Gather(indices) = self.op(x) else {
            return None;
        };
        let source = self.args(x)[0];
        let (a, b) = sum(self, source)?;
        let same = |graph: &Self, part: NodeId| {
            let picked = graph.op(y) == Op::Gather(indices) && graph.args(y)[0] == part;
            picked || y == part && graph.shape(part).is_scalar()
        };
        let rest = match () {
            () if same(self, a) => b,
            () if same(self, b) => a,
            () => return None,
        };
        if self.shape(rest) != self.shape(source) {
            return None;
        }
        let indices = self.index_data(indices).clone();
        Some(self.gather(rest, &indices))
    }

    /// If a program adds two scalars to a vector or subtracts them from it, combines the two scalars first. The rule
    /// does not apply to a pivot, because subtracting the pivot from each element preserves digits.
    fn scalars_together(&mut self, op: ElemOp, x: NodeId, y: NodeId) -> Option<NodeId> {
        use ElemOp::{Add, Pivot, Sub};
        let is_scalar = |graph: &Self, id: NodeId| graph.shape(id).is_scalar();
        let (scalar, vector) = match (is_scalar(self, x), is_scalar(self, y)) {
            (true, false) => (x, y),
            (false, true) => (y, x),
            _ => return None,
        };
        let inner = self.elem_op(vector).filter(|op| matches!(op, Add | Sub))?;
        let [a, b] = self.args(vector)[..] else {
            return None;
        };
        let (own, rest) = match (is_scalar(self, a), is_scalar(self, b)) {
            (true, false) => (a, b),
            (false, true) => (b, a),
            _ => return None,
        };
        if [scalar, own]
            .map(|id| self.elem_op(id))
            .contains(&Some(Pivot))
        {
            return None;
        }
        // Determines the signs of the scalar and of the vector. The vector has a scalar of its own, and the signs of
        // that scalar and of the remaining operand are determined as well.
        let (scalar_first, own_first) = (scalar == x, own == a);
        let negative = |op: ElemOp, first: bool| op == Sub && !first;
        let minus_vector = negative(op, !scalar_first);
        let minus_scalar = negative(op, scalar_first);
        let minus_own = negative(inner, own_first) != minus_vector;
        let minus_rest = negative(inner, !own_first) != minus_vector;
        let both = match (minus_scalar, minus_own) {
            (false, false) => self.add(scalar, own),
            (false, true) => self.sub(scalar, own),
            (true, false) => self.sub(own, scalar),
            (true, true) => {
                let sum = self.add(scalar, own);
                self.neg(sum)
            }
        };
        Some(match minus_rest {
            false => self.add(both, rest),
            true => self.sub(both, rest),
        })
    }

    /// Returns x if the node is log Γ(x) or a gather of log Γ(x).
    fn under_lgamma(&mut self, id: NodeId) -> Option<NodeId> {
        let is_lgamma = |graph: &Self, id: NodeId| graph.elem_op(id) == Some(ElemOp::Lgamma);
        if is_lgamma(self, id) {
            return Some(self.args(id)[0]);
        }
        let Op::Gather(indices) = self.op(id) else {
            return None;
        };
        let table = self.args(id)[0];
        if !is_lgamma(self, table) {
            return None;
        }
        let indices = self.index_data(indices).clone();
        Some(self.gather(self.args(table)[0], &indices))
    }

    /// Returns log Γ(a + n) − log Γ(a), or the negative of this difference, for numbers n ≥ 0. If a is large, both
    /// terms are much larger than their difference, and the subtraction would return only a rounding error.
    fn gamma_step(&mut self, x: NodeId, y: NodeId) -> Option<NodeId> {
        let (p, q) = (self.under_lgamma(x)?, self.under_lgamma(y)?);
        let step = |graph: &Self, sum: NodeId, base: NodeId| {
            let fits = graph.shape(base).is_scalar() || graph.shape(sum) == graph.shape(base);
            if graph.elem_op(sum) != Some(ElemOp::Add) || !fits {
                return None;
            }
            let [a, b] = graph.args(sum)[..] else {
                return None;
            };
            let by = match () {
                () if a == base => b,
                () if b == base => a,
                () => return None,
            };
            let numbers = graph.constant_value(by)?;
            numbers.iter().all(|n| *n >= 0.0).then_some(by)
        };
        if let Some(by) = step(self, p, q) {
            return Some(self.elem(ElemOp::LgammaStep, &[q, by]));
        }
        let by = step(self, q, p)?;
        let rise = self.elem(ElemOp::LgammaStep, &[p, by]);
        Some(self.neg(rise))
    }

    /// Takes the logarithm of a concatenation part by part if some parts are constants that contain zeros. The
    /// logarithm has an infinite derivative at zero, and the product of this derivative with a derivative of zero would
    /// be NaN. The logarithm of a constant part has no derivative.
    fn log_of_parts(&mut self, x: NodeId) -> Option<NodeId> {
        let is_zero = |graph: &Self, part: NodeId| {
            (graph.constant_value(part)).is_some_and(|values| values.contains(&0.0))
        };
        if self.op(x) != Op::Concat || !self.args(x).iter().any(|&part| is_zero(self, part)) {
            return None;
        }
        let parts = self.args(x).to_vec();
        let runs = parts.chunk_by(|a, b| !is_zero(self, *a) && !is_zero(self, *b));
        let runs: Vec<Vec<NodeId>> = runs.map(<[NodeId]>::to_vec).collect();
        let logs: Vec<NodeId> = runs
            .iter()
            .map(|run| {
                let whole = self.concat(run);
                self.log(whole)
            })
            .collect();
        Some(self.concat(&logs))
    }

    /// Moves an operation before a gather, as in `sd * z[group]`. The operation is then applied to the elements of the
    /// tables instead of to the gathered elements. This is done only if there are more gathered elements than elements
    /// of the tables. If some elements of the tables are not gathered, their derivatives are later multiplied by zero
    /// and must be finite. In this case, only sums and products are moved.
    pub(super) fn before_gather(
        &mut self,
        op: ElemOp,
        args: &[NodeId],
        shape: Shape,
    ) -> Option<NodeId> {
        if shape.record || shape.is_scalar() {
            return None;
        }
        let mut read = None;
        let mut sources = Vec::with_capacity(args.len());
        for &arg in args {
            if self.shape(arg).is_scalar() {
                sources.push(arg);
                continue;
            }
            let Op::Gather(indices) = self.op(arg) else {
                return None;
            };
            let source = self.args(arg)[0];
            let table = (indices, self.shape(source));
            if *read.get_or_insert(table) != table {
                return None;
            }
            sources.push(source);
        }
        let (indices, table) = read?;
        let mut indices = self.index_data(indices).to_vec();
        let (&low, &high) = (indices.iter().min()?, indices.iter().max()?);
        let span = high - low + 1;
        if span >= shape.len {
            return None;
        }
        let mut is_read = vec![false; span as usize];
        for i in &mut indices {
            *i -= low;
            is_read[*i as usize] = true;
        }
        let harmless = matches!(op, ElemOp::Neg | ElemOp::Add | ElemOp::Sub | ElemOp::Mul);
        if !harmless && is_read.contains(&false) {
            return None;
        }
        if span < table.len {
            // If the table is part of a larger vector, such as the vector of all parameters, the operation is applied
            // to this part alone.
            for source in &mut sources {
                if !self.shape(*source).is_scalar() {
                    *source = self.slice(*source, low as usize, span as usize);
                }
            }
        }
        let result = self.elem(op, &sources);
        Some(self.gather(result, &indices))
    }

    #[expect(
        clippy::too_many_lines,
        reason = "a rule list: the rules of each operation"
    )]
    pub(super) fn simplify(&mut self, op: ElemOp, args: &[NodeId], shape: Shape) -> Option<NodeId> {
        use ElemOp::*;
        let arg_op = |graph: &Self, id: NodeId| graph.elem_op(id);
        match (op, args) {
            (Neg, &[x]) => match arg_op(self, x) {
                Some(Neg) => Some(self.args(x)[0]),
                Some(Sub) => {
                    let (a, b) = (self.args(x)[0], self.args(x)[1]);
                    Some(self.sub(b, a))
                }
                Some(Mul) => {
                    let (a, b) = (self.args(x)[0], self.args(x)[1]);
                    if self.constant_value(a).is_some() {
                        let a = self.neg(a);
                        return Some(self.mul(a, b));
                    }
                    None
                }
                _ => None,
            },
            (Add, &[x, y]) => {
                if self.is_uniform(x, 0.0) {
                    return Some(self.widen(y, shape));
                }
                if self.is_uniform(y, 0.0) {
                    return Some(self.widen(x, shape));
                }
                if let Some(Neg) = arg_op(self, y) {
                    let inner = self.args(y)[0];
                    return Some(self.sub(x, inner));
                }
                if let Some(Neg) = arg_op(self, x) {
                    let inner = self.args(x)[0];
                    return Some(self.sub(y, inner));
                }
                if let Some(sum) = self.scalars_together(Add, x, y) {
                    return Some(sum);
                }
                // The arguments of commutative operations are put in a fixed order, so that equal sums are recognised
                // as equal.
                (y < x).then(|| self.elem(Add, &[y, x]))
            }
            (Sub, &[x, y]) => {
                if self.is_uniform(y, 0.0) {
                    return Some(self.widen(x, shape));
                }
                if self.is_uniform(x, 0.0) {
                    let n = self.neg(y);
                    return Some(self.widen(n, shape));
                }
                if let Some(Neg) = arg_op(self, y) {
                    let inner = self.args(y)[0];
                    return Some(self.add(x, inner));
                }
                self.rest_of_sum(x, y)
                    .filter(|rest| self.shape(*rest) == shape)
                    .or_else(|| self.gamma_step(x, y))
                    .or_else(|| self.scalars_together(Sub, x, y))
            }
            (Mul, &[x, y]) => {
                for (a, b) in [(x, y), (y, x)] {
                    match self.uniform_value(a) {
                        Some(1.0) => return Some(self.widen(b, shape)),
                        Some(-1.0) => {
                            let n = self.neg(b);
                            return Some(self.widen(n, shape));
                        }
                        Some(0.0) => {
                            let zero = self.constant(0.0);
                            return Some(self.widen(zero, shape));
                        }
                        Some(c) if self.shape(a) != Shape::SCALAR => {
                            let scalar = self.constant(c);
                            return Some(self.mul(scalar, b)).map(|r| self.widen(r, shape));
                        }
                        _ => {}
                    }
                    // Applies the identity c · (d · z) = (c d) · z for scalar constants.
                    if let (Some(c), Some(Mul)) = (self.scalar_value(a), arg_op(self, b)) {
                        let (p, q) = (self.args(b)[0], self.args(b)[1]);
                        for (d, z) in [(p, q), (q, p)] {
                            if let Some(d) = self.scalar_value(d) {
                                let cd = self.constant(c * d);
                                return Some(self.mul(cd, z));
                            }
                        }
                    }
                }
                if let (Some(Neg), Some(Neg)) = (arg_op(self, x), arg_op(self, y)) {
                    let (a, b) = (self.args(x)[0], self.args(y)[0]);
                    return Some(self.mul(a, b));
                }
                for (a, b) in [(x, y), (y, x)] {
                    if let Some(Neg) = arg_op(self, a) {
                        let inner = self.args(a)[0];
                        let product = self.mul(inner, b);
                        return Some(self.neg(product));
                    }
                }
                if x == y {
                    return Some(self.square(x));
                }
                (y < x).then(|| self.elem(Mul, &[y, x]))
            }
            (Div, &[x, y]) => {
                if self.is_uniform(y, 1.0) {
                    return Some(self.widen(x, shape));
                }
                if self.is_uniform(x, 1.0) {
                    let r = self.recip(y);
                    return Some(self.widen(r, shape));
                }
                if self.is_uniform(x, 0.0) {
                    let zero = self.constant(0.0);
                    return Some(self.widen(zero, shape));
                }
                if let Some(c) = self.scalar_value(y) {
                    // The reciprocal of a power of two is exact, and any other reciprocal is rounded once.
                    let r = self.constant(1.0 / c);
                    return Some(self.mul(x, r));
                }
                if self.constant_value(y).is_some()
                    || (self.shape(y).is_scalar() && !shape.is_scalar())
                {
                    let r = self.recip(y);
                    return Some(self.mul(x, r));
                }
                None
            }
            // Products by 0 or 1 are kept in scalars, so that unrolled copies of a loop body have the same structure.
            // The vector that later contains the copies is simplified.
            (Fma, &[x, y, z]) if !shape.is_scalar() && self.is_uniform(z, 0.0) => {
                let product = self.mul(x, y);
                Some(self.widen(product, shape))
            }
            (Pow, &[x, y]) => {
                let exponent = self.uniform_value(y)?;
                let result = if exponent == 2.0 {
                    self.square(x)
                } else if exponent == 1.0 {
                    x
                } else if exponent == 0.5 {
                    self.sqrt(x)
                } else if exponent == -1.0 {
                    self.recip(x)
                } else if exponent == -0.5 {
                    let root = self.sqrt(x);
                    self.recip(root)
                } else if exponent == 0.0 {
                    self.constant(1.0)
                } else if exponent == 3.0 {
                    let s = self.square(x);
                    self.mul(s, x)
                } else if exponent == -2.0 {
                    let s = self.square(x);
                    self.recip(s)
                } else {
                    return None;
                };
                Some(self.widen(result, shape))
            }
            (Recip, &[x]) => match arg_op(self, x) {
                Some(Recip) => Some(self.args(x)[0]),
                Some(Exp) => {
                    let inner = self.args(x)[0];
                    let n = self.neg(inner);
                    Some(self.exp(n))
                }
                _ => None,
            },
            (Square, &[x]) => match arg_op(self, x) {
                Some(Neg) => {
                    let inner = self.args(x)[0];
                    Some(self.square(inner))
                }
                Some(Sqrt) => Some(self.args(x)[0]),
                _ => None,
            },
            (Log, &[x]) => match arg_op(self, x) {
                Some(Exp) => Some(self.args(x)[0]),
                Some(InvLogit) => {
                    let inner = self.args(x)[0];
                    let n = self.neg(inner);
                    let l = self.elem(Log1pExp, &[n]);
                    Some(self.neg(l))
                }
                _ => self.log_of_parts(x),
            },
            (Exp, &[x]) => match arg_op(self, x) {
                Some(Log) => Some(self.args(x)[0]),
                _ => None,
            },
            (Select, &[c, x, y]) => {
                if x == y {
                    return Some(self.widen(x, shape));
                }
                let chosen = if self.uniform_value(c)? != 0.0 { x } else { y };
                Some(self.widen(chosen, shape))
            }
            _ => None,
        }
    }
}
