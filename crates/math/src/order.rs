//! Order statistics.

/// Returns the quantile of ascending numbers by linear interpolation at `(n − 1) p`. This is type 7 of Hyndman and Fan
/// (1996), the default in R and NumPy. The level p is clamped to [0, 1]. Returns NaN if there are no numbers.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = last as f64 * p.clamp(0.0, 1.0);
    let below = position.floor() as usize;
    let fraction = position - below as f64;
    if fraction == 0.0 {
        return sorted[below];
    }
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    let step = high - low;
    if low == high {
        low
    } else if step.is_finite() {
        low + fraction * step
    } else {
        // The difference of two large numbers can overflow, but their weighted mean cannot.
        low * (1.0 - fraction) + high * fraction
    }
}

/// Returns the quantiles of unsorted numbers at ascending levels, defined as in [`quantile`]. The function reorders the
/// numbers.
pub fn quantiles<const N: usize>(numbers: &mut [f64], levels: [f64; N]) -> [f64; N] {
    let last = numbers.len().saturating_sub(1);
    let mut placed = 0;
    for p in levels {
        let below = (last as f64 * p.clamp(0.0, 1.0)).floor() as usize;
        for at in [below, below + 1] {
            if (placed..numbers.len()).contains(&at) {
                numbers[placed..].select_nth_unstable_by(at - placed, f64::total_cmp);
                placed = at + 1;
            }
        }
    }
    levels.map(|p| quantile(numbers, p))
}

/// Returns the median. For an even number of elements, the median is the mean of the two middle elements. The median of
/// an empty slice is NaN.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_numbers_in_any_order_are_those_of_sorted_ones() {
        for n in [0, 1, 2, 3, 5, 40, 1000] {
            let mut numbers: Vec<f64> = (0..n).map(|i| f64::from(i * 7919 % 1013)).collect();
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            let levels = [0.0, 0.05, 0.05, 0.5, 0.501, 0.95, 1.0];
            let found = quantiles(&mut numbers, levels);
            for (found, p) in found.into_iter().zip(levels) {
                assert_eq!(found.to_bits(), quantile(&sorted, p).to_bits(), "{n}, {p}");
            }
        }
    }

    #[test]
    fn quantiles_agree_with_numpy() {
        // The expected values are from numpy.quantile([1, 2, 4, 8, 16], [0.05, 0.5, 0.95]).
        let sorted = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert!((quantile(&sorted, 0.05) - 1.2).abs() < 1e-15);
        assert_eq!(quantile(&sorted, 0.5), 4.0);
        assert!((quantile(&sorted, 0.95) - 14.4).abs() < 1e-14);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn infinite_and_huge_numbers_have_quantiles() {
        assert_eq!(quantile(&[f64::NEG_INFINITY, 0.0, 1.0], 0.5), 0.0);
        assert_eq!(quantile(&[f64::INFINITY; 2], 0.3), f64::INFINITY);
        assert_eq!(quantile(&[f64::NEG_INFINITY, 1.0], 0.3), f64::NEG_INFINITY);
        assert_eq!(quantile(&[-1e308, 1e308], 0.5), 0.0);
    }

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
