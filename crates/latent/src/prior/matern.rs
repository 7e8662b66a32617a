//! Matérn processes of one input as Markov chains of the value and its derivatives (Hartikainen and Särkkä 2010).
//!
//! With the smoothness ν = p − ½ and the time unit ℓ/√(2ν), the states are the value and its first p − 1 derivatives. They
//! follow `dx = F x dt + e dβ`, where F has the characteristic polynomial (s + 1)^p. N = F + 1 is nilpotent, so the
//! transition over a time τ is `A = e^−τ Σ_k (Nτ)^k/k!`. The covariance of the step is `q ∫₀^τ e^−2s p(s) p(s)ᵀ ds`,
//! where the polynomials p are the last column of the sum. Its entries are sums of integrals `I_k = ∫₀^τ e^−2s s^k ds`.
//! The difference `P − A P Aᵀ` with the stationary covariance P has the same value, but no correct digits for short τ.

use super::kernel::Shape;
use crate::linear::{square, times};
use crate::{ChainStep, Square};

/// A Matérn process with variance 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Matern {
    /// The number of coordinates of a state.
    pub(super) size: usize,
    /// The rate √(2ν) at a lengthscale of 1.
    pub(super) rate: f64,
    /// The stationary covariance of a state.
    pub(super) stationary: Square,
    drift: Square,
    /// The intensity q of the noise.
    intensity: f64,
    /// The coefficients of the polynomials of the noise.
    noise: Square,
}

impl Matern {
    /// Returns the process with this covariance function, or `None` if it has no such states.
    pub(super) fn of(shape: Shape) -> Option<Self> {
        match shape {
            Shape::Matern32 => Some(Self {
                size: 2,
                rate: 3f64.sqrt(),
                stationary: [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0; 3]],
                drift: [[0.0, 1.0, 0.0], [-1.0, -2.0, 0.0], [0.0; 3]],
                intensity: 4.0,
                noise: [[0.0, 1.0, 0.0], [1.0, -1.0, 0.0], [0.0; 3]],
            }),
            Shape::Matern52 => {
                let third = 1.0 / 3.0;
                Some(Self {
                    size: 3,
                    rate: 5f64.sqrt(),
                    stationary: [[1.0, 0.0, -third], [0.0, third, 0.0], [-third, 0.0, 1.0]],
                    drift: [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -3.0, -3.0]],
                    intensity: 16.0 / 3.0,
                    noise: [[0.0, 0.0, 0.5], [0.0, 1.0, -0.5], [1.0, -2.0, 0.5]],
                })
            }
            _ => None,
        }
    }

    /// Returns the step over a time τ.
    pub(super) fn step(&self, tau: f64) -> ChainStep {
        let own = |i: usize, j: usize| f64::from(i == j && i < self.size);
        let nilpotent = square(|i, j| self.drift[i][j] + own(i, j));
        let squared = times(&nilpotent, &nilpotent);
        let (decay, integrals) = ((-tau).exp(), integrals(tau));
        ChainStep {
            // The polynomial can overflow where the exponential is 0.
            transition: square(|i, j| match decay == 0.0 {
                true => 0.0,
                false => {
                    let rest = tau * (nilpotent[i][j] + 0.5 * tau * squared[i][j]);
                    decay * (own(i, j) + rest)
                }
            }),
            noise: square(|i, j| {
                let products = (0..9).map(|k| {
                    let (a, b) = (k / 3, k % 3);
                    self.noise[i][a] * self.noise[j][b] * integrals[a + b]
                });
                self.intensity * products.sum::<f64>()
            }),
        }
    }

    /// Returns the derivative of the step with respect to τ.
    pub(super) fn slope(&self, tau: f64, step: &ChainStep) -> ChainStep {
        let decay = (-tau).exp();
        let each = [0, 1, 2].map(|i| {
            let [a, b, c] = self.noise[i];
            if decay == 0.0 {
                return 0.0;
            }
            decay * (a + tau * (b + tau * c))
        });
        ChainStep {
            transition: times(&self.drift, &step.transition),
            noise: square(|i, j| self.intensity * each[i] * each[j]),
        }
    }
}

/// Times up to this value use the series of the integrals. At longer times the recursion is accurate.
const SHORT: f64 = 4.0;

/// Computes `∫₀^τ e^−2s s^k ds` for k from 0 to 4.
fn integrals(tau: f64) -> [f64; 5] {
    let decay = (-2.0 * tau).exp();
    let mut out = [0.0; 5];
    if tau > SHORT {
        out[0] = 0.5 * (1.0 - decay);
        for k in 1..5 {
            let end = if decay == 0.0 {
                0.0
            } else {
                tau.powi(k as i32) * decay
            };
            out[k] = 0.5 * (k as f64 * out[k - 1] - end);
        }
        return out;
    }
    // All terms of `τ^(k+1) e^−2τ Σ_j (2τ)^j/((k+1) … (k+1+j))` are positive.
    for (k, integral) in out.iter_mut().enumerate() {
        let mut term = tau.powi(k as i32 + 1) / (k + 1) as f64;
        let mut sum = term;
        let mut j = k + 2;
        while term > 1e-17 * sum {
            term *= 2.0 * tau / j as f64;
            sum += term;
            j += 1;
        }
        *integral = decay * sum;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks `A P Aᵀ + D = P`, and that two steps are one longer step.
    #[test]
    fn steps_keep_the_stationary_covariance() {
        for shape in [Shape::Matern32, Shape::Matern52] {
            let process = Matern::of(shape).unwrap();
            let p = process.stationary;
            for tau in [1e-9, 1e-4, 0.03, 0.7, 3.9, 4.1, 30.0, 1e4] {
                let step = process.step(tau);
                let half = process.step(0.5 * tau);
                let moved = |step: &ChainStep, p: &Square, i: usize, j: usize| -> f64 {
                    let a = &step.transition;
                    let sum: f64 = (0..9)
                        .map(|k| a[i][k / 3] * p[k / 3][k % 3] * a[j][k % 3])
                        .sum();
                    sum + step.noise[i][j]
                };
                for i in 0..3 {
                    for j in 0..3 {
                        let found = moved(&step, &p, i, j);
                        assert!((found - p[i][j]).abs() < 1e-14, "{tau} {i} {j}: {found}");
                        // Small entries of the noise are accurate relative to their own size.
                        let twice = moved(&half, &half.noise, i, j);
                        let size = (step.noise[i][i] * step.noise[j][j]).sqrt();
                        let error = (twice - step.noise[i][j]).abs();
                        assert!(error <= 1e-12 * size, "{tau} {i} {j}: {twice}");
                    }
                }
            }
        }
    }

    #[test]
    fn slopes_are_those_of_differences() {
        for shape in [Shape::Matern32, Shape::Matern52] {
            let process = Matern::of(shape).unwrap();
            for tau in [0.01, 0.7, 3.0, 9.0] {
                let h = 1e-5 * tau;
                let slope = process.slope(tau, &process.step(tau));
                let (up, down) = (process.step(tau + h), process.step(tau - h));
                let pairs = [
                    (slope.transition, up.transition, down.transition),
                    (slope.noise, up.noise, down.noise),
                ];
                for (slope, up, down) in pairs {
                    for k in 0..9 {
                        let (i, j) = (k / 3, k % 3);
                        let expected = (up[i][j] - down[i][j]) / (2.0 * h);
                        let error = (slope[i][j] - expected).abs();
                        assert!(error < 1e-8, "{tau} {i} {j}: {error}");
                    }
                }
            }
        }
    }
}
