//! Moments of weighted points, corrected by the moments of the Gaussian that is closest to their log mass.

use super::algebra::root_of_inverse;
use super::{DRAWS_PER_FEATURE, Points, WIDER};
use crate::dense::{cholesky, solve_lower, solve_lower_transposed};
use crate::psis::psis;
use crate::reduce::{axpy, dot};

pub(super) type Spread = (Vec<f64>, Vec<f64>);

pub(super) fn moments(x: &[Vec<f64>], weights: &[f64], k: usize) -> Spread {
    let mut mean = vec![0.0; k];
    for (x, w) in x.iter().zip(weights) {
        axpy(*w, x, &mut mean);
    }
    let mut covariance = vec![0.0; k * k];
    for (x, w) in x.iter().zip(weights) {
        for i in 0..k {
            for j in 0..k {
                covariance[i * k + j] += w * (x[i] - mean[i]) * (x[j] - mean[j]);
            }
        }
    }
    (mean, covariance)
}

/// The mass counts as nearly Gaussian if the weights of the points under the Gaussian and under the mass differ by at
/// most this total variation distance. At a distance of one half, the correction would cause as large errors as it
/// removes.
const ELSEWHERE: f64 = 0.25;

/// Computes the Gaussian whose log density is the least-squares quadratic fit of the log mass. Returns its exact
/// moments, followed by its moments as estimated from the points. Returns `None` if the mass is not nearly Gaussian.
pub(super) fn nearly_gaussian(points: &Points, k: usize) -> Option<[Spread; 2]> {
    let features = |x: &[f64]| {
        let products = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
        let mut row = vec![1.0];
        row.extend(x);
        row.extend(products.map(|(i, j)| x[i] * x[j]));
        row
    };
    let count = 1 + k + k * (k + 1) / 2;
    if k == 0 || points.x.len() < DRAWS_PER_FEATURE * count {
        return None;
    }
    let top = points.modes.iter().map(|mode| mode.log_mass);
    let top = top.fold(f64::NEG_INFINITY, f64::max);
    let (mut gram, mut right) = (vec![0.0; count * count], vec![0.0; count]);
    for ((x, mode), w) in points.x.iter().zip(&points.modes).zip(&points.weights) {
        let row = features(x);
        for (i, value) in row.iter().enumerate() {
            axpy(w * value, &row, &mut gram[i * count..(i + 1) * count]);
        }
        axpy(w * (mode.log_mass - top), &row, &mut right);
    }
    (0..count).for_each(|i| gram[i * count + i] *= 1.0 + 1e-9);
    let root = cholesky(&gram, count)?;
    solve_lower(&root, &mut right);
    solve_lower_transposed(&root, &mut right);
    let mut precision = vec![0.0; k * k];
    let products = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
    for ((i, j), value) in products.zip(&right[1 + k..]) {
        precision[i * k + j] -= value;
        precision[j * k + i] -= value;
    }
    let lower = cholesky(&precision, k)?;
    let mut mean = right[1..=k].to_vec();
    solve_lower(&lower, &mut mean);
    solve_lower_transposed(&lower, &mut mean);
    let factor = root_of_inverse(&lower, k);
    let mut covariance = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..k {
            covariance[i * k + j] = dot(&factor[i * k..(i + 1) * k], &factor[j * k..(j + 1) * k]);
        }
    }
    let raw: Vec<f64> = (points.x.iter())
        .map(|x| dot(&features(x), &right) + 0.5 * dot(x, x) / (WIDER * WIDER))
        .collect();
    let weights: Vec<f64> = psis(&raw, 1.0)
        .log_weights
        .iter()
        .map(|w| w.exp())
        .collect();
    let elsewhere = (weights.iter().zip(&points.weights))
        .map(|(a, b)| 0.5 * (a - b).abs())
        .sum::<f64>();
    (elsewhere < ELSEWHERE).then(|| [(mean, covariance), moments(&points.x, &weights, k)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locals::LocalMode;

    /// For a Gaussian mass the moments are exact, whatever the points. A mass with two peaks is not nearly Gaussian.
    #[test]
    fn moments_of_a_gaussian_mass_are_without_errors_of_the_points() {
        let (mean, precision) = ([0.4, -0.2], [1.5, 0.6, 0.8]);
        let gaussian = |x: &[f64]| {
            let (a, b) = (x[0] - mean[0], x[1] - mean[1]);
            -0.5 * (precision[0] * a * a + 2.0 * precision[1] * a * b + precision[2] * b * b)
        };
        let peaks = |x: &[f64]| -2.0 * (x[0] * x[0] - 1.5).powi(2) - 0.5 * x[1] * x[1];
        let points = |log_mass: &dyn Fn(&[f64]) -> f64| {
            let even = |l: usize, by: f64| 4.0 * ((l + 1) as f64 * by).fract() - 2.0;
            let x: Vec<Vec<f64>> = (0..64)
                .map(|l| vec![even(l, 0.754_877_666), even(l, 0.569_840_29)])
                .collect();
            let mode = |x: &Vec<f64>| LocalMode {
                at: Vec::new(),
                factor: Vec::new(),
                log_mass: log_mass(x),
                skewness: Vec::new(),
            };
            let modes: Vec<LocalMode> = x.iter().map(mode).collect();
            let raw = x.iter().zip(&modes);
            let raw = raw.map(|(x, mode)| mode.log_mass + 0.5 * dot(x, x) / (WIDER * WIDER));
            let log_weights = psis(&raw.collect::<Vec<_>>(), 1.0).log_weights;
            Points {
                weights: log_weights.iter().map(|w| w.exp()).collect(),
                share: 0.5,
                x,
                modes,
            }
        };
        let made = points(&gaussian);
        let [exact, estimated] = nearly_gaussian(&made, 2).unwrap();
        let own = moments(&made.x, &made.weights, 2);
        let det = precision[0] * precision[2] - precision[1] * precision[1];
        let covariance = [precision[2], -precision[1], -precision[1], precision[0]];
        let corrected = |[exact, own, estimated]: [&[f64]; 3]| -> Vec<f64> {
            let sums = exact.iter().zip(own).map(|(a, b)| a + b);
            sums.zip(estimated).map(|(sum, c)| sum - c).collect()
        };
        for (found, truth) in corrected([&exact.0, &own.0, &estimated.0]).iter().zip(mean) {
            assert!((found - truth).abs() < 1e-6);
        }
        let found = corrected([&exact.1, &own.1, &estimated.1]);
        for (found, truth) in found.iter().zip(covariance) {
            assert!((found - truth / det).abs() < 1e-6);
        }
        // Without the correction, the moments of the points differ from the exact moments.
        assert!((own.1[0] - covariance[0] / det).abs() > 0.01);
        assert!(nearly_gaussian(&points(&peaks), 2).is_none());
    }
}
