//! Lowers loops over the records. The body is lowered once, for a single record that represents all records.

use jensen_graph::{Dependence, NodeId};

use super::super::branch::increment;
use super::super::stmt::Flow;
use super::Lower;
use crate::program::{Expr, Span, Stmt, VarId};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Cell, Sym, cell_e, e_cell};
use crate::value::error::{Eval, FnError};

struct Carried {
    var: VarId,
    before: Sym,
    stand_in: Sym,
}

impl<'g> Lower<'_, 'g> {
    /// Returns whether the loop visits all records. Fails if the loop visits only some records, or if the number of
    /// iterations differs between records.
    pub(in crate::lower) fn over_records(&mut self, lower: &Expr, upper: &Expr) -> Eval<bool> {
        let (from, to) = (self.expr(lower)?, self.expr(upper)?);
        if matches!(from, Sym::Int(1)) && self.is_count(&to) {
            return Ok(true);
        }
        for (bound, expr) in [(from, lower), (to, upper)] {
            if bound.has_records(self.tape) {
                let message =
                    "a loop whose length differs from record to record is not supported yet";
                return Err(FnError::records(message).at(expr.span));
            }
            if let (Sym::Scalar(id), Some(axis)) = (&bound, &mut self.axis) {
                let depends = axis.separation.dependence(&self.tape.graph.borrow(), *id);
                if depends != Dependence::Global {
                    let message =
                        "records interact: this loop runs over some of the records, not over all";
                    return Err(FnError::records(message).at(expr.span));
                }
            }
        }
        Ok(false)
    }

    pub(in crate::lower) fn record_index(&self) -> Sym {
        self.axis
            .as_ref()
            .map_or(Sym::Int(0), |axis| Sym::Scalar(axis.index))
    }

    pub(in crate::lower) fn record_loop(
        &mut self,
        var: VarId,
        element: Sym,
        body: &Stmt,
        span: Span,
    ) -> Eval<Flow> {
        if self.axis.as_ref().is_some_and(|axis| axis.inside) {
            let message = "records interact: a loop over the records inside another one";
            return Err(FnError::records(message).at(span));
        }
        let carried = self.carry(body, span)?;
        let (guards, exits) = (self.tape.guards.borrow().len(), self.exits.len());
        self.slots[var.0 as usize] = Some(element);
        let outer = self.tape.unrolling.replace(true);
        self.inside(true);
        let from = self.terms.len();
        let flow = self.nested(span, |lower| lower.stmt(body));
        self.inside(false);
        self.tape.unrolling.set(outer);
        self.slots[var.0 as usize] = None;
        let flow = flow?;
        self.fault(span)?;
        if !matches!(flow, Flow::Next | Flow::Continue) || self.exits.len() > exits {
            let message = "records interact: the loop over the records can end before the last one";
            return Err(FnError::records(message).at(span));
        }
        let own = self.terms.split_off(from);
        if !own.is_empty() {
            let all: Vec<E<'g>> = own.iter().map(|id| self.tape.e(*id)).collect();
            self.add_term(self.tape.add_all(&all).sum_records(), span)?;
        }
        let new: Vec<NodeId> = self.tape.guards.borrow()[guards..].to_vec();
        for guard in new {
            if self.depends(guard) == Dependence::Interacting {
                let message =
                    "records interact: the rejection of a draw depends on several records at once";
                return Err(FnError::records(message).at(span));
            }
        }
        for carried in carried {
            let after = self.slots[carried.var.0 as usize].take();
            let value = match after {
                Some(after) => self.carried_over(&carried, &after, span)?,
                None => carried.before,
            };
            self.slots[carried.var.0 as usize] = Some(value);
        }
        Ok(Flow::Next)
    }

    fn inside(&mut self, inside: bool) {
        if let Some(axis) = &mut self.axis {
            axis.inside = inside;
        }
    }

    fn depends(&mut self, id: NodeId) -> Dependence {
        match &mut self.axis {
            Some(axis) => axis.separation.dependence(&self.tape.graph.borrow(), id),
            None => Dependence::Global,
        }
    }

    fn carry(&mut self, body: &Stmt, span: Span) -> Eval<Vec<Carried>> {
        let vars = self.assigned_in(body);
        let mut carried = Vec::new();
        for var in vars.iter() {
            let slot = var.0 as usize;
            let Some(before) = self.slots[slot].clone() else {
                continue;
            };
            if matches!(before, Sym::Records(_)) {
                continue;
            }
            let Ok(dims) = before.dims() else {
                let message = "tuples and complex numbers that a loop over the records assigns to are not supported yet";
                return Err(FnError::records(message).at(span));
            };
            if dims.size() == 0 {
                continue;
            }
            let input = self.tape.graph.borrow_mut().input(dims.size());
            let stand_in = Sym::flat(dims, self.tape.e(input));
            self.slots[slot] = Some(stand_in.clone());
            carried.push(Carried {
                var: *var,
                before,
                stand_in,
            });
        }
        Ok(carried)
    }

    /// Returns the value of the variable after the loop. If the loop does not change the variable, this is the previous
    /// value. If the records add to the variable, the result includes their sum. If each record assigns its own value,
    /// the result is a placeholder, and the program must not read it.
    fn carried_over(&mut self, carried: &Carried, after: &Sym, span: Span) -> Eval<Sym> {
        let tape = self.tape;
        let fail = |e: FnError| e.at(span);
        let dims = carried.before.dims().map_err(fail)?;
        if after.dims().ok().as_ref() != Some(&dims) {
            // The variable is local to the body, so it is invisible outside.
            return Ok(carried.before.clone());
        }
        let before = carried.before.to_cells(tape).map_err(fail)?;
        let stand_in = carried.stand_in.to_cells(tape).map_err(fail)?;
        let after = after.to_cells(tape).map_err(fail)?;
        let mut unchanged = true;
        let mut cells: Vec<Cell> = Vec::with_capacity(after.len());
        for ((old, stand_in), new) in before.iter().zip(&stand_in).zip(&after) {
            let (entry, now) = (cell_e(tape, *stand_in), cell_e(tape, *new));
            if entry.id == now.id {
                cells.push(*old);
                continue;
            }
            unchanged = false;
            let grown = increment(now, entry.id).filter(|by| {
                matches!(self.depends(by.id), Dependence::Global | Dependence::Record)
            });
            cells.push(match grown {
                Some(by) => e_cell(cell_e(tape, *old) + by.sum_records()),
                None if self.depends(now.id) == Dependence::Global => *new,
                None => *stand_in,
            });
        }
        if unchanged {
            return Ok(carried.before.clone());
        }
        Ok(match &cells[..] {
            [one] if dims.is_scalar() => Sym::from(cell_e(tape, *one)),
            _ => Sym::cells(dims, cells),
        })
    }
}
