//! Moments of power sums of a vector with a symmetric Dirichlet distribution.

use jensen_math::special;

/// Computes log E[Σ_j p_j^s] for p with a symmetric Dirichlet distribution.
pub(super) fn log_mean(categories: usize, a: f64, s: f64) -> f64 {
    if s == 1.0 {
        return 0.0;
    }
    let j = categories as f64;
    j.ln() + special::lgamma(a + s) - special::lgamma(a) + special::lgamma(a * j)
        - special::lgamma(a * j + s)
}

/// Counts up to this number are summed one by one. Larger counts are summed by the trapezoidal rule with geometric
/// steps.
pub(super) const SINGLE: usize = 256;
const RATIO: f64 = 1.02;
/// Terms of the sum are omitted if their logarithm, relative to the largest term, is below this value.
const NEGLIGIBLE: f64 = -60.0;

/// The terms of the series g for given weights: counts m and the values log Γ(a + s m) − log Γ(a) − log m! + log
/// weight.
struct Series {
    counts: Vec<f64>,
    logs: Vec<f64>,
}

impl Series {
    fn new(a: f64, s: f64, largest: f64) -> Self {
        let mut counts: Vec<f64> = (0..=SINGLE).map(|m| m as f64).collect();
        let mut weights = vec![1.0; counts.len()];
        let mut last = SINGLE as f64;
        while last < largest {
            let next = (last * RATIO).ceil();
            let half = 0.5 * (next - last);
            // The sum over (last, next] is computed as an integral of the piecewise linear summand, plus half of the
            // difference between its values at the ends.
            *weights.last_mut().expect("a first count") += half - 0.5;
            counts.push(next);
            weights.push(half + 0.5);
            last = next;
        }
        let base = special::lgamma(a);
        let logs = counts
            .iter()
            .zip(&weights)
            .map(|(&m, &w): (&f64, &f64)| {
                special::lgamma(a + s * m) - base - special::lgamma(m + 1.0) + w.ln()
            })
            .collect();
        Self { counts, logs }
    }

    /// Computes log g(e^y), and the mean and the variance of the tilted count.
    fn tilt(&self, y: f64) -> (f64, f64, f64) {
        let terms = || self.logs.iter().zip(&self.counts);
        let largest = terms()
            .map(|(l, m)| l + y * m)
            .fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut first, mut second) = (0.0, 0.0, 0.0);
        for (l, &m) in terms() {
            let log = l + y * m - largest;
            if log < NEGLIGIBLE {
                continue;
            }
            let w = log.exp();
            total += w;
            first += w * m;
            second += w * m * m;
        }
        let mean = first / total;
        (largest + total.ln(), mean, second / total - mean * mean)
    }
}

/// Moments log E[(Σ_j w_j p_j^s)^n] of power sums of p, which has a symmetric Dirichlet distribution.
pub(super) struct Power {
    series: Series,
    /// The sum J a of all Dirichlet parameters.
    prior: f64,
    s: f64,
    /// The number n, and the integer count that stands for it.
    n: f64,
    count: f64,
}

impl Power {
    pub(super) fn new(categories: usize, a: f64, n: f64, s: f64) -> Self {
        // If n is small and not an integer, the result is scaled.
        let count = if n <= SINGLE as f64 {
            n.round().max(1.0)
        } else {
            n
        };
        Self {
            series: Series::new(a, s, 64.0 * count),
            prior: categories as f64 * a,
            s,
            n,
            count,
        }
    }

    /// Computes the logarithm of the moment, and the expected count of a category in each group. A group consists of a
    /// number of categories and the logarithm of their common weight. All other categories have weight zero.
    ///
    /// The coefficient is computed at the tilt for which the mean count is n. For n up to [`SINGLE`], the value is
    /// computed exactly by convolutions. For larger n, it is approximated by the normal density at its centre (a
    /// saddle-point approximation).
    pub(super) fn moment(&self, groups: &[(usize, f64)]) -> (f64, Vec<f64>) {
        let (y, tilted) = self.tilted(groups);
        let sum = |part: fn(&(f64, f64, f64)) -> f64| -> f64 {
            let each = groups.iter().zip(&tilted);
            each.map(|((number, _), t)| *number as f64 * part(t)).sum()
        };
        let probability = if self.count <= SINGLE as f64 {
            self.probability(groups, y, &tilted).ln()
        } else {
            -0.5 * (2.0 * std::f64::consts::PI * sum(|t| t.2)).ln()
        };
        let coefficient = sum(|t| t.0) - y * self.count + probability;
        let whole = special::lgamma(self.count + 1.0) + special::lgamma(self.prior)
            - special::lgamma(self.prior + self.s * self.count)
            + coefficient;
        let scale = self.n / self.count;
        (whole * scale, tilted.iter().map(|t| t.1 * scale).collect())
    }

    /// Finds the tilt y at which the sum of counts has mean n. Also returns log g, the mean and the variance of each
    /// group at this tilt.
    ///
    /// Newton's method is applied to the logarithm of the mean, which is nearly linear in y while counts are rare. A
    /// bracket that shrinks in every step guarantees convergence.
    fn tilted(&self, groups: &[(usize, f64)]) -> (f64, Vec<(f64, f64, f64)>) {
        let heaviest = groups.iter().map(|g| g.1).fold(f64::NEG_INFINITY, f64::max);
        let (mut low, mut high) = (-50.0 - heaviest, 50.0 - heaviest);
        let mut y = -heaviest;
        loop {
            let tilted: Vec<_> = groups.iter().map(|g| self.series.tilt(y + g.1)).collect();
            let sum = |part: fn(&(f64, f64, f64)) -> f64| -> f64 {
                let each = groups.iter().zip(&tilted);
                each.map(|((number, _), t)| *number as f64 * part(t)).sum()
            };
            let (mean, variance) = (sum(|t| t.1), sum(|t| t.2));
            if mean < self.count {
                low = y;
            } else {
                high = y;
            }
            let newton = y + (self.count.ln() - mean.ln()) * mean / variance;
            let next = if low < newton && newton < high {
                newton
            } else {
                0.5 * (low + high)
            };
            if (next - y).abs() <= 1e-12 * y.abs().max(1.0) {
                return (y, tilted);
            }
            y = next;
        }
    }

    /// Computes the probability that the sum of tilted counts is n.
    fn probability(&self, groups: &[(usize, f64)], y: f64, tilted: &[(f64, f64, f64)]) -> f64 {
        let most = self.count as usize;
        let of_group = |((number, weight), t): (&(usize, f64), &(f64, f64, f64))| {
            let logs = self.series.logs[..=most].iter().enumerate();
            let single: Vec<f64> = logs
                .map(|(m, log)| (log + (y + weight) * m as f64 - t.0).exp())
                .collect();
            power_of(&single, *number)
        };
        let sums = groups.iter().zip(tilted).map(of_group);
        let whole = sums.reduce(|a, b| convolved(&a, &b));
        whole.map_or(0.0, |sum| sum[most])
    }
}

/// Computes log E[(Σ_j p_j^s)^n] for p with a symmetric Dirichlet distribution over `categories` categories with
/// parameter `a`. The result is 0 at s = 1.
pub(super) fn log_moment(categories: usize, a: f64, n: f64, s: f64) -> f64 {
    if s == 1.0 || n <= 0.0 {
        return 0.0;
    }
    Power::new(categories, a, n, s)
        .moment(&[(categories, 0.0)])
        .0
}

/// Computes the distribution of the sum of `times` independent counts, truncated to the length of `single`.
pub(super) fn power_of(single: &[f64], times: usize) -> Vec<f64> {
    let mut result: Option<Vec<f64>> = None;
    let mut square = single.to_vec();
    let mut left = times;
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                None => square.clone(),
                Some(r) => convolved(&r, &square),
            });
        }
        left >>= 1;
        if left == 0 {
            break;
        }
        square = convolved(&square, &square);
    }
    result.expect("at least one category")
}

fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    (0..a.len())
        .map(|i| (0..=i).map(|m| a[m] * b[i - m]).sum())
        .collect()
}
