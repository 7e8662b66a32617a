//! Forward-mode derivatives of scalar code. Nested dual numbers compute second derivatives.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// The operations that a model may apply to numbers.
pub trait Real:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// Creates a constant, whose derivatives are zero.
    fn constant(x: f64) -> Self;
    /// Returns the value without derivatives.
    fn primal(self) -> f64;
    /// Returns `eˣ`.
    fn exp(self) -> Self;
    /// Returns the natural logarithm.
    fn ln(self) -> Self;

    /// Returns `x²`.
    fn square(self) -> Self {
        self * self
    }
    /// Returns the product of the number and a constant.
    fn scale(self, c: f64) -> Self {
        self * Self::constant(c)
    }
    /// Returns `log(1 + eˣ)` without overflow.
    fn softplus(self) -> Self {
        let one = Self::constant(1.0);
        if self.primal() > 0.0 {
            self + (one + (-self).exp()).ln()
        } else {
            (one + self.exp()).ln()
        }
    }
    /// Returns the log density at `self` of a normal distribution with the given mean and log standard deviation,
    /// including all constants.
    fn normal_log_scale(self, mean: Self, log_sd: Self) -> Self {
        let standard = (self - mean) * (-log_sd).exp();
        Self::constant(-jensen_math::constants::HALF_LOG_TWO_PI)
            - log_sd
            - standard.square().scale(0.5)
    }
}

impl Real for f64 {
    fn constant(x: f64) -> Self {
        x
    }
    fn primal(self) -> f64 {
        self
    }
    fn exp(self) -> Self {
        f64::exp(self)
    }
    fn ln(self) -> Self {
        f64::ln(self)
    }
}

/// A number with one directional derivative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dual<T> {
    /// The value.
    pub value: T,
    /// The derivative.
    pub slope: T,
}

impl<T: Real> Add for Dual<T> {
    type Output = Self;
    fn add(self, b: Self) -> Self {
        Self {
            value: self.value + b.value,
            slope: self.slope + b.slope,
        }
    }
}

impl<T: Real> Sub for Dual<T> {
    type Output = Self;
    fn sub(self, b: Self) -> Self {
        Self {
            value: self.value - b.value,
            slope: self.slope - b.slope,
        }
    }
}

impl<T: Real> Mul for Dual<T> {
    type Output = Self;
    fn mul(self, b: Self) -> Self {
        Self {
            value: self.value * b.value,
            slope: self.slope * b.value + self.value * b.slope,
        }
    }
}

impl<T: Real> Div for Dual<T> {
    type Output = Self;
    fn div(self, b: Self) -> Self {
        let value = self.value / b.value;
        Self {
            value,
            slope: (self.slope - value * b.slope) / b.value,
        }
    }
}

impl<T: Real> Neg for Dual<T> {
    type Output = Self;
    fn neg(self) -> Self {
        Self {
            value: -self.value,
            slope: -self.slope,
        }
    }
}

impl<T: Real> Real for Dual<T> {
    fn constant(x: f64) -> Self {
        Self {
            value: T::constant(x),
            slope: T::constant(0.0),
        }
    }
    fn primal(self) -> f64 {
        self.value.primal()
    }
    fn exp(self) -> Self {
        let value = self.value.exp();
        Self {
            value,
            slope: self.slope * value,
        }
    }
    fn ln(self) -> Self {
        Self {
            value: self.value.ln(),
            slope: self.slope / self.value,
        }
    }
}
