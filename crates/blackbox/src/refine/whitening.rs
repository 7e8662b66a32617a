//! The choice of coordinates in which the particles have unit variances.

use rayon::prelude::*;

use super::map::Map;
use super::root::{LowRankRoot, Root};
use crate::dense::cholesky;
use crate::policy::DENSE;
use crate::reduce::{axpy, dot, sum};

/// If the identity has a larger weight than this in the shrunk estimate, the coordinates do not change.
const MOSTLY_IDENTITY: f64 = 0.9;

/// The largest number of wide directions. Their root costs as much as this many products per coordinate.
const DIRECTIONS: usize = 8;

/// The number of iterations of the subspace search. A direction with 1.5 times the variance of the next one is then
/// found to within 4 %.
const SEARCHES: usize = 8;

/// The largest number of particles to which directions are fitted.
const LOOKED_AT: usize = 2048;

/// This many recorded positions of a particle count as one independent particle.
const MEMORY: usize = 4;

pub(super) fn effective(lanes: usize, times: usize) -> usize {
    lanes * times.div_ceil(MEMORY)
}

/// Estimates a root of the covariance of particles, given as `times` sets of `dim × lanes`. The function shrinks the
/// covariance towards the identity, to correct for chance differences between independent standard normal draws (Ledoit
/// and Wolf 2004, with the noise of a normal). Returns `None` if the identity is as good as the estimate, or if the
/// particles have no covariance.
pub(super) fn estimate(x: &[f64], lanes: usize, times: usize) -> Option<Root> {
    let dim = x.len() / (lanes * times);
    let count = (lanes * times) as f64;
    let rows = centred(x, lanes, times);
    let rows: Vec<&[f64]> = rows.chunks(lanes * times).collect();
    let dense = dim <= DENSE;
    let triangle: Vec<Vec<f64>> = (0..dim)
        .into_par_iter()
        .map(|i| {
            let others = &rows[if dense { 0 } else { i }..=i];
            let row = others.iter().map(|other| dot(rows[i], other) / count);
            row.collect()
        })
        .collect();
    if triangle.iter().flatten().any(|c| !c.is_finite()) {
        return None;
    }
    let mut distance = 0.0;
    for row in &triangle {
        let (own, others) = row.split_last().expect("a row has its diagonal");
        distance += (own - 1.0) * (own - 1.0);
        distance += 2.0 * others.iter().map(|c| c * c).sum::<f64>();
    }
    let (d, pairs) = (dim as f64, if dense { dim as f64 + 1.0 } else { 2.0 });
    let identity = (d * pairs / count / distance).min(1.0);
    if identity > MOSTLY_IDENTITY {
        return None;
    }
    if !dense {
        let own = triangle.iter().flatten();
        let sd = own.map(|c| (c * (1.0 - identity) + identity).sqrt());
        return Some(Root::Diagonal(sd.collect()));
    }
    let mut covariance = vec![0.0; dim * dim];
    for (i, (to, row)) in covariance.chunks_mut(dim).zip(&triangle).enumerate() {
        for (to, c) in to.iter_mut().zip(row) {
            *to = c * (1.0 - identity);
        }
        to[i] += identity;
    }
    cholesky(&covariance, dim).map(|lower| Root::lower(lower, dim))
}

/// Returns a root that contains the spread of every coordinate, and a few directions in which the particles are wider
/// than independent particles would be by chance. Such a root suffices if the map already has the structure of the
/// posterior, and its cost is proportional to the dimension.
///
/// The noise edge is `(1 + √γ)²`, where γ is the number of coordinates per particle. The function corrects eigenvalues
/// of the correlation matrix above this edge for their upward bias (Baik and Silverstein, *Eigenvalues of large sample
/// covariance matrices of spiked population models*, Journal of Multivariate Analysis 97, 2006).
pub(super) fn of_few_directions(x: &[f64], lanes: usize, times: usize) -> Option<Root> {
    let count = lanes * times;
    let dim = x.len() / count;
    let mut rows = centred(x, lanes, times);
    let variances: Vec<f64> = (rows.chunks(count))
        .map(|row| dot(row, row) / count as f64)
        .collect();
    if variances.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let distance: Vec<f64> = variances.iter().map(|v| (v - 1.0) * (v - 1.0)).collect();
    let identity = (2.0 * dim as f64 / count as f64 / sum(&distance)).min(1.0);
    let log_sd: Vec<f64> = variances
        .iter()
        .map(|v| 0.5 * (v * (1.0 - identity) + identity).ln())
        .collect();
    for (row, log_sd) in rows.chunks_mut(count).zip(&log_sd) {
        let scale = (-log_sd).exp();
        row.iter_mut().for_each(|x| *x *= scale);
    }
    let effective = effective(lanes, times).min(LOOKED_AT);
    let gamma = dim as f64 / effective as f64;
    let edge = (1.0 + gamma.sqrt()).powi(2);
    // Particles that are recorded only at one time are copies of each other, and some of them have not moved far.
    let found = match times {
        1 => Vec::new(),
        _ => directions(&rows, count),
    };
    let found = found.into_iter();
    let wide: Vec<(f64, Vec<f64>)> = found.filter(|(value, _)| *value > edge).collect();
    if wide.is_empty() && identity > MOSTLY_IDENTITY {
        return None;
    }
    let own = |value: f64| {
        let middle = value + 1.0 - gamma;
        0.5 * (middle + (middle * middle - 4.0 * value).max(0.0).sqrt())
    };
    let rank = wide.len();
    let mut factors = vec![0.0; dim * rank];
    for (k, (value, direction)) in wide.iter().enumerate() {
        let beyond = (own(*value) - 1.0).max(0.0).sqrt();
        for (i, (v, log_sd)) in direction.iter().zip(&log_sd).enumerate() {
            factors[i * rank + k] = beyond * v * log_sd.exp();
        }
    }
    Some(match rank {
        0 => Root::Diagonal(log_sd.iter().map(|l| l.exp()).collect()),
        _ => Root::LowRank(LowRankRoot::new(&log_sd, &factors, rank)),
    })
}

/// Returns the largest eigenvalues of `X Xᵀ / count` and their eigenvectors, for rows with mean zero, by subspace
/// iteration. If there are many particles, only a part of them is used. Outlying particles contribute only their
/// direction. Otherwise each of them would be the widest direction by itself.
fn directions(rows: &[f64], count: usize) -> Vec<(f64, Vec<f64>)> {
    let dim = rows.len() / count;
    let every = count.div_ceil(LOOKED_AT);
    let mut looked: Vec<f64> = (rows.chunks(count))
        .flat_map(|row| row.iter().step_by(every).copied())
        .collect();
    let seen = looked.len() / dim;
    let nearer: Vec<f64> = Map::squares(&looked, seen)
        .iter()
        .map(|square| (dim as f64 / square).sqrt().min(1.0))
        .collect();
    for row in looked.chunks_mut(seen) {
        row.iter_mut().zip(&nearer).for_each(|(x, n)| *x *= n);
    }
    let rank = DIRECTIONS.min(dim);
    // Particles that are spread over the whole set are as good a starting basis as any other.
    let mut basis: Vec<Vec<f64>> = (0..rank)
        .map(|k| {
            looked
                .iter()
                .skip(k * seen / rank)
                .step_by(seen)
                .copied()
                .collect()
        })
        .collect();
    orthonormalise(&mut basis);
    let mut values = vec![0.0; rank];
    for _ in 0..SEARCHES {
        let next: Vec<Vec<f64>> = basis
            .par_iter()
            .map(|direction| {
                let mut scores = vec![0.0; seen];
                for (v, row) in direction.iter().zip(looked.chunks(seen)) {
                    axpy(*v, row, &mut scores);
                }
                (looked.chunks(seen))
                    .map(|row| dot(row, &scores) / seen as f64)
                    .collect()
            })
            .collect();
        for ((value, before), after) in values.iter_mut().zip(&basis).zip(&next) {
            *value = dot(before, after);
        }
        basis = next;
        orthonormalise(&mut basis);
    }
    values.into_iter().zip(basis).collect()
}

fn orthonormalise(basis: &mut [Vec<f64>]) {
    for k in 0..basis.len() {
        let (done, rest) = basis.split_at_mut(k);
        let own = &mut rest[0];
        let before = dot(own, own).sqrt();
        for other in done {
            axpy(-dot(other, own), other, own);
        }
        let norm = dot(own, own).sqrt();
        let scale = if norm > 1e-9 * before {
            1.0 / norm
        } else {
            0.0
        };
        own.iter_mut().for_each(|x| *x *= scale);
    }
}

fn centred(x: &[f64], lanes: usize, times: usize) -> Vec<f64> {
    let dim = x.len() / (lanes * times);
    let mut rows = Vec::with_capacity(x.len());
    for i in 0..dim {
        let first = rows.len();
        for particles in x.chunks(dim * lanes) {
            rows.extend_from_slice(&particles[i * lanes..(i + 1) * lanes]);
        }
        let row = &mut rows[first..];
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        row.iter_mut().for_each(|x| *x -= mean);
    }
    rows
}

/// Returns the largest standard deviation in any direction, limited to [1, 10]. The largest standard deviation of
/// independent particles exceeds 1 by chance, and the function corrects for this excess.
pub(super) fn widest(x: &[f64], lanes: usize, times: usize) -> f64 {
    let count = lanes * times;
    let dim = x.len() / count;
    // The largest sample variance of independent particles exceeds the true variance by this factor.
    let excess = (1.0 + (dim as f64 / count as f64).sqrt()).powi(2);
    let variance = largest_variance(&centred(x, lanes, times), count) / excess;
    variance.sqrt().clamp(1.0, 10.0)
}

fn largest_variance(x: &[f64], lanes: usize) -> f64 {
    let mut direction = vec![1.0; lanes];
    direction[0] += lanes as f64;
    let mut value = 0.0;
    for _ in 0..12 {
        let norm = dot(&direction, &direction).sqrt();
        if norm == 0.0 || !norm.is_finite() {
            return value;
        }
        direction.iter_mut().for_each(|v| *v /= norm);
        let mut next = vec![0.0; lanes];
        for row in x.chunks(lanes) {
            axpy(dot(row, &direction), row, &mut next);
        }
        value = dot(&next, &direction) / lanes as f64;
        direction = next;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{NoisePurpose, NoiseSource};
    use jensen_math::simd::Simd;

    #[test]
    fn correlations_are_taken_away_and_noise_is_not_taken_for_them() {
        let (dim, lanes) = (20, 256);
        let mut x = vec![0.0; dim * lanes];
        NoiseSource::new(1, Simd::detect()).fill(NoisePurpose::Draws, 0, 0, dim, lanes, &mut x);
        assert!(estimate(&x, lanes, 1).is_none());
        x.iter_mut().for_each(|x| *x *= 2.0);
        let first: Vec<f64> = x[..lanes].to_vec();
        let second = x[lanes..2 * lanes].iter_mut();
        second.zip(&first).for_each(|(b, a)| *b = a + 0.1 * *b);
        let root = estimate(&x, lanes, 1).unwrap();
        root.solve(&mut x, lanes);
        assert!(estimate(&x, lanes, 1).is_none());
    }

    /// The draws are normal, but they are three times as wide in one direction and a fifth wider in one coordinate. The
    /// search must find both directions. For draws from a standard normal, it must find none.
    #[test]
    fn few_wide_directions_are_found_among_many() {
        let (dim, lanes, times) = (300, 256, 8);
        let mut x = vec![0.0; dim * lanes * times];
        let source = NoiseSource::new(2, Simd::detect());
        for (t, particles) in x.chunks_mut(dim * lanes).enumerate() {
            source.fill(NoisePurpose::Draws, t as u64, 0, dim, lanes, particles);
        }
        assert!(of_few_directions(&x, lanes, times).is_none());
        let direction: Vec<f64> = (0..dim)
            .map(|i| (2.0 / dim as f64).sqrt() * (0.1 * i as f64).sin())
            .collect();
        let norm = dot(&direction, &direction).sqrt();
        for particles in x.chunks_mut(dim * lanes) {
            let mut along = vec![0.0; lanes];
            for (v, row) in direction.iter().zip(particles.chunks(lanes)) {
                axpy(v / norm, row, &mut along);
            }
            for (v, row) in direction.iter().zip(particles.chunks_mut(lanes)) {
                axpy(2.0 * v / norm, &along, row);
            }
            particles[7 * lanes..8 * lanes]
                .iter_mut()
                .for_each(|x| *x *= 4.0);
        }
        let before = widest(&x, lanes, times);
        let root = of_few_directions(&x, lanes, times).unwrap();
        for particles in x.chunks_mut(dim * lanes) {
            root.solve(particles, lanes);
        }
        let after = widest(&x, lanes, times);
        assert!(before > 2.2 && after < 1.1, "{before}, {after}");
        let row: Vec<f64> = (x.chunks(dim * lanes))
            .flat_map(|particles| particles[7 * lanes..8 * lanes].iter().copied())
            .collect();
        let sd = (dot(&row, &row) / row.len() as f64).sqrt();
        assert!((sd - 1.0).abs() < 0.05, "{sd}");
    }

    /// In this test, one particle in forty is four times as far from the centre as the others, in a random direction.
    #[test]
    fn particles_far_out_are_no_directions() {
        let (dim, lanes, times) = (300, 256, 16);
        let mut x = vec![0.0; dim * lanes * times];
        let source = NoiseSource::new(4, Simd::detect());
        for (t, particles) in x.chunks_mut(dim * lanes).enumerate() {
            source.fill(NoisePurpose::Draws, t as u64, 0, dim, lanes, particles);
            for row in particles.chunks_mut(lanes) {
                (row.iter_mut().skip(t).step_by(40)).for_each(|x| *x *= 4.0);
            }
        }
        let root = of_few_directions(&x, lanes, times);
        assert!(matches!(root, Some(Root::Diagonal(_))), "{root:?}");
    }

    #[test]
    fn power_iteration_finds_the_largest_variance() {
        let lanes = 64;
        let mut x: Vec<f64> = (0..3 * lanes)
            .map(|i| (1.7 * i as f64 + 0.3).sin())
            .collect();
        x[lanes..2 * lanes].iter_mut().for_each(|x| *x *= 5.0);
        let row = &x[lanes..2 * lanes];
        let own = dot(row, row) / lanes as f64;
        let found = largest_variance(&x, lanes);
        assert!(
            found >= own * (1.0 - 1e-9) && found < 1.2 * own,
            "{found} {own}"
        );
    }
}
