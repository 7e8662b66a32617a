//! Converts characters to tokens, and always takes the longest token.

use std::ops::Range;

use super::token::TokenKind;

/// Returns the tokens of a text and their positions. Blanks and comments produce no tokens. `None` marks text that is
/// not a token, which is an unknown character or a string that is not closed on its line.
pub(super) fn scan(text: &str) -> impl Iterator<Item = (Option<TokenKind>, Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += blank(&text.as_bytes()[at..]);
            let rest = &text[at..];
            let first = rest.chars().next()?;
            let start = at;
            let (kind, length) = match rest.as_bytes() {
                [b'/', b'/', ..] => {
                    at += line(rest);
                    continue;
                }
                [b'/', b'*', ..] => match rest[2..].find("*/") {
                    Some(inside) => {
                        at += inside + 4;
                        continue;
                    }
                    None => (Some(TokenKind::UnclosedComment), rest.len()),
                },
                [b'"', ..] => string(rest),
                _ => match token(rest) {
                    Some((kind, length)) => (Some(kind), length),
                    None => (None, first.len_utf8()),
                },
            };
            at += length;
            return Some((kind, start..at));
        }
    })
}

fn blank(text: &[u8]) -> usize {
    run(text, |c| {
        matches!(c, b' ' | b'\t' | b'\r' | b'\n' | b'\x0c')
    })
}

fn line(text: &str) -> usize {
    text.find('\n').unwrap_or(text.len())
}

fn run(text: &[u8], is: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|&&c| is(c)).count()
}

/// If the literal is not closed on its line, the token is `None`, and the length extends to the end of the line or of
/// the text.
fn string(text: &str) -> (Option<TokenKind>, usize) {
    match text[1..].find(['"', '\n']).map(|inside| inside + 1) {
        Some(end) if text.as_bytes()[end] == b'"' => (Some(TokenKind::Str), end + 1),
        end => (None, end.unwrap_or(text.len())),
    }
}

/// Returns `None` if no token starts here. The text must not be empty and must not start with a comment or a string.
fn token(text: &str) -> Option<(TokenKind, usize)> {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'A'..=b'Z' | b'a'..=b'z' => {
            let length = run(bytes, |c| c.is_ascii_alphanumeric() || c == b'_');
            Some((TokenKind::of_word(&text[..length]), length))
        }
        b'#' if text.starts_with("#include") => Some((TokenKind::Include, line(text))),
        b'#' => Some((TokenKind::Hash, line(text))),
        _ => number(bytes).or_else(|| symbol(bytes)),
    }
}

fn number(text: &[u8]) -> Option<(TokenKind, usize)> {
    let whole = digits(text);
    let mut length = whole;
    if text.get(whole) == Some(&b'.') {
        let fraction = digits(&text[whole + 1..]);
        if whole == 0 && fraction == 0 {
            return None;
        }
        length += 1 + fraction;
    } else if whole == 0 {
        return None;
    }
    length += exponent(&text[length..]);
    let kind = if text.get(length) == Some(&b'i') {
        length += 1;
        TokenKind::Imag
    } else if length > whole {
        TokenKind::Real
    } else {
        TokenKind::Int
    };
    Some((kind, length))
}

/// Returns the length of the digits at the start of the text. Single underscores between digits are included.
fn digits(text: &[u8]) -> usize {
    let mut length = run(text, |c| c.is_ascii_digit());
    while length > 0 && text.get(length) == Some(&b'_') {
        let more = run(&text[length + 1..], |c| c.is_ascii_digit());
        if more == 0 {
            break;
        }
        length += 1 + more;
    }
    length
}

/// Returns 0 if there is no exponent.
fn exponent(text: &[u8]) -> usize {
    let sign = match text {
        [b'e' | b'E', b'+' | b'-', ..] => 2,
        [b'e' | b'E', ..] => 1,
        _ => return 0,
    };
    match digits(&text[sign..]) {
        0 => 0,
        digits => sign + digits,
    }
}

fn symbol(text: &[u8]) -> Option<(TokenKind, usize)> {
    use TokenKind::*;
    let three = match text {
        [b'.', b'*', b'=', ..] => Some(EltTimesAssign),
        [b'.', b'/', b'=', ..] => Some(EltDivideAssign),
        [b'%', b'/', b'%', ..] => Some(IntDivide),
        _ => None,
    };
    let two = || match text {
        [b'+', b'=', ..] => Some(PlusAssign),
        [b'-', b'=', ..] => Some(MinusAssign),
        [b'*', b'=', ..] => Some(TimesAssign),
        [b'/', b'=', ..] => Some(DivideAssign),
        [b'<', b'-', ..] => Some(ArrowAssign),
        [b'.', b'*', ..] => Some(EltTimes),
        [b'.', b'/', ..] => Some(EltDivide),
        [b'.', b'^', ..] => Some(EltPow),
        [b'=', b'=', ..] => Some(EqEq),
        [b'!', b'=', ..] => Some(NotEq),
        [b'<', b'=', ..] => Some(LessEq),
        [b'>', b'=', ..] => Some(GreaterEq),
        [b'&', b'&', ..] => Some(AndAnd),
        [b'|', b'|', ..] => Some(OrOr),
        _ => None,
    };
    let one = || match text[0] {
        b'{' => Some(LBrace),
        b'}' => Some(RBrace),
        b'(' => Some(LParen),
        b')' => Some(RParen),
        b'[' => Some(LBracket),
        b']' => Some(RBracket),
        b',' => Some(Comma),
        b';' => Some(Semi),
        b':' => Some(Colon),
        b'|' => Some(Bar),
        b'?' => Some(Question),
        b'~' => Some(Tilde),
        b'\'' => Some(Prime),
        b'!' => Some(Bang),
        b'=' => Some(Assign),
        b'+' => Some(Plus),
        b'-' => Some(Minus),
        b'*' => Some(Times),
        b'/' => Some(Divide),
        b'%' => Some(Modulo),
        b'\\' => Some(LeftDivide),
        b'^' => Some(Hat),
        b'<' => Some(Less),
        b'>' => Some(Greater),
        _ => None,
    };
    let sized = |size: usize| move |kind| (kind, size);
    three
        .map(sized(3))
        .or_else(|| two().map(sized(2)))
        .or_else(|| one().map(sized(1)))
}
