//! The variance of a gradient estimator at an iterate, divided into the parts due to batches and due to draws.

use jensen_density::{Lanes, RecordDensity};
use jensen_math::rng;
use jensen_run::{Archive, ArchiveError, Record, Snapshot};
use serde::{Deserialize, Serialize};

use super::batches::Batches;
use super::gradients::fill_noise;
use super::memory::admit;
use super::{Footprint, GradientRequest, Gradients, RecordEstimator, Table};
use crate::family::Family;
use crate::noise::NoiseSource;
use crate::oracle::Estimate;
use crate::reduce::{axpy, dot};

/// The settings for tracing variances.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VarianceSettings {
    /// The number of iterations between two measurements of the variances.
    pub every: u64,
    /// The number of pairs of a batch and a draw from which each variance is estimated.
    pub samples: usize,
}

/// The trace of the covariance of an estimator at an iterate, and its parts. The unit is the square of the unit of the
/// gradient. Each value has a Monte-Carlo standard error.
#[derive(Clone, Copy, Debug)]
pub struct Variances {
    /// The total variance `V_{B,ε}[g]`.
    pub total: Estimate,
    /// The variance `V_B[E_ε g]` that remains after integrating out the draws.
    pub subsampling: Estimate,
    /// The variance `V_ε[E_B g]` after averaging over all records. The average over the records is exact.
    pub monte_carlo: Estimate,
}

const ORDER: rng::Purpose = rng::Purpose::new("blackbox")
    .fold("records")
    .fold("variance order");
const NOISE: rng::Purpose = rng::Purpose::new("blackbox")
    .fold("records")
    .fold("variance noise");

/// The iterate at which [`variances`] measures the variance, and the sample sizes.
#[derive(Clone, Copy, Debug)]
pub struct EvaluationPoint<'r> {
    /// The parameters ω.
    pub omega: &'r [f64],
    /// The table of the estimator, which is not changed.
    pub table: &'r Table,
    /// The batches, which determine the batch sizes.
    pub batches: &'r Batches,
    /// The seed from which batches and draws are generated.
    pub seed: u64,
    /// The key of the random batches and draws. It differs between iterations.
    pub iteration: u64,
    /// The number of pairs of a batch and a draw per estimate. It is at least 2.
    pub samples: usize,
}

/// Measures the variance of one estimator at an iterate, with its table held fixed.
///
/// The total is the unbiased sample variance over independent pairs (B, ε). For the part due to subsampling, the
/// analysis evaluates every batch at two independent pairs of antithetic draws. The covariance of the two results over
/// the batches is an unbiased estimate of the variance of the conditional expectation, so the analysis needs no inner
/// average over many draws. For the Monte-Carlo part, the batch consists of all records. Batches are uniformly random
/// subsets of the same size as the first batch. The analysis costs `5·samples` batches and `samples` passes over all
/// records.
pub fn variances<D: RecordDensity>(
    gradients: &mut Gradients<'_, D>,
    estimator: RecordEstimator,
    point: &EvaluationPoint<'_>,
) -> Variances {
    let (n, samples) = (point.omega.len(), point.samples.max(2));
    let records = point.batches.records();
    let size = point.batches.range(0).len();
    let (rows, draws) = (gradients.family().noise_dim(), gradients.draws());
    let simd = gradients.simd;
    let mut order: Vec<u32> = (0..records as u32).collect();
    let all = order.clone();
    let mut noise = Vec::new();
    let make_noise = |sample: usize, copy: u64, noise: &mut Vec<f64>| {
        let key = point.seed ^ point.iteration.rotate_left(32);
        let counter = 4 * sample as u64 + copy;
        let source = NoiseSource::new(key, simd);
        fill_noise(source, NOISE, counter, rows, draws, noise);
    };
    let mut evaluate = |noise: &[f64], batch: &[u32], out: &mut [f64]| {
        let request = GradientRequest {
            estimator,
            omega: point.omega,
            noise: Lanes::new(noise, rows, draws),
            batch,
            visit: false,
        };
        gradients.evaluate(&request, point.table, out)
    };
    let mut total = Vec::with_capacity(samples);
    let mut halves = [Vec::with_capacity(samples), Vec::with_capacity(samples)];
    let mut whole = Vec::with_capacity(samples);
    for sample in 0..samples {
        let key = point.seed ^ point.iteration.rotate_left(32);
        let mut stream = rng::Stream::new(key, ORDER, sample as u64, 0);
        // The first steps of the Fisher-Yates shuffle select a random subset.
        for i in 0..size {
            let j = i + stream.below((records - i) as u64) as usize;
            order.swap(i, j);
        }
        let batch = &order[..size];
        let mut g = vec![0.0; n];
        make_noise(sample, 0, &mut noise);
        if evaluate(&noise, batch, &mut g) {
            total.push(g.clone());
        }
        let mut pair = [vec![0.0; n], vec![0.0; n]];
        let mut finite = true;
        for (half, sum) in pair.iter_mut().enumerate() {
            make_noise(sample, 1 + half as u64, &mut noise);
            for _ in 0..2 {
                finite &= evaluate(&noise, batch, &mut g);
                axpy(0.5, &g, sum);
                noise.iter_mut().for_each(|e| *e = -*e);
            }
        }
        if finite {
            let [a, b] = pair;
            halves[0].push(a);
            halves[1].push(b);
        }
        make_noise(sample, 3, &mut noise);
        if evaluate(&noise, &all, &mut g) {
            whole.push(g);
        }
    }
    Variances {
        total: covariance(&total, &total),
        subsampling: covariance(&halves[0], &halves[1]),
        monte_carlo: covariance(&whole, &whole),
    }
}

fn covariance(a: &[Vec<f64>], b: &[Vec<f64>]) -> Estimate {
    let count = a.len() as f64;
    if a.len() < 2 {
        return Estimate {
            mean: f64::NAN,
            standard_error: f64::NAN,
        };
    }
    let mean = |x: &[Vec<f64>]| {
        let mut mean = vec![0.0; x[0].len()];
        x.iter().for_each(|x| axpy(1.0 / count, x, &mut mean));
        mean
    };
    let (mean_a, mean_b) = (mean(a), mean(b));
    let centred =
        |x: &[f64], mean: &[f64]| -> Vec<f64> { x.iter().zip(mean).map(|(x, m)| x - m).collect() };
    let terms: Vec<f64> = a
        .iter()
        .zip(b)
        .map(|(a, b)| {
            let product = dot(&centred(a, &mean_a), &centred(b, &mean_b));
            product * count / (count - 1.0)
        })
        .collect();
    Estimate::of(&terms)
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Watch {
    pub(crate) table: Table,
    pub(crate) clean: bool,
}

impl Watch {
    pub(crate) fn new(table: Table) -> Self {
        Self { table, clean: true }
    }

    pub(crate) fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.nest("table", self.table.save());
        archive.set("clean", self.clean);
        archive
    }

    pub(crate) fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            table: Table::restore(&archive.nested("table"))?,
            clean: archive.get("clean")?,
        })
    }
}

/// Selects the estimators that have a table and suit the records and the family, and adds the bytes of their tables to
/// `footprint`. Omits tables with which the total would exceed `limit` bytes.
pub(crate) fn watched<D: RecordDensity>(
    density: &D,
    family: &dyn Family,
    own: RecordEstimator,
    batches: &Batches,
    draws: usize,
    limit: Option<u64>,
    footprint: &mut Footprint,
) -> Vec<RecordEstimator> {
    let mut out = Vec::new();
    for estimator in RecordEstimator::ALL {
        if !estimator.remembers() || estimator.name() == own.name() {
            continue;
        }
        let Ok(needed) = admit(density, family, estimator, batches, draws, None) else {
            continue;
        };
        let total = footprint.total().saturating_add(needed.table);
        if limit.is_none_or(|limit| total <= limit) {
            footprint.table = footprint.table.saturating_add(needed.table);
            out.push(estimator);
        }
    }
    out
}

pub(crate) fn trace_variances<D: RecordDensity>(
    gradients: &mut Gradients<'_, D>,
    own: (RecordEstimator, &Table),
    others: &[(RecordEstimator, &Table)],
    point: &EvaluationPoint<'_>,
    mut record: Record,
) -> Record {
    let calls = gradients.take_calls();
    for estimator in RecordEstimator::ALL {
        let same = |(e, _): &&(RecordEstimator, &Table)| e.name() == estimator.name();
        let found = std::iter::once(&own).chain(others).find(same);
        let (estimator, table) = match found {
            Some(&(estimator, table)) => (estimator, table),
            None => (estimator, point.table),
        };
        if estimator.remembers() && !(found.is_some() && table.complete) {
            continue;
        }
        let found = variances(gradients, estimator, &EvaluationPoint { table, ..*point });
        for (part, estimate) in [
            ("total", found.total),
            ("subsampling", found.subsampling),
            ("monte_carlo", found.monte_carlo),
        ] {
            let name = format!("variance_{estimator}_{part}");
            record = record
                .with(&name, estimate.mean)
                .with(&format!("{name}_se"), estimate.standard_error);
        }
    }
    // The cost of the analysis does not count as a cost of the fit.
    gradients.calls = calls;
    record
}
