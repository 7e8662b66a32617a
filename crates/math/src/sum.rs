//! Sums, means and their standard errors. The results do not depend on how the work is divided.

/// Computes the sum by a fixed binary tree over the elements. The error bound grows with the logarithm of the length.
pub fn pairwise_sum(x: &[f64]) -> f64 {
    // A short run of elements is summed in eight interleaved partial sums, which the compiler vectorises. The shape of
    // the tree depends only on the length.
    const RUN: usize = 128;
    if x.len() > RUN {
        let half = (x.len() / 2).next_multiple_of(RUN);
        let (left, right) = x.split_at(half);
        return pairwise_sum(left) + pairwise_sum(right);
    }
    let mut strands = [0.0; 8];
    let chunks = x.chunks_exact(8);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (s, x) in strands.iter_mut().zip(chunk) {
            *s += x;
        }
    }
    for (s, x) in strands.iter_mut().zip(rest) {
        *s += x;
    }
    let [a, b, c, d, e, f, g, h] = strands;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// A running sum that also tracks its rounding errors (Neumaier 1974). It is as precise as a sum in twice the working
/// precision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompensatedSum {
    sum: f64,
    error: f64,
}

impl CompensatedSum {
    /// Adds a number.
    pub fn add(&mut self, x: f64) {
        let t = self.sum + x;
        let error = if self.sum.abs() >= x.abs() {
            (self.sum - t) + x
        } else {
            (x - t) + self.sum
        };
        // An infinite sum has no rounding error. Without this test, the sum would become NaN.
        if error.is_finite() {
            self.error += error;
        }
        self.sum = t;
    }

    /// Returns the sum so far.
    pub fn value(&self) -> f64 {
        self.sum + self.error
    }
}

impl Extend<f64> for CompensatedSum {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, numbers: I) {
        for x in numbers {
            self.add(x);
        }
    }
}

/// Returns the weighted mean of the numbers, and the weighted mean of the squared distances from this mean. Both are
/// computed as in [`Moments::of`]. The weights need not sum to one. Both results are NaN if there are no numbers or if
/// the weights sum to zero.
pub fn weighted_moments(x: &[f64], weights: &[f64]) -> (f64, f64) {
    assert_eq!(x.len(), weights.len(), "a weight for each number");
    let total = pairwise_sum(weights);
    let (mean, squares) = about_first(x, |at| weights[at], total);
    match x.is_empty() {
        true => (f64::NAN, f64::NAN),
        false => (mean, squares / total),
    }
}

/// Returns the weighted mean, and the weighted sum of squared distances from it. Both are 0 if there are no numbers.
fn about_first(x: &[f64], weight: impl Fn(usize) -> f64, total: f64) -> (f64, f64) {
    /// If the absolute value of the first number is at least this large, it is not used as the pivot.
    const FAR: f64 = f64::MAX / 4.0;
    let Some(first) = x.first() else {
        return (0.0, 0.0);
    };
    let pivot = if first.abs() < FAR { *first } else { 0.0 };
    let sum = |term: &dyn Fn(usize, f64) -> f64| {
        let terms = x.iter().enumerate().map(|(at, x)| term(at, x - pivot));
        pairwise_sum(&terms.collect::<Vec<_>>())
    };
    let mean = sum(&|at, d| weight(at) * d) / total;
    let squares = sum(&|at, d| weight(at) * (d - mean) * (d - mean));
    // The sum of squares also contains the square of the mean's rounding error.
    let left = sum(&|at, d| weight(at) * (d - mean)) / total;
    let squares = squares - total * left * left;
    // If the sum is NaN, the result is NaN too.
    (pivot + mean, if squares < 0.0 { 0.0 } else { squares })
}

/// The count, mean and variance of a sample. The moments of two samples can be merged (Chan, Golub and LeVeque 1983).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Computes the moments of a sample in two passes over the differences from its first number. If the numbers are
    /// nearly equal, differences preserve more digits than the numbers themselves.
    pub fn of(x: &[f64]) -> Self {
        let (mean, squares) = about_first(x, |_| 1.0, x.len() as f64);
        Self {
            count: x.len() as u64,
            mean,
            squares,
        }
    }

    /// Adds one number.
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        let step = x - self.mean;
        self.mean += step / self.count as f64;
        self.squares += step * (x - self.mean);
    }

    /// Adds the numbers of another sample.
    pub fn merge(&mut self, other: &Self) {
        let count = self.count + other.count;
        if other.count == 0 {
            return;
        }
        let step = other.mean - self.mean;
        let share = other.count as f64 / count as f64;
        self.squares += other.squares + step * step * share * self.count as f64;
        self.mean += step * share;
        self.count = count;
    }

    /// Returns the number of elements.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the mean, or 0 for an empty sample.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the unbiased variance, or NaN for fewer than two elements.
    pub fn variance(&self) -> f64 {
        if self.count < 2 {
            f64::NAN
        } else {
            self.squares / (self.count - 1) as f64
        }
    }

    /// Returns the standard error of the mean of independent elements, or NaN for fewer than two elements.
    pub fn standard_error(&self) -> f64 {
        (self.variance() / self.count as f64).sqrt()
    }
}

/// The count, the mean and the sum of squared deviations of the known values in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ColumnMoments {
    /// The number of values that are not missing, or the sum of their weights.
    pub count: f64,
    /// The mean of the values, or 0 if there are none.
    pub mean: f64,
    /// The sum `Σ (x − mean)²`.
    pub squares: f64,
}

impl ColumnMoments {
    /// Computes the moments of each column of a matrix with `dim` columns, given row by row.
    pub fn of(dim: usize, rows: &[f64]) -> Vec<Self> {
        let of_column = |d: usize| Self::of_column(rows.iter().skip(d).step_by(dim).copied());
        (0..dim).map(of_column).collect()
    }

    /// Computes the moments of each column of a matrix whose rows have weights. A row with weight w counts as w rows.
    /// Without weights, every row counts once.
    pub fn weighted(dim: usize, rows: &[f64], weights: &[f64]) -> Vec<Self> {
        if weights.is_empty() {
            return Self::of(dim, rows);
        }
        let of_column = |d: usize| {
            let column = rows.iter().skip(d).step_by(dim).copied();
            Self::of_pairs(column.zip(weights.iter().copied()))
        };
        (0..dim).map(of_column).collect()
    }

    /// Computes the moments of a column in two passes with compensated sums. The moments are as precise as the values.
    pub fn of_column(column: impl Iterator<Item = f64> + Clone) -> Self {
        Self::of_pairs(column.map(|x| (x, 1.0)))
    }

    fn of_pairs(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let known = || pairs.clone().filter(|(x, _)| !x.is_nan());
        let total = |numbers: &mut dyn Iterator<Item = f64>| {
            let mut sum = CompensatedSum::default();
            sum.extend(numbers);
            sum.value()
        };
        let count = total(&mut known().map(|(_, w)| w));
        let mean = match count > 0.0 {
            true => total(&mut known().map(|(x, w)| w * x)) / count,
            false => 0.0,
        };
        Self {
            count,
            mean,
            squares: total(&mut known().map(|(x, w)| w * (x - mean).powi(2))),
        }
    }

    /// Returns the moments of the combined values of two columns (Chan, Golub and LeVeque 1983).
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let count = self.count + other.count;
        if other.count == 0.0 || self.count == 0.0 {
            return if other.count == 0.0 { self } else { other };
        }
        let (step, share) = (other.mean - self.mean, other.count / count);
        Self {
            count,
            mean: self.mean + step * share,
            squares: self.squares + other.squares + step * step * share * self.count,
        }
    }

    /// Returns the variance, or 1 if the column is constant, because a constant column also needs a proper prior.
    pub fn variance(&self) -> f64 {
        if self.squares > 0.0 {
            self.squares / self.count
        } else {
            1.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_accurate() {
        // The exact sum is 1 + 1e-16 n, but a plain running sum would stay at 1.
        let mut x = vec![1e-16; 1 << 20];
        x[0] = 1.0;
        let exact = 1.0 + 1e-16 * ((1 << 20) - 1) as f64;
        assert!((pairwise_sum(&x) - exact).abs() < 1e-14);
        let mut sum = CompensatedSum::default();
        sum.extend(x);
        assert!((sum.value() - exact).abs() < 3e-16);
        let mut cancelling = CompensatedSum::default();
        cancelling.extend([1e100, 1.0, -1e100]);
        assert_eq!(cancelling.value(), 1.0);
        let mut infinite = CompensatedSum::default();
        infinite.extend([1.0, f64::INFINITY, 2.0]);
        assert_eq!(infinite.value(), f64::INFINITY);
    }

    /// Locations and scales are powers of two, so that the numbers and their moments can be represented exactly.
    #[test]
    fn moments_at_all_locations_and_scales() {
        let steps: Vec<f64> = (0..1024)
            .map(|i| f64::from((i * 37) % 101) - 50.0)
            .collect();
        let weights: Vec<f64> = (0..1024).map(|i| f64::from(1 + i % 7) / 3.0).collect();
        let plain = Moments::of(&steps);
        let (mean, variance) = weighted_moments(&steps, &weights);
        assert!((mean + 0.0).abs() < 1.0 && (variance / plain.variance() - 1.0).abs() < 0.05);
        for location in -40..=40 {
            for scale in (-40..=40).filter(|scale| location - scale <= 45) {
                let (a, s) = (2f64.powi(location), 2f64.powi(scale));
                let x: Vec<f64> = steps.iter().map(|k| a + s * k).collect();
                let found = Moments::of(&x);
                let (weighted, spread) = weighted_moments(&x, &weights);
                for (mean, expected) in [
                    (found.mean(), a + s * plain.mean()),
                    (weighted, a + s * mean),
                ] {
                    let near = 1e-12 * s + 2.0 * f64::EPSILON * expected.abs();
                    assert!((mean - expected).abs() <= near, "2^{location}, 2^{scale}");
                }
                for (squares, expected) in
                    [(found.variance(), plain.variance()), (spread, variance)]
                {
                    let off = squares / (s * s * expected) - 1.0;
                    assert!(off.abs() < 1e-12, "2^{location}, 2^{scale}: {off}");
                }
            }
        }
        let far = Moments::of(&[f64::INFINITY, 1.0]);
        assert!(far.mean().is_infinite() && far.variance().is_nan());
    }

    #[test]
    fn every_length_is_summed() {
        for n in 0..600usize {
            let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
            assert_eq!(pairwise_sum(&x), (n * n.saturating_sub(1) / 2) as f64);
        }
    }

    #[test]
    fn moments_agree_however_they_are_gathered() {
        let x: Vec<f64> = (0..1000).map(|i| 1e6 + ((i * 37) % 101) as f64).collect();
        let whole = Moments::of(&x);
        let mut parts = Moments::default();
        for piece in x.chunks(77) {
            let mut one = Moments::default();
            piece.iter().for_each(|&x| one.add(x));
            parts.merge(&one);
        }
        parts.merge(&Moments::default());
        assert_eq!(parts.count(), 1000);
        assert!((parts.mean() - whole.mean()).abs() < 1e-9);
        assert!((parts.variance() / whole.variance() - 1.0).abs() < 1e-10);
        let small = Moments::of(&[1.0, 2.0, 4.0, 5.0]);
        assert_eq!((small.mean(), small.variance()), (3.0, 10.0 / 3.0));
        assert!((small.standard_error() - (10.0f64 / 12.0).sqrt()).abs() < 1e-15);
        assert!(Moments::of(&[1.0]).variance().is_nan());
        assert!(Moments::of(&[]).standard_error().is_nan());
    }
}
