//! Special functions on sixteen `f32` lanes.
//!
//! Errors were measured on the vector levels against results in double precision, and the documentation of each
//! function states the largest error. The unit (ulp) is a unit in the last place of the result. Infinities and NaN are
//! treated as in the C library.

use crate::simd::F32x16;

/// `ln 2` as a sum of two parts. The first part has 14 bits, so its product with an exponent is exact.
const LN2_HIGH: f32 = 0.693_115_23;
const LN2_LOW: f32 = 3.194_618_5e-5;

/// The coefficients of `(e^r - 1 - r) / r^2` for `|r| <= ln 2 / 2`. The approximation error is 1.4e-9.
const EXP: [f32; 6] = [
    0.5,
    0.166_666_67,
    0.041_666_467,
    0.008_333_31,
    0.001_393_364_7,
    0.000_198_909_88,
];

/// The coefficients of `(log(1 + r) - r + r^2 / 2) / r^3` for `1 + r` in `[0.75, 1.5)`. The approximation error is
/// 2.8e-8.
const LOG: [f32; 9] = [
    0.333_333_34,
    -0.250_000_57,
    0.200_001_4,
    -0.166_608_17,
    0.142_683_06,
    -0.126_393_11,
    0.116_806_82,
    -0.095_613_4,
    0.042_871_978,
];

#[inline(always)]
fn poly<V: F32x16, const N: usize>(x: V, c: &[f32; N]) -> V {
    let mut p = V::splat(c[N - 1]);
    let mut i = N - 1;
    while i > 0 {
        i -= 1;
        p = p.fma(x, V::splat(c[i]));
    }
    p
}

/// Limits the argument of an exponential to the range of the reduction. A NaN is preserved.
#[inline(always)]
fn clamp<V: F32x16>(x: V, low: f32, high: f32) -> V {
    V::splat(high).min(V::splat(low).max(x))
}

/// Returns `(t, n)` with `e^x = (1 + t) 2^n` and `|t| < 0.42`.
#[inline(always)]
fn reduced<V: F32x16>(x: V) -> (V, V) {
    let n = (x * V::splat(std::f32::consts::LOG2_E)).round();
    let r = n.fma(V::splat(-LN2_LOW), n.fma(V::splat(-LN2_HIGH), x));
    ((r * r).fma(poly(r, &EXP), r), n)
}

/// Returns `e^x`. The error is below 1 ulp.
#[inline(always)]
pub fn exp<V: F32x16>(x: V) -> V {
    let (t, n) = reduced(clamp(x, -105.0, 90.0));
    (t + V::splat(1.0)).scale_pow2(n)
}

/// Returns `e^x - 1`, accurate for small `x`. The error is below 2 ulp.
#[inline(always)]
pub fn expm1<V: F32x16>(x: V) -> V {
    let (t, n) = reduced(clamp(x, -20.0, 90.0));
    let one = V::splat(1.0);
    let w = one - one.scale_pow2(-n);
    (t + w).scale_pow2(n).copysign(x)
}

/// Returns the hyperbolic tangent. The error is below 2.5 ulp.
#[inline(always)]
pub fn tanh<V: F32x16>(x: V) -> V {
    let a = clamp(x.abs(), 0.0, 10.0);
    let (t, n) = reduced(-(a + a));
    let one = V::splat(1.0);
    let t = (t + (one - one.scale_pow2(-n))).scale_pow2(n);
    (t / (t + V::splat(2.0))).copysign(x)
}

/// Returns the logistic function `1 / (1 + e^-x)`. The error is below 2.5 ulp.
#[inline(always)]
pub fn inv_logit<V: F32x16>(x: V) -> V {
    let one = V::splat(1.0);
    let e = exp(-x.abs());
    V::select(V::zero().le(x), one, e) / (one + e)
}

/// Returns `log(1 + f) - f` for `1 + f` in `[0.75, 1.5)`.
#[inline(always)]
fn log1p_reduced<V: F32x16>(f: V) -> V {
    let square = f * f;
    (square * f).fma(poly(f, &LOG), V::splat(-0.5) * square)
}

/// Returns the natural logarithm. The error is below 1.5 ulp.
#[inline(always)]
pub fn log<V: F32x16>(x: V) -> V {
    let (e, m) = x.split_pow2();
    let f = m - V::splat(1.0);
    let low = e.fma(V::splat(LN2_LOW), log1p_reduced(f));
    e.fma(V::splat(LN2_HIGH), f + low)
}

/// Returns `log(1 + x)`, accurate for small `x`. The error is below 2 ulp.
#[inline(always)]
pub fn log1p<V: F32x16>(x: V) -> V {
    let one = V::splat(1.0);
    let u = one + x;
    // The computed rounding error of the sum is exact, whichever term is larger.
    let back = u - one;
    let c = (one - (u - back)) + (x - back);
    let (e, m) = u.split_pow2();
    let limit = V::splat(16_777_216.0);
    let ordinary = V::select(V::zero().lt(u), u, limit);
    let e_used = V::select(ordinary.lt(limit), e, V::zero());
    let c = V::select(ordinary.lt(limit), c.scale_pow2(-e_used), V::zero());
    let f = (m - one) + c;
    let low = e.fma(V::splat(LN2_LOW), log1p_reduced(f));
    e.fma(V::splat(LN2_HIGH), f + low).copysign(x)
}

/// Returns `log(1 + e^x)`. The error is below 2.5 ulp.
#[inline(always)]
pub fn log1p_exp<V: F32x16>(x: V) -> V {
    let tail = log1p(exp(-x.abs()));
    V::select(V::zero().lt(x), x, V::zero()) + tail
}

/// Returns ψ(x), the derivative of log Γ, for x from 1e-30 to 1e30. The error is below 7e-7 times max(1, |ψ(x)|).
///
/// For x below 6, the function uses ψ(x) = ψ(x + 6) − Σ_{j<6} 1/(x + j), and computes the sum as one fraction in u =
/// x(x + 5). For larger x, the function uses Stirling's series.
#[inline(always)]
pub fn digamma<V: F32x16>(x: V) -> V {
    let six = V::splat(6.0);
    let one = V::splat(1.0);
    let y = V::select(x.lt(six), x + six, x);
    let small = x.min(six);
    let u = small * (small + V::splat(5.0));
    let top = V::splat(3.0).fma(u, V::splat(20.0)).fma(u, V::splat(24.0))
        * V::splat(2.0).fma(small, V::splat(5.0));
    let bottom = u * (u + V::splat(4.0)) * (u + six);
    let shift = V::select(x.lt(six), top / bottom, V::splat(0.0));
    let inverse = one / y;
    let square = inverse * inverse;
    let series = V::splat(-1.0 / 252.0)
        .fma(square, V::splat(1.0 / 120.0))
        .fma(square, V::splat(-1.0 / 12.0));
    let tail = series.fma(square, inverse * V::splat(-0.5));
    (log(y) + tail) - shift
}

/// Returns Γ(x + s) / Γ(x) for x > 0 and s in [0, 1].
///
/// For x below 6, the function multiplies six factors (x + j) / (x + s + j). For larger x, it uses the difference of
/// two Stirling series. An odd series computes log(1 + s/y), so that no digits cancel for large x.
#[inline(always)]
pub fn gamma_ratio<V: F32x16>(x: V, s: V) -> V {
    let six = V::splat(6.0);
    let one = V::splat(1.0);
    let small = x.min(six);
    let mut top = one;
    let mut bottom = one;
    for j in 0..6 {
        let j = V::splat(j as f32);
        top = top * (small + j);
        bottom = bottom * (small + s + j);
    }
    // At x = s = 0 the factor would be 0/0. The denominator is otherwise positive, because x is positive.
    let factor = V::select(x.lt(six), top / bottom, one);
    let y = V::select(x.lt(six), x + six, x);
    let z = s / (y + y + s);
    let square = z * z;
    let odd = V::splat(2.0 / 7.0)
        .fma(square, V::splat(0.4))
        .fma(square, V::splat(2.0 / 3.0))
        .fma(square, V::splat(2.0));
    let log1p = z * odd;
    let sum = y + s;
    // The sum is 1/(12 (y+s)) − 1/(12 y) + 1/(360 y³) − 1/(360 (y+s)³).
    let (a, b) = (one / sum, one / y);
    let tail = (a - b) * V::splat(1.0 / 12.0) - (a * a * a - b * b * b) * V::splat(1.0 / 360.0);
    let exponent = (y - V::splat(0.5)).fma(log1p, s.fma(log(sum), tail - s));
    factor * exp(exponent)
}

#[cfg(test)]
mod tests {
    use crate::simd::{LANES32, Simd};

    macro_rules! functions {
        ($($name:ident: $reference:expr, $limit:expr, $low:expr, $high:expr;)*) => {$(
            mod $name {
                crate::simd_fn! {
                    pub fn apply, apply_fn = <V>(x: &[f32; 16]) -> [f32; 16] {
                        use crate::simd::F32x16;
                        super::super::$name(V::Single::from_array(*x)).to_array()
                    }
                }

                #[test]
                fn agrees_with_double_precision() {
                    super::check(stringify!($name), apply, $reference, $limit, $low, $high);
                }
            }
        )*};
    }

    functions! {
        exp: f64::exp, 1.0, -87.0, 88.0;
        expm1: f64::exp_m1, 2.0, -30.0, 88.0;
        tanh: f64::tanh, 2.5, -12.0, 12.0;
        inv_logit: |x: f64| 1.0 / (1.0 + (-x).exp()), 2.5, -80.0, 80.0;
        log: f64::ln, 1.5, 1e-38, 50.0;
        log1p: f64::ln_1p, 2.0, -0.99, 50.0;
        log1p_exp: |x: f64| if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }, 2.5, -80.0, 80.0;
    }

    crate::simd32_fn! {
        fn psi<V>(x: &[f32; 16]) -> [f32; 16] {
            super::digamma(V::from_array(*x)).to_array()
        }

        fn ratio<V>(x: &[f32; 16], s: &[f32; 16]) -> [f32; 16] {
            super::gamma_ratio(V::from_array(*x), V::from_array(*s)).to_array()
        }
    }

    /// Returns arguments that are evenly spaced in the logarithm over a range.
    fn spread(from: f64, to: f64) -> impl Iterator<Item = [f32; 16]> {
        (0..250).map(move |start| {
            std::array::from_fn(|i| {
                let share = f64::from(16 * start + i as u32) / 3999.0;
                (from.powf(1.0 - share) * to.powf(share)) as f32
            })
        })
    }

    fn hold(found: &[(Simd, [f32; 16])], exact: impl Fn(usize) -> f64, limit: f64) {
        for (simd, values) in found {
            for (i, value) in values.iter().enumerate() {
                let exact = exact(i);
                let error = (f64::from(*value) - exact).abs() / exact.abs().max(1.0);
                assert!(error < limit, "{simd:?}: {value} for {exact}");
            }
        }
        let mut vector = found.iter().filter(|(simd, _)| *simd != Simd::Scalar);
        if let Some((_, first)) = vector.next() {
            assert!(vector.all(|(_, other)| other.map(f32::to_bits) == first.map(f32::to_bits)));
        }
    }

    #[test]
    fn digamma_agrees_with_double_precision() {
        for x in spread(1e-6, 1e12) {
            let found: Vec<_> = Simd::available()
                .into_iter()
                .map(|s| (s, psi(s, &x)))
                .collect();
            hold(&found, |i| crate::special::digamma(f64::from(x[i])), 7e-7);
        }
    }

    #[test]
    fn ratios_of_gamma_functions_agree_with_double_precision() {
        let s: [f32; 16] = std::array::from_fn(|i| i as f32 / 15.0);
        let lgamma = crate::special::lgamma;
        for x in spread(1e-4, 1e4) {
            let found: Vec<_> = Simd::available()
                .into_iter()
                .map(|l| (l, ratio(l, &x, &s)))
                .collect();
            let exact = |i: usize| {
                let (x, s) = (f64::from(x[i]), f64::from(s[i]));
                (lgamma(x + s) - lgamma(x)).exp()
            };
            hold(&found, exact, 2e-6);
        }
    }

    fn check(
        name: &str,
        apply: fn(Simd, &[f32; 16]) -> [f32; 16],
        reference: fn(f64) -> f64,
        limit: f64,
        low: f64,
        high: f64,
    ) {
        const STEPS: usize = 200_000;
        for simd in Simd::available() {
            let allowed = if simd == Simd::Scalar {
                limit + 1.5
            } else {
                limit
            };
            let mut worst: f64 = 0.0;
            for start in (0..STEPS).step_by(LANES32) {
                let x: [f32; 16] = std::array::from_fn(|i| {
                    // Half of the points lie close to zero.
                    let t = (start + i) as f64 / STEPS as f64;
                    let x = if i % 2 == 0 {
                        low + (high - low) * t
                    } else {
                        (low + (high - low) * t) * 1e-3
                    };
                    x as f32
                });
                for (x, found) in x.iter().zip(apply(simd, &x)) {
                    let exact = reference(f64::from(*x));
                    let rounded = (exact as f32).abs().max(f32::MIN_POSITIVE);
                    let ulp = f64::from(f32::from_bits(rounded.to_bits() + 1) - rounded);
                    worst = worst.max((f64::from(found) - exact).abs() / ulp);
                }
            }
            assert!(worst <= allowed, "{name} at level {simd}: {worst:.2} ulp");
        }
        for simd in Simd::available() {
            let ends = apply(simd, &[f32::NAN; 16]);
            assert!(
                ends.iter().all(|x| x.is_nan()),
                "{name} of NaN at level {simd}"
            );
        }
    }

    #[test]
    fn ends() {
        for simd in Simd::available() {
            let at = |f: fn(Simd, &[f32; 16]) -> [f32; 16], x: f32| f(simd, &[x; 16])[0];
            assert_eq!(at(exp::apply, f32::NEG_INFINITY), 0.0);
            assert_eq!(at(exp::apply, 100.0), f32::INFINITY);
            assert_eq!(at(tanh::apply, f32::INFINITY), 1.0);
            assert_eq!(at(tanh::apply, -100.0), -1.0);
            assert_eq!(at(log::apply, 0.0), f32::NEG_INFINITY);
            assert_eq!(at(log::apply, f32::INFINITY), f32::INFINITY);
            assert!(at(log::apply, -1.0).is_nan());
            assert_eq!(at(log1p_exp::apply, f32::NEG_INFINITY), 0.0);
            assert_eq!(at(log1p_exp::apply, f32::INFINITY), f32::INFINITY);
            assert_eq!(at(inv_logit::apply, f32::INFINITY), 1.0);
        }
    }
}
