//! Builds the graph, and defines an expression type whose operators make code resemble formulas.
//!
//! [`E`] and `jensen_graph::Expr` both wrap a node and overload operators, but they serve different languages. `Expr`
//! is for log densities that are written in Rust. It owns its graph, marks each node with the caller's line, and keeps
//! the first error together with that line. [`E`] is for Stan programs. The nodes of an [`E`] carry their location in
//! the program. [`E`] protects arguments on the side of a branch that is not taken (`masked`), and it simplifies the
//! argument of `log`. If the arguments of an operation are known for each record, [`E`] evaluates the operation
//! immediately. In an unrolled loop, [`E`] keeps known factors of a product even if they are 0 or 1, so that the
//! iterations can be merged again. Both types use the operations of `jensen_graph`, which define shapes, values and
//! derivatives.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::symbolic::known::{self, Fact};
use crate::symbolic::masked;
use crate::value::error::{FnError, FnResult, Halt};
use jensen_graph::{ElemOp, Graph, MatMul, NodeId, Op, RecordColumn, Scattered, Shape, Spread};

/// The graph that is being built, with the conditions that reject a draw.
#[derive(Debug, Default)]
pub struct Tape {
    /// The graph.
    pub graph: RefCell<Graph>,
    /// Scalars that are nonzero for the draws that must be rejected.
    pub guards: RefCell<Vec<NodeId>>,
    /// Whether a loop is being unrolled. If so, short containers are handled element by element.
    pub unrolling: Cell<bool>,
    /// A scalar that is nonzero for the draws that execute the current code, or `None` if every draw executes it.
    pub taken: Cell<Option<NodeId>>,
    /// The values to which the program gives a location and a scale.
    pub scattered: RefCell<Vec<Scattered>>,
    /// Each pair contains a value and the vector from which a rotation computed it. If all elements of the vector have
    /// location 0 and the same scale, then so do the elements of the value.
    pub rotated: RefCell<Vec<(NodeId, NodeId)>>,
    /// The known facts about containers.
    pub facts: RefCell<BTreeSet<(NodeId, Fact)>>,
    /// The number of records, if the data are exchangeable.
    pub records: Cell<Option<usize>>,
    /// The first unsupported operation since the last check. An operation is unsupported if it cannot be applied to one
    /// value per record.
    pub fault: RefCell<Option<&'static str>>,
    /// The interrupt, and the largest number of nodes. A call that adds nodes for each element checks both limits.
    pub limits: RefCell<(Halt, Option<usize>)>,
    /// The placeholder that [`Tape::no_form`] returns, and the number of records for which it was created.
    nothing: Cell<Option<(usize, NodeId)>>,
}

impl Tape {
    /// Checks whether a call that adds nodes for each element may continue.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Limit`](crate::value::error::ErrorKind::Limit) if an interrupt is pending or the graph
    /// is too large.
    pub fn go_on(&self) -> FnResult<()> {
        let (halt, most) = &*self.limits.borrow();
        if let Some(message) = halt.reason() {
            return Err(FnError::limit(message));
        }
        match most.filter(|most| self.graph.borrow().len() > *most) {
            None => Ok(()),
            Some(most) => Err(FnError::limit(format!(
                "the graph of the log density exceeds {most} nodes (--memory-limit)"
            ))),
        }
    }

    /// Returns a node as an expression.
    pub fn e(&self, id: NodeId) -> E<'_> {
        E { tape: self, id }
    }

    /// Records that these values have location 0 and scale 1.
    pub fn note_unit(&self, values: NodeId) {
        self.scattered.borrow_mut().push(Scattered {
            values,
            location: self.constant(0.0).id,
            spread: Spread::Scale(self.constant(1.0).id),
        });
    }

    /// Creates a constant scalar.
    pub fn constant(&self, value: f64) -> E<'_> {
        self.e(self.graph.borrow_mut().constant(value))
    }

    /// Creates a constant vector.
    pub fn vector(&self, values: &[f64]) -> E<'_> {
        self.e(self.graph.borrow_mut().vector(values))
    }

    /// Creates a column with one known number for each record.
    pub fn column(&self, values: &[f64]) -> E<'_> {
        let first = values.first().map_or(0, |x| x.to_bits());
        if values.iter().all(|x| x.to_bits() == first) {
            return self.constant(f64::from_bits(first));
        }
        self.e(self.graph.borrow_mut().record(values, 1))
    }

    /// Creates a column with one number per record if `like` is true, and a vector otherwise. All numbers are known.
    pub fn known(&self, values: &[f64], like: bool) -> E<'_> {
        if like {
            self.column(values)
        } else {
            self.vector(values)
        }
    }

    /// If all arguments are known for each record, so is the result.
    fn elem(&self, op: ElemOp, args: &[NodeId]) -> NodeId {
        let mixed = {
            let g = self.graph.borrow();
            let whole = |id: &NodeId| {
                let shape = g.shape(*id);
                !shape.record && !shape.is_scalar()
            };
            args.iter().any(|id| g.shape(*id).record) && args.iter().any(whole)
        };
        // The placeholder of an operation without a form must not be folded, because the resulting numbers would be
        // indistinguishable from valid numbers.
        if mixed || self.fault.borrow().is_some() {
            return self.no_form("an operation on a whole vector").id;
        }
        let folded = self.records.get().and_then(|n| {
            let g = self.graph.borrow();
            if !args.iter().any(|id| g.shape(*id).record) {
                return None;
            }
            let tables: Vec<&[f64]> = args
                .iter()
                .map(|id| known_numbers(&g, *id))
                .collect::<Option<_>>()?;
            let mut row = vec![0.0; args.len()];
            let at = |table: &[f64], r: usize| if table.len() == 1 { table[0] } else { table[r] };
            let values: Vec<f64> = (0..n)
                .map(|r| {
                    for (slot, table) in row.iter_mut().zip(&tables) {
                        *slot = at(table, r);
                    }
                    op.value(&row)
                })
                .collect();
            Some(values)
        });
        match folded {
            Some(values) => self.column(&values).id,
            None => self.graph.borrow_mut().elem(op, args),
        }
    }

    /// Returns which records execute the current code, or `None` if this is unknown or there are no records. Each
    /// number is nonzero if its record executes the code. A single number applies to all records.
    pub fn comes_by(&self) -> Option<Vec<f64>> {
        self.records.get()?;
        self.e(self.taken.get()?).data()
    }

    /// Records that an operation cannot be applied to one value per record. Returns a placeholder for the operation's
    /// result.
    pub fn no_form(&self, what: &'static str) -> E<'_> {
        self.fault.borrow_mut().get_or_insert(what);
        let Some(count) = self.records.get() else {
            return self.constant(f64::NAN);
        };
        let nothing = self.nothing.get().filter(|(of, _)| *of == count);
        let (_, id) = nothing.unwrap_or_else(|| {
            let column = vec![f64::NAN; count];
            (count, self.graph.borrow_mut().record(&column, 1))
        });
        self.nothing.set(Some((count, id)));
        self.e(id)
    }

    /// Concatenates values.
    pub fn concat<'g>(&'g self, parts: &[E<'g>]) -> E<'g> {
        if let [one] = parts {
            return *one;
        }
        if parts.iter().any(|part| part.is_record()) {
            return self.no_form("a vector of values of one record as a whole");
        }
        let ids: Vec<NodeId> = parts.iter().map(|part| part.id).collect();
        self.e(self.graph.borrow_mut().concat(&ids))
    }

    /// Adds values in a balanced tree. All values have the same shape, except that scalars broadcast.
    pub fn add_all<'g>(&'g self, terms: &[E<'g>]) -> E<'g> {
        match *terms {
            [] => self.constant(0.0),
            [one] => one,
            _ if self.records.get().is_some() => {
                // Known numbers of records are summed here, not in the graph.
                let (left, right) = terms.split_at(terms.len() / 2);
                let (left, right) = (self.add_all(left), self.add_all(right));
                self.e(self.elem(ElemOp::Add, &[left.id, right.id]))
            }
            _ => {
                let ids: Vec<NodeId> = terms.iter().map(|term| term.id).collect();
                self.e(self.graph.borrow_mut().add_all(&ids))
            }
        }
    }

    /// Rejects the draws for which any element of `bad` is non-zero.
    pub fn reject_where(&self, bad: E<'_>) {
        let bad = bad.sum();
        if bad.scalar() != Some(0.0) {
            self.guards.borrow_mut().push(bad.id);
        }
    }
}

fn known_numbers(g: &Graph, id: NodeId) -> Option<&[f64]> {
    match g.op(id) {
        Op::Record(column) => match g.record_data(column) {
            RecordColumn::Values { width: 1, values } => Some(values),
            _ => None,
        },
        _ => g.constant_value(id).filter(|values| values.len() == 1),
    }
}

/// A value of the graph. Scalars broadcast in every elementwise operation. Callers must check beforehand that
/// containers have equal lengths.
#[derive(Clone, Copy, Debug)]
pub struct E<'g> {
    /// The tape on which the node is recorded.
    pub tape: &'g Tape,
    /// The node.
    pub id: NodeId,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self) -> Self {
            self.op1(ElemOp::$op)
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(self, other: E<'g>) -> Self {
            self.op2(ElemOp::$op, other)
        }
    )*};
}

impl<'g> E<'g> {
    fn with(self, f: impl FnOnce(&mut Graph) -> NodeId) -> Self {
        let id = f(&mut self.tape.graph.borrow_mut());
        E { id, ..self }
    }

    /// Applies an elementwise operation of one argument.
    pub fn op1(self, op: ElemOp) -> Self {
        let x = masked::argument(op, 0, self);
        let id = x.tape.elem(op, &[x.id]);
        E { id, ..self }
    }

    /// Applies an elementwise operation of two arguments.
    pub fn op2(self, op: ElemOp, other: E<'g>) -> Self {
        let (x, y) = (
            masked::argument(op, 0, self),
            masked::argument(op, 1, other),
        );
        let id = x.tape.elem(op, &[x.id, y.id]);
        E { id, ..self }
    }

    /// Applies an elementwise operation of three arguments.
    pub fn op3(self, op: ElemOp, second: E<'g>, third: E<'g>) -> Self {
        let (x, y, z) = (
            masked::argument(op, 0, self),
            masked::argument(op, 1, second),
            masked::argument(op, 2, third),
        );
        let id = x.tape.elem(op, &[x.id, y.id, z.id]);
        E { id, ..self }
    }

    unary! {
        /// Returns 1/x.
        recip => Recip;
        /// Returns x².
        square => Square;
        /// Returns √x.
        sqrt => Sqrt;
        /// Returns eˣ.
        exp => Exp;
        /// Returns eˣ − 1.
        expm1 => Expm1;
        /// Returns 1/(1 + e⁻ˣ).
        inv_logit => InvLogit;
        /// Returns log(1 + eˣ).
        log1p_exp => Log1pExp;
        /// Returns log(1 − eˣ).
        log1m_exp => Log1mExp;
        /// Returns |x|.
        abs => Abs;
        /// Returns log |Γ(x)|.
        lgamma => Lgamma;
        /// Returns Φ(x).
        normal_cdf => NormalCdf;
        /// Returns log Φ(x).
        log_normal_cdf => LogNormalCdf;
        /// Returns log Φ(x) for x ≥ 0, and log Φ(x) + x²/2 for x < 0.
        log_normal_scaled => LogNormalScaled;
        /// Returns tanh x.
        tanh => Tanh;
        /// Returns cos x.
        cos => Cos;
        /// Returns sin x.
        sin => Sin;
        /// Returns arctan x.
        atan => Atan;
        /// Returns x if x is finite, and 0 otherwise. The derivative is zero. A log-sum-exp subtracts this value before
        /// it computes exponentials, and adds it again afterwards.
        pivot => Pivot;
        /// Returns x, but with derivative zero.
        held => Held;
    }

    binary! {
        /// Returns xʸ.
        pow => Pow;
        /// Returns 1 where x < y, and 0 elsewhere.
        lt => Lt;
        /// Returns 1 where x ≤ y, and 0 elsewhere.
        le => Le;
        /// Returns 1 where x = y, and 0 elsewhere.
        eq => Eq;
        /// Returns log(eˣ + eʸ).
        log_add_exp => LogAddExp;
        /// Returns the smaller of x and y, or NaN if either is NaN.
        fmin => Fmin;
        /// Returns the larger of x and y, or NaN if either is NaN.
        fmax => Fmax;
    }

    /// Returns log x. If x was computed as an exponential, the result is the exponent. The function also simplifies the
    /// logarithm of selected elements of an exponential, and of concatenations of exponentials.
    pub fn log(self) -> Self {
        let (op, args) = {
            let g = self.tape.graph.borrow();
            match g.op(self.id) {
                op @ (Op::Gather(_) | Op::Concat) => (op, g.args(self.id).to_vec()),
                _ => (Op::Sum, Vec::new()),
            }
        };
        let is_exp = |id: NodeId| matches!(self.tape.graph.borrow().op(id), Op::Elem(ElemOp::Exp));
        match op {
            Op::Gather(index) if is_exp(args[0]) => {
                let index = self.tape.graph.borrow().index_data(index).clone();
                self.tape.e(args[0]).op1(ElemOp::Log).gather(&index)
            }
            Op::Concat if args.len() <= 4 && args.iter().any(|a| is_exp(*a)) => {
                let parts: Vec<E<'g>> = args.iter().map(|a| self.tape.e(*a).log()).collect();
                self.tape.concat(&parts)
            }
            _ => self.op1(ElemOp::Log),
        }
    }

    /// Returns log(1 + x).
    pub fn log1p(self) -> Self {
        self.op1(ElemOp::Log1p)
    }

    /// Returns log(1 − x). If x was computed as an inverse logit, the result has no cancellation error.
    pub fn log1m(self) -> Self {
        match self.inv_logit_argument() {
            Some(z) => -z.log1p_exp(),
            None => (-self).log1p(),
        }
    }

    /// Returns z if this value was computed as `inv_logit(z)`.
    pub fn inv_logit_argument(self) -> Option<Self> {
        let g = self.tape.graph.borrow();
        match g.op(self.id) {
            Op::Elem(ElemOp::InvLogit) => Some(E {
                id: g.args(self.id)[0],
                ..self
            }),
            _ => None,
        }
    }

    /// Returns `self ≠ 0 ? x : y`.
    pub fn select(self, x: E<'g>, y: E<'g>) -> Self {
        let id = self.tape.elem(ElemOp::Select, &[self.id, x.id, y.id]);
        E { id, ..self }
    }

    /// Returns 1 where the value is zero, and 0 elsewhere.
    pub fn not(self) -> Self {
        let zero = self.tape.constant(0.0);
        self.eq(zero)
    }

    /// Creates a scalar with the value c.
    pub fn num(self, c: f64) -> Self {
        self.tape.constant(c)
    }

    /// Returns the number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(self) -> usize {
        self.tape.graph.borrow().shape(self.id).len as usize
    }

    /// Returns the elements if all of them are known.
    pub fn values(self) -> Option<Vec<f64>> {
        let g = self.tape.graph.borrow();
        g.constant_value(self.id).map(<[f64]>::to_vec)
    }

    /// Returns the number if the value is a known scalar.
    pub fn scalar(self) -> Option<f64> {
        self.tape.graph.borrow().scalar_value(self.id)
    }

    /// Returns whether the value is known.
    pub fn is_constant(self) -> bool {
        self.tape.graph.borrow().constant_value(self.id).is_some()
    }

    /// Returns whether there is one value per record.
    pub fn is_record(self) -> bool {
        self.tape.graph.borrow().shape(self.id).record
    }

    /// Returns the number, or one number for each record, if the numbers are known.
    pub fn data(self) -> Option<Vec<f64>> {
        let g = self.tape.graph.borrow();
        match g.shape(self.id).record {
            true => known_numbers(&g, self.id).map(<[f64]>::to_vec),
            false => g.constant_value(self.id).map(<[f64]>::to_vec),
        }
    }

    /// Returns the numbers that [`data`](Self::data) returns, each with its position. If a record skips the current
    /// code, its number is left out.
    pub fn visited(self) -> Option<Vec<(usize, f64)>> {
        let data = self.data()?;
        let taken = self.tape.comes_by();
        let comes = |r: usize| match &taken {
            Some(taken) if taken.len() == 1 => taken[0] != 0.0,
            Some(taken) if taken.len() == data.len() => taken[r] != 0.0,
            _ => true,
        };
        let all = data.iter().copied().enumerate();
        Some(all.filter(|(r, _)| comes(*r)).collect())
    }

    /// Selects element `index[r]` for each record r.
    pub fn gather_record(self, index: &[u32]) -> Self {
        if let Some(values) = self.values() {
            let picked: Vec<f64> = index.iter().map(|i| values[*i as usize]).collect();
            return self.tape.column(&picked);
        }
        if self.len() == 1 {
            return self;
        }
        self.with(|g| {
            let column = g.record_indices(index);
            g.gather_record(self.id, column)
        })
    }

    /// Returns the sum over the records. A value that is the same for all records is counted once for each record.
    pub fn sum_records(self) -> Self {
        self.with(|g| {
            if g.shape(self.id).record {
                g.sum(self.id)
            } else {
                let count = g.records_in_batch();
                g.mul(count, self.id)
            }
        })
    }

    fn one_record(self, what: &'static str) -> Option<Self> {
        self.is_record().then(|| match self.len() {
            1 => self,
            _ => self.tape.no_form(what),
        })
    }

    /// Returns `self[index[i]]` for each i.
    pub fn gather(self, index: &[u32]) -> Self {
        if self.is_record() {
            return if index.len() == 1 {
                self
            } else {
                self.repeat(index.len())
            };
        }
        self.with(|g| g.gather(self.id, index))
    }

    /// Returns element `i` as a scalar.
    pub fn at(self, i: usize) -> Self {
        self.with(|g| {
            if g.shape(self.id).len == 1 {
                self.id
            } else {
                g.element(self.id, i)
            }
        })
    }

    /// Returns the elements `start .. start + len`.
    pub fn slice(self, start: usize, len: usize) -> Self {
        if self.is_record() {
            return self.repeat(len);
        }
        self.with(|g| g.slice(self.id, start, len))
    }

    /// Repeats a scalar `len` times.
    pub fn repeat(self, len: usize) -> Self {
        if self.is_record() && len != 1 {
            return self.tape.no_form("a value of one record repeated");
        }
        self.with(|g| {
            if g.shape(self.id).len as usize == len {
                self.id
            } else {
                g.broadcast(self.id, Shape::fixed(len))
            }
        })
    }

    /// Sums all elements.
    pub fn sum(self) -> Self {
        if let Some(one) = self.one_record("a sum") {
            return one;
        }
        self.with(|g| {
            if g.shape(self.id).len == 0 {
                g.constant(0.0)
            } else {
                g.sum(self.id)
            }
        })
    }

    /// Returns the largest element.
    pub fn max(self) -> Self {
        if let Some(one) = self.one_record("a maximum") {
            return one;
        }
        self.with(|g| g.max(self.id))
    }

    /// Returns the running sums.
    pub fn cumsum(self) -> Self {
        if let Some(one) = self.one_record("a running sum") {
            return one;
        }
        self.with(|g| g.cumsum(self.id))
    }

    /// Transposes a `rows × cols` matrix.
    pub fn transpose(self, rows: usize, cols: usize) -> Self {
        if rows <= 1 || cols <= 1 {
            return self;
        }
        if self.is_record() {
            return self.tape.no_form("a transpose");
        }
        self.with(|g| g.transpose(self.id, rows, cols))
    }

    /// Multiplies an `m × k` matrix by a `k × n` matrix.
    pub fn matmul(self, other: E<'g>, m: usize, k: usize, n: usize) -> Self {
        self.matmul_with(other, m, k, n, false, false)
    }

    /// Multiplies an `m × k` matrix by a `k × n` matrix. Either matrix may be stored transposed.
    pub fn matmul_with(
        self,
        other: E<'g>,
        m: usize,
        k: usize,
        n: usize,
        left: bool,
        right: bool,
    ) -> Self {
        if k == 0 {
            return self.tape.vector(&vec![0.0; m * n]);
        }
        if self.is_record() || other.is_record() {
            return if (m, k, n) == (1, 1, 1) {
                self * other
            } else {
                self.tape.no_form("a matrix product")
            };
        }
        let dims = MatMul {
            m: m as u32,
            k: k as u32,
            n: n as u32,
            left_transposed: left,
            right_transposed: right,
        };
        self.with(|g| g.matmul(self.id, other.id, dims))
    }

    /// Returns the lower Cholesky factor of an `n × n` matrix.
    pub fn cholesky(self, n: usize) -> Self {
        if self.is_record() {
            return self.tape.no_form("a Cholesky factor");
        }
        let squared = {
            let g = self.tape.graph.borrow();
            match (g.op(self.id), g.args(self.id)) {
                (Op::MatMul(dims), [l, r])
                    if l == r && dims.right_transposed && !dims.left_transposed =>
                {
                    Some(*l)
                }
                _ => None,
            }
        };
        if let Some(l) = squared.map(|l| self.tape.e(l))
            && l.len() == n * n
            && known::is_lower_factor(self.tape, l)
        {
            return l;
        }
        let l = self.with(|g| g.cholesky(self.id, n));
        known::note(l, Fact::LowerFactor);
        l
    }

    /// Solves L X = B (or Lᵀ X = B). `self` is the lower triangular `n × n` matrix L.
    pub fn tri_solve(self, b: E<'g>, n: usize, cols: usize, transposed: bool) -> Self {
        if self.is_record() || b.is_record() {
            return self.tape.no_form("a system of equations");
        }
        self.with(|g| g.tri_solve(self.id, b.id, n, cols, transposed))
    }

    /// Solves A X = B (or Aᵀ X = B). `self` is the `n × n` matrix A.
    pub fn solve(self, b: E<'g>, n: usize, cols: usize, transposed: bool) -> Self {
        if self.is_record() || b.is_record() {
            return self.tape.no_form("a system of equations");
        }
        self.with(|g| g.solve(self.id, b.id, n, cols, transposed))
    }

    /// Returns log |det| of an `n × n` matrix.
    pub fn log_abs_det(self, n: usize) -> Self {
        if self.is_record() {
            return self.tape.no_form("a determinant");
        }
        self.with(|g| g.log_abs_det(self.id, n))
    }

    /// Returns the determinant of an `n × n` matrix.
    pub fn determinant(self, n: usize) -> Self {
        if self.is_record() {
            return self.tape.no_form("a determinant");
        }
        self.with(|g| g.determinant(self.id, n))
    }

    /// Returns the eigenvalues, ascending, and the eigenvectors of a symmetric `n × n` matrix.
    pub fn eigen_sym(self, n: usize) -> (Self, Self) {
        if self.is_record() {
            let none = self.tape.no_form("a matrix of eigenvectors");
            return (none, none);
        }
        let both = self.with(|g| g.eigen_sym(self.id, n));
        (both.slice(0, n), both.slice(n, n * n))
    }

    /// Returns the eigenvalues and the eigenvectors of a complex `n × n` matrix, each as a real and an imaginary part.
    /// The matrix has the real part `self` and the imaginary part `im`. If `hermitian` is true, its Hermitian part is
    /// used instead.
    pub fn eigen(self, im: E<'g>, n: usize, hermitian: bool) -> [[Self; 2]; 2] {
        if self.is_record() || im.is_record() {
            let none = self.tape.no_form("a matrix of eigenvectors");
            return [[none; 2]; 2];
        }
        let both = self.tape.concat(&[self, im]);
        let found = both.with(|g| g.eigen(both.id, n, hermitian));
        let parts = |start: usize, len: usize| [start, start + len].map(|at| found.slice(at, len));
        [parts(0, n), parts(2 * n, n * n)]
    }

    /// Evaluates a hypergeometric function. The elements of this vector are `above` numerator parameters, `below`
    /// denominator parameters, and the argument of the function.
    pub fn hypergeometric(self, above: usize, below: usize) -> Self {
        if self.is_record() {
            return self.tape.no_form("a hypergeometric function");
        }
        self.with(|g| g.hypergeometric(self.id, above, below, 0))
    }

    /// Adds the elements to zeros of length `len`, at the positions in `index`.
    pub fn scatter(self, index: &[u32], len: usize) -> Self {
        if self.is_record() {
            return self
                .tape
                .no_form("a vector of values of one record as a whole");
        }
        self.with(|g| g.scatter_add(self.id, index, len))
    }

    /// Returns the `m` diagonal elements of a matrix with `n` rows.
    pub fn diagonal(self, n: usize, m: usize) -> Self {
        let index: Vec<u32> = (0..m).map(|i| (i * n + i) as u32).collect();
        self.gather(&index)
    }

    /// Returns log Σ exp(xᵢ) over all elements.
    pub fn log_sum_exp(self) -> Self {
        match self.len() {
            0 => self.num(f64::NEG_INFINITY),
            1 => self,
            2 => self.at(0).log_add_exp(self.at(1)),
            _ => {
                let shift = self.max().pivot();
                (self - shift).exp().sum().log() + shift
            }
        }
    }
}

impl Neg for E<'_> {
    type Output = Self;
    fn neg(self) -> Self {
        self.op1(ElemOp::Neg)
    }
}

macro_rules! operator {
    ($($trait:ident $method:ident $op:ident;)*) => {$(
        impl<'g> $trait for E<'g> {
            type Output = E<'g>;
            fn $method(self, other: E<'g>) -> E<'g> {
                self.op2(ElemOp::$op, other)
            }
        }
        impl<'g> $trait<f64> for E<'g> {
            type Output = E<'g>;
            fn $method(self, other: f64) -> E<'g> {
                self.op2(ElemOp::$op, self.num(other))
            }
        }
        impl<'g> $trait<E<'g>> for f64 {
            type Output = E<'g>;
            fn $method(self, other: E<'g>) -> E<'g> {
                other.num(self).op2(ElemOp::$op, other)
            }
        }
    )*};
}

operator! {
    Add add Add;
    Sub sub Sub;
    Div div Div;
}

impl<'g> Mul for E<'g> {
    type Output = E<'g>;
    /// In an unrolled loop, a known scalar factor remains a factor even if it is 0 or 1 in this iteration. Otherwise
    /// the nodes of an iteration would depend on its data, and the iterations could not be merged again.
    fn mul(self, other: E<'g>) -> E<'g> {
        let known = |e: E<'g>| e.scalar().is_some();
        if self.tape.unrolling.get()
            && self.len() == 1
            && other.len() == 1
            && known(self) != known(other)
        {
            let zero = self.num(0.0);
            let id = self.tape.elem(ElemOp::Fma, &[self.id, other.id, zero.id]);
            return E { id, ..self };
        }
        self.op2(ElemOp::Mul, other)
    }
}

impl<'g> Mul<f64> for E<'g> {
    type Output = E<'g>;
    fn mul(self, other: f64) -> E<'g> {
        self.op2(ElemOp::Mul, self.num(other))
    }
}

impl<'g> Mul<E<'g>> for f64 {
    type Output = E<'g>;
    fn mul(self, other: E<'g>) -> E<'g> {
        other.num(self).op2(ElemOp::Mul, other)
    }
}
