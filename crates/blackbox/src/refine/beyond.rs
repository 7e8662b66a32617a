//! Checks for posterior mass that the draws do not reach. The module looks for second moments far from the draws, and
//! for spikes in the middle of the draws.
//!
//! Draws contain no information about points that they do not reach, and neither do their importance weights, their R̂
//! or their ESS. A slab that is a thousand times as wide as the fitted spike may contribute most of the variance with a
//! thousandth of the mass. A spike that is a millionth as wide as the fitted slab may have most of the mass. The check
//! therefore generates points in the same way as for [leaps](super::leaps). The logarithm of the distance is uniform.
//! Either all coordinates vary together, or one coordinate varies and the others come from a standard normal. The
//! density b of this mixture is known. Consider the points at which b is larger than the standard normal density. The
//! means of `p / (Z b)` and of `x² p / (Z b)` over these points are unbiased estimates of the mass and the second
//! moment that the posterior has there. Jensen compares the draws of an approximation with these estimates before it
//! trusts the approximation ([`beyond`]). It also compares refined draws with these estimates, after the draws have
//! mixed ([`unanswered`]).
//!
//! The distances follow a Kronecker sequence of the golden ratio with a random shift (Niederreiter 1992, section 3.5).
//! Each point by itself is uniform. The gaps between n points are at most 2.7/n of the range, so the points cannot miss
//! a slab by chance.

use std::f64::consts::{LN_2, TAU};
use std::ops::Range;

use jensen_density::{Lanes, LogDensity};
use jensen_math::special::log_sum_exp_slice;
use serde::{Deserialize, Serialize};

use super::leaps::{Distances, RANGE, log_density, range_of};
use super::map::Map;
use super::tail_probes::CHAINS;
use crate::approximation::Approximation;
use crate::noise::{NoisePurpose, NoiseSource};
use crate::policy::Policy;
use crate::psis::{tail_index, tail_index_error};
use crate::sizes::{CHECK, LANES};

/// The smallest numbers of points per coordinate, for an approximation and for refined draws. Half of these points change
/// one coordinate alone, so the successive distances of that coordinate differ by factors of 3.2 and 1.08. An
/// approximation has the missing variance of a slab among its points if one of them is in the slab: nine tenths of the
/// distances of a centred normal lie within a factor of 31. Refined draws are refused only if the missing variance
/// clearly exceeds its standard error, which takes twenty points in the slab.
const PER_COORDINATE: (usize, usize) = (64, 1024);

/// The logarithm of the largest ratio of densities. Squares of `e³⁰⁰`, multiplied by squared distances, are finite.
const LARGEST_RATIO: f64 = 300.0;

/// The number of shells. In each coordinate, the distances from the middle are divided into these shells. Each shell is
/// twice as wide as the one before it. Half of the shells lie within one standard deviation, and half lie beyond it.
/// The innermost shell extends to 0, and the outermost shell to infinity.
const SHELLS: usize = 56;

fn distances_of<D: LogDensity>(density: &D) -> Distances<'static> {
    Distances {
        range: (-RANGE.1, range_of(density).1),
        edges: &[],
    }
}

fn count<D: LogDensity>(density: &D, least: usize, per_coordinate: usize) -> usize {
    let affordable = match density.work() {
        Some(_) => CHECK / density.dim(),
        None => LANES,
    };
    let wanted = least.max(per_coordinate * density.dim());
    wanted.min(affordable).max(1).next_multiple_of(LANES)
}

/// Calls a function for each point at which b is larger than the standard normal density. The function receives `p / (Z
/// b)`, and the same ratio for the normal density. If the map does not make the approximation normal, `own` replaces
/// the normal density.
fn look<D: LogDensity>(
    (density, map): (&D, &Map),
    own: Option<&Approximation>,
    log_z: f64,
    (looks, source): (usize, NoiseSource),
    mut see: impl FnMut(&[f64], f64, f64),
) {
    let dim = density.dim();
    let distances = distances_of(density);
    let mut workspace = density.workspace(LANES);
    for first in (0..looks).step_by(LANES) {
        let x = far_points(&distances, dim, first, source);
        let z = map.draws(&x, LANES);
        let mut log_p = vec![0.0; LANES];
        density.value(&mut workspace, Lanes::new(&z, dim, LANES), &mut log_p);
        let log_dets = map.log_dets(&x, LANES);
        let mut log_own = vec![f64::NAN; LANES];
        if let Some(own) = own {
            let z = Lanes::new(&z, dim, LANES);
            (own.family()).log_density_at(own.omega(), z, &mut log_own);
        }
        for l in 0..LANES {
            let point: Vec<f64> = (0..dim).map(|i| x[i * LANES + l]).collect();
            let log_p = log_p[l] + log_dets[l] - log_z;
            if let Some((log_q, log_b)) = far_out(&distances, &point)
                && log_p.is_finite()
            {
                let log_q = match log_own[l] + log_dets[l] {
                    unknown if unknown.is_nan() => log_q,
                    known => known,
                };
                // Rounding errors may raise a density without limit far from the draws. The square of the largest ratio
                // must be finite, so that a single such point counts as an error and not as mass.
                let ratio = (log_p - log_b).min(LARGEST_RATIO);
                see(&point, ratio.exp(), (log_q - log_b).exp());
            }
        }
    }
}

/// Mass of the posterior that the draws of an approximation do not reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unreached {
    /// The coordinate that has variance far from the draws, or `None` for a spike in the middle of the draws.
    pub coordinate: Option<usize>,
    /// For missed variance, its ratio to the variance of the approximation. For a missed spike, the ratio of its mass
    /// to the total mass that the draws imply.
    pub share: f64,
}

/// Returns the largest share of variance or mass that the draws of an approximation do not reach. Returns `None` if the
/// policy allows this share. `log_z` is the log evidence from importance weights. A few points suffice, because a
/// refinement follows.
pub(crate) fn beyond<D: LogDensity>(
    density: &D,
    approximation: &Approximation,
    log_z: f64,
    (source, policy): (NoiseSource, &Policy),
) -> Option<Unreached> {
    let looks = count(density, policy.far_points(), PER_COORDINATE.0);
    let (mut mass, mut missed) = (0.0, vec![0.0; approximation.dim()]);
    let map = Map::of(approximation);
    let own = (!map.is_exact()).then_some(approximation);
    look(
        (density, &map),
        own,
        log_z,
        (looks, source),
        |point, p, q| {
            let excess = (p - q) / looks as f64;
            mass += excess;
            for (missed, x) in missed.iter_mut().zip(point) {
                *missed += x * x * excess;
            }
        },
    );
    let missed = missed.into_iter().enumerate();
    let each = missed.map(|(i, share)| (Some(i), share));
    let (coordinate, share) = each
        .chain([(None, mass)])
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    (share > policy.unreached()).then_some(Unreached { coordinate, share })
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unanswered {
    /// A lower bound on the ratio of the missed variance to the variance of the draws, or of the missed mass to the
    /// total mass according to the draws.
    pub share: f64,
    /// Points in the missed mass (`dim × count`). The points replace a share of the chains that equals their share of
    /// the mass, but at least [`CHAINS`] chains.
    pub points: Vec<f64>,
}

/// Returns the mass or variance of the posterior that the draws `x` miss by more than the sampling error. `x` contains
/// sets of `dim × lanes` draws, which are equivalent to `effective` independent draws. The function excludes a
/// coordinate from the comparison of variances if its draws indicate an infinite variance.
///
/// The comparison uses masses instead of second moments, because the second moments of a long tail depend on the few
/// most extreme draws. In contrast, once some draws have reached a region, the share of draws in the region is correct.
/// The regions of a coordinate consist of all shells outwards from a shell, or of all shells inwards from it. A slab or
/// a spike extends over several shells, and a single shell contains too few points for a decision.
pub(super) fn unanswered<D: LogDensity>(
    (density, map): (&D, &Map),
    log_z: f64,
    (x, lanes, effective): (&[f64], usize, f64),
    (source, policy): (NoiseSource, &Policy),
    gradients: u64,
) -> Option<Unanswered> {
    let dim = density.dim();
    // The check costs less than the refinement, because an evaluation costs a third of a gradient.
    let most = (gradients as usize).next_multiple_of(LANES);
    let looks = count(density, 4 * policy.far_points(), PER_COORDINATE.1).min(most);
    let mut shells = vec![[Shell::default(); SHELLS]; dim];
    let mut met: Vec<(Vec<f64>, f64)> = Vec::new();
    look(
        (density, map),
        None,
        log_z,
        (looks, source),
        |point, p, _| {
            for (shells, x) in shells.iter_mut().zip(point) {
                shells[shell_of(*x)].add(*x, p / looks as f64);
            }
            met.push((point.to_vec(), p));
        },
    );
    let own = seen(&distances_of(density), x, dim, lanes);
    let confidence = policy.confidence_of(dim * SHELLS);
    let has_variance = |i: usize| {
        let sets = x.chunks(dim * lanes);
        let draws: Vec<f64> = sets
            .flat_map(|set| &set[i * lanes..(i + 1) * lanes])
            .copied()
            .collect();
        let error = |tail| tail_index_error(tail, effective);
        tail_index(&draws, 1.0).is_none_or(|tail| tail + error(tail) < 0.5)
    };
    let missed = |i: usize, from: usize| {
        let region = region_of(from);
        let all = shells[i][region.clone()]
            .iter()
            .fold(Shell::default(), Shell::with);
        let reached: f64 = own[i].shells[region].iter().sum();
        let error = all.error(looks).hypot((reached / effective).sqrt());
        let mass = (all.mass - reached - confidence * error).max(0.0);
        let variance = mass * all.square() / own[i].second;
        Missed {
            coordinate: i,
            from,
            mass,
            variance,
        }
    };
    let each = |i: usize| {
        let regions: Vec<Missed> = (0..SHELLS).map(|from| missed(i, from)).collect();
        let is_far = |missed: &Missed| missed.variance > policy.unreached();
        let has_variance = regions.iter().any(is_far) && has_variance(i);
        regions.into_iter().map(move |missed| Missed {
            variance: if has_variance { missed.variance } else { 0.0 },
            ..missed
        })
    };
    let worst = (0..dim)
        .flat_map(each)
        .max_by(|a, b| a.share().total_cmp(&b.share()))?;
    if worst.share() <= policy.unreached() {
        return None;
    }
    let region = region_of(worst.from);
    let weights = met.iter().map(|(point, p)| {
        let x = point[worst.coordinate];
        let square = if worst.variance > worst.mass {
            x * x
        } else {
            1.0
        };
        if region.contains(&shell_of(x)) {
            p * square
        } else {
            0.0
        }
    });
    let chains = (worst.mass * lanes as f64) as usize;
    let chosen = systematic(
        &weights.collect::<Vec<f64>>(),
        chains.clamp(CHAINS, lanes / 2),
    );
    let points = (0..dim).flat_map(|i| chosen.iter().map(|k| met[*k].0[i]).collect::<Vec<f64>>());
    Some(Unanswered {
        share: worst.share(),
        points: points.collect(),
    })
}

struct Missed {
    coordinate: usize,
    from: usize,
    mass: f64,
    variance: f64,
}

impl Missed {
    fn share(&self) -> f64 {
        self.mass.max(self.variance)
    }
}

/// The region extends outwards from a shell beyond one standard deviation, and inwards from a shell within one standard
/// deviation.
fn region_of(from: usize) -> Range<usize> {
    if from < SHELLS / 2 {
        0..from + 1
    } else {
        from..SHELLS
    }
}

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

    fn with(self, other: &Self) -> Self {
        Self {
            mass: self.mass + other.mass,
            squares: self.squares + other.squares,
            second: self.second + other.second,
        }
    }

    fn error(&self, looks: usize) -> f64 {
        (self.squares - self.mass * self.mass / looks as f64)
            .max(0.0)
            .sqrt()
    }

    fn square(&self) -> f64 {
        if self.mass > 0.0 {
            self.second / self.mass
        } else {
            0.0
        }
    }
}

fn shell_of(x: f64) -> usize {
    let half = (SHELLS / 2) as f64;
    ((x.abs().log2() + half).max(0.0) as usize).min(SHELLS - 1)
}

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

/// Returns `count` indices, where each index is repeated in proportion to its weight (systematic resampling).
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

fn far_out(distances: &Distances<'_>, point: &[f64]) -> Option<(f64, f64)> {
    let squares: f64 = point.iter().map(|x| x * x).sum();
    let log_q = -0.5 * (squares + point.len() as f64 * TAU.ln());
    let log_b = log_density_of_looks(distances, point, log_q);
    (log_b > log_q).then_some((log_q, log_b))
}

/// Returns [`LANES`] points (`dim × LANES`) for the evaluation of the density. The points alternate between two kinds:
/// a random direction for all coordinates together, and a single coordinate that varies while the others come from a
/// standard normal.
fn far_points(
    distances: &Distances<'_>,
    dim: usize,
    first: usize,
    source: NoiseSource,
) -> Vec<f64> {
    let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
    let key = (NoisePurpose::Leap, u64::MAX);
    let mut x = vec![0.0; dim * LANES];
    source.fill(key.0, key.1, first as u64, dim, LANES, &mut x);
    let lengths = Map::squares(&x, LANES);
    let mut shifts = [0.0; 3];
    source.uniforms(key.0, key.1, 0, &mut shifts);
    for l in 0..LANES {
        let rank = (first + l) / 2;
        let distance = |shift: f64, rank: usize| {
            let u = (shift + rank as f64 * golden).fract();
            distances.at([0.0, u]).exp()
        };
        if l % 2 == 0 {
            let scale = distance(shifts[0], rank) * (dim as f64 / lengths[l]).sqrt();
            (0..dim).for_each(|i| x[i * LANES + l] *= scale);
        } else {
            let coordinate = (rank + (shifts[1] * dim as f64) as usize) % dim;
            let own = &mut x[coordinate * LANES + l];
            *own = own.signum() * distance(shifts[2], rank / dim);
        }
    }
    x
}

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
mod tests;
