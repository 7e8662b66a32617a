//! Sixteen lanes in one 512-bit register or two of 256 bits.

use std::arch::x86_64::*;

use super::{F32x16, SQRT_HALF, operators};

/// One register; only inside functions that enable AVX-512 F, DQ, VL and BW.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(__m512);

/// Two registers; only inside functions that enable AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(__m256, __m256);

// SAFETY (every block of this file): the types are used only inside functions compiled with the features that the
// intrinsics need, which `simd32_fn!` calls only on machines that have them.

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

operators!(Avx512,
    Add add |a: Avx512, b: Avx512| Avx512(unsafe { _mm512_add_ps(a.0, b.0) }),
    Sub sub |a: Avx512, b: Avx512| Avx512(unsafe { _mm512_sub_ps(a.0, b.0) }),
    Mul mul |a: Avx512, b: Avx512| Avx512(unsafe { _mm512_mul_ps(a.0, b.0) }),
    Div div |a: Avx512, b: Avx512| Avx512(unsafe { _mm512_div_ps(a.0, b.0) }));

impl Avx512 {
    #[inline(always)]
    fn halves(self) -> (__m256, __m256) {
        unsafe {
            (
                _mm512_castps512_ps256(self.0),
                _mm512_extractf32x8_ps::<1>(self.0),
            )
        }
    }
}

/// Adds the lanes of eight by halving.
#[inline(always)]
fn sum8(x: __m256) -> f32 {
    unsafe {
        let x = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let x = _mm_add_ps(x, _mm_movehl_ps(x, x));
        let x = _mm_add_ss(x, _mm_movehdup_ps(x));
        _mm_cvtss_f32(x)
    }
}

/// The largest of eight lanes.
#[inline(always)]
fn largest8(x: __m256) -> f32 {
    unsafe {
        let x = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let x = _mm_max_ps(x, _mm_movehl_ps(x, x));
        let x = _mm_max_ss(x, _mm_movehdup_ps(x));
        _mm_cvtss_f32(x)
    }
}

impl F32x16 for Avx512 {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self(unsafe { _mm512_set1_ps(x) })
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        Self(unsafe { _mm512_loadu_ps(p) })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe { _mm512_storeu_ps(p, self.0) }
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(unsafe { _mm512_fmadd_ps(self.0, b.0, c.0) })
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Self(unsafe { _mm512_max_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        Self(unsafe { _mm512_min_ps(self.0, b.0) })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self(unsafe { _mm512_abs_ps(self.0) })
    }

    #[inline(always)]
    fn round(self) -> Self {
        Self(unsafe { _mm512_roundscale_ps::<NEAREST>(self.0) })
    }

    #[inline(always)]
    fn exp2_integral(n: Self) -> Self {
        unsafe {
            let n = _mm512_add_epi32(_mm512_cvtps_epi32(n.0), _mm512_set1_epi32(127));
            Self(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(n)))
        }
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        unsafe {
            let bits = _mm512_castps_si512(self.0);
            let offset = _mm512_set1_epi32(SQRT_HALF.to_bits() as i32);
            let e = _mm512_srai_epi32::<23>(_mm512_sub_epi32(bits, offset));
            let m = _mm512_sub_epi32(bits, _mm512_slli_epi32::<23>(e));
            (Self(_mm512_cvtepi32_ps(e)), Self(_mm512_castsi512_ps(m)))
        }
    }

    #[inline(always)]
    fn if_less(self, b: Self, yes: Self, no: Self) -> Self {
        unsafe {
            let mask = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0);
            Self(_mm512_mask_blend_ps(mask, no.0, yes.0))
        }
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        let (low, high) = self.halves();
        sum8(unsafe { _mm256_add_ps(low, high) })
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        let (low, high) = self.halves();
        largest8(unsafe { _mm256_max_ps(low, high) })
    }
}

operators!(Avx2,
    Add add |a: Avx2, b: Avx2| unsafe { Avx2(_mm256_add_ps(a.0, b.0), _mm256_add_ps(a.1, b.1)) },
    Sub sub |a: Avx2, b: Avx2| unsafe { Avx2(_mm256_sub_ps(a.0, b.0), _mm256_sub_ps(a.1, b.1)) },
    Mul mul |a: Avx2, b: Avx2| unsafe { Avx2(_mm256_mul_ps(a.0, b.0), _mm256_mul_ps(a.1, b.1)) },
    Div div |a: Avx2, b: Avx2| unsafe { Avx2(_mm256_div_ps(a.0, b.0), _mm256_div_ps(a.1, b.1)) });

impl F32x16 for Avx2 {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        let x = unsafe { _mm256_set1_ps(x) };
        Self(x, x)
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        unsafe { Self(_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        unsafe {
            _mm256_storeu_ps(p, self.0);
            _mm256_storeu_ps(p.add(8), self.1);
        }
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        unsafe {
            Self(
                _mm256_fmadd_ps(self.0, b.0, c.0),
                _mm256_fmadd_ps(self.1, b.1, c.1),
            )
        }
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        unsafe { Self(_mm256_max_ps(self.0, b.0), _mm256_max_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        unsafe { Self(_mm256_min_ps(self.0, b.0), _mm256_min_ps(self.1, b.1)) }
    }

    #[inline(always)]
    fn abs(self) -> Self {
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            Self(
                _mm256_andnot_ps(sign, self.0),
                _mm256_andnot_ps(sign, self.1),
            )
        }
    }

    #[inline(always)]
    fn round(self) -> Self {
        unsafe {
            Self(
                _mm256_round_ps::<NEAREST>(self.0),
                _mm256_round_ps::<NEAREST>(self.1),
            )
        }
    }

    #[inline(always)]
    fn exp2_integral(n: Self) -> Self {
        let half = |n: __m256| unsafe {
            let n = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(n))
        };
        Self(half(n.0), half(n.1))
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let half = |x: __m256| unsafe {
            let bits = _mm256_castps_si256(x);
            let offset = _mm256_set1_epi32(SQRT_HALF.to_bits() as i32);
            let e = _mm256_srai_epi32::<23>(_mm256_sub_epi32(bits, offset));
            let m = _mm256_sub_epi32(bits, _mm256_slli_epi32::<23>(e));
            (_mm256_cvtepi32_ps(e), _mm256_castsi256_ps(m))
        };
        let (a, b) = (half(self.0), half(self.1));
        (Self(a.0, b.0), Self(a.1, b.1))
    }

    #[inline(always)]
    fn if_less(self, b: Self, yes: Self, no: Self) -> Self {
        let half =
            |x, b, yes, no| unsafe { _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(x, b)) };
        Self(
            half(self.0, b.0, yes.0, no.0),
            half(self.1, b.1, yes.1, no.1),
        )
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        sum8(unsafe { _mm256_add_ps(self.0, self.1) })
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        largest8(unsafe { _mm256_max_ps(self.0, self.1) })
    }
}
