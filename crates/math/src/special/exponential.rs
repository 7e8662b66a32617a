//! Exponentials, logarithms and links.

use std::f64::consts::{E, FRAC_1_SQRT_2, LN_2};

/// Returns the logistic function `1 / (1 + e^-x)`.
pub fn inv_logit(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    (if x >= 0.0 { 1.0 } else { e }) / (1.0 + e)
}

/// Returns `log(p / (1 - p))`, or NaN for `p` outside `[0, 1]`.
pub fn logit(p: f64) -> f64 {
    super::one(crate::vmath::logit, p)
}

/// Returns `log(1 + e^x)` without overflow.
pub fn log1p_exp(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// Returns `log(1 - e^x)` for `x <= 0`, and NaN for larger x.
pub fn log1m_exp(x: f64) -> f64 {
    if x > -LN_2 {
        libm::log(-libm::expm1(x))
    } else {
        libm::log1p(-libm::exp(x))
    }
}

/// Returns `log(inv_logit(x))`.
pub fn log_inv_logit(x: f64) -> f64 {
    if x.is_nan() { x } else { -log1p_exp(-x) }
}

/// Returns `log(1 - inv_logit(x))`.
pub fn log1m_inv_logit(x: f64) -> f64 {
    if x.is_nan() { x } else { -log1p_exp(x) }
}

/// Returns `log x` for a finite `x >= 1` as a sum of two numbers: the number nearest to the logarithm, and the
/// remainder. Together they have 30 digits.
pub fn log_parts(x: f64) -> (f64, f64) {
    const LN_2_REST: f64 = 2.319_046_813_846_299_6e-17;
    // Write x = 2^k m with m near 1. The series of log m = 2 atanh((m - 1) / (m + 1)) then converges fast.
    let k = (x * FRAC_1_SQRT_2).log2().ceil();
    let m = x / k.exp2();
    let (above, below) = two_sum(m, 1.0);
    let high = (m - 1.0) / above;
    let s = (high, (high.mul_add(-above, m - 1.0) - high * below) / above);
    let z = product(s, s);
    let mut sum = (0.0, 0.0);
    for i in (0..20).rev() {
        let odd = f64::from(2 * i + 1);
        let term = 1.0 / odd;
        let rest = term.mul_add(-odd, 1.0) / odd;
        let scaled = product(sum, z);
        let (high, low) = two_sum(term, scaled.0);
        sum = two_sum(high, low + (rest + scaled.1));
    }
    let (high, low) = product(s, (2.0 * sum.0, 2.0 * sum.1));
    let shift = k * LN_2;
    let (total, rest) = two_sum(shift, high);
    two_sum(
        total,
        rest + (low + (k.mul_add(LN_2, -shift) + k * LN_2_REST)),
    )
}

fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

fn product(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    let high = a.0 * b.0;
    (high, a.0.mul_add(b.0, -high) + (a.0 * b.1 + a.1 * b.0))
}

/// Returns `log(e^x - e^y)` for `x >= y`, and NaN for `x < y`.
pub fn log_diff_exp(x: f64, y: f64) -> f64 {
    if y == f64::NEG_INFINITY || x == f64::INFINITY && y < x {
        return x;
    }
    if x == y && x.is_finite() {
        return f64::NEG_INFINITY;
    }
    x + log1m_exp(y - x)
}

/// Returns `log(e^x + e^y)`.
pub fn log_sum_exp(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let top = x.max(y);
    if top.is_infinite() {
        top
    } else {
        top + libm::log1p(libm::exp(x.min(y) - top))
    }
}

/// Returns the logarithm of the sum of `e^x` over the elements of a slice. The result is -inf for an empty slice, and
/// NaN if any element is NaN.
pub fn log_sum_exp_slice(x: &[f64]) -> f64 {
    if x.iter().any(|x| x.is_nan()) {
        return f64::NAN;
    }
    let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top.is_infinite() {
        return top;
    }
    let terms: Vec<f64> = x.iter().map(|&x| libm::exp(x - top)).collect();
    top + libm::log(crate::sum::pairwise_sum(&terms))
}

/// Returns the inverse of the complementary log-log link, `1 - exp(-e^x)`.
pub fn inv_cloglog(x: f64) -> f64 {
    -libm::expm1(-libm::exp(x))
}

/// Returns the principal branch of Lambert's W function for `x >= -1/e`: the solution `w >= -1` of `w e^w = x`. The
/// result is NaN for smaller x.
pub fn lambert_w0(x: f64) -> f64 {
    if x == 0.0 || x == f64::INFINITY {
        return x;
    }
    let p = branch_distance(x);
    if p < BRANCH_REACH {
        return branch_series(p);
    }
    // The initial value is from Winitzki (2003).
    let l = libm::log1p(x);
    fritsch(x, l * (1.0 - libm::log1p(l) / (2.0 + l)))
}

/// Returns the lower branch of Lambert's W function for `-1/e <= x <= 0`: the solution `w <= -1` of `w e^w = x`. The
/// result is NaN for other x.
pub fn lambert_wm1(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    let p = branch_distance(x);
    if p < BRANCH_REACH {
        return branch_series(-p);
    }
    let l = libm::log(-x);
    let ll = libm::log(-l);
    // Far from the branch point, the initial value is the expansion for x -> 0 (Corless et al. 1996, equation 4.19).
    // Near the branch point, the first terms of the series give the initial value.
    let near = -1.0 - p * (1.0 + p * (1.0 / 3.0 + p * (11.0 / 72.0)));
    fritsch(x, if p < 1.0 { near } else { l - ll + ll / l })
}

/// Returns `sqrt(2 (e x + 1))`, or NaN for `x < -1/e`. Near its branch point, Lambert's W function is a power series in
/// this distance.
fn branch_distance(x: f64) -> f64 {
    const E_REST: f64 = 1.4456468917292502e-16;
    let above = libm::fma(E, x, 1.0) + E_REST * x;
    // The floating-point number nearest to -1/e differs from it by a rounding error.
    let above = if above < 0.0 && above > -f64::EPSILON {
        0.0
    } else {
        above
    };
    (2.0 * above).sqrt()
}

/// The series is used for distances below this value, where it is as precise as the iteration. At larger distances, the
/// iteration has full precision.
const BRANCH_REACH: f64 = 0.25;

/// Returns Lambert's W function near its branch point by a series. Negative distances select the lower branch. The
/// source is Corless, Gonnet, Hare, Jeffrey and Knuth (1996), equation 4.22, with coefficients from the recurrences
/// 4.23 and 4.24.
fn branch_series(p: f64) -> f64 {
    const TERMS: [f64; 24] = [
        -1.0,
        1.0,
        -0.3333333333333333,
        0.1527777777777778,
        -0.07962962962962963,
        0.044502314814814814,
        -0.02598471487360376,
        0.01563563253233392,
        -0.009616892024299432,
        0.006014543252956118,
        -0.0038112980348919993,
        0.0024408779911439826,
        -0.0015769303446867841,
        0.0010262633205076071,
        -0.0006720616311561362,
        0.0004424730618146209,
        -0.00029267722472962746,
        0.00019438727605453933,
        -0.00012957426685274883,
        8.665035805208128e-05,
        -5.811360750441382e-05,
        3.907668486743905e-05,
        -2.63380647472311e-05,
        1.7790345805079586e-05,
    ];
    TERMS.iter().rev().fold(0.0, |sum, term| sum * p + term)
}

/// Improves an approximation `w` of Lambert's W function by the fourth-order step of Fritsch, Shafer and Crowley
/// (1973).
fn fritsch(x: f64, mut w: f64) -> f64 {
    for _ in 0..3 {
        let z = libm::log(x / w) - w;
        let q = 2.0 * (1.0 + w) * (1.0 + w + 2.0 / 3.0 * z);
        w += w * (z / (1.0 + w)) * ((q - z) / (q - 2.0 * z));
    }
    w
}
