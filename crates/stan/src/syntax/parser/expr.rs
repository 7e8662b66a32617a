//! Parses expressions by operator precedence.

use super::super::ast::{Call, Expr, ExprKind, Index, InfixOp, PrefixOp};
use super::super::token::TokenKind;
use super::{Failed, MAX_HEIGHT, Parsed, Parser};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

const TERNARY: u8 = 1;
const OR: u8 = 2;
const AND: u8 = 3;
const EQUALITY: u8 = 4;
const COMPARISON: u8 = 5;
const SUM: u8 = 6;
const PRODUCT: u8 = 7;
const INT_DIVISION: u8 = 8;
const LEFT_DIVISION: u8 = 9;
const PREFIX: u8 = 10;
const POWER: u8 = 11;

fn infix(kind: TokenKind) -> Option<(InfixOp, u8)> {
    use TokenKind::*;
    let op = match kind {
        OrOr => (InfixOp::Or, OR),
        AndAnd => (InfixOp::And, AND),
        EqEq => (InfixOp::Eq, EQUALITY),
        NotEq => (InfixOp::Ne, EQUALITY),
        Less => (InfixOp::Lt, COMPARISON),
        LessEq => (InfixOp::Le, COMPARISON),
        Greater => (InfixOp::Gt, COMPARISON),
        GreaterEq => (InfixOp::Ge, COMPARISON),
        Plus => (InfixOp::Add, SUM),
        Minus => (InfixOp::Sub, SUM),
        Times => (InfixOp::Mul, PRODUCT),
        Divide => (InfixOp::Div, PRODUCT),
        IntDivide => (InfixOp::IntDiv, INT_DIVISION),
        Modulo => (InfixOp::Mod, PRODUCT),
        EltTimes => (InfixOp::EltMul, PRODUCT),
        EltDivide => (InfixOp::EltDiv, PRODUCT),
        LeftDivide => (InfixOp::LeftDiv, LEFT_DIVISION),
        Hat => (InfixOp::Pow, POWER),
        EltPow => (InfixOp::EltPow, POWER),
        _ => return None,
    };
    Some(op)
}

/// A long sum, or a long chain of `&&` or `||`, is split into parts with this many operations. Without parts, an
/// expression with ten thousand terms would be nested ten thousand levels deep, but the code that visits expressions is
/// recursive. The split changes the order of additions, so it can change the rounding of a long sum of reals.
const PART: u32 = 100;

#[derive(Default)]
struct Parts {
    list: Vec<Expr>,
    power: Option<u8>,
    op: Option<(InfixOp, Span)>,
}

fn part_ends(op: InfixOp) -> Option<InfixOp> {
    match op {
        InfixOp::Add | InfixOp::Sub => Some(InfixOp::Add),
        InfixOp::And | InfixOp::Or => Some(op),
        _ => None,
    }
}

impl Parser<'_> {
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.expr_above(0)
    }

    /// Parses an expression without comparisons, logical operators or `?:`. Bounds are such expressions, because `>`
    /// ends them.
    pub(super) fn bound_expr(&mut self) -> Parsed<Expr> {
        self.expr_above(SUM)
    }

    fn node(&mut self, kind: ExprKind, span: Span) -> Parsed<Expr> {
        let height = 1 + child_height(&kind);
        if height > MAX_HEIGHT {
            let message =
                format!("this expression has more than {MAX_HEIGHT} operations in a chain");
            return self.fail(
                Diagnostic::error(Code::TooDeep, span, message)
                    .help("split it, or use `sum` or a loop"),
            );
        }
        Ok(Expr { kind, span, height })
    }

    fn expr_above(&mut self, min: u8) -> Parsed<Expr> {
        self.nested(|p| p.expr_above_inner(min))
    }

    fn expr_above_inner(&mut self, min: u8) -> Parsed<Expr> {
        let mut left = self.prefix()?;
        let mut parts = Parts::default();
        loop {
            if self.peek() == TokenKind::Question && min <= TERNARY {
                self.bump();
                let then = self.expr()?;
                self.expect(TokenKind::Colon)?;
                let otherwise = self.expr_above(TERNARY)?;
                let span = left.span.to(otherwise.span);
                let kind = ExprKind::Ternary(Box::new(left), Box::new(then), Box::new(otherwise));
                left = self.node(kind, span)?;
                continue;
            }
            let next = infix(self.peek()).filter(|(_, power)| *power >= min);
            let going_on = next.filter(|(_, power)| parts.power == Some(*power));
            if going_on.is_none() && !parts.list.is_empty() {
                parts.list.push(left);
                left = self.joined(std::mem::take(&mut parts))?;
            }
            let Some((op, power)) = next else {
                return Ok(left);
            };
            let op_span = self.bump().span;
            if op == InfixOp::Mul && self.peek() == TokenKind::Times {
                let span = op_span.to(self.span());
                let diagnostic =
                    Diagnostic::error(Code::Syntax, span, "`**` is not an operator of Stan")
                        .help("write powers with `^`");
                return self.fail(diagnostic);
            }
            // Powers associate to the right, and all other operators to the left.
            let right = self.expr_above(if power == POWER { power } else { power + 1 })?;
            let span = left.span.to(right.span);
            if left.height >= PART
                && let Some(join) = part_ends(op)
            {
                parts.list.push(left);
                parts.power = Some(power);
                parts.op = Some((join, op_span));
                left = match op {
                    InfixOp::Sub => {
                        self.node(ExprKind::Prefix(PrefixOp::Minus, Box::new(right)), span)?
                    }
                    _ => right,
                };
                continue;
            }
            left = self.node(
                ExprKind::Infix(op, op_span, Box::new(left), Box::new(right)),
                span,
            )?;
        }
    }

    /// The height of the tree is logarithmic in the number of parts.
    fn joined(&mut self, parts: Parts) -> Parsed<Expr> {
        let Some((op, op_span)) = parts.op else {
            return Err(Failed);
        };
        let mut list = parts.list;
        while list.len() > 1 {
            let mut pairs = Vec::with_capacity(list.len().div_ceil(2));
            let mut rest = list.into_iter();
            while let Some(left) = rest.next() {
                pairs.push(match rest.next() {
                    None => left,
                    Some(right) => {
                        let span = left.span.to(right.span);
                        let kind = ExprKind::Infix(op, op_span, Box::new(left), Box::new(right));
                        self.node(kind, span)?
                    }
                });
            }
            list = pairs;
        }
        list.pop().ok_or(Failed)
    }

    fn prefix(&mut self) -> Parsed<Expr> {
        let op = match self.peek() {
            TokenKind::Plus => PrefixOp::Plus,
            TokenKind::Minus => PrefixOp::Minus,
            TokenKind::Bang => PrefixOp::Not,
            _ => return self.postfix(),
        };
        let start = self.bump().span;
        let operand = self.expr_above(PREFIX)?;
        let span = start.to(operand.span);
        self.node(ExprKind::Prefix(op, Box::new(operand)), span)
    }

    fn postfix(&mut self) -> Parsed<Expr> {
        let mut base = self.primary()?;
        loop {
            match self.peek() {
                TokenKind::LBracket => {
                    let open = self.bump().span;
                    let indices = self.indices()?;
                    let end = self.close(TokenKind::RBracket, open)?;
                    let span = base.span.to(end);
                    base = self.node(ExprKind::Index(Box::new(base), indices), span)?;
                }
                TokenKind::Real if self.is_component() => {
                    let token = self.bump();
                    let span = base.span.to(token.span);
                    let Ok(number) = self.text(token.span)[1..].parse() else {
                        return self.fail(Diagnostic::error(
                            Code::Literal,
                            token.span,
                            "a tuple cannot have this many components",
                        ));
                    };
                    base = self.node(ExprKind::Component(Box::new(base), number), span)?;
                }
                _ => break,
            }
        }
        while self.peek() == TokenKind::Prime {
            let span = base.span.to(self.bump().span);
            base = self.node(ExprKind::Transpose(Box::new(base)), span)?;
        }
        if self.peek() == TokenKind::LBracket && matches!(base.kind, ExprKind::Transpose(_)) {
            let diagnostic = Diagnostic::error(
                Code::Syntax,
                self.span(),
                "a transpose cannot be indexed directly",
            )
            .help("put it in parentheses: `(x')[i]`");
            return self.fail(diagnostic);
        }
        Ok(base)
    }

    /// Whether the number here is a component of a tuple, such as `.2`.
    fn is_component(&self) -> bool {
        let text = self.text(self.span());
        text.starts_with('.') && text[1..].bytes().all(|b| b.is_ascii_digit())
    }

    pub(super) fn indices(&mut self) -> Parsed<Vec<Index>> {
        let mut out = Vec::new();
        loop {
            out.push(self.index()?);
            if !self.eat(TokenKind::Comma) {
                return Ok(out);
            }
        }
    }

    fn index(&mut self) -> Parsed<Index> {
        let ends = |kind| matches!(kind, TokenKind::Comma | TokenKind::RBracket);
        if ends(self.peek()) {
            return Ok(Index::All);
        }
        if self.eat(TokenKind::Colon) {
            return if ends(self.peek()) {
                Ok(Index::All)
            } else {
                Ok(Index::To(self.expr()?))
            };
        }
        let first = self.expr()?;
        if !self.eat(TokenKind::Colon) {
            return Ok(Index::One(first));
        }
        if ends(self.peek()) {
            return Ok(Index::From(first));
        }
        Ok(Index::Between(first, self.expr()?))
    }

    pub(super) fn exprs(&mut self, close: TokenKind) -> Parsed<Vec<Expr>> {
        let mut out = Vec::new();
        if self.peek() == close {
            return Ok(out);
        }
        loop {
            out.push(self.expr()?);
            if !self.eat(TokenKind::Comma) {
                return Ok(out);
            }
        }
    }

    /// The caller has consumed the name, and `(` is next.
    pub(super) fn call(&mut self, name: super::Ident) -> Parsed<(Call, Span)> {
        let open = self.bump().span;
        let mut args = Vec::new();
        let mut bar = false;
        if self.peek() != TokenKind::RParen {
            args.push(self.expr()?);
            if self.eat(TokenKind::Bar) {
                bar = true;
                args.extend(self.exprs(TokenKind::RParen)?);
            } else if self.eat(TokenKind::Comma) {
                args.push(self.expr()?);
                while self.eat(TokenKind::Comma) {
                    args.push(self.expr()?);
                }
            }
        }
        let end = self.close(TokenKind::RParen, open)?;
        let span = name.span.to(end);
        Ok((Call { name, args, bar }, span))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        match self.peek() {
            TokenKind::Int => {
                self.bump();
                self.int_literal(span)
            }
            TokenKind::Real => {
                self.bump();
                let value = self.number(self.text(span), span)?;
                self.node(ExprKind::Real(value), span)
            }
            TokenKind::Imag => {
                self.bump();
                let text = self.text(span);
                let value = self.number(&text[..text.len() - 1], span)?;
                self.node(ExprKind::Imag(value), span)
            }
            TokenKind::Ident => {
                let name = self.ident();
                if self.peek() == TokenKind::LParen {
                    let (call, span) = self.call(name)?;
                    return self.node(ExprKind::Call(call), span);
                }
                self.node(ExprKind::Name(name.name), span)
            }
            TokenKind::Target => {
                self.bump();
                if self.peek() != TokenKind::LParen {
                    let diagnostic =
                        Diagnostic::error(Code::Syntax, span, "`target` is not a variable").help(
                            "its value is `target()`; add to it with the statement `target += …;`",
                        );
                    return self.fail(diagnostic);
                }
                let open = self.bump().span;
                let end = self.close(TokenKind::RParen, open)?;
                self.node(ExprKind::Target, span.to(end))
            }
            TokenKind::LBrace => self.delimited(TokenKind::RBrace),
            TokenKind::LBracket => self.delimited(TokenKind::RBracket),
            TokenKind::LParen => self.parenthesised(),
            TokenKind::Str => {
                let diagnostic = Diagnostic::error(Code::Syntax, span, "a string is not a value")
                    .help("strings are allowed in `print`, `reject` and `fatal_error` only");
                self.fail(diagnostic)
            }
            kind if kind.is_keyword() => {
                let message = format!(
                    "expected an expression, found the word `{}`",
                    self.text(span)
                );
                self.fail(Diagnostic::error(Code::Syntax, span, message))
            }
            _ => self.unexpected("an expression"),
        }
    }

    fn delimited(&mut self, close: TokenKind) -> Parsed<Expr> {
        let open = self.bump().span;
        let elements = self.exprs(close)?;
        let span = open.to(self.close(close, open)?);
        if close == TokenKind::RBracket {
            return self.node(ExprKind::RowVector(elements), span);
        }
        if elements.is_empty() {
            let diagnostic = Diagnostic::error(
                Code::Syntax,
                span,
                "an array expression needs at least one element",
            )
            .help("declare an array of size 0 instead: `array[0] real x;`");
            return self.fail(diagnostic);
        }
        self.node(ExprKind::Array(elements), span)
    }

    fn parenthesised(&mut self) -> Parsed<Expr> {
        let open = self.bump().span;
        let first = self.expr()?;
        if self.peek() != TokenKind::Comma {
            let span = open.to(self.close(TokenKind::RParen, open)?);
            return self.node(ExprKind::Paren(Box::new(first)), span);
        }
        let mut elements = vec![first];
        while self.eat(TokenKind::Comma) {
            if self.peek() == TokenKind::RParen && elements.len() == 1 {
                break;
            }
            elements.push(self.expr()?);
        }
        let span = open.to(self.close(TokenKind::RParen, open)?);
        self.node(ExprKind::Tuple(elements), span)
    }

    fn int_literal(&mut self, span: Span) -> Parsed<Expr> {
        let Ok(value) = self.text(span).replace('_', "").parse::<i32>() else {
            let diagnostic = Diagnostic::error(
                Code::Literal,
                span,
                "integers cannot be larger than 2147483647",
            )
            .help("write it as a real number, with a decimal point");
            self.report(diagnostic);
            return self.node(ExprKind::Error, span);
        };
        self.node(ExprKind::Int(value), span)
    }

    fn number(&mut self, text: &str, span: Span) -> Parsed<f64> {
        match text.replace('_', "").parse::<f64>() {
            Ok(value) => Ok(value),
            Err(_) => self.fail(Diagnostic::error(
                Code::Literal,
                span,
                "this is not a number",
            )),
        }
    }
}

fn child_height(kind: &ExprKind) -> u32 {
    let many = |list: &[Expr]| list.iter().map(|e| e.height).max().unwrap_or(0);
    match kind {
        ExprKind::Int(_)
        | ExprKind::Real(_)
        | ExprKind::Imag(_)
        | ExprKind::Name(_)
        | ExprKind::Target
        | ExprKind::Error => 0,
        ExprKind::Prefix(_, e)
        | ExprKind::Transpose(e)
        | ExprKind::Component(e, _)
        | ExprKind::Paren(e) => e.height,
        ExprKind::Infix(_, _, a, b) => a.height.max(b.height),
        ExprKind::Ternary(a, b, c) => a.height.max(b.height).max(c.height),
        ExprKind::Index(base, indices) => indices
            .iter()
            .map(|index| match index {
                Index::All => 0,
                Index::One(e) | Index::From(e) | Index::To(e) => e.height,
                Index::Between(a, b) => a.height.max(b.height),
            })
            .fold(base.height, u32::max),
        ExprKind::Call(call) => many(&call.args),
        ExprKind::Array(list) | ExprKind::RowVector(list) | ExprKind::Tuple(list) => many(list),
    }
}
