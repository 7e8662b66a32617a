//! Gaussians whose covariance is a diagonal plus a matrix of low rank. The parameters are ω = (μ, λ, U by rows), and a
//! draw is `z = μ + e^λ ⊙ ε₀ + U ε₁`.
//!
//! The covariance is `Σ = D² + U Uᵀ` with `D = diag(e^λ)`. All operations cost O(d R²). With `C Cᵀ = I + Uᵀ D⁻² U` and
//! `W = D⁻² U C⁻ᵀ`, the precision is `Σ⁻¹ = D⁻² − W Wᵀ`, and `log det Σ = 2 Σ λ + 2 Σ log Cᵣᵣ`. The entropy is ½ log
//! det Σ plus a constant. Its derivatives are `∂H/∂λᵢ = e^{2λᵢ} (Σ⁻¹)ᵢᵢ` and `∂H/∂U = Σ⁻¹ U`. The second derivatives
//! follow from `d(Σ⁻¹) = −Σ⁻¹ dΣ Σ⁻¹` with `dΣ = 2 D² dλ + dU Uᵀ + U dUᵀ`.

use jensen_density::{Lanes, LanesMut};

use super::mean_field::precondition_mean;
use super::{Curvature, Family, FamilyKind, FamilyName, SampleBound, Smoothness};
use crate::dense::{cholesky, solve_lower};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::reduce::{affine_row, axpy, dot, sum};
use jensen_math::constants::HALF_LOG_TWO_PI;

/// The family of Gaussians whose covariance is a diagonal plus `rank` factors. It has d(2 + R) parameters.
#[derive(Clone, Copy, Debug)]
pub struct LowRank {
    dim: usize,
    rank: usize,
}

/// The matrices `D⁻²` and `W` (d × R), and the sum `Σ log Cᵣᵣ`, for one ω.
struct Woodbury {
    precision: Vec<f64>,
    w: Vec<f64>,
    log_det_half: f64,
}

impl LowRank {
    /// Creates the family on ℝᵈ with `rank` factors.
    pub fn new(dim: usize, rank: usize) -> Self {
        Self { dim, rank }
    }

    fn log_sd<'a>(&self, omega: &'a [f64]) -> &'a [f64] {
        &omega[self.dim..2 * self.dim]
    }

    fn factor<'a>(&self, omega: &'a [f64], i: usize) -> &'a [f64] {
        let first = 2 * self.dim + i * self.rank;
        &omega[first..first + self.rank]
    }

    fn woodbury(&self, omega: &[f64]) -> Woodbury {
        let r = self.rank;
        let precision: Vec<f64> = self
            .log_sd(omega)
            .iter()
            .map(|l| (-2.0 * l).exp())
            .collect();
        let mut inner = vec![0.0; r * r];
        for (i, p) in precision.iter().enumerate() {
            let u = self.factor(omega, i);
            for a in 0..r {
                axpy(p * u[a], u, &mut inner[a * r..(a + 1) * r]);
            }
        }
        for a in 0..r {
            inner[a * r + a] += 1.0;
        }
        // The matrix is I plus a Gram matrix, so the factorisation can fail only by overflow. NaN then marks ω as out
        // of range.
        let c = cholesky(&inner, r).unwrap_or_else(|| vec![f64::NAN; r * r]);
        let mut w = vec![0.0; self.dim * r];
        for (i, p) in precision.iter().enumerate() {
            let row = &mut w[i * r..(i + 1) * r];
            row.copy_from_slice(self.factor(omega, i));
            solve_lower(&c, row);
            row.iter_mut().for_each(|x| *x *= p);
        }
        let logs: Vec<f64> = (0..r).map(|a| c[a * r + a].ln()).collect();
        Woodbury {
            precision,
            w,
            log_det_half: sum(&logs),
        }
    }
}

impl Woodbury {
    fn row(&self, i: usize) -> &[f64] {
        let r = self.w.len() / self.precision.len();
        &self.w[i * r..(i + 1) * r]
    }

    /// Returns `(Σ⁻¹)ᵢᵢ`.
    fn diagonal(&self, i: usize) -> f64 {
        self.precision[i] - dot(self.row(i), self.row(i))
    }

    /// Computes `Σ⁻¹ X` for a d × `columns` matrix X in row-major order.
    fn solve(&self, x: &[f64], columns: usize) -> Vec<f64> {
        let d = self.precision.len();
        let r = self.w.len() / d;
        let mut inner = vec![0.0; r * columns];
        for i in 0..d {
            let x = &x[i * columns..(i + 1) * columns];
            for (a, &w) in self.row(i).iter().enumerate() {
                axpy(w, x, &mut inner[a * columns..(a + 1) * columns]);
            }
        }
        let mut out = vec![0.0; x.len()];
        for i in 0..d {
            let row = &mut out[i * columns..(i + 1) * columns];
            axpy(self.precision[i], &x[i * columns..(i + 1) * columns], row);
            for (a, &w) in self.row(i).iter().enumerate() {
                axpy(-w, &inner[a * columns..(a + 1) * columns], row);
            }
        }
        out
    }
}

impl Family for LowRank {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::LowRank { rank: self.rank })
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
        self.dim + self.rank
    }
    fn parameters(&self) -> usize {
        self.dim * (2 + self.rank)
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let mut omega = [mean, log_sd].concat();
        omega.resize(self.parameters(), 0.0);
        omega
    }
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        omega[..self.dim].to_vec()
    }
    fn enrich(
        &self,
        mean: &[f64],
        log_sd: &[f64],
        source: NoiseSource,
        _bound: &mut dyn SampleBound,
    ) -> Vec<f64> {
        // Factors of zero would be a saddle point, but small random factors are not.
        let (dim, rank) = (self.dim, self.rank);
        let mut omega = self.diagonal(mean, log_sd);
        let mut noise = vec![0.0; dim * rank];
        source.fill(
            NoisePurpose::Start,
            u64::MAX - 1,
            0,
            dim * rank,
            1,
            &mut noise,
        );
        let scale = 0.3 / (rank as f64).sqrt();
        for (i, (u, e)) in omega[2 * dim..].iter_mut().zip(&noise).enumerate() {
            *u = scale * log_sd[i / rank].exp() * e;
        }
        omega
    }
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        (0..self.dim)
            .map(|i| {
                let u = self.factor(omega, i);
                ((2.0 * omega[self.dim + i]).exp() + dot(u, u)).sqrt()
            })
            .collect()
    }
    fn entropy(&self, omega: &[f64]) -> f64 {
        self.dim as f64 * (0.5 + HALF_LOG_TWO_PI)
            + sum(self.log_sd(omega))
            + self.woodbury(omega).log_det_half
    }
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]) {
        let (d, r) = (self.dim, self.rank);
        let woodbury = self.woodbury(omega);
        for i in 0..d {
            out[d + i] += woodbury.diagonal(i) / woodbury.precision[i];
        }
        let solved = woodbury.solve(&omega[2 * d..], r);
        axpy(1.0, &solved, &mut out[2 * d..]);
    }
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]) {
        let (d, r) = (self.dim, self.rank);
        let woodbury = self.woodbury(omega);
        let (u, du) = (&omega[2 * d..], &direction[2 * d..]);
        let su = woodbury.solve(u, r);
        let sdu = woodbury.solve(du, r);
        // The diagonal part of dΣ is e = 2 e^{2λ} dλ.
        let e: Vec<f64> = (0..d)
            .map(|i| 2.0 * direction[d + i] / woodbury.precision[i])
            .collect();
        let mut inner = vec![0.0; r * r];
        for (i, e) in e.iter().enumerate() {
            let w = woodbury.row(i);
            for a in 0..r {
                axpy(e * w[a], w, &mut inner[a * r..(a + 1) * r]);
            }
        }
        for i in 0..d {
            let (p, w) = (woodbury.precision[i], woodbury.row(i));
            let mut quadratic = p * p * e[i] - 2.0 * p * e[i] * dot(w, w);
            for a in 0..r {
                quadratic += w[a] * dot(&inner[a * r..(a + 1) * r], w);
            }
            let row = i * r..(i + 1) * r;
            let change = quadratic + 2.0 * dot(&sdu[row.clone()], &su[row]);
            out[d + i] += 2.0 * direction[d + i] * woodbury.diagonal(i) / p - change / p;
        }
        // This uses d(Σ⁻¹U) = Σ⁻¹ (dU − dΣ Σ⁻¹ U).
        let (mut ut_su, mut dut_su) = (vec![0.0; r * r], vec![0.0; r * r]);
        for i in 0..d {
            let s = &su[i * r..(i + 1) * r];
            for a in 0..r {
                axpy(u[i * r + a], s, &mut ut_su[a * r..(a + 1) * r]);
                axpy(du[i * r + a], s, &mut dut_su[a * r..(a + 1) * r]);
            }
        }
        let mut right = du.to_vec();
        for i in 0..d {
            let row = &mut right[i * r..(i + 1) * r];
            axpy(-e[i], &su[i * r..(i + 1) * r], row);
            for a in 0..r {
                axpy(-du[i * r + a], &ut_su[a * r..(a + 1) * r], row);
                axpy(-u[i * r + a], &dut_su[a * r..(a + 1) * r], row);
            }
        }
        axpy(1.0, &woodbury.solve(&right, r), &mut out[2 * d..]);
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, mut z: LanesMut<'_>) {
        for i in 0..self.dim {
            let (mean, sd) = (omega[i], omega[self.dim + i].exp());
            let row = z.row_mut(i);
            affine_row(mean, sd, noise.row(i), row);
            for (a, &u) in self.factor(omega, i).iter().enumerate() {
                axpy(u, noise.row(self.dim + a), row);
            }
        }
    }
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, mut out: LanesMut<'_>) {
        for i in 0..self.dim {
            let d_mean = direction[i];
            let d_sd = omega[self.dim + i].exp() * direction[self.dim + i];
            let row = out.row_mut(i);
            affine_row(d_mean, d_sd, noise.row(i), row);
            for (a, &u) in self.factor(direction, i).iter().enumerate() {
                axpy(u, noise.row(self.dim + a), row);
            }
        }
    }
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        let d = self.dim;
        for i in 0..d {
            out[i] += sum(grad.row(i));
            out[d + i] += omega[d + i].exp() * dot(grad.row(i), noise.row(i));
            for a in 0..self.rank {
                out[2 * d + i * self.rank + a] += dot(grad.row(i), noise.row(d + a));
            }
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
    fn log_density(&self, omega: &[f64], _noise: Lanes<'_>, z: Lanes<'_>, out: &mut [f64]) {
        let lanes = z.lanes();
        let woodbury = self.woodbury(omega);
        out.fill(0.5 * self.dim as f64 - self.entropy(omega));
        let mut projected = vec![0.0; self.rank * lanes];
        let mut centred = vec![0.0; lanes];
        for (i, (mean, p)) in omega.iter().zip(&woodbury.precision).enumerate() {
            for ((c, z), value) in centred.iter_mut().zip(z.row(i)).zip(out.iter_mut()) {
                *c = z - mean;
                *value -= 0.5 * p * *c * *c;
            }
            for (a, &w) in woodbury.row(i).iter().enumerate() {
                axpy(w, &centred, &mut projected[a * lanes..(a + 1) * lanes]);
            }
        }
        for row in projected.chunks(lanes) {
            for (value, x) in out.iter_mut().zip(row) {
                *value += 0.5 * x * x;
            }
        }
    }
    fn score(&self, omega: &[f64], _noise: Lanes<'_>, z: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = z.lanes();
        let mut centred = z.as_slice().to_vec();
        for (row, mean) in centred.chunks_mut(lanes).zip(omega) {
            row.iter_mut().for_each(|x| *x = mean - *x);
        }
        let solved = self.woodbury(omega).solve(&centred, lanes);
        out.as_mut_slice().copy_from_slice(&solved);
    }
    fn precondition(
        &self,
        omega: &[f64],
        curvature: Option<&Curvature>,
        residual: &[f64],
        out: &mut [f64],
    ) {
        let (d, r) = (self.dim, self.rank);
        out.copy_from_slice(residual);
        match curvature {
            Some(_) => precondition_mean(omega, d, curvature, &mut out[..d]),
            None => {
                let mut inner = vec![0.0; r];
                for (i, &g) in residual[..d].iter().enumerate() {
                    axpy(g, self.factor(omega, i), &mut inner);
                }
                for (i, x) in out[..d].iter_mut().enumerate() {
                    let variance = (2.0 * omega[d + i]).exp();
                    *x = variance * residual[i] + dot(self.factor(omega, i), &inner);
                }
            }
        }
        out[d..2 * d].iter_mut().for_each(|x| *x *= 0.5);
        for (i, row) in out[2 * d..].chunks_mut(r).enumerate() {
            let variance = (2.0 * omega[d + i]).exp();
            row.iter_mut().for_each(|x| *x *= variance);
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let d = self.dim;
        let mut shrunk = omega.to_vec();
        shrunk[d..2 * d].iter_mut().for_each(|l| *l += factor.ln());
        shrunk[2 * d..].iter_mut().for_each(|u| *u *= factor);
        shrunk
    }
}
