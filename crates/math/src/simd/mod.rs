//! Eight virtual `f64` lanes with dispatch at run time.
//!
//! Every kernel is written once in terms of [`F64x8`]. Three types implement it: one 512-bit register (AVX-512), two
//! 256-bit registers (AVX2 with FMA) and a plain array. The first two give bitwise identical results in every
//! operation, except for the payloads of NaN. The array gives the same results, except for fused multiply-adds on
//! processors without this instruction. On such processors, the array also rounds the product, so the results agree
//! only up to rounding.
//!
//! There are two ways to call a generic `#[inline(always)]` function. [`simd_fn!`](crate::simd_fn) compiles the
//! function three times, and a [`Simd`] value selects the instance. For a computation that captures state, implement
//! the [`Kernel`] trait and call [`Simd::run`].

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::str::FromStr;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
mod single;

pub use single::{F32x16, LANES32};

/// The lane types. They are exported only for [`simd_fn!`](crate::simd_fn). Using them outside a function that enables
/// the matching processor features is undefined behaviour.
#[doc(hidden)]
pub mod lanes {
    #[cfg(target_arch = "x86_64")]
    pub use super::avx2::Avx2Lanes;
    #[cfg(target_arch = "x86_64")]
    pub use super::avx512::Avx512Lanes;
    pub use super::scalar::{ElementLanes, ScalarLanes};
}

/// The number of lanes in every [`F64x8`].
pub const LANES: usize = 8;

/// Eight `f64` lanes.
///
/// All methods act lane by lane and are `#[inline(always)]`. A generic function over this trait must also be
/// `#[inline(always)]`, so that it is compiled with the features of its [`simd_fn!`](crate::simd_fn) wrapper. The
/// operator traits provide the arithmetic operations.
pub trait F64x8:
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

    /// The single-precision lanes of the same instruction set.
    type Single: F32x16;

    /// The number of registers that one value occupies. If a value occupies one register, the machine has 32 registers.
    /// Otherwise it has 16. Kernels choose the size of their register blocks accordingly.
    const REGISTERS: usize;

    /// The number of values that [`load`](Self::load) reads and [`store`](Self::store) writes. The number is one per
    /// lane. In the lanes of an [`element_fn!`](crate::element_fn) it is smaller, because each value represents several
    /// lanes.
    const WIDTH: usize = LANES;

    /// Returns the same number in every lane.
    fn splat(x: f64) -> Self;

    /// Reads `WIDTH` numbers. The pointer need not be aligned.
    ///
    /// # Safety
    /// `p` must be valid for reading `WIDTH` numbers of type `f64`.
    unsafe fn load(p: *const f64) -> Self;

    /// Writes `WIDTH` numbers. The pointer need not be aligned.
    ///
    /// # Safety
    /// `p` must be valid for writing `WIDTH` numbers of type `f64`.
    unsafe fn store(self, p: *mut f64);

    /// Returns `self * b + c`, rounded once. On a machine without fused multiply-add, the product is rounded as well.
    fn fma(self, b: Self, c: Self) -> Self;

    /// Returns the rounded product `p = self * b` and the error `self * b - p`. The error is exact unless there is
    /// underflow or overflow.
    fn mul_exact(self, b: Self) -> (Self, Self);

    /// Returns the square root, correctly rounded.
    fn sqrt(self) -> Self;

    /// Returns `if self < b { self } else { b }`, which is the second operand if either operand is NaN.
    fn min(self, b: Self) -> Self;

    /// Returns `if self > b { self } else { b }`, which is the second operand if either operand is NaN.
    fn max(self, b: Self) -> Self;

    /// Returns the absolute value.
    fn abs(self) -> Self;

    /// Returns the largest integer that does not exceed the number.
    fn floor(self) -> Self;

    /// Returns the nearest integer, with ties to even.
    fn round(self) -> Self;

    /// Returns the integral part of the number, rounded towards zero.
    fn trunc(self) -> Self;

    /// Returns the magnitude of `self` with the sign of `sign`.
    fn copysign(self, sign: Self) -> Self;

    /// Returns `self * 2^n` for integral `|n| <= 2000`, rounded once. `|self|` must be 0, infinite, NaN or in
    /// `[2^-500, 2^500]`.
    fn scale_pow2(self, n: Self) -> Self;

    /// Returns `2^n` for `self = 1.5 * 2^52 + 1023 + n`, with integral `n` in `[-1022, 1023]`. To obtain such an
    /// argument, add a number to `1.5 * 2^52 + 1023`. The addition rounds the number to the integer `n`.
    fn pow2_of_sum(self) -> Self;

    /// Returns `(e, m)` with `self = m * 2^e` and `m` in `[0.75, 1.5)` for positive finite `self`, including subnormal
    /// numbers. Returns `(-inf, 1)` for either zero and `(inf, 1)` for infinity. If `self` is negative or NaN, `m` is
    /// NaN.
    fn split_pow2(self) -> (Self, Self);

    /// Returns `self` with the lowest 27 bits of the significand cleared. Squares and products of such numbers are
    /// exact.
    fn high_bits(self) -> Self;

    /// Returns whether `self < b`, which is false for NaN.
    fn lt(self, b: Self) -> Self::Mask;

    /// Returns whether `self <= b`, which is false for NaN.
    fn le(self, b: Self) -> Self::Mask;

    /// Returns whether `self == b`, which is false for NaN.
    fn eq(self, b: Self) -> Self::Mask;

    /// Returns whether `self > b`, which is false for NaN.
    #[inline(always)]
    fn gt(self, b: Self) -> Self::Mask {
        b.lt(self)
    }

    /// Returns whether `self >= b`, which is false for NaN.
    #[inline(always)]
    fn ge(self, b: Self) -> Self::Mask {
        b.le(self)
    }

    /// Returns whether each lane is NaN.
    fn is_nan(self) -> Self::Mask;

    /// Returns whether the sign bit is set. This is true for -0 and for negative NaN.
    fn is_sign_negative(self) -> Self::Mask;

    /// Returns the mask of lanes that are true in both masks.
    fn and(a: Self::Mask, b: Self::Mask) -> Self::Mask;

    /// Returns the mask of lanes that are true in at least one of the masks.
    fn or(a: Self::Mask, b: Self::Mask) -> Self::Mask;

    /// Returns the opposite mask.
    fn not(a: Self::Mask) -> Self::Mask;

    /// Returns the mask as bits: bit `i` is the truth value of lane `i`.
    fn mask_bits(a: Self::Mask) -> u8;

    /// Returns the mask whose truth value in lane `i` is bit `i`.
    fn mask_from_bits(bits: u8) -> Self::Mask;

    /// Returns whether any lane is true.
    #[inline(always)]
    fn any(a: Self::Mask) -> bool {
        Self::mask_bits(a) != 0
    }

    /// Returns whether all lanes are true.
    #[inline(always)]
    fn all(a: Self::Mask) -> bool {
        Self::mask_bits(a) == 0xff
    }

    /// Returns `yes` in lanes where the mask is true, and `no` in the other lanes.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    /// Returns the sum of the lanes, added in the fixed order `((0+4) + (2+6)) + ((1+5) + (3+7))`.
    fn sum(self) -> f64;

    /// Returns the lanes as an array.
    #[inline(always)]
    fn to_array(self) -> [f64; LANES] {
        let mut a = [0.0; LANES];
        // SAFETY: the array has eight numbers.
        unsafe { self.store(a.as_mut_ptr()) };
        a
    }

    /// Creates lanes from an array.
    #[inline(always)]
    fn from_array(a: [f64; LANES]) -> Self {
        // SAFETY: the array has eight numbers.
        unsafe { Self::load(a.as_ptr()) }
    }

    /// Creates lanes that are all zero.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(0.0)
    }

    /// Applies a scalar function to the lanes where `mask` is true, and keeps `self` in the other lanes. Vector
    /// functions use it as the slow path for rare arguments.
    #[inline(always)]
    fn patch(self, mask: Self::Mask, argument: Self, f: impl Fn(f64) -> f64) -> Self {
        let mut out = self.to_array();
        let x = argument.to_array();
        let bits = Self::mask_bits(mask);
        for (i, (o, &x)) in out.iter_mut().zip(&x).enumerate() {
            if bits >> i & 1 == 1 {
                *o = f(x);
            }
        }
        Self::from_array(out)
    }

    /// Applies a function of two arguments in the same way as [`patch`](Self::patch).
    #[inline(always)]
    fn patch2(self, mask: Self::Mask, a: Self, b: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let mut out = self.to_array();
        let (a, b) = (a.to_array(), b.to_array());
        let bits = Self::mask_bits(mask);
        for (i, o) in out.iter_mut().enumerate() {
            if bits >> i & 1 == 1 {
                *o = f(a[i], b[i]);
            }
        }
        Self::from_array(out)
    }
}

/// An instruction set for which kernels are compiled.
///
/// Code outside this crate cannot construct the vector variants (match them as `Simd::Avx2 { .. }`). A caller can
/// therefore obtain only levels that this machine supports. The safety of the dispatching functions relies on this
/// property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Simd {
    /// Plain Rust, which runs on any machine.
    Scalar,
    /// Two 256-bit registers per value, with AVX2 and FMA.
    #[non_exhaustive]
    Avx2,
    /// One 512-bit register per value, with AVX-512 F, DQ, VL and BW.
    #[non_exhaustive]
    Avx512,
}

/// The error for a name that is not an available [`Simd`] level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimdError {
    /// No level has this name.
    Unknown(String),
    /// The level exists, but this machine does not support it.
    Unavailable {
        /// The requested level.
        wanted: &'static str,
        /// The best level that this machine supports.
        best: Simd,
    },
}

impl fmt::Display for SimdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(
                    f,
                    "unknown SIMD level '{name}': expected auto, avx512, avx2 or scalar"
                )
            }
            Self::Unavailable { wanted, best } => write!(
                f,
                "this processor has no {wanted}: its best SIMD level is {best}, which 'auto' picks"
            ),
        }
    }
}

impl std::error::Error for SimdError {}

impl Simd {
    /// Returns the best level that this machine supports.
    pub fn detect() -> Self {
        if Self::has_avx512() {
            Self::Avx512
        } else if Self::has_avx2() {
            Self::Avx2
        } else {
            Self::Scalar
        }
    }

    /// Returns every level that this machine supports, starting with the best.
    pub fn available() -> Vec<Self> {
        let mut levels = Vec::with_capacity(3);
        if Self::has_avx512() {
            levels.push(Self::Avx512);
        }
        if Self::has_avx2() {
            levels.push(Self::Avx2);
        }
        levels.push(Self::Scalar);
        levels
    }

    /// Returns the name of the level, which [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Scalar => "scalar",
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn has_avx512() -> bool {
        Self::has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
    }

    #[cfg(target_arch = "x86_64")]
    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn has_avx512() -> bool {
        false
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn has_avx2() -> bool {
        false
    }

    /// Runs the instance of a kernel that is compiled for this level.
    #[inline]
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        run_kernel(self, kernel)
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Simd {
    type Err = SimdError;

    /// Reads `auto`, `avx512`, `avx2` or `scalar`. Fails if this machine does not support the level.
    fn from_str(name: &str) -> Result<Self, SimdError> {
        let need = |has: bool, level: Self| {
            if has {
                Ok(level)
            } else {
                Err(SimdError::Unavailable {
                    wanted: level.name(),
                    best: Self::detect(),
                })
            }
        };
        match name {
            "auto" => Ok(Self::detect()),
            "avx512" => need(Self::has_avx512(), Self::Avx512),
            "avx2" => need(Self::has_avx2(), Self::Avx2),
            "scalar" => Ok(Self::Scalar),
            _ => Err(SimdError::Unknown(name.to_owned())),
        }
    }
}

/// A computation that is written once over [`F64x8`]. [`Simd::run`] runs it at a given level. For a computation that
/// captures no state, [`simd_fn!`](crate::simd_fn) is shorter.
pub trait Kernel {
    /// The result of the computation.
    type Output;

    /// Runs the computation. Implementations must be marked `#[inline(always)]`.
    fn run<V: F64x8>(self) -> Self::Output;
}

/// Prefetches numbers that will be read soon. The function does nothing on machines without a prefetch instruction.
#[inline(always)]
pub fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let first = numbers.as_ptr().cast::<i8>();
        for at in (0..std::mem::size_of_val(numbers)).step_by(LINE) {
            // SAFETY: the address is inside the slice, and a prefetch does not fault anywhere.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(first.add(at)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

crate::simd_fn! {
    fn run_kernel, run_kernel_fn = <V, K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<V>()
    }
}

/// Compiles a function over [`F64x8`](crate::simd::F64x8) lanes for every instruction set.
///
/// `fn NAME, POINTER = <V, …>(arguments) -> Output { body }` defines
/// - `NAME(simd, arguments) -> Output`, which selects the instance for `simd` and calls it, and
/// - `POINTER(simd) -> unsafe fn(arguments) -> Output`, which returns the instance itself, for tables of kernels.
///   Calling the instance is sound on the machine on which `simd` was obtained.
///
/// In the body, `V` is the lane type. Further type parameters, each with a single bound, may follow `V`. Lifetimes are
/// elided. Every function that the body calls must be `#[inline(always)]`, so that it is compiled with the same
/// instructions.
///
/// ```
/// use jensen_math::simd::{F64x8, LANES, Simd};
///
/// jensen_math::simd_fn! {
///     /// Adds `a * x` to `y`; the slices have equal lengths, a multiple of eight.
///     pub fn add_scaled, add_scaled_fn = <V>(a: f64, x: &[f64], y: &mut [f64]) {
///         assert_eq!(x.len(), y.len());
///         let a = V::splat(a);
///         for (x, y) in x.chunks_exact(LANES).zip(y.chunks_exact_mut(LANES)) {
///             // SAFETY: both chunks hold eight numbers.
///             unsafe { a.fma(V::load(x.as_ptr()), V::load(y.as_ptr())).store(y.as_mut_ptr()) }
///         }
///     }
/// }
///
/// let x = [1.0; 16];
/// for simd in Simd::available() {
///     let mut y = [2.0; 16];
///     add_scaled(simd, 3.0, &x, &mut y);
///     let kernel = add_scaled_fn(simd);
///     // SAFETY: the level is one this machine has.
///     unsafe { kernel(3.0, &x, &mut y) };
///     assert_eq!(y, [8.0; 16]);
/// }
/// ```
#[macro_export]
macro_rules! simd_fn {
    ($($functions:tt)+) => {
        $crate::simd_fn_over! { ScalarLanes; $($functions)+ }
    };
}

/// A variant of [`simd_fn!`] for elementwise functions, which process [`F64x8::WIDTH`] numbers at a time and do not sum
/// over lanes. For machines without vector instructions, the functions are compiled for a single number.
#[macro_export]
macro_rules! element_fn {
    ($($functions:tt)+) => {
        $crate::simd_fn_over! { ElementLanes; $($functions)+ }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! simd_fn_over {
    ($plain:ident; $(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident, $pointer:ident = <$lanes:ident $(, $param:ident : $bound:path)*>
            ($($arg:ident : $ty:ty),* $(,)?) $(-> $out:ty)? $body:block
    )+) => {$(
        $(#[$meta])*
        #[allow(clippy::too_many_arguments)]
        #[inline]
        $vis fn $name<$($param: $bound),*>(simd: $crate::simd::Simd, $($arg: $ty),*) $(-> $out)? {
            let instance = $pointer::<$($param),*>(simd);
            // SAFETY: a `Simd` names a level that this machine has.
            unsafe { instance($($arg),*) }
        }

        #[doc = concat!("The instance of [`", stringify!($name), "`] for a level, as a function pointer.")]
        #[allow(clippy::type_complexity)]
        #[inline]
        $vis fn $pointer<$($param: $bound),*>(simd: $crate::simd::Simd) -> unsafe fn($($ty),*) $(-> $out)? {
            // The body may be a plain loop that the compiler vectorises and that does not use the lane type.
            #[allow(clippy::too_many_arguments, clippy::extra_unused_type_parameters)]
            #[inline(always)]
            fn generic<$lanes: $crate::simd::F64x8 $(, $param: $bound)*>($($arg: $ty),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")]
            unsafe fn avx512<$($param: $bound),*>($($arg: $ty),*) $(-> $out)? {
                generic::<$crate::simd::lanes::Avx512Lanes $(, $param)*>($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[allow(clippy::too_many_arguments)]
            #[target_feature(enable = "avx2,fma")]
            unsafe fn avx2<$($param: $bound),*>($($arg: $ty),*) $(-> $out)? {
                generic::<$crate::simd::lanes::Avx2Lanes $(, $param)*>($($arg),*)
            }

            #[allow(clippy::too_many_arguments)]
            unsafe fn scalar<$($param: $bound),*>($($arg: $ty),*) $(-> $out)? {
                generic::<$crate::simd::lanes::$plain $(, $param)*>($($arg),*)
            }

            match simd {
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Simd::Avx512 { .. } => avx512::<$($param),*>,
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Simd::Avx2 { .. } => avx2::<$($param),*>,
                _ => scalar::<$($param),*>,
            }
        }
    )+};
}

macro_rules! lane_operators {
    (@binary [$($generics:tt)*] $lanes:ty, $trait:ident, $method:ident, $f:expr) => {
        impl<$($generics)*> std::ops::$trait for $lanes {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                $f(self, b)
            }
        }
    };
    (@all [$($generics:tt)*] $lanes:ty, $add:expr, $sub:expr, $mul:expr, $div:expr, $neg:expr) => {
        lane_operators!(@binary [$($generics)*] $lanes, Add, add, $add);
        lane_operators!(@binary [$($generics)*] $lanes, Sub, sub, $sub);
        lane_operators!(@binary [$($generics)*] $lanes, Mul, mul, $mul);
        lane_operators!(@binary [$($generics)*] $lanes, Div, div, $div);
        impl<$($generics)*> std::ops::Neg for $lanes {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                $neg(self)
            }
        }
    };
    ([$($generics:tt)*] $($rest:tt)*) => {
        lane_operators!(@all [$($generics)*] $($rest)*);
    };
    ($($rest:tt)*) => {
        lane_operators!(@all [] $($rest)*);
    };
}
use lane_operators;

#[cfg(test)]
mod tests;
