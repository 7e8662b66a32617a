//! Sixteen lanes in two 256-bit registers. The intrinsics have the same safety condition as those in
//! [`super::super::avx2`].

use super::F32x16;
use crate::simd::lane_operators;
use std::arch::x86_64::*;

/// Sixteen lanes in two AVX2 registers: the first holds lanes 0 to 7, and the second holds lanes 8 to 15.
#[derive(Clone, Copy)]
pub struct Avx2Singles(__m256, __m256);

/// One truth value per lane: all bits set or none.
#[derive(Clone, Copy)]
pub struct Avx2Mask32(__m256, __m256);

/// Calls an intrinsic. The module documentation explains why the call is sound.
macro_rules! v {
    ($f:ident $(::<$($c:tt),*>)? ($($a:expr),*)) => {
        // SAFETY: all functions here are inlined into a wrapper of `simd_fn!` that enables AVX2 and FMA, and that runs
        // only where a `Simd` says that the machine has them.
        unsafe { $f$(::<$($c),*>)?($($a),*) }
    };
}

macro_rules! both {
    ($wrap:ident, $f:ident $(::<$($c:tt),*>)?, $($a:expr),+) => {
        $wrap(v!($f $(::<$($c),*>)? ($($a.0),+)), v!($f $(::<$($c),*>)? ($($a.1),+)))
    };
}

#[inline(always)]
fn first(n: usize) -> (__m256i, __m256i) {
    let n = v!(_mm256_set1_epi32(n as i32));
    let low = v!(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    let high = v!(_mm256_add_epi32(low, _mm256_set1_epi32(8)));
    (
        v!(_mm256_cmpgt_epi32(n, low)),
        v!(_mm256_cmpgt_epi32(n, high)),
    )
}

/// Returns `2^n` for integral `n` in `[-126, 127]`.
#[inline(always)]
fn pow2(n: __m256) -> __m256 {
    let biased = v!(_mm256_add_epi32(
        _mm256_cvtps_epi32(n),
        _mm256_set1_epi32(127)
    ));
    v!(_mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased)))
}

/// Returns the sum of eight lanes. The function repeatedly adds one half of the lanes to the other half, until one
/// number remains.
#[inline(always)]
pub(super) fn sum8(x: __m256) -> f32 {
    let x = v!(_mm_add_ps(
        _mm256_castps256_ps128(x),
        _mm256_extractf128_ps::<1>(x)
    ));
    let x = v!(_mm_add_ps(x, _mm_movehl_ps(x, x)));
    v!(_mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x))))
}

/// Returns the largest of eight lanes. The function repeatedly compares one half of the lanes with the other half,
/// until one number remains.
#[inline(always)]
pub(super) fn largest8(x: __m256) -> f32 {
    let x = v!(_mm_max_ps(
        _mm256_castps256_ps128(x),
        _mm256_extractf128_ps::<1>(x)
    ));
    let x = v!(_mm_max_ps(x, _mm_movehl_ps(x, x)));
    v!(_mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x))))
}

#[inline(always)]
fn scale_half(x: __m256, n: __m256) -> __m256 {
    // The product of two powers of two reaches every exponent. The first product is exact for the allowed arguments.
    let first = v!(_mm256_floor_ps(_mm256_mul_ps(n, _mm256_set1_ps(0.5))));
    let second = v!(_mm256_sub_ps(n, first));
    v!(_mm256_mul_ps(_mm256_mul_ps(x, pow2(first)), pow2(second)))
}

#[inline(always)]
fn split(x: __m256) -> (__m256, __m256) {
    let zero = v!(_mm256_setzero_ps());
    let infinity = v!(_mm256_set1_ps(f32::INFINITY));
    // A subnormal number is first multiplied by 2^24.
    let subnormal = v!(_mm256_cmp_ps::<_CMP_LT_OQ>(
        x,
        _mm256_set1_ps(f32::MIN_POSITIVE)
    ));
    let scaled = v!(_mm256_mul_ps(x, _mm256_set1_ps(16_777_216.0)));
    let normal = v!(_mm256_blendv_ps(x, scaled, subnormal));
    let bias = v!(_mm256_blendv_ps(
        _mm256_set1_ps(127.0),
        _mm256_set1_ps(151.0),
        subnormal
    ));
    let three_quarters = v!(_mm256_castps_si256(_mm256_set1_ps(0.75)));
    let one = v!(_mm256_castps_si256(_mm256_set1_ps(1.0)));
    // Relative to 0.75, the exponent field changes at 0.75, 1.5, 3 and so on.
    let moved = v!(_mm256_add_epi32(
        _mm256_castps_si256(normal),
        _mm256_sub_epi32(one, three_quarters)
    ));
    let mantissa = v!(_mm256_and_si256(moved, _mm256_set1_epi32(0x007f_ffff)));
    let m = v!(_mm256_castsi256_ps(_mm256_add_epi32(
        mantissa,
        three_quarters
    )));
    let e = v!(_mm256_sub_ps(
        _mm256_cvtepi32_ps(_mm256_srli_epi32::<23>(moved)),
        bias
    ));
    let is_zero = v!(_mm256_cmp_ps::<_CMP_EQ_OQ>(x, zero));
    let is_infinite = v!(_mm256_cmp_ps::<_CMP_EQ_OQ>(x, infinity));
    let is_wrong = v!(_mm256_cmp_ps::<_CMP_NGE_UQ>(x, zero));
    let end = v!(_mm256_or_ps(is_zero, is_infinite));
    let m = v!(_mm256_blendv_ps(m, _mm256_set1_ps(1.0), end));
    let m = v!(_mm256_blendv_ps(m, _mm256_set1_ps(f32::NAN), is_wrong));
    let e = v!(_mm256_blendv_ps(e, _mm256_sub_ps(zero, infinity), is_zero));
    (v!(_mm256_blendv_ps(e, infinity, is_infinite)), m)
}

lane_operators!(
    Avx2Singles,
    |a: Avx2Singles, b: Avx2Singles| both!(Avx2Singles, _mm256_add_ps, a, b),
    |a: Avx2Singles, b: Avx2Singles| both!(Avx2Singles, _mm256_sub_ps, a, b),
    |a: Avx2Singles, b: Avx2Singles| both!(Avx2Singles, _mm256_mul_ps, a, b),
    |a: Avx2Singles, b: Avx2Singles| both!(Avx2Singles, _mm256_div_ps, a, b),
    |a: Avx2Singles| {
        let sign = Avx2Singles::splat(-0.0);
        both!(Avx2Singles, _mm256_xor_ps, a, sign)
    }
);

impl F32x16 for Avx2Singles {
    type Mask = Avx2Mask32;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        let half = v!(_mm256_set1_ps(x));
        Self(half, half)
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Self(v!(_mm256_loadu_ps(p)), v!(_mm256_loadu_ps(p.add(8))))
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        v!(_mm256_storeu_ps(p, self.0));
        v!(_mm256_storeu_ps(p.add(8), self.1));
    }

    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        let (low, high) = first(n);
        // The second address need not be valid, because the instruction reads nothing where the mask is zero.
        let second = p.wrapping_add(8);
        Self(
            v!(_mm256_maskload_ps(p, low)),
            v!(_mm256_maskload_ps(second, high)),
        )
    }

    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        let (low, high) = first(n);
        let second = p.wrapping_add(8);
        v!(_mm256_maskstore_ps(p, low, self.0));
        v!(_mm256_maskstore_ps(second, high, self.1));
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        both!(Self, _mm256_fmadd_ps, self, b, c)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        both!(Self, _mm256_sqrt_ps, self)
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        both!(Self, _mm256_min_ps, self, b)
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        both!(Self, _mm256_max_ps, self, b)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        let sign = Self::splat(-0.0);
        both!(Self, _mm256_andnot_ps, sign, self)
    }

    #[inline(always)]
    fn round(self) -> Self {
        both!(Self, _mm256_round_ps::<8>, self)
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        let bit = Self::splat(-0.0);
        let magnitude = self.abs();
        let sign = both!(Self, _mm256_and_ps, bit, sign);
        both!(Self, _mm256_or_ps, magnitude, sign)
    }

    #[inline(always)]
    fn scale_pow2(self, n: Self) -> Self {
        Self(scale_half(self.0, n.0), scale_half(self.1, n.1))
    }

    #[inline(always)]
    fn split_pow2(self) -> (Self, Self) {
        let (low, high) = (split(self.0), split(self.1));
        (Self(low.0, high.0), Self(low.1, high.1))
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        sum8(v!(_mm256_add_ps(self.0, self.1)))
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        largest8(v!(_mm256_max_ps(self.0, self.1)))
    }

    #[inline(always)]
    fn lt(self, b: Self) -> Avx2Mask32 {
        both!(Avx2Mask32, _mm256_cmp_ps::<_CMP_LT_OQ>, self, b)
    }

    #[inline(always)]
    fn le(self, b: Self) -> Avx2Mask32 {
        both!(Avx2Mask32, _mm256_cmp_ps::<_CMP_LE_OQ>, self, b)
    }

    #[inline(always)]
    fn eq(self, b: Self) -> Avx2Mask32 {
        both!(Avx2Mask32, _mm256_cmp_ps::<_CMP_EQ_OQ>, self, b)
    }

    #[inline(always)]
    fn select(mask: Avx2Mask32, yes: Self, no: Self) -> Self {
        both!(Self, _mm256_blendv_ps, no, yes, mask)
    }
}
