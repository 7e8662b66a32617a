//! Tests that Jensen evaluates every program that `check` accepts, or reports the location of a construct that it
//! cannot evaluate. The length of programs is not limited.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use jensen_graph::evaluate;
use jensen_stan::evaluable::unsupported;
use jensen_stan::lower::{LowerOptions, lower, refusals};
use jensen_stan::{NoIncludes, check};

fn locations(source: &str) -> Vec<(usize, usize)> {
    let checked = check(source, "model.stan", &NoIncludes);
    let program = checked.program.expect("a correct program");
    unsupported(&program)
        .iter()
        .map(|d| checked.files[0].line_column(d.primary.span.start))
        .collect()
}

#[test]
fn what_no_density_computes_is_said_with_its_location() {
    let schur = "parameters { matrix[2,2] M; }\nmodel {\n  target += sum(get_real(complex_schur_decompose_t(M)));\n}";
    assert_eq!(locations(schur), [(3, 26)]);
    // A construct in a function is reported if the program calls the function in a place where the construct cannot be
    // evaluated.
    let within = "functions { real f(matrix m) {\n  return sum(get_real(complex_schur_decompose_t(m)));\n} }\n";
    assert_eq!(locations(&format!("{within}model {{}}")), []);
    let called = format!("{within}parameters {{ matrix[2,2] M; }} model {{ target += f(M); }}");
    assert_eq!(locations(&called), [(2, 23)]);
}

#[test]
fn what_is_computed_of_data_alone_may_be_used_there() {
    let source = "functions { complex_matrix f(complex_matrix m) {\n  return complex_schur_decompose_t(m);\n} }\n\
        transformed data { real s = get_real(sum(f(to_complex([[1, 2], [3, 4]], 0)))); }\n\
        parameters { real a; } model { target += -s * a^2; }";
    assert_eq!(locations(source), []);
    let of_parameters = source.replace(
        "-s * a^2",
        "-get_real(sum(f(to_complex([[a, 2], [3, 4]], 0))))",
    );
    assert_eq!(locations(&of_parameters), [(2, 10)]);
}

fn refused(source: &str) -> Vec<(usize, bool, String)> {
    let checked = check(source, "model.stan", &NoIncludes);
    let program = Arc::new(checked.program.expect("a correct program"));
    assert!(unsupported(&program).is_empty(), "{source}");
    refusals(&program)
        .into_iter()
        .map(|d| {
            let location = checked.files[0].line_column(d.primary.span.start);
            (location.0, d.is_error(), d.message)
        })
        .collect()
}

#[test]
fn what_lowering_refuses_is_said_before_there_are_data() {
    let loops = "data {\n  int<lower=1> N;\n  array[N] int<lower=1, upper=N> g;\n  ordered[N] x;\n  cov_matrix[N] S;\n}\n\
        parameters { real a; vector[N] b; }\nmodel {\n  a ~ std_normal();\n  b[g] ~ multi_normal(x, S);\n  int k = 0;\n  if (a > 0) k = 1;\n  \
        for (i in 1:k) target += a;\n}";
    let found = refused(loops);
    assert_eq!((found[0].0, found[0].1), (13, true), "{found:?}");
    assert!(found[0].2.contains("loop bounds"), "{found:?}");
    // The check works without data. A condition on data may cause the construct to be skipped.
    let endless = "parameters { real<lower=0> a; }\nmodel {\n  real x = 1;\n  while (x < a) x *= 2;\n  target += -x * a;\n}";
    assert_eq!(refused(endless)[0].0, 4);
    let switched = "data { int<lower=0, upper=1> careful; }\nparameters { real<lower=0> a; }\nmodel {\n  real x = 1;\n  if (careful)\n    \
        while (x < a) x *= 2;\n  target += -x * a;\n}";
    let found = refused(switched);
    assert_eq!((found[0].0, found[0].1), (6, false), "{found:?}");
    assert!(found[0].2.contains("for some data"), "{found:?}");
    // If a switch without bounds is off, the construct may also be skipped.
    let off = switched.replace("int<lower=0, upper=1> careful", "int quick");
    let found = refused(&off.replace("if (careful)", "if (!quick)"));
    assert_eq!((found[0].0, found[0].1), (6, false), "{found:?}");
    // `check` reports nothing for a program for which it cannot make up data, or for one that it can evaluate.
    let fine = "data { int N; array[N] int<lower=0> y; tuple(real, vector<lower=0>[N]) t; }\n\
        parameters { real<lower=0> a; }\nmodel { y ~ poisson(a * t.1); }";
    assert_eq!(refused(fine), []);
    let strange = "data { int<lower=5, upper=3> N; }\nparameters { real a; }\nmodel { real x = 1; while (x < a) x += N; }";
    assert_eq!(refused(strange), []);
}

#[test]
fn where_a_search_for_a_mode_begins_may_depend_on_parameters() {
    let source = "functions {\n  real ll(vector f, data vector y, data int m) { return normal_lpdf(y | f, 1); }\n  \
        matrix K(real s, data int n) { return add_diag(rep_matrix(0, n, n), s); }\n}\n\
        data { int n; vector[n] y; }\nparameters { real<lower=0> s; vector[n] at; }\nmodel {\n  \
        target += laplace_marginal_tol(ll, (y, n), 1, K, (s, n), (at, 1e-6, 100, 1, 10, 1));\n}";
    let checked = check(source, "model.stan", &NoIncludes);
    assert!(checked.program.is_some(), "{}", checked.render(false));
    let program = checked.program.expect("checked above");
    assert!(unsupported(&program).is_empty());
    let tolerance = source.replace("(at, 1e-6,", "(at, s,");
    let refused = check(&tolerance, "model.stan", &NoIncludes);
    assert!(refused.program.is_none());
}

fn both(source: &str, z: &[f64]) -> f64 {
    let model = crate::support::bind(source, "{}").unwrap();
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
    // The first operand that decides a long chain of conditions ends its evaluation, as in a short chain.
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

#[test]
fn data_that_are_no_numbers_are_named() {
    let source = "data { int N; vector[N] x; matrix[N, N] M; }\nparameters { real m; }\nmodel { x ~ normal(m, 1); }";
    let data = r#"{"N": 2, "x": [1, "NaN"], "M": [[1, "NaN"], ["NaN", "NaN"]]}"#;
    let model = crate::support::bind(source, data).unwrap();
    let error = model.log_density(&[0.0], true, false).unwrap_err();
    let message = model.locate(&error);
    assert!(
        message.contains("`x[2]`, `M[2,1]`, `M[1,2]` and 1 more are NaN"),
        "{message}"
    );
    let lowered = lower(&model, LowerOptions::default()).unwrap_err();
    assert!(model.where_missing(&lowered.message).contains("`x[2]`"));
    let fine = crate::support::bind(source, &data.replace(r#""NaN""#, "2")).unwrap();
    assert_eq!(fine.where_missing("a location is NaN"), "");
}

/// For a program without data, `check` reports the errors that would end every fit.
#[test]
fn programs_without_data_are_refused_for_what_ends_their_fits() {
    for (source, part) in [
        (
            "parameters { vector[3] q; } model { q ~ normal(0, 1); target += q[4]; }",
            "out of bounds",
        ),
        ("parameters { vector[-1] q; } model { }", "not negative"),
        (
            "functions { real f(real x) { return f(x + 1); } }\n\
             parameters { real a; } model { target += f(a); }",
            "does this recursion end?",
        ),
        (
            "transformed data { array[2] int k = {1, 2}; int j = k[3]; }\n\
             parameters { real a; } model { a ~ normal(0, j); }",
            "out of bounds",
        ),
        (
            "transformed data { reject(\"never\"); } parameters { real a; } model { }",
            "never",
        ),
        (
            "transformed data { array[0, 2147483647] int z; } parameters { real a; } model { }",
            "the limit is",
        ),
        (
            "parameters { real a; } model { array[100000000] vector[0] v; a ~ normal(0, 1); }",
            "the limit is",
        ),
        (
            "parameters { real a; } model { a ~ normal(0, 1);\n\
             target += beta_binomial_lcdf(100000000 | 2147483647, 1, 1); }",
            "terms",
        ),
        (
            "transformed data { real p = beta_neg_binomial_cdf(100000000 | 2, 0.5, 0.5); }\n\
             parameters { real a; } model { a ~ normal(p, 1); }",
            "terms",
        ),
        (
            "parameters { real a; } model { a ~ normal(bessel_first_kind(2147483647, 1.0), 1); }",
            "terms",
        ),
        (
            "parameters { real a; } model { target += lmgamma(2147483647, 1e9) * a; }",
            "terms",
        ),
    ] {
        let found = refused(source);
        assert!(
            matches!(&found[..], [(_, true, message)] if message.contains(part)),
            "{source}: {found:?}"
        );
    }
    for fine in [
        "transformed data { int k = bernoulli_rng(0.5); if (k == 0) reject(\"a coin\"); }\n\
         parameters { real a; } model { a ~ normal(0, 1); }",
        "parameters { real a; } model { if (a > 100) reject(\"far\"); a ~ normal(0, 1); }",
        "transformed data { real s = 0; for (i in 1:10000000) s += i; }\n\
         parameters { real a; } model { a ~ normal(0, s); }",
    ] {
        assert_eq!(refused(fine), [], "{fine}");
    }
}

#[test]
fn programs_of_the_corpus_are_not_refused() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut seen = 0;
    for entry in std::fs::read_dir(models).unwrap() {
        let Ok(text) = std::fs::read_to_string(entry.unwrap().path().join("model.stan")) else {
            continue;
        };
        let checked = check(&text, "model.stan", &NoIncludes);
        let program = Arc::new(checked.program.expect("a correct program"));
        assert_eq!(refusals(&program), [], "{text}");
        seen += 1;
    }
    assert!(seen > 100);
}
