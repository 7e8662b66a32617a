//! Numbers with their derivatives with respect to two parameters, up to second order. To differentiate a function with
//! respect to its shape parameters, the code evaluates its series or continued fraction with such numbers.

use super::incomplete::{HUGE, LARGE, log1p_minus, stirling};
use super::{digamma, lbeta, lgamma, log1m_exp, log1p_exp, trigamma};
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI};
use std::ops::{Add, Div, Mul, Neg, Sub};

/// A number with its derivatives with respect to two parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jet {
    /// The value.
    pub value: f64,
    /// The derivatives with respect to the first and the second parameter.
    pub first: [f64; 2],
    /// The second derivatives: first twice with respect to the first parameter, then with respect to both parameters,
    /// then twice with respect to the second parameter.
    pub second: [f64; 3],
}

impl Jet {
    /// Creates a number that depends on neither parameter.
    pub const fn constant(value: f64) -> Self {
        Self {
            value,
            first: [0.0; 2],
            second: [0.0; 3],
        }
    }

    fn parameter(value: f64, which: usize) -> Self {
        let mut jet = Self::constant(value);
        jet.first[which] = 1.0;
        jet
    }

    fn chain(self, value: f64, slope: f64, curvature: f64) -> Self {
        let [a, b] = self.first;
        let [aa, ab, bb] = self.second;
        Self {
            value,
            first: [slope * a, slope * b],
            second: [
                slope * aa + curvature * a * a,
                slope * ab + curvature * a * b,
                slope * bb + curvature * b * b,
            ],
        }
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            value: f(self.value),
            first: self.first.map(&f),
            second: self.second.map(&f),
        }
    }

    fn zip(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            value: f(self.value, other.value),
            first: std::array::from_fn(|i| f(self.first[i], other.first[i])),
            second: std::array::from_fn(|i| f(self.second[i], other.second[i])),
        }
    }

    fn ln(self) -> Self {
        let r = 1.0 / self.value;
        self.chain(libm::log(self.value), r, -r * r)
    }

    fn recip(self) -> Self {
        let r = 1.0 / self.value;
        self.chain(r, -r * r, 2.0 * r * r * r)
    }

    fn lgamma(self) -> Self {
        let x = self.value;
        self.chain(lgamma(x), digamma(x), trigamma(x))
    }

    fn exp(self) -> Self {
        let e = libm::exp(self.value);
        self.chain(e, e, e)
    }

    fn log1m_exp(self) -> Self {
        // e^x / (1 - e^x)
        let odds = 1.0 / libm::expm1(-self.value);
        self.chain(log1m_exp(self.value), -odds, -odds * (1.0 + odds))
    }

    fn with_value(self, value: f64) -> Self {
        Self { value, ..self }
    }

    fn nonzero(self) -> Self {
        if self.value == 0.0 {
            self.with_value(1e-300)
        } else {
            self
        }
    }

    /// Returns the logarithms of both tails for a value at one of its bounds, where all derivatives are 0.
    fn bounds(lower: bool) -> (Self, Self) {
        let (none, all) = (Self::constant(f64::NEG_INFINITY), Self::constant(0.0));
        if lower { (none, all) } else { (all, none) }
    }

    fn nan() -> Self {
        Self::constant(f64::NAN).map(|_| f64::NAN)
    }
}

impl Neg for Jet {
    type Output = Self;
    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}

impl Add for Jet {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }
}

impl Sub for Jet {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }
}

impl Mul for Jet {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (x, y) = (self, other);
        Self {
            value: x.value * y.value,
            first: std::array::from_fn(|i| x.value * y.first[i] + x.first[i] * y.value),
            second: [
                x.value * y.second[0] + 2.0 * x.first[0] * y.first[0] + x.second[0] * y.value,
                x.value * y.second[1]
                    + x.first[0] * y.first[1]
                    + x.first[1] * y.first[0]
                    + x.second[1] * y.value,
                x.value * y.second[2] + 2.0 * x.first[1] * y.first[1] + x.second[2] * y.value,
            ],
        }
    }
}

impl Div for Jet {
    type Output = Self;
    #[expect(
        clippy::suspicious_arithmetic_impl,
        reason = "a quotient is the product with the reciprocal, whose derivatives are known"
    )]
    fn div(self, other: Self) -> Self {
        self * other.recip()
    }
}

impl Add<f64> for Jet {
    type Output = Self;
    fn add(self, other: f64) -> Self {
        self.with_value(self.value + other)
    }
}

impl Mul<f64> for Jet {
    type Output = Self;
    fn mul(self, other: f64) -> Self {
        self.map(|x| x * other)
    }
}

/// The largest shape for which the continued fraction is used around the median. Around the median, the number of steps
/// grows with the square root of the shape.
const LARGEST_SHAPE: f64 = 1e12;

/// Returns the largest number of steps for parameters of size `a`. Far from the median, a series or continued fraction
/// converges in fewer steps. If it needs more steps than this limit, it does not converge.
fn most_steps(a: f64) -> usize {
    let around_the_median = if a <= LARGEST_SHAPE {
        40.0 * a.sqrt()
    } else {
        0.0
    };
    20_000 + around_the_median as usize
}

/// A stopping rule that takes some further steps after the value has converged, because the derivatives converge later
/// than the value. Their errors are larger by a power of the number of steps.
#[derive(Default)]
struct Convergence {
    steps: usize,
    last: Option<usize>,
}

impl Convergence {
    fn reached(&mut self, converged: bool) -> bool {
        self.steps += 1;
        if converged && self.last.is_none() {
            self.last = Some(self.steps + self.steps / 2 + 10);
        }
        self.last.is_some_and(|last| self.steps >= last)
    }
}

/// Evaluates a continued fraction by Lentz's method. `start` contains the first factors. `step` returns the numerator
/// and the denominator of each further factor.
fn lentz(start: [Jet; 3], most: usize, step: impl Fn(f64) -> (Jet, Jet)) -> Jet {
    let [mut h, mut c, mut d] = start;
    let mut done = Convergence::default();
    for i in 1..most {
        let (numerator, b) = step(i as f64);
        d = (numerator * d + b).nonzero().recip();
        c = (b + numerator / c).nonzero();
        let factor = d * c;
        h = h * factor;
        // A numerator may vanish by chance, although its derivative does not.
        let still = |i: usize| factor.first[i].abs() <= 8e-16 * (c.first[i] * d.value).abs();
        let converged = (factor.value - 1.0).abs() <= 3e-16 && still(0) && still(1);
        if done.reached(converged) || factor.value.is_nan() {
            break;
        }
    }
    h
}

/// Returns the logarithms of the lower and the upper regularised incomplete gamma functions for `a > 0` and `x >= 0`,
/// with derivatives with respect to `a`.
pub fn log_gamma_p_q(a: f64, x: f64) -> (Jet, Jet) {
    let both_infinite = a.is_infinite() && x.is_infinite();
    if a.is_nan() || x.is_nan() || a <= 0.0 || x < 0.0 || both_infinite {
        return (Jet::nan(), Jet::nan());
    }
    if a > HUGE && ((x - a) / a).abs() < TRANSITION {
        return transition(a, x);
    }
    // For larger x, the terms of the continued fraction overflow.
    if x == 0.0 || x > 1e300 || a.is_infinite() {
        return Jet::bounds(x < a);
    }
    let log_x = libm::log(x);
    let shape = Jet::parameter(a, 0);
    // This is the logarithm of x^a e^-x / Gamma(a).
    let front = if a < LARGE {
        a * log_x - x - lgamma(a)
    } else {
        a * log1p_minus((x - a) / a) - stirling(a) + 0.5 * libm::log(a / (2.0 * PI))
    };
    let front = Jet {
        value: front,
        first: [log_x - digamma(a), 0.0],
        second: [-trigamma(a), 0.0, 0.0],
    };
    let most = most_steps(a);
    if x < a + 1.0 {
        let mut n = shape;
        let mut term = shape.recip();
        let mut sum = term;
        let mut done = Convergence::default();
        for _ in 0..most {
            n = n + 1.0;
            term = term * (n.recip() * x);
            sum = sum + term;
            if done.reached(term.value <= sum.value * 1e-17) {
                break;
            }
        }
        let lower = capped(front + sum.ln());
        return (lower, lower.log1m_exp());
    }
    let b = -shape + (x + 1.0);
    let start = b.recip();
    let fraction = lentz([start, Jet::constant(1e300), start], most, |i| {
        ((shape + -i) * i, b + 2.0 * i)
    });
    let upper = capped(front + fraction.ln());
    (upper.log1m_exp(), upper)
}

/// The largest |x / a - 1| for which large shapes use the expansion. Outside this range, the series and the continued
/// fraction converge within hundreds of steps.
const TRANSITION: f64 = 0.25;

/// The coefficients of x / a = 1 + η + η²/3 + …, where η²/2 = x / a - 1 - log(x / a).
const RATIO: [f64; 15] = [
    1.0,
    1.0,
    1.0 / 3.0,
    1.0 / 36.0,
    -1.0 / 270.0,
    1.0 / 4320.0,
    1.0 / 17010.0,
    -2.553_644_914_756_026e-5,
    4.899_078_973_153_047e-6,
    -2.428_276_122_977_769e-7,
    -1.854_062_210_715_16e-7,
    7.542_464_855_411_896e-8,
    -1.472_162_728_068_84e-8,
    5.159_887_341_078_076e-10,
    7.329_864_131_600_22e-10,
];

/// The coefficients of Temme's series in η for the terms 1 and 1 / a.
const BESIDE: [f64; 14] = [
    -1.0 / 3.0,
    1.0 / 12.0,
    -2.0 / 135.0,
    1.0 / 864.0,
    1.0 / 2835.0,
    -1.787_551_440_329_218e-4,
    3.919_263_178_522_438e-5,
    -2.185_448_510_679_992e-6,
    -1.854_062_210_715_16e-6,
    8.296_711_340_953_087e-7,
    -1.766_595_273_682_607_8e-7,
    6.707_853_543_401_498e-9,
    1.026_180_978_424_030_9e-8,
    -4.382_036_018_453_353e-9,
];
const BESIDE_RECIPROCAL: [f64; 5] = [
    -1.0 / 540.0,
    -1.0 / 288.0,
    1.0 / 378.0,
    -77.0 / 77_760.0,
    1.0 / 4860.0,
];

fn polynomial(coefficients: &[f64], x: Jet) -> Jet {
    let terms = coefficients.iter().rev();
    terms.fold(Jet::constant(0.0), |sum, &c| sum * x + c)
}

/// Computes both tails for large `a`, with `x` near `a`, by Temme's uniform expansion (1979). The tail on the side of
/// `x` is `e^-y (erfcx(±root) / 2 ± rest)`.
fn transition(a: f64, x: f64) -> (Jet, Jet) {
    let t = (x - a) / a;
    let square = -log1p_minus(t);
    let y = Jet {
        value: a * square,
        first: [-libm::log1p(t), 0.0],
        second: [1.0 / a, 0.0, 0.0],
    };
    // η is computed from the ratio, starting from the inverse of its series.
    let eta = (2.0 * square).sqrt().copysign(t);
    let ratio = polynomial(&RATIO, Jet::parameter(eta, 1));
    let slope = 1.0 / ratio.first[1];
    let by_a = Jet {
        value: t,
        first: [-x / a / a, 0.0],
        second: [2.0 * x / a / a / a, 0.0, 0.0],
    };
    let eta = by_a.chain(eta, slope, -ratio.second[2] * slope * slope * slope);
    let shape = Jet::parameter(a, 0);
    let root_of_shape = {
        let root = a.sqrt();
        shape.chain(root, 0.5 / root, -0.25 / root / a)
    };
    let beside = polynomial(&BESIDE, eta) + polynomial(&BESIDE_RECIPROCAL, eta) / shape;
    let rest = beside / root_of_shape * (1.0 / (2.0 * PI).sqrt());
    let root = eta * root_of_shape * FRAC_1_SQRT_2;
    let tail = if t < 0.0 {
        half_erfcx(-root) - rest
    } else {
        half_erfcx(root) + rest
    };
    let near = capped(tail.ln() - y);
    let far = near.log1m_exp();
    if t < 0.0 { (near, far) } else { (far, near) }
}

/// Returns e^(r²) erfc(r) / 2 for `r >= 0`.
fn half_erfcx(r: Jet) -> Jet {
    const FAR: f64 = 6.5;
    let x = r.value;
    if x < FAR {
        let value = 0.5 * libm::erfc(x) * libm::exp(x * x);
        let slope = 2.0 * x * value - 1.0 / PI.sqrt();
        return r.chain(value, slope, 2.0 * (value + x * slope));
    }
    let u = r.recip();
    let square = u * u * 0.5;
    let (mut term, mut sum) = (u, u);
    for k in 0..30 {
        term = -(term * square) * f64::from(2 * k + 1);
        sum = sum + term;
    }
    sum * (0.5 / PI.sqrt())
}

/// Sets a log probability to 0 if rounding errors have lifted it above 0.
fn capped(x: Jet) -> Jet {
    if x.value > 0.0 { x.with_value(0.0) } else { x }
}

/// Returns the logarithm of the regularised incomplete beta function `I_x(a, b)` at `x = inv_logit(t)`, with
/// derivatives with respect to `a` and `b`. To compute the upper tail, exchange `a` and `b` and negate `t`.
pub fn log_inc_beta(a: f64, b: f64, t: f64) -> Jet {
    let legal = a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite() && !t.is_nan();
    if !legal {
        return Jet::nan();
    }
    if t.is_infinite() {
        return Jet::bounds(t < 0.0).0;
    }
    let (log_x, log_y) = (-log1p_exp(-t), -log1p_exp(t));
    let (x, y) = (libm::exp(log_x), libm::exp(log_y));
    let (p, q) = (Jet::parameter(a, 0), Jet::parameter(b, 1));
    let at = [log_x, log_y, x, y].map(Jet::constant);
    log_beta_tail(p, q, at)
}

/// Returns the logarithm of `I_x(a, b)`. `at` contains log x, log y, x and y, where y = 1 - x.
fn log_beta_tail(a: Jet, b: Jet, at: [Jet; 4]) -> Jet {
    let [log_x, log_y, x, y] = at;
    let front = a * log_x + b * log_y + (a + b).lgamma() - a.lgamma() - b.lgamma();
    let front = front.with_value(log_beta_front(
        [a.value, b.value],
        at.map(|part| part.value),
    ));
    // This continued fraction converges for x below the mean, and the other fraction converges for x above the mean.
    if x.value <= (a.value + 1.0) / (a.value + b.value + 2.0) {
        capped(front - a.ln() + beta_fraction(a, b, x).ln())
    } else {
        capped(front - b.ln() + beta_fraction(b, a, y).ln()).log1m_exp()
    }
}

fn log_beta_front([a, b]: [f64; 2], [log_x, log_y, x, y]: [f64; 4]) -> f64 {
    if a < LARGE || b < LARGE {
        return a * log_x + b * log_y - lbeta(a, b);
    }
    // Around the maximum, the linear terms cancel exactly.
    let distance = x * b - y * a;
    let sum = a + b;
    let series = stirling(sum) - stirling(a) - stirling(b);
    let exponent = a * log1p_minus(distance / a) + b * log1p_minus(-distance / b);
    exponent + series + 0.5 * libm::log(a / sum * b / (2.0 * PI))
}

fn beta_fraction(a: Jet, b: Jet, x: Jet) -> Jet {
    let one = Jet::constant(1.0);
    let sum = a + b;
    let start = (one - sum * x / (a + 1.0)).nonzero().recip();
    let most = most_steps(sum.value);
    lentz([start, one, start], most, |k| {
        // The numerators have two forms, for even and for odd indices.
        let m = (0.5 * k).floor();
        let even = k % 2.0 == 1.0;
        let m = if even { m + 1.0 } else { m };
        let numerator = if even {
            (b + -m) * m * x / ((a + (2.0 * m - 1.0)) * (a + 2.0 * m))
        } else {
            -((a + m) * (sum + m) * x / ((a + 2.0 * m) * (a + (2.0 * m + 1.0))))
        };
        (numerator, one)
    })
}

/// Returns the logarithm of the distribution function of Student's t distribution at `z`, with derivatives with respect
/// to the degrees of freedom.
pub fn log_student_cdf(nu: f64, z: f64) -> Jet {
    if nu.is_nan() || z.is_nan() || nu <= 0.0 || nu.is_infinite() {
        return Jet::nan();
    }
    if z.is_infinite() {
        return Jet::bounds(z < 0.0).0;
    }
    if z == 0.0 {
        return Jet::constant(-LN_2);
    }
    let freedom = Jet::parameter(nu, 0);
    // At ν / (ν + z²), the incomplete beta function is twice the smaller tail.
    let t = freedom.ln() + -2.0 * libm::log(z.abs());
    let (down, up) = (libm::exp(-t.value), libm::exp(t.value));
    let (x, y) = (1.0 / (1.0 + down), 1.0 / (1.0 + up));
    let log_x = t.chain(-log1p_exp(-t.value), y, -x * y);
    let log_y = t.chain(-log1p_exp(t.value), -x, -x * y);
    let at = [log_x, log_y, log_x.exp(), log_y.exp()];
    let far = log_beta_tail(freedom * 0.5, Jet::constant(0.5), at) + -LN_2;
    if z < 0.0 { far } else { far.log1m_exp() }
}

/// Returns `log I_v(x)` for `v > -1` and `x >= 0`, with derivatives with respect to the order `v`. I is the modified
/// Bessel function of the first kind.
pub fn log_bessel_i(v: f64, x: f64) -> Jet {
    let value = super::log_modified_bessel_first_kind(v, x);
    if value.is_nan() {
        return Jet::nan();
    }
    if !value.is_finite() {
        return Jet::constant(value);
    }
    let order = Jet::parameter(v, 0);
    let jet = if x > 50.0 && x > v * v {
        hankel(order, x).ln()
    } else if x > 1e5 {
        debye(order, x)
    } else {
        let (sum, scale) = bessel_series(order, x);
        order * libm::log(0.5 * x) - (order + 1.0).lgamma() + (sum.ln() + scale)
    };
    jet.with_value(value)
}

/// Computes `I_v(x) e^-x sqrt(2 pi x)` for large x by Hankel's expansion.
fn hankel(v: Jet, x: f64) -> Jet {
    let square = v * v * 4.0;
    let mut term = Jet::constant(1.0);
    let mut sum = term;
    for k in 1..100 {
        let (k, odd) = (f64::from(k), f64::from(2 * k - 1));
        term = -(term * (square + -odd * odd)) * (1.0 / (k * 8.0 * x));
        sum = sum + term;
        let size = |jet: Jet| jet.value.abs() + jet.second[0].abs();
        if size(term) <= size(sum) * 1e-17 {
            break;
        }
    }
    sum
}

/// Sums the power series of `I_v(x) (x/2)^-v Γ(v + 1)`. Returns the scaled sum and the logarithm of its scale.
fn bessel_series(v: Jet, x: f64) -> (Jet, f64) {
    let z = 0.25 * x * x;
    let mut term = Jet::constant(1.0);
    let (mut sum, mut scale, mut k) = (term, 0.0, 1.0);
    let mut done = Convergence::default();
    while k < 1e7 {
        term = term * (z / k) / (v + k);
        sum = sum + term;
        if done.reached(term.value <= sum.value * 1e-17) {
            break;
        }
        if sum.value > 1e200 {
            sum = sum * 1e-200;
            term = term * 1e-200;
            scale += 200.0 * std::f64::consts::LN_10;
        }
        k += 1.0;
    }
    (sum, scale)
}

/// Computes Debye's uniform expansion of `log I_v(x)` up to a constant. Callers use only the derivatives.
fn debye(v: Jet, x: f64) -> Jet {
    let z = v.recip() * x;
    let square = z * z + 1.0;
    let root = (square.ln() * 0.5).exp();
    let t = root.recip();
    let s = t * t;
    let first = t * (s * -5.0 + 3.0) * (1.0 / 24.0) / v;
    let eta = root + (z / (root + 1.0)).ln();
    v * eta - (v * root).ln() * 0.5 + (first + 1.0).ln()
}
