//! Explicit Hessians for mean-field families, computed in blocks.
//!
//! Let `Hₗ = ∇²log p(zₗ)` be the Hessians at draws `zₗ = μ + σεₗ`. The Hessian of `E log p` with respect to (μ, log σ)
//! has three kinds of blocks:
//!
//! * `E Hᵢⱼ` for two means, a dense block;
//! * `E Hᵢⱼ σⱼεⱼ` for mean i and log scale j, a dense block;
//! * `E σᵢεᵢ Hᵢⱼ σⱼεⱼ + δᵢⱼ E σᵢεᵢgᵢ` for two log scales, with `E σᵢεᵢgᵢ = σᵢ² E Hᵢᵢ` (Price's identity).
//!
//! Antithetic draws remove the even part of H from the estimate of the middle block. The last block is estimated
//! relative to the first (`E εᵢεⱼ Hᵢⱼ = δᵢⱼ E Hᵢᵢ + Cov(εᵢεⱼ, Hᵢⱼ)`). For Gaussian targets, both blocks are therefore
//! exact with any number of draws. For other targets, noise remains. It would mislead steps, because the maximiser of a
//! model exploits its most optimistic errors. For a Gaussian, the middle block and the covariances in the last block
//! are 0. The solver therefore shrinks them by the positive part of the James–Stein factor, `1 − noise²/size²`, where
//! the noise is estimated from the scatter of the pairs. The estimate takes d products per draw. It is faster than
//! conjugate gradients as long as d products and factorisations of 2d × 2d matrices are affordable. Conjugate gradients
//! have two disadvantages: products with few draws are noisy in the last block, and more products are needed if the
//! posterior is more collinear.

use jensen_density::{Lanes, LanesMut, TwiceDifferentiable};
use jensen_run::{Archive, ArchiveError, Snapshot};

use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::noise::{NoisePurpose, NoiseSource};
use crate::oracle::Stream;
use crate::records::{Choose, Layout, StreamPosition};
use crate::reduce::{axpy, dot};
use crate::sizes;

use super::draws::mirrored;
use super::subproblem::{Solution, secular};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explicit {
    /// The block `E H`, a d × d matrix.
    pub mean: Vec<f64>,
    /// The block `E Hᵢⱼ σⱼεⱼ`, a d × d matrix.
    cross: Vec<f64>,
    /// The matrix `σᵢσⱼ Cov(εᵢεⱼ, Hᵢⱼ)` (d × d). It is `E σᵢεᵢ Hᵢⱼ σⱼεⱼ` minus `δᵢⱼ σᵢ² E Hᵢᵢ`.
    logs: Vec<f64>,
    weight: f64,
    /// The squared noise of `cross` and of `logs`, each summed over the entries. Means are in units of their scales.
    noise: [f64; 2],
}

/// The largest weight of earlier draws in an average, relative to the number of draws in the newest estimate.
const MEMORY: f64 = 8.0;

/// The scale √½ of log standard deviations in the metric of the Fisher information.
const HALF_ROOT: f64 = std::f64::consts::FRAC_1_SQRT_2;

struct Sums {
    found: Explicit,
    /// The sum of `εᵢεⱼ` over the pairs of draws.
    square: Vec<f64>,
    /// Sums of squares and products: the squares of `cross`, the squares of `logs`, the products of `logs` with εᵢεⱼ,
    /// and the squares of εᵢεⱼ.
    squares: [Vec<f64>; 4],
    kept: usize,
}

impl Sums {
    fn new(dim: usize) -> Self {
        let matrix = || vec![0.0; dim * dim];
        Self {
            found: Explicit {
                mean: matrix(),
                cross: matrix(),
                logs: matrix(),
                weight: 0.0,
                noise: [0.0; 2],
            },
            square: matrix(),
            squares: [(); 4].map(|()| matrix()),
            kept: 0,
        }
    }

    /// Adds a pair of draws. The Hessians of the pair are adjacent in the columns of `product` from `first` on. A pair
    /// whose products are not finite is omitted.
    fn add(&mut self, product: &[f64], first: usize, sd: &[f64], e: &[f64]) {
        let dim = sd.len();
        let rows = || product.chunks(product.len() / dim);
        let lanes = first..first + 2 * dim;
        if rows().any(|row| row[lanes.clone()].iter().any(|x| !x.is_finite())) {
            return;
        }
        self.kept += 1;
        for (i, row) in rows().enumerate() {
            let (plus, minus) = row[lanes.clone()].split_at(dim);
            let target = &mut self.found.mean[i * dim..(i + 1) * dim];
            axpy(1.0, plus, target);
            axpy(1.0, minus, target);
            for j in 0..dim {
                let at = i * dim + j;
                let cross = sd[j] * e[j] * (plus[j] - minus[j]);
                let both = e[i] * e[j];
                let logs = both * (plus[j] + minus[j]);
                self.found.cross[at] += cross;
                self.found.logs[at] += logs;
                self.square[at] += both;
                let terms = [cross * cross, logs * logs, logs * both, both * both];
                for (sum, term) in self.squares.iter_mut().zip(terms) {
                    sum[at] += term;
                }
            }
        }
    }

    fn average(self, sd: &[f64]) -> Option<Explicit> {
        let Self {
            mut found,
            square,
            squares,
            kept,
        } = self;
        let dim = sd.len();
        if kept == 0 {
            return None;
        }
        found.weight = 2.0 * kept as f64;
        let scale = 0.5 / kept as f64;
        for block in [&mut found.mean, &mut found.cross, &mut found.logs] {
            block.iter_mut().for_each(|x| *x *= scale);
        }
        symmetrise(&mut found.mean, dim);
        for i in 0..dim {
            for j in 0..dim {
                let at = i * dim + j;
                let off = square[at] / kept as f64;
                // The scatter is that of the contributions of the pairs, minus the control variate.
                let m = 2.0 * found.mean[at];
                let total = 2.0 * found.logs[at] - m * square[at] / kept as f64;
                let logs = squares[1][at] - 2.0 * m * squares[2][at] + m * m * squares[3][at];
                let n = kept as f64;
                let scatter = |sum: f64, mean: f64| 0.25 * (sum / n - mean * mean) / (n - 1.0);
                found.noise[0] += sd[i].powi(2) * scatter(squares[0][at], 2.0 * found.cross[at]);
                found.noise[1] += (sd[i] * sd[j]).powi(2) * scatter(logs, total);
                found.logs[at] = sd[i] * sd[j] * (found.logs[at] - off * found.mean[at]);
            }
        }
        symmetrise(&mut found.logs, dim);
        if kept == 1 {
            // With a single pair, the noise cannot be estimated.
            found.noise = found.sizes(sd);
        }
        Some(found)
    }
}

impl Explicit {
    /// Estimates the blocks for the mean-field parameters `omega` from `draws` draws. Returns the blocks and the number
    /// of products, or `None` if no pair of draws has finite products.
    pub(crate) fn estimate<D: TwiceDifferentiable>(
        density: &D,
        omega: &[f64],
        source: NoiseSource,
        key: u64,
        draws: usize,
        records: Option<&dyn Choose>,
    ) -> (Option<Self>, u64) {
        let dim = density.dim();
        let sd: Vec<f64> = omega[dim..].iter().map(|l| l.exp()).collect();
        let pairs = draws.div_ceil(2);
        let mut sums = Sums::new(dim);
        let mut noise = vec![0.0; dim * 2 * pairs];
        let columns = (0, 2 * pairs);
        let stream = Stream {
            source,
            purpose: NoisePurpose::Curvature,
            iteration: key,
        };
        mirrored(stream, 0, dim, pairs, columns, &mut noise);
        // Each call takes both draws of whole pairs. Each draw has a lane for every unit vector.
        let together = (sizes::lanes(dim) / (2 * dim)).clamp(1, pairs);
        let mut products = 0;
        let mut e = vec![0.0; dim];
        let mut workspace = density.workspace(2 * dim * together);
        for first in (0..pairs).step_by(together) {
            let count = together.min(pairs - first);
            let width = 2 * dim * count;
            let mut z = vec![0.0; dim * width];
            let mut unit = vec![0.0; dim * width];
            let mut product = vec![0.0; dim * width];
            for k in 0..2 * count {
                for i in 0..dim {
                    let start = i * width + k * dim;
                    let e = noise[i * 2 * pairs + 2 * first + k];
                    z[start..start + dim].fill(omega[i] + sd[i] * e);
                    unit[start + i] = 1.0;
                }
            }
            if let Some(records) = records {
                records.choose(StreamPosition {
                    stream,
                    first,
                    layout: Layout::Blocks(2 * dim),
                });
            }
            density.hvp(
                &mut workspace,
                Lanes::new(&z, dim, width),
                Lanes::new(&unit, dim, width),
                LanesMut::new(&mut product, dim, width),
            );
            products += width as u64;
            for pair in 0..count {
                for (j, e) in e.iter_mut().enumerate() {
                    *e = noise[j * 2 * pairs + 2 * (first + pair)];
                }
                sums.add(&product, 2 * pair * dim, &sd, &e);
            }
        }
        (sums.average(&sd), products)
    }

    fn sizes(&self, sd: &[f64]) -> [f64; 2] {
        let dim = sd.len();
        let cross = self.cross.chunks(dim).zip(sd);
        [
            cross.map(|(row, sd)| sd * sd * dot(row, row)).sum(),
            dot(&self.logs, &self.logs),
        ]
    }

    pub(crate) fn blend(&mut self, new: &Self) {
        let share = new.weight / (self.weight + new.weight);
        let pairs = [
            (&mut self.mean, &new.mean),
            (&mut self.cross, &new.cross),
            (&mut self.logs, &new.logs),
        ];
        for (old, new) in pairs {
            for (old, new) in old.iter_mut().zip(new) {
                *old += share * (new - *old);
            }
        }
        for (old, new) in self.noise.iter_mut().zip(new.noise) {
            *old = (1.0 - share).powi(2) * *old + share * share * new;
        }
        self.weight = (self.weight + new.weight).min(MEMORY * new.weight);
    }

    pub(crate) fn solve(&self, omega: &[f64], g: &[f64], radius: f64, largest: f64) -> Solution {
        let dim = omega.len() / 2;
        let n = 2 * dim;
        // In these coordinates, the trust region is a ball.
        let scale: Vec<f64> = (0..n)
            .map(|i| {
                if i < dim {
                    omega[dim + i].exp()
                } else {
                    HALF_ROOT
                }
            })
            .collect();
        let mut b = vec![0.0; n * n];
        let sizes = self.sizes(&scale[..dim]);
        let kept = |k: usize| {
            let factor = 1.0 - self.noise[k] / sizes[k];
            if factor > 0.0 { factor } else { 0.0 }
        };
        let (cross, logs) = (kept(0), kept(1));
        for i in 0..dim {
            for j in 0..dim {
                let at = i * dim + j;
                b[i * n + j] = -self.mean[at];
                b[i * n + dim + j] = -cross * self.cross[at];
                b[(dim + j) * n + i] = -cross * self.cross[at];
                b[(dim + i) * n + dim + j] = -logs * self.logs[at];
            }
            let sd = omega[dim + i].exp();
            b[(dim + i) * n + dim + i] -= 2.0 * sd * sd * self.mean[i * dim + i];
        }
        let mut spread = 0.0f64;
        for (row, s) in b.chunks_mut(n).zip(&scale) {
            for (x, t) in row.iter_mut().zip(&scale) {
                *x *= s * t;
            }
            spread = spread.max(row.iter().map(|x| x.abs()).sum());
        }
        if spread > largest {
            b.iter_mut().for_each(|x| *x *= largest / spread);
            spread = largest;
        }
        let scaled: Vec<f64> = g.iter().zip(&scale).map(|(g, s)| g * s).collect();
        let mut factor: Option<(f64, Option<Vec<f64>>)> = None;
        let mut solve = |shift: f64, right: &[f64]| {
            let known = matches!(&factor, Some((at, _)) if *at == shift);
            if !known {
                let mut shifted = b.clone();
                (0..n).for_each(|i| shifted[i * n + i] += shift);
                factor = Some((shift, cholesky(&shifted, n)));
            }
            let factor = factor.as_ref().and_then(|(_, factor)| factor.as_ref())?;
            let mut x = right.to_vec();
            solve_lower(factor, &mut x);
            solve_lower_transposed(factor, &mut x);
            Some(x)
        };
        let unbounded = solve(0.0, &scaled).map(|h| 0.5 * dot(&scaled, &h));
        let (h, shift) = secular(&mut solve, &scaled, radius, spread);
        let curved: f64 = b.chunks(n).zip(&h).map(|(row, x)| x * dot(row, &h)).sum();
        Solution {
            step: h.iter().zip(&scale).map(|(h, s)| h * s).collect(),
            predicted: dot(&scaled, &h) - 0.5 * curved,
            norm: dot(&h, &h).sqrt(),
            bounded: shift > 0.0,
            unbounded,
            products: 0,
            curvature: spread,
        }
    }
}

fn symmetrise(a: &mut [f64], n: usize) {
    for i in 0..n {
        for j in 0..i {
            let mean = 0.5 * (a[i * n + j] + a[j * n + i]);
            a[i * n + j] = mean;
            a[j * n + i] = mean;
        }
    }
}

impl Snapshot for Explicit {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("mean", &self.mean);
        archive.put("cross", &self.cross);
        archive.put("logs", &self.logs);
        archive.put("weight", &[self.weight, self.noise[0], self.noise[1]]);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        let mean = archive.vec("mean")?;
        let numbers = archive.vec_of("weight", 3)?;
        Ok(Self {
            cross: archive.vec_of("cross", mean.len())?,
            logs: archive.vec_of("logs", mean.len())?,
            mean,
            weight: numbers[0],
            noise: [numbers[1], numbers[2]],
        })
    }
}

#[cfg(test)]
mod tests;
