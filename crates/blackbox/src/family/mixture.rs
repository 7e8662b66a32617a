//! Mixtures of Gaussians. The parameters ω are the weights of the components, followed by the mean and the lower factor
//! (packed by rows) of each component.
//!
//! The first row of the noise selects the component, and the other rows determine the draw from that component. The
//! choice of a component has no derivative, so gradients with respect to the parameters cannot maximise the ELBO.
//! Instead, the parameters are set to moments of weighted draws (see `moments`). Components of weight zero are unused.

use jensen_density::{Lanes, LanesMut};
use jensen_math::special::{log_sum_exp_slice, phi};

use super::{Family, FamilyKind, FamilyName, FullRank, Smoothness, lacks};
use crate::dense::{cholesky, solve_lower_lanes, solve_lower_transposed_lanes};
use crate::reduce::dot;
use jensen_math::constants::HALF_LOG_TWO_PI;

/// The family of mixtures of up to `components` Gaussians with unrestricted covariances.
#[derive(Clone, Copy, Debug)]
pub struct Mixture {
    dim: usize,
    components: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Component {
    pub weight: f64,
    pub mean: Vec<f64>,
    /// The lower Cholesky factor of the covariance, a d × d matrix in row-major order.
    pub factor: Vec<f64>,
}

impl Component {
    /// Computes `L⁻¹ (z − μ)` for each draw z.
    pub(crate) fn standardised(&self, z: Lanes<'_>) -> Vec<f64> {
        let lanes = z.lanes();
        let mut y = z.as_slice().to_vec();
        for (row, mean) in y.chunks_mut(lanes.max(1)).zip(&self.mean) {
            row.iter_mut().for_each(|y| *y -= mean);
        }
        solve_lower_lanes(&self.factor, self.mean.len(), &mut y, lanes);
        y
    }

    pub(crate) fn log_det(&self) -> f64 {
        let dim = self.mean.len();
        let diagonal = (0..dim).map(|i| self.factor[i * dim + i].abs().ln());
        diagonal.sum()
    }
}

impl Mixture {
    /// Creates the family on ℝᵈ. Its members are mixtures of at most `components` Gaussians.
    pub fn new(dim: usize, components: usize) -> Self {
        Self { dim, components }
    }

    pub(crate) fn components(&self) -> usize {
        self.components
    }

    pub(crate) fn parts(&self, omega: &[f64]) -> Vec<Component> {
        let (weights, rest) = omega.split_at(self.components);
        let single = FullRank::new(self.dim);
        let blocks = rest.chunks(single.parameters());
        let parts = weights.iter().zip(blocks).map(|(weight, block)| {
            let mut factor = vec![0.0; self.dim * self.dim];
            for (i, row) in factor.chunks_mut(self.dim).enumerate() {
                row[..=i].copy_from_slice(single.factor_row(block, i));
            }
            Component {
                weight: *weight,
                mean: block[..self.dim].to_vec(),
                factor,
            }
        });
        parts.collect()
    }

    /// Returns ω for the given components, whose weights need not sum to one. Unused components have weight zero.
    ///
    /// # Panics
    /// Panics if there are no components or too many components, which is a bug in the caller.
    pub(crate) fn assemble(&self, parts: &[Component]) -> Vec<f64> {
        assert!(!parts.is_empty() && parts.len() <= self.components);
        let total: f64 = parts.iter().map(|part| part.weight).sum();
        let single = FullRank::new(self.dim);
        let mut omega: Vec<f64> = parts.iter().map(|part| part.weight / total).collect();
        omega.resize(self.components, 0.0);
        let repeated = std::iter::repeat(&parts[0]);
        for part in parts.iter().chain(repeated).take(self.components) {
            omega.extend(single.assemble(&part.mean, &part.factor));
        }
        omega
    }

    pub(crate) fn moments(&self, omega: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let parts = self.parts(omega);
        let d = self.dim;
        let mut mean = vec![0.0; d];
        for part in &parts {
            for (m, own) in mean.iter_mut().zip(&part.mean) {
                *m += part.weight * own;
            }
        }
        let mut covariance = vec![0.0; d * d];
        for part in parts.iter().filter(|part| part.weight > 0.0) {
            for i in 0..d {
                for j in 0..=i {
                    let row = |k: usize| &part.factor[k * d..k * d + j + 1];
                    let apart = (part.mean[i] - mean[i]) * (part.mean[j] - mean[j]);
                    covariance[i * d + j] += part.weight * (dot(row(i), row(j)) + apart);
                }
            }
        }
        for i in 0..d {
            for j in 0..i {
                covariance[j * d + i] = covariance[i * d + j];
            }
        }
        (mean, covariance)
    }

    /// Returns, for each component and draw, the logarithm of the component's weight times its density (`components ×
    /// lanes`). Also returns the draws standardised by each component.
    fn terms(&self, parts: &[Component], z: Lanes<'_>) -> (Vec<f64>, Vec<Vec<f64>>) {
        let lanes = z.lanes();
        let mut terms = vec![f64::NEG_INFINITY; parts.len() * lanes];
        let mut slots = Vec::with_capacity(parts.len());
        for (part, row) in parts.iter().zip(terms.chunks_mut(lanes.max(1))) {
            if part.weight <= 0.0 {
                slots.push(Vec::new());
                continue;
            }
            let y = part.standardised(z);
            let constant = part.weight.ln() - part.log_det() - self.dim as f64 * HALF_LOG_TWO_PI;
            row.fill(constant);
            for y in y.chunks(lanes) {
                for (t, y) in row.iter_mut().zip(y) {
                    *t -= 0.5 * y * y;
                }
            }
            slots.push(y);
        }
        (terms, slots)
    }
}

/// Computes `log Σ exp` over the rows, for each lane.
pub(crate) fn log_sums(terms: &[f64], lanes: usize) -> Vec<f64> {
    let rows = terms.len() / lanes.max(1);
    let mut column = vec![0.0; rows];
    let sums = (0..lanes).map(|lane| {
        for (x, row) in column.iter_mut().zip(terms.chunks(lanes)) {
            *x = row[lane];
        }
        log_sum_exp_slice(&column)
    });
    sums.collect()
}

impl Family for Mixture {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::Mixture {
            components: self.components,
        })
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn noise_dim(&self) -> usize {
        self.dim + 1
    }
    fn parameters(&self) -> usize {
        self.components * (1 + FullRank::new(self.dim).parameters())
    }
    fn smoothness(&self) -> Smoothness {
        Smoothness::None
    }
    fn begins_at(&self) -> Option<FamilyKind> {
        Some(FamilyKind::FullRank)
    }
    fn upon(&self, gaussian: &[f64], modes: &[(Vec<f64>, Vec<f64>)]) -> Option<Vec<f64>> {
        let single = FullRank::new(self.dim);
        let room = self.components.saturating_sub(1);
        let others = modes
            .iter()
            .take(room)
            .map(|(mean, log_sd)| single.diagonal(mean, log_sd));
        let mut parts = Vec::new();
        for block in std::iter::once(gaussian.to_vec()).chain(others) {
            let alone = Self::new(self.dim, 1);
            parts.extend(alone.parts(&[vec![1.0], block].concat()));
        }
        Some(self.assemble(&parts))
    }
    fn share_of_parts(
        &self,
        omega: &[f64],
        coordinate: usize,
        which: &dyn Fn(f64, f64) -> bool,
    ) -> f64 {
        let parts = self.parts(omega);
        let such = parts.iter().filter(|part| {
            let row = &part.factor[coordinate * self.dim..=coordinate * self.dim + coordinate];
            which(part.mean[coordinate], dot(row, row).sqrt())
        });
        such.map(|part| part.weight).sum()
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let single = FullRank::new(self.dim).diagonal(mean, log_sd);
        self.upon(&single, &[]).expect("a mixture stands upon it")
    }
    fn mean(&self, omega: &[f64]) -> Vec<f64> {
        self.moments(omega).0
    }
    fn marginal_sd(&self, omega: &[f64]) -> Vec<f64> {
        let (_, covariance) = self.moments(omega);
        let diagonal = covariance.iter().step_by(self.dim + 1);
        diagonal.map(|variance| variance.sqrt()).collect()
    }
    fn gaussian(&self, omega: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        let (mean, covariance) = self.moments(omega);
        Some((mean, cholesky(&covariance, self.dim)?))
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, mut z: LanesMut<'_>) {
        let (parts, lanes) = (self.parts(omega), noise.lanes());
        let last = parts.iter().rposition(|part| part.weight > 0.0);
        let last = last.expect("some component has weight");
        for lane in 0..lanes {
            let mut left = phi(noise.row(0)[lane]);
            let mut chosen = last;
            for (k, part) in parts.iter().enumerate().take(last) {
                left -= part.weight;
                if left < 0.0 {
                    chosen = k;
                    break;
                }
            }
            let part = &parts[chosen];
            for i in 0..self.dim {
                let row = &part.factor[i * self.dim..=i * self.dim + i];
                let mut sum = part.mean[i];
                for (j, l) in row.iter().enumerate() {
                    sum += l * noise.row(j + 1)[lane];
                }
                z.row_mut(i)[lane] = sum;
            }
        }
    }
    fn pull(&self, _omega: &[f64], _noise: Lanes<'_>, _grad: Lanes<'_>, _out: &mut [f64]) {
        lacks(self, "pull")
    }
    fn log_density_at(&self, omega: &[f64], z: Lanes<'_>, out: &mut [f64]) {
        let (terms, _) = self.terms(&self.parts(omega), z);
        out.copy_from_slice(&log_sums(&terms, z.lanes()));
    }
    fn score(&self, omega: &[f64], _noise: Lanes<'_>, z: Lanes<'_>, mut out: LanesMut<'_>) {
        let (parts, lanes) = (self.parts(omega), z.lanes());
        let (terms, slots) = self.terms(&parts, z);
        let total = log_sums(&terms, lanes);
        out.as_mut_slice().fill(0.0);
        for ((part, mut y), terms) in parts.iter().zip(slots).zip(terms.chunks(lanes)) {
            if y.is_empty() {
                continue;
            }
            solve_lower_transposed_lanes(&part.factor, self.dim, &mut y, lanes);
            for (i, y) in y.chunks(lanes).enumerate() {
                for (lane, out) in out.row_mut(i).iter_mut().enumerate() {
                    *out -= (terms[lane] - total[lane]).exp() * y[lane];
                }
            }
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut parts = self.parts(omega);
        for part in &mut parts {
            part.factor.iter_mut().for_each(|l| *l *= factor);
        }
        self.assemble(&parts)
    }
}
