//! Evaluates expressions.

use num_complex::Complex64;

use super::higher_order;
use super::laplace;
use super::machine::Machine;
use crate::functions::laplace::LaplaceForm;
use crate::functions::{self, Keep};
use crate::library;
use crate::program::{
    BinaryOp, Call, Callee, Expr, ExprKind, FunId, FunctionKind, Index, Level, Span, Type,
};
use crate::value::error::{Eval, FnError};
use crate::value::index::{self, Idx};
use crate::value::ops;
use crate::value::{Mat, Operand, Value};

impl Machine<'_> {
    /// Evaluates an expression.
    ///
    /// # Errors
    /// Returns any error that occurs during the evaluation, located at the innermost expression.
    pub fn eval(&mut self, expr: &Expr) -> Eval<Operand> {
        // Expressions without operands are cheap and do not need the depth guard.
        match &expr.kind {
            ExprKind::IntLit(i) => Ok(Operand::Owned(Value::Int(*i))),
            ExprKind::RealLit(x) => Ok(Operand::Owned(Value::Real(*x))),
            ExprKind::Var(var) => {
                let value = self.variable(*var, expr.span)?;
                Ok(match &**value {
                    Value::Int(i) => Operand::Owned(Value::Int(*i)),
                    Value::Real(x) => Operand::Owned(Value::Real(*x)),
                    _ => Operand::Shared(value.clone()),
                })
            }
            _ => self.nested(expr.span, |m| m.eval_nested(expr)),
        }
    }

    fn eval_nested(&mut self, expr: &Expr) -> Eval<Operand> {
        let span = expr.span;
        let value = match &expr.kind {
            ExprKind::IntLit(_) | ExprKind::RealLit(_) | ExprKind::Var(_) => {
                return self.eval(expr);
            }
            ExprKind::ImagLit(x) => Value::Complex(Complex64::new(0.0, *x)),
            ExprKind::Unary(op, a) => {
                let a = self.eval(a)?;
                ops::unary(*op, &a).map_err(|e| e.at(span))?
            }
            ExprKind::Binary(op, a, b) => self.eval_binary(*op, a, b, span)?,
            ExprKind::Ternary(condition, then, otherwise) => {
                let chosen = if self.eval_condition(condition)? {
                    then
                } else {
                    otherwise
                };
                return self.eval(chosen);
            }
            ExprKind::Transpose(a) => {
                let a = self.eval(a)?;
                ops::transpose(&a).map_err(|e| e.at(span))?
            }
            ExprKind::Index(base, indices) => {
                let base_value = self.eval(base)?;
                let idx = self.eval_indices(indices)?;
                index::get(&base_value, &idx, Some(&expr.ty)).map_err(|e| {
                    FnError::invalid(format!("`{}`: {e}", self.snippet(base.span))).at(span)
                })?
            }
            ExprKind::ArrayLit(elements) => {
                let values = self.eval_all(elements)?;
                let Type::Array(element) = &expr.ty else {
                    return Err(FnError::invalid("an array literal has an array type").at(span));
                };
                Value::array(
                    values.into_iter().map(Operand::into_value).collect(),
                    element,
                )
            }
            ExprKind::RowVectorLit(elements) => {
                let values = self.eval_all(elements)?;
                row_vector(&values, &expr.ty).map_err(|e| e.at(span))?
            }
            ExprKind::TupleLit(elements) => Value::Tuple(
                self.eval_all(elements)?
                    .into_iter()
                    .map(Operand::into_value)
                    .collect(),
            ),
            ExprKind::TupleProj(tuple, k) => match &*self.eval(tuple)? {
                Value::Tuple(parts) if (*k as usize) < parts.len() => parts[*k as usize].clone(),
                other => {
                    let message = format!("component {} of {}", k + 1, other.describe());
                    return Err(FnError::invalid(message).at(span));
                }
            },
            ExprKind::Call(call) => return self.eval_call(call, span),
            ExprKind::Target => Value::Real(self.target),
            ExprKind::FunRef(_) => {
                return Err(FnError::invalid("a function is not a value").at(span));
            }
            ExprKind::Promote(a) => {
                let a = self.eval(a)?;
                a.into_value().promote(&expr.ty)
            }
        };
        Ok(Operand::Owned(value))
    }

    pub(super) fn eval_all(&mut self, exprs: &[Expr]) -> Eval<Vec<Operand>> {
        exprs.iter().map(|e| self.eval(e)).collect()
    }

    pub(super) fn eval_condition(&mut self, expr: &Expr) -> Eval<bool> {
        let value = self.eval(expr)?;
        value.real().map(|x| x != 0.0).map_err(|e| e.at(expr.span))
    }

    pub(super) fn eval_int(&mut self, expr: &Expr) -> Eval<i32> {
        let value = self.eval(expr)?;
        value.int().map_err(|e| e.at(expr.span))
    }

    fn eval_binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, span: Span) -> Eval<Value> {
        match op {
            BinaryOp::And => {
                let holds = self.eval_condition(a)? && self.eval_condition(b)?;
                Ok(Value::Int(i32::from(holds)))
            }
            BinaryOp::Or => {
                let holds = self.eval_condition(a)? || self.eval_condition(b)?;
                Ok(Value::Int(i32::from(holds)))
            }
            _ => {
                let (a, b) = (self.eval(a)?, self.eval(b)?);
                self.work(a.len(), span)?;
                library::binary_under(&self.halt, op, &a, &b, span)
            }
        }
    }

    pub(super) fn eval_indices(&mut self, indices: &[Index]) -> Eval<Vec<Idx>> {
        indices
            .iter()
            .map(|index| {
                Ok(match index {
                    Index::All => Idx::All,
                    Index::Single(i) => Idx::One(self.eval_int(i)?),
                    Index::Multi(list) => {
                        let value = self.eval(list)?;
                        Idx::Many(value.ints().map_err(|e| e.at(list.span))?.to_vec())
                    }
                    Index::From(a) => Idx::From(self.eval_int(a)?),
                    Index::To(b) => Idx::To(self.eval_int(b)?),
                    Index::Between(a, b) => Idx::Between(self.eval_int(a)?, self.eval_int(b)?),
                })
            })
            .collect()
    }

    fn eval_call(&mut self, call: &Call, span: Span) -> Eval<Operand> {
        let drop = call.unnormalised && self.drop_constants;
        match call.callee {
            Callee::Builtin(id) if let Some(form) = LaplaceForm::of(id.name()) => {
                laplace::call(self, (id.name(), form), &call.args, span).map(Operand::Owned)
            }
            Callee::Builtin(id) if takes_function(&call.args) => {
                higher_order::call(self, id, &call.args, span).map(Operand::Owned)
            }
            _ => {
                let args = self.eval_all(&call.args)?;
                self.apply(call.callee, args, &call.args, drop, span)
            }
        }
    }

    /// If `drop` is true, a density omits terms that depend only on arguments of level data.
    pub(super) fn apply(
        &mut self,
        callee: Callee,
        args: Vec<Operand>,
        exprs: &[Expr],
        drop: bool,
        span: Span,
    ) -> Eval<Operand> {
        match callee {
            Callee::User(id) => match self.call_user(id, args, drop, span)? {
                Some(value) => Ok(Operand::Owned(value)),
                None => Err(FnError::invalid("a void function has no value").at(span)),
            },
            Callee::Builtin(id) => {
                self.step(span)?;
                let refs: Vec<&Value> = args.iter().map(|a| &**a).collect();
                functions::check_call(id.name(), &refs).map_err(|e| e.at(span))?;
                let result = if id.name().ends_with("_rng") {
                    match &mut self.rng {
                        Some(rng) => {
                            rng.go_to(self.address.at(span));
                            library::draw_under(&self.halt, id, rng, &refs, span)?
                        }
                        None => Err(FnError::invalid(format!(
                            "{}: random numbers are not available here",
                            id.name()
                        ))),
                    }
                } else if id.name().ends_with("_jacobian") {
                    library::constrain(id, &refs).map(|(value, jacobian)| {
                        if self.jacobian {
                            self.target += jacobian;
                        }
                        value
                    })
                } else {
                    let keep = if drop {
                        Keep::arguments(exprs.iter().map(|e| e.level == Level::Param))
                    } else {
                        Keep::ALL
                    };
                    library::call_under(&self.halt, id, keep, &refs, span)?
                };
                let value = result.map_err(|e| e.at(span))?;
                self.work(value.len(), span)?;
                Ok(Operand::Owned(value))
            }
        }
    }

    pub(super) fn call_user(
        &mut self,
        id: FunId,
        args: Vec<Operand>,
        drop: bool,
        span: Span,
    ) -> Eval<Option<Value>> {
        self.step(span)?;
        let program = self.program;
        let locals = &self.locals[id.0 as usize];
        let function = program.function(id);
        let saved: Vec<_> = locals
            .iter()
            .map(|var| self.slots[var.0 as usize].take())
            .collect();
        for (var, arg) in function.args.iter().zip(args) {
            self.slots[var.0 as usize] = Some(arg.into_shared());
        }
        let outer_drop = self.drop_constants;
        self.drop_constants = match function.kind {
            FunctionKind::Lpdf | FunctionKind::Lpmf => drop,
            FunctionKind::Lp => outer_drop,
            _ => false,
        };
        let outer_address = self.address;
        self.address = outer_address.at(span);
        let result = self.nested(span, |m| m.run_body(&function.body));
        self.drop_constants = outer_drop;
        self.address = outer_address;
        for (var, value) in locals.iter().zip(saved) {
            self.slots[var.0 as usize] = value;
        }
        let value = result?;
        if value.is_none() && function.result != Type::Void {
            let message = format!("`{}` ended without a value", function.name);
            return Err(FnError::invalid(message).at(span));
        }
        Ok(value)
    }
}

fn takes_function(args: &[Expr]) -> bool {
    matches!(args.first(), Some(first) if matches!(first.kind, ExprKind::FunRef(_)))
}

fn row_vector(values: &[Operand], ty: &Type) -> Result<Value, FnError> {
    let rows = |cols: usize| {
        FnError::invalid(format!(
            "the rows of a matrix must have the same size, the first has {cols} elements"
        ))
    };
    Ok(match ty {
        Type::Matrix => {
            let cols = values.first().map_or(0, |v| v.len());
            let mut out = Mat::filled(values.len(), cols, 0.0);
            for (i, row) in values.iter().enumerate() {
                if row.len() != cols {
                    return Err(rows(cols));
                }
                for (j, x) in row.slice()?.iter().enumerate() {
                    out[(i, j)] = *x;
                }
            }
            Value::Matrix(out)
        }
        Type::ComplexMatrix => {
            let cols = values.first().map_or(0, |v| v.len());
            let mut out = Mat::filled(values.len(), cols, Complex64::new(0.0, 0.0));
            for (i, row) in values.iter().enumerate() {
                match row.map_complex(&|z| z)? {
                    Value::ComplexRowVector(x) if x.len() == cols => {
                        x.iter().enumerate().for_each(|(j, x)| out[(i, j)] = *x);
                    }
                    _ => return Err(rows(cols)),
                }
            }
            Value::ComplexMatrix(out)
        }
        Type::ComplexRowVector => Value::ComplexRowVector(
            values
                .iter()
                .map(|v| v.complex())
                .collect::<Result<_, _>>()?,
        ),
        _ => Value::RowVector(values.iter().map(|v| v.real()).collect::<Result<_, _>>()?),
    })
}
