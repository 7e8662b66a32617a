//! Special functions on eight lanes at once.
//!
//! Each function is generic over [`F64x8`] and `#[inline(always)]`, for use in kernels that
//! [`simd_fn!`](crate::simd_fn) compiles. The module [`slices`] contains versions that process whole slices. Every
//! function treats signed zeros, infinities, NaN, subnormal numbers and overflow as the C library does. Errors were
//! measured on the vector levels against references with 60 digits, and the documentation of each function states the
//! largest error. The unit (ulp) is a unit in the last place of the result. On processors without fused multiply-add,
//! the scalar level may be worse by one ulp.
//!
//! The script `tools/coefficients.py` computes the coefficients of the polynomials by Chebyshev fits.

mod exp;
mod gamma;
mod log;
mod normal;
mod power;
pub mod single;
pub mod slices;
mod trig;

pub use exp::{cosh, exp, exp_of_negative, exp2, expm1, inv_logit, sinh, tanh};
pub(crate) use gamma::stirling;
pub use gamma::{digamma, digamma_step, lbeta, lgamma, lgamma_step, trigamma, trigamma_step};
pub use log::{
    acosh, asinh, atanh, log, log_inv_logit, log1m, log1m_exp, log1m_inv_logit, log1p, log1p_exp,
    log2, log10, logit,
};
pub use normal::{erf, erfc, inv_phi, log_phi, log_phi_scaled, phi};
pub use power::{cbrt, hypot, pow};
pub use trig::{acos, asin, atan, atan2, cos, sin, sin_cos, tan};

use crate::simd::F64x8;

/// Evaluates the polynomial with the given coefficients, starting with the lowest power. Even and odd powers are
/// evaluated as two independent chains, which halves the latency.
#[inline(always)]
fn poly<V: F64x8, const N: usize>(x: V, c: &[f64; N]) -> V {
    let square = x * x;
    // The chain that contains the highest power starts at index N - 1, and the other chain starts one index lower.
    let mut first = V::splat(c[N - 1]);
    let mut second = V::splat(c[N - 2]);
    let mut i = N - 2;
    while i >= 2 {
        first = first.fma(square, V::splat(c[i - 1]));
        second = second.fma(square, V::splat(c[i - 2]));
        i -= 2;
    }
    if i == 1 {
        // `second` contains the powers from c[1] on, and `first` contains the even powers without c[0].
        first = first.fma(square, V::splat(c[0]));
        second.fma(x, first)
    } else {
        first.fma(x, second)
    }
}
