//! Lowers calls of library and user functions.

use super::Lower;
use super::stmt::Flow;
use crate::distributions::{self, Formula, Passed};
use crate::functions::laplace::LaplaceForm;
use crate::functions::solvers::Form;
use crate::functions::{Keep, check_counts, counted};
use crate::library;
use crate::program::{
    BuiltinId, Call, Callee, Expr, ExprKind, FunId, FunctionKind, Level, Span, Type,
};
use crate::symbolic::functions::{self, Builder, transforms};
use crate::symbolic::index;
use crate::symbolic::value::Sym;
use crate::value::Value;
use crate::value::error::{Eval, FnError};
use crate::value::index::Idx;

#[derive(Clone, Copy)]
pub(super) enum Resolved {
    Function(Builder),
    Density(Formula),
    /// The function has no builder, because it needs known arguments.
    Known,
}

impl Lower<'_, '_> {
    pub(super) fn call(&mut self, expr: &Expr, call: &Call) -> Eval<Sym> {
        let drop = call.unnormalised && self.drop_constants;
        match call.callee {
            Callee::Builtin(id) if let Some(form) = LaplaceForm::of(id.name()) => {
                self.site(expr);
                self.laplace((id.name(), form), &call.args, expr.span, expr.id.0)
            }
            Callee::Builtin(id)
                if matches!(
                    call.args.first().map(|a| &a.kind),
                    Some(ExprKind::FunRef(_))
                ) =>
            {
                self.higher_order(expr, id, &call.args)
            }
            Callee::Builtin(id)
                if id.name() == "dot_product"
                    && let [x, y] = &call.args[..]
                    && let Some(product) = match self.product_with_row(x, y, expr)? {
                        Some(product) => Some(product),
                        None => self.product_with_row(y, x, expr)?,
                    } =>
            {
                Ok(product)
            }
            Callee::Builtin(id) if id.name().ends_with("_rng") && self.in_iterations() => {
                let message = "every iteration of the loop draws its own random numbers";
                Err(FnError::records(message).at(expr.span))
            }
            Callee::Builtin(id) if id.name().ends_with("_rng") => self.random_call(expr, id, call),
            _ => {
                if let Some(sum) = self.over_slices(call.callee, &call.args, drop, expr.span)? {
                    return Ok(sum);
                }
                let args = self.exprs(&call.args)?;
                let levels: Vec<Level> = call.args.iter().map(|a| a.level).collect();
                self.site(expr);
                self.apply(call.callee, &args, &levels, drop, expr.span, expr.id.0)
            }
        }
    }

    pub(super) fn apply(
        &mut self,
        callee: Callee,
        args: &[Sym],
        levels: &[Level],
        drop: bool,
        span: Span,
        site: u32,
    ) -> Eval<Sym> {
        match callee {
            Callee::Builtin(id) => self.builtin(id, args, levels, drop, span),
            Callee::User(id) => self
                .call_user(id, args.to_vec(), drop, span, site)?
                .ok_or_else(|| FnError::invalid("a void function has no value").at(span)),
        }
    }

    fn builtin(
        &mut self,
        id: BuiltinId,
        args: &[Sym],
        levels: &[Level],
        drop: bool,
        span: Span,
    ) -> Eval<Sym> {
        if let Some(at) = counted(id.name())
            && let Some(counts) = args[at].known()
        {
            let length = |arg: &Sym| arg.dims().map_or(1, |dims| dims.size());
            let longest = args.iter().map(length).max().unwrap_or(1);
            check_counts(id.name(), &counts, longest).map_err(|e| e.at(span))?;
        }
        if args.iter().all(Sym::is_known) {
            let values: Vec<_> = args.iter().filter_map(Sym::known).collect();
            let refs: Vec<&Value> = values.iter().map(|v| &**v).collect();
            let keep = if drop {
                Keep::arguments(levels.iter().map(|l| *l == Level::Param))
            } else {
                Keep::ALL
            };
            if id.name().ends_with("_jacobian") {
                let (value, jacobian) = library::constrain(id, &refs).map_err(|e| e.at(span))?;
                if self.options.jacobian {
                    self.add_term(self.tape.constant(jacobian), span)?;
                }
                return Ok(value.into());
            }
            return library::call_under(&self.halt, id, keep, &refs, span)?
                .map(Sym::from)
                .map_err(|e| e.at(span));
        }
        if let Some(value) = self.call_of_records(id, args, levels, drop, span)? {
            return Ok(value);
        }
        self.built(id, args, levels, drop, span)
    }

    pub(super) fn resolved(&mut self, id: BuiltinId) -> Resolved {
        let name = id.name();
        *self.builders.entry(id.index()).or_insert_with(|| {
            distributions::formula(name)
                .map(Resolved::Density)
                .or_else(|| functions::find(name).map(Resolved::Function))
                .unwrap_or(Resolved::Known)
        })
    }

    pub(super) fn built(
        &mut self,
        id: BuiltinId,
        args: &[Sym],
        levels: &[Level],
        drop: bool,
        span: Span,
    ) -> Eval<Sym> {
        let tape = self.tape;
        let name = id.name();
        match self.resolved(id) {
            Resolved::Density(formula) => {
                let passed: Vec<Passed<'_>> = args
                    .iter()
                    .zip(levels)
                    .map(|(sym, level)| Passed { sym, level: *level })
                    .collect();
                formula
                    .build(tape, name, &passed, drop)
                    .map(Sym::from)
                    .map_err(|e| e.at(span))
            }
            Resolved::Function(Builder::Transform(base, direction)) => {
                let cx = self.cx(name);
                let (value, jacobian) =
                    transforms::transformed(&cx, base, direction, args).map_err(|e| e.at(span))?;
                if name.ends_with("_jacobian") && self.options.jacobian {
                    self.add_term(jacobian, span)?;
                }
                Ok(value)
            }
            Resolved::Function(builder) => {
                builder.build(&self.cx(name), args).map_err(|e| e.at(span))
            }
            Resolved::Known => {
                let message = format!(
                    "Jensen does not yet support function `{name}` in the log density with arguments that \
                     depend on parameters"
                );
                Err(FnError::unsupported(message).at(span))
            }
        }
    }

    pub(super) fn call_user(
        &mut self,
        id: FunId,
        args: Vec<Sym>,
        drop: bool,
        span: Span,
        site: u32,
    ) -> Eval<Option<Sym>> {
        self.step(span)?;
        let program = self.program;
        let function = program.function(id);
        let locals = std::mem::take(&mut self.locals[id.0 as usize]);
        let saved: Vec<Option<Sym>> = locals
            .iter()
            .map(|var| self.slots[var.0 as usize].take())
            .collect();
        self.locals[id.0 as usize] = locals;
        for (var, arg) in function.args.iter().zip(args) {
            self.slots[var.0 as usize] = Some(arg);
        }
        let outer = (self.drop_constants, self.site_base, self.exits.len());
        let taken = self.tape.taken.get();
        self.drop_constants = match function.kind {
            FunctionKind::Lpdf | FunctionKind::Lpmf => drop,
            FunctionKind::Lp => outer.0,
            _ => false,
        };
        self.site_base = outer.1.wrapping_mul(31).wrapping_add(site + 1);
        let address = self.address;
        self.address = address.at(span);
        let result = self.nested(span, |lower| lower.stmts(&function.body));
        let outcome = result.map(|flow| match flow {
            Flow::Return(value) => value,
            _ => None,
        });
        self.tape.taken.set(taken);
        let result = self.finish(outer.2, outcome, span);
        (self.drop_constants, self.site_base) = (outer.0, outer.1);
        self.address = address;
        let locals = std::mem::take(&mut self.locals[id.0 as usize]);
        for (var, value) in locals.iter().zip(saved) {
            self.slots[var.0 as usize] = value;
        }
        self.locals[id.0 as usize] = locals;
        let value = result?;
        if value.is_none() && function.result != Type::Void {
            let message = format!("`{}` ended without a value", function.name);
            return Err(FnError::invalid(message).at(span));
        }
        Ok(value)
    }

    /// `reduce_sum` becomes a single call over the whole list. Solvers are lowered in a separate file.
    fn higher_order(&mut self, expr: &Expr, id: BuiltinId, args: &[Expr]) -> Eval<Sym> {
        let name = id.name();
        let ExprKind::FunRef(function) = &args[0].kind else {
            return Err(FnError::invalid("expected a function").at(expr.span));
        };
        if let Some(form) = Form::of(name, args.len() - 1) {
            return self.solver(expr, (name, form), function, &args[1..]);
        }
        if !matches!(name, "reduce_sum" | "reduce_sum_static") || args.len() < 3 {
            let message =
                format!("Jensen does not yet support function `{name}` in the log density");
            return Err(FnError::unsupported(message).at(expr.span));
        }
        let slice = self.expr(&args[1])?;
        let of_records = matches!(slice, Sym::Records(_));
        let mut values = if of_records {
            let count = self.record_count();
            vec![slice, Sym::Int(1), count]
        } else {
            let count = slice.dims().map_err(|e| e.at(args[1].span))?.extents()[0];
            if count == 0 {
                return Ok(Sym::Real(0.0));
            }
            let whole = index::get(self.tape, &slice, &[Idx::All], Some(&args[1].ty))
                .map_err(|e| e.at(args[1].span))?;
            let count = Sym::Int(i32::try_from(count).unwrap_or(i32::MAX));
            vec![whole, Sym::Int(1), count]
        };
        let mut levels = vec![args[1].level, Level::Data, Level::Data];
        // The grain size has no effect here.
        for arg in &args[3..] {
            values.push(self.expr(arg)?);
            levels.push(arg.level);
        }
        let drop = function.unnormalised && self.drop_constants;
        self.site(expr);
        self.apply(
            function.callee,
            &values,
            &levels,
            drop,
            expr.span,
            expr.id.0,
        )
    }
}
