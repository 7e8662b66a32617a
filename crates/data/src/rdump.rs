//! The R dump format of older Stan interfaces. A file consists of assignments of numbers, vectors, arrays and
//! expressions.
//!
//! ```text
//! N <- 3
//! y <- c(1.5, -2, 3e4)
//! X <- structure(c(1, 2, 3, 4, 5, 6), .Dim = c(2L, 3L))   # column-major
//! k <- 1:3
//! none <- integer(0)
//! M <- N * 2 + 1
//! Z <- matrix(rep(0, 6), nrow = 2)
//! ```
//!
//! The value of a statement may be an expression of R, as described in the module `expression`. If the value is not
//! numeric (a string, a list or a function of R), the variable cannot be used, but all other variables can.
//!
//! R stores arrays in column-major order. The parser converts them to the row-major order of [`Value`]. A literal is an
//! integer if it ends in `L`, or if it has neither a decimal point nor an exponent.

mod expression;

use crate::dataset::{DataSet, Elements, Value, checked_len};
use crate::error::DataError;
use crate::source::{Cursor, is_name_byte};

/// A limit on the number of elements that ranges and calls of functions such as `numeric(n)` may create. The limit
/// applies to all ranges and calls of a file together. Without this limit, a few characters of text could exhaust the
/// memory.
const MAX_GENERATED: u64 = 1 << 25;

const MAX_NESTING: usize = 32;

pub(crate) fn parse(bytes: &[u8], label: &str) -> Result<DataSet, DataError> {
    let text = Cursor::text_of(bytes, label)?;
    let mut parser = Parser {
        cursor: Cursor::new(text, label),
        variable: String::new(),
        generated: 0,
        data: DataSet::new(),
    };
    loop {
        parser.skip_separators();
        if parser.cursor.peek().is_none() {
            return Ok(parser.data);
        }
        let at = parser.cursor.pos;
        parser.variable = parser.assigned_name()?;
        if parser.data.knows(&parser.variable) {
            return Err(parser.cursor.error(
                at,
                format!("data variable `{}` appears twice", parser.variable),
            ));
        }
        let start = parser.cursor.pos;
        let value = parser.value(0);
        let value = value.and_then(|value| parser.end_of_statement().map(|()| value));
        let name = std::mem::take(&mut parser.variable);
        match value {
            Ok(value) => {
                parser.data.insert(name, value.into_value());
            }
            Err(error) => {
                // Parsing continues with the next statement if this statement is complete.
                parser.cursor.pos = start;
                if !parser.skip_statement() {
                    return Err(error);
                }
                parser.data.refuse(name, error);
            }
        }
    }
}

/// Numbers in column-major order, as in R. `dims` is `None` for a scalar literal.
#[derive(Clone)]
struct Vector {
    elements: Elements,
    dims: Option<Vec<usize>>,
}

impl Vector {
    fn len(&self) -> usize {
        match &self.elements {
            Elements::Int(v) => v.len(),
            Elements::Real(v) => v.len(),
            Elements::Tuple(_) => 0,
        }
    }

    fn append(&mut self, other: Vector) {
        let reals = |e: Elements| match e {
            Elements::Int(v) => v.into_iter().map(|i| i as f64).collect(),
            Elements::Real(v) => v,
            Elements::Tuple(_) => Vec::new(),
        };
        match (&mut self.elements, other.elements) {
            (Elements::Int(a), Elements::Int(b)) => a.extend(b),
            (Elements::Real(a), b) => a.extend(reals(b)),
            (a, b) => {
                let mut joined = reals(std::mem::replace(a, Elements::Int(Vec::new())));
                joined.extend(reals(b));
                *a = Elements::Real(joined);
            }
        }
    }

    fn into_value(self) -> Value {
        let Some(shape) = self.dims else {
            return Value::from_parts(Vec::new(), self.elements);
        };
        let elements = match self.elements {
            Elements::Int(v) => Elements::Int(to_row_major(&v, &shape)),
            Elements::Real(v) => Elements::Real(to_row_major(&v, &shape)),
            tuple @ Elements::Tuple(_) => tuple,
        };
        Value::from_parts(shape, elements)
    }
}

fn to_row_major<T: Copy>(column_major: &[T], shape: &[usize]) -> Vec<T> {
    if shape.len() < 2 || column_major.is_empty() {
        return column_major.to_vec();
    }
    let strides: Vec<usize> = shape
        .iter()
        .scan(1, |stride, d| {
            let this = *stride;
            *stride *= d;
            Some(this)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut offset = 0;
    let mut out = Vec::with_capacity(column_major.len());
    for _ in 0..column_major.len() {
        out.push(column_major[offset]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            offset += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            offset -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    variable: String,
    generated: u64,
    data: DataSet,
}

impl<'a> Parser<'a> {
    fn assigned_name(&mut self) -> Result<String, DataError> {
        let start = self.cursor.pos;
        let name = match self.cursor.peek() {
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                let body = start + 1;
                let rest = &self.cursor.bytes[body..];
                let Some(length) = rest
                    .iter()
                    .position(|b| *b == quote || *b == b'\n')
                    .filter(|i| rest[*i] == quote)
                else {
                    return Err(self.cursor.error(start, "this name has no closing quote"));
                };
                self.cursor.pos = body + length + 1;
                self.cursor.text[body..body + length].to_string()
            }
            Some(b) if b.is_ascii_alphabetic() || b == b'.' || b == b'_' => self.word().to_string(),
            _ => {
                let message = format!(
                    "expected the name of a variable, found {}",
                    self.cursor.found()
                );
                return Err(self.cursor.error(start, message));
            }
        };
        self.skip_space();
        let assigned = if self.cursor.bytes[self.cursor.pos..].starts_with(b"<-") {
            self.cursor.pos += 2;
            true
        } else {
            self.cursor.eat(b'=')
        };
        if !assigned {
            return Err(self.unexpected("`<-` after the name"));
        }
        self.skip_space();
        Ok(name)
    }

    fn combine(&mut self, nesting: usize) -> Result<Vector, DataError> {
        let mut all = Vector {
            elements: Elements::Int(Vec::new()),
            dims: None,
        };
        self.skip_space();
        if !self.cursor.eat(b')') {
            loop {
                self.skip_space();
                self.argument_name();
                let part = self.value(nesting + 1)?;
                all.append(part);
                self.skip_space();
                if self.cursor.eat(b',') {
                    continue;
                }
                if self.cursor.eat(b')') {
                    break;
                }
                return Err(self.unexpected("`,` or `)`"));
            }
        }
        all.dims = Some(vec![all.len()]);
        Ok(all)
    }

    /// Parses `structure(values, .Dim = c(…))`, starting after the opening bracket. Other attributes are errors.
    fn structure(&mut self, nesting: usize) -> Result<Vector, DataError> {
        self.skip_space();
        let mut vector = self.value(nesting + 1)?;
        self.skip_space();
        while self.cursor.eat(b',') {
            self.skip_space();
            let at = self.cursor.pos;
            if !(self.cursor.eat_word(".Dim") || self.cursor.eat_word("dim")) {
                return Err(self.unexpected("`.Dim = c(…)`"));
            }
            self.skip_space();
            if !self.cursor.eat(b'=') {
                return Err(self.unexpected("`=`"));
            }
            self.skip_space();
            let dims = match self.value(nesting + 1)?.elements {
                Elements::Int(v) => v.iter().map(|d| usize::try_from(*d).ok()).collect(),
                // R sometimes writes dimensions as doubles. `c(2, 3)` is parsed as integers, whereas `c(2.0, 3.0)` is
                // not.
                Elements::Real(v) => v
                    .iter()
                    .map(|d| (d.fract() == 0.0 && (0.0..1e15).contains(d)).then_some(*d as usize))
                    .collect(),
                Elements::Tuple(_) => None::<Vec<usize>>,
            };
            let Some(dims) = dims else {
                let message = format!("{}: dimensions must be integers ≥ 0", self.location());
                return Err(self.cursor.error(at, message));
            };
            if checked_len(&dims) != Some(vector.len()) {
                let message = format!(
                    "{}: {} numbers do not fill .Dim = {dims:?}",
                    self.location(),
                    vector.len()
                );
                return Err(self.cursor.error(at, message));
            }
            vector.dims = Some(dims);
            self.skip_space();
        }
        if !self.cursor.eat(b')') {
            return Err(self.unexpected("`,` or `)`"));
        }
        if vector.dims.is_none() {
            vector.dims = Some(vec![vector.len()]);
        }
        Ok(vector)
    }

    fn zeros(&mut self, at: usize, is_integer: bool) -> Result<Vector, DataError> {
        self.skip_space();
        let count = if self.cursor.peek() == Some(b')') {
            0
        } else {
            match self.literal()?.elements {
                Elements::Int(v) if v[0] >= 0 => self.generate(at, v[0] as u64)?,
                _ => {
                    let message = format!("{}: expected a length", self.location());
                    return Err(self.cursor.error(at, message));
                }
            }
        };
        self.skip_space();
        if !self.cursor.eat(b')') {
            return Err(self.unexpected("`)`"));
        }
        let elements = if is_integer {
            Elements::Int(vec![0; count])
        } else {
            Elements::Real(vec![0.0; count])
        };
        Ok(Vector {
            elements,
            dims: Some(vec![count]),
        })
    }

    /// Counts elements that are generated, such as those of a range. Such elements do not occur literally in the file.
    fn generate(&mut self, at: usize, count: u64) -> Result<usize, DataError> {
        self.generated = self.generated.saturating_add(count);
        if self.generated > MAX_GENERATED {
            let message = format!(
                "{}: ranges and lengths would give more than {MAX_GENERATED} numbers in total; write larger \
                 data as JSON",
                self.location()
            );
            return Err(self.cursor.error(at, message));
        }
        Ok(count as usize)
    }

    fn literal(&mut self) -> Result<Vector, DataError> {
        let start = self.cursor.pos;
        let negative = self.cursor.eat(b'-');
        if !negative {
            self.cursor.eat(b'+');
        }
        self.skip_space();
        let sign = if negative { -1.0 } else { 1.0 };
        let scalar = |elements| {
            Ok(Vector {
                elements,
                dims: None,
            })
        };
        match self.cursor.peek() {
            Some(b'0'..=b'9' | b'.') => {
                let digits = self.cursor.pos;
                let (text, integer) = self.digits();
                let marked = self.cursor.eat(b'L') || self.cursor.eat(b'l');
                if self.cursor.peek().is_some_and(is_name_byte) {
                    return Err(self
                        .cursor
                        .error(start, format!("{}: this is not a number", self.location())));
                }
                let real = match text.parse::<f64>() {
                    Ok(x) if x.is_finite() => sign * x,
                    Ok(_) => {
                        let message = format!(
                            "{}: the number is too large for double precision",
                            self.location()
                        );
                        return Err(self.cursor.error(start, message));
                    }
                    Err(_) => {
                        return Err(self
                            .cursor
                            .error(digits, format!("{}: this is not a number", self.location())));
                    }
                };
                if integer
                    && let Ok(x) =
                        format!("{}{text}", if negative { "-" } else { "" }).parse::<i64>()
                {
                    return scalar(Elements::Int(vec![x]));
                }
                // In R, `1e5L` is an integer, but `1.5L` is not.
                if marked && real.fract() == 0.0 && real.abs() < 9e15 {
                    return scalar(Elements::Int(vec![real as i64]));
                }
                scalar(Elements::Real(vec![real]))
            }
            Some(b) if b.is_ascii_alphabetic() => {
                let at = self.cursor.pos;
                match self.word() {
                    "Inf" | "Infinity" => scalar(Elements::Real(vec![sign * f64::INFINITY])),
                    "NaN" => scalar(Elements::Real(vec![f64::NAN])),
                    word @ ("NA" | "NA_integer_" | "NA_real_" | "NULL") => {
                        let message =
                            format!("{}: Stan has no missing values ({word})", self.location());
                        Err(self.cursor.error(at, message))
                    }
                    word @ ("TRUE" | "FALSE" | "T" | "F") => {
                        let message =
                            format!("{}: {word} is not a number; write 0 or 1", self.location());
                        Err(self.cursor.error(at, message))
                    }
                    word => {
                        if let Some(known) = self.data.get(word).cloned() {
                            return self.earlier(at, &known);
                        }
                        self.cursor.pos = at;
                        Err(self.unexpected("a number, `c(…)` or `structure(…)`"))
                    }
                }
            }
            _ => Err(self.unexpected("a number, `c(…)` or `structure(…)`")),
        }
    }

    /// Returns the longest sequence of characters that forms an unsigned number. Also returns whether this number is
    /// written as an integer.
    fn digits(&mut self) -> (&'a str, bool) {
        let start = self.cursor.pos;
        let bytes = self.cursor.bytes;
        let mut integer = true;
        let mut pos = start;
        while let Some(b) = bytes.get(pos) {
            match b {
                b'0'..=b'9' => {}
                b'.' | b'e' | b'E' => integer = false,
                b'+' | b'-' if pos > start && matches!(bytes[pos - 1], b'e' | b'E') => {}
                _ => break,
            }
            pos += 1;
        }
        self.cursor.pos = pos;
        (&self.cursor.text[start..pos], integer)
    }

    fn word(&mut self) -> &'a str {
        let start = self.cursor.pos;
        while self.cursor.peek().is_some_and(is_name_byte) {
            self.cursor.pos += 1;
        }
        &self.cursor.text[start..self.cursor.pos]
    }

    fn call(&mut self, name: &str) -> bool {
        let start = self.cursor.pos;
        if self.cursor.eat_word(name) {
            self.skip_space();
            if self.cursor.eat(b'(') {
                return true;
            }
        }
        self.cursor.pos = start;
        false
    }

    /// Skips the rest of a statement. The statement ends with the first line end that is outside all brackets and
    /// strings. Returns `false` if the file ends inside a bracket or a string.
    fn skip_statement(&mut self) -> bool {
        let mut open = 0usize;
        while let Some(b) = self.cursor.peek() {
            match b {
                b'(' | b'[' | b'{' => open += 1,
                b')' | b']' | b'}' => match open.checked_sub(1) {
                    Some(rest) => open = rest,
                    None => return false,
                },
                b'"' | b'\'' | b'`' => {
                    self.cursor.pos += 1;
                    loop {
                        match self.cursor.peek() {
                            None => return false,
                            Some(b'\\') => self.cursor.pos += 2,
                            Some(c) if c == b => break,
                            Some(_) => self.cursor.pos += 1,
                        }
                    }
                }
                b'#' => {
                    let rest = &self.cursor.bytes[self.cursor.pos..];
                    self.cursor.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                    continue;
                }
                b'\n' | b';' if open == 0 => return true,
                _ => {}
            }
            self.cursor.pos += 1;
        }
        open == 0
    }

    /// Checks that the statement ends here. A statement ends at a semicolon, a comment, a line end or the end of the
    /// file.
    fn end_of_statement(&mut self) -> Result<(), DataError> {
        while let Some(b' ' | b'\t' | b'\r') = self.cursor.peek() {
            self.cursor.pos += 1;
        }
        match self.cursor.peek() {
            None | Some(b'\n' | b';' | b'#') => Ok(()),
            // `value` skips white space, including line ends, when it looks for the `:` of a range.
            Some(_)
                if self.cursor.text[..self.cursor.pos]
                    .trim_end_matches([' ', '\t', '\r'])
                    .ends_with('\n') =>
            {
                Ok(())
            }
            Some(_) => Err(self.unexpected("the end of the assignment")),
        }
    }

    fn skip_separators(&mut self) {
        loop {
            self.skip_space();
            if !self.cursor.eat(b';') {
                return;
            }
        }
    }

    fn skip_space(&mut self) {
        while let Some(b) = self.cursor.peek() {
            match b {
                b' ' | b'\t' | b'\r' | b'\n' => self.cursor.pos += 1,
                b'#' => {
                    let rest = &self.cursor.bytes[self.cursor.pos..];
                    self.cursor.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    fn unexpected(&self, wanted: &str) -> DataError {
        let location = (!self.variable.is_empty()).then(|| self.location());
        self.cursor.unexpected(wanted, location)
    }

    fn location(&self) -> String {
        format!("data variable `{}`", self.variable)
    }
}
