//! The vector functions on slices, `out[i] = f(x[i])`, at a chosen SIMD level.
//!
//! If the slices have unequal lengths, the functions stop at the end of the shortest slice. If the length is not a
//! multiple of eight, the remaining elements cost as much as a full vector.

use crate::simd::{F64x8, LANES};

#[inline(always)]
fn map1<V: F64x8>(x: &[f64], out: &mut [f64], f: impl Fn(V) -> V) {
    let n = x.len().min(out.len());
    let (mut xs, mut outs) = (
        x[..n].chunks_exact(V::WIDTH),
        out[..n].chunks_exact_mut(V::WIDTH),
    );
    for (x, out) in xs.by_ref().zip(outs.by_ref()) {
        // SAFETY: both chunks have `WIDTH` numbers.
        unsafe { f(V::load(x.as_ptr())).store(out.as_mut_ptr()) }
    }
    let rest = xs.remainder();
    if !rest.is_empty() {
        let mut a = [1.0; LANES];
        a[..rest.len()].copy_from_slice(rest);
        outs.into_remainder()
            .copy_from_slice(&f(V::from_array(a)).to_array()[..rest.len()]);
    }
}

#[inline(always)]
fn map2<V: F64x8>(x: &[f64], y: &[f64], out: &mut [f64], f: impl Fn(V, V) -> V) {
    let n = x.len().min(y.len()).min(out.len());
    let whole = n - n % V::WIDTH;
    for i in (0..whole).step_by(V::WIDTH) {
        // SAFETY: i + `WIDTH` <= n, and the three slices have at least n numbers.
        unsafe {
            let r = f(V::load(x.as_ptr().add(i)), V::load(y.as_ptr().add(i)));
            r.store(out.as_mut_ptr().add(i));
        }
    }
    if whole < n {
        let (mut a, mut b) = ([1.0; LANES], [1.0; LANES]);
        a[..n - whole].copy_from_slice(&x[whole..n]);
        b[..n - whole].copy_from_slice(&y[whole..n]);
        let r = f(V::from_array(a), V::from_array(b)).to_array();
        out[whole..n].copy_from_slice(&r[..n - whole]);
    }
}

macro_rules! unary {
    ($($name:ident, $pointer:ident;)+) => {$(
        crate::element_fn! {
            #[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), ") of every element.")]
            pub fn $name, $pointer = <V>(x: &[f64], out: &mut [f64]) {
                map1::<V>(x, out, #[inline(always)] |x| super::$name(x))
            }
        }
    )+};
}

macro_rules! binary {
    ($($name:ident, $pointer:ident;)+) => {$(
        crate::element_fn! {
            #[doc = concat!("[`", stringify!($name), "`](super::", stringify!($name), ") of every pair.")]
            pub fn $name, $pointer = <V>(x: &[f64], y: &[f64], out: &mut [f64]) {
                map2::<V>(x, y, out, #[inline(always)] |x, y| super::$name(x, y))
            }
        }
    )+};
}

unary! {
    exp, exp_fn; exp_of_negative, exp_of_negative_fn; exp2, exp2_fn; expm1, expm1_fn;
    log, log_fn; log2, log2_fn; log10, log10_fn; log1p, log1p_fn; log1m, log1m_fn;
    sin, sin_fn; cos, cos_fn; tan, tan_fn; asin, asin_fn; acos, acos_fn; atan, atan_fn;
    sinh, sinh_fn; cosh, cosh_fn; tanh, tanh_fn; asinh, asinh_fn; acosh, acosh_fn; atanh, atanh_fn;
    cbrt, cbrt_fn;
    inv_logit, inv_logit_fn; logit, logit_fn; log1p_exp, log1p_exp_fn; log1m_exp, log1m_exp_fn;
    log_inv_logit, log_inv_logit_fn; log1m_inv_logit, log1m_inv_logit_fn;
    erf, erf_fn; erfc, erfc_fn; phi, phi_fn; log_phi, log_phi_fn; inv_phi, inv_phi_fn;
    lgamma, lgamma_fn; digamma, digamma_fn; trigamma, trigamma_fn;
}

binary! {
    pow, pow_fn; atan2, atan2_fn; hypot, hypot_fn; lbeta, lbeta_fn;
    lgamma_step, lgamma_step_fn; digamma_step, digamma_step_fn; trigamma_step, trigamma_step_fn;
}
