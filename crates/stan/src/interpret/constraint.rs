//! Constraints of declarations: their bounds, and whether values satisfy them.

use super::error::{ErrorKind, Eval, EvalError};
use super::machine::Machine;
use super::value::Value;
use crate::program::{Constraint, Decl, Expr, SizedType, Span};
use crate::transform::{Bound, Transform, Violation};

impl Machine<'_> {
    /// The constraint with its bounds evaluated.
    ///
    /// # Errors
    /// Whatever ends the evaluation of a bound.
    pub fn transform(&mut self, constraint: &Constraint) -> Eval<Transform> {
        Ok(match constraint {
            Constraint::None => Transform::Identity,
            Constraint::Lower(a) => Transform::Lower(self.bound(a)?),
            Constraint::Upper(b) => Transform::Upper(self.bound(b)?),
            Constraint::LowerUpper(a, b) => Transform::LowerUpper(self.bound(a)?, self.bound(b)?),
            Constraint::Offset(m) => Transform::OffsetMultiplier(self.bound(m)?, Bound::All(1.0)),
            Constraint::Multiplier(s) => {
                Transform::OffsetMultiplier(Bound::All(0.0), self.bound(s)?)
            }
            Constraint::OffsetMultiplier(m, s) => {
                Transform::OffsetMultiplier(self.bound(m)?, self.bound(s)?)
            }
            structured => shape_only(structured),
        })
    }

    fn bound(&mut self, expr: &Expr) -> Eval<Bound> {
        let value = self.eval(expr)?;
        Ok(if value.is_scalar() {
            Bound::All(value.real().map_err(|e| e.at(expr.span))?)
        } else {
            Bound::Each(value.numbers())
        })
    }

    /// Whether `value` satisfies the constraint of its declaration.
    ///
    /// # Errors
    /// Of kind `kind` at `span`, naming variable, expected and found, when it does not.
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
                let place = v
                    .element
                    .map_or(String::new(), |at| element_name(value, at));
                fail(format!("{name}{place}"), v)
            });
        }
        for (suffix, leaf) in leaves(value, depth) {
            let (rows, cols) = extents(leaf);
            transform
                .check(leaf.slice().unwrap_or_default(), rows, cols)
                .map_err(|v| {
                    let place = v.element.map_or(String::new(), |at| element_name(leaf, at));
                    fail(format!("{name}{suffix}{place}"), v)
                })?;
        }
        Ok(())
    }
}

/// Rows and columns of a matrix, or of a vector as a column.
pub fn extents(value: &Value) -> (usize, usize) {
    match value {
        Value::Matrix(m) => (m.rows(), m.cols()),
        other => (other.len(), 1),
    }
}

/// The values `depth` array dimensions down, each with its index as text: `[2,1]`.
pub fn leaves(value: &Value, depth: usize) -> Vec<(String, &Value)> {
    fn walk<'v>(
        value: &'v Value,
        depth: usize,
        path: &mut Vec<usize>,
        out: &mut Vec<(String, &'v Value)>,
    ) {
        match value {
            Value::Array(elements) if depth > 0 => {
                for (i, element) in elements.iter().enumerate() {
                    path.push(i + 1);
                    walk(element, depth - 1, path, out);
                    path.pop();
                }
            }
            _ => out.push((bracketed(path), value)),
        }
    }
    let mut out = Vec::new();
    walk(value, depth, &mut Vec::new(), &mut out);
    out
}

fn bracketed(path: &[usize]) -> String {
    if path.is_empty() {
        return String::new();
    }
    let parts: Vec<String> = path.iter().map(usize::to_string).collect();
    format!("[{}]", parts.join(","))
}

/// The index of number `at` (storage order) of a value without tuples, as text: `[3]`, `[2,1]`; empty for a scalar.
pub fn element_name(value: &Value, at: usize) -> String {
    let dims = value.dims();
    let mut leaf = value;
    let mut depth = 0;
    while let Value::Array(elements) = leaf {
        depth += 1;
        match elements.first() {
            Some(first) => leaf = first,
            None => return String::new(),
        }
    }
    let mut path = Vec::new();
    let inner: usize = dims[depth..].iter().product();
    let (mut outer, within) = (at / inner.max(1), at % inner.max(1));
    for d in dims[..depth].iter().rev() {
        path.insert(0, outer % d + 1);
        outer /= d;
    }
    match leaf {
        Value::Matrix(m) => path.extend([within % m.rows() + 1, within / m.rows() + 1]),
        Value::Int(_) | Value::Real(_) | Value::Complex(_) => {}
        _ => path.push(within + 1),
    }
    bracketed(&path)
}

/// The transform of a constraint without its bounds: enough to count coordinates.
pub fn shape_only(constraint: &Constraint) -> Transform {
    match constraint {
        Constraint::Ordered => Transform::Ordered,
        Constraint::PositiveOrdered => Transform::PositiveOrdered,
        Constraint::Simplex => Transform::Simplex,
        Constraint::UnitVector => Transform::UnitVector,
        Constraint::SumToZero => Transform::SumToZero,
        Constraint::CholeskyFactorCorr => Transform::CholeskyFactorCorr,
        Constraint::CholeskyFactorCov => Transform::CholeskyFactorCov,
        Constraint::CorrMatrix => Transform::CorrMatrix,
        Constraint::CovMatrix => Transform::CovMatrix,
        Constraint::ColumnStochastic => Transform::ColumnStochastic,
        Constraint::RowStochastic => Transform::RowStochastic,
        Constraint::None
        | Constraint::Lower(_)
        | Constraint::Upper(_)
        | Constraint::LowerUpper(..)
        | Constraint::Offset(_)
        | Constraint::Multiplier(_)
        | Constraint::OffsetMultiplier(..) => Transform::Identity,
    }
}
