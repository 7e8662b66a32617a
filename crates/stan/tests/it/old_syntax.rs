//! Tests the translation of programs from the syntax before Stan 2.33 to today's syntax.

use jensen_stan::{NoIncludes, check, in_todays_syntax, modernise};

fn becomes(old: &str, modern: &str) {
    assert_eq!(modernise(old), modern);
    // A program in today's syntax remains unchanged.
    assert_eq!(modernise(modern), modern);
}

#[test]
fn declarations_and_statements() {
    becomes(
        "data { int N; real x[N]; }",
        "data { int N; array[N] real x; }",
    );
    becomes(
        "data {\n  int<lower=0> y[N, M], k; // counts\n  vector[K] X[N];\n}",
        "data {\n  array[N, M] int<lower=0> y; int<lower=0> k; // counts\n  array[N] vector[K] X;\n}",
    );
    becomes(
        "model { real a[2] <- f(b, {c[1]}); # why\n  y <- a; }",
        "model { array[2] real a = f(b, {c[1]}); // why\n  y = a; }",
    );
    becomes(
        "functions { real[] f(real[,] a, vector[] b, int n) { real c[n]; return c; } }",
        "functions { array[] real f(array[,] real a, array[] vector b, int n) { array[n] real c; return c; } }",
    );
    becomes(
        "model { matrix[2, 3] m; vector[3] v; for (i in 1:N) v[i] <- m[1, i]; }",
        "model { matrix[2, 3] m; vector[3] v; for (i in 1:N) v[i] = m[1, i]; }",
    );
}

#[test]
fn functions() {
    becomes(
        "model { increment_log_prob(normal_log(y, 0, fabs(s))); z <- if_else(a > 1, b, c[1]); }",
        "model { target += normal_lpdf(y | 0, abs(s)); z = (a > 1 ? b : c[1]); }",
    );
    becomes(
        "model { target += poisson_log(n, 2) + normal_cdf_log(y, 0, 1) + normal_ccdf_log(y, 0, 1) + get_lp(); }",
        "model { target += poisson_lpmf(n | 2) + normal_lcdf(y | 0, 1) + normal_lccdf(y | 0, 1) + target(); }",
    );
    becomes(
        "functions { real f_log(int[] n, real a) { return 1; } } model { n ~ f(a); target += f_log(n, a); }",
        "functions { real f_lpmf(array[] int n, real a) { return 1; } } model { n ~ f(a); target += f_lpmf(n | a); }",
    );
}

#[test]
fn distributions_keep_their_names() {
    becomes(
        "model { for (i in 1:N) y[i] ~ poisson_log(eta[i]); z ~ neg_binomial_2_log(eta, phi); u <- poisson_log(n, 2); }",
        "model { for (i in 1:N) y[i] ~ poisson_log(eta[i]); z ~ neg_binomial_2_log(eta, phi); u = poisson_lpmf(n | 2); }",
    );
}

#[test]
fn a_whole_program_is_accepted() {
    let old = "functions { real half_log(real y, real s) { return normal_log(y, 0, s) + log(2); } }\n\
        data { int N; int y[N]; matrix[N, 2] X; real<lower=0> t[N]; }\n\
        transformed data { real lt[N]; for (n in 1:N) lt[n] <- log(t[n]); }\n\
        parameters { vector[2] b; real<lower=0> s; real u[N]; }\n\
        transformed parameters { vector[N] eta; eta <- X * b; for (n in 1:N) eta[n] <- eta[n] + lt[n] + u[n] * s; }\n\
        model { s ~ half(1.0); u ~ normal(0, 1); increment_log_prob(poisson_log_log(y, eta)); b ~ normal(0, 1); }\n\
        generated quantities { int rep[N]; for (n in 1:N) rep[n] <- poisson_log_rng(eta[n]); }\n";
    assert!(check(old, "old.stan", &NoIncludes).program.is_none());
    let modern = modernise(old);
    let checked = check(&modern, "old.stan", &NoIncludes);
    assert!(
        checked.program.is_some(),
        "{modern}{}",
        checked.render(false)
    );
}

#[test]
fn a_program_is_read_as_old_where_all_its_arrays_are() {
    let read = |text: &str| in_todays_syntax(text.to_owned());
    for old in [
        "data { int N; real x[N]; }",
        "functions { real f(real[] x) { return sum(x); } }",
        "functions { vector[] f(vector x) { return {x}; } }",
        "model { matrix[2, 2] m[3] = rep_array(s, 3); }",
    ] {
        assert_eq!(read(old), modernise(old));
        assert_ne!(read(old), old);
    }
    for today in [
        "data { int N; real x[N]; array[N] real y; }",
        "data { int<lower=0> N; matrix[N, 2] X; } model { vector[2] b = X[1]'; for (i in 1:N) b[i] = X[i, 1]; }",
        "functions { tuple(real, vector) f(real x, vector y, int n) { return (x, y[1:n]); } }",
        "model { x <- 1; }",
    ] {
        assert_eq!(read(today), today);
    }
    // All programs in this folder use today's syntax.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/valid");
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        assert_eq!(read(&text), text);
    }
}
