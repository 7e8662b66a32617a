//! The mean-field Gaussian `zᵢ = μᵢ + e^{λᵢ} εᵢ`, with parameters ω = (μ, λ).

use jensen_density::{Lanes, LanesMut};

use super::{Curvature, Family, FamilyKind, FamilyName, SampleBound, Smoothness};
use crate::dense::{solve_lower, solve_lower_transposed};
use crate::noise::NoiseSource;
use crate::reduce::{affine_row, dot, sum};
use jensen_math::constants::HALF_LOG_TWO_PI;

/// The family of Gaussians with independent coordinates. It has 2d parameters, ω = (μ, log σ).
#[derive(Clone, Copy, Debug)]
pub struct MeanField {
    dim: usize,
}

impl MeanField {
    /// Creates the family on ℝᵈ.
    pub fn new(dim: usize) -> Self {
        Self { dim }
    }
}

impl Family for MeanField {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::MeanField)
    }
    fn smoothness(&self) -> Smoothness {
        Smoothness::Twice
    }
    fn uses_curvature(&self) -> bool {
        true
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn noise_dim(&self) -> usize {
        self.dim
    }
    fn parameters(&self) -> usize {
        2 * self.dim
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        [mean, log_sd].concat()
    }
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        omega[..self.dim].to_vec()
    }
    fn marginal_log_sd(&self, omega: &[f64]) -> Vec<f64> {
        omega[self.dim..].to_vec()
    }
    fn is_factorised(&self) -> bool {
        true
    }
    fn enrich(
        &self,
        mean: &[f64],
        log_sd: &[f64],
        _source: NoiseSource,
        _bound: &mut dyn SampleBound,
    ) -> Vec<f64> {
        self.diagonal(mean, log_sd)
    }
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        omega[self.dim..].iter().map(|l| l.exp()).collect()
    }
    fn entropy(&self, omega: &[f64]) -> f64 {
        self.dim as f64 * (0.5 + HALF_LOG_TWO_PI) + sum(&omega[self.dim..])
    }
    fn add_entropy_gradient(&self, _omega: &[f64], out: &mut [f64]) {
        out[self.dim..].iter_mut().for_each(|x| *x += 1.0);
    }
    fn add_entropy_hvp(&self, _omega: &[f64], _direction: &[f64], _out: &mut [f64]) {
        // The entropy is linear in ω.
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, mut z: LanesMut<'_>) {
        for i in 0..self.dim {
            let (mean, sd) = (omega[i], omega[self.dim + i].exp());
            affine_row(mean, sd, noise.row(i), z.row_mut(i));
        }
    }
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, mut out: LanesMut<'_>) {
        for i in 0..self.dim {
            let d_mean = direction[i];
            let d_sd = omega[self.dim + i].exp() * direction[self.dim + i];
            affine_row(d_mean, d_sd, noise.row(i), out.row_mut(i));
        }
    }
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        for i in 0..self.dim {
            out[i] += sum(grad.row(i));
            out[self.dim + i] += omega[self.dim + i].exp() * dot(grad.row(i), noise.row(i));
        }
    }
    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    ) {
        for i in 0..self.dim {
            let l = self.dim + i;
            out[l] += direction[l] * omega[l].exp() * dot(grad.row(i), noise.row(i));
        }
    }
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, out: &mut [f64]) {
        let constant = -(self.dim as f64) * HALF_LOG_TWO_PI - sum(&omega[self.dim..]);
        standard_normal(noise, constant, out);
    }
    fn score(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, mut out: LanesMut<'_>) {
        for i in 0..self.dim {
            let precision_root = (-omega[self.dim + i]).exp();
            for (s, e) in out.row_mut(i).iter_mut().zip(noise.row(i)) {
                *s = -e * precision_root;
            }
        }
    }
    fn precondition(
        &self,
        omega: &[f64],
        curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        let (out_mean, out_log) = out.split_at_mut(self.dim);
        out_mean.copy_from_slice(&residual[..self.dim]);
        precondition_mean(omega, self.dim, curvature, out_mean);
        for (i, out) in out_log.iter_mut().enumerate() {
            let l = self.dim + i;
            let stiffness = curvature.map_or(1.0, |c| {
                (c.diagonal[i] * (2.0 * omega[l]).exp()).clamp(1.0, 1e12)
            });
            *out = residual[l] / (2.0 * stiffness);
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut shrunk = omega.to_vec();
        shrunk[self.dim..]
            .iter_mut()
            .for_each(|l| *l += factor.ln());
        shrunk
    }
}

/// Computes `out[l] = constant − ½ Σᵢ noise[i, l]²`, adding the rows in order.
pub(super) fn standard_normal(noise: Lanes<'_>, constant: f64, out: &mut [f64]) {
    out.fill(constant);
    for i in 0..noise.rows() {
        for (value, e) in out.iter_mut().zip(noise.row(i)) {
            *value -= 0.5 * e * e;
        }
    }
}

/// Computes `x ← P⁻¹ x` for the mean. P is the curvature if it is known. If the curvature is unknown, P is diagonal and
/// contains the inverses of the variances e^{2λ}. In ω, λ follows the mean.
pub(super) fn precondition_mean(
    omega: &[f64],
    dim: usize,
    curvature: Option<&Curvature>,
    x: &mut [f64],
) {
    match curvature {
        Some(curvature) => {
            solve_lower(&curvature.factor, x);
            solve_lower_transposed(&curvature.factor, x);
        }
        None => {
            for (x, l) in x.iter_mut().zip(&omega[dim..2 * dim]) {
                *x *= (2.0 * l).exp();
            }
        }
    }
}
