//! Trained auto-encoders. They compute codes, reconstructions, samples, pictures of the latent space, and evaluations.

use jensen_graph::Unsupported;
use jensen_math::rng::{Purpose, Stream};
use jensen_math::simd::Simd;
use jensen_math::special::inv_phi;

use crate::evaluate::{BoundEstimate, BoundEvaluator, LANES, normals};
use crate::family::PosteriorFamily;
use crate::forward::Forward;
use crate::hmc::HmcSettings;
use crate::marginal::{self, MarginalSettings};
use crate::model::{Architecture, ArchitectureError, LocalModel, Tensor};
use crate::posterior::{EVALUATED, SAMPLED, WeightPosterior, mixed};
use crate::records::{Records, gather};

/// An auto-encoder together with its weights.
///
/// If the weights of the decoder have a [posterior](Self::with_posterior), results are averages over it. Every sampled
/// record has its own draw of the weights. Means, bounds and likelihoods are averages over
/// [`WEIGHT_DRAWS`](crate::posterior::WEIGHT_DRAWS) draws of the weights.
pub struct Autoencoder {
    architecture: Architecture,
    tensors: Vec<Tensor>,
    posterior: WeightPosterior,
    simd: Simd,
    encoder: Forward,
    decoder: Forward,
    data: Vec<f32>,
    given: Vec<f32>,
}

/// An error in the architecture or the weights of an auto-encoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AutoencoderError {
    /// The architecture is invalid.
    Architecture(ArchitectureError),
    /// The weights belong to a different architecture.
    Tensors(String),
    /// The number of given values is wrong.
    Given(String),
    /// An operation of the network has no kernel in single precision.
    Unsupported(Unsupported),
}

impl std::fmt::Display for AutoencoderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Architecture(error) => error.fmt(f),
            Self::Tensors(text) | Self::Given(text) => f.write_str(text),
            Self::Unsupported(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for AutoencoderError {}

/// Codes of records, one record after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Codes {
    /// Means of q(z | x), in an array of `records × latent`.
    pub mean: Vec<f32>,
    /// Logarithms of the variances of q(z | x), in an array of `records × latent`.
    pub log_variance: Vec<f32>,
}

/// Draws from the generative model, one draw after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    /// Latent values, in an array of `draws × latent`.
    pub latent: Vec<f32>,
    /// Means of the records given the latent values, in an array of `draws × width`. They serve as pictures.
    pub mean: Vec<f32>,
    /// Draws of the records, in an array of `draws × width`.
    pub values: Vec<f32>,
}

/// Estimates of log p(x), averaged over records, in nats per record.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMarginal {
    /// The average over records.
    pub mean: f64,
    /// Standard error of `mean`. It includes the variation between records and the error of the draws.
    pub standard_error: f64,
    /// The part of the standard error that comes from the draws. It is the error of `mean` for exactly these records.
    pub monte_carlo_error: f64,
    /// The estimate for every record.
    pub records: Vec<f64>,
}

/// The latent dimensions that the codes of records actually use.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveUnits {
    /// Variance over records of the mean of q(z | x), one per latent dimension.
    pub variance: Vec<f64>,
    /// Number of dimensions with a variance above [`ACTIVE_THRESHOLD`].
    pub active: usize,
}

const SAMPLES: Purpose = Purpose::new("neural samples");
const IMPORTANCE: Purpose = Purpose::new("neural importance");

/// A latent dimension is active if the variance of the codes' means in this dimension exceeds this threshold (Burda et
/// al. 2016).
pub const ACTIVE_THRESHOLD: f64 = 0.01;

impl Autoencoder {
    /// Creates an auto-encoder from an architecture and its weights, which are in the order of [`Architecture::specs`].
    ///
    /// # Errors
    /// Fails if the architecture is invalid, or if the weights belong to a different architecture.
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
                    "the weights have another architecture: `{}` is {} × {}, expected `{}` of {} × {}",
                    found.name, found.inputs, found.outputs, spec.name, spec.inputs, spec.outputs
                )));
            }
        }
        let (guide, model) = (architecture.encoder(), architecture.decoder());
        let encoder = Forward::new(
            &guide.specs(),
            &[architecture.observation.record_width()],
            simd,
            |g, t, v| {
                let (mean, log_variance) = guide.build(g, t, v[0]);
                vec![mean, log_variance]
            },
        );
        let decoder = model.forward(simd);
        Ok(Self {
            encoder: encoder.map_err(AutoencoderError::Unsupported)?,
            decoder: decoder.map_err(AutoencoderError::Unsupported)?,
            posterior: WeightPosterior::new(
                tensors[architecture.encoder_tensors()..].to_vec(),
                Vec::new(),
                architecture.encoder_tensors(),
            ),
            given: vec![0.0; architecture.observation.given],
            architecture,
            tensors,
            simd,
            data: Vec::new(),
        })
    }

    /// Adds a normal posterior over the weights of the decoder, whose means are the current weights (Eq. 23). `log_sds`
    /// contains the logarithms of the standard deviations, in the order of the decoder's tensors. If the list is empty,
    /// the weights remain point estimates.
    ///
    /// # Errors
    /// Fails if the tensors belong to a different architecture.
    pub fn with_posterior(mut self, log_sds: Vec<Tensor>) -> Result<Self, AutoencoderError> {
        let before = self.architecture.encoder_tensors();
        let means = &self.tensors[before..];
        let same = means.len() == log_sds.len()
            && means
                .iter()
                .zip(&log_sds)
                .all(|(mean, sd)| mean.spec == sd.spec && mean.data.len() == sd.data.len());
        if !same && !log_sds.is_empty() {
            let text = "the standard deviations of the weights have another architecture";
            return Err(AutoencoderError::Tensors(text.to_owned()));
        }
        self.posterior = WeightPosterior::new(means.to_vec(), log_sds, before);
        Ok(self)
    }

    /// Sets the values on which [`sample`](Self::sample), [`decode`](Self::decode) and [`manifold`](Self::manifold)
    /// condition. They are 0 unless they are set.
    ///
    /// # Errors
    /// Fails if the number of values is not [`Observation::given`](crate::Observation::given).
    pub fn set_given(&mut self, given: Vec<f32>) -> Result<(), AutoencoderError> {
        let (found, expected) = (given.len(), self.given.len());
        if found != expected {
            let text = format!("{found} given values, expected {expected}");
            return Err(AutoencoderError::Given(text));
        }
        self.given = given;
        Ok(())
    }

    /// Returns the architecture.
    pub fn architecture(&self) -> &Architecture {
        &self.architecture
    }

    /// Returns the weights, which are point estimates or the means of their posterior.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// Computes `KL(q(θ) ‖ N(0, I))` for the posterior of the weights, in nats. It is 0 for point estimates. The bound
    /// of all training records together is reduced by it once (Eq. 24).
    pub fn weight_divergence(&self) -> f64 {
        self.posterior.divergence()
    }

    /// Computes the code q(z | x) of every record.
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

    /// Computes the means of records given latent values. `latent` is an array of `n × latent`, and the result is an
    /// array of `n × width`. If the weights have a posterior, the result is an average over it. Means of counts are for
    /// the library size [`Observation::library_size`](crate::Observation::library_size).
    pub fn decode(&mut self, latent: &[f32]) -> Vec<f32> {
        let context = self.drawn_contexts(latent.len() / self.architecture.latent);
        self.decode_in(latent, &context)
    }

    fn drawn_contexts(&self, n: usize) -> Vec<f32> {
        let observation = &self.architecture.observation;
        observation.drawn_context(&self.given).repeat(n)
    }

    fn decode_in(&mut self, latent: &[f32], context: &[f32]) -> Vec<f32> {
        let draws = self.posterior.draws();
        let mut means = self.decode_with((latent, context), EVALUATED, 0, 0, |_, _, _| {});
        for draw in 1..draws {
            let draw = draw as u64;
            let more = self.decode_with((latent, context), EVALUATED, 0, draw, |_, _, _| {});
            means.iter_mut().zip(more).for_each(|(mean, x)| *mean += x);
        }
        means.iter_mut().for_each(|mean| *mean /= draws as f32);
        means
    }

    /// Calls `each(record, mean, parameters)` for every record, with one draw of the weights.
    fn decode_with(
        &mut self,
        (latent, context): (&[f32], &[f32]),
        purpose: Purpose,
        seed: u64,
        draw: u64,
        mut each: impl FnMut(usize, &[f32], &[f32]),
    ) -> Vec<f32> {
        let drawn = self.posterior.draw(self.simd, seed, purpose, draw);
        let tensors = views(&drawn);
        let observation = &self.architecture.observation;
        let (width, extra) = (observation.width, observation.context());
        let mut means = Vec::new();
        for (block, z) in latent.chunks(LANES * self.architecture.latent).enumerate() {
            let first = block * LANES;
            let lanes = z.len() / self.architecture.latent;
            let inputs = [z, &context[first * extra..][..lanes * extra]];
            let inputs = &inputs[..1 + usize::from(extra > 0)];
            let [mean, parameters] = self.decoder.run(&tensors, inputs, lanes);
            let rows = mean.chunks(width);
            let rows = rows.zip(parameters.chunks(parameters.len() / lanes));
            for (i, (mean, parameters)) in rows.enumerate() {
                each(first + i, mean, parameters);
            }
            means.extend_from_slice(mean);
        }
        means
    }

    /// Computes the means of the records given the means of their codes, in an array of `records × width`.
    pub fn reconstruct(&mut self, records: &dyn Records) -> Vec<f32> {
        let codes = self.encode(records);
        let observation = &self.architecture.observation;
        let (mut context, mut record) = (Vec::new(), vec![0.0; records.width()]);
        for i in (0..records.len()).filter(|_| observation.context() > 0) {
            records.read(i, &mut record);
            observation.read_context(&record, &mut context);
        }
        self.decode_in(&codes.mean, &context)
    }

    /// Draws from p(z) p(x | z). Each draw depends only on the seed and on its own number. If the weights have a
    /// posterior, each draw has its own weights.
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
        let observation = self.architecture.observation.clone();
        let width = observation.width;
        let mut values = vec![0.0; draws * width];
        let together = if self.posterior.is_point() {
            draws.max(1)
        } else {
            1
        };
        let mut means = Vec::with_capacity(draws * width);
        for (part, z) in latent.chunks(together * per_lane).enumerate() {
            let context = self.drawn_contexts(z.len() / per_lane);
            let inputs = (z, &context[..]);
            let each = |i: usize, mean: &[f32], parameters: &[f32]| {
                let record = part * together + i;
                let mut stream = Stream::new(seed, SAMPLES.fold("records"), 0, record as u64);
                let out = &mut values[record * width..][..width];
                observation.draw(mean, parameters, &mut stream, out);
            };
            means.extend(self.decode_with(inputs, SAMPLED, seed, part as u64, each));
        }
        Samples {
            latent,
            mean: means,
            values,
        }
    }

    /// Computes means over a `side × side` grid of the first two latent dimensions, row by row from the top. The
    /// coordinates of the grid are the standard normal quantiles of equally spaced probabilities (Figure 4). All other
    /// latent dimensions are 0.
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

    /// Estimates the lower bound of records, with `samples` draws for each record. If the weights have a posterior, the
    /// result is the expectation of the bound over this posterior. It is a lower bound on E log p(x | θ), and therefore
    /// also on the log predictive density of new records. The bound on training records additionally subtracts the
    /// [divergence of the weights](Self::weight_divergence).
    ///
    /// # Errors
    /// Fails if the architecture contains operations without a kernel in single precision.
    pub fn bound(
        &mut self,
        records: &dyn Records,
        samples: usize,
        seed: u64,
    ) -> Result<BoundEstimate, Unsupported> {
        let (guide, model) = (self.architecture.encoder(), self.architecture.decoder());
        let mut evaluator = BoundEvaluator::new(&guide, &model, samples, self.simd)?;
        let of_encoder = &self.tensors[..self.architecture.encoder_tensors()];
        let draws = self.posterior.draws();
        let (mut likelihoods, mut divergences) =
            (vec![0.0; records.len()], vec![0.0; records.len()]);
        let mut bounds = Vec::with_capacity(draws);
        for draw in 0..draws {
            let drawn = self.posterior.draw(self.simd, seed, EVALUATED, draw as u64);
            let tensors = [views(of_encoder), views(&drawn)].concat();
            let (likelihood, divergence) = evaluator.terms(&tensors, records, seed, draw as u64);
            bounds.push(BoundEstimate::from_terms(&likelihood, &divergence).bound);
            let add = |total: &mut [f64], terms: &[f64]| {
                let pairs = total.iter_mut().zip(terms);
                pairs.for_each(|(total, term)| *total += term / draws as f64);
            };
            add(&mut likelihoods, &likelihood);
            add(&mut divergences, &divergence);
        }
        let estimate = BoundEstimate::from_terms(&likelihoods, &divergences);
        let squares: f64 = bounds.iter().map(|b| (b - estimate.bound).powi(2)).sum();
        let n = draws as f64;
        let of_weights = (squares / (n - 1.0).max(1.0) / n).sqrt();
        Ok(BoundEstimate {
            standard_error: estimate.standard_error.hypot(of_weights),
            ..estimate
        })
    }

    /// Estimates the importance-weighted bound `E log (1/K) Σ p(x, z) / q(z | x)` with K = `draws` (Burda et al. 2016).
    /// As K grows, it rises from the lower bound (K = 1) to log p(x). If the weights have a posterior, the draws are
    /// divided among several draws of the weights, and p(x) is the posterior predictive density ∫ q(θ) p(x | θ) dθ.
    ///
    /// # Errors
    /// Fails if the architecture contains operations without a kernel in single precision.
    pub fn importance_bound(
        &mut self,
        records: &dyn Records,
        draws: usize,
        seed: u64,
    ) -> Result<LogMarginal, Unsupported> {
        let draws = draws.max(1);
        let sets = self.posterior.draws().min(draws);
        if sets == 1 {
            let drawn = self.posterior.draw(self.simd, seed, EVALUATED, 0);
            return self.importance_at(&drawn, records, draws, seed, 0);
        }
        let (mut estimates, mut shares) = (Vec::new(), Vec::new());
        for set in 0..sets {
            let drawn = self.posterior.draw(self.simd, seed, EVALUATED, set as u64);
            // Each set of weights receives an equal number of draws, and the first sets receive one more if there is a
            // remainder.
            let own = draws / sets + usize::from(set < draws % sets);
            let before = set * draws.div_ceil(sets);
            estimates.push(
                self.importance_at(&drawn, records, own, seed, before)?
                    .records,
            );
            shares.push(own as f64 / draws as f64);
        }
        Ok(mixed(&estimates, &shares))
    }

    /// Computes the importance-weighted bound for these weights of the decoder. The first draw of the latent values has
    /// the number `before`.
    fn importance_at(
        &mut self,
        tensors: &[Tensor],
        records: &dyn Records,
        draws: usize,
        seed: u64,
        before: usize,
    ) -> Result<LogMarginal, Unsupported> {
        let model = self.architecture.decoder();
        let widths = [model.width(), model.latent()];
        let mut joint = Forward::new(&model.specs(), &widths, self.simd, |g, t, v| {
            let likelihood = model.log_likelihood(g, t, v[0], v[1]);
            let prior = model.log_prior(g, t, v[1]);
            vec![g.add(likelihood, prior)]
        })?;
        let codes = self.encode(records);
        let (latent, family) = (self.architecture.latent, self.architecture.posterior);
        let tensors = views(tensors);
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
                family.draw(
                    self.simd,
                    seed,
                    IMPORTANCE,
                    record as u64,
                    (before + first) as u64,
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
                    weights.push(f64::from(*value) - log_guide(family, e, log_variance));
                }
            }
            let (estimate, error) = log_mean_exp(&weights);
            spread += error * error;
            estimates.push(estimate);
        }
        Ok(LogMarginal::new(estimates, spread))
    }

    /// Estimates log p(x) of records by the estimator of appendix D, whose chains begin at the codes. The estimator is
    /// suitable for fewer than 5 latent dimensions. If the weights have a posterior, p(x) is averaged over draws from
    /// it.
    ///
    /// # Errors
    /// Fails if the architecture contains operations without a kernel in single precision.
    pub fn marginal_likelihood(
        &mut self,
        records: &dyn Records,
        settings: &MarginalSettings,
        seed: u64,
    ) -> Result<LogMarginal, Unsupported> {
        let model = self.architecture.decoder();
        let codes = self.encode(records);
        let at = |draw: u64| {
            let drawn = self.posterior.draw(self.simd, seed, EVALUATED, draw);
            let (tensors, codes) = (views(&drawn), Some(&codes));
            marginal::estimate(&model, &tensors, records, codes, settings, self.simd, seed)
        };
        let sets = self.posterior.draws();
        if sets == 1 {
            return at(0);
        }
        let estimates: Vec<Vec<f64>> = (0..sets as u64)
            .map(|draw| Ok(at(draw)?.records))
            .collect::<Result<_, Unsupported>>()?;
        Ok(mixed(&estimates, &vec![1.0 / sets as f64; sets]))
    }

    /// Determines which latent dimensions the codes of `records` use.
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

    /// Returns the settings that the paper uses for [`marginal_likelihood`](Self::marginal_likelihood).
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

pub(crate) fn views(tensors: &[Tensor]) -> Vec<&[f32]> {
    tensors
        .iter()
        .map(|tensor| tensor.data.as_slice())
        .collect()
}

/// Computes log q(z | x) at `z = mean + sd · noise`.
fn log_guide(family: PosteriorFamily, noise: &[f32], log_variance: &[f32]) -> f64 {
    let terms = noise.iter().zip(log_variance);
    terms
        .map(|(&e, &v)| family.log_density(f64::from(e)) - 0.5 * f64::from(v))
        .sum()
}

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
    /// Converts the estimate to other units of the data. In these units, the log density of record i is larger by
    /// `by[i]` nats.
    #[must_use]
    pub fn moved(self, by: &[f64]) -> Self {
        let records = self.records.iter().zip(by).map(|(x, by)| x + by).collect();
        let moved = Self::new(records, 0.0);
        // The rest of the error is common to all records and does not change.
        let own = Self::new(self.records, 0.0).standard_error;
        let shared = (self.standard_error.powi(2) - own.powi(2)).max(0.0).sqrt();
        Self {
            standard_error: moved.standard_error.hypot(shared),
            monte_carlo_error: self.monte_carlo_error,
            ..moved
        }
    }

    /// Averages the estimates of records. `spread` is the sum of their squared Monte-Carlo errors.
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
