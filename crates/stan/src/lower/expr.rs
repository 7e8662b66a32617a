//! Lowers expressions.

use std::rc::Rc;

use num_complex::Complex64;

use super::Lower;
use crate::library;
use crate::program::{BinaryOp, Expr, ExprKind, Index, Type};
use crate::symbolic::functions::operators;
use crate::symbolic::index;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::Value;
use crate::value::error::{Eval, FnError, FnResult};
use crate::value::index::Idx;
use crate::value::ops;

/// The evaluated indices. If an index differs between draws, its position and its value follow.
type Indices<'g> = (Vec<Idx>, Option<(usize, E<'g>)>);

/// An index that differs between draws may select from at most this many elements, because the graph computes all of
/// them.
const MOST_CHOICES: usize = 256;

impl<'g> Lower<'_, 'g> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Eval<Sym> {
        match &expr.kind {
            ExprKind::IntLit(i) => Ok(Sym::Int(*i)),
            ExprKind::RealLit(x) => Ok(Sym::Real(*x)),
            ExprKind::Var(var) => match &self.slots[var.0 as usize] {
                Some(value) => Ok(value.clone()),
                None => {
                    let message = format!("`{}` has no value yet", self.program.var(*var).name);
                    Err(FnError::invalid(message).at(expr.span))
                }
            },
            _ => {
                let value = self.nested(expr.span, |lower| lower.composed(expr));
                // An operation without a graph form may fail later with another message.
                self.fault(expr.span)?;
                let value = value?;
                Ok(value.of(&expr.ty))
            }
        }
    }

    fn composed(&mut self, expr: &Expr) -> Eval<Sym> {
        if let Some(element) = self.slice_element(expr) {
            return element;
        }
        let span = expr.span;
        match &expr.kind {
            ExprKind::IntLit(_) | ExprKind::RealLit(_) | ExprKind::Var(_) => self.expr(expr),
            ExprKind::ImagLit(x) => Ok(Value::Complex(Complex64::new(0.0, *x)).into()),
            ExprKind::Unary(op, a) => {
                let a = self.expr(a)?;
                if let Some(a) = a.known() {
                    return ops::unary(*op, &a).map(Sym::from).map_err(|e| e.at(span));
                }
                self.site(expr);
                let cx = self.cx("operator");
                self.each_record(std::slice::from_ref(&a), |a| {
                    operators::unary(&cx, *op, &a[0])
                })
                .unwrap_or_else(|| operators::unary(&cx, *op, &a))
                .map_err(|e| e.at(span))
            }
            ExprKind::Binary(op, a, b) => self.binary(expr, *op, a, b),
            ExprKind::Ternary(condition, then, otherwise) => {
                let c = self.condition(condition)?;
                match c {
                    Condition::Known(true) => self.expr(then),
                    Condition::Known(false) => self.expr(otherwise),
                    Condition::Depends(c) => self.ternary(c, expr, then, otherwise),
                }
            }
            ExprKind::Transpose(a) => {
                let a = self.expr(a)?;
                if let Some(a) = a.known() {
                    return ops::transpose(&a).map(Sym::from).map_err(|e| e.at(span));
                }
                self.site(expr);
                operators::transpose(&self.cx("'"), &a).map_err(|e| e.at(span))
            }
            ExprKind::Index(base, indices) => self.indexed(expr, base, indices),
            ExprKind::ArrayLit(elements) => {
                let values = self.exprs(elements)?;
                if let Type::Array(element) = &expr.ty
                    && values.iter().all(Sym::is_known)
                {
                    let values = values
                        .iter()
                        .filter_map(|v| v.known().map(std::borrow::Cow::into_owned))
                        .collect();
                    return Ok(Value::array(values, element).into());
                }
                self.site(expr);
                index::array_of(self.tape, values).map_err(|e| e.at(span))
            }
            ExprKind::RowVectorLit(elements) => {
                let values = self.exprs(elements)?;
                self.site(expr);
                let matrix = matches!(expr.ty, Type::Matrix | Type::ComplexMatrix);
                operators::row_vector(&self.cx("row vector"), &values, matrix)
                    .map_err(|e| e.at(span))
            }
            ExprKind::TupleLit(elements) => Ok(Sym::Tuple(Rc::new(self.exprs(elements)?))),
            ExprKind::TupleProj(tuple, k) => {
                let tuple = self.expr(tuple)?;
                index::component(&tuple, *k as usize).map_err(|e| e.at(span))
            }
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::Target if self.axis.is_some() => Err(FnError::records(
                "records interact: `target()` is the log density of all records so far",
            )
            .at(span)),
            ExprKind::Target if self.in_iterations() => Err(FnError::records(
                "an iteration of the loop reads `target()`, which earlier iterations changed",
            )
            .at(span)),
            ExprKind::Target => {
                self.site(expr);
                Ok(self.target().into())
            }
            ExprKind::FunRef(_) => Err(FnError::invalid("a function is not a value").at(span)),
            ExprKind::Promote(a) => Ok(self.expr(a)?.promote(&expr.ty)),
        }
    }

    pub(super) fn exprs(&mut self, exprs: &[Expr]) -> Eval<Vec<Sym>> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn binary(&mut self, expr: &Expr, op: BinaryOp, a: &Expr, b: &Expr) -> Eval<Sym> {
        let span = expr.span;
        if op == BinaryOp::Mul
            && a.ty == Type::RowVector
            && let Some(product) = self.product_with_row(a, b, expr)?
        {
            return Ok(product);
        }
        let left = self.expr(a)?;
        if matches!(op, BinaryOp::And | BinaryOp::Or)
            && let Some(value) = left.known()
        {
            let holds = value.real().map_err(|e| e.at(a.span))? != 0.0;
            if holds == (op == BinaryOp::Or) {
                return Ok(Sym::Int(i32::from(holds)));
            }
        }
        let right = self.expr(b)?;
        if let (Some(x), Some(y)) = (left.known(), right.known()) {
            return library::binary_under(&self.halt, op, &x, &y, span).map(Sym::from);
        }
        self.site(expr);
        if let Some(result) = self.binary_of_records(op, &left, &right) {
            return result.map_err(|e| e.at(span));
        }
        operators::binary(&self.cx(op.symbol()), op, &left, &right).map_err(|e| e.at(span))
    }

    fn indexed(&mut self, expr: &Expr, base: &Expr, indices: &[Index]) -> Eval<Sym> {
        if self.axis.is_some() {
            return self.indexed_by_record(expr, base, indices);
        }
        if self.in_iterations() {
            return self.indexed_in_iterations(expr, base, indices);
        }
        let (idx, drawn) = self.indices_of_draw(indices)?;
        // A variable is indexed directly, so that its table is not copied meanwhile.
        let held;
        let value = match &base.kind {
            ExprKind::Var(var) if self.slots[var.0 as usize].is_some() => {
                self.site(expr);
                self.slots[var.0 as usize].as_ref()
            }
            _ => {
                held = self.expr(base)?;
                self.site(expr);
                Some(&held)
            }
        };
        let Some(value) = value else {
            return Err(FnError::invalid("no value yet").at(base.span));
        };
        match drawn {
            None => index::get(self.tape, value, &idx, Some(&expr.ty)),
            Some((at, k)) => self.chosen(value, idx, at, k, &expr.ty),
        }
        .map_err(|e| e.at(expr.span))
    }

    /// Evaluates the indices. If an index differs between draws, also returns the position and the value of this index.
    /// At most one index may differ between draws, and only in reported values.
    fn indices_of_draw(&mut self, indices: &[Index]) -> Eval<Indices<'g>> {
        if self.random.is_none() {
            return Ok((self.indices(indices)?, None));
        }
        let (mut idx, mut drawn) = (Vec::with_capacity(indices.len()), None);
        for (at, index) in indices.iter().enumerate() {
            let Index::Single(i) = index else {
                idx.extend(self.indices(std::slice::from_ref(index))?);
                continue;
            };
            idx.push(Idx::One(match self.expr(i)? {
                Sym::Scalar(k) if drawn.is_none() => {
                    drawn = Some((at, self.tape.e(k)));
                    1
                }
                known => known.int().map_err(|e| e.at(i.span))?,
            }));
        }
        Ok((idx, drawn))
    }

    fn chosen(
        &self,
        value: &Sym,
        mut idx: Vec<Idx>,
        at: usize,
        k: E<'g>,
        ty: &Type,
    ) -> FnResult<Sym> {
        let (tape, cx) = (self.tape, self.cx("[]"));
        let extents = value.dims()?.extents();
        let count = extents.get(at).copied().unwrap_or(0);
        if count > MOST_CHOICES {
            return Err(FnError::unsupported(format!(
                "an index that depends on parameters into {count} elements is not supported yet"
            )));
        }
        let mut result = None;
        for j in (1..=count).rev() {
            idx[at] = Idx::One(i32::try_from(j).unwrap_or(i32::MAX));
            let element = index::get(tape, value, &idx, Some(ty))?;
            result = Some(match &result {
                None => element,
                Some(rest) => operators::select(&cx, k.eq(cx.num(j as f64)), &element, rest)?,
            });
        }
        let within = cx.num(1.0).le(k) * k.le(cx.num(count as f64));
        tape.reject_where(within.not());
        result.ok_or_else(|| FnError::invalid("an index of an empty container"))
    }

    pub(super) fn indices(&mut self, indices: &[Index]) -> Eval<Vec<Idx>> {
        indices
            .iter()
            .map(|index| {
                Ok(match index {
                    Index::All => Idx::All,
                    Index::Single(i) => Idx::One(self.int(i)?),
                    Index::Multi(list) => {
                        let value = self.expr(list)?;
                        match value.known() {
                            Some(value) => {
                                Idx::Many(value.ints().map_err(|e| e.at(list.span))?.to_vec())
                            }
                            None => {
                                return Err(FnError::unsupported(
                                    "indices that depend on parameters are not supported yet",
                                )
                                .at(list.span));
                            }
                        }
                    }
                    Index::From(a) => Idx::From(self.int(a)?),
                    Index::To(b) => Idx::To(self.int(b)?),
                    Index::Between(a, b) => Idx::Between(self.int(a)?, self.int(b)?),
                })
            })
            .collect()
    }

    pub(super) fn int(&mut self, expr: &Expr) -> Eval<i32> {
        let value = self.expr(expr)?;
        if self.differs_by_record(&value) {
            let message = "records interact: this int depends on the records, so it cannot be a size, bound or \
                           index of all of them";
            return Err(FnError::records(message).at(expr.span));
        }
        value.int().map_err(|e| e.at(expr.span))
    }

    pub(super) fn condition(&mut self, expr: &Expr) -> Eval<Condition<'g>> {
        let value = self.expr(expr)?;
        if let Some(value) = value.known() {
            let x = value.real().map_err(|e| e.at(expr.span))?;
            return Ok(Condition::Known(x != 0.0));
        }
        let e = value.e(self.tape).map_err(|e| e.at(expr.span))?;
        Ok(match e.scalar() {
            Some(x) => Condition::Known(x != 0.0),
            None => Condition::Depends(e),
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'g> {
    Known(bool),
    /// The condition holds for draws where this number is not 0.
    Depends(crate::symbolic::tape::E<'g>),
}
