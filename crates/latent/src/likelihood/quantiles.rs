//! Distribution functions of observations and their inverses, either for a known linear predictor or averaged over the
//! predictor's posterior.

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::special::{gauss, inv_phi, phi};

use super::{Likelihood, Response, Size};

/// Expectations integrate over this many standard deviations on either side of a linear predictor's mean. A mass of
/// 4e-10 lies beyond.
const REACH: f64 = 6.25;

/// Number of cells into which the search for the rise of a distribution function divides its range.
const CELLS: usize = 16;

/// A distribution function within this distance of 0 or 1 counts as constant.
const LEVEL: f64 = 1e-11;

/// The search halves the cells in which the rise begins and ends this many times.
const HALVINGS: usize = 14;

/// Number of panels, of ten points each, into which the rise is divided.
const PANELS: usize = 6;

const CLOSE: f64 = 1e-9;

/// The distribution of an observation whose linear predictor is normal. It is the posterior predictive distribution.
#[derive(Clone, Debug)]
pub struct Predictive {
    likelihood: Likelihood,
    size: f64,
    mean: f64,
    sd: f64,
}

impl Likelihood {
    /// Computes P(Y ≤ y | η) for an observation of this size. The result is NaN for binary responses and categories.
    /// Their probability is the [`mean`](Self::mean).
    pub fn distribution(self, eta: f64, y: f64, size: f64) -> f64 {
        let whole = self.is_whole();
        if self.has_quantiles() && y < 0.0 && self.response() != Response::Number {
            return 0.0;
        }
        let y = if whole { y.floor() } else { y };
        (self.row.distribution)(&self.values, eta, y, size)
    }

    fn is_whole(self) -> bool {
        let whole = [Response::Count, Response::Trials, Response::Level];
        whole.contains(&self.response())
    }

    /// Whether quantiles of an observation contain more information than its mean. This is true for all responses
    /// except binary responses and categories.
    pub fn has_quantiles(self) -> bool {
        !matches!(self.response(), Response::Binary | Response::Category)
    }
}

impl Predictive {
    /// Creates the distribution of an observation of this size with η ~ N(mean, sd²). A standard deviation of 0 means
    /// that η is known.
    pub fn new(likelihood: Likelihood, mean: f64, sd: f64, size: f64) -> Self {
        Self {
            likelihood,
            size,
            mean,
            sd,
        }
    }

    fn normal(&self) -> Option<(f64, f64)> {
        match (self.likelihood.name(), self.likelihood.values().as_slice()) {
            ("gaussian", [variance]) => Some((self.mean, (self.sd * self.sd + variance).sqrt())),
            _ if self.likelihood.sized_by() == Size::Sd => {
                Some((self.mean, self.sd.hypot(self.size)))
            }
            _ => None,
        }
    }

    /// Computes P(Y ≤ y). The result is NaN for binary responses and categories.
    pub fn distribution(&self, y: f64) -> f64 {
        if let Some((mean, sd)) = self.normal() {
            return phi((y - mean) / sd);
        }
        let at = |z: f64| {
            let eta = self.mean + self.sd * z;
            self.likelihood.distribution(eta, y, self.size)
        };
        if self.sd <= 0.0 || !self.likelihood.has_quantiles() {
            return at(0.0);
        }
        averaged(at)
    }

    /// Computes the least y with P(Y ≤ y) ≥ p, for 0 < p < 1. The result is NaN for binary responses and categories.
    ///
    /// The result is exact for counts. For real numbers the error is 1e-9 relative to the distance of the quantile from
    /// the middle of the distribution.
    pub fn quantile(&self, p: f64) -> f64 {
        if let Some((mean, sd)) = self.normal() {
            return mean + sd * inv_phi(p);
        }
        if !self.likelihood.has_quantiles() {
            return f64::NAN;
        }
        match self.likelihood.is_whole() {
            true => self.whole(p),
            false => self.between(p),
        }
    }

    fn whole(&self, p: f64) -> f64 {
        let enough = |y: f64| self.distribution(y) >= p;
        let most = match self.likelihood.response() {
            Response::Trials => self.size,
            Response::Level => self.likelihood.categories as f64 - 1.0,
            _ => 2f64.powi(52),
        };
        let (mut low, mut high) = (-1.0, 1.0f64.min(most));
        while high < most && !enough(high) {
            (low, high) = (high, (2.0 * high + 1.0).min(most));
        }
        while high - low > 1.0 {
            let middle = (0.5 * (low + high)).floor();
            match enough(middle) {
                true => high = middle,
                false => low = middle,
            }
        }
        high
    }

    /// Finds the quantile of a continuous response by bracketing and the Illinois algorithm, a secant method that
    /// halves the function value at an end that is kept twice.
    fn between(&self, p: f64) -> f64 {
        let excess = |y: f64| self.distribution(y) - p;
        let positive = self.likelihood.response() != Response::Number;
        // The first bracket matters little, because it doubles.
        let mean = self.likelihood.mean(self.mean, self.size).abs();
        let (centre, scale) = match positive {
            true => (0.0, mean),
            false => (self.mean, self.sd.max(1e-3 * mean).max(1e-6)),
        };
        if self.likelihood.response() == Response::NonNegative && excess(0.0) >= 0.0 {
            return 0.0;
        }
        let tiny = CLOSE * 1e-3 * scale;
        if positive && excess(tiny) > 0.0 {
            // Distributions with a pole at 0 may have most of their mass below this number.
            return logarithmic(excess, tiny);
        }
        let low = if positive { 0.0 } else { centre - scale };
        let (mut low, mut high) = (low, centre + scale);
        let mut width = scale;
        while excess(high) < 0.0 && width < f64::MAX / 4.0 {
            (low, high) = (high, high + width);
            width *= 2.0;
        }
        while !positive && excess(low) > 0.0 && width < f64::MAX / 4.0 {
            (low, high) = (low - width, low);
            width *= 2.0;
        }
        let (mut below, mut above) = (excess(low), excess(high));
        let mut side = 0;
        for _ in 0..200 {
            let secant = high - above * (high - low) / (above - below);
            let y = match secant > low && secant < high {
                true => secant,
                false => 0.5 * (low + high),
            };
            let value = excess(y);
            if value == 0.0 {
                return y;
            }
            if value > 0.0 {
                (high, above) = (y, value);
                below *= if side == 1 { 0.5 } else { 1.0 };
                side = 1;
            } else {
                (low, below) = (y, value);
                above *= if side == -1 { 0.5 } else { 1.0 };
                side = -1;
            }
            if high - low <= CLOSE * (y - centre).abs() + tiny {
                break;
            }
        }
        0.5 * (low + high)
    }
}

/// Finds the zero of an increasing function between 0 and `high` by bisection on the logarithm of the argument.
fn logarithmic(excess: impl Fn(f64) -> f64, high: f64) -> f64 {
    let (mut low, mut high) = (f64::MIN_POSITIVE.ln(), high.ln());
    while high - low > CLOSE {
        let middle = 0.5 * (low + high);
        match excess(middle.exp()) > 0.0 {
            true => high = middle,
            false => low = middle,
        }
    }
    (0.5 * (low + high)).exp()
}

/// Computes the expectation of a monotone function of a standard normal variable.
///
/// Where the function is constant, the integral is its value times a probability. Only the interval in which the
/// function rises or falls remains. This interval is short for large counts, and the function is smooth there.
fn averaged(f: impl Fn(f64) -> f64) -> f64 {
    let cell = 2.0 * REACH / CELLS as f64;
    let position = |k: usize| -REACH + cell * k as f64;
    let (low, high) = (f(-REACH), f(REACH));
    // A linear predictor far beyond all data has no distribution in double precision.
    if low.is_nan() || high.is_nan() {
        return f64::NAN;
    }
    let values: Vec<f64> = (0..=CELLS).map(|k| f(position(k))).collect();
    let level = |x: f64, end: f64| (x - end).abs() <= LEVEL;
    // The last position before which the function is constant, and the first position after which it is constant.
    let first = values.iter().take_while(|x| level(**x, low)).count() - 1;
    let last = CELLS + 1 - values.iter().rev().take_while(|x| level(**x, high)).count();
    if first >= last {
        return 0.5 * (low + high);
    }
    let edge = |mut inside: f64, mut outside: f64, end: f64| {
        for _ in 0..HALVINGS {
            let middle = 0.5 * (inside + outside);
            match level(f(middle), end) {
                true => outside = middle,
                false => inside = middle,
            }
        }
        outside
    };
    let (mut from, mut to) = (position(first), position(last));
    if last - first <= CELLS / 4 {
        from = edge(position(first + 1), from, low);
        to = edge(position(last - 1), to, high);
    }
    let weighted = |z: f64| (-0.5 * (z * z + LOG_TWO_PI)).exp() * f(z);
    let whole = phi(REACH) - phi(-REACH);
    let sum = low * (phi(from) - phi(-REACH)) + high * (phi(REACH) - phi(to));
    (sum + gauss(weighted, from, to, PANELS)) / whole
}
