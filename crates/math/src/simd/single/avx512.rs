//! Sixteen lanes in one 512-bit register. The intrinsics have the same safety condition as those in
//! [`super::super::avx512`].

use super::F32x16;
use super::avx2::{largest8, sum8};
use crate::simd::lane_operators;
use std::arch::x86_64::*;

/// Sixteen lanes in one AVX-512 register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Avx512Singles(__m512);

/// Calls an intrinsic. The module documentation explains why the call is sound.
macro_rules! v {
    ($f:ident $(::<$($c:tt),*>)? ($($a:expr),*)) => {
        // SAFETY: all functions here are inlined into a wrapper of `simd_fn!` that enables the AVX-512 sets and FMA,
        // and that runs only where a `Simd` says that the machine has them.
        unsafe { $f$(::<$($c),*>)?($($a),*) }
    };
}

#[inline(always)]
fn add(a: Avx512Singles, b: Avx512Singles) -> Avx512Singles {
    Avx512Singles(v!(_mm512_add_ps(a.0, b.0)))
}

#[inline(always)]
fn sub(a: Avx512Singles, b: Avx512Singles) -> Avx512Singles {
    Avx512Singles(v!(_mm512_sub_ps(a.0, b.0)))
}

#[inline(always)]
fn mul(a: Avx512Singles, b: Avx512Singles) -> Avx512Singles {
    Avx512Singles(v!(_mm512_mul_ps(a.0, b.0)))
}

#[inline(always)]
fn div(a: Avx512Singles, b: Avx512Singles) -> Avx512Singles {
    Avx512Singles(v!(_mm512_div_ps(a.0, b.0)))
}

#[inline(always)]
fn neg(a: Avx512Singles) -> Avx512Singles {
    Avx512Singles(v!(_mm512_xor_ps(a.0, _mm512_set1_ps(-0.0))))
}

#[inline(always)]
fn halves(x: __m512) -> (__m256, __m256) {
    (
        v!(_mm512_castps512_ps256(x)),
        v!(_mm512_extractf32x8_ps::<1>(x)),
    )
}

lane_operators!(Avx512Singles, add, sub, mul, div, neg);

impl F32x16 for Avx512Singles {
    type Mask = __mmask16;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self(v!(_mm512_set1_ps(x)))
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Self(v!(_mm512_loadu_ps(p)))
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        v!(_mm512_storeu_ps(p, self.0))
    }

    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        Self(v!(_mm512_maskz_loadu_ps(
            ((1_u32 << n) - 1) as __mmask16,
            p
        )))
    }

    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        v!(_mm512_mask_storeu_ps(
            p,
            ((1_u32 << n) - 1) as __mmask16,
            self.0
        ))
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(v!(_mm512_fmadd_ps(self.0, b.0, c.0)))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(v!(_mm512_sqrt_ps(self.0)))
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        Self(v!(_mm512_min_ps(self.0, b.0)))
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Self(v!(_mm512_max_ps(self.0, b.0)))
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self(v!(_mm512_andnot_ps(_mm512_set1_ps(-0.0), self.0)))
    }

    #[inline(always)]
    fn round(self) -> Self {
        Self(v!(_mm512_roundscale_ps::<0x08>(self.0)))
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        let bit = v!(_mm512_set1_ps(-0.0));
        Self(v!(_mm512_or_ps(
            _mm512_andnot_ps(bit, self.0),
            _mm512_and_ps(bit, sign.0)
        )))
    }

    #[inline(always)]
    fn scale_pow2(self, n: Self) -> Self {
        Self(v!(_mm512_scalef_ps(self.0, n.0)))
    }

    #[inline(always)]
    fn split_pow2(self) -> (Self, Self) {
        // Sign control 3 drops the sign of zero and returns NaN for all other negative numbers.
        let m = v!(_mm512_getmant_ps::<_MM_MANT_NORM_P75_1P5, 3>(self.0));
        let e = v!(_mm512_sub_ps(_mm512_getexp_ps(self.0), _mm512_getexp_ps(m)));
        (Self(e), Self(m))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let (low, high) = halves(self.0);
        sum8(v!(_mm256_add_ps(low, high)))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        let (low, high) = halves(self.0);
        largest8(v!(_mm256_max_ps(low, high)))
    }

    #[inline(always)]
    fn lt(self, b: Self) -> __mmask16 {
        v!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0))
    }

    #[inline(always)]
    fn le(self, b: Self) -> __mmask16 {
        v!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, b.0))
    }

    #[inline(always)]
    fn eq(self, b: Self) -> __mmask16 {
        v!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, b.0))
    }

    #[inline(always)]
    fn select(mask: __mmask16, yes: Self, no: Self) -> Self {
        Self(v!(_mm512_mask_blend_ps(mask, no.0, yes.0)))
    }
}
