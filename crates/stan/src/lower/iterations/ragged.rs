//! Lowers slices whose length differs between iterations, such as `segment(y, first[g], size[g])` or `y[first[g] :
//! last[g]]`. A slice may be the argument of a sum, a product or a density of numbers. Each element of a slice becomes
//! a separate iteration.

use std::collections::HashMap;

use super::super::Lower;
use super::super::call::Resolved;
use super::super::records::Given;
use super::one_by_one;
use crate::distributions::Formula;
use crate::program::{BinaryOp, BuiltinId, Callee, Expr, ExprKind, Index, Level, Span, Type};
use crate::symbolic::functions::Builder;
use crate::symbolic::index;
use crate::symbolic::tape::E;
use crate::symbolic::value::Sym;
use crate::value::error::{Eval, FnError, FnResult};

/// The positions of the current elements of each slice, counted from 1. The keys are the locations of the slices'
/// expressions.
pub(super) type Slices = HashMap<usize, Sym>;

fn key(expr: &Expr) -> usize {
    std::ptr::from_ref(expr) as usize
}

struct Slice<'p> {
    expr: &'p Expr,
    base: &'p Expr,
    from: &'p Expr,
    to: &'p Expr,
    length: bool,
}

fn slice(expr: &Expr) -> Option<Slice<'_>> {
    let variable = |base: &Expr| matches!(base.kind, ExprKind::Var(_));
    match &expr.kind {
        ExprKind::Index(base, indices) if variable(base) => match &indices[..] {
            [Index::Between(from, to)] => Some(Slice {
                expr,
                base,
                from,
                to,
                length: false,
            }),
            _ => None,
        },
        ExprKind::Call(call) => match (call.callee, &call.args[..]) {
            (Callee::Builtin(id), [base, from, to]) if id.name() == "segment" && variable(base) => {
                Some(Slice {
                    expr,
                    base,
                    from,
                    to,
                    length: true,
                })
            }
            _ => None,
        },
        _ => None,
    }
}

fn is_number(ty: &Type) -> bool {
    matches!(ty, Type::Int | Type::Real)
}

impl<'g> Lower<'_, 'g> {
    pub(in crate::lower) fn over_slices(
        &mut self,
        callee: Callee,
        args: &[Expr],
        drop: bool,
        span: Span,
    ) -> Eval<Option<Sym>> {
        let Callee::Builtin(id) = callee else {
            return Ok(None);
        };
        if !self.in_iterations() || !self.turning.slices.is_empty() {
            return Ok(None);
        }
        let density = matches!(
            self.resolved(id),
            Resolved::Density(Formula::Univariate(..))
        );
        if !density && !matches!(id.name(), "sum" | "dot_product" | "dot_self") {
            return Ok(None);
        }
        let mut slices = Vec::new();
        let by_element = args.iter().all(|arg| self.by_element(arg, &mut slices));
        if slices.is_empty() || !by_element {
            return Ok(None);
        }
        let mut bounds = Vec::new();
        for slice in &slices {
            bounds.push((self.expr(slice.from)?, self.expr(slice.to)?));
        }
        let tape = self.tape;
        if !bounds
            .iter()
            .any(|(a, b)| a.has_records(tape) || b.has_records(tape))
        {
            return Ok(None);
        }
        let fail = |e: FnError| e.at(span);
        let (owner, positions) = self.elements_of(&slices, &bounds).map_err(fail)?;
        if owner.is_empty() {
            return Ok(Some(Sym::Real(0.0)));
        }
        let sum: Option<E<'g>> = self.deeper(&owner, &[], span, |lower| {
            lower.turning.slices = slices
                .iter()
                .zip(&positions)
                .map(|(slice, positions)| (key(slice.expr), lower.int_column(positions)))
                .collect();
            let values = lower.exprs(args);
            lower.turning.slices.clear();
            let value = lower.of_element(id, &values?, args, drop, span)?;
            Ok(Some(value.e(lower.tape).map_err(fail)?))
        })?;
        Ok(sum.map(Sym::from))
    }

    fn of_element(
        &mut self,
        id: BuiltinId,
        values: &[Sym],
        args: &[Expr],
        drop: bool,
        span: Span,
    ) -> Eval<Sym> {
        let product =
            |a: &Sym, b: &Sym| -> FnResult<Sym> { Ok((a.e(self.tape)? * b.e(self.tape)?).into()) };
        match (id.name(), values) {
            ("sum", [x]) => Ok(x.clone()),
            ("dot_product", [x, y]) => product(x, y).map_err(|e| e.at(span)),
            ("dot_self", [x]) => product(x, x).map_err(|e| e.at(span)),
            _ => {
                let levels: Vec<Level> = args.iter().map(|a| a.level).collect();
                self.apply(Callee::Builtin(id), values, &levels, drop, span, span.start)
            }
        }
    }

    /// Returns the outer iteration of each element, and its position in each slice.
    fn elements_of(
        &self,
        slices: &[Slice<'_>],
        bounds: &[(Sym, Sym)],
    ) -> FnResult<(Vec<u32>, Vec<Vec<f64>>)> {
        let data = |sym: &Sym| -> FnResult<Vec<f64>> {
            let data = sym.e(self.tape)?.data();
            data.ok_or_else(|| one_by_one("a slice whose bounds depend on parameters"))
        };
        let of = |all: &[f64], r: usize| if all.len() == 1 { all[0] } else { all[r] };
        let mut tables = Vec::new();
        for (from, to) in bounds {
            tables.push((data(from)?, data(to)?));
        }
        let comes = self.tape.comes_by();
        let (mut owner, mut positions) = (Vec::new(), vec![Vec::new(); slices.len()]);
        for r in 0..self.iteration_count() {
            if comes.as_ref().is_some_and(|comes| of(comes, r) == 0.0) {
                continue;
            }
            let mut count = None;
            for ((slice, (from, to)), positions) in slices.iter().zip(&tables).zip(&mut positions) {
                let (from, to) = (of(from, r), of(to, r));
                let length = if slice.length {
                    to
                } else {
                    (to - from + 1.0).max(0.0)
                };
                if length < 0.0 || count.is_some_and(|count| count != length) {
                    return Err(one_by_one("slices of an iteration have different lengths"));
                }
                count = Some(length);
                positions.extend((0..length as usize).map(|j| from + j as f64));
            }
            let count = count.unwrap_or(0.0) as usize;
            owner.extend(std::iter::repeat_n(r as u32, count));
        }
        Ok((owner, positions))
    }

    pub(in crate::lower) fn slice_element(&mut self, expr: &Expr) -> Option<Eval<Sym>> {
        let at = self.turning.slices.get(&key(expr))?.clone();
        let base = slice(expr)?.base;
        let value = match self.expr(base) {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
        let given = [Given::One(at)];
        let picked = match &value {
            Sym::Overlay(overlay) => self
                .part_of(&overlay.dims, &given)
                .and_then(|part| self.read_part(overlay, &part)),
            _ => match self.plain_indices(&given) {
                Some(idx) => idx.and_then(|idx| index::get(self.tape, &value, &idx, None)),
                None => self.picked(&value, &given),
            },
        };
        Some(picked.map_err(|e| e.at(expr.span)))
    }

    /// Returns whether an expression applies element by element to the slices in it, and collects these slices.
    fn by_element<'p>(&mut self, expr: &'p Expr, slices: &mut Vec<Slice<'p>>) -> bool {
        if let Some(slice) = slice(expr) {
            slices.push(slice);
            return true;
        }
        if is_number(&expr.ty) {
            // The argument is a single number for all elements. If it had slices of its own, it would be a sum within
            // the sum.
            let before = slices.len();
            self.by_element_within(expr, slices);
            return slices.len() == before;
        }
        self.by_element_within(expr, slices)
    }

    fn by_element_within<'p>(&mut self, expr: &'p Expr, slices: &mut Vec<Slice<'p>>) -> bool {
        match &expr.kind {
            ExprKind::Promote(a) | ExprKind::Unary(_, a) => self.by_element(a, slices),
            ExprKind::Binary(op, a, b) => {
                let number = is_number(&a.ty) || is_number(&b.ty);
                let fits = match op {
                    BinaryOp::Mul => number,
                    BinaryOp::Div => is_number(&b.ty),
                    BinaryOp::LeftDiv => false,
                    _ => true,
                };
                self.by_element(a, slices) & self.by_element(b, slices) & fits
            }
            ExprKind::Call(call) => {
                let each = match call.callee {
                    Callee::Builtin(id) => matches!(
                        self.resolved(id),
                        Resolved::Function(
                            Builder::Unary(_) | Builder::Binary(_) | Builder::Ternary(_)
                        )
                    ),
                    Callee::User(_) => false,
                };
                call.args
                    .iter()
                    .fold(each, |all, arg| self.by_element(arg, slices) & all)
            }
            _ => false,
        }
    }
}
