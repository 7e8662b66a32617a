//! The syntax of priors in text form.
//!
//! ```text
//! spec   = term { "+" term }
//! term   = call { "*" call }
//! call   = word [ "(" [ argument { "," argument } ] ")" ]
//! argument = word | key ("=" | "~") value
//! value  = word [ list ] | list
//! list   = "(" word { "," word } ")"
//! ```
//!
//! A word is a run of characters other than `, ( ) = ~ + *`, blanks and quotes, or any text between double quotes.
//! `key=value` fixes a hyperparameter, `key~value` sets its starting value, and `key~word(numbers)` sets its prior. The
//! module `assemble` defines the meaning of the words.

use std::fmt;
use std::ops::Range;

/// An error in the text of a prior, with its position and a suggested correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    text: String,
    span: Range<usize>,
    message: String,
}

impl SpecError {
    /// Creates an error at the position `span`, in bytes.
    pub(super) fn new(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            text: text.to_owned(),
            span,
            message: message.into(),
        }
    }

    /// Returns the error without the excerpt of the text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the column of the position in characters, where the first column is 1.
    pub fn column(&self) -> usize {
        self.text[..self.span.start].chars().count() + 1
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let column = self.column();
        let marks = self.text[self.span.clone()].chars().count().max(1);
        writeln!(f, "prior, column {column}: {}", self.message)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {}{}", " ".repeat(column - 1), "^".repeat(marks))
    }
}

impl std::error::Error for SpecError {}

/// A word of a specification, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The word without quotes.
    pub text: String,
    /// The position in the specification, in bytes.
    pub span: Range<usize>,
}

/// An argument with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The key.
    pub key: Word,
    /// The value, which is a single word or the words of a list.
    pub values: Vec<Word>,
    /// The words in brackets after the value.
    pub arguments: Vec<Word>,
    /// Whether the argument contains `~` instead of `=`. The value is then a starting value for learning.
    pub start: bool,
}

/// A term or a factor of a term, with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name before the brackets.
    pub name: Word,
    /// Arguments without a key.
    pub positional: Vec<Word>,
    /// Arguments with a key.
    pub named: Vec<Named>,
}

/// A parsed prior, which is a sum of products.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The text that was parsed.
    pub text: String,
    /// The terms of the sum. Each term is the list of the factors of a product.
    pub terms: Vec<Vec<Call>>,
}

impl Spec {
    /// Parses a specification.
    ///
    /// # Errors
    /// Fails if the text does not follow the grammar. The error contains the position.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        // Error messages show the text on one line.
        let text: String = text
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let tokens = tokens(&text)?;
        let mut parser = Parser {
            text: &text,
            tokens,
            at: 0,
        };
        let mut terms = vec![parser.term()?];
        while parser.eat('+') {
            terms.push(parser.term()?);
        }
        if let Some(token) = parser.peek() {
            let span = token.span.clone();
            return Err(parser.error(span, "expected `+`, `*` or the end"));
        }
        Ok(Self {
            terms,
            text: text.clone(),
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Word(String),
    Mark(char),
}

#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    span: Range<usize>,
}

const MARKS: &str = ",()=~+*";

fn tokens(text: &str) -> Result<Vec<Token>, SpecError> {
    let mut tokens = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        if c.is_whitespace() {
            continue;
        }
        if MARKS.contains(c) {
            tokens.push(Token {
                kind: Kind::Mark(c),
                span: at..at + c.len_utf8(),
            });
            continue;
        }
        if c == '"' {
            let mut word = String::new();
            let end = loop {
                match rest.next() {
                    Some((end, '"')) => break end + 1,
                    Some((_, c)) => word.push(c),
                    None => {
                        return Err(SpecError::new(
                            text,
                            at..text.len(),
                            "this quote is not closed",
                        ));
                    }
                }
            };
            tokens.push(Token {
                kind: Kind::Word(word),
                span: at..end,
            });
            continue;
        }
        let mut end = at + c.len_utf8();
        while let Some((next, c)) = rest.peek().copied() {
            // The sign of an exponent is part of the number, as in 1e+5.
            let exponent = c == '+' && is_mantissa(&text[at..next]);
            if (MARKS.contains(c) && !exponent) || c.is_whitespace() || c == '"' {
                break;
            }
            end = next + c.len_utf8();
            rest.next();
        }
        tokens.push(Token {
            kind: Kind::Word(text[at..end].to_owned()),
            span: at..end,
        });
    }
    Ok(tokens)
}

fn is_mantissa(word: &str) -> bool {
    word.strip_suffix(['e', 'E'])
        .is_some_and(|m| m.parse::<f64>().is_ok())
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn eat(&mut self, mark: char) -> bool {
        let hit = self.peek().is_some_and(|t| t.kind == Kind::Mark(mark));
        self.at += usize::from(hit);
        hit
    }

    fn error(&self, span: Range<usize>, message: &str) -> SpecError {
        SpecError::new(self.text, span, message)
    }

    fn here(&self) -> Range<usize> {
        self.peek()
            .map_or(self.text.len()..self.text.len(), |t| t.span.clone())
    }

    fn word(&mut self, expected: &str) -> Result<Word, SpecError> {
        match self.peek().cloned() {
            Some(Token {
                kind: Kind::Word(text),
                span,
            }) => {
                self.at += 1;
                Ok(Word { text, span })
            }
            _ => Err(self.error(self.here(), &format!("expected {expected}"))),
        }
    }

    fn term(&mut self) -> Result<Vec<Call>, SpecError> {
        let mut factors = vec![self.call()?];
        while self.eat('*') {
            factors.push(self.call()?);
        }
        Ok(factors)
    }

    fn call(&mut self) -> Result<Call, SpecError> {
        let name = self.word("a prior such as `gp(rbf)`, `icar(graph=FILE)` or `iid()`")?;
        let mut call = Call {
            name,
            positional: Vec::new(),
            named: Vec::new(),
        };
        if !self.eat('(') {
            return Ok(call);
        }
        if self.eat(')') {
            return Ok(call);
        }
        loop {
            self.argument(&mut call)?;
            if self.eat(')') {
                return Ok(call);
            }
            if !self.eat(',') {
                return Err(self.error(self.here(), "expected `,` or `)`"));
            }
        }
    }

    fn argument(&mut self, call: &mut Call) -> Result<(), SpecError> {
        let word = self.word("an argument")?;
        let start = self.eat('~');
        if !start && !self.eat('=') {
            call.positional.push(word);
            return Ok(());
        }
        if let Some(earlier) = call.named.iter().find(|n| n.key.text == word.text) {
            let message = format!("`{}` is given twice", earlier.key.text);
            return Err(self.error(word.span, &message));
        }
        let mut arguments = Vec::new();
        let values = match self.eat('(') {
            true => self.list()?,
            false => {
                let value = self.word("a value")?;
                if start && self.eat('(') {
                    arguments = self.list()?;
                }
                vec![value]
            }
        };
        call.named.push(Named {
            key: word,
            values,
            arguments,
            start,
        });
        Ok(())
    }

    fn list(&mut self) -> Result<Vec<Word>, SpecError> {
        let mut values = Vec::new();
        loop {
            values.push(self.word("a value")?);
            if self.eat(')') {
                return Ok(values);
            }
            if !self.eat(',') {
                return Err(self.error(self.here(), "expected `,` or `)`"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_arguments_and_lists() {
        let spec = Spec::parse(
            "gp(rbf, lengthscale=2.7, variance~1e+1) * gp(linear,on=(a, \"b c\")) + icar(graph=x/y-1.graph)+iid",
        )
        .unwrap();
        assert_eq!(spec.terms.len(), 3);
        assert_eq!(spec.terms[0].len(), 2);
        let gp = &spec.terms[0][0];
        assert_eq!(gp.positional[0].text, "rbf");
        assert_eq!(gp.named[0].values[0].text, "2.7");
        assert!(!gp.named[0].start && gp.named[1].start);
        assert_eq!(gp.named[1].values[0].text, "1e+1");
        let on = &spec.terms[0][1].named[0];
        let words: Vec<&str> = on.values.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(words, ["a", "b c"]);
        assert_eq!(spec.terms[1][0].named[0].values[0].text, "x/y-1.graph");
        assert_eq!(spec.terms[2][0].name.text, "iid");
        let spec = Spec::parse("iid(variance~pc(3, 0.01), on=x)").unwrap();
        let prior = &spec.terms[0][0].named[0];
        let words: Vec<&str> = prior.arguments.iter().map(|w| w.text.as_str()).collect();
        assert_eq!(
            (prior.values[0].text.as_str(), words),
            ("pc", vec!["3", "0.01"])
        );
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let cases = [
            ("", 1, "expected a prior"),
            ("gp(rbf", 7, "expected `,` or `)`"),
            ("gp(rbf,)", 8, "expected an argument"),
            ("gp(rbf) iid", 9, "expected `+`, `*` or the end"),
            ("gp(rbf) + ", 11, "expected a prior"),
            ("gp(a=1, a=2)", 9, "`a` is given twice"),
            ("gp(on=(a b))", 10, "expected `,` or `)`"),
            ("iid(on=\"x)", 8, "this quote is not closed"),
            ("iid(on=)", 8, "expected a value"),
        ];
        for (text, column, message) in cases {
            let error = Spec::parse(text).unwrap_err();
            assert_eq!(error.column(), column, "{text}: {error}");
            assert!(error.message().contains(message), "{text}: {error}");
        }
        let shown = Spec::parse("gp(é,)").unwrap_err().to_string();
        assert!(shown.ends_with("  gp(é,)\n       ^"), "{shown}");
    }
}
