//! Lanes in two 256-bit registers.
//!
//! Every function here runs inside a wrapper that enables AVX2 and FMA (see `simd_fn!`). This is the safety condition
//! of all intrinsics below.

use super::F64x8;
use super::lane_operators;
use std::arch::x86_64::*;

/// Eight lanes in two AVX2 registers: the first holds lanes 0 to 3, and the second holds lanes 4 to 7.
#[derive(Clone, Copy)]
pub struct Avx2Lanes(__m256d, __m256d);

/// One truth value per lane: all bits set or none.
#[derive(Clone, Copy)]
pub struct Avx2Mask(__m256d, __m256d);

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

/// Returns the sum `(0+2) + (1+3)`.
#[inline(always)]
pub(super) fn sum4(x: __m256d) -> f64 {
    let low = v!(_mm256_castpd256_pd128(x));
    let high = v!(_mm256_extractf128_pd::<1>(x));
    let pair = v!(_mm_add_pd(low, high));
    v!(_mm_cvtsd_f64(_mm_add_sd(pair, _mm_unpackhi_pd(pair, pair))))
}

/// Returns `2^n` for the number `1.5 * 2^52 + 1023 + n`. The low bits of its significand contain the biased exponent,
/// and the shift drops all other bits.
#[inline(always)]
fn high_power(sum: __m256d) -> __m256d {
    v!(_mm256_castsi256_pd(_mm256_slli_epi64::<52>(
        _mm256_castpd_si256(sum)
    )))
}

/// Returns `2^n` for integral `n` in `[-1022, 1023]`.
#[inline(always)]
fn pow2(n: __m256d) -> __m256d {
    high_power(v!(_mm256_add_pd(
        n,
        _mm256_set1_pd(6_755_399_441_055_744.0 + 1023.0)
    )))
}

#[inline(always)]
fn scale_half(x: __m256d, n: __m256d) -> __m256d {
    // The product of two powers of two reaches every exponent. The first product is exact for the allowed arguments.
    let first = v!(_mm256_floor_pd(_mm256_mul_pd(n, _mm256_set1_pd(0.5))));
    let second = v!(_mm256_sub_pd(n, first));
    v!(_mm256_mul_pd(_mm256_mul_pd(x, pow2(first)), pow2(second)))
}

/// Returns the exponent relative to `bias`, and the significand.
#[inline(always)]
fn split_normal(x: __m256d, bias: __m256d) -> (__m256d, __m256d) {
    let three_quarters = v!(_mm256_castpd_si256(_mm256_set1_pd(0.75)));
    let one = v!(_mm256_castpd_si256(_mm256_set1_pd(1.0)));
    // Relative to 0.75, the exponent field changes at 0.75, 1.5, 3 and so on.
    let moved = v!(_mm256_add_epi64(
        _mm256_castpd_si256(x),
        _mm256_sub_epi64(one, three_quarters)
    ));
    let mantissa = v!(_mm256_and_si256(
        moved,
        _mm256_set1_epi64x(0x000f_ffff_ffff_ffff)
    ));
    let m = v!(_mm256_castsi256_pd(_mm256_add_epi64(
        mantissa,
        three_quarters
    )));
    // The exponent field is placed in the low bits of 2^52, which converts it to a floating-point number.
    let two52 = v!(_mm256_set1_pd(4_503_599_627_370_496.0));
    let field = v!(_mm256_or_si256(
        _mm256_srli_epi64::<52>(moved),
        _mm256_castpd_si256(two52)
    ));
    let e = v!(_mm256_sub_pd(
        _mm256_sub_pd(_mm256_castsi256_pd(field), two52),
        bias
    ));
    (e, m)
}

#[inline(always)]
fn split_any(x: __m256d) -> (__m256d, __m256d) {
    let zero = v!(_mm256_setzero_pd());
    let infinity = v!(_mm256_set1_pd(f64::INFINITY));
    // A subnormal number is first multiplied by 2^54.
    let subnormal = v!(_mm256_cmp_pd::<_CMP_LT_OQ>(
        x,
        _mm256_set1_pd(f64::MIN_POSITIVE)
    ));
    let scaled = v!(_mm256_mul_pd(x, _mm256_set1_pd(18_014_398_509_481_984.0)));
    let bias = v!(_mm256_blendv_pd(
        _mm256_set1_pd(1023.0),
        _mm256_set1_pd(1077.0),
        subnormal
    ));
    let (e, m) = split_normal(v!(_mm256_blendv_pd(x, scaled, subnormal)), bias);
    let is_zero = v!(_mm256_cmp_pd::<_CMP_EQ_OQ>(x, zero));
    let is_infinite = v!(_mm256_cmp_pd::<_CMP_EQ_OQ>(x, infinity));
    let is_wrong = v!(_mm256_cmp_pd::<_CMP_NGE_UQ>(x, zero));
    let end = v!(_mm256_or_pd(is_zero, is_infinite));
    let m = v!(_mm256_blendv_pd(m, _mm256_set1_pd(1.0), end));
    let m = v!(_mm256_blendv_pd(m, _mm256_set1_pd(f64::NAN), is_wrong));
    let e = v!(_mm256_blendv_pd(e, _mm256_sub_pd(zero, infinity), is_zero));
    (v!(_mm256_blendv_pd(e, infinity, is_infinite)), m)
}

#[inline(always)]
fn add(a: Avx2Lanes, b: Avx2Lanes) -> Avx2Lanes {
    both!(Avx2Lanes, _mm256_add_pd, a, b)
}

#[inline(always)]
fn sub(a: Avx2Lanes, b: Avx2Lanes) -> Avx2Lanes {
    both!(Avx2Lanes, _mm256_sub_pd, a, b)
}

#[inline(always)]
fn mul(a: Avx2Lanes, b: Avx2Lanes) -> Avx2Lanes {
    both!(Avx2Lanes, _mm256_mul_pd, a, b)
}

#[inline(always)]
fn div(a: Avx2Lanes, b: Avx2Lanes) -> Avx2Lanes {
    both!(Avx2Lanes, _mm256_div_pd, a, b)
}

#[inline(always)]
fn neg(a: Avx2Lanes) -> Avx2Lanes {
    both!(Avx2Lanes, _mm256_xor_pd, a, Avx2Lanes::splat(-0.0))
}

lane_operators!(Avx2Lanes, add, sub, mul, div, neg);

impl F64x8 for Avx2Lanes {
    type Mask = Avx2Mask;
    type Single = super::single::avx2::Avx2Singles;
    const REGISTERS: usize = 2;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        let half = v!(_mm256_set1_pd(x));
        Self(half, half)
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: `load` requires eight readable numbers at `p`. The instruction needs no alignment, and the wrapper
        // that the module documentation describes enables it.
        unsafe { Self(_mm256_loadu_pd(p), _mm256_loadu_pd(p.add(4))) }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: `store` requires eight writable numbers at `p`. The instruction needs no alignment, and the wrapper
        // that the module documentation describes enables it.
        unsafe {
            _mm256_storeu_pd(p, self.0);
            _mm256_storeu_pd(p.add(4), self.1);
        }
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        both!(Self, _mm256_fmadd_pd, self, b, c)
    }

    #[inline(always)]
    fn mul_exact(self, b: Self) -> (Self, Self) {
        let p = self * b;
        (p, both!(Self, _mm256_fmsub_pd, self, b, p))
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        both!(Self, _mm256_sqrt_pd, self)
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        both!(Self, _mm256_min_pd, self, b)
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        both!(Self, _mm256_max_pd, self, b)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        both!(Self, _mm256_andnot_pd, Self::splat(-0.0), self)
    }

    #[inline(always)]
    fn floor(self) -> Self {
        both!(Self, _mm256_round_pd::<0x09>, self)
    }

    #[inline(always)]
    fn round(self) -> Self {
        both!(Self, _mm256_round_pd::<0x08>, self)
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        both!(Self, _mm256_round_pd::<0x0b>, self)
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        let bit = Self::splat(-0.0);
        let magnitude = self.abs();
        let sign = both!(Self, _mm256_and_pd, bit, sign);
        both!(Self, _mm256_or_pd, magnitude, sign)
    }

    #[inline(always)]
    fn scale_pow2(self, n: Self) -> Self {
        Self(scale_half(self.0, n.0), scale_half(self.1, n.1))
    }

    #[inline(always)]
    fn pow2_of_sum(self) -> Self {
        Self(high_power(self.0), high_power(self.1))
    }

    #[inline(always)]
    fn split_pow2(self) -> (Self, Self) {
        let normal = Self::and(
            Self::splat(f64::MIN_POSITIVE).le(self),
            self.le(Self::splat(f64::MAX)),
        );
        let ((e0, m0), (e1, m1)) = if Self::all(normal) {
            let bias = v!(_mm256_set1_pd(1023.0));
            (split_normal(self.0, bias), split_normal(self.1, bias))
        } else {
            (split_any(self.0), split_any(self.1))
        };
        (Self(e0, e1), Self(m0, m1))
    }

    #[inline(always)]
    fn high_bits(self) -> Self {
        let keep = v!(_mm256_castsi256_pd(_mm256_set1_epi64x(!0x07ff_ffff)));
        both!(Self, _mm256_and_pd, self, Self(keep, keep))
    }

    #[inline(always)]
    fn lt(self, b: Self) -> Avx2Mask {
        both!(Avx2Mask, _mm256_cmp_pd::<_CMP_LT_OQ>, self, b)
    }

    #[inline(always)]
    fn le(self, b: Self) -> Avx2Mask {
        both!(Avx2Mask, _mm256_cmp_pd::<_CMP_LE_OQ>, self, b)
    }

    #[inline(always)]
    fn eq(self, b: Self) -> Avx2Mask {
        both!(Avx2Mask, _mm256_cmp_pd::<_CMP_EQ_OQ>, self, b)
    }

    #[inline(always)]
    fn is_nan(self) -> Avx2Mask {
        both!(Avx2Mask, _mm256_cmp_pd::<_CMP_UNORD_Q>, self, self)
    }

    #[inline(always)]
    fn is_sign_negative(self) -> Avx2Mask {
        let zero = v!(_mm256_setzero_si256());
        let negative = |x| {
            v!(_mm256_castsi256_pd(_mm256_cmpgt_epi64(
                zero,
                _mm256_castpd_si256(x)
            )))
        };
        Avx2Mask(negative(self.0), negative(self.1))
    }

    #[inline(always)]
    fn and(a: Avx2Mask, b: Avx2Mask) -> Avx2Mask {
        both!(Avx2Mask, _mm256_and_pd, a, b)
    }

    #[inline(always)]
    fn or(a: Avx2Mask, b: Avx2Mask) -> Avx2Mask {
        both!(Avx2Mask, _mm256_or_pd, a, b)
    }

    #[inline(always)]
    fn not(a: Avx2Mask) -> Avx2Mask {
        let ones = v!(_mm256_castsi256_pd(_mm256_set1_epi64x(-1)));
        both!(Avx2Mask, _mm256_xor_pd, a, Avx2Mask(ones, ones))
    }

    #[inline(always)]
    fn mask_bits(a: Avx2Mask) -> u8 {
        (v!(_mm256_movemask_pd(a.0)) | v!(_mm256_movemask_pd(a.1)) << 4) as u8
    }

    #[inline(always)]
    fn mask_from_bits(bits: u8) -> Avx2Mask {
        let all = v!(_mm256_set1_epi64x(i64::from(bits)));
        let half = |pick| {
            v!(_mm256_castsi256_pd(_mm256_cmpeq_epi64(
                _mm256_and_si256(all, pick),
                pick
            )))
        };
        Avx2Mask(
            half(v!(_mm256_setr_epi64x(1, 2, 4, 8))),
            half(v!(_mm256_setr_epi64x(16, 32, 64, 128))),
        )
    }

    #[inline(always)]
    fn any(a: Avx2Mask) -> bool {
        v!(_mm256_movemask_pd(_mm256_or_pd(a.0, a.1))) != 0
    }

    #[inline(always)]
    fn select(mask: Avx2Mask, yes: Self, no: Self) -> Self {
        both!(Self, _mm256_blendv_pd, no, yes, mask)
    }

    #[inline(always)]
    fn sum(self) -> f64 {
        sum4(v!(_mm256_add_pd(self.0, self.1)))
    }
}
