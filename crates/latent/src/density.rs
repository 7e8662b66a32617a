//! Prior densities of hyperparameters.
//!
//! The defaults are penalised-complexity priors (Simpson, Rue, Riebler, Martins and Sørbye 2017). Each part of a model
//! has a distance from the simpler model without this part, and the prior is exponential in this distance. For a
//! standard deviation σ the distance is σ. For a range in d dimensions it is range^(−d/2) (Fuglstad, Simpson, Lindgren
//! and Rue 2019), and for an autocorrelation √(−log(1 − ρ²)) (Sørbye and Rue 2017). For the share φ of BYM2 it is the
//! square root of twice the Kullback–Leibler divergence (Riebler et al. 2016). The user chooses a large value as a
//! threshold and states the probability of values beyond it. The two numbers determine the rate of the exponential.

use std::sync::Arc;

use jensen_math::special::lgamma;

/// A prior density of a hyperparameter on its natural scale.
#[derive(Clone, Debug, PartialEq)]
pub enum PriorDensity {
    /// A constant density. Its logarithm is taken to be 0.
    Flat,
    /// An exponential density of value^power. The density is exponential in a standard deviation if the value is a
    /// variance and the power is ½, or if the value is a precision and the power is −½.
    Power {
        /// The rate of value^power.
        rate: f64,
        /// The power.
        power: f64,
    },
    /// A density of a correlation that is exponential in √(−log(1 − ρ²)). Positive and negative correlations have equal
    /// mass.
    Correlation {
        /// The rate of the exponential.
        rate: f64,
    },
    /// The positive half of a density of a correlation that is symmetric about 0.
    Positive(Box<PriorDensity>),
    /// A density of the share that the structured part has. The density is exponential in a tabulated distance.
    Share {
        /// The rate.
        rate: f64,
        /// The logarithm of the distance as a function of the share's logit.
        distance: Arc<Curve>,
    },
    /// A gamma density.
    Gamma {
        /// The shape.
        shape: f64,
        /// The rate.
        rate: f64,
    },
    /// An inverse gamma density.
    InverseGamma {
        /// The shape.
        shape: f64,
        /// The scale.
        scale: f64,
    },
    /// A log-normal density.
    LogNormal {
        /// The mean of the logarithm.
        mean: f64,
        /// The standard deviation of the logarithm.
        sd: f64,
    },
    /// A density of a correlation that is proportional to (1 − ρ²)^(shape − 1). An LKJ prior of two variables has this
    /// form.
    Lkj {
        /// The shape. A shape of 1 is uniform.
        shape: f64,
    },
    /// A beta density on (0, 1).
    Beta {
        /// The parameter a. The exponent of the value is a − 1.
        a: f64,
        /// The parameter b. The exponent of 1 minus the value is b − 1.
        b: f64,
    },
}

/// The event whose probability defines a penalised-complexity prior of a hyperparameter. The event is that a quantity
/// is beyond a threshold U, and the prior gives it the probability α.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// P(σ > U) = α for the standard deviation σ = value^power.
    Deviation {
        /// The power: ½ for a variance, −½ for a precision, and 1 for a scale.
        power: f64,
    },
    /// P(length < U) = α for a lengthscale in this number of dimensions.
    Length {
        /// The number of dimensions.
        dimensions: f64,
    },
    /// P(|ρ| > U) = α for a correlation.
    Correlation,
}

impl Tail {
    /// Returns the prior with this tail. Under this prior, a value is beyond `at` with probability `probability`.
    pub fn density(self, at: f64, probability: f64) -> PriorDensity {
        let strength = -probability.ln();
        match self {
            Self::Deviation { power } => PriorDensity::Power {
                rate: strength / at,
                power,
            },
            Self::Length { dimensions } => PriorDensity::Power {
                rate: strength * at.powf(0.5 * dimensions),
                power: -0.5 * dimensions,
            },
            Self::Correlation => PriorDensity::Correlation {
                rate: strength / (-(-at * at).ln_1p()).sqrt(),
            },
        }
    }
}

impl PriorDensity {
    /// Computes the logarithm of the density at a value, and the derivative of the logarithm with respect to the value.
    pub fn at(&self, value: f64) -> (f64, f64) {
        match self {
            Self::Flat => (0.0, 0.0),
            Self::Power { rate, power } => {
                let distance = value.powf(*power);
                (
                    (rate * power.abs()).ln() + (power - 1.0) * value.ln() - rate * distance,
                    (power - 1.0 - rate * power * distance) / value,
                )
            }
            Self::Correlation { rate } => correlation(*rate, value),
            Self::Positive(both) => {
                let (log, slope) = both.at(value);
                (log + std::f64::consts::LN_2, slope)
            }
            Self::Share { rate, distance } => {
                // With t = logit φ and the curve c, the log density is log rate − rate·e^c + c + log c′ minus the log
                // derivative of φ.
                let rest = 1.0 - value;
                let [c, slope, curvature] = distance.at((value / rest).ln());
                let d = c.exp();
                let by_logit = (1.0 - rate * d) * slope + curvature / slope;
                (
                    rate.ln() - rate * d + c + slope.ln() - (value * rest).ln(),
                    (by_logit - (1.0 - 2.0 * value)) / (value * rest),
                )
            }
            Self::Gamma { shape, rate } => (
                shape * rate.ln() - lgamma(*shape) + (shape - 1.0) * value.ln() - rate * value,
                (shape - 1.0) / value - rate,
            ),
            Self::InverseGamma { shape, scale } => (
                shape * scale.ln() - lgamma(*shape) - (shape + 1.0) * value.ln() - scale / value,
                -(shape + 1.0) / value + scale / (value * value),
            ),
            Self::LogNormal { mean, sd } => {
                let z = (value.ln() - mean) / sd;
                (
                    -0.5 * z * z - value.ln() - sd.ln() - jensen_math::constants::HALF_LOG_TWO_PI,
                    -(1.0 + z / sd) / value,
                )
            }
            Self::Lkj { shape } => (
                (shape - 1.0) * (-value * value).ln_1p() + lgamma(shape + 0.5)
                    - lgamma(*shape)
                    - 0.5 * std::f64::consts::PI.ln(),
                -2.0 * (shape - 1.0) * value / ((1.0 - value) * (1.0 + value)),
            ),
            Self::Beta { a, b } => (
                lgamma(a + b) - lgamma(*a) - lgamma(*b)
                    + (a - 1.0) * value.ln()
                    + (b - 1.0) * (-value).ln_1p(),
                (a - 1.0) / value - (b - 1.0) / (1.0 - value),
            ),
        }
    }

    /// Converts the density of a value to the density of the same value measured in `unit`.
    #[must_use]
    pub fn in_units(self, unit: f64) -> Self {
        match self {
            Self::Power { rate, power } => Self::Power {
                rate: rate * unit.powf(power),
                power,
            },
            Self::Gamma { shape, rate } => Self::Gamma {
                shape,
                rate: rate * unit,
            },
            Self::InverseGamma { shape, scale } => Self::InverseGamma {
                shape,
                scale: scale / unit,
            },
            Self::LogNormal { mean, sd } => Self::LogNormal {
                mean: mean - unit.ln(),
                sd,
            },
            same => same,
        }
    }

    /// Returns the density of a value, given that `factor` times value^power is a standard deviation with the density
    /// `self`.
    #[must_use]
    pub(crate) fn of_multiple(self, factor: f64) -> Self {
        match self {
            Self::Power { rate, power } => Self::Power {
                rate: rate * factor,
                power,
            },
            same => same,
        }
    }

    pub(crate) fn with_distance(distance: &Arc<Curve>, at: f64, probability: f64) -> Self {
        let [c, ..] = distance.at((at / (1.0 - at)).ln());
        Self::Share {
            rate: -(-probability).ln_1p() / c.exp(),
            distance: distance.clone(),
        }
    }
}

/// Computes the logarithm of `½ rate e^(−rate μ) dμ/d|ρ|` with μ = √(−log(1 − ρ²)), and its derivative with respect to
/// ρ.
fn correlation(rate: f64, rho: f64) -> (f64, f64) {
    let left = 1.0 - rho * rho;
    let square = -(-rho * rho).ln_1p();
    let mu = square.sqrt();
    // At 0, |ρ|/μ → 1 and dμ/dρ → sign ρ.
    let (ratio, by_rho) = match mu > 1e-6 {
        true => (rho.abs() / mu, rho / (left * mu)),
        false => (1.0, rho.signum()),
    };
    let log_ratio_slope = match mu > 1e-6 {
        true => 1.0 / rho - rho / (left * square),
        false => 0.0,
    };
    (
        (0.5 * rate).ln() - rate * mu + ratio.ln() - left.ln(),
        -rate * by_rho + log_ratio_slope + 2.0 * rho / left,
    )
}

/// A natural cubic spline through values at evenly spaced positions. Beyond its ends the spline is linear.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    from: f64,
    step: f64,
    values: Vec<f64>,
    curvatures: Vec<f64>,
}

impl Curve {
    /// Creates the spline through at least three values, the first of which is at `from`.
    pub fn new(from: f64, step: f64, values: Vec<f64>) -> Self {
        // The inner curvatures solve a tridiagonal system with rows 1, 4, 1.
        let n = values.len();
        let mut curvatures = vec![0.0; n];
        let mut ratio = vec![0.0; n];
        for i in 1..n.saturating_sub(1) {
            let right = 6.0 * (values[i - 1] - 2.0 * values[i] + values[i + 1]) / (step * step);
            let pivot = 4.0 - ratio[i - 1];
            ratio[i] = 1.0 / pivot;
            curvatures[i] = (right - curvatures[i - 1]) / pivot;
        }
        for i in (1..n.saturating_sub(1)).rev() {
            curvatures[i] -= ratio[i] * curvatures[i + 1];
        }
        Self {
            from,
            step,
            values,
            curvatures,
        }
    }

    /// Computes the value, the slope and the second derivative of the spline at `x`.
    pub fn at(&self, x: f64) -> [f64; 3] {
        let (h, last) = (self.step, self.values.len() - 1);
        let position = (x - self.from) / h;
        let i = (position.floor().max(0.0) as usize).min(last - 1);
        let b = (position - i as f64).clamp(0.0, 1.0);
        let a = 1.0 - b;
        let (low, high) = (self.values[i], self.values[i + 1]);
        let (curvature, next) = (self.curvatures[i], self.curvatures[i + 1]);
        let value = a * low
            + b * high
            + ((a * a * a - a) * curvature + (b * b * b - b) * next) * h * h / 6.0;
        let slope = (high - low) / h
            + ((3.0 * b * b - 1.0) * next - (3.0 * a * a - 1.0) * curvature) * h / 6.0;
        let beyond = (position - i as f64 - b) * h;
        if beyond == 0.0 {
            return [value, slope, a * curvature + b * next];
        }
        [value + slope * beyond, slope, 0.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<(PriorDensity, f64, f64)> {
        let distance = Arc::new(Curve::new(
            -8.0,
            0.5,
            (0..33).map(|i| 0.9 * (f64::from(i) * 0.5 - 8.0)).collect(),
        ));
        vec![
            (
                Tail::Deviation { power: 0.5 }.density(3.0, 0.01),
                0.0,
                f64::INFINITY,
            ),
            (
                Tail::Deviation { power: -0.5 }.density(3.0, 0.01),
                0.0,
                f64::INFINITY,
            ),
            (
                Tail::Length { dimensions: 1.0 }.density(0.1, 0.05),
                0.0,
                f64::INFINITY,
            ),
            (Tail::Correlation.density(0.5, 0.5), -1.0, 1.0),
            (
                PriorDensity::with_distance(&distance, 0.5, 2.0 / 3.0),
                0.0,
                1.0,
            ),
            (
                PriorDensity::Gamma {
                    shape: 2.0,
                    rate: 0.7,
                },
                0.0,
                f64::INFINITY,
            ),
            (
                PriorDensity::InverseGamma {
                    shape: 2.0,
                    scale: 0.7,
                },
                0.0,
                f64::INFINITY,
            ),
            (
                PriorDensity::LogNormal { mean: 0.3, sd: 0.8 },
                0.0,
                f64::INFINITY,
            ),
            (PriorDensity::Beta { a: 1.5, b: 2.5 }, 0.0, 1.0),
            (PriorDensity::Lkj { shape: 2.5 }, -1.0, 1.0),
        ]
    }

    /// Computes the integral of the density up to a value, by the trapezoidal rule in an unconstrained coordinate.
    fn below(density: &PriorDensity, (low, high): (f64, f64), most: f64) -> f64 {
        let step = 1e-3;
        let points = (-60_000..60_000).map(|i| f64::from(i) * step);
        points
            .map(|t| {
                let (value, slope) = match high.is_finite() {
                    false => (t.exp(), t.exp()),
                    true => {
                        let p = 1.0 / (1.0 + (-t).exp());
                        (low + (high - low) * p, (high - low) * p * (1.0 - p))
                    }
                };
                let inside = value > low && value < high && value < most && slope > 0.0;
                if inside {
                    step * slope * density.at(value).0.exp()
                } else {
                    0.0
                }
            })
            .sum()
    }

    #[test]
    fn densities_are_normalised_with_their_slopes_and_units() {
        for (density, low, high) in all() {
            let total = below(&density, (low, high), f64::INFINITY);
            assert!((total - 1.0).abs() < 2e-3, "{density:?}: {total}");
            for position in [0.2, 0.45, 0.8] {
                let value = if low < 0.0 {
                    2.0 * position - 1.0
                } else {
                    position
                };
                let h = 1e-6;
                let slope = (density.at(value + h).0 - density.at(value - h).0) / (2.0 * h);
                let stated = density.at(value).1;
                assert!(
                    (slope - stated).abs() < 1e-5 * (1.0 + slope.abs()),
                    "{density:?} {value}: {slope} {stated}"
                );
                if high.is_infinite() {
                    let moved = density.clone().in_units(2.5).at(value / 2.5).0;
                    assert!(
                        (moved - density.at(value).0 - 2.5f64.ln()).abs() < 1e-9,
                        "{density:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn tails_have_their_probability() {
        let deviation = Tail::Deviation { power: 0.5 }.density(3.0, 0.01);
        assert!((below(&deviation, (0.0, f64::INFINITY), 9.0) - 0.99).abs() < 1e-3);
        let length = Tail::Length { dimensions: 2.0 }.density(0.4, 0.05);
        assert!((below(&length, (0.0, f64::INFINITY), 0.4) - 0.05).abs() < 1e-3);
        let rho = Tail::Correlation.density(0.7, 0.3);
        assert!((below(&rho, (-1.0, 1.0), 0.7) - 0.85).abs() < 1e-3);
        let (share, ..) = all().swap_remove(4);
        assert!((below(&share, (0.0, 1.0), 0.5) - 2.0 / 3.0).abs() < 1e-3);
    }
}
