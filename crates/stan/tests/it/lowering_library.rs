//! Tests the lowered library against the interpreter, which has separate formulas. The tests compare values at several
//! points, compare gradients with differences of the interpreter's values, and cover every combination of scalars and
//! containers.

use crate::support::bind;
use jensen_density::{DrawKey, Posterior};
use jensen_graph::evaluate;
use jensen_stan::interpret::BoundModel;
use jensen_stan::lower::{LowerOptions, lower};

const DATA: &str = r#"{"N": 3, "c": 0.7, "x": [0.3, -1.2, 2.0], "xp": [1.3, 0.2, 2.4], "k": [1, 0, 2], "b": [1, 0, 1],
    "n": [3, 4, 5], "cat": [1, 3, 2], "X": [[0.5, -1.0], [1.5, 0.3], [-0.2, 0.8]], "S": [[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]],
    "LS": [[1.4, 0, 0], [0.2, 1.1, 0], [-0.3, 0.4, 0.9]], "pts": [[0.1, 0.4], [1.2, -0.3], [0.5, 0.9]]}"#;

fn data() -> String {
    let row = |i: usize| {
        let row: Vec<String> = (0..10)
            .map(|j| format!("{}", ((3 * i + 7 * j + i * j) % 11) as f64 / 5.0 - 1.0))
            .collect();
        format!("[{}]", row.join(", "))
    };
    let rows: Vec<String> = (0..12).map(row).collect();
    let rows = rows.join(", ");
    DATA.replacen('{', &format!("{{\"W\": [{rows}], \"W2\": [{rows}], "), 1)
}

const HEADER: &str = "data {
  int N;
  real c;
  vector[N] x;
  vector[N] xp;
  array[N] int k;
  array[N] int b;
  array[N] int n;
  array[N] int cat;
  matrix[N, 2] X;
  cov_matrix[N] S;
  cholesky_factor_cov[N] LS;
  array[N] vector[2] pts;
  matrix[12, 10] W;
  array[12] vector[10] W2;
}
";

const PARAMETERS: &str = "parameters {
  real r;
  real<lower=0> p;
  real<lower=0> q;
  real<lower=0, upper=1> u;
  vector[N] v;
  vector<lower=0>[N] w;
  vector<lower=0, upper=1>[N] t;
  array[N] real a;
  row_vector[N] rv;
  matrix[N, 2] M;
  simplex[N] th;
  ordered[2] cut;
  cholesky_factor_corr[N] L;
  cov_matrix[N] C;
  corr_matrix[N] R;
  vector[2] beta;
  array[2] vector[N] av;
  vector[10] gg;
  matrix[10, 2] G;
}
";

fn points(dim: usize) -> Vec<Vec<f64>> {
    (0..4)
        .map(|k| {
            (0..dim)
                .map(|i| 0.9 * (1.3 * i as f64 + 2.1 * k as f64 + 0.4).sin() + 0.1 * k as f64)
                .collect()
        })
        .collect()
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b
        || (a.is_nan() && b.is_nan())
        || (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

fn compare(model: &BoundModel) -> Result<(), String> {
    let fail = |what: &str, found: f64, expected: f64| {
        Err(format!("{what}: {found} instead of {expected}"))
    };
    for (propto, jacobian) in [(false, true), (true, true), (false, false)] {
        let options = LowerOptions {
            propto,
            jacobian,
            ..LowerOptions::default()
        };
        let lowered = lower(model, options).map_err(|e| e.to_string())?;
        let mut graph = lowered.graph;
        jensen_graph::verify::verify(&graph).map_err(|e| e.to_string())?;
        let output = graph.outputs()[0];
        let z = graph.input_node(0);
        let gradient = graph.gradient(output, &[z])[0];
        graph.set_outputs(vec![output, gradient]);
        let rolled = jensen_graph::passes::reroll(&graph);
        for (i, z) in points(lowered.dim).iter().enumerate() {
            let found = evaluate(&graph, &[z], None);
            let expected = match model.log_density(z, jacobian, propto) {
                Ok(x) if x.is_finite() => x,
                _ if !found[0][0].is_finite() => continue,
                Ok(x) => return fail(&format!("value at point {i}"), found[0][0], x),
                Err(e) => return Err(format!("{} instead of rejection: {e}", found[0][0])),
            };
            if !close(found[0][0], expected, 1e-9) {
                return fail(
                    &format!("value at point {i} (propto {propto})"),
                    found[0][0],
                    expected,
                );
            }
            let again = evaluate(&rolled, &[z], None);
            for (a, b) in found.iter().flatten().zip(again.iter().flatten()) {
                if !close(*a, *b, 1e-9) {
                    return fail("after re-rolling", *b, *a);
                }
            }
            if propto || !jacobian {
                continue;
            }
            for (j, slope) in found[1].iter().enumerate() {
                let step = 1e-5;
                let at = |h: f64| {
                    let mut z = z.clone();
                    z[j] += h;
                    model.log_density(&z, jacobian, propto).unwrap_or(f64::NAN)
                };
                let difference = (8.0 * (at(step) - at(-step))
                    - (at(2.0 * step) - at(-2.0 * step)))
                    / (12.0 * step);
                if !close(*slope, difference, 2e-6) && difference.is_finite() {
                    return fail(&format!("slope {j} at point {i}"), *slope, difference);
                }
            }
        }
    }
    Ok(())
}

fn check(statements: &str) -> Result<(), String> {
    let declared: String = PARAMETERS
        .lines()
        .filter(|line| {
            let Some(name) = line
                .trim_end_matches(';')
                .rsplit(' ')
                .next()
                .filter(|_| line.ends_with(';'))
            else {
                return true;
            };
            statements
                .split(|ch: char| !ch.is_alphanumeric() && ch != '_')
                .any(|word| word == name)
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let source = if statements.contains("model {") {
        format!("{HEADER}{declared}{statements}")
    } else {
        format!("{HEADER}{declared}model {{\n{statements}\n}}\n")
    };
    let model = bind(&source, &data()).map_err(|e| e.to_string())?;
    compare(&model)
}

fn check_all(cases: &[&str]) {
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| check(case).err().map(|e| format!("{case}\n    {e}")))
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} differ:\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

#[test]
fn equal_elements_have_no_variance() {
    // Cube roots are sensitive to the last digits.
    for value in [
        "rep_vector(exp(a), 3)",
        "rep_array(inv_logit(a) * pi(), 40)",
        "softmax(rep_vector(a, 3))",
        "[exp(a), exp(a), exp(a)]",
    ] {
        for function in ["sd", "variance"] {
            let source = format!(
                "parameters {{ real a; }} model {{ target += cbrt({function}({value})); }}"
            );
            let model = bind(&source, "{}").unwrap();
            let graph = lower(&model, LowerOptions::default()).unwrap().graph;
            let rolled = jensen_graph::passes::reroll(&graph);
            for a in [0.3, -1.7, 2.1, 12.1] {
                assert_eq!(
                    model.log_density(&[a], true, false).unwrap(),
                    0.0,
                    "{source} at {a}"
                );
                for graph in [&graph, &rolled] {
                    assert_eq!(evaluate(graph, &[&[a]], None)[0][0], 0.0, "{source} at {a}");
                }
            }
        }
    }
}

#[test]
fn densities_of_numbers() {
    check_all(&[
        "r ~ normal(c, p);",
        "v ~ normal(r, p);",
        "v ~ normal(x, w);",
        "x ~ normal(r, p);",
        "x ~ normal(v, 2);",
        "c ~ normal(v, p);",
        "a ~ normal(x, w);",
        "target += normal_lpdf(v | r, p);",
        "target += normal_lupdf(v | r, 2);",
        "v ~ std_normal();",
        "v ~ cauchy(r, p);",
        "v ~ cauchy(0, 2.5);",
        "v ~ student_t(p, r, q);",
        "v ~ student_t(4, 0, 1);",
        "x ~ student_t(w, v, q);",
        "v ~ double_exponential(r, p);",
        "v ~ logistic(r, p);",
        "v ~ gumbel(r, p);",
        "v ~ skew_normal(r, p, u);",
        "v ~ exp_mod_normal(r, p, q);",
        "v ~ skew_double_exponential(r, p, u);",
        "v ~ von_mises(r, 2);",
        "v ~ von_mises(r, w);",
        "w ~ wiener(p + 1, 0.001, u, r);",
        "(p + 0.1) ~ wiener(q + 1, 0.05, u, r, w[1]);",
        "for (i in 1:N) (w[i] + 0.2) ~ wiener(p + 0.5, 0.1, u, r, q);",
        "for (i in 1:2) target += wiener_lpdf(w[i] + 0.3 | p + 0.5, 0.1, 0.3 + 0.4 * u, r, q, 0.2 * t[1], 0.05 + t[i]);",
        "target += wiener_lupdf(w + 0.3 | w + 0.5, rep_vector(0.1, N), 0.3 + 0.4 * t, v, rep_vector(q, N), 0.2 * t, 0.05 + t, 1e-4);",
        "target += wiener_lpdf(w + 0.3 | w + 0.5, rep_vector(0.1, N), 0.3 + 0.4 * t, v, rep_vector(q, N), 1e-3);",
        "target += wiener_lcdf_unnorm(p + 0.2, q + 0.6, 0.1, u, r) + wiener_lccdf_unnorm(p + 0.2, q + 0.6, 0.1, u, r, 1e-5);",
        "target += wiener_lcdf_unnorm(w + 0.2, w + 0.6, 0.1 * t, 0.3 + 0.4 * t, v, t, 0.3 * t, t);",
        "target += wiener_lccdf_unnorm(p + 0.2, q + 0.6, 0.1, 0.3 + 0.4 * u, r, q, 0, 0.05) + wiener_lccdf_unnorm(p + 0.2, q + 0.6, 0.1, 0.5, r, q, 0.3 * u, 0, 1e-3);",
        "xp ~ wiener(q, 0.15 * u, t, v);",
        "(w + 0.2) ~ wiener(w, 0.1, 0.4, r);",
        "w ~ exponential(p);",
        "xp ~ exponential(p);",
        "w ~ gamma(p, q);",
        "w ~ gamma(2, 0.1);",
        "xp ~ gamma(w, p);",
        "w ~ inv_gamma(p, q);",
        "w ~ chi_square(p);",
        "w ~ inv_chi_square(p);",
        "w ~ scaled_inv_chi_square(p, q);",
        "w ~ lognormal(r, p);",
        "xp ~ lognormal(v, w);",
        "w ~ weibull(p, q);",
        "xp ~ weibull(p, w);",
        "w ~ frechet(p, q);",
        "w ~ rayleigh(p);",
        "xp ~ rayleigh(w);",
        "w ~ pareto(0.0001, q);",
        "xp ~ pareto(p, q);",
        "w ~ pareto_type_2(0, p, q);",
        "w ~ loglogistic(p, q);",
        "t ~ beta(p, q);",
        "t ~ beta(2, 3);",
        "u ~ beta(w, xp);",
        "t ~ beta_proportion(u, p);",
        "v ~ uniform(-5, 5);",
        "u ~ uniform(0, 1);",
        "r ~ uniform(-p, p);",
        "b ~ bernoulli(u);",
        "b ~ bernoulli(t);",
        "1 ~ bernoulli(u);",
        "b ~ bernoulli(inv_logit(v));",
        "b ~ bernoulli_logit(v);",
        "b ~ bernoulli_logit(r);",
        "b[1] ~ bernoulli_logit(r);",
        "k ~ binomial(n, u);",
        "k ~ binomial(n, t);",
        "k ~ binomial(n, inv_logit(v));",
        "k ~ binomial_logit(n, v);",
        "2 ~ binomial_logit(n, r);",
        "k ~ beta_binomial(n, p, q);",
        "k ~ beta_binomial(n, w, q);",
        "n ~ beta_neg_binomial(p, q, w);",
        "n ~ yule_simon(p);",
        "k ~ poisson(p);",
        "k ~ poisson(w);",
        "k ~ poisson(exp(v));",
        "k ~ poisson_log(v);",
        "k ~ poisson_log(r);",
        "k ~ neg_binomial(p, q);",
        "k ~ neg_binomial_2(p, q);",
        "k ~ neg_binomial_2(w, 3);",
        "k ~ neg_binomial_2(exp(v), q);",
        "k ~ neg_binomial_2_log(v, q);",
        "k ~ neg_binomial_2_log(r, q);",
    ]);
}

#[test]
fn densities_in_loops() {
    check_all(&[
        "for (i in 1:N) x[i] ~ normal(v[i], p);",
        "for (i in 1:N) { v[i] ~ normal(r, w[i]); b[i] ~ bernoulli_logit(v[i]); }",
        "for (i in 1:N) { vector[2] m = [v[i], r]'; x[1:2] ~ normal(m, p); }",
        "for (i in 1:N) target += log_mix(u, normal_lpdf(x[i] | r, 1), normal_lpdf(x[i] | p, q));",
        "for (i in 1:N) { vector[2] lp = [log(u), log1m(u)]'; lp[1] += normal_lpdf(x[i] | r, p); lp[2] += normal_lpdf(x[i] | v[i], q); target += log_sum_exp(lp); }",
        "for (i in 1:N) { array[3] real s; for (j in 1:3) s[j] = v[j] * x[i]; target += log_sum_exp(s); }",
        "for (i in 1:N) k[i] ~ poisson(p * xp[i]);",
        "for (i in 1:N) X[i] ~ normal(M[i], p);",
        "for (i in 1:N) x[i] ~ normal(X[i] * beta, p);",
        "for (i in 1:12) target += square(W[i] * gg - r);",
        "for (i in 1:12) target += square(dot_product(gg, W[i]) - dot_product(W2[i], gg));",
        "for (i in 1:12) { vector[2] eta = (W[i] * [gg', 2 * gg']')'; target += log_sum_exp(eta); }",
        "for (i in 1:12) { row_vector[2] eta = W[i] * G; target += log_sum_exp(eta); }",
        "for (i in 1:N) x[i] ~ normal(dot_product(X[i], beta) + v[i], p);",
        "for (i in 1:N) pts[i] ~ multi_normal([r, v[i]]', [[p + 1, 0.2], [0.2, q + 1]]);",
    ]);
}

#[test]
fn distribution_functions() {
    let names = [
        ("normal", "v", "r, p"),
        ("std_normal", "v", ""),
        ("cauchy", "v", "r, p"),
        ("logistic", "v", "r, p"),
        ("double_exponential", "v", "r, p"),
        ("gumbel", "v", "r, p"),
        ("exponential", "w", "p"),
        ("weibull", "w", "p, q"),
        ("frechet", "w", "p, q"),
        ("lognormal", "w", "r, p"),
        ("pareto", "w", "0.00001, q"),
        ("pareto_type_2", "w", "0, p, q"),
        ("rayleigh", "w", "p"),
        ("exp_mod_normal", "v", "r, p, q"),
        ("uniform", "v", "-4, 4"),
        ("uniform", "v", "-0.3, 0.4"),
        ("bernoulli", "b", "t"),
        ("student_t", "v", "p, r, q"),
        ("skew_normal", "v", "r, p, 3 * r"),
        ("skew_double_exponential", "v", "r, p, u"),
        ("von_mises", "v", "r, p"),
        ("chi_square", "w", "p"),
        ("inv_chi_square", "w", "p"),
        ("scaled_inv_chi_square", "w", "p, q"),
        ("gamma", "w", "p, q"),
        ("gamma", "v", "p, q"),
        ("inv_gamma", "w", "p, q"),
        ("beta", "t", "p, q"),
        ("beta", "v", "p, q"),
        ("beta", "u", "w, xp"),
        ("binomial", "k", "n, t"),
        ("binomial", "k", "1, u"),
        ("beta_binomial", "k", "n, p, w"),
        ("beta_binomial", "k", "1, p, w"),
        ("beta_neg_binomial", "k", "p, q, w"),
        ("yule_simon", "n", "w"),
        ("yule_simon", "k", "w"),
        ("poisson", "k", "w"),
        ("neg_binomial", "k", "w, p"),
        ("neg_binomial_2", "k", "w, p"),
    ];
    let mut cases = vec![
        "target += beta_proportion_lcdf(t | u, p) + beta_proportion_lccdf(t | u, p);".to_owned(),
        "target += log(loglogistic_cdf(w | p, q));".to_owned(),
        "target += poisson_lcdf(-1 | p) + poisson_lccdf(-1 | p) + binomial_lccdf(3 | 3, u);"
            .to_owned(),
    ];
    for (name, x, rest) in names {
        cases.push(format!("target += {name}_lcdf({x} | {rest});"));
        cases.push(format!("target += {name}_lccdf({x} | {rest});"));
        cases.push(format!("target += log({name}_cdf({x} | {rest}));"));
    }
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    check_all(&cases);
}

#[test]
fn truncation() {
    check_all(&[
        "r ~ normal(0, 1) T[-1, 2];",
        "p ~ cauchy(0, 10) T[0, ];",
        "r ~ normal(v[1], p) T[, 3];",
        "for (i in 1:N) v[i] ~ normal(r, w[i]) T[-2, 2];",
        "xp[1] ~ lognormal(r, p) T[0.1, 4];",
        "u ~ exponential(p) T[0.1, ];",
        "p ~ gamma(q, r + 5) T[0.01, 40];",
        "u ~ beta(p, q) T[0.01, 0.99];",
        "r ~ student_t(p, 0, q) T[-9, ];",
        "k[3] ~ poisson(p) T[1, 9];",
        "k[3] ~ neg_binomial_2(p, q) T[1, ];",
        "k[3] ~ binomial(9, u) T[, 5];",
    ]);
}

#[test]
fn densities_of_vectors() {
    check_all(&[
        "v ~ multi_normal(x, S);",
        "v ~ multi_normal(x, C);",
        "x ~ multi_normal(v, C);",
        "av ~ multi_normal(x, C);",
        "av ~ multi_normal(v, S);",
        "rv ~ multi_normal(v, C);",
        "v ~ multi_normal(x, quad_form_diag(R, w));",
        "av ~ multi_normal_cholesky(v, diag_pre_multiply(w, L));",
        "x ~ multi_normal_cholesky(v, LS);",
        "v ~ multi_normal_prec(x, C);",
        "av ~ multi_student_t(p + 1, x, C);",
        "av ~ multi_student_t_cholesky(p + 1, v, LS);",
        "M' ~ multi_gp(S, to_vector({1.0, 2.0}));",
        "th ~ dirichlet(xp);",
        "th ~ dirichlet(w);",
        "{th, th} ~ dirichlet(w);",
        "cat ~ categorical(th);",
        "2 ~ categorical(th);",
        "cat ~ categorical(softmax(v));",
        "cat ~ categorical_logit(v);",
        "2 ~ categorical_logit(v);",
        "k ~ multinomial(th);",
        "k ~ dirichlet_multinomial(w);",
        "for (i in 1:N) cat[i] ~ categorical(th);",
        "for (i in 1:N) cat[i] ~ categorical_logit(v * x[i]);",
        "k ~ multinomial_logit(v);",
        "cat ~ ordered_logistic(v, cut);",
        "2 ~ ordered_logistic(r, cut);",
        "cat ~ ordered_probit(v, cut);",
        "cat ~ ordered_logistic(v, {cut, cut, cut});",
        "2 ~ ordered_probit(r, cut);",
        "L ~ lkj_corr_cholesky(2);",
        "L ~ lkj_corr_cholesky(p);",
        "L ~ lkj_corr_cholesky(1);",
        "R ~ lkj_corr(2);",
        "target += lkj_cov_lpdf(C | v, w, p);",
        "target += gaussian_dlm_obs_lpdf(X | [[r, p, 1.0], [q, u, 0.3], [0.2, 1, 2]], C, w, S, v, C);",
        "target += gaussian_dlm_obs_lpdf(X' | S[1:2, 1:2], M[1:2], C[1:2, 1:2], C[2:3, 2:3], beta, S[1:2, 1:2]);",
        "target += hmm_marginal(to_matrix(gg[1:6], 3, 2), [th', [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], th);",
        "R ~ lkj_corr(p);",
        "C ~ wishart(5, S);",
        "C ~ wishart(p + 3, S);",
        "S ~ wishart(p + 3, C);",
        "C ~ inv_wishart(5, S);",
        "S ~ inv_wishart(p + 3, C);",
        "LS ~ wishart_cholesky(p + 3, L);",
        "L ~ inv_wishart_cholesky(p + 3, LS);",
        "x ~ normal_id_glm(X, r, beta, p);",
        "x ~ normal_id_glm(X, v, beta, p);",
        "b ~ bernoulli_logit_glm(X, r, beta);",
        "b ~ bernoulli_logit_glm(X, v, beta);",
        "k ~ poisson_log_glm(X, r, beta);",
        "k ~ binomial_logit_glm(n, X, r, beta);",
        "k ~ neg_binomial_2_log_glm(X, v, beta, p);",
        "cat ~ ordered_logistic_glm(X, beta, cut);",
        "cat ~ categorical_logit_glm(X, v, [[r, p, q], [u, r, 1.0]]);",
    ]);
}

#[test]
fn functions_of_numbers() {
    let unary: &[(&str, &str)] = &[
        ("Phi", "v"),
        ("Phi_approx", "v"),
        ("abs", "v"),
        ("acos", "t"),
        ("acosh", "(1.5 + w)"),
        ("asin", "t"),
        ("asinh", "v"),
        ("atan", "v"),
        ("atanh", "t"),
        ("cbrt", "w"),
        ("ceil", "v"),
        ("cos", "v"),
        ("cosh", "v"),
        ("digamma", "w"),
        ("erf", "v"),
        ("erfc", "v"),
        ("exp", "v"),
        ("exp2", "v"),
        ("expm1", "v"),
        ("fabs", "v"),
        ("floor", "v"),
        ("inv", "w"),
        ("inv_Phi", "t"),
        ("inv_cloglog", "v"),
        ("inv_logit", "v"),
        ("inv_sqrt", "w"),
        ("inv_square", "w"),
        ("lgamma", "w"),
        ("log", "w"),
        ("log10", "w"),
        ("log1m", "t"),
        ("log1m_exp", "(-w)"),
        ("log1m_inv_logit", "v"),
        ("log1p", "w"),
        ("log1p_exp", "v"),
        ("log2", "w"),
        ("log_inv_logit", "v"),
        ("logit", "t"),
        ("round", "v"),
        ("sin", "v"),
        ("sinh", "v"),
        ("sqrt", "w"),
        ("square", "v"),
        ("std_normal_qf", "t"),
        ("std_normal_log_qf", "(-w)"),
        ("step", "v"),
        ("tan", "v"),
        ("tanh", "v"),
        ("tgamma", "w"),
        ("tgamma", "(v - 0.7)"),
        ("trigamma", "w"),
        ("trunc", "v"),
    ];
    let mut cases: Vec<String> = Vec::new();
    for (name, x) in unary {
        let vector = !matches!(*name, "step" | "fabs");
        if *name == "fabs" {
            continue;
        }
        if vector {
            cases.push(format!("target += {name}({x});"));
        }
        cases.push(format!("for (i in 1:N) target += {name}({x}[i]);").replace(")[", ")["));
    }
    for (name, x, y) in [
        ("atan2", "v", "w"),
        ("beta", "w", "p"),
        ("fdim", "v", "r"),
        ("fmax", "v", "x"),
        ("fmin", "v", "r"),
        ("fmod", "w", "p"),
        ("hypot", "v", "p"),
        ("lbeta", "w", "q"),
        ("lchoose", "(5 + w)", "p"),
        ("lmultiply", "w", "p"),
        ("lmultiply", "xp", "w"),
        ("log_diff_exp", "(x + 9)", "v"),
        ("log_falling_factorial", "(6 + p)", "w"),
        ("log_inv_logit_diff", "(x + 9)", "v"),
        ("log_rising_factorial", "w", "p"),
        ("pow", "w", "r"),
        ("log_sum_exp", "v", "x"),
        ("pow", "v", "2"),
        ("pow", "w", "0.5"),
    ] {
        cases.push(format!("target += {name}({x}, {y});"));
    }
    cases.push("target += fma(r, p, q);".into());
    cases.push("target += ldexp(r, 3);".into());
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    check_all(&cases);
}

#[test]
fn special_functions() {
    check_all(&[
        "target += gamma_p(p, w) + gamma_q(w, q);",
        "target += gamma_p(p, 0) + gamma_q(q, 0) * p;",
        "target += hypergeometric_1F0(r, u) + hypergeometric_1F0(-p, -0.9 * u);",
        "target += hypergeometric_2F1(r, p, q + 0.5, u) + hypergeometric_2F1(p, q, 1.5, -w[1]) + hypergeometric_2F1(-3, r, p, c);",
        "for (i in 1:N) target += hypergeometric_2F1(p, w[i], q + 0.5, t[i]) + x[i] * p;",
        "target += hypergeometric_3F2([r, p, q], [q + 1, w[1] + 0.5]', -u) + hypergeometric_3F2(v, {p, q}, 0.3 * u);",
        "target += hypergeometric_pFq(v, w, r) + hypergeometric_pFq(a, [p], 0) + hypergeometric_pFq(x, xp, p);",
        "target += owens_t(v, r) + owens_t(r, x);",
        "target += lambert_w0(w) + lambert_wm1(-0.3 * t);",
        "target += inv_erfc(t) + binary_log_loss(b, t) + binary_log_loss(1, u);",
        "target += inc_beta(p, q, u) + inv_inc_beta(p, q, u);",
        "target += bessel_first_kind(k, v) + bessel_first_kind(2, r) + bessel_second_kind(k, w);",
        "target += modified_bessel_first_kind(k, v) + modified_bessel_second_kind(k, w);",
        "target += log_modified_bessel_first_kind(p, w) + log_modified_bessel_first_kind(0, w);",
        "target += log_modified_bessel_first_kind(w, 9 * p) + log_modified_bessel_first_kind(u, 80 * p + 60);",
        "target += rising_factorial(v, 3) + falling_factorial(v, k) + rising_factorial(r, 4);",
        "target += int_step(r) * p + logical_lt(r, p) * q + logical_gte(r, 0) * u + logical_neq(p, 1);",
    ]);
}

#[test]
fn complex_numbers() {
    let part = "complex z = to_complex(r, p); complex y = to_complex(u, -q); ";
    let mut cases: Vec<String> = [
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "conj", "cos", "cosh", "exp", "log", "log10",
        "proj", "sin", "sinh", "sqrt", "tan", "tanh",
    ]
    .iter()
    .map(|f| format!("{part}complex e1 = {f}(z); complex e2 = {f}(y * 0.7); target += get_real(e1) + 2 * get_imag(e1) + get_real(e2) - get_imag(e2);"))
    .collect();
    let vectors = "complex_vector[N] e1 = to_complex(v, w); complex_vector[N] e2 = to_complex(x, -v); complex_matrix[N, 2] E1 = to_complex(M, X); complex_matrix[N, N] E2 = to_complex(C, S); ";
    for statement in [
        "complex e1 = z * y + z / y - 2i * z + pow(z, y) + z ^ 2; target += get_real(e1) + 2 * get_imag(e1);",
        "target += abs(z) + arg(y) + norm(z) + get_real(polar(r, p)) + get_imag(-z) + (z == y ? 1 : r);",
        "complex e1 = r > 0 ? z : y; array[2] complex e3 = {z, y}; e3[1] = e1 * 2; target += get_real(prod(e3)) + get_imag(sum(e3)) + get_imag(e3[1]);",
    ] {
        cases.push(format!("{part}{statement}"));
    }
    for statement in [
        "e1[2] = to_complex(r, 1); complex s = sum(e1) + prod(e2) + dot_product(e1, e2) + dot_self(e1); target += get_real(s) + 2 * get_imag(s);",
        "complex s = sum(E2 * e1) + sum(e2' * E1) + sum(E1') + sum(e1 .* e2) + sum(e1 ./ e2) + trace(E2); target += get_real(s) + 2 * get_imag(s);",
        "complex s = sum(e2' / E2) + sum(diag_pre_multiply(e1, E1)) + sum(columns_dot_product(E1, E1)) + sum(rows_dot_self(E1)); target += get_real(s) + 2 * get_imag(s);",
        "complex_vector[N] f = fft(e1) + 2 * inv_fft(e2); complex_matrix[N, 2] F = fft2(E1) - inv_fft2(E1); complex s = f[2] + F[2, 1] + 3 * F[3, 2]; target += get_real(s) + 2 * get_imag(s);",
        "complex s = sum(head(e1, 2)) + sum(append_row(e1, e2)[3:4]) + sum(block(E2, 1, 2, 2, 2)) + sum(rep_vector(to_complex(r, p), 3)) + sum(symmetrize_from_lower_tri(E2)[1]); target += get_real(s) + 2 * get_imag(s);",
        "complex s = sum(exp(to_complex(r, 1)) * e1) + sum(get_imag(E1) .* X) + rows(E1) * cols(E1) * size(e1) * r; target += get_real(s) + 2 * get_imag(s) + sum(abs(e1));",
    ] {
        cases.push(format!("{vectors}{statement}"));
    }
    let cases: Vec<&str> = cases.iter().map(String::as_str).collect();
    check_all(&cases);
}

/// The real part of each number precedes its imaginary part, as in Stan.
#[test]
fn complex_parameters() {
    let source = "parameters {
  complex z;
  array[2] complex_vector[2] v;
  complex_row_vector[0] none;
  complex_matrix[2, 2] m;
  tuple(real, complex) t;
}
transformed parameters { complex_vector[2] w = m * v[2] + z; }
model {
  target += get_real(z) + 2 * get_imag(z) + 3 * get_real(v[1][2]) + 5 * get_imag(v[2][1]);
  target += 7 * get_real(m[2, 1]) + 11 * get_imag(m[1, 2]) + 13 * t.1 + 17 * get_imag(t.2);
  target += -norm(z - m[1, 1]) - abs(exp(v[1][1])) - square(get_real(w[2] * conj(w[1]))) - sum(get_imag(v[2]));
}";
    let model = bind(source, "{}").unwrap();
    compare(&model).unwrap_or_else(|e| panic!("{e}"));
    let names = model.unconstrained_names();
    let expected = "z.real z.imag v.1.1.real v.1.1.imag v.1.2.real v.1.2.imag v.2.1.real v.2.1.imag v.2.2.real \
        v.2.2.imag m.1.1.real m.1.1.imag m.2.1.real m.2.1.imag m.1.2.real m.1.2.imag m.2.2.real m.2.2.imag t:1 \
        t:2.real t:2.imag";
    assert_eq!(names.join(" "), expected);
    // Without the nonlinear terms, the derivative with respect to each coordinate named above is the coordinate's
    // factor.
    let linear = source.replace("target += -norm", "target += 0 * -norm");
    let linear = linear.replace("(v[1][1])) -", "(v[1][1])) * 0 -");
    let linear = linear
        .replace("- square", "- 0 * square")
        .replace("- sum", "- 0 * sum");
    let model = bind(&linear, "{}").unwrap();
    let slope = |name: &str| {
        let mut z = vec![0.25; names.len()];
        let before = model.log_density(&z, true, false).unwrap();
        z[names.iter().position(|n| n == name).unwrap()] += 1.0;
        model.log_density(&z, true, false).unwrap() - before
    };
    for (name, factor) in [
        ("z.real", 1.0),
        ("z.imag", 2.0),
        ("v.1.2.real", 3.0),
        ("v.2.1.imag", 5.0),
        ("m.2.1.real", 7.0),
        ("m.1.2.imag", 11.0),
        ("t:1", 13.0),
        ("t:2.imag", 17.0),
        ("t:2.real", 0.0),
    ] {
        assert!(
            (slope(name) - factor).abs() < 1e-12,
            "{name}: {}",
            slope(name)
        );
    }
    // The inverse must return the coordinates.
    let z: Vec<f64> = (0..names.len()).map(|i| (i as f64).sin()).collect();
    let mut out = Vec::new();
    let key = DrawKey { seed: 1, index: 0 };
    model.constrain(&z, key, &mut out).unwrap();
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    let mut rest = &out[..];
    for variable in model.variables() {
        let (own, behind) = rest.split_at(variable.len());
        all.push((variable.name.clone(), own.to_vec()));
        rest = behind;
    }
    let lookup = |name: &str| {
        let found = all.iter().find(|(known, _)| known == name);
        found.map(|(_, numbers)| numbers.clone())
    };
    let back = model.unconstrain(&lookup).unwrap();
    assert_eq!(back.len(), z.len());
    for (a, b) in back.iter().zip(&z) {
        assert!((a - b).abs() < 1e-15);
    }
}

#[test]
fn factorisations() {
    check_all(&[
        "target += determinant(C) + determinant(C[1:2, 1:2]) + determinant([[r, p], [q, u]]) + determinant(to_matrix(gg[1:9], 3, 3));",
        "target += 1e-3 * determinant(add_diag(0.1 * p * rep_matrix(sin(linspaced_vector(20, 1, 20)), 20), 1 + 0.1 * w[1]));",
        "target += dot_product(eigenvalues_sym(C), x);",
        "target += sum(eigenvectors_sym(C) .* S);",
        "matrix[N, N] V; vector[N] e; (V, e) = eigendecompose_sym(C); target += sum(V[1]) * sum(e .* x);",
        "complex_vector[N] z = eigenvalues(C .* W[1:3, 1:3]); target += dot_product(get_real(z), x) + sum(abs(z));",
        "complex_matrix[N, N] z = eigenvectors(C .* W[1:3, 1:3] + to_complex(0, 0.3) * W[1:3, 2:4]); target += sum(get_real(z) .* S) + sum(get_imag(z[1]));",
        "complex_matrix[N, N] V; complex_vector[N] e; (V, e) = eigendecompose(C .* W[1:3, 1:3]); target += sum(get_real(V * e)) + abs(V[1, 2]);",
        "complex_matrix[N, N] H = C + to_complex(0, r) * (W[1:3, 1:3] - W[1:3, 1:3]'); target += dot_product(get_real(eigenvalues_sym(H)), x) + sum(get_imag(eigenvectors_sym(H)));",
        "complex_matrix[N, N] V; complex_vector[N] e; (V, e) = eigendecompose_sym(C + to_complex(0, r) * (W[1:3, 1:3] - W[1:3, 1:3]')); target += sum(get_real(V * e));",
        "complex_matrix[N, 2] z = to_complex(M, X); target += dot_product(singular_values(z), beta) + sum(get_real(svd_U(z)) .* X) + sum(get_imag(svd_V(z)));",
        "complex_matrix[2, 2] U; vector[2] s; complex_matrix[N, 2] V; (U, s, V) = svd(to_complex(M', 0)); target += sum(get_real(U * diag_matrix(s) * V')) + sum(s);",
        "target += dot_product(singular_values(M), beta) + sum(singular_values(M'));",
        "target += sum(svd_U(M) .* X) + sum(svd_V(M)[1]) + sum(svd_U(M')[2]);",
        "target += sum(qr_thin_Q(M) .* X) + sum(qr_thin_R(M)[1]) + qr_thin_R(M)[2, 2];",
        "target += sum(qr_Q(M)[:, 1:2] .* X) + sum(qr_R(M)[1]) + sum(qr_R(M')[2]) + sum(qr_Q(M')[2]);",
        "target += sum(generalized_inverse(M) .* X') + sum(generalized_inverse(M'));",
        "target += sum(matrix_power(C, 3)) + sum(matrix_power(C, 0)[1]) + sum(matrix_power(C, 1)[2]);",
        "target += sum(matrix_exp(0.3 * C) .* S) + sum(matrix_exp([[r, p], [q, u]]));",
        "target += sum(matrix_exp_multiply(0.2 * C, M)) + sum(scale_matrix_exp_multiply(u, S, M));",
        "target += trace_dot(M', X) + trace_dot(C, S);",
        "target += sum(csr_to_dense_matrix(3, 2, append_row(v, r), {1, 2, 2, 1}, {1, 3, 4, 5}) .* X);",
        "target += sum(csr_extract_w(M)) + csr_extract_v(M)[2] + csr_extract_u(M)[2];",
        "target += dot_product(sort_asc(v), x) + dot_product(sort_desc(a), a) + rank(v, 2) * r;",
        "array[N] int o = sort_indices_asc(v); target += o[1] * r; target += sort_indices_desc(rv)[2] * p;",
        "target += sum(gp_periodic_cov(pts, p, q, u)) + sum(gp_periodic_cov({v[1:2], beta}, pts, p, q, u));",
        "target += sum(gp_periodic_cov(a, p, q, u) .* S);",
    ]);
}

#[test]
fn constraining_functions() {
    let transforms = [
        ("lower_bound", "v", ", r"),
        ("lower_bound", "v", ", x"),
        ("upper_bound", "M", ", r"),
        ("lower_upper_bound", "v", ", r, r + p"),
        ("lower_upper_bound", "r", ", -1, 2"),
        ("offset_multiplier", "v", ", r, w"),
        ("ordered", "v", ""),
        ("positive_ordered", "v", ""),
        ("simplex", "v", ""),
        ("simplex", "av", ""),
        ("unit_vector", "v", ""),
        ("sum_to_zero", "v", ""),
        ("sum_to_zero", "M", ""),
        ("stochastic_column", "M", ""),
        ("stochastic_row", "M", ""),
        ("cholesky_factor_corr", "v", ", 3"),
        ("cholesky_factor_cov", "v", ", 2, 2"),
        ("cholesky_factor_cov", "gg", ", 4, 4"),
        ("corr_matrix", "v", ", 3"),
        ("cov_matrix", "av", ", 2"),
    ];
    let cases = [
        "target += sum(lower_bound_unconstrain(w, 0) .* x) + sum(upper_bound_unconstrain(-w, u));",
        "target += sum(lower_upper_bound_unconstrain(t, 0, 1 + p) .* x) + offset_multiplier_unconstrain(r, p, q);",
        "target += sum(ordered_unconstrain(cut) .* beta) + sum(simplex_unconstrain(th) .* beta);",
        "target += sum(positive_ordered_unconstrain(exp(cut)) .* beta) + sum(unit_vector_unconstrain(v / norm2(v)) .* x);",
        "target += sum(cholesky_factor_corr_unconstrain(L) .* x) + sum(corr_matrix_unconstrain(R) .* x);",
        "target += sum(cholesky_factor_cov_unconstrain(cholesky_decompose(C)) .* gg[1:6]) + sum(cov_matrix_unconstrain(C) .* gg[1:6]);",
        "target += sum(sum_to_zero_unconstrain(v - mean(v)) .* beta);",
        "target += sum(sum_to_zero_unconstrain(sum_to_zero_constrain(M)) .* X);",
        "target += sum(stochastic_column_unconstrain(stochastic_column_constrain(M)) .* X);",
        "target += sum(stochastic_row_unconstrain(stochastic_row_constrain(M)) .* X);",
    ];
    for (name, x, rest) in transforms {
        let call = |way: &str| format!("weighed({name}_{way}({x}{rest}))");
        check_program(WEIGHED, &format!("target += {};", call("constrain")));
        check_blocks(
            WEIGHED,
            &format!(
                "transformed parameters {{ real y = {}; }} model {{ target += y; }}",
                call("jacobian")
            ),
        );
    }
    check_all(&cases);
}

#[test]
fn operators_and_containers() {
    check_all(&[
        "tuple(vector[N], real, int, int, int, int) o = generate_laplace_options(v); target += sum(o.1 .* x) + o.2 + o.3 + o.5 * o.4 + o.6;",
        "tuple(vector[N], real, int, int, int, int) o = generate_laplace_options(N); target += r * (sum(o.1) + o.2 + o.3 + o.4 + o.5 + o.6);",
        "target += v + x - r;",
        "target += v .* x ./ w;",
        "target += (r + v) / p;",
        "target += v .^ 2 + 2 .^ v;",
        "target += v' * x;",
        "target += rv * v;",
        "target += X * beta;",
        "target += v' * X * beta;",
        "target += sum(M' * M);",
        "target += sum(M * X');",
        "target += sum(v * rv);",
        "target += sum(C \\ v);",
        "target += sum(rv / C);",
        "target += sum(S \\ M);",
        "target += sum(M' / S);",
        "target += sum(-v) - r;",
        "target += prod(w) + mean(v) + variance(v) + sd(a);",
        "target += max(v) + min(w) + max(a);",
        "target += norm1(v) + norm2(v);",
        "target += log_sum_exp(v) + log_sum_exp(a) + log_sum_exp(r, p);",
        "target += softmax(v)[2] + log_softmax(v)[1];",
        "target += log_mix(u, r, p) + log_mix(th, v);",
        "target += log_mix(th, {v, w});",
        "target += dot_product(cumulative_sum(v), x);",
        "target += dot_product(v, x) + dot_self(v) + distance(v, x) + squared_distance(v, w);",
        "target += sum(rows_dot_product(M, X)) + sum(columns_dot_self(M)) + rows_dot_self(M)[2];",
        "target += to_vector(M)[2] * to_row_vector(a)[1] * to_array_1d(v)[3];",
        "target += sum(to_matrix(v, 1, 3) * v) + to_matrix(to_vector(M), 2, 3)[1, 2] + to_matrix(a, 3, 1, 0)[2, 1];",
        "target += to_array_2d(M)[2, 1] + sum(to_matrix(to_array_2d(M)) .* X);",
        "target += dot_product(append_row(v, r), append_row(1.5, x));",
        "target += sum(append_row(M, X)[4]) + sum(append_col(M, v)[2]) + append_col(rv, r)[4] * p;",
        "target += sum(append_array(a, {r, p})) + append_array({v}, {x, w})[3][2];",
        "target += rep_vector(r, 4)[2] + sum(rep_matrix(v, 2)) + sum(rep_matrix(rv, 3)[2]) + rep_matrix(p, 2, 2)[1, 2];",
        "target += rep_array(v, 2)[2][3] + sum(rep_array(r, 3)) + rep_row_vector(p, 2)[1];",
        "target += sum(head(v, 2)) + sum(tail(a, 2)) + sum(segment(v, 2, 2)) + tail(av, 1)[1][2];",
        "target += sum(block(C, 1, 2, 2, 2)) + sum(sub_col(C, 1, 2, 2)) + sum(sub_row(C, 2, 1, 2)) + sum(col(M, 2)) + sum(row(M, 2));",
        "target += sum(diagonal(C)) + sum(diag_matrix(w) * v) + trace(C) + sum(add_diag(C, p)) + sum(add_diag(C, w));",
        "target += reverse(v)[1] + symmetrize_from_lower_tri(C)[1, 2];",
        "target += size(v) * r + num_elements(M) + rows(M) * cols(C);",
        "target += sum(crossprod(M)) + sum(tcrossprod(M)) + sum(multiply_lower_tri_self_transpose(C));",
        "target += sum(diag_pre_multiply(w, C)) + sum(diag_post_multiply(C, w));",
        "target += quad_form(C, v) + sum(quad_form(C, M)) + sum(quad_form_diag(R, w)) + quad_form_sym(C, v);",
        "target += trace_quad_form(C, M) + trace_gen_quad_form([[p, r], [r, q]], S, M);",
        "target += sum(cholesky_decompose(C)) + sum(cholesky_decompose(R)) + log_determinant(C) + log_determinant_spd(C);",
        "target += sum(mdivide_left_tri_low(L, v)) + sum(mdivide_right_tri_low(rv, L)) + sum(mdivide_left_spd(C, v)) + sum(mdivide_right_spd(rv, C));",
        "target += sum(inverse(C)) + sum(inverse_spd(C)) + sum(chol2inv(LS) * v);",
        "target += sum(gp_exp_quad_cov(pts, p, q)) + sum(gp_exp_quad_cov(a, p, q));",
        "target += sum(gp_exp_quad_cov(pts, p, {q, u})) + sum(gp_exp_quad_cov(to_array_1d(x), a, p, q));",
        "target += sum(gp_matern32_cov(pts, p, q)) + sum(gp_matern52_cov(pts, p, q)) + sum(gp_exponential_cov(pts, p, q));",
        "target += sum(gp_dot_prod_cov(pts, p)) + sum(gp_matern32_cov(pts, p, {q, u}));",
        "target += sum(cholesky_decompose(add_diag(gp_exp_quad_cov(pts, p, q), 1)));",
        "target += sum(gp_periodic_cov(pts, p, q, u)) + lmgamma(3, p + 2) + sum(lmgamma(2, w + 1));",
        "target += sum(csr_matrix_times_vector(3, 3, [1.5, 2, -1, 0.5]', {1, 3, 2, 1}, {1, 3, 3, 5}, v) .* x);",
        "target += sum(csr_matrix_times_vector(3, 3, append_row(v, r), {1, 3, 2, 1}, {1, 3, 3, 5}, w));",
        "target += (r > 0 ? p : q) + (r > 0 && p > 1 ? 2 : 3) * r + (c > 0 ? v[1] : v[2]);",
        "target += v[cat] + v[2:] [1] + sum(M[cat, 2]) + M[2, 1] + sum(M[:, 1]) + sum(av[2, 1:2]);",
    ]);
}

#[test]
fn statements() {
    check_all(&[
        "real s = 0; for (i in 1:N) { s += v[i] * x[i]; if (i == 2) continue; s *= 2; } target += s;",
        "vector[N] y; for (i in 1:N) y[i] = i == 1 ? v[1] : y[i - 1] * u + v[i]; y ~ normal(0, 1);",
        "matrix[N, 2] Y = M; Y[2] = [r, p]; Y[:, 1] += v; Y[1, 2] = c; target += sum(Y .* X);",
        "array[2, N] real g; for (i in 1:2) for (j in 1:N) g[i, j] = i * v[j]; target += log_sum_exp(g[2]); g[1] = a; target += sum(g[1]);",
        "if (r > 0) { target += p; } else { target += -q; }",
        "real y = 1; if (r > 0.2) { y = p; v[1] ~ normal(0, 1); } target += y * r;",
        "vector[N] y = v; if (r > 0) { y[2] = p; } else if (p > 1) { y = w; } target += sum(y .* x);",
        "real y = p; if (r > 0) reject(\"positive\"); target += y;",
        "int i = 0; while (i < 3) { i += 1; if (i == 2) break; target += v[i]; }",
        "for (e in v) target += square(e); for (e in M) target += e; for (e in av) target += e[1]; for (i in k) target += i * r;",
        "tuple(real, vector[N]) y = (r, v); y.1 += 2; y.2[1] = p; target += y.1 * sum(y.2);",
        "real y; real s; (y, s) = (r, p); target += y * s;",
        "{ real y = r; y ~ normal(0, 1); } target += target() * 0.5;",
        "print(\"r = \", r); profile(\"a\") { v ~ normal(0, 1); }",
        "array[2] tuple(real, real) y; y[1] = (r, p); y[2] = (q, u); target += y[2].1 + y[1].2;",
    ]);
}

#[test]
fn transformed_parameters() {
    check_all(&[
        "transformed parameters { real<lower=0> s = p * q; vector<upper=100>[N] y = v; simplex[N] z = softmax(v); ordered[2] o = cut; jacobian += r; }
model { y ~ normal(0, s); target += z[1] + o[2]; }",
    ]);
}

const WEIGHED: &str = "real weighed(real x) { return square(x); }
real weighed(vector x) { return dot_product(x, square(linspaced_vector(size(x), 1, 2))); }
real weighed(array[] vector x) { return weighed(x[1]) + 2 * weighed(x[2]); }
real weighed(matrix x) { return weighed(to_vector(x)); }
real weighed(array[] matrix x) { return weighed(x[1]) + 2 * weighed(x[2]); }";

fn check_program(functions: &str, statements: &str) {
    check_blocks(functions, &format!("model {{\n{statements}\n}}\n"));
}

fn check_blocks(functions: &str, statements: &str) {
    let source = format!("functions {{\n{functions}\n}}\n{HEADER}{PARAMETERS}{statements}");
    let model = bind(&source, &data()).unwrap_or_else(|e| panic!("{statements}: {e}"));
    if let Err(e) = compare(&model) {
        panic!("{functions}\n{statements}: {e}");
    }
}

#[test]
fn inlined_functions() {
    check_program(
        "real f(real x) { if (x > 0.3) return x; if (x > 0) { real y = 2 * x; return y; } return square(x); }",
        "target += f(r) * p + f(v[1]);",
    );
    check_program(
        "real power(real x, int n) { if (n == 0) return 1; return x * power(x, n - 1); }",
        "target += power(r, 5) + power(u, 2);",
    );
    check_program(
        "real shifted_lpdf(vector y, real mu) { return normal_lupdf(y | mu, 2) + cauchy_lpdf(mu | 0, 1); }",
        "v ~ shifted(r); target += shifted_lpdf(x | p);",
    );
    check_program(
        "void prior_lp(real x, real s) { x ~ normal(0, s); if (x > 0.5) return; target += x; }",
        "prior_lp(r, 2); prior_lp(v[1], p);",
    );
    check_program(
        "real part_sum(array[] real y, int start, int end, vector m, real s) { return normal_lpdf(y | m[start:end], s); }",
        "target += reduce_sum(part_sum, a, 1, v, p);",
    );
    check_program(
        "real first_above(vector x, real c) { for (i in 1:num_elements(x)) { if (x[i] > c) return x[i]; } return c; }",
        "target += first_above(v, 0.1) + first_above(w, 1.2);",
    );
    check_program(
        "real positive(real x) { if (x < -0.2) reject(\"negative\"); return x; }",
        "target += positive(r);",
    );
    check_program(
        "vector scaled(vector x, real s) { vector[num_elements(x)] y; for (i in 1:num_elements(x)) y[i] = x[i] * s; return y; }",
        "x ~ normal(scaled(v, r), p);",
    );
}
