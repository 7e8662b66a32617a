//! Compares distribution functions of observations with densities, and their averages over a linear predictor with
//! quadrature.

use jensen_latent::{Likelihood, Predictive, Response, Size};
use jensen_math::constants::LOG_TWO_PI;

fn all() -> impl Iterator<Item = Likelihood> {
    Likelihood::all().filter(|l| l.has_quantiles())
}

fn usual_size(likelihood: Likelihood) -> f64 {
    match likelihood.sized_by() {
        Size::One | Size::Event | Size::Until => 1.0,
        Size::Exposure => 2.0,
        Size::Trials => 7.0,
        Size::Sd => 0.6,
    }
}

#[test]
fn distributions_are_sums_of_densities() {
    for likelihood in all() {
        for eta in [-1.3, 0.4, 1.1] {
            let size = usual_size(likelihood);
            let size_at = |y: f64| match likelihood.sized_by() {
                Size::Until => y,
                _ => size,
            };
            let p = |y: f64| likelihood.log_density(eta, y, size_at(y)).exp();
            let f = |y: f64| likelihood.distribution(eta, y, size);
            match likelihood.response() {
                Response::Count | Response::Trials | Response::Level => {
                    let mut sum = 0.0;
                    for y in 0..=7 {
                        sum += p(f64::from(y));
                        let found = f(f64::from(y) + 0.3);
                        assert!(
                            (found - sum).abs() < 1e-12,
                            "{likelihood} {y}: {found} {sum}"
                        );
                    }
                    assert_eq!(f(-0.5), 0.0);
                }
                response => {
                    let inside = [0.2, 0.9, 3.0].into_iter();
                    for y in inside.filter(|y| response != Response::Share || *y < 1.0) {
                        let h = 1e-4;
                        let slope = (f(y + h) - f(y - h)) / (2.0 * h);
                        assert!(
                            (slope - p(y)).abs() < 1e-6,
                            "{likelihood} {y}: {slope} {}",
                            p(y)
                        );
                    }
                    assert!(f(1e9) > 1.0 - 1e-6 && f(-1e9) < 1e-6, "{likelihood}");
                }
            }
        }
    }
}

/// Compares predictive distributions with a fine midpoint rule, for small and large variances and for steep counts.
#[test]
fn predictive_distributions_are_averages() {
    for likelihood in all() {
        for (mean, sd, size) in [(0.3, 0.4, 7.0), (-0.5, 2.0, 7.0), (0.2, 0.3, 40_000.0)] {
            let size = match likelihood.sized_by() {
                Size::One | Size::Event | Size::Until => 1.0,
                _ => size,
            };
            let predictive = Predictive::new(likelihood, mean, sd, size);
            for p in [0.05, 0.5, 0.95] {
                let y = predictive.quantile(p);
                let points = 4000;
                let step = 14.0 / f64::from(points);
                let brute: f64 = (0..points)
                    .map(|i| {
                        let z = -7.0 + step * (f64::from(i) + 0.5);
                        let weight = step * (-0.5 * (z * z + LOG_TWO_PI)).exp();
                        weight * likelihood.distribution(mean + sd * z, y, size)
                    })
                    .sum();
                let found = predictive.distribution(y);
                assert!(
                    (found - brute).abs() < 1e-6,
                    "{likelihood} {mean} {sd} {size}: {found} {brute}"
                );
                match likelihood.response() {
                    Response::Count | Response::Trials | Response::Level => {
                        assert!(found >= p && predictive.distribution(y - 1.0) < p);
                    }
                    Response::NonNegative if y == 0.0 => assert!(found >= p),
                    _ => assert!((found - p).abs() < 1e-7, "{likelihood} {found} {p}"),
                }
            }
        }
    }
}

/// A fit that diverged may have predictors whose exponentials overflow. Its predictions are not numbers, but no panic.
#[test]
fn predictors_beyond_all_numbers_have_no_quantiles() {
    for (mean, sd) in [
        (800.0, 1.0),
        (0.0, 1e200),
        (f64::INFINITY, 1.0),
        (0.0, f64::INFINITY),
    ] {
        for likelihood in [Likelihood::poisson(), Likelihood::hurdle_poisson(1.0)] {
            let own = Predictive::new(likelihood, mean, sd, 1.0);
            let _ = own.quantile(0.05);
        }
    }
}
