//! The gamma function and related functions.

use super::{one, one_pair};
use crate::constants::HALF_LOG_TWO_PI;
use crate::vmath;
use std::f64::consts::PI;

/// Returns `(sin(pi x), cos(pi x))` without loss of accuracy for large `x`.
fn sin_cos_pi(x: f64) -> (f64, f64) {
    let r = x - 2.0 * (0.5 * x).round_ties_even();
    // r is in [-1, 1] and is folded to [0, 1/4], where both functions are well conditioned.
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

fn is_pole(x: f64) -> bool {
    x <= 0.0 && x == x.floor()
}

/// Returns the logarithm of the absolute value of the gamma function. The result is infinite at the poles.
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Returns the gamma function. The result is NaN at the negative poles.
pub fn tgamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// Returns the derivative of [`lgamma`]. The result is NaN at the poles 0, -1, ... and at -inf. The relative error is
/// about 1e-15. Near the negative roots, the absolute error is about 1e-15.
pub fn digamma(x: f64) -> f64 {
    if is_pole(x) {
        return f64::NAN;
    }
    if x < 0.0 {
        let (sine, cosine) = sin_cos_pi(x);
        return digamma(1.0 - x) - PI * cosine / sine;
    }
    one(vmath::digamma, x)
}

/// Returns the second derivative of [`lgamma`]. The result is infinite at the poles 0, -1, ... The relative error is
/// about 1e-15.
pub fn trigamma(x: f64) -> f64 {
    if is_pole(x) {
        return f64::INFINITY;
    }
    if x < 0.0 {
        let sine = sin_cos_pi(x).0;
        return (PI / sine) * (PI / sine) - trigamma(1.0 - x);
    }
    one(vmath::trigamma, x)
}

/// Returns `log Γ(x + n) − log Γ(x)` for `x > 0` and `n ≥ 0`, without cancellation for large x.
pub fn lgamma_step(x: f64, n: f64) -> f64 {
    one_pair(vmath::lgamma_step, x, n)
}

/// Returns `ψ(x + n) − ψ(x)` for `x > 0` and `n ≥ 0`, without cancellation for large x.
pub fn digamma_step(x: f64, n: f64) -> f64 {
    one_pair(vmath::digamma_step, x, n)
}

/// Returns `ψ′(x + n) − ψ′(x)` for `x > 0` and `n ≥ 0`, without cancellation for large x.
pub fn trigamma_step(x: f64, n: f64) -> f64 {
    one_pair(vmath::trigamma_step, x, n)
}

/// Returns the polygamma function ψ⁽ⁿ⁾(x) for n = 2 or 3 and x > 0. Upward recurrence increases x to at least 20, where
/// the asymptotic series applies (Abramowitz and Stegun 6.4.11). The relative error is below 1e-14.
pub fn polygamma(n: u32, x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return f64::NAN;
    }
    let sign = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
    let order = n as i32;
    let factorial = |k: u32| (1..=k).fold(1.0, |product, i| product * f64::from(i));
    let mut shifted = x;
    let mut sum = 0.0;
    while shifted < 20.0 {
        sum += factorial(n) / shifted.powi(order + 1);
        shifted += 1.0;
    }
    const BERNOULLI: [f64; 8] = [
        1.0 / 6.0,
        -1.0 / 30.0,
        1.0 / 42.0,
        -1.0 / 30.0,
        5.0 / 66.0,
        -691.0 / 2730.0,
        7.0 / 6.0,
        -3617.0 / 510.0,
    ];
    sum += factorial(n - 1) / shifted.powi(order) + factorial(n) / (2.0 * shifted.powi(order + 1));
    for (k, b) in (1u32..).zip(BERNOULLI) {
        sum += b * factorial(2 * k + n - 1) / (factorial(2 * k) * shifted.powi((2 * k + n) as i32));
    }
    sign * sum
}

/// Returns the logarithm of the beta function for `a, b >= 0`.
pub fn lbeta(a: f64, b: f64) -> f64 {
    if a < 0.0 || b < 0.0 {
        return f64::NAN;
    }
    one_pair(vmath::lbeta, a, b)
}

/// Returns `n log n - n - log n!`, the log probability at n of a Poisson distribution with mean `n >= 0`.
pub fn log_poisson_peak(n: f64) -> f64 {
    if n == 0.0 {
        return 0.0;
    }
    if n < 10.0 {
        return n * libm::log(n) - n - lgamma(n + 1.0);
    }
    -(HALF_LOG_TWO_PI + 0.5 * libm::log(n) + one(vmath::stirling, n))
}

/// Returns the logarithm of the multivariate gamma function of dimension `k`, for `x > (k - 1) / 2`. It is `k (k - 1) /
/// 4 log(pi) + sum over j < k of lgamma(x - j / 2)`.
pub fn lmgamma(k: u32, x: f64) -> f64 {
    let k = f64::from(k);
    let mut sum = 0.25 * k * (k - 1.0) * libm::log(PI);
    let mut j = 0.0;
    while j < k {
        sum += lgamma(x - 0.5 * j);
        j += 1.0;
    }
    sum
}

/// Returns `x (x + 1) ... (x + n - 1)`. If a partial product overflows, the result is infinite.
pub fn rising_factorial(x: f64, n: u32) -> f64 {
    if x <= 0.0 && x == x.floor() && -x < f64::from(n) {
        return 0.0;
    }
    let mut product = 1.0;
    for i in 0..n {
        product *= x + f64::from(i);
        if product.is_nan() {
            break;
        }
        if product.is_infinite() {
            let negative_factors = f64::from(n).min((-x).ceil()).max(0.0);
            return if negative_factors % 2.0 == 0.0 {
                f64::INFINITY
            } else {
                f64::NEG_INFINITY
            };
        }
    }
    product
}

/// Returns `x (x - 1) ... (x - n + 1)`. If a partial product overflows, the result is infinite.
pub fn falling_factorial(x: f64, n: u32) -> f64 {
    let product = rising_factorial(-x, n);
    if n.is_multiple_of(2) || product == 0.0 {
        product
    } else {
        -product
    }
}

/// Returns `log |Gamma(x + n) / Gamma(x)|` for `x > 0` and `x + n > 0`.
pub fn log_rising_factorial(x: f64, n: f64) -> f64 {
    // For positive n, the expression with the beta function has no cancellation for large x.
    if n > 0.0 && x > 0.0 {
        lgamma(n) - lbeta(x, n)
    } else {
        lgamma(x + n) - lgamma(x)
    }
}

/// Returns `log |Gamma(x + 1) / Gamma(x - n + 1)|`.
pub fn log_falling_factorial(x: f64, n: f64) -> f64 {
    log_rising_factorial(x - n + 1.0, n)
}

/// Returns the logarithm of the binomial coefficient of real `n` over real `k`, for `-1 <= k <= n + 1`. The result is
/// -inf at both ends of this range.
pub fn binomial_coefficient_log(n: f64, k: f64) -> f64 {
    // By symmetry, the smaller of k and n - k can be used, which keeps the small argument exact.
    let k = if k > 0.5 * n { n - k } else { k };
    if k == 0.0 {
        return 0.0;
    }
    -lbeta(n - k + 1.0, k + 1.0) - libm::log1p(n)
}
