//! Converts between types, and finds the common type of several values.

use crate::program::Type;

/// Returns the number of steps in the conversion from type `from` to type `to`. The number is 0 if the types are equal.
/// Returns `None` if there is no implicit conversion.
///
/// The conversion from `int` to `real` is one step, and so is the conversion from `real` to `complex`. The steps inside
/// arrays, vectors and tuples are counted in the same way.
pub(super) fn promotion_cost(from: &Type, to: &Type) -> Option<u32> {
    use Type::*;
    if from == to {
        return Some(0);
    }
    match (from, to) {
        (Int, Real)
        | (Real, Complex)
        | (Vector, ComplexVector)
        | (RowVector, ComplexRowVector)
        | (Matrix, ComplexMatrix) => Some(1),
        (Int, Complex) => Some(2),
        (Array(a), Array(b)) => promotion_cost(a, b),
        (Tuple(a), Tuple(b)) if a.len() == b.len() => {
            let mut sum = 0;
            for (a, b) in a.iter().zip(b) {
                sum += promotion_cost(a, b)?;
            }
            Some(sum)
        }
        _ => None,
    }
}

pub(super) fn common(a: &Type, b: &Type) -> Option<Type> {
    if promotion_cost(a, b).is_some() {
        return Some(b.clone());
    }
    if promotion_cost(b, a).is_some() {
        return Some(a.clone());
    }
    match (a, b) {
        (Type::Array(a), Type::Array(b)) => Some(Type::Array(Box::new(common(a, b)?))),
        (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
            let parts: Option<Vec<Type>> = a.iter().zip(b).map(|(a, b)| common(a, b)).collect();
            Some(Type::Tuple(parts?))
        }
        _ => None,
    }
}

/// Joins `items` into a text such as `a, b or c`. The conjunction before the last item is `last`.
pub(super) fn list(items: &[String], last: &str) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., tail] => format!("{} {last} {tail}", head.join(", ")),
    }
}
