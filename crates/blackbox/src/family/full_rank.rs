//! The full-rank Gaussian `z = μ + L ε`, with parameters ω = (μ, L packed by rows).
//!
//! As in Stan, L is lower triangular and otherwise unconstrained. Its diagonal elements are themselves parameters, and
//! not their logarithms, so the ELBO of a log-concave density is concave in ω. A negative diagonal element gives the
//! same distribution as a positive one.

use jensen_density::{Lanes, LanesMut};

use super::mean_field::standard_normal;
use super::{Curvature, Family, FamilyKind, FamilyName, SampleBound, Smoothness};
use crate::dense::{cholesky, inverse_factor, solve_lower, solve_lower_transposed};
use crate::noise::NoiseSource;
use crate::reduce::{axpy, combine, dot, dots, sum};
use crate::sizes::{LANES, WIDTH, hessian_draws};
use jensen_math::constants::HALF_LOG_TWO_PI;

/// The family of Gaussians with an unrestricted covariance. It has d + d(d + 1)/2 parameters.
#[derive(Clone, Copy, Debug)]
pub struct FullRank {
    dim: usize,
}

impl FullRank {
    /// Creates the family on ℝᵈ.
    pub fn new(dim: usize) -> Self {
        Self { dim }
    }

    /// Returns ω for the given mean and lower factor (a d × d matrix in row-major order).
    pub fn assemble(&self, mean: &[f64], factor: &[f64]) -> Vec<f64> {
        let mut omega = mean.to_vec();
        for i in 0..self.dim {
            omega.extend_from_slice(&factor[i * self.dim..i * self.dim + i + 1]);
        }
        omega
    }

    fn row(&self, i: usize) -> usize {
        self.dim + i * (i + 1) / 2
    }

    fn diagonal_index(&self, i: usize) -> usize {
        self.row(i) + i
    }

    /// Returns row i of the lower factor L.
    pub fn factor_row<'a>(&self, omega: &'a [f64], i: usize) -> &'a [f64] {
        &omega[self.row(i)..self.row(i + 1)]
    }

    fn affine(&self, parameters: &[f64], noise: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = noise.lanes();
        for first in (0..lanes).step_by(LANES) {
            let block = first..lanes.min(first + LANES);
            for (i, row) in out.as_mut_slice().chunks_mut(lanes).enumerate() {
                row[block.clone()].fill(parameters[i]);
            }
            let mut four = out.as_mut_slice().chunks_mut(4 * lanes);
            for i in (0..self.dim).step_by(4) {
                let rows = four.next().expect("rows left");
                let factors = |k: usize| self.factor_row(parameters, i + k);
                // All four rows share the first part of the sum. The corner is computed afterwards.
                let mut common = 0;
                if i + 4 <= self.dim {
                    common = i + 1;
                    let mut parts = rows.chunks_mut(lanes);
                    let outs =
                        [(); 4].map(|()| &mut parts.next().expect("four rows")[block.clone()]);
                    let weights = [0, 1, 2, 3].map(|k| &factors(k)[..common]);
                    combine(weights, noise.as_slice(), lanes, first, outs);
                }
                for (k, row) in rows.chunks_mut(lanes).enumerate() {
                    for (j, &l) in factors(k).iter().enumerate().skip(common) {
                        axpy(l, &noise.row(j)[block.clone()], &mut row[block.clone()]);
                    }
                }
            }
        }
    }
}

/// The largest number of steps of the search for a starting point. It is a cap: the search ends when a step gains less
/// than [`ENOUGH`].
const ITERATIONS: usize = 12;

/// The search for a starting point ends when a step gains less than this number of nats. The fit that follows takes
/// such steps on more draws.
const ENOUGH: f64 = 0.2;

/// Returns the lower Cholesky factor of `(1 − share) A Aᵀ + share B Bᵀ` for lower factors A and B.
fn mix(a: &[f64], b: &[f64], n: usize, share: f64) -> Option<Vec<f64>> {
    if share == 1.0 {
        return Some(b.to_vec());
    }
    let mut sum = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let product = |f: &[f64]| dot(&f[i * n..i * n + j + 1], &f[j * n..j * n + j + 1]);
            sum[i * n + j] = (1.0 - share) * product(a) + share * product(b);
        }
    }
    cholesky(&sum, n)
}

/// The tile size must be a multiple of four.
const TILE: usize = WIDTH / 2;

impl Family for FullRank {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::FullRank)
    }
    fn smoothness(&self) -> Smoothness {
        Smoothness::Twice
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn noise_dim(&self) -> usize {
        self.dim
    }
    fn parameters(&self) -> usize {
        self.row(self.dim)
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let mut omega = mean.to_vec();
        omega.resize(self.parameters(), 0.0);
        for (i, l) in log_sd.iter().enumerate() {
            omega[self.diagonal_index(i)] = l.exp();
        }
        omega
    }
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        omega[..self.dim].to_vec()
    }
    fn free_rows(&self) -> usize {
        self.dim
    }
    /// Performs the fixed-point iterations `Σ⁻¹ ← −E ∇²log p`, `μ ← μ + Σ E ∇log p`, with expectations under the
    /// current member (Opper and Archambeau 2009). An iteration is damped if the full step would reduce the ELBO on
    /// fixed draws.
    fn enrich(
        &self,
        mean: &[f64],
        log_sd: &[f64],
        _source: NoiseSource,
        bound: &mut dyn SampleBound,
    ) -> Vec<f64> {
        let dim = self.dim;
        let lanes = (2 * dim).next_power_of_two().clamp(256, 512);
        let draws = hessian_draws(dim, lanes);
        bound.fix(lanes);
        let mut omega = self.diagonal(mean, log_sd);
        let mut gradient = vec![0.0; omega.len()];
        let mut value = bound.value_gradient(&omega, &mut gradient);
        let mut precision = vec![0.0; dim * dim];
        for (i, l) in log_sd.iter().enumerate() {
            precision[i * dim + i] = (-l).exp();
        }
        for _ in 0..ITERATIONS {
            let Some(curvature) = bound.curvature(&omega, draws) else {
                break;
            };
            let mut taken = None;
            for share in [1.0, 0.5, 0.2] {
                let Some(factor) = mix(&precision, &curvature.factor, dim, share) else {
                    continue;
                };
                let Some(spread) = inverse_factor(&factor, dim) else {
                    continue;
                };
                let mut step: Vec<f64> = gradient[..dim].iter().map(|g| -share * g).collect();
                solve_lower(&factor, &mut step);
                solve_lower_transposed(&factor, &mut step);
                let mean: Vec<f64> = omega.iter().zip(&step).map(|(m, s)| m + s).collect();
                let trial = self.assemble(&mean, &spread);
                let mut trial_gradient = vec![0.0; trial.len()];
                let trial_value = bound.value_gradient(&trial, &mut trial_gradient);
                if trial_value < value {
                    taken = Some((trial, trial_value, trial_gradient, factor));
                    break;
                }
            }
            let Some((trial, trial_value, trial_gradient, factor)) = taken else {
                break;
            };
            let gain = value - trial_value;
            (omega, value, gradient, precision) = (trial, trial_value, trial_gradient, factor);
            if gain < ENOUGH {
                break;
            }
        }
        omega
    }
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        (0..self.dim)
            .map(|i| {
                let row = self.factor_row(omega, i);
                dot(row, row).sqrt()
            })
            .collect()
    }
    fn entropy(&self, omega: &[f64]) -> f64 {
        let logs: Vec<f64> = (0..self.dim)
            .map(|i| omega[self.diagonal_index(i)].abs().ln())
            .collect();
        self.dim as f64 * (0.5 + HALF_LOG_TWO_PI) + sum(&logs)
    }
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]) {
        for i in 0..self.dim {
            let k = self.diagonal_index(i);
            out[k] += 1.0 / omega[k];
        }
    }
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]) {
        for i in 0..self.dim {
            let k = self.diagonal_index(i);
            out[k] -= direction[k] / (omega[k] * omega[k]);
        }
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, z: LanesMut<'_>) {
        self.affine(omega, noise, z);
    }
    fn push(&self, _omega: &[f64], direction: &[f64], noise: Lanes<'_>, out: LanesMut<'_>) {
        self.affine(direction, noise, out);
    }
    fn pull(&self, _omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        let lanes = noise.lanes();
        for first in (0..lanes).step_by(LANES) {
            let block = first..lanes.min(first + LANES);
            let grad = |i: usize| &grad.row(i)[block.clone()];
            let noise = |j: usize| &noise.row(j)[block.clone()];
            for (i, mean) in out.iter_mut().enumerate().take(self.dim) {
                *mean += sum(grad(i));
            }
            // The loop processes two rows of the factor and four columns at a time, as far as both rows extend. A tile
            // of columns stays in the fastest cache.
            let whole = |i: usize| if i + 1 < self.dim { (i + 1) & !3 } else { 0 };
            for tile in (0..self.dim).step_by(TILE) {
                for i in (0..self.dim).step_by(2) {
                    let rows = [self.row(i), self.row((i + 1).min(self.dim - 1))];
                    for done in (tile..whole(i).min(tile + TILE)).step_by(4) {
                        let columns = [0, 1, 2, 3].map(|k| noise(done + k));
                        let found = dots([grad(i), grad(i + 1)], columns);
                        for (row, found) in rows.iter().zip(&found) {
                            let target = &mut out[row + done..row + done + 4];
                            target.iter_mut().zip(found).for_each(|(t, x)| *t += x);
                        }
                    }
                }
            }
            for i in 0..self.dim {
                for j in whole(i & !1)..=i {
                    out[self.row(i) + j] += dot(grad(i), noise(j));
                }
            }
        }
    }
    fn pull_second(
        &self,
        _omega: &[f64],
        _direction: &[f64],
        _noise: Lanes<'_>,
        _grad: Lanes<'_>,
        _out: &mut [f64],
    ) {
        // The transformation T is linear in ω, so its second derivative is zero.
    }
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, out: &mut [f64]) {
        let constant = 0.5 * self.dim as f64 - self.entropy(omega);
        standard_normal(noise, constant, out);
    }
    fn score(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, mut out: LanesMut<'_>) {
        // Computes −L⁻ᵀ ε from the last row to the first.
        let lanes = noise.lanes();
        for (s, e) in out.as_mut_slice().iter_mut().zip(noise.as_slice()) {
            *s = -e;
        }
        for i in (0..self.dim).rev() {
            let row = self.factor_row(omega, i);
            let (head, tail) = out.as_mut_slice().split_at_mut(i * lanes);
            let own = &mut tail[..lanes];
            own.iter_mut().for_each(|x| *x /= row[i]);
            for (j, &l) in row[..i].iter().enumerate() {
                axpy(-l, own, &mut head[j * lanes..(j + 1) * lanes]);
            }
        }
    }
    fn precondition(
        &self,
        omega: &[f64],
        _curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        // In the moving frame μ + L m, L(I + A), the Fisher information is the identity for m, 1 for the strictly lower
        // part of A, and 2 for the diagonal of A.
        let d = self.dim;
        let mut pulled = vec![0.0; d];
        for i in 0..d {
            axpy(residual[i], self.factor_row(omega, i), &mut pulled[..=i]);
        }
        for i in 0..d {
            out[i] = dot(self.factor_row(omega, i), &pulled[..=i]);
        }
        // A is tril(Lᵀ R) with a halved diagonal, computed for one row of L at a time. The product L A is computed from
        // it.
        let mut a = vec![0.0; d * d];
        for k in 0..d {
            let residual_row = &residual[self.row(k)..self.row(k + 1)];
            for (i, &l) in self.factor_row(omega, k).iter().enumerate() {
                axpy(l, &residual_row[..=i], &mut a[i * d..i * d + i + 1]);
            }
        }
        for i in 0..d {
            a[i * d + i] *= 0.5;
        }
        for i in 0..d {
            let target = &mut out[self.row(i)..self.row(i + 1)];
            target.fill(0.0);
            for (k, &l) in self.factor_row(omega, i).iter().enumerate() {
                axpy(l, &a[k * d..k * d + k + 1], &mut target[..=k]);
            }
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut shrunk = omega.to_vec();
        shrunk[self.dim..].iter_mut().for_each(|l| *l *= factor);
        shrunk
    }
}

#[cfg(test)]
mod tests {
    use super::mix;

    #[test]
    fn mixing_adds_precisions() {
        let mixed = mix(&[2.0, 0.0, 0.0, 1.0], &[4.0, 0.0, 0.0, 3.0], 2, 0.5).unwrap();
        assert!((mixed[0] * mixed[0] - 10.0).abs() < 1e-12);
        assert!((mixed[3] * mixed[3] - 5.0).abs() < 1e-12);
    }
}
