//! Lowers writes of iterations to outer variables.
//!
//! An outer scalar is represented by a placeholder for its value after the previous iteration. After the loop, the
//! scalar has either increased by a sum over the iterations, or it has the value from the last iteration, which does
//! not depend on the placeholder. An outer container is represented by an overlay, which stores the indexed positions
//! together with their values. An iteration may overwrite a position that no other iteration uses. If several
//! iterations use a position, they may only add to the value at this position. A variable that is used in any other way
//! is a state that each iteration passes to the next.

use std::collections::HashSet;
use std::rc::Rc;

use jensen_graph::{NodeId, Shape};

use super::super::Lower;
use super::super::branch::increment;
use super::super::records::Given;
use super::{Iterations, one_by_one};
use crate::program::{
    Access, BinaryOp, Index, LValue, SizedType, Span, Stmt, StmtKind, Type, VarId, VariablePart,
};
use crate::symbolic::functions::operators;
use crate::symbolic::overlay::{At, Overlay};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Cell, Dims, Sym, cell_e, e_cell};
use crate::value::error::{Eval, FnError, FnResult};

/// Iterations may write at most this many elements of a container individually.
const MOST_CELLS: usize = 4096;

/// The largest number of accessed positions, counted over all iterations and elements.
const MOST_POSITIONS: usize = 200_000_000;

pub(super) struct Part {
    pub dims: Dims,
    pub cells: Vec<At>,
}

/// The effects of one level of iterations on a container.
pub(super) struct Logged {
    var: VarId,
    level: u32,
    positions: Positions,
    did: Did,
}

enum Positions {
    One(u32),
    Each(Rc<[u32]>),
}

impl Positions {
    fn all(&self, mut holds: impl FnMut(u32) -> bool) -> bool {
        match self {
            Positions::One(o) => holds(*o),
            Positions::Each(positions) => positions.iter().all(|o| holds(*o)),
        }
    }
}

enum Did {
    Read,
    /// A plain vector over the iterations, or the value of the last iteration.
    Wrote(NodeId),
    /// Zeros plus the values that were added.
    Added(NodeId),
}

pub(super) struct Changed<'g> {
    pub(super) var: VarId,
    /// The previous value, if the iterations add to the scalar.
    pub(super) before: Option<Sym>,
    /// The value that each iteration adds or assigns.
    pub(super) by: E<'g>,
}

pub(super) struct Carried {
    scalars: Vec<(VarId, Sym, NodeId)>,
    /// The overlays of containers, including the elements written before.
    overlays: Vec<(VarId, Written)>,
    /// The counters, with their values after all iterations.
    counters: Vec<(VarId, i32)>,
}

impl Carried {
    pub(super) fn counted(&self) -> Vec<(VarId, Sym)> {
        let all = self.counters.iter();
        all.map(|(var, end)| (*var, Sym::Int(*end))).collect()
    }
}

/// A counter: an `int` whose changes depend only on data. `starts` contains its value at the beginning of each
/// iteration, and `end` is its value after the last iteration.
struct Counter {
    var: VarId,
    starts: Vec<f64>,
    end: i32,
}

type Written = Rc<Vec<(At, Cell)>>;

impl<'g> Lower<'_, 'g> {
    fn opaque(&mut self, var: VarId, len: usize) -> NodeId {
        // This number differs from the numbers of all other placeholders.
        let number = self.turning.stand_ins.len() as f64 + 0.5;
        let mut g = self.tape.graph.borrow_mut();
        let (count, number) = (g.records_in_batch(), g.constant(number));
        let one = g.mul(count, number);
        let id = g.broadcast(one, Shape::fixed(len));
        self.turning.stand_ins.insert(one, var);
        id
    }

    pub(super) fn stand_in(
        &mut self,
        body: &Stmt,
        index: Option<VarId>,
        span: Span,
    ) -> Eval<Carried> {
        let vars = self.assigned_in(body);
        let mut declared = HashSet::new();
        declared_in(body, &mut declared);
        let mut found = Carried {
            scalars: Vec::new(),
            overlays: Vec::new(),
            counters: Vec::new(),
        };
        let counters = match index {
            Some(index) => self.counters(body, index, &vars, &declared),
            None => Vec::new(),
        };
        for counter in counters {
            self.slots[counter.var.0 as usize] = Some(self.int_column(&counter.starts));
            found.counters.push((counter.var, counter.end));
        }
        for var in vars.iter() {
            let slot = var.0 as usize;
            if declared.contains(var) {
                self.slots[slot] = None;
                continue;
            }
            if found.counters.iter().any(|(counter, _)| counter == var) {
                continue;
            }
            let Some(before) = self.slots[slot].clone() else {
                continue;
            };
            if let Sym::Overlay(overlay) = &before {
                found.overlays.push((*var, overlay.entries.clone()));
                continue;
            }
            if before.is_scalar() {
                let id = self.opaque(*var, 1);
                self.slots[slot] = Some(Sym::Scalar(id));
                found.scalars.push((*var, before, id));
                continue;
            }
            let Ok(dims) = before.dims() else {
                let what =
                    "an iteration assigns to a tuple or complex variable declared outside the loop";
                return Err(one_by_one(what).at(span));
            };
            if dims.size() == 0 {
                continue;
            }
            if self.turning.iterations.len() > 1 {
                let what = "an inner loop assigns to a container of the iteration";
                return Err(one_by_one(what).at(span));
            }
            let stand_in = self.opaque(*var, dims.size());
            self.turning.befores.insert(*var, before);
            let overlay = Overlay {
                var: *var,
                dims: Rc::new(dims),
                stand_in,
                entries: Rc::default(),
            };
            self.slots[slot] = Some(Sym::Overlay(Rc::new(overlay)));
            found.overlays.push((*var, Rc::default()));
        }
        Ok(found)
    }

    /// Finds counters, such as `pos` in `pos = pos + size[g]`, and computes their values. Only the statements that
    /// advance counters run iteration by iteration.
    fn counters(
        &mut self,
        body: &Stmt,
        index: VarId,
        assigned: &[VarId],
        declared: &HashSet<VarId>,
    ) -> Vec<Counter> {
        let StmtKind::Block(stmts) = &body.kind else {
            return Vec::new();
        };
        let moves = |stmt: &Stmt, var: VarId| match &stmt.kind {
            StmtKind::Assign(assign) => match &assign.target {
                LValue::Part(part) => part.var == var && part.path.is_empty(),
                LValue::Tuple(_) => false,
            },
            _ => false,
        };
        let mut counters: Vec<Counter> = Vec::new();
        for var in assigned {
            let int = matches!(self.slots[var.0 as usize], Some(Sym::Int(_)));
            if !int || declared.contains(var) || self.program.var(*var).ty != Type::Int {
                continue;
            }
            let all = stmts
                .iter()
                .all(|stmt| moves(stmt, *var) || !self.assigned_in(stmt).contains(var));
            if all {
                counters.push(Counter {
                    var: *var,
                    starts: Vec::new(),
                    end: 0,
                });
            }
        }
        let steps: Vec<&Stmt> = stmts
            .iter()
            .filter(|stmt| match &stmt.kind {
                StmtKind::Decl(decl) => decl.init.is_some() && matches!(decl.ty, SizedType::Int),
                _ => counters.iter().any(|counter| moves(stmt, counter.var)),
            })
            .collect();
        let numbers = match &self.slots[index.0 as usize] {
            Some(Sym::Scalar(id)) => self.tape.e(*id).data().unwrap_or_default(),
            _ => Vec::new(),
        };
        if counters.is_empty() || numbers.is_empty() {
            return Vec::new();
        }
        let slots = self.slots.clone();
        let iterations = std::mem::take(&mut self.turning.iterations);
        let records = self.tape.records.replace(None);
        let counted = numbers
            .iter()
            .all(|n| self.counted(*n as i32, index, &steps, &mut counters));
        for counter in &mut counters {
            if let Some(Sym::Int(end)) = self.slots[counter.var.0 as usize] {
                counter.end = end;
            }
        }
        self.slots = slots;
        self.turning.iterations = iterations;
        self.tape.records.set(records);
        if counted { counters } else { Vec::new() }
    }

    /// Returns whether the counters are known after the iteration.
    fn counted(
        &mut self,
        iteration: i32,
        index: VarId,
        steps: &[&Stmt],
        counters: &mut [Counter],
    ) -> bool {
        self.slots[index.0 as usize] = Some(Sym::Int(iteration));
        for counter in counters.iter_mut() {
            match self.slots[counter.var.0 as usize] {
                Some(Sym::Int(start)) => counter.starts.push(f64::from(start)),
                _ => return false,
            }
        }
        for stmt in steps {
            let done = self.stmt(stmt).is_ok();
            if let StmtKind::Decl(decl) = &stmt.kind {
                if !done {
                    self.slots[decl.var.0 as usize] = None;
                }
            } else if !done {
                return false;
            }
        }
        let known =
            |counter: &Counter| matches!(self.slots[counter.var.0 as usize], Some(Sym::Int(_)));
        counters.iter().all(known)
    }

    pub(super) fn part_of(&mut self, dims: &Dims, given: &[Given]) -> FnResult<Part> {
        let (part, offsets, own) = self.positions(dims, given)?;
        if own.is_empty() {
            let cells = offsets.iter().map(|o| At::Fixed(*o as u32)).collect();
            return Ok(Part { dims: part, cells });
        }
        if offsets.len().saturating_mul(own.len()) > MOST_POSITIONS {
            return Err(one_by_one("iterations use too many elements"));
        }
        let at = |o: &usize| At::Own(own.iter().map(|p| *o as u32 + p).collect());
        Ok(Part {
            dims: part,
            cells: offsets.iter().map(at).collect(),
        })
    }

    fn whole(overlay: &Overlay) -> FnResult<Part> {
        let size = overlay.dims.size();
        if size > MOST_CELLS {
            return Err(one_by_one(
                "an iteration reads a whole container that iterations assign to",
            ));
        }
        Ok(Part {
            dims: (*overlay.dims).clone(),
            cells: (0..size as u32).map(At::Fixed).collect(),
        })
    }

    fn cell_at(&mut self, overlay: &Overlay, at: &At) -> Cell {
        if let Some((_, cell)) = overlay.entries.iter().rev().find(|(other, _)| other == at) {
            return *cell;
        }
        let tape = self.tape;
        let whole = tape.e(overlay.stand_in);
        let e = match at {
            At::Fixed(o) => whole.at(*o as usize),
            At::Own(positions) => {
                let column = tape.graph.borrow_mut().record_indices(positions);
                let id = tape
                    .graph
                    .borrow_mut()
                    .gather_record(overlay.stand_in, column);
                if let Some(iterations) = self.turning.iterations.last_mut() {
                    iterations.reads.push((overlay.var, positions.clone(), id));
                }
                tape.e(id)
            }
        };
        Cell::Elem(e.id, 0)
    }

    pub(super) fn read_part(&mut self, overlay: &Overlay, part: &Part) -> FnResult<Sym> {
        let cells: Vec<Cell> = part
            .cells
            .iter()
            .map(|at| self.cell_at(overlay, at))
            .collect();
        Ok(match (&cells[..], part.dims.is_scalar()) {
            ([one], true) => cell_e(self.tape, *one).into(),
            _ => Sym::cells(part.dims.clone(), cells),
        })
    }

    pub(in crate::lower) fn write_overlay(
        &mut self,
        target: &VariablePart,
        op: Option<BinaryOp>,
        value: Sym,
        span: Span,
    ) -> Eval<()> {
        let slot = target.var.0 as usize;
        let fail = |e: FnError| e.at(target.span);
        let Some(Sym::Overlay(overlay)) = self.slots[slot].clone() else {
            return Ok(());
        };
        let mut indices: Vec<Index> = Vec::new();
        for access in &target.path {
            match access {
                Access::Index(more) if indices.iter().all(|i| matches!(i, Index::Single(_))) => {
                    indices.extend(more.iter().cloned());
                }
                _ => {
                    return Err(
                        one_by_one("an iteration assigns to an element of an element")
                            .at(target.span),
                    );
                }
            }
        }
        let part = if indices.is_empty() {
            Self::whole(&overlay).map_err(fail)?
        } else {
            let given = self.given(&indices)?;
            self.part_of(&overlay.dims, &given).map_err(fail)?
        };
        let value = match op {
            None => value,
            Some(op) => {
                let old = self.read_part(&overlay, &part).map_err(fail)?;
                let result = operators::binary(&self.cx(op.symbol()), op, &old, &value);
                result.map_err(|e| e.at(span))?.promote(&target.ty)
            }
        };
        self.fault(span)?;
        let dims = value.dims().map_err(fail)?;
        if dims != part.dims {
            return Err(one_by_one("the program assigns a part of another size").at(span));
        }
        let cells = value.to_cells(self.tape).map_err(fail)?;
        let mut overlay = (*overlay).clone();
        drop(self.slots[slot].take());
        let entries = Rc::make_mut(&mut overlay.entries);
        for (at, cell) in part.cells.into_iter().zip(cells) {
            let cell = match cell {
                Cell::Elem(..) => e_cell(cell_e(self.tape, cell)),
                known => known,
            };
            match entries.iter_mut().find(|(other, _)| *other == at) {
                Some(entry) => entry.1 = cell,
                None => entries.push((at, cell)),
            }
        }
        self.slots[slot] = Some(Sym::Overlay(Rc::new(overlay)));
        Ok(())
    }

    pub(in crate::lower) fn merge_overlays(
        &mut self,
        c: E<'g>,
        x: &Overlay,
        y: &Overlay,
    ) -> FnResult<Sym> {
        let tape = self.tape;
        let mut entries: Vec<(At, Cell)> = Vec::new();
        for (at, _) in x.entries.iter().chain(y.entries.iter()) {
            if entries.iter().any(|(other, _)| other == at) {
                continue;
            }
            let empty = Overlay {
                entries: Rc::default(),
                ..x.clone()
            };
            let old = cell_e(tape, self.cell_at(&empty, at));
            let (a, b) = (self.cell_at(x, at), self.cell_at(y, at));
            let (a, b) = (cell_e(tape, a), cell_e(tape, b));
            let cell = if a.id == b.id {
                e_cell(a)
            } else if let (Some(p), Some(q)) = (increment(a, old.id), increment(b, old.id)) {
                e_cell(old + c.select(p, q))
            } else {
                e_cell(c.select(a, b))
            };
            entries.push((at.clone(), cell));
        }
        Ok(Sym::Overlay(Rc::new(Overlay {
            entries: Rc::new(entries),
            ..x.clone()
        })))
    }

    fn stand_in_at(&self, overlay: &Overlay, at: &At) -> E<'g> {
        let tape = self.tape;
        match at {
            At::Fixed(o) => tape.e(overlay.stand_in).at(*o as usize),
            At::Own(positions) => tape.e(overlay.stand_in).gather_record(positions),
        }
    }

    /// Replaces the placeholders of elements that were read before they were written. If no two iterations read the
    /// same position, the placeholder becomes the previous values at these positions.
    pub(super) fn resolve_reads(&mut self) -> FnResult<()> {
        let (reads, level) = match self.turning.iterations.last_mut() {
            Some(iterations) => (std::mem::take(&mut iterations.reads), iterations.level),
            None => return Ok(()),
        };
        for (var, positions, id) in reads {
            let known = |iterations: &Iterations<'_>| iterations.plain.contains_key(&id);
            if self.turning.iterations.last().is_some_and(known) {
                continue;
            }
            let Some(before) = self.turning.befores.get(&var).cloned() else {
                continue;
            };
            if !injective(&positions, before.dims()?.size()) {
                continue;
            }
            let vector = before.e(self.tape)?.gather(&positions);
            if let Some(iterations) = self.turning.iterations.last_mut() {
                iterations.plain.insert(id, vector.id);
            }
            self.turning.log.push(Logged {
                var,
                level,
                positions: Positions::Each(positions),
                did: Did::Read,
            });
        }
        Ok(())
    }

    pub(super) fn scalars_after(&mut self, carried: &Carried) -> FnResult<Vec<Changed<'g>>> {
        let tape = self.tape;
        let mut after = Vec::new();
        for (var, before, stand_in) in &carried.scalars {
            let now = match &self.slots[var.0 as usize] {
                Some(now) if now.is_scalar() => now.e(tape)?,
                _ => continue,
            };
            if now.id == *stand_in {
                continue;
            }
            let by = increment(now, *stand_in);
            after.push(Changed {
                var: *var,
                before: by.is_some().then(|| before.clone()),
                by: by.unwrap_or(now),
            });
        }
        Ok(after)
    }

    pub(super) fn changed(&self, changed: &Changed<'g>, all: E<'g>) -> FnResult<(VarId, Sym)> {
        let value = match &changed.before {
            Some(before) => before.e(self.tape)? + all,
            None => all,
        };
        let ty = &self.program.var(changed.var).ty;
        Ok((changed.var, Sym::from(value).of(ty)))
    }

    /// Returns the nodes on which the effects depend.
    pub(super) fn log_writes(&mut self, carried: &Carried) -> FnResult<Vec<NodeId>> {
        let tape = self.tape;
        let level = self
            .turning
            .iterations
            .last()
            .map_or(0, |iterations| iterations.level);
        let mut roots = Vec::new();
        for (var, start) in &carried.overlays {
            let Some(Sym::Overlay(overlay)) = self.slots[var.0 as usize].clone() else {
                continue;
            };
            let size = overlay.dims.size();
            for (at, cell) in overlay.entries.iter() {
                let untouched = start
                    .iter()
                    .any(|(other, value)| other == at && value == cell);
                let (now, old) = (cell_e(tape, *cell), self.stand_in_at(&overlay, at));
                if untouched || now.id == old.id {
                    continue;
                }
                let by = increment(now, old.id);
                let (positions, did) = match (at, by) {
                    (At::Fixed(o), Some(by)) => {
                        let sum = self.summed(by)?.scatter(&[*o], size);
                        (Positions::One(*o), Did::Added(sum.id))
                    }
                    (At::Fixed(o), None) => {
                        let last = self.last(now)?;
                        (Positions::One(*o), Did::Wrote(last.id))
                    }
                    (At::Own(own), Some(by)) if !injective(own, size) => {
                        let sum = self.spread(by.id)?.scatter(own, size);
                        (Positions::Each(own.clone()), Did::Added(sum.id))
                    }
                    (At::Own(own), _) => {
                        let all = self.spread(now.id)?;
                        (Positions::Each(own.clone()), Did::Wrote(all.id))
                    }
                };
                if let Did::Added(id) | Did::Wrote(id) = did {
                    roots.push(id);
                }
                self.turning.log.push(Logged {
                    var: *var,
                    level,
                    positions,
                    did,
                });
            }
        }
        Ok(roots)
    }

    pub(super) fn summed(&mut self, by: E<'g>) -> FnResult<E<'g>> {
        if by.is_record() {
            return Ok(self.spread(by.id)?.sum());
        }
        Ok(by * self.iteration_count() as f64)
    }

    pub(super) fn last(&mut self, now: E<'g>) -> FnResult<E<'g>> {
        let count = self.iteration_count();
        if now.is_record() {
            return Ok(self.spread(now.id)?.at(count - 1));
        }
        Ok(now)
    }

    pub(super) fn written(&mut self, carried: &Carried) -> FnResult<Vec<(VarId, Sym)>> {
        let log = std::mem::take(&mut self.turning.log);
        let befores = std::mem::take(&mut self.turning.befores);
        let mut after = Vec::new();
        for (var, _) in &carried.overlays {
            let own: Vec<&Logged> = log.iter().filter(|logged| logged.var == *var).collect();
            let Some(before) = befores.get(var) else {
                continue;
            };
            let name = &self.program.var(*var).name;
            let dims = before.dims()?;
            if !apart(&own, dims.size()) {
                return Err(carried_over(&format!("elements of `{name}`")));
            }
            if own.iter().all(|logged| matches!(logged.did, Did::Read)) {
                continue;
            }
            let whole = self.rewritten(before, &own, dims.size())?;
            let value = Sym::flat(dims, whole).of(&self.program.var(*var).ty);
            after.push((*var, value));
        }
        Ok(after)
    }

    fn rewritten(&self, before: &Sym, log: &[&Logged], size: usize) -> FnResult<E<'g>> {
        const OLD: u32 = u32::MAX;
        let tape = self.tape;
        let mut index = vec![OLD; size];
        let mut sources: Vec<E<'g>> = Vec::new();
        let mut start = 0;
        for logged in log {
            let Did::Wrote(id) = logged.did else { continue };
            let source = tape.e(id);
            match &logged.positions {
                Positions::One(o) => index[*o as usize] = start,
                Positions::Each(positions) => positions
                    .iter()
                    .zip(start..)
                    .for_each(|(o, at)| index[*o as usize] = at),
            }
            start += source.len() as u32;
            sources.push(source);
        }
        let mut whole = if sources.is_empty() {
            before.e(tape)?
        } else {
            if index.contains(&OLD) {
                sources.push(before.e(tape)?);
                let old = index.iter_mut().enumerate().filter(|(_, at)| **at == OLD);
                old.for_each(|(o, at)| *at = start + o as u32);
            }
            tape.concat(&sources).gather(&index)
        };
        for logged in log {
            if let Did::Added(id) = logged.did {
                whole = whole + tape.e(id);
            }
        }
        Ok(whole)
    }

    /// Fails if one of the nodes `roots` depends on the result of a previous iteration.
    pub(super) fn no_stand_ins(&self, roots: &[NodeId]) -> FnResult<()> {
        let Some(first) = self.turning.stand_ins.keys().min() else {
            return Ok(());
        };
        let graph = self.tape.graph.borrow();
        let mut seen = vec![false; graph.len() - first.index()];
        let mut stack: Vec<NodeId> = roots.to_vec();
        while let Some(id) = stack.pop() {
            if id < *first || std::mem::replace(&mut seen[id.index() - first.index()], true) {
                continue;
            }
            if let Some(var) = self.turning.stand_ins.get(&id) {
                let name = &self.program.var(*var).name;
                return Err(carried_over(&format!("`{name}`")));
            }
            stack.extend_from_slice(graph.args(id));
        }
        Ok(())
    }
}

fn carried_over(what: &str) -> FnError {
    one_by_one(&format!(
        "an iteration reads {what}, which an earlier iteration assigned"
    ))
}

fn injective(positions: &[u32], size: usize) -> bool {
    let mut seen = vec![false; size];
    positions
        .iter()
        .all(|o| !std::mem::replace(&mut seen[*o as usize], true))
}

/// Whether each position is written in only one way, which is either one assignment or only additions, and is read only
/// by the iterations that write it.
fn apart(log: &[&Logged], size: usize) -> bool {
    let kind = |logged: &Logged| matches!(logged.did, Did::Added(_));
    let same = |a: &Logged, b: &Logged| {
        a.level == b.level
            && match (&a.positions, &b.positions) {
                (Positions::One(a), Positions::One(b)) => a == b,
                (Positions::Each(a), Positions::Each(b)) => a == b,
                _ => false,
            }
    };
    const ADDED: u32 = u32::MAX;
    let mut marks = vec![0; size];
    let (reads, writes): (Vec<&Logged>, Vec<&Logged>) = log
        .iter()
        .partition(|logged| matches!(logged.did, Did::Read));
    for (mark, logged) in (1..).zip(&writes) {
        let mark = if kind(logged) { ADDED } else { mark };
        let free = logged.positions.all(|o| {
            let slot = &mut marks[o as usize];
            let free = *slot == 0 || *slot == mark;
            *slot = mark;
            free
        });
        if !free {
            return false;
        }
    }
    reads.iter().all(|read| {
        let own = (1..).zip(&writes).find(|(_, w)| same(read, w));
        let own = own.map_or(0, |(mark, w)| if kind(w) { ADDED } else { mark });
        read.positions
            .all(|o| marks[o as usize] == 0 || marks[o as usize] == own)
    })
}

pub(super) fn declared_in(stmt: &Stmt, vars: &mut HashSet<VarId>) {
    match &stmt.kind {
        StmtKind::Decl(decl) => {
            vars.insert(decl.var);
        }
        StmtKind::If {
            then, otherwise, ..
        } => {
            declared_in(then, vars);
            if let Some(otherwise) = otherwise {
                declared_in(otherwise, vars);
            }
        }
        StmtKind::While { body, .. }
        | StmtKind::For { body, .. }
        | StmtKind::ForEach { body, .. } => declared_in(body, vars),
        StmtKind::Block(body) | StmtKind::Profile(_, body) => {
            body.iter().for_each(|stmt| declared_in(stmt, vars));
        }
        _ => {}
    }
}
