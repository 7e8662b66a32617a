//! Parses tokens into expressions with operator precedence parsing (Pratt, 1973).

use super::lexer::{Token, tokens};
use super::{Argument, Expr, Kind};
use crate::error::{Error, Result, Span};

/// Largest nesting depth of parentheses. Deeper nesting is a mistake, and could overflow the stack.
const DEEPEST: usize = 100;

/// Returns the binding strengths of an operator on its left and on its right. As in R, `^` is right associative.
fn strength(sign: &str) -> Option<(u8, u8)> {
    Some(match sign {
        "~" => (1, 2),
        "|" | "||" => (3, 4),
        "&" | "&&" => (5, 6),
        "==" | "!=" | "<" | ">" | "<=" | ">=" => (9, 10),
        "+" | "-" => (11, 12),
        "*" | "/" => (13, 14),
        "%in%" => (15, 16),
        ":" => (17, 18),
        "^" => (22, 21),
        _ => return None,
    })
}

/// The binding strength of a prefix sign. It is lower than that of a power and higher than that of `:`.
const SIGNED: u8 = 19;

const NOT: u8 = 7;

/// Parses a text into an expression.
///
/// # Errors
/// Fails if the text is not an expression. The error contains the location.
pub fn parse(text: &str) -> Result<Expr> {
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        at: 0,
        depth: 0,
    };
    if parser.tokens.len() == 1 {
        return Err(Error::new("the formula is empty").help("write a formula such as `y ~ x`"));
    }
    let expr = parser.expression(0)?;
    match parser.peek() {
        Token::End => Ok(expr),
        Token::Sign(")") => Err(parser.error("this parenthesis was never opened")),
        _ => Err(parser
            .error("an operator must precede this")
            .help("join terms with `+`, `*` or `:`, and write a name with spaces in backquotes")),
    }
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Span {
        self.tokens[self.at].1
    }

    fn next(&mut self) -> (Token, Span) {
        let token = self.tokens[self.at].clone();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::at(self.text, self.span(), message)
    }

    fn expression(&mut self, least: u8) -> Result<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.error("the formula is nested too deeply"));
        }
        let mut left = self.operand()?;
        while let Token::Sign(sign) = *self.peek() {
            let sign = if sign == "**" { "^" } else { sign };
            let Some((before, after)) = strength(sign) else {
                break;
            };
            if before < least {
                break;
            }
            self.next();
            let right = self.expression(after)?;
            left = Expr {
                span: left.span.to(right.span),
                kind: Kind::Binary(sign, Box::new(left), Box::new(right)),
            };
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Expr> {
        let (token, span) = self.next();
        let kind = match token {
            Token::Number(x) => Kind::Number(x),
            Token::Text(text) => Kind::Text(text),
            Token::Name(name) if *self.peek() == Token::Sign("(") => {
                let arguments = self.arguments()?;
                let end = self.tokens[self.at - 1].1;
                return Ok(Expr {
                    kind: Kind::Call(name, arguments),
                    span: span.to(end),
                });
            }
            Token::Name(name) => Kind::Name(name),
            Token::Sign("(") => {
                let inner = self.expression(0)?;
                let end = self.close(span)?;
                return Ok(Expr {
                    kind: Kind::Group(Box::new(inner)),
                    span: span.to(end),
                });
            }
            Token::Sign(sign @ ("-" | "+" | "!" | "~")) => {
                let binds = match sign {
                    "!" => NOT,
                    "~" => 2,
                    _ => SIGNED,
                };
                let inner = self.expression(binds)?;
                return Ok(Expr {
                    span: span.to(inner.span),
                    kind: Kind::Unary(sign, Box::new(inner)),
                });
            }
            Token::Sign(_) => {
                return Err(Error::at(self.text, span, "a term must follow here")
                    .help("write an operator between two terms, as in `x + z`"));
            }
            Token::End => {
                return Err(Error::at(
                    self.text,
                    span,
                    "the formula ends where a term is expected",
                )
                .help("write the missing term, or remove the operator before it"));
            }
        };
        Ok(Expr { kind, span })
    }

    fn arguments(&mut self) -> Result<Vec<Argument>> {
        let (_, open) = self.next();
        let mut found = Vec::new();
        if *self.peek() == Token::Sign(")") {
            self.next();
            return Ok(found);
        }
        loop {
            let name = match (self.peek(), self.tokens.get(self.at + 1)) {
                (Token::Name(name), Some((Token::Sign("="), _))) => Some(name.clone()),
                _ => None,
            };
            if name.is_some() {
                self.at += 2;
            }
            let value = self.expression(0)?;
            found.push(Argument { name, value });
            if *self.peek() != Token::Sign(",") {
                self.close(open)?;
                return Ok(found);
            }
            self.next();
        }
    }

    fn close(&mut self, open: Span) -> Result<Span> {
        if *self.peek() == Token::Sign(")") {
            return Ok(self.next().1);
        }
        match self.peek() {
            Token::End => Err(Error::at(self.text, open, "this parenthesis is not closed")
                .help("close it with `)`")),
            _ => Err(self.error("an operator or `)` must precede this")),
        }
    }
}
