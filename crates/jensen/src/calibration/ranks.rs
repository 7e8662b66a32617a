//! Tests of whether ranks are uniformly distributed.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::{gamma_q, lgamma};
use serde::Serialize;

use crate::Sample;

/// The number of draws among which each simulated value is ranked.
pub const DRAWS: usize = 99;

/// The probability that the test rejects at least one scalar of a calibration if all ranks are uniform.
pub const ERROR_RATE: f64 = 0.05;

/// The possible numbers of bins of the χ² test, all of which divide the number of possible ranks. The test uses the
/// largest of these numbers that gives an expected count of at least five per bin.
const BINS: [usize; 5] = [20, 10, 5, 4, 2];

/// The envelope test simulates sets of uniform ranks. The number of sets is at least the first constant, and at least
/// the second constant times the number of scalars.
const SETS: (usize, usize) = (4000, 40);
/// The maximum number of ranks that are simulated for all sets together. The maximum only limits the number of sets
/// beyond the first 4000.
const NUMBERS: usize = 40_000_000;

/// The results of the uniformity tests for the ranks of one scalar.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Uniformity {
    /// The χ² statistic of the counts of ranks in bins of equal width.
    pub chi_square: f64,
    /// The number of degrees of freedom of the χ² test.
    pub degrees: usize,
    /// The p-value of the χ² test.
    pub chi_square_p: f64,
    /// The p-value of the envelope test. The test compares the empirical distribution function of the ranks with the
    /// uniform distribution. At each rank, the deviation is measured by its tail probability. The statistic is the
    /// smallest of these tail probabilities. Only the envelope test affects the verdict.
    pub ecdf_p: f64,
}

/// Returns the name and the rank of each simulated scalar that the sample reports. The rank is computed among [`DRAWS`]
/// equally spaced draws. The result is empty if the sample has fewer than [`DRAWS`] draws.
pub fn ranks(sample: &Sample, truth: &[(String, f64)]) -> Vec<(String, u32)> {
    let table = &sample.table;
    if table.len() < DRAWS {
        return Vec::new();
    }
    let names: Vec<String> = table
        .variables()
        .iter()
        .flat_map(|v| v.display_names())
        .collect();
    let position = |name: &str| names.iter().position(|other| other == name);
    let reported = truth
        .iter()
        .filter_map(|(name, value)| Some((name, value, position(name)?)));
    reported
        .map(|(name, value, column)| {
            let draws = (0..DRAWS).map(|i| table.row(i * table.len() / DRAWS)[column]);
            let (mut below, mut equal) = (0, 0);
            for draw in draws {
                below += u32::from(draw < *value);
                equal += u32::from(draw == *value);
            }
            (name.clone(), below + equal / 2)
        })
        .collect()
}

/// The simulated distribution of the statistic of the envelope test under uniform ranks.
pub struct Null {
    count: usize,
    /// The entry `tails[r][n]` is the two-sided tail probability of observing n ranks that are at most r. The last
    /// possible rank has no entry.
    tails: Vec<Vec<f64>>,
    /// The smallest tail probability of each simulated set of uniform ranks, in ascending order.
    smallest: Vec<f64>,
}

impl Null {
    /// Simulates the distribution for `scalars` scalars with `count` ranks each.
    pub fn new(count: usize, scalars: usize, seed: u64) -> Self {
        let tails = (1..=DRAWS).map(|k| tails(count, k as f64 / (DRAWS + 1) as f64));
        let mut null = Self {
            count,
            tails: tails.collect(),
            smallest: Vec::new(),
        };
        let sets = (SETS.1 * scalars)
            .max(SETS.0)
            .min(NUMBERS / count)
            .max(SETS.0);
        let purpose = const { Purpose::new("calibration") };
        let smallest = (0..sets).map(|set| {
            let mut stream = Stream::new(seed, purpose, 0, set as u64);
            let ranks: Vec<u32> = (0..count)
                .map(|_| stream.below(DRAWS as u64 + 1) as u32)
                .collect();
            null.smallest_tail(&ranks)
        });
        let mut smallest: Vec<f64> = smallest.collect();
        smallest.sort_by(f64::total_cmp);
        null.smallest = smallest;
        null
    }

    fn smallest_tail(&self, ranks: &[u32]) -> f64 {
        let mut counts = [0; DRAWS + 1];
        ranks.iter().for_each(|rank| counts[*rank as usize] += 1);
        let mut reached = 0;
        let tails = self.tails.iter().zip(counts).map(|(tails, count)| {
            reached += count;
            tails[reached]
        });
        tails.fold(1.0, f64::min)
    }

    /// Tests whether the ranks of one scalar are uniform.
    pub fn judge(&self, ranks: &[u32]) -> Uniformity {
        let found = self.smallest_tail(ranks);
        let as_small = self
            .smallest
            .partition_point(|tail| *tail <= found * (1.0 + 1e-12));
        let bins = BINS
            .into_iter()
            .find(|bins| self.count / bins >= 5)
            .unwrap_or(2);
        let mut counts = vec![0.0; bins];
        let width = (DRAWS + 1) / bins;
        ranks
            .iter()
            .for_each(|rank| counts[*rank as usize / width] += 1.0);
        let expected = self.count as f64 / bins as f64;
        let chi_square: f64 = counts
            .iter()
            .map(|n| (n - expected) * (n - expected) / expected)
            .sum();
        Uniformity {
            chi_square,
            degrees: bins - 1,
            chi_square_p: gamma_q(0.5 * (bins - 1) as f64, 0.5 * chi_square),
            ecdf_p: (as_small + 1) as f64 / (self.smallest.len() + 1) as f64,
        }
    }

    /// Returns the lower and the upper limit of the empirical distribution function at each rank except the last. If
    /// the ranks are uniform, their empirical distribution function leaves this envelope with probability 0.05.
    pub fn envelope(&self) -> Vec<(f64, f64)> {
        let least = self.smallest[self.smallest.len() / 20];
        let share = |n: usize| n as f64 / self.count as f64;
        let ends = self.tails.iter().map(|tails| {
            let inside = |n: &usize| tails[*n] > least;
            let low = (0..=self.count).find(inside).unwrap_or(0);
            let high = (0..=self.count).rev().find(inside).unwrap_or(self.count);
            (share(low), share(high))
        });
        ends.collect()
    }
}

/// Computes `2 min(P(X ≤ n), P(X ≥ n))` for every n, where X is a binomial variable.
fn tails(count: usize, p: f64) -> Vec<f64> {
    let total = count as f64;
    let mass = |n: usize| {
        let n = n as f64;
        let ways = lgamma(total + 1.0) - lgamma(n + 1.0) - lgamma(total - n + 1.0);
        (ways + n * p.ln() + (total - n) * (-p).ln_1p()).exp()
    };
    let masses: Vec<f64> = (0..=count).map(mass).collect();
    let mut above = vec![0.0; count + 2];
    for n in (0..=count).rev() {
        above[n] = above[n + 1] + masses[n];
    }
    let mut below = 0.0;
    let both = masses.iter().enumerate().map(|(n, mass)| {
        below += mass;
        2.0 * f64::min(below, above[n])
    });
    both.collect()
}

/// Returns a description of how the ranks deviate from a uniform distribution.
pub fn shape(ranks: &[u32]) -> &'static str {
    let count = ranks.len() as f64;
    let positions = || {
        ranks
            .iter()
            .map(|rank| (f64::from(*rank) + 0.5) / (DRAWS + 1) as f64)
    };
    let mean = positions().sum::<f64>() / count;
    let spread = positions().map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>() / count;
    // Uniform positions have mean ½ and variance 1/12. The squared deviation of a uniform position from ½ has variance
    // 1/180.
    let shift = (mean - 0.5) * (12.0 * count).sqrt();
    let width = (spread - 1.0 / 12.0) * (180.0 * count).sqrt();
    match (shift, width) {
        (shift, width) if shift.abs() >= width.abs() && shift > 0.0 => {
            "ranks are too high: the posterior is below the simulated values"
        }
        (shift, width) if shift.abs() >= width.abs() => {
            "ranks are too low: the posterior is above the simulated values"
        }
        (_, width) if width > 0.0 => "ranks accumulate at both ends: the posterior is too narrow",
        _ => "ranks accumulate in the middle: the posterior is too wide",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(lane: u64) -> Stream {
        Stream::new(5, const { Purpose::new("test of ranks") }, 0, lane)
    }

    #[test]
    fn uniform_ranks_are_refuted_as_often_as_stated() {
        let null = Null::new(200, 1, 1);
        let repeats = 2000;
        let (mut envelope, mut chi_square) = (0, 0);
        for lane in 0..repeats {
            let mut stream = stream(lane);
            let ranks: Vec<u32> = (0..200).map(|_| stream.below(100) as u32).collect();
            let found = null.judge(&ranks);
            envelope += u32::from(found.ecdf_p < 0.05);
            chi_square += u32::from(found.chi_square_p < 0.05);
        }
        // The expected fraction is 0.05 with a standard error of 0.005. The simulation of the envelope adds an error of
        // 0.003.
        for share in [envelope, chi_square].map(|n| f64::from(n) / repeats as f64) {
            assert!((share - 0.05).abs() < 0.018, "{share}");
        }
    }

    #[test]
    fn ranks_of_wrong_posteriors_are_refuted_and_described() {
        let null = Null::new(200, 1, 1);
        let skewed = |power: f64, both: bool| -> Vec<u32> {
            let mut stream = stream(7);
            let position = |u: f64| match both {
                true if u < 0.5 => 0.5 * (2.0 * u).powf(power),
                true => 1.0 - 0.5 * (2.0 - 2.0 * u).powf(power),
                false => u.powf(power),
            };
            (0..200)
                .map(|_| (position(stream.uniform()) * 100.0) as u32)
                .collect()
        };
        for (power, both, how) in [
            (1.7, true, "too narrow"),
            (0.6, true, "too wide"),
            (1.7, false, "above"),
            (0.6, false, "below"),
        ] {
            let ranks = skewed(power, both);
            assert!(null.judge(&ranks).ecdf_p < 0.002, "{power} {both}");
            assert!(shape(&ranks).contains(how), "{} {how}", shape(&ranks));
        }
    }

    #[test]
    fn the_envelope_holds_uniform_ranks_and_its_tails_are_binomial() {
        let null = Null::new(100, 1, 1);
        for (k, (low, high)) in null.envelope().into_iter().enumerate() {
            let middle = (k + 1) as f64 / 100.0;
            assert!(low <= middle && middle <= high && high - low < 0.4);
        }
        // P(X ≤ 2) is 56/1024 for ten trials with success probability ½.
        assert!((tails(10, 0.5)[2] - 112.0 / 1024.0).abs() < 1e-12);
        assert!((tails(10, 0.5)[8] - 112.0 / 1024.0).abs() < 1e-12);
    }
}
