//! Binds data: converts named numbers to the values that a program declares.

use num_complex::Complex64;

use super::machine::Machine;
use crate::program::{Decl, Program, SizedType, Span};
use crate::spelling;
use crate::value::error::{ErrorKind, Eval, EvalError};
use crate::value::sized::Sized;
use crate::value::{Mat, Value};

/// The value of a named input, as a rectangular array of numbers or tuples. The program's declaration determines its
/// type later.
#[derive(Clone, Debug, PartialEq)]
pub struct Input<'a> {
    /// The lengths of the nested lists, starting with the outermost list. A scalar has no lengths. A matrix is a list
    /// of rows, and a complex number has a trailing dimension of length 2.
    pub shape: &'a [usize],
    /// The elements in row-major order.
    pub elements: Elements<'a>,
}

/// The elements of an [`Input`].
#[derive(Clone, Debug, PartialEq)]
pub enum Elements<'a> {
    /// All numbers are written as integers, or the array is empty.
    Ints(&'a [i64]),
    /// At least one number is not written as an integer.
    Reals(&'a [f64]),
    /// The components of a tuple. If the input is an array of tuples, each component contains its values for all array
    /// elements, and the shape of the component begins with the shape of the array.
    Tuple(Vec<Input<'a>>),
}

/// A source of values for the data block.
pub trait DataSource {
    /// Returns the value with this name.
    fn get(&self, name: &str) -> Option<Input<'_>>;

    /// Returns the names of all inputs. Messages about missing data list these names.
    fn names(&self) -> Vec<&str>;

    /// Returns the number of rows if the inputs are the columns of a table, and `None` otherwise. A table may omit the
    /// variables that are declared as the lengths of its columns.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// If the numbers with this name are codes that stand for words, returns the location of one of these words in its
    /// source. Codes of words are valid as indices but not in arithmetic.
    fn words(&self, _name: &str) -> Option<String> {
        None
    }
}

/// A source without data, for programs that declare none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoData;

impl DataSource for NoData {
    fn get(&self, _: &str) -> Option<Input<'_>> {
        None
    }

    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// Binds every declaration of the data block, in order. Checks that the data are present and that their shapes, types
/// and constraints match the declarations.
///
/// # Errors
/// Fails with [`ErrorKind::Data`] at the declaration's name. The message consists of one line, with the variable, the
/// expected type and the type that was found.
pub fn bind_data(machine: &mut Machine<'_>, data: &dyn DataSource) -> Eval<()> {
    let program = machine.program;
    for decl in &program.data {
        let var = program.var(decl.var);
        let span = var.span;
        // Sizes are evaluated first, so that a declaration that can never match is rejected before its data are read.
        let ty = machine.resolve(decl)?;
        let Some(input) = data.get(&var.name) else {
            if let Some(rows) = length_of_columns(program, decl, data) {
                let value = Value::Int(rows);
                machine.check_declared(decl, &value, ErrorKind::Data, span)?;
                machine.slots[decl.var.0 as usize] = Some(value.into());
                continue;
            }
            return Err(error(span, missing(program, decl, &ty.describe(), data)));
        };
        if let Some(location) = data.words(&var.name).filter(|_| !var.ty.is_int()) {
            return Err(error(
                span,
                format!(
                    "variable `{}`: expected {}, found words: {location}\nwrite numbers with a decimal point, \
                     and an empty cell or NA for a missing value; a column of words can be an array of int \
                     with the numbers of its words",
                    var.name,
                    ty.describe()
                ),
            ));
        }
        let value = build(machine, decl, &var.name, &ty, &input)?;
        machine.check_declared(decl, &value, ErrorKind::Data, span)?;
        machine.slots[decl.var.0 as usize] = Some(value.into());
    }
    Ok(())
}

/// Returns the number of rows of the table if the declaration is the length of a variable that has a column. Returns
/// `None` otherwise.
fn length_of_columns(program: &Program, decl: &Decl, data: &dyn DataSource) -> Option<i32> {
    let rows = i32::try_from(data.rows()?).ok()?;
    let mut names = program.of_length(decl);
    (names.any(|name| data.get(name).is_some())).then_some(rows)
}

/// Returns the message about a variable that the data do not contain.
fn missing(program: &Program, decl: &Decl, ty: &str, data: &dyn DataSource) -> String {
    let name = &program.var(decl.var).name;
    let names = data.names();
    if names.is_empty() {
        return format!("the program needs data, such as `{name}` ({ty})");
    }
    let column = data.rows().and_then(|_| program.of_length(decl).next());
    if let Some(column) = column {
        let advice = advice(program, column, names);
        return format!(
            "variable `{name}`: the table has no column `{column}`, whose length is `{name}`{advice}"
        );
    }
    let mut advice = advice(program, name, names);
    if data.rows().is_some() && decl.ty == SizedType::Int && !advice.contains("did you mean") {
        advice += "; a table has only columns: give the data as JSON, or compute it from a column in \
                   transformed data, as in `int K = max(group);`";
    }
    format!("variable `{name}`: expected {ty}, found nothing of that name in the data{advice}")
}

/// Returns advice for the message about missing data. If a name in the data resembles the missing name, the advice
/// suggests it. Otherwise the advice lists the names that no declaration uses.
fn advice(program: &Program, missing: &str, names: Vec<&str>) -> String {
    const SHOWN: usize = 6;
    let asked = |name: &str| {
        program
            .data
            .iter()
            .any(|decl| program.var(decl.var).name == name)
    };
    let free: Vec<&str> = names.into_iter().filter(|name| !asked(name)).collect();
    let same = |name: &&&str| name.eq_ignore_ascii_case(missing);
    if let Some(meant) = free.iter().find(same).copied() {
        return format!("; did you mean `{meant}`?");
    }
    // Every name of one letter differs by one edit from every other.
    let near = (missing.len() > 1).then(|| spelling::closest(missing, free.iter().copied()));
    if let Some(meant) = near.flatten() {
        return format!("; did you mean `{meant}`?");
    }
    if free.is_empty() {
        return String::new();
    }
    let more = match free.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown: Vec<String> = free
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect();
    format!("; the program does not declare {}{more}", shown.join(", "))
}

fn error(span: Span, message: String) -> Box<EvalError> {
    Box::new(EvalError {
        kind: ErrorKind::Data,
        message,
        span,
    })
}

fn build(
    machine: &mut Machine<'_>,
    decl: &Decl,
    name: &str,
    ty: &Sized,
    input: &Input<'_>,
) -> Eval<Value> {
    let span = machine.program.var(decl.var).span;
    check_shape(ty, input, &mut Vec::new())
        .map_err(|problem| error(span, format!("variable `{name}`: {problem}")))?;
    fill(ty, input, 0).map_err(|problem| {
        let text = match problem {
            Problem::NotInt { at, found } => {
                let subscript = row_major_name(&input_dims(ty), at);
                format!("variable `{name}{subscript}`: expected an int, found {found}")
            }
            Problem::Missing => format!(
                "variable `{name}`: expected {}, found too few numbers",
                ty.describe()
            ),
        };
        error(span, text)
    })
}

/// Returns the extents of the arrays, followed by the extents of a vector or matrix, and by 2 for a complex number.
fn input_dims(ty: &Sized) -> Vec<usize> {
    let mut dims = ty.dims();
    if ty.is_complex() {
        dims.push(2);
    }
    dims
}

/// Returns the index of the element at row-major position `at`, such as `[2,1]`.
fn row_major_name(dims: &[usize], at: usize) -> String {
    if dims.is_empty() {
        return String::new();
    }
    let mut rest = at;
    let mut path: Vec<String> = dims
        .iter()
        .rev()
        .map(|d| {
            let i = rest % d.max(&1);
            rest /= d.max(&1);
            (i + 1).to_string()
        })
        .collect();
    path.reverse();
    format!("[{}]", path.join(","))
}

fn check_shape(ty: &Sized, input: &Input<'_>, prefix: &mut Vec<usize>) -> Result<(), String> {
    let depth = prefix.len();
    let (arrays, inner) = ty.unwind();
    prefix.extend(arrays);
    let result = match (inner, &input.elements) {
        (Sized::Tuple(parts), Elements::Tuple(slots)) => {
            if parts.len() != slots.len() {
                Err(format!(
                    "expected a tuple of {} components, found one of {}",
                    parts.len(),
                    slots.len()
                ))
            } else {
                let mut checks = parts.iter().zip(slots).enumerate();
                checks.try_for_each(|(k, (ty, slot))| {
                    check_shape(ty, slot, prefix)
                        .map_err(|problem| format!("component {}: {problem}", k + 1))
                })
            }
        }
        (Sized::Tuple(parts), _) => Err(format!(
            "expected a tuple of {} components, found {}",
            parts.len(),
            show_shape(input.shape)
        )),
        (_, Elements::Tuple(_)) => Err(format!("expected {}, found a tuple", ty.describe())),
        (leaf, _) => {
            let mut expected = prefix.clone();
            expected.extend(input_dims(leaf));
            let empty = |shape: &[usize]| shape.contains(&0);
            if expected == input.shape || (empty(&expected) && empty(input.shape)) {
                Ok(())
            } else {
                Err(format!(
                    "expected {} ({}), found {}",
                    show_shape(&expected),
                    ty.describe(),
                    show_shape(input.shape)
                ))
            }
        }
    };
    prefix.truncate(depth);
    result
}

fn show_shape(shape: &[usize]) -> String {
    match shape {
        [] => "a single number".into(),
        [1] => "a list of 1 number".into(),
        [n] => format!("a list of {n} numbers"),
        _ => {
            let parts: Vec<String> = shape.iter().map(usize::to_string).collect();
            format!("{} numbers", parts.join(" × "))
        }
    }
}

enum Problem {
    NotInt { at: usize, found: String },
    Missing,
}

/// `k` is the row-major position of the current element within the arrays that contain `ty`.
fn fill(ty: &Sized, input: &Input<'_>, k: usize) -> Result<Value, Problem> {
    let matrix = |rows: usize, cols: usize| (k * rows * cols, rows * cols);
    Ok(match ty {
        Sized::Int => Value::Int(int(input, k)?),
        Sized::Real => Value::Real(real(input, k)?),
        Sized::Complex => Value::Complex(complex(input, k)?),
        Sized::Vector(n) => Value::Vector(reals(input, k * n, *n)?),
        Sized::RowVector(n) => Value::RowVector(reals(input, k * n, *n)?),
        Sized::ComplexVector(n) => Value::ComplexVector(complexes(input, k * n, *n)?),
        Sized::ComplexRowVector(n) => Value::ComplexRowVector(complexes(input, k * n, *n)?),
        Sized::Matrix(rows, cols) => {
            let (from, count) = matrix(*rows, *cols);
            let by_row = reals(input, from, count)?;
            Value::Matrix(Mat::from_fn(*rows, *cols, |i, j| by_row[i * cols + j]))
        }
        Sized::ComplexMatrix(rows, cols) => {
            let (from, count) = matrix(*rows, *cols);
            let by_row = complexes(input, from, count)?;
            Value::ComplexMatrix(Mat::from_fn(*rows, *cols, |i, j| by_row[i * cols + j]))
        }
        Sized::Array(n, inner) => match **inner {
            Sized::Int => Value::Ints(
                (k * n..(k + 1) * n)
                    .map(|at| int(input, at))
                    .collect::<Result<_, _>>()?,
            ),
            Sized::Real => Value::Reals(reals(input, k * n, *n)?),
            _ => Value::Array(
                (k * n..(k + 1) * n)
                    .map(|at| fill(inner, input, at))
                    .collect::<Result<_, _>>()?,
            ),
        },
        Sized::Tuple(parts) => {
            let Elements::Tuple(slots) = &input.elements else {
                return Err(Problem::Missing);
            };
            Value::Tuple(
                parts
                    .iter()
                    .zip(slots)
                    .map(|(ty, slot)| fill(ty, slot, k))
                    .collect::<Result<_, _>>()?,
            )
        }
    })
}

fn int(input: &Input<'_>, at: usize) -> Result<i32, Problem> {
    let fail = |found: String| Problem::NotInt { at, found };
    match &input.elements {
        Elements::Ints(x) => {
            let found = *x.get(at).ok_or(Problem::Missing)?;
            // i32::MIN represents an unassigned int.
            match i32::try_from(found) {
                Ok(i) if i != i32::MIN => Ok(i),
                _ => Err(fail(format!("{found}, which does not fit 32 bits"))),
            }
        }
        // Integers are valid in any notation, because a table of numbers does not distinguish ints from reals.
        Elements::Reals(x) => {
            let found = *x.get(at).ok_or(Problem::Missing)?;
            if found.fract() != 0.0 || found.is_nan() {
                return Err(fail(format!("{found}")));
            }
            if found.abs() > f64::from(i32::MAX) {
                return Err(fail(format!("{found}, which does not fit 32 bits")));
            }
            Ok(found as i32)
        }
        Elements::Tuple(_) => Err(Problem::Missing),
    }
}

fn real(input: &Input<'_>, at: usize) -> Result<f64, Problem> {
    Ok(reals(input, at, 1)?[0])
}

fn reals(input: &Input<'_>, from: usize, count: usize) -> Result<Vec<f64>, Problem> {
    let range = from..from + count;
    match &input.elements {
        Elements::Ints(x) => Ok(x
            .get(range)
            .ok_or(Problem::Missing)?
            .iter()
            .map(|i| *i as f64)
            .collect()),
        Elements::Reals(x) => Ok(x.get(range).ok_or(Problem::Missing)?.to_vec()),
        Elements::Tuple(_) => Err(Problem::Missing),
    }
}

fn complex(input: &Input<'_>, at: usize) -> Result<Complex64, Problem> {
    Ok(complexes(input, at, 1)?[0])
}

fn complexes(input: &Input<'_>, from: usize, count: usize) -> Result<Vec<Complex64>, Problem> {
    let parts = reals(input, 2 * from, 2 * count)?;
    Ok(parts
        .chunks_exact(2)
        .map(|z| Complex64::new(z[0], z[1]))
        .collect())
}
