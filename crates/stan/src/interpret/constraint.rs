//! Evaluates the sizes and bounds of declarations, and checks values against them.

use super::machine::Machine;
use crate::program::{Constraint, Decl, Expr, SizedType, Span};
use crate::transform::{Limit, Transform, Violation};
use crate::value::Value;
use crate::value::error::{ErrorKind, Eval, EvalError, FnError, check_bytes};
use crate::value::shape::{element_name, extents, leaves};
use crate::value::sized::{Sized, parts, shape_only};

impl Machine<'_> {
    /// Evaluates the bounds of a constraint.
    ///
    /// # Errors
    /// Returns any error that occurs while a bound is evaluated.
    pub fn transform(&mut self, constraint: &Constraint) -> Eval<Transform> {
        Ok(match constraint {
            Constraint::None => Transform::Identity,
            Constraint::Lower(a) => Transform::Lower(self.bound(a)?),
            Constraint::Upper(b) => Transform::Upper(self.bound(b)?),
            Constraint::LowerUpper(a, b) => Transform::LowerUpper(self.bound(a)?, self.bound(b)?),
            Constraint::Offset(m) => Transform::OffsetMultiplier(self.bound(m)?, Limit::All(1.0)),
            Constraint::Multiplier(s) => {
                Transform::OffsetMultiplier(Limit::All(0.0), self.bound(s)?)
            }
            Constraint::OffsetMultiplier(m, s) => {
                Transform::OffsetMultiplier(self.bound(m)?, self.bound(s)?)
            }
            structured => shape_only(structured),
        })
    }

    fn bound(&mut self, expr: &Expr) -> Eval<Limit> {
        let value = self.eval(expr)?;
        Ok(if value.is_scalar() {
            Limit::All(value.real().map_err(|e| e.at(expr.span))?)
        } else {
            Limit::Each(value.numbers())
        })
    }

    /// Checks that `value` satisfies the constraint of its declaration.
    ///
    /// # Errors
    /// Fails with kind `kind` at `span` if the value violates the constraint. The message states the variable, the
    /// expected value and the value that was found.
    pub fn check_declared(
        &mut self,
        decl: &Decl,
        value: &Value,
        kind: ErrorKind,
        span: Span,
    ) -> Eval<()> {
        let name = self.program.var(decl.var).name.clone();
        self.check_part(&decl.ty, &decl.constraint, value, &name, kind, span)
    }

    fn check_part(
        &mut self,
        ty: &SizedType,
        constraint: &Constraint,
        value: &Value,
        name: &str,
        kind: ErrorKind,
        span: Span,
    ) -> Eval<()> {
        let (mut inner, mut depth) = (ty, 0);
        while let SizedType::Array(_, element) = inner {
            inner = element;
            depth += 1;
        }
        if let SizedType::Tuple(parts) = inner {
            for (suffix, tuple) in leaves(value, depth) {
                if let Value::Tuple(values) = tuple {
                    for (k, ((ty, constraint), value)) in parts.iter().zip(values).enumerate() {
                        let name = format!("{name}{suffix}.{}", k + 1);
                        self.check_part(ty, constraint, value, &name, kind, span)?;
                    }
                }
            }
            return Ok(());
        }
        if *constraint == Constraint::None {
            return Ok(());
        }
        let transform = self.transform(constraint)?;
        let fail = |name: String, violation: Violation| {
            Box::new(EvalError {
                kind,
                message: format!(
                    "variable `{name}`: expected {}, found {}",
                    violation.expected, violation.found
                ),
                span,
            })
        };
        if transform.is_elementwise() {
            let numbers = value.numbers();
            return transform.check(&numbers, numbers.len(), 1).map_err(|v| {
                let subscript = v
                    .element
                    .map_or(String::new(), |at| element_name(value, at));
                fail(format!("{name}{subscript}"), v)
            });
        }
        for (suffix, leaf) in leaves(value, depth) {
            let (rows, cols) = extents(leaf);
            transform
                .check(leaf.slice().unwrap_or_default(), rows, cols)
                .map_err(|v| {
                    let subscript = v.element.map_or(String::new(), |at| element_name(leaf, at));
                    fail(format!("{name}{suffix}{subscript}"), v)
                })?;
        }
        Ok(())
    }
}

impl Machine<'_> {
    /// Evaluates the sizes of a declaration.
    ///
    /// # Errors
    /// Fails if a size is negative, if the value would exceed the memory limit, or if no value of these sizes satisfies
    /// the constraint.
    pub fn resolve(&mut self, decl: &Decl) -> Eval<Sized> {
        let var = self.program.var(decl.var);
        let ty = self.resolve_type(&decl.ty, 1.0, &var.name)?;
        for part in parts(decl, &ty) {
            let (rows, cols) = part.ty.leaf_extents();
            if *part.constraint == Constraint::CholeskyFactorCov && rows < cols {
                let message = format!(
                    "variable `{}{}`: a Cholesky factor has at least as many rows as columns, found {rows} rows and {cols} columns",
                    var.name, part.suffix
                );
                return Err(FnError::invalid(message).at(var.span));
            }
        }
        Ok(ty)
    }

    fn resolve_type(&mut self, ty: &SizedType, outer: f64, name: &str) -> Eval<Sized> {
        Ok(match ty {
            SizedType::Int => Sized::Int,
            SizedType::Real => Sized::Real,
            SizedType::Complex => Sized::Complex,
            SizedType::Vector(n) => Sized::Vector(self.extent(n, outer, 8, name)?),
            SizedType::RowVector(n) => Sized::RowVector(self.extent(n, outer, 8, name)?),
            SizedType::ComplexVector(n) => Sized::ComplexVector(self.extent(n, outer, 16, name)?),
            SizedType::ComplexRowVector(n) => {
                Sized::ComplexRowVector(self.extent(n, outer, 16, name)?)
            }
            SizedType::Matrix(rows, cols) => {
                let rows = self.extent(rows, outer, 8, name)?;
                Sized::Matrix(rows, self.extent(cols, outer * rows as f64, 8, name)?)
            }
            SizedType::ComplexMatrix(rows, cols) => {
                let rows = self.extent(rows, outer, 16, name)?;
                Sized::ComplexMatrix(rows, self.extent(cols, outer * rows as f64, 16, name)?)
            }
            SizedType::Array(n, inner) => {
                let bytes = match &**inner {
                    SizedType::Int => 4,
                    SizedType::Real => 8,
                    _ => size_of::<Value>(),
                };
                let n = self.extent(n, outer, bytes, name)?;
                // Inner sizes are evaluated and checked even if there are no elements.
                let inner = self.resolve_type(inner, outer * n as f64, name)?;
                Sized::Array(n, Box::new(inner))
            }
            SizedType::Tuple(parts) => Sized::Tuple(
                parts
                    .iter()
                    .map(|(ty, _)| self.resolve_type(ty, outer, name))
                    .collect::<Eval<_>>()?,
            ),
        })
    }

    fn extent(&mut self, size: &Expr, outer: f64, bytes: usize, name: &str) -> Eval<usize> {
        let n = self.eval_int(size)?;
        let count = usize::try_from(n).map_err(|_| {
            FnError::invalid(format!(
                "variable `{name}`: expected a size that is not negative, found {n}"
            ))
            .at(size.span)
        })?;
        check_bytes(
            &format!("variable `{name}`"),
            // The bounds of an empty part are still evaluated if other parts have elements.
            outer.max(1.0) * f64::from(n),
            bytes,
            self.limits.bytes,
        )
        .map_err(|e| e.at(size.span))?;
        Ok(count)
    }
}
