//! Coordinates in which particles have unit variances.

use super::map::Root;
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
    let mut rows = vec![Vec::with_capacity(lanes * times); dim];
    for cloud in x.chunks(dim * lanes) {
        for (row, x) in rows.iter_mut().zip(cloud.chunks(lanes)) {
            row.extend_from_slice(x);
        }
    }
    for row in &mut rows {
        let mean = row.iter().sum::<f64>() / count;
        row.iter_mut().for_each(|x| *x -= mean);
    }
    let dense = dim <= DENSE;
    let mut covariance = vec![0.0; if dense { dim * dim } else { dim }];
    let mut distance = 0.0;
    for i in 0..dim {
        let others = if dense { 0..i + 1 } else { i..i + 1 };
        for j in others {
            let c = dot(&rows[i], &rows[j]) / count;
            if !c.is_finite() {
                return None;
            }
            distance += if i == j {
                (c - 1.0) * (c - 1.0)
            } else {
                2.0 * c * c
            };
            if dense {
                covariance[i * dim + j] = c;
            } else {
                covariance[i] = c;
            }
        }
    }
    let (d, pairs) = (dim as f64, if dense { dim as f64 + 1.0 } else { 2.0 });
    let identity = (d * pairs / count / distance).min(1.0);
    if identity > MOSTLY_IDENTITY {
        return None;
    }
    covariance.iter_mut().for_each(|c| *c *= 1.0 - identity);
    if !dense {
        let sd = covariance.iter().map(|c| (c + identity).sqrt());
        return Some(Root::Diagonal(sd.collect()));
    }
    (0..dim).for_each(|i| covariance[i * dim + i] += identity);
    cholesky(&covariance, dim).map(|lower| Root::lower(lower, dim))
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
