//! The random numbers of one evaluation.

use jensen_math::rng::{Purpose as Key, Stream};
use rand_distr::{Distribution, StandardNormal};

use crate::program::Span;

/// The purpose of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomUse {
    /// The random numbers are for transformed data.
    TransformedData,
    /// The random numbers are for the generated quantities of one draw.
    GeneratedQuantities,
}

/// The address of a random choice (Wingate, Stuhlmüller and Goodman 2011). An address consists of the location of an
/// expression in the program, the enclosing iterations and the enclosing function calls. An evaluation reaches each
/// address at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Address(u64);

impl Address {
    /// Returns the address within the given iteration of a loop, or within the given step of another counter.
    pub fn iteration(self, iteration: u64) -> Address {
        // The finaliser of SplitMix64 (Steele, Lea and Flood 2014), which maps different numbers to different numbers.
        let mut x = self
            .0
            .wrapping_add(iteration.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Address(x ^ (x >> 31))
    }

    /// Returns the address of the expression at `span` within this address.
    pub fn at(self, span: Span) -> Address {
        let file = self.iteration(u64::from(span.file.0));
        file.iteration(u64::from(span.start) << 32 | u64::from(span.end))
    }
}

/// A generator of random numbers that depend only on the seed, the purpose, the index of the draw, and the address of
/// the call. A call does not affect the numbers of other calls. Calls may therefore be computed in any order, and a
/// draw may skip some of them.
#[derive(Clone, Debug)]
pub struct Draws {
    stream: Stream,
}

impl Draws {
    /// Creates the generator of draw `index` for this purpose. Call [`Draws::go_to`] before the first number is drawn.
    pub fn new(seed: u64, purpose: RandomUse, index: u64) -> Draws {
        const TRANSFORMED_DATA: Key = Key::new("transformed data");
        const GENERATED_QUANTITIES: Key = Key::new("generated quantities");
        let key = match purpose {
            RandomUse::TransformedData => TRANSFORMED_DATA,
            RandomUse::GeneratedQuantities => GENERATED_QUANTITIES,
        };
        Draws {
            stream: Stream::new(seed, key, index, 0),
        }
    }

    /// Moves the generator to the first random number of `address`.
    pub fn go_to(&mut self, address: Address) {
        self.stream = self.stream.of_lane(address.0);
    }

    /// Draws from the uniform distribution on (0, 1).
    pub fn uniform(&mut self) -> f64 {
        let unit: f64 = self.sample(rand_distr::Open01);
        unit
    }

    /// Draws from the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        self.sample(StandardNormal)
    }

    /// Draws from the exponential distribution with rate 1.
    pub fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    /// Draws from the gamma distribution with this shape and rate 1. Returns NaN if the shape is not positive.
    pub fn gamma(&mut self, shape: f64) -> f64 {
        rand_distr::Gamma::new(shape, 1.0).map_or(f64::NAN, |d| self.sample(d))
    }

    /// Draws the logarithm of a number from the gamma distribution with this shape and rate 1. Unlike the number
    /// itself, the logarithm does not underflow if the shape is small.
    pub fn log_gamma(&mut self, shape: f64) -> f64 {
        if shape >= 1.0 {
            return self.gamma(shape).ln();
        }
        self.gamma(shape + 1.0).ln() + self.uniform().ln() / shape
    }

    /// Draws from the beta distribution with shapes `a` and `b`.
    pub fn beta(&mut self, a: f64, b: f64) -> f64 {
        let (x, y) = (self.log_gamma(a), self.log_gamma(b));
        1.0 / (1.0 + (y - x).exp())
    }

    /// Draws a count from the Poisson distribution, as a real. Returns NaN if the rate is negative or too large for a
    /// count.
    pub fn poisson(&mut self, rate: f64) -> f64 {
        if rate == 0.0 {
            return 0.0;
        }
        rand_distr::Poisson::new(rate).map_or(f64::NAN, |d| self.sample(d))
    }

    /// Draws from the binomial distribution.
    pub fn binomial(&mut self, trials: f64, p: f64) -> f64 {
        rand_distr::Binomial::new(trials.max(0.0) as u64, p)
            .map_or(f64::NAN, |d| self.sample(d) as f64)
    }

    /// Draws an index, counted from 0, with the probabilities `weights`, which must sum to 1.
    pub fn categorical(&mut self, weights: &[f64]) -> usize {
        let u = self.uniform();
        let mut below = 0.0;
        for (k, w) in weights.iter().enumerate() {
            below += w;
            if u < below {
                return k;
            }
        }
        // Rounding may leave a remainder beyond the last positive weight.
        weights.iter().rposition(|w| *w > 0.0).unwrap_or(0)
    }

    /// Draws from a distribution of the `rand_distr` crate.
    pub fn sample<T>(&mut self, distribution: impl Distribution<T>) -> T {
        distribution.sample(&mut self.stream)
    }
}
