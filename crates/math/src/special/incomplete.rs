//! The regularised incomplete gamma and beta functions.

use super::{erfc, lbeta, lgamma};
use std::f64::consts::PI;

/// The smallest argument for which the prefactors are computed by Stirling's series around the maximum.
pub(super) const LARGE: f64 = 8.5;
/// For parameters of at least this size, the incomplete gamma function is computed by an expansion around its
/// transition (Temme 1979).
pub(super) const HUGE: f64 = 1e6;
/// Series and continued fractions stop when the relative change is below this value.
const TOLERANCE: f64 = 1e-17;
/// The largest number of terms. It exceeds the square root of every parameter below `HUGE`.
const MAX_STEPS: usize = 100_000;

/// Returns `log(1 + t) - t` without cancellation.
pub(super) fn log1p_minus(t: f64) -> f64 {
    if t.abs() > 0.3 {
        return libm::log1p(t) - t;
    }
    // With s = t / (2 + t), log1p(t) = 2 atanh(s) and t = 2 s + s t. The difference is therefore 2 (s^3/3 + ...) - s t.
    let s = t / (2.0 + t);
    let z = s * s;
    let mut sum = 0.0;
    for k in (1..16).rev() {
        sum = sum * z + 1.0 / f64::from(2 * k + 1);
    }
    s * (2.0 * z * sum - t)
}

/// Returns the remainder of Stirling's formula, `lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2`, for `x >= LARGE`.
pub(super) fn stirling(x: f64) -> f64 {
    super::one(crate::vmath::stirling, x)
}

/// Returns `x^a e^-x / Gamma(a)`.
fn gamma_prefactor(a: f64, x: f64) -> f64 {
    if a < LARGE {
        if a < 1.0 {
            // For small a, Gamma(a) is large, and its reciprocal is a / Gamma(a + 1).
            return a * libm::exp(a * libm::log(x) - x - lgamma(a + 1.0));
        }
        return libm::pow(x, a) * libm::exp(-x) / libm::tgamma(a);
    }
    let t = (x - a) / a;
    libm::exp(a * log1p_minus(t) - stirling(a)) * (a / (2.0 * PI)).sqrt()
}

fn gamma_p_q(a: f64, x: f64) -> (f64, f64) {
    let legal =
        a >= 0.0 && x >= 0.0 && !(a == 0.0 && x == 0.0) && !(a.is_infinite() && x.is_infinite());
    if !legal {
        return (f64::NAN, f64::NAN);
    }
    if x == 0.0 || a.is_infinite() {
        return (0.0, 1.0);
    }
    if a == 0.0 || x.is_infinite() {
        return (1.0, 0.0);
    }
    if a > HUGE {
        return gamma_transition(a, x);
    }
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        let mut n = a;
        for _ in 0..MAX_STEPS {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term <= sum * TOLERANCE {
                break;
            }
        }
        let p = (gamma_prefactor(a, x) * sum).min(1.0);
        // For small a and x, the upper function is 1 minus a number close to 1. It is therefore computed directly.
        let q = if a < 1.0 && p > 0.5 {
            gamma_q_small(a, x)
        } else {
            1.0 - p
        };
        return (p, q);
    }
    // Lentz's method evaluates the continued fraction.
    let mut b = x + 1.0 - a;
    let mut c = 1e300;
    let mut d = 1.0 / b;
    let mut h = d;
    for i in 1..MAX_STEPS {
        let i = i as f64;
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / nonzero(an * d + b);
        c = nonzero(b + an / c);
        let factor = d * c;
        h *= factor;
        if (factor - 1.0).abs() <= 1e-16 {
            break;
        }
    }
    let q = (gamma_prefactor(a, x) * h).min(1.0);
    (1.0 - q, q)
}

/// Returns `Q(a, x)` for `a < 1` and `x < 2` as `1 - x^a / Gamma(a + 1) (1 + a sum)`. Both differences from 1 are
/// computed without cancellation.
fn gamma_q_small(a: f64, x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 0.0;
    for n in 1..200 {
        let n = f64::from(n);
        term *= -x / n;
        sum += term / (a + n);
        if term.abs() < TOLERANCE * sum.abs() {
            break;
        }
    }
    let u = libm::expm1(a * libm::log(x) - lgamma(a + 1.0));
    -(u + (1.0 + u) * a * sum)
}

/// Returns the lower and the upper function for large `a`, by Temme's uniform expansion. Only the terms that matter for
/// `a > 1e6` are included.
fn gamma_transition(a: f64, x: f64) -> (f64, f64) {
    let t = (x - a) / a;
    let square = -2.0 * log1p_minus(t);
    let eta = square.sqrt().copysign(t);
    let y = 0.5 * a * square;
    let c0 =
        -1.0 / 3.0 + eta * (1.0 / 12.0 + eta * (-2.0 / 135.0 + eta * (1.0 / 864.0 + eta / 2835.0)));
    let c1 = -1.0 / 540.0 + eta * (-1.0 / 288.0 + eta / 378.0);
    // If |eta| exceeds 0.1, the exponential vanishes.
    let rest = if eta.abs() < 0.1 {
        libm::exp(-y) / (2.0 * PI * a).sqrt() * (c0 + c1 / a)
    } else {
        0.0
    };
    let root = eta * (0.5 * a).sqrt();
    (0.5 * erfc(-root) - rest, 0.5 * erfc(root) + rest)
}

fn nonzero(x: f64) -> f64 {
    if x == 0.0 { 1e-300 } else { x }
}

/// Returns the regularised lower incomplete gamma function `P(a, x)`, for `a, x >= 0`. The relative error is below
/// 1e-13. For `a > 1e6` it is below 1e-11.
pub fn gamma_p(a: f64, x: f64) -> f64 {
    gamma_p_q(a, x).0
}

/// Returns the regularised upper incomplete gamma function `Q(a, x) = 1 - P(a, x)`, for `a, x >= 0`. The accuracy is
/// the same as for [`gamma_p`].
pub fn gamma_q(a: f64, x: f64) -> f64 {
    gamma_p_q(a, x).1
}

/// Returns `x^a y^b / B(a, b)` with `y = 1 - x`.
fn beta_prefactor(a: f64, b: f64, x: f64, y: f64) -> f64 {
    if a < LARGE || b < LARGE {
        return libm::exp(a * libm::log(x) + b * log_of_complement(x, y) - lbeta(a, b));
    }
    // Around the maximum x0 = a / (a + b), the linear terms cancel exactly.
    let distance = x * b - y * a;
    let (u, v) = (distance / a, -distance / b);
    let sum = a + b;
    let exponent = a * log1p_minus(u) + b * log1p_minus(v);
    let series = stirling(sum) - stirling(a) - stirling(b);
    libm::exp(exponent + series) * (a / sum * b / (2.0 * PI)).sqrt()
}

/// Returns `log y`, computed from `x` or from `y = 1 - x`, whichever is more accurate.
fn log_of_complement(x: f64, y: f64) -> f64 {
    if x < 0.5 {
        libm::log1p(-x)
    } else {
        libm::log(y)
    }
}

/// Returns the regularised incomplete beta function `I_x(a, b)`, for `a, b > 0` and `x` in `[0, 1]`. The relative
/// error is below 1e-12 for parameters up to 1e5.
pub fn inc_beta(a: f64, b: f64, x: f64) -> f64 {
    let legal = a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x) && a.is_finite() && b.is_finite();
    if !legal {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let y = 1.0 - x;
    if x <= (a + 1.0) / (a + b + 2.0) {
        beta_prefactor(a, b, x, y) * beta_fraction(a, b, x) / a
    } else {
        1.0 - beta_prefactor(a, b, x, y) * beta_fraction(b, a, y) / b
    }
}

/// Returns the number x at which the regularised incomplete beta function equals p. The number is found by bisection.
/// The result is NaN for invalid shapes.
pub fn inv_inc_beta(a: f64, b: f64, p: f64) -> f64 {
    if p.is_nan() || !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    // The doubles from 0 to 1 have the same order as their bit patterns. At most 62 bisections suffice, even if the
    // quantile is very close to 0.
    let (mut low, mut high) = (0, 1f64.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let found = inc_beta(a, b, f64::from_bits(middle));
        if found.is_nan() {
            return f64::NAN;
        }
        if found < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (f64::from_bits(low) + f64::from_bits(high))
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for m in 1..MAX_STEPS {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / nonzero(1.0 + even * d);
        c = nonzero(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / nonzero(1.0 + odd * d);
        c = nonzero(1.0 + odd / c);
        let factor = d * c;
        h *= factor;
        if (factor - 1.0).abs() <= 1e-16 || factor.is_nan() {
            break;
        }
    }
    h
}
