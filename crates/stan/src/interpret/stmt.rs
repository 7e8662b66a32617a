//! Executes statements.

use std::fmt::{self, Write};
use std::sync::Arc;

use jensen_math::special::log_diff_exp;

use super::machine::Machine;
use crate::library;
use crate::program::{
    Access, Assign, Callee, Decl, Expr, FunctionKind, LValue, Message, Span, Stmt, StmtKind, Tilde,
    VarId, VariablePart,
};
use crate::value::error::{Eval, FnError};
use crate::value::index::{self, Step};
use crate::value::{Operand, Value};

/// The largest size of one message, in bytes.
const MESSAGE: usize = 1 << 20;

/// The text of one message. A text that is longer than [`MESSAGE`] is truncated and ends in `…`.
#[derive(Default)]
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() > MESSAGE {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        if self.0.len() > MESSAGE {
            self.0.truncate(self.0.floor_char_boundary(MESSAGE));
            self.0.push('…');
            return Err(fmt::Error);
        }
        Ok(())
    }
}

enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Value>),
}

impl Machine<'_> {
    /// Runs statements. Variables that the statements declare remain in scope.
    ///
    /// # Errors
    /// Returns any error that occurs during the evaluation.
    pub fn run(&mut self, stmts: &[Stmt]) -> Eval<()> {
        self.exec_all(stmts).map(|_| ())
    }

    pub(super) fn run_body(&mut self, stmts: &[Stmt]) -> Eval<Option<Value>> {
        Ok(match self.exec_all(stmts)? {
            Flow::Return(value) => value,
            _ => None,
        })
    }

    fn exec_all(&mut self, stmts: &[Stmt]) -> Eval<Flow> {
        for stmt in stmts {
            match self.exec(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    fn exec(&mut self, stmt: &Stmt) -> Eval<Flow> {
        self.step(stmt.span)?;
        self.nested(stmt.span, |m| m.exec_nested(stmt))
    }

    fn exec_nested(&mut self, stmt: &Stmt) -> Eval<Flow> {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::Decl(decl) => self.declare(decl, span)?,
            StmtKind::Assign(assign) => self.assign(assign)?,
            StmtKind::TargetPlus(e) => self.target += self.sum_of(e)?,
            StmtKind::JacobianPlus(e) => {
                let sum = self.sum_of(e)?;
                if self.jacobian {
                    self.target += sum;
                }
            }
            StmtKind::Tilde(tilde) => self.tilde(tilde, span)?,
            StmtKind::Call(call) => {
                let args = self.eval_all(&call.args)?;
                match call.callee {
                    Callee::User(id) => {
                        let drop = call.unnormalised && self.drop_constants;
                        self.call_user(id, args, drop, span)?;
                    }
                    Callee::Builtin(_) => {
                        self.apply(call.callee, args, &call.args, false, span)?;
                    }
                }
            }
            StmtKind::Print(parts) => {
                let text = self.message(parts)?;
                (self.sink)(&text);
            }
            StmtKind::Reject(parts) => {
                let text = self.message(parts)?;
                return Err(FnError::domain(text).at(span));
            }
            StmtKind::FatalError(parts) => {
                let text = self.message(parts)?;
                return Err(FnError::invalid(text).at(span));
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                if self.eval_condition(condition)? {
                    return self.exec(then);
                }
                if let Some(otherwise) = otherwise {
                    return self.exec(otherwise);
                }
            }
            StmtKind::While { condition, body } => {
                return self.iterations(|machine, iteration| {
                    if !machine.eval_condition(condition)? {
                        return Ok(None);
                    }
                    if iteration > 0 {
                        machine.step(span)?;
                    }
                    machine.exec(body).map(Some)
                });
            }
            StmtKind::For {
                var,
                lower,
                upper,
                body,
            } => {
                let (lower, upper) = (self.eval_int(lower)?, self.eval_int(upper)?);
                let mut values = (lower..=upper).map(Value::Int);
                return self.iterations(|machine, _| machine.with_each(*var, values.next(), body));
            }
            StmtKind::ForEach {
                var,
                container,
                body,
            } => {
                let value = self.eval(container)?;
                let mut values = each(&value).into_iter();
                return self.iterations(|machine, _| machine.with_each(*var, values.next(), body));
            }
            StmtKind::Block(body) | StmtKind::Profile(_, body) => return self.exec_all(body),
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Return(None) => return Ok(Flow::Return(None)),
            StmtKind::Return(Some(e)) => {
                return Ok(Flow::Return(Some(self.eval(e)?.into_value())));
            }
            StmtKind::Empty => {}
        }
        Ok(Flow::Next)
    }

    fn iterations(
        &mut self,
        mut iteration: impl FnMut(&mut Self, u64) -> Eval<Option<Flow>>,
    ) -> Eval<Flow> {
        let outside = self.address;
        for count in 0.. {
            self.address = outside.iteration(count);
            match iteration(self, count)? {
                Some(Flow::Next | Flow::Continue) => {}
                Some(flow @ Flow::Return(_)) => {
                    self.address = outside;
                    return Ok(flow);
                }
                Some(Flow::Break) | None => break,
            }
        }
        self.address = outside;
        Ok(Flow::Next)
    }

    fn with_each(&mut self, var: VarId, value: Option<Value>, body: &Stmt) -> Eval<Option<Flow>> {
        let Some(value) = value else {
            return Ok(None);
        };
        self.slots[var.0 as usize] = Some(Arc::new(value));
        self.exec(body).map(Some)
    }

    fn sum_of(&mut self, e: &Expr) -> Eval<f64> {
        let value = self.eval(e)?;
        if let Value::Real(x) = *value {
            return Ok(x);
        }
        Ok(value.numbers().iter().sum())
    }

    pub(super) fn declare(&mut self, decl: &Decl, span: Span) -> Eval<()> {
        let ty = self.resolve(decl)?;
        let value = match &decl.init {
            None => Arc::new(ty.empty()),
            Some(init) => {
                let value = self.eval(init)?;
                let empty = ty.empty();
                if !empty.same_shape(&value) {
                    let message = format!(
                        "`{}` is declared as {}, but its initial value is {}",
                        self.program.var(decl.var).name,
                        ty.describe(),
                        value.describe()
                    );
                    return Err(FnError::invalid(message).at(span));
                }
                value.into_shared()
            }
        };
        self.slots[decl.var.0 as usize] = Some(value);
        Ok(())
    }

    fn assign(&mut self, assign: &Assign) -> Eval<()> {
        let value = self.eval(&assign.rhs)?;
        match (&assign.target, assign.op) {
            (LValue::Part(part), Some(op)) => {
                let steps = self.steps_of(&part.path)?;
                let old = if steps.is_empty() {
                    Operand::Shared(self.variable(part.var, part.span)?.clone())
                } else {
                    let current = self.variable(part.var, part.span)?;
                    Operand::Owned(
                        index::get_path(current, &steps).map_err(|e| self.index_error(&e, part))?,
                    )
                };
                let span = part.span.to(assign.rhs.span);
                let new = library::binary_under(&self.halt, op, &old, &value, span)?;
                drop(old);
                self.store(part, &steps, Operand::Owned(new.promote(&part.ty)))
            }
            (target, _) => self.assign_to(target, value),
        }
    }

    fn assign_to(&mut self, target: &LValue, value: Operand) -> Eval<()> {
        match target {
            LValue::Part(part) => {
                let steps = self.steps_of(&part.path)?;
                self.store(part, &steps, value)
            }
            LValue::Tuple(targets) => {
                let Value::Tuple(parts) = value.into_value() else {
                    return Ok(());
                };
                for (target, part) in targets.iter().zip(parts) {
                    self.assign_to(target, Operand::Owned(part))?;
                }
                Ok(())
            }
        }
    }

    fn steps_of(&mut self, path: &[Access]) -> Eval<Vec<Step>> {
        path.iter()
            .map(|access| {
                Ok(match access {
                    Access::Index(indices) => Step::Index(self.eval_indices(indices)?),
                    Access::Component(k) => Step::Component(*k as usize),
                })
            })
            .collect()
    }

    fn store(&mut self, part: &VariablePart, steps: &[Step], value: Operand) -> Eval<()> {
        let slot = &mut self.slots[part.var.0 as usize];
        if steps.is_empty() {
            if let Some(old) = slot
                && !old.same_shape(&value)
            {
                let message = format!(
                    "`{}` is {}, but the program assigns {} to it",
                    self.program.var(part.var).name,
                    old.describe(),
                    value.describe()
                );
                return Err(FnError::invalid(message).at(part.span));
            }
            *slot = Some(value.into_shared());
            return Ok(());
        }
        let Some(target) = slot else {
            self.variable(part.var, part.span)?;
            return Ok(());
        };
        index::set_path(Arc::make_mut(target), steps, value.into_value())
            .map_err(|e| self.index_error(&e, part))
    }

    fn index_error(
        &self,
        error: &index::IndexError,
        part: &VariablePart,
    ) -> Box<crate::value::error::EvalError> {
        let name = &self.program.var(part.var).name;
        FnError::invalid(format!("`{name}`: {error}")).at(part.span)
    }

    fn message(&mut self, parts: &[Message]) -> Eval<String> {
        let mut text = Short::default();
        for part in parts {
            // If the message reaches its largest length, the remaining elements are omitted.
            let _ = match part {
                Message::Text(s) => text.write_str(s),
                Message::Value(e) => {
                    let value = self.eval(e)?;
                    write!(text, "{}", &*value)
                }
            };
        }
        Ok(text.0)
    }

    fn tilde(&mut self, tilde: &Tilde, span: Span) -> Eval<()> {
        let args = self.eval_all(&tilde.args)?;
        let density = |m: &mut Self, args: Vec<Operand>, drop: bool| -> Eval<f64> {
            let value = m.apply(tilde.callee, args, &tilde.args, drop, span)?;
            value.real().map_err(|e| e.at(span))
        };
        let Some(truncation) = &tilde.truncation else {
            let drop = self.drop_constants;
            self.target += density(self, args, drop)?;
            return Ok(());
        };
        let lower = truncation
            .lower
            .as_ref()
            .map(|e| self.eval(e))
            .transpose()?;
        let upper = truncation
            .upper
            .as_ref()
            .map(|e| self.eval(e))
            .transpose()?;
        let number = |v: &Operand| v.real().map_err(|e| e.at(span));
        let (below, above) = (
            lower.as_ref().map(number).transpose()?,
            upper.as_ref().map(number).transpose()?,
        );
        let outside = |x: &f64| below.is_some_and(|l| *x < l) || above.is_some_and(|u| *x > u);
        if args[0].numbers().iter().any(outside) {
            self.target = f64::NEG_INFINITY;
            return Ok(());
        }
        let discrete = match tilde.callee {
            Callee::Builtin(id) => id.name().ends_with("_lpmf"),
            Callee::User(id) => self.program.function(id).kind == FunctionKind::Lpmf,
        };
        // For an `int`, the mass at the lower bound belongs to the truncated distribution.
        let lower = lower.map(|l| match *l {
            Value::Int(i) if discrete => Operand::Owned(Value::Int(i.saturating_sub(1))),
            _ => l,
        });
        // A library distribution broadcasts its arguments, and every element has its own normaliser.
        let elements = match tilde.callee {
            Callee::Builtin(_) if args.iter().any(|a| a.is_empty()) => 0,
            Callee::Builtin(_) => args.iter().map(|a| a.len()).max().unwrap_or(1),
            Callee::User(_) => 1,
        };
        let mut normaliser = 0.0;
        for n in 0..elements {
            let log_of = |m: &mut Self, callee: Callee, bound: &Operand| -> Eval<f64> {
                let mut at = vec![bound.clone()];
                for arg in &args[1..] {
                    at.push(match tilde.callee {
                        Callee::Builtin(_) => element(arg, n).map_err(|e| e.at(span))?,
                        Callee::User(_) => arg.clone(),
                    });
                }
                let value = m.apply(callee, at, &[], false, span)?;
                value.real().map_err(|e| e.at(span))
            };
            normaliser += match (&lower, &upper) {
                (None, None) => 0.0,
                (Some(l), None) => log_of(self, truncation.lccdf, l)?,
                (None, Some(u)) => log_of(self, truncation.lcdf, u)?,
                (Some(l), Some(u)) => log_diff_exp(
                    log_of(self, truncation.lcdf, u)?,
                    log_of(self, truncation.lcdf, l)?,
                ),
            };
        }
        let drop = self.drop_constants;
        self.target += density(self, args, drop)? - normaliser;
        Ok(())
    }
}

fn element(arg: &Operand, n: usize) -> Result<Operand, FnError> {
    if arg.is_scalar() {
        return Ok(arg.clone());
    }
    let value = match &**arg {
        Value::Ints(x) => x.get(n).map(|i| Value::Int(*i)),
        other => other.slice()?.get(n).map(|x| Value::Real(*x)),
    };
    value
        .map(Operand::Owned)
        .ok_or_else(|| FnError::invalid("truncation: sizes of the arguments do not match"))
}

fn each(container: &Value) -> Vec<Value> {
    match container {
        Value::Array(x) => x.clone(),
        Value::Ints(x) => x.iter().map(|i| Value::Int(*i)).collect(),
        Value::Reals(x) | Value::Vector(x) | Value::RowVector(x) => {
            x.iter().map(|x| Value::Real(*x)).collect()
        }
        Value::Matrix(m) => m.data().iter().map(|x| Value::Real(*x)).collect(),
        Value::ComplexVector(x) | Value::ComplexRowVector(x) => {
            x.iter().map(|x| Value::Complex(*x)).collect()
        }
        Value::ComplexMatrix(m) => m.data().iter().map(|x| Value::Complex(*x)).collect(),
        scalar => vec![scalar.clone()],
    }
}
