//! Checks expressions.

use super::{Checker, Checking, Poison, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::program::signatures::BuiltinId;
use crate::program::{BinaryOp, BlockKind, Expr, ExprKind, FunctionType, Level, Type, UnaryOp};
use crate::source::Span;
use crate::spelling;
use crate::syntax::ast::{self, InfixOp, PrefixOp};

fn operator_functions(op: InfixOp) -> &'static [&'static str] {
    use InfixOp::*;
    match op {
        Add => &["add"],
        Sub => &["subtract"],
        Mul => &["multiply"],
        Div => &["divide", "mdivide_right"],
        IntDiv | Mod => &["modulus"],
        LeftDiv => &["mdivide_left"],
        EltMul => &["elt_multiply"],
        EltDiv => &["elt_divide"],
        Pow | EltPow => &["pow"],
        Eq => &["logical_eq"],
        Ne => &["logical_neq"],
        Lt => &["logical_lt"],
        Le => &["logical_lte"],
        Gt => &["logical_gt"],
        Ge => &["logical_gte"],
        And => &["logical_and"],
        Or => &["logical_or"],
    }
}

fn binary_op(op: InfixOp) -> BinaryOp {
    match op {
        InfixOp::Add => BinaryOp::Add,
        InfixOp::Sub => BinaryOp::Sub,
        InfixOp::Mul => BinaryOp::Mul,
        InfixOp::Div => BinaryOp::Div,
        InfixOp::IntDiv => BinaryOp::IntDiv,
        InfixOp::Mod => BinaryOp::Mod,
        InfixOp::LeftDiv => BinaryOp::LeftDiv,
        InfixOp::EltMul => BinaryOp::EltMul,
        InfixOp::EltDiv => BinaryOp::EltDiv,
        InfixOp::Pow => BinaryOp::Pow,
        InfixOp::EltPow => BinaryOp::EltPow,
        InfixOp::Eq => BinaryOp::Eq,
        InfixOp::Ne => BinaryOp::Ne,
        InfixOp::Lt => BinaryOp::Lt,
        InfixOp::Le => BinaryOp::Le,
        InfixOp::Gt => BinaryOp::Gt,
        InfixOp::Ge => BinaryOp::Ge,
        InfixOp::And => BinaryOp::And,
        InfixOp::Or => BinaryOp::Or,
    }
}

pub(super) struct Operation {
    pub(super) op: BinaryOp,
    pub(super) left: Type,
    pub(super) right: Type,
    pub(super) result: Type,
}

pub(super) fn operation(
    op: InfixOp,
    left: &Type,
    right: &Type,
    compound: bool,
) -> Option<Operation> {
    let names = operator_functions(op);
    // The operator `/=` divides by scalars only.
    let names = if compound { &names[..1] } else { names };
    let signatures = names
        .iter()
        .filter_map(|name| BuiltinId::from_name(name))
        .flat_map(|id| id.signatures());
    let best = cheapest(signatures, &[left, right])?;
    let [left, right] = best.params.as_slice() else {
        return None;
    };
    let ints = left.ty == Type::Int && right.ty == Type::Int;
    let op = match binary_op(op) {
        BinaryOp::Div if ints => BinaryOp::IntDiv,
        op => op,
    };
    Some(Operation {
        op,
        left: left.ty.clone(),
        right: right.ty.clone(),
        result: best.result.clone(),
    })
}

/// If several signatures need equally few promotions, the first of them is chosen.
fn cheapest<'a>(
    signatures: impl Iterator<Item = &'a FunctionType>,
    args: &[&Type],
) -> Option<&'a FunctionType> {
    signatures
        .filter_map(|signature| {
            if signature.params.len() != args.len() {
                return None;
            }
            let mut cost = 0;
            for (param, arg) in signature.params.iter().zip(args) {
                cost += types::promotion_cost(arg, &param.ty)?;
            }
            Some((cost, signature))
        })
        .min_by_key(|(cost, _)| *cost)
        .map(|(_, signature)| signature)
}

impl Checker {
    pub(super) fn expr(&mut self, expr: &ast::Expr) -> Checking<Expr> {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Error => Err(Poison),
            ast::ExprKind::Int(value) => {
                Ok(self.node(ExprKind::IntLit(*value), Type::Int, Level::Data, span))
            }
            ast::ExprKind::Real(value) => {
                Ok(self.node(ExprKind::RealLit(*value), Type::Real, Level::Data, span))
            }
            ast::ExprKind::Imag(value) => {
                Ok(self.node(ExprKind::ImagLit(*value), Type::Complex, Level::Data, span))
            }
            ast::ExprKind::Paren(inner) => {
                let mut inner = self.expr(inner)?;
                inner.span = span;
                Ok(inner)
            }
            ast::ExprKind::Name(name) => self.variable(name, span),
            ast::ExprKind::Target => {
                if self.block_kind() != BlockKind::TransformedParameters {
                    self.target_allowed(span)?;
                }
                Ok(self.node(ExprKind::Target, Type::Real, Level::Param, span))
            }
            ast::ExprKind::Prefix(op, operand) => self.prefix(*op, operand, span),
            ast::ExprKind::Infix(op, op_span, left, right) => {
                self.infix(*op, *op_span, left, right, span)
            }
            ast::ExprKind::Ternary(condition, then, otherwise) => {
                self.ternary(condition, then, otherwise, span)
            }
            ast::ExprKind::Transpose(operand) => self.transpose(operand, span),
            ast::ExprKind::Index(base, indices) => {
                let base = self.expr(base)?;
                let (indices, ty) = self.indices(&base.ty, indices, span)?;
                let level = base.level;
                Ok(self.node(ExprKind::Index(Box::new(base), indices), ty, level, span))
            }
            ast::ExprKind::Component(base, number) => {
                let base = self.expr(base)?;
                let (position, ty) = self.component(&base.ty, *number, span)?;
                let level = match &base.kind {
                    ExprKind::TupleLit(parts) => parts[position as usize].level,
                    _ => base.level,
                };
                Ok(self.node(
                    ExprKind::TupleProj(Box::new(base), position),
                    ty,
                    level,
                    span,
                ))
            }
            ast::ExprKind::Call(call) => self.call_expr(call, span),
            ast::ExprKind::Array(elements) => self.array(elements, span),
            ast::ExprKind::RowVector(elements) => self.row_vector(elements, span),
            ast::ExprKind::Tuple(elements) => {
                let parts = self.exprs(elements)?;
                let ty = Type::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
                let level = join(&parts);
                Ok(self.node(ExprKind::TupleLit(parts), ty, level, span))
            }
        }
    }

    /// Reports the errors of all expressions, not only of the first.
    pub(super) fn exprs(&mut self, exprs: &[ast::Expr]) -> Checking<Vec<Expr>> {
        let checked: Vec<_> = exprs.iter().map(|e| self.expr(e)).collect();
        checked.into_iter().collect()
    }

    pub(super) fn int_expr(&mut self, expr: &ast::Expr, what: &str) -> Checking<Expr> {
        let checked = self.expr(expr)?;
        if checked.ty == Type::Int {
            return Ok(checked);
        }
        let message = format!("{what} must be of type int, found {}", checked.ty);
        let mut diagnostic = Diagnostic::error(Code::TypeMismatch, expr.span, message);
        if checked.ty == Type::Real && checked.level == Level::Data {
            diagnostic = diagnostic.help("convert real data with `to_int(…)`");
        }
        self.fail(diagnostic)
    }

    fn variable(&mut self, name: &str, span: Span) -> Checking<Expr> {
        match self.lookup(name) {
            Some(Some(id)) => {
                let var = &self.vars[id.0 as usize];
                let (ty, level, block) = (var.ty.clone(), var.level, var.block);
                if self.context.in_size && block > BlockKind::TransformedData {
                    let message = format!("the size of a variable cannot depend on `{name}`");
                    let diagnostic = Diagnostic::error(Code::Size, span, message)
                        .also(
                            self.vars[id.0 as usize].span,
                            format!("declared in {}", block.name()),
                        )
                        .help("sizes may use data and transformed data only");
                    return self.fail(diagnostic);
                }
                Ok(self.node(ExprKind::Var(id), ty, level, span))
            }
            Some(None) => Err(Poison),
            None => self.unknown_variable(name, span),
        }
    }

    fn unknown_variable(&mut self, name: &str, span: Span) -> Checking<Expr> {
        if name == "lp__" {
            let diagnostic =
                Diagnostic::error(Code::Removed, span, "`lp__` is no longer part of Stan")
                    .help("the log density is `target()`; add to it with `target += …;`");
            return self.fail(diagnostic);
        }
        if self.by_name.contains_key(name) || BuiltinId::from_name(name).is_some() {
            let message = format!("`{name}` is a function, not a value");
            let mut diagnostic = Diagnostic::error(Code::TypeMismatch, span, message);
            if matches!(name, "pi" | "e" | "sqrt2" | "machine_precision") {
                diagnostic = diagnostic.help(format!(
                    "constants are functions without arguments: `{name}()`"
                ));
            }
            return self.fail(diagnostic);
        }
        let mut diagnostic = Diagnostic::error(
            Code::UnknownName,
            span,
            format!("there is no variable `{name}` here"),
        );
        let names = self
            .scopes
            .iter()
            .flat_map(|scope| scope.keys())
            .map(String::as_str);
        if let Some(meant) = spelling::closest(name, names) {
            diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
        }
        if self.block_kind() == BlockKind::Functions {
            diagnostic = diagnostic
                .note("functions see only their arguments, not the variables of the program");
        }
        self.fail(diagnostic)
    }

    fn prefix(&mut self, op: PrefixOp, operand: &ast::Expr, span: Span) -> Checking<Expr> {
        let operand = self.expr(operand)?;
        let (name, symbol) = match op {
            PrefixOp::Plus => ("plus", "+"),
            PrefixOp::Minus => ("minus", "-"),
            PrefixOp::Not => ("logical_negation", "!"),
        };
        let signatures = BuiltinId::from_name(name)
            .map(BuiltinId::signatures)
            .unwrap_or_default();
        let Some(best) = cheapest(signatures.iter(), &[&operand.ty]) else {
            let message = format!("`{symbol}` cannot be applied to {}", operand.ty);
            return self.fail(Diagnostic::error(Code::NoMatchingSignature, span, message));
        };
        let level = operand.level;
        let operand = self.promote(operand, &best.params[0].ty);
        let op = match op {
            PrefixOp::Plus => return Ok(Expr { span, ..operand }),
            PrefixOp::Minus => UnaryOp::Neg,
            PrefixOp::Not => UnaryOp::Not,
        };
        Ok(self.node(
            ExprKind::Unary(op, Box::new(operand)),
            best.result.clone(),
            level,
            span,
        ))
    }

    fn infix(
        &mut self,
        op: InfixOp,
        op_span: Span,
        left: &ast::Expr,
        right: &ast::Expr,
        span: Span,
    ) -> Checking<Expr> {
        let left = self.expr(left);
        let right = self.expr(right);
        let (left, right) = (left?, right?);
        let Some(found) = operation(op, &left.ty, &right.ty, false) else {
            return self.no_operation(op, op_span, &left, &right);
        };
        if found.op == BinaryOp::IntDiv && op == InfixOp::Div {
            self.report(
                Diagnostic::warning(
                    Code::IntegerDivision,
                    op_span,
                    "this divides integers and drops the remainder",
                )
                .help("if this is intended, write `%/%`; otherwise make one side real, as in `1.0 / n`"),
            );
        }
        let level = left.level.max(right.level);
        let left = self.promote(left, &found.left);
        let right = self.promote(right, &found.right);
        let kind = ExprKind::Binary(found.op, Box::new(left), Box::new(right));
        Ok(self.node(kind, found.result, level, span))
    }

    fn no_operation(
        &mut self,
        op: InfixOp,
        op_span: Span,
        left: &Expr,
        right: &Expr,
    ) -> Checking<Expr> {
        let symbol = op.symbol();
        let message = format!(
            "`{symbol}` cannot be applied to {} and {}",
            left.ty, right.ty
        );
        let mut diagnostic = Diagnostic::error(Code::NoMatchingSignature, op_span, message)
            .also(left.span, left.ty.to_string())
            .also(right.span, right.ty.to_string());
        let vectors = |ty: &Type| matches!(ty, Type::Vector | Type::RowVector | Type::Matrix);
        let array = |ty: &Type| matches!(ty, Type::Array(_));
        if op == InfixOp::Mul && vectors(&left.ty) && vectors(&right.ty) {
            diagnostic = diagnostic.help(match self.transposed_product(left, right) {
                Some(product) => format!("write `{product}`"),
                None => "elementwise product is `.*`; a vector becomes a row vector with `x'`"
                    .to_owned(),
            });
        } else if array(&left.ty) || array(&right.ty) {
            diagnostic = diagnostic.help("arrays have no arithmetic; convert with `to_vector(…)`");
        } else if matches!(op, InfixOp::And | InfixOp::Or) {
            diagnostic = diagnostic.help("conditions are int; compare a real, as in `x > 0`");
        } else if op == InfixOp::Mod {
            diagnostic = diagnostic.help("the remainder of reals is `fmod(x, y)`");
        }
        self.fail(diagnostic)
    }

    /// Returns the product that would be valid if one of the operands were transposed. The operands must be variables.
    fn transposed_product(&self, left: &Expr, right: &Expr) -> Option<String> {
        let name = |e: &Expr| match e.kind {
            ExprKind::Var(var) => Some(&self.vars[var.0 as usize].name),
            _ => None,
        };
        let (a, b) = (name(left)?, name(right)?);
        let across = |ty: &Type| match ty {
            Type::Vector => Some(Type::RowVector),
            Type::RowVector => Some(Type::Vector),
            _ => None,
        };
        let fits = |l: &Type, r: &Type| operation(InfixOp::Mul, l, r, true).is_some();
        // The product of two vectors is usually meant to be a number.
        if across(&left.ty).is_some_and(|l| left.ty == Type::Vector && fits(&l, &right.ty)) {
            return Some(format!("{a}' * {b}"));
        }
        across(&right.ty)
            .is_some_and(|r| fits(&left.ty, &r))
            .then(|| format!("{a} * {b}'"))
    }

    fn ternary(
        &mut self,
        condition: &ast::Expr,
        then: &ast::Expr,
        otherwise: &ast::Expr,
        span: Span,
    ) -> Checking<Expr> {
        let condition = self.int_expr(condition, "the condition");
        let then = self.expr(then);
        let otherwise = self.expr(otherwise);
        let (condition, then, otherwise) = (condition?, then?, otherwise?);
        let Some(ty) = types::common(&then.ty, &otherwise.ty) else {
            let diagnostic = Diagnostic::error(
                Code::TypeMismatch,
                span,
                "both branches of `?:` must have the same type",
            )
            .also(then.span, then.ty.to_string())
            .also(otherwise.span, otherwise.ty.to_string());
            return self.fail(diagnostic);
        };
        let level = condition.level.max(then.level).max(otherwise.level);
        let then = self.promote(then, &ty);
        let otherwise = self.promote(otherwise, &ty);
        let kind = ExprKind::Ternary(Box::new(condition), Box::new(then), Box::new(otherwise));
        Ok(self.node(kind, ty, level, span))
    }

    fn transpose(&mut self, operand: &ast::Expr, span: Span) -> Checking<Expr> {
        let operand = self.expr(operand)?;
        let ty = match &operand.ty {
            Type::Vector => Type::RowVector,
            Type::RowVector => Type::Vector,
            Type::ComplexVector => Type::ComplexRowVector,
            Type::ComplexRowVector => Type::ComplexVector,
            Type::Matrix | Type::ComplexMatrix => operand.ty.clone(),
            other => {
                let message = format!("a value of type {other} cannot be transposed");
                return self.fail(Diagnostic::error(Code::NoMatchingSignature, span, message));
            }
        };
        let level = operand.level;
        Ok(self.node(ExprKind::Transpose(Box::new(operand)), ty, level, span))
    }

    /// Returns the position of the component and its type. In the source, the position is counted from 1.
    pub(super) fn component(
        &mut self,
        ty: &Type,
        number: u32,
        span: Span,
    ) -> Checking<(u32, Type)> {
        let Type::Tuple(parts) = ty else {
            let message = format!("a value of type {ty} has no components");
            return self.fail(Diagnostic::error(Code::Indexing, span, message));
        };
        match number.checked_sub(1).and_then(|at| parts.get(at as usize)) {
            Some(part) => Ok((number - 1, part.clone())),
            None => {
                let message = format!("a value of type {ty} has no component {number}");
                let help = format!("components are counted from 1 to {}", parts.len());
                self.fail(Diagnostic::error(Code::Indexing, span, message).help(help))
            }
        }
    }

    fn array(&mut self, elements: &[ast::Expr], span: Span) -> Checking<Expr> {
        let elements = self.exprs(elements)?;
        let mut ty = elements[0].ty.clone();
        for element in &elements[1..] {
            ty = match types::common(&ty, &element.ty) {
                Some(ty) => ty,
                None => {
                    let message = format!(
                        "the elements of an array must have one type, found {ty} and {}",
                        element.ty
                    );
                    let diagnostic = Diagnostic::error(Code::TypeMismatch, element.span, message)
                        .also(elements[0].span, elements[0].ty.to_string());
                    return self.fail(diagnostic);
                }
            };
        }
        let level = join(&elements);
        let elements: Vec<Expr> = elements.into_iter().map(|e| self.promote(e, &ty)).collect();
        Ok(self.node(ExprKind::ArrayLit(elements), ty.array(1), level, span))
    }

    fn row_vector(&mut self, elements: &[ast::Expr], span: Span) -> Checking<Expr> {
        let elements = self.exprs(elements)?;
        let complex = elements.iter().any(|e| e.ty.has_complex());
        let rows = elements.first().is_some_and(|e| !e.ty.is_scalar());
        let (element, ty) = match (rows, complex) {
            (false, false) => (Type::Real, Type::RowVector),
            (false, true) => (Type::Complex, Type::ComplexRowVector),
            (true, false) => (Type::RowVector, Type::Matrix),
            (true, true) => (Type::ComplexRowVector, Type::ComplexMatrix),
        };
        if let Some(odd) = elements
            .iter()
            .find(|e| types::promotion_cost(&e.ty, &element).is_none())
        {
            let message = format!(
                "`[…]` needs scalars, or row vectors to make a matrix; found {}",
                odd.ty
            );
            let mut diagnostic = Diagnostic::error(Code::TypeMismatch, odd.span, message);
            if odd.ty == Type::Vector {
                diagnostic = diagnostic.help("a vector becomes a row vector with `x'`");
            }
            return self.fail(diagnostic);
        }
        let level = join(&elements);
        let elements: Vec<Expr> = elements
            .into_iter()
            .map(|e| self.promote(e, &element))
            .collect();
        Ok(self.node(ExprKind::RowVectorLit(elements), ty, level, span))
    }
}

pub(super) fn join(parts: &[Expr]) -> Level {
    parts
        .iter()
        .map(|part| part.level)
        .max()
        .unwrap_or(Level::Data)
}
