//! Lists one model in every form whose prior and likelihood can be separated, and programs whose records interact.

use super::*;

fn data() -> String {
    let n = 9;
    let reals = |from: usize| -> Vec<f64> { (0..n).map(|k| number(k + from)).collect() };
    let ints = |most: usize| -> Vec<usize> { (0..n).map(|k| (k * 5 + k / 2) % most + 1).collect() };
    let rows = |from: usize| -> Vec<Vec<f64>> {
        (0..n)
            .map(|r| (0..3).map(|k| number(r * 3 + k + from)).collect())
            .collect()
    };
    serde_json::json!({
        "N": n, "K": 3, "J": 4, "x": reals(1), "y": reals(20), "X": rows(40), "W": rows(90),
        "g": ints(4), "h": ints(3), "b": ints(2).iter().map(|k| k - 1).collect::<Vec<_>>(),
        "c": ints(5), "u": [0.3, -0.2, 0.9, 1.4],
    })
    .to_string()
}

const HEAD: &str = "
data {
  int<lower=1> N; int K; int J;
  vector[N] x; array[N] real y; matrix[N, K] X; array[N] vector[K] W;
  array[N] int g; array[N] int h; array[N] int b; array[N] int c; vector[J] u;
}
parameters { vector[J] alpha; vector[K] beta; matrix[J, K] gamma; real<lower=0> sigma; ordered[4] cut; }
";

fn program(functions: &str, model: &str) -> String {
    format!(
        "{functions}{HEAD}model {{ alpha ~ normal(0, sigma); sigma ~ exponential(1); cut ~ normal(0, 2); to_vector(gamma) ~ normal(0, 1); beta ~ normal(0, 2); {model} }}"
    )
}

#[test]
#[expect(clippy::too_many_lines, reason = "a rule list: programs")]
fn every_way_of_writing_comes_apart() {
    let add_all = "functions { real part(array[] real y, int first, int last, vector mu, real s) { return normal_lpdf(y | mu[first:last], s); } }";
    let own = "functions { real one_lpdf(real y, real m) { if (y > 0) return -m * y; return -square(y - m); } }";
    let programs = [
        (
            "rows of a matrix",
            "",
            "for (n in 1:N) y[n] ~ normal(X[n] * beta + alpha[g[n]], sigma);",
        ),
        (
            "product and gather",
            "",
            "vector[N] mu = X * beta + alpha[g]; y ~ normal(mu, sigma);",
        ),
        (
            "elements of rows",
            "",
            "for (n in 1:N) { real m = 0; for (k in 1:K) m += X[n, k] * beta[k]; y[n] ~ student_t(4, m, sigma); }",
        ),
        (
            "vectors of an array",
            "",
            "for (n in 1:N) target += -0.5 * dot_self(W[n] - beta) / square(sigma);",
        ),
        (
            "dot products",
            "",
            "for (n in 1:N) y[n] ~ normal(dot_product(W[n], beta), sigma);",
        ),
        (
            "rows of parameters",
            "",
            "for (n in 1:N) y[n] ~ normal(X[n] * gamma[g[n]]', sigma);",
        ),
        (
            "row-wise dot products",
            "",
            "y ~ normal(rows_dot_product(X, gamma[g]), sigma);",
        ),
        (
            "a sum that grows",
            "",
            "real s = 0; for (n in 1:N) s += square(y[n] - alpha[g[n]]); target += -N * log(sigma) - s / (2 * square(sigma));",
        ),
        (
            "a sum of a vector",
            "",
            "vector[N] e = to_vector(y) - X * beta; target += -0.5 * dot_self(e) * square(alpha[1]) - sum(square(e));",
        ),
        (
            "a loop for every coefficient",
            "",
            "vector[N] mu = rep_vector(0, N); for (k in 1:K) mu += beta[k] * X[, k]; for (n in 1:N) mu[n] += alpha[g[n]]; y ~ normal(mu, sigma);",
        ),
        (
            "a branch on data",
            "",
            "for (n in 1:N) { if (b[n] == 1) y[n] ~ normal(alpha[g[n]], sigma); else if (x[n] > 0) target += -x[n] * sigma; }",
        ),
        (
            "a branch around the impossible",
            "",
            "for (n in 1:N) { if (y[n] > 0) y[n] ~ lognormal(alpha[g[n]], sigma); }",
        ),
        (
            "ternaries",
            "",
            "for (n in 1:N) y[n] ~ normal(b[n] ? alpha[g[n]] : beta[h[n]], sigma);",
        ),
        (
            "a local vector by record",
            "",
            "for (n in 1:N) { vector[K] lp; for (k in 1:K) lp[k] = normal_lpdf(y[n] | beta[k], sigma) + gamma[g[n], k]; target += log_sum_exp(lp); }",
        ),
        (
            "a temporary from outside",
            "",
            "real m; for (n in 1:N) { m = alpha[g[n]] + x[n]; y[n] ~ cauchy(m, sigma); }",
        ),
        (
            "mixtures",
            "",
            "for (n in 1:N) target += log_mix(inv_logit(beta[1]), normal_lpdf(y[n] | alpha[1], sigma), normal_lpdf(y[n] | alpha[g[n]], 1));",
        ),
        (
            "logistic regression",
            "",
            "b ~ bernoulli_logit_glm(X, alpha[g], beta);",
        ),
        (
            "normal regression",
            "",
            "x ~ normal_id_glm(X, alpha[1], beta, sigma);",
        ),
        (
            "Poisson regression",
            "",
            "c ~ poisson_log_glm(X, 0.3, beta);",
        ),
        (
            "negative binomial regression",
            "",
            "c ~ neg_binomial_2_log_glm(X, 0.3, beta, sigma);",
        ),
        (
            "categorical regression",
            "",
            "h ~ categorical_logit_glm(X, beta, gamma[1:3, ]);",
        ),
        (
            "categories in a loop",
            "",
            "for (n in 1:N) h[n] ~ categorical_logit(beta + gamma[g[n]]' * x[n]);",
        ),
        (
            "shared categories",
            "",
            "g ~ categorical_logit(alpha); g ~ categorical(softmax(alpha));",
        ),
        (
            "ordered outcomes",
            "",
            "for (n in 1:N) c[n] ~ ordered_logistic(X[n] * beta, cut);",
        ),
        (
            "ordered outcomes at once",
            "",
            "c ~ ordered_logistic(X * beta, cut); c ~ ordered_probit(X * beta, cut);",
        ),
        (
            "counts",
            "",
            "b ~ bernoulli(inv_logit(X * beta)); c ~ poisson(exp(alpha[g])); b ~ binomial_logit(1, X * beta); c ~ binomial(7, inv_logit(alpha[g])); c ~ neg_binomial_2(exp(alpha[g]), sigma);",
        ),
        (
            "truncation",
            "",
            "for (n in 1:N) y[n] ~ normal(alpha[g[n]], sigma) T[-5, 5];",
        ),
        (
            "two indices",
            "",
            "for (n in 1:N) y[n] ~ normal(gamma[g[n], h[n]] + u[g[n]], sigma);",
        ),
        (
            "reduce_sum",
            add_all,
            "vector[N] mu = X * beta; target += reduce_sum(part, y, 1, mu, sigma);",
        ),
        (
            "a function with two returns",
            own,
            "for (n in 1:N) y[n] ~ one(alpha[g[n]]);",
        ),
        (
            "containers of records",
            "",
            "for (v in y) v ~ normal(beta[1], sigma);",
        ),
        (
            "sizes",
            "",
            "for (n in 1:size(y)) target += -square(y[n] - beta[1]); target += -num_elements(x) * sigma + rows(X) * cols(X) * alpha[1] * -1e-3 * alpha[1];",
        ),
        (
            "statistics of data",
            "",
            "vector[N] z = (x - mean(x)) / sd(x); y ~ normal(z * beta[1], sigma);",
        ),
        (
            "arithmetic of ints",
            "",
            "for (n in 1:N) y[n] ~ normal(alpha[(g[n] + h[n]) % 4 + 1] + 2 * b[n] - c[n], sigma);",
        ),
        (
            "transposes",
            "",
            "for (n in 1:N) { row_vector[K] r = X[n]; y[n] ~ normal(r * beta + beta' * W[n], sigma); }",
        ),
        (
            "row sums of elementwise products",
            "",
            "y ~ normal(exp(-x .* x) * beta[2] + X[, 1] ./ (1 + square(x)), sigma + inv_logit(x));",
        ),
        (
            "vectors of each record",
            "",
            "for (n in 1:N) W[n] ~ multi_normal(beta, diag_matrix(square([sigma, 1, 2]')) + 0.3); W ~ multi_normal_cholesky(beta, diag_matrix([sigma, 1, 2]')); W ~ multi_student_t(4 + sigma, beta, diag_matrix([sigma, 1, 2]')); for (n in 1:N) W[n] ~ multi_normal_prec(gamma[g[n]]', diag_matrix([sigma, 1, 2]'));",
        ),
        (
            "diag and columns",
            "",
            "x ~ normal(diag_post_multiply(X, exp(beta)) * beta + col(X, 2), 1);",
        ),
    ];
    let data = data();
    let mut wrong = Vec::new();
    for (name, functions, text) in programs {
        let model = match bind(&program(functions, text), &data) {
            Ok(model) => model,
            Err(error) => panic!("{name}: {error}"),
        };
        match lower_records(&model, LowerOptions::default(), "N") {
            Ok(lowered) => {
                if let Err(error) = check_whole(&model, &lowered) {
                    wrong.push(format!("{name}: {error}"));
                }
            }
            Err(error) => wrong.push(format!("{name}: {}", refusal(&model, &error))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn records_that_interact_are_refused() {
    let programs = [
        (
            "y[1] ~ normal(0, 1); target += log(sum(exp(X * beta)));",
            "not a sum over records",
        ),
        (
            "for (n in 2:N) y[n] ~ normal(alpha[1] * y[n - 1], sigma);",
            "some of the records",
        ),
        (
            "for (n in 1:N) if (n > 1) y[n] ~ normal(alpha[1] * y[n - 1], sigma);",
            "reads the value of another one",
        ),
        (
            "vector[N] mu = X * beta; y ~ normal(mu - mean(mu), sigma);",
            "`mean` needs all records",
        ),
        (
            "vector[N] mu = X * beta; for (n in 1:N) y[n] ~ normal(sum(mu), sigma);",
            "not a sum over records",
        ),
        (
            "vector[N] mu = X * beta; target += -square(sum(mu));",
            "not a sum over records",
        ),
        (
            "y ~ normal(cumulative_sum(X * beta), sigma);",
            "`cumulative_sum` needs all records",
        ),
        (
            "y ~ normal(sort_asc(X * beta), sigma);",
            "`sort_asc` needs all records",
        ),
        (
            "real m = 0; for (n in 1:N) { y[n] ~ normal(m, sigma); m = 0.5 * m + x[n]; }",
            "not a sum over records",
        ),
        (
            "real m = 0; for (n in 1:N) m = alpha[g[n]]; target += -square(m);",
            "not a sum over records",
        ),
        (
            "x ~ multi_normal(rep_vector(0, N), diag_matrix(rep_vector(sigma, N)));",
            "needs all records",
        ),
        (
            "for (n in 1:N) for (m in 1:N) target += -square(y[n] - y[m]) * sigma;",
            "inside another one",
        ),
        (
            "vector[N] mu = X * beta; for (n in 1:N) target += -square(mu[g[n]]);",
            "reads the value of another one",
        ),
        (
            "vector[N] mu; for (n in 1:N) { mu = x * x[n]; } y ~ normal(mu, sigma);",
            "together",
        ),
        (
            "for (n in 1:N) { if (y[n] > 0) break; y[n] ~ normal(0, sigma); }",
            "",
        ),
        (
            "y[1] ~ normal(alpha[1], sigma);",
            "no records for minibatches",
        ),
    ];
    let data = data();
    for (text, reason) in programs {
        let model = bind(&program("", text), &data).expect("a model");
        match lower_records(&model, LowerOptions::default(), "N") {
            Ok(_) => panic!("{text} comes apart"),
            Err(error) => {
                assert!(
                    matches!(error.kind, ErrorKind::Records | ErrorKind::Unsupported),
                    "{text}: {error}"
                );
                assert!(error.message.contains(reason), "{text}: {error}");
            }
        }
    }
}
