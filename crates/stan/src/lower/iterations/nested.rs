//! Lowers nested loops, in which every outer iteration has its own number of inner iterations.

use std::collections::HashSet;
use std::rc::Rc;

use jensen_graph::NodeId;

use super::super::Lower;
use super::overlay::declared_in;
use super::{MOST, SHORT, one_by_one, returns};
use crate::program::{Span, Stmt, VarId};
use crate::symbolic::overlay::{At, Overlay};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Cell, Sym, cell_e, e_cell};
use crate::value::error::{Eval, FnError, FnResult};

impl<'g> Lower<'_, 'g> {
    /// Lowers a loop whose length is large or differs between iterations. Returns whether the loop was lowered.
    pub(in crate::lower) fn loop_in_iterations(
        &mut self,
        var: VarId,
        (from, to): (&Sym, &Sym),
        body: &Stmt,
        span: Span,
    ) -> Eval<bool> {
        let fail = |e: FnError| e.at(span);
        if let (Sym::Int(from), Sym::Int(to)) = (from, to)
            && i64::from(*to) - i64::from(*from) < SHORT as i64
        {
            return Ok(false);
        }
        let count = self.iteration_count();
        let numbers = |sym: &Sym, lower: &Self| -> FnResult<Vec<f64>> {
            let data = match sym {
                Sym::Int(i) => Some(vec![f64::from(*i)]),
                other => other.e(lower.tape)?.data(),
            };
            data.ok_or_else(|| one_by_one("a loop whose bounds depend on parameters"))
        };
        let (low, high) = (
            numbers(from, self).map_err(fail)?,
            numbers(to, self).map_err(fail)?,
        );
        let comes = self.tape.comes_by();
        let of = |all: &[f64], r: usize| if all.len() == 1 { all[0] } else { all[r] };
        let (mut owner, mut values) = (Vec::new(), Vec::new());
        for r in 0..count {
            if comes.as_ref().is_some_and(|comes| of(comes, r) == 0.0) {
                continue;
            }
            let mut at = of(&low, r);
            let end = of(&high, r);
            while at <= end {
                owner.push(r as u32);
                values.push(at);
                at += 1.0;
            }
            if owner.len() > MOST {
                return Err(one_by_one("too many iterations").at(span));
            }
        }
        self.deeper(&owner, &[body], span, |lower| {
            // If there is only one inner iteration in total, its value is not a column.
            lower.slots[var.0 as usize] = Some(match values[..] {
                [one] => Sym::Int(one as i32),
                _ => lower.int_column(&values),
            });
            lower.iteration(body).map(|()| None)
        })?;
        Ok(true)
    }

    pub(in crate::lower) fn int_column(&self, values: &[f64]) -> Sym {
        Sym::from(self.tape.column(values)).of(&crate::program::Type::Int)
    }

    /// Lowers a branch on data whose sides only add to the log density. Each side is lowered for its own iterations.
    /// Returns false if the statement is not such a branch.
    pub(in crate::lower) fn parted(
        &mut self,
        c: E<'g>,
        within: &[&Stmt],
        span: Span,
        then: impl FnOnce(&mut Self) -> Eval<()>,
        otherwise: impl FnOnce(&mut Self) -> Eval<()>,
    ) -> Eval<bool> {
        let Some(data) = c.data().filter(|_| self.in_iterations() && !self.masked()) else {
            return Ok(false);
        };
        let mut declared = HashSet::new();
        within
            .iter()
            .for_each(|stmt| declared_in(stmt, &mut declared));
        for stmt in within {
            let assigned = self.assigned_in(stmt);
            if returns(stmt) || !assigned.iter().all(|var| declared.contains(var)) {
                return Ok(false);
            }
        }
        let where_it = |holds: bool| -> Vec<u32> {
            let iterations = (0..data.len()).filter(|r| (data[*r] != 0.0) == holds);
            iterations.map(|r| r as u32).collect()
        };
        self.deeper(&where_it(true), &[], span, |lower| {
            then(lower).map(|()| None)
        })?;
        self.deeper(&where_it(false), &[], span, |lower| {
            otherwise(lower).map(|()| None)
        })?;
        Ok(true)
    }

    /// Runs `body` for inner iterations. `owner` contains the outer iteration to which each inner iteration belongs.
    /// The values of `body` are summed separately for each outer iteration.
    pub(super) fn deeper(
        &mut self,
        owner: &[u32],
        assigned: &[&Stmt],
        span: Span,
        body: impl FnOnce(&mut Self) -> Eval<Option<E<'g>>>,
    ) -> Eval<Option<E<'g>>> {
        if owner.is_empty() {
            return Ok(None);
        }
        let tape = self.tape;
        let fail = |e: FnError| e.at(span);
        let count = self.iteration_count();
        let masked = self.masked();
        self.resolve_reads().map_err(fail)?;
        let (terms, guards, exits) = (
            self.terms.len(),
            tape.guards.borrow().len(),
            self.exits.len(),
        );
        let scattered = tape.scattered.borrow().len();
        let saved = self.slots.clone();
        let (taken, unrolling) = (tape.taken.get(), tape.unrolling.get());
        self.hand_down(&saved, taken, owner).map_err(fail)?;
        self.enter(owner.len());
        let stands: Vec<_> = assigned
            .iter()
            .map(|stmt| self.stand_in(stmt, None, span))
            .collect::<Eval<_>>()?;
        let value = body(self)?;
        self.fault(span)?;
        if self.exits.len() > exits {
            return Err(one_by_one("an iteration can end the function").at(span));
        }
        self.resolve_reads().map_err(fail)?;
        let own: Vec<NodeId> = self.terms.split_off(terms);
        let sums = self.added_up(own, masked.then_some((owner, count)));
        let bad = tape.guards.borrow_mut().split_off(guards);
        let rejected = self.added_up(bad, masked.then_some((owner, count)));
        let (sums, rejected) = (sums.map_err(fail)?, rejected.map_err(fail)?);
        // Only plain vectors can be scattered.
        let notes = tape.scattered.borrow_mut().split_off(scattered);
        for mut one in notes {
            for id in one.nodes_mut() {
                *id = self.plain(*id).map_err(fail)?.id;
            }
            tape.scattered.borrow_mut().push(one);
        }
        let value = match value {
            Some(value) => Some(self.by_owner(value, owner, count).map_err(fail)?),
            None => None,
        };
        let mut after = Vec::new();
        for stand in &stands {
            for changed in self.scalars_after(stand).map_err(fail)? {
                let all = match changed.before {
                    Some(_) => self.by_owner(changed.by, owner, count),
                    None => self.last_of_owner(changed.by, owner, count),
                };
                after.push((changed, all.map_err(fail)?));
            }
            self.log_writes(stand).map_err(fail)?;
        }
        let finished = self
            .turning
            .iterations
            .pop()
            .map(|iterations| iterations.finished);
        tape.records.set(Some(count));
        tape.unrolling.set(unrolling);
        tape.taken.set(taken);
        self.slots = saved;
        if let (Some(finished), Some(outer)) = (finished, self.turning.iterations.last_mut()) {
            outer.finished.extend(finished);
        }
        for (mut changed, all) in after {
            // The value before the loop belongs to the outer iteration.
            changed.before = changed
                .before
                .and_then(|_| self.slots[changed.var.0 as usize].clone());
            let column = self.column_of(all);
            let (var, value) = self.changed(&changed, column).map_err(fail)?;
            self.slots[var.0 as usize] = Some(value);
        }
        for e in sums {
            if masked {
                let column = self.column_of(e);
                self.terms.push(column.id);
            } else if let Some(iterations) = self.turning.iterations.last_mut() {
                iterations.finished.push(e);
            }
        }
        for e in rejected {
            let e = if masked { self.column_of(e) } else { e };
            tape.guards.borrow_mut().push(e.id);
        }
        Ok(value.map(|value| self.column_of(value)))
    }

    fn hand_down(
        &mut self,
        saved: &[Option<Sym>],
        taken: Option<NodeId>,
        owner: &[u32],
    ) -> FnResult<()> {
        let tape = self.tape;
        for (slot, value) in saved.iter().enumerate() {
            if let Some(value) = value
                && value.has_records(tape)
            {
                self.slots[slot] = self.handed_down(value, owner).ok();
            }
        }
        let inner = match taken {
            Some(id) if tape.e(id).is_record() => match tape.comes_by() {
                Some(_) => self
                    .turning
                    .iterations
                    .first()
                    .and_then(|iterations| iterations.taken),
                None => Some(self.picked_down(tape.e(id), owner)?.id),
            },
            other => other,
        };
        tape.taken.set(inner);
        Ok(())
    }

    /// Returns the sum of each term over all iterations, or separately for each outer iteration, as a plain vector.
    fn added_up(
        &mut self,
        terms: Vec<NodeId>,
        each: Option<(&[u32], usize)>,
    ) -> FnResult<Vec<E<'g>>> {
        let mut sums = Vec::with_capacity(terms.len());
        for id in terms {
            let term = self.tape.e(id);
            sums.push(match each {
                Some((owner, count)) => self.by_owner(term, owner, count)?,
                None => self.summed(term)?,
            });
        }
        Ok(sums)
    }

    /// Repeats a value of the outer iterations for their inner iterations.
    fn handed_down(&mut self, value: &Sym, owner: &[u32]) -> FnResult<Sym> {
        let tape = self.tape;
        if let Sym::Overlay(overlay) = value {
            let mut entries = Vec::with_capacity(overlay.entries.len());
            for (at, cell) in overlay.entries.iter() {
                let at = match at {
                    At::Fixed(o) => At::Fixed(*o),
                    At::Own(positions) => {
                        At::Own(owner.iter().map(|r| positions[*r as usize]).collect())
                    }
                };
                let e = self.picked_down(cell_e(tape, *cell), owner)?;
                entries.push((at, e_cell(e)));
            }
            return Ok(Sym::Overlay(Rc::new(Overlay {
                entries: Rc::new(entries),
                ..(**overlay).clone()
            })));
        }
        let dims = value.dims()?;
        let mut cells = Vec::with_capacity(dims.size());
        for cell in value.to_cells(tape)? {
            cells.push(match cell {
                Cell::Const(x) => Cell::Const(x),
                cell => e_cell(self.picked_down(cell_e(tape, cell), owner)?),
            });
        }
        Ok(match (&cells[..], dims.is_scalar()) {
            ([one], true) => cell_e(tape, *one).into(),
            _ => Sym::cells(dims, cells),
        })
    }

    fn picked_down(&mut self, e: E<'g>, owner: &[u32]) -> FnResult<E<'g>> {
        if !e.is_record() {
            return Ok(e);
        }
        if let Some(data) = e.data() {
            let values: Vec<f64> = owner.iter().map(|r| data[*r as usize]).collect();
            return Ok(self.tape.column(&values));
        }
        Ok(self.spread(e.id)?.gather_record(owner))
    }

    /// Returns a plain vector with one sum per outer iteration.
    fn by_owner(&mut self, by: E<'g>, owner: &[u32], count: usize) -> FnResult<E<'g>> {
        Ok(self.spread(by.id)?.scatter(owner, count))
    }

    /// Returns a plain vector with the value of the last inner iteration of each outer iteration.
    fn last_of_owner(&mut self, now: E<'g>, owner: &[u32], count: usize) -> FnResult<E<'g>> {
        let mut last = vec![u32::MAX; count];
        for (at, r) in owner.iter().enumerate() {
            last[*r as usize] = at as u32;
        }
        if last.contains(&u32::MAX) {
            return Err(one_by_one("a value that only some iterations compute"));
        }
        Ok(self.spread(now.id)?.gather(&last))
    }
}
