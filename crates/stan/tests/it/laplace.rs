//! Tests embedded Laplace approximations. Both evaluators are compared with an external oracle
//! (`tools/oracle/laplace.py`), and derivatives with finite differences. Also tests calls that must be rejected, and
//! draws of the latent variables.

use crate::support::{bind, error, numbers};
use jensen_density::{DrawKey, Lanes, LanesMut, LogDensity, TwiceDifferentiable};
use jensen_graph::{Execution, GraphDensity};
use jensen_stan::interpret::ErrorKind;
use jensen_stan::lower::{LowerError, LowerOptions, lower};
use serde_json::Value;

type Found = (f64, Vec<f64>, Vec<Vec<f64>>);

/// All lanes of the batch evaluate the same point.
fn derivatives(source: &str, at: &[f64]) -> Result<Found, LowerError> {
    let model = bind(source, "{}").unwrap_or_else(|e| panic!("{source}: {e}"));
    let lowered = lower(&model, LowerOptions::default())?;
    let density = GraphDensity::new(&lowered.graph, Execution::default());
    let dim = at.len();
    let mut workspace = density.workspace(1);
    let (mut value, mut gradient) = ([0.0], vec![0.0; dim]);
    let z = Lanes::new(at, dim, 1);
    let to = LanesMut::new(&mut gradient, dim, 1);
    density.value_grad(&mut workspace, z, &mut value, to);
    let rows = (0..dim).map(|i| {
        let mut unit = vec![0.0; dim];
        unit[i] = 1.0;
        let mut row = vec![0.0; dim];
        let direction = Lanes::new(&unit, dim, 1);
        density.hvp(
            &mut workspace,
            z,
            direction,
            LanesMut::new(&mut row, dim, 1),
        );
        row
    });
    let rows = rows.collect();
    Ok((value[0], gradient, rows))
}

fn found(source: &str, at: &[f64]) -> Found {
    derivatives(source, at).unwrap_or_else(|e| panic!("{source}: {e}"))
}

fn reference() -> (String, Vec<Value>) {
    let all: Value = serde_json::from_str(include_str!("../reference/laplace.json")).expect("JSON");
    let program = all["functions"].as_str().expect("a program").to_owned();
    (program, all["cases"].as_array().expect("cases").clone())
}

#[test]
fn both_evaluators_agree_with_the_oracle() {
    let (program, cases) = reference();
    assert_eq!(cases.len(), 20, "the reference is there");
    for case in &cases {
        let name = case["name"].as_str().expect("a name");
        let source = program.replace("CALL", case["call"].as_str().expect("a call"));
        let at = numbers(&case["point"]);
        let expected = case["value"].as_f64().expect("a value");
        let (value, gradient, second) = found(&source, &at);
        assert!(error(value, expected) < 1e-12, "{name}: {value} {expected}");
        for (a, b) in gradient.iter().zip(numbers(&case["gradient"])) {
            assert!(error(*a, b) < 1e-9, "{name}: {gradient:?} {case}");
        }
        let model = bind(&source, "{}").unwrap();
        let interpreted = model.log_density(&at, true, false).unwrap();
        assert!(
            error(interpreted, expected) < 1e-9,
            "{name}: {interpreted} {expected}"
        );
        for (i, row) in second.iter().enumerate() {
            let slopes = [1e-4, -1e-4].map(|h| {
                let mut moved = at.clone();
                moved[i] += h;
                found(&source, &moved).1
            });
            for ((a, up), down) in row.iter().zip(&slopes[0]).zip(&slopes[1]) {
                let slope = (up - down) / 2e-4;
                assert!(
                    (a - slope).abs() < 1e-5 * (1.0 + slope.abs()),
                    "{name}: {a} {slope}"
                );
            }
        }
    }
}

#[test]
fn what_is_data_changes_nothing() {
    let (program, _) = reference();
    let call = "laplace_marginal_poisson_log_lpmf(y | ix, rep_vector(e, 4), 1, K, (s, l, 4))";
    let at = [0.7, 2.0, 0.4];
    let (expected, gradient, _) = found(&program.replace("CALL", call), &at);
    // In the first case the covariance is data and the likelihood depends on parameters. In the second case it is the
    // reverse.
    for (of, others) in [(1, "s=0.7;l=2.0"), (2, "e=0.4")] {
        let mut source = program.replace("CALL", call);
        for other in others.split(';') {
            let (name, value) = other.split_once('=').unwrap();
            source = source.replace(&format!("real {name};"), "");
            source = source.replace(
                "transformed data {",
                &format!("transformed data {{ real {name} = {value};"),
            );
        }
        let z = if of == 1 { &at[2..] } else { &at[..2] };
        let (value, part, _) = found(&source, z);
        assert!(error(value, expected) < 1e-13, "{value} {expected}");
        let whole = if of == 1 {
            &gradient[2..]
        } else {
            &gradient[..2]
        };
        for (a, b) in part.iter().zip(whole) {
            assert!(error(*a, *b) < 1e-11, "{part:?} {gradient:?}");
        }
    }
}

#[test]
fn a_start_far_away_finds_the_same_mode() {
    let (program, _) = reference();
    let call = |start: &str| {
        let call = format!(
            "laplace_marginal_tol(counts, (e, y), 1, K, (s, l, 6), ({start}, 1e-8, 500, 1, 100, 1))"
        );
        found(&program.replace("CALL", &call), &[2.0, 1.0, 0.4])
    };
    let (value, gradient, _) = call("rep_vector(0, 6)");
    for start in [
        "rep_vector(9, 6)",
        "rep_vector(-30, 6)",
        "rep_vector(s * 3, 6)",
    ] {
        let (other, slopes, _) = call(start);
        assert!(error(other, value) < 1e-12, "{start}: {other} {value}");
        for (a, b) in slopes.iter().zip(&gradient) {
            assert!(error(*a, *b) < 1e-9, "{start}: {slopes:?} {gradient:?}");
        }
    }
}

fn smooth_counts(counts: &str, settings: &str) -> String {
    let call = match settings {
        "" => "laplace_marginal_poisson_log_lpmf(y | ix, rep_vector(0, 11), 1, K, (s, l))".into(),
        _ => format!(
            "laplace_marginal_tol_poisson_log_lpmf(y | ix, rep_vector(0, 11), 1, K, (s, l), ({settings}))"
        ),
    };
    format!(
        "functions {{ matrix K(real s, real l) {{ return add_diag(gp_exp_quad_cov(linspaced_array(11, -10, 10), s, l), 1e-8); }} }}\n\
         transformed data {{ array[11] int y = {{{counts}}}; array[11] int ix = linspaced_int_array(11, 1, 11); }}\n\
         parameters {{ real s; real l; }}\nmodel {{ target += {call}; }}"
    )
}

#[test]
fn large_counts_and_a_smooth_covariance_have_their_mode_found() {
    let counts = "1000000, 1100000, 1250000, 1400000, 1500000, 1450000, 1300000, 1150000, 1000000, 900000, 850000";
    let source = smooth_counts(counts, "");
    let all: Value = serde_json::from_str(include_str!("../reference/laplace.json")).expect("JSON");
    let cases = all["large"].as_array().expect("cases");
    assert_eq!(cases.len(), 3, "the reference is there");
    for case in cases {
        let (value, gradient, _) = found(&source, &numbers(&case["point"]));
        let expected = case["value"].as_f64().expect("a value");
        assert!(error(value, expected) < 1e-7, "{case}: {value}");
        for (a, b) in gradient.iter().zip(numbers(&case["gradient"])) {
            assert!(error(*a, b) < 1e-5, "{case}: {gradient:?}");
        }
    }
}

#[test]
fn no_start_keeps_the_mode_of_large_counts_from_being_found() {
    let counts = "40, 37, 29, 12, 4, 3, 9, 19, 77, 82, 33";
    let at = [2.0, 5.0];
    let (value, gradient, _) = found(&smooth_counts(counts, ""), &at);
    for start in ["-6", "-3", "-1", "3", "30"] {
        let settings = format!("rep_vector({start}, 11), 1e-6, 100, 1, 20, 1");
        let (other, slopes, _) = found(&smooth_counts(counts, &settings), &at);
        assert!(error(other, value) < 1e-11, "{start}: {other} {value}");
        for (a, b) in slopes.iter().zip(&gradient) {
            assert!(error(*a, *b) < 1e-8, "{start}: {slopes:?} {gradient:?}");
        }
    }
}

#[test]
fn infinite_arguments_stay_what_they_are() {
    let source = |factor: &str| {
        format!(
            "functions {{ real ll(vector theta, vector c) {{ return normal_lpdf(theta | c[1], 0.5) - 5 * theta[1] * {factor}; }}\n\
             matrix K(real s) {{ return diag_matrix(rep_vector(s, 2)); }} }}\n\
             parameters {{ real<lower=0> s; real e; }}\n\
             model {{ target += laplace_marginal(ll, (append_row([e]', [positive_infinity()]'),), 1, K, (s,)); }}"
        )
    };
    let at = [0.3, 0.8];
    let (with, without) = (found(&source("exp(-c[2])"), &at), found(&source("0"), &at));
    assert!(error(with.0, without.0) < 1e-13, "{} {}", with.0, without.0);
}

/// The call fails for every draw, and both evaluators must give the same message.
fn refused(call: &str) -> String {
    let (program, _) = reference();
    let source = program.replace("CALL", call);
    let at = [0.7, 2.0, 0.4];
    let model = bind(&source, "{}").unwrap_or_else(|e| panic!("{source}: {e}"));
    let interpreted = model.log_density(&at, true, false).unwrap_err();
    let lowered = lower(&model, LowerOptions::default()).unwrap_err();
    assert_eq!(interpreted.message, lowered.message);
    assert_eq!(interpreted.span, lowered.span);
    lowered.message
}

#[test]
fn arguments_out_of_their_domains_are_named() {
    let tuned = |settings: &str, block: u32| {
        refused(&format!(
            "laplace_marginal_tol(counts, (e, y), {block}, K, (s, l, 6), ({settings}))"
        ))
    };
    let start = "rep_vector(0, 6)";
    let at = "laplace_marginal_tol: ";
    for (settings, block, said) in [
        (
            format!("{start}, 0.0, 9, 1, 1, 1"),
            1,
            "the tolerance is 0, but must be positive",
        ),
        (
            format!("{start}, 1e-6, 0, 1, 1, 1"),
            1,
            "the largest number of steps is 0, but must be positive",
        ),
        (
            format!("{start}, 1e-6, 9, 4, 1, 1"),
            1,
            "the solver is 4, but must be 1, 2 or 3",
        ),
        (
            format!("{start}, 1e-6, 9, 1, -1, 1"),
            1,
            "the number of steps of a line search is -1, but must not be negative",
        ),
        (
            format!("{start}, 1e-6, 9, 1, 1, 2"),
            1,
            "the permission to fall through is 2, but must be 0 or 1",
        ),
        (
            format!("{start}, 1e-6, 9, 1, 1, 1"),
            4,
            "the size of the Hessian's blocks is 4, but must divide 6, the number of latent variables",
        ),
        (
            "[0, 0]', 1e-6, 9, 1, 1, 1".into(),
            1,
            "the start of the search has 2 elements, but there are 6 latent variables",
        ),
    ] {
        assert_eq!(tuned(&settings, block), format!("{at}{said}"));
    }
    let library = |args: &str| {
        refused(&format!(
            "laplace_marginal_poisson_log_lpmf({args}, 1, K, (s, l, 4))"
        ))
    };
    let at = "laplace_marginal_poisson_log_lpmf: ";
    assert_eq!(
        library("y | {1, 2, 3, 4, 5, 1}, rep_vector(e, 4)"),
        format!("{at}index 5 is 5, but must be from 1 to 4")
    );
    assert_eq!(
        library("y | {1, 2}, rep_vector(e, 4)"),
        format!("{at}there are 2 indices for 6 observations")
    );
    assert_eq!(
        library("y | ix, rep_vector(e, 3)"),
        format!("{at}the mean has 3 elements, but there are 4 latent variables")
    );
}

#[test]
fn what_has_no_third_derivative_is_refused_with_its_location() {
    let (program, _) = reference();
    let source = program
        .replace(
            "real counts(",
            "vector system(vector u, real e) { return exp(u) - u - e - 3; }\n  \
             real solved(vector theta, real e) { return sum(solve_newton(system, theta, e)); }\n  real counts(",
        )
        .replace("CALL", "laplace_marginal(solved, (e,), 1, K, (s, l, 2))");
    let error = derivatives(&source, &[0.7, 2.0, 0.4]).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("no third derivatives"), "{error}");
    assert_eq!(
        &source[error.span.start as usize..][..17],
        "laplace_marginal("
    );
    for likelihood in [
        "gamma_lcdf(2 | exp(theta[1]), e)",
        "hypergeometric_2F1(theta[1], e, 1.5, 0.3)",
    ] {
        let source = program
            .replace(
                "real counts(",
                &format!("real rough(vector theta, real e) {{ return {likelihood} - sum(theta^2); }}\n  real counts("),
            )
            .replace("CALL", "laplace_marginal(rough, (e,), 1, K, (s, l, 2))");
        let error = derivatives(&source, &[0.7, 2.0, 0.4]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported);
        assert!(error.message.contains("third and fourth"), "{error}");
    }
}

#[test]
fn a_hessian_with_more_than_its_blocks_is_refused() {
    let (program, _) = reference();
    let with = |likelihood: &str, block: u32| {
        let source = program
            .replace(
                "real counts(",
                &format!("real joined(vector theta, real e) {{ return {likelihood} - sum(theta^2); }}\n  real counts("),
            )
            .replace(
                "CALL",
                &format!("laplace_marginal(joined, (e,), {block}, K, (s, l, 6))"),
            );
        derivatives(&source, &[0.7, 2.0, 0.4])
    };
    let pairs = "-square(theta[1] - theta[2]) - exp(theta[3] - e * theta[4])";
    for (likelihood, block, holds) in [
        ("-square(theta[1])", 1, true),
        (pairs, 1, false),
        (pairs, 2, true),
        (pairs, 3, false),
        ("-square(theta[2] - theta[3])", 2, false),
        ("-square(theta[2] - theta[3])", 3, true),
        ("-1e-3 * square(theta[1] - e * theta[6])", 3, false),
        ("-1e-3 * square(theta[1] - e * theta[6])", 6, true),
        ("-log_sum_exp(theta)", 1, false),
    ] {
        match with(likelihood, block) {
            Ok(_) => assert!(holds, "{likelihood}, {block}"),
            Err(error) => {
                assert!(!holds, "{likelihood}, {block}: {error}");
                assert_eq!(error.kind, ErrorKind::Failed);
                assert!(error.message.contains("outside its blocks"), "{error}");
            }
        }
    }
}

#[test]
fn a_root_that_is_no_mode_rejects_the_draw() {
    // There are two modes, with a saddle at 0, where the search starts.
    let source = "functions { real ll(vector theta, real s) { return 3 * s * sum(theta .* theta) - sum(theta^4); }\n  \
        matrix K(real s, int n) { return diag_matrix(rep_vector(s, n)); } }\n\
        parameters { real<lower=0> s; }\n\
        model { target += laplace_marginal_tol(ll, (s,), 1, K, (s, 2), (START, 1e-6, 100, 3, 10, 1)); }";
    let saddle = source.replace("START", "[0, 0]'");
    assert!(found(&saddle, &[0.1]).0.is_nan());
    let message = bind(&saddle, "{}")
        .unwrap()
        .log_density(&[0.1], true, false)
        .unwrap_err();
    assert!(
        message.message.contains("not a mode"),
        "{}",
        message.message
    );
    let mode = source.replace("START", "[1, 1]'");
    let value = found(&mode, &[0.1]).0;
    let interpreted = bind(&mode, "{}")
        .unwrap()
        .log_density(&[0.1], true, false)
        .unwrap();
    assert!(
        value.is_finite() && error(interpreted, value) < 1e-9,
        "{value} {interpreted}"
    );
}

#[test]
fn draws_of_the_latent_variables_have_the_moments_of_the_posterior() {
    // With a normal likelihood, the approximation is exact. The variance is s/(s + 1), and the mean is y times this
    // variance.
    let source = "functions { real ll(vector theta, vector y) { return normal_lpdf(y | theta, 1); }\n  \
        matrix K(real s, int n) { return diag_matrix(rep_vector(s, n)); } }\n\
        transformed data { vector[2] y = [3, -1]'; array[2] int k = {4, 0}; }\n\
        parameters { real s; }\nmodel { s ~ std_normal(); }\n\
        generated quantities {\n  vector[2] theta = laplace_latent_rng(ll, (y,), 1, K, (s, 2));\n  \
        vector[2] eta = laplace_latent_tol_poisson_log_rng(k, {1, 2}, rep_vector(0, 2), 1, K, (s, 2), (y, 1e-6, 99, 1, 9, 1)); }";
    let model = bind(source, "{}").unwrap();
    let draws: Vec<Vec<f64>> = (0..4000)
        .map(|index| {
            let mut out = Vec::new();
            let key = DrawKey { seed: 1, index };
            model
                .constrain_with(&[1.5], key, &mut out, &mut |_| {})
                .unwrap();
            out
        })
        .collect();
    let moments = |k: usize| {
        let mean = draws.iter().map(|draw| draw[k]).sum::<f64>() / 4000.0;
        let square = draws
            .iter()
            .map(|draw| (draw[k] - mean).powi(2))
            .sum::<f64>()
            / 4000.0;
        (mean, square)
    };
    // For counts, the mode solves θ = s (k − exp θ), and the variance is 1/(1/s + exp θ).
    let mode = |k: f64| {
        (0..200).fold(0.0, |t: f64, _| {
            t - (t - 1.5 * (k - t.exp())) / (1.0 + 1.5 * t.exp())
        })
    };
    let (a, b) = (mode(4.0), mode(0.0));
    let expected = [
        (3.0 * 0.6, 0.6),
        (-0.6, 0.6),
        (a, 1.0 / (1.0 / 1.5 + a.exp())),
        (b, 1.0 / (1.0 / 1.5 + b.exp())),
    ];
    for (k, (mean, variance)) in expected.into_iter().enumerate() {
        let found = moments(k + 1);
        // Five standard errors.
        assert!(
            (found.0 - mean).abs() < 5.0 * (variance / 4000.0).sqrt(),
            "{k}: {found:?} {mean}"
        );
        assert!(
            (found.1 / variance - 1.0).abs() < 5.0 * (2.0f64 / 4000.0).sqrt(),
            "{k}: {found:?} {variance}"
        );
    }
}

/// A `~` statement is the density without its constants. In a tuple of arguments, only the arguments that the function
/// declares as data must be data.
#[test]
fn statements_are_densities_and_tuples_are_taken_apart() {
    let program = |statement: &str| {
        format!(
            "functions {{ matrix cov(data array[] real x, real a, real r) {{ return add_diag(gp_exp_quad_cov(x, a, r), 1e-6); }} }}
             transformed data {{ array[5] int k = {{1, 2, 4, 3, 2}}; array[5] int ix = {{1, 2, 3, 4, 5}};
               array[5] real x = {{1, 2, 3, 4, 5}}; }}
             parameters {{ real<lower=0> a; real<lower=0> r; }} model {{ {statement} }}"
        )
    };
    let found = |statement: &str| derivatives(&program(statement), &[0.2, 0.4]).unwrap();
    let (stated, slopes, _) =
        found("k ~ laplace_marginal_poisson_log(ix, rep_vector(0, 5), 1, cov, (x, a, r));");
    let (called, same, _) = found(
        "target += laplace_marginal_poisson_log_lpmf(k | ix, rep_vector(0, 5), 1, cov, (x, a, r));",
    );
    assert!(slopes.iter().zip(&same).all(|(a, b)| (a - b).abs() < 1e-9));
    // log 1! 2! 4! 3! 2! can be omitted.
    let constant = (2.0 * 24.0 * 6.0 * 2.0_f64).ln();
    let gap = stated - called;
    assert!(gap.abs() < 1e-9 || (gap - constant).abs() < 1e-9, "{gap}");
    let with_parameter = program(
        "k ~ laplace_marginal_poisson_log(ix, rep_vector(0, 5), 1, cov, ({a, 2, 3, 4, 5}, a, r));",
    );
    let checked = jensen_stan::check(&with_parameter, "model.stan", &jensen_stan::NoIncludes);
    assert!(checked.program.is_none());
}
