//! Summaries of draws by their mean, standard deviation and quantiles.

use jensen_math::order::quantile;
use serde::{Deserialize, Serialize};

use crate::reduce::mean_se;

/// A summary of the marginal posterior of a quantity, computed from its draws. All values are NaN if any draw is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The mean of the draws.
    pub mean: f64,
    /// The standard deviation of the draws, with the divisor n − 1.
    pub sd: f64,
    /// The 5 % quantile.
    pub q05: f64,
    /// The median.
    pub q50: f64,
    /// The 95 % quantile.
    pub q95: f64,
}

impl Summary {
    /// Returns the summary of draws, which may be in any order.
    pub fn of(draws: &[f64]) -> Self {
        let (mean, se) = mean_se(draws);
        let mut sorted = draws.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |p| {
            if mean.is_nan() {
                f64::NAN
            } else {
                quantile(&sorted, p)
            }
        };
        Self {
            mean,
            sd: se * (draws.len() as f64).sqrt(),
            q05: at(0.05),
            q50: at(0.5),
            q95: at(0.95),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_numpy() {
        // The expected values are numpy.quantile([1, 2, 4, 8, 16], [0.05, 0.5, 0.95]) and numpy.std(ddof=1).
        let summary = Summary::of(&[16.0, 1.0, 8.0, 2.0, 4.0]);
        assert!((summary.q05 - 1.2).abs() < 1e-15);
        assert_eq!(summary.q50, 4.0);
        assert!((summary.q95 - 14.4).abs() < 1e-14);
        assert_eq!(summary.mean, 6.2);
        assert!((summary.sd - 6.099180272790763).abs() < 1e-14);
    }

    #[test]
    fn undefined_draws_have_no_summary() {
        assert!(Summary::of(&[1.0, f64::NAN]).q50.is_nan());
    }
}
