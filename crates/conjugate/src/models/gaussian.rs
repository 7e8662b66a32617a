//! Gaussian components over real vectors, with full or diagonal covariance matrices.

use crate::family::ExponentialFamily;
use crate::models::correlation::correlation;
use crate::models::mixture::{Completed, Components};

use jensen_math::constants::LOG_TWO_PI;
use jensen_math::sum::ColumnMoments;
use jensen_math::{dense, special};

/// The form of the covariance matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covariance {
    /// Arbitrary covariance matrices, with normal-Wishart priors.
    Full,
    /// Diagonal covariance matrices, with normal-gamma priors.
    Diagonal,
}

/// The prior of Gaussian components, relative to the data. Its mean is the mean of the data, and its variances are
/// fractions of the variances of the data. By default it has no correlations. [`Gaussians::with_correlation_of`]
/// estimates them from rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GaussianPrior {
    /// Weight of the prior mean, expressed as a number of points.
    pub mean_weight: f64,
    /// The variance within a component, as a share of the column's variance. It is the inverse of the expected
    /// precision.
    pub variance: f64,
    /// Weight of the prior variance, expressed as a number of points. The gamma distribution of a precision has half of
    /// this weight as its shape. For a Wishart distribution, the degrees of freedom are this weight plus the dimension
    /// minus one.
    pub variance_weight: f64,
}

impl Default for GaussianPrior {
    fn default() -> Self {
        Self {
            mean_weight: 0.1,
            variance: 0.1,
            variance_weight: 2.0,
        }
    }
}

/// Gaussian components over rows of real numbers. NaN marks a value that is missing at random.
///
/// Inference integrates out missing values. If columns are independent given the component, missing values have no
/// effect. Otherwise, q contains a normal distribution of a point's missing values for each component.
pub struct Gaussians {
    covariance: Covariance,
    dim: usize,
    data: Vec<f64>,
    centre: Vec<f64>,
    variance: Vec<f64>,
    /// Prior correlations within a component that has a full covariance matrix, row by row.
    correlation: Vec<f64>,
    weights: GaussianPrior,
    /// Logarithms of the scales of the columns. They convert densities of standardised data to the original units.
    log_scales: Vec<f64>,
}

impl Gaussians {
    /// Creates components over `data`, which contains rows of `dim` numbers. The prior is estimated from these rows.
    pub fn new(covariance: Covariance, dim: usize, data: Vec<f64>) -> Self {
        Self::with_prior(covariance, dim, data, GaussianPrior::default())
    }

    /// Creates components over `data` with a given prior.
    pub fn with_prior(
        covariance: Covariance,
        dim: usize,
        data: Vec<f64>,
        weights: GaussianPrior,
    ) -> Self {
        let columns = ColumnMoments::of(dim, &data);
        Self::with_columns(covariance, data, &columns, weights)
    }

    /// Creates components over `data`. The prior is computed from the given moments of the columns.
    pub fn with_columns(
        covariance: Covariance,
        data: Vec<f64>,
        columns: &[ColumnMoments],
        weights: GaussianPrior,
    ) -> Self {
        let dim = columns.len();
        let entries = match covariance {
            Covariance::Full => dim * dim,
            Covariance::Diagonal => 0,
        };
        Self {
            covariance,
            dim,
            data,
            correlation: (0..entries)
                .map(|at| f64::from(u8::from(at / dim == at % dim)))
                .collect(),
            centre: columns.iter().map(|column| column.mean).collect(),
            variance: columns.iter().map(ColumnMoments::variance).collect(),
            weights,
            log_scales: vec![0.0; columns.len()],
        }
    }

    /// Declares that the values are standardised, and sets the logarithm of the scale of each column. Densities then
    /// refer to the original values.
    #[must_use]
    pub fn with_log_scales(self, log_scales: Vec<f64>) -> Self {
        Self { log_scales, ..self }
    }

    /// Adds correlations to the prior of full covariance matrices. They are estimated from `rows`, and leave-one-out
    /// densities determine how much they are shrunk. A column that the other columns nearly determine in the data then
    /// also has a small conditional variance under the prior.
    #[must_use]
    pub fn with_correlation_of(self, rows: &[f64]) -> Self {
        match self.covariance {
            Covariance::Full => Self {
                correlation: correlation(self.dim, rows),
                ..self
            },
            Covariance::Diagonal => self,
        }
    }

    /// Returns components with the same prior over other rows, such as held-out data.
    pub fn with_data(&self, data: Vec<f64>) -> Self {
        Self {
            covariance: self.covariance,
            dim: self.dim,
            data,
            centre: self.centre.clone(),
            variance: self.variance.clone(),
            correlation: self.correlation.clone(),
            weights: self.weights,
            log_scales: self.log_scales.clone(),
        }
    }

    fn log_scale(&self, x: &[f64]) -> f64 {
        let pairs = self.log_scales.iter().zip(x);
        pairs
            .filter(|(_, x)| !x.is_nan())
            .map(|(scale, _)| scale)
            .sum()
    }

    /// Returns the form of the covariance matrices.
    pub fn shape(&self) -> Covariance {
        self.covariance
    }

    /// Returns the number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    fn row(&self, point: usize) -> &[f64] {
        &self.data[point * self.dim..(point + 1) * self.dim]
    }

    /// Computes the expected mean of a component from its natural parameters.
    pub fn mean(&self, lambda: &[f64]) -> Vec<f64> {
        match self.covariance {
            Covariance::Full => lambda[..self.dim]
                .iter()
                .map(|x| x / lambda[self.dim])
                .collect(),
            Covariance::Diagonal => lambda.chunks_exact(4).map(|l| l[0] / l[1]).collect(),
        }
    }

    /// Computes the covariance matrix of a component in row-major order. It is the inverse of the expected precision.
    /// For diagonal covariance matrices, the function returns only the diagonal.
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

fn split(x: &[f64]) -> (Vec<usize>, Vec<usize>) {
    (0..x.len()).partition(|i| x[*i].is_nan())
}

impl Gaussians {
    fn is_tied(&self, point: usize) -> bool {
        self.covariance == Covariance::Full && self.row(point).iter().any(|x| x.is_nan())
    }
}

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

    /// Returns the size of a point. The size is 0 if all values of the point are missing.
    fn size(&self, point: usize) -> f64 {
        let known = self.row(point).iter().any(|x| !x.is_nan());
        f64::from(u8::from(known))
    }

    fn prior(&self) -> Vec<(ExponentialFamily, Vec<f64>)> {
        let dim = self.dim;
        let GaussianPrior {
            mean_weight: kappa,
            variance: within,
            variance_weight,
        } = self.weights;
        match self.covariance {
            Covariance::Full => {
                let nu = dim as f64 - 1.0 + variance_weight;
                let mut prior: Vec<f64> = self.centre.iter().map(|m| kappa * m).collect();
                prior.push(kappa);
                for i in 0..dim {
                    for j in 0..dim {
                        let outer = kappa * self.centre[i] * self.centre[j];
                        let spread = (self.variance[i] * self.variance[j]).sqrt();
                        let own = nu * within * spread * self.correlation[i * dim + j];
                        prior.push(own + outer);
                    }
                }
                prior.push(nu - dim as f64);
                vec![(ExponentialFamily::NormalWishart { dim }, prior)]
            }
            Covariance::Diagonal => {
                let a = 0.5 * variance_weight;
                let prior = self
                    .centre
                    .iter()
                    .zip(&self.variance)
                    .flat_map(|(m, v)| {
                        let b = a * within * v;
                        [kappa * m, kappa, b + 0.5 * kappa * m * m, a - 0.5]
                    })
                    .collect();
                vec![(ExponentialFamily::NormalGamma { dim }, prior)]
            }
        }
    }

    fn log_density(&self, t: &[f64], point: usize) -> f64 {
        let x = self.row(point);
        let d = self.dim;
        let mut known = d;
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
            Covariance::Diagonal => {
                let columns = t.chunks_exact(4).zip(x).filter(|(_, x)| !x.is_nan());
                known = x.iter().filter(|x| !x.is_nan()).count();
                columns
                    .map(|(t, x)| x * (t[0] + 0.5 * t[2] * x) + t[1] + 0.5 * t[3])
                    .sum()
            }
        };
        core - 0.5 * known as f64 * LOG_TWO_PI - self.log_scale(x)
    }

    fn add(&self, point: usize, weight: f64, out: &mut [f64]) {
        let x = self.row(point);
        let d = self.dim;
        match self.covariance {
            Covariance::Full => {
                // In starts, a missing value is replaced by the mean and the variance of its column.
                let at = |i: usize| if x[i].is_nan() { self.centre[i] } else { x[i] };
                for i in 0..d {
                    out[i] += weight * at(i);
                    for (j, o) in out[d + 1 + i * d..d + 1 + (i + 1) * d]
                        .iter_mut()
                        .enumerate()
                    {
                        *o += weight * at(i) * at(j);
                    }
                    if x[i].is_nan() {
                        out[d + 1 + i * d + i] += weight * self.variance[i];
                    }
                }
                out[d] += weight;
                out[d + 1 + d * d] += weight;
            }
            Covariance::Diagonal => {
                for (o, x) in out.chunks_exact_mut(4).zip(x).filter(|(_, x)| !x.is_nan()) {
                    o[0] += weight * x;
                    o[1] += weight;
                    o[2] += 0.5 * weight * x * x;
                    o[3] += 0.5 * weight;
                }
            }
        }
    }

    /// Given the observed values o of a row, the missing values m are normal. With P = `E[Λ]`, their precision is P_mm,
    /// or P_mm/T at temperature T. Their mean is P_mm⁻¹ (`E[Λμ]`_m − P_mo x_o).
    fn complete(
        &self,
        t: &[f64],
        point: usize,
        inverse: f64,
        statistics: &mut Vec<f64>,
    ) -> Option<Completed> {
        if !self.is_tied(point) {
            return None;
        }
        let (x, d) = (self.row(point), self.dim);
        let (missing, known) = split(x);
        let m = missing.len();
        let precision = |i: usize, j: usize| -2.0 * t[d + 1 + i * d + j];
        let p: Vec<f64> = (0..m * m)
            .map(|at| precision(missing[at / m], missing[at % m]))
            .collect();
        let Ok(l) = dense::factor(&p, m, 0.0) else {
            statistics.extend(std::iter::repeat_n(f64::NAN, d + 2 + d * d));
            return Some(Completed {
                log_integral: f64::NAN,
                energy: f64::NAN,
            });
        };
        let h: Vec<f64> = missing
            .iter()
            .map(|&i| t[i] - known.iter().map(|&j| precision(i, j) * x[j]).sum::<f64>())
            .collect();
        let spread = dense::inverse(&l, m);
        let mut filled = x.to_vec();
        for (row, &i) in spread.chunks_exact(m).zip(&missing) {
            filled[i] = row.iter().zip(&h).map(|(a, b)| a * b).sum();
        }
        let gain: f64 = missing
            .iter()
            .zip(&h)
            .map(|(&i, h)| 0.5 * h * filled[i])
            .sum();
        let mut fixed = t[d] + t[d + 1 + d * d] - 0.5 * d as f64 * LOG_TWO_PI - self.log_scale(x);
        for &i in &known {
            let dot: f64 = known.iter().map(|&j| precision(i, j) * x[j]).sum();
            fixed += x[i] * (t[i] - 0.5 * dot);
        }
        let begin = statistics.len();
        statistics.extend_from_slice(&filled);
        statistics.push(1.0);
        statistics.extend((0..d * d).map(|at| filled[at / d] * filled[at % d]));
        statistics.push(1.0);
        for (row, &i) in spread.chunks_exact(m).zip(&missing) {
            for (v, &j) in row.iter().zip(&missing) {
                statistics[begin + d + 1 + i * d + j] += v / inverse;
            }
        }
        let free = 0.5 * m as f64;
        Some(Completed {
            log_integral: inverse * (fixed + gain) + free * (LOG_TWO_PI - inverse.ln())
                - 0.5 * dense::log_determinant(&l, m),
            energy: fixed + gain - free / inverse,
        })
    }

    /// Computes the log density of the known columns, which have a multivariate Student t distribution.
    fn log_predictive(&self, lambda: &[f64], point: usize) -> Option<f64> {
        if self.covariance == Covariance::Diagonal {
            return None;
        }
        let (x, d) = (self.row(point), self.dim);
        let (_, known) = split(x);
        let (n, kappa) = (known.len(), lambda[d]);
        let df = lambda[d + 1 + d * d] + 1.0;
        let mean = |i: usize| lambda[i] / kappa;
        let scale: Vec<f64> = (0..n * n)
            .map(|at| {
                let (i, j) = (known[at / n], known[at % n]);
                let within = lambda[d + 1 + i * d + j] - kappa * mean(i) * mean(j);
                within * (kappa + 1.0) / (kappa * df)
            })
            .collect();
        let Ok(l) = dense::factor(&scale, n, 0.0) else {
            return Some(f64::NAN);
        };
        let mut off: Vec<f64> = known.iter().map(|&i| x[i] - mean(i)).collect();
        dense::solve_lower_lanes(&l, n, &mut off, 1);
        let squares: f64 = off.iter().map(|x| x * x).sum();
        let size = n as f64;
        Some(
            special::lgamma(0.5 * (df + size))
                - special::lgamma(0.5 * df)
                - 0.5 * size * (df * std::f64::consts::PI).ln()
                - 0.5 * dense::log_determinant(&l, n)
                - 0.5 * (df + size) * (squares / df).ln_1p()
                - self.log_scale(x),
        )
    }

    fn log_power(&self, t: &[f64], _size: f64, s: f64) -> f64 {
        let d = self.dim as f64;
        let log_det = match self.covariance {
            Covariance::Full => 2.0 * t[self.dim + 1 + self.dim * self.dim],
            Covariance::Diagonal => t.chunks_exact(4).map(|t| t[3]).sum(),
        };
        let log_scale: f64 = self.log_scales.iter().sum();
        0.5 * (s - 1.0) * log_det
            + 0.5 * d * ((1.0 - s) * LOG_TWO_PI - s.ln())
            + (1.0 - s) * log_scale
    }

    fn log_jacobian(&self) -> f64 {
        let rows = self.data.chunks_exact(self.dim.max(1));
        -rows.map(|x| self.log_scale(x)).sum::<f64>()
    }

    /// Merged components with their own variances explain the whole spread of the data, and they remain merged at every
    /// temperature above 1. In a trial with three clusters in one dimension, minibatch fits with a share of 0.9 reached
    /// −904 nats after 30 passes. With a share of 0.5 they reached −919 nats, and without a share −913 nats. Batch fits
    /// gave the same ranking.
    fn lean(&self) -> f64 {
        0.9
    }

    /// Under the prior, precisions near 0 have so much mass that the tempered likelihood of many points is not
    /// integrable.
    fn partition_is_finite(&self) -> bool {
        false
    }
}
