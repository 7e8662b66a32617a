//! Basis functions of one column. A basis estimates its state from the data, and can then be evaluated at arbitrary
//! values.

mod linear;
mod polynomial;
mod spline;

pub use linear::{eigen, inverse};
pub use polynomial::Polynomial;
pub use spline::{Cubic, Spline, hazards};

/// Returns a quantile of sorted numbers by R's rule 7, which interpolates linearly between order statistics.
pub fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let (low, share) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + share * (sorted[high] - sorted[low])
}

/// Returns the mean of the numbers.
pub fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// Returns the standard deviation with divisor n − 1. For a single value the result is 0.
pub fn sd(x: &[f64]) -> f64 {
    let m = mean(x);
    let squares: f64 = x.iter().map(|x| (x - m).powi(2)).sum();
    (squares / (x.len().max(2) - 1) as f64).sqrt()
}

/// Returns the standard deviation of a column, or 1 if the column is constant.
pub fn spread(x: &[f64]) -> f64 {
    match sd(x) {
        0.0 => 1.0,
        sd => sd,
    }
}
