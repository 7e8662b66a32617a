//! Powers and roots.

use super::exp::{LN2_HIGH, LN2_LOW, exp_parts};
use super::poly;
use crate::simd::F64x8;

/// The coefficients of `(2 atanh(s) - 2 s - 2 s^3 / 3) / s^5` in powers of `s^2`, for `|s| <= 0.2`. The approximation
/// error is 2.3e-17.
#[rustfmt::skip]
const LOG_TAIL: [f64; 8] = [
    0.39999999999999997, 0.28571428571435636, 0.22222222218517385, 0.18181818920691084,
    0.15384543159505473, 0.13337155343891088, 0.11653325572378419, 0.1219181334216037,
];

/// 2/3 as a sum of two numbers.
const TWO_THIRDS: (f64, f64) = (0.6666666666666666, 3.700743415417188e-17);

/// The coefficients of `m^(-1/3)` in powers of `m - 1`, for `m` in `[0.75, 1.5]`. The approximation error is 1.8e-7.
#[rustfmt::skip]
const INV_CBRT: [f64; 8] = [
    1.0000001308797863, -0.3333347868381165, 0.22219072470241066, -0.17266567763546614,
    0.1450049611084941, -0.13049448309663053, 0.10884944944953075, -0.051516497860200426,
];

/// Returns the rounded sum `a + b` and its rounding error. Requires `|a| >= |b|` or `a = 0`.
#[inline(always)]
fn fast_two_sum<V: F64x8>(a: V, b: V) -> (V, V) {
    let s = a + b;
    (s, b - (s - a))
}

/// Returns `log x` for positive normal `x` as a sum of two numbers, which together have about 66 bits.
#[inline(always)]
fn log_double<V: F64x8>(x: V) -> (V, V) {
    let (e, m) = x.split_pow2();
    let one = V::splat(1.0);
    let f = m - one;
    let (d, d_low) = fast_two_sum(V::splat(2.0), f);
    let s = f / d;
    let (p, p_low) = s.mul_exact(d);
    let s_low = ((f - p) - p_low - s * d_low) / d;
    let (z, z_low) = s.mul_exact(s);
    let z_low = (s + s).fma(s_low, z_low);
    let (c, c_low) = z.mul_exact(s);
    let c_low = z.fma(s_low, z_low.fma(s, c_low));
    // This uses log m = 2 s + s^3 (2/3 + z tail).
    let (k, k_low) = fast_two_sum(V::splat(TWO_THIRDS.0), z * poly(z, &LOG_TAIL));
    let k_low = k_low + V::splat(TWO_THIRDS.1);
    let (g, g_low) = c.mul_exact(k);
    let g_low = c.fma(k_low, c_low.fma(k, g_low));
    let (a, a_low) = fast_two_sum(s + s, g);
    let a_low = a_low + (s_low + s_low) + g_low;
    let (b, b_low) = fast_two_sum(e * V::splat(LN2_HIGH), a);
    let low = e.fma(V::splat(LN2_LOW), b_low + a_low);
    fast_two_sum(b, low)
}

/// Returns `x^y`, with the special cases of the C function `pow`. The error is below 1.5 ulp.
///
/// A scalar routine handles lanes in which `x <= 0`, `x` is subnormal or not finite, `|y| > 2^64`, or `y` is not
/// finite.
#[inline(always)]
pub fn pow<V: F64x8>(x: V, y: V) -> V {
    let normal = V::and(x.ge(V::splat(f64::MIN_POSITIVE)), x.le(V::splat(f64::MAX)));
    let ordinary = V::and(normal, y.abs().le(V::splat(18_446_744_073_709_551_616.0)));
    let (high, low) = log_double(x);
    let (p, p_low) = y.mul_exact(high);
    let p_low = y.fma(low, p_low);
    let limit = V::splat(760.0);
    let inside = p.abs().lt(limit);
    let (q, n) = exp_parts(
        V::splat(-760.0).max(limit.min(p)),
        V::select(inside, p_low, V::zero()),
    );
    let r = q.scale_pow2(n);
    if V::all(ordinary) {
        r
    } else {
        r.patch2(V::not(ordinary), x, y, libm::pow)
    }
}

/// Returns the cube root. The error is below 1 ulp.
#[inline(always)]
pub fn cbrt<V: F64x8>(x: V) -> V {
    let a = x.abs();
    let finite = V::and(V::zero().lt(a), a.lt(V::splat(f64::INFINITY)));
    let a = V::select(finite, a, V::splat(1.0));
    let (e, m) = a.split_pow2();
    let one = V::splat(1.0);
    // The exponent is e = 3 q + r with r in 0, 1, 2.
    let q = (e * V::splat(1.0 / 3.0) + V::splat(0.1)).floor();
    let r = e - V::splat(3.0) * q;
    let (one_more, two_more) = (r.eq(one), r.eq(V::splat(2.0)));
    let factor = V::select(
        two_more,
        V::splat(4.0),
        V::select(one_more, V::splat(2.0), one),
    );
    let root = V::select(
        two_more,
        V::splat(0.6299605249474366),
        V::select(one_more, V::splat(0.7937005259840998), one),
    );
    let m_r = m * factor;
    // The approximation of the inverse cube root has an error of 2e-7. One Newton step improves it, and a last Newton
    // step improves the cube root itself, using its exact residual.
    let y = poly(m - one, &INV_CBRT) * root;
    let y = (y * V::splat(1.0 / 3.0)).fma(one - m_r * y * y * y, y);
    let c = m_r * y * y;
    let (s, s_low) = c.mul_exact(c);
    let (t, t_low) = s.mul_exact(c);
    let residual = (m_r - t) - s_low.fma(c, t_low);
    let c = (residual * (y * y)).fma(V::splat(1.0 / 3.0), c);
    let c = c.scale_pow2(q).copysign(x);
    V::select(finite, c, x)
}

/// Returns `sqrt(a^2 + b^2)` without overflow or underflow. The result is infinite if either argument is infinite. The
/// error is below 1.5 ulp.
#[inline(always)]
pub fn hypot<V: F64x8>(a: V, b: V) -> V {
    let (a, b) = (a.abs(), b.abs());
    let infinite = V::or(a.eq(V::splat(f64::INFINITY)), b.eq(V::splat(f64::INFINITY)));
    let top = a.max(b);
    // The powers of two scale the larger argument to between 2^-460 and 2^500.
    let (huge, tiny) = (top.gt(V::splat(3.3e150)), top.lt(V::splat(3.3e-139)));
    let (down, up) = (V::splat((-600f64).exp2()), V::splat(600f64.exp2()));
    let scale = V::select(huge, down, V::select(tiny, up, V::splat(1.0)));
    let back = V::select(huge, up, V::select(tiny, down, V::splat(1.0)));
    let (a, b) = (a * scale, b * scale);
    let r = a.fma(a, b * b).sqrt() * back;
    V::select(infinite, V::splat(f64::INFINITY), r)
}
