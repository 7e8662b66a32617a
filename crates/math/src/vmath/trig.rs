//! Trigonometric functions and their inverses.

use super::poly;
use crate::simd::F64x8;
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, FRAC_PI_4, PI, SQRT_2};

/// The coefficients of `(sin r - r) / r^3` in powers of `r^2`, for `|r| <= pi / 4`. The approximation error is 2.0e-17.
#[rustfmt::skip]
const SIN: [f64; 6] = [
    -0.16666666666666666, 0.008333333333330948, -0.00019841269836758574, 2.755731610255244e-06,
    -2.5051131845003624e-08, 1.5918129294866608e-10,
];

/// The coefficients of `(cos r - 1 + r^2 / 2) / r^4` in powers of `r^2`, for `|r| <= pi / 4`. The approximation error
/// is 1.3e-18.
#[rustfmt::skip]
const COS: [f64; 6] = [
    0.041666666666666664, -0.0013888888888887398, 2.480158729876569e-05, -2.7557317271729793e-07,
    2.08761462684032e-09, -1.1382632425521717e-11,
];

/// The coefficients of `(atan t - t) / t^3` in powers of `t^2`, for `|t| <= sqrt(2) - 1`. The approximation error is
/// 1.2e-18.
#[rustfmt::skip]
const ATAN: [f64; 12] = [
    -0.3333333333333333, 0.19999999999999804, -0.14285714285659828, 0.11111111105155447,
    -0.09090908753500877, 0.07692296375032143, -0.06666424885738255, 0.05878928997834775,
    -0.05230454270650244, 0.04551593220626549, -0.034570561981427744, 0.016285756855221028,
];

/// The coefficients of `(asin s - s) / s^3` in powers of `s^2`, for `|s| <= 1/2`. The approximation error is 1.5e-17.
#[rustfmt::skip]
const ASIN: [f64; 13] = [
    0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
    0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
    0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
    0.028757851367421566,
];

/// `pi / 2` as a sum of three parts. The first two parts have 33 bits, so that their products with an integer up to
/// 2^20 are exact.
const HALF_PI: [f64; 3] = [
    1.570_796_326_734_125_6,
    6.077_100_506_303_966e-11,
    2.022_266_248_795_950_6e-21,
];
const HALF_PI_LOW: f64 = 6.123233995736766e-17;
/// Arguments whose absolute value is at least this large are handled by the scalar routine, which reduces the argument
/// with several words.
const LARGE: f64 = 1e6;

/// Returns the sine and the cosine of `x - n pi/2` for the nearest integer `n`, and `n mod 4`, for `|x| <= LARGE`.
#[inline(always)]
fn sin_cos_reduced<V: F64x8>(x: V) -> (V, V, V) {
    let n = (x * V::splat(FRAC_2_PI)).round();
    let a = n.fma(V::splat(-HALF_PI[0]), x);
    let w = n * V::splat(HALF_PI[1]);
    // r + low = a - w - n HALF_PI[2], where the first difference is computed exactly. Either term may be the larger
    // one.
    let d = a - w;
    let back = d - a;
    let error = (a - (d - back)) - (w + back);
    let low = n.fma(V::splat(-HALF_PI[2]), error);
    let r = d + low;
    let low = (d - r) + low;
    let z = r * r;
    let one = V::splat(1.0);
    let half_z = V::splat(0.5) * z;
    let s = (r * z).fma(poly(z, &SIN), low.fma(-half_z, low)) + r;
    let w = one - half_z;
    let c = w + (((one - w) - half_z) + (z * z).fma(poly(z, &COS), -(r * low)));
    let quadrant = n - V::splat(4.0) * (n * V::splat(0.25)).floor();
    (s, c, quadrant)
}

/// Returns the sine and the cosine, computed together. The errors are below 1 ulp.
#[inline(always)]
pub fn sin_cos<V: F64x8>(x: V) -> (V, V) {
    let (s, c, q) = sin_cos_reduced(x);
    let (one, two) = (V::splat(1.0), V::splat(2.0));
    let swap = V::or(q.eq(one), q.eq(V::splat(3.0)));
    let (sine, cosine) = (V::select(swap, c, s), V::select(swap, s, c));
    let sine = V::select(q.ge(two), -sine, sine);
    let cosine = V::select(V::or(q.eq(one), q.eq(two)), -cosine, cosine);
    // The sine of -0 is -0, but the reduction loses the sign.
    let sine = V::select(x.eq(V::zero()), x, sine);
    let ordinary = x.abs().le(V::splat(LARGE));
    if V::all(ordinary) {
        (sine, cosine)
    } else {
        let large = V::not(ordinary);
        (
            sine.patch(large, x, libm::sin),
            cosine.patch(large, x, libm::cos),
        )
    }
}

/// Returns the sine. The error is below 1 ulp.
#[inline(always)]
pub fn sin<V: F64x8>(x: V) -> V {
    sin_cos(x).0
}

/// Returns the cosine. The error is below 1 ulp.
#[inline(always)]
pub fn cos<V: F64x8>(x: V) -> V {
    sin_cos(x).1
}

/// Returns the tangent. The error is below 2 ulp.
#[inline(always)]
pub fn tan<V: F64x8>(x: V) -> V {
    let (s, c, q) = sin_cos_reduced(x);
    let swap = V::or(q.eq(V::splat(1.0)), q.eq(V::splat(3.0)));
    let t = V::select(swap, -c, s) / V::select(swap, s, c);
    let t = V::select(x.eq(V::zero()), x, t);
    let ordinary = x.abs().le(V::splat(LARGE));
    if V::all(ordinary) {
        t
    } else {
        t.patch(V::not(ordinary), x, libm::tan)
    }
}

/// Returns `(high, low)` with `atan(y / x) = high + low` for `x, y >= 0`. At least one of the arguments is nonzero, and
/// neither is infinite.
#[inline(always)]
fn atan_ratio<V: F64x8>(y: V, x: V) -> (V, V) {
    let zero = V::zero();
    // The angle is computed relative to the nearest of 0, pi/4 and pi/2, which takes a single division.
    let steep = y.gt(x * V::splat(SQRT_2 + 1.0));
    let middle = y.gt(x * V::splat(SQRT_2 - 1.0));
    let numerator = V::select(steep, -x, V::select(middle, y - x, y));
    let denominator = V::select(steep, y, V::select(middle, y + x, x));
    let base = V::select(
        steep,
        V::splat(FRAC_PI_2),
        V::select(middle, V::splat(FRAC_PI_4), zero),
    );
    let base_low = V::select(
        steep,
        V::splat(HALF_PI_LOW),
        V::select(middle, V::splat(0.5 * HALF_PI_LOW), zero),
    );
    let t = numerator / denominator;
    let z = t * t;
    let tail = (t * z).fma(poly(z, &ATAN), base_low);
    let high = base + t;
    let low = t - (high - base);
    (high, low + tail)
}

/// Returns the arc tangent. The error is below 1.5 ulp.
#[inline(always)]
pub fn atan<V: F64x8>(x: V) -> V {
    // For arguments above 1e17, the result is pi/2 to full precision. The limit prevents an infinite ratio.
    let a = V::splat(1e18).min(x.abs());
    let (high, low) = atan_ratio(a, V::splat(1.0));
    (high + low).copysign(x)
}

/// Returns the angle of the point `(x, y)` in `[-pi, pi]`. The error is below 1.5 ulp.
///
/// A scalar routine handles lanes in which a coordinate is zero, not finite, or outside `[1e-150, 1e150]`.
#[inline(always)]
pub fn atan2<V: F64x8>(y: V, x: V) -> V {
    let (ay, ax) = (y.abs(), x.abs());
    let ordinary = V::and(
        ay.min(ax).ge(V::splat(1e-150)),
        ay.max(ax).le(V::splat(1e150)),
    );
    let ordinary = V::and(
        ordinary,
        V::and(ay.le(V::splat(1e150)), ay.ge(V::splat(1e-150))),
    );
    let (high, low) = atan_ratio(ay, ax);
    let direct = high + low;
    let pi = V::splat(PI);
    let rest = pi - high;
    let error = (pi - rest) - high;
    let turned = rest + (error + (V::splat(2.0 * HALF_PI_LOW) - low));
    let r = V::select(x.lt(V::zero()), turned, direct).copysign(y);
    if V::all(ordinary) {
        r
    } else {
        r.patch2(V::not(ordinary), y, x, libm::atan2)
    }
}

/// Returns whether `a > 1/2`, followed by `p` and `low`, for `a = |x|`. If `a` is at most 1/2, `asin a = p + low`.
/// Otherwise, `asin sqrt((1 - a) / 2) = p + low`.
#[inline(always)]
fn asin_reduced<V: F64x8>(a: V) -> (V::Mask, V, V) {
    let half = V::splat(0.5);
    let big = a.gt(half);
    let z = V::select(big, half * (V::splat(1.0) - a), a * a);
    let s = V::select(big, z.sqrt(), a);
    // This corrects the rounding error of the square root: z = s^2 + residual, so the root is s + residual / (2 s).
    let (square, square_low) = s.mul_exact(s);
    let residual = (z - square) - square_low;
    let fix = V::select(V::and(big, s.gt(V::zero())), residual / (s + s), V::zero());
    (big, s, (s * z).fma(poly(z, &ASIN), fix))
}

/// Returns the arc sine, or NaN outside `[-1, 1]`. The error is below 1 ulp.
#[inline(always)]
pub fn asin<V: F64x8>(x: V) -> V {
    let (big, s, low) = asin_reduced(x.abs());
    let two = V::splat(2.0);
    let quarter = V::splat(FRAC_PI_2);
    let high = quarter - two * s;
    let error = (quarter - high) - two * s;
    let far = high + (error + (V::splat(HALF_PI_LOW) - two * low));
    V::select(big, far, s + low).copysign(x)
}

/// Returns the arc cosine, or NaN outside `[-1, 1]`. The error is below 1.5 ulp.
#[inline(always)]
pub fn acos<V: F64x8>(x: V) -> V {
    let (big, s, low) = asin_reduced(x.abs());
    let two = V::splat(2.0);
    let negative = x.lt(V::zero());
    // Near 1, the angle is 2 (s + low). Near -1, it is pi minus that value. In the middle, it is pi/2 minus the arc
    // sine.
    let near = two * (s + low);
    let (base, base_low, high_part, low_part) = (
        V::select(big, V::splat(PI), V::splat(FRAC_PI_2)),
        V::select(big, V::splat(2.0 * HALF_PI_LOW), V::splat(HALF_PI_LOW)),
        V::select(big, two * s, s.copysign(x)),
        V::select(big, two * low, low * V::splat(1.0).copysign(x)),
    );
    let high = base - high_part;
    let error = (base - high) - high_part;
    let far = high + (error + (base_low - low_part));
    V::select(V::and(big, V::not(negative)), near, far)
}
