//! Declared types with known sizes.

use num_complex::Complex64;

use crate::program::{Constraint, Decl, SizedType};
use crate::transform::Transform;
use crate::value::{Mat, Value};

/// A type with evaluated sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sized {
    /// `int`
    Int,
    /// `real`
    Real,
    /// `complex`
    Complex,
    /// `vector`, with its size.
    Vector(usize),
    /// `row_vector`, with its size.
    RowVector(usize),
    /// `matrix`, with its numbers of rows and columns.
    Matrix(usize, usize),
    /// `complex_vector`, with its size.
    ComplexVector(usize),
    /// `complex_row_vector`, with its size.
    ComplexRowVector(usize),
    /// `complex_matrix`, with its numbers of rows and columns.
    ComplexMatrix(usize, usize),
    /// An array, with its size and the type of its elements.
    Array(usize, Box<Sized>),
    /// A tuple, with the types of its components.
    Tuple(Vec<Sized>),
}

impl Sized {
    /// Returns the array extents, and the type below the arrays.
    pub fn unwind(&self) -> (Vec<usize>, &Sized) {
        let (mut dims, mut inner) = (Vec::new(), self);
        while let Sized::Array(n, element) = inner {
            dims.push(*n);
            inner = element;
        }
        (dims, inner)
    }

    /// Returns the numbers of rows and columns of one innermost value. A vector is a column, and a scalar is 1 × 1. For
    /// complex numbers, the number of rows is doubled.
    pub fn leaf_extents(&self) -> (usize, usize) {
        match self.unwind().1 {
            Sized::Int | Sized::Real => (1, 1),
            Sized::Complex => (2, 1),
            Sized::Vector(n) | Sized::RowVector(n) => (*n, 1),
            Sized::ComplexVector(n) | Sized::ComplexRowVector(n) => (2 * n, 1),
            Sized::Matrix(n, m) => (*n, *m),
            Sized::ComplexMatrix(n, m) => (2 * n, *m),
            Sized::Array(..) | Sized::Tuple(_) => (0, 0),
        }
    }

    /// Returns the extents of an innermost value as they are declared. A scalar has no extents.
    pub fn leaf_dims(&self) -> Vec<usize> {
        match self.unwind().1 {
            Sized::Vector(n)
            | Sized::RowVector(n)
            | Sized::ComplexVector(n)
            | Sized::ComplexRowVector(n) => vec![*n],
            Sized::Matrix(n, m) | Sized::ComplexMatrix(n, m) => vec![*n, *m],
            _ => Vec::new(),
        }
    }

    /// Returns whether the innermost values are complex.
    pub fn is_complex(&self) -> bool {
        matches!(
            self.unwind().1,
            Sized::Complex
                | Sized::ComplexVector(_)
                | Sized::ComplexRowVector(_)
                | Sized::ComplexMatrix(..)
        )
    }

    /// Returns the array extents, followed by the extents of the innermost value.
    pub fn dims(&self) -> Vec<usize> {
        let mut dims = self.unwind().0;
        dims.extend(self.leaf_dims());
        dims
    }

    /// Returns the number of scalars. A complex number counts as two.
    pub fn scalars(&self) -> usize {
        match self {
            Sized::Array(n, inner) => n * inner.scalars(),
            Sized::Tuple(parts) => parts.iter().map(Sized::scalars).sum(),
            leaf => {
                let (rows, cols) = leaf.leaf_extents();
                rows * cols
            }
        }
    }

    /// Creates a value from its numbers in storage order. Numbers that are missing are NaN.
    pub fn from_numbers(&self, numbers: &mut impl Iterator<Item = f64>) -> Value {
        let mut next = || numbers.next().unwrap_or(f64::NAN);
        let mut complex = |n: usize| -> Vec<Complex64> {
            (0..n).map(|_| Complex64::new(next(), next())).collect()
        };
        match self {
            Sized::Int => Value::Int(next() as i32),
            Sized::Real => Value::Real(next()),
            Sized::Complex => Value::Complex(Complex64::new(next(), next())),
            Sized::Vector(n) => Value::Vector((0..*n).map(|_| next()).collect()),
            Sized::RowVector(n) => Value::RowVector((0..*n).map(|_| next()).collect()),
            Sized::Matrix(n, m) => {
                Value::Matrix(Mat::new(*n, *m, (0..n * m).map(|_| next()).collect()))
            }
            Sized::ComplexVector(n) => Value::ComplexVector(complex(*n)),
            Sized::ComplexRowVector(n) => Value::ComplexRowVector(complex(*n)),
            Sized::ComplexMatrix(n, m) => Value::ComplexMatrix(Mat::new(*n, *m, complex(n * m))),
            Sized::Array(n, inner) => match **inner {
                Sized::Int => Value::Ints((0..*n).map(|_| next() as i32).collect()),
                Sized::Real => Value::Reals((0..*n).map(|_| next()).collect()),
                _ => Value::Array((0..*n).map(|_| inner.from_numbers(numbers)).collect()),
            },
            Sized::Tuple(parts) => {
                Value::Tuple(parts.iter().map(|p| p.from_numbers(numbers)).collect())
            }
        }
    }

    /// Returns the value that a variable of this type has before any assignment. Reals are NaN, and ints are
    /// `i32::MIN`.
    pub fn empty(&self) -> Value {
        let nan = Complex64::new(f64::NAN, f64::NAN);
        match self {
            Sized::Int => Value::Int(i32::MIN),
            Sized::Real => Value::Real(f64::NAN),
            Sized::Complex => Value::Complex(nan),
            Sized::Vector(n) => Value::Vector(vec![f64::NAN; *n]),
            Sized::RowVector(n) => Value::RowVector(vec![f64::NAN; *n]),
            Sized::Matrix(n, m) => Value::Matrix(Mat::filled(*n, *m, f64::NAN)),
            Sized::ComplexVector(n) => Value::ComplexVector(vec![nan; *n]),
            Sized::ComplexRowVector(n) => Value::ComplexRowVector(vec![nan; *n]),
            Sized::ComplexMatrix(n, m) => Value::ComplexMatrix(Mat::filled(*n, *m, nan)),
            Sized::Array(n, inner) => match **inner {
                Sized::Int => Value::Ints(vec![i32::MIN; *n]),
                Sized::Real => Value::Reals(vec![f64::NAN; *n]),
                _ => Value::Array(vec![inner.empty(); *n]),
            },
            Sized::Tuple(parts) => Value::Tuple(parts.iter().map(Sized::empty).collect()),
        }
    }

    /// Describes the type, such as `array[2,3] vector[4]`.
    pub fn describe(&self) -> String {
        let (dims, inner) = self.unwind();
        let leaf = match inner {
            Sized::Int => "int".to_string(),
            Sized::Real => "real".to_string(),
            Sized::Complex => "complex".to_string(),
            Sized::Vector(n) => format!("vector[{n}]"),
            Sized::RowVector(n) => format!("row_vector[{n}]"),
            Sized::Matrix(n, m) => format!("matrix[{n},{m}]"),
            Sized::ComplexVector(n) => format!("complex_vector[{n}]"),
            Sized::ComplexRowVector(n) => format!("complex_row_vector[{n}]"),
            Sized::ComplexMatrix(n, m) => format!("complex_matrix[{n},{m}]"),
            Sized::Tuple(parts) => format!(
                "tuple({})",
                parts
                    .iter()
                    .map(Sized::describe)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
            Sized::Array(..) => String::new(),
        };
        if dims.is_empty() {
            return leaf;
        }
        let dims: Vec<String> = dims.iter().map(usize::to_string).collect();
        format!("array[{}] {leaf}", dims.join(","))
    }
}

/// A part of a declared value. No part is a tuple. The field `path` leads from the value to the part.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<'p> {
    /// The suffix that the part adds to the variable's name. For a component of a tuple, the suffix is `:1` or `.2:1`,
    /// for example, as in Stan's CSV files. For any other variable, the suffix is empty.
    pub suffix: String,
    /// The type of the part.
    pub ty: Sized,
    /// The constraint of the part.
    pub constraint: &'p Constraint,
    /// The array elements and tuple components that lead from the variable's value to the part.
    pub path: Vec<usize>,
}

/// Returns the parts of a declaration. If there are no tuples, the whole variable is the only part.
pub fn parts<'p>(decl: &'p Decl, ty: &Sized) -> Vec<Part<'p>> {
    let mut out = Vec::new();
    let mut path = Vec::new();
    walk(
        &decl.ty,
        &decl.constraint,
        ty,
        String::new(),
        &mut path,
        &mut out,
    );
    out
}

fn walk<'p>(
    declared: &'p SizedType,
    constraint: &'p Constraint,
    ty: &Sized,
    suffix: String,
    path: &mut Vec<usize>,
    out: &mut Vec<Part<'p>>,
) {
    match (declared, ty) {
        (SizedType::Array(_, inner), Sized::Array(n, element))
            if matches!(ty.unwind().1, Sized::Tuple(_)) =>
        {
            for i in 0..*n {
                path.push(i);
                walk(
                    inner,
                    constraint,
                    element,
                    format!("{suffix}.{}", i + 1),
                    path,
                    out,
                );
                path.pop();
            }
        }
        (SizedType::Tuple(declared), Sized::Tuple(types)) => {
            for (k, ((declared, constraint), ty)) in declared.iter().zip(types).enumerate() {
                path.push(k);
                walk(
                    declared,
                    constraint,
                    ty,
                    format!("{suffix}:{}", k + 1),
                    path,
                    out,
                );
                path.pop();
            }
        }
        _ => out.push(Part {
            suffix,
            ty: ty.clone(),
            constraint,
            path: path.clone(),
        }),
    }
}

/// Returns the part of `value` at `path`.
pub fn part_of<'v>(value: &'v Value, path: &[usize]) -> &'v Value {
    path.iter().fold(value, |value, i| match value {
        Value::Array(x) | Value::Tuple(x) => x.get(*i).unwrap_or(value),
        other => other,
    })
}

/// Writes `part` to `path` of `value`.
pub fn put_part(value: &mut Value, path: &[usize], part: Value) {
    match (path.split_first(), value) {
        (Some((i, rest)), Value::Array(x) | Value::Tuple(x)) => {
            if let Some(x) = x.get_mut(*i) {
                put_part(x, rest, part);
            }
        }
        (_, value) => *value = part,
    }
}

/// Returns the transform for a constraint, but without the bounds. This suffices to count coordinates.
pub fn shape_only(constraint: &Constraint) -> Transform {
    match constraint {
        Constraint::Ordered => Transform::Ordered,
        Constraint::PositiveOrdered => Transform::PositiveOrdered,
        Constraint::Simplex => Transform::Simplex,
        Constraint::UnitVector => Transform::UnitVector,
        Constraint::SumToZero => Transform::SumToZero,
        Constraint::CholeskyFactorCorr => Transform::CholeskyFactorCorr,
        Constraint::CholeskyFactorCov => Transform::CholeskyFactorCov,
        Constraint::CorrMatrix => Transform::CorrMatrix,
        Constraint::CovMatrix => Transform::CovMatrix,
        Constraint::ColumnStochastic => Transform::ColumnStochastic,
        Constraint::RowStochastic => Transform::RowStochastic,
        Constraint::None
        | Constraint::Lower(_)
        | Constraint::Upper(_)
        | Constraint::LowerUpper(..)
        | Constraint::Offset(_)
        | Constraint::Multiplier(_)
        | Constraint::OffsetMultiplier(..) => Transform::Identity,
    }
}
