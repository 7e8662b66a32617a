//! Gaussian components: real vectors with full or diagonal covariance matrices.

use crate::family::ExponentialFamily;
use crate::models::mixture::Components;

use jensen_math::constants::LOG_TWO_PI;

/// The shape of covariance matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// Any: normal-Wishart priors.
    Full,
    /// Diagonal: normal-gamma priors.
    Diagonal,
}

/// Gaussian components over rows of real numbers.
///
/// The prior is centred at the mean of the data with the weight of a tenth of a point; the expected precision is ten times
/// that of the data in each dimension, with the weight of two points (diagonal) or the least proper one (full).
pub struct Gaussians {
    covariance: Covariance,
    dim: usize,
    data: Vec<f64>,
    centre: Vec<f64>,
    variance: Vec<f64>,
}

impl Gaussians {
    /// Components over `data`, rows of `dim` finite numbers; the prior is made from those rows.
    pub fn new(covariance: Covariance, dim: usize, data: Vec<f64>) -> Self {
        let n = (data.len() / dim.max(1)).max(1) as f64;
        let column = |d: usize| data.iter().skip(d).step_by(dim);
        let centre: Vec<f64> = (0..dim).map(|d| column(d).sum::<f64>() / n).collect();
        let variance = (0..dim)
            .map(|d| {
                let squares: f64 = column(d).map(|x| (x - centre[d]).powi(2)).sum();
                // A constant column still needs a proper prior.
                if squares > 0.0 { squares / n } else { 1.0 }
            })
            .collect();
        Self {
            covariance,
            dim,
            data,
            centre,
            variance,
        }
    }

    /// The same components and prior over other rows: held-out data.
    pub fn with_data(&self, data: Vec<f64>) -> Self {
        Self {
            covariance: self.covariance,
            dim: self.dim,
            data,
            centre: self.centre.clone(),
            variance: self.variance.clone(),
        }
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    fn row(&self, point: usize) -> &[f64] {
        &self.data[point * self.dim..(point + 1) * self.dim]
    }

    /// Expected mean of a component from its natural parameters.
    pub fn mean(&self, lambda: &[f64]) -> Vec<f64> {
        match self.covariance {
            Covariance::Full => lambda[..self.dim]
                .iter()
                .map(|x| x / lambda[self.dim])
                .collect(),
            Covariance::Diagonal => lambda.chunks_exact(4).map(|l| l[0] / l[1]).collect(),
        }
    }

    /// A component's covariance matrix, the inverse of its expected precision, row-major; the diagonal alone where it is
    /// diagonal.
    pub fn covariance(&self, lambda: &[f64]) -> Vec<f64> {
        match self.covariance {
            Covariance::Full => {
                let d = self.dim;
                let (km, kappa) = (&lambda[..d], lambda[d]);
                let nu = lambda[d + 1 + d * d] + d as f64;
                let s = &lambda[d + 1..d + 1 + d * d];
                (0..d * d)
                    .map(|i| (s[i] - km[i / d] * km[i % d] / kappa) / nu)
                    .collect()
            }
            Covariance::Diagonal => lambda
                .chunks_exact(4)
                .map(|l| (l[2] - 0.5 * l[0] * l[0] / l[1]) / (l[3] + 0.5))
                .collect(),
        }
    }
}

/// Weight of the prior mean, in points.
const KAPPA: f64 = 0.1;
/// Expected prior variance within a component, relative to that of the data.
const WITHIN: f64 = 0.1;

impl Components for Gaussians {
    fn name(&self) -> &'static str {
        match self.covariance {
            Covariance::Full => "gaussian-full",
            Covariance::Diagonal => "gaussian-diagonal",
        }
    }

    fn points(&self) -> usize {
        self.data.len() / self.dim
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let dim = self.dim;
        match self.covariance {
            Covariance::Full => {
                let nu = dim as f64 + 1.0;
                let mut prior: Vec<f64> = self.centre.iter().map(|m| KAPPA * m).collect();
                prior.push(KAPPA);
                for i in 0..dim {
                    for j in 0..dim {
                        let outer = KAPPA * self.centre[i] * self.centre[j];
                        let own = if i == j {
                            nu * WITHIN * self.variance[i]
                        } else {
                            0.0
                        };
                        prior.push(own + outer);
                    }
                }
                prior.push(nu - dim as f64);
                vec![(ExponentialFamily::NormalWishart { dim }, prior)]
            }
            Covariance::Diagonal => {
                let a = 1.0;
                let prior = self
                    .centre
                    .iter()
                    .zip(&self.variance)
                    .flat_map(|(m, v)| {
                        let b = a * WITHIN * v;
                        [KAPPA * m, KAPPA, b + 0.5 * KAPPA * m * m, a - 0.5]
                    })
                    .collect();
                vec![(ExponentialFamily::NormalGamma { dim }, prior)]
            }
        }
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let x = self.row(point);
        let d = self.dim;
        let core: f64 = match self.covariance {
            Covariance::Full => {
                let mut sum = t[d] + t[d + 1 + d * d];
                for (i, xi) in x.iter().enumerate() {
                    let row = &t[d + 1 + i * d..d + 1 + (i + 1) * d];
                    let dot: f64 = row.iter().zip(x).map(|(a, b)| a * b).sum();
                    sum += xi * (t[i] + dot);
                }
                sum
            }
            Covariance::Diagonal => t
                .chunks_exact(4)
                .zip(x)
                .map(|(t, x)| x * (t[0] + 0.5 * t[2] * x) + t[1] + 0.5 * t[3])
                .sum(),
        };
        core - 0.5 * d as f64 * LOG_TWO_PI
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        let x = self.row(point);
        let d = self.dim;
        match self.covariance {
            Covariance::Full => {
                for (i, xi) in x.iter().enumerate() {
                    out[i] += weight * xi;
                    for (o, xj) in out[d + 1 + i * d..].iter_mut().zip(x) {
                        *o += weight * xi * xj;
                    }
                }
                out[d] += weight;
                out[d + 1 + d * d] += weight;
            }
            Covariance::Diagonal => {
                for (o, x) in out.chunks_exact_mut(4).zip(x) {
                    o[0] += weight * x;
                    o[1] += weight;
                    o[2] += 0.5 * weight * x * x;
                    o[3] += 0.5 * weight;
                }
            }
        }
    }

    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        let d = self.dim as f64;
        let log_det = match self.covariance {
            Covariance::Full => 2.0 * t[self.dim + 1 + self.dim * self.dim],
            Covariance::Diagonal => t.chunks_exact(4).map(|t| t[3]).sum(),
        };
        0.5 * (s - 1.0) * log_det + 0.5 * d * ((1.0 - s) * LOG_TWO_PI - s.ln())
    }

    /// Merged components whose variances are their own explain the whole spread of the data, and stay merged at every
    /// temperature above 1. In a trial of three clusters in one dimension minibatch fits stood at −904 nats after 30 passes
    /// with a share of 0.9, at −919 with 0.5, and plain ones at −913; batch fits end alike.
    fn lean(&self) -> f64 {
        0.9
    }

    /// Precisions near 0 have more prior weight than the tempered likelihoods of many points leave integrable.
    fn partition_is_finite(&self) -> bool {
        false
    }
}
