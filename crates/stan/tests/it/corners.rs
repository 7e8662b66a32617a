//! Tests small programs that use corners of the language against reference values and reference gradients.
//!
//! `reference/corners.json` contains the programs, and `reference/make_corners.py` computed the reference values.

use crate::support::agreement::{Outcome, compare};
use crate::support::{bind, error, numbers};
use jensen_density::{Lanes, LanesMut, LogDensity};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::lower::{LowerOptions, lower};
use serde_json::Value;

const TOLERANCE: f64 = 1e-8;

fn check(corner: &Value) -> Result<(), String> {
    let source = corner["source"].as_str().expect("a program");
    let data = corner["data"].to_string();
    let model = bind(source, &data).map_err(|e| format!("{e:?}"))?;
    let lowered = lower(&model, LowerOptions::default()).map_err(|e| format!("{e:?}"))?;
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let mut workspace = density.workspace(1);
    for case in corner["cases"].as_array().expect("cases") {
        let point = numbers(&case["point"]);
        let expected = case["value"].as_f64().expect("a value");
        let interpreted = model
            .log_density(&point, true, false)
            .map_err(|e| model.locate(&e))?;
        let (mut value, mut gradient) = ([0.0], vec![0.0; point.len()]);
        density.value_grad(
            &mut workspace,
            Lanes::new(&point, point.len(), 1),
            &mut value,
            LanesMut::new(&mut gradient, point.len(), 1),
        );
        // Stan approximates the derivatives of its normal distribution functions to fewer than eight digits.
        let rough = corner["gradient_tolerance"].as_f64().unwrap_or(TOLERANCE);
        let slopes = gradient.iter().zip(numbers(&case["gradient"]));
        let pairs = [
            ("interpreter", interpreted, expected, TOLERANCE),
            ("value", value[0], expected, TOLERANCE),
        ]
        .into_iter()
        .chain(slopes.map(|(found, expected)| ("gradient", *found, expected, rough)));
        for (what, found, expected, tolerance) in pairs {
            let gap = error(found, expected);
            if gap.is_nan() || gap > tolerance {
                return Err(format!(
                    "{what} {found} instead of {expected} at {point:?}: {gradient:?}"
                ));
            }
        }
    }
    for seed in 0..4 {
        let outcome = compare(source, &data, seed)?;
        if outcome != Outcome::Agreed {
            return Err(format!("not compared: {outcome:?}"));
        }
    }
    Ok(())
}

#[test]
fn reference_values() {
    let text = include_str!("../reference/corners.json");
    let corners: Value = serde_json::from_str(text).expect("JSON");
    let mut problems = Vec::new();
    for corner in corners.as_array().expect("a list") {
        if let Err(problem) = check(corner) {
            problems.push(format!("{}: {problem}", corner["name"]));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn lowered_value(source: &str, at: &[f64]) -> f64 {
    let model = bind(source, "{}").unwrap_or_else(|e| panic!("{source}: {e:?}"));
    let lowered = lower(&model, LowerOptions::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let mut value = [0.0];
    density.value(
        &mut density.workspace(1),
        Lanes::new(at, at.len(), 1),
        &mut value,
    );
    value[0]
}

#[test]
fn negative_binomial_counts_of_any_precision_come_to_poisson_ones() {
    let source = |density: &str| {
        format!(
            "transformed data {{ array[6] int y = {{0, 3, 10, 150, 0, 22}}; vector[6] x = [0, 1, 2, 5, -1, 3]'; }}\n\
             parameters {{ real a; real log_phi; }}\nmodel {{ target += {density}; }}"
        )
    };
    let counts = source("neg_binomial_2_log_lpmf(y | a + x, exp(log_phi))");
    let poisson = lowered_value(&source("poisson_log_lpmf(y | a + x)"), &[0.1, 0.0]);
    for log_phi in [30.0, 35.0, 40.0, 50.0, 145.0] {
        let value = lowered_value(&counts, &[0.1, log_phi]);
        assert!(error(value, poisson) < 1e-9, "{log_phi}: {value} {poisson}");
    }
}

/// Parts of a density that are −∞, and probabilities that are zero, must have no derivative that makes second
/// derivatives NaN. The test compares second derivatives with finite differences.
#[test]
fn empty_tails_and_impossible_outcomes_leave_derivatives_finite() {
    let programs = [
        "parameters { real<lower=0> mu; real<lower=0> phi; } model { 3 ~ neg_binomial_2(mu, phi) T[0, 50]; }",
        "parameters { real<lower=0> rate; } model { 3 ~ poisson(rate) T[0, 9]; 2 ~ poisson(rate) T[1, ]; }",
        "parameters { real<lower=0, upper=1> p; } model { 3 ~ binomial(9, p) T[0, 5]; 4 ~ binomial(9, p) T[1, ]; }",
        "parameters { real mu; real<lower=0> s; } model { 1.5 ~ lognormal(mu, s) T[0, 20]; 0.5 ~ exponential(s) T[0, 3]; }",
        "parameters { simplex[2] a; simplex[2] p; } model { vector[2] lp = log(p);
           lp[1] += multinomial_lpmf({1, 2, 1} | [a[1], a[2], 0]'); lp[2] += multinomial_lpmf({1, 2, 1} | [0.2, 0.5, 0.3]');
           target += log_sum_exp(lp); }",
    ];
    for source in programs {
        for seed in 0..4 {
            assert_eq!(compare(source, "{}", seed), Ok(Outcome::Agreed), "{source}");
        }
    }
}

/// A Dirichlet-multinomial density with almost certain proportions must equal a multinomial density in every form.
#[test]
fn large_sizes_of_a_dirichlet_leave_digits() {
    let by_hand = "functions { real dirmult(array[] int y, vector alpha) { real a = sum(alpha);
          return lgamma(a) - lgamma(a + sum(y)) + sum(lgamma(to_vector(y) + alpha) - lgamma(alpha)); } }
        parameters { real x; } model { target += dirmult({3, 0, 2}, exp(x) * [0.2, 0.3, 0.5]'); }";
    let built_in = "parameters { real x; } model { target += dirichlet_multinomial_lpmf({3, 0, 2} | exp(x) * [0.2, 0.3, 0.5]')
          - lgamma(6) + lgamma(4) + lgamma(3); }";
    let multinomial = 3.0 * 0.2_f64.ln() + 2.0 * 0.5_f64.ln();
    for source in [by_hand, built_in] {
        for x in [40.0, 60.0, 200.0] {
            let found = lowered_value(source, &[x]);
            assert!(
                (found - multinomial).abs() < 1e-9,
                "{found} at {x}: {source}"
            );
        }
    }
}
