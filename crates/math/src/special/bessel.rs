//! Bessel functions.

use super::lgamma;
use std::f64::consts::PI;

/// Returns the Bessel function of the first kind of integer order `n` at `x`.
pub fn bessel_first_kind(n: i32, x: f64) -> f64 {
    libm::jn(n, x)
}

/// Returns the Bessel function of the second kind of integer order `n`, for `x >= 0`. The result is -inf at 0.
pub fn bessel_second_kind(n: i32, x: f64) -> f64 {
    if x < 0.0 { f64::NAN } else { libm::yn(n, x) }
}

/// Sums `(x / 2)^(2k) v! / (k! (v + k)!)` over `k`. Returns the sum and the logarithm of its scale.
fn power_series(v: f64, x: f64) -> (f64, f64) {
    let z = 0.25 * x * x;
    let (mut term, mut sum, mut scale) = (1.0, 1.0, 0.0);
    let mut k = 1.0;
    // The terms grow until k (k + v) = z, and then decrease. The arguments in use never reach the limit on k.
    while k < 1e7 {
        term *= z / (k * (k + v));
        sum += term;
        if term <= sum * 1e-17 {
            break;
        }
        if sum > 1e280 {
            sum *= 1e-280;
            term *= 1e-280;
            scale += 280.0 * std::f64::consts::LN_10;
        }
        k += 1.0;
    }
    (sum, scale)
}

/// Returns `I_v(x) e^-x sqrt(2 pi x)` by Hankel's series, for `x > 50` and `x > v^2`.
fn hankel_series(v: f64, x: f64) -> f64 {
    let square = 4.0 * v * v;
    let (mut term, mut sum) = (1.0f64, 1.0f64);
    for k in 1..100 {
        let odd = f64::from(2 * k - 1);
        term *= -(square - odd * odd) / (f64::from(k) * 8.0 * x);
        sum += term;
        if term.abs() <= sum.abs() * 1e-17 {
            break;
        }
    }
    sum
}

fn hankel_serves(v: f64, x: f64) -> bool {
    x > 50.0 && x > v * v
}

/// Returns the logarithm of the modified Bessel function of the first kind of real order `v > -1`, for `x >= 0`. The
/// absolute error is below 1e-14 times `1 + |result| + v |log x|`.
pub fn log_modified_bessel_first_kind(v: f64, x: f64) -> f64 {
    if v.is_nan() || x.is_nan() || v <= -1.0 || x < 0.0 || v.is_infinite() {
        return f64::NAN;
    }
    if x == 0.0 {
        return if v == 0.0 {
            0.0
        } else {
            -f64::INFINITY.copysign(v)
        };
    }
    if x.is_infinite() {
        return x;
    }
    if hankel_serves(v, x) {
        return x - 0.5 * libm::log(2.0 * PI * x) + libm::log(hankel_series(v, x));
    }
    if x > 1e5 {
        return debye(v, x);
    }
    let (sum, scale) = power_series(v, x);
    v * libm::log(0.5 * x) - lgamma(v + 1.0) + (libm::log(sum) + scale)
}

/// Returns `log I_v(x)` by Debye's uniform expansion, for `v > 300`.
fn debye(v: f64, x: f64) -> f64 {
    let z = x / v;
    let root = libm::hypot(1.0, z);
    let t = 1.0 / root;
    let s = t * t;
    let u1 = t * (3.0 - 5.0 * s) / 24.0;
    let u2 = s * (81.0 + s * (-462.0 + s * 385.0)) / 1152.0;
    let u3 = s * t * (30375.0 + s * (-369_603.0 + s * (765_765.0 - s * 425_425.0))) / 414_720.0;
    let eta = root + libm::log(z / (1.0 + root));
    let series = u1 / v + u2 / (v * v) + u3 / (v * v * v);
    v * eta - 0.5 * libm::log(2.0 * PI * v * root) + libm::log1p(series)
}

/// Returns the modified Bessel function of the first kind of integer order. The relative error is below 1e-13 for
/// `|x| <= 700`.
pub fn modified_bessel_first_kind(n: i32, x: f64) -> f64 {
    let order = f64::from(n.unsigned_abs());
    let sign = if x < 0.0 && n % 2 != 0 { -1.0 } else { 1.0 };
    let a = x.abs();
    if a.is_nan() || a.is_infinite() {
        return sign * a;
    }
    if hankel_serves(order, a) {
        // The product of two factors of the exponential overflows only if the result does.
        let half = libm::exp(0.5 * a);
        return sign * (half / (2.0 * PI * a).sqrt() * hankel_series(order, a)) * half;
    }
    if a > 700.0 || order > 1000.0 {
        return sign * libm::exp(log_modified_bessel_first_kind(order, a));
    }
    let mut leading = 1.0;
    for i in 1..=n.unsigned_abs() {
        leading *= 0.5 * a / f64::from(i);
    }
    let (sum, scale) = power_series(order, a);
    sign * leading * sum * libm::exp(scale)
}

/// Returns the modified Bessel function of the second kind of integer order, for `x >= 0`. The result is infinite for
/// `x = 0`. The relative error is below 1e-13.
pub fn modified_bessel_second_kind(n: i32, x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x > 800.0 {
        return 0.0;
    }
    // The trapezoidal rule for the integral of exp(-x (cosh t - 1)) cosh(n t) yields K_0 and K_1 times e^x. The error
    // of the rule decreases exponentially with the number of points across the peak, whose width is 1 / sqrt(x). The
    // upward recurrence, which is stable, yields the other orders.
    let step = (0.7 / x.sqrt()).min(0.125);
    let (mut k0, mut k1) = (0.5, 0.5);
    for i in 1..8000 {
        let t = step * f64::from(i);
        let half = libm::sinh(0.5 * t);
        let weight = libm::exp(-2.0 * x * half * half);
        let term = weight * libm::cosh(t);
        k0 += weight;
        k1 += term;
        if term < 1e-18 * k1 {
            break;
        }
    }
    let scale = step * libm::exp(-x);
    let (mut before, mut now) = (k0 * scale, k1 * scale);
    if n == 0 {
        return before;
    }
    for k in 1..n.unsigned_abs() {
        (before, now) = (now, before + 2.0 * f64::from(k) / x * now);
        if now.is_infinite() {
            break;
        }
    }
    now
}
