//! Tests of the uniformity of ranks.

use jensen_math::rng::{Purpose, Stream};
use jensen_math::special::{gamma_q, lgamma};
use serde::Serialize;

use crate::Sample;

/// The number of draws among which a value is ranked.
pub const DRAWS: usize = 99;

/// The probability that the test rejects any scalar of a calibration although all ranks are uniform.
pub const ERROR_RATE: f64 = 0.05;

/// The possible numbers of bins of the χ² test. All of them divide the number of possible ranks. The test uses the
/// largest number that gives an expected count of at least five per bin.
const BINS: [usize; 5] = [20, 10, 5, 4, 2];

/// The number of sets of uniform ranks for the envelope test is at least 4000 and at least 40 per scalar.
const SETS: (usize, usize) = (4000, 40);
/// The limit on the number of ranks in all sets together, if there are more than 4000 sets.
const NUMBERS: usize = 40_000_000;

/// The test results of one scalar's ranks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Uniformity {
    /// The χ² statistic of the rank counts in bins of equal width.
    pub chi_square: f64,
    /// The degrees of freedom of the χ² test.
    pub degrees: usize,
    /// The p-value of the χ² test.
    pub chi_square_p: f64,
    /// The p-value of the largest deviation of the empirical distribution function of the ranks from that of uniform
    /// ranks. The tail probability measures each deviation. The verdict depends on this test alone.
    pub ecdf_p: f64,
}

/// Returns the name and rank of each simulated scalar that a sample reports. The rank is among [`DRAWS`] equally spaced
/// draws. The result is empty if the sample has fewer draws.
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

/// The distribution of the test statistic under uniform ranks, simulated.
pub struct Null {
    count: usize,
    /// For every rank except the last, the two-sided tail probability of each possible number of ranks up to that rank.
    tails: Vec<Vec<f64>>,
    /// The smallest tail probability of each simulated set of uniform ranks, sorted.
    smallest: Vec<f64>,
}

impl Null {
    /// Simulates the distribution for `count` ranks of each of `scalars` scalars.
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

    /// Tests the ranks of one scalar.
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

    /// Returns the lower and upper limits of the cumulative share at each rank except the last. Uniform ranks leave
    /// this envelope with probability 0.05.
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

/// Computes `2 min(P(X ≤ n), P(X ≥ n))` for a binomial variable X and every n.
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

/// Returns a description of the deviation of the ranks from uniformity.
pub fn shape(ranks: &[u32]) -> &'static str {
    let count = ranks.len() as f64;
    let positions = || {
        ranks
            .iter()
            .map(|rank| (f64::from(*rank) + 0.5) / (DRAWS + 1) as f64)
    };
    let mean = positions().sum::<f64>() / count;
    let spread = positions().map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>() / count;
    // Uniform positions have mean ½ and variance 1/12. Their squared deviation from the mean has variance 1/180.
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
        // The expected share is 0.05, and 0.005 is its standard error. The simulated sets add an error of 0.003.
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
        // P(X ≤ 2) = 56/1024 for ten trials with probability ½.
        assert!((tails(10, 0.5)[2] - 112.0 / 1024.0).abs() < 1e-12);
        assert!((tails(10, 0.5)[8] - 112.0 / 1024.0).abs() < 1e-12);
    }
}
