//! Coordinates in which particles have unit variances.

use rayon::prelude::*;

use super::map::{Root, largest_variance};
use crate::dense::cholesky;
use crate::reduce::dot;

/// Largest dimension at which correlations are taken into account.
const DENSE: usize = 400;

/// Share of the identity beyond which an estimate is not worth a change of coordinates.
const MOSTLY_IDENTITY: f64 = 0.9;

/// A root of the covariance of particles (`times` clouds of `dim × lanes`), shrunk towards the identity by as much
/// as independent draws of a standard normal would show by chance (Ledoit and Wolf 2004, with the noise that a
/// normal has). `None` where the identity is as good, or where they have no covariance.
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

/// The rows of all clouds side by side, each less its mean.
fn centred(x: &[f64], lanes: usize, times: usize) -> Vec<f64> {
    let dim = x.len() / (lanes * times);
    let mut rows = Vec::with_capacity(x.len());
    for i in 0..dim {
        let first = rows.len();
        for cloud in x.chunks(dim * lanes) {
            rows.extend_from_slice(&cloud[i * lanes..(i + 1) * lanes]);
        }
        let row = &mut rows[first..];
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        row.iter_mut().for_each(|x| *x -= mean);
    }
    rows
}

/// The largest standard deviation of particles in any direction, 1 to 10, less what independent ones show by chance.
pub(super) fn widest(x: &[f64], lanes: usize, times: usize) -> f64 {
    let count = lanes * times;
    let dim = x.len() / count;
    // Independent particles show a variance larger than the largest by this factor.
    let excess = (1.0 + (dim as f64 / count as f64).sqrt()).powi(2);
    let variance = largest_variance(&centred(x, lanes, times), count) / excess;
    variance.sqrt().clamp(1.0, 10.0)
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
        // Twice as wide, and two rows almost the same.
        x.iter_mut().for_each(|x| *x *= 2.0);
        let first: Vec<f64> = x[..lanes].to_vec();
        let second = x[lanes..2 * lanes].iter_mut();
        second.zip(&first).for_each(|(b, a)| *b = a + 0.1 * *b);
        let root = estimate(&x, lanes, 1).unwrap();
        root.solve(&mut x, lanes);
        assert!(estimate(&x, lanes, 1).is_none());
    }
}
