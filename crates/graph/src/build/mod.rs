//! Constructors of nodes, with shape checks, constant folding and local simplification.
//!
//! Every node is created by these constructors, so passes do not need rules of their own for folding or simplification.
//! Folding uses the scalar definitions of the slow evaluator. A simplification preserves the value up to rounding, and
//! never turns a finite value into a non-finite value. The product `0 · x` is replaced by 0 even if x might be
//! infinite, because derivatives that are structurally zero must vanish.

mod simplify;
mod structure;
mod sums;

use crate::ir::{Graph, Input, NodeId, Placement, RecordColumn, Shape};
use crate::ops::{ElemOp, Op};

/// The number of elements that are folded between two checks of the interrupt. The slowest operations take ten
/// microseconds per element, so a check occurs at least every twentieth of a second.
const BETWEEN: usize = 4096;

/// The derivative of an operation that is constant almost everywhere. This derivative is zero.
#[derive(Clone, Copy, Debug)]
pub struct Zero;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, x: NodeId) -> NodeId {
            self.elem(ElemOp::$op, &[x])
        }
    )*};
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(&mut self, x: NodeId, y: NodeId) -> NodeId {
            self.elem(ElemOp::$op, &[x, y])
        }
    )*};
}

impl Graph {
    /// Creates an input of `len` elements that has a separate value in each lane, such as a draw or a tangent.
    pub fn input(&mut self, len: usize) -> NodeId {
        self.placed_input(len, Placement::Lane)
    }

    /// Creates an input of `len` elements that has the same value in all lanes. The gradient with respect to this input
    /// is a sum over the lanes.
    pub fn shared_input(&mut self, len: usize) -> NodeId {
        self.placed_input(len, Placement::Shared)
    }

    fn placed_input(&mut self, len: usize, placement: Placement) -> NodeId {
        let slot = self.inputs.len() as u32;
        self.inputs.push(Input { len, placement });
        self.push(Op::Input(slot), &[], Shape::fixed(len))
    }

    /// Returns the node that represents input `slot`.
    pub fn input_node(&mut self, slot: usize) -> NodeId {
        let len = self.inputs[slot].len;
        self.push(Op::Input(slot as u32), &[], Shape::fixed(len))
    }

    /// Creates a record column with `width` numbers per record.
    ///
    /// # Panics
    /// Panics if the length of `values` is not a multiple of `width`, or if `width` is zero.
    pub fn record(&mut self, values: &[f64], width: usize) -> NodeId {
        assert!(
            width > 0 && values.len().is_multiple_of(width),
            "whole records"
        );
        let id = self.intern_record(RecordColumn::Values {
            width,
            values: values.into(),
        });
        self.push(Op::Record(id), &[], Shape::per_record(width))
    }

    /// Creates a record column of element indices, for [`gather_record`](Self::gather_record).
    pub fn record_indices(&mut self, indices: &[u32]) -> crate::ir::RecordId {
        self.intern_record(RecordColumn::Indices(indices.into()))
    }

    /// Returns the number of records in the batch, as a node.
    pub fn records_in_batch(&mut self) -> NodeId {
        self.push(Op::RecordCount, &[], Shape::SCALAR)
    }

    /// Creates a constant scalar.
    pub fn constant(&mut self, value: f64) -> NodeId {
        self.vector(&[value])
    }

    /// Creates a constant vector.
    pub fn vector(&mut self, values: &[f64]) -> NodeId {
        let id = self.intern_const(values);
        self.push(Op::Const(id), &[], Shape::fixed(values.len()))
    }

    fn uniform_value(&self, id: NodeId) -> Option<f64> {
        let values = self.constant_value(id)?;
        let first = *values.first()?;
        values
            .iter()
            .all(|v| v.to_bits() == first.to_bits())
            .then_some(first)
    }

    fn is_uniform(&self, id: NodeId, value: f64) -> bool {
        self.uniform_value(id) == Some(value)
    }

    /// Returns the shape of the result of an elementwise operation. Scalars broadcast, and all other shapes must be
    /// equal.
    ///
    /// # Panics
    /// Panics if the shapes differ. This would be a bug in the caller, because front ends check sizes and report
    /// errors.
    pub fn broadcast_shape(&self, args: &[NodeId]) -> Shape {
        let mut shape = Shape::SCALAR;
        for &arg in args {
            let this = self.shape(arg);
            if this.is_scalar() {
                continue;
            }
            assert!(
                shape.is_scalar() || shape == this,
                "elementwise shapes {shape:?} and {this:?}"
            );
            shape = this;
        }
        shape
    }

    /// Applies an elementwise operation. Scalars are broadcast to the shape of the other arguments.
    pub fn elem(&mut self, op: ElemOp, args: &[NodeId]) -> NodeId {
        assert_eq!(args.len(), op.arity(), "arguments of {}", op.name());
        let shape = self.broadcast_shape(args);
        if args
            .iter()
            .all(|&arg| self.placement(arg) == Placement::Constant)
        {
            return self.fold_elem(op, args, shape);
        }
        self.simplify(op, args, shape)
            .or_else(|| self.before_gather(op, args, shape))
            .unwrap_or_else(|| self.push(Op::Elem(op), args, shape))
    }

    fn fold_elem(&mut self, op: ElemOp, args: &[NodeId], shape: Shape) -> NodeId {
        let tables: Vec<_> = args
            .iter()
            .map(|&arg| self.constant_value(arg).expect("a constant").to_vec())
            .collect();
        let mut row = vec![0.0; args.len()];
        let mut values = vec![f64::NAN; shape.len as usize];
        for (k, block) in values.chunks_mut(BETWEEN).enumerate() {
            if k > 0 && self.ending.is_due() {
                break;
            }
            for (i, value) in (k * BETWEEN..).zip(block) {
                for (slot, table) in row.iter_mut().zip(&tables) {
                    *slot = table[if table.len() == 1 { 0 } else { i }];
                }
                *value = op.value(&row);
            }
        }
        self.vector(&values)
    }

    pub(crate) fn elem_op(&self, id: NodeId) -> Option<ElemOp> {
        match self.op(id) {
            Op::Elem(op) => Some(op),
            _ => None,
        }
    }

    unary! {
        /// Returns the negation `-x`.
        neg => Neg;
        /// Returns `1 / x`.
        recip => Recip;
        /// Returns `x²`.
        square => Square;
        /// Returns `√x`.
        sqrt => Sqrt;
        /// Returns `eˣ`.
        exp => Exp;
        /// Returns `log x`.
        log => Log;
    }

    binary! {
        /// Returns `x + y`.
        add => Add;
        /// Returns `x - y`.
        sub => Sub;
        /// Returns `x · y`.
        mul => Mul;
        /// Returns `x / y`.
        div => Div;
        /// Returns `xʸ`.
        pow => Pow;
    }

    /// Returns x at elements where c is not zero, and y at all others.
    pub fn select(&mut self, c: NodeId, x: NodeId, y: NodeId) -> NodeId {
        self.elem(ElemOp::Select, &[c, x, y])
    }

    /// Returns the product `c · x`, where c is a number.
    pub fn scale(&mut self, c: f64, x: NodeId) -> NodeId {
        let c = self.constant(c);
        self.mul(c, x)
    }

    pub(crate) fn normal_density(&mut self, x: NodeId) -> NodeId {
        let s = self.square(x);
        let h = self.scale(-0.5, s);
        let e = self.exp(h);
        self.scale(crate::ops::elementwise::INV_SQRT_2PI, e)
    }
}
