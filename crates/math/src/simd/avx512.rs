//! Lanes in one 512-bit register.
//!
//! Every function here runs inside a wrapper that enables AVX-512 F, DQ, VL, BW, AVX2 and FMA (see `simd_fn!`). This is
//! the safety condition of all intrinsics below.

use super::F64x8;
use super::lane_operators;
use std::arch::x86_64::*;

/// Eight lanes in one AVX-512 register.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Avx512Lanes(__m512d);

/// Calls an intrinsic. The module documentation explains why the call is sound.
macro_rules! v {
    ($f:ident $(::<$($c:tt),*>)? ($($a:expr),*)) => {
        // SAFETY: all functions here are inlined into a wrapper of `simd_fn!` that enables the AVX-512 sets and FMA,
        // and that runs only where a `Simd` says that the machine has them.
        unsafe { $f$(::<$($c),*>)?($($a),*) }
    };
}

#[inline(always)]
fn add(a: Avx512Lanes, b: Avx512Lanes) -> Avx512Lanes {
    Avx512Lanes(v!(_mm512_add_pd(a.0, b.0)))
}

#[inline(always)]
fn sub(a: Avx512Lanes, b: Avx512Lanes) -> Avx512Lanes {
    Avx512Lanes(v!(_mm512_sub_pd(a.0, b.0)))
}

#[inline(always)]
fn mul(a: Avx512Lanes, b: Avx512Lanes) -> Avx512Lanes {
    Avx512Lanes(v!(_mm512_mul_pd(a.0, b.0)))
}

#[inline(always)]
fn div(a: Avx512Lanes, b: Avx512Lanes) -> Avx512Lanes {
    Avx512Lanes(v!(_mm512_div_pd(a.0, b.0)))
}

#[inline(always)]
fn neg(a: Avx512Lanes) -> Avx512Lanes {
    Avx512Lanes(v!(_mm512_xor_pd(a.0, _mm512_set1_pd(-0.0))))
}

lane_operators!(Avx512Lanes, add, sub, mul, div, neg);

impl F64x8 for Avx512Lanes {
    type Mask = __mmask8;
    type Single = super::single::avx512::Avx512Singles;
    const REGISTERS: usize = 1;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self(v!(_mm512_set1_pd(x)))
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        Self(v!(_mm512_loadu_pd(p)))
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        v!(_mm512_storeu_pd(p, self.0))
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        Self(v!(_mm512_fmadd_pd(self.0, b.0, c.0)))
    }

    #[inline(always)]
    fn mul_exact(self, b: Self) -> (Self, Self) {
        let p = self * b;
        (p, Self(v!(_mm512_fmsub_pd(self.0, b.0, p.0))))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self(v!(_mm512_sqrt_pd(self.0)))
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        Self(v!(_mm512_min_pd(self.0, b.0)))
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        Self(v!(_mm512_max_pd(self.0, b.0)))
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self(v!(_mm512_andnot_pd(_mm512_set1_pd(-0.0), self.0)))
    }

    #[inline(always)]
    fn floor(self) -> Self {
        Self(v!(_mm512_roundscale_pd::<0x09>(self.0)))
    }

    #[inline(always)]
    fn round(self) -> Self {
        Self(v!(_mm512_roundscale_pd::<0x08>(self.0)))
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        Self(v!(_mm512_roundscale_pd::<0x0b>(self.0)))
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        let bit = v!(_mm512_set1_pd(-0.0));
        Self(v!(_mm512_or_pd(
            _mm512_andnot_pd(bit, self.0),
            _mm512_and_pd(bit, sign.0)
        )))
    }

    #[inline(always)]
    fn scale_pow2(self, n: Self) -> Self {
        Self(v!(_mm512_scalef_pd(self.0, n.0)))
    }

    #[inline(always)]
    fn pow2_of_sum(self) -> Self {
        let bits = v!(_mm512_castpd_si512(self.0));
        Self(v!(_mm512_castsi512_pd(_mm512_slli_epi64::<52>(bits))))
    }

    #[inline(always)]
    fn split_pow2(self) -> (Self, Self) {
        // Sign control 3 drops the sign of zero and returns NaN for all other negative numbers.
        let m = v!(_mm512_getmant_pd::<_MM_MANT_NORM_P75_1P5, 3>(self.0));
        let e = v!(_mm512_sub_pd(_mm512_getexp_pd(self.0), _mm512_getexp_pd(m)));
        (Self(e), Self(m))
    }

    #[inline(always)]
    fn high_bits(self) -> Self {
        let keep = v!(_mm512_set1_epi64(!0x07ff_ffff));
        Self(v!(_mm512_and_pd(self.0, _mm512_castsi512_pd(keep))))
    }

    #[inline(always)]
    fn lt(self, b: Self) -> __mmask8 {
        v!(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(self.0, b.0))
    }

    #[inline(always)]
    fn le(self, b: Self) -> __mmask8 {
        v!(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(self.0, b.0))
    }

    #[inline(always)]
    fn eq(self, b: Self) -> __mmask8 {
        v!(_mm512_cmp_pd_mask::<_CMP_EQ_OQ>(self.0, b.0))
    }

    #[inline(always)]
    fn is_nan(self) -> __mmask8 {
        v!(_mm512_cmp_pd_mask::<_CMP_UNORD_Q>(self.0, self.0))
    }

    #[inline(always)]
    fn is_sign_negative(self) -> __mmask8 {
        v!(_mm512_movepi64_mask(_mm512_castpd_si512(self.0)))
    }

    #[inline(always)]
    fn and(a: __mmask8, b: __mmask8) -> __mmask8 {
        a & b
    }

    #[inline(always)]
    fn or(a: __mmask8, b: __mmask8) -> __mmask8 {
        a | b
    }

    #[inline(always)]
    fn not(a: __mmask8) -> __mmask8 {
        !a
    }

    #[inline(always)]
    fn mask_bits(a: __mmask8) -> u8 {
        a
    }

    #[inline(always)]
    fn mask_from_bits(bits: u8) -> __mmask8 {
        bits
    }

    #[inline(always)]
    fn select(mask: __mmask8, yes: Self, no: Self) -> Self {
        Self(v!(_mm512_mask_blend_pd(mask, no.0, yes.0)))
    }

    #[inline(always)]
    fn sum(self) -> f64 {
        let low = v!(_mm512_castpd512_pd256(self.0));
        let high = v!(_mm512_extractf64x4_pd::<1>(self.0));
        super::avx2::sum4(v!(_mm256_add_pd(low, high)))
    }
}
