//! Finds the variables that statements and expressions read.

use super::{
    Access, Constraint, Decl, Expr, ExprKind, Index, LValue, Message, SizedType, Span, Stmt,
    StmtKind, VarId,
};

/// Calls `f` with each variable that these statements read, and with the location of the read. The sizes and bounds of
/// declarations are also reads.
pub fn each_read(stmts: &[Stmt], f: &mut dyn FnMut(VarId, Span)) {
    stmts.iter().for_each(|stmt| statement(stmt, f));
}

/// Calls `f` with each variable that an expression reads, and with the location of the read.
pub fn each_read_of(expr: &Expr, f: &mut dyn FnMut(VarId, Span)) {
    let mut all = |parts: &[Expr]| parts.iter().for_each(|part| each_read_of(part, f));
    match &expr.kind {
        ExprKind::IntLit(_)
        | ExprKind::RealLit(_)
        | ExprKind::ImagLit(_)
        | ExprKind::Target
        | ExprKind::FunRef(_) => {}
        ExprKind::Var(var) => f(*var, expr.span),
        ExprKind::Unary(_, a)
        | ExprKind::Transpose(a)
        | ExprKind::TupleProj(a, _)
        | ExprKind::Promote(a) => each_read_of(a, f),
        ExprKind::Binary(_, a, b) => {
            each_read_of(a, f);
            each_read_of(b, f);
        }
        ExprKind::Ternary(a, b, c) => {
            each_read_of(a, f);
            each_read_of(b, f);
            each_read_of(c, f);
        }
        ExprKind::Index(base, indices) => {
            each_read_of(base, f);
            self::indices(indices, f);
        }
        ExprKind::ArrayLit(parts) | ExprKind::RowVectorLit(parts) | ExprKind::TupleLit(parts) => {
            all(parts);
        }
        ExprKind::Call(call) => all(&call.args),
    }
}

fn indices(indices: &[Index], f: &mut dyn FnMut(VarId, Span)) {
    for index in indices {
        match index {
            Index::All => {}
            Index::Single(a) | Index::Multi(a) | Index::From(a) | Index::To(a) => {
                each_read_of(a, f)
            }
            Index::Between(a, b) => {
                each_read_of(a, f);
                each_read_of(b, f);
            }
        }
    }
}

/// Returns all size expressions of a type, starting with the outermost dimension.
pub fn sizes(ty: &SizedType) -> Vec<&Expr> {
    match ty {
        SizedType::Vector(n)
        | SizedType::RowVector(n)
        | SizedType::ComplexVector(n)
        | SizedType::ComplexRowVector(n) => vec![&**n],
        SizedType::Matrix(n, m) | SizedType::ComplexMatrix(n, m) => vec![&**n, &**m],
        SizedType::Array(n, inner) => {
            let mut all = vec![&**n];
            all.extend(sizes(inner));
            all
        }
        SizedType::Tuple(parts) => parts.iter().flat_map(|(ty, _)| sizes(ty)).collect(),
        SizedType::Int | SizedType::Real | SizedType::Complex => Vec::new(),
    }
}

fn constraint(constraint: &Constraint, f: &mut dyn FnMut(VarId, Span)) {
    match constraint {
        Constraint::Lower(a)
        | Constraint::Upper(a)
        | Constraint::Offset(a)
        | Constraint::Multiplier(a) => each_read_of(a, f),
        Constraint::LowerUpper(a, b) | Constraint::OffsetMultiplier(a, b) => {
            each_read_of(a, f);
            each_read_of(b, f);
        }
        _ => {}
    }
}

fn declaration(decl: &Decl, f: &mut dyn FnMut(VarId, Span)) {
    sizes(&decl.ty)
        .into_iter()
        .for_each(|size| each_read_of(size, f));
    constraint(&decl.constraint, f);
    if let SizedType::Tuple(parts) = &decl.ty {
        parts.iter().for_each(|(_, part)| constraint(part, f));
    }
    if let Some(init) = &decl.init {
        each_read_of(init, f);
    }
}

fn target(target: &LValue, compound: bool, f: &mut dyn FnMut(VarId, Span)) {
    match target {
        LValue::Part(part) => {
            if compound {
                f(part.var, part.span);
            }
            for access in &part.path {
                if let Access::Index(found) = access {
                    indices(found, f);
                }
            }
        }
        LValue::Tuple(parts) => parts
            .iter()
            .for_each(|part| self::target(part, compound, f)),
    }
}

fn messages(parts: &[Message], f: &mut dyn FnMut(VarId, Span)) {
    for part in parts {
        if let Message::Value(value) = part {
            each_read_of(value, f);
        }
    }
}

fn statement(stmt: &Stmt, f: &mut dyn FnMut(VarId, Span)) {
    match &stmt.kind {
        StmtKind::Decl(decl) => declaration(decl, f),
        StmtKind::Assign(assign) => {
            target(&assign.target, assign.op.is_some(), f);
            each_read_of(&assign.rhs, f);
        }
        StmtKind::TargetPlus(e) | StmtKind::JacobianPlus(e) => each_read_of(e, f),
        StmtKind::Tilde(tilde) => {
            let bounds = tilde
                .truncation
                .iter()
                .flat_map(|t| t.lower.iter().chain(&t.upper));
            tilde
                .args
                .iter()
                .chain(bounds)
                .for_each(|e| each_read_of(e, f));
        }
        StmtKind::Call(call) => call.args.iter().for_each(|e| each_read_of(e, f)),
        StmtKind::Print(parts) | StmtKind::Reject(parts) | StmtKind::FatalError(parts) => {
            messages(parts, f);
        }
        StmtKind::If {
            condition,
            then,
            otherwise,
        } => {
            each_read_of(condition, f);
            statement(then, f);
            if let Some(otherwise) = otherwise {
                statement(otherwise, f);
            }
        }
        StmtKind::While { condition, body } => {
            each_read_of(condition, f);
            statement(body, f);
        }
        StmtKind::For {
            lower, upper, body, ..
        } => {
            each_read_of(lower, f);
            each_read_of(upper, f);
            statement(body, f);
        }
        StmtKind::ForEach {
            container, body, ..
        } => {
            each_read_of(container, f);
            statement(body, f);
        }
        StmtKind::Block(body) | StmtKind::Profile(_, body) => each_read(body, f),
        StmtKind::Return(Some(e)) => each_read_of(e, f),
        StmtKind::Break | StmtKind::Continue | StmtKind::Return(None) | StmtKind::Empty => {}
    }
}
