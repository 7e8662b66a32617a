//! The choice of coordinates in which the particles have unit variances.

use rayon::prelude::*;

use super::root::Root;
use crate::dense::cholesky;
use crate::policy::DENSE;
use crate::reduce::{axpy, dot, sum};

/// If the identity has a larger weight than this in the shrunk estimate, the coordinates do not change.
const MOSTLY_IDENTITY: f64 = 0.9;

/// Estimates a root of the covariance of particles, given as `times` sets of `dim × lanes`. The function shrinks the
/// covariance towards the identity, to correct for chance differences between independent standard normal draws (Ledoit
/// and Wolf 2004, with the noise of a normal). Returns `None` if the identity is as good as the estimate, or if the
/// particles have no covariance.
pub(super) fn estimate(x: &[f64], lanes: usize, times: usize) -> Option<Root> {
    let dim = x.len() / (lanes * times);
    if dim > DENSE {
        return spreads(x, lanes, times);
    }
    let count = (lanes * times) as f64;
    let rows = centred(x, lanes, times);
    let rows: Vec<&[f64]> = rows.chunks(lanes * times).collect();
    let triangle: Vec<Vec<f64>> = (0..dim)
        .into_par_iter()
        .map(|i| {
            rows[..=i]
                .iter()
                .map(|other| dot(rows[i], other) / count)
                .collect()
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
    let d = dim as f64;
    let identity = (d * (d + 1.0) / count / distance).min(1.0);
    if identity > MOSTLY_IDENTITY {
        return None;
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

/// Estimates only the spread of every coordinate, with the same shrinkage. It suffices if the map already has the
/// structure of the posterior, and its cost is proportional to the dimension.
pub(super) fn spreads(x: &[f64], lanes: usize, times: usize) -> Option<Root> {
    let count = lanes * times;
    let rows = centred(x, lanes, times);
    let variances: Vec<f64> = (rows.par_chunks(count))
        .map(|row| dot(row, row) / count as f64)
        .collect();
    if variances.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let distance: Vec<f64> = variances.iter().map(|v| (v - 1.0) * (v - 1.0)).collect();
    let identity = (2.0 * variances.len() as f64 / count as f64 / sum(&distance)).min(1.0);
    if identity > MOSTLY_IDENTITY {
        return None;
    }
    let sd = (variances.iter()).map(|v| (v * (1.0 - identity) + identity).sqrt());
    Some(Root::Diagonal(sd.collect()))
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

    #[test]
    fn spreads_are_taken_away_in_many_dimensions() {
        let (dim, lanes, times) = (DENSE + 100, 256, 8);
        let mut x = vec![0.0; dim * lanes * times];
        let source = NoiseSource::new(2, Simd::detect());
        for (t, particles) in x.chunks_mut(dim * lanes).enumerate() {
            source.fill(NoisePurpose::Draws, t as u64, 0, dim, lanes, particles);
        }
        assert!(spreads(&x, lanes, times).is_none());
        for particles in x.chunks_mut(dim * lanes) {
            let own = &mut particles[7 * lanes..8 * lanes];
            own.iter_mut().for_each(|x| *x *= 4.0);
        }
        let root = estimate(&x, lanes, times).unwrap();
        assert!(matches!(root, Root::Diagonal(_)));
        let mut row = Vec::new();
        for particles in x.chunks_mut(dim * lanes) {
            root.solve(particles, lanes);
            row.extend_from_slice(&particles[7 * lanes..8 * lanes]);
        }
        let sd = (dot(&row, &row) / row.len() as f64).sqrt();
        assert!((sd - 1.0).abs() < 0.05, "{sd}");
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
