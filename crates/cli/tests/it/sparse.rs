//! Tests `jensen fit --family sparse` from end to end.

use crate::common::{Desk, jensen};

/// Writes the program and the data of a random walk that is observed with noise. The walk has `steps` steps, and both
/// scales are unknown.
fn walk(desk: &Desk, steps: usize) -> [String; 2] {
    let program = "data { int T; vector[T] y; }
parameters { vector[T] x; real<lower=0> step; real<lower=0> noise; }
model {
  step ~ normal(0, 1);
  noise ~ normal(0, 1);
  x[1] ~ normal(0, 5);
  x[2:T] ~ normal(x[1:(T - 1)], step);
  y ~ normal(x, noise);
}
";
    // The noise is a sum of waves whose periods are longer than the number of steps.
    let wave = |i: usize, rate: f64| (rate * i as f64).sin() * (1.7 * rate * i as f64).cos();
    let mut level = 0.0;
    let values: Vec<String> = (0..steps)
        .map(|i| {
            level += 1.1 * wave(i, 2.399);
            format!("{:.4}", level + 0.6 * wave(i, 7.13))
        })
        .collect();
    let data = format!("{{\"T\": {steps}, \"y\": [{}]}}", values.join(", "));
    [
        desk.file("walk.stan", program),
        desk.file("walk.json", &data),
    ]
}

/// The pattern of a walk contains all nonzero entries of the precision matrix of the best Gaussian. The two fits must
/// therefore agree. The tolerance is large mainly because of the scales, along which the ELBO is flat.
#[test]
fn a_sparse_precision_is_as_good_as_a_full_covariance() {
    let desk = Desk::new();
    let [model, data] = walk(&desk, 60);
    let fit = |family: &str| {
        let flags = [
            "--family", family, "--refine", "none", "--tol", "0.002", "--json",
        ];
        jensen(["fit", &model, &data].into_iter().chain(flags)).json()
    };
    let (full, sparse) = (fit("fullrank"), fit("sparse"));
    let number = |fit: &serde_json::Value, key: &str| fit[key].as_f64().unwrap();
    let gap = number(&full, "elbo") - number(&sparse, "elbo");
    assert!(gap.abs() < 0.01, "{gap} nats apart");
    let (full, sparse) = (&full["parameters"], &sparse["parameters"]);
    for (a, b) in full
        .as_array()
        .unwrap()
        .iter()
        .zip(sparse.as_array().unwrap())
    {
        let [sd, other] = [a, b].map(|p| number(p, "sd"));
        let far = (number(a, "mean") - number(b, "mean")).abs() / sd;
        assert!(far < 0.05 && (other / sd - 1.0).abs() < 0.05, "{a} {b}");
    }
}

#[test]
fn the_policy_takes_it_where_it_is_small_and_it_resumes_to_the_same_bits() {
    let desk = Desk::new();
    let [model, data] = walk(&desk, 150);
    let path = |name: &str| desk.path(name).display().to_string();
    let (direct, parts) = (path("direct"), path("parts"));
    let run = |out: &str, more: &[&str]| {
        let flags = ["--refine", "none", "--quiet", "--out", out];
        jensen(
            ["fit", &model, &data]
                .into_iter()
                .chain(flags)
                .chain(more.iter().copied()),
        )
    };
    run(&direct, &[]);
    let trace = std::fs::read_to_string(desk.path("direct").join("trace.jsonl")).unwrap();
    let iterations = trace.lines().count();
    assert!(
        trace.lines().any(|line| line.contains("\"natural\"")),
        "{trace}"
    );
    let before_the_end = (iterations - 1).to_string();
    run(&parts, &["--max-iters", &before_the_end]).expect(4);
    jensen([
        "fit",
        "--resume",
        &parts,
        "--max-iters",
        "100000",
        "--quiet",
    ]);
    let bytes = |out: &str, file: &str| std::fs::read(desk.path(out).join(file)).unwrap();
    assert!(
        bytes("direct", "approximation.safetensors") == bytes("parts", "approximation.safetensors")
    );
    let fitted: serde_json::Value = serde_json::from_slice(&bytes("direct", "fit.json")).unwrap();
    assert_eq!(fitted["family"], "sparse");
    let drawn = jensen(["draws", &direct, "--draws", "5"]).expect(0).stdout;
    assert_eq!(
        drawn
            .lines()
            .filter(|line| line.starts_with(|c: char| c.is_ascii_digit() || c == '-'))
            .count(),
        6
    );
}
