//! Tests that compare Pareto smoothing with stored values from ArviZ (`tests/data/psis.json` describes their origin).

use jensen_blackbox::{
    Agreement, NoiseSource, importance_weighted_bound, psis, resample, summarize, tail_index,
};
use jensen_math::simd::Simd;
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn agrees_with_arviz() {
    let text = include_str!("../data/psis.json");
    let stored: Value = serde_json::from_str(text).unwrap();
    let cases = stored["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 8);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let raw = numbers(&case["log_weights"]);
        let expected = numbers(&case["smoothed"]);
        let smoothed = psis(&raw, case["relative_efficiency"].as_f64().unwrap());
        match case["khat"].as_f64() {
            Some(k) => assert!(
                (smoothed.khat - k).abs() < 1e-10,
                "{name}: {}",
                smoothed.khat
            ),
            None => assert_eq!(smoothed.khat, f64::INFINITY, "{name}"),
        }
        // If raw weights are equal, their smoothed values may be assigned in any order.
        let (mut ours, mut theirs) = (smoothed.log_weights.clone(), expected);
        if name == "ties" {
            ours.sort_by(f64::total_cmp);
            theirs.sort_by(f64::total_cmp);
        }
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()), "{name}: {a} {b}");
        }
    }
}

#[test]
fn infinite_and_undefined_weights_are_no_weights() {
    let weights = [0.0, f64::NEG_INFINITY, f64::NAN, 1.0];
    let smoothed = psis(&weights, 1.0);
    assert_eq!(smoothed.log_weights[1], f64::NEG_INFINITY);
    assert_eq!(smoothed.log_weights[2], f64::NEG_INFINITY);
    let total: f64 = smoothed.log_weights.iter().map(|w| w.exp()).sum();
    assert!((total - 1.0).abs() < 1e-15);
    assert_eq!(psis(&[f64::NAN; 9], 1.0).khat, f64::INFINITY);
    assert_eq!(psis(&[], 1.0).log_weights, Vec::<f64>::new());
}

#[test]
fn an_evaluation_counts_what_is_not_finite() {
    let weights = [1.0, 2.0, f64::NAN, 3.0, f64::NEG_INFINITY];
    let evaluation = summarize(&weights, Agreement::UNKNOWN);
    assert_eq!((evaluation.rejected, evaluation.impossible), (1, 1));
    // The ELBO is that of the approximation inside the support. A quarter of the valid draws were outside the support.
    assert!((evaluation.elbo.mean - (2.0 + 0.75_f64.ln())).abs() < 1e-14);
    assert!(evaluation.is_holey());
    let constant = summarize(&[-3.5; 100], Agreement::UNKNOWN);
    assert_eq!(constant.khat, 0.0);
    assert_eq!(constant.elbo.mean, -3.5);
    assert!((constant.importance_bound.mean + 3.5).abs() < 1e-14);
}

#[test]
fn importance_bounds_tighten_with_the_group() {
    let weights: Vec<f64> = (0..600)
        .map(|i| f64::from(i * 7919 % 601) / 100.0)
        .collect();
    let bounds: Vec<f64> = [1, 4, 20, 600]
        .map(|k| importance_weighted_bound(&weights, k).mean)
        .into();
    let mean = weights.iter().sum::<f64>() / 600.0;
    assert!((bounds[0] - mean).abs() < 1e-12);
    assert!(bounds.windows(2).all(|w| w[1] > w[0]), "{bounds:?}");
    assert!(
        (bounds[3]
            - summarize(&weights, Agreement::UNKNOWN)
                .importance_bound
                .mean)
            .abs()
            < 1e-12
    );
}

/// The log weights differ by thousands of nats, so the products of eight factors in the fit are outside the range of
/// floating-point numbers.
#[test]
fn weights_beyond_the_range_of_numbers_have_a_heavy_tail() {
    for size in [1.0, 100.0, 300.0, 1e3, 1e5, 1e9] {
        let normal = |i: usize| jensen_math::special::inv_phi((i as f64 + 0.5) / 1000.0);
        let log_weights: Vec<f64> = (0..1000).map(|i| size * normal(i)).collect();
        let found = psis(&log_weights, 1.0);
        assert!(
            !found.khat.is_nan() && (size == 1.0 || found.khat > 1.0),
            "{size}: {}",
            found.khat
        );
        assert!(found.log_weights.iter().all(|w| !w.is_nan()));
    }
}

#[test]
fn resampling_follows_the_weights_and_extends() {
    let weights: Vec<f64> = [0.5f64, 0.0, 0.3, 0.2].map(f64::ln).into();
    let source = NoiseSource::new(4, Simd::detect());
    let many = resample(&weights, 20_000, source);
    assert_eq!(resample(&weights, 50, source), many[..50]);
    let count = |i: usize| many.iter().filter(|&&j| j == i).count() as f64 / 20_000.0;
    assert_eq!(count(1), 0.0);
    for (i, expected) in [(0, 0.5), (2, 0.3), (3, 0.2)] {
        assert!((count(i) - expected).abs() < 0.015, "{i}: {}", count(i));
    }
}

/// The expected values were computed by the same fit in Python (scipy and the formulas of `gpdfit` in the R package
/// posterior), from quantiles of distributions.
#[test]
fn tails_of_draws_have_the_index_of_their_distribution() {
    let quantiles = |f: &dyn Fn(f64) -> f64| -> Vec<f64> {
        (0..2000)
            .map(|i| f((f64::from(i) + 0.5) / 2000.0))
            .collect()
    };
    for (k, expected) in [
        (0.3, 0.317_129_242_31),
        (0.8, 0.769_033_442_24),
        (1.2, 1.130_549_144_09),
    ] {
        let mut draws = quantiles(&|u| (1.0 - u).powf(-k));
        let found = tail_index(&draws, 1.0).unwrap();
        assert!((found - expected).abs() < 1e-8, "{k}: {found}");
        // The index is that of the heavier tail, and does not depend on order, location or unit.
        draws.iter_mut().for_each(|x| *x = 3.0 - 1e200 * *x);
        draws.rotate_left(700);
        assert!((tail_index(&draws, 1.0).unwrap() - expected).abs() < 1e-8);
    }
    let cauchy = quantiles(&|u| (std::f64::consts::PI * (u - 0.5)).tan());
    let of = |efficiency| tail_index(&cauchy, efficiency).unwrap();
    assert!((of(1.0) - 0.945_211_594_72).abs() < 1e-8, "{}", of(1.0));
    assert!((of(0.25) - 0.954_897_348_89).abs() < 1e-8, "{}", of(0.25));
    // A uniform distribution ends at its bounds, and a distribution of zeros and ones has no tail.
    assert!(tail_index(&quantiles(&|u| u), 1.0).unwrap() < -0.5);
    assert_eq!(tail_index(&quantiles(&|u| (2.0 * u).floor()), 1.0), None);
    // Counts have many ties. The tail of geometric numbers is exponential, with index 0.
    let geometric = quantiles(&|u| (-(1.0 - u).ln() / 0.3).floor());
    assert!(tail_index(&geometric, 1.0).unwrap().abs() < 0.2);
    assert_eq!(tail_index(&[1.0, 2.0, f64::INFINITY], 1.0), None);
    assert_eq!(tail_index(&[1.0, 2.0, 3.0], 1.0), None);
    assert_eq!(tail_index(&[], 1.0), None);
}

#[test]
fn weights_of_all_sizes_have_a_tail_index() {
    for spread in [1e-3, 0.1, 1.0, 30.0] {
        let wide: Vec<f64> = (0..4096).map(|i| -f64::from(i) * spread).collect();
        let khat = psis(&wide, 1.0).khat;
        assert!(!khat.is_nan(), "{spread}");
        assert!(spread < 1.0 || khat > 0.7, "{spread}: {khat}");
    }
}
