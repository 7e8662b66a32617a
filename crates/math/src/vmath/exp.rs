//! The exponential function and functions derived from it.

use super::poly;
use crate::simd::F64x8;
use std::f64::consts::{LN_2, LOG2_E};

/// `ln 2` as a sum of two parts. The first part has 33 bits, so its product with an exponent is exact.
pub(super) const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
pub(super) const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// The coefficients of `(e^r - 1 - r) / r^2` for `|r| <= ln 2 / 2`. The approximation error is 1.0e-16.
#[rustfmt::skip]
const EXP: [f64; 10] = [
    0.5000000000000001, 0.16666666666666669, 0.041666666666624164, 0.008333333333330065,
    0.0013888888917196719, 0.00019841269863040545, 2.4801521322368692e-05, 2.7557268480310024e-06,
    2.7620075879983367e-07, 2.5100375832561234e-08,
];

/// Limits the argument of an exponential to the range of the reduction. A NaN is preserved.
#[inline(always)]
fn clamp<V: F64x8>(x: V, low: f64, high: f64) -> V {
    V::splat(high).min(V::splat(low).max(x))
}

/// Returns `(t, n)` with `e^(x + low) = (1 + t) 2^n` and `|t| < 0.42`, for small `low` and `|x| < 1000`.
#[inline(always)]
fn reduced<V: F64x8>(x: V, low: Option<V>) -> (V, V) {
    let n = (x * V::splat(LOG2_E)).round();
    let r = n.fma(V::splat(-LN2_LOW), n.fma(V::splat(-LN2_HIGH), x));
    let r = match low {
        Some(low) => r + low,
        None => r,
    };
    ((r * r).fma(poly(r, &EXP), r), n)
}

/// Returns `(p, n)` with `e^(x + low) = p 2^n` and `p` in `[0.7, 1.42]`, for `|x| < 1000` and small `low`.
#[inline(always)]
pub(super) fn exp_parts<V: F64x8>(x: V, low: V) -> (V, V) {
    let (t, n) = reduced(x, Some(low));
    (t + V::splat(1.0), n)
}

/// Returns `e^x`. The error is below 1 ulp.
#[inline(always)]
pub fn exp<V: F64x8>(x: V) -> V {
    let (t, n) = reduced(clamp(x, -750.0, 720.0), None);
    (t + V::splat(1.0)).scale_pow2(n)
}

/// Returns `e^x` for `x <= 0`. Below -708, where `e^x` is close to `2^-1022`, the result is 0. Otherwise the error is
/// below 1 ulp. The function is cheaper than [`exp`].
#[inline(always)]
pub fn exp_of_negative<V: F64x8>(x: V) -> V {
    let least = V::splat(-708.0);
    let bias = V::splat(6_755_399_441_055_744.0 + 1023.0);
    let a = least.max(x);
    // Adding the bias rounds the number to an integer. The integer is stored in the bits from which the power of 2 is
    // computed.
    let sum = a.fma(V::splat(LOG2_E), bias);
    let n = sum - bias;
    let r = n.fma(V::splat(-LN2_LOW), n.fma(V::splat(-LN2_HIGH), a));
    let t = (r * r).fma(poly(r, &EXP), r);
    let power = (t + V::splat(1.0)) * sum.pow2_of_sum();
    V::select(x.lt(least), V::zero(), power)
}

/// Returns `2^x`. The error is below 1.5 ulp.
#[inline(always)]
pub fn exp2<V: F64x8>(x: V) -> V {
    let x = clamp(x, -1080.0, 1030.0);
    let n = x.round();
    let r = (x - n) * V::splat(LN_2);
    let t = (r * r).fma(poly(r, &EXP), r);
    (t + V::splat(1.0)).scale_pow2(n)
}

/// Returns `(e^x - 1) 2^-shift` for `x >= -40`.
#[inline(always)]
fn scaled_expm1<V: F64x8>(x: V, shift: f64) -> V {
    let (t, n) = reduced(x, None);
    // The identity is e^x - 1 = 2^n (t + (1 - 2^-n)), where the inner difference is exact.
    let one = V::splat(1.0);
    let w = one - one.scale_pow2(-n);
    (t + w).scale_pow2(n - V::splat(shift))
}

/// Returns `e^x - 1`, accurate for small `x`. The error is below 2 ulp.
#[inline(always)]
pub fn expm1<V: F64x8>(x: V) -> V {
    // The result has the sign of the argument, even if it is zero.
    scaled_expm1(clamp(x, -40.0, 720.0), 0.0).copysign(x)
}

/// Returns `(e^x, e^x - 1)` for `x <= 0`.
#[inline(always)]
pub(super) fn exp_and_expm1<V: F64x8>(x: V) -> (V, V) {
    let (t, n) = reduced(clamp(x, -750.0, 720.0), None);
    let one = V::splat(1.0);
    // Below -40, the difference is -1 to full precision. The limit keeps 2^-n finite.
    let m = V::splat(-60.0).max(n);
    let w = one - one.scale_pow2(-m);
    ((t + one).scale_pow2(n), (t + w).scale_pow2(m))
}

/// Returns the hyperbolic sine. The error is below 2.5 ulp.
#[inline(always)]
pub fn sinh<V: F64x8>(x: V) -> V {
    // With h = (e^|x| - 1) / 2, sinh |x| = h + h / (2h + 1).
    let h = scaled_expm1(clamp(x.abs(), 0.0, 720.0), 1.0);
    let g = V::splat(1e300).min(h);
    (h + g / (g + g + V::splat(1.0))).copysign(x)
}

/// Returns the hyperbolic cosine. The error is below 1.5 ulp.
#[inline(always)]
pub fn cosh<V: F64x8>(x: V) -> V {
    let (t, n) = reduced(clamp(x.abs(), 0.0, 720.0), None);
    let one = V::splat(1.0);
    let h = (t + one).scale_pow2(n - one);
    h + V::splat(0.25) / h
}

/// Returns the hyperbolic tangent. The error is below 2.5 ulp.
#[inline(always)]
pub fn tanh<V: F64x8>(x: V) -> V {
    let a = clamp(x.abs(), 0.0, 20.0);
    let t = scaled_expm1(-(a + a), 0.0);
    (t / (t + V::splat(2.0))).copysign(x)
}

/// Returns the logistic function `1 / (1 + e^-x)`. The error is below 2 ulp.
#[inline(always)]
pub fn inv_logit<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let e = exp(-x.abs());
    V::select(x.ge(V::zero()), one, e) / (one + e)
}
