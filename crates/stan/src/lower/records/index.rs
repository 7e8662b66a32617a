//! Reads parts of containers with one element per record, and elements whose position differs between records.

use std::borrow::Cow;
use std::rc::Rc;

use super::{Lower, all_records};
use crate::distributions::categories::pick_of;
use crate::program::{Expr, ExprKind, Index, Span};
use crate::symbolic::index::{self, Pos, resolve};
use crate::symbolic::tape::E;
use crate::symbolic::value::{Cell, Dims, Leaf, Sym, cell_e, e_cell, interacting};
use crate::value::Value;
use crate::value::error::{Eval, FnError, FnResult};
use crate::value::index::Idx;

pub(in crate::lower) enum Given {
    All,
    One(Sym),
    Many(Sym),
    From(Sym),
    To(Sym),
    Between(Sym, Sym),
}

enum RecordPos {
    Fixed(Pos),
    /// Each record has its own position, counted from 0. The flag is true if the indexed dimension becomes the
    /// dimension of the records.
    Own(Vec<u32>, bool),
}

impl RecordPos {
    fn count(&self) -> usize {
        match self {
            RecordPos::Fixed(pos) => pos.count(),
            RecordPos::Own(..) => 1,
        }
    }

    fn kept(&self) -> Option<usize> {
        match self {
            RecordPos::Fixed(Pos::One(_)) | RecordPos::Own(_, false) => None,
            RecordPos::Fixed(pos) => Some(pos.count()),
            RecordPos::Own(_, true) => Some(1),
        }
    }
}

impl<'g> Lower<'_, 'g> {
    pub(in crate::lower) fn indexed_by_record(
        &mut self,
        expr: &Expr,
        base: &Expr,
        indices: &[Index],
    ) -> Eval<Sym> {
        let given = self.given(indices)?;
        let value = self.expr(base)?;
        self.site(expr);
        let fail = |e: FnError| e.at(expr.span);
        match &value {
            Sym::Records(one) => {
                let one = one.clone();
                self.part_of_records(&one, &given).map_err(fail)
            }
            _ => match self.plain_indices(&given) {
                Some(idx) => {
                    let idx = idx.map_err(fail)?;
                    let part = index::get(self.tape, &value, &idx, Some(&expr.ty)).map_err(fail)?;
                    // A part of the data may have one element for each record even if the whole value does not.
                    let over = match (&base.kind, &self.axis) {
                        (ExprKind::Var(var), Some(axis)) => axis.inner.contains(var),
                        _ => false,
                    };
                    Ok(if over { self.promoted(&part) } else { part })
                }
                None => self.picked(&value, &given).map_err(fail),
            },
        }
    }

    /// `over` is true if the variable is a container with one element per record.
    pub(in crate::lower) fn indices_of_part(
        &mut self,
        indices: &[Index],
        over: bool,
        span: Span,
    ) -> Eval<Vec<Idx>> {
        let mut given = self.given(indices)?;
        if over && let Some(first) = given.first_mut() {
            let (own, whole) = self.position(first);
            if own {
                *first = Given::One(Sym::Int(1));
            } else if whole {
                *first = Given::All;
            } else {
                return Err(FnError::records(
                    "records interact: a record assigns to the element of another one",
                )
                .at(span));
            }
        }
        match self.plain_indices(&given) {
            Some(idx) => idx.map_err(|e| e.at(span)),
            None => Err(FnError::records(
                "assigning to an element that each record picks is not supported yet",
            )
            .at(span)),
        }
    }

    pub(in crate::lower) fn given(&mut self, indices: &[Index]) -> Eval<Vec<Given>> {
        indices
            .iter()
            .map(|index| {
                Ok(match index {
                    Index::All => Given::All,
                    Index::Single(i) => Given::One(self.expr(i)?),
                    Index::Multi(list) => Given::Many(self.expr(list)?),
                    Index::From(a) => Given::From(self.expr(a)?),
                    Index::To(b) => Given::To(self.expr(b)?),
                    Index::Between(a, b) => Given::Between(self.expr(a)?, self.expr(b)?),
                })
            })
            .collect()
    }

    /// Returns whether an index over the records selects the current record, and whether it selects all records.
    fn position(&self, given: &Given) -> (bool, bool) {
        match given {
            Given::One(i) => (self.is_own_index(i), false),
            Given::Many(list) => (false, self.is_own_index(list)),
            Given::All => (false, true),
            Given::From(a) => (false, matches!(a, Sym::Int(1))),
            Given::To(b) => (false, self.is_count(b)),
            Given::Between(a, b) => (false, matches!(a, Sym::Int(1)) && self.is_count(b)),
        }
    }

    pub(in crate::lower) fn plain_indices(&self, given: &[Given]) -> Option<FnResult<Vec<Idx>>> {
        let own = |value: &Sym| value.has_records(self.tape);
        let any = given.iter().any(|given| match given {
            Given::All => false,
            Given::One(a) | Given::Many(a) | Given::From(a) | Given::To(a) => own(a),
            Given::Between(a, b) => own(a) || own(b),
        });
        if any {
            return None;
        }
        let idx = |given: &Given| -> FnResult<Idx> {
            Ok(match given {
                Given::All => Idx::All,
                Given::One(i) => Idx::One(i.int()?),
                Given::Many(list) => match list.known() {
                    Some(list) => Idx::Many(list.ints()?.to_vec()),
                    None => {
                        return Err(FnError::unsupported(
                            "indices that depend on parameters are not supported yet",
                        ));
                    }
                },
                Given::From(a) => Idx::From(a.int()?),
                Given::To(b) => Idx::To(b.int()?),
                Given::Between(a, b) => Idx::Between(a.int()?, b.int()?),
            })
        };
        Some(given.iter().map(idx).collect())
    }

    fn part_of_records(&mut self, one: &Sym, given: &[Given]) -> FnResult<Sym> {
        let Some((first, rest)) = given.split_first() else {
            return Ok(Sym::Records(Rc::new(one.clone())));
        };
        let (own, whole) = self.position(first);
        if own || whole {
            let first = if own { Idx::One(1) } else { Idx::All };
            return match self.plain_indices(rest) {
                Some(rest) => {
                    let mut idx = vec![first];
                    idx.extend(rest?);
                    let part = index::get(self.tape, one, &idx, None)?;
                    Ok(if own {
                        part
                    } else {
                        Sym::Records(Rc::new(part))
                    })
                }
                None if own => {
                    let record = index::get(self.tape, one, &[first], None)?;
                    self.picked(&record, rest)
                }
                None => Err(interacting()),
            };
        }
        // Elements of the data can be accessed one at a time.
        if let Given::One(Sym::Int(_)) = first
            && let Some(rest) = self.plain_indices(given)
            && let Some(axis) = &self.axis
            && let Some(all) = all_records(self.tape, one, axis)
        {
            return index::get(self.tape, &all.into(), &rest?, None);
        }
        Err(FnError::records(
            "records interact: one record reads the value of another one, or of some of them",
        ))
    }

    /// Returns the part that belongs to each record. `value` is shared by all records or belongs to the current record.
    pub(in crate::lower) fn picked(&mut self, value: &Sym, given: &[Given]) -> FnResult<Sym> {
        let dims = value.dims()?;
        let positions = self.record_positions(&dims, given)?;
        let over = positions
            .iter()
            .filter(|p| matches!(p, RecordPos::Own(_, true)))
            .count();
        let leading = positions
            .iter()
            .find(|position| position.kept().is_some())
            .is_some_and(|position| matches!(position, RecordPos::Own(_, true)));
        if over > 1 || (over == 1 && !leading) {
            return Err(FnError::records(
                "indices of the records are supported only in the leading dimension",
            ));
        }
        let (offsets, own) = positions_of(&dims, &positions);
        let part = part_dims(&dims, &positions);
        let cells = self.cells_at(value, &dims, &offsets, &own)?;
        let result = match (&cells[..], part.is_scalar()) {
            ([one], true) => Sym::from(cell_e(self.tape, *one)),
            _ => Sym::cells(part, cells),
        };
        Ok(if over == 1 {
            Sym::Records(Rc::new(result))
        } else {
            result
        })
    }

    /// Returns the extents of the part that the indices select, the offsets of its elements, and for each iteration the
    /// number to add to these offsets.
    pub(in crate::lower) fn positions(
        &mut self,
        dims: &Dims,
        given: &[Given],
    ) -> FnResult<(Dims, Vec<usize>, Vec<u32>)> {
        let positions = self.record_positions(dims, given)?;
        let (offsets, own) = positions_of(dims, &positions);
        Ok((part_dims(dims, &positions), offsets, own))
    }

    fn record_positions(&mut self, dims: &Dims, given: &[Given]) -> FnResult<Vec<RecordPos>> {
        let extents = dims.extents();
        if given.len() > extents.len() {
            return Err(FnError::invalid("too many indices"));
        }
        let mut positions = Vec::with_capacity(extents.len());
        for (k, extent) in extents.iter().enumerate() {
            positions.push(match given.get(k) {
                Some(Given::One(i)) if i.has_records(self.tape) => {
                    RecordPos::Own(self.own_positions(i, *extent, k + 1)?, false)
                }
                Some(Given::Many(list)) if list.has_records(self.tape) => match list {
                    Sym::Records(one) => {
                        RecordPos::Own(self.own_positions(one, *extent, k + 1)?, true)
                    }
                    _ => {
                        return Err(FnError::records(
                            "a list of indices of each record is not supported yet",
                        ));
                    }
                },
                Some(other) => {
                    let idx = self.plain_indices(std::slice::from_ref(other));
                    match idx.transpose()?.and_then(|mut idx| idx.pop()) {
                        Some(idx) => RecordPos::Fixed(resolve(&idx, *extent, k + 1)?),
                        None => {
                            return Err(FnError::records(
                                "a range that differs from record to record is not supported yet",
                            ));
                        }
                    }
                }
                None => RecordPos::Fixed(resolve(&Idx::All, *extent, k + 1)?),
            });
        }
        Ok(positions)
    }

    pub(in crate::lower) fn own_positions(
        &self,
        index: &Sym,
        extent: usize,
        position: usize,
    ) -> FnResult<Vec<u32>> {
        let e = index.e(self.tape)?;
        let (Some(all), Some(visited)) = (e.data(), e.visited()) else {
            return Err(FnError::unsupported(
                "indices that depend on parameters are not supported yet",
            ));
        };
        let inside = |x: f64| x >= 1.0 && x <= extent as f64;
        if let Some((r, x)) = visited.iter().find(|(_, x)| !inside(*x)) {
            return Err(FnError::invalid(format!(
                "index {x} of record {} is out of bounds in dimension {position}, whose size is {extent}",
                r + 1
            )));
        }
        let count = self.tape.records.get().unwrap_or(0);
        // Records outside the batch may have any value.
        let position = |x: f64| if inside(x) { x as u32 - 1 } else { 0 };
        Ok(match &all[..] {
            [one] => vec![position(*one); count],
            all => all.iter().map(|x| position(*x)).collect(),
        })
    }

    /// The offset of each record is added to the fixed offsets.
    fn cells_at(
        &mut self,
        value: &Sym,
        dims: &Dims,
        offsets: &[usize],
        own: &[u32],
    ) -> FnResult<Vec<Cell>> {
        let tape = self.tape;
        if value.has_records(tape) {
            // Every position that is selected by at least one record is evaluated, and each record then selects its
            // own.
            let mut named: Vec<u32> = own.to_vec();
            named.sort_unstable();
            named.dedup();
            let ranks: Vec<f64> = own
                .iter()
                .map(|position| named.partition_point(|n| n < position) as f64 + 1.0)
                .collect();
            let rank = tape.column(&ranks);
            let elements = value.elements(tape)?;
            return Ok(offsets
                .iter()
                .map(|o| {
                    let each: Vec<E<'g>> =
                        named.iter().map(|n| elements[o + *n as usize]).collect();
                    e_cell(pick_of(rank, &each))
                })
                .collect());
        }
        let fits = |o: &usize| own.iter().all(|p| o + (*p as usize) < dims.size());
        if !offsets.iter().all(fits) {
            return Err(FnError::invalid("an index is out of bounds"));
        }
        if let Some(known) = value.known() {
            let numbers = match &*known {
                Value::Vector(x) | Value::RowVector(x) | Value::Reals(x) => Cow::Borrowed(&x[..]),
                Value::Matrix(m) => Cow::Borrowed(m.data()),
                other => Cow::Owned(other.numbers()),
            };
            let column = |o: &usize| {
                let picked: Vec<f64> = own.iter().map(|p| numbers[o + *p as usize]).collect();
                e_cell(tape.column(&picked))
            };
            return Ok(offsets.iter().map(column).collect());
        }
        let e = value.e(tape)?;
        Ok(offsets
            .iter()
            .map(|o| {
                let positions: Vec<u32> = own.iter().map(|p| *o as u32 + p).collect();
                e_cell(e.gather_record(&positions))
            })
            .collect())
    }
}

/// Returns the offsets that all records share, in the storage order of the part, and for each record the number to add
/// to these offsets.
fn positions_of(dims: &Dims, positions: &[RecordPos]) -> (Vec<usize>, Vec<u32>) {
    let strides = dims.strides();
    let depth = dims.array.len();
    let mut order: Vec<usize> = (0..positions.len()).collect();
    if let Leaf::Matrix(..) = dims.leaf {
        order.swap(depth, depth + 1);
    }
    let mut own: Vec<u32> = Vec::new();
    let mut offsets = vec![0];
    for k in order {
        let (position, stride) = (&positions[k], strides[k]);
        match position {
            RecordPos::Own(positions, _) => {
                own.resize(positions.len(), 0);
                own.iter_mut()
                    .zip(positions)
                    .for_each(|(o, p)| *o += p * stride as u32);
            }
            RecordPos::Fixed(pos) => {
                let mut next = Vec::with_capacity(offsets.len() * position.count());
                for o in &offsets {
                    next.extend((0..pos.count()).map(|j| o + pos.at(j) * stride));
                }
                offsets = next;
            }
        }
    }
    (offsets, own)
}

fn part_dims(dims: &Dims, positions: &[RecordPos]) -> Dims {
    let depth = dims.array.len();
    let array = positions[..depth]
        .iter()
        .filter_map(RecordPos::kept)
        .collect();
    let kept = |k: usize| positions[k].kept();
    let leaf = match dims.leaf {
        Leaf::Scalar => Leaf::Scalar,
        Leaf::Vector(_) => kept(depth).map_or(Leaf::Scalar, Leaf::Vector),
        Leaf::Row(_) => kept(depth).map_or(Leaf::Scalar, Leaf::Row),
        Leaf::Matrix(..) => match (kept(depth), kept(depth + 1)) {
            (None, None) => Leaf::Scalar,
            (None, Some(n)) => Leaf::Row(n),
            (Some(n), None) => Leaf::Vector(n),
            (Some(rows), Some(cols)) => Leaf::Matrix(rows, cols),
        },
    };
    Dims { array, leaf }
}
