//! Affine coupling flows in the whitened space of a Gaussian (Dinh, Sohl-Dickstein and Bengio 2017). For the use of
//! flows in variational inference, see Agrawal, Sheldon and Domke 2020, section 4, and Agrawal and Domke 2024.
//!
//! The parameters ω are (μ, L packed by rows, then the parameters of a small network for each layer). The flow starts
//! from the Gaussian `z = μ + L x`, which stays fixed, and its layers map the noise to `x`. Each layer leaves some
//! coordinates `a` unchanged and moves the other coordinates `b`, by `b ↦ b e^{s(a)} + t(a)`. Each layer tests one bit
//! of the index of every coordinate, and moves the coordinates in which the bit is set (or those in which it is not
//! set). Any two coordinates therefore interact in one of the first `2 log₂ d` layers. Each network has two hidden
//! layers with the smooth step `u / √(1 + u²)`. The weights of its last layer start at zero, so that the flow initially
//! equals the Gaussian. [`STEEPEST`] bounds the log scales s.
//!
//! Computing the density at a draw takes one pass over the layers. The sticking-the-landing estimator also needs the
//! gradient of the log density with respect to the draw. This gradient takes one more pass. The gradient `∇ log q` at
//! each layer follows from the gradient at the previous layer by one product with the transposed derivative of the
//! network.

mod layer;

use jensen_density::{Lanes, LanesMut};
use jensen_math::constants::HALF_LOG_TWO_PI;
use jensen_math::simd::Simd;
use rayon::prelude::*;

use self::layer::{Layer, Pass, STEEPEST, affine_back, gather};
use super::{FIXED_DRAWS, Family, FamilyKind, FamilyName, FullRank, Smoothness, fixed_draws};
use crate::dense::{cholesky, solve_lower_lanes, solve_lower_transposed_lanes};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::reduce::{axpy, dot, mean_se};
use crate::sizes::LANES;

/// The smallest and the largest number of hidden units of a layer. Between these limits, the number is twice the
/// dimension.
const HIDDEN: (usize, usize) = (8, 64);

/// The family of flows with a given number of coupling layers.
#[derive(Clone, Debug)]
pub struct Flow {
    dim: usize,
    layers: Vec<Layer>,
}

impl Flow {
    /// Creates the family on ℝᵈ with the given number of layers.
    pub fn new(dim: usize, layers: usize) -> Self {
        let bits = usize::BITS - (dim.max(2) - 1).leading_zeros();
        let hidden = (2 * dim).clamp(HIDDEN.0, HIDDEN.1);
        let mut start = FullRank::new(dim).parameters();
        let layers = (0..layers).map(|layer| {
            let bit = (layer / 2) % bits as usize;
            let (moved, read) = (0..dim).partition(|i| (i >> bit) & 1 == layer % 2);
            let layer = Layer {
                read,
                moved,
                hidden,
                start,
            };
            start += layer.len();
            layer
        });
        Self {
            layers: layers.collect(),
            dim,
        }
    }

    fn base(&self) -> FullRank {
        FullRank::new(self.dim)
    }

    fn factor(&self, omega: &[f64]) -> Vec<f64> {
        let base = self.base();
        let mut factor = vec![0.0; self.dim * self.dim];
        for (i, row) in factor.chunks_mut(self.dim).enumerate() {
            row[..=i].copy_from_slice(base.factor_row(omega, i));
        }
        factor
    }

    /// Returns the noise of a block before the map of the Gaussian, the values at every layer, and the sum of the log
    /// scales.
    fn forward(
        &self,
        omega: &[f64],
        mut x: Vec<f64>,
        lanes: usize,
    ) -> (Vec<f64>, Vec<Pass>, Vec<f64>) {
        let mut stretched = vec![0.0; lanes];
        let passes = self.layers.iter().map(|layer| {
            let pass = layer.pass(omega, &x, lanes);
            for (k, &i) in layer.moved.iter().enumerate() {
                let row = k * lanes..(k + 1) * lanes;
                let of = pass.factor[row.clone()]
                    .iter()
                    .zip(&pass.shift[row.clone()]);
                for (x, (factor, shift)) in x[i * lanes..(i + 1) * lanes].iter_mut().zip(of) {
                    *x = *x * factor + shift;
                }
                axpy(STEEPEST, &pass.scale.value[row], &mut stretched);
            }
            pass
        });
        let passes = passes.collect();
        (x, passes, stretched)
    }

    fn blocks<T: Send>(
        lanes: usize,
        work: impl Fn(usize, usize) -> T + Sync,
    ) -> Vec<(usize, usize, T)> {
        let firsts: Vec<usize> = (0..lanes).step_by(LANES).collect();
        let each = firsts.into_par_iter().map(|first| {
            let width = LANES.min(lanes - first);
            (first, width, work(first, width))
        });
        each.collect()
    }

    fn block(x: Lanes<'_>, first: usize, width: usize) -> Vec<f64> {
        let rows = (0..x.rows()).flat_map(|i| &x.row(i)[first..first + width]);
        rows.copied().collect()
    }

    /// Returns the normalising constant of the standard normal plus the log determinant of the Gaussian.
    fn constant(&self, omega: &[f64]) -> f64 {
        let factor = self.factor(omega);
        let diagonal = (0..self.dim).map(|i| factor[i * self.dim + i].abs().ln());
        -(self.dim as f64) * HALF_LOG_TWO_PI - diagonal.sum::<f64>()
    }
}

/// Computes `constant − ½ |x|² − stretched` for every lane.
fn base_density(x: &[f64], stretched: &[f64], constant: f64) -> Vec<f64> {
    let lanes = stretched.len();
    let mut out: Vec<f64> = stretched.iter().map(|s| constant - s).collect();
    for row in x.chunks(lanes.max(1)) {
        for (out, x) in out.iter_mut().zip(row) {
            *out -= 0.5 * x * x;
        }
    }
    out
}

impl Family for Flow {
    fn name(&self) -> FamilyName {
        FamilyName::listed(FamilyKind::Flow {
            layers: self.layers.len(),
        })
    }
    fn dim(&self) -> usize {
        self.dim
    }
    fn noise_dim(&self) -> usize {
        self.dim
    }
    fn parameters(&self) -> usize {
        let layers: usize = self.layers.iter().map(Layer::len).sum();
        self.base().parameters() + layers
    }
    fn smoothness(&self) -> Smoothness {
        Smoothness::Path
    }
    fn begins_at(&self) -> Option<FamilyKind> {
        Some(FamilyKind::FullRank)
    }
    /// Returns a flow that equals the Gaussian. The last layer of each network is zero, and the other layers have fixed
    /// random weights.
    fn upon(&self, gaussian: &[f64], _modes: &[(Vec<f64>, Vec<f64>)]) -> Option<Vec<f64>> {
        let mut omega = gaussian.to_vec();
        let source = NoiseSource::new(0, Simd::Scalar);
        for (l, layer) in self.layers.iter().enumerate() {
            let [first, second, last] = layer.lengths();
            for (at, len, inputs) in [(0, first, layer.read.len()), (1, second, layer.hidden)] {
                let mut weights = vec![0.0; len];
                let key = 2 * l as u64 + at;
                source.fill(NoisePurpose::Network, key, 0, len, 1, &mut weights);
                let size = 1.0 / ((inputs + layer.hidden) as f64 / 2.0).sqrt();
                omega.extend(weights.iter().map(|w| size * w));
            }
            omega.resize(omega.len() + last, 0.0);
        }
        Some(omega)
    }
    fn diagonal(&self, mean: &[f64], log_sd: &[f64]) -> Vec<f64> {
        let single = self.base().diagonal(mean, log_sd);
        self.upon(&single, &[]).expect("a flow stands upon it")
    }
    fn gaussian(&self, omega: &[f64]) -> Option<(Vec<f64>, Vec<f64>)> {
        let d = self.dim;
        let (mut z, _) = fixed_draws(self, omega);
        let mut mean = Vec::with_capacity(d);
        for row in z.chunks_mut(FIXED_DRAWS) {
            let own = mean_se(row).0;
            row.iter_mut().for_each(|z| *z -= own);
            mean.push(own);
        }
        let row = |i: usize| &z[i * FIXED_DRAWS..(i + 1) * FIXED_DRAWS];
        let mut covariance = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..=i {
                let product = dot(row(i), row(j)) / FIXED_DRAWS as f64;
                covariance[i * d + j] = product;
                covariance[j * d + i] = product;
            }
        }
        Some((mean, cholesky(&covariance, d)?))
    }
    fn transform(&self, omega: &[f64], noise: Lanes<'_>, mut z: LanesMut<'_>) {
        let (lanes, base) = (noise.lanes(), self.base());
        let gaussian = &omega[..base.parameters()];
        let blocks = Self::blocks(lanes, |first, width| {
            let x = self
                .forward(omega, Self::block(noise, first, width), width)
                .0;
            let mut out = vec![0.0; x.len()];
            let placed = LanesMut::new(&mut out, self.dim, width);
            base.transform(gaussian, Lanes::new(&x, self.dim, width), placed);
            out
        });
        for (first, width, block) in blocks {
            for (i, row) in block.chunks(width).enumerate() {
                z.row_mut(i)[first..first + width].copy_from_slice(row);
            }
        }
    }
    fn log_density(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, out: &mut [f64]) {
        let constant = self.constant(omega);
        let blocks = Self::blocks(noise.lanes(), |first, width| {
            let x = Self::block(noise, first, width);
            let (_, _, stretched) = self.forward(omega, x.clone(), width);
            base_density(&x, &stretched, constant)
        });
        for (first, width, block) in blocks {
            out[first..first + width].copy_from_slice(&block);
        }
    }
    fn log_density_at(&self, omega: &[f64], z: Lanes<'_>, out: &mut [f64]) {
        let (constant, factor) = (self.constant(omega), self.factor(omega));
        let blocks = Self::blocks(z.lanes(), |first, width| {
            let mut x = Self::block(z, first, width);
            for (row, mean) in x.chunks_mut(width).zip(omega) {
                row.iter_mut().for_each(|x| *x -= mean);
            }
            solve_lower_lanes(&factor, self.dim, &mut x, width);
            let mut stretched = vec![0.0; width];
            for layer in self.layers.iter().rev() {
                let pass = layer.pass(omega, &x, width);
                for (k, &i) in layer.moved.iter().enumerate() {
                    let row = k * width..(k + 1) * width;
                    let of = pass.factor[row.clone()]
                        .iter()
                        .zip(&pass.shift[row.clone()]);
                    for (x, (factor, shift)) in x[i * width..(i + 1) * width].iter_mut().zip(of) {
                        *x = (*x - shift) / factor;
                    }
                    axpy(STEEPEST, &pass.scale.value[row], &mut stretched);
                }
            }
            base_density(&x, &stretched, constant)
        });
        for (first, width, block) in blocks {
            out[first..first + width].copy_from_slice(&block);
        }
    }
    /// For `b' = b e^{s(a)} + t(a)`, the derivative with respect to `b'` is the derivative with respect to b times
    /// `e^{−s}`. The network then adds the terms of `∂b/∂a` and `−∂s/∂a` to the derivative with respect to `a`.
    fn score(&self, omega: &[f64], noise: Lanes<'_>, _z: Lanes<'_>, mut out: LanesMut<'_>) {
        let factor = self.factor(omega);
        let blocks = Self::blocks(noise.lanes(), |first, width| {
            let x = Self::block(noise, first, width);
            let mut score: Vec<f64> = x.iter().map(|x| -x).collect();
            let (_, passes, _) = self.forward(omega, x, width);
            for (layer, pass) in self.layers.iter().zip(&passes) {
                let mut by_scale = gather(&score, &layer.moved, width);
                let mut by_shift = by_scale.clone();
                for (k, (g, factor)) in by_shift.iter_mut().zip(&pass.factor).enumerate() {
                    by_scale[k] = -by_scale[k] * pass.moved[k] - 1.0;
                    *g = -*g / factor;
                }
                for (k, &i) in layer.moved.iter().enumerate() {
                    let shifted = by_shift[k * width..(k + 1) * width].iter();
                    for (score, shifted) in
                        score[i * width..(i + 1) * width].iter_mut().zip(shifted)
                    {
                        *score = -shifted;
                    }
                }
                let by_read = layer.back(omega, pass, by_scale, &by_shift, width, None);
                for (by_read, &i) in by_read.chunks(width).zip(&layer.read) {
                    axpy(1.0, by_read, &mut score[i * width..(i + 1) * width]);
                }
            }
            solve_lower_transposed_lanes(&factor, self.dim, &mut score, width);
            score
        });
        for (first, width, block) in blocks {
            for (i, row) in block.chunks(width).enumerate() {
                out.row_mut(i)[first..first + width].copy_from_slice(row);
            }
        }
    }
    /// Adds only the derivatives with respect to the parameters of the networks, because the Gaussian stays fixed.
    fn pull(&self, omega: &[f64], noise: Lanes<'_>, grad: Lanes<'_>, out: &mut [f64]) {
        let fixed = self.base().parameters();
        let factor = self.factor(omega);
        let blocks = Self::blocks(noise.lanes(), |first, width| {
            let given = Self::block(grad, first, width);
            let mut by_x = affine_back(&factor, &given, self.dim, width);
            let (_, passes, _) = self.forward(omega, Self::block(noise, first, width), width);
            let mut gradient = vec![0.0; omega.len() - fixed];
            for (layer, pass) in self.layers.iter().zip(&passes).rev() {
                let by_shift = gather(&by_x, &layer.moved, width);
                let values = pass.moved.iter().zip(&pass.factor);
                let by_scale = by_shift.iter().zip(values).map(|(g, (b, f))| g * b * f);
                let by_scale: Vec<f64> = by_scale.collect();
                for (k, &i) in layer.moved.iter().enumerate() {
                    let factors = &pass.factor[k * width..(k + 1) * width];
                    for (g, f) in by_x[i * width..(i + 1) * width].iter_mut().zip(factors) {
                        *g *= f;
                    }
                }
                let own = Some(&mut gradient[layer.start - fixed..]);
                let by_read = layer.back(omega, pass, by_scale, &by_shift, width, own);
                for (by_read, &i) in by_read.chunks(width).zip(&layer.read) {
                    axpy(1.0, by_read, &mut by_x[i * width..(i + 1) * width]);
                }
            }
            gradient
        });
        for (_, _, block) in blocks {
            axpy(1.0, &block, &mut out[fixed..]);
        }
    }
    fn shrink(&self, omega: &[f64], factor: f64) -> Vec<f64> {
        let mut shrunk = omega.to_vec();
        let base = self.base().parameters();
        shrunk[self.dim..base].iter_mut().for_each(|l| *l *= factor);
        shrunk
    }
}
