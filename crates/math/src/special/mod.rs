//! Scalar special functions. Interpreters call them, and vector functions use them for rare arguments.
//!
//! If an argument is outside the domain of a function, the result is NaN. If a vector function exists, the scalar
//! function uses the same algorithm.

mod bessel;
mod exponential;
mod gamma;
mod hypergeometric;
mod incomplete;
mod jet;
mod normal;
mod tails;
mod wiener;

pub use bessel::{
    bessel_first_kind, bessel_second_kind, log_modified_bessel_first_kind,
    modified_bessel_first_kind, modified_bessel_second_kind,
};
pub use exponential::{
    inv_cloglog, inv_logit, lambert_w0, lambert_wm1, log_diff_exp, log_inv_logit, log_parts,
    log_sum_exp, log_sum_exp_slice, log1m_exp, log1m_inv_logit, log1p_exp, logit,
};
pub use gamma::{
    binomial_coefficient_log, digamma, digamma_step, falling_factorial, lbeta, lgamma, lgamma_step,
    lmgamma, log_falling_factorial, log_poisson_peak, log_rising_factorial, polygamma,
    rising_factorial, tgamma, trigamma, trigamma_step,
};
pub use hypergeometric::{Hypergeometric, hypergeometric};
pub use incomplete::{gamma_p, gamma_q, inc_beta, inv_inc_beta};
pub use jet::{Jet, log_bessel_i, log_gamma_p_q, log_inc_beta, log_student_cdf};
pub use normal::{erf, erfc, inv_erfc, inv_phi, log_phi, log_phi_scaled, owens_t, phi, phi_approx};
pub use tails::{gauss, log_skew_normal_cdf, von_mises_area};
pub use wiener::{log_wiener, wiener_ratio};

use crate::simd::F64x8;
use crate::simd::lanes::ScalarLanes;

fn one(f: impl Fn(ScalarLanes) -> ScalarLanes, x: f64) -> f64 {
    f(ScalarLanes::splat(x)).to_array()[0]
}

fn one_pair(f: impl Fn(ScalarLanes, ScalarLanes) -> ScalarLanes, x: f64, y: f64) -> f64 {
    f(ScalarLanes::splat(x), ScalarLanes::splat(y)).to_array()[0]
}
