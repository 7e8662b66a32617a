//! Tests the reported values of draws. The graph and the interpreter must agree, including random numbers.

use crate::support::{bind, corpus, error};
use jensen_density::{DrawKey, Posterior, Scale};
use jensen_math::simd::Simd;
use jensen_stan::outputs::Outputs;

/// This number is not a multiple of the number of lanes in a vector.
const DRAWS: usize = 21;

const LEFT_TO_THE_INTERPRETER: &[&str] = &[];

fn points(dim: usize, scale: f64) -> Vec<f64> {
    let mut state = 17_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5) * 2.0 * scale
    };
    (0..DRAWS * dim).map(|_| next()).collect()
}

fn keys() -> Vec<DrawKey> {
    (0..DRAWS as u64)
        .map(|index| DrawKey { seed: 5, index })
        .collect()
}

fn compare(source: &str, data: &str, scale: f64) -> Result<usize, String> {
    let bound = bind(source, data).map_err(|e| e.to_string())?;
    let (points, keys) = (points(bound.unconstrained_dim(), scale), keys());
    let dim = bound.unconstrained_dim();
    let outputs = Outputs::new(bound, Simd::detect());
    let mut names = Vec::new();
    for variable in outputs.variables() {
        names.extend((0..variable.len()).map(|i| format!("{}[{i}]", variable.name)));
    }
    let found = outputs.by_graph(&points, &keys);
    for (i, found) in found.iter().enumerate() {
        let Some(found) = found else { continue };
        let mut expected = Vec::new();
        outputs
            .constrain(&points[i * dim..(i + 1) * dim], keys[i], &mut expected)
            .map_err(|e| format!("draw {i} is computed, yet the interpreter says: {e}"))?;
        assert_eq!(found.len(), names.len());
        for ((name, found), expected) in names.iter().zip(found).zip(&expected) {
            let both_nan = found.is_nan() && expected.is_nan();
            let same = error(*found, *expected) <= 1e-8 || found == expected || both_nan;
            if !same {
                return Err(format!(
                    "{name} of draw {i}: {found}, interpreter {expected}"
                ));
            }
        }
    }
    Ok(found.iter().flatten().count())
}

#[test]
fn the_corpus_by_both_evaluators() {
    let (mut failures, mut left) = (Vec::new(), Vec::new());
    let folders = corpus::folders_with("model.stan");
    for folder in &folders {
        let name = folder
            .strip_prefix(corpus::root())
            .unwrap()
            .display()
            .to_string();
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).ok();
        let source = read("model.stan").unwrap();
        let data = read("data.json").unwrap_or_else(|| "{}".into());
        match compare(&source, &data, 0.4) {
            Err(message) => failures.push(format!("{name}: {message}")),
            Ok(0) => left.push(name),
            Ok(_) => {}
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(left, LEFT_TO_THE_INTERPRETER);
}

/// The generated program has the parameters `real a; real<lower=0> b; vector[3] v; cholesky_factor_corr[2] L;`.
fn generated(functions: &str, body: &str) -> String {
    format!(
        "functions {{ {functions} }}
         parameters {{ real a; real<lower=0> b; vector[3] v; cholesky_factor_corr[2] L; }}
         generated quantities {{ {body} }}"
    )
}

#[test]
fn complex_parameters_are_reported_as_by_the_interpreter() {
    let source = "parameters { complex z; array[2] complex_matrix[2, 3] m; }
        generated quantities { complex_vector[2] w = m[2] * m[1]' * [z, 1.0i]'; real size = abs(z); }";
    assert_eq!(compare(source, "{}", 1.0), Ok(DRAWS));
}

#[test]
fn every_draw_of_these_is_computed_by_the_graph() {
    let cases = [
        // Chains of standard numbers, and of other numbers that depend on them
        (
            "",
            "array[40] real y; y[1] = a; for (t in 2:40) y[t] = normal_rng(.9 * y[t - 1], b);",
        ),
        (
            "",
            "array[20] int n; real x = a; for (t in 1:20) { x = normal_rng(.5 * x, .1); n[t] = poisson_rng(exp(x)); }",
        ),
        (
            "",
            "real s = gamma_rng(b + 1, 1); real t = student_t_rng(5, s, b); int k = binomial_rng(20, inv_logit(t));",
        ),
        // The random numbers of one draw do not affect other draws. This also holds for branches, loops that end early,
        // and functions.
        (
            "",
            "array[9] int y; for (n in 1:9) y[n] = v[1 + n % 3] > 0 ? -1 : neg_binomial_2_rng(b, 3); real z = std_normal_rng();",
        ),
        (
            "",
            "real x = 0; if (a > 0) { x += gamma_rng(2, b); } else { x -= exponential_rng(b); } real y = uniform_rng(x, x + 1);",
        ),
        (
            "real f_rng(real m, int n) { if (m > 0) return m; real s = 0; for (i in 1:n) s += normal_rng(m, 1); return s; }",
            "array[4] real y; for (n in 1:4) y[n] = f_rng(v[1 + n % 3], n) + f_rng(a, 2);",
        ),
        (
            "",
            "int k = 0; real s = 0; while (k < 5) { k += 1; if (k == 3) continue; s += lognormal_rng(a, b); }",
        ),
        (
            "",
            "real s = 0; for (x in v) s += bernoulli_logit_rng(x) + bernoulli_rng(inv_logit(x));",
        ),
        (
            "",
            "int either = a > 0 || poisson_rng(b) > 1; int both = a > 0 && poisson_rng(b) > 1;",
        ),
        // Shapes: containers, arrays of them, tuples and complex numbers, in the order of Stan's files
        (
            "",
            "array[3] real y = normal_rng(v, b); array[2] vector[3] w; for (i in 1:2) w[i] = v * i + a;",
        ),
        (
            "",
            "array[2, 3] matrix[2, 2] m; for (i in 1:2) for (j in 1:3) m[i, j] = L * i + j * a;",
        ),
        (
            "",
            "tuple(real, vector[3], array[2] int) t = (a, v, {1, 2}); array[2] tuple(real, complex) u; u[1] = (a, to_complex(a, b)); u[2] = (b, 1i);",
        ),
        (
            "",
            "complex_vector[3] c = to_complex(v, a); complex_matrix[2, 2] d = to_complex(L, b);",
        ),
        (
            "",
            "vector[2] y = multi_normal_cholesky_rng([a, b]', L); matrix[2, 2] S = inv_wishart_rng(5, multiply_lower_tri_self_transpose(L));",
        ),
        (
            "",
            "vector[3] p = dirichlet_rng(exp(v)); array[3] int n = multinomial_rng(p, 30); int c = categorical_rng(p); matrix[3, 3] R = lkj_corr_rng(3, b);",
        ),
        (
            "",
            "int k = categorical_logit_rng(v); real x = v[k]; vector[2] r = [L[1 + (a > 0), 1], L[1, k > 2 ? 1 : 2]]';",
        ),
        // Variables without an assignment, and variables that depend only on data
        (
            "",
            "real nothing; array[2] int none; real x = a; vector[0] empty; real two = 1 + 1; int n = poisson_rng(4);",
        ),
    ];
    for (functions, body) in cases {
        let source = generated(functions, body);
        assert_eq!(compare(&source, "{}", 1.5), Ok(DRAWS), "{body}");
    }
}

#[test]
fn what_the_graph_rejects_is_the_interpreters() {
    let body = "real<lower=0> positive = v[1]; if (a > 1) reject(\"a is \", a); real x = normal_rng(0, v[2]); real y = 1 / (a > 0);";
    let bound = bind(&generated("", body), "{}").unwrap();
    let (dim, keys) = (bound.unconstrained_dim(), keys());
    let points = points(dim, 1.5);
    let outputs = Outputs::new(bound, Simd::detect());
    let by_graph = outputs.by_graph(&points, &keys);
    let all = outputs.constrain_all(&points, &keys);
    let (mut messages, mut computed) = (Vec::new(), 0);
    for (i, found) in all.into_iter().enumerate() {
        let mut expected = Vec::new();
        let one = outputs.constrain(&points[i * dim..(i + 1) * dim], keys[i], &mut expected);
        match (one, found) {
            (Err(expected), Err(found)) => {
                assert_eq!(expected, found);
                assert!(by_graph[i].is_none(), "draw {i} is rejected");
                messages.push(found.message);
            }
            (Ok(()), Ok(found)) => {
                let near = |(a, b): (&f64, &f64)| a == b || error(*a, *b) <= 1e-10;
                assert!(found.iter().zip(&expected).all(near), "draw {i}");
                computed += usize::from(by_graph[i].is_some());
            }
            (one, found) => panic!("draw {i}: {one:?}, {found:?}"),
        }
    }
    assert!(computed > 0);
    for what in ["positive", "a is", "normal_rng: "] {
        assert!(
            messages.iter().any(|m| m.contains(what)),
            "{what}: {messages:?}"
        );
    }
}

#[test]
fn a_draw_is_the_same_in_any_company() {
    let body = "array[5] real y; y[1] = gamma_rng(b, 1); for (t in 2:5) y[t] = normal_rng(y[t - 1] * a, b); vector[3] e = exp(v);";
    let bound = bind(&generated("", body), "{}").unwrap();
    let (dim, keys) = (bound.unconstrained_dim(), keys());
    let points = points(dim, 1.0);
    let outputs = Outputs::new(bound, Simd::detect());
    let bits = |found: &Option<Vec<f64>>| -> Vec<u64> {
        let values = found.as_ref().expect("computed by the graph");
        values.iter().map(|x| x.to_bits()).collect()
    };
    let together = outputs.by_graph(&points, &keys);
    for i in 0..DRAWS {
        let alone = outputs.by_graph(&points[i * dim..(i + 1) * dim], &keys[i..=i]);
        assert_eq!(bits(&alone[0]), bits(&together[i]), "draw {i}");
    }
}

#[test]
fn a_block_without_variables_is_run_unless_it_is_left_out() {
    let source = generated("", "if (a > 0) reject(\"a\");");
    let errors = |wanted: &dyn Fn(&str) -> bool| {
        let bound = bind(&source, "{}").unwrap();
        let bound = bound.reporting(|variable| wanted(&variable.name));
        let (points, keys) = (points(bound.unconstrained_dim(), 1.0), keys());
        let outputs = Outputs::new(bound, Simd::detect());
        let all = outputs.constrain_all(&points, &keys);
        all.iter().filter(|found| found.is_err()).count()
    };
    assert!((1..DRAWS).contains(&errors(&|_| true)));
    assert_eq!(errors(&|name| name == "a"), 0);
}

/// An infinite bound does not constrain its element. It may apply to only some elements, or depend on other parameters.
#[test]
fn scales_are_those_of_the_constraints() {
    use Scale::{Identity, Log, Logit};
    let all = [
        ("real x", vec![Identity]),
        ("real<lower=2> x", vec![Log]),
        ("real<upper=2> x", vec![Log]),
        ("real<lower=0, upper=3> x", vec![Logit]),
        ("real<lower=negative_infinity()> x", vec![Identity]),
        ("real<lower=0, upper=positive_infinity()> x", vec![Log]),
        ("vector<lower=b>[3] x", vec![Log, Identity, Log]),
        ("array[2] ordered[2] x", vec![Identity, Log, Identity, Log]),
        ("positive_ordered[2] x", vec![Log, Log]),
        ("simplex[3] x", vec![Identity; 2]),
        (
            "cholesky_factor_cov[3, 2] x",
            vec![Log, Identity, Log, Identity, Identity],
        ),
        (
            "array[2] cov_matrix[2] x",
            vec![Log, Identity, Log, Log, Identity, Log],
        ),
        (
            "real<lower=0> a; real<lower=-a, upper=a> x",
            vec![Log, Logit],
        ),
        ("tuple(real<lower=0>, real) x", vec![Log, Identity]),
    ];
    for (declared, scales) in all {
        let source = format!(
            "transformed data {{ vector[3] b = [0, negative_infinity(), 1]'; }} parameters {{ {declared}; }} model {{ }}"
        );
        let bound = bind(&source, "{}").unwrap();
        assert_eq!(bound.scales(), scales, "{declared}");
        assert_eq!(scales.len(), bound.unconstrained_dim(), "{declared}");
    }
}
