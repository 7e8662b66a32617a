//! Stan JSON. A file in this format contains a single JSON object, and the members of the object are the data
//! variables.
//!
//! Numbers are scalars. Nested lists are arrays, vectors and matrices, and matrices are lists of rows. Objects with the
//! keys `"1"`, `"2"`, … are tuples, and a pair `[re, im]` is a complex number. Non-finite numbers are written as in
//! CmdStan: `NaN`, `Inf` or `Infinity`, with an optional sign and optional quotes. Quoted words may be in upper or
//! lower case. Strings, booleans and null cannot be used as data.
//!
//! The parser fills flat vectors while it reads, and does not build a tree, so most of the time is spent on converting
//! numbers. The depth of nesting is limited, so that hostile input cannot overflow the stack.

use std::collections::BTreeSet;

use crate::dataset::{DataSet, Elements, Value};
use crate::error::DataError;
use crate::source::Cursor;

/// The largest depth of nested lists and tuples. Data for Stan programs need only a few levels.
const MAX_NESTING: usize = 64;

pub(crate) fn parse(bytes: &[u8], label: &str) -> Result<DataSet, DataError> {
    let text = Cursor::text_of(bytes, label)?;
    let mut parser = Parser {
        cursor: Cursor::new(text, label),
        variable: String::new(),
        path: Vec::new(),
    };
    parser.document()
}

/// Writes a data set as text. [`parse`] reads the text back exactly.
pub(crate) fn write(data: &DataSet) -> String {
    let mut text = String::from("{");
    for (i, (name, value)) in data.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        // The names of variables contain no characters that must be escaped.
        text += &format!("{comma}\n\"{name}\": ");
        write_block(&mut text, value, value.shape(), 0);
    }
    text += "\n}\n";
    text
}

/// Writes one block of a value. The value consists of blocks of shape `rest`, and `index` is the number of the block.
fn write_block(text: &mut String, value: &Value, rest: &[usize], index: usize) {
    use std::fmt::Write;
    let list = |text: &mut String,
                open: char,
                close: char,
                n: usize,
                item: &dyn Fn(&mut String, usize)| {
        text.push(open);
        for i in 0..n {
            if i > 0 {
                text.push(',');
            }
            item(text, i);
        }
        text.push(close);
    };
    if let Some((n, inner)) = rest.split_first() {
        return list(text, '[', ']', *n, &|text, i| {
            write_block(text, value, inner, index * n + i);
        });
    }
    let _ = match value.elements() {
        Elements::Int(v) => write!(text, "{}", v[index]),
        Elements::Real(v) if v[index].is_nan() => write!(text, "\"NaN\""),
        Elements::Real(v) if v[index].is_infinite() => write!(text, "\"{:+}\"", v[index]),
        // This format writes the shortest text that is read back to the same bits. The text always contains a decimal
        // point or an exponent.
        Elements::Real(v) => write!(text, "{:?}", v[index]),
        Elements::Tuple(slots) => {
            let levels = value.shape().len();
            list(text, '{', '}', slots.len(), &|text, i| {
                let _ = write!(text, "\"{}\": ", i + 1);
                write_block(text, &slots[i], &slots[i].shape()[levels..], index);
            });
            Ok(())
        }
    };
}

#[derive(Clone, Copy)]
enum Step {
    Index(usize),
    Slot(usize),
}

enum Number {
    Int(i64),
    Real(f64),
}

enum Leaves {
    None,
    Int(Vec<i64>),
    Real(Vec<f64>),
    Tuple(Vec<Builder>),
}

/// A value under construction. In an array of tuples, one builder collects the values of a slot in all tuples.
struct Builder {
    /// The length of the lists at each level. A length is known once a list of that level has been closed.
    dims: Vec<Option<usize>>,
    leaf_level: Option<usize>,
    leaves: Leaves,
}

impl Builder {
    fn new() -> Self {
        Self {
            dims: Vec::new(),
            leaf_level: None,
            leaves: Leaves::None,
        }
    }

    #[inline]
    fn push(&mut self, number: Number) {
        match (&mut self.leaves, number) {
            (Leaves::Int(v), Number::Int(x)) => v.push(x),
            (Leaves::Real(v), Number::Real(x)) => v.push(x),
            (Leaves::Real(v), Number::Int(x)) => v.push(x as f64),
            (Leaves::Int(v), Number::Real(x)) => {
                let mut reals: Vec<f64> = v.iter().map(|i| *i as f64).collect();
                reals.push(x);
                self.leaves = Leaves::Real(reals);
            }
            (_, Number::Int(x)) => self.leaves = Leaves::Int(vec![x]),
            (_, Number::Real(x)) => self.leaves = Leaves::Real(vec![x]),
        }
    }

    fn finish(self, outer: &[usize]) -> Value {
        let mut shape = outer.to_vec();
        // Every level has been closed at least once, so the length of each level is known.
        shape.extend(self.dims.iter().map(|d| d.unwrap_or(0)));
        let elements = match self.leaves {
            Leaves::None => Elements::Int(Vec::new()),
            Leaves::Int(v) => Elements::Int(v),
            Leaves::Real(v) => Elements::Real(v),
            Leaves::Tuple(slots) => {
                Elements::Tuple(slots.into_iter().map(|s| s.finish(&shape)).collect())
            }
        };
        Value::from_parts(shape, elements)
    }
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    variable: String,
    path: Vec<Step>,
}

impl Parser<'_> {
    fn document(&mut self) -> Result<DataSet, DataError> {
        self.skip_space();
        if !self.cursor.eat(b'{') {
            let object = "one JSON object of variables, such as {\"N\": 3}";
            return Err(match self.cursor.peek() {
                None => (self.cursor).error(0, format!("the file is empty, expected {object}")),
                Some(_) => self.unexpected(object),
            });
        }
        let mut data = DataSet::new();
        self.skip_space();
        if !self.cursor.eat(b'}') {
            loop {
                self.skip_space();
                let at = self.cursor.pos;
                let name = self.key("the name of a variable in double quotes")?;
                if data.knows(&name) {
                    return Err(self
                        .cursor
                        .error(at, format!("data variable `{name}` appears twice")));
                }
                self.variable = name;
                let mut builder = Builder::new();
                let start = self.cursor.pos;
                let read = self.value(&mut builder, 0);
                let name = std::mem::take(&mut self.variable);
                match read {
                    Ok(()) => {
                        data.insert(name, builder.finish(&[]));
                    }
                    Err(error) => {
                        // Parsing continues if the value is valid JSON but cannot be used as data.
                        self.cursor.pos = start;
                        self.path.clear();
                        if self.skip_value(0).is_err() {
                            return Err(error);
                        }
                        data.refuse(name, error);
                    }
                }
                self.skip_space();
                if self.cursor.eat(b'}') {
                    break;
                }
                if !self.cursor.eat(b',') {
                    return Err(self.unexpected("`,` or `}`"));
                }
            }
        }
        self.skip_space();
        match self.cursor.peek() {
            None => Ok(data),
            Some(_) => Err(self.unexpected("the end of the file after the closing `}`")),
        }
    }

    fn skip_value(&mut self, nesting: usize) -> Result<(), DataError> {
        self.skip_space();
        let close = match self.cursor.peek() {
            Some(b'"') => return self.string().map(|_| ()),
            Some(b'[') => b']',
            Some(b'{') => b'}',
            _ => {
                for word in ["true", "false", "null"] {
                    if self.cursor.eat_word(word) {
                        return Ok(());
                    }
                }
                return self.number().map(|_| ());
            }
        };
        if nesting >= MAX_NESTING {
            return Err(self.unexpected("lists with less nesting"));
        }
        self.cursor.pos += 1;
        self.skip_space();
        if self.cursor.eat(close) {
            return Ok(());
        }
        loop {
            self.skip_space();
            if close == b'}' {
                self.key("a key in double quotes")?;
            }
            self.skip_value(nesting + 1)?;
            self.skip_space();
            if self.cursor.eat(close) {
                return Ok(());
            }
            if !self.cursor.eat(b',') {
                return Err(self.unexpected("`,` or the end of the list"));
            }
        }
    }

    fn key(&mut self, what: &str) -> Result<String, DataError> {
        if self.cursor.peek() != Some(b'"') {
            return Err(self.unexpected(what));
        }
        let key = self.string()?;
        self.skip_space();
        if !self.cursor.eat(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.skip_space();
        Ok(key)
    }

    fn value(&mut self, builder: &mut Builder, level: usize) -> Result<(), DataError> {
        self.skip_space();
        match self.cursor.peek() {
            Some(b'[') => self.list(builder, level),
            Some(b'{') => self.tuple(builder, level),
            _ => {
                let at = self.cursor.pos;
                let number = self.number()?;
                if builder.leaf_level != Some(level) || matches!(builder.leaves, Leaves::Tuple(_)) {
                    self.enter_leaf(builder, level, at, "a number")?;
                    if matches!(builder.leaves, Leaves::Tuple(_)) {
                        return Err(self.mixed(at, "a number", "tuples"));
                    }
                }
                builder.push(number);
                Ok(())
            }
        }
    }

    fn list(&mut self, builder: &mut Builder, level: usize) -> Result<(), DataError> {
        let at = self.cursor.pos;
        if self.path.len() >= MAX_NESTING {
            return Err(self
                .cursor
                .error(at, format!("more than {MAX_NESTING} nested lists")));
        }
        if builder.leaf_level.is_some_and(|leaf| leaf <= level) {
            return Err(self.mixed(at, "a list", "numbers or tuples"));
        }
        if builder.dims.len() == level {
            builder.dims.push(None);
        }
        self.cursor.pos += 1;
        let mut count = 0;
        self.skip_space();
        if !self.cursor.eat(b']') {
            let depth = self.path.len();
            self.path.push(Step::Index(1));
            loop {
                self.path[depth] = Step::Index(count + 1);
                self.value(builder, level + 1)?;
                count += 1;
                self.skip_space();
                if self.cursor.eat(b',') {
                    continue;
                }
                if self.cursor.eat(b']') {
                    break;
                }
                return Err(self.unexpected("`,` or `]`"));
            }
            self.path.pop();
        }
        match builder.dims[level] {
            None => builder.dims[level] = Some(count),
            Some(n) if n == count => {}
            Some(n) => {
                let message = format!(
                    "{}: ragged array: this list has {count} element{}, earlier ones at this level have {n}",
                    self.location(),
                    if count == 1 { "" } else { "s" }
                );
                return Err(self.cursor.error(at, message));
            }
        }
        Ok(())
    }

    fn tuple(&mut self, builder: &mut Builder, level: usize) -> Result<(), DataError> {
        let at = self.cursor.pos;
        if self.path.len() >= MAX_NESTING {
            return Err(self
                .cursor
                .error(at, format!("more than {MAX_NESTING} nested lists")));
        }
        self.enter_leaf(builder, level, at, "a tuple")?;
        let first = match &mut builder.leaves {
            Leaves::None => {
                builder.leaves = Leaves::Tuple(Vec::new());
                true
            }
            Leaves::Tuple(_) => false,
            _ => return Err(self.mixed(at, "a tuple", "numbers")),
        };
        let Leaves::Tuple(slots) = &mut builder.leaves else {
            return Ok(());
        };
        self.cursor.pos += 1;
        let mut seen = BTreeSet::new();
        loop {
            self.skip_space();
            let key_at = self.cursor.pos;
            let key = self.key("the number of a tuple slot in double quotes, such as \"1\"")?;
            let slot = match key.parse::<usize>() {
                // The slots of the first tuple may be in any order. Later tuples must not have additional slots.
                Ok(k @ 1..=1000) if first || k <= slots.len() => k,
                _ => {
                    let message = format!(
                        "{}: `{key}` is not a slot of this tuple: objects inside the data are tuples with the \
                         keys \"1\", \"2\", …",
                        self.location()
                    );
                    return Err(self.cursor.error(key_at, message));
                }
            };
            if !seen.insert(slot) {
                return Err(self.cursor.error(
                    key_at,
                    format!("{}: tuple slot {slot} appears twice", self.location()),
                ));
            }
            while slots.len() < slot {
                slots.push(Builder::new());
            }
            self.path.push(Step::Slot(slot));
            self.value(&mut slots[slot - 1], 0)?;
            self.path.pop();
            self.skip_space();
            if self.cursor.eat(b',') {
                continue;
            }
            if self.cursor.eat(b'}') {
                break;
            }
            return Err(self.unexpected("`,` or `}`"));
        }
        match (1..=slots.len()).find(|k| !seen.contains(k)) {
            None => Ok(()),
            Some(missing) => Err(self.cursor.error(
                at,
                format!("{}: tuple slot {missing} is missing", self.location()),
            )),
        }
    }

    /// Records that the scalars of the value are at nesting depth `level`. Returns an error if earlier scalars had
    /// another depth.
    fn enter_leaf(
        &self,
        builder: &mut Builder,
        level: usize,
        at: usize,
        what: &str,
    ) -> Result<(), DataError> {
        match builder.leaf_level {
            Some(leaf) if leaf == level => Ok(()),
            None if builder.dims.len() == level => {
                builder.leaf_level = Some(level);
                Ok(())
            }
            _ => Err(self.mixed(at, what, "lists")),
        }
    }

    fn mixed(&self, at: usize, what: &str, earlier: &str) -> DataError {
        self.cursor.error(
            at,
            format!(
                "{}: ragged array: {what} where earlier elements are {earlier}",
                self.location()
            ),
        )
    }

    #[inline]
    fn number(&mut self) -> Result<Number, DataError> {
        let start = self.cursor.pos;
        let bytes = self.cursor.bytes;
        let mut pos = start;
        let negative = bytes.get(pos) == Some(&b'-');
        pos += usize::from(negative);

        // A number in JSON consists of digits without a leading zero, an optional fraction and an optional exponent.
        let digits = pos;
        let mut magnitude: u64 = 0;
        let mut overflow = false;
        while let Some(d @ b'0'..=b'9') = bytes.get(pos) {
            let next = magnitude
                .checked_mul(10)
                .and_then(|m| m.checked_add(u64::from(d - b'0')));
            overflow |= next.is_none();
            magnitude = next.unwrap_or(0);
            pos += 1;
        }
        if pos == digits {
            return self.special(start);
        }
        if bytes[digits] == b'0' && pos > digits + 1 {
            return Err(self.cursor.error(
                start,
                format!("{}: a number must not begin with 0", self.location()),
            ));
        }
        let mut integer = true;
        if bytes.get(pos) == Some(&b'.') {
            integer = false;
            let fraction = pos + 1;
            pos = skip_digits(bytes, fraction);
            if pos == fraction {
                return Err(self.cursor.error(
                    pos,
                    format!("{}: digits must follow the decimal point", self.location()),
                ));
            }
        }
        if let Some(b'e' | b'E') = bytes.get(pos) {
            integer = false;
            pos += 1;
            pos += usize::from(matches!(bytes.get(pos), Some(b'+' | b'-')));
            let exponent = pos;
            pos = skip_digits(bytes, exponent);
            if pos == exponent {
                return Err(self.cursor.error(
                    pos,
                    format!("{}: digits must follow the exponent sign", self.location()),
                ));
            }
        }
        self.cursor.pos = pos;
        if integer && !overflow {
            let signed = if negative {
                0i64.checked_sub_unsigned(magnitude)
            } else {
                i64::try_from(magnitude).ok()
            };
            if let Some(x) = signed {
                return Ok(Number::Int(x));
            }
        }
        match self.cursor.text[start..pos].parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(Number::Real(x)),
            _ => {
                let message = format!(
                    "{}: the number is too large for double precision",
                    self.location()
                );
                Err(self.cursor.error(start, message))
            }
        }
    }

    #[cold]
    fn special(&mut self, start: usize) -> Result<Number, DataError> {
        self.cursor.pos = start;
        if self.cursor.peek() == Some(b'"') {
            let text = self.string()?;
            let lower = text.to_ascii_lowercase();
            let (sign, word) = match lower.strip_prefix('-') {
                Some(rest) => (-1.0, rest),
                None => (1.0, lower.strip_prefix('+').unwrap_or(&lower)),
            };
            return match word {
                "inf" | "infinity" => Ok(Number::Real(sign * f64::INFINITY)),
                "nan" => Ok(Number::Real(f64::NAN)),
                _ => {
                    let message = format!(
                        "{}: a string is not a number (except \"NaN\", \"Inf\", \"+Inf\", \"-Inf\" and their \
                         long forms)",
                        self.location()
                    );
                    Err(self.cursor.error(start, message))
                }
            };
        }
        let negative = self.cursor.eat(b'-');
        let number = if self.cursor.eat_word("NaN") {
            Some(f64::NAN)
        } else if self.cursor.eat_word("Infinity") || self.cursor.eat_word("Inf") {
            Some(f64::INFINITY)
        } else {
            None
        };
        if let Some(x) = number {
            return Ok(Number::Real(if negative { -x } else { x }));
        }
        self.cursor.pos = start;
        for (word, what) in [
            ("null", "null is"),
            ("true", "a boolean is"),
            ("false", "a boolean is"),
        ] {
            if self.cursor.eat_word(word) {
                let advice = if word == "null" { "" } else { "; write 0 or 1" };
                return Err(self.cursor.error(
                    start,
                    format!("{}: {what} not a number{advice}", self.location()),
                ));
            }
        }
        Err(self.unexpected("a number or a list"))
    }

    fn string(&mut self) -> Result<String, DataError> {
        let start = self.cursor.pos;
        let bytes = self.cursor.bytes;
        let mut pos = start + 1;
        loop {
            match bytes.get(pos) {
                Some(b'"') => break,
                Some(b'\\') => pos += 2,
                Some(_) => pos += 1,
                None => return Err(self.cursor.error(start, "this string has no closing quote")),
            }
        }
        self.cursor.pos = pos + 1;
        serde_json::from_str(&self.cursor.text[start..=pos]).map_err(|_| {
            self.cursor.error(
                start,
                "this string has an invalid escape or control character",
            )
        })
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.cursor.peek() {
            self.cursor.pos += 1;
        }
    }

    fn unexpected(&self, wanted: &str) -> DataError {
        let location = (!self.variable.is_empty()).then(|| self.location());
        self.cursor.unexpected(wanted, location)
    }

    /// Describes the element that is being read, for example as "data variable `x[2,3]`".
    fn location(&self) -> String {
        let mut name = self.variable.clone();
        let mut open = false;
        for step in &self.path {
            match step {
                Step::Index(i) => {
                    name.push_str(if open { "," } else { "[" });
                    name.push_str(&i.to_string());
                    open = true;
                }
                Step::Slot(k) => {
                    name.push_str(if open { "]." } else { "." });
                    name.push_str(&k.to_string());
                    open = false;
                }
            }
        }
        if open {
            name.push(']');
        }
        format!("data variable `{name}`")
    }
}

#[inline]
fn skip_digits(bytes: &[u8], mut pos: usize) -> usize {
    while bytes.get(pos).is_some_and(u8::is_ascii_digit) {
        pos += 1;
    }
    pos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let text = r#"{"N": 3, "x": [[1.5, -2e-300], ["NaN", "-Inf"]], "none": [], "y": [1, 2],
            "t": [{"1": 1, "2": [0.1, 2.0]}, {"1": -7, "2": ["Inf", 1e22]}], "s": {"1": 2.0, "2": [[4]]}}"#;
        let data = parse(text.as_bytes(), "data").unwrap();
        let written = write(&data);
        let again = parse(written.as_bytes(), "written").unwrap();
        // The texts are compared, because NaN is not equal to itself.
        assert_eq!(format!("{data:?}"), format!("{again:?}"));
        assert_eq!(write(&again), written);
    }
}
