//! Tests distribution functions and special functions of parameters against values, gradients and second derivatives
//! from an external oracle (`tails.py` and other scripts in `tools/oracle`). Also tests the conventions of these
//! functions outside the support.

use crate::support::{bind, numbers};
use jensen_density::{Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::lower::{LowerOptions, lower};
use serde_json::Value;

/// The tolerances of values, gradients and second derivatives, relative to the largest number of the same kind.
const TOLERANCE: [f64; 3] = [1e-11, 1e-9, 1e-8];

/// The output of each script, the smallest number of cases, and whether the interpreter has the same accuracy. The
/// interpreter does not have this accuracy in far tails.
const REFERENCES: &[(&str, usize, bool)] = &[
    (include_str!("../reference/tails.json"), 150, false),
    (include_str!("../reference/hypergeometric.json"), 40, true),
    (include_str!("../reference/decompositions.json"), 30, true),
    (include_str!("../reference/wiener.json"), 12, true),
];

fn derivatives(
    statement: &str,
    names: &[String],
    at: &[f64],
) -> (f64, Vec<f64>, Vec<Vec<f64>>, f64) {
    let declared: String = names.iter().map(|name| format!("real {name}; ")).collect();
    let source = format!("parameters {{ {declared} }}\nmodel {{ {statement} }}\n");
    let model = bind(&source, "{}").unwrap_or_else(|e| panic!("{statement}: {e}"));
    let lowered = lower(&model, LowerOptions::default());
    let lowered = lowered.unwrap_or_else(|e| panic!("{statement}: {e}"));
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let dim = at.len();
    let mut workspace = density.workspace(1);
    let (mut value, mut gradient) = ([0.0], vec![0.0; dim]);
    density.value_grad(
        &mut workspace,
        Lanes::new(at, dim, 1),
        &mut value,
        LanesMut::new(&mut gradient, dim, 1),
    );
    let rows = (0..dim).map(|i| {
        let mut unit = vec![0.0; dim];
        unit[i] = 1.0;
        let mut row = vec![0.0; dim];
        density.hvp(
            &mut workspace,
            Lanes::new(at, dim, 1),
            Lanes::new(&unit, dim, 1),
            LanesMut::new(&mut row, dim, 1),
        );
        row
    });
    // Outside the support the interpreter returns an error.
    let interpreted = model.log_density(at, true, false).unwrap_or(f64::NAN);
    (value[0], gradient, rows.collect(), interpreted)
}

#[test]
fn values_and_derivatives_of_the_oracle() {
    let mut failures = Vec::new();
    let cases = REFERENCES.iter().flat_map(|(text, least, both)| {
        let cases: Vec<Value> = serde_json::from_str(text).expect("JSON");
        assert!(cases.len() > *least, "the reference is there");
        cases.into_iter().map(move |case| (case, *both))
    });
    for (case, both) in cases {
        let statement = case["statement"].as_str().expect("text");
        let names: Vec<String> = serde_json::from_value(case["parameters"].clone()).expect("names");
        let at = numbers(&case["at"]);
        let (value, gradient, second, interpreted) = derivatives(statement, &names, &at);
        let expected = case["value"].as_f64().expect("a value");
        let rows = case["second"].as_array().expect("rows");
        let kinds = [
            (
                "value",
                vec![value, if both { interpreted } else { value }],
                vec![expected, expected],
            ),
            ("gradient", gradient, numbers(&case["gradient"])),
            (
                "second",
                second.concat(),
                rows.iter().flat_map(numbers).collect(),
            ),
        ];
        for ((kind, found, expected), tolerance) in kinds.into_iter().zip(TOLERANCE) {
            let scale = expected.iter().fold(1e-300, |m: f64, x| m.max(x.abs()));
            let worst = found
                .iter()
                .zip(&expected)
                .map(|(a, b)| (a - b).abs() / scale);
            let worst = worst.fold(0.0, |m: f64, e| match m.is_nan() || e.is_nan() {
                true => f64::NAN,
                false => m.max(e),
            });
            if worst.is_nan() || worst > tolerance {
                failures.push(format!(
                    "{statement} at {at:?}: {kind} {found:?} instead of {expected:?} ({worst:e})"
                ));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// A short range of nondecision times must have the same effect as the midpoint of the range, up to the square of the
/// range's length.
#[test]
fn short_ranges_of_nondecision_times() {
    let names: Vec<String> = (0..6).map(|i| format!("x{i}")).collect();
    let at = [0.9, 1.1, 0.2, 0.4, 0.6, 0.8];
    let functions = [
        "wiener_lpdf(x0 |",
        "wiener_lcdf_unnorm(x0,",
        "wiener_lccdf_unnorm(x0,",
    ];
    for function in functions {
        for range in [1e-8, 1e-10, 1e-12] {
            let of = |tau: String, range: f64| {
                let statement =
                    format!("target += {function} x1, {tau}, x3, x4, x5, 0, {range:e});");
                derivatives(&statement, &names, &at)
            };
            let (value, gradient, second, interpreted) = of("x2".to_owned(), range);
            let (expected, slope, curvature, _) = of(format!("x2 + {:e}", 0.5 * range), 0.0);
            let kinds = [
                (vec![value, interpreted], vec![expected, expected]),
                (gradient, slope),
                (second.concat(), curvature.concat()),
            ];
            for ((found, expected), tolerance) in kinds.into_iter().zip(TOLERANCE) {
                let scale = expected.iter().fold(0.0, |m: f64, x| m.max(x.abs()));
                for (x, y) in found.iter().zip(&expected) {
                    assert!(
                        (x - y).abs() <= tolerance * scale,
                        "{function}, {range:e}: {found:?} instead of {expected:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn outside_of_the_support() {
    let real = [
        ("gamma", -1.0, "1.5, 0.7"),
        ("gamma", 0.0, "1.5, 0.7"),
        ("inv_gamma", -1.0, "1.5, 0.7"),
        ("chi_square", -1.0, "1.5"),
        ("inv_chi_square", 0.0, "1.5"),
        ("scaled_inv_chi_square", -2.0, "1.5, 0.7"),
        ("beta", 0.0, "1.5, 0.7"),
        ("beta", -0.5, "1.5, 0.7"),
        ("beta_proportion", -0.5, "0.5, 0.7"),
        ("von_mises", -3.5, "0.5, 0.7"),
    ];
    let above = [
        ("beta", 1.5, "1.5, 0.7"),
        ("beta", 1.0, "1.5, 0.7"),
        ("von_mises", 3.5, "0.5, 2"),
    ];
    let x = ["x".to_owned()];
    for (none, all, cases) in [("lcdf", "lccdf", &real[..]), ("lccdf", "lcdf", &above[..])] {
        for (name, at, rest) in cases {
            let of = |suffix: &str| {
                derivatives(
                    &format!("target += {name}_{suffix}(x | {rest});"),
                    &x,
                    &[*at],
                )
            };
            let (value, ..) = of(none);
            assert!(value == f64::NEG_INFINITY, "{name}_{none} at {at}: {value}");
            let (value, gradient, second, _) = of(all);
            assert!(
                value == 0.0 && gradient == [0.0] && second[0] == [0.0],
                "{name}_{all} at {at}: {value} {gradient:?} {second:?}"
            );
        }
    }
    for (call, expected) in [
        ("poisson_lcdf(-1 | exp(x))", f64::NEG_INFINITY),
        ("poisson_lccdf(-1 | exp(x))", 0.0),
        ("binomial_lcdf(5 | 4, inv_logit(x))", 0.0),
        ("binomial_lccdf(4 | 4, inv_logit(x))", f64::NEG_INFINITY),
        ("binomial_lcdf(-1 | 4, inv_logit(x))", f64::NEG_INFINITY),
        ("beta_binomial_lccdf(4 | 4, exp(x), 2)", f64::NEG_INFINITY),
        ("beta_binomial_lcdf(7 | 4, exp(x), 2)", 0.0),
        ("neg_binomial_lccdf(-3 | exp(x), 2)", 0.0),
        ("yule_simon_lcdf(0 | exp(x))", f64::NEG_INFINITY),
    ] {
        let (value, gradient, ..) = derivatives(&format!("target += {call};"), &x, &[0.3]);
        assert!(value == expected, "{call}: {value}");
        assert!(value != 0.0 || gradient == [0.0], "{call}: {gradient:?}");
    }
}
