//! Parses types, which have sizes in declarations but not in function signatures.

use super::super::ast::{BaseType, Expr, SizedType, Transform, UnsizedBase, UnsizedType};
use super::super::token::TokenKind;
use super::{Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

fn size_counts(base: &BaseType) -> (usize, usize) {
    use BaseType::*;
    match base {
        Int | Real | Complex | Tuple(_) => (0, 0),
        Matrix | ComplexMatrix | SumToZeroMatrix | ColumnStochastic | RowStochastic => (2, 2),
        CholeskyFactorCov => (1, 2),
        _ => (1, 1),
    }
}

impl Parser<'_> {
    pub(super) fn sized_type(&mut self) -> Parsed<SizedType> {
        self.nested(Self::sized_type_inner)
    }

    fn sized_type_inner(&mut self) -> Parsed<SizedType> {
        let start = self.span();
        let mut dims = Vec::new();
        if self.eat(TokenKind::Array) {
            let open = self.span();
            self.expect(TokenKind::LBracket)?;
            if matches!(self.peek(), TokenKind::RBracket | TokenKind::Comma) {
                let diagnostic = Diagnostic::error(
                    Code::Size,
                    self.span(),
                    "the sizes of the array are missing",
                )
                .help("only function arguments have arrays without sizes");
                return self.fail(diagnostic);
            }
            dims = self.exprs(TokenKind::RBracket)?;
            self.close(TokenKind::RBracket, open)?;
            if self.peek() == TokenKind::Array {
                let diagnostic = Diagnostic::error(
                    Code::Syntax,
                    self.span(),
                    "write an array of arrays as one array",
                )
                .help("list all sizes together: `array[n, m] real x;`");
                return self.fail(diagnostic);
            }
        }
        let base = self.base_type()?;
        let mut transform = Transform::default();
        if self.peek() == TokenKind::Less {
            if matches!(base, BaseType::Tuple(_)) {
                let diagnostic =
                    Diagnostic::error(Code::Constraint, self.span(), "a tuple cannot have bounds")
                        .help("put them on its components: `tuple(real<lower=0>, int)`");
                return self.fail(diagnostic);
            }
            transform = self.transform()?;
        }
        let (least, most) = size_counts(&base);
        let mut sizes = Vec::new();
        if most > 0 {
            sizes = self.sizes(least, most)?;
        } else if self.peek() == TokenKind::LBracket {
            self.old_array_type(start)?;
        }
        Ok(SizedType {
            dims,
            base,
            sizes,
            transform,
            span: start.to(self.last_span()),
        })
    }

    /// Reports a type such as `int[3] x`. Such types were never valid Stan, but users often try them.
    fn old_array_type(&mut self, start: Span) -> Parsed<()> {
        let element = self.text(start.to(self.last_span())).to_owned();
        let open = self.bump().span;
        self.indices()?;
        let span = open.to(self.close(TokenKind::RBracket, open)?);
        let sizes = self.text(span).to_owned();
        let diagnostic = Diagnostic::error(Code::Removed, span, format!("`{element}` has no size"))
            .help(format!("an array is declared as `array{sizes} {element}`"));
        self.fail(diagnostic)
    }

    fn sizes(&mut self, least: usize, most: usize) -> Parsed<Vec<Expr>> {
        let wanted = match (least, most) {
            (1, 1) => "1 size",
            (2, 2) => "2 sizes",
            _ => "1 or 2 sizes",
        };
        if self.peek() != TokenKind::LBracket {
            return self.unexpected(&format!("`[` and {wanted} of the type"));
        }
        let open = self.bump().span;
        let sizes = self.exprs(TokenKind::RBracket)?;
        let span = open.to(self.close(TokenKind::RBracket, open)?);
        if sizes.len() < least || sizes.len() > most {
            let message = format!("this type needs {wanted}, found {}", sizes.len());
            return self.fail(Diagnostic::error(Code::Size, span, message));
        }
        Ok(sizes)
    }

    fn base_type(&mut self) -> Parsed<BaseType> {
        use TokenKind as T;
        let base = match self.peek() {
            T::IntType => BaseType::Int,
            T::RealType => BaseType::Real,
            T::Complex => BaseType::Complex,
            T::Vector => BaseType::Vector,
            T::RowVector => BaseType::RowVector,
            T::Matrix => BaseType::Matrix,
            T::ComplexVector => BaseType::ComplexVector,
            T::ComplexRowVector => BaseType::ComplexRowVector,
            T::ComplexMatrix => BaseType::ComplexMatrix,
            T::Ordered => BaseType::Ordered,
            T::PositiveOrdered => BaseType::PositiveOrdered,
            T::Simplex => BaseType::Simplex,
            T::UnitVector => BaseType::UnitVector,
            T::SumToZeroVector => BaseType::SumToZeroVector,
            T::SumToZeroMatrix => BaseType::SumToZeroMatrix,
            T::CholeskyFactorCorr => BaseType::CholeskyFactorCorr,
            T::CholeskyFactorCov => BaseType::CholeskyFactorCov,
            T::CorrMatrix => BaseType::CorrMatrix,
            T::CovMatrix => BaseType::CovMatrix,
            T::ColumnStochastic => BaseType::ColumnStochastic,
            T::RowStochastic => BaseType::RowStochastic,
            T::Tuple => return self.tuple_type(),
            T::Void => {
                let diagnostic =
                    Diagnostic::error(Code::Syntax, self.span(), "a variable cannot be `void`");
                return self.fail(diagnostic);
            }
            _ => return self.unexpected("a type"),
        };
        self.bump();
        Ok(base)
    }

    fn tuple_type(&mut self) -> Parsed<BaseType> {
        let start = self.bump().span;
        let open = self.span();
        self.expect(TokenKind::LParen)?;
        let mut parts = vec![self.sized_type()?];
        while self.eat(TokenKind::Comma) {
            parts.push(self.sized_type()?);
        }
        let end = self.close(TokenKind::RParen, open)?;
        if parts.len() < 2 {
            let diagnostic = Diagnostic::error(
                Code::Syntax,
                start.to(end),
                "a tuple has two components or more",
            );
            return self.fail(diagnostic);
        }
        Ok(BaseType::Tuple(parts))
    }

    fn transform(&mut self) -> Parsed<Transform> {
        let open = self.bump().span;
        let mut out = Transform::default();
        loop {
            let (name, slot) = match self.peek() {
                TokenKind::Lower => ("lower", &mut out.lower),
                TokenKind::Upper => ("upper", &mut out.upper),
                TokenKind::Offset => ("offset", &mut out.offset),
                TokenKind::Multiplier => ("multiplier", &mut out.multiplier),
                _ => return self.unexpected("`lower`, `upper`, `offset` or `multiplier`"),
            };
            if slot.is_some() {
                let message = format!("`{name}` appears twice");
                return self.fail(Diagnostic::error(Code::Constraint, self.span(), message));
            }
            self.bump();
            self.expect(TokenKind::Assign)?;
            let value = Box::new(self.bound_expr()?);
            match name {
                "lower" => out.lower = Some(value),
                "upper" => out.upper = Some(value),
                "offset" => out.offset = Some(value),
                _ => out.multiplier = Some(value),
            }
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        let bounds = out.lower.is_some() || out.upper.is_some();
        if bounds && (out.offset.is_some() || out.multiplier.is_some()) {
            let span = open.to(self.last_span());
            let diagnostic = Diagnostic::error(
                Code::Constraint,
                span,
                "bounds and affine transforms cannot be combined",
            )
            .help("use either `lower`, `upper` or `offset`, `multiplier`");
            return self.fail(diagnostic);
        }
        match self.peek() {
            TokenKind::Greater => {
                self.bump();
                Ok(out)
            }
            TokenKind::Less
            | TokenKind::LessEq
            | TokenKind::GreaterEq
            | TokenKind::EqEq
            | TokenKind::NotEq
            | TokenKind::AndAnd
            | TokenKind::OrOr
            | TokenKind::Question => {
                let diagnostic = Diagnostic::error(
                    Code::Syntax,
                    self.span(),
                    "comparisons, logical operators and `?:` are not allowed in a bound",
                )
                .help("put the expression in parentheses");
                self.fail(diagnostic)
            }
            _ => self.close(TokenKind::Greater, open).map(|_| out),
        }
    }

    pub(super) fn unsized_type(&mut self) -> Parsed<UnsizedType> {
        self.nested(Self::unsized_type_inner)
    }

    fn unsized_type_inner(&mut self) -> Parsed<UnsizedType> {
        use TokenKind as T;
        let start = self.span();
        let depth = self.unsized_dimensions()?;
        let base = match self.peek() {
            T::Void => UnsizedBase::Void,
            T::IntType => UnsizedBase::Int,
            T::RealType => UnsizedBase::Real,
            T::Complex => UnsizedBase::Complex,
            T::Vector => UnsizedBase::Vector,
            T::RowVector => UnsizedBase::RowVector,
            T::Matrix => UnsizedBase::Matrix,
            T::ComplexVector => UnsizedBase::ComplexVector,
            T::ComplexRowVector => UnsizedBase::ComplexRowVector,
            T::ComplexMatrix => UnsizedBase::ComplexMatrix,
            T::Tuple => {
                let base = self.unsized_tuple(start)?;
                let span = start.to(self.last_span());
                return Ok(UnsizedType { depth, base, span });
            }
            kind if kind.starts_type() => return self.constrained_type(),
            _ => return self.unexpected("a type"),
        };
        self.bump();
        if base == UnsizedBase::Void && depth > 0 {
            let span = start.to(self.last_span());
            return self.fail(Diagnostic::error(
                Code::Syntax,
                span,
                "there are no arrays of `void`",
            ));
        }
        self.no_sizes(start)?;
        Ok(UnsizedType {
            depth,
            base,
            span: start.to(self.last_span()),
        })
    }

    /// Returns the number of dimensions of `array[,]`, or 0 if there is no array.
    fn unsized_dimensions(&mut self) -> Parsed<usize> {
        use TokenKind as T;
        if !self.eat(T::Array) {
            return Ok(0);
        }
        let open = self.span();
        self.expect(T::LBracket)?;
        let mut depth = 1;
        while self.eat(T::Comma) {
            depth += 1;
        }
        if self.peek() != T::RBracket {
            let diagnostic = Diagnostic::error(
                Code::Syntax,
                self.span(),
                "array types of functions cannot have sizes",
            )
            .help("write `array[]`, `array[,]` and so on, and pass sizes as arguments or use `size(x)`");
            return self.fail(diagnostic);
        }
        self.close(T::RBracket, open)?;
        Ok(depth)
    }

    /// The whole type, including its array dimensions, starts at `start`.
    fn unsized_tuple(&mut self, start: Span) -> Parsed<UnsizedBase> {
        use TokenKind as T;
        self.bump();
        let open = self.span();
        self.expect(T::LParen)?;
        let mut parts = vec![self.unsized_type()?];
        while self.eat(T::Comma) {
            parts.push(self.unsized_type()?);
        }
        let end = self.close(T::RParen, open)?;
        if parts.len() < 2 {
            let span = start.to(end);
            return self.fail(Diagnostic::error(
                Code::Syntax,
                span,
                "a tuple has two components or more",
            ));
        }
        Ok(UnsizedBase::Tuple(parts))
    }

    fn constrained_type<T>(&mut self) -> Parsed<T> {
        let word = self.text(self.span());
        let plain = if word.contains("matrix") || word.starts_with('c') {
            "matrix"
        } else {
            "vector"
        };
        let message = format!("`{word}` is a constrained type, which functions cannot have");
        let diagnostic =
            Diagnostic::error(Code::Syntax, self.span(), message).help(format!("use `{plain}`"));
        self.fail(diagnostic)
    }

    fn no_sizes(&mut self, start: Span) -> Parsed<()> {
        use TokenKind as T;
        if self.peek() == T::LBracket {
            let element = self.text(start.to(self.last_span())).to_owned();
            let open = self.bump().span;
            let mut dims = 1;
            while self.eat(T::Comma) {
                dims += 1;
            }
            let diagnostic = if self.peek() == T::RBracket {
                let span = open.to(self.bump().span);
                let modern = format!("array[{}] {element}", ",".repeat(dims - 1));
                Diagnostic::error(
                    Code::Removed,
                    span,
                    "this form of array type is no longer part of Stan",
                )
                .help(format!("write `{modern}`"))
            } else {
                Diagnostic::error(Code::Syntax, open, "types of functions cannot have sizes")
                    .help(format!("write `{element}` alone"))
            };
            return self.fail(diagnostic);
        }
        if self.peek() == T::Less {
            let diagnostic = Diagnostic::error(
                Code::Constraint,
                self.span(),
                "types of functions cannot have constraints",
            );
            return self.fail(diagnostic);
        }
        Ok(())
    }
}
