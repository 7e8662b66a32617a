//! Draws of an approximation on the constrained scale, with what is needed to weigh them.

use jensen_blackbox::{Approximation, NoiseSource, Refined, psis, resample};
use jensen_data::{DrawsTable, DrawsVariable};
use jensen_density::{ConstrainError, DrawKey, Lanes, LogDensity, Posterior, Variable};
use rayon::prelude::*;

use crate::{Error, Problem};

/// Draws to choose one from when resampling.
const POOL: usize = 10;

/// Smallest pool of a resampling.
const SMALLEST_POOL: usize = 4000;

/// Lanes of one call to the density.
const BLOCK: usize = 512;

/// Which draws are wanted.
#[derive(Clone, Copy, Debug)]
pub struct SampleRequest {
    /// Index of the first draw: draw i is the same in every request of one seed.
    pub first: u64,
    /// Number of draws.
    pub draws: usize,
    /// Whether they are chosen by smoothed importance weights from a pool ten times as large
    /// (sampling importance resampling), which moves them from the approximation towards the
    /// posterior.
    pub resample: bool,
    /// The approximation's random numbers.
    pub source: NoiseSource,
    /// Seed of the random numbers in generated quantities.
    pub seed: u64,
    /// Threads that constrain draws.
    pub threads: usize,
}

/// Draws with names.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The draws that the model accepts.
    pub table: DrawsTable,
    /// The variables of the table.
    pub variables: Vec<Variable>,
    /// Draws that the model rejects; they are not in the table.
    pub rejected: usize,
    /// What the model said of the first of them.
    pub rejection: Option<String>,
}

/// Draws from an approximation and computes every reported variable at each.
///
/// # Errors
/// When the model's names cannot be those of a table of draws.
pub fn sample<P: Problem>(
    problem: &P,
    approximation: &Approximation,
    request: &SampleRequest,
) -> Result<Sample, Error> {
    let density = problem.density();
    let posterior = problem.posterior();
    let dim = approximation.dim();
    let pool = if request.resample {
        (POOL * request.draws).max(SMALLEST_POOL)
    } else {
        request.draws
    };
    let mut rows = Vec::with_capacity(pool * dim);
    let mut log_p = Vec::with_capacity(pool);
    let mut log_q = Vec::with_capacity(pool);
    let mut ws = density.workspace(BLOCK.min(pool));
    for start in (0..pool).step_by(BLOCK) {
        let count = BLOCK.min(pool - start);
        let draws = approximation.draws_from(request.first + start as u64, count, request.source);
        let mut values = vec![0.0; count];
        density.value(&mut ws, Lanes::new(&draws.z, dim, count), &mut values);
        log_p.extend(values);
        log_q.extend_from_slice(&draws.log_q);
        for i in 0..count {
            rows.extend(draws.draw(i));
        }
    }
    let chosen = if request.resample {
        choose(&log_p, &log_q, request)
    } else {
        (0..pool).collect()
    };
    // A resampled draw may come twice; its generated quantities must not.
    let constrained = constrain(posterior, &rows, dim, &chosen, request);
    collect(posterior, constrained, &chosen, &log_p, &log_q)
}

/// Every reported variable at refined draws: as many as asked, at equal distances among those that there are, or all.
///
/// # Errors
/// When the model's names cannot be those of a table of draws.
pub(crate) fn sample_refined<P: Problem>(
    problem: &P,
    refined: &Refined,
    request: &SampleRequest,
) -> Result<Sample, Error> {
    let (dim, count) = (refined.draws.dim, refined.draws.count);
    let wanted = request.draws.min(count);
    let chosen: Vec<usize> = (0..wanted).map(|i| i * count / wanted).collect();
    let rows: Vec<f64> = (0..count).flat_map(|i| refined.draws.draw(i)).collect();
    let posterior = problem.posterior();
    let constrained = constrain(posterior, &rows, dim, &chosen, request);
    collect(
        posterior,
        constrained,
        &chosen,
        &refined.log_p,
        &refined.draws.log_q,
    )
}

/// Indices of the pool by smoothed importance weights.
fn choose(log_p: &[f64], log_q: &[f64], request: &SampleRequest) -> Vec<usize> {
    let weights: Vec<f64> = log_p.iter().zip(log_q).map(|(p, q)| p - q).collect();
    let smoothed = psis(&weights, 1.0).log_weights;
    resample(&smoothed, request.draws, request.source)
}

type Row = Result<Vec<f64>, ConstrainError>;

fn constrain(
    posterior: &dyn Posterior,
    rows: &[f64],
    dim: usize,
    chosen: &[usize],
    request: &SampleRequest,
) -> Vec<Row> {
    let one = |(i, &from): (usize, &usize)| {
        let key = DrawKey {
            seed: request.seed,
            index: request.first + i as u64,
        };
        let mut out = Vec::new();
        posterior
            .constrain(&rows[from * dim..(from + 1) * dim], key, &mut out)
            .map(|()| out)
    };
    if request.threads > 1 {
        chosen.par_iter().enumerate().map(one).collect()
    } else {
        chosen.iter().enumerate().map(one).collect()
    }
}

fn collect(
    posterior: &dyn Posterior,
    constrained: Vec<Row>,
    chosen: &[usize],
    log_p: &[f64],
    log_q: &[f64],
) -> Result<Sample, Error> {
    let variables = posterior.variables();
    let mut draws = Vec::new();
    let (mut p, mut q) = (Vec::new(), Vec::new());
    let mut rejected = 0;
    let mut rejection = None;
    for (row, &from) in constrained.into_iter().zip(chosen) {
        match row {
            Ok(row) => {
                draws.extend(row);
                p.push(log_p[from]);
                q.push(log_q[from]);
            }
            Err(error) => {
                rejected += 1;
                rejection.get_or_insert(error.message);
            }
        }
    }
    let columns = variables
        .iter()
        .map(|v| DrawsVariable::new(v.name.clone(), v.shape.clone()))
        .collect();
    Ok(Sample {
        table: DrawsTable::new(columns, draws, p, q)?,
        variables,
        rejected,
        rejection,
    })
}
