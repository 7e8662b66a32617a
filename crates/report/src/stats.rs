//! Statistics for the plots. Inputs may contain any values. Non-finite values are omitted first, and so are values
//! whose square would overflow.

use jensen_math::order::quantile;
use jensen_math::sum::Moments;

/// Values of at least this magnitude are treated as infinite. The sum of the squares of all other values is then
/// finite.
const HUGE: f64 = 1e150;

pub(crate) fn sorted_finite(values: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.abs() < HUGE).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

pub(crate) fn span(sorted: &[f64], (low, high): (f64, f64)) -> (f64, f64) {
    (quantile(sorted, low), quantile(sorted, high))
}

/// Returns at most about `limit` of the points. The points that are returned are evenly spaced and include the last
/// point.
pub(crate) fn thin<T: Copy>(points: &[T], limit: usize) -> Vec<T> {
    let step = points.len().div_ceil(limit).max(1);
    let skip = (points.len().max(1) - 1) % step;
    points.iter().skip(skip).step_by(step).copied().collect()
}

/// Estimates the density of sorted values with a Gaussian kernel, at `points` positions between `from` and `to`.
///
/// The bandwidth follows Silverman's rule. The kernel is reflected at the smallest and at the largest value. The
/// density of a positive parameter therefore does not extend below zero. If the tails are thin, the reflection is not
/// visible.
pub(crate) fn density(sorted: &[f64], from: f64, to: f64, points: usize) -> Vec<(f64, f64)> {
    let n = sorted.len() as f64;
    let sd = Moments::of(sorted).variance().sqrt();
    let iqr = quantile(sorted, 0.75) - quantile(sorted, 0.25);
    let spread = if iqr > 0.0 { sd.min(iqr / 1.34) } else { sd };
    let width = 0.9 * spread * n.powf(-0.2);
    if !width.is_finite()
        || width < 1e-150
        || points < 2
        || from.partial_cmp(&to) != Some(std::cmp::Ordering::Less)
    {
        return Vec::new();
    }
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    // Values that are within a fifth of a bandwidth of each other are replaced by their mean. This moves the curve by
    // less than the width of its line. It also prevents the cost from growing with the product of the number of draws
    // and the number of points.
    let mut masses: Vec<(f64, f64)> = Vec::new();
    let mut start = f64::NEG_INFINITY;
    for &x in sorted {
        match masses.last_mut() {
            Some((mean, count)) if x - start < 0.2 * width => {
                *count += 1.0;
                *mean += (x - *mean) / *count;
            }
            _ => {
                start = x;
                masses.push((x, 1.0));
            }
        }
    }
    // At a distance of more than six bandwidths, a kernel contributes less than a pixel.
    let reach = 6.0 * width;
    let kernel_sum = |x: f64| -> f64 {
        let first = masses.partition_point(|(v, _)| *v < x - reach);
        let near = masses[first..].iter().take_while(|(v, _)| *v <= x + reach);
        near.map(|(v, count)| count * (-0.5 * ((x - v) / width).powi(2)).exp())
            .sum()
    };
    let scale = 1.0 / (n * width * (2.0 * std::f64::consts::PI).sqrt());
    (0..points)
        .map(|i| {
            let x = from + (to - from) * i as f64 / (points - 1) as f64;
            let inside = (low..=high).contains(&x);
            let sum = if inside {
                kernel_sum(x) + kernel_sum(2.0 * low - x) + kernel_sum(2.0 * high - x)
            } else {
                0.0
            };
            (x, sum * scale)
        })
        .collect()
}

/// Returns each distinct value with the fraction of values that are equal to it. Returns `None` if a value is not an
/// integer, or if there are more than `most` distinct values.
pub(crate) fn integer_counts(sorted: &[f64], most: usize) -> Option<Vec<(f64, f64)>> {
    let mut counts: Vec<(f64, f64)> = Vec::new();
    for &x in sorted {
        if x.fract() != 0.0 {
            return None;
        }
        let full = counts.len() == most;
        match counts.last_mut() {
            Some((value, count)) if *value == x => *count += 1.0,
            _ if full => return None,
            _ => counts.push((x, 1.0)),
        }
    }
    let n = sorted.len() as f64;
    Some(counts.into_iter().map(|(x, c)| (x, c / n)).collect())
}

/// Returns the Pearson correlation of two lists of the same length, computed over the positions where both values are
/// finite. Returns `None` if the values of a list are all equal.
pub(crate) fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = a
        .iter()
        .zip(b)
        .map(|(x, y)| (*x, *y))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let n = pairs.len() as f64;
    let (ma, mb) = pairs
        .iter()
        .fold((0.0, 0.0), |(s, t), (x, y)| (s + x / n, t + y / n));
    let (mut sab, mut saa, mut sbb) = (0.0, 0.0, 0.0);
    for (x, y) in pairs {
        sab += (x - ma) * (y - mb);
        saa += (x - ma) * (x - ma);
        sbb += (y - mb) * (y - mb);
    }
    let r = sab / (saa * sbb).sqrt();
    r.is_finite().then(|| r.clamp(-1.0, 1.0))
}

pub(crate) fn relative_weights(log_weights: &[f64]) -> Vec<f64> {
    let mut sorted = sorted_finite(log_weights);
    sorted.reverse();
    let Some(&largest) = sorted.first() else {
        return Vec::new();
    };
    let weights: Vec<f64> = sorted.iter().map(|w| (w - largest).exp()).collect();
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    weights.into_iter().map(|w| w / mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logistic(n: usize) -> Vec<f64> {
        (0..n)
            .map(|i| (i as f64 + 0.5) / n as f64)
            .map(|p| (p / (1.0 - p)).ln())
            .collect()
    }

    #[test]
    fn a_density_is_close_to_the_true_one_and_integrates_to_one() {
        let sorted = logistic(20_000);
        let curve = density(&sorted, sorted[0], sorted[sorted.len() - 1], 400);
        let step = curve[1].0 - curve[0].0;
        let total: f64 = curve.iter().map(|(_, f)| f * step).sum();
        assert!((total - 1.0).abs() < 1e-3, "{total}");
        for (x, f) in curve {
            let exact = (-x).exp() / (1.0 + (-x).exp()).powi(2);
            assert!((f - exact).abs() < 0.006, "{x}: {f} {exact}");
        }
    }

    #[test]
    fn a_density_keeps_the_edge_of_a_positive_parameter() {
        let sorted: Vec<f64> = (0..5000)
            .map(|i| -(1.0 - (f64::from(i) + 0.5) / 5000.0f64).ln())
            .collect();
        let curve = density(&sorted, sorted[0], 5.0, 100);
        assert!((curve[0].1 - 1.0).abs() < 0.1, "{}", curve[0].1);
        assert!(density(&[1.0; 5], 0.0, 2.0, 50).is_empty());
        assert!(density(&sorted, 1.0, 1.0, 50).is_empty());
    }

    #[test]
    fn integers_are_counted_and_anything_else_is_not() {
        assert_eq!(
            integer_counts(&[0.0, 0.0, 1.0, 3.0], 5),
            Some(vec![(0.0, 0.5), (1.0, 0.25), (3.0, 0.25)])
        );
        assert_eq!(integer_counts(&[0.0, 0.5], 5), None);
        assert_eq!(integer_counts(&[0.0, 1.0, 2.0], 2), None);
    }

    #[test]
    fn correlations_and_weights() {
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]), Some(1.0));
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0]), None);
        let r = correlation(&[1.0, 2.0, 3.0, f64::NAN], &[1.0, 3.0, 2.0, 0.0]).unwrap();
        assert!((r - 0.5).abs() < 1e-12);
        let weights = relative_weights(&[0.0, 3.0f64.ln(), f64::NEG_INFINITY, 0.0]);
        assert_eq!(weights.len(), 3);
        assert!(
            (weights[0] - 1.8).abs() < 1e-12 && (weights[2] - 0.6).abs() < 1e-12,
            "{weights:?}"
        );
        assert!(relative_weights(&[f64::NAN]).is_empty());
    }
}
