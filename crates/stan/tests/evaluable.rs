//! What `check` lets through is evaluated, or said not to be with its place; and programs have no limits of length.

mod support;

use std::fmt::Write;

use jensen_graph::evaluate;
use jensen_stan::evaluable::unsupported;
use jensen_stan::lower::{LowerOptions, lower};
use jensen_stan::{NoIncludes, check};

/// Lines and columns of what is not evaluated.
fn places(source: &str) -> Vec<(usize, usize)> {
    let checked = check(source, "model.stan", &NoIncludes);
    let program = checked.program.expect("a correct program");
    unsupported(&program)
        .iter()
        .map(|d| checked.files[0].line_column(d.primary.span.start))
        .collect()
}

#[test]
fn what_nothing_computes_is_said_with_its_place() {
    let complex = "parameters {\n  complex z;\n  array[2] complex_vector[3] v;\n  real a;\n}\nmodel { target += -abs(z) - a^2; }";
    assert_eq!(places(complex), [(2, 11), (3, 30)]);
    let eigen =
        "parameters { matrix[2,2] M; }\nmodel {\n  target += sum(get_real(eigenvalues(M)));\n}";
    assert_eq!(places(eigen), [(3, 26)]);
    let dae = "functions { vector r(real t, vector y, vector yp, real a) { return yp + a * y; } }\n\
        parameters { real<lower=0> a; }\n\
        model { target += dae(r, [1]', [-a]', 0, {1.0}, a)[1][1]; }";
    assert_eq!(places(dae), [(3, 19)]);
    // In a function, once it is called from where it cannot be computed.
    let within = "functions { real f(matrix m) {\n  return sum(get_real(eigenvalues(m)));\n} }\n";
    assert_eq!(places(&format!("{within}model {{}}")), []);
    let called = format!("{within}parameters {{ matrix[2,2] M; }} model {{ target += f(M); }}");
    assert_eq!(places(&called), [(2, 23)]);
}

#[test]
fn what_is_computed_of_data_alone_may_be_used_there() {
    let source = "functions { vector f(complex_matrix m) {\n  return singular_values(m);\n} }\n\
        transformed data { real s = sum(f(to_complex([[1, 2], [3, 4]], 0))); }\n\
        parameters { real a; } model { target += -s * a^2; }";
    assert_eq!(places(source), []);
    let of_parameters = source.replace("-s * a^2", "-sum(f(to_complex([[a, 2], [3, 4]], 0)))");
    assert_eq!(places(&of_parameters), [(2, 10)]);
}

/// The log density by both evaluators.
fn both(source: &str, z: &[f64]) -> f64 {
    let model = support::bind(source, "{}").unwrap();
    let known = model.log_density(z, true, false).unwrap();
    let lowered = lower(&model, LowerOptions::default()).unwrap();
    let found = evaluate(&lowered.graph, &[z], None)[0][0];
    assert!(
        (found - known).abs() <= 1e-9 * known.abs().max(1.0),
        "{found} {known}"
    );
    known
}

#[test]
fn sums_have_no_limit() {
    let terms: Vec<String> = (0..10_000).map(|i| format!("a * {i}.25")).collect();
    let sum = format!(
        "parameters {{ real a; }} model {{ target += {}; }}",
        terms.join(" + ")
    );
    let expected: f64 = (0..10_000).map(|i| 0.5 * (f64::from(i) + 0.25)).sum();
    assert!((both(&sum, &[0.5]) - expected).abs() < 1e-6 * expected);
    let mut signs = String::from("a");
    let mut expected = 0.5;
    for i in 1..3000 {
        let _ = write!(signs, "{} a^2 * {i}", if i % 3 == 0 { "+" } else { "-" });
        expected += 0.25 * f64::from(i) * if i % 3 == 0 { 1.0 } else { -1.0 };
    }
    let source = format!("parameters {{ real a; }} model {{ target += {signs}; }}");
    assert!((both(&source, &[0.5]) - expected).abs() < 1e-9 * expected.abs());
    // The first that decides ends a chain of conditions, as it does in a short one.
    let tests: Vec<String> = (0..2000).map(|i| format!("x != {i}")).collect();
    let source = format!(
        "transformed data {{ int x = 1999; int y = {}; int z = {}; }} parameters {{ real a; }} model {{ target += a * y + z; }}",
        tests.join(" && "),
        tests.join(" || ")
    );
    assert_eq!(both(&source, &[0.5]), 1.0);
}

#[test]
fn chains_of_branches_may_be_long() {
    let branch = |i: i32| format!("if (x == {i}) target += -{i} * a^2;");
    let chain: Vec<String> = (0..500).map(branch).collect();
    let source = format!(
        "transformed data {{ int x = 400; }} parameters {{ real a; }} model {{ {} }}",
        chain.join(" else ")
    );
    assert_eq!(both(&source, &[0.5]), -100.0);
    let branch = |i: i32| format!("if (a < {i}) x = {i} * a;");
    let chain: Vec<String> = (0..250).map(branch).collect();
    let source = format!(
        "parameters {{ real a; }} model {{ real x; {} else x = 1; target += x; }}",
        chain.join(" else ")
    );
    assert_eq!(both(&source, &[99.5]), 9950.0);
    assert_eq!(both(&source, &[250.5]), 1.0);
}

#[test]
fn a_file_of_functions_is_checked() {
    let text = "real f(real x) {\n  return x;\n}\nvoid g() {}\n";
    assert!(
        check(text, "some.stanfunctions", &NoIncludes)
            .program
            .is_some()
    );
    let wrong = check(
        "real f(real x) {\n  return y;\n}\n",
        "some.stanfunctions",
        &NoIncludes,
    );
    assert!(
        wrong.render(false).contains("some.stanfunctions:2:10"),
        "{}",
        wrong.render(false)
    );
}
