//! Standard normal random numbers, each determined by a purpose, an iteration and a lane.

use jensen_math::rng;
use jensen_math::simd::Simd;

use crate::dense::{cholesky, solve_lower_lanes};
use crate::reduce::dot;

/// The degrees of freedom of draws with heavy tails. Their fourth moment exists, so that weighted second moments have a
/// variance, and one coordinate in a thousand is nearly seven units away.
pub(crate) const FREEDOM: usize = 5;

/// The first key of a second stream with the same purpose. Keys are numbers of iterations and starts, and no fit has this
/// many.
pub(crate) const SECOND_STREAM: u64 = 1 << 40;

/// The purposes of random numbers. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoisePurpose {
    /// The draws of an approximation that represent the posterior.
    Draws,
    /// Random starting points, and the draws on which they are compared.
    Start,
    /// The fixed draws for one stage of a sample-average approximation.
    Sample,
    /// Draws for stochastic gradients.
    Gradient,
    /// Draws for estimates of the ELBO during a run.
    Bound,
    /// Draws for the final estimate of the ELBO and its diagnostics.
    Final,
    /// Draws for the second-order polish that estimates the remaining gain of a fit.
    Polish,
    /// Fresh draws that measure the gain of the polish.
    Judge,
    /// Draws for trial ascents that choose a step size.
    Adapt,
    /// Random numbers for importance resampling.
    Resample,
    /// Draws for Hessian-vector products.
    Curvature,
    /// Draws for estimates of the change in the ELBO due to a step.
    Change,
    /// Random numbers for the starting points and the resampling of a refinement's particles.
    Particle,
    /// Momenta, step sizes and acceptance decisions of the chains.
    Momentum,
    /// Draws for the evaluation of a family before its fit.
    Preview,
    /// Draws for proposals far from the bulk of the draws.
    Far,
    /// Points at which symmetries of the density are tested.
    Symmetry,
    /// Initial weights of the neural networks in a flow.
    Network,
    /// Random numbers for proposals over all scales.
    Leap,
}

impl NoisePurpose {
    /// Do not rename a purpose. Otherwise the same seed would give other random numbers.
    fn key(self) -> rng::Purpose {
        const fn named(name: &str) -> rng::Purpose {
            rng::Purpose::new("blackbox").fold(name)
        }
        match self {
            Self::Draws => const { named("draws") },
            Self::Start => const { named("start") },
            Self::Sample => const { named("sample") },
            Self::Gradient => const { named("gradient") },
            Self::Bound => const { named("bound") },
            Self::Final => const { named("final") },
            Self::Polish => const { named("polish") },
            Self::Judge => const { named("judge") },
            Self::Adapt => const { named("adapt") },
            Self::Resample => const { named("resample") },
            Self::Curvature => const { named("curvature") },
            Self::Change => const { named("change") },
            Self::Particle => const { named("particle") },
            Self::Momentum => const { named("momentum") },
            Self::Preview => const { named("glance") },
            Self::Far => const { named("far") },
            Self::Symmetry => const { named("symmetry") },
            Self::Network => const { named("network") },
            Self::Leap => const { named("leap") },
        }
    }
}

/// The streams of random numbers that belong to a seed.
#[derive(Clone, Copy, Debug)]
pub struct NoiseSource {
    seed: u64,
    simd: Simd,
}

impl NoiseSource {
    /// Creates the streams of `seed`. The kernels of the given SIMD level compute the numbers. AVX2 and AVX-512 give
    /// bitwise identical numbers.
    pub fn new(seed: u64, simd: Simd) -> Self {
        Self { seed, simd }
    }

    /// Returns the seed of the streams.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the SIMD level of the kernels.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Fills the `rows × lanes` matrix `out` with standard normal numbers. The numbers in a lane depend only on the
    /// seed, the purpose, the iteration, the index of the lane and the row.
    pub fn fill(
        &self,
        purpose: NoisePurpose,
        iteration: u64,
        first_lane: u64,
        rows: usize,
        lanes: usize,
        out: &mut [f64],
    ) {
        let (simd, key) = (self.simd, purpose.key());
        rng::fill_normals(
            simd, self.seed, key, iteration, first_lane, rows, lanes, out,
        );
    }

    /// Writes uniform random numbers in (0, 1) for one lane, one number per row.
    pub fn uniforms(&self, purpose: NoisePurpose, iteration: u64, lane: u64, out: &mut [f64]) {
        let (simd, key, rows) = (self.simd, purpose.key(), out.len());
        rng::fill_uniforms(simd, self.seed, key, iteration, lane, rows, 1, out);
    }

    pub(crate) fn choices(
        &self,
        purpose: NoisePurpose,
        iteration: u64,
        first_lane: u64,
        lanes: usize,
        out: &mut [f64],
    ) {
        let (simd, key) = (self.simd, purpose.key().fold("records"));
        let rows = out.len() / lanes.max(1);
        rng::fill_uniforms(
            simd, self.seed, key, iteration, first_lane, rows, lanes, out,
        );
    }

    /// Generates normal numbers with matched moments for an even number of `lanes`. The second half of the lanes is the
    /// negative of the first half, so odd moments vanish. If there are at least four lanes per row, the matrix of
    /// second moments is exactly the identity. If there are fewer, the second moment of each row is exactly 1. For a
    /// Gaussian target, the sample average then has the same optimum as the expectation.
    pub fn matched(
        &self,
        purpose: NoisePurpose,
        iteration: u64,
        rows: usize,
        lanes: usize,
    ) -> Vec<f64> {
        let half = lanes / 2;
        let mut base = vec![0.0; rows * half];
        self.fill(purpose, iteration, 0, rows, half, &mut base);
        let scale = 1.0 / half as f64;
        let whitened = half >= 2 * rows && rows <= 512;
        let factor = whitened.then(|| {
            let mut covariance = vec![0.0; rows * rows];
            for i in 0..rows {
                let row = &base[i * half..(i + 1) * half];
                for j in 0..=i {
                    covariance[i * rows + j] = scale * dot(row, &base[j * half..(j + 1) * half]);
                }
            }
            cholesky(&covariance, rows)
        });
        match factor.flatten() {
            Some(factor) => solve_lower_lanes(&factor, rows, &mut base, half),
            None => {
                for row in base.chunks_mut(half) {
                    let root = (scale * dot(row, row)).sqrt();
                    row.iter_mut().for_each(|x| *x /= root);
                }
            }
        }
        let mut out = Vec::with_capacity(rows * lanes);
        for row in base.chunks(half) {
            out.extend_from_slice(row);
            out.extend(row.iter().map(|x| -x));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::sum;

    #[test]
    fn matched_normals_have_exact_moments() {
        for (rows, lanes) in [(3, 64), (40, 64)] {
            let noise =
                NoiseSource::new(5, Simd::detect()).matched(NoisePurpose::Sample, 2, rows, lanes);
            for i in 0..rows {
                let row = &noise[i * lanes..(i + 1) * lanes];
                assert!(sum(row).abs() < 1e-12);
                assert!((dot(row, row) / lanes as f64 - 1.0).abs() < 1e-12);
                let other = &noise[..lanes];
                let cross = dot(row, other) / lanes as f64;
                assert!(i == 0 || rows == 40 || cross.abs() < 1e-12);
            }
        }
    }

    #[test]
    fn lanes_have_streams_of_their_own() {
        let source = NoiseSource::new(11, Simd::detect());
        let mut all = vec![0.0; 3 * 10];
        source.fill(NoisePurpose::Draws, 0, 0, 3, 10, &mut all);
        let mut tail = vec![0.0; 3 * 4];
        source.fill(NoisePurpose::Draws, 0, 6, 3, 4, &mut tail);
        for row in 0..3 {
            assert_eq!(all[row * 10 + 6..row * 10 + 10], tail[row * 4..row * 4 + 4]);
        }
    }
}
