//! Checks statements.

use super::call::Candidate;
use super::expr::operation;
use super::{Checker, Checking, Poison, suggest, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::program::signatures::BuiltinId;
use crate::program::{
    Access, Assign, Expr, ExprKind, Index, LValue, Level, Message, Stmt, StmtKind, VariablePart,
};
use crate::program::{Tilde, Truncation, Type, VarId, VarKind};
use crate::source::Span;
use crate::spelling;
use crate::syntax::ast::{self, InfixOp};

impl Checker {
    pub(super) fn statements(&mut self, statements: &[ast::Stmt]) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(statements.len());
        let mut left: Option<Span> = None;
        for statement in statements {
            if let Some(span) = left.take() {
                self.report(
                    Diagnostic::warning(
                        Code::Unreachable,
                        statement.span,
                        "no path of the program reaches this",
                    )
                    .also(span, "control leaves here"),
                );
            }
            if let Ok(checked) = self.statement(statement) {
                out.push(checked);
            }
            if matches!(
                statement.kind,
                ast::StmtKind::Return(_)
                    | ast::StmtKind::Break
                    | ast::StmtKind::Continue
                    | ast::StmtKind::Reject(_)
                    | ast::StmtKind::FatalError(_)
            ) {
                left = Some(statement.span);
            }
        }
        out
    }

    fn statement(&mut self, statement: &ast::Stmt) -> Checking<Stmt> {
        let span = statement.span;
        let kind = match &statement.kind {
            ast::StmtKind::Error => return Err(Poison),
            ast::StmtKind::Empty => StmtKind::Empty,
            ast::StmtKind::Decl(decl) => StmtKind::Decl(self.declaration(decl)?),
            ast::StmtKind::Assign {
                target,
                op,
                op_span,
                rhs,
            } => self.assign(target, *op, *op_span, rhs)?,
            ast::StmtKind::TargetPlus(value) => {
                let allowed = self.target_allowed(span);
                let value = self.increment(value)?;
                allowed?;
                StmtKind::TargetPlus(value)
            }
            ast::StmtKind::JacobianPlus(value) => {
                let allowed = self.jacobian_allowed(span);
                let value = self.increment(value)?;
                allowed?;
                StmtKind::JacobianPlus(value)
            }
            ast::StmtKind::Tilde {
                variate,
                dist,
                args,
                truncation,
            } => match self.as_call(variate, dist, args) {
                Some(call) if truncation.is_none() => {
                    let allowed = self.target_allowed(span);
                    let value = self.call_expr(&call, span)?;
                    allowed?;
                    StmtKind::TargetPlus(value)
                }
                _ => StmtKind::Tilde(self.tilde(variate, dist, args, truncation.as_ref(), span)?),
            },
            ast::StmtKind::Call(call) => {
                let (checked, result, _) = self.call(call, span)?;
                if result != Type::Void {
                    let message =
                        format!("the program does not use the value of `{}`", call.name.name);
                    let diagnostic = Diagnostic::error(Code::TypeMismatch, span, message)
                        .help("only functions that return nothing are called as statements");
                    return self.fail(diagnostic);
                }
                StmtKind::Call(checked)
            }
            ast::StmtKind::Print(messages) => StmtKind::Print(self.messages(messages)?),
            ast::StmtKind::Reject(messages) => StmtKind::Reject(self.messages(messages)?),
            ast::StmtKind::FatalError(messages) => StmtKind::FatalError(self.messages(messages)?),
            ast::StmtKind::If(branches, otherwise) => {
                return self.branches(branches, otherwise.as_deref(), span);
            }
            ast::StmtKind::While(condition, body) => {
                let condition = self.int_expr(condition, "a condition");
                let body = self.loop_body(body);
                StmtKind::While {
                    condition: condition?,
                    body: body?,
                }
            }
            ast::StmtKind::For(name, lower, upper, body) => {
                let lower = self.int_expr(lower, "the bound of a loop");
                let upper = self.int_expr(upper, "the bound of a loop");
                let (var, body) = self.scoped(|c| {
                    let var = c.declare(name, Ok(Type::Int), VarKind::Loop, Level::Data);
                    (var, c.loop_body(body))
                });
                StmtKind::For {
                    var: var?,
                    lower: lower?,
                    upper: upper?,
                    body: body?,
                }
            }
            ast::StmtKind::ForEach(name, container, body) => {
                self.for_each(name, container, body)?
            }
            ast::StmtKind::Block(list) => StmtKind::Block(self.scoped(|c| c.statements(list))),
            ast::StmtKind::Profile(name, list) => {
                let list = self.scoped(|c| c.statements(list));
                StmtKind::Profile(name.clone(), list)
            }
            ast::StmtKind::Break | ast::StmtKind::Continue => {
                let (word, kind) = match statement.kind {
                    ast::StmtKind::Break => ("break", StmtKind::Break),
                    _ => ("continue", StmtKind::Continue),
                };
                if self.context.loops == 0 {
                    let message = format!("`{word}` is outside any loop");
                    return self.fail(Diagnostic::error(Code::Syntax, span, message));
                }
                kind
            }
            ast::StmtKind::Return(value) => {
                StmtKind::Return(self.return_value(value.as_ref(), span)?)
            }
        };
        Ok(Stmt { kind, span })
    }

    fn branches(
        &mut self,
        branches: &[(ast::Expr, ast::Stmt)],
        otherwise: Option<&ast::Stmt>,
        span: Span,
    ) -> Checking<Stmt> {
        let checked: Vec<Checking<(Expr, Box<Stmt>)>> = branches
            .iter()
            .map(|(condition, then)| {
                let condition = self.int_expr(condition, "a condition");
                let then = self.body(then);
                Ok((condition?, then?))
            })
            .collect();
        let mut rest = otherwise.map(|s| self.body(s)).transpose()?;
        let checked = checked.into_iter().collect::<Checking<Vec<_>>>()?;
        for (at, (condition, then)) in checked.into_iter().enumerate().rev() {
            let span = match at {
                0 => span,
                _ => condition.span.to(span),
            };
            let kind = StmtKind::If {
                condition,
                then,
                otherwise: rest,
            };
            rest = Some(Box::new(Stmt { kind, span }));
        }
        rest.map(|stmt| *stmt).ok_or(Poison)
    }

    fn body(&mut self, body: &ast::Stmt) -> Checking<Box<Stmt>> {
        self.scoped(|c| c.statement(body)).map(Box::new)
    }

    fn loop_body(&mut self, body: &ast::Stmt) -> Checking<Box<Stmt>> {
        self.context.loops += 1;
        let body = self.body(body);
        self.context.loops -= 1;
        body
    }

    fn for_each(
        &mut self,
        name: &ast::Ident,
        container: &ast::Expr,
        body: &ast::Stmt,
    ) -> Checking<StmtKind> {
        let container = self.expr(container);
        let element = match &container {
            Ok(expr) => match &expr.ty {
                Type::Array(inner) => Ok((**inner).clone()),
                Type::Vector | Type::RowVector | Type::Matrix => Ok(Type::Real),
                other => {
                    let message = format!(
                        "a loop can iterate over arrays, and vectors and matrices of reals, but not {other}"
                    );
                    let mut diagnostic = Diagnostic::error(Code::TypeMismatch, expr.span, message);
                    diagnostic = match other {
                        Type::Int => diagnostic
                            .help(format!("a range is written `for ({} in 1:n)`", name.name)),
                        Type::ComplexVector | Type::ComplexRowVector | Type::ComplexMatrix => {
                            diagnostic.help("loop over the indices, or over `to_array_1d(…)`")
                        }
                        _ => diagnostic,
                    };
                    self.report(diagnostic);
                    Err(Poison)
                }
            },
            Err(_) => Err(Poison),
        };
        let level = self.block_level();
        let (var, body) = self.scoped(|c| {
            let var = c.declare(name, element, VarKind::Loop, level);
            (var, c.loop_body(body))
        });
        Ok(StmtKind::ForEach {
            var: var?,
            container: container?,
            body: body?,
        })
    }

    fn increment(&mut self, value: &ast::Expr) -> Checking<Expr> {
        let value = self.expr(value)?;
        let ok = !matches!(
            value.ty.unwind().1,
            Type::Tuple(_) | Type::Void | Type::Function(_)
        );
        if ok {
            return Ok(value);
        }
        let message = format!(
            "a value of type {} cannot be added to the log density",
            value.ty
        );
        self.fail(Diagnostic::error(Code::TypeMismatch, value.span, message))
    }

    fn messages(&mut self, messages: &[ast::Message]) -> Checking<Vec<Message>> {
        let checked: Vec<Checking<Message>> = messages
            .iter()
            .map(|message| match message {
                ast::Message::Text(text) => Ok(Message::Text(text.clone())),
                ast::Message::Value(value) => self.expr(value).map(Message::Value),
            })
            .collect();
        checked.into_iter().collect()
    }

    fn return_value(&mut self, value: Option<&ast::Expr>, span: Span) -> Checking<Option<Expr>> {
        let value = value.map(|value| self.expr(value)).transpose()?;
        let Some((_, result)) = self.context.function.clone() else {
            return self.fail(Diagnostic::error(
                Code::Return,
                span,
                "`return` is outside any function",
            ));
        };
        match (value, result) {
            (None, Type::Void) => Ok(None),
            (None, result) => {
                let message = format!("this function must return a value of type {result}");
                self.fail(Diagnostic::error(Code::Return, span, message))
            }
            (Some(_), Type::Void) => self.fail(Diagnostic::error(
                Code::Return,
                span,
                "a void function returns no value",
            )),
            (Some(value), result) => {
                if types::promotion_cost(&value.ty, &result).is_none() {
                    let message = format!("this function returns {result}, found {}", value.ty);
                    return self.fail(Diagnostic::error(Code::Return, value.span, message));
                }
                Ok(Some(self.promote(value, &result)))
            }
        }
    }

    fn assign(
        &mut self,
        target: &ast::Expr,
        op: Option<InfixOp>,
        op_span: Span,
        rhs: &ast::Expr,
    ) -> Checking<StmtKind> {
        let part = self.lvalue(target);
        let rhs = self.expr(rhs);
        let ((part, ty), rhs) = (part?, rhs?);
        self.reads_elsewhere(&part, target.span)?;
        let Some(op) = op else {
            let mut assigned = Vec::new();
            self.distinct(&part, &mut assigned)?;
            let rhs = self.assignable(rhs, &ty)?;
            return Ok(StmtKind::Assign(Assign {
                target: part,
                op: None,
                rhs,
            }));
        };
        let elementwise = matches!(op, InfixOp::EltMul | InfixOp::EltDiv);
        let found = operation(op, &ty, &rhs.ty, true).filter(|found| {
            found.left == ty
                && found.result == ty
                && !(elementwise && matches!(ty, Type::Int | Type::Real))
        });
        let Some(found) = found else {
            let symbol = op.symbol();
            let message = format!("`{symbol}=` cannot be applied to {ty} and {}", rhs.ty);
            let diagnostic = Diagnostic::error(Code::Assignment, op_span, message).note(format!(
                "it means `x = x {symbol} y`, and the result must be of type {ty}"
            ));
            return self.fail(diagnostic);
        };
        let rhs = self.promote(rhs, &found.right);
        Ok(StmtKind::Assign(Assign {
            target: part,
            op: Some(found.op),
            rhs,
        }))
    }

    fn lvalue(&mut self, target: &ast::Expr) -> Checking<(LValue, Type)> {
        if let ast::ExprKind::Tuple(parts) = &target.kind {
            let parts: Vec<_> = parts.iter().map(|part| self.lvalue(part)).collect();
            let parts: Checking<Vec<_>> = parts.into_iter().collect();
            let (values, types): (Vec<LValue>, Vec<Type>) = parts?.into_iter().unzip();
            return Ok((LValue::Tuple(values), Type::Tuple(types)));
        }
        let part = self.part(target)?;
        let ty = part.ty.clone();
        Ok((LValue::Part(part), ty))
    }

    fn part(&mut self, target: &ast::Expr) -> Checking<VariablePart> {
        let span = target.span;
        match &target.kind {
            ast::ExprKind::Name(name) => {
                let var = self.assignable_var(name, span)?;
                Ok(VariablePart {
                    var,
                    path: Vec::new(),
                    ty: self.vars[var.0 as usize].ty.clone(),
                    span,
                })
            }
            ast::ExprKind::Index(base, indices) => {
                let mut part = self.part(base)?;
                let several = |access: &Access| match access {
                    Access::Index(indices) => indices
                        .iter()
                        .any(|index| !matches!(index, Index::Single(_))),
                    Access::Component(_) => false,
                };
                if part.path.iter().any(several) {
                    let message =
                        "on the left side, no index can follow a range or several indices";
                    let diagnostic = Diagnostic::error(Code::Assignment, span, message)
                        .help("write all indices in one pair of brackets");
                    return self.fail(diagnostic);
                }
                let (indices, ty) = self.indices(&part.ty, indices, span)?;
                part.path.push(Access::Index(indices));
                Ok(VariablePart { ty, span, ..part })
            }
            ast::ExprKind::Component(base, number) => {
                let mut part = self.part(base)?;
                let (position, ty) = self.component(&part.ty, *number, span)?;
                part.path.push(Access::Component(position));
                Ok(VariablePart { ty, span, ..part })
            }
            // The parser has reported the error.
            _ => Err(Poison),
        }
    }

    fn assignable_var(&mut self, name: &str, span: Span) -> Checking<VarId> {
        let id = match self.lookup(name) {
            Some(Some(id)) => id,
            Some(None) => return Err(Poison),
            None => {
                let unknown = ast::Expr {
                    kind: ast::ExprKind::Name(name.to_owned()),
                    span,
                    height: 1,
                };
                self.expr(&unknown)?;
                return Err(Poison);
            }
        };
        let var = &self.vars[id.0 as usize];
        let declared = var.span;
        let message = match var.kind {
            VarKind::Argument { .. } => {
                format!("`{name}` is an argument of the function and cannot be assigned to")
            }
            VarKind::Loop => {
                format!("`{name}` is the variable of a loop and cannot be assigned to")
            }
            VarKind::Global if var.block != self.block_kind() => {
                let block = var.block.name();
                format!(
                    "`{name}` is declared in the `{block}` block and cannot be assigned to elsewhere"
                )
            }
            VarKind::Global | VarKind::Local => return Ok(id),
        };
        let diagnostic =
            Diagnostic::error(Code::Assignment, span, message).also(declared, "declared here");
        self.fail(diagnostic)
    }

    fn distinct(&mut self, target: &LValue, assigned: &mut Vec<VariablePart>) -> Checking<()> {
        match target {
            LValue::Tuple(parts) => parts
                .iter()
                .try_for_each(|part| self.distinct(part, assigned)),
            LValue::Part(part) => {
                let overlaps = |other: &VariablePart| {
                    let components = |part: &VariablePart| {
                        let list = part.path.iter().map_while(|access| match access {
                            Access::Component(k) => Some(*k),
                            Access::Index(_) => None,
                        });
                        list.collect::<Vec<u32>>()
                    };
                    let (a, b) = (components(part), components(other));
                    let shared = a.len().min(b.len());
                    other.var == part.var && a[..shared] == b[..shared]
                };
                if assigned.iter().any(overlaps) {
                    let name = &self.vars[part.var.0 as usize].name;
                    let message = format!("`{name}` is assigned twice");
                    return self.fail(Diagnostic::error(Code::Assignment, part.span, message));
                }
                assigned.push(part.clone());
                Ok(())
            }
        }
    }

    /// An index on the left-hand side must not read a variable to which the same left-hand side assigns.
    fn reads_elsewhere(&mut self, target: &LValue, span: Span) -> Checking<()> {
        let (mut assigned, mut read) = (Vec::new(), Vec::new());
        assigned_by(target, &mut assigned);
        target.visit(&mut |e| {
            if let ExprKind::Var(var) = e.kind {
                read.push(var);
            }
        });
        let Some(var) = assigned.iter().find(|var| read.contains(*var)) else {
            return Ok(());
        };
        let name = &self.vars[var.0 as usize].name;
        let message = format!("`{name}` is both assigned to and read on this left side");
        let diagnostic = Diagnostic::error(Code::Assignment, span, message)
            .help("give the index a name of its own first: `int i = …;`");
        self.fail(diagnostic)
    }

    /// Rewrites a `~` statement as a call of the density, for distributions that take functions.
    fn as_call(
        &self,
        variate: &ast::Expr,
        dist: &ast::Ident,
        args: &[ast::Expr],
    ) -> Option<ast::Call> {
        let takes_functions = |suffix: &str| {
            let id = BuiltinId::from_name(&format!("{}{suffix}", dist.name));
            id.is_some_and(BuiltinId::is_variadic)
        };
        takes_functions("_lpmf").then(|| ast::Call {
            name: ast::Ident {
                name: format!("{}_lupmf", dist.name),
                ..dist.clone()
            },
            args: std::iter::once(variate).chain(args).cloned().collect(),
            bar: true,
        })
    }

    fn tilde(
        &mut self,
        variate: &ast::Expr,
        dist: &ast::Ident,
        args: &[ast::Expr],
        truncation: Option<&ast::Truncation>,
        span: Span,
    ) -> Checking<Tilde> {
        let allowed = self.target_allowed(span);
        let variate = self.expr(variate);
        let rest = self.exprs(args);
        let candidates = self.distribution(dist)?;
        let mut args = vec![variate?];
        args.extend(rest?);
        allowed?;
        let types: Vec<(Type, Level)> =
            args.iter().map(|arg| (arg.ty.clone(), arg.level)).collect();
        let chosen = self.choose(&dist.name, &candidates, &types, span, "distribution")?;
        let args = self.promote_all(args, &chosen.ty.params);
        let truncation = match truncation {
            Some(truncation) => self.truncation(truncation, dist, &args)?,
            None => None,
        };
        Ok(Tilde {
            callee: chosen.callee,
            args,
            truncation,
        })
    }

    fn distribution(&mut self, dist: &ast::Ident) -> Checking<Vec<Candidate>> {
        let name = &dist.name;
        for suffix in ["_lpdf", "_lupdf", "_lpmf", "_lupmf"] {
            if let Some(stem) = name.strip_suffix(suffix) {
                let message = "a distribution after `~` has no suffix";
                let diagnostic = Diagnostic::error(Code::UnknownFunction, dist.span, message).help(
                    format!("write `~ {stem}(…)`, or `target += {name}(y | …);`"),
                );
                return self.fail(diagnostic);
            }
        }
        let mut candidates = self.candidates(&format!("{name}_lpdf"));
        candidates.extend(self.candidates(&format!("{name}_lpmf")));
        if candidates.is_empty() {
            let message = format!("there is no distribution `{name}`");
            let mut diagnostic = Diagnostic::error(Code::UnknownFunction, dist.span, message);
            if let Some(stem) = name.strip_suffix("_log") {
                diagnostic = diagnostic.help(format!("write `~ {stem}(…)`"));
            } else if let Some(meant) = spelling::closest(name, suggest::distributions()) {
                diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
            } else if self.by_name.contains_key(name) || BuiltinId::from_name(name).is_some() {
                diagnostic = diagnostic.note(format!(
                    "the function `{name}` is not a density: its name lacks _lpdf"
                ));
            }
            return self.fail(diagnostic);
        }
        Ok(candidates)
    }

    fn truncation(
        &mut self,
        written: &ast::Truncation,
        dist: &ast::Ident,
        args: &[Expr],
    ) -> Checking<Option<Truncation>> {
        let lower = written
            .lower
            .as_ref()
            .map(|e| self.bound_scalar(e))
            .transpose();
        let upper = written
            .upper
            .as_ref()
            .map(|e| self.bound_scalar(e))
            .transpose();
        let (lower, upper) = (lower?, upper?);
        let bounds: Vec<&Expr> = lower.iter().chain(&upper).collect();
        let Some(first) = bounds.first() else {
            return Ok(None);
        };
        let ty = bounds.iter().skip(1).fold(first.ty.clone(), |ty, bound| {
            types::common(&ty, &bound.ty).unwrap_or(ty)
        });
        let level = bounds.iter().map(|b| b.level).max().unwrap_or(Level::Data);
        let mut wanted = vec![(ty, level)];
        wanted.extend(args[1..].iter().map(|arg| (arg.ty.clone(), arg.level)));
        let lcdf = self.cumulative(dist, "_lcdf", &wanted, written.span)?;
        let lccdf = self.cumulative(dist, "_lccdf", &wanted, written.span)?;
        let ty = lcdf.ty.params[0].ty.clone();
        Ok(Some(Truncation {
            lower: lower.map(|e| self.promote(e, &ty)),
            upper: upper.map(|e| self.promote(e, &ty)),
            lcdf: lcdf.callee,
            lccdf: lccdf.callee,
        }))
    }

    fn bound_scalar(&mut self, expr: &ast::Expr) -> Checking<Expr> {
        let bound = self.expr(expr)?;
        if matches!(bound.ty, Type::Int | Type::Real) {
            return Ok(bound);
        }
        let message = format!(
            "a bound of truncation must be int or real, found {}",
            bound.ty
        );
        self.fail(Diagnostic::error(Code::Truncation, expr.span, message))
    }

    fn cumulative(
        &mut self,
        dist: &ast::Ident,
        suffix: &str,
        wanted: &[(Type, Level)],
        span: Span,
    ) -> Checking<Candidate> {
        let name = format!("{}{suffix}", dist.name);
        let candidates = self.candidates(&name);
        if candidates.is_empty() {
            let message = format!("`{}` cannot be truncated: there is no `{name}`", dist.name);
            return self.fail(Diagnostic::error(Code::Truncation, span, message));
        }
        self.choose(&name, &candidates, wanted, span, "function")
    }
}

fn assigned_by(target: &LValue, found: &mut Vec<VarId>) {
    match target {
        LValue::Tuple(parts) => parts.iter().for_each(|part| assigned_by(part, found)),
        LValue::Part(part) => found.push(part.var),
    }
}
