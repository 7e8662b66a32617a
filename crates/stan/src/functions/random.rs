//! The stream of random numbers of one evaluation.

use jensen_math::rng::{Purpose as Key, Stream};
use rand_distr::{Distribution, StandardNormal};

/// What random numbers are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomUse {
    /// Transformed data.
    TransformedData,
    /// Generated quantities of one draw.
    GeneratedQuantities,
}

/// Random numbers that depend on (seed, purpose, index) alone.
#[derive(Clone, Debug)]
pub struct Draws {
    stream: Stream,
}

impl Draws {
    /// The stream of `index` for this purpose.
    pub fn new(seed: u64, purpose: RandomUse, index: u64) -> Draws {
        const TRANSFORMED_DATA: Key = Key::new("transformed data");
        const GENERATED_QUANTITIES: Key = Key::new("generated quantities");
        let key = match purpose {
            RandomUse::TransformedData => TRANSFORMED_DATA,
            RandomUse::GeneratedQuantities => GENERATED_QUANTITIES,
        };
        Draws {
            stream: Stream::new(seed, key, 0, index),
        }
    }

    /// A uniform number in (0, 1).
    pub fn uniform(&mut self) -> f64 {
        let unit: f64 = self.sample(rand_distr::Open01);
        unit
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f64 {
        self.sample(StandardNormal)
    }

    /// A standard exponential number.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// A gamma number of this shape and rate 1; NaN if the shape is not positive.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        rand_distr::Gamma::new(shape, 1.0).map_or(f64::NAN, |d| self.sample(d))
    }

    /// The logarithm of a gamma number of this shape and rate 1, where the number itself may underflow.
    pub fn log_gamma(&mut self, shape: f64) -> f64 {
        if shape >= 1.0 {
            return self.gamma(shape).ln();
        }
        self.gamma(shape + 1.0).ln() + self.uniform().ln() / shape
    }

    /// A beta number.
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.log_gamma(a), self.log_gamma(b));
        1.0 / (1.0 + (y - x).exp())
    }

    /// A Poisson number, as a real; NaN if the rate is negative or beyond the ints.
    pub fn poisson(&mut self, rate: f64) -> f64 {
        if rate == 0.0 {
            return 0.0;
        }
        rand_distr::Poisson::new(rate).map_or(f64::NAN, |d| self.sample(d))
    }

    /// A binomial number.
    pub fn binomial(&mut self, trials: f64, p: f64) -> f64 {
        rand_distr::Binomial::new(trials.max(0.0) as u64, p)
            .map_or(f64::NAN, |d| self.sample(d) as f64)
    }

    /// An index from 0 with these weights, which sum to 1.
    pub fn categorical(&mut self, weights: &[f64]) -> usize {
        let u = self.uniform();
        let mut below = 0.0;
        for (k, w) in weights.iter().enumerate() {
            below += w;
            if u < below {
                return k;
            }
        }
        // Rounding may leave a little beyond the last positive weight.
        weights.iter().rposition(|w| *w > 0.0).unwrap_or(0)
    }

    /// A number of a distribution of the `rand_distr` crate.
    pub fn sample<T>(&mut self, distribution: impl Distribution<T>) -> T {
        distribution.sample(&mut self.stream)
    }
}
