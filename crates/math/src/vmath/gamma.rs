//! The logarithm of the gamma function, its derivatives, and the beta function.

use super::log::{log, log1p};
use super::poly;
use crate::constants::HALF_LOG_TWO_PI;
use crate::simd::F64x8;
use crate::special;

/// The coefficients of `lgamma(y) / (y - 2)` in powers of `y - 2`, for `y` in `[1.5, 2.5]`. The approximation error is
/// 6.0e-19.
#[rustfmt::skip]
const LGAMMA: [f64; 19] = [
    0.42278433509846713, 0.32246703342411326, -0.0673523010531981, 0.02058080842778038,
    -0.0073855510286719986, 0.002890510331034267, -0.0011927539118428156, 0.0005096695154115458,
    -0.00022315475400520507, 9.945767355819498e-05, -4.49263133791557e-05, 2.0505590755833454e-05,
    -9.438715099211532e-06, 4.38470440459836e-06, -2.0439048107029907e-06, 9.200527894968101e-07,
    -4.3252393445604814e-07, 2.78740805211359e-07, -1.3219945666117874e-07,
];

/// The coefficients of `x (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2)` in powers of `1 / x^2`, for `x >= 8.5`.
/// The approximation error is 1.8e-17.
#[rustfmt::skip]
const STIRLING: [f64; 6] = [
    0.08333333333333331, -0.00277777777768216, 0.0007936507127029832, -0.0005952129166201281,
    0.0008381814236805014, -0.0016796510732570889,
];

/// The coefficients of `digamma(y) / (y - root)` in powers of `y - 3/2`, for `y` in `[1, 2]`. The approximation error
/// is 3.4e-18.
#[rustfmt::skip]
const DIGAMMA: [f64; 23] = [
    0.9510558760318328, -0.4236274212814606, 0.24054248424078697, -0.14840492305388092,
    0.09498872445289039, -0.06192213327548831, 0.040760833940846085, -0.026975796659787055,
    0.017907248317313294, -0.011908220105959716, 0.007927021796868154, -0.005279937255532708,
    0.003518106563802472, -0.0023454947397380833, 0.0015633696313653504, -0.0010364584817312839,
    0.0006909255761282986, -0.00048595039220036254, 0.00032395945401345196, -0.00014480643368061614,
    9.653646261410062e-05, -0.0001782188548855923, 0.00011881232908510335,
];

/// The positive root of the digamma function as a sum of two numbers.
const DIGAMMA_ROOT: (f64, f64) = (1.4616321449683622, 9.549995429965697e-17);

/// The coefficients of `x^2 (log x - 1 / (2 x) - digamma(x))` in powers of `1 / x^2`, for `x >= 8`. The approximation
/// error is 4.7e-16.
#[rustfmt::skip]
const DIGAMMA_FAR: [f64; 6] = [
    0.08333333333333287, -0.008333333331168558, 0.003968252342841618, -0.004166217650696711,
    0.007519088230738725, -0.01771116041565208,
];

/// The coefficients of `x^2 (x trigamma(x) - 1 - 1 / (2 x))` in powers of `1 / x^2`, for `x >= 8`. The approximation
/// error is 1.3e-16.
#[rustfmt::skip]
const TRIGAMMA_FAR: [f64; 7] = [
    0.16666666666666655, -0.03333333333249287, 0.023809522943893217, -0.03333299706371179,
    0.0756948131023417, -0.2469974095407786, 0.85868801071673,
];

/// The smallest argument for which Stirling's series is used.
const FAR: f64 = 8.5;
#[inline(always)]
pub(crate) fn stirling<V: F64x8>(x: V) -> V {
    let w = V::splat(1.0) / x;
    w * poly(w * w, &STIRLING)
}

/// Returns the logarithm of the absolute value of the gamma function. The result is infinite at the poles. For `x > 0`
/// the error is below 5 ulp, even near the zero at 1. A scalar routine handles negative arguments.
#[inline(always)]
pub fn lgamma<V: F64x8>(x: V) -> V {
    let (half, one, two) = (V::splat(0.5), V::splat(1.0), V::splat(2.0));
    let far = x.ge(V::splat(FAR));
    // With y in [1.5, 2.5), lgamma(x) is lgamma(y) plus the logarithm of the factors between y and x, or minus the
    // logarithm if x < y.
    let k = V::select(far, V::zero(), x.round() - two);
    // The distance to 2 is computed without losing digits of x.
    let mut d = (x - k) - two;
    let mut steps = one;
    let mut i = 1;
    let near = V::select(far, two, x);
    while i <= 6 {
        let step = near - V::splat(f64::from(i));
        steps = steps * V::select(V::splat(f64::from(i)).le(k), step, one);
        i += 1;
    }
    let up = k.lt(V::zero());
    steps = V::select(up, x, steps);
    let two_up = x.lt(half);
    steps = V::select(two_up, x * (x + one), steps);
    d = V::select(two_up, x, V::select(up, x - one, d));
    let l = log(V::select(far, x, steps));
    d = V::select(far, V::zero(), d);
    let base = d * poly(d, &LGAMMA);
    let result = base + V::select(up, -l, l);
    let any_far = V::any(far);
    let result = if any_far {
        let x = V::select(far, x, V::splat(FAR));
        let l = V::select(far, l, one);
        let series = stirling(x) + V::splat(HALF_LOG_TWO_PI - 0.5);
        V::select(far, (x - half).fma(l - one, series), result)
    } else {
        result
    };
    let negative = x.lt(V::zero());
    if V::any(negative) {
        result.patch(negative, x, special::lgamma)
    } else {
        result
    }
}

/// Returns the derivative of `lgamma`. The result is NaN at the poles. For `x > 0` the error is below 4 ulp, even near
/// the root at 1.46. A scalar routine handles negative arguments.
#[inline(always)]
pub fn digamma<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let far = x.ge(V::splat(8.0));
    // With y in [1, 2), digamma(x) = digamma(y) + 1/(x-1) + ... + 1/y. The sum of reciprocals is computed as one
    // fraction.
    let k = x.floor() - one;
    let near = V::select(far, one, x);
    let (mut numerator, mut denominator) = (V::zero(), one);
    let mut i = 1;
    while i <= 6 {
        let step = near - V::splat(f64::from(i));
        let take = V::splat(f64::from(i)).le(k);
        numerator = V::select(take, numerator.fma(step, denominator), numerator);
        denominator = V::select(take, denominator * step, denominator);
        i += 1;
    }
    let up = x.lt(one);
    let y = V::select(up, x + one, near - k);
    let y = V::select(far, V::splat(1.5), y);
    numerator = V::select(far, one, V::select(up, -one, numerator));
    denominator = V::select(V::or(far, up), x, denominator);
    let fraction = numerator / denominator;
    let base = ((y - V::splat(DIGAMMA_ROOT.0)) - V::splat(DIGAMMA_ROOT.1))
        * poly(y - V::splat(1.5), &DIGAMMA);
    let result = base + fraction;
    let result = if V::any(far) {
        let z = fraction * fraction;
        let series = V::splat(0.5).fma(fraction, z * poly(z, &DIGAMMA_FAR));
        V::select(far, log(V::select(far, x, one)) - series, result)
    } else {
        result
    };
    let special_lanes = x.le(V::zero());
    if V::any(special_lanes) {
        result.patch(special_lanes, x, special::digamma)
    } else {
        result
    }
}

/// Returns the second derivative of `lgamma`. The result is infinite at the poles. For `x > 0` the error is below 4
/// ulp. A scalar routine handles negative arguments.
#[inline(always)]
pub fn trigamma<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let eight = V::splat(8.0);
    // Small x are increased to [8, 9): trigamma(x) = 1/x^2 + 1/(x+1)^2 + ... + trigamma(x + k). The terms after the
    // first are computed as one fraction.
    let low = x.lt(eight);
    let (mut numerator, mut denominator) = (V::zero(), one);
    let mut w = V::select(low, x + one, x);
    let mut i = 0;
    while i < 7 {
        let take = w.lt(eight);
        let square = w * w;
        numerator = V::select(take, numerator.fma(square, denominator), numerator);
        denominator = V::select(take, denominator * square, denominator);
        w = V::select(take, w + one, w);
        i += 1;
    }
    let first = V::select(low, one / x, V::zero());
    let r = one / w;
    let z = r * r;
    let tail = r * (V::splat(0.5).fma(r, z.fma(poly(z, &TRIGAMMA_FAR), one)));
    let result = first.fma(first, numerator / denominator + tail);
    let negative = x.lt(V::zero());
    if V::any(negative) {
        result.patch(negative, x, special::trigamma)
    } else {
        result
    }
}

/// Returns `log Γ(x + n) − log Γ(x)` for `x > 0` and `n ≥ 0`. For large x, both terms are of the order of `x log x` and
/// would cancel, so the function uses the difference of the two Stirling series.
#[inline(always)]
pub fn lgamma_step<V: F64x8>(x: V, n: V) -> V {
    let s = x + n;
    let limit = V::splat(FAR);
    let far = x.ge(limit);
    let mut result = s;
    if !V::all(far) {
        result = lgamma(s) - lgamma(x);
    }
    if V::any(far) {
        let (xs, ss) = (V::select(far, x, limit), V::select(far, s, limit));
        let ratio = log1p(n / xs);
        let step = (xs - V::splat(0.5)) * ratio + (n * log(ss) - n);
        result = V::select(far, step + (stirling(ss) - stirling(xs)), result);
    }
    let infinite = x.eq(V::splat(f64::INFINITY));
    V::select(infinite, x, result)
}

/// Returns what remains of digamma after subtracting the logarithm and `-1 / (2 x)`, for `x >= 8`.
#[inline(always)]
fn digamma_rest<V: F64x8>(x: V) -> V {
    let w = V::splat(1.0) / x;
    let z = w * w;
    -(z * poly(z, &DIGAMMA_FAR))
}

/// Returns `ψ(x + n) − ψ(x)`, the derivative of [`lgamma_step`] with respect to x.
#[inline(always)]
pub fn digamma_step<V: F64x8>(x: V, n: V) -> V {
    let s = x + n;
    let limit = V::splat(FAR);
    let far = x.ge(limit);
    let mut result = s;
    if !V::all(far) {
        result = digamma(s) - digamma(x);
    }
    if V::any(far) {
        let (xs, ss) = (V::select(far, x, limit), V::select(far, s, limit));
        let step = n / xs;
        let rest = digamma_rest(ss) - digamma_rest(xs);
        let far_step = log1p(step) + V::splat(0.5).fma(step / ss, rest);
        result = V::select(far, far_step, result);
    }
    result
}

/// Returns what remains of trigamma after subtracting `1 / x + 1 / (2 x²)`, for `x >= 8`.
#[inline(always)]
fn trigamma_rest<V: F64x8>(x: V) -> V {
    let w = V::splat(1.0) / x;
    let z = w * w;
    w * z * poly(z, &TRIGAMMA_FAR)
}

/// Returns `ψ′(x + n) − ψ′(x)`, the derivative of [`digamma_step`] with respect to x.
#[inline(always)]
pub fn trigamma_step<V: F64x8>(x: V, n: V) -> V {
    let s = x + n;
    let limit = V::splat(FAR);
    let far = x.ge(limit);
    let mut result = s;
    if !V::all(far) {
        result = trigamma(s) - trigamma(x);
    }
    if V::any(far) {
        let (xs, ss) = (V::select(far, x, limit), V::select(far, s, limit));
        let one = V::splat(1.0);
        let step = (n / xs) / ss;
        let rest = trigamma_rest(ss) - trigamma_rest(xs);
        let far_step = rest - step.fma(V::splat(0.5) * (one / xs + one / ss), step);
        result = V::select(far, far_step, result);
    }
    result
}

/// Returns the logarithm of the beta function for `a, b >= 0`. For arguments up to 1e3, the absolute error is below
/// 1e-14 times `1 + |result|`. If both arguments are large, the function avoids cancellation.
#[inline(always)]
pub fn lbeta<V: F64x8>(a: V, b: V) -> V {
    let p = a.min(b);
    // The minimum and the maximum return the second argument if either argument is NaN, so a NaN in the first argument
    // must be preserved separately.
    let q = V::select(a.is_nan(), a, a.max(b));
    let sum = p + q;
    let limit = V::splat(FAR);
    let (q_far, p_far) = (q.ge(limit), p.ge(limit));
    let mut result = q;
    if !V::all(q_far) {
        result = lgamma(p) + (lgamma(q) - lgamma(sum));
    }
    if V::any(q_far) {
        let half = V::splat(0.5);
        let (qs, ps) = (V::select(q_far, q, limit), V::select(p_far, p, limit));
        let s = V::select(q_far, sum, limit + limit);
        let difference = stirling(qs) - stirling(s);
        let ratio = log1p(-(p / s));
        let one_far = (lgamma(p) + difference) + (p - p * log(s) + (qs - half) * ratio);
        let both_far = (V::splat(HALF_LOG_TWO_PI) - half * log(qs) + (stirling(ps) + difference))
            + ((ps - half) * log(p / s) + qs * ratio);
        let far = V::select(p_far, both_far, one_far);
        result = V::select(q_far, far, result);
    }
    let infinite = V::and(q.eq(V::splat(f64::INFINITY)), p.gt(V::zero()));
    V::select(infinite, V::splat(f64::NEG_INFINITY), result)
}
