//! What lies beyond the reach of draws: the second moments that the posterior has far from where they are.
//!
//! Draws tell nothing of points that they do not come to, and neither do their importance weights, their R̂ or their effective
//! number: a slab a thousand times as wide as the spike that was fitted may have most of the variance with a thousandth of the
//! mass. So points are drawn as [leaps](super::leaps) are, uniformly over the logarithm of the distance, of all coordinates
//! together, or of one alone with the others from a standard normal. The density b of this mixture is known, and the mean of
//! `x² p / (Z b)` over points where b is larger than the standard normal is an unbiased estimate of the second moment that the
//! posterior has there. An approximation is compared with it before it is trusted ([`beyond`]), and so are refined draws once
//! they have mixed ([`unanswered`]).

use std::f64::consts::{LN_2, TAU};

use jensen_density::{Lanes, LogDensity};
use jensen_math::special::log_sum_exp_slice;

use super::leaps::{Distances, log_density, range_of};
use super::map::Map;
use super::tail_probes::CHAINS;
use crate::approximation::Approximation;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::policy::Policy;
use crate::psis::{tail_index, tail_index_error};

/// Points at which the posterior is looked at beyond an approximation. Of them some tens meet a slab in all of up to twenty coordinates.
const LOOKS: usize = 1024;

/// The same beyond refined draws, which have taken a hundred times as many gradients: a slab in one of twenty coordinates is then
/// met by ten points.
const LOOKS_OF_REFINED: usize = 4096;

/// Fewer points where they would be more than so many numbers, a tenth of a second's work; those of one call to the density; and
/// those where nothing is known of what an evaluation takes, so that a solver is asked no more than for a starting point.
const NUMBERS: usize = 1 << 20;
const BLOCK: usize = 64;
const UNKNOWN: usize = 256;

/// Shells of distances from the middle in one coordinate, each twice as wide as the one before; the first begins at one standard
/// deviation, and those of the furthest looks are counted with the last. Within a shell squares differ by a factor of four at
/// most, so that what a few looks say of the mass they say of the variance.
const SHELLS: usize = 28;

/// Tail index from which on a variance is infinite, so that none is told.
const NO_VARIANCE: f64 = 0.5;

/// Distances of points to look at.
fn distances_of<D: LogDensity>(density: &D) -> Distances<'static> {
    Distances {
        range: (0.0, range_of(density).1),
        edges: &[],
    }
}

/// Points to look at, at most `most` of them.
fn count<D: LogDensity>(density: &D, most: usize) -> usize {
    let affordable = match density.work() {
        Some(_) => NUMBERS / density.dim(),
        None => UNKNOWN,
    };
    most.min(affordable).max(1).next_multiple_of(BLOCK)
}

/// Looks at so many points; those beyond the standard normal, with `p / (Z b)` and what the normal has for p there.
fn look<D: LogDensity>(
    (density, map): (&D, &Map),
    log_z: f64,
    (looks, source): (usize, NoiseSource),
    mut see: impl FnMut(&[f64], f64, f64),
) {
    let dim = density.dim();
    let distances = distances_of(density);
    let mut workspace = density.workspace(BLOCK);
    for first in (0..looks).step_by(BLOCK) {
        let x = far_points(&distances, dim, first, source);
        let z = map.draws(&x, BLOCK);
        let mut log_p = vec![0.0; BLOCK];
        density.value(&mut workspace, Lanes::new(&z, dim, BLOCK), &mut log_p);
        let log_dets = map.log_dets(&x, BLOCK);
        for l in 0..BLOCK {
            let point: Vec<f64> = (0..dim).map(|i| x[i * BLOCK + l]).collect();
            let log_p = log_p[l] + log_dets[l] - log_z;
            if let Some((log_q, log_b)) = far_out(&distances, &point)
                && log_p.is_finite()
            {
                see(&point, (log_p - log_b).exp(), (log_q - log_b).exp());
            }
        }
    }
}

/// A coordinate of which more of the variance lies beyond what draws of an approximation reach than may, and how many times its
/// variance; `log_z` is the log evidence by importance weights. What a few points say is enough here: a refinement follows.
pub(crate) fn beyond<D: LogDensity>(
    density: &D,
    approximation: &Approximation,
    log_z: f64,
    (source, policy): (NoiseSource, &Policy),
) -> Option<(usize, f64)> {
    let looks = count(density, LOOKS);
    let mut missed = vec![0.0; approximation.dim()];
    let map = Map::of(approximation);
    look((density, &map), log_z, (looks, source), |point, p, q| {
        for (missed, x) in missed.iter_mut().zip(point) {
            *missed += x * x * (p - q) / looks as f64;
        }
    });
    let worst = missed.iter().copied().enumerate();
    let worst = worst.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (worst.1 > policy.unreached()).then_some(worst)
}

/// Variance that the posterior has and refined draws have not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unanswered {
    /// How many times that of the draws, at least.
    pub share: f64,
    /// Points where it is, `dim × count`: as many of so many chains as the mass there asks for, [`CHAINS`] at least.
    pub points: Vec<f64>,
}

/// Where the posterior has more variance than draws at `x` (sets of `dim × lanes`), of which so many are effective, by a margin
/// that chance does not explain; nothing of coordinates whose own draws show that they have none.
///
/// The masses of [`SHELLS`] are compared, not second moments: those of a long tail hang on the few draws that are furthest out,
/// whereas a shell that some draws have reached has its share of them.
pub(super) fn unanswered<D: LogDensity>(
    (density, map): (&D, &Map),
    log_z: f64,
    (x, lanes, effective): (&[f64], usize, f64),
    (source, policy): (NoiseSource, &Policy),
) -> Option<Unanswered> {
    let dim = density.dim();
    let looks = count(density, LOOKS_OF_REFINED);
    let mut shells = vec![[Shell::default(); SHELLS]; dim];
    let mut met: Vec<(Vec<f64>, f64)> = Vec::new();
    look((density, map), log_z, (looks, source), |point, p, _| {
        for (shells, x) in shells.iter_mut().zip(point) {
            shells[shell_of(*x)].add(*x, p / looks as f64);
        }
        met.push((point.to_vec(), p));
    });
    let own = seen(&distances_of(density), x, dim, lanes);
    let confidence = policy.confidence_of(dim * SHELLS);
    let missed = |i: usize| {
        let pairs = shells[i].iter().zip(&own[i].shells);
        let missed = pairs.map(|(shell, own)| {
            let chance = if *own > 0.0 {
                (own / effective).sqrt()
            } else {
                0.0
            };
            let error = shell.error(looks).hypot(chance);
            let mass = (shell.mass - own - confidence * error).max(0.0);
            (mass, mass * shell.square())
        });
        let missed = missed.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
        (i, missed.0, missed.1 / own[i].second)
    };
    let has_variance = |i: usize| {
        let rows = x
            .chunks(dim * lanes)
            .map(|set| &set[i * lanes..(i + 1) * lanes]);
        let draws: Vec<f64> = rows.flatten().copied().collect();
        let error = |tail| tail_index_error(tail, effective);
        tail_index(&draws, 1.0).is_none_or(|tail| tail + error(tail) < NO_VARIANCE)
    };
    let (coordinate, mass, share) = (0..dim)
        .map(missed)
        .filter(|(i, _, share)| *share > policy.unreached() && has_variance(*i))
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    let chains = (mass * lanes as f64) as usize;
    let weights = met.iter().map(|(point, p)| point[coordinate].powi(2) * p);
    let chosen = systematic(
        &weights.collect::<Vec<f64>>(),
        chains.clamp(CHAINS, lanes / 2),
    );
    let points = (0..dim).flat_map(|i| chosen.iter().map(|k| met[*k].0[i]).collect::<Vec<f64>>());
    Some(Unanswered {
        share,
        points: points.collect(),
    })
}

/// What looks say of a shell: its mass, the sum of its squared weights, and its second moment.
#[derive(Clone, Copy, Debug, Default)]
struct Shell {
    mass: f64,
    squares: f64,
    second: f64,
}

impl Shell {
    fn add(&mut self, x: f64, weight: f64) {
        self.mass += weight;
        self.squares += weight * weight;
        self.second += x * x * weight;
    }

    /// Standard error of the mass.
    fn error(&self, looks: usize) -> f64 {
        (self.squares - self.mass * self.mass / looks as f64)
            .max(0.0)
            .sqrt()
    }

    /// Mean square within.
    fn square(&self) -> f64 {
        if self.mass > 0.0 {
            self.second / self.mass
        } else {
            0.0
        }
    }
}

fn shell_of(x: f64) -> usize {
    (x.abs().log2().max(0.0) as usize).min(SHELLS - 1)
}

/// The second moment of draws in a coordinate, and the shares of those far out in each shell.
#[derive(Clone, Copy, Debug)]
struct Own {
    second: f64,
    shells: [f64; SHELLS],
}

fn seen(distances: &Distances<'_>, x: &[f64], dim: usize, lanes: usize) -> Vec<Own> {
    let one = dim as f64 / x.len() as f64;
    let none = Own {
        second: 0.0,
        shells: [0.0; SHELLS],
    };
    let mut own = vec![none; dim];
    for set in x.chunks(dim * lanes) {
        for l in 0..lanes {
            let point: Vec<f64> = (0..dim).map(|i| set[i * lanes + l]).collect();
            let is_far = far_out(distances, &point).is_some();
            for (own, x) in own.iter_mut().zip(point) {
                own.second += x * x * one;
                own.shells[shell_of(x)] += if is_far { one } else { 0.0 };
            }
        }
    }
    own
}

/// So many indices, each as often as its weight asks.
fn systematic(weights: &[f64], count: usize) -> Vec<usize> {
    let step = weights.iter().sum::<f64>() / count as f64;
    let mut chosen = Vec::with_capacity(count);
    let mut below = 0.0;
    for (k, weight) in weights.iter().enumerate() {
        below += weight;
        while chosen.len() < count && (chosen.len() as f64 + 0.5) * step < below {
            chosen.push(k);
        }
    }
    chosen.resize(count, weights.len() - 1);
    chosen
}

/// Log densities of the standard normal and of the points to look at, at one of which the latter is the larger.
fn far_out(distances: &Distances<'_>, point: &[f64]) -> Option<(f64, f64)> {
    let squares: f64 = point.iter().map(|x| x * x).sum();
    let log_q = -0.5 * (squares + point.len() as f64 * TAU.ln());
    let log_b = log_density_of_looks(distances, point, log_q);
    (log_b > log_q).then_some((log_q, log_b))
}

/// [`BLOCK`] points to evaluate, `dim × BLOCK`, alternating between any direction and one coordinate with the others
/// from a standard normal.
fn far_points(
    distances: &Distances<'_>,
    dim: usize,
    first: usize,
    source: NoiseSource,
) -> Vec<f64> {
    let key = (NoisePurpose::Leap, u64::MAX);
    let mut x = vec![0.0; dim * BLOCK];
    source.fill(key.0, key.1, first as u64, dim, BLOCK, &mut x);
    let lengths = Map::squares(&x, BLOCK);
    for l in 0..BLOCK {
        let mut u = [0.0; 2];
        source.uniforms(key.0, key.1, (first + l) as u64, &mut u);
        let distance = distances.at([0.0, u[0]]).exp();
        if l % 2 == 0 {
            let scale = distance * (dim as f64 / lengths[l]).sqrt();
            (0..dim).for_each(|i| x[i * BLOCK + l] *= scale);
        } else {
            let own = &mut x[(u[1] * dim as f64) as usize * BLOCK + l];
            *own = own.signum() * distance;
        }
    }
    x
}

/// The log density of such points at one of them, with log density `log_q` under the standard normal.
fn log_density_of_looks(distances: &Distances<'_>, point: &[f64], log_q: f64) -> f64 {
    let dim = point.len() as f64;
    let radius = (point.iter().map(|x| x * x).sum::<f64>() / dim).sqrt();
    let together = log_density(distances, point.len(), radius) - 0.5 * dim * dim.ln();
    let one = point.iter().map(|x| {
        let log_distance = x.abs().ln();
        let normal = -0.5 * (x * x + TAU.ln());
        distances.log_density(log_distance) - LN_2 - log_distance - normal - dim.ln()
    });
    let one: Vec<f64> = one.filter(|log| *log > f64::NEG_INFINITY).collect();
    let one = log_q + log_sum_exp_slice(&one);
    log_sum_exp_slice(&[together, one]) - LN_2
}

#[cfg(test)]
mod tests {
    use super::super::leaps::RANGE;
    use super::super::leaps::tests::{Slab, source, standard};
    use super::*;
    use jensen_math::special::lgamma;

    /// Relative standard error of the variance missed in a slab in `wide` of `dim` coordinates together. Half of the
    /// points vary one coordinate, half all. Of their uniform log distances y, those with large `f = e^((k + 2) y)
    /// exp(-e^(2 y) / 2)` contribute, k coordinates together: the relative variance is the range times `∫ f² / (∫ f)²`,
    /// and for the squared coordinate of a direction `3 k / (k + 2)` times that.
    fn error_of_looks(dim: usize, wide: usize) -> f64 {
        let k = wide as f64;
        let squared = lgamma(k + 2.0) - (k + 2.0) * std::f64::consts::LN_2;
        let narrow = 2.0 * (squared - 2.0 * lgamma(0.5 * k + 1.0)).exp();
        let turns = if wide == 1 { 2 * dim } else { 2 } as f64;
        (turns * RANGE.1 * narrow * 3.0 * k / (k + 2.0) / LOOKS as f64).sqrt()
    }

    #[test]
    fn what_an_approximation_does_not_reach_is_seen() {
        const SEEDS: u64 = 20;
        for (dim, all) in [(1, true), (5, true), (5, false), (20, true), (20, false)] {
            for width in [10.0, 100.0, 1e6] {
                let share = 0.05;
                let density = Slab {
                    dim,
                    share,
                    width,
                    all,
                };
                let mut ratio = 0.0;
                for seed in 0..SEEDS {
                    // Its own draws see the spike, whose mass is what they take for all.
                    let log_z = (1.0 - share).ln();
                    let found = beyond(
                        &density,
                        &standard(dim),
                        log_z,
                        (source(seed), &Policy::default()),
                    );
                    // In many coordinates a few looks meet the slab, and of some seeds none.
                    let (coordinate, times) = found.unwrap_or_default();
                    assert!(all || coordinate == 0, "{coordinate}");
                    ratio += times / (share / (1.0 - share) * width * width) / SEEDS as f64;
                }
                let wide = if all { dim } else { 1 };
                let error = error_of_looks(dim, wide);
                // The worst of so many coordinates is reported.
                let above = error * (2.0 * (wide as f64).ln()).sqrt();
                let chance = 4.5 * error / (SEEDS as f64).sqrt();
                assert!(
                    (1.0 - chance..1.0 + above + chance).contains(&ratio),
                    "{dim} {all} {width}: {ratio}, by chance {chance}"
                );
            }
            let own = Slab {
                dim,
                share: 0.0,
                width: 1.0,
                all,
            };
            for seed in 0..5 {
                assert_eq!(
                    beyond(
                        &own,
                        &standard(dim),
                        0.0,
                        (source(seed), &Policy::default())
                    ),
                    None
                );
            }
        }
    }

    /// Draws of the spike alone, whose evidence is its mass, and draws of all.
    #[test]
    fn draws_that_have_not_been_to_a_slab_do_not_answer_for_it() {
        let lanes = 256;
        for (dim, all) in [(1, true), (5, true), (5, false), (20, true)] {
            let slab = Slab {
                dim,
                share: 0.01,
                width: 100.0,
                all,
            };
            for seed in 0..5 {
                let mut x = vec![0.0; 16 * dim * lanes];
                for (t, set) in x.chunks_mut(dim * lanes).enumerate() {
                    source(seed).fill(NoisePurpose::Draws, t as u64, 0, dim, lanes, set);
                }
                let map = Map::of(&standard(dim));
                let found = |slab: &Slab, x: &[f64], log_z: f64| {
                    unanswered(
                        (slab, &map),
                        log_z,
                        (x, lanes, 4096.0),
                        (source(seed), &Policy::default()),
                    )
                };
                let missed = found(&slab, &x, (1.0 - slab.share).ln());
                let missed = missed.expect("a slab a hundred times as wide");
                // A hundred times the variance; by three standard errors less than the estimate.
                assert!(
                    (1.0..150.0).contains(&missed.share),
                    "{dim}: {}",
                    missed.share
                );
                let wide = missed.points.iter().filter(|x| x.abs() > 10.0);
                assert!(wide.count() >= CHAINS);
                let spike = Slab { share: 0.0, ..slab };
                assert_eq!(found(&spike, &x, 0.0), None, "{dim}");
                // One in a hundred chains is out there.
                let of_all = |(k, x): (usize, &f64)| {
                    let out = (k * 7 + k / lanes) % lanes % 100 == 0;
                    x * if out { slab.width } else { 1.0 }
                };
                let whole: Vec<f64> = x.iter().enumerate().map(of_all).collect();
                if dim == 1 {
                    assert_eq!(found(&slab, &whole, 0.0), None);
                }
            }
        }
    }
}
