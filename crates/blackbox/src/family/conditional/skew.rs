//! The skewness of local parameters, represented by a map of their noise.
//!
//! The function `h(ε) = (e^(gε) − e^(g²/2)) / g` maps standard normal noise to a shifted lognormal variable with mean
//! zero, and converges to ε for g → 0. Its variance is `e^(g²) (e^(g²) − 1) / g²`. Its skewness is `(e^(g²) + 2)
//! √(e^(g²) − 1)`, which is about 3g. A conditional distribution in a generalised linear model is often skewed. A
//! shifted lognormal with the same skewness also has nearly the same kurtosis. For example, if the skewness is 3g, the
//! excess kurtosis is 16 g² for a shifted lognormal and 18 g² for a log gamma. Adding one number per local parameter to
//! a Gaussian therefore removes most of its divergence from the posterior. The logarithm of the slope of h is gε, which
//! has mean zero, so the entropy does not depend on g.

use jensen_math::vmath as vm;

use crate::family::globals::{load, store};
use crate::family::rows::{LaneRow, Rows};
use crate::sizes::WIDTH;

/// If |g| is below this value, power series replace the quotients, because their numerators would cancel. Just above
/// this value, the quotients and their first derivatives with respect to g have 13 correct digits, and their second
/// derivatives have 11.
const SMALL: f64 = 1e-3;

/// The limit that replaces [`SMALL`] for second derivatives, whose numerators cancel earlier.
const SMALL_IN_DERIVATIVES: f64 = 0.05;

/// The largest |g|, which corresponds to a skewness of 1.75. For longer tails, quadrature with seven nodes is
/// inaccurate.
const LARGEST: f64 = 0.5;

pub(crate) fn variance(g: f64) -> f64 {
    let square = g * g;
    match square < 1e-8 {
        true => 1.0 + 1.5 * square,
        false => square.exp() * square.exp_m1() / square,
    }
}

/// Returns the g that yields the given skewness, limited to [`LARGEST`] in absolute value.
pub(crate) fn of_skewness(skewness: f64) -> f64 {
    let of = |g: f64| ((g * g).exp() + 2.0) * (g * g).exp_m1().sqrt();
    let size = skewness.abs();
    if size.is_nan() {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, LARGEST);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        match of(middle) < size {
            true => low = middle,
            false => high = middle,
        }
    }
    (0.5 * (low + high)).copysign(skewness)
}

/// Computes `h(ε)` and its slope `e^(gε)` for the rows of noise from `from` on.
pub(super) fn skewed(
    skews: &[f64],
    (noise, from): (Rows<'_>, usize),
    values: &mut [LaneRow],
    slopes: &mut [LaneRow],
) {
    skew_kernel(
        jensen_math::simd::Simd::detect(),
        skews,
        noise,
        from,
        values,
        slopes,
    );
}

jensen_math::simd_fn! {
    fn skew_kernel, skew_kernel_fn = <V>(skews: &[f64], noise: Rows<'_>, from: usize, values: &mut [LaneRow], slopes: &mut [LaneRow]) {
        for (j, g) in skews.iter().enumerate() {
            let e = load::<V>(noise.row(from + j));
            let (mut value, mut slope) = (e, e);
            let by = V::splat(*g);
            for slope in &mut slope {
                *slope = vm::exp(by * *slope);
            }
            if g.abs() < SMALL {
                // The series is Σ gᵏ⁻¹ εᵏ / k! minus its expectation. It is summed from the last term to the first.
                let terms = [g.powi(4) / 120.0, g.powi(3) / 24.0, g * g / 6.0, 0.5 * g, 1.0];
                let middle = V::splat(0.5 * g + 0.125 * g.powi(3));
                for value in &mut value {
                    let e = *value;
                    let mut sum = V::splat(0.0);
                    for term in terms {
                        sum = sum * e + V::splat(term);
                    }
                    *value = sum * e - middle;
                }
            } else {
                let (middle, over) = (V::splat((0.5 * g * g).exp()), V::splat(1.0 / g));
                for (value, slope) in value.iter_mut().zip(&slope) {
                    *value = (*slope - middle) * over;
                }
            }
            store(value, &mut values[j]);
            store(slope, &mut slopes[j]);
        }
    }
}

pub(super) fn by_skew(g: f64, noise: &LaneRow, slope: &LaneRow) -> [LaneRow; 2] {
    let (mut first, mut second) = ([0.0; WIDTH], [0.0; WIDTH]);
    for l in 0..WIDTH {
        [first[l], second[l]] = by_skew_at(g, noise[l], slope[l]);
    }
    [first, second]
}

fn by_skew_at(g: f64, e: f64, slope: f64) -> [f64; 2] {
    let middle = (0.5 * g * g).exp();
    if g.abs() >= SMALL_IN_DERIVATIVES {
        let (value, moved) = (slope - middle, e * slope - g * middle);
        let curved = e * e * slope - (1.0 + g * g) * middle;
        return [
            (moved - value / g) / g,
            (curved - 2.0 * moved / g + 2.0 * value / (g * g)) / g,
        ];
    }
    // The series has the terms gᵏ⁻¹ (εᵏ − E εᵏ) / k!, where E εᵏ = (k − 1)!! for even k.
    let (mut power, mut factorial, mut moment) = (e, 1.0, 1.0);
    let (mut first, mut second) = (0.0, 0.0);
    for k in 2..=14 {
        power *= e;
        factorial *= f64::from(k);
        let mut centred = power;
        if k % 2 == 0 {
            moment *= f64::from(k - 1);
            centred -= moment;
        }
        let own = f64::from(k - 1) * centred / factorial;
        first += own * g.powi(k - 2);
        if k > 2 {
            second += f64::from(k - 2) * own * g.powi(k - 3);
        }
    }
    [first, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_and_quotients_agree_with_differences() {
        let noise: [f64; WIDTH] = std::array::from_fn(|l| (l as f64 - 15.5) / 4.0);
        let at = |g: f64| {
            let (mut values, mut slopes) = ([[0.0; WIDTH]], [[0.0; WIDTH]]);
            let rows = [noise];
            skewed(&[g], (Rows::all(&rows), 0), &mut values, &mut slopes);
            (values[0], slopes[0])
        };
        assert_eq!(at(0.0), (noise, [1.0; WIDTH]));
        for g in [
            -0.4, -0.051, -0.049, -1.1e-3, -0.9e-3, 1e-6, 0.9e-3, 0.049, 0.051, 0.3,
        ] {
            let (values, slopes) = at(g);
            let [first, second] = by_skew(g, &noise, &slopes);
            let h = 1e-3;
            let ((up, _), (down, _)) = (at(g + h), at(g - h));
            for l in 0..WIDTH {
                let exact = ((g * noise[l]).exp_m1() - (0.5 * g * g).exp_m1()) / g;
                assert!((values[l] - exact).abs() < 1e-11, "{g}");
                assert!((slopes[l] / (g * noise[l]).exp() - 1.0).abs() < 1e-14);
                let tolerance = 1e-5 * (1.0 + noise[l].powi(4));
                let found = [
                    (up[l] - down[l]) / (2.0 * h),
                    (up[l] - 2.0 * values[l] + down[l]) / (h * h),
                ];
                assert!((found[0] - first[l]).abs() < 0.1 * tolerance, "{g}");
                assert!(
                    (found[1] - second[l]).abs() < tolerance,
                    "{g}: {found:?} {}",
                    second[l]
                );
            }
        }
    }

    #[test]
    fn a_skewness_has_its_map() {
        for g in [-0.3_f64, -1e-3, 1e-9, 0.01, 0.45] {
            let skewness = ((g * g).exp() + 2.0) * f64::exp_m1(g * g).sqrt() * f64::signum(g);
            assert!((of_skewness(skewness) - g).abs() < 1e-12, "{g}");
        }
        assert_eq!(of_skewness(f64::NAN), 0.0);
        assert!((of_skewness(9.0) - LARGEST).abs() < 1e-12);
        assert!((variance(1e-5) - 1.0).abs() < 1e-9 && variance(0.3) > 1.1);
    }
}
