//! Lowers branches whose conditions depend on parameters. Both sides are lowered, and the graph selects between the
//! results.

use std::rc::Rc;

use jensen_graph::{ElemOp, NodeId, Op};

use super::stmt::Flow;
use super::{Exit, Lower};
use crate::program::{Expr, LValue, Span, Stmt, StmtKind, VarId};
use crate::symbolic::functions::operators::select;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::{ErrorKind, Eval, EvalError, FnError};

struct Side<'g, T> {
    outcome: Result<T, Box<EvalError>>,
    terms: E<'g>,
    /// A number that is nonzero for draws that the branch rejects.
    guard: E<'g>,
    exits: Vec<(E<'g>, Option<Sym>)>,
}

/// The search for the variable's old value descends at most this many levels into a sum.
const ADDENDS: u32 = 64;

/// Returns d if `x` was computed as `old + d`.
pub(super) fn increment<'g>(x: E<'g>, old: NodeId) -> Option<E<'g>> {
    let mut addends: Vec<E<'g>> = Vec::new();
    let mut at = x.id;
    for _ in 0..ADDENDS {
        if at == old {
            return Some(x.tape.add_all(&addends));
        }
        let (op, a, b) = {
            let g = x.tape.graph.borrow();
            match (g.op(at), g.args(at)) {
                (Op::Elem(op @ (ElemOp::Add | ElemOp::Sub)), [a, b]) => (op, *a, *b),
                _ => return None,
            }
        };
        // Nodes that depend on the old value are younger than the old value. The search follows the older of two such
        // operands.
        let reaches = |id: NodeId| id >= old;
        let (next, rest) = match op {
            ElemOp::Add if a == old || b == old => (old, x.tape.e(if a == old { b } else { a })),
            ElemOp::Add if reaches(a) && reaches(b) => (a.min(b), x.tape.e(a.max(b))),
            ElemOp::Add => (a.max(b), x.tape.e(a.min(b))),
            _ => (a, -x.tape.e(b)),
        };
        addends.push(rest);
        at = next;
    }
    None
}

/// Returns 1 where `e` is not 0, and 0 elsewhere.
pub(super) fn boolean(e: E<'_>) -> E<'_> {
    let is_comparison = matches!(
        e.tape.graph.borrow().op(e.id),
        Op::Elem(ElemOp::Lt | ElemOp::Le | ElemOp::Eq)
    );
    if is_comparison { e } else { e.not().not() }
}

impl<'g> Lower<'_, 'g> {
    fn side<T>(
        &mut self,
        condition: E<'g>,
        body: impl FnOnce(&mut Self) -> Eval<T>,
    ) -> Eval<Side<'g, T>> {
        let outside = self.narrow(condition);
        let (terms, exits) = (self.terms.len(), self.exits.len());
        let guards = self.tape.guards.borrow().len();
        let outcome = body(self);
        self.tape.taken.set(outside);
        let outcome = match outcome {
            Err(error) if error.kind != ErrorKind::Rejected => return Err(error),
            outcome => outcome,
        };
        let mut pending = Vec::new();
        while self.exits.len() > exits {
            let Some(exit) = self.exits.pop() else { break };
            self.mask(&exit);
            pending.push((exit.condition, exit.value));
        }
        pending.reverse();
        let tape = self.tape;
        let total = |ids: Vec<NodeId>| {
            let all: Vec<E<'g>> = ids.iter().map(|id| tape.e(*id)).collect();
            tape.add_all(&all)
        };
        let own_guards = tape.guards.borrow_mut().split_off(guards);
        Ok(Side {
            outcome,
            terms: total(self.terms.split_off(terms)),
            guard: total(own_guards),
            exits: pending,
        })
    }

    fn narrow(&mut self, condition: E<'g>) -> Option<NodeId> {
        let outside = self.tape.taken.get();
        let taken = match outside {
            Some(outer) => self.tape.e(outer) * condition,
            None => condition,
        };
        self.tape.taken.set(Some(taken.id));
        outside
    }

    /// Restricts the code that follows to the draws that did not return at `exit`.
    pub(super) fn mask(&mut self, exit: &Exit<'g>) {
        let tape = self.tape;
        let zero = tape.constant(0.0);
        let masked = |ids: Vec<NodeId>| -> Option<NodeId> {
            let all: Vec<E<'g>> = ids.iter().map(|id| tape.e(*id)).collect();
            let total = tape.add_all(&all);
            (total.scalar() != Some(0.0)).then(|| exit.condition.select(zero, total).id)
        };
        let terms = masked(self.terms.split_off(exit.terms));
        self.terms.extend(terms);
        let after = tape.guards.borrow_mut().split_off(exit.guards);
        let guards = masked(after);
        tape.guards.borrow_mut().extend(guards);
    }

    fn join<T, U>(&mut self, c: E<'g>, a: &Side<'g, T>, b: &Side<'g, U>) {
        let one = self.tape.constant(1.0);
        let pair = |rejected: bool, guard: E<'g>| if rejected { one } else { guard };
        let guard = c.select(
            pair(a.outcome.is_err(), a.guard),
            pair(b.outcome.is_err(), b.guard),
        );
        if guard.scalar() != Some(0.0) {
            self.tape.guards.borrow_mut().push(guard.id);
        }
        let zero = self.tape.constant(0.0);
        let kept = |rejected: bool, terms: E<'g>| if rejected { zero } else { terms };
        let terms = c.select(
            kept(a.outcome.is_err(), a.terms),
            kept(b.outcome.is_err(), b.terms),
        );
        if terms.scalar() != Some(0.0) {
            self.terms.push(terms.id);
        }
        for (condition, value) in &a.exits {
            self.push_exit(c * *condition, value.clone());
        }
        for (condition, value) in &b.exits {
            self.push_exit(c.not() * *condition, value.clone());
        }
    }

    fn push_exit(&mut self, condition: E<'g>, value: Option<Sym>) {
        self.exits.push(Exit {
            condition,
            value,
            terms: self.terms.len(),
            guards: self.tape.guards.borrow().len(),
        });
        self.narrow(condition.not());
    }

    pub(super) fn ternary(
        &mut self,
        c: E<'g>,
        expr: &Expr,
        then: &Expr,
        otherwise: &Expr,
    ) -> Eval<Sym> {
        let c = boolean(c);
        let a = self.side(c, |lower| lower.expr(then))?;
        let b = self.side(c.not(), |lower| lower.expr(otherwise))?;
        self.site(expr);
        self.join(c, &a, &b);
        match (a.outcome, b.outcome) {
            (Ok(x), Ok(y)) => select(&self.cx("?"), c, &x, &y).map_err(|e| e.at(expr.span)),
            (Ok(x), Err(_)) | (Err(_), Ok(x)) => Ok(x),
            (Err(error), Err(_)) => Err(error),
        }
    }

    pub(super) fn branch(
        &mut self,
        c: E<'g>,
        condition: &Expr,
        then: &Stmt,
        otherwise: Option<&Stmt>,
    ) -> Eval<Flow> {
        let mut vars: Vec<VarId> = self.assigned_in(then).to_vec();
        if let Some(otherwise) = otherwise {
            vars.extend(self.assigned_in(otherwise).iter());
        }
        self.sides(
            c,
            condition,
            vars,
            |lower| lower.stmt(then),
            |lower| otherwise.map_or(Ok(Flow::Next), |stmt| lower.stmt(stmt)),
        )
    }

    pub(super) fn sides(
        &mut self,
        c: E<'g>,
        condition: &Expr,
        mut vars: Vec<VarId>,
        then: impl FnOnce(&mut Self) -> Eval<Flow>,
        otherwise: impl FnOnce(&mut Self) -> Eval<Flow>,
    ) -> Eval<Flow> {
        let span = condition.span;
        self.site(condition);
        let c = boolean(c);
        vars.sort_unstable();
        vars.dedup();
        let values = |lower: &Self| -> Vec<Option<Sym>> {
            vars.iter()
                .map(|v| lower.slots[v.0 as usize].clone())
                .collect()
        };
        let before = values(self);
        let a = self.side(c, then)?;
        let after_a = values(self);
        for (var, value) in vars.iter().zip(&before) {
            self.slots[var.0 as usize] = value.clone();
        }
        let b = self.side(c.not(), otherwise)?;
        self.site(condition);
        self.join(c, &a, &b);
        let goes_on =
            |flow: &Result<Flow, _>| matches!(flow, Ok(Flow::Next | Flow::Break | Flow::Continue));
        match (goes_on(&a.outcome), goes_on(&b.outcome)) {
            (true, true) => {
                for ((var, old), x) in vars.iter().zip(before).zip(after_a) {
                    let slot = var.0 as usize;
                    let merged = match (x, self.slots[slot].take()) {
                        (Some(x), Some(y)) => {
                            let value = self.merged(c, old.as_ref(), &x, &y, span)?;
                            Some(value.of(&self.program.var(*var).ty))
                        }
                        // The variable is declared in one of the branches, so it is invisible after the branch.
                        (x, y) => x.or(y),
                    };
                    self.slots[slot] = merged;
                }
            }
            (true, false) => {
                for (var, x) in vars.iter().zip(after_a) {
                    self.slots[var.0 as usize] = x;
                }
            }
            _ => {}
        }
        self.flow(c, a.outcome, b.outcome, span)
    }

    fn merged(&mut self, c: E<'g>, old: Option<&Sym>, x: &Sym, y: &Sym, span: Span) -> Eval<Sym> {
        if let Some(Sym::Scalar(old)) = old
            && x.is_scalar()
            && y.is_scalar()
            && let (Ok(x), Ok(y)) = (x.e(self.tape), y.e(self.tape))
            && let (Some(a), Some(b)) = (increment(x, *old), increment(y, *old))
        {
            // Both sides add to the variable, so only the increment is selected, and the sum remains a single sum.
            return Ok((self.tape.e(*old) + c.select(a, b)).into());
        }
        if let (Sym::Overlay(x), Sym::Overlay(y)) = (x, y) {
            return self.merge_overlays(c, x, y).map_err(|e| e.at(span));
        }
        // Local variables of the branches may have any shape, because they are invisible after the branch.
        if let (Ok(a), Ok(b)) = (x.dims(), y.dims())
            && a != b
        {
            return Ok(y.clone());
        }
        select(&self.cx("if"), c, x, y).map_err(|e| e.at(span))
    }

    fn flow(
        &mut self,
        c: E<'g>,
        a: Result<Flow, Box<EvalError>>,
        b: Result<Flow, Box<EvalError>>,
        span: Span,
    ) -> Eval<Flow> {
        match (a, b) {
            (Err(error), Err(_)) => Err(error),
            (Err(_), Ok(flow)) | (Ok(flow), Err(_)) => Ok(flow),
            (Ok(Flow::Next), Ok(Flow::Next)) => Ok(Flow::Next),
            (Ok(Flow::Break), Ok(Flow::Break)) => Ok(Flow::Break),
            (Ok(Flow::Continue), Ok(Flow::Continue)) => Ok(Flow::Continue),
            (Ok(Flow::Return(x)), Ok(Flow::Return(y))) => Ok(Flow::Return(match (x, y) {
                (Some(x), Some(y)) => {
                    Some(select(&self.cx("return"), c, &x, &y).map_err(|e| e.at(span))?)
                }
                (x, y) => x.or(y),
            })),
            (Ok(Flow::Return(x)), Ok(other)) => {
                self.push_exit(c, x);
                Ok(other)
            }
            (Ok(other), Ok(Flow::Return(x))) => {
                self.push_exit(c.not(), x);
                Ok(other)
            }
            _ => Err(FnError::unsupported(
                "`break` and `continue` under a condition that depends on parameters are not supported yet in the log density",
            )
            .at(span)),
        }
    }

    pub(super) fn finish(
        &mut self,
        from: usize,
        outcome: Eval<Option<Sym>>,
        span: Span,
    ) -> Eval<Option<Sym>> {
        let mut value = match outcome {
            Ok(value) => value,
            Err(error) if error.kind == ErrorKind::Rejected && self.exits.len() > from => {
                // Draws that reach the end of the function without a return are rejected.
                let Some(last) = self.exits.pop() else {
                    return Err(error);
                };
                self.mask(&last);
                let rejected = last.condition.not();
                self.tape.guards.borrow_mut().push(rejected.id);
                last.value
            }
            Err(error) => return Err(error),
        };
        while self.exits.len() > from {
            let Some(exit) = self.exits.pop() else { break };
            self.mask(&exit);
            value = match (exit.value, value) {
                (Some(x), Some(y)) => Some(
                    select(&self.cx("return"), exit.condition, &x, &y).map_err(|e| e.at(span))?,
                ),
                (x, y) => x.or(y),
            };
        }
        Ok(value)
    }

    pub(super) fn assigned_in(&mut self, stmt: &Stmt) -> Rc<[VarId]> {
        let key = std::ptr::from_ref(stmt) as usize;
        if let Some(found) = self.assigned.get(&key) {
            return found.clone();
        }
        let mut vars = Vec::new();
        collect(stmt, &mut vars);
        vars.sort_unstable();
        vars.dedup();
        let vars: Rc<[VarId]> = vars.into();
        self.assigned.insert(key, vars.clone());
        vars
    }
}

fn collect(stmt: &Stmt, vars: &mut Vec<VarId>) {
    match &stmt.kind {
        StmtKind::Decl(decl) => vars.push(decl.var),
        StmtKind::Assign(assign) => targets(&assign.target, vars),
        StmtKind::If {
            then, otherwise, ..
        } => {
            collect(then, vars);
            if let Some(otherwise) = otherwise {
                collect(otherwise, vars);
            }
        }
        StmtKind::While { body, .. }
        | StmtKind::For { body, .. }
        | StmtKind::ForEach { body, .. } => {
            collect(body, vars);
        }
        StmtKind::Block(body) | StmtKind::Profile(_, body) => {
            body.iter().for_each(|stmt| collect(stmt, vars));
        }
        _ => {}
    }
}

fn targets(target: &LValue, vars: &mut Vec<VarId>) {
    match target {
        LValue::Part(part) => vars.push(part.var),
        LValue::Tuple(parts) => parts.iter().for_each(|part| targets(part, vars)),
    }
}
