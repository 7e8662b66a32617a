//! Baseline models in which columns have independent Student's t distributions.

use jensen_math::special::lgamma_step;
use rayon::prelude::*;

use super::pairs;

/// The number of evenly spaced rows from which the distributions are estimated.
const LEARNED: usize = 4000;

/// The maximum number of iterations for one column. The iterations also end if no parameter changes by more than
/// [`STILL`] of its value.
const ROUNDS: usize = 500;
const STILL: f64 = 1e-6;

/// The range of the degrees of freedom. At the upper end, the distribution is almost normal.
const DEGREES: (f64, f64) = (0.2, 1000.0);

#[derive(Clone, Copy, Debug)]
struct Column {
    median: f64,
    scale: f64,
    degrees: f64,
}

impl Column {
    /// Fits the distribution by maximum likelihood with the EM algorithm, in which the degrees of freedom maximise the
    /// likelihood itself (Liu and Rubin 1995). Given degrees of freedom stay as they are.
    fn of(x: &[f64], degrees: Option<f64>) -> Self {
        let mut sorted = x.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        let deviation = x.iter().map(|x| (x - at(0.5)).powi(2)).sum::<f64>() / x.len() as f64;
        let spread = 0.5 * (at(0.75) - at(0.25));
        let mut column = Self {
            median: at(0.5),
            scale: match spread > 0.0 {
                true => spread,
                false => deviation.sqrt().max(f64::MIN_POSITIVE),
            },
            degrees: degrees.unwrap_or(4.0),
        };
        for _ in 0..ROUNDS {
            let before = column;
            let (mut weights, mut sum) = (0.0, 0.0);
            for x in x {
                let weight = column.weight(*x);
                weights += weight;
                sum += weight * x;
            }
            column.median = sum / weights;
            let squares: f64 = x
                .iter()
                .map(|x| before.weight(*x) * (x - column.median).powi(2))
                .sum();
            column.scale = (squares / x.len() as f64).sqrt().max(f64::MIN_POSITIVE);
            if degrees.is_none() {
                column.degrees = column.best_degrees(x);
            }
            let moved = (column.median - before.median).abs() / column.scale
                + (column.scale / before.scale).ln().abs()
                + (column.degrees / before.degrees).ln().abs();
            if moved < STILL {
                break;
            }
        }
        column
    }

    fn weight(&self, x: f64) -> f64 {
        let square = ((x - self.median) / self.scale).powi(2);
        (self.degrees + 1.0) / (self.degrees + square)
    }

    /// Returns the degrees of freedom with the largest likelihood, by golden-section search over their logarithm.
    fn best_degrees(&self, x: &[f64]) -> f64 {
        let score = |log: f64| -> f64 {
            let column = Self {
                degrees: log.exp(),
                ..*self
            };
            x.iter().map(|x| column.log_density(*x)).sum()
        };
        let golden = 0.5 * (5.0_f64.sqrt() - 1.0);
        let (mut low, mut high) = (DEGREES.0.ln(), DEGREES.1.ln());
        let (mut a, mut b) = (high - golden * (high - low), low + golden * (high - low));
        let (mut at_a, mut at_b) = (score(a), score(b));
        while high - low > 1e-3 {
            if at_a > at_b {
                (high, b, at_b) = (b, a, at_a);
                a = high - golden * (high - low);
                at_a = score(a);
            } else {
                (low, a, at_a) = (a, b, at_b);
                b = low + golden * (high - low);
                at_b = score(b);
            }
        }
        (0.5 * (low + high)).exp()
    }

    fn log_density(&self, x: f64) -> f64 {
        let square = ((x - self.median) / self.scale).powi(2);
        let degrees = self.degrees;
        lgamma_step(0.5 * degrees, 0.5)
            - 0.5 * (degrees * std::f64::consts::PI).ln()
            - self.scale.ln()
            - 0.5 * (degrees + 1.0) * (square / degrees).ln_1p()
    }
}

/// Returns the mean log density of `scored` under distributions that are fitted to the columns of `train`.
pub(super) fn independent(train: &[Vec<f64>], scored: &[Vec<f64>], degrees: Option<f64>) -> f64 {
    let width = train.first().map_or(0, Vec::len);
    let step = train.len().div_ceil(LEARNED).max(1);
    let columns: Vec<Column> = (0..width)
        .into_par_iter()
        .map(|i| {
            let values = train.iter().step_by(step).map(|row| row[i]);
            let known: Vec<f64> = values.filter(|x| !x.is_nan()).collect();
            match known.is_empty() {
                true => Column::of(&[0.0], Some(1.0)),
                false => Column::of(&known, degrees),
            }
        })
        .collect();
    let total = |row: &Vec<f64>| -> f64 {
        pairs(row, &columns)
            .map(|(x, column)| column.log_density(x))
            .sum()
    };
    scored.iter().map(total).sum::<f64>() / scored.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_has_the_largest_likelihood() {
        // These are quantiles of a distribution with three degrees of freedom, median 2 and scale 0.5.
        let quantile = |p: f64| {
            let cumulative = |t: f64| {
                let u = t / 3.0_f64.sqrt();
                0.5 + (u / (1.0 + u * u) + u.atan()) / std::f64::consts::PI
            };
            let (mut low, mut high) = (-1e3, 1e3);
            for _ in 0..80 {
                let middle = 0.5 * (low + high);
                match cumulative(middle) < p {
                    true => low = middle,
                    false => high = middle,
                }
            }
            2.0 + 0.5 * low
        };
        let x: Vec<f64> = (0..2000)
            .map(|i| quantile((f64::from(i) + 0.5) / 2000.0))
            .collect();
        let column = Column::of(&x, None);
        assert!((column.median - 2.0).abs() < 1e-3, "{column:?}");
        assert!((column.scale - 0.5).abs() < 0.01, "{column:?}");
        assert!((column.degrees - 3.0).abs() < 0.15, "{column:?}");
        let score = |column: Column| x.iter().map(|x| column.log_density(*x)).sum::<f64>();
        let best = score(column);
        for (shift, scale, degrees) in [(0.01, 1.0, 1.0), (0.0, 1.02, 1.0), (0.0, 1.0, 1.05)] {
            let other = Column {
                median: column.median + shift,
                scale: column.scale * scale,
                degrees: column.degrees * degrees,
            };
            assert!(score(other) < best, "{other:?}");
        }
    }
}
