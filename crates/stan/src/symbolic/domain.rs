//! Checks that the arguments of functions and distributions are in their domains. Errors about known values use the
//! same wording as errors about rejected draws.

use super::known;
use super::tape::E;
use crate::value::error::{FnError, FnResult};

/// The domain of an argument of a density.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Any number but NaN.
    NotNan,
    /// Any finite number.
    Finite,
    /// Any finite number greater than 0.
    PositiveFinite,
    /// Any number greater than 0, including infinity.
    Positive,
    /// Any number that is at least 0, including infinity.
    NonNegative,
    /// Any finite number that is at least 0.
    NonNegativeFinite,
    /// Any number from 0 to 1.
    Unit,
    /// The numbers 0 and 1.
    Bool,
    /// Any `int`.
    AnyInt,
}

impl Domain {
    fn contains(self, x: f64) -> bool {
        match self {
            Domain::NotNan => !x.is_nan(),
            Domain::Finite => x.is_finite(),
            Domain::PositiveFinite => x > 0.0 && x.is_finite(),
            Domain::Positive => x > 0.0,
            Domain::NonNegative => x >= 0.0,
            Domain::NonNegativeFinite => x >= 0.0 && x.is_finite(),
            Domain::Unit => (0.0..=1.0).contains(&x),
            Domain::Bool => x == 0.0 || x == 1.0,
            Domain::AnyInt => true,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Domain::NotNan => "not nan",
            Domain::Finite => "finite",
            Domain::PositiveFinite => "positive and finite",
            Domain::Positive => "positive",
            Domain::NonNegative => "at least 0",
            Domain::NonNegativeFinite => "at least 0 and finite",
            Domain::Unit => "between 0 and 1",
            Domain::Bool => "0 or 1",
            Domain::AnyInt => "an int",
        }
    }
}

/// Checks that an argument of `function` is in its domain.
///
/// # Errors
/// Fails if a value is outside the domain, which rejects the point.
pub fn check(function: &str, what: &str, domain: Domain, x: &[f64]) -> FnResult<()> {
    for (i, v) in x.iter().enumerate() {
        if !domain.contains(*v) {
            let subscript = if x.len() == 1 {
                String::new()
            } else {
                format!("[{}]", i + 1)
            };
            return Err(FnError::domain(format!(
                "{function}: {what}{subscript} is {v}, but must be {}",
                domain.describe()
            )));
        }
    }
    Ok(())
}

/// Returns whether all elements are known.
fn check_known(function: &str, e: E<'_>, what: &str, domain: Domain) -> FnResult<bool> {
    if e.is_record() {
        let Some(visited) = e.visited() else {
            return Ok(false);
        };
        return match visited.iter().find(|(_, x)| !domain.contains(*x)) {
            None => Ok(true),
            Some((r, x)) => Err(FnError::domain(format!(
                "{function}: {what} is {x} in record {}, but must be {}",
                r + 1,
                domain.describe()
            ))),
        };
    }
    match e.values() {
        Some(values) => check(function, what, domain, &values).map(|()| true),
        None => Ok(false),
    }
}

/// Checks the known values of an argument that needs no guard, because its formula is NaN outside the domain.
///
/// # Errors
/// Fails if a known value is outside the domain.
pub fn check_values(function: &str, e: E<'_>, what: &str, domain: Domain) -> FnResult<()> {
    check_known(function, e, what, domain).map(|_| ())
}

/// Checks the domain of an argument, and rejects the draws for which the argument is outside the domain.
///
/// # Errors
/// Fails if a known value is outside the domain.
pub fn guard(function: &str, e: E<'_>, what: &str, domain: Domain) -> FnResult<()> {
    if check_known(function, e, what, domain)? {
        return Ok(());
    }
    let (zero, range) = (e.num(0.0), known::range(e));
    match domain {
        // Infinities and NaN affect the log density by themselves.
        Domain::NotNan | Domain::Finite | Domain::Bool | Domain::AnyInt => {}
        Domain::Positive | Domain::PositiveFinite if !range.positive() => {
            e.tape.reject_where(e.le(zero));
        }
        Domain::NonNegative | Domain::NonNegativeFinite if !range.nonnegative() => {
            e.tape.reject_where(e.lt(zero));
        }
        Domain::Unit if !range.unit() => {
            e.tape.reject_where(e.lt(zero) + e.num(1.0).lt(e));
        }
        Domain::Positive
        | Domain::PositiveFinite
        | Domain::NonNegative
        | Domain::NonNegativeFinite
        | Domain::Unit => {}
    }
    Ok(())
}
