//! Estimates the marginal likelihood of records from posterior draws (appendix D).

use jensen_graph::Unsupported;
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;

use crate::autoencoder::{Codes, LogMarginal, log_mean_exp};
use crate::evaluate::{LANES, normals};
use crate::forward::Forward;
use crate::hmc::{Chains, HmcSettings, Moment};
use crate::model::LocalModel;
use crate::records::{Records, gather};

/// Settings of the estimate of the marginal likelihood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MarginalSettings {
    /// Number of chains for each record.
    pub chains: usize,
    /// Number of transitions in the warm-up. Step sizes are tuned during the warm-up.
    pub burn_in: usize,
    /// Number of draws from each chain to which the density is fitted. The estimate then uses as many further draws.
    pub draws: usize,
    /// Number of transitions from one stored draw to the next.
    pub thin: usize,
    /// Settings of the Hamiltonian transitions.
    pub hmc: HmcSettings,
}

impl Default for MarginalSettings {
    /// Returns settings with 50 draws per record from 5 chains and 4 leapfrog steps per transition.
    fn default() -> Self {
        Self {
            chains: 5,
            burn_in: 100,
            draws: 10,
            thin: 3,
            hmc: HmcSettings {
                leapfrog: 4,
                ..HmcSettings::default()
            },
        }
    }
}

const MARGINAL: Purpose = Purpose::new("neural marginal likelihood");

/// Number of draws for each record from which the beginnings of its chains are resampled. They cost less than a third of
/// the transitions with the default settings.
const CANDIDATES: usize = 2 * LANES;

/// Estimates log p(x) of every record. Hamiltonian Monte Carlo draws from the posterior. A normal density q is fitted
/// to half of the draws, and the estimate is `1 / mean of q(z) / p(x, z)` over the other half. The estimator is
/// suitable only for few latent dimensions, because its variance grows quickly with their number.
///
/// If the records have codes, the chains begin at normal draws with the moments of these codes. Otherwise, they begin at draws from the
/// standard normal that are resampled with probabilities proportional to p(x, z) over its density (sampling importance
/// resampling, Rubin 1987). Without the resampling, most chains would begin where the posterior has little weight. If a
/// posterior has several modes, such chains can stay in a mode with little weight for a long time, and the estimate is
/// then too low. The paper does not specify the beginning of the chains.
///
/// # Panics
/// Panics if the codes have the wrong extents, which is a bug in the caller.
///
/// # Errors
/// Fails if the model contains operations without a kernel in single precision.
#[allow(clippy::too_many_arguments)]
pub fn estimate(
    model: &dyn LocalModel,
    tensors: &[&[f32]],
    records: &dyn Records,
    codes: Option<&Codes>,
    settings: &MarginalSettings,
    simd: Simd,
    seed: u64,
) -> Result<LogMarginal, Unsupported> {
    let mut posterior = Forward::posterior(model, simd)?;
    let latent = model.latent();
    let chains = settings.chains.clamp(1, LANES);
    let block = LANES / chains;
    let mut estimates = Vec::with_capacity(records.len());
    let mut spread = 0.0;
    let (mut x, mut start, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
    for first in (0..records.len()).step_by(block) {
        let count = block.min(records.len() - first);
        let lanes = count * chains;
        let repeated =
            (first..first + count).flat_map(|record| std::iter::repeat_n(record, chains));
        gather(records, repeated, &mut x);
        let first_lane = (first * chains) as u64;
        normals(
            simd,
            seed,
            MARGINAL,
            0,
            first_lane,
            latent,
            lanes,
            &mut scratch,
            &mut start,
        );
        if let Some(codes) = codes {
            for (i, z) in start.iter_mut().enumerate() {
                let (record, value) = (first + i / latent / chains, i % latent);
                let at = record * latent + value;
                *z = codes.mean[at] + (0.5 * codes.log_variance[at]).exp() * *z;
            }
        } else {
            for (record, starts) in (first..).zip(start.chunks_mut(chains * latent)) {
                resample(
                    &mut posterior,
                    tensors,
                    records,
                    (record, latent, seed),
                    starts,
                );
            }
        }
        let mut walk = Chains::new(start.clone(), lanes, settings.hmc.initial_step);
        let mut iteration = 0;
        let mut advance = |walk: &mut Chains| {
            iteration += 1;
            let moment = Moment {
                seed,
                purpose: MARGINAL,
                iteration,
                first_lane,
            };
            walk.transition(&mut posterior, tensors, &x, settings.hmc.leapfrog, moment)
        };
        for k in 0..settings.burn_in {
            let (acceptance, _) = advance(&mut walk);
            walk.tune(
                &acceptance,
                settings.hmc.acceptance,
                2.0 / (1.0 + k as f64).sqrt(),
            );
        }
        let mut fits: Vec<Moments> = (0..count).map(|_| Moments::new(latent)).collect();
        for _ in 0..settings.draws {
            for _ in 0..settings.thin.max(1) {
                advance(&mut walk);
            }
            for (lane, z) in walk.positions.chunks(latent).enumerate() {
                fits[lane / chains].add(z);
            }
        }
        let densities: Vec<Normal> = fits.iter().map(Moments::normal).collect();
        let mut weights: Vec<Vec<f64>> = vec![Vec::new(); count];
        for _ in 0..settings.draws {
            let mut here = Vec::new();
            for _ in 0..settings.thin.max(1) {
                here = advance(&mut walk).1;
            }
            for (lane, z) in walk.positions.chunks(latent).enumerate() {
                let record = lane / chains;
                weights[record].push(densities[record].log_density(z) - here[lane]);
            }
        }
        for weights in &weights {
            let (inverse, error) = log_mean_exp(weights);
            estimates.push(-inverse);
            spread += error * error;
        }
    }
    Ok(LogMarginal::new(estimates, spread))
}

/// Fills `starts` with the beginnings of a record's chains, which are resampled from [`CANDIDATES`] draws. The
/// resampling is systematic: a candidate is chosen as often as its weight demands, up to rounding.
fn resample(
    posterior: &mut Forward,
    tensors: &[&[f32]],
    records: &dyn Records,
    (record, latent, seed): (usize, usize, u64),
    starts: &mut [f32],
) {
    let simd = posterior.program().simd();
    let purpose = MARGINAL.fold("candidates");
    let (mut x, mut scratch, mut block) = (Vec::new(), Vec::new(), Vec::new());
    gather(records, std::iter::repeat_n(record, LANES), &mut x);
    let (mut candidates, mut logs) = (Vec::new(), Vec::new());
    for first in (0..CANDIDATES).step_by(LANES) {
        normals(
            simd,
            seed,
            purpose,
            record as u64,
            first as u64,
            latent,
            LANES,
            &mut scratch,
            &mut block,
        );
        let [values, _] = posterior.run(tensors, &[&x, &block], LANES);
        for (value, z) in values.iter().zip(block.chunks(latent)) {
            let square: f32 = z.iter().map(|z| z * z).sum();
            logs.push(f64::from(value + 0.5 * square));
        }
        candidates.extend_from_slice(&block);
    }
    let finite = logs.iter().copied().filter(|log| log.is_finite());
    let largest = finite.fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        // No candidate has a finite density, so the chains keep their own draws.
        return;
    }
    let weight = |log: f64| {
        if log.is_finite() {
            (log - largest).exp()
        } else {
            0.0
        }
    };
    let count = starts.len() / latent;
    let step = logs.iter().map(|&log| weight(log)).sum::<f64>() / count as f64;
    let offset = Stream::new(seed, purpose.fold("offset"), record as u64, 0).uniform();
    let (mut chosen, mut total) = (0, weight(logs[0]));
    for (chain, start) in starts.chunks_mut(latent).enumerate() {
        while total < (chain as f64 + offset) * step && chosen + 1 < logs.len() {
            chosen += 1;
            total += weight(logs[chosen]);
        }
        start.copy_from_slice(&candidates[chosen * latent..][..latent]);
    }
}

struct Moments {
    count: f64,
    sum: Vec<f64>,
    products: Vec<f64>,
}

impl Moments {
    fn new(dim: usize) -> Self {
        Self {
            count: 0.0,
            sum: vec![0.0; dim],
            products: vec![0.0; dim * dim],
        }
    }

    fn add(&mut self, z: &[f32]) {
        self.count += 1.0;
        for (i, &a) in z.iter().enumerate() {
            self.sum[i] += f64::from(a);
            for (j, &b) in z.iter().enumerate() {
                self.products[i * z.len() + j] += f64::from(a) * f64::from(b);
            }
        }
    }

    /// Returns the normal density with these moments. A small multiple of the identity is added to the covariance, so
    /// the density is proper even if there are only a few draws.
    fn normal(&self) -> Normal {
        let dim = self.sum.len();
        let mean: Vec<f64> = self.sum.iter().map(|s| s / self.count).collect();
        let mut factor = vec![0.0; dim * dim];
        let at = |i: usize, j: usize| {
            let scale = (self.count - 1.0).max(1.0);
            let ridge = if i == j { 1e-6 } else { 0.0 };
            (self.products[i * dim + j] - self.count * mean[i] * mean[j]) / scale + ridge
        };
        let mut log_det = 0.0;
        for j in 0..dim {
            for i in j..dim {
                let dot: f64 = (0..j)
                    .map(|k| factor[i * dim + k] * factor[j * dim + k])
                    .sum();
                let rest = at(i, j) - dot;
                factor[i * dim + j] = if i == j {
                    rest.max(1e-12).sqrt()
                } else {
                    rest / factor[j * dim + j]
                };
            }
            log_det += factor[j * dim + j].ln();
        }
        Normal {
            mean,
            factor,
            log_det,
        }
    }
}

/// A normal density. Its lower Cholesky factor is stored in row-major order.
struct Normal {
    mean: Vec<f64>,
    factor: Vec<f64>,
    log_det: f64,
}

impl Normal {
    fn log_density(&self, z: &[f32]) -> f64 {
        let dim = self.mean.len();
        let mut w = vec![0.0; dim];
        let mut square = 0.0;
        for i in 0..dim {
            let dot: f64 = (0..i).map(|k| self.factor[i * dim + k] * w[k]).sum();
            w[i] = (f64::from(z[i]) - self.mean[i] - dot) / self.factor[i * dim + i];
            square += w[i] * w[i];
        }
        -0.5 * (square + dim as f64 * LOG_TWO_PI) - self.log_det
    }
}
