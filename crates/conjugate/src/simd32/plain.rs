//! Sixteen lanes as an array, for any processor.

use super::{F32x16, SQRT_HALF, WIDTH, operators};

#[derive(Clone, Copy)]
pub(crate) struct Plain([f32; WIDTH]);

impl Plain {
    #[inline(always)]
    fn zip(self, b: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for (a, b) in out.iter_mut().zip(b.0) {
            *a = f(*a, b);
        }
        Self(out)
    }

    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self(self.0.map(f))
    }

    #[inline(always)]
    fn fold(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        let mut a = self.0;
        let mut width = WIDTH;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                a[i] = f(a[i], a[i + width]);
            }
        }
        a[0]
    }
}

operators!(Plain,
    Add add |a: Plain, b| a.zip(b, |a, b| a + b),
    Sub sub |a: Plain, b| a.zip(b, |a, b| a - b),
    Mul mul |a: Plain, b| a.zip(b, |a, b| a * b),
    Div div |a: Plain, b| a.zip(b, |a, b| a / b));

impl F32x16 for Plain {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; WIDTH])
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: the caller's promise; no alignment is assumed.
        Self(unsafe { p.cast::<[f32; WIDTH]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: the caller's promise; no alignment is assumed.
        unsafe { p.cast::<[f32; WIDTH]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        self * b + c
    }

    #[inline(always)]
    fn max(self, b: Self) -> Self {
        self.zip(b, |a, b| if a > b { a } else { b })
    }

    #[inline(always)]
    fn min(self, b: Self) -> Self {
        self.zip(b, |a, b| if a < b { a } else { b })
    }

    #[inline(always)]
    fn abs(self) -> Self {
        self.map(f32::abs)
    }

    #[inline(always)]
    fn round(self) -> Self {
        self.map(f32::round_ties_even)
    }

    #[inline(always)]
    fn exp2_integral(n: Self) -> Self {
        n.map(|n| f32::from_bits(((n as i32 + 127) << 23) as u32))
    }

    #[inline(always)]
    fn split(self) -> (Self, Self) {
        let exponent = |x: f32| ((x.to_bits().wrapping_sub(SQRT_HALF.to_bits())) as i32) >> 23;
        let e = self.map(|x| exponent(x) as f32);
        let m = self.map(|x| f32::from_bits(x.to_bits().wrapping_sub((exponent(x) << 23) as u32)));
        (e, m)
    }

    #[inline(always)]
    fn if_less(self, b: Self, yes: Self, no: Self) -> Self {
        let mut out = no.0;
        let pairs = self.0.iter().zip(&b.0).zip(&yes.0);
        for (out, ((a, b), yes)) in out.iter_mut().zip(pairs) {
            if a < b {
                *out = *yes;
            }
        }
        Self(out)
    }

    #[inline(always)]
    fn sum(self) -> f32 {
        self.fold(|a, b| a + b)
    }

    #[inline(always)]
    fn largest(self) -> f32 {
        self.fold(|a, b| if a > b { a } else { b })
    }
}
