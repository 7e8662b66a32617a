//! Values of the language, and the operations on values that both evaluators use.
//!
//! | file | subject |
//! | --- | --- |
//! | `mod` | values |
//! | `index`, `sized`, `shape` | their parts, declared types with sizes, extents and names of elements |
//! | `ops`, `vectorise`, `dense` | operators, functions element by element, small matrices |
//! | `laplace` | settings of embedded Laplace approximations |
//! | `error` | errors that end an evaluation, and its limits |

pub mod dense;
pub mod error;
pub mod index;
pub mod laplace;
pub mod ops;
pub mod shape;
pub mod sized;
pub mod vectorise;

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use num_complex::Complex64;

use crate::program::Type;
use crate::value::error::{FnError, FnResult};

/// A dense matrix, column-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Mat<T> {
    rows: usize,
    cols: usize,
    data: Vec<T>,
}

/// A real matrix.
pub type Matrix = Mat<f64>;

impl<T: Copy> Mat<T> {
    /// Creates a `rows × cols` matrix from its elements in column-major order.
    ///
    /// # Panics
    /// Panics if the number of elements is not `rows · cols`, which is a bug in the caller.
    pub fn new(rows: usize, cols: usize, data: Vec<T>) -> Self {
        assert_eq!(data.len(), rows * cols, "a {rows} × {cols} matrix");
        Mat { rows, cols, data }
    }

    /// Creates a matrix whose elements all equal `value`.
    pub fn filled(rows: usize, cols: usize, value: T) -> Self {
        Mat::new(rows, cols, vec![value; rows * cols])
    }

    /// Creates a matrix whose element `(i, j)` is `f(i, j)`. Both indices count from 0.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> T) -> Self {
        let mut data = Vec::with_capacity(rows * cols);
        for j in 0..cols {
            for i in 0..rows {
                data.push(f(i, j));
            }
        }
        Mat { rows, cols, data }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the elements, column after column.
    pub fn data(&self) -> &[T] {
        &self.data
    }

    /// Returns the elements, column after column, for modification.
    pub fn data_mut(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// Consumes the matrix and returns its elements, column after column.
    pub fn into_data(self) -> Vec<T> {
        self.data
    }

    /// Returns column `j`, counted from 0.
    pub fn column(&self, j: usize) -> &[T] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }

    /// Returns row `i`, counted from 0.
    pub fn row(&self, i: usize) -> Vec<T> {
        (0..self.cols).map(|j| self[(i, j)]).collect()
    }

    /// Returns the transpose.
    pub fn transpose(&self) -> Self {
        Mat::from_fn(self.cols, self.rows, |i, j| self[(j, i)])
    }

    /// Returns a matrix of the same shape with `f` applied to each element.
    pub fn map<U: Copy>(&self, f: impl FnMut(T) -> U) -> Mat<U> {
        Mat {
            rows: self.rows,
            cols: self.cols,
            data: self.data.iter().copied().map(f).collect(),
        }
    }
}

impl<T> std::ops::Index<(usize, usize)> for Mat<T> {
    type Output = T;
    fn index(&self, (i, j): (usize, usize)) -> &T {
        &self.data[j * self.rows + i]
    }
}

impl<T> std::ops::IndexMut<(usize, usize)> for Mat<T> {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut T {
        &mut self.data[j * self.rows + i]
    }
}

/// A value of the language.
///
/// An `array[] int` is always a [`Value::Ints`], and an `array[] real` is always a [`Value::Reals`]. Every other array
/// is a [`Value::Array`], whose elements all have the same type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `int`
    Int(i32),
    /// `real`
    Real(f64),
    /// `complex`
    Complex(Complex64),
    /// `array[] int`
    Ints(Vec<i32>),
    /// `array[] real`
    Reals(Vec<f64>),
    /// `vector`
    Vector(Vec<f64>),
    /// `row_vector`
    RowVector(Vec<f64>),
    /// `matrix`
    Matrix(Matrix),
    /// `complex_vector`
    ComplexVector(Vec<Complex64>),
    /// `complex_row_vector`
    ComplexRowVector(Vec<Complex64>),
    /// `complex_matrix`
    ComplexMatrix(Mat<Complex64>),
    /// Any other array.
    Array(Vec<Value>),
    /// A tuple.
    Tuple(Vec<Value>),
}

use Value::*;

fn mismatch(expected: &str, found: &Value) -> FnError {
    FnError::invalid(format!("expected {expected}, found {found:?}"))
}

impl Value {
    /// Creates an array from elements of type `element`.
    pub fn array(elements: Vec<Value>, element: &Type) -> Value {
        match element {
            Type::Int => Ints(
                elements
                    .iter()
                    .map(|v| if let Int(i) = v { *i } else { 0 })
                    .collect(),
            ),
            Type::Real => Reals(
                elements
                    .iter()
                    .map(|v| v.real().unwrap_or(f64::NAN))
                    .collect(),
            ),
            _ => Array(elements),
        }
    }

    /// Returns the value of an `int`.
    ///
    /// # Errors
    /// Fails if the value is not an `int`.
    pub fn int(&self) -> FnResult<i32> {
        match self {
            Int(i) => Ok(*i),
            _ => Err(mismatch("an int", self)),
        }
    }

    /// Returns the value of an `int` that must not be negative, such as a size.
    ///
    /// # Errors
    /// Fails if the value is negative, or if it is not an `int`.
    pub fn size_arg(&self, what: &str) -> FnResult<usize> {
        let n = self.int()?;
        usize::try_from(n)
            .map_err(|_| FnError::invalid(format!("{what} is {n}, but must not be negative")))
    }

    /// Returns a `real` or `int` as a number.
    ///
    /// # Errors
    /// Fails for other values.
    pub fn real(&self) -> FnResult<f64> {
        match self {
            Int(i) => Ok(f64::from(*i)),
            Real(x) => Ok(*x),
            _ => Err(mismatch("a real", self)),
        }
    }

    /// Returns the value as a complex number. Real numbers are converted.
    ///
    /// # Errors
    /// Fails if the value is neither real nor complex.
    pub fn complex(&self) -> FnResult<Complex64> {
        match self {
            Complex(z) => Ok(*z),
            _ => Ok(Complex64::new(self.real()?, 0.0)),
        }
    }

    /// Returns a real matrix.
    ///
    /// # Errors
    /// Fails if the value is not a real matrix.
    pub fn matrix(&self) -> FnResult<&Matrix> {
        match self {
            Matrix(m) => Ok(m),
            _ => Err(mismatch("a matrix", self)),
        }
    }

    /// Returns the elements of a one-dimensional `array` of `int`.
    ///
    /// # Errors
    /// Fails if the value is not such an array.
    pub fn ints(&self) -> FnResult<&[i32]> {
        match self {
            Ints(x) => Ok(x),
            _ => Err(mismatch("an array of int", self)),
        }
    }

    /// Returns the elements of a vector, row vector or array of reals without copying.
    ///
    /// # Errors
    /// Fails for other values.
    pub fn slice(&self) -> FnResult<&[f64]> {
        match self {
            Vector(x) | RowVector(x) | Reals(x) => Ok(x),
            Matrix(m) => Ok(m.data()),
            _ => Err(mismatch("a vector", self)),
        }
    }

    /// Returns the elements of an array. The elements are borrowed if the value is a [`Value::Array`].
    ///
    /// # Errors
    /// Fails if the value is not an array.
    pub fn elements(&self) -> FnResult<Cow<'_, [Value]>> {
        match self {
            Array(x) => Ok(Cow::Borrowed(x)),
            Ints(x) => Ok(Cow::Owned(x.iter().map(|i| Int(*i)).collect())),
            Reals(x) => Ok(Cow::Owned(x.iter().map(|x| Real(*x)).collect())),
            _ => Err(mismatch("an array", self)),
        }
    }

    /// Returns the number of elements of an array, vector or matrix. A scalar has one element.
    pub fn len(&self) -> usize {
        match self {
            Ints(x) => x.len(),
            Reals(x) | Vector(x) | RowVector(x) => x.len(),
            Matrix(m) => m.data.len(),
            ComplexVector(x) | ComplexRowVector(x) => x.len(),
            ComplexMatrix(m) => m.data.len(),
            Array(x) | Tuple(x) => x.len(),
            Int(_) | Real(_) | Complex(_) => 1,
        }
    }

    /// Returns whether the value has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the value is an `int`, `real` or `complex`.
    pub fn is_scalar(&self) -> bool {
        matches!(self, Int(_) | Real(_) | Complex(_))
    }

    /// Returns the extents, starting with the array dimensions. As in Stan's `dims`, the dimensions below an empty
    /// array are omitted.
    pub fn dims(&self) -> Vec<usize> {
        let mut dims = Vec::new();
        let mut value = self;
        while let Array(x) = value {
            dims.push(x.len());
            match x.first() {
                Some(first) => value = first,
                None => return dims,
            }
        }
        match value {
            Matrix(m) => dims.extend([m.rows, m.cols]),
            ComplexMatrix(m) => dims.extend([m.rows, m.cols]),
            Int(_) | Real(_) | Complex(_) | Tuple(_) => {}
            other => dims.push(other.len()),
        }
        dims
    }

    /// Returns all numbers of the value in storage order: arrays element after element, matrices column after column,
    /// and complex numbers with the real part first.
    pub fn numbers(&self) -> Vec<f64> {
        let mut out = Vec::new();
        self.push_numbers(&mut out);
        out
    }

    /// Appends to `out` the numbers that [`Value::numbers`] returns.
    pub fn push_numbers(&self, out: &mut Vec<f64>) {
        match self {
            Int(i) => out.push(f64::from(*i)),
            Real(x) => out.push(*x),
            Complex(z) => out.extend([z.re, z.im]),
            Ints(x) => out.extend(x.iter().map(|i| f64::from(*i))),
            Reals(x) | Vector(x) | RowVector(x) => out.extend(x),
            Matrix(m) => out.extend(&m.data),
            ComplexVector(x) | ComplexRowVector(x) => {
                out.extend(x.iter().flat_map(|z| [z.re, z.im]))
            }
            ComplexMatrix(m) => out.extend(m.data.iter().flat_map(|z| [z.re, z.im])),
            Array(x) | Tuple(x) => x.iter().for_each(|v| v.push_numbers(out)),
        }
    }

    /// Appends all numbers to `out` in column-major order over all dimensions, as in Stan's CSV files. In this order,
    /// the first index varies fastest. A complex number contributes its real and its imaginary part. Arrays of tuples
    /// are not supported.
    pub fn push_column_major(&self, out: &mut Vec<f64>) {
        let mut dims = Vec::new();
        let mut value = self;
        while let Array(x) = value {
            dims.push(x.len());
            match x.first() {
                Some(first) => value = first,
                None => return,
            }
        }
        if let Ints(_) | Reals(_) = value {
            dims.push(value.len());
        }
        let flat = self.numbers();
        let outer: usize = dims.iter().product();
        if outer == 0 {
            return;
        }
        // The two parts of a complex number are adjacent and move together.
        let unit = match value {
            Complex(_) | ComplexVector(_) | ComplexRowVector(_) | ComplexMatrix(_) => 2,
            _ => 1,
        };
        out.extend(column_major(&dims, flat.len() / outer, unit).map(|at| flat[at]));
    }

    /// Applies `f` to every `real` and `int` of the value.
    ///
    /// # Errors
    /// Fails if the value contains complex numbers or tuples.
    pub fn map_real(&self, f: &impl Fn(f64) -> f64) -> FnResult<Value> {
        let all = |x: &[f64]| x.iter().map(|x| f(*x)).collect();
        Ok(match self {
            Int(i) => Real(f(f64::from(*i))),
            Real(x) => Real(f(*x)),
            Ints(x) => Reals(x.iter().map(|i| f(f64::from(*i))).collect()),
            Reals(x) => Reals(all(x)),
            Vector(x) => Vector(all(x)),
            RowVector(x) => RowVector(all(x)),
            Matrix(m) => Matrix(m.map(f)),
            Array(x) => Array(x.iter().map(|v| v.map_real(f)).collect::<FnResult<_>>()?),
            _ => return Err(mismatch("real numbers", self)),
        })
    }

    /// Applies `f` to every number of the value, after conversion to a complex number.
    ///
    /// # Errors
    /// Fails if the value contains tuples.
    pub fn map_complex(&self, f: &impl Fn(Complex64) -> Complex64) -> FnResult<Value> {
        let real = |x: &[f64]| x.iter().map(|x| f(Complex64::from(*x))).collect();
        let all = |x: &[Complex64]| x.iter().map(|x| f(*x)).collect();
        Ok(match self {
            Int(_) | Real(_) | Complex(_) => Complex(f(self.complex()?)),
            Ints(x) => Array(
                x.iter()
                    .map(|i| Complex(f(Complex64::from(f64::from(*i)))))
                    .collect(),
            ),
            Reals(x) => Array(x.iter().map(|x| Complex(f(Complex64::from(*x)))).collect()),
            Vector(x) => ComplexVector(real(x)),
            RowVector(x) => ComplexRowVector(real(x)),
            Matrix(m) => ComplexMatrix(m.map(|x| f(Complex64::from(x)))),
            ComplexVector(x) => ComplexVector(all(x)),
            ComplexRowVector(x) => ComplexRowVector(all(x)),
            ComplexMatrix(m) => ComplexMatrix(m.map(f)),
            Array(x) => Array(
                x.iter()
                    .map(|v| v.map_complex(f))
                    .collect::<FnResult<_>>()?,
            ),
            Tuple(_) => return Err(mismatch("numbers", self)),
        })
    }

    /// Returns whether the value contains a complex number.
    pub fn has_complex(&self) -> bool {
        match self {
            Complex(_) | ComplexVector(_) | ComplexRowVector(_) | ComplexMatrix(_) => true,
            Array(x) | Tuple(x) => x.iter().any(Value::has_complex),
            _ => false,
        }
    }

    /// Promotes the value to type `ty`, elementwise. Ints become reals, and reals become complex numbers.
    pub fn promote(self, ty: &Type) -> Value {
        match (self, ty) {
            (Int(i), Type::Real) => Real(f64::from(i)),
            (v @ (Int(_) | Real(_)), Type::Complex) => v.complex().map_or(v, Complex),
            (Ints(x), Type::Array(t)) if **t == Type::Real => {
                Reals(x.into_iter().map(f64::from).collect())
            }
            (v @ (Ints(_) | Reals(_)), Type::Array(t)) if **t == Type::Complex => {
                v.map_complex(&|z| z).unwrap_or(v)
            }
            (v @ Vector(_), Type::ComplexVector)
            | (v @ RowVector(_), Type::ComplexRowVector)
            | (v @ Matrix(_), Type::ComplexMatrix) => v.map_complex(&|z| z).unwrap_or(v),
            (Array(x), Type::Array(t)) => {
                Value::array(x.into_iter().map(|v| v.promote(t)).collect(), t)
            }
            (Tuple(x), Type::Tuple(types)) => Tuple(
                x.into_iter()
                    .zip(types)
                    .map(|(v, t)| v.promote(t))
                    .collect(),
            ),
            (v, _) => v,
        }
    }

    /// Describes the shape for messages, such as `vector[3]` or `array[2,4] int`.
    pub fn describe(&self) -> String {
        let mut dims = Vec::new();
        let mut value = self;
        while let Array(x) = value {
            dims.push(x.len().to_string());
            match x.first() {
                Some(first) => value = first,
                None => return format!("array[{}] of nothing", dims.join(",")),
            }
        }
        let leaf = match value {
            Int(_) => "int".to_string(),
            Real(_) => "real".to_string(),
            Complex(_) => "complex".to_string(),
            Ints(x) => {
                dims.push(x.len().to_string());
                "int".to_string()
            }
            Reals(x) => {
                dims.push(x.len().to_string());
                "real".to_string()
            }
            Vector(x) => format!("vector[{}]", x.len()),
            RowVector(x) => format!("row_vector[{}]", x.len()),
            Matrix(m) => format!("matrix[{},{}]", m.rows, m.cols),
            ComplexVector(x) => format!("complex_vector[{}]", x.len()),
            ComplexRowVector(x) => format!("complex_row_vector[{}]", x.len()),
            ComplexMatrix(m) => format!("complex_matrix[{},{}]", m.rows, m.cols),
            Tuple(x) => format!(
                "tuple({})",
                x.iter().map(Value::describe).collect::<Vec<_>>().join(", ")
            ),
            Array(_) => "array".to_string(),
        };
        if dims.is_empty() {
            leaf
        } else {
            format!("array[{}] {leaf}", dims.join(","))
        }
    }

    /// Returns whether both values have the same shape, so that one may be assigned to the other. Dimensions below an
    /// empty array of arrays are not compared.
    pub fn same_shape(&self, other: &Value) -> bool {
        match (self, other) {
            (Array(a), Array(b)) | (Tuple(a), Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_shape(b))
            }
            (Array(a), Ints(b)) | (Ints(b), Array(a)) => a.is_empty() && b.is_empty(),
            (Array(a), Reals(b)) | (Reals(b), Array(a)) => a.is_empty() && b.is_empty(),
            (Matrix(a), Matrix(b)) => a.rows == b.rows && a.cols == b.cols,
            (ComplexMatrix(a), ComplexMatrix(b)) => a.rows == b.rows && a.cols == b.cols,
            _ => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
                    && self.len() == other.len()
            }
        }
    }
}

fn list<T>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut show: impl FnMut(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            f.write_str(",")?;
        }
        show(f, item)?;
    }
    f.write_str("]")
}

impl fmt::Display for Value {
    /// Formats the value as `print` does: numbers with six significant digits, every container as `[a,b]`, and each row
    /// of a matrix in its own brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let complex = |f: &mut fmt::Formatter<'_>, z: Complex64| {
            write!(f, "({},{})", significant(z.re), significant(z.im))
        };
        match self {
            Int(i) => write!(f, "{i}"),
            Real(x) => f.write_str(&significant(*x)),
            Complex(z) => complex(f, *z),
            Ints(x) => list(f, x, |f, i| write!(f, "{i}")),
            Reals(x) | Vector(x) | RowVector(x) => list(f, x, |f, x| f.write_str(&significant(*x))),
            Matrix(m) => list(f, 0..m.rows, |f, i| {
                list(f, m.row(i), |f, x| f.write_str(&significant(x)))
            }),
            ComplexVector(x) | ComplexRowVector(x) => list(f, x, |f, z| complex(f, *z)),
            ComplexMatrix(m) => list(f, 0..m.rows, |f, i| list(f, m.row(i), complex)),
            Array(x) => list(f, x, |f, v| write!(f, "{v}")),
            Tuple(x) => {
                f.write_str("(")?;
                for (i, v) in x.iter().enumerate() {
                    write!(f, "{}{v}", if i == 0 { "" } else { "," })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// Formats a number with six significant digits and without trailing zeros, as C++ streams do.
pub fn significant(x: f64) -> String {
    if x.is_nan() {
        return "nan".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.into();
    }
    if x == 0.0 {
        return "0".into();
    }
    let scientific = format!("{x:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| {
        if s.contains('.') {
            s.trim_end_matches('0').trim_end_matches('.').to_string()
        } else {
            s.to_string()
        }
    };
    if (-4..6).contains(&exponent) {
        let decimals = (5 - exponent).max(0) as usize;
        trim(&format!("{x:.decimals$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

/// A value that is either owned or shared with a variable.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A value that an expression computed.
    Owned(Value),
    /// A value shared with a variable.
    Shared(Arc<Value>),
}

impl Operand {
    /// Returns the value. A shared value is copied.
    pub fn into_value(self) -> Value {
        match self {
            Operand::Owned(v) => v,
            Operand::Shared(v) => Arc::try_unwrap(v).unwrap_or_else(|v| (*v).clone()),
        }
    }

    /// Returns the value in a reference-counted pointer.
    pub fn into_shared(self) -> Arc<Value> {
        match self {
            Operand::Owned(v) => Arc::new(v),
            Operand::Shared(v) => v,
        }
    }
}

impl Deref for Operand {
    type Target = Value;
    fn deref(&self) -> &Value {
        match self {
            Operand::Owned(v) => v,
            Operand::Shared(v) => v,
        }
    }
}

/// Returns the storage positions of an array with the extents `dims`, in the order of Stan's CSV files. In this order,
/// the first index varies fastest. Each array element consists of `inner` numbers, which are stored in this order.
/// Groups of `unit` consecutive numbers stay together.
pub fn column_major(dims: &[usize], inner: usize, unit: usize) -> impl Iterator<Item = usize> {
    let outer: usize = dims.iter().product();
    (0..inner).step_by(unit).flat_map(move |e| {
        let position = move |k: usize| {
            let (mut rest, mut at) = (k, 0);
            let mut stride = outer;
            for d in dims {
                stride /= d;
                at += (rest % d) * stride;
                rest /= d;
            }
            at * inner + e
        };
        (0..outer)
            .map(position)
            .flat_map(move |first| first..first + unit)
    })
}
