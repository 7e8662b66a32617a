//! Vectorises the iterations of a loop. The body is lowered only once, and each scalar in the body becomes a vector
//! over the iterations.
//!
//! During lowering, the values in the body are columns with one value per iteration, like the columns of exchangeable
//! records. Each iteration selects its own data. Conditions on data become masks, which exclude iterations from a part
//! of the body. Afterwards, every column that is still needed becomes a plain vector ([`plain`]), so the result is the
//! graph of a vectorised program. If an iteration needs a result of an earlier iteration, or if the body has no
//! vectorised form, this work is discarded and the loop is unrolled. Unrolling also finds the iteration that causes an
//! error.
//!
//! | file | subject |
//! | --- | --- |
//! | `plain` | columns as plain vectors |
//! | `overlay` | containers that iterations write to, and variables that one iteration passes to the next |
//! | `nested` | nested loops |
//! | `ragged` | slices whose length differs from iteration to iteration |

mod nested;
mod overlay;
mod plain;
mod ragged;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use jensen_graph::NodeId;

use self::overlay::Logged;
use super::Lower;
use super::expr::Condition;
use super::stmt::Flow;
use crate::program::{Expr, ExprKind, Index, Span, Stmt, StmtKind, VarId};
use crate::symbolic::index;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::{ErrorKind, Eval, EvalError, FnError};

/// Loops with fewer iterations are unrolled.
const FEW: usize = 48;

/// An inner loop with at most this many iterations is unrolled within each iteration of the outer loop.
const SHORT: usize = 48;

/// The largest number of iterations that are vectorised together.
const MOST: usize = 1 << 30;

pub(super) struct Iterations<'g> {
    count: usize,
    plain: HashMap<NodeId, NodeId>,
    /// The mask that applies to the code around the loop.
    taken: Option<NodeId>,
    /// The number of returns that are pending at the start of the loop.
    exits: usize,
    /// Terms of the log density that are already summed over the iterations.
    finished: Vec<E<'g>>,
    /// Elements of containers that were read before they were written. Each entry contains the variable, the positions
    /// and the placeholder.
    reads: Vec<(VarId, Rc<[u32]>, NodeId)>,
    level: u32,
}

impl Iterations<'_> {
    fn new(count: usize, taken: Option<NodeId>, exits: usize, level: u32) -> Self {
        Iterations {
            count,
            plain: HashMap::new(),
            taken,
            exits,
            finished: Vec::new(),
            reads: Vec::new(),
            level,
        }
    }
}

#[derive(Default)]
pub(super) struct Turning<'g> {
    /// The current iterations, outermost first.
    iterations: Vec<Iterations<'g>>,
    /// The number of loops that have been vectorised so far. This number determines the level of the next loop.
    levels: u32,
    pub(super) turned: bool,
    /// The loops that must be unrolled, by the location of their body, with the reason.
    apart: HashMap<usize, Box<EvalError>>,
    /// The placeholders for a variable's value after the previous iteration.
    stand_ins: BTreeMap<NodeId, VarId>,
    log: Vec<Logged>,
    befores: BTreeMap<VarId, Sym>,
    slices: ragged::Slices,
}

struct Before {
    slots: Vec<Option<Sym>>,
    terms: usize,
    exits: usize,
    guards: usize,
    scattered: usize,
    rotated: usize,
    taken: Option<NodeId>,
    unrolling: bool,
    site_base: u32,
    drop_constants: bool,
    address: crate::functions::random::Address,
    loops: usize,
}

impl<'g> Lower<'_, 'g> {
    pub(super) fn in_iterations(&self) -> bool {
        !self.turning.iterations.is_empty()
    }

    /// Returns `None` if the iterations must be unrolled. `element` computes the loop variable from the column of its
    /// values.
    pub(super) fn together(
        &mut self,
        var: VarId,
        (from, to): (i32, i32),
        body: &Stmt,
        span: Span,
        element: impl FnOnce(&mut Self, Sym) -> Eval<Sym>,
    ) -> Eval<bool> {
        let trips = usize::try_from(i64::from(to) - i64::from(from) + 1).unwrap_or(0);
        let key = std::ptr::from_ref(body) as usize;
        let fits = (FEW..MOST).contains(&trips);
        if !fits
            || self.axis.is_some()
            || self.in_iterations()
            || self.turning.apart.contains_key(&key)
        {
            return Ok(false);
        }
        let before = self.before();
        let result = self.nested(span, |lower| {
            let numbers: Vec<f64> = (from..=to).map(f64::from).collect();
            lower.enter(trips);
            let column = lower.tape.column(&numbers).into();
            let value = element(lower, column)?;
            lower.slots[var.0 as usize] = Some(value);
            lower.take_together(var, body, span, &before)
        });
        self.tape.records.set(None);
        match result {
            Ok(()) => {
                self.turning.turned = true;
                self.slots[var.0 as usize] = None;
                Ok(true)
            }
            Err(error) => {
                // After an interrupt, the loop must not be tried again by unrolling.
                self.halt.check(span)?;
                self.put_back(before);
                self.turning.apart.insert(key, error);
                Ok(false)
            }
        }
    }

    pub(super) fn taken_apart(&self, body: &Stmt) -> Option<EvalError> {
        let key = std::ptr::from_ref(body) as usize;
        let why = self.turning.apart.get(&key)?;
        Some((**why).clone())
    }

    fn before(&self) -> Before {
        let tape = self.tape;
        Before {
            slots: self.slots.clone(),
            terms: self.terms.len(),
            exits: self.exits.len(),
            guards: tape.guards.borrow().len(),
            scattered: tape.scattered.borrow().len(),
            rotated: tape.rotated.borrow().len(),
            taken: tape.taken.get(),
            unrolling: tape.unrolling.get(),
            site_base: self.site_base,
            drop_constants: self.drop_constants,
            address: self.address,
            loops: self.loops.len(),
        }
    }

    fn put_back(&mut self, before: Before) {
        let tape = self.tape;
        self.turning.iterations.clear();
        self.turning.log.clear();
        self.turning.befores.clear();
        self.turning.slices.clear();
        self.slots = before.slots;
        self.terms.truncate(before.terms);
        self.exits.truncate(before.exits);
        tape.guards.borrow_mut().truncate(before.guards);
        tape.scattered.borrow_mut().truncate(before.scattered);
        tape.rotated.borrow_mut().truncate(before.rotated);
        tape.taken.set(before.taken);
        tape.unrolling.set(before.unrolling);
        tape.fault.borrow_mut().take();
        self.site_base = before.site_base;
        self.drop_constants = before.drop_constants;
        self.address = before.address;
        self.loops.truncate(before.loops);
        self.turning.turned = true;
    }

    fn enter(&mut self, count: usize) {
        let tape = self.tape;
        tape.records.set(Some(count));
        tape.unrolling.set(false);
        self.turning.levels += 1;
        let iterations = Iterations::new(
            count,
            tape.taken.get(),
            self.exits.len(),
            self.turning.levels,
        );
        self.turning.iterations.push(iterations);
    }

    pub(super) fn iteration_count(&self) -> usize {
        self.turning
            .iterations
            .last()
            .map_or(0, |iterations| iterations.count)
    }

    fn take_together(&mut self, var: VarId, body: &Stmt, span: Span, before: &Before) -> Eval<()> {
        let carried = self.stand_in(body, Some(var), span)?;
        self.iteration(body)?;
        self.fault(span)?;
        if self.exits.len() > before.exits {
            return Err(one_by_one("an iteration can end the function").at(span));
        }
        let tape = self.tape;
        tape.unrolling.set(before.unrolling);
        let fail = |e: FnError| e.at(span);
        let after = self.settle(&carried, before).map_err(fail)?;
        self.turning.iterations.clear();
        self.slots = before.slots.clone();
        tape.records.set(None);
        for (var, value) in after {
            self.slots[var.0 as usize] = Some(value);
        }
        for (var, value) in self.written(&carried).map_err(fail)? {
            self.slots[var.0 as usize] = Some(value);
        }
        Ok(())
    }

    pub(super) fn iteration(&mut self, body: &Stmt) -> Eval<()> {
        match &body.kind {
            StmtKind::Block(stmts) => self.nested(body.span, |lower| lower.iteration_of(stmts)),
            _ => self.iteration_of(std::slice::from_ref(body)),
        }
    }

    /// Code after a conditional `continue` applies only to the iterations that do not execute the `continue`.
    fn iteration_of(&mut self, stmts: &[Stmt]) -> Eval<()> {
        for (i, stmt) in stmts.iter().enumerate() {
            if let StmtKind::If {
                condition,
                then,
                otherwise: None,
            } = &stmt.kind
                && ends(then)
            {
                self.step(stmt.span)?;
                match self.condition(condition)? {
                    Condition::Known(false) => continue,
                    Condition::Known(true) => {
                        self.stmt(then)?;
                        return Ok(());
                    }
                    Condition::Depends(c) => {
                        let rest = &stmts[i + 1..];
                        let within: Vec<&Stmt> =
                            std::iter::once(&**then).chain(rest.iter()).collect();
                        if self.parted(
                            c,
                            &within,
                            stmt.span,
                            |lower| lower.iteration(then),
                            |lower| lower.iteration_of(rest),
                        )? {
                            return Ok(());
                        }
                        let mut vars = self.assigned_in(then).to_vec();
                        rest.iter()
                            .for_each(|s| vars.extend(self.assigned_in(s).iter()));
                        self.nested(stmt.span, |lower| {
                            lower.sides(
                                c,
                                condition,
                                vars,
                                |lower| lower.stmt(then).map(|_| Flow::Next),
                                |lower| lower.iteration_of(rest).map(|()| Flow::Next),
                            )
                        })?;
                        return Ok(());
                    }
                }
            }
            match self.stmt(stmt)? {
                Flow::Next => {}
                Flow::Continue => return Ok(()),
                Flow::Break | Flow::Return(_) => {
                    return Err(one_by_one("an iteration can end the loop").at(stmt.span));
                }
            }
        }
        Ok(())
    }

    fn settle(
        &mut self,
        carried: &overlay::Carried,
        before: &Before,
    ) -> crate::value::error::FnResult<Vec<(VarId, Sym)>> {
        let tape = self.tape;
        let count = self.iteration_count();
        self.resolve_reads()?;
        let own = self.terms.split_off(before.terms);
        let guards = tape.guards.borrow_mut().split_off(before.guards);
        let scattered = tape.scattered.borrow_mut().split_off(before.scattered);
        let rotated = tape.rotated.borrow_mut().split_off(before.rotated);
        let mut roots: Vec<NodeId> = Vec::new();
        for id in own {
            let term = tape.e(id);
            let sum = if term.is_record() {
                self.plain(id)?.sum()
            } else {
                term * count as f64
            };
            roots.push(sum.id);
            self.terms.push(sum.id);
        }
        if let Some(iterations) = self.turning.iterations.last_mut() {
            let finished = std::mem::take(&mut iterations.finished);
            roots.extend(finished.iter().map(|e| e.id));
            self.terms.extend(finished.iter().map(|e| e.id));
        }
        for id in guards {
            let bad = if tape.e(id).is_record() {
                self.plain(id)?.sum()
            } else {
                tape.e(id)
            };
            match bad.scalar() {
                Some(0.0) => {}
                Some(_) => return Err(one_by_one("an iteration rejects every parameter value")),
                None => {
                    roots.push(bad.id);
                    tape.guards.borrow_mut().push(bad.id);
                }
            }
        }
        let mut after = carried.counted();
        for changed in self.scalars_after(carried)? {
            let all = match changed.before {
                Some(_) => self.summed(changed.by)?,
                None => self.last(changed.by)?,
            };
            let (var, value) = self.changed(&changed, all)?;
            roots.push(value.e(tape)?.id);
            after.push((var, value));
        }
        roots.extend(self.log_writes(carried)?);
        self.no_stand_ins(&roots)?;
        for mut one in scattered {
            for id in one.nodes_mut() {
                *id = self.plain(*id)?.id;
            }
            if self.no_stand_ins(&one.nodes()).is_ok() {
                tape.scattered.borrow_mut().push(one);
            }
        }
        for (a, b) in rotated {
            let both = (self.plain(a)?.id, self.plain(b)?.id);
            tape.rotated.borrow_mut().push(both);
        }
        Ok(after)
    }

    pub(super) fn indexed_in_iterations(
        &mut self,
        expr: &Expr,
        base: &Expr,
        indices: &[Index],
    ) -> Eval<Sym> {
        let given = self.given(indices)?;
        let value = match &base.kind {
            ExprKind::Var(var) => match &self.slots[var.0 as usize] {
                Some(value) => value.clone(),
                None => return Err(FnError::invalid("no value yet").at(base.span)),
            },
            _ => self.expr(base)?,
        };
        self.site(expr);
        let fail = |e: FnError| e.at(expr.span);
        if let Sym::Overlay(overlay) = &value {
            let part = self.part_of(&overlay.dims, &given).map_err(fail)?;
            return self.read_part(overlay, &part).map_err(fail);
        }
        match self.plain_indices(&given) {
            Some(idx) => {
                let idx = idx.map_err(fail)?;
                index::get(self.tape, &value, &idx, Some(&expr.ty)).map_err(fail)
            }
            None => self.picked(&value, &given).map_err(fail),
        }
    }

    /// Whether a condition or a pending return inside the loop excludes iterations from the current code.
    fn masked(&self) -> bool {
        self.turning.iterations.last().is_none_or(|iterations| {
            self.tape.taken.get() != iterations.taken || self.exits.len() > iterations.exits
        })
    }
}

fn ends(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Continue => true,
        StmtKind::Block(stmts) => stmts.last().is_some_and(ends),
        _ => false,
    }
}

pub(super) fn continues(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Continue => true,
        StmtKind::Block(stmts) | StmtKind::Profile(_, stmts) => stmts.iter().any(continues),
        StmtKind::If {
            then, otherwise, ..
        } => continues(then) || otherwise.as_ref().is_some_and(|stmt| continues(stmt)),
        _ => false,
    }
}

/// Whether a statement may leave the enclosing loop or function early.
fn returns(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Return(_) | StmtKind::Break => true,
        StmtKind::If {
            then, otherwise, ..
        } => returns(then) || otherwise.as_ref().is_some_and(|stmt| returns(stmt)),
        StmtKind::While { body, .. }
        | StmtKind::For { body, .. }
        | StmtKind::ForEach { body, .. } => returns(body),
        StmtKind::Block(stmts) | StmtKind::Profile(_, stmts) => stmts.iter().any(returns),
        _ => false,
    }
}

fn one_by_one(why: &str) -> FnError {
    FnError {
        kind: ErrorKind::Records,
        message: why.into(),
    }
}
