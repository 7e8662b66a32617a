//! Checks declarations: their sizes and constraints.

use super::{Checker, Checking, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::program::{BlockKind, Constraint, Decl, Expr, SizedType, Type, VarKind};
use crate::source::Span;
use crate::syntax::ast::{self, BaseType};

impl Checker {
    pub(super) fn declaration(&mut self, decl: &ast::Decl) -> Checking<Decl> {
        let top = self.at_top();
        let sized = self.sized_type(&decl.ty, top);
        let sized = match sized {
            Ok(sized) => match self.block_allows(&sized.0.unsized_type(), decl.ty.span, top) {
                Ok(()) => Ok(sized),
                Err(poison) => Err(poison),
            },
            Err(poison) => Err(poison),
        };
        let kind = if top { VarKind::Global } else { VarKind::Local };
        let level = self.block_level();
        let (sized, ty) = match sized {
            Ok(sized) => {
                let ty = sized.0.unsized_type();
                (Ok(sized), Ok(ty))
            }
            Err(_) => (Err(super::Poison), Err(super::Poison)),
        };
        let var = self.declare(&decl.name, ty, kind, level);
        let init = decl.init.as_ref().map(|init| self.expr(init)).transpose();
        let (var, (ty, constraint)) = (var?, sized?);
        let init = match init? {
            Some(init) => Some(self.assignable(init, &ty.unsized_type())?),
            None => None,
        };
        Ok(Decl {
            var,
            ty,
            constraint,
            init,
        })
    }

    pub(super) fn assignable(&mut self, value: Expr, ty: &Type) -> Checking<Expr> {
        if types::promotion_cost(&value.ty, ty).is_some() {
            return Ok(self.promote(value, ty));
        }
        let message = format!(
            "a value of type {} cannot be assigned to a variable of type {ty}",
            value.ty
        );
        let mut diagnostic =
            Diagnostic::error(Code::TypeMismatch, value.span, message).label(value.ty.to_string());
        let help = match (ty, &value.ty) {
            (Type::Int, Type::Real) => {
                Some("convert data with `to_int(…)`; otherwise declare the variable real")
            }
            (Type::Vector, Type::RowVector) | (Type::RowVector, Type::Vector) => {
                Some("transpose it with `'`")
            }
            (Type::Vector, Type::Array(_)) => Some("convert it with `to_vector(…)`"),
            (Type::RowVector, Type::Array(_)) => Some("convert it with `to_row_vector(…)`"),
            (Type::Matrix, Type::Array(_)) => Some("convert it with `to_matrix(…)`"),
            (Type::Array(_), Type::Vector | Type::RowVector | Type::Matrix) => {
                Some("convert it with `to_array_1d(…)`")
            }
            _ => None,
        };
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.fail(diagnostic)
    }

    fn block_allows(&mut self, ty: &Type, span: Span, top: bool) -> Checking<()> {
        fn has_int(ty: &Type) -> bool {
            match ty.unwind().1 {
                Type::Int => true,
                Type::Tuple(parts) => parts.iter().any(has_int),
                _ => false,
            }
        }
        let what = match self.block_kind() {
            BlockKind::Parameters => "parameters",
            BlockKind::TransformedParameters if top => "transformed parameters",
            _ => return Ok(()),
        };
        if !has_int(ty) {
            return Ok(());
        }
        let diagnostic =
            Diagnostic::error(Code::WrongBlock, span, format!("{what} cannot be integers"))
                .help("sum the density over the values a discrete parameter could take");
        self.fail(diagnostic)
    }

    fn size(&mut self, expr: &ast::Expr, top: bool) -> Checking<Box<Expr>> {
        let before = std::mem::replace(&mut self.context.in_size, top);
        let size = self.int_expr(expr, "a size");
        self.context.in_size = before;
        size.map(Box::new)
    }

    fn sized_type(&mut self, ty: &ast::SizedType, top: bool) -> Checking<(SizedType, Constraint)> {
        let mut dims = Vec::new();
        let mut poisoned = None;
        for dim in &ty.dims {
            match self.size(dim, top) {
                Ok(dim) => dims.push(dim),
                Err(poison) => poisoned = Some(poison),
            }
        }
        let base = self.base_type(ty, top);
        if let Some(poison) = poisoned {
            return Err(poison);
        }
        let (mut sized, constraint) = base?;
        for dim in dims.into_iter().rev() {
            sized = SizedType::Array(dim, Box::new(sized));
        }
        let whole = sized.unsized_type();
        let bounds = self.transform(ty, &whole, top)?;
        let constraint = if matches!(bounds, Constraint::None) {
            constraint
        } else {
            bounds
        };
        if !top && !matches!(constraint, Constraint::None) {
            let diagnostic = Diagnostic::error(
                Code::Constraint,
                ty.span,
                "local variables cannot have constraints",
            )
            .help("declare it without constraints, and check values with `if (…) reject(…);` if necessary");
            return self.fail(diagnostic);
        }
        Ok((sized, constraint))
    }

    fn base_type(&mut self, ty: &ast::SizedType, top: bool) -> Checking<(SizedType, Constraint)> {
        use BaseType as B;
        if let B::Tuple(parts) = &ty.base {
            let parts: Vec<_> = parts
                .iter()
                .map(|part| self.sized_type(part, top))
                .collect();
            let parts: Checking<Vec<_>> = parts.into_iter().collect();
            return Ok((SizedType::Tuple(parts?), Constraint::None));
        }
        let sizes: Vec<_> = ty.sizes.iter().map(|size| self.size(size, top)).collect();
        let sizes: Checking<Vec<_>> = sizes.into_iter().collect();
        let mut sizes = sizes?.into_iter();
        let one = sizes.next();
        let two = sizes.next();
        // Square types state only one size. The checker checks its expression again for the second size, so that the
        // expressions of the second size have separate ids.
        let (Some(rows), two) = (one, two) else {
            let scalar = match ty.base {
                B::Int => SizedType::Int,
                B::Real => SizedType::Real,
                _ => SizedType::Complex,
            };
            return Ok((scalar, Constraint::None));
        };
        let plain = |sized| Ok((sized, Constraint::None));
        match ty.base {
            B::Vector => return plain(SizedType::Vector(rows)),
            B::RowVector => return plain(SizedType::RowVector(rows)),
            B::ComplexVector => return plain(SizedType::ComplexVector(rows)),
            B::ComplexRowVector => return plain(SizedType::ComplexRowVector(rows)),
            B::Ordered => return Ok((SizedType::Vector(rows), Constraint::Ordered)),
            B::PositiveOrdered => {
                return Ok((SizedType::Vector(rows), Constraint::PositiveOrdered));
            }
            B::Simplex => return Ok((SizedType::Vector(rows), Constraint::Simplex)),
            B::UnitVector => return Ok((SizedType::Vector(rows), Constraint::UnitVector)),
            B::SumToZeroVector => return Ok((SizedType::Vector(rows), Constraint::SumToZero)),
            _ => {}
        }
        let cols = match two {
            Some(cols) => cols,
            None => self.size(&ty.sizes[0], top)?,
        };
        if ty.base == B::ComplexMatrix {
            return plain(SizedType::ComplexMatrix(rows, cols));
        }
        let constraint = match ty.base {
            B::SumToZeroMatrix => Constraint::SumToZero,
            B::CholeskyFactorCorr => Constraint::CholeskyFactorCorr,
            B::CholeskyFactorCov => Constraint::CholeskyFactorCov,
            B::CorrMatrix => Constraint::CorrMatrix,
            B::CovMatrix => Constraint::CovMatrix,
            B::ColumnStochastic => Constraint::ColumnStochastic,
            B::RowStochastic => Constraint::RowStochastic,
            _ => Constraint::None,
        };
        Ok((SizedType::Matrix(rows, cols), constraint))
    }

    fn transform(&mut self, ty: &ast::SizedType, whole: &Type, top: bool) -> Checking<Constraint> {
        let written = &ty.transform;
        if written.is_empty() {
            return Ok(Constraint::None);
        }
        let plain = matches!(
            ty.base,
            BaseType::Int
                | BaseType::Real
                | BaseType::Vector
                | BaseType::RowVector
                | BaseType::Matrix
        );
        if !plain {
            let diagnostic = Diagnostic::error(
                Code::Constraint,
                ty.span,
                "this type has no bounds, offset or multiplier",
            )
            .help("int, real, vector, row_vector and matrix have them");
            return self.fail(diagnostic);
        }
        if !top {
            let diagnostic = Diagnostic::error(
                Code::Constraint,
                ty.span,
                "local variables cannot have constraints",
            )
            .help("declare it without constraints, and check values with `if (…) reject(…);` if necessary");
            return self.fail(diagnostic);
        }
        if ty.base == BaseType::Int && (written.offset.is_some() || written.multiplier.is_some()) {
            let diagnostic = Diagnostic::error(
                Code::Constraint,
                ty.span,
                "integers have no offset or multiplier",
            );
            return self.fail(diagnostic);
        }
        let lower = self.bound(written.lower.as_deref(), "lower bound", whole);
        let upper = self.bound(written.upper.as_deref(), "upper bound", whole);
        let offset = self.bound(written.offset.as_deref(), "offset", whole);
        let multiplier = self.bound(written.multiplier.as_deref(), "multiplier", whole);
        Ok(match (lower?, upper?, offset?, multiplier?) {
            (Some(lower), Some(upper), ..) => Constraint::LowerUpper(lower, upper),
            (Some(lower), ..) => Constraint::Lower(lower),
            (_, Some(upper), ..) => Constraint::Upper(upper),
            (_, _, Some(offset), Some(multiplier)) => {
                Constraint::OffsetMultiplier(offset, multiplier)
            }
            (_, _, Some(offset), _) => Constraint::Offset(offset),
            (_, _, _, Some(multiplier)) => Constraint::Multiplier(multiplier),
            _ => Constraint::None,
        })
    }

    /// The bound is a scalar or a value of type `whole`, which is the type of the variable.
    fn bound(
        &mut self,
        expr: Option<&ast::Expr>,
        what: &str,
        whole: &Type,
    ) -> Checking<Option<Box<Expr>>> {
        let Some(expr) = expr else { return Ok(None) };
        let bound = self.expr(expr)?;
        let scalar = if whole.is_int() {
            Type::Int
        } else {
            Type::Real
        };
        if bound.ty == *whole || types::promotion_cost(&bound.ty, &scalar).is_some() {
            let ty = if bound.ty == *whole { whole } else { &scalar };
            return Ok(Some(Box::new(self.promote(bound, ty))));
        }
        let mut wanted = vec![scalar.to_string()];
        if *whole != scalar {
            wanted.push(whole.to_string());
        }
        let message = format!(
            "the {what} must be {}, found {}",
            types::list(&wanted, "or"),
            bound.ty
        );
        self.fail(Diagnostic::error(Code::Constraint, expr.span, message))
    }
}
