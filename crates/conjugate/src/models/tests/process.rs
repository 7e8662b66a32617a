//! Tests of mixtures whose weights come from a Dirichlet process.

use jensen_math::special::lgamma;

use super::shapes::assigned;
use super::*;

const ROWS: usize = 6;
const K: usize = 3;
const ALPHA: f64 = 0.7;

fn binary() -> Vec<bool> {
    let rows = [[1, 1], [1, 0], [0, 0], [1, 1], [0, 0], [0, 1]];
    rows.iter().flatten().map(|x| *x == 1).collect()
}

fn small() -> Mixture<Bernoullis> {
    Mixture::with_mixing(Bernoullis::new(2, binary()), K, Mixing::Process(ALPHA))
}

fn log_beta(a: f64, b: f64) -> f64 {
    lgamma(a) + lgamma(b) - lgamma(a + b)
}

/// Computes log p(x, z) from the marginal distributions of sticks and of binary values.
fn joint(of: impl Fn(usize) -> usize) -> f64 {
    let count = |k: usize| (0..ROWS).filter(|row| of(*row) == k).count() as f64;
    let data = binary();
    let mut total = 0.0;
    for k in 0..K {
        if k + 1 < K {
            let after: f64 = (k + 1..K).map(count).sum();
            total += log_beta(1.0 + count(k), ALPHA + after) - log_beta(1.0, ALPHA);
        }
        for column in 0..2 {
            let own = (0..ROWS).filter(|row| of(*row) == k);
            let ones = own.filter(|row| data[2 * row + column]).count() as f64;
            total += log_beta(0.5 + ones, 0.5 + count(k) - ones) - log_beta(0.5, 0.5);
        }
    }
    total
}

fn digit(code: usize, row: usize) -> usize {
    code / K.pow(row as u32) % K
}

#[test]
fn the_bound_of_a_process_is_exact_for_assigned_points_and_below_the_evidence() {
    let model = small();
    let all = K.pow(ROWS as u32);
    for code in (0..all).step_by(17) {
        let (found, exact) = (
            assigned(&model, |row| digit(code, row)),
            joint(|row| digit(code, row)),
        );
        assert!((found - exact).abs() < 1e-10, "{found} {exact}");
    }
    let logs: Vec<f64> = (0..all).map(|code| joint(|row| digit(code, row))).collect();
    let evidence = log_sum_exp_slice(&logs);
    let best = (0..5)
        .map(|seed| ended(&model, Temper::None, batch(), seed).0)
        .fold(f64::NEG_INFINITY, f64::max);
    assert!(
        best < evidence && best > evidence - 3.0,
        "{best} {evidence}"
    );
    // The plain model within this model puts all points in the first component.
    let within = model.plain().unwrap().within;
    assert!((within - joint(|_| 0)).abs() < 1e-10);
}

#[test]
fn sticks_are_in_descending_order_and_the_bound_never_falls() {
    for covariance in [Covariance::Full, Covariance::Tied] {
        let gaussians = Gaussians::new(covariance, 2, plane(80));
        let model = Mixture::with_mixing(gaussians, 6, Mixing::Process(1.0));
        monotone(&model);
        let lambda = trace(&model, &settings(Temper::None, batch())).1;
        let counts = model.counts(&lambda);
        assert!(counts.is_sorted_by(|a, b| *a >= b - 1e-9), "{counts:?}");
        assert!((counts.iter().sum::<f64>() - 80.0).abs() < 1e-6);
        let weights: f64 = model.weights(&lambda).iter().sum();
        assert!((weights - 1.0).abs() < 1e-12);
    }
}
