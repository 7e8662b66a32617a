//! Splits the text of a formula into tokens.

use crate::error::{Error, Result, Span};

/// A token of a formula.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A number.
    Number(f64),
    /// A name, with or without backquotes.
    Name(String),
    /// A quoted text.
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
    /// The end of the text.
    End,
}

/// The operators and brackets. Longer signs come before their prefixes.
const SIGNS: [&str; 24] = [
    "%in%", "||", "**", "==", "!=", "<=", ">=", "&&", "~", "+", "-", "*", "/", "^", ":", "|", "(",
    ")", ",", "=", "<", ">", "&", "!",
];

/// Splits a text into tokens with their locations. The last token is always [`Token::End`].
pub fn tokens(text: &str) -> Result<Vec<(Token, Span)>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            at += c.len_utf8();
            continue;
        }
        let rest = &text[at..];
        let (token, length) = if c.is_ascii_digit()
            || (c == '.' && rest[1..].starts_with(|d: char| d.is_ascii_digit()))
        {
            number(text, at)?
        } else if c.is_alphabetic() || c == '.' || c == '_' {
            let length = rest
                .find(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_'))
                .unwrap_or(rest.len());
            (Token::Name(rest[..length].to_owned()), length)
        } else if matches!(c, '`' | '"' | '\'') {
            let Some(end) = rest[1..].find(c) else {
                let span = Span {
                    start: at,
                    end: text.len(),
                };
                let message = "this quote is not closed";
                return Err(Error::at(text, span, message).help(format!("close it with {c}")));
            };
            let inside = rest[1..=end].to_owned();
            match c {
                '`' => (Token::Name(inside), end + 2),
                _ => (Token::Text(inside), end + 2),
            }
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            let span = Span {
                start: at,
                end: at + c.len_utf8(),
            };
            let message = format!("`{c}` has no meaning in a formula");
            let help = "write a column name with such characters in backquotes: `my column`";
            return Err(Error::at(text, span, message).help(help));
        };
        found.push((
            token,
            Span {
                start: at,
                end: at + length,
            },
        ));
        at += length;
    }
    found.push((
        Token::End,
        Span {
            start: text.len(),
            end: text.len(),
        },
    ));
    Ok(found)
}

fn number(text: &str, at: usize) -> Result<(Token, usize)> {
    let bytes = text.as_bytes();
    let digits = |mut i: usize| {
        while bytes.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let mut end = digits(at);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let last = digits(end + 1 + sign);
        if last > end + 1 + sign {
            end = last;
        }
    }
    let span = Span { start: at, end };
    let parsed = text[at..end].parse();
    let value = parsed.map_err(|_| Error::at(text, span, "this is not a number"))?;
    // This is the suffix that marks an integer in R.
    let mark = usize::from(bytes.get(end) == Some(&b'L'));
    Ok((Token::Number(value), end + mark - at))
}
