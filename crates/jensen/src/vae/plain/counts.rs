//! Baseline models in which columns of counts are independent. The distributions of the columns are Poisson, negative
//! binomial, or zero-inflated negative binomial.

use std::collections::BTreeMap;

use jensen_math::special::{digamma_step, lgamma, lgamma_step, trigamma_step};
use jensen_neural::{Likelihood, Observation};
use rayon::prelude::*;

use super::pairs;

/// The number of evenly spaced rows for estimating sizes and excess zeros. The errors of these estimates lower the
/// score by about 3/(2 · 4000) nats per value, which is a tenth of the slack in the comparison.
const LEARNED: usize = 4000;

/// The maximum number of iterations. The iterations also end if the log size changes by less than [`STILL`].
const ROUNDS: usize = 100;
const STILL: f64 = 1e-5;

/// The range of the log sizes. At the upper end, the variance exceeds the variance of a Poisson distribution by a
/// fraction of 10⁻⁶.
const SIZES: (f64, f64) = (-7.0, 14.0);

/// The distribution of one column of counts, whose mean is rate · exposure.
#[derive(Clone, Copy, Debug)]
struct Column {
    rate: f64,
    /// The size of the negative binomial distribution, which is infinite for Poisson counts.
    size: f64,
    excess: f64,
}

impl Column {
    /// Returns the log probability mass of a count without the excess zeros.
    fn log_count(&self, x: f64, exposure: f64) -> f64 {
        let mean = self.rate * exposure;
        if self.size.is_infinite() {
            return x * mean.ln() - mean - lgamma(x + 1.0);
        }
        let failures = -self.size * (mean / self.size).ln_1p();
        match x > 0.0 {
            false => failures,
            true => {
                let ways = lgamma_step(self.size, x) - lgamma(x + 1.0);
                ways + failures - x * (self.size / mean).ln_1p()
            }
        }
    }

    fn log_mass(&self, x: f64, exposure: f64) -> f64 {
        let counted = (-self.excess).ln_1p() + self.log_count(x, exposure);
        match x > 0.0 || self.excess == 0.0 {
            true => counted,
            false => (self.excess + counted.exp()).ln(),
        }
    }

    /// Adds half a count to the data and fits a Poisson distribution by maximum likelihood.
    fn poisson(x: &[f64], exposures: &[f64]) -> Self {
        Self {
            rate: (x.iter().sum::<f64>() + 0.5) / exposures.iter().sum::<f64>(),
            size: f64::INFINITY,
            excess: 0.0,
        }
    }

    /// Fits a negative binomial distribution by maximum likelihood. Each iteration updates the rate and then takes a
    /// Newton step for the log size. If there are excess zeros, the iteration also updates their posterior
    /// probabilities.
    fn negative_binomial(x: &[f64], exposures: &[f64], inflated: bool) -> Self {
        let mut column = Self {
            size: 1.0,
            excess: if inflated { 0.1 } else { 0.0 },
            ..Self::poisson(x, exposures)
        };
        let mut positive: BTreeMap<u64, f64> = BTreeMap::new();
        for x in x.iter().filter(|x| **x > 0.0) {
            *positive.entry(*x as u64).or_default() += 1.0;
        }
        for _ in 0..ROUNDS {
            let before = column;
            column.improve(x, exposures, &positive, inflated);
            let moved = (column.size / before.size).ln().abs()
                + (column.rate / before.rate).ln().abs()
                + (column.excess - before.excess).abs();
            if moved < STILL {
                break;
            }
        }
        column
    }

    fn improve(
        &mut self,
        x: &[f64],
        exposures: &[f64],
        positive: &BTreeMap<u64, f64>,
        inflated: bool,
    ) {
        let Self { rate, size, excess } = *self;
        let (mut pull, mut load, mut excesses) = (0.5, 0.0, 0.0);
        let (mut slope, mut bend) = (0.0, 0.0);
        for (x, exposure) in x.iter().zip(exposures) {
            let mean = rate * exposure;
            let total = size + mean;
            // This is the posterior probability that the count is not an excess zero.
            let counted = match inflated && *x == 0.0 {
                true => {
                    let log = -size * (mean / size).ln_1p();
                    let counted = (1.0 - excess) * log.exp();
                    counted / (excess + counted)
                }
                false => 1.0,
            };
            excesses += 1.0 - counted;
            let weight = counted * size / total;
            pull += weight * x;
            load += weight * exposure;
            let gap = (mean - x) / total;
            slope += counted * (gap - (mean / size).ln_1p());
            bend += counted * (mean / (size * total) - gap / total);
        }
        for (x, count) in positive {
            slope += count * digamma_step(size, *x as f64);
            bend += count * trigamma_step(size, *x as f64);
        }
        let (slope, bend) = (size * slope, size * slope + size * size * bend);
        let step = match bend < 0.0 {
            true => (-slope / bend).clamp(-1.0, 1.0),
            false => 0.5_f64.copysign(slope),
        };
        self.size = (size.ln() + step).clamp(SIZES.0, SIZES.1).exp();
        self.rate = pull / load;
        if inflated {
            self.excess = excesses / x.len() as f64;
        }
    }
}

fn pairs_of(rows: &[Vec<f64>], column: usize) -> impl Iterator<Item = (usize, f64)> {
    let values = rows.iter().map(move |row| row[column]).enumerate();
    values.filter(|(_, x)| !x.is_nan())
}

/// Returns the mean log probability mass of the rows of `scored` under independent columns that are fitted to `train`.
/// If the observation model has a library size, the mean of each count is proportional to the total of its row.
pub(super) fn independent(
    train: &[Vec<f64>],
    scored: &[Vec<f64>],
    observation: &Observation,
) -> f64 {
    let sums: Vec<f64> = (0..observation.width)
        .map(|i| pairs_of(train, i).map(|(_, x)| x).sum::<f64>() + 0.5)
        .collect();
    let all: f64 = sums.iter().sum();
    let exposures = |rows: &[Vec<f64>]| -> Vec<f64> {
        // The shares are normalised so that those of the observed values sum to 1.
        let total = |row: &Vec<f64>| {
            let (total, share) = pairs(row, &sums).fold((0.0, 0.0), |(total, share), (x, sum)| {
                (total + x, share + sum / all)
            });
            total.max(Observation::EMPTY) / share
        };
        match observation.library_size {
            Some(_) => rows.iter().map(total).collect(),
            None => vec![1.0; rows.len()],
        }
    };
    let learned: Vec<Vec<f64>> = match observation.likelihood {
        Likelihood::Poisson => train.to_vec(),
        _ => {
            let step = train.len().div_ceil(LEARNED).max(1);
            train.iter().step_by(step).cloned().collect()
        }
    };
    let (of_learned, of_scored) = (exposures(&learned), exposures(scored));
    let columns: Vec<Column> = (0..observation.width)
        .into_par_iter()
        .map(|i| {
            let present = pairs_of(&learned, i);
            let (x, exposures): (Vec<f64>, Vec<f64>) =
                present.map(|(row, x)| (x, of_learned[row])).unzip();
            match observation.likelihood {
                Likelihood::Poisson => Column::poisson(&x, &exposures),
                likelihood => {
                    let inflated = likelihood == Likelihood::ZeroInflatedNegativeBinomial;
                    Column::negative_binomial(&x, &exposures, inflated)
                }
            }
        })
        .collect();
    let score = |(row, exposure): (&Vec<f64>, &f64)| -> f64 {
        let values = pairs(row, &columns);
        values
            .map(|(x, column)| column.log_mass(x, *exposure))
            .sum()
    };
    let scores: Vec<f64> = scored.par_iter().zip(&of_scored).map(score).collect();
    scores.iter().sum::<f64>() / scores.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> (Vec<f64>, Vec<f64>) {
        let x = [
            0, 3, 0, 1, 0, 7, 2, 0, 0, 12, 4, 0, 5, 1, 0, 2, 0, 9, 0, 6, 3, 0, 0, 1, 15, 0, 2, 0,
            4, 8,
        ];
        let exposure = |i: usize| 1.0 + 0.4 * (i as f64 * 1.7).sin();
        (
            x.iter().map(|x| f64::from(*x)).collect(),
            (0..x.len()).map(exposure).collect(),
        )
    }

    #[test]
    fn a_column_has_the_parameters_of_largest_likelihood() {
        let (x, exposures) = data();
        for inflated in [false, true] {
            let found = Column::negative_binomial(&x, &exposures, inflated);
            let score = |column: &Column| -> f64 {
                let pairs = x.iter().zip(&exposures);
                pairs.map(|(x, e)| column.log_mass(*x, *e)).sum()
            };
            let best = score(&found);
            for by in [0.9, 1.1] {
                let mut others = vec![
                    Column {
                        rate: by * found.rate,
                        ..found
                    },
                    Column {
                        size: by * found.size,
                        ..found
                    },
                ];
                if inflated {
                    assert!(found.excess > 0.05, "{found:?}");
                    others.push(Column {
                        excess: by * found.excess,
                        ..found
                    });
                }
                for other in others {
                    assert!(score(&other) < best, "{other:?} beats {found:?}");
                }
            }
        }
    }

    #[test]
    fn masses_sum_to_one() {
        for (size, excess) in [(f64::INFINITY, 0.0), (0.7, 0.0), (2.5, 0.3)] {
            let column = Column {
                rate: 1.5,
                size,
                excess,
            };
            let total: f64 = (0..2000)
                .map(|x| column.log_mass(f64::from(x), 2.0).exp())
                .sum();
            assert!((total - 1.0).abs() < 1e-9, "{size} {excess}: {total}");
        }
    }
}
