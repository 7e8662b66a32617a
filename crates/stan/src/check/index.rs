//! Checks indexing.

use super::{Checker, Checking};
use crate::diagnostic::{Code, Diagnostic};
use crate::program::{Index, Type};
use crate::source::Span;
use crate::syntax::ast;

fn rank(ty: &Type) -> usize {
    let (depth, inner) = ty.unwind();
    depth
        + match inner {
            Type::Vector | Type::RowVector | Type::ComplexVector | Type::ComplexRowVector => 1,
            Type::Matrix | Type::ComplexMatrix => 2,
            _ => 0,
        }
}

fn indexed(base: &Type, indices: &[Index]) -> Type {
    let Some((first, rest)) = indices.split_first() else {
        return base.clone();
    };
    let single = matches!(first, Index::Single(_));
    match base {
        Type::Array(inner) if single => indexed(inner, rest),
        Type::Array(inner) => Type::Array(Box::new(indexed(inner, rest))),
        Type::Vector | Type::RowVector if single => Type::Real,
        Type::ComplexVector | Type::ComplexRowVector if single => Type::Complex,
        Type::Matrix | Type::ComplexMatrix => {
            let complex = *base == Type::ComplexMatrix;
            let column_single = matches!(rest.first(), Some(Index::Single(_)));
            match (single, column_single, complex) {
                (true, true, false) => Type::Real,
                (true, true, true) => Type::Complex,
                (true, false, false) => Type::RowVector,
                (true, false, true) => Type::ComplexRowVector,
                (false, true, false) => Type::Vector,
                (false, true, true) => Type::ComplexVector,
                (false, false, _) => base.clone(),
            }
        }
        _ => base.clone(),
    }
}

impl Checker {
    pub(super) fn indices(
        &mut self,
        base: &Type,
        indices: &[ast::Index],
        span: Span,
    ) -> Checking<(Vec<Index>, Type)> {
        let rank = rank(base);
        if rank == 0 {
            let message = format!("a value of type {base} cannot be indexed");
            return self.fail(Diagnostic::error(Code::Indexing, span, message));
        }
        let mut out = Vec::with_capacity(indices.len());
        let mut poisoned = None;
        for index in indices {
            match self.index(index) {
                Ok(index) => out.push(index),
                Err(poison) => poisoned = Some(poison),
            }
        }
        if let Some(poison) = poisoned {
            return Err(poison);
        }
        if out.len() > rank {
            let message = format!(
                "too many indices: a value of type {base} takes {rank}, found {}",
                out.len()
            );
            return self.fail(Diagnostic::error(Code::Indexing, span, message));
        }
        let ty = indexed(base, &out);
        Ok((out, ty))
    }

    fn index(&mut self, index: &ast::Index) -> Checking<Index> {
        Ok(match index {
            ast::Index::All => Index::All,
            ast::Index::From(e) => Index::From(self.int_expr(e, "the bound of an index range")?),
            ast::Index::To(e) => Index::To(self.int_expr(e, "the bound of an index range")?),
            ast::Index::Between(a, b) => {
                let a = self.int_expr(a, "the bound of an index range");
                let b = self.int_expr(b, "the bound of an index range");
                Index::Between(a?, b?)
            }
            ast::Index::One(e) => {
                let expr = self.expr(e)?;
                match &expr.ty {
                    Type::Int => Index::Single(expr),
                    Type::Array(inner) if **inner == Type::Int => Index::Multi(expr),
                    other => {
                        let message = format!("an index must be int or array[] int, found {other}");
                        return self.fail(Diagnostic::error(Code::Indexing, e.span, message));
                    }
                }
            }
        })
    }
}
