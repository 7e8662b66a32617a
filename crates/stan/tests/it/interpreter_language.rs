//! Tests statements, expressions, data binding and outputs of the interpreter.

use crate::support::{JsonData, bind, program};
use jensen_density::{DrawKey, Posterior, VariableKind};
use jensen_stan::interpret::{ErrorKind, Interpreter, Limits};

fn generated(source: &str, data: &str) -> Vec<(String, Vec<f64>)> {
    let model = bind(source, data).unwrap_or_else(|e| panic!("{e}"));
    let mut out = Vec::new();
    model
        .constrain(
            &vec![0.0; model.unconstrained_dim()],
            DrawKey { seed: 3, index: 0 },
            &mut out,
        )
        .unwrap_or_else(|e| panic!("{e}"));
    let mut at = 0;
    model
        .variables()
        .into_iter()
        .map(|v| {
            let values = out[at..at + v.len()].to_vec();
            at += v.len();
            (v.name, values)
        })
        .collect()
}

/// Returns the value of `r`, which `body` must declare.
fn result(functions: &str, body: &str) -> Vec<f64> {
    let source = format!("functions {{ {functions} }}\ngenerated quantities {{ {body} }}\n");
    let all = generated(&source, "{}");
    all.into_iter().find(|(name, _)| name == "r").expect("r").1
}

#[test]
fn statements() {
    assert_eq!(
        result(
            "",
            "int r = 0; for (i in 1:10) { if (i == 3) continue; if (i == 6) break; r += i; }"
        ),
        [12.0]
    );
    assert_eq!(result("", "int r = 0; while (r < 7) r += 2;"), [8.0]);
    assert_eq!(
        result("", "real r = 0; for (x in {1.5, 2.5}) r += x;"),
        [4.0]
    );
    assert_eq!(
        result(
            "",
            "real r = 0; for (x in [[1, 2], [3, 4]]) r = 10 * r + x;"
        ),
        [1324.0]
    );
    assert_eq!(
        result(
            "int f(int n) { return n <= 1 ? 1 : n * f(n - 1); }",
            "int r = f(10);"
        ),
        [3_628_800.0]
    );
    assert_eq!(
        result("", "vector[3] r = [1, 2, 3]'; r[2:] = r[:2];"),
        [1.0, 1.0, 2.0]
    );
    assert_eq!(
        result(
            "",
            "matrix[2, 2] r = rep_matrix(0, 2, 2); r[1] = [1, 2]; r[:, 2] += 5;"
        ),
        [1.0, 0.0, 7.0, 5.0]
    );
    assert_eq!(
        result(
            "",
            "array[2] vector[2] r; r[1] = [1, 2]'; r[2] = [3, 4]'; r[:, 1] = {7, 8};"
        ),
        [7.0, 8.0, 2.0, 4.0]
    );
    assert_eq!(
        result(
            "",
            "array[3] int x = {1, 2, 3}; array[2] int r = x[{3, 1}];"
        ),
        [3.0, 1.0]
    );
    assert_eq!(
        result("", "array[3] int x = {1, 2, 3}; int r = size(x[3:2]);"),
        [0.0]
    );
    assert_eq!(result("", "int r = 7 %/% 2 * 10 + 7 % 4;"), [33.0]);
    assert_eq!(
        result(
            "",
            "real r; tuple(int, vector[2]) t = (3, [4, 5]'); t.2[1] = 9; r = t.1 + sum(t.2);"
        ),
        [17.0]
    );
    assert_eq!(
        result(
            "void f(real x) { if (x > 1) return; reject(\"low \", x); }",
            "real r = 1; { f(2); }"
        ),
        [1.0]
    );
    assert_eq!(
        result(
            "real f(vector x) { return sum(x); }",
            "real r = f([1, 2]') + f([3]');"
        ),
        [6.0]
    );
}

#[test]
fn outputs_are_column_major() {
    let source = "generated quantities {
        array[2] matrix[2, 2] m;
        m[1] = [[1, 2], [3, 4]];
        m[2] = [[5, 6], [7, 8]];
        array[2, 3] int k = {{1, 2, 3}, {4, 5, 6}};
        tuple(real, vector[2]) t = (1, [2, 3]');
        complex z = to_complex(1, 2);
    }";
    let all = generated(source, "{}");
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["m", "k", "t:1", "t:2", "z"]);
    assert_eq!(all[0].1, [1.0, 5.0, 3.0, 7.0, 2.0, 6.0, 4.0, 8.0]);
    assert_eq!(all[1].1, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(
        (&all[2].1[..], &all[3].1[..], &all[4].1[..]),
        (&[1.0][..], &[2.0, 3.0][..], &[1.0, 2.0][..])
    );
}

#[test]
fn random_numbers_depend_on_the_key() {
    let source = "transformed data { real shift = normal_rng(0, 1); }
        parameters { real mu; }
        generated quantities { real y = normal_rng(mu, 1) + shift; array[2] int n = poisson_rng({3.0, 4.0}); }";
    let model = bind(source, "{}").expect("a model");
    let draw = |seed, index| {
        let mut out = Vec::new();
        model
            .constrain(&[0.5], DrawKey { seed, index }, &mut out)
            .expect("a draw");
        out
    };
    assert_eq!(draw(1, 2), draw(1, 2));
    assert_ne!(draw(1, 2)[1], draw(1, 3)[1]);
    assert_ne!(draw(1, 2)[1], draw(2, 2)[1]);
    let kinds: Vec<_> = model
        .variables()
        .iter()
        .map(|v| (v.kind, v.integer))
        .collect();
    assert_eq!(
        kinds,
        [
            (VariableKind::Parameter, false),
            (VariableKind::Generated, false),
            (VariableKind::Generated, true)
        ]
    );
}

#[test]
fn truncation() {
    let value = |model: &str| {
        bind(
            &format!("parameters {{ real p; }} model {{ {model} }}"),
            "{}",
        )
        .expect("a model")
        .log_density(&[0.0], true, false)
        .expect("a value")
    };
    let direct = value(
        "real x = 0.3; target += normal_lpdf(x | 0, 1) - log_diff_exp(normal_lcdf(2 | 0, 1), normal_lcdf(-1 | 0, 1));",
    );
    assert!((value("real x = 0.3; x ~ normal(0, 1) T[-1, 2];") - direct).abs() < 1e-14);
    let direct = value("target += poisson_lpmf(3 | 2.5) - log1m_exp(poisson_lcdf(1 | 2.5));");
    assert!((value("3 ~ poisson(2.5) T[2, ];") - direct).abs() < 1e-13);
    assert_eq!(
        value("real x = 3; x ~ normal(0, 1) T[-1, 2];"),
        f64::NEG_INFINITY
    );
    let vector =
        value("vector[2] x = [0.3, 0.8]'; vector[2] m = [0.1, 0.4]'; x ~ normal(m, 1) T[0, ];");
    let single = value("0.3 ~ normal(0.1, 1) T[0, ]; 0.8 ~ normal(0.4, 1) T[0, ];");
    assert!((vector - single).abs() < 1e-14);
}

#[test]
fn jacobian_statements() {
    let source = "functions { real up_jacobian(real x) { jacobian += x; return exp(x); } }
        parameters { real z; } transformed parameters { real s = up_jacobian(z); } model { target += -s; }";
    let model = bind(source, "{}").expect("a model");
    assert_eq!(
        model.log_density(&[0.5], true, false),
        Ok(0.5 - 0.5f64.exp())
    );
    assert_eq!(model.log_density(&[0.5], false, false), Ok(-0.5f64.exp()));
}

#[test]
fn printing() {
    let source =
        "parameters { real p; } model { print(\"p = \", p, \" m = \", [[1, 2.5], [3, 1e10]]); }";
    let model = bind(source, "{}").expect("a model");
    let mut lines = Vec::new();
    model
        .log_density_with(&[0.25], true, false, &mut |line| {
            lines.push(line.to_string())
        })
        .expect("a value");
    assert_eq!(lines, ["p = 0.25 m = [[1,2.5],[3,1e+10]]"]);
}

fn failure(functions: &str, model: &str) -> (ErrorKind, String, String) {
    let source =
        format!("functions {{ {functions} }}\nparameters {{ real p; }}\nmodel {{ {model} }}\n");
    let limits = Limits {
        steps: 100_000,
        ..Limits::default()
    };
    let interpreter = Interpreter {
        limits,
        ..Interpreter::default()
    };
    let bound = interpreter
        .bind(program(&source), &JsonData::default(), &mut |_| {})
        .expect("a model");
    let e = bound
        .log_density(&[0.0], true, false)
        .expect_err("an error");
    let text = &source[e.span.start as usize..e.span.end as usize];
    (e.kind, e.message, text.to_string())
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "a rule list: statements and what is said of them"
)]
fn errors_say_what_and_where() {
    let check = |functions: &str, model: &str, kind: ErrorKind, message: &str, at: &str| {
        let (found, text, span) = failure(functions, model);
        assert_eq!(
            (found, text.as_str(), span.as_str()),
            (kind, message, at),
            "{model}"
        );
    };
    use ErrorKind::{Excess, Failed, Limit, Rejected};
    check(
        "",
        "reject(\"p is \", p);",
        Rejected,
        "p is 0",
        "reject(\"p is \", p);",
    );
    check(
        "",
        "fatal_error(\"stop\");",
        Failed,
        "stop",
        "fatal_error(\"stop\");",
    );
    check(
        "",
        "p ~ normal(0, -1 + p);",
        Rejected,
        "normal_lpdf: the scale parameter is -1, but must be positive",
        "p ~ normal(0, -1 + p);",
    );
    check(
        "",
        "vector[3] x; target += x[4];",
        Failed,
        "`x`: index 4 in subscript 1 is out of bounds, expected 1 to 3",
        "x[4]",
    );
    check(
        "",
        "array[2, 3] real x; x[2, 5] = 1;",
        Failed,
        "`x`: index 5 in subscript 2 is out of bounds, expected 1 to 3",
        "x[2, 5]",
    );
    check(
        "",
        "vector[2] x = [1, 2, 3]';",
        Failed,
        "`x` is declared as vector[2], but its initial value is vector[3]",
        "vector[2] x = [1, 2, 3]'",
    );
    check(
        "",
        "vector[2] x; x = [1, 2, 3]';",
        Failed,
        "`x` is vector[2], but the program assigns vector[3] to it",
        "x",
    );
    check(
        "",
        "int n = 3; n = n %/% 0;",
        Rejected,
        "3 %/% 0 divides by zero",
        "n %/% 0",
    );
    check(
        "",
        "int n = 2000000000; n += n;",
        Rejected,
        "2000000000 + 2000000000 overflows the 32 bits of an int",
        "n += n",
    );
    check(
        "",
        "while (1) { }",
        Limit,
        "stopped after 100000 steps: does this loop or recursion end?",
        "while (1) { }",
    );
    check(
        "",
        "vector[-1 + size({1})] x; matrix[2, 2] m = [[1, 2], [2, 1]]; target += cholesky_decompose(m)[1, 1];",
        Rejected,
        "cholesky_decompose: the matrix is not positive definite",
        "cholesky_decompose(m)",
    );
    let (kind, message, _) = failure("real f(real x) { return f(x + 1); }", "target += f(p);");
    assert_eq!(kind, Excess);
    assert!(message.contains("does this"), "{message}");
    let (kind, message, _) = failure("", "vector[2000000000] x;");
    assert_eq!(kind, Excess);
    assert_eq!(
        message,
        "variable `x` has 2000000000 elements and would take 14.901 GiB, the limit is 2.000 GiB"
    );
    let (kind, message, _) = failure("", "target += sum(rep_vector(1, 2000000000));");
    assert_eq!(
        (
            kind,
            message.starts_with("the result has 2000000000 elements")
        ),
        (Excess, true)
    );
}

fn bad_data(declarations: &str, data: &str) -> String {
    let source = format!("data {{ {declarations} }}");
    let e = bind(&source, data).expect_err("an error");
    assert!(!e.message.contains('\n'));
    e.message.clone()
}

#[test]
fn data_errors() {
    let check = |declarations: &str, data: &str, expected: &str| {
        assert_eq!(
            bad_data(declarations, data),
            expected,
            "{declarations} {data}"
        );
    };
    check("int N;", "{}", "the program needs data, such as `N` (int)");
    check(
        "int N;",
        r#"{"M": 1}"#,
        "variable `N`: expected int, found nothing of that name in the data; the program does not declare `M`",
    );
    check(
        "int N;",
        r#"{"N": 1.5}"#,
        "variable `N`: expected an int, found 1.5",
    );
    check(
        "int N;",
        r#"{"N": 3000000000}"#,
        "variable `N`: expected an int, found 3000000000, which does not fit 32 bits",
    );
    check(
        "int N;",
        r#"{"N": [1, 2]}"#,
        "variable `N`: expected a single number (int), found a list of 2 numbers",
    );
    check(
        "array[2] int N;",
        r#"{"N": [1, 2.5]}"#,
        "variable `N[2]`: expected an int, found 2.5",
    );
    check(
        "int<lower=0> N;",
        r#"{"N": -1}"#,
        "variable `N`: expected at least 0, found -1",
    );
    check(
        "array[3] real<lower=0, upper=1> y;",
        r#"{"y": [0.5, 2, 1]}"#,
        "variable `y[2]`: expected at most 1, found 2",
    );
    check(
        "array[2] real<lower=0> y;",
        r#"{"y": [1, "NaN"]}"#,
        "variable `y[2]`: expected at least 0, found NaN",
    );
    check(
        "int N; vector[N] y;",
        r#"{"N": 3, "y": [1, 2]}"#,
        "variable `y`: expected a list of 3 numbers (vector[3]), found a list of 2 numbers",
    );
    check(
        "matrix[2, 3] y;",
        r#"{"y": [[1, 2], [3, 4]]}"#,
        "variable `y`: expected 2 × 3 numbers (matrix[2,3]), found 2 × 2 numbers",
    );
    check(
        "int N; vector[N] y;",
        r#"{"N": -3, "y": []}"#,
        "variable `y`: expected a size that is not negative, found -3",
    );
    check(
        "vector[1000000000] y;",
        r#"{"y": [1]}"#,
        "variable `y` has 1000000000 elements and would take 7.451 GiB, the limit is 2.000 GiB",
    );
    check(
        "array[50000, 50000] int y;",
        r#"{"y": [1]}"#,
        "variable `y` has 2500000000 elements and would take 9.313 GiB, the limit is 2.000 GiB",
    );
    check(
        "simplex[2] y;",
        r#"{"y": [0.5, 0.6]}"#,
        "variable `y`: expected a simplex, whose elements sum to 1, found sum 1.1",
    );
    check(
        "array[2] cov_matrix[2] y;",
        r#"{"y": [[[1, 0], [0, 1]], [[1, 2], [2, 1]]]}"#,
        "variable `y[2]`: expected a covariance matrix, which is positive definite, found a matrix that is not (pivot 2 is -3)",
    );
    check(
        "matrix<lower=0>[2, 2] y;",
        r#"{"y": [[1, -2], [3, 4]]}"#,
        "variable `y[1,2]`: expected at least 0, found -2",
    );
    check(
        "tuple(int, vector[2]) y;",
        r#"{"y": 3}"#,
        "variable `y`: expected a tuple of 2 components, found a single number",
    );
    check(
        "tuple(int, vector[2]) y;",
        r#"{"y": {"1": 3, "2": [1, 2, 3]}}"#,
        "variable `y`: component 2: expected a list of 2 numbers (vector[2]), found a list of 3 numbers",
    );
}

#[test]
fn data_are_read() {
    let source = "data {
            int N; array[N, 2] int k; matrix[2, 3] m; array[2] tuple(real, array[2] int) t; complex z; array[0, 3] real none;
        }
        generated quantities {
            int a = k[3, 2]; real b = m[2, 1]; real c = t[2].1 + t[1].2[2]; real d = get_imag(z); int e = size(none);
        }";
    let data = r#"{"N": 3, "k": [[1, 2], [3, 4], [5, 6]], "m": [[1, 2, 3], [4, 5, 6]],
        "t": {"1": [1.5, 2.5], "2": [[1, 2], [3, 4]]}, "z": [1, 2], "none": []}"#;
    let all = generated(source, data);
    let values: Vec<f64> = all.iter().flat_map(|(_, v)| v.clone()).collect();
    assert_eq!(values, [6.0, 4.0, 4.5, 2.0, 0.0]);
}

#[test]
fn violated_transformed_parameters_reject() {
    let source = "parameters { real p; } transformed parameters { real<lower=0> q = p; } model { }";
    let model = bind(source, "{}").expect("a model");
    assert_eq!(model.log_density(&[1.0], true, false), Ok(0.0));
    let e = model
        .log_density(&[-1.0], true, false)
        .expect_err("a rejection");
    assert_eq!(
        (e.kind, e.message.as_str()),
        (
            ErrorKind::Rejected,
            "variable `q`: expected at least 0, found -1"
        )
    );
}

#[test]
fn higher_order_functions() {
    let source = "functions {
            real part(array[] real x, int start, int end, real mu) { return normal_lpdf(x | mu, 1); }
            real bell(real x, real xc, array[] real theta, data array[] real x_r, data array[] int x_i) {
                return exp(-square(x - theta[1]));
            }
        }
        parameters { real p; }
        model {
            target += reduce_sum(part, {0.1, 0.7, -0.4}, 1, p);
            target += integrate_1d(bell, negative_infinity(), positive_infinity(), {p}, {0.0}, {0});
        }";
    let model = bind(source, "{}").expect("a model");
    let direct: f64 = [0.1, 0.7, -0.4]
        .iter()
        .map(|x: &f64| -0.5 * x * x - 0.918_938_533_204_672_7)
        .sum();
    let found = model.log_density(&[0.0], true, false).expect("a value");
    assert!((found - direct - std::f64::consts::PI.sqrt()).abs() < 1e-9);
}

/// Endless recursion through the largest frames must end with an error before the stack of a small thread overflows.
#[test]
fn recursion_fits_the_stack() {
    let functions = "real f(real x) {
        if (x > -1) { for (i in 1:1) { while (1) { { vector[1] v = [x > 0 ? f(-(-(x + 1))) : f(x + 1)]'; return v[1]; } } } }
        return f(x + 1);
    }";
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let run = thread.spawn(move || failure(functions, "target += f(p);"));
    let (kind, message, _) = run.expect("a thread").join().expect("no overflow");
    assert_eq!(kind, ErrorKind::Excess);
    assert_eq!(
        message,
        "stopped 1000 levels deep: does this recursion end?"
    );
}

#[test]
fn spectra_are_generated() {
    let source =
        "generated quantities { complex_vector[1] r = eigenvalues(to_complex([[1]], [[2]])); }";
    let model = bind(source, "{}").expect("a model");
    let mut out = Vec::new();
    let key = DrawKey { seed: 0, index: 0 };
    model
        .constrain_with(&[], key, &mut out, &mut |_| {})
        .expect("a draw");
    assert_eq!(out, [1.0, 2.0]);
}

#[test]
fn transform_functions() {
    let declared = "parameters { simplex[3] s; cholesky_factor_corr[3] L; matrix<lower=1>[2, 2] m; } model { }";
    let called = "parameters { vector[2] zs; vector[3] zl; matrix[2, 2] zm; }
        transformed parameters {
            vector[3] s = simplex_jacobian(zs);
            matrix[3, 3] L = cholesky_factor_corr_jacobian(zl, 3);
            matrix[2, 2] m = lower_bound_jacobian(zm, 1);
        }
        model { }
        generated quantities {
            vector[2] us = simplex_unconstrain(s);
            vector[3] ul = cholesky_factor_corr_unconstrain(L);
            matrix[2, 2] um = lower_bound_unconstrain(m, 1);
        }";
    let (a, b) = (
        bind(declared, "{}").expect("a model"),
        bind(called, "{}").expect("a model"),
    );
    let z = [0.3, -0.7, 1.1, 0.2, -0.4, 0.9, -1.3, 0.5, 0.6];
    assert_eq!(
        a.log_density(&z, true, false),
        b.log_density(&z, true, false)
    );
    assert_eq!(b.log_density(&z, false, false), Ok(0.0));
    let key = DrawKey { seed: 0, index: 0 };
    let (mut x, mut y) = (Vec::new(), Vec::new());
    a.constrain(&z, key, &mut x).expect("a draw");
    b.constrain(&z, key, &mut y).expect("a draw");
    assert_eq!(x[..], y[9..9 + x.len()]);
    for (back, z) in y[9 + x.len()..].iter().zip(z) {
        assert!((back - z).abs() < 1e-12);
    }
}

#[test]
fn a_factor_of_a_covariance_is_not_wider_than_high() {
    for declaration in [
        "cholesky_factor_cov[2, 3] L;",
        "array[2] cholesky_factor_cov[2, 3] L;",
    ] {
        for block in [
            "parameters",
            "transformed parameters",
            "generated quantities",
        ] {
            let error = bind(&format!("{block} {{ {declaration} }}"), "{}").expect_err(declaration);
            assert_eq!(error.kind, ErrorKind::Failed);
            assert_eq!(
                error.message,
                "variable `L`: a Cholesky factor has at least as many rows as columns, found 2 rows and 3 columns"
            );
        }
    }
    let high = bind("parameters { cholesky_factor_cov[3, 2] L; }", "{}").expect("a factor");
    assert_eq!(high.unconstrained_dim(), 5);
}
