//! Floating-point numbers of single and double length, with a common interface for the code that sums them.

use std::ops::{Add, Div, Mul, Sub};

pub(super) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A term is negligible if its ratio to the sum is below this value.
    const EPSILON: f64;
    fn of(x: f64) -> Self;
    fn rounded(self) -> f64;
}

impl Number for f64 {
    const EPSILON: f64 = 1e-17;
    fn of(x: f64) -> Self {
        x
    }
    fn rounded(self) -> f64 {
        self
    }
}

/// The unevaluated sum of two numbers, where the second is smaller than the last digit of the first (Dekker 1971, "A
/// floating-point technique for extending the available precision").
#[derive(Clone, Copy)]
pub(super) struct Twofold {
    high: f64,
    low: f64,
}

fn sum(x: f64, y: f64) -> (f64, f64) {
    let s = x + y;
    let t = s - x;
    (s, (x - (s - t)) + (y - t))
}

fn halves(x: f64) -> (f64, f64) {
    let c = 134_217_729.0 * x;
    let high = c - (c - x);
    (high, x - high)
}

fn product(x: f64, y: f64) -> (f64, f64) {
    let p = x * y;
    let ((a, b), (c, d)) = (halves(x), halves(y));
    (p, ((a * c - p) + a * d + b * c) + b * d)
}

impl Twofold {
    fn new((high, low): (f64, f64)) -> Self {
        let (high, low) = sum(high, low);
        Self { high, low }
    }
}

impl Number for Twofold {
    const EPSILON: f64 = 1e-33;
    fn of(x: f64) -> Self {
        Self { high: x, low: 0.0 }
    }
    fn rounded(self) -> f64 {
        self.high
    }
}

impl Add for Twofold {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let (s, e) = sum(self.high, other.high);
        let (t, f) = sum(self.low, other.low);
        let first = Self::new((s, e + t));
        Self::new((first.high, first.low + f))
    }
}

impl Sub for Twofold {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + Self {
            high: -other.high,
            low: -other.low,
        }
    }
}

impl Mul for Twofold {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let (p, e) = product(self.high, other.high);
        Self::new((p, e + (self.high * other.low + self.low * other.high)))
    }
}

impl Div for Twofold {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let q = self.high / other.high;
        let rest = self - Self::of(q) * other;
        let r = rest.high / other.high;
        let rest = rest - Self::of(r) * other;
        let first = Self::new((q, r));
        Self::new((first.high, first.low + rest.high / other.high))
    }
}
