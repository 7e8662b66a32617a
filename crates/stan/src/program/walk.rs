//! Visits the expressions of a program.

use super::{Access, Constraint, Decl, Expr, ExprKind, Index, LValue, Message};
use super::{SizedType, Stmt, StmtKind};

impl Index {
    /// Returns the expressions that occur in the index.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Index::All => Vec::new(),
            Index::Single(e) | Index::Multi(e) | Index::From(e) | Index::To(e) => vec![e],
            Index::Between(a, b) => vec![a, b],
        }
    }
}

impl Expr {
    /// Returns the operands, from left to right.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::IntLit(_)
            | ExprKind::RealLit(_)
            | ExprKind::ImagLit(_)
            | ExprKind::Var(_)
            | ExprKind::Target
            | ExprKind::FunRef(_) => Vec::new(),
            ExprKind::Unary(_, e)
            | ExprKind::Transpose(e)
            | ExprKind::TupleProj(e, _)
            | ExprKind::Promote(e) => vec![e],
            ExprKind::Binary(_, a, b) => vec![a, b],
            ExprKind::Ternary(a, b, c) => vec![a, b, c],
            ExprKind::Index(base, indices) => {
                let within = indices.iter().flat_map(Index::exprs);
                std::iter::once(&**base).chain(within).collect()
            }
            ExprKind::ArrayLit(list) | ExprKind::RowVectorLit(list) | ExprKind::TupleLit(list) => {
                list.iter().collect()
            }
            ExprKind::Call(call) => call.args.iter().collect(),
        }
    }

    /// Visits the expression and its subexpressions. Each expression is visited before its subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        see(self);
        for child in self.children() {
            child.visit(see);
        }
    }
}

impl LValue {
    /// Visits the expressions in the indices of the target, and their subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            LValue::Tuple(parts) => parts.iter().for_each(|part| part.visit(see)),
            LValue::Part(part) => {
                for access in &part.path {
                    if let Access::Index(indices) = access {
                        let all = indices.iter().flat_map(Index::exprs);
                        all.for_each(|e| e.visit(see));
                    }
                }
            }
        }
    }
}

impl SizedType {
    fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            SizedType::Int | SizedType::Real | SizedType::Complex => {}
            SizedType::Vector(n)
            | SizedType::RowVector(n)
            | SizedType::ComplexVector(n)
            | SizedType::ComplexRowVector(n) => n.visit(see),
            SizedType::Matrix(n, m) | SizedType::ComplexMatrix(n, m) => {
                n.visit(see);
                m.visit(see);
            }
            SizedType::Array(n, inner) => {
                n.visit(see);
                inner.visit(see);
            }
            SizedType::Tuple(parts) => {
                for (ty, constraint) in parts {
                    ty.visit(see);
                    constraint.visit(see);
                }
            }
        }
    }
}

impl Constraint {
    fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match self {
            Constraint::Lower(e)
            | Constraint::Upper(e)
            | Constraint::Offset(e)
            | Constraint::Multiplier(e) => e.visit(see),
            Constraint::LowerUpper(a, b) | Constraint::OffsetMultiplier(a, b) => {
                a.visit(see);
                b.visit(see);
            }
            _ => {}
        }
    }
}

impl Decl {
    /// Visits the expressions in sizes, bounds and the initial value, and their subexpressions.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        self.ty.visit(see);
        self.constraint.visit(see);
        if let Some(init) = &self.init {
            init.visit(see);
        }
    }
}

impl Stmt {
    /// Visits the statement and the statements that it contains. Each statement is visited before its contents.
    pub fn visit<'a>(&'a self, see: &mut dyn FnMut(&'a Stmt)) {
        see(self);
        match &self.kind {
            StmtKind::If {
                then, otherwise, ..
            } => {
                then.visit(see);
                if let Some(otherwise) = otherwise {
                    otherwise.visit(see);
                }
            }
            StmtKind::While { body, .. }
            | StmtKind::For { body, .. }
            | StmtKind::ForEach { body, .. } => body.visit(see),
            StmtKind::Block(list) | StmtKind::Profile(_, list) => {
                list.iter().for_each(|stmt| stmt.visit(see));
            }
            _ => {}
        }
    }

    /// Visits the expressions of the statement and their subexpressions, but does not enter the statements that it
    /// contains.
    pub fn visit_exprs<'a>(&'a self, see: &mut dyn FnMut(&'a Expr)) {
        match &self.kind {
            StmtKind::Decl(decl) => decl.visit(see),
            StmtKind::Assign(assign) => {
                assign.target.visit(see);
                assign.rhs.visit(see);
            }
            StmtKind::TargetPlus(e) | StmtKind::JacobianPlus(e) => e.visit(see),
            StmtKind::Tilde(tilde) => {
                tilde.args.iter().for_each(|e| e.visit(see));
                if let Some(truncation) = &tilde.truncation {
                    let bounds = truncation.lower.iter().chain(&truncation.upper);
                    bounds.for_each(|e| e.visit(see));
                }
            }
            StmtKind::Call(call) => call.args.iter().for_each(|e| e.visit(see)),
            StmtKind::Print(parts) | StmtKind::Reject(parts) | StmtKind::FatalError(parts) => {
                for part in parts {
                    if let Message::Value(e) = part {
                        e.visit(see);
                    }
                }
            }
            StmtKind::If { condition, .. } => condition.visit(see),
            StmtKind::While { condition, .. } => condition.visit(see),
            StmtKind::For { lower, upper, .. } => {
                lower.visit(see);
                upper.visit(see);
            }
            StmtKind::ForEach { container, .. } => container.visit(see),
            StmtKind::Return(value) => value.iter().for_each(|e| e.visit(see)),
            StmtKind::Block(_)
            | StmtKind::Profile(..)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Empty => {}
        }
    }
}
