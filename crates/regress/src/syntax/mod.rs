//! Formulas as trees of expressions. Each expression has a location in the text of the formula, and trees can be
//! printed.
//!
//! Operators have R's precedence, from the highest to the lowest: `^`, then a sign, `:`, `%in%`, `*` and `/`, `+` and
//! `-`, comparisons, `!`, `&`, `|`, `~`.

mod lexer;
mod parser;

use std::fmt;

pub use parser::parse;

use crate::error::Span;

/// An expression with its location.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of the expression, with its operands.
    pub kind: Kind,
    /// The location of the expression in the text.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number.
    Number(f64),
    /// A quoted text.
    Text(String),
    /// The name of a column, or a name with a special meaning in its context.
    Name(String),
    /// A prefix operator (`-`, `+` or `!`) and its operand.
    Unary(&'static str, Box<Expr>),
    /// A binary operator and its operands.
    Binary(&'static str, Box<Expr>, Box<Expr>),
    /// An expression in parentheses.
    Group(Box<Expr>),
    /// A function call with its arguments, which may be named.
    Call(String, Vec<Argument>),
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// The name of the argument, if it has one.
    pub name: Option<String>,
    /// The value of the argument.
    pub value: Expr,
}

impl Expr {
    /// Returns the name of the called function, if the expression is a call.
    pub fn function(&self) -> Option<&str> {
        match &self.kind {
            Kind::Call(name, _) => Some(name),
            _ => None,
        }
    }

    /// Returns the expression without its enclosing parentheses.
    pub fn bare(&self) -> &Self {
        match &self.kind {
            Kind::Group(inner) => inner.bare(),
            _ => self,
        }
    }

    /// Collects every column name in the expression, in order of occurrence.
    pub fn columns(&self, found: &mut Vec<(String, Span)>) {
        match &self.kind {
            Kind::Name(name) if !is_constant(name) => found.push((name.clone(), self.span)),
            Kind::Number(_) | Kind::Text(_) | Kind::Name(_) => {}
            Kind::Unary(_, inner) | Kind::Group(inner) => inner.columns(found),
            Kind::Binary(_, left, right) => {
                left.columns(found);
                right.columns(found);
            }
            Kind::Call(_, arguments) => {
                for argument in arguments {
                    argument.value.columns(found);
                }
            }
        }
    }
}

/// Returns whether a name denotes a constant.
pub fn is_constant(name: &str) -> bool {
    matches!(name, "TRUE" | "FALSE" | "T" | "F" | "pi" | "NA" | "NULL")
}

fn spelled(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '.' || c == '_')
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '.' || c == '_');
    match plain {
        true => name.to_owned(),
        false => format!("`{name}`"),
    }
}

/// Prints the expression as R does in the names of coefficients.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Number(x) => write!(f, "{x}"),
            Kind::Text(text) => write!(f, "\"{text}\""),
            Kind::Name(name) => f.write_str(&spelled(name)),
            Kind::Unary(sign, inner) => write!(f, "{sign}{inner}"),
            Kind::Binary(sign @ ("^" | ":"), left, right) => write!(f, "{left}{sign}{right}"),
            Kind::Binary("/", left, right) => write!(f, "{left}/{right}"),
            Kind::Binary(sign, left, right) => write!(f, "{left} {sign} {right}"),
            Kind::Group(inner) => write!(f, "({inner})"),
            Kind::Call(name, arguments) => {
                write!(f, "{name}(")?;
                for (at, argument) in arguments.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    if let Some(name) = &argument.name {
                        write!(f, "{name} = ")?;
                    }
                    write!(f, "{}", argument.value)?;
                }
                f.write_str(")")
            }
        }
    }
}
