//! Lanes in an array, for machines without the vector instructions.

use super::{F64x8, LANES, lane_operators};

/// Lanes in an array of `N` numbers: lane `i` is element `i mod N`.
#[derive(Clone, Copy)]
pub struct ArrayLanes<const N: usize>([f64; N]);

/// Eight numbers, one per lane.
pub type ScalarLanes = ArrayLanes<LANES>;

/// The lane type of elementwise kernels: a single number that represents all lanes. On machines with vector
/// instructions, these kernels are only a fallback. If they processed eight numbers at a time, they would make up half
/// of the machine code of all kernels.
#[cfg(target_arch = "x86_64")]
pub type ElementLanes = ArrayLanes<1>;

/// The lanes of elementwise kernels.
#[cfg(not(target_arch = "x86_64"))]
pub type ElementLanes = ScalarLanes;

/// Whether a fused multiply-add is a single instruction on every processor of the compilation target.
const FUSED: bool = cfg!(any(target_feature = "fma", target_arch = "aarch64"));

#[inline(always)]
fn map<const N: usize>(a: ArrayLanes<N>, f: impl Fn(f64) -> f64) -> ArrayLanes<N> {
    ArrayLanes(std::array::from_fn(
        #[inline(always)]
        |i| f(a.0[i]),
    ))
}

#[inline(always)]
fn zip<const N: usize>(
    a: ArrayLanes<N>,
    b: ArrayLanes<N>,
    f: impl Fn(f64, f64) -> f64,
) -> ArrayLanes<N> {
    ArrayLanes(std::array::from_fn(
        #[inline(always)]
        |i| f(a.0[i], b.0[i]),
    ))
}

#[inline(always)]
fn test<const N: usize>(
    a: ArrayLanes<N>,
    b: ArrayLanes<N>,
    f: impl Fn(f64, f64) -> bool,
) -> [bool; N] {
    std::array::from_fn(
        #[inline(always)]
        |i| f(a.0[i], b.0[i]),
    )
}

/// Rounds to the nearest integer, with ties to even, in a form that the compiler can vectorise. The standard function
/// would compile to a call, because the baseline instruction set has no rounding instruction.
#[inline(always)]
fn round_even(x: f64) -> f64 {
    const TWO_52: f64 = 4_503_599_627_370_496.0;
    let shift = TWO_52.copysign(x);
    let r = ((x + shift) - shift).copysign(x);
    if x.abs() < TWO_52 { r } else { x }
}

#[inline(always)]
fn floor(x: f64) -> f64 {
    let r = round_even(x);
    if r > x { r - 1.0 } else { r }
}

#[inline(always)]
fn clear_low(x: f64) -> f64 {
    f64::from_bits(x.to_bits() & !0x07ff_ffff)
}

/// Returns the rounding error of `p = a * b`, computed by Dekker's splitting without a fused multiply-add.
#[inline(always)]
fn product_error(a: f64, b: f64, p: f64) -> f64 {
    if FUSED {
        return a.mul_add(b, -p);
    }
    let split = |x: f64| {
        let t = 134_217_729.0 * x;
        let high = t - (t - x);
        (high, x - high)
    };
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    ((ah * bh - p) + ah * bl + al * bh) + al * bl
}

/// Returns `2^n` for the number `1.5 * 2^52 + 1023 + n`. The low bits of its significand contain the biased exponent,
/// and the shift drops all other bits.
#[inline(always)]
fn high_power(sum: f64) -> f64 {
    f64::from_bits(sum.to_bits() << 52)
}

#[inline(always)]
fn pow2(n: f64) -> f64 {
    high_power(n + (6_755_399_441_055_744.0 + 1023.0))
}

#[inline(always)]
fn scale(x: f64, n: f64) -> f64 {
    let first = floor(n * 0.5);
    x * pow2(first) * pow2(n - first)
}

#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    if x == 0.0 {
        return (f64::NEG_INFINITY, 1.0);
    }
    if x.is_nan() || x < 0.0 {
        return (0.0, f64::NAN);
    }
    if x == f64::INFINITY {
        return (f64::INFINITY, 1.0);
    }
    let subnormal = x < f64::MIN_POSITIVE;
    let (x, bias) = if subnormal {
        (x * 18_014_398_509_481_984.0, 1077.0)
    } else {
        (x, 1023.0)
    };
    let low = 0.75f64.to_bits();
    let moved = x.to_bits().wrapping_add(1f64.to_bits() - low);
    let m = f64::from_bits((moved & 0x000f_ffff_ffff_ffff).wrapping_add(low));
    ((moved >> 52) as f64 - bias, m)
}

lane_operators!(
    [const N: usize] ArrayLanes<N>,
    |a, b| zip(a, b, |x, y| x + y),
    |a, b| zip(a, b, |x, y| x - y),
    |a, b| zip(a, b, |x, y| x * y),
    |a, b| zip(a, b, |x, y| x / y),
    |a| map(a, |x| -x)
);

impl<const N: usize> F64x8 for ArrayLanes<N> {
    type Mask = [bool; N];
    type Single = super::single::scalar::ScalarSingles;
    const REGISTERS: usize = 4;
    const WIDTH: usize = N;

    #[inline(always)]
    fn splat(x: f64) -> Self {
        Self([x; N])
    }

    #[inline(always)]
    unsafe fn load(p: *const f64) -> Self {
        // SAFETY: `load` requires `WIDTH` readable numbers at `p`, and an unaligned read needs no more.
        Self(unsafe { p.cast::<[f64; N]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f64) {
        // SAFETY: `store` requires `WIDTH` writable numbers at `p`, and an unaligned write needs no more.
        unsafe { p.cast::<[f64; N]>().write_unaligned(self.0) }
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
    fn mul_exact(self, b: Self) -> (Self, Self) {
        let p = self * b;
        let error = Self(std::array::from_fn(
            #[inline(always)]
            |i| product_error(self.0[i], b.0[i], p.0[i]),
        ));
        (p, error)
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        map(self, f64::sqrt)
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
        map(self, f64::abs)
    }

    #[inline(always)]
    fn floor(self) -> Self {
        map(self, floor)
    }

    #[inline(always)]
    fn round(self) -> Self {
        map(self, round_even)
    }

    #[inline(always)]
    fn trunc(self) -> Self {
        map(self, f64::trunc)
    }

    #[inline(always)]
    fn copysign(self, sign: Self) -> Self {
        zip(self, sign, f64::copysign)
    }

    #[inline(always)]
    fn scale_pow2(self, n: Self) -> Self {
        zip(self, n, scale)
    }

    #[inline(always)]
    fn pow2_of_sum(self) -> Self {
        map(self, high_power)
    }

    #[inline(always)]
    fn split_pow2(self) -> (Self, Self) {
        let (mut e, mut m) = (self, self);
        for i in 0..N {
            (e.0[i], m.0[i]) = split(self.0[i]);
        }
        (e, m)
    }

    #[inline(always)]
    fn high_bits(self) -> Self {
        map(self, clear_low)
    }

    #[inline(always)]
    fn lt(self, b: Self) -> [bool; N] {
        test(self, b, |x, y| x < y)
    }

    #[inline(always)]
    fn le(self, b: Self) -> [bool; N] {
        test(self, b, |x, y| x <= y)
    }

    #[inline(always)]
    fn eq(self, b: Self) -> [bool; N] {
        test(self, b, |x, y| x == y)
    }

    #[inline(always)]
    fn is_nan(self) -> [bool; N] {
        self.0.map(f64::is_nan)
    }

    #[inline(always)]
    fn is_sign_negative(self) -> [bool; N] {
        self.0.map(f64::is_sign_negative)
    }

    #[inline(always)]
    fn and(a: [bool; N], b: [bool; N]) -> [bool; N] {
        std::array::from_fn(|i| a[i] & b[i])
    }

    #[inline(always)]
    fn or(a: [bool; N], b: [bool; N]) -> [bool; N] {
        std::array::from_fn(|i| a[i] | b[i])
    }

    #[inline(always)]
    fn not(a: [bool; N]) -> [bool; N] {
        a.map(|x| !x)
    }

    #[inline(always)]
    fn mask_bits(a: [bool; N]) -> u8 {
        (0..LANES).fold(0, |bits, i| bits | u8::from(a[i % N]) << i)
    }

    #[inline(always)]
    fn mask_from_bits(bits: u8) -> [bool; N] {
        std::array::from_fn(|i| bits >> i & 1 == 1)
    }

    #[inline(always)]
    fn select(mask: [bool; N], yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(
            #[inline(always)]
            |i| if mask[i] { yes.0[i] } else { no.0[i] },
        ))
    }

    #[inline(always)]
    fn sum(self) -> f64 {
        let x = self.to_array();
        ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]))
    }

    #[inline(always)]
    fn to_array(self) -> [f64; LANES] {
        std::array::from_fn(
            #[inline(always)]
            |i| self.0[i % N],
        )
    }

    #[inline(always)]
    fn from_array(a: [f64; LANES]) -> Self {
        Self(std::array::from_fn(
            #[inline(always)]
            |i| a[i],
        ))
    }

    #[inline(always)]
    fn patch(self, mask: [bool; N], argument: Self, f: impl Fn(f64) -> f64) -> Self {
        Self(std::array::from_fn(
            #[inline(always)]
            |i| if mask[i] { f(argument.0[i]) } else { self.0[i] },
        ))
    }

    #[inline(always)]
    fn patch2(self, mask: [bool; N], a: Self, b: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self(std::array::from_fn(
            #[inline(always)]
            |i| {
                if mask[i] {
                    f(a.0[i], b.0[i])
                } else {
                    self.0[i]
                }
            },
        ))
    }
}
