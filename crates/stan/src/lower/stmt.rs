//! Lowers statements.

use super::expr::Condition;
use super::iterations::continues;
use super::records::Given;
use super::{Lower, Unrolled};
use crate::program::{
    Access, Assign, Callee, Decl, Expr, LValue, Level, Message, SizedType, Span, Stmt, StmtKind,
    Tilde, Truncation, VarId, VariablePart,
};
use crate::symbolic::functions::{elementwise, operators};
use crate::symbolic::index::{self, Step};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Leaf, Sym};
use crate::value::Value;
use crate::value::error::{Eval, EvalError, FnError, MAX_VALUE_BYTES, check_bytes};
use crate::value::index::Idx;
use crate::value::sized::Sized;

#[derive(Clone, Debug)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    Return(Option<Sym>),
}

/// The smallest number of bytes that a number needs in memory.
const BYTES: usize = 16;

impl<'g> Lower<'_, 'g> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Eval<Flow> {
        for stmt in stmts {
            match self.stmt(stmt)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) -> Eval<Flow> {
        self.step(stmt.span)?;
        match &stmt.kind {
            StmtKind::Decl(decl) => self.declare(decl, stmt.span)?,
            StmtKind::Assign(assign) => self.assign(assign, stmt.span)?,
            StmtKind::TargetPlus(e) => self.add_to_target(e)?,
            StmtKind::JacobianPlus(e) => {
                if self.options.jacobian {
                    self.add_to_target(e)?;
                }
            }
            StmtKind::Tilde(tilde) => self.tilde(tilde, stmt.span)?,
            StmtKind::Call(call) => {
                let args = self.exprs(&call.args)?;
                let drop = call.unnormalised && self.drop_constants;
                if let Callee::User(id) = call.callee {
                    let site = self.program.expr_count.wrapping_add(stmt.span.start);
                    self.call_user(id, args, drop, stmt.span, site)?;
                }
            }
            StmtKind::Print(_) | StmtKind::Empty => {}
            StmtKind::Reject(parts) => return Err(self.reject("reject", parts, stmt.span)),
            StmtKind::FatalError(parts) => {
                return Err(self.reject("fatal_error", parts, stmt.span));
            }
            StmtKind::If {
                condition,
                then,
                otherwise,
            } => {
                return match self.condition(condition)? {
                    Condition::Known(true) => self.inner(then),
                    Condition::Known(false) => {
                        otherwise.as_ref().map_or(Ok(Flow::Next), |s| self.inner(s))
                    }
                    Condition::Depends(c) => self.nested(stmt.span, |lower| {
                        let within: Vec<&Stmt> = std::iter::once(&**then)
                            .chain(otherwise.as_deref())
                            .collect();
                        let parted = !within.iter().any(|side| continues(side))
                            && lower.parted(
                                c,
                                &within,
                                stmt.span,
                                |lower| lower.iteration(then),
                                |lower| {
                                    otherwise
                                        .as_ref()
                                        .map_or(Ok(()), |stmt| lower.iteration(stmt))
                                },
                            )?;
                        if parted {
                            return Ok(Flow::Next);
                        }
                        lower.branch(c, condition, then, otherwise.as_deref())
                    }),
                };
            }
            StmtKind::While { condition, body } => {
                return self.while_loop(condition, body, stmt.span);
            }
            StmtKind::For {
                var,
                lower,
                upper,
                body,
            } => {
                return self.for_loop(*var, (lower, upper), body, stmt.span);
            }
            StmtKind::ForEach {
                var,
                container,
                body,
            } => return self.for_each(*var, container, body, stmt.span),
            StmtKind::Block(body) | StmtKind::Profile(_, body) => {
                return self.nested(stmt.span, |lower| lower.stmts(body));
            }
            StmtKind::Break => return Ok(Flow::Break),
            StmtKind::Continue => return Ok(Flow::Continue),
            StmtKind::Return(value) => {
                return Ok(Flow::Return(match value {
                    Some(e) => Some(self.expr(e)?),
                    None => None,
                }));
            }
        }
        Ok(Flow::Next)
    }

    fn inner(&mut self, stmt: &Stmt) -> Eval<Flow> {
        self.nested(stmt.span, |lower| lower.stmt(stmt))
    }

    fn reject(
        &self,
        what: &str,
        parts: &[Message],
        span: Span,
    ) -> Box<crate::value::error::EvalError> {
        let text: Vec<&str> = parts
            .iter()
            .map(|part| match part {
                Message::Text(text) => text.as_str(),
                Message::Value(_) => "…",
            })
            .collect();
        FnError::domain(format!("{what}: {}", text.concat())).at(span)
    }

    fn for_loop(
        &mut self,
        var: VarId,
        (lower, upper): (&Expr, &Expr),
        body: &Stmt,
        span: Span,
    ) -> Eval<Flow> {
        if self.axis.is_some() && self.over_records(lower, upper)? {
            let index = self.record_index();
            return self.record_loop(var, index, body, span);
        }
        if self.in_iterations() {
            let bounds = (self.expr(lower)?, self.expr(upper)?);
            if self.loop_in_iterations(var, (&bounds.0, &bounds.1), body, span)? {
                return Ok(Flow::Next);
            }
        }
        let (from, to) = (self.loop_bound(lower)?, self.loop_bound(upper)?);
        if self.together(var, (from, to), body, span, |_, index| Ok(index))? {
            return Ok(Flow::Next);
        }
        let trips = (i64::from(to) - i64::from(from) + 1).max(0) as usize;
        let what = format!("for ({} in …)", self.program.var(var).name);
        let apart = self.taken_apart(body);
        self.unrolled(what, trips, span, apart, |lower| {
            lower.iterations(var, (from..=to).map(Sym::Int), body)
        })
    }

    fn loop_bound(&mut self, expr: &Expr) -> Eval<i32> {
        let value = self.expr(expr)?;
        match value {
            Sym::Scalar(_) if self.axis.is_none() => Err(FnError::unsupported(
                "loop bounds that depend on parameters are not supported yet in the log density",
            )
            .at(expr.span)),
            other => other.int().map_err(|e| e.at(expr.span)),
        }
    }

    fn unrolled(
        &mut self,
        what: String,
        trips: usize,
        span: Span,
        apart: Option<EvalError>,
        body: impl FnOnce(&mut Self) -> Eval<Flow>,
    ) -> Eval<Flow> {
        self.loops.push(Unrolled {
            span,
            what,
            trips,
            apart,
        });
        let outer = self
            .tape
            .unrolling
            .replace(self.tape.unrolling.get() || trips > 1);
        let result = self.nested(span, body);
        self.tape.unrolling.set(outer);
        self.loops.pop();
        result
    }

    fn iterations(
        &mut self,
        var: VarId,
        values: impl Iterator<Item = Sym>,
        body: &Stmt,
    ) -> Eval<Flow> {
        let mut end = Flow::Next;
        let outside = self.address;
        for (iteration, value) in (0..).zip(values) {
            self.step(body.span)?;
            self.address = outside.iteration(iteration);
            self.slots[var.0 as usize] = Some(value);
            match self.stmt(body)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => break,
                flow @ Flow::Return(_) => {
                    end = flow;
                    break;
                }
            }
        }
        self.address = outside;
        self.slots[var.0 as usize] = None;
        Ok(end)
    }

    fn while_loop(&mut self, condition: &Expr, body: &Stmt, span: Span) -> Eval<Flow> {
        self.unrolled("while (…)".into(), usize::MAX, span, None, |lower| {
            let outside = lower.address;
            for iteration in 0.. {
                lower.step(span)?;
                lower.address = outside.iteration(iteration);
                match lower.condition(condition)? {
                    Condition::Known(true) => {}
                    Condition::Known(false) => break,
                    Condition::Depends(_) => {
                        return Err(FnError::unsupported(
                            "a `while` condition that depends on parameters is not supported yet in the log density",
                        )
                        .at(condition.span));
                    }
                }
                match lower.stmt(body)? {
                    Flow::Next | Flow::Continue => {}
                    Flow::Break => break,
                    flow @ Flow::Return(_) => {
                        lower.address = outside;
                        return Ok(flow);
                    }
                }
            }
            lower.address = outside;
            Ok(Flow::Next)
        })
    }

    fn for_each(&mut self, var: VarId, container: &Expr, body: &Stmt, span: Span) -> Eval<Flow> {
        let value = self.expr(container)?;
        if let Sym::Records(one) = &value {
            let element = index::get(self.tape, one, &[Idx::One(1)], None);
            let element = element.map_err(|e| e.at(container.span))?;
            let element = element.of(&self.program.var(var).ty);
            return self.record_loop(var, element, body, span);
        }
        if let Ok(dims) = value.dims()
            && let Some(count) = dims.extents().first()
            && let Ok(count) = i32::try_from(*count)
            && (dims.array.len() == 1
                || dims.array.is_empty() && !matches!(dims.leaf, Leaf::Matrix(..)))
        {
            let ty = &self.program.var(var).ty;
            let at = container.span;
            let whole = value.clone();
            let element = |lower: &mut Self, index: Sym| {
                let picked = lower.picked(&whole, &[Given::One(index)]);
                picked.map(|x| x.of(ty)).map_err(|e| e.at(at))
            };
            if self.together(var, (1, count), body, span, element)? {
                return Ok(Flow::Next);
            }
        }
        let elements: Vec<Sym> = match &value {
            Sym::Array(parts) => (**parts).clone(),
            Sym::Data(data) if matches!(**data, Value::Array(_)) => match &**data {
                Value::Array(parts) => parts.iter().cloned().map(Sym::from).collect(),
                _ => Vec::new(),
            },
            other => {
                let dims = other.dims().map_err(|e| e.at(span))?;
                let count = if dims.array.is_empty() {
                    dims.size()
                } else {
                    dims.array[0]
                };
                let ints = matches!(other, Sym::Data(data) if matches!(**data, Value::Ints(_)));
                let wide = !dims.array.is_empty() && dims.size() != count;
                (0..count)
                    .map(|i| {
                        if ints || wide || !dims.array.is_empty() {
                            let at = i32::try_from(i + 1).unwrap_or(i32::MAX);
                            let ty = &self.program.var(var).ty;
                            index::get(self.tape, other, &[Idx::One(at)], Some(ty))
                        } else {
                            other.element(self.tape, i).map(Sym::from)
                        }
                    })
                    .collect::<Result<_, _>>()
                    .map_err(|e| e.at(span))?
            }
        };
        let what = format!("for ({} in …)", self.program.var(var).name);
        let apart = self.taken_apart(body);
        self.unrolled(what, elements.len(), span, apart, |lower| {
            lower.iterations(var, elements.into_iter(), body)
        })
    }

    fn declare(&mut self, decl: &Decl, span: Span) -> Eval<()> {
        let name = &self.program.var(decl.var).name;
        if let Some(ty) = self.record_type(&decl.ty, name)? {
            return self.declare_records(decl, &ty, span);
        }
        let value = match &decl.init {
            Some(init) if matches!(decl.ty, SizedType::Real | SizedType::Int) => self.expr(init)?,
            Some(init) => {
                let ty = self.resolve(&decl.ty, name)?;
                let value = self.expr(init)?;
                if let Ok(dims) = super::params::dims_of(&ty) {
                    let found = value.dims().map_err(|e| e.at(init.span))?;
                    if found != dims && (found.size() > 0 || dims.size() > 0) {
                        let message = format!(
                            "variable `{name}`: expected {}, found {}",
                            dims.describe(),
                            value.describe()
                        );
                        return Err(FnError::invalid(message).at(span));
                    }
                }
                value
            }
            None => self.resolve(&decl.ty, name)?.empty().into(),
        };
        self.slots[decl.var.0 as usize] = Some(value);
        Ok(())
    }

    pub(super) fn resolve(&mut self, ty: &SizedType, name: &str) -> Eval<Sized> {
        self.sized(ty, 1.0, name)
    }

    fn sized(&mut self, ty: &SizedType, outer: f64, name: &str) -> Eval<Sized> {
        Ok(match ty {
            SizedType::Int => Sized::Int,
            SizedType::Real => Sized::Real,
            SizedType::Complex => Sized::Complex,
            SizedType::Vector(n) => Sized::Vector(self.extent(n, outer, name)?),
            SizedType::RowVector(n) => Sized::RowVector(self.extent(n, outer, name)?),
            SizedType::ComplexVector(n) => Sized::ComplexVector(self.extent(n, outer, name)?),
            SizedType::ComplexRowVector(n) => Sized::ComplexRowVector(self.extent(n, outer, name)?),
            SizedType::Matrix(n, m) => {
                let n = self.extent(n, outer, name)?;
                Sized::Matrix(n, self.extent(m, outer * n as f64, name)?)
            }
            SizedType::ComplexMatrix(n, m) => {
                let n = self.extent(n, outer, name)?;
                Sized::ComplexMatrix(n, self.extent(m, outer * n as f64, name)?)
            }
            SizedType::Array(n, inner) => {
                // Unless an element is a number, it is stored as a value of its own.
                let copies = match **inner {
                    SizedType::Int | SizedType::Real => outer,
                    _ => outer * (size_of::<Sym>() as f64 / BYTES as f64),
                };
                let n = self.extent(n, copies, name)?;
                Sized::Array(n, Box::new(self.sized(inner, outer * n as f64, name)?))
            }
            SizedType::Tuple(parts) => Sized::Tuple(
                parts
                    .iter()
                    .map(|(ty, _)| self.sized(ty, outer, name))
                    .collect::<Eval<_>>()?,
            ),
        })
    }

    fn extent(&mut self, size: &Expr, outer: f64, name: &str) -> Eval<usize> {
        let n = self.int(size)?;
        let count = usize::try_from(n).map_err(|_| {
            let message =
                format!("variable `{name}`: expected a size that is not negative, found {n}");
            FnError::invalid(message).at(size.span)
        })?;
        check_bytes(
            &format!("variable `{name}`"),
            outer.max(1.0) * f64::from(n),
            BYTES,
            MAX_VALUE_BYTES,
        )
        .map_err(|e| e.at(size.span))?;
        Ok(count)
    }

    fn assign(&mut self, assign: &Assign, span: Span) -> Eval<()> {
        let value = self.expr(&assign.rhs)?;
        if let LValue::Part(part) = &assign.target
            && let Some(Sym::Overlay(_)) = &self.slots[part.var.0 as usize]
        {
            self.site(&assign.rhs);
            return self.write_overlay(part, assign.op, value, span);
        }
        let value = match (assign.op, &assign.target) {
            (Some(op), LValue::Part(part)) => {
                let path = self.path(part)?;
                let old = match &self.slots[part.var.0 as usize] {
                    Some(Sym::Records(one)) => {
                        let old = index::get_path(self.tape, one, &path);
                        self.of_records(old.map_err(|e| e.at(part.span))?, &path)
                    }
                    Some(whole) => {
                        index::get_path(self.tape, whole, &path).map_err(|e| e.at(part.span))?
                    }
                    None => return Err(FnError::invalid("no value yet").at(part.span)),
                };
                let result = match (old.known(), value.known()) {
                    (Some(x), Some(y)) => crate::value::ops::binary(op, &x, &y).map(Sym::from),
                    _ => {
                        self.site(&assign.rhs);
                        self.binary_of_records(op, &old, &value).unwrap_or_else(|| {
                            operators::binary(&self.cx(op.symbol()), op, &old, &value)
                        })
                    }
                };
                let value = result.map_err(|e| e.at(span))?.promote(&part.ty);
                self.fault(span)?;
                drop(old);
                return self.store(part, &path, value);
            }
            _ => value,
        };
        self.assign_to(&assign.target, value, span)
    }

    fn assign_to(&mut self, target: &LValue, value: Sym, span: Span) -> Eval<()> {
        match target {
            LValue::Part(part) => {
                let path = self.path(part)?;
                self.store(part, &path, value)
            }
            LValue::Tuple(parts) => {
                for (k, part) in parts.iter().enumerate() {
                    let component = index::component(&value, k).map_err(|e| e.at(span))?;
                    self.assign_to(part, component, span)?;
                }
                Ok(())
            }
        }
    }

    fn path(&mut self, part: &VariablePart) -> Eval<Vec<Step>> {
        let mut ty = self.program.var(part.var).ty.clone();
        let mut steps = Vec::with_capacity(part.path.len());
        for access in &part.path {
            match access {
                Access::Component(k) => {
                    if let crate::program::Type::Tuple(parts) = &ty {
                        ty = parts
                            .get(*k as usize)
                            .cloned()
                            .unwrap_or(crate::program::Type::Void);
                    }
                    steps.push(Step::Component(*k as usize));
                }
                Access::Index(indices) => {
                    let idx = if self.axis.is_some() {
                        let over = steps.is_empty()
                            && matches!(self.slots[part.var.0 as usize], Some(Sym::Records(_)));
                        self.indices_of_part(indices, over, part.span)?
                    } else {
                        self.indices(indices)?
                    };
                    ty = part_type(&ty, &idx);
                    steps.push(Step::Index(idx, ty.clone()));
                }
            }
        }
        Ok(steps)
    }

    fn store(&mut self, part: &VariablePart, path: &[Step], value: Sym) -> Eval<()> {
        let tape = self.tape;
        if matches!(self.slots[part.var.0 as usize], Some(Sym::Records(_))) {
            return self.store_records(part, path, value);
        }
        if matches!(value, Sym::Records(_)) {
            return Err(crate::symbolic::value::interacting().at(part.span));
        }
        match &mut self.slots[part.var.0 as usize] {
            Some(slot) => {
                index::set_path(tape, slot, path, value).map_err(|e| e.at(part.span))?;
                if matches!(slot, Sym::Real(_) | Sym::Data(_)) {
                    *slot = slot.clone().of(&self.program.var(part.var).ty);
                }
                Ok(())
            }
            None => Err(FnError::invalid("no value yet").at(part.span)),
        }
    }

    fn add_to_target(&mut self, e: &Expr) -> Eval<()> {
        let value = self.expr(e)?;
        self.site(e);
        let cx = self.cx("target");
        let sum = |value: &Sym| crate::symbolic::functions::reduce::sum(&cx, value);
        let total = match &value {
            Sym::Records(one) => sum(one).map(E::sum_records),
            value => sum(value),
        };
        self.add_term(total.map_err(|err| err.at(e.span))?, e.span)
    }

    fn tilde(&mut self, tilde: &Tilde, span: Span) -> Eval<()> {
        if tilde.truncation.is_none() {
            let (callee, drop) = (tilde.callee, self.drop_constants);
            if let Some(sum) = self.over_slices(callee, &tilde.args, drop, span)? {
                return self.add_term(sum.e(self.tape).map_err(|e| e.at(span))?, span);
            }
        }
        let args = self.exprs(&tilde.args)?;
        let levels: Vec<Level> = tilde.args.iter().map(|a| a.level).collect();
        let Some(first) = tilde.args.first() else {
            return Err(FnError::invalid("a density without arguments").at(span));
        };
        self.site(first);
        let drop = self.drop_constants;
        // The arguments have their own sites. The density gets the site of a node that occurs nowhere else.
        let site = first
            .id
            .0
            .wrapping_add(self.program.expr_count)
            .wrapping_add(1);
        let mixed = self.site_base.wrapping_mul(0x9e37_79b9) ^ site;
        self.tape.graph.borrow_mut().set_site(mixed);
        let lp = self.apply(tilde.callee, &args, &levels, drop, span, site);
        self.fault(span)?;
        let lp = lp?.e(self.tape).map_err(|e| e.at(span))?;
        self.add_term(lp, span)?;
        if let Some(truncation) = &tilde.truncation {
            if args.iter().any(|arg| matches!(arg, Sym::Records(_))) {
                let ones: Vec<Sym> = args.iter().map(Sym::one_record).collect();
                return self.terms_of_records(span, |lower| {
                    lower.tape.graph.borrow_mut().set_site(mixed);
                    lower.truncate(tilde, truncation, &ones, &levels, span)
                });
            }
            self.tape.graph.borrow_mut().set_site(mixed);
            self.truncate(tilde, truncation, &args, &levels, span)?;
        }
        Ok(())
    }

    fn truncate(
        &mut self,
        tilde: &Tilde,
        truncation: &Truncation,
        args: &[Sym],
        levels: &[Level],
        span: Span,
    ) -> Eval<()> {
        let tape = self.tape;
        let discrete = self.program.callee_name(tilde.callee).ends_with("_lpmf");
        let bound = |lower: &mut Self, e: &Option<Expr>| -> Eval<Option<Sym>> {
            let bound = e.as_ref().map(|e| lower.expr(e)).transpose()?;
            Ok(bound.map(|bound| bound.one_record()))
        };
        let lower = bound(self, &truncation.lower)?;
        let upper = bound(self, &truncation.upper)?;
        let fail = |e: FnError| e.at(span);
        let mut n = 1;
        let mut each = 1;
        for (i, arg) in args.iter().enumerate().filter(|(_, a)| !a.is_scalar()) {
            n = arg.dims().map_err(fail)?.size();
            if i > 0 {
                each = n;
            }
        }
        if n == 0 {
            return Ok(());
        }
        // The log density is −∞ outside the bounds.
        let x = args[0].e(tape).map_err(fail)?;
        let range = crate::symbolic::known::range(x);
        let mut outside: Vec<E<'g>> = Vec::new();
        if let Some(low) = &lower {
            let low = low.e(tape).map_err(fail)?;
            if low
                .scalar()
                .is_none_or(|low| range.low < low || range.low.is_nan())
            {
                outside.push(x.lt(low).sum());
            }
        }
        if let Some(high) = &upper {
            let high = high.e(tape).map_err(fail)?;
            if high
                .scalar()
                .is_none_or(|high| range.high > high || range.high.is_nan())
            {
                outside.push(high.lt(x).sum());
            }
        }
        let outside = tape.add_all(&outside);
        if outside.scalar() != Some(0.0) {
            let (zero, never) = (tape.constant(0.0), tape.constant(f64::NEG_INFINITY));
            self.terms.push(outside.select(never, zero).id);
        }
        let below = match (&lower, discrete) {
            (Some(Sym::Int(i)), true) => Some(Sym::Int(i.saturating_sub(1))),
            (low, _) => low.clone(),
        };
        let repeats = (n / each) as f64;
        for i in 0..each {
            let mut rest = Vec::with_capacity(args.len());
            for arg in &args[1..] {
                rest.push(if arg.is_scalar() {
                    arg.clone()
                } else {
                    arg.element(tape, i).map(Sym::from).map_err(fail)?
                });
            }
            let mut tail = |callee: Callee, bound: &Sym| -> Eval<E<'g>> {
                let mut all = vec![bound.clone()];
                all.extend(rest.iter().cloned());
                let value = self.apply(callee, &all, levels, false, span, span.start)?;
                value.e(tape).map_err(fail)
            };
            let mass = match (&below, &upper) {
                (Some(low), Some(high)) => {
                    let (high, low) = (tail(truncation.lcdf, high)?, tail(truncation.lcdf, low)?);
                    elementwise::log_diff_exp(high, low)
                }
                (Some(low), None) => tail(truncation.lccdf, low)?,
                (None, Some(high)) => tail(truncation.lcdf, high)?,
                (None, None) => tape.constant(0.0),
            };
            self.terms.push((-(repeats * mass)).id);
        }
        Ok(())
    }
}

fn part_type(ty: &crate::program::Type, idx: &[Idx]) -> crate::program::Type {
    use crate::program::Type;
    let Some((first, rest)) = idx.split_first() else {
        return ty.clone();
    };
    let one = matches!(first, Idx::One(_));
    match ty {
        Type::Array(inner) => {
            let inner = part_type(inner, rest);
            if one { inner } else { inner.array(1) }
        }
        Type::Vector | Type::RowVector if one => Type::Real,
        Type::ComplexVector | Type::ComplexRowVector if one => Type::Complex,
        Type::Matrix | Type::ComplexMatrix => {
            let column = matches!(rest.first(), Some(Idx::One(_)));
            let complex = *ty == Type::ComplexMatrix;
            match (one, column, complex) {
                (true, true, false) => Type::Real,
                (true, false, false) => Type::RowVector,
                (false, true, false) => Type::Vector,
                (true, true, true) => Type::Complex,
                (true, false, true) => Type::ComplexRowVector,
                (false, true, true) => Type::ComplexVector,
                (false, false, _) => ty.clone(),
            }
        }
        other => other.clone(),
    }
}
