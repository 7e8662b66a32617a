//! Exponentials, logarithms and links.

use special::LambertW;
use std::f64::consts::LN_2;

/// The logistic function `1 / (1 + e^-x)`.
pub fn inv_logit(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// `log(p / (1 - p))`, NaN outside `[0, 1]`.
pub fn logit(p: f64) -> f64 {
    super::one(crate::vmath::logit, p)
}

/// `log(1 + e^x)` without overflow.
pub fn log1p_exp(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// `log(1 - e^x)` for `x <= 0`, NaN above.
pub fn log1m_exp(x: f64) -> f64 {
    if x > -LN_2 {
        libm::log(-libm::expm1(x))
    } else {
        libm::log1p(-libm::exp(x))
    }
}

/// `log(inv_logit(x))`.
pub fn log_inv_logit(x: f64) -> f64 {
    if x.is_nan() { x } else { -log1p_exp(-x) }
}

/// `log(1 - inv_logit(x))`.
pub fn log1m_inv_logit(x: f64) -> f64 {
    if x.is_nan() { x } else { -log1p_exp(x) }
}

/// `log(e^x - e^y)` for `x >= y`, NaN otherwise.
pub fn log_diff_exp(x: f64, y: f64) -> f64 {
    if y == f64::NEG_INFINITY || x == f64::INFINITY && y < x {
        return x;
    }
    if x == y && x.is_finite() {
        return f64::NEG_INFINITY;
    }
    x + log1m_exp(y - x)
}

/// `log(e^x + e^y)`.
pub fn log_sum_exp(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let top = x.max(y);
    if top.is_infinite() {
        top
    } else {
        top + libm::log1p(libm::exp(x.min(y) - top))
    }
}

/// `log` of the sum of `e^x` over a slice; -inf for an empty one, NaN if any element is.
pub fn log_sum_exp_slice(x: &[f64]) -> f64 {
    if x.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return top;
    }
    let terms: Vec<f64> = x.iter().map(|&x| libm::exp(x - top)).collect();
    top + libm::log(crate::sum::pairwise_sum(&terms))
}

/// Inverse of the complementary log-log link: `1 - exp(-e^x)`.
pub fn inv_cloglog(x: f64) -> f64 {
    -libm::expm1(-libm::exp(x))
}

/// The principal branch of Lambert's W, `w e^w = x` with `w >= -1`, for `x >= -1/e`; NaN below.
pub fn lambert_w0(x: f64) -> f64 {
    if x == f64::INFINITY {
        x
    } else {
        x.lambert_w0()
    }
}

/// The lower branch of Lambert's W, `w e^w = x` with `w <= -1`, for `-1/e <= x <= 0`; NaN outside.
pub fn lambert_wm1(x: f64) -> f64 {
    if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        x.lambert_wm1()
    }
}
