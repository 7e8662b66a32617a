//! Sixteen virtual `f32` lanes with dispatch at run time, and the functions that local steps need on them.
//!
//! Single precision serves one purpose here: the local steps over documents, whose results are averaged with step sizes
//! far above rounding. As with [`jensen_math::simd`], the AVX-512 and AVX2 implementations agree bit for bit; the plain
//! one agrees to within rounding.

use std::ops::{Add, Div, Mul, Sub};

mod plain;
#[cfg(target_arch = "x86_64")]
mod x86;

/// The implementing types, for [`simd32_fn!`] alone.
pub(crate) mod lanes {
    pub(crate) use super::plain::Plain;
    #[cfg(target_arch = "x86_64")]
    pub(crate) use super::x86::{Avx2, Avx512};
}

/// √½ in single precision.
const SQRT_HALF: f32 = std::f32::consts::FRAC_1_SQRT_2;

/// Number of lanes in every [`F32x16`].
pub(crate) const WIDTH: usize = 16;

/// The smallest multiple of the number of lanes that is not below `n`.
pub(crate) fn padded(n: usize) -> usize {
    n.next_multiple_of(WIDTH)
}

/// Sixteen `f32` lanes; every method acts lane by lane.
pub(crate) trait F32x16:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The same number in every lane.
    fn splat(x: f32) -> Self;
    /// Reads sixteen numbers.
    ///
    /// # Safety
    /// `p` must be valid for reading sixteen `f32`.
    unsafe fn load(p: *const f32) -> Self;
    /// Writes sixteen numbers.
    ///
    /// # Safety
    /// `p` must be valid for writing sixteen `f32`.
    unsafe fn store(self, p: *mut f32);
    /// `self * b + c`, rounded once where the processor can.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The larger number.
    fn max(self, b: Self) -> Self;
    /// The smaller number.
    fn min(self, b: Self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Nearest integer.
    fn round(self) -> Self;
    /// `2^n` for integral n in -126 ..= 127.
    fn exp2_integral(n: Self) -> Self;
    /// `(e, m)` with `self = m * 2^e` and `m` in [√½, √2), for positive normal numbers.
    fn split(self) -> (Self, Self);
    /// `if self < b { yes } else { no }`.
    fn if_less(self, b: Self, yes: Self, no: Self) -> Self;
    /// The sum of the lanes by the fixed tree that halves the width each time.
    fn sum(self) -> f32;
    /// The largest lane.
    fn largest(self) -> f32;
}

/// e^x; 0 below −87 (where single precision leaves its normal range), x at most 88.
#[inline(always)]
pub(crate) fn exp<V: F32x16>(x: V) -> V {
    let lowest = V::splat(-87.0);
    let y = x.max(lowest);
    let n = (y * V::splat(std::f32::consts::LOG2_E)).round();
    // ln 2 in two parts: the first has few digits, so that its product with n is exact.
    let r = n.fma(V::splat(-0.693_359_4), y);
    let r = n.fma(V::splat(2.121_944_4e-4), r);
    let p = V::splat(1.987_569_2e-4);
    let p = p.fma(r, V::splat(1.398_2e-3));
    let p = p.fma(r, V::splat(8.333_452e-3));
    let p = p.fma(r, V::splat(4.166_579_6e-2));
    let p = p.fma(r, V::splat(1.666_666_5e-1));
    let p = p.fma(r, V::splat(0.5));
    let p = p.fma(r * r, r + V::splat(1.0));
    x.if_less(lowest, V::splat(0.0), p * V::exp2_integral(n))
}

/// log x for positive normal x.
#[inline(always)]
pub(crate) fn log<V: F32x16>(x: V) -> V {
    let (e, m) = x.split();
    let t = m - V::splat(1.0);
    let p = V::splat(7.037_683_6e-2);
    let p = p.fma(t, V::splat(-1.151_461e-1));
    let p = p.fma(t, V::splat(1.167_699_9e-1));
    let p = p.fma(t, V::splat(-1.242_014_1e-1));
    let p = p.fma(t, V::splat(1.424_932_3e-1));
    let p = p.fma(t, V::splat(-1.666_805_8e-1));
    let p = p.fma(t, V::splat(2.000_071_5e-1));
    let p = p.fma(t, V::splat(-2.499_999_4e-1));
    let p = p.fma(t, V::splat(0.333_333_3));
    let square = t * t;
    let r = p * square * t;
    let r = e.fma(V::splat(-2.121_944_4e-4), r);
    let r = square.fma(V::splat(-0.5), r);
    e.fma(V::splat(0.693_359_4), r + t)
}

/// ψ(x), the derivative of log Γ, for x from 1e-30 to 1e30: to 7e-7 of max(1, |ψ(x)|).
///
/// Below 6 by ψ(x) = ψ(x + 6) − Σ_{j<6} 1/(x + j), whose sum is one fraction in u = x(x + 5); above by Stirling's series.
#[inline(always)]
pub(crate) fn digamma<V: F32x16>(x: V) -> V {
    let six = V::splat(6.0);
    let one = V::splat(1.0);
    let y = x.if_less(six, x + six, x);
    let small = x.min(six);
    let u = small * (small + V::splat(5.0));
    let top = V::splat(3.0).fma(u, V::splat(20.0)).fma(u, V::splat(24.0))
        * V::splat(2.0).fma(small, V::splat(5.0));
    let bottom = u * (u + V::splat(4.0)) * (u + six);
    let shift = x.if_less(six, top / bottom, V::splat(0.0));
    let inverse = one / y;
    let square = inverse * inverse;
    let series = V::splat(-1.0 / 252.0)
        .fma(square, V::splat(1.0 / 120.0))
        .fma(square, V::splat(-1.0 / 12.0));
    let tail = series.fma(square, inverse * V::splat(-0.5));
    (log(y) + tail) - shift
}

/// Γ(x + s) / Γ(x) for x > 0 and s in [0, 1].
///
/// Shifted up by six factors (x + j) / (x + s + j) below 6, then the difference of Stirling's series, in which
/// log(1 + s/y) comes from an odd series, so that no digits cancel for large x.
#[inline(always)]
pub(crate) fn gamma_ratio<V: F32x16>(x: V, s: V) -> V {
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
    // At x = s = 0 the factor would be 0/0; x is positive, so the bottom is.
    let factor = x.if_less(six, top / bottom, one);
    let y = x.if_less(six, x + six, x);
    let z = s / (y + y + s);
    let square = z * z;
    let odd = V::splat(2.0 / 7.0)
        .fma(square, V::splat(0.4))
        .fma(square, V::splat(2.0 / 3.0))
        .fma(square, V::splat(2.0));
    let log1p = z * odd;
    let sum = y + s;
    // 1/(12 (y+s)) − 1/(12 y) + 1/(360 y³) − 1/(360 (y+s)³)
    let (a, b) = (one / sum, one / y);
    let tail = (a - b) * V::splat(1.0 / 12.0) - (a * a * a - b * b * b) * V::splat(1.0 / 360.0);
    let exponent = (y - V::splat(0.5)).fma(log1p, s.fma(log(sum), tail - s));
    factor * exp(exponent)
}

/// Compiles a function over [`F32x16`] lanes once for every instruction set: `fn NAME<V>(arguments) -> Output { body }`
/// defines `NAME(simd, arguments) -> Output`. Everything the body calls must be `#[inline(always)]`.
macro_rules! simd32_fn {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<$lanes:ident>($($arg:ident : $ty:ty),* $(,)?) $(-> $out:ty)? $body:block
    )+) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        $vis fn $name(simd: jensen_math::simd::Simd, $($arg: $ty),*) $(-> $out)? {
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            fn generic<$lanes: $crate::simd32::F32x16>($($arg: $ty),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
            unsafe fn avx512($($arg: $ty),*) $(-> $out)? {
                generic::<$crate::simd32::lanes::Avx512>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2($($arg: $ty),*) $(-> $out)? {
                generic::<$crate::simd32::lanes::Avx2>($($arg),*)
            }

            match simd {
                // SAFETY: a `Simd` names a level that this machine has.
                #[cfg(target_arch = "x86_64")]
                jensen_math::simd::Simd::Avx512 { .. } => unsafe { avx512($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                jensen_math::simd::Simd::Avx2 { .. } => unsafe { avx2($($arg),*) },
                _ => generic::<$crate::simd32::lanes::Plain>($($arg),*),
            }
        }
    )+};
}
pub(crate) use simd32_fn;

/// Implements the operator traits of a lane type by four functions.
macro_rules! operators {
    ($lanes:ty, $($trait:ident $method:ident $f:expr),+) => {$(
        impl std::ops::$trait for $lanes {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                $f(self, b)
            }
        }
    )+};
}
use operators;

#[cfg(test)]
mod tests {
    use super::*;
    use jensen_math::simd::Simd;
    use jensen_math::special;

    simd32_fn! {
        fn apply<V>(which: u8, x: &[f32; WIDTH], s: &[f32; WIDTH], out: &mut [f32; WIDTH]) {
            // SAFETY: the arrays hold sixteen numbers.
            unsafe {
                let x = V::load(x.as_ptr());
                let s = V::load(s.as_ptr());
                let y = match which {
                    0 => exp(x),
                    1 => log(x),
                    2 => digamma(x),
                    _ => gamma_ratio(x, s),
                };
                y.store(out.as_mut_ptr());
            }
        }

        fn reduce<V>(x: &[f32; WIDTH]) -> (f32, f32) {
            // SAFETY: the array holds sixteen numbers.
            let x = unsafe { V::load(x.as_ptr()) };
            (x.sum(), x.largest())
        }
    }

    /// The largest error of a function over a range of arguments, relative to max(1, |f|), on every level; the vector
    /// levels must agree to the bit.
    fn check(which: u8, arguments: &[(f32, f32)], f: impl Fn(f64, f64) -> f64, tolerance: f64) {
        for chunk in arguments.chunks(WIDTH) {
            let mut x = [1.0; WIDTH];
            let mut s = [0.5; WIDTH];
            for (i, &(a, b)) in chunk.iter().enumerate() {
                (x[i], s[i]) = (a, b);
            }
            let mut previous: Option<[f32; WIDTH]> = None;
            for simd in Simd::available() {
                let mut out = [0.0; WIDTH];
                apply(simd, which, &x, &s, &mut out);
                for i in 0..chunk.len() {
                    let exact = f(f64::from(x[i]), f64::from(s[i]));
                    let error = (f64::from(out[i]) - exact).abs() / exact.abs().max(1.0);
                    assert!(
                        error < tolerance,
                        "{which} {} {}: {} {exact}",
                        x[i],
                        s[i],
                        out[i]
                    );
                }
                if simd != Simd::Scalar {
                    if let Some(other) = previous {
                        assert_eq!(other.map(f32::to_bits), out.map(f32::to_bits));
                    }
                    previous = Some(out);
                }
            }
        }
    }

    fn spread(from: f32, to: f32) -> Vec<(f32, f32)> {
        (0..4000)
            .map(|i| {
                let share = f64::from(i) / 3999.0;
                let x = f64::from(from).powf(1.0 - share) * f64::from(to).powf(share);
                (x as f32, (i % 101) as f32 / 100.0)
            })
            .collect()
    }

    #[test]
    fn functions_are_accurate_on_every_level() {
        let exponents: Vec<(f32, f32)> = (0..4000)
            .map(|i| (-86.9 + 0.0217 * i as f32, 0.0))
            .collect();
        check(0, &exponents, |x, _| x.exp(), 3e-7);
        let relative: Vec<(f32, f32)> = exponents.into_iter().filter(|x| x.0 < 0.0).collect();
        check(0, &relative, |x, _| x.exp(), 3e-7);
        check(0, &[(-88.0, 0.0), (-1e30, 0.0)], |_, _| 0.0, 1e-30);
        check(1, &spread(1e-37, 1e37), |x, _| x.ln(), 2e-7);
        check(2, &spread(1e-6, 1e12), |x, _| special::digamma(x), 7e-7);
        let ratio = |x: f64, s: f64| (special::lgamma(x + s) - special::lgamma(x)).exp();
        check(3, &spread(1e-4, 1e4), ratio, 2e-6);
    }

    #[test]
    fn reductions_are_right_on_every_level() {
        let mut x = [0.0; WIDTH];
        for (i, x) in x.iter_mut().enumerate() {
            *x = ((i * 7) % 16) as f32 - 3.0;
        }
        for simd in Simd::available() {
            assert_eq!(reduce(simd, &x), (72.0, 12.0));
        }
    }
}
