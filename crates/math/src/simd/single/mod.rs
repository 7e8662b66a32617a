//! Sixteen virtual `f32` lanes. They are the single-precision counterpart of [`F64x8`](super::F64x8).
//!
//! One 512-bit register, two 256-bit registers and an array implement [`F32x16`]. A function that
//! [`simd_fn!`](crate::simd_fn) compiles for the lanes `V` can use `V::Single` for its single-precision part (see
//! [`F64x8::Single`](super::F64x8::Single)). AVX-512 and AVX2 give bitwise identical results. On processors without
//! fused multiply-add, the array also rounds the product of a multiply-add.

use std::ops::{Add, Div, Mul, Neg, Sub};

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod scalar;

/// The number of lanes in every [`F32x16`].
pub const LANES32: usize = 16;

/// Sixteen `f32` lanes. The methods have the same requirements as the methods of [`F64x8`](super::F64x8).
pub trait F32x16:
    Copy
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// The type of masks, with one truth value per lane.
    type Mask: Copy;

    /// Returns the same number in every lane.
    fn splat(x: f32) -> Self;

    /// Reads sixteen numbers. The pointer need not be aligned.
    ///
    /// # Safety
    /// `p` must be valid for reading sixteen numbers of type `f32`.
    unsafe fn load(p: *const f32) -> Self;

    /// Writes sixteen numbers. The pointer need not be aligned.
    ///
    /// # Safety
    /// `p` must be valid for writing sixteen numbers of type `f32`.
    unsafe fn store(self, p: *mut f32);

    /// Reads the first `n <= 16` numbers, and sets the other lanes to zero.
    ///
    /// # Safety
    /// `p` must be valid for reading `n` numbers of type `f32`.
    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        let mut lanes = [0.0; LANES32];
        // SAFETY: this function requires `n` readable numbers at `p`, and at most the sixteen of the array are read.
        unsafe {
            std::ptr::copy_nonoverlapping(p, lanes.as_mut_ptr(), n.min(LANES32));
            Self::load(lanes.as_ptr())
        }
    }

    /// Writes the first `n <= 16` lanes.
    ///
    /// # Safety
    /// `p` must be valid for writing `n` numbers of type `f32`.
    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        let lanes = self.to_array();
        // SAFETY: this function requires `n` writable numbers at `p`, and at most the sixteen of the array are written.
        unsafe { std::ptr::copy_nonoverlapping(lanes.as_ptr(), p, n.min(LANES32)) };
    }

    /// Returns `self * b + c`, rounded once. On a machine without fused multiply-add, the product is rounded as well.
    fn fma(self, b: Self, c: Self) -> Self;

    /// Returns the square root, correctly rounded.
    fn sqrt(self) -> Self;

    /// Returns `if self < b { self } else { b }`, which is the second operand if either operand is NaN.
    fn min(self, b: Self) -> Self;

    /// Returns `if self > b { self } else { b }`, which is the second operand if either operand is NaN.
    fn max(self, b: Self) -> Self;

    /// Returns the absolute value.
    fn abs(self) -> Self;

    /// Returns the nearest integer, with ties to even.
    fn round(self) -> Self;

    /// Returns the magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;

    /// Returns `self * 2^n` for integral `|n| <= 250`, rounded once. `|self|` must be 0, infinite, NaN or in `[2^-60,
    /// 2^60]`.
    fn scale_pow2(self, n: Self) -> Self;

    /// Returns `(e, m)` with `self = m * 2^e` and `m` in `[0.75, 1.5)` for positive finite `self`, including subnormal
    /// numbers. Returns `(-inf, 1)` for either zero and `(inf, 1)` for infinity. If `self` is negative or NaN, `m` is
    /// NaN.
    fn split_pow2(self) -> (Self, Self);

    /// Returns whether `self < b`, which is false for NaN.
    fn lt(self, b: Self) -> Self::Mask;

    /// Returns whether `self <= b`, which is false for NaN.
    fn le(self, b: Self) -> Self::Mask;

    /// Returns whether `self == b`, which is false for NaN.
    fn eq(self, b: Self) -> Self::Mask;

    /// Returns `yes` in lanes where the mask is true, and `no` in the other lanes.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Returns the sum of the lanes in a fixed order: the function repeatedly adds one half of the lanes to the other
    /// half, until one number remains.
    #[inline(always)]
    fn sum(self) -> f32 {
        let x = self.to_array();
        let a: [f32; 8] = std::array::from_fn(|i| x[i] + x[i + 8]);
        let b: [f32; 4] = std::array::from_fn(|i| a[i] + a[i + 4]);
        (b[0] + b[2]) + (b[1] + b[3])
    }

    /// Returns the largest lane. The result is unspecified if a lane is NaN.
    #[inline(always)]
    fn largest(self) -> f32 {
        let x = self.to_array();
        let larger = |a: f32, b: f32| if a > b { a } else { b };
        let a: [f32; 8] = std::array::from_fn(|i| larger(x[i], x[i + 8]));
        let b: [f32; 4] = std::array::from_fn(|i| larger(a[i], a[i + 4]));
        larger(larger(b[0], b[2]), larger(b[1], b[3]))
    }

    /// Returns the lanes as an array.
    #[inline(always)]
    fn to_array(self) -> [f32; LANES32] {
        let mut lanes = [0.0; LANES32];
        // SAFETY: the array has sixteen numbers.
        unsafe { self.store(lanes.as_mut_ptr()) };
        lanes
    }

    /// Creates lanes from an array.
    #[inline(always)]
    fn from_array(lanes: [f32; LANES32]) -> Self {
        // SAFETY: the array has sixteen numbers.
        unsafe { Self::load(lanes.as_ptr()) }
    }

    /// Creates lanes that are all zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }
}

/// Compiles a function over [`F32x16`] lanes for every instruction set, as [`simd_fn!`](crate::simd_fn) does for `f64`:
/// `fn NAME<V>(arguments) -> Output { body }` defines `NAME(simd, arguments) -> Output`. Every function that the body
/// calls must be `#[inline(always)]`.
#[macro_export]
macro_rules! simd32_fn {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident<$lanes:ident>($($arg:ident : $ty:ty),* $(,)?) $(-> $out:ty)? $body:block
    )+) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        #[inline]
        $vis fn $name(simd: $crate::simd::Simd, $($arg: $ty),*) $(-> $out)? {
            #[allow(clippy::too_many_arguments)]
            #[inline(always)]
            fn single_lanes<$lanes: $crate::simd::F32x16>($($arg: $ty),*) $(-> $out)? $body

            $crate::simd_fn! {
                fn dispatched, _dispatched_fn = <W>($($arg: $ty),*) $(-> $out)? {
                    single_lanes::<W::Single>($($arg),*)
                }
            }
            dispatched(simd, $($arg),*)
        }
    )+};
}

#[cfg(test)]
mod tests;
