//! Reads and writes parts of values.

use std::fmt;

use crate::program::Type;
use crate::value::{Mat, Value};

/// An index whose expressions have been evaluated. Positions are numbered from 1.
#[derive(Clone, Debug, PartialEq)]
pub enum Idx {
    /// The whole dimension.
    All,
    /// A single position. The result lacks this dimension.
    One(i32),
    /// A list of positions, in the order of the list.
    Many(Vec<i32>),
    /// `a:`.
    From(i32),
    /// `:b`.
    To(i32),
    /// `a:b`. The range is empty if b < a.
    Between(i32, i32),
}

/// The reason why a part cannot be read or written.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexError {
    /// A position outside its dimension.
    OutOfBounds {
        /// The position of the index in the index expression, counted from 1.
        position: usize,
        /// The offending index.
        index: i32,
        /// The size of the dimension.
        size: usize,
    },
    /// The assigned value and its target have different shapes.
    Shape {
        /// A description of the part.
        expected: String,
        /// A description of the assigned value.
        found: String,
    },
    /// There are more indices than dimensions. The checker excludes this case.
    TooMany,
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexError::OutOfBounds {
                position,
                index,
                size: 0,
            } => write!(
                f,
                "index {index} in subscript {position} is out of bounds, because this dimension is empty"
            ),
            IndexError::OutOfBounds {
                position,
                index,
                size,
            } => write!(
                f,
                "index {index} in subscript {position} is out of bounds, expected 1 to {size}"
            ),
            IndexError::Shape { expected, found } => {
                write!(f, "sizes do not match: expected {expected}, found {found}")
            }
            IndexError::TooMany => f.write_str("too many indices"),
        }
    }
}

enum Pos {
    One(usize),
    Span(usize, usize),
    List(Vec<usize>),
}

impl Pos {
    fn count(&self) -> usize {
        match self {
            Pos::One(_) => 1,
            Pos::Span(from, to) => to - from,
            Pos::List(list) => list.len(),
        }
    }

    fn at(&self, k: usize) -> usize {
        match self {
            Pos::One(i) => *i,
            Pos::Span(from, _) => from + k,
            Pos::List(list) => list[k],
        }
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count()).map(|k| self.at(k))
    }

    fn is_one(&self) -> bool {
        matches!(self, Pos::One(_))
    }
}

fn resolve(idx: &Idx, size: usize, position: usize) -> Result<Pos, IndexError> {
    let check = |i: i32| match usize::try_from(i) {
        Ok(at) if (1..=size).contains(&at) => Ok(at - 1),
        _ => Err(IndexError::OutOfBounds {
            position,
            index: i,
            size,
        }),
    };
    let between = |a: i32, b: i32| {
        if b < a {
            return Ok(Pos::Span(0, 0));
        }
        Ok(Pos::Span(check(a)?, check(b)? + 1))
    };
    let last = i32::try_from(size).unwrap_or(i32::MAX);
    match idx {
        Idx::All => Ok(Pos::Span(0, size)),
        Idx::One(i) => Ok(Pos::One(check(*i)?)),
        Idx::Many(list) => Ok(Pos::List(
            list.iter().map(|i| check(*i)).collect::<Result<_, _>>()?,
        )),
        Idx::From(a) => between(*a, last),
        Idx::To(b) => between(1, *b),
        Idx::Between(a, b) => between(*a, *b),
    }
}

fn pick<T: Copy>(x: &[T], pos: &Pos) -> Vec<T> {
    match pos {
        Pos::Span(from, to) => x[*from..*to].to_vec(),
        _ => pos.iter().map(|i| x[i]).collect(),
    }
}

/// Returns the part of `value` that `idx` selects. `ty` is the type of that part, which is necessary if the part is an
/// empty array. If `ty` is `None`, an empty array is returned as a [`Value::Array`].
///
/// # Errors
/// Fails if an index is out of bounds.
pub fn get(value: &Value, idx: &[Idx], ty: Option<&Type>) -> Result<Value, IndexError> {
    get_at(value, idx, ty, 1)
}

fn get_at(
    value: &Value,
    idx: &[Idx],
    ty: Option<&Type>,
    position: usize,
) -> Result<Value, IndexError> {
    let Some((first, rest)) = idx.split_first() else {
        return Ok(value.clone());
    };
    macro_rules! flat {
        ($x:expr, $scalar:path, $container:path) => {{
            if !rest.is_empty() {
                return Err(IndexError::TooMany);
            }
            match resolve(first, $x.len(), position)? {
                Pos::One(i) => $scalar($x[i]),
                pos => $container(pick($x, &pos)),
            }
        }};
    }
    Ok(match value {
        Value::Ints(x) => flat!(x, Value::Int, Value::Ints),
        Value::Reals(x) => flat!(x, Value::Real, Value::Reals),
        Value::Vector(x) => flat!(x, Value::Real, Value::Vector),
        Value::RowVector(x) => flat!(x, Value::Real, Value::RowVector),
        Value::ComplexVector(x) => flat!(x, Value::Complex, Value::ComplexVector),
        Value::ComplexRowVector(x) => flat!(x, Value::Complex, Value::ComplexRowVector),
        Value::Matrix(m) => match part(m, first, rest, position)? {
            Picked::Scalar(x) => Value::Real(x),
            Picked::Row(x) => Value::RowVector(x),
            Picked::Column(x) => Value::Vector(x),
            Picked::Block(m) => Value::Matrix(m),
        },
        Value::ComplexMatrix(m) => match part(m, first, rest, position)? {
            Picked::Scalar(x) => Value::Complex(x),
            Picked::Row(x) => Value::ComplexRowVector(x),
            Picked::Column(x) => Value::ComplexVector(x),
            Picked::Block(m) => Value::ComplexMatrix(m),
        },
        Value::Array(x) => match resolve(first, x.len(), position)? {
            Pos::One(i) => get_at(&x[i], rest, ty, position + 1)?,
            pos => {
                let element = match ty {
                    Some(Type::Array(element)) => Some(&**element),
                    _ => None,
                };
                let parts = pos
                    .iter()
                    .map(|i| get_at(&x[i], rest, element, position + 1))
                    .collect::<Result<Vec<_>, _>>()?;
                match (parts.first(), element) {
                    (Some(Value::Int(_)), _) | (None, Some(Type::Int)) => {
                        Value::array(parts, &Type::Int)
                    }
                    (Some(Value::Real(_)), _) | (None, Some(Type::Real)) => {
                        Value::array(parts, &Type::Real)
                    }
                    _ => Value::Array(parts),
                }
            }
        },
        Value::Int(_) | Value::Real(_) | Value::Complex(_) | Value::Tuple(_) => {
            return Err(IndexError::TooMany);
        }
    })
}

enum Picked<T> {
    Scalar(T),
    Row(Vec<T>),
    Column(Vec<T>),
    Block(Mat<T>),
}

fn matrix_positions<T: Copy>(
    m: &Mat<T>,
    first: &Idx,
    rest: &[Idx],
    position: usize,
) -> Result<(Pos, Pos), IndexError> {
    if rest.len() > 1 {
        return Err(IndexError::TooMany);
    }
    let rows = resolve(first, m.rows(), position)?;
    let cols = resolve(rest.first().unwrap_or(&Idx::All), m.cols(), position + 1)?;
    Ok((rows, cols))
}

fn part<T: Copy>(
    m: &Mat<T>,
    first: &Idx,
    rest: &[Idx],
    position: usize,
) -> Result<Picked<T>, IndexError> {
    let (rows, cols) = matrix_positions(m, first, rest, position)?;
    Ok(match (&rows, &cols) {
        (Pos::One(i), Pos::One(j)) => Picked::Scalar(m[(*i, *j)]),
        (Pos::One(i), _) => Picked::Row(cols.iter().map(|j| m[(*i, j)]).collect()),
        (_, Pos::One(j)) => Picked::Column(pick(m.column(*j), &rows)),
        _ => Picked::Block(Mat::from_fn(rows.count(), cols.count(), |i, j| {
            m[(rows.at(i), cols.at(j))]
        })),
    })
}

/// Assigns `new` to the part of `target` that `idx` selects.
///
/// # Errors
/// Fails if an index is out of bounds, or if the part and `new` have different shapes.
pub fn set(target: &mut Value, idx: &[Idx], new: Value) -> Result<(), IndexError> {
    set_at(target, idx, new, 1)
}

fn set_at(target: &mut Value, idx: &[Idx], new: Value, position: usize) -> Result<(), IndexError> {
    let Some((first, rest)) = idx.split_first() else {
        if !target.same_shape(&new) {
            return Err(IndexError::Shape {
                expected: target.describe(),
                found: new.describe(),
            });
        }
        *target = new;
        return Ok(());
    };
    macro_rules! flat {
        ($x:expr, $scalar:path, $container:path) => {{
            if !rest.is_empty() {
                return Err(IndexError::TooMany);
            }
            match (resolve(first, $x.len(), position)?, &new) {
                (Pos::One(i), $scalar(v)) => $x[i] = *v,
                (pos, $container(v)) if !pos.is_one() => {
                    if v.len() != pos.count() {
                        return Err(length(pos.count(), &new));
                    }
                    for (k, v) in v.iter().enumerate() {
                        $x[pos.at(k)] = *v;
                    }
                }
                (pos, _) => return Err(length(pos.count(), &new)),
            }
        }};
    }
    macro_rules! matrix {
        ($m:expr, $scalar:path, $row:path, $column:path, $block:path) => {{
            let (rows, cols) = matrix_positions($m, first, rest, position)?;
            let count = (rows.count(), cols.count());
            let source = match (&new, rows.is_one(), cols.is_one()) {
                ($scalar(v), true, true) => Mat::new(1, 1, vec![*v]),
                ($row(v), true, false) => Mat::new(1, v.len(), v.clone()),
                ($column(v), false, true) => Mat::new(v.len(), 1, v.clone()),
                ($block(v), false, false) => v.clone(),
                _ => return Err(block(count, &new)),
            };
            if (source.rows(), source.cols()) != count {
                return Err(block(count, &new));
            }
            for j in 0..count.1 {
                for i in 0..count.0 {
                    $m[(rows.at(i), cols.at(j))] = source[(i, j)];
                }
            }
        }};
    }
    match target {
        Value::Ints(x) => flat!(x, Value::Int, Value::Ints),
        Value::Reals(x) => flat!(x, Value::Real, Value::Reals),
        Value::Vector(x) => flat!(x, Value::Real, Value::Vector),
        Value::RowVector(x) => flat!(x, Value::Real, Value::RowVector),
        Value::ComplexVector(x) => flat!(x, Value::Complex, Value::ComplexVector),
        Value::ComplexRowVector(x) => flat!(x, Value::Complex, Value::ComplexRowVector),
        Value::Matrix(m) => {
            matrix!(
                m,
                Value::Real,
                Value::RowVector,
                Value::Vector,
                Value::Matrix
            );
        }
        Value::ComplexMatrix(m) => matrix!(
            m,
            Value::Complex,
            Value::ComplexRowVector,
            Value::ComplexVector,
            Value::ComplexMatrix
        ),
        Value::Array(x) => match resolve(first, x.len(), position)? {
            Pos::One(i) => set_at(&mut x[i], rest, new, position + 1)?,
            pos => {
                let parts = match new.elements() {
                    Ok(parts) if parts.len() == pos.count() => parts.into_owned(),
                    _ => return Err(length(pos.count(), &new)),
                };
                for (k, part) in parts.into_iter().enumerate() {
                    set_at(&mut x[pos.at(k)], rest, part, position + 1)?;
                }
            }
        },
        Value::Int(_) | Value::Real(_) | Value::Complex(_) | Value::Tuple(_) => {
            return Err(IndexError::TooMany);
        }
    }
    Ok(())
}

fn length(expected: usize, found: &Value) -> IndexError {
    IndexError::Shape {
        expected: format!("{expected} elements"),
        found: found.describe(),
    }
}

fn block((rows, cols): (usize, usize), found: &Value) -> IndexError {
    IndexError::Shape {
        expected: format!("{rows} × {cols} elements"),
        found: found.describe(),
    }
}

/// A step into a container, whose expressions have been evaluated.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Indices into the container.
    Index(Vec<Idx>),
    /// A tuple component, counted from 0.
    Component(usize),
}

/// Returns the part of `value` at the end of a path.
///
/// # Errors
/// Fails if an index is out of bounds.
pub fn get_path(value: &Value, path: &[Step]) -> Result<Value, IndexError> {
    match path.split_first() {
        None => Ok(value.clone()),
        Some((Step::Component(k), rest)) => match value {
            Value::Tuple(parts) => get_path(parts.get(*k).ok_or(IndexError::TooMany)?, rest),
            _ => Err(IndexError::TooMany),
        },
        Some((Step::Index(idx), [])) => get(value, idx, None),
        Some((Step::Index(idx), rest)) => get_path(&get(value, idx, None)?, rest),
    }
}

/// Assigns `new` to the part of `target` at the end of a path.
///
/// # Errors
/// Fails if an index is out of bounds, or if the part and `new` have different shapes.
pub fn set_path(target: &mut Value, path: &[Step], new: Value) -> Result<(), IndexError> {
    match path.split_first() {
        None => set(target, &[], new),
        Some((Step::Component(k), rest)) => match target {
            Value::Tuple(parts) => {
                set_path(parts.get_mut(*k).ok_or(IndexError::TooMany)?, rest, new)
            }
            _ => Err(IndexError::TooMany),
        },
        Some((Step::Index(idx), [])) => set(target, idx, new),
        Some((Step::Index(idx), rest)) => {
            // Reading a part, changing it and writing it back is also correct for ranges.
            let mut part = get(target, idx, None)?;
            set_path(&mut part, rest, new)?;
            set(target, idx, part)
        }
    }
}
