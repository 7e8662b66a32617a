//! The error function and the normal distribution.

use super::{inv_logit, one};
use crate::vmath;
use std::f64::consts::FRAC_1_SQRT_2;

/// Returns the error function.
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}

/// Returns the complementary error function.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Returns the inverse of [`erfc`], or NaN for arguments outside `[0, 2]`.
pub fn inv_erfc(x: f64) -> f64 {
    -inv_phi(0.5 * x) * FRAC_1_SQRT_2
}

/// Returns the standard normal distribution function. The lower tail has full relative accuracy.
pub fn phi(x: f64) -> f64 {
    one(vmath::phi, x)
}

/// Returns the logistic approximation to [`phi`], `inv_logit(0.07056 x^3 + 1.5976 x)`. The absolute error is at most
/// 1.4e-4.
pub fn phi_approx(x: f64) -> f64 {
    inv_logit(x * (0.07056 * x * x + 1.5976))
}

/// Returns the logarithm of [`phi`].
pub fn log_phi(x: f64) -> f64 {
    one(vmath::log_phi, x)
}

/// Returns [`log_phi`] for `x >= 0`, and `log(phi(x) exp(x^2 / 2))` for `x < 0`.
pub fn log_phi_scaled(x: f64) -> f64 {
    one(vmath::log_phi_scaled, x)
}

/// Returns the inverse of [`phi`], or NaN for `p` outside `[0, 1]`.
pub fn inv_phi(p: f64) -> f64 {
    one(vmath::inv_phi, p)
}

/// Returns Owen's T function: the integral of `exp(-h^2 (1 + x^2) / 2) / (1 + x^2) / (2 pi)` over `x` from 0 to `a`.
pub fn owens_t(h: f64, a: f64) -> f64 {
    if h.is_nan() || a.is_nan() {
        return f64::NAN;
    }
    owens_t::owens_t(h, a)
}
