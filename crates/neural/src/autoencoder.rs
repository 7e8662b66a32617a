//! A trained auto-encoder: codes, reconstructions, samples, pictures of the latent space, evaluations.

use jensen_graph::Unsupported;
use jensen_math::constants::LOG_TWO_PI;
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_math::special::inv_phi;

use crate::evaluate::{BoundEstimate, BoundEvaluator, LANES, normals};
use crate::forward::Forward;
use crate::hmc::HmcSettings;
use crate::marginal::{self, MarginalSettings};
use crate::model::{Architecture, ArchitectureError, LocalModel, Tensor};
use crate::records::{Records, gather};

/// An architecture with weights, ready to use.
pub struct Autoencoder {
    architecture: Architecture,
    tensors: Vec<Tensor>,
    simd: Simd,
    encoder: Forward,
    decoder: Forward,
    data: Vec<f32>,
}

/// Why an auto-encoder cannot be made of these parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutoencoderError {
    /// The architecture makes no sense.
    Architecture(ArchitectureError),
    /// The weights belong to another architecture.
    Tensors(String),
    /// An operation has no single-precision kernel.
    Unsupported(Unsupported),
}

impl std::fmt::Display for AutoencoderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Architecture(error) => error.fmt(f),
            Self::Tensors(text) => f.write_str(text),
            Self::Unsupported(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AutoencoderError {}

/// Gaussian codes of records, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// Means of q(z | x), `records × latent`.
    pub mean: Vec<f32>,
    /// Log variances, likewise.
    pub log_variance: Vec<f32>,
}

/// Draws from the generative model, one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Latent values, `draws × latent`.
    pub latent: Vec<f32>,
    /// Means of the records given the latent values, `draws × width`: what pictures show.
    pub mean: Vec<f32>,
    /// Draws of the records, `draws × width`.
    pub values: Vec<f32>,
}

/// Averages of log p(x) estimates over records, nats a record.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMarginal {
    /// The mean.
    pub mean: f64,
    /// Its standard error over records and draws.
    pub standard_error: f64,
    /// The Monte-Carlo part of the standard error: from the draws alone, the records given.
    pub monte_carlo_error: f64,
    /// The estimate of every record.
    pub records: Vec<f64>,
}

/// How much the codes use each latent dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveUnits {
    /// Variance over records of the mean of q(z | x), by dimension.
    pub variance: Vec<f64>,
    /// Dimensions whose variance is above the threshold.
    pub active: usize,
}

const SAMPLES: Purpose = Purpose::new("neural samples");
const IMPORTANCE: Purpose = Purpose::new("neural importance");

/// The variance of the codes' means above which a latent dimension counts as active (Burda et al. 2016).
pub const ACTIVE_THRESHOLD: f64 = 0.01;

impl Autoencoder {
    /// An architecture with its weights, in the order of [`Architecture::specs`].
    ///
    /// # Errors
    /// When the architecture makes no sense or the weights belong to another one.
    pub fn new(
        architecture: Architecture,
        tensors: Vec<Tensor>,
        simd: Simd,
    ) -> Result<Self, AutoencoderError> {
        architecture
            .check()
            .map_err(AutoencoderError::Architecture)?;
        let specs = architecture.specs();
        if specs.len() != tensors.len() {
            return Err(AutoencoderError::Tensors(format!(
                "{} tensors, expected {}",
                tensors.len(),
                specs.len()
            )));
        }
        for (spec, tensor) in specs.iter().zip(&tensors) {
            if *spec != tensor.spec || tensor.data.len() != spec.len() {
                let found = &tensor.spec;
                return Err(AutoencoderError::Tensors(format!(
                    "the weights are of another architecture: `{}` is {} × {}, expected `{}` of {} × {}",
                    found.name, found.inputs, found.outputs, spec.name, spec.inputs, spec.outputs
                )));
            }
        }
        let (guide, model) = (architecture.encoder(), architecture.decoder());
        let encoder = Forward::new(
            &guide.network.specs(),
            &[architecture.width],
            simd,
            |g, t, v| {
                let (mean, log_variance) = guide.build(g, t, v[0]);
                vec![mean, log_variance]
            },
        );
        let decoder = Forward::new(&model.specs(), &[architecture.latent], simd, |g, t, v| {
            let heads = model.network.build(g, t, v[0]);
            let mean = model.likelihood.mean(g, &heads);
            // The log variance where there is one; otherwise a head again, which is not read.
            vec![mean, heads[heads.len() - 1]]
        });
        Ok(Self {
            encoder: encoder.map_err(AutoencoderError::Unsupported)?,
            decoder: decoder.map_err(AutoencoderError::Unsupported)?,
            architecture,
            tensors,
            simd,
            data: Vec::new(),
        })
    }

    /// The architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// The weights.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// q(z | x) of every record.
    pub fn encode(&mut self, records: &dyn Records) -> Codes {
        let mut codes = Codes {
            mean: Vec::new(),
            log_variance: Vec::new(),
        };
        let tensors = views(&self.tensors[..self.architecture.encoder_tensors()]);
        for first in (0..records.len()).step_by(LANES) {
            let lanes = LANES.min(records.len() - first);
            gather(records, first..first + lanes, &mut self.data);
            let [mean, log_variance] = self.encoder.run(&tensors, &[&self.data], lanes);
            codes.mean.extend_from_slice(mean);
            codes.log_variance.extend_from_slice(log_variance);
        }
        codes
    }

    /// Means of the records given latent values (`n × latent`), `n × width`.
    pub fn decode(&mut self, latent: &[f32]) -> Vec<f32> {
        self.decode_with(latent, |_, _, _| {})
    }

    /// [`decode`](Self::decode) with `each(first, means, log variances)` for every block.
    fn decode_with(
        &mut self,
        latent: &[f32],
        mut each: impl FnMut(usize, &[f32], &[f32]),
    ) -> Vec<f32> {
        let tensors = views(&self.tensors[self.architecture.encoder_tensors()..]);
        let mut means = Vec::new();
        for (block, z) in latent.chunks(LANES * self.architecture.latent).enumerate() {
            let lanes = z.len() / self.architecture.latent;
            let [mean, spread] = self.decoder.run(&tensors, &[z], lanes);
            each(block * LANES, mean, spread);
            means.extend_from_slice(mean);
        }
        means
    }

    /// Means of the records given the means of their codes, `records × width`.
    pub fn reconstruct(&mut self, records: &dyn Records) -> Vec<f32> {
        let codes = self.encode(records);
        self.decode(&codes.mean)
    }

    /// Draws from p(z) p(x | z), a function of (seed, draw).
    pub fn sample(&mut self, draws: usize, seed: u64) -> Samples {
        let (mut latent, mut scratch) = (Vec::new(), Vec::new());
        let per_lane = self.architecture.latent;
        normals(
            self.simd,
            seed,
            SAMPLES,
            0,
            0,
            per_lane,
            draws,
            &mut scratch,
            &mut latent,
        );
        let (likelihood, width) = (self.architecture.likelihood, self.architecture.width);
        let mut values = vec![0.0; draws * width];
        let mean = self.decode_with(&latent, |first, mean, spread| {
            let rows = mean.chunks(width).zip(spread.chunks(width));
            for (i, (mean, spread)) in rows.enumerate() {
                let mut stream = Stream::new(seed, SAMPLES.fold("records"), 0, (first + i) as u64);
                let out = &mut values[(first + i) * width..][..width];
                likelihood.draw(mean, spread, &mut stream, out);
            }
        });
        Samples {
            latent,
            mean,
            values,
        }
    }

    /// Means over a `side × side` grid of the first two latent dimensions, row by row from the top: the coordinates are
    /// equally spaced probabilities through the inverse of the Gaussian distribution function (Figure 4). Other
    /// dimensions are 0.
    pub fn manifold(&mut self, side: usize) -> Vec<f32> {
        let latent = self.architecture.latent;
        let mut z = vec![0.0; side * side * latent];
        let coordinate = |k: usize| inv_phi((k as f64 + 0.5) / side as f64) as f32;
        for row in 0..side {
            for column in 0..side {
                let at = (row * side + column) * latent;
                z[at] = coordinate(column);
                if latent > 1 {
                    z[at + 1] = coordinate(side - 1 - row);
                }
            }
        }
        self.decode(&z)
    }

    /// The lower bound of records, with `samples` draws each.
    ///
    /// # Errors
    /// When the architecture has operations without a single-precision kernel.
    pub fn bound(
        &mut self,
        records: &dyn Records,
        samples: usize,
        seed: u64,
    ) -> Result<BoundEstimate, Unsupported> {
        let (guide, model) = (self.architecture.encoder(), self.architecture.decoder());
        let mut evaluator = BoundEvaluator::new(&guide, &model, samples, self.simd)?;
        Ok(evaluator.bound(&views(&self.tensors), records, seed))
    }

    /// The importance-weighted bound `E log (1/K) Σ p(x, z) / q(z | x)` with K = `draws` (Burda et al. 2016): between the
    /// lower bound (K = 1) and log p(x), rising with K.
    ///
    /// # Errors
    /// When the architecture has operations without a single-precision kernel.
    pub fn importance_bound(
        &mut self,
        records: &dyn Records,
        draws: usize,
        seed: u64,
    ) -> Result<LogMarginal, Unsupported> {
        let draws = draws.max(1);
        let model = self.architecture.decoder();
        let widths = [model.width(), model.latent()];
        let mut joint = Forward::new(&model.specs(), &widths, self.simd, |g, t, v| {
            let likelihood = model.log_likelihood(g, t, v[0], v[1]);
            let prior = model.log_prior(g, t, v[1]);
            vec![g.add(likelihood, prior)]
        })?;
        let codes = self.encode(records);
        let latent = self.architecture.latent;
        let tensors = views(&self.tensors[self.architecture.encoder_tensors()..]);
        let (mut x, mut z, mut noise, mut scratch) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut estimates = Vec::with_capacity(records.len());
        let mut weights: Vec<f64> = Vec::with_capacity(draws);
        let mut spread = 0.0;
        for record in 0..records.len() {
            let mean = &codes.mean[record * latent..][..latent];
            let log_variance = &codes.log_variance[record * latent..][..latent];
            weights.clear();
            for first in (0..draws).step_by(LANES) {
                let lanes = LANES.min(draws - first);
                normals(
                    self.simd,
                    seed,
                    IMPORTANCE,
                    record as u64,
                    first as u64,
                    latent,
                    lanes,
                    &mut scratch,
                    &mut noise,
                );
                gather(records, std::iter::repeat_n(record, lanes), &mut x);
                z.clear();
                z.extend(noise.iter().enumerate().map(|(i, e)| {
                    let d = i % latent;
                    mean[d] + (0.5 * log_variance[d]).exp() * e
                }));
                let [values] = joint.run(&tensors, &[&x, &z], lanes);
                for (value, e) in values.iter().zip(noise.chunks(latent)) {
                    weights.push(f64::from(*value) - log_normal(e, log_variance));
                }
            }
            let (estimate, error) = log_mean_exp(&weights);
            spread += error * error;
            estimates.push(estimate);
        }
        Ok(LogMarginal::new(estimates, spread))
    }

    /// log p(x) of records by the estimator of appendix D, with chains that begin at the codes: for fewer than 5 latent
    /// dimensions.
    ///
    /// # Errors
    /// When the architecture has operations without a single-precision kernel.
    pub fn marginal_likelihood(
        &mut self,
        records: &dyn Records,
        settings: &MarginalSettings,
        seed: u64,
    ) -> Result<LogMarginal, Unsupported> {
        let model = self.architecture.decoder();
        let codes = self.encode(records);
        let tensors = views(&self.tensors[self.architecture.encoder_tensors()..]);
        let codes = Some(&codes);
        marginal::estimate(&model, &tensors, records, codes, settings, self.simd, seed)
    }

    /// Which latent dimensions the codes of `records` use.
    pub fn active_units(&mut self, records: &dyn Records) -> ActiveUnits {
        let codes = self.encode(records);
        let latent = self.architecture.latent;
        let n = (codes.mean.len() / latent).max(1) as f64;
        let variance: Vec<f64> = (0..latent)
            .map(|d| {
                let column = || {
                    codes
                        .mean
                        .iter()
                        .skip(d)
                        .step_by(latent)
                        .map(|&m| f64::from(m))
                };
                let mean = column().sum::<f64>() / n;
                column().map(|m| (m - mean).powi(2)).sum::<f64>() / n
            })
            .collect();
        ActiveUnits {
            active: variance.iter().filter(|&&v| v > ACTIVE_THRESHOLD).count(),
            variance,
        }
    }

    /// Settings for [`marginal_likelihood`](Self::marginal_likelihood) as the paper describes them.
    pub fn paper_marginal() -> MarginalSettings {
        MarginalSettings {
            hmc: HmcSettings {
                leapfrog: 4,
                ..HmcSettings::default()
            },
            ..MarginalSettings::default()
        }
    }
}

/// The elements of every tensor.
pub(crate) fn views(tensors: &[Tensor]) -> Vec<&[f32]> {
    tensors
        .iter()
        .map(|tensor| tensor.data.as_slice())
        .collect()
}

/// log N(z; mean, diag exp(log_variance)) at `z = mean + sd · noise`.
fn log_normal(noise: &[f32], log_variance: &[f32]) -> f64 {
    let terms = noise.iter().zip(log_variance);
    terms
        .map(|(&e, &v)| -0.5 * (f64::from(e * e) + f64::from(v) + LOG_TWO_PI))
        .sum()
}

/// `log (1/n) Σ eʷ` and its standard error by the delta method.
pub(crate) fn log_mean_exp(weights: &[f64]) -> (f64, f64) {
    let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !largest.is_finite() {
        return (largest, 0.0);
    }
    let n = weights.len() as f64;
    let mean = weights.iter().map(|w| (w - largest).exp()).sum::<f64>() / n;
    let squares = weights.iter().map(|w| ((w - largest).exp() - mean).powi(2));
    let variance = squares.sum::<f64>() / (n - 1.0).max(1.0);
    (largest + mean.ln(), (variance / n).sqrt() / mean)
}

impl LogMarginal {
    /// Averages estimates whose squared Monte-Carlo errors sum to `spread`.
    pub(crate) fn new(records: Vec<f64>, spread: f64) -> Self {
        let n = records.len() as f64;
        let mean = records.iter().sum::<f64>() / n;
        let variance = records.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        Self {
            mean,
            standard_error: (variance / n).sqrt(),
            monte_carlo_error: spread.sqrt() / n,
            records,
        }
    }
}
