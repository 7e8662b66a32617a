//! The gamma function and its relatives.

use std::f64::consts::PI;

/// `(sin(pi x), cos(pi x))` without loss for large `x`.
pub(super) fn sin_cos_pi(x: f64) -> (f64, f64) {
    let r = x - 2.0 * (0.5 * x).round_ties_even();
    // r in [-1, 1], folded to [0, 1/4] where both functions are well conditioned.
    let a = r.abs();
    let (sine, cosine) = if a <= 0.25 {
        (libm::sin(PI * a), libm::cos(PI * a))
    } else if a <= 0.75 {
        (libm::cos(PI * (0.5 - a)), libm::sin(PI * (0.5 - a)))
    } else {
        (libm::sin(PI * (1.0 - a)), -libm::cos(PI * (1.0 - a)))
    };
    (sine.copysign(r), cosine)
}

/// Whether `x` is 0, -1, -2, ...
fn is_pole(x: f64) -> bool {
    x <= 0.0 && x == x.floor()
}

/// Logarithm of the absolute value of the gamma function; infinite at its poles.
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Derivative of [`lgamma`]; NaN at the poles 0, -1, ... and at -inf. Relative error some 1e-15, except next to the
/// negative roots, where it is absolute.
pub fn digamma(x: f64) -> f64 {
    if is_pole(x) {
        return f64::NAN;
    }
    if x < 0.0 {
        let (sine, cosine) = sin_cos_pi(x);
        return digamma(1.0 - x) - PI * cosine / sine;
    }
    crate::vmath::digamma_positive(x)
}

/// Second derivative of [`lgamma`]; infinite at the poles 0, -1, ... Relative error some 1e-15.
pub fn trigamma(x: f64) -> f64 {
    if is_pole(x) {
        return f64::INFINITY;
    }
    if x < 0.0 {
        let sine = sin_cos_pi(x).0;
        return (PI / sine) * (PI / sine) - trigamma(1.0 - x);
    }
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < 8.0 {
        sum += 1.0 / (shifted * shifted);
        shifted += 1.0;
    }
    sum + crate::vmath::trigamma_far(shifted)
}
