//! Sixteen lanes in an array, for machines without vector instructions.

use super::{F32x16, LANES32};
use crate::simd::lane_operators;

/// Sixteen lanes in an array.
#[derive(Clone, Copy)]
pub struct ScalarSingles([f32; LANES32]);

/// Whether a fused multiply-add is a single instruction on every processor of the compilation target.
const FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

#[inline(always)]
fn map(a: ScalarSingles, f: impl Fn(f32) -> f32) -> ScalarSingles {
    ScalarSingles(std::array::from_fn(
        #[inline(always)]
        |i| f(a.0[i]),
    ))
}

#[inline(always)]
fn zip(a: ScalarSingles, b: ScalarSingles, f: impl Fn(f32, f32) -> f32) -> ScalarSingles {
    ScalarSingles(std::array::from_fn(
        #[inline(always)]
        |i| f(a.0[i], b.0[i]),
    ))
}

#[inline(always)]
fn test(a: ScalarSingles, b: ScalarSingles, f: impl Fn(f32, f32) -> bool) -> [bool; LANES32] {
    std::array::from_fn(
        #[inline(always)]
        |i| f(a.0[i], b.0[i]),
    )
}

/// Rounds to the nearest integer, with ties to even, in a form that the compiler can vectorise.
#[inline(always)]
fn round_even(x: f32) -> f32 {
    const TWO_23: f32 = 8_388_608.0;
    let shift = TWO_23.copysign(x);
    let r = ((x + shift) - shift).copysign(x);
    if x.abs() < TWO_23 { r } else { x }
}

#[inline(always)]
fn pow2(n: f32) -> f32 {
    f32::from_bits(((n as i32 + 127) as u32) << 23)
}

#[inline(always)]
fn scale(x: f32, n: f32) -> f32 {
    let first = (n * 0.5).floor();
    x * pow2(first) * pow2(n - first)
}

#[inline(always)]
fn split(x: f32) -> (f32, f32) {
    if x == 0.0 {
        return (f32::NEG_INFINITY, 1.0);
    }
    if x.is_nan() || x < 0.0 {
        return (0.0, f32::NAN);
    }
    if x == f32::INFINITY {
        return (f32::INFINITY, 1.0);
    }
    let subnormal = x < f32::MIN_POSITIVE;
    let (x, bias) = if subnormal {
        (x * 16_777_216.0, 151.0)
    } else {
        (x, 127.0)
    };
    let low = 0.75f32.to_bits();
    let moved = x.to_bits().wrapping_add(1f32.to_bits() - low);
    let m = f32::from_bits((moved & 0x007f_ffff).wrapping_add(low));
    ((moved >> 23) as f32 - bias, m)
}

lane_operators!(
    ScalarSingles,
    |a, b| zip(a, b, |x, y| x + y),
    |a, b| zip(a, b, |x, y| x - y),
    |a, b| zip(a, b, |x, y| x * y),
    |a, b| zip(a, b, |x, y| x / y),
    |a| map(a, |x| -x)
);

impl F32x16 for ScalarSingles {
    type Mask = [bool; LANES32];

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; LANES32])
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: `load` requires sixteen readable numbers at `p`, and an unaligned read needs no more.
        Self(unsafe { p.cast::<[f32; LANES32]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: `store` requires sixteen writable numbers at `p`, and an unaligned write needs no more.
        unsafe { p.cast::<[f32; LANES32]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        if FUSED {
            Self(std::array::from_fn(
                #[inline(always)]
                |i| self.0[i].mul_add(b.0[i], c.0[i]),
            ))
        } else {
            self * b + c
        }
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        map(self, f32::sqrt)
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        zip(self, b, |x, y| if x < y { x } else { y })
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        zip(self, b, |x, y| if x > y { x } else { y })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        map(self, f32::abs)
    }

    #[inline(always)]
    fn round(self) -> Self {
        map(self, round_even)
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        zip(self, sign, f32::copysign)
    }

    #[inline(always)]
    fn scale_pow2(self, n: Self) -> Self {
        zip(self, n, scale)
    }

    #[inline(always)]
    fn split_pow2(self) -> (Self, Self) {
        let (mut e, mut m) = (self, self);
        for i in 0..LANES32 {
            (e.0[i], m.0[i]) = split(self.0[i]);
        }
        (e, m)
    }

    #[inline(always)]
    fn lt(self, b: Self) -> [bool; LANES32] {
        test(self, b, |x, y| x < y)
    }

    #[inline(always)]
    fn le(self, b: Self) -> [bool; LANES32] {
        test(self, b, |x, y| x <= y)
    }

    #[inline(always)]
    fn eq(self, b: Self) -> [bool; LANES32] {
        test(self, b, |x, y| x == y)
    }

    #[inline(always)]
    fn select(mask: [bool; LANES32], yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(
            #[inline(always)]
            |i| if mask[i] { yes.0[i] } else { no.0[i] },
        ))
    }
}
