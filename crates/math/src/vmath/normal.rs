//! The error function and the standard normal distribution.

use super::exp::exp_parts;
use super::log::{log, log_sum};
use super::poly;
use crate::simd::F64x8;
use std::f64::consts::FRAC_1_SQRT_2;

/// The coefficients of `erf(x) / x - 1` in powers of `x^2`, for `|x| <= 1`. The approximation error is 7.4e-18.
#[rustfmt::skip]
const ERF: [f64; 12] = [
    0.12837916709551256, -0.37612638903183543, 0.11283791670945006, -0.02686617064323777,
    0.0052239776071164225, -0.0008548325975389692, 0.00012055294904839707, -1.492473690741966e-05,
    1.6447424703317362e-06, -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10,
];

/// The coefficients of `(1 + 2 x) e^(x^2) erfc(x)` in powers of `(x - 4) / (x + 4)`, for `x >= 0`. The approximation
/// error is 1.0e-17.
#[rustfmt::skip]
const ERFCX: [f64; 25] = [
    1.2329951186255526, -0.13962111684056228, 0.015379652102619974, 0.06809705425466839,
    -0.10103906603631811, 0.09373283499911264, -0.06633036581186058, 0.037167515526338006,
    -0.01619773406293477, 0.005031970069102256, -0.0007577732435942576, -0.0001992571524726518,
    0.00015062142608651945, -2.4397731143023292e-05, -1.1221135665965907e-05, 5.70657829924074e-06,
    2.9173425573089733e-07, -8.210647933297337e-07, 7.771943241086912e-08, 1.0631817593818149e-07,
    -2.0725802488181963e-08, -1.2338731403798444e-08, 3.2323973445082033e-09, 9.297625263709659e-10,
    -2.764120233734578e-10,
];

/// The coefficients of `Phi^-1(p) / (p - 1/2)` in powers of `w - 5/2`, where `w = -log(4 p (1 - p))` is in `[0, 5]`.
/// The approximation error is 5.1e-18.
#[rustfmt::skip]
const QUANTILE: [f64; 23] = [
    4.24662693402934, 0.6976040487981089, -0.011815238760329671, -0.003543193025836773,
    0.000617304967653769, -1.4131047054778989e-05, -9.663659541864076e-06, 1.354039393373046e-06,
    3.7948451668725343e-08, -3.07200248315042e-08, 2.566242252741726e-09, 3.382996496551509e-10,
    -8.797196562044928e-11, 2.5782981083495136e-12, 1.5150026301275012e-12, -2.1531879859401707e-13,
    -8.149012551370145e-15, 5.364760753562059e-15, -3.864173913801704e-16, -7.588287128024944e-17,
    1.3885862934733074e-17, 4.81089457674105e-19, -1.9489976470653483e-19,
];

/// The coefficients of the numerator and the denominator of the normal quantile in powers of `sqrt(-log p) - 1.6`, for
/// `sqrt(-log p) <= 5` (Wichura 1988, algorithm AS 241, PPND16).
const TAIL_NEAR: ([f64; 8], [f64; 8]) = (
    [
        1.4234371107496835,
        4.630337846156546,
        5.769497221460691,
        3.6478483247632045,
        1.2704582524523684,
        0.2417807251774506,
        0.022723844989269184,
        0.0007745450142783414,
    ],
    [
        1.0,
        2.053191626637759,
        1.6763848301838038,
        0.6897673349851,
        0.14810397642748008,
        0.015198666563616457,
        0.0005475938084995345,
        1.0507500716444169e-09,
    ],
);
/// The coefficients of the numerator and the denominator of the normal quantile in powers of `sqrt(-log p) - 5`, for
/// `sqrt(-log p) > 5`.
const TAIL_FAR: ([f64; 8], [f64; 8]) = (
    [
        6.657904643501103,
        5.463784911164114,
        1.7848265399172913,
        0.29656057182850487,
        0.026532189526576124,
        0.0012426609473880784,
        2.7115555687434876e-05,
        2.0103343992922881e-07,
    ],
    [
        1.0,
        0.599832206555888,
        0.1369298809227358,
        0.014875361290850615,
        0.0007868691311456133,
        1.8463183175100548e-05,
        1.421511758316446e-07,
        2.0442631033899397e-15,
    ],
);

/// Returns `e^(x^2) erfc(x)` for `0 <= x <= 1e300`.
#[inline(always)]
fn erfcx<V: F64x8>(x: V) -> V {
    let four = V::splat(4.0);
    let t = (x - four) / (x + four);
    poly(t, &ERFCX) / (V::splat(1.0) + (x + x))
}

/// Returns `e^(-factor a^2) scale erfcx(b)` for `a <= 40`, corrected for the rounding error of `a^2`. `factor` must be
/// a power of two.
#[inline(always)]
fn gaussian_tail<V: F64x8>(a: V, b: V, factor: f64, scale: f64) -> V {
    let (h, l) = a.mul_exact(a);
    let f = V::splat(-factor);
    let (p, n) = exp_parts(h * f, l * f);
    (p * (V::splat(scale) * erfcx(b))).scale_pow2(n)
}

/// Returns the error function. The error is below 1.5 ulp.
#[inline(always)]
pub fn erf<V: F64x8>(x: V) -> V {
    let one = V::splat(1.0);
    let a = V::splat(6.5).min(x.abs());
    let near = x * poly(a * a, &ERF) + x;
    let far = (one - gaussian_tail(a, a, 1.0, 1.0)).copysign(x);
    V::select(a.lt(one), near, far)
}

/// Returns the complementary error function. The error is below 4 ulp.
#[inline(always)]
pub fn erfc<V: F64x8>(x: V) -> V {
    let a = V::splat(28.0).min(x.abs());
    let tail = gaussian_tail(a, a, 1.0, 1.0);
    V::select(x.lt(V::zero()), V::splat(2.0) - tail, tail)
}

/// Returns the standard normal distribution function. The error is below 4 ulp.
#[inline(always)]
pub fn phi<V: F64x8>(x: V) -> V {
    let a = V::splat(39.5).min(x.abs());
    let tail = gaussian_tail(a, a * V::splat(FRAC_1_SQRT_2), 0.5, 0.5);
    V::select(x.gt(V::zero()), V::splat(1.0) - tail, tail)
}

/// Returns the logarithm of the standard normal distribution function, which is accurate in both tails. The error is
/// below 5 ulp.
#[inline(always)]
pub fn log_phi<V: F64x8>(x: V) -> V {
    let scaled = log_phi_scaled(x);
    V::select(x.le(V::zero()), scaled - V::splat(0.5) * x * x, scaled)
}

/// Returns `log_phi(x)`, the logarithm of the standard normal distribution function, for `x >= 0`. For `x < 0`, the
/// function returns `log_phi(x) + x^2 / 2`. The error is below 5 ulp.
#[inline(always)]
pub fn log_phi_scaled<V: F64x8>(x: V) -> V {
    let (zero, half, one) = (V::zero(), V::splat(0.5), V::splat(1.0));
    // For x below zero, the result is log(erfcx / 2). For x above zero, it is log1p of the negated upper tail.
    let lower = x.le(zero);
    let a = x.abs();
    let b = V::splat(1e300).min(a) * V::splat(FRAC_1_SQRT_2);
    let scaled = half * erfcx(b);
    let c = V::splat(39.5).min(a);
    let (h, l) = c.mul_exact(c);
    let (p, n) = exp_parts(-half * h, -half * l);
    let upper = (p * scaled).scale_pow2(n);
    let u = V::select(lower, scaled, one - upper);
    let correction = V::select(lower, zero, (one - u) - upper);
    log_sum(u, correction)
}

/// Returns the standard normal quantile, or NaN for `p` outside `[0, 1]`. The error is below 3 ulp for `0.002 < p <
/// 0.998`, and below 6 ulp elsewhere.
#[inline(always)]
pub fn inv_phi<V: F64x8>(p: V) -> V {
    let (half, one) = (V::splat(0.5), V::splat(1.0));
    let q = p - half;
    let complement = one - p;
    let w = -log(V::splat(4.0) * p * complement);
    let central = q * poly(w - V::splat(2.5), &QUANTILE);
    let inner = w.le(V::splat(5.0));
    if V::all(inner) {
        return central;
    }
    let tail = p.min(complement);
    let r = (-log(tail)).sqrt();
    let (near, far) = (r - V::splat(1.6), r - V::splat(5.0));
    let outer = V::select(
        r.le(V::splat(5.0)),
        poly(near, &TAIL_NEAR.0) / poly(near, &TAIL_NEAR.1),
        poly(far, &TAIL_FAR.0) / poly(far, &TAIL_FAR.1),
    );
    let outer = V::select(tail.eq(V::zero()), V::splat(f64::INFINITY), outer).copysign(q);
    V::select(inner, central, outer)
}
