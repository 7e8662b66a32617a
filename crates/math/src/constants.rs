//! Logarithms of π, rounded once from the exact values. They replace expressions such as `(2.0 * PI).ln()`, which is
//! the logarithm of a rounded 2π and is too small by one unit in the last place.

/// The logarithm of π.
pub const LOG_PI: f64 = 1.144_729_885_849_400_2;

/// The logarithm of 2π.
pub const LOG_TWO_PI: f64 = 1.837_877_066_409_345_5;

/// Half the logarithm of 2π, which is the negative log density of the standard normal distribution at 0.
pub const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_agree_with_one_another_and_with_pi() {
        use std::f64::consts::PI;
        assert_eq!(LOG_TWO_PI, 2.0 * HALF_LOG_TWO_PI);
        assert!((LOG_TWO_PI - LOG_PI - std::f64::consts::LN_2).abs() < 3e-16);
        assert!((LOG_PI - PI.ln()).abs() < 3e-16);
    }
}
