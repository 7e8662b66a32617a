//! Gaussians with a sparse precision `L Lᵀ`. The parameters are ω = (μ, L by columns), and a draw is `z = μ + L⁻ᵀ ε`.
//!
//! The precision of the best Gaussian is the average negated Hessian of the log density (Opper and Archambeau 2009). An
//! element of the precision is therefore zero if the corresponding second derivative of the density is zero. If L has
//! the nonzeros of the Cholesky factor of that pattern, the family contains the best of all Gaussians. For hierarchies
//! and chains, its cost is linear in the dimension (Tan and Nott 2018, who specify the pattern by hand). The order of
//! elimination keeps L sparse. The rows of L and of the noise are in the order of elimination, while means and draws
//! are in the order of the density.

use std::sync::{Arc, Mutex};

use jensen_density::{Lanes, LanesMut, Pattern};

use super::mean_field::standard_normal;
use super::{
    Curvature, Family, FamilyKind, FamilyName, NaturalTarget, SampleBound, Smoothness, Space,
};
use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::noise::NoiseSource;
use crate::reduce::{axpy, dot, sum};
use crate::sizes::KEPT;
use crate::sparse::FILL;
use crate::sparse::{Colouring, Symbolic};
use jensen_math::constants::HALF_LOG_TWO_PI;

/// The family of Gaussians whose precision has the sparsity pattern of a density.
#[derive(Clone, Debug)]
pub struct Sparse {
    pattern: Option<Arc<Pattern>>,
    symbolic: Arc<Symbolic>,
    colouring: Arc<Colouring>,
    metric: Arc<Mutex<Option<Metric>>>,
}

impl Sparse {
    /// Creates the family on a space. The precision has the pattern of the space. If the pattern is unknown, the
    /// precision is dense.
    pub fn new(space: Space) -> Self {
        let (symbolic, colouring) = match &space.pattern {
            Some(pattern) => (
                Symbolic::new(pattern, usize::MAX).expect("no limit"),
                Colouring::new(pattern),
            ),
            None => (Symbolic::dense(space.dim), Colouring::full(space.dim)),
        };
        Self {
            pattern: space.pattern,
            symbolic: Arc::new(symbolic),
            colouring: Arc::new(colouring),
            metric: Arc::default(),
        }
    }

    /// Returns the number of entries of the factor on a space, if that number is at most `most`. Returns `None` if the
    /// pattern is unknown or if there are more entries.
    pub fn nonzeros(space: &Space, most: usize) -> Option<usize> {
        let symbolic = Symbolic::new(space.pattern.as_deref()?, most)?;
        Some(symbolic.nonzeros())
    }

    /// If the sparse factor is too large to examine, the function assumes a full factor.
    pub(super) fn parameters_on(space: &Space) -> usize {
        let full = space.dim.saturating_mul(space.dim + 1) / 2;
        space.dim + Self::nonzeros(space, 8 * KEPT).unwrap_or(full)
    }

    fn factor<'a>(&self, omega: &'a [f64]) -> &'a [f64] {
        &omega[self.dim()..]
    }

    /// Computes `A x`, where A is the square root of the covariance that maps standard normal noise to draws.
    pub(crate) fn root_times(&self, omega: &[f64], x: &[f64], lanes: usize) -> Vec<f64> {
        let mut y = x.to_vec();
        self.symbolic
            .solve_transposed(self.factor(omega), &mut y, lanes);
        self.placed(&y, lanes)
    }

    /// Computes `Aᵀ g`.
    pub(crate) fn root_transposed_times(&self, omega: &[f64], g: &[f64], lanes: usize) -> Vec<f64> {
        let mut u = self.ordered(g, lanes);
        self.symbolic.solve(self.factor(omega), &mut u, lanes);
        u
    }

    /// Computes `A⁻¹ x`.
    pub(crate) fn root_solve(&self, omega: &[f64], x: &[f64], lanes: usize) -> Vec<f64> {
        let y = self.ordered(x, lanes);
        self.symbolic
            .transposed_times(self.factor(omega), &y, lanes)
    }

    pub(crate) fn root_log_det(&self, omega: &[f64]) -> f64 {
        let factor = self.factor(omega);
        let diagonal = (0..self.dim()).map(|j| factor[self.symbolic.diagonal(j)]);
        let logs: Vec<f64> = diagonal.map(|l| l.abs().ln()).collect();
        -sum(&logs)
    }

    fn ordered(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        let mut out = Vec::with_capacity(x.len());
        for j in 0..self.dim() {
            let c = self.symbolic.coordinate(j);
            out.extend_from_slice(&x[c * lanes..(c + 1) * lanes]);
        }
        out
    }

    fn placed(&self, x: &[f64], lanes: usize) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        for (j, row) in x.chunks(lanes.max(1)).enumerate() {
            let c = self.symbolic.coordinate(j);
            out[c * lanes..(c + 1) * lanes].copy_from_slice(row);
        }
        out
    }

    /// Computes `z − μ` with rows in the order of elimination.
    fn centred(&self, omega: &[f64], noise: Lanes<'_>) -> Vec<f64> {
        let mut y = noise.as_slice().to_vec();
        self.symbolic
            .solve_transposed(self.factor(omega), &mut y, noise.lanes());
        y
    }

    /// Computes `L⁻¹ g` with rows in the order of elimination.
    fn pulled(&self, omega: &[f64], grad: Lanes<'_>) -> Vec<f64> {
        self.root_transposed_times(omega, grad.as_slice(), grad.lanes())
    }

    /// Computes `out[nonzero of (i, j)] += weight Σ_lanes a_i b_j`. `out` contains the elements of the factor within a
    /// parameter vector.
    fn add_products(&self, a: &[f64], b: &[f64], lanes: usize, weight: f64, out: &mut [f64]) {
        let (d, row) = (self.dim(), |x, i: usize| -> &[f64] {
            let x: &[f64] = x;
            &x[i * lanes..(i + 1) * lanes]
        });
        for j in 0..d {
            let own = row(b, j);
            let start = d + self.symbolic.diagonal(j);
            for (p, &i) in (start..).zip(self.symbolic.column(j)) {
                out[p] += weight * dot(row(a, i as usize), own);
            }
        }
    }

    /// Adds multiples of `ridge` to the diagonal until the matrix is positive definite, and returns its factor.
    fn definite(&self, matrix: &[f64], ridge: &[f64]) -> Option<Vec<f64>> {
        let mut share = 0.0;
        for _ in 0..12 {
            let mut shifted = matrix.to_vec();
            for (j, r) in ridge.iter().enumerate() {
                shifted[self.symbolic.diagonal(j)] += share * r;
            }
            if let Some(factor) = self.symbolic.cholesky(&shifted) {
                return Some(factor);
            }
            share = if share == 0.0 { 1e-6 } else { share * 10.0 };
        }
        None
    }
}

/// The Fisher information at ω. In the moving frame `L (I + X)`, the information is the identity for X, plus 1 for the
/// diagonal of X. The information for dL therefore has one block for each column of dL. The block of column j, with the
/// rows S, is `Σ[S, S] + e eᵀ / L²ⱼⱼ`.
#[derive(Debug)]
struct Metric {
    omega: Vec<f64>,
    /// The lower Cholesky factor of the block of each column, or only its diagonal if the block has too many rows.
    blocks: Vec<Vec<f64>>,
}

impl Metric {
    fn new(family: &Sparse, omega: &[f64]) -> Self {
        let symbolic = &*family.symbolic;
        let factor = family.factor(omega);
        let inverse = symbolic.selected_inverse(factor);
        let blocks = (0..symbolic.dim()).map(|j| {
            let column = symbolic.column(j);
            let n = column.len();
            let own = 1.0 / (factor[symbolic.diagonal(j)] * factor[symbolic.diagonal(j)]);
            let variance = |i: u32| inverse[symbolic.diagonal(i as usize)];
            if n <= FILL {
                let mut block = vec![0.0; n * n];
                for (b, &column) in column.iter().enumerate() {
                    let mut p = symbolic.diagonal(column as usize);
                    for (a, &row) in symbolic.column(j).iter().enumerate().skip(b) {
                        while symbolic.row(p) != row {
                            p += 1;
                        }
                        block[a * n + b] = inverse[p];
                        block[b * n + a] = inverse[p];
                    }
                }
                block[0] += own;
                if let Some(factor) = cholesky(&block, n) {
                    return factor;
                }
            }
            let mut diagonal: Vec<f64> = column.iter().map(|&i| variance(i)).collect();
            diagonal[0] += own;
            diagonal
        });
        Self {
            blocks: blocks.collect(),
            omega: omega.to_vec(),
        }
    }
}

impl Family for Sparse {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::Sparse)
    }
    fn smoothness(&self) -> Smoothness {
        Smoothness::Twice
    }
    fn space(&self) -> Space {
        Space {
            dim: self.dim(),
            pattern: self.pattern.clone(),
        }
    }
    fn dim(&self) -> usize {
        self.symbolic.dim()
    }
    fn noise_dim(&self) -> usize {
        self.dim()
    }
    fn parameters(&self) -> usize {
        self.dim() + self.symbolic.nonzeros()
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let mut omega = mean.to_vec();
        omega.resize(self.parameters(), 0.0);
        for j in 0..self.dim() {
            let sd = log_sd[self.symbolic.coordinate(j)].exp();
            omega[self.dim() + self.symbolic.diagonal(j)] = 1.0 / sd;
        }
        omega
    }
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        omega[..self.dim()].to_vec()
    }
    fn free_rows(&self) -> usize {
        self.dim()
    }
    /// Returns a member with the given mean and standard deviations. Natural-gradient steps then find the precision.
    fn enrich(
        &self,
        mean: &[f64],
        log_sd: &[f64],
        _source: NoiseSource,
        _bound: &mut dyn SampleBound,
    ) -> Vec<f64> {
        self.diagonal(mean, log_sd)
    }
    fn directions(&self) -> Option<Vec<f64>> {
        Some(self.colouring.directions())
    }
    /// The predicted gain is `½ (gᵀ Λ*⁻¹ g + tr(Λ* Σ) − d + log det Λ − log det Λ*)`, where `Λ*` is `−E ∇²log p`, made
    /// positive definite.
    fn natural(&self, omega: &[f64], gradient: &[f64], products: &[f64]) -> Option<NaturalTarget> {
        let dim = self.dim();
        let factor = self.factor(omega);
        let inverse = self.symbolic.selected_inverse(factor);
        let ridge: Vec<f64> = (0..dim)
            .map(|j| 1.0 / inverse[self.symbolic.diagonal(j)])
            .collect();
        let wanted = self.definite(
            &(self.symbolic).gathered(&self.colouring, self.pattern.as_deref(), products),
            &ridge,
        )?;
        let precision = self.symbolic.square(&wanted);
        let mut turned = self.ordered(gradient, 1);
        self.symbolic.solve(&wanted, &mut turned, 1);
        let log_det = |factor: &[f64]| {
            let diagonal = (0..dim).map(|j| factor[self.symbolic.diagonal(j)].abs().ln());
            2.0 * sum(&diagonal.collect::<Vec<f64>>())
        };
        let diagonal: f64 = (0..dim)
            .map(|j| self.symbolic.diagonal(j))
            .map(|p| precision[p] * inverse[p])
            .sum();
        let trace = 2.0 * dot(&precision, &inverse) - diagonal;
        let spread = trace - dim as f64 + log_det(factor) - log_det(&wanted);
        Some(NaturalTarget {
            gain: 0.5 * (dot(&turned, &turned) + spread),
            gradient: gradient.to_vec(),
            precision,
        })
    }
    fn towards(&self, omega: &[f64], target: &NaturalTarget, share: f64) -> Option<Vec<f64>> {
        let mut mixed = target.precision.clone();
        if share < 1.0 {
            let own = self.symbolic.square(self.factor(omega));
            for (m, own) in mixed.iter_mut().zip(&own) {
                *m = (1.0 - share) * own + share * *m;
            }
        }
        let factor = self.symbolic.cholesky(&mixed)?;
        let mut step = self.ordered(&target.gradient, 1);
        self.symbolic.solve(&factor, &mut step, 1);
        self.symbolic.solve_transposed(&factor, &mut step, 1);
        let mut moved = omega[..self.dim()].to_vec();
        axpy(-share, &self.placed(&step, 1), &mut moved);
        moved.extend_from_slice(&factor);
        Some(moved)
    }
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        let inverse = self.symbolic.selected_inverse(self.factor(omega));
        let variances: Vec<f64> = (0..self.dim())
            .map(|j| inverse[self.symbolic.diagonal(j)].sqrt())
            .collect();
        self.placed(&variances, 1)
    }
    fn entropy(&self, omega: &[f64]) -> f64 {
        self.dim() as f64 * (0.5 + HALF_LOG_TWO_PI) + self.root_log_det(omega)
    }
    fn add_entropy_gradient(&self, omega: &[f64], out: &mut [f64]) {
        for j in 0..self.dim() {
            let k = self.dim() + self.symbolic.diagonal(j);
            out[k] -= 1.0 / omega[k];
        }
    }
    fn add_entropy_hvp(&self, omega: &[f64], direction: &[f64], out: &mut [f64]) {
        for j in 0..self.dim() {
            let k = self.dim() + self.symbolic.diagonal(j);
            out[k] += direction[k] / (omega[k] * omega[k]);
        }
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, mut z: LanesMut<'_>) {
        let lanes = noise.lanes();
        for (j, row) in self.centred(omega, noise).chunks(lanes).enumerate() {
            let c = self.symbolic.coordinate(j);
            for (z, y) in z.row_mut(c).iter_mut().zip(row) {
                *z = omega[c] + y;
            }
        }
    }
    /// Computes `dμ − L⁻ᵀ dLᵀ (z − μ)`.
    fn push(&self, omega: &[f64], direction: &[f64], noise: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = noise.lanes();
        let y = self.centred(omega, noise);
        let mut moved = self
            .symbolic
            .transposed_times(self.factor(direction), &y, lanes);
        self.symbolic
            .solve_transposed(self.factor(omega), &mut moved, lanes);
        for (j, row) in moved.chunks(lanes).enumerate() {
            let c = self.symbolic.coordinate(j);
            for (out, m) in out.row_mut(c).iter_mut().zip(row) {
                *out = direction[c] - m;
            }
        }
    }
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        for (i, mean) in out.iter_mut().enumerate().take(self.dim()) {
            *mean += sum(grad.row(i));
        }
        let (y, u) = (self.centred(omega, noise), self.pulled(omega, grad));
        self.add_products(&y, &u, noise.lanes(), -1.0, out);
    }
    /// Computes `a_i u_j + y_i w_j` at each nonzero (i, j), where `y = z − μ`, `u = L⁻¹ g`, `a = L⁻ᵀ dᵀ y` and `w = L⁻¹
    /// d u`.
    fn pull_second(
        &self,
        omega: &[f64],
        direction: &[f64],
        noise: Lanes<'_>,
        grad: Lanes<'_>,
        out: &mut [f64],
    ) {
        let lanes = noise.lanes();
        let (factor, turned) = (self.factor(omega), self.factor(direction));
        let (y, u) = (self.centred(omega, noise), self.pulled(omega, grad));
        let mut a = self.symbolic.transposed_times(turned, &y, lanes);
        self.symbolic.solve_transposed(factor, &mut a, lanes);
        let mut w = self.symbolic.times(turned, &u, lanes);
        self.symbolic.solve(factor, &mut w, lanes);
        self.add_products(&a, &u, lanes, 1.0, out);
        self.add_products(&y, &w, lanes, 1.0, out);
    }
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, out: &mut [f64]) {
        let constant = 0.5 * self.dim() as f64 - self.entropy(omega);
        standard_normal(noise, constant, out);
    }
    /// Computes `−L ε`.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, mut out: LanesMut<'_>) {
        let lanes = noise.lanes();
        let turned = self
            .symbolic
            .times(self.factor(omega), noise.as_slice(), lanes);
        for (j, row) in turned.chunks(lanes).enumerate() {
            let c = self.symbolic.coordinate(j);
            for (out, x) in out.row_mut(c).iter_mut().zip(row) {
                *out = -x;
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
        let d = self.dim();
        let factor = self.factor(omega);
        let mut step = self.ordered(&residual[..d], 1);
        self.symbolic.solve(factor, &mut step, 1);
        self.symbolic.solve_transposed(factor, &mut step, 1);
        out[..d].copy_from_slice(&self.placed(&step, 1));
        let mut metric = self
            .metric
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if metric.as_ref().is_none_or(|metric| metric.omega != omega) {
            *metric = Some(Metric::new(self, omega));
        }
        let blocks = metric.iter().flat_map(|metric| &metric.blocks);
        for (j, block) in blocks.enumerate() {
            let n = self.symbolic.column(j).len();
            let start = d + self.symbolic.diagonal(j);
            let target = &mut out[start..start + n];
            target.copy_from_slice(&residual[start..start + n]);
            if block.len() == n * n {
                solve_lower(block, target);
                solve_lower_transposed(block, target);
            } else {
                target.iter_mut().zip(block).for_each(|(x, b)| *x /= b);
            }
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut shrunk = omega.to_vec();
        shrunk[self.dim()..].iter_mut().for_each(|l| *l /= factor);
        shrunk
    }
}
