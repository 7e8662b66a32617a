//! Tests the errors of lowering. They consist of one line, with the construct that cannot be lowered and its location.
//! Also tests that draws that a program rejects are NaN, and that the cost of a loop is the cost of its iterations.

use crate::support::bind;
use jensen_graph::evaluate;
use jensen_stan::interpret::ErrorKind;
use jensen_stan::lower::{LowerError, LowerOptions, Lowered, lower};

fn lowered(
    source: &str,
    data: &str,
    options: LowerOptions,
) -> Result<Lowered, (String, LowerError)> {
    let model = bind(source, data).unwrap_or_else(|e| panic!("{source}: {e}"));
    lower(&model, options).map_err(|e| (model.program().location(e.span), e))
}

fn failure(source: &str) -> (ErrorKind, String) {
    match lowered(source, "{}", LowerOptions::default()) {
        Ok(_) => panic!("lowered: {source}"),
        Err((at, e)) => (e.kind, format!("{at}: {e}")),
    }
}

#[test]
fn unsupported_constructs_are_named() {
    let cases = [
        (
            "parameters { real x; }\nmodel { target += get_real(complex_schur_decompose_t([[x, 1], [2, 3]])[1, 1]); }",
            "model.stan:2:28: Jensen does not yet support function `complex_schur_decompose_t`",
        ),
        (
            "parameters { real x; }\nmodel {\n  real y = x;\n  while (y < 3) y += 1;\n}",
            "model.stan:4:10: a `while` condition that depends on parameters",
        ),
        (
            "parameters { real x; }\nmodel { for (i in 1:3) { if (x > 0) break; } }",
            "model.stan:2:30: `break` and `continue` under a condition that depends on parameters",
        ),
    ];
    for (source, expected) in cases {
        let (kind, message) = failure(source);
        assert_eq!(kind, ErrorKind::Unsupported, "{message}");
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn hypergeometric_functions_say_where_they_have_no_value() {
    let cases = [
        (
            "hypergeometric_2F1(0.5, 0.25, 1.5, 2)",
            "hypergeometric_2F1: has no value at a = [0.5, 0.25], b = [1.5], z = 2: its series does not converge there",
        ),
        (
            "hypergeometric_pFq([1, 1.5, 2], [0.5], 0.1)",
            "hypergeometric_pFq: has no value at a = [1.0, 1.5, 2.0], b = [0.5], z = 0.1",
        ),
        (
            "hypergeometric_3F2([1, 1.5], [0.5], 0.1)",
            "hypergeometric_3F2: expected 3 numbers above and 2 below, found 2 and 1",
        ),
    ];
    for (call, expected) in cases {
        let known = format!("transformed data {{ real x = {call}; }}");
        let error = bind(&known, "{}").map(|_| ()).expect_err("no value");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let (_, message) =
        failure("parameters { vector[2] x; }\nmodel { target += hypergeometric_3F2(x, x, 0.5); }");
    assert!(message.contains("found 2 and 2"), "{message}");
    // A draw beyond 1 is rejected.
    let source =
        "parameters { real x; }\nmodel { target += hypergeometric_2F1(0.5, 0.25, 1.5, x); }";
    let lowered = lowered(source, "{}", LowerOptions::default()).expect("it is lowered");
    let at = |x: f64| evaluate(&lowered.graph, &[&[x]], None)[0][0];
    assert!(at(0.5).is_finite() && at(1.5).is_nan());
}

#[test]
fn spectra_say_what_their_matrices_must_be() {
    let cases = [
        (
            "eigenvalues([[1, 2]])",
            "eigenvalues: the matrix is 1 × 2, but must be square",
        ),
        (
            "eigenvalues([[1, 2], [not_a_number(), 1]])",
            "eigenvalues: the matrix is not finite",
        ),
        (
            "eigenvalues_sym(to_complex([[1, 2], [2, 1]], [[0, 1], [1, 0]]))",
            "eigenvalues_sym: the matrix is not Hermitian: element [2, 1] is not the conjugate of element [1, 2]",
        ),
    ];
    for (call, expected) in cases {
        let known = format!("transformed data {{ complex_vector[2] x = {call}; }}");
        let error = bind(&known, "{}").map(|_| ()).expect_err("no value");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn data_errors_are_reported_once_and_for_all_draws() {
    let (kind, message) = failure(
        "transformed data { real s = -1; }\nparameters { real x; }\nmodel { x ~ normal(0, s); }",
    );
    assert_eq!(kind, ErrorKind::Rejected);
    assert!(
        message.contains("model.stan:3:9") && message.contains("is -1, but must be positive"),
        "{message}"
    );
    let (_, message) = failure("parameters { vector[2] x; }\nmodel { target += x[3]; }");
    assert!(
        message.contains("index 3") && message.contains("expected 1 to 2"),
        "{message}"
    );
    let (_, message) =
        failure("parameters { vector[2] x; }\nmodel { x ~ normal(rep_vector(0, 3), 1); }");
    assert!(
        message.contains("sizes do not match: vector[2] and vector[3]"),
        "{message}"
    );
    let (_, message) =
        failure("parameters { vector[2] x; }\nmodel { vector[3] y = x; target += sum(y); }");
    assert!(
        message.contains("expected vector[3], found vector[2]"),
        "{message}"
    );
}

#[test]
fn the_node_limit_names_the_loop() {
    let source = "parameters { real x; }\nmodel {\n  real s = x; for (i in 1:100000)\n    s = sin(i * s);\n  target += s; }";
    let options = LowerOptions {
        node_limit: 10_000,
        ..LowerOptions::default()
    };
    let (at, error) = lowered(source, "{}", options).expect_err("too large");
    assert_eq!(error.kind, ErrorKind::Limit);
    assert!(at.starts_with("model.stan:3:15"), "{at}");
    assert!(
        error.message.contains("10000 nodes")
            && error.message.contains("`for (i in …)` 100000 times"),
        "{error}"
    );
    for part in [
        "vectors",
        "an iteration reads `s`, which an earlier iteration assigned at model.stan:3:15",
        "--memory-limit",
    ] {
        assert!(error.message.contains(part), "{part} in {error}");
    }
}

#[test]
fn endless_recursion_ends() {
    let source = "functions { real f(real x) { return f(x + 1); } }\nparameters { real x; }\nmodel { target += f(x); }";
    let (kind, message) = failure(source);
    assert_eq!(kind, ErrorKind::Excess, "{message}");
    let (kind, message) =
        failure("parameters { real x; }\nmodel { int i = 0; while (i < 1) i = 0; target += x; }");
    assert_eq!(kind, ErrorKind::Limit, "{message}");
}

#[test]
fn rejected_draws_are_nan() {
    let value = |source: &str, z: &[f64]| -> f64 {
        let lowered = lowered(source, "{}", LowerOptions::default()).expect("lowers");
        evaluate(&lowered.graph, &[z], None)[0][0]
    };
    let source = "parameters { real x; }\nmodel { if (x > 1) reject(\"too large: \", x); x ~ normal(0, 1); }";
    assert!(value(source, &[2.0]).is_nan());
    assert!(value(source, &[0.5]).is_finite());
    let source = "parameters { real x; }\ntransformed parameters { real<lower=0> s = x; }\nmodel { x ~ normal(0, 1); }";
    assert!(value(source, &[-0.1]).is_nan());
    assert!(value(source, &[0.1]).is_finite());
    let source =
        "parameters { real x; }\nmodel { 3 ~ poisson(x); 0 ~ poisson(x); 1 ~ normal(0, x); }";
    assert!(value(source, &[-0.1]).is_nan());
    assert!(value(source, &[0.1]).is_finite());
    let source =
        "parameters { real x; }\nmodel { [1, 2]' ~ multi_normal([0, 0]', [[1, x], [x, 1]]); }";
    assert!(value(source, &[1.1]).is_nan());
    assert!(value(source, &[0.1]).is_finite());
    let source =
        "parameters { real x; }\nmodel { vector[2] th = [x, 1 - x]'; 1 ~ categorical(th); }";
    assert!(value(source, &[1.1]).is_nan());
    assert!(value(source, &[0.1]).is_finite());
}

#[test]
fn names_are_those_of_the_coordinates() {
    let source = "parameters { real x; array[2] simplex[3] th; cov_matrix[2] C; matrix[2, 2] M; }\nmodel { }";
    let lowered = lowered(source, "{}", LowerOptions::default()).expect("lowers");
    assert_eq!(lowered.dim, 12);
    assert_eq!(lowered.names.len(), 12);
    assert_eq!(lowered.names[..3], ["x", "th.1.1", "th.1.2"]);
}

#[test]
fn a_iteration_takes_as_many_nodes_as_it_has_operations() {
    let source = "data { int N; }
        transformed data { array[N] real y; for (i in 1:N) y[i] = sin(i); }
        parameters { real a; real b; real<lower=0> s; }
        model { for (i in 1:N) { real mu = a + b * y[i] + square(b) * cos(y[i]); y[i] ~ normal(mu, s); } }";
    let nodes = |n: usize| {
        let data = format!("{{\"N\": {n}}}");
        let lowered = lowered(source, &data, LowerOptions::default()).expect("lowers");
        (
            lowered.graph.len(),
            jensen_graph::passes::optimise(&lowered.graph).len(),
        )
    };
    let ((unrolled, joined), (doubled, joined_too)) = (nodes(5_000), nodes(10_000));
    assert!(doubled - unrolled <= 5_000 * 14, "{unrolled} to {doubled}");
    assert!(
        joined < 100 && joined_too < 100,
        "the iterations are joined: {joined}, {joined_too}"
    );
}

#[test]
fn containers_that_no_memory_holds_are_refused() {
    for (call, function) in [
        ("rep_matrix(x, 2000000000, 2000000000)", "rep_matrix"),
        ("rep_matrix(rep_vector(x, 1000), 2000000000)", "rep_matrix"),
        ("rep_vector(x, 2000000000)", "rep_vector"),
        ("rep_row_vector(x, 2000000000)", "rep_row_vector"),
        (
            "rep_array(x, 2000000000, 2000000000, 2000000000)[1, 1]",
            "rep_array",
        ),
    ] {
        let (kind, message) = failure(&format!(
            "parameters {{ real x; }}\nmodel {{ target += sum({call}); }}"
        ));
        assert_eq!(kind, ErrorKind::Excess, "{message}");
        let expected = format!("model.stan:2:23: {function} has ");
        assert!(message.starts_with(&expected), "{message}");
        assert!(message.ends_with("the limit is 2.000 GiB"), "{message}");
    }
}
