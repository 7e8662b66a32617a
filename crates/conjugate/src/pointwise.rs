//! An engine for any model whose global parameters are a single vector.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::special;
use jensen_math::sum::Moments;
use jensen_run::{Archive, ArchiveError, Record, Snapshot};
use rayon::prelude::*;

use crate::engine::{Engine, Heat, Measure, Partition, Sums};
use crate::model::{ConjugateModel, Local, twins};
use crate::policy::softmax;
use crate::shards::{Ask, Part};
use crate::temper::DRAWS;

const START: Purpose = Purpose::new("first globals");
const ANEW: Purpose = Purpose::new("parts that start anew");
const PRIOR: Purpose = Purpose::new("prior globals");
const POSTERIOR: Purpose = Purpose::new("globals for normalisers");

/// Largest number of pieces into which a batch is divided. Every piece has statistics of its own.
const PIECES: usize = 32;
const PIECE: usize = 16;
/// Number of draws from q(β) for estimating the expected log normalisers of local temperatures.
const TABLE_DRAWS: u64 = 32;
/// Largest number of iterations in which a point's temperature is inferred.
const ROUNDS: usize = 12;
/// The inverse temperature of a point has converged when it changes by less than this.
const SETTLED: f64 = 1e-3;

/// The global parameters λ and the stored states of the points.
#[derive(Clone, Debug, PartialEq)]
pub struct VectorGlobals {
    /// The natural parameters of q(β).
    pub lambda: Vec<f64>,
    pub(crate) memory: Vec<f64>,
}

impl Snapshot for VectorGlobals {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("lambda", &self.lambda);
        archive.put("memory", &self.memory);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            lambda: archive.vec("lambda")?,
            memory: archive.vec("memory")?,
        })
    }
}

/// The expected log normalisers E_q[log ∫ p(x, z | β)^s] on the grid of s, with one row for each size that points have.
#[derive(Clone, Debug, PartialEq)]
pub struct NormaliserTable {
    pub(crate) sizes: Vec<f64>,
    pub(crate) values: Vec<f64>,
}

impl NormaliserTable {
    fn row(&self, size: f64) -> &[f64] {
        let i = self.sizes.partition_point(|&s| s < size);
        let width = self.values.len() / self.sizes.len();
        &self.values[i * width..(i + 1) * width]
    }
}

impl Snapshot for NormaliserTable {
    fn save(&self) -> Archive {
        let mut archive = Archive::new();
        archive.put("sizes", &self.sizes);
        archive.put("values", &self.values);
        archive
    }

    fn restore(archive: &Archive) -> Result<Self, ArchiveError> {
        Ok(Self {
            sizes: archive.vec("sizes")?,
            values: archive.vec("values")?,
        })
    }
}

/// The engine of any [`ConjugateModel`].
pub struct Pointwise<'a, M: ConjugateModel> {
    model: &'a M,
    heldout: Option<&'a M>,
    sizes: Vec<(f64, f64)>,
    log_jacobian: f64,
    statistics: Vec<f64>,
    origin: Option<(u64, Vec<f64>)>,
    /// The share of the random start in the next global step, and the inverse temperature of the start.
    lean: (f64, f64),
}

impl<'a, M: ConjugateModel> Pointwise<'a, M> {
    /// Creates an engine for a model.
    pub fn new(model: &'a M) -> Self {
        Self {
            model,
            heldout: None,
            sizes: model.sizes(),
            log_jacobian: model.log_jacobian(),
            statistics: Vec::new(),
            origin: None,
            lean: (0.0, 1.0),
        }
    }

    /// Adds held-out points, which the engine scores when the driver requests scores.
    pub fn with_heldout(self, heldout: &'a M) -> Self {
        Self {
            heldout: Some(heldout),
            ..self
        }
    }
}

/// Makes the local step of one point and infers the point's temperature if this is requested. Returns the result and
/// the inverse temperature τ.
fn solve<M: ConjugateModel>(
    model: &M,
    expected: &[f64],
    point: usize,
    heat: &Heat<'_, NormaliserTable>,
    memory: &mut [f64],
    scratch: &mut M::Scratch,
) -> (Local, f64) {
    match heat {
        Heat::Uniform(inverse) => (
            model.local(expected, point, *inverse, memory, scratch),
            *inverse,
        ),
        Heat::Local {
            grid,
            floor,
            first,
            table,
        } => {
            let normalisers = table.row(model.size(point));
            let mut inverse = *first;
            let mut r = vec![0.0; grid.values.len()];
            let mut local = model.local(expected, point, inverse, memory, scratch);
            for _ in 0..ROUNDS {
                let weights = grid.values.iter().zip(normalisers).zip(&grid.log_prior);
                for (r, ((s, c), prior)) in r.iter_mut().zip(weights) {
                    *r = s * local.energy - c + prior;
                }
                softmax(&mut r);
                let mean: f64 = r.iter().zip(&grid.values).map(|(r, s)| r * s).sum();
                let next = mean.max(*floor);
                let moved = (next - inverse).abs();
                inverse = next;
                local = model.local(expected, point, inverse, memory, scratch);
                if moved < SETTLED {
                    break;
                }
            }
            (local, inverse)
        }
    }
}

/// Runs the local steps of the points in a batch. Returns the sum of the results, and the stored states of the points
/// in order. The sum is divided into parts whose boundaries depend only on the number of points.
pub(crate) fn solve_batch<M: ConjugateModel>(
    model: &M,
    expected: &[f64],
    batch: &[usize],
    heat: &Heat<'_, NormaliserTable>,
    memory: &[f64],
) -> (Part, Vec<f64>) {
    let width = model.memory();
    let piece = batch.len().div_ceil(PIECES).max(PIECE);
    let pieces: Vec<(Part, Vec<f64>)> = batch
        .par_chunks(piece)
        .map(|points| {
            let mut sums = Sums::default();
            let mut statistics = vec![0.0; expected.len()];
            let mut kept = Vec::with_capacity(points.len() * width);
            let mut scratch = M::Scratch::default();
            for &point in points {
                let start = kept.len();
                kept.extend_from_slice(&memory[point * width..(point + 1) * width]);
                let (size, weight) = (model.size(point), model.weight(point));
                if size == 0.0 || weight == 0.0 {
                    sums.skipped += 1;
                    continue;
                }
                let own = &mut kept[start..];
                let (local, inverse) = solve(model, expected, point, heat, own, &mut scratch);
                model.add_statistics(point, weight * inverse, &scratch, &mut statistics);
                sums.points += 1;
                sums.size += size;
                sums.energy += weight * local.energy;
                sums.bound += weight * (inverse * local.energy + local.entropy);
                sums.inverse += inverse;
                sums.unconverged += usize::from(!local.converged);
                sums.sweeps += u64::from(local.sweeps);
            }
            (Part { sums, statistics }, kept)
        })
        .collect();
    let mut all = Part {
        sums: Sums::default(),
        statistics: vec![0.0; expected.len()],
    };
    let mut remembered = Vec::with_capacity(batch.len() * width);
    for (part, kept) in pieces {
        all = all.plus(&part);
        remembered.extend(kept);
    }
    (all, remembered)
}

impl<M: ConjugateModel> Engine for Pointwise<'_, M> {
    type Globals = VectorGlobals;
    type Table = NormaliserTable;

    fn points(&self) -> usize {
        self.model.points()
    }

    fn start(&self, seed: u64) -> VectorGlobals {
        VectorGlobals {
            lambda: origin(self.model, seed),
            memory: vec![0.5; self.model.points() * self.model.memory()],
        }
    }

    fn local_steps(
        &mut self,
        globals: &mut VectorGlobals,
        batch: &[usize],
        heat: &Heat<'_, NormaliserTable>,
        _measure: Measure,
    ) -> Option<Sums> {
        let model = self.model;
        let expected = model.blocks().expectations(&globals.lambda);
        if let Some(shards) = model.elsewhere() {
            let expected = &expected[..];
            let part = shards.solve(&Ask { expected, heat }, batch)?;
            self.statistics = part.statistics;
            return Some(part.sums);
        }
        let (part, kept) = solve_batch(model, &expected, batch, heat, &globals.memory);
        self.statistics = part.statistics;
        let width = model.memory();
        if width > 0 {
            for (&point, kept) in batch.iter().zip(kept.chunks_exact(width)) {
                globals.memory[point * width..(point + 1) * width].copy_from_slice(kept);
            }
        }
        Some(part.sums)
    }

    fn lean(&self) -> f64 {
        self.model.lean()
    }

    fn lean_on_start(&mut self, seed: u64, share: f64, inverse: f64) {
        self.lean = (share, inverse);
        if share > 0.0 && self.origin.as_ref().is_none_or(|origin| origin.0 != seed) {
            self.origin = Some((seed, origin(self.model, seed)));
        }
    }

    fn part_twins(&self, globals: &mut VectorGlobals, seed: u64, attempt: u64) -> bool {
        if let Some(merged) = self.model.merge(&mut globals.lambda) {
            return merged;
        }
        let twins = twins(self.model, &globals.lambda);
        if twins.is_empty() {
            return false;
        }
        let fresh = self.model.start(&mut Stream::new(seed, ANEW, attempt, 0));
        let parts = self.model.parts();
        for (_, twin) in twins {
            let here = parts[twin].clone();
            globals.lambda[here.clone()].copy_from_slice(&fresh[here]);
        }
        true
    }

    fn global_step(&mut self, globals: &mut VectorGlobals, rho: f64, scale: f64) {
        let prior = self.model.blocks().prior();
        let (share, inverse) = self.lean;
        if share > 0.0
            && let Some((_, origin)) = &self.origin
        {
            // The statistics of the random start represent all points at temperature 1.
            let own = share * inverse / scale;
            let starts = origin.iter().zip(prior).map(|(o, p)| o - p);
            for (s, start) in self.statistics.iter_mut().zip(starts) {
                *s = (1.0 - share) * *s + own * start;
            }
        }
        for ((l, p), s) in globals.lambda.iter_mut().zip(prior).zip(&self.statistics) {
            *l = (1.0 - rho) * *l + rho * (p + scale * s);
        }
        self.model.restrict(&mut globals.lambda);
        if share == 0.0 {
            self.model.rearrange(&mut globals.lambda);
        }
    }

    fn global_bound(&self, globals: &VectorGlobals) -> f64 {
        -self.model.blocks().divergence(&globals.lambda)
    }

    fn log_jacobian(&self) -> f64 {
        self.log_jacobian
    }

    fn untempered_bound(&self, globals: &VectorGlobals) -> Option<f64> {
        Some(untempered_bound(self.model, globals))
    }

    fn log_partition(&self, inverse: &[f64], draws: Option<usize>, seed: u64) -> Partition {
        let blocks = self.model.blocks();
        let draws = if self.model.normaliser_depends_on_globals() {
            draws.unwrap_or(DRAWS) as u64
        } else {
            1
        };
        let values: Vec<Vec<f64>> = (0..draws)
            .into_par_iter()
            .map(|d| {
                let t = blocks.draw(blocks.prior(), &mut Stream::new(seed, PRIOR, d, 0));
                inverse
                    .iter()
                    .map(|&s| {
                        self.sizes
                            .iter()
                            .map(|&(size, n)| n * self.model.log_normaliser(&t, size, s))
                            .sum()
                    })
                    .collect()
            })
            .collect();
        let mut partition = Partition::default();
        for m in 0..inverse.len() {
            let column: Vec<f64> = values.iter().map(|row| row[m]).collect();
            let count = draws as f64;
            let lower = column.iter().sum::<f64>() / count;
            partition.lower.push(lower);
            partition.log_c.push(if self.model.partition_is_finite() {
                special::log_sum_exp_slice(&column) - count.ln()
            } else {
                lower
            });
        }
        partition
    }

    fn table(&self, globals: &VectorGlobals, inverse: &[f64], seed: u64) -> NormaliserTable {
        let blocks = self.model.blocks();
        let draws: Vec<Vec<f64>> = (0..TABLE_DRAWS)
            .map(|d| blocks.draw(&globals.lambda, &mut Stream::new(seed, POSTERIOR, d, 0)))
            .collect();
        let values = self
            .sizes
            .par_iter()
            .flat_map_iter(|&(size, _)| {
                let row: Vec<f64> = inverse
                    .iter()
                    .map(|&s| {
                        let total: f64 = draws
                            .iter()
                            .map(|t| self.model.log_normaliser(t, size, s))
                            .sum();
                        total / TABLE_DRAWS as f64
                    })
                    .collect();
                row
            })
            .collect();
        NormaliserTable {
            sizes: self.sizes.iter().map(|s| s.0).collect(),
            values,
        }
    }

    fn score(&mut self, globals: &VectorGlobals, record: Record) -> Record {
        let bound = untempered_bound(self.model, globals);
        let record = record.with("untempered_elbo", bound);
        match self.heldout {
            None => record,
            Some(model) => {
                let (mean, se) = heldout(model, &globals.lambda);
                record
                    .with("heldout_log_predictive", mean)
                    .with("heldout_standard_error", se)
            }
        }
    }
}

fn origin<M: ConjugateModel>(model: &M, seed: u64) -> Vec<f64> {
    model.start(&mut start_stream(seed))
}

pub(crate) fn start_stream(seed: u64) -> Stream {
    Stream::new(seed, START, 0, 0)
}

/// Computes E_q[log p(x, z | β)] + H(q(z)) for every point at T = 1. The function makes two local steps, a fresh one
/// and one that continues from the last visit, and uses the one with the larger bound.
fn point_bounds<M: ConjugateModel>(model: &M, lambda: &[f64], memory: &[f64]) -> Vec<f64> {
    bounds_at(model, &model.blocks().expectations(lambda), memory)
}

fn bounds_at<M: ConjugateModel>(model: &M, expected: &[f64], memory: &[f64]) -> Vec<f64> {
    let width = model.memory();
    (0..model.points())
        .into_par_iter()
        .map_init(M::Scratch::default, |scratch, point| {
            // A point without any known value has probability 1.
            if model.size(point) == 0.0 {
                return 0.0;
            }
            let mut bound = |mut memory: Vec<f64>| {
                let local = model.local(expected, point, 1.0, &mut memory, scratch);
                local.energy + local.entropy
            };
            let fresh = bound(vec![0.5; width]);
            match memory.get(point * width..(point + 1) * width) {
                Some(kept) if width > 0 => fresh.max(bound(kept.to_vec())),
                _ => fresh,
            }
        })
        .collect()
}

/// Scores q(β) on held-out points. Returns the mean over points of E_q[log p(x, z | β)] + H(q(z)) at T = 1, and the
/// standard error of this mean. The mean is a lower bound on the log predictive density, in nats per point.
pub fn heldout<M: ConjugateModel>(model: &M, lambda: &[f64]) -> (f64, f64) {
    let moments = Moments::of(&point_bounds(model, lambda, &[]));
    (moments.mean(), moments.standard_error())
}

/// Computes the bound of a fit at T = 1 in nats. The local steps are made at T = 1, and the global parameters remain
/// unchanged.
///
/// Iterated local steps have local optima. For each point, the function makes one step from a fresh start and one that
/// continues from the last visit, and uses the better of the two.
///
/// Returns NaN if the points are in other processes and one of these processes does not answer.
pub fn untempered_bound<M: ConjugateModel>(model: &M, globals: &VectorGlobals) -> f64 {
    let expected = model.blocks().expectations(&globals.lambda);
    let points = match model.elsewhere() {
        Some(shards) => shards.bound(&expected).unwrap_or(f64::NAN),
        None => bound_of_points(model, &expected, &globals.memory),
    };
    points - model.blocks().divergence(&globals.lambda)
}

pub(crate) fn bound_of_points<M: ConjugateModel>(
    model: &M,
    expected: &[f64],
    memory: &[f64],
) -> f64 {
    let mut bounds = bounds_at(model, expected, memory);
    let each = bounds.iter_mut().enumerate();
    each.for_each(|(point, bound)| *bound *= model.weight(point));
    Moments::of(&bounds).mean() * model.points() as f64
}
