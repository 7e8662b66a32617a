//! Tests `jensen fit --calibrate`. A correct model must be calibrated, and a wrong model must be detected.

use std::fs;

use crate::common::{Desk, jensen};
use serde_json::Value;

/// A program that simulates few observations under a wide prior.
const SIMULATOR: &str = "
    data { int<lower=0> N; }
    generated quantities {
      real mu = normal_rng(0, 2);
      real<lower=0> sigma = lognormal_rng(0, 0.5);
      vector[N] y;
      for (n in 1 : N) y[n] = normal_rng(mu, sigma);
    }";

fn model(sd: &str) -> String {
    format!(
        "data {{ int<lower=0> N; vector[N] y; }}
         parameters {{ real mu; real<lower=0> sigma; }}
         model {{ mu ~ normal(0, {sd}); sigma ~ lognormal(0, 0.5); y ~ normal(mu, sigma); }}"
    )
}

struct Found {
    exit: i32,
    tests: Value,
    ranks: String,
    text: String,
}

fn calibrate(desk: &Desk, sd: &str, out: &str, threads: &str) -> Found {
    let line = [
        "fit".to_owned(),
        desk.file("model.stan", &model(sd)),
        desk.file("sizes.json", r#"{"N": 4}"#),
        "--simulator".to_owned(),
        desk.file("simulate.stan", SIMULATOR),
    ];
    let folder = desk.path(out).display().to_string();
    let more = [
        "--calibrate",
        "60",
        "--seed",
        "4",
        "--threads",
        threads,
        "--out",
        &folder,
    ];
    let outcome = jensen(line.iter().map(String::as_str).chain(more));
    let read = |name: &str| fs::read_to_string(desk.path(out).join(name)).expect("a file");
    Found {
        exit: outcome.code,
        tests: serde_json::from_str(&read("calibration.json")).expect("JSON"),
        ranks: read("ranks.csv"),
        text: outcome.stdout,
    }
}

#[test]
fn a_right_model_is_calibrated_and_a_narrow_prior_is_seen() {
    let desk = Desk::new();
    let right = calibrate(&desk, "2", "right", "2");
    assert_eq!(right.exit, 0, "{}", right.text);
    assert_eq!(right.tests["calibrated"], true);
    assert_eq!(right.tests["simulations"], 60);
    assert_eq!(right.tests["without_ranks"], 0);
    let names: Vec<&str> = right.tests["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["mu", "sigma"]);
    assert_eq!(right.ranks.lines().count(), 61);
    assert!(
        right
            .ranks
            .starts_with("simulation,seed,verdict,\"mu\",\"sigma\"\n")
    );
    let page = fs::read_to_string(desk.path("right").join("report.html")).expect("a page");
    assert!(page.contains("No test rejects the calibration"));

    // The ranks do not depend on the number of parallel fits, and no fit is run twice.
    let again = calibrate(&desk, "2", "alone", "1");
    assert_eq!(again.ranks, right.ranks);
    let rows = fs::read_to_string(desk.path("alone").join("rows.jsonl")).expect("rows");
    fs::write(
        desk.path("alone").join("rows.jsonl"),
        rows.split_inclusive('\n').take(35).collect::<String>(),
    )
    .expect("written");
    assert_eq!(calibrate(&desk, "2", "alone", "2").ranks, right.ranks);

    // A prior with half of the standard deviation shrinks the estimated means of four observations towards zero.
    let narrow = calibrate(&desk, "0.5", "narrow", "2");
    assert_eq!(narrow.exit, 4, "{}", narrow.text);
    let mu = &narrow.tests["parameters"][0];
    assert_eq!(mu["refuted"], true, "{mu}");
    assert!(mu["how"].as_str().unwrap().contains("too narrow"), "{mu}");
    assert!(narrow.text.contains("NOT calibrated"), "{}", narrow.text);
}

#[test]
fn what_is_no_simulator_is_refused() {
    let desk = Desk::new();
    let model = desk.file("model.stan", &model("2"));
    let sizes = desk.file("sizes.json", r#"{"N": 4}"#);
    let folder = desk.path("out").display().to_string();
    let line = ["fit", &model, &sizes, "--calibrate", "20", "--out", &folder];
    let outcome = jensen(line);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("--simulator"), "{}", outcome.stderr);
    for (program, word) in [
        (
            "parameters { real mu; } generated quantities { vector[4] y = rep_vector(mu, 4); }",
            "has parameters",
        ),
        ("generated quantities { real z = 1; }", "generates no data"),
    ] {
        let simulator = desk.file("other.stan", program);
        let outcome = jensen(line.into_iter().chain(["--simulator", &simulator]));
        assert_eq!(outcome.code, 3, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(word), "{}", outcome.stderr);
    }
}

#[test]
fn covariates_of_a_table_bring_their_number_of_rows() {
    let desk = Desk::new();
    let data = "data { int<lower=0> N; vector[N] x; ";
    let model = format!(
        "{data} vector[N] y; }} parameters {{ real b; }} model {{ b ~ normal(0, 1); y ~ normal(b * x, 1); }}"
    );
    let simulator = format!(
        "{data} }} generated quantities {{ real b = normal_rng(0, 1); array[N] real y = normal_rng(b * x, 1); }}"
    );
    let line = [
        "fit".to_owned(),
        desk.file("model.stan", &model),
        desk.file("covariates.csv", "x\n-1.5\n0.5\n2\n"),
        "--simulator".to_owned(),
        desk.file("simulate.stan", &simulator),
    ];
    let out = desk.name("out");
    let more = ["--calibrate", "60", "--seed", "1", "--out", out.as_str()];
    let outcome = jensen(line.iter().map(String::as_str).chain(more)).expect(0);
    assert!(
        outcome.stdout.contains("calibrated: all ranks"),
        "{}",
        outcome.stdout
    );
}
