//! Test densities, for some of which the best approximation is known.

use jensen_math::constants::LOG_TWO_PI;

use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};

use crate::{Real, ScalarModel};

/// A normal density N(mean, precision⁻¹), whose logarithm may have an additive constant. For every Gaussian family, the
/// best ELBO is known in closed form.
#[derive(Clone, Debug)]
pub struct CorrelatedGaussian {
    mean: Vec<f64>,
    precision: Vec<f64>,
    log_det_precision: f64,
    /// The log evidence, which is the logarithm of the integral of the density.
    pub log_evidence: f64,
}

impl CorrelatedGaussian {
    /// Creates a Gaussian with evidence 1 from its mean and its precision matrix. The precision matrix must be
    /// symmetric, and it is given in row-major order.
    ///
    /// # Panics
    /// Panics if the precision is not positive definite.
    pub fn new(mean: Vec<f64>, precision: Vec<f64>) -> Self {
        let d = mean.len();
        let mut l = precision.clone();
        let mut log_det_precision = 0.0;
        for j in 0..d {
            for i in j..d {
                let dot: f64 = (0..j).map(|k| l[i * d + k] * l[j * d + k]).sum();
                let x = l[i * d + j] - dot;
                l[i * d + j] = if i == j { x.sqrt() } else { x / l[j * d + j] };
            }
            assert!(l[j * d + j] > 0.0, "positive definite");
            log_det_precision += 2.0 * l[j * d + j].ln();
        }
        Self {
            mean,
            precision,
            log_det_precision,
            log_evidence: 0.0,
        }
    }

    /// Creates a Gaussian with scales `scales`, in which every pair of coordinates has a correlation of about `rho`.
    /// The precision matrix is a constant matrix plus a diagonal matrix, rescaled by `scales`.
    pub fn exchangeable(scales: &[f64], rho: f64) -> Self {
        let d = scales.len();
        let mut precision = vec![0.0; d * d];
        // (1 − ρ)I + ρ11ᵀ has the inverse (I − ρ/(1 + (d − 1)ρ) 11ᵀ)/(1 − ρ).
        let shared = rho / (1.0 + (d as f64 - 1.0) * rho);
        for i in 0..d {
            for j in 0..d {
                let unit = if i == j { 1.0 } else { 0.0 } - shared;
                precision[i * d + j] = unit / (1.0 - rho) / (scales[i] * scales[j]);
            }
        }
        let mean = scales
            .iter()
            .enumerate()
            .map(|(i, s)| s * i as f64)
            .collect();
        Self::new(mean, precision)
    }

    /// Returns the mean.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Returns the standard deviations of the best mean-field Gaussian: `1/√precision[i][i]`.
    pub fn mean_field_sd(&self) -> Vec<f64> {
        let d = self.mean.len();
        (0..d)
            .map(|i| self.precision[i * d + i].powf(-0.5))
            .collect()
    }

    /// Returns the ELBO of the best mean-field Gaussian, in nats.
    pub fn mean_field_elbo(&self) -> f64 {
        let d = self.mean.len();
        let diagonal: f64 = (0..d).map(|i| self.precision[i * d + i].ln()).sum();
        self.log_evidence + 0.5 * (self.log_det_precision - diagonal)
    }

    fn multiply(&self, x: &[f64], out: &mut [f64]) {
        let d = x.len();
        for (i, value) in out.iter_mut().enumerate() {
            *value = (0..d).map(|j| self.precision[i * d + j] * x[j]).sum();
        }
    }
}

impl LogDensity for CorrelatedGaussian {
    type Workspace = usize;

    fn dim(&self) -> usize {
        self.mean.len()
    }

    fn workspace(&self, _lanes: usize) -> usize {
        0
    }

    fn value(&self, ws: &mut usize, z: Lanes<'_>, out: &mut [f64]) {
        let mut grad = vec![0.0; self.dim() * z.lanes()];
        let grad = LanesMut::new(&mut grad, self.dim(), z.lanes());
        self.value_grad(ws, z, out, grad);
    }

    fn value_grad(&self, _: &mut usize, z: Lanes<'_>, out: &mut [f64], mut grad: LanesMut<'_>) {
        let d = self.dim();
        let constant =
            self.log_evidence + 0.5 * self.log_det_precision - 0.5 * d as f64 * LOG_TWO_PI;
        let (mut x, mut px) = (vec![0.0; d], vec![0.0; d]);
        for (lane, value) in out.iter_mut().enumerate() {
            z.copy_lane(lane, &mut x);
            for (x, mean) in x.iter_mut().zip(&self.mean) {
                *x -= mean;
            }
            self.multiply(&x, &mut px);
            let quadratic: f64 = x.iter().zip(&px).map(|(a, b)| a * b).sum();
            *value = constant - 0.5 * quadratic;
            for (row, p) in px.iter().enumerate() {
                grad.row_mut(row)[lane] = -p;
            }
        }
    }
}

impl TwiceDifferentiable for CorrelatedGaussian {
    fn linearize(&self, ws: &mut usize, z: Lanes<'_>) {
        *ws = z.lanes();
    }

    fn apply(&self, ws: &mut usize, v: Lanes<'_>, mut out: LanesMut<'_>) {
        assert_eq!(
            *ws,
            v.lanes(),
            "`v` and the linearisation have different numbers of draws"
        );
        let d = self.dim();
        let (mut x, mut px) = (vec![0.0; d], vec![0.0; d]);
        for lane in 0..v.lanes() {
            v.copy_lane(lane, &mut x);
            self.multiply(&x, &mut px);
            for (row, p) in px.iter().enumerate() {
                out.row_mut(row)[lane] = -p;
            }
        }
    }
}

/// Neal's funnel: v ~ N(0, 3), xᵢ | v ~ N(0, e^{v/2}).
#[derive(Clone, Copy, Debug)]
pub struct Funnel {
    /// The number of coordinates xᵢ.
    pub leaves: usize,
}

impl ScalarModel for Funnel {
    fn dim(&self) -> usize {
        self.leaves + 1
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let zero = T::constant(0.0);
        let mut sum = z[0].normal_log_scale(zero, T::constant(3f64.ln()));
        for &x in &z[1..] {
            sum = sum + x.normal_log_scale(zero, z[0].scale(0.5));
        }
        sum
    }
}

/// A mixture of two unit Gaussians with centres at ±distance/2 in every coordinate.
#[derive(Clone, Copy, Debug)]
pub struct Mixture {
    /// The dimension.
    pub dim: usize,
    /// The distance between the two centres along each coordinate.
    pub distance: f64,
    /// The log odds of the component at −distance/2 relative to the other component. The log odds are 0 if the weights
    /// are equal.
    pub log_odds: f64,
}

impl ScalarModel for Mixture {
    fn dim(&self) -> usize {
        self.dim
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let zero = T::constant(0.0);
        let component = |centre: f64| {
            z.iter().fold(zero, |sum, &x| {
                sum + x.normal_log_scale(T::constant(centre), zero)
            })
        };
        let a = component(-0.5 * self.distance) + T::constant(self.log_odds);
        let b = component(0.5 * self.distance);
        let normaliser = T::constant(self.log_odds).softplus();
        b + (a - b).softplus() - normaliser
    }
}

/// Logistic regression with independent N(0, 2.5) priors on the coefficients. Each row of `x` is one record.
#[derive(Clone, Debug)]
pub struct LogisticRegression {
    /// The predictors, row-major, with one row per record and one column per coefficient.
    pub x: Vec<f64>,
    /// The outcomes.
    pub y: Vec<bool>,
}

impl ScalarModel for LogisticRegression {
    fn dim(&self) -> usize {
        self.x.len() / self.y.len()
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let zero = T::constant(0.0);
        let mut sum = z.iter().fold(zero, |sum, &b| {
            sum + b.normal_log_scale(zero, T::constant(2.5f64.ln()))
        });
        for (row, &y) in self.x.chunks(self.dim()).zip(&self.y) {
            let eta = row
                .iter()
                .zip(z)
                .fold(zero, |eta, (&x, &b)| eta + b.scale(x));
            sum = sum - if y { (-eta).softplus() } else { eta.softplus() };
        }
        sum
    }
}

/// Linear regression with normal errors and flat priors on the coefficients and on log σ, which is the last coordinate.
/// Each row of `x` is one record.
#[derive(Clone, Debug)]
pub struct LinearRegression {
    /// The predictors, row-major, with one row per record and one column per coefficient.
    pub x: Vec<f64>,
    /// The outcomes.
    pub y: Vec<f64>,
}

impl ScalarModel for LinearRegression {
    fn dim(&self) -> usize {
        self.x.len() / self.y.len() + 1
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let k = self.dim() - 1;
        let zero = T::constant(0.0);
        let mut sum = zero;
        for (row, &y) in self.x.chunks(k).zip(&self.y) {
            let mean = row
                .iter()
                .zip(z)
                .fold(zero, |eta, (&x, &b)| eta + b.scale(x));
            sum = sum + T::constant(y).normal_log_scale(mean, z[k]);
        }
        sum
    }
}

/// Rubin's eight schools with μ ~ N(0, 5) and τ ~ Cauchy⁺(0, 5), as an unnormalised density. The coordinates are μ, log
/// τ, and eight effects. The effects are θ itself in the centred form, and standardised effects in the non-centred
/// form.
#[derive(Clone, Copy, Debug)]
pub struct EightSchools {
    /// Whether θ itself is a coordinate.
    pub centred: bool,
}

/// The estimated effects and the standard errors of the eight schools.
const SCHOOLS: [(f64, f64); 8] = [
    (28.0, 15.0),
    (8.0, 10.0),
    (-3.0, 16.0),
    (7.0, 11.0),
    (-1.0, 9.0),
    (1.0, 11.0),
    (18.0, 10.0),
    (12.0, 18.0),
];

impl ScalarModel for EightSchools {
    fn dim(&self) -> usize {
        10
    }
    fn log_density<T: Real>(&self, z: &[T]) -> T {
        let (mu, log_tau) = (z[0], z[1]);
        let zero = T::constant(0.0);
        let tau = log_tau.exp();
        let one = T::constant(1.0);
        let mut sum = mu.normal_log_scale(zero, T::constant(5f64.ln())) + log_tau
            - (one + tau.scale(0.2).square()).ln();
        for (&t, (y, se)) in z[2..].iter().zip(SCHOOLS) {
            let theta = if self.centred {
                sum = sum + t.normal_log_scale(mu, log_tau);
                t
            } else {
                sum = sum + t.normal_log_scale(zero, zero);
                mu + tau * t
            };
            sum = sum + T::constant(y).normal_log_scale(theta, T::constant(se.ln()));
        }
        sum
    }
}
