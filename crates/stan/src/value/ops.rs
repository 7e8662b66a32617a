//! The operators of the language on values.

use num_complex::Complex64;

use crate::program::{BinaryOp, UnaryOp};
use crate::value::dense;
use crate::value::error::{FnError, FnResult};
use crate::value::vectorise::{map2, map2_complex};
use crate::value::{Mat, Value};

/// A type of number that matrices may contain.
pub trait Scalar:
    jensen_math::large::Number
    + Copy
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::Neg<Output = Self>
    + std::ops::AddAssign
    + std::ops::DivAssign
{
    /// The number 0.
    const ZERO: Self;
    /// The number 1.
    const ONE: Self;
    /// Returns the magnitude, for pivoting.
    fn magnitude(self) -> f64;
}

impl Scalar for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    fn magnitude(self) -> f64 {
        self.abs()
    }
}

impl Scalar for Complex64 {
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
    const ONE: Complex64 = Complex64::new(1.0, 0.0);
    fn magnitude(self) -> f64 {
        self.norm()
    }
}

/// A scalar, vector, row vector or matrix over one type of number.
enum Lin<T> {
    Scalar(T),
    Column(Vec<T>),
    Row(Vec<T>),
    Matrix(Mat<T>),
}

impl<T: Scalar> Lin<T> {
    fn describe(&self) -> String {
        match self {
            Lin::Scalar(_) => "a scalar".into(),
            Lin::Column(x) => format!("vector[{}]", x.len()),
            Lin::Row(x) => format!("row_vector[{}]", x.len()),
            Lin::Matrix(m) => format!("matrix[{},{}]", m.rows(), m.cols()),
        }
    }

    fn into_matrix(self) -> Mat<T> {
        match self {
            Lin::Scalar(x) => Mat::new(1, 1, vec![x]),
            Lin::Column(x) => Mat::new(x.len(), 1, x),
            Lin::Row(x) => Mat::new(1, x.len(), x),
            Lin::Matrix(m) => m,
        }
    }

    fn map(self, f: impl Fn(T) -> T) -> Lin<T> {
        let all = |x: Vec<T>| x.into_iter().map(&f).collect();
        match self {
            Lin::Scalar(x) => Lin::Scalar(f(x)),
            Lin::Column(x) => Lin::Column(all(x)),
            Lin::Row(x) => Lin::Row(all(x)),
            Lin::Matrix(m) => Lin::Matrix(m.map(f)),
        }
    }
}

fn real_lin(v: &Value) -> FnResult<Lin<f64>> {
    Ok(match v {
        Value::Vector(x) => Lin::Column(x.clone()),
        Value::RowVector(x) => Lin::Row(x.clone()),
        Value::Matrix(m) => Lin::Matrix(m.clone()),
        other => Lin::Scalar(other.real()?),
    })
}

fn complex_lin(v: &Value) -> FnResult<Lin<Complex64>> {
    Ok(match v.map_complex(&|z| z)? {
        Value::ComplexVector(x) => Lin::Column(x),
        Value::ComplexRowVector(x) => Lin::Row(x),
        Value::ComplexMatrix(m) => Lin::Matrix(m),
        other => Lin::Scalar(other.complex()?),
    })
}

fn real_value(x: Lin<f64>) -> Value {
    match x {
        Lin::Scalar(x) => Value::Real(x),
        Lin::Column(x) => Value::Vector(x),
        Lin::Row(x) => Value::RowVector(x),
        Lin::Matrix(m) => Value::Matrix(m),
    }
}

fn complex_value(x: Lin<Complex64>) -> Value {
    match x {
        Lin::Scalar(x) => Value::Complex(x),
        Lin::Column(x) => Value::ComplexVector(x),
        Lin::Row(x) => Value::ComplexRowVector(x),
        Lin::Matrix(m) => Value::ComplexMatrix(m),
    }
}

fn sizes<T: Scalar>(symbol: &str, a: &Lin<T>, b: &Lin<T>) -> FnError {
    FnError::invalid(format!(
        "operands of `{symbol}` do not fit: {} and {}",
        a.describe(),
        b.describe()
    ))
}

fn elementwise<T: Scalar>(
    symbol: &str,
    a: Lin<T>,
    b: Lin<T>,
    f: impl Fn(T, T) -> T,
) -> FnResult<Lin<T>> {
    let zip = |x: Vec<T>, y: Vec<T>| x.into_iter().zip(y).map(|(x, y)| f(x, y)).collect();
    match (a, b) {
        (Lin::Scalar(x), b) => Ok(b.map(|y| f(x, y))),
        (a, Lin::Scalar(y)) => Ok(a.map(|x| f(x, y))),
        (Lin::Column(x), Lin::Column(y)) if x.len() == y.len() => Ok(Lin::Column(zip(x, y))),
        (Lin::Row(x), Lin::Row(y)) if x.len() == y.len() => Ok(Lin::Row(zip(x, y))),
        (Lin::Matrix(x), Lin::Matrix(y)) if x.rows() == y.rows() && x.cols() == y.cols() => {
            let (rows, cols) = (x.rows(), x.cols());
            Ok(Lin::Matrix(Mat::new(
                rows,
                cols,
                zip(x.into_data(), y.into_data()),
            )))
        }
        (a, b) => Err(sizes(symbol, &a, &b)),
    }
}

fn multiply<T: Scalar>(a: Lin<T>, b: Lin<T>) -> FnResult<Lin<T>> {
    let fits = match (&a, &b) {
        (Lin::Scalar(_), _) | (_, Lin::Scalar(_)) => {
            return elementwise("*", a, b, |x, y| x * y);
        }
        (Lin::Row(x), Lin::Column(y)) => x.len() == y.len(),
        (Lin::Row(x), Lin::Matrix(m)) => x.len() == m.rows(),
        (Lin::Matrix(m), Lin::Column(y)) => m.cols() == y.len(),
        (Lin::Matrix(m), Lin::Matrix(n)) => m.cols() == n.rows(),
        (Lin::Column(_), Lin::Row(_)) => true,
        _ => false,
    };
    if !fits {
        return Err(sizes("*", &a, &b));
    }
    let (row, column) = (matches!(a, Lin::Row(_)), matches!(b, Lin::Column(_)));
    Ok(shaped(
        dense::multiply(&a.into_matrix(), &b.into_matrix()),
        row,
        column,
    ))
}

fn shaped<T: Scalar>(m: Mat<T>, row: bool, column: bool) -> Lin<T> {
    match (row, column) {
        (true, true) => Lin::Scalar(m.data().first().copied().unwrap_or(T::ZERO)),
        (true, false) => Lin::Row(m.into_data()),
        (false, true) => Lin::Column(m.into_data()),
        (false, false) => Lin::Matrix(m),
    }
}

/// If `b` is a matrix, the result is `a · b⁻¹`.
fn divide<T: Scalar>(a: Lin<T>, b: Lin<T>) -> FnResult<Lin<T>> {
    let Lin::Matrix(_) = &b else {
        return elementwise("/", a, b, |x, y| x / y);
    };
    if let Lin::Scalar(_) = a {
        return Err(sizes("/", &a, &b));
    }
    let row = matches!(a, Lin::Row(_));
    let (at, bt) = (a.into_matrix().transpose(), b.into_matrix().transpose());
    let x = dense::solve(&bt, &at)?.transpose();
    Ok(shaped(x, row, false))
}

fn left_divide<T: Scalar>(a: Lin<T>, b: Lin<T>) -> FnResult<Lin<T>> {
    let column = matches!(b, Lin::Column(_));
    let x = dense::solve(&a.into_matrix(), &b.into_matrix())?;
    Ok(shaped(x, false, column))
}

fn arithmetic<T: Scalar>(op: BinaryOp, a: Lin<T>, b: Lin<T>) -> FnResult<Lin<T>> {
    match op {
        BinaryOp::Add => elementwise("+", a, b, |x, y| x + y),
        BinaryOp::Sub => elementwise("-", a, b, |x, y| x - y),
        BinaryOp::EltMul => elementwise(".*", a, b, |x, y| x * y),
        BinaryOp::EltDiv => elementwise("./", a, b, |x, y| x / y),
        BinaryOp::Mul => multiply(a, b),
        BinaryOp::Div => divide(a, b),
        BinaryOp::LeftDiv => left_divide(a, b),
        _ => Err(sizes(op.symbol(), &a, &b)),
    }
}

fn integers(op: BinaryOp, a: i32, b: i32) -> FnResult<Value> {
    use BinaryOp::*;
    let result = match op {
        Add => a.checked_add(b),
        Sub => a.checked_sub(b),
        Mul | EltMul => a.checked_mul(b),
        Div | IntDiv | Mod if b == 0 => {
            return Err(FnError::domain(format!(
                "{a} {} 0 divides by zero",
                op.symbol()
            )));
        }
        Div | IntDiv => a.checked_div(b),
        Mod => Some(a.checked_rem(b).unwrap_or(0)),
        EltDiv => return Ok(Value::Real(f64::from(a) / f64::from(b))),
        Pow | EltPow => return Ok(Value::Real(f64::from(a).powf(f64::from(b)))),
        _ => return compare(op, f64::from(a), f64::from(b)),
    };
    result.map(Value::Int).ok_or_else(|| {
        FnError::domain(format!(
            "{a} {} {b} overflows the 32 bits of an int",
            op.symbol()
        ))
    })
}

fn compare(op: BinaryOp, a: f64, b: f64) -> FnResult<Value> {
    use BinaryOp::*;
    let holds = match op {
        Eq => a == b,
        Ne => a != b,
        Lt => a < b,
        Le => a <= b,
        Gt => a > b,
        Ge => a >= b,
        And => a != 0.0 && b != 0.0,
        Or => a != 0.0 || b != 0.0,
        _ => return Err(FnError::invalid(format!("`{}` on numbers", op.symbol()))),
    };
    Ok(Value::Int(i32::from(holds)))
}

/// Computes `a op b`. For the operators `&&` and `||`, the caller has already evaluated both operands, so there is no
/// short circuit.
///
/// # Errors
/// Fails if the sizes of the operands do not match, if an `int` overflows or is divided by zero, or if a matrix is
/// singular.
pub fn binary(op: BinaryOp, a: &Value, b: &Value) -> FnResult<Value> {
    use BinaryOp::*;
    match (op, a, b) {
        (_, Value::Int(x), Value::Int(y)) => return integers(op, *x, *y),
        (Add, Value::Real(x), Value::Real(y)) => return Ok(Value::Real(x + y)),
        (Sub, Value::Real(x), Value::Real(y)) => return Ok(Value::Real(x - y)),
        (Mul | EltMul, Value::Real(x), Value::Real(y)) => return Ok(Value::Real(x * y)),
        (Div | EltDiv, Value::Real(x), Value::Real(y)) => return Ok(Value::Real(x / y)),
        _ => {}
    }
    match op {
        Eq | Ne if a.has_complex() || b.has_complex() => {
            let equal = a.complex()? == b.complex()?;
            Ok(Value::Int(i32::from(equal == (op == Eq))))
        }
        Eq | Ne | Lt | Le | Gt | Ge | And | Or => compare(op, a.real()?, b.real()?),
        Pow | EltPow if a.has_complex() || b.has_complex() => {
            map2_complex("pow", a, b, &|x, y| x.powc(y))
        }
        Pow | EltPow => map2("pow", a, b, &f64::powf),
        _ if a.has_complex() || b.has_complex() => Ok(complex_value(arithmetic(
            op,
            complex_lin(a)?,
            complex_lin(b)?,
        )?)),
        _ => Ok(real_value(arithmetic(op, real_lin(a)?, real_lin(b)?)?)),
    }
}

/// Computes `op a`.
///
/// # Errors
/// Fails if an `int` overflows.
pub fn unary(op: UnaryOp, a: &Value) -> FnResult<Value> {
    match op {
        UnaryOp::Not => Ok(Value::Int(i32::from(a.real()? == 0.0))),
        UnaryOp::Neg => match a {
            Value::Int(i) => i
                .checked_neg()
                .map(Value::Int)
                .ok_or_else(|| FnError::domain(format!("-({i}) overflows the 32 bits of an int"))),
            Value::Ints(x) => Ok(Value::Ints(x.iter().map(|i| i.wrapping_neg()).collect())),
            Value::Array(x) => Ok(Value::Array(
                x.iter().map(|v| unary(op, v)).collect::<FnResult<_>>()?,
            )),
            v if v.has_complex() => v.map_complex(&|z| -z),
            v => v.map_real(&|x| -x),
        },
    }
}

/// Computes `a'`.
///
/// # Errors
/// Fails if `a` is neither a vector nor a matrix. The checker excludes this case.
pub fn transpose(a: &Value) -> FnResult<Value> {
    Ok(match a {
        Value::Vector(x) => Value::RowVector(x.clone()),
        Value::RowVector(x) => Value::Vector(x.clone()),
        Value::Matrix(m) => Value::Matrix(m.transpose()),
        Value::ComplexVector(x) => Value::ComplexRowVector(x.clone()),
        Value::ComplexRowVector(x) => Value::ComplexVector(x.clone()),
        Value::ComplexMatrix(m) => Value::ComplexMatrix(m.transpose()),
        other => {
            return Err(FnError::invalid(format!(
                "cannot transpose {}",
                other.describe()
            )));
        }
    })
}
