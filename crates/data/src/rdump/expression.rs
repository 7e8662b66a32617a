//! Evaluates simple expressions of R. Expressions may contain the operators `+ - * / ^`, ranges, and variables that
//! were assigned earlier. The supported functions are `c`, `rep`, `seq`, `seq_len`, `matrix`, `array`, `structure`,
//! `length`, `integer`, `numeric`, `as.integer` and similar functions.

use super::{Elements, MAX_NESTING, Parser, Value, Vector, to_row_major};
use crate::dataset::checked_len;
use crate::error::DataError;

struct Arguments {
    placed: Vec<Vector>,
    named: Vec<(String, Vector)>,
}

impl Arguments {
    fn take(&self, names: &[&str], position: usize) -> Option<&Vector> {
        let named = self
            .named
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()));
        named
            .map(|(_, value)| value)
            .or_else(|| self.placed.get(position))
    }
}

impl Vector {
    fn reals(&self) -> Vec<f64> {
        match &self.elements {
            Elements::Int(v) => v.iter().map(|x| *x as f64).collect(),
            Elements::Real(v) => v.clone(),
            Elements::Tuple(_) => Vec::new(),
        }
    }

    fn count(&self) -> Option<u64> {
        match (&self.elements, self.reals().as_slice()) {
            (Elements::Int(v), [_]) => u64::try_from(v[0]).ok(),
            (_, [x]) if x.fract() == 0.0 && (0.0..9e15).contains(x) => Some(*x as u64),
            _ => None,
        }
    }

    fn ints(elements: Vec<i64>) -> Self {
        Self {
            dims: Some(vec![elements.len()]),
            elements: Elements::Int(elements),
        }
    }

    fn at(&self, positions: &[usize]) -> Elements {
        match &self.elements {
            Elements::Int(v) => Elements::Int(positions.iter().map(|i| v[*i]).collect()),
            Elements::Real(v) => Elements::Real(positions.iter().map(|i| v[*i]).collect()),
            Elements::Tuple(_) => Elements::Int(Vec::new()),
        }
    }
}

/// Applies an operation to two integers. Returns `None` if the result is not an integer.
fn whole(op: u8, a: i64, b: i64) -> Option<i64> {
    match op {
        b'+' => a.checked_add(b),
        b'-' => a.checked_sub(b),
        b'*' => a.checked_mul(b),
        _ => None,
    }
}

fn real(op: u8, a: f64, b: f64) -> f64 {
    match op {
        b'+' => a + b,
        b'-' => a - b,
        b'*' => a * b,
        b'/' => a / b,
        _ => a.powf(b),
    }
}

impl Parser<'_> {
    pub(super) fn value(&mut self, nesting: usize) -> Result<Vector, DataError> {
        let at = self.cursor.pos;
        if nesting > MAX_NESTING {
            return Err(self
                .cursor
                .error(at, format!("{}: too many nested calls", self.location())));
        }
        let mut left = self.product(nesting)?;
        while let Some(op) = self.operator(b"+-") {
            let right = self.product(nesting)?;
            left = self.arithmetic(at, op, &left, &right)?;
        }
        Ok(left)
    }

    fn product(&mut self, nesting: usize) -> Result<Vector, DataError> {
        let at = self.cursor.pos;
        let mut left = self.range(nesting)?;
        while let Some(op) = self.operator(b"*/") {
            let right = self.range(nesting)?;
            left = self.arithmetic(at, op, &left, &right)?;
        }
        Ok(left)
    }

    /// Parses a range `a:b`, whose ends may have signs.
    fn range(&mut self, nesting: usize) -> Result<Vector, DataError> {
        let at = self.cursor.pos;
        let first = self.signed(nesting)?;
        if self.operator(b":").is_none() {
            return Ok(first);
        }
        let last = self.signed(nesting)?;
        let (Elements::Int(a), Elements::Int(b)) = (&first.elements, &last.elements) else {
            return Err(self.cursor.error(
                at,
                format!("{}: the ends of a range must be integers", self.location()),
            ));
        };
        let (&[a], &[b]) = (a.as_slice(), b.as_slice()) else {
            return Err(self.cursor.error(
                at,
                format!("{}: the ends of a range must be numbers", self.location()),
            ));
        };
        self.generate(at, a.abs_diff(b).saturating_add(1))?;
        Ok(Vector::ints(if a <= b {
            (a..=b).collect()
        } else {
            (b..=a).rev().collect()
        }))
    }

    /// Parses an operand with an optional sign. The sign has lower precedence than a power.
    fn signed(&mut self, nesting: usize) -> Result<Vector, DataError> {
        let at = self.cursor.pos;
        if nesting > MAX_NESTING {
            return Err(self
                .cursor
                .error(at, format!("{}: too many signs", self.location())));
        }
        let literal = |b: u8| matches!(b, b'0'..=b'9' | b'.');
        let sign = matches!(self.cursor.peek(), Some(b'-' | b'+'));
        if sign {
            let number = self.cursor.bytes.get(at + 1).copied().is_some_and(literal);
            if number {
                let found = self.literal()?;
                if self.operator(b"^").is_none() {
                    return Ok(found);
                }
                self.cursor.pos = at;
            }
            let negative = self.cursor.eat(b'-');
            if !negative {
                self.cursor.eat(b'+');
            }
            self.skip_space();
            let operand = self.signed(nesting + 1)?;
            let zero = Vector {
                elements: Elements::Int(vec![0]),
                dims: None,
            };
            return match negative {
                true => self.arithmetic(at, b'-', &zero, &operand),
                false => Ok(operand),
            };
        }
        let base = self.primary(nesting)?;
        if self.operator(b"^").is_none() {
            return Ok(base);
        }
        let power = self.signed(nesting + 1)?;
        self.arithmetic(at, b'^', &base, &power)
    }

    fn operator(&mut self, operators: &[u8]) -> Option<u8> {
        self.skip_space();
        let found = self.cursor.peek().filter(|b| operators.contains(b))?;
        self.cursor.pos += 1;
        self.skip_space();
        Some(found)
    }

    fn primary(&mut self, nesting: usize) -> Result<Vector, DataError> {
        let at = self.cursor.pos;
        if self.cursor.eat(b'(') {
            self.skip_space();
            let inner = self.value(nesting + 1)?;
            self.skip_space();
            if !self.cursor.eat(b')') {
                return Err(self.unexpected("`)`"));
            }
            return Ok(inner);
        }
        if !self.cursor.peek().is_some_and(|b| b.is_ascii_alphabetic()) {
            return self.literal();
        }
        if self.call("structure") {
            return self.structure(nesting);
        }
        if self.call("c") {
            return self.combine(nesting);
        }
        for (function, is_integer) in [
            ("integer", true),
            ("numeric", false),
            ("double", false),
            ("logical", true),
        ] {
            if self.call(function) {
                return self.zeros(at, is_integer);
            }
        }
        for (function, build) in CALLS {
            if self.call(function) {
                let arguments = self.arguments(nesting)?;
                return build(self, at, &arguments);
            }
        }
        self.literal()
    }

    pub(super) fn argument_name(&mut self) -> Option<String> {
        let start = self.cursor.pos;
        if self
            .cursor
            .peek()
            .is_some_and(|b| b.is_ascii_alphabetic() || b == b'.')
        {
            let name = self.word().to_owned();
            self.skip_space();
            if self.cursor.eat(b'=') {
                self.skip_space();
                return Some(name);
            }
        }
        self.cursor.pos = start;
        None
    }

    fn arguments(&mut self, nesting: usize) -> Result<Arguments, DataError> {
        let mut found = Arguments {
            placed: Vec::new(),
            named: Vec::new(),
        };
        self.skip_space();
        if self.cursor.eat(b')') {
            return Ok(found);
        }
        loop {
            self.skip_space();
            let name = self.argument_name();
            let flag = ["TRUE", "FALSE"].map(|word| self.cursor.eat_word(word));
            let value = match flag {
                [false, false] => self.value(nesting + 1)?,
                [yes, _] => Vector {
                    elements: Elements::Int(vec![i64::from(yes)]),
                    dims: None,
                },
            };
            match name {
                Some(name) => found.named.push((name, value)),
                None => found.placed.push(value),
            }
            self.skip_space();
            if self.cursor.eat(b')') {
                return Ok(found);
            }
            if !self.cursor.eat(b',') {
                return Err(self.unexpected("`,` or `)`"));
            }
        }
    }

    pub(super) fn earlier(&mut self, at: usize, value: &Value) -> Result<Vector, DataError> {
        self.generate(at, value.len() as u64)?;
        // The column-major order for a shape is the row-major order for the reversed shape.
        let reversed: Vec<usize> = value.shape().iter().rev().copied().collect();
        let elements = match value.elements() {
            Elements::Int(v) => Elements::Int(to_row_major(v, &reversed)),
            Elements::Real(v) => Elements::Real(to_row_major(v, &reversed)),
            Elements::Tuple(_) => return Err(self.unexpected("numbers")),
        };
        Ok(Vector {
            elements,
            dims: (!value.shape().is_empty()).then(|| value.shape().to_vec()),
        })
    }

    /// Applies an operation element by element. If one operand is shorter, its elements are recycled.
    fn arithmetic(&self, at: usize, op: u8, a: &Vector, b: &Vector) -> Result<Vector, DataError> {
        let (n, m) = (a.len(), b.len());
        let length = if n == 0 || m == 0 { 0 } else { n.max(m) };
        if length > 0 && (length % n != 0 || length % m != 0) {
            let message = format!(
                "{}: `{}` of {n} and {m} numbers",
                self.location(),
                char::from(op)
            );
            return Err(self.cursor.error(at, message));
        }
        let dims = match (&a.dims, &b.dims) {
            (None, None) => None,
            _ if length == 0 => Some(vec![0]),
            (Some(dims), _) if n == length => Some(dims.clone()),
            (_, Some(dims)) if m == length => Some(dims.clone()),
            _ => Some(vec![length]),
        };
        if let (Elements::Int(x), Elements::Int(y)) = (&a.elements, &b.elements) {
            let found: Option<Vec<i64>> =
                (0..length).map(|i| whole(op, x[i % n], y[i % m])).collect();
            if let Some(elements) = found {
                return Ok(Vector {
                    elements: Elements::Int(elements),
                    dims,
                });
            }
        }
        let (x, y) = (a.reals(), b.reals());
        let elements = (0..length).map(|i| real(op, x[i % n], y[i % m])).collect();
        Ok(Vector {
            elements: Elements::Real(elements),
            dims,
        })
    }

    fn counted(&self, at: usize, value: Option<&Vector>, otherwise: u64) -> Result<u64, DataError> {
        match value {
            None => Ok(otherwise),
            Some(value) => value.count().ok_or_else(|| {
                self.cursor
                    .error(at, format!("{}: expected a count", self.location()))
            }),
        }
    }

    fn needed<'v>(&self, at: usize, value: Option<&'v Vector>) -> Result<&'v Vector, DataError> {
        value.ok_or_else(|| {
            self.cursor
                .error(at, format!("{}: an argument is missing", self.location()))
        })
    }

    /// Creates an array with the sizes `dims` and fills it with the elements of `x`. If `x` has too few elements, they
    /// are recycled.
    fn filled(&mut self, at: usize, x: &Vector, dims: Vec<usize>) -> Result<Vector, DataError> {
        let length = checked_len(&dims).filter(|n| *n == 0 || x.len() > 0);
        let Some(length) = length else {
            let message = format!("{}: no numbers to fill {dims:?} with", self.location());
            return Err(self.cursor.error(at, message));
        };
        self.generate(at, length as u64)?;
        let positions: Vec<usize> = (0..length).map(|i| i % x.len().max(1)).collect();
        Ok(Vector {
            elements: x.at(&positions),
            dims: Some(dims),
        })
    }
}

type Build = fn(&mut Parser<'_>, usize, &Arguments) -> Result<Vector, DataError>;

const CALLS: [(&str, Build); 12] = [
    ("rep", rep),
    ("seq", seq),
    ("seq_len", seq_len),
    ("matrix", matrix),
    ("array", array),
    ("length", |p, at, given| {
        let x = p.needed(at, given.take(&["x"], 0))?;
        Ok(Vector {
            elements: Elements::Int(vec![x.len() as i64]),
            dims: None,
        })
    }),
    ("as.integer", |p, at, given| {
        let x = p.needed(at, given.take(&["x"], 0))?;
        let whole = x.reals().iter().map(|x| x.trunc() as i64).collect();
        Ok(Vector {
            elements: Elements::Int(whole),
            dims: x.dims.clone(),
        })
    }),
    ("as.numeric", as_vector),
    ("as.double", as_vector),
    ("as.vector", as_vector),
    ("as.array", |p, at, given| {
        let x = p.needed(at, given.take(&["x"], 0))?;
        Ok(Vector {
            dims: Some(x.dims.clone().unwrap_or_else(|| vec![x.len()])),
            ..x.clone()
        })
    }),
    ("as.matrix", |p, at, given| {
        let x = p.needed(at, given.take(&["x"], 0))?;
        let dims = x.dims.clone().filter(|dims| dims.len() == 2);
        Ok(Vector {
            dims: Some(dims.unwrap_or_else(|| vec![x.len(), 1])),
            ..x.clone()
        })
    }),
];

fn as_vector(p: &mut Parser<'_>, at: usize, given: &Arguments) -> Result<Vector, DataError> {
    let x = p.needed(at, given.take(&["x"], 0))?;
    Ok(Vector {
        elements: x.elements.clone(),
        dims: x.dims.as_ref().map(|_| vec![x.len()]),
    })
}

fn rep(p: &mut Parser<'_>, at: usize, given: &Arguments) -> Result<Vector, DataError> {
    let x = p.needed(at, given.take(&["x"], 0))?;
    let each = p.counted(at, given.take(&["each"], 3), 1)? as usize;
    let times = given.take(&["times"], 1);
    let counts: Vec<usize> = match times {
        Some(times) if times.len() == x.len() && times.len() != 1 => {
            times.reals().iter().map(|t| *t as usize).collect()
        }
        _ => Vec::new(),
    };
    let each_sum = counts
        .iter()
        .fold(0u64, |all, n| all.saturating_add(*n as u64));
    if !counts.is_empty() {
        p.generate(at, each_sum)?;
        let positions: Vec<usize> = counts
            .iter()
            .enumerate()
            .flat_map(|(i, n)| std::iter::repeat_n(i, *n))
            .collect();
        return Ok(Vector {
            dims: Some(vec![positions.len()]),
            elements: x.at(&positions),
        });
    }
    let times = p.counted(at, times, 1)?;
    let once = (x.len() as u64).saturating_mul(each as u64);
    let all = match given.take(&["length.out", "len"], 2) {
        Some(length) => p.counted(at, Some(length), 0)?,
        None => once.saturating_mul(times),
    };
    let all = p.generate(at, if once == 0 { 0 } else { all })?;
    let positions: Vec<usize> = (0..all).map(|i| i / each.max(1) % x.len()).collect();
    Ok(Vector {
        dims: Some(vec![all]),
        elements: x.at(&positions),
    })
}

fn seq_len(p: &mut Parser<'_>, at: usize, given: &Arguments) -> Result<Vector, DataError> {
    let count = p.counted(at, given.take(&["length.out"], 0), 0)?;
    let count = p.generate(at, count)?;
    Ok(Vector::ints((1..=count as i64).collect()))
}

fn seq(p: &mut Parser<'_>, at: usize, given: &Arguments) -> Result<Vector, DataError> {
    let number = |value: Option<&Vector>| value.and_then(|v| v.reals().first().copied());
    let from = number(given.take(&["from"], 0));
    let to = number(given.take(&["to"], 1));
    let by = number(given.take(&["by"], 2));
    let length = match given.take(&["length.out", "length", "len"], 3) {
        Some(length) => Some(p.counted(at, Some(length), 0)?),
        None => None,
    };
    let (from, by, count) = match (from, to, by, length) {
        (Some(from), None, None, None) => (1.0, 1.0, from),
        (from, Some(to), None, Some(n)) => {
            let from = from.unwrap_or(1.0);
            (from, (to - from) / (n.max(2) - 1) as f64, n as f64)
        }
        (from, None, by, Some(n)) => (from.unwrap_or(1.0), by.unwrap_or(1.0), n as f64),
        (from, Some(to), by, _) => {
            let from = from.unwrap_or(1.0);
            let by = by.unwrap_or(if to >= from { 1.0 } else { -1.0 });
            (from, by, ((to - from) / by + 1e-10).floor() + 1.0)
        }
        _ => (1.0, 1.0, f64::NAN),
    };
    if !(0.0..1e15).contains(&count) || !by.is_finite() {
        let message = format!("{}: this sequence has no end", p.location());
        return Err(p.cursor.error(at, message));
    }
    let count = p.generate(at, count as u64)?;
    let numbers: Vec<f64> = (0..count).map(|i| from + i as f64 * by).collect();
    let whole = |x: &f64| x.fract() == 0.0 && x.abs() < 9e15;
    Ok(match numbers.iter().all(whole) {
        true => Vector::ints(numbers.iter().map(|x| *x as i64).collect()),
        false => Vector {
            dims: Some(vec![count]),
            elements: Elements::Real(numbers),
        },
    })
}

fn matrix(p: &mut Parser<'_>, at: usize, given: &Arguments) -> Result<Vector, DataError> {
    let x = p.needed(at, given.take(&["data"], 0))?;
    let (rows, columns) = (given.take(&["nrow"], 1), given.take(&["ncol"], 2));
    let all = x.len() as u64;
    let divided = |by: u64| all.div_ceil(by.max(1));
    let (rows, columns) = match (rows, columns) {
        (None, None) => (all, 1),
        (Some(_), None) => {
            let rows = p.counted(at, rows, 1)?;
            (rows, divided(rows))
        }
        (None, Some(_)) => {
            let columns = p.counted(at, columns, 1)?;
            (divided(columns), columns)
        }
        (Some(_), Some(_)) => (p.counted(at, rows, 1)?, p.counted(at, columns, 1)?),
    };
    let by_row = p.counted(at, given.take(&["byrow"], 3), 0)? != 0;
    let (rows, columns) = (rows as usize, columns as usize);
    if !by_row {
        return p.filled(at, x, vec![rows, columns]);
    }
    let filled = p.filled(at, x, vec![columns, rows])?;
    let positions: Vec<usize> = (0..rows * columns)
        .map(|i| i % rows * columns + i / rows)
        .collect();
    Ok(Vector {
        elements: filled.at(&positions),
        dims: Some(vec![rows, columns]),
    })
}

fn array(p: &mut Parser<'_>, at: usize, given: &Arguments) -> Result<Vector, DataError> {
    let x = p.needed(at, given.take(&["data"], 0))?;
    let dims = match given.take(&["dim"], 1) {
        None => vec![x.len()],
        Some(dims) => dims.reals().iter().map(|d| *d as usize).collect(),
    };
    p.filled(at, x, dims)
}
