//! The logarithm and functions derived from it.

use super::exp::{LN2_HIGH, LN2_LOW, exp, exp_and_expm1};
use super::poly;
use crate::simd::F64x8;
use std::f64::consts::LN_2;

/// The coefficients of `(2 atanh(s) - 2 s) / s^3` in powers of `s^2`, for `|s| <= 0.2`. The approximation error is
/// 2.5e-17.
#[rustfmt::skip]
const LOG: [f64; 8] = [
    0.6666666666666666, 0.400000000000078, 0.2857142856733919, 0.22222223037807243,
    0.18181738454723026, 0.15388834677801916, 0.1321036048513262, 0.13604015707124079,
];

/// `1 / ln 2` as a sum of a part with 26 bits and the remainder.
const INV_LN2: (f64, f64) = (1.4426950216293335, 1.9259629911266175e-08);
/// `1 / ln 10` as a sum of a part with 26 bits and the remainder.
const INV_LN10: (f64, f64) = (0.4342944771051407, 4.798111141615973e-09);
/// `log10 2` as a sum of a part with 33 bits and the remainder.
const LOG10_2: (f64, f64) = (3.010_299_956_636_117_7e-1, 3.694_239_077_158_931e-13);

/// Returns `(h, t)` with `log(1 + f) = f - (h - t)` and `h = f^2 / 2`, for `1 + f` in `[0.75, 1.5)`.
#[inline(always)]
fn log1p_reduced<V: F64x8>(f: V) -> (V, V) {
    // With s = f / (2 + f), log(1 + f) = 2 atanh(s) = f - s (f - R), where R = s^2 L(s^2). The term f^2 / 2 is split
    // off, because it is more accurate than s f.
    let s = f / (V::splat(2.0) + f);
    let z = s * s;
    let r = z * poly(z, &LOG);
    let h = V::splat(0.5) * f * f;
    (h, s * (h + r))
}

/// Returns the natural logarithm. The error is below 1 ulp.
#[inline(always)]
pub fn log<V: F64x8>(x: V) -> V {
    let (e, m) = x.split_pow2();
    let f = m - V::splat(1.0);
    let (h, t) = log1p_reduced(f);
    let low = e.fma(V::splat(LN2_LOW), t);
    e.fma(V::splat(LN2_HIGH), f - (h - low))
}

/// Returns `log(u + c)` where `|c|` is at most half a unit in the last place of `u`. The function ignores `c` if `u` is
/// not a positive number below `2^54`. The error is below 1.5 ulp.
#[inline(always)]
pub(super) fn log_sum<V: F64x8>(u: V, c: V) -> V {
    let (e, m) = u.split_pow2();
    let ordinary = V::and(V::zero().lt(u), u.lt(V::splat(18_014_398_509_481_984.0)));
    let exponent = V::select(ordinary, e, V::zero());
    let c = V::select(ordinary, c.scale_pow2(-exponent), V::zero());
    let f = (m - V::splat(1.0)) + c;
    let (h, t) = log1p_reduced(f);
    let low = e.fma(V::splat(LN2_LOW), t);
    e.fma(V::splat(LN2_HIGH), f - (h - low))
}

/// Returns numbers `high` and `low` whose sum is the logarithm of the reduced argument `m`. `high` has 26 bits.
#[inline(always)]
fn log_two_parts<V: F64x8>(m: V) -> (V, V) {
    let f = m - V::splat(1.0);
    let (h, t) = log1p_reduced(f);
    let high = (f - h).high_bits();
    (high, (f - high) - h + t)
}

/// Returns `e * unit + (high + low) * scale`. Each constant is a sum of two parts, and the products with the first
/// parts are exact.
#[inline(always)]
fn change_base<V: F64x8>(x: V, unit: (f64, f64), scale: (f64, f64)) -> V {
    let (e, m) = x.split_pow2();
    let (high, low) = log_two_parts(m);
    let main = high * V::splat(scale.0);
    let rest = (high + low).fma(V::splat(scale.1), low * V::splat(scale.0));
    let rest = e.fma(V::splat(unit.1), rest);
    let base = e * V::splat(unit.0);
    let sum = base + main;
    // The computed rounding error of base + main is exact, because base is zero or the larger of the two. If base is
    // infinite, there is no rounding error.
    let error = (base - sum) + main;
    let finite = base.abs().lt(V::splat(f64::INFINITY));
    sum + V::select(finite, error + rest, V::zero())
}

/// Returns the logarithm to base 2, which is exact for powers of 2. The error is below 1 ulp.
#[inline(always)]
pub fn log2<V: F64x8>(x: V) -> V {
    change_base(x, (1.0, 0.0), INV_LN2)
}

/// Returns the logarithm to base 10. The error is below 1.5 ulp.
#[inline(always)]
pub fn log10<V: F64x8>(x: V) -> V {
    change_base(x, LOG10_2, INV_LN10)
}

/// Returns `log(1 + x)`, accurate for small `x`. The error is below 1.5 ulp.
#[inline(always)]
pub fn log1p<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let u = one + x;
    // The computed rounding error of the sum is exact, whichever term is larger.
    let back = u - one;
    let c = (one - (u - back)) + (x - back);
    // The result has the sign of the argument, even if it is zero.
    log_sum(u, c).copysign(x)
}

/// Returns `log(1 - x)`, accurate for small `x`. The error is below 1.5 ulp.
#[inline(always)]
pub fn log1m<V: F64x8>(x: V) -> V {
    log1p(-x)
}

/// Returns `log(1 + e^x)` (softplus), without overflow. The error is below 2 ulp.
#[inline(always)]
pub fn log1p_exp<V: F64x8>(x: V) -> V {
    x.max(V::zero()) + log1p(exp(-x.abs()))
}

/// Returns `log(1 - e^x)` for `x <= 0`, and NaN for larger x. The error is below 2 ulp.
#[inline(always)]
pub fn log1m_exp<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let (e, em1) = exp_and_expm1(x);
    let near = x.gt(V::splat(-LN_2));
    let u = V::select(near, -em1, one - e);
    let c = V::select(near, V::zero(), (one - u) - e);
    log_sum(u, c)
}

/// Returns `log(inv_logit(x))`. The error is below 2 ulp.
#[inline(always)]
pub fn log_inv_logit<V: F64x8>(x: V) -> V {
    -log1p_exp(-x)
}

/// Returns `log(1 - inv_logit(x))`. The error is below 2 ulp.
#[inline(always)]
pub fn log1m_inv_logit<V: F64x8>(x: V) -> V {
    -log1p_exp(x)
}

/// Returns `log(p / (1 - p))`, or NaN outside `[0, 1]`. The error is below 3 ulp.
#[inline(always)]
pub fn logit<V: F64x8>(p: V) -> V {
    let one = V::splat(1.0);
    let q = one - p;
    // For p of at least 1/4, the ratio is 1 + (2 p - 1) / (1 - p), whose numerator is exact.
    let small = p.lt(V::splat(0.25));
    let ratio = V::select(small, p, p + p - one) / q;
    let u = V::select(small, ratio, one + ratio);
    let back = u - one;
    let c = V::select(small, V::zero(), (one - (u - back)) + (ratio - back));
    log_sum(u, c)
}

/// Returns the inverse hyperbolic sine. The error is below 3 ulp.
#[inline(always)]
pub fn asinh<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let a = x.abs();
    let big = a.gt(V::splat(268_435_456.0));
    let z = a * a;
    let v = a + z / (one + (z + one).sqrt());
    let r = log1p(V::select(big, a - one, v));
    (r + V::select(big, V::splat(LN_2), V::zero())).copysign(x)
}

/// Returns the inverse hyperbolic cosine, or NaN below 1. The error is below 3 ulp.
#[inline(always)]
pub fn acosh<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    // An argument below 1 becomes NaN here, so that its square cannot overflow.
    let t = V::select(x.lt(one), V::splat(f64::NAN), x - one);
    let big = x.gt(V::splat(268_435_456.0));
    let v = t + (t + t + t * t).sqrt();
    log1p(V::select(big, t, v)) + V::select(big, V::splat(LN_2), V::zero())
}

/// Returns the inverse hyperbolic tangent, or NaN outside `[-1, 1]`. The error is below 3 ulp.
#[inline(always)]
pub fn atanh<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let a = x.abs();
    let t = a + a;
    let v = t + t * a / (one - a);
    let end = V::select(a.eq(one), V::splat(f64::INFINITY), V::splat(f64::NAN));
    let v = V::select(a.lt(one), v, end);
    (V::splat(0.5) * log1p(v)).copysign(x)
}
