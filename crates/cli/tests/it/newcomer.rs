//! Tests what a new user is likely to try first: a table with words, starting points, labels, and progress.

use std::fmt::Write;

use crate::common::{Desk, jensen};

const GROUPS: &str = "
data { int<lower=0> N; array[N] int<lower=1> group; vector[N] y; }
transformed data { int G = 3; }
parameters { vector[G] theta; }
model { theta ~ normal(0, 100); y ~ normal(theta[group], 0.1); }
generated quantities { vector[N] log_lik; for (n in 1:N) log_lik[n] = normal_lpdf(y[n] | theta[group[n]], 0.1); }
";

fn table() -> String {
    let mut text = "group,y\n".to_owned();
    for row in 0..12 {
        let (name, mean) = [("ash", 10), ("beech", 20), ("oak", 30)][row % 3];
        let _ = writeln!(text, "{name},{mean}.0{row}");
    }
    text
}

#[test]
fn words_of_new_data_mean_what_they_meant_in_the_fit() {
    let desk = Desk::new();
    let model = desk.file("groups.stan", GROUPS);
    let data = desk.file("trees.csv", &table());
    let out = desk.name("out");
    jensen(["fit", &model, &data, "--out", &out, "-q"]).expect(0);
    let predict = desk.file(
        "predict.stan",
        "data { int N; array[N] int group; } parameters { vector[3] theta; }
         generated quantities { vector[N] there = theta[group]; }",
    );
    let summary = desk.name("summary.json");
    let made = desk.name("made.csv");
    let ask = |rows: &str| {
        let new = desk.file("new.csv", &format!("group\n{rows}"));
        jensen([
            "generate",
            &predict,
            &out,
            "--data",
            &new,
            "--summary",
            &summary,
            "--out",
            &made,
        ])
    };
    // If the words of the fit were not used, the word that comes first in alphabetical order would be the first group.
    ask("oak\noak\nbeech\n").expect(0);
    let output = crate::common::read_json(std::path::Path::new(&summary));
    for (row, expected) in [30.0, 30.0, 20.0].into_iter().enumerate() {
        let mean = output[row]["mean"].as_f64().unwrap();
        assert!((mean - expected).abs() < 0.5, "{output}");
    }
    let refused = ask("oak\nelm\n").expect(3).stderr;
    assert!(refused.contains("elm"), "{refused}");
}

#[test]
fn a_number_that_no_column_has_is_asked_for_with_a_way_out() {
    let desk = Desk::new();
    let program = GROUPS
        .replace("data { int<lower=0> N;", "data { int<lower=0> N; int G;")
        .replace("transformed data { int G = 3; }", "");
    let model = desk.file("groups.stan", &program);
    let data = desk.file("trees.csv", &table());
    let said = jensen(["fit", &model, &data]).expect(3).stderr;
    assert!(
        said.contains("variable `G`") && said.contains("in transformed data"),
        "{said}"
    );
}

#[test]
fn a_start_may_have_some_of_the_parameters() {
    let desk = Desk::new();
    let model = desk.file(
        "line.stan",
        "parameters { real<lower=0> a; real<lower=a> b; } model { a ~ lognormal(0, 1); b ~ normal(a, 1); }",
    );
    let fit = |text: &str| {
        let start = desk.file("start.json", text);
        jensen([
            "fit",
            &model,
            "--init",
            &start,
            "--refine",
            "none",
            "-q",
            "--exit-zero",
        ])
    };
    fit(r#"{"b": 3}"#).expect(0);
    fit(r#"{"a": 0.5, "b": 3}"#).expect(0);
    let said = fit(r#"{"a": -1}"#).expect(3).stderr;
    assert!(said.contains("variable `a`"), "{said}");
    let said = fit(r#"{"aa": 1, "b": 2}"#).expect(3).stderr;
    assert!(
        said.contains("`aa` is not a variable of the program, and `a` is missing"),
        "{said}"
    );
    let said = fit("{}").expect(3).stderr;
    assert!(
        said.contains("the file has no value of a parameter"),
        "{said}"
    );
}

#[test]
fn coordinates_are_compared_with_the_program_before_the_fit() {
    let desk = Desk::new();
    let model = desk.file("groups.stan", GROUPS);
    let data = desk.file("trees.csv", &table());
    let out = desk.name("out");
    let fit = |text: &str| {
        let coords = desk.file("coords.json", text);
        jensen([
            "fit", &model, &data, "--coords", &coords, "--out", &out, "-q",
        ])
    };
    let said = fit(r#"{"coords": {"G": ["ash", "oak"]}}"#).expect(3).stderr;
    assert!(
        said.contains("2 labels of `G`: expected 3, the size of `theta`"),
        "{said}"
    );
    let said = fit(r#"{"dims": {"thet": ["tree"]}}"#).expect(3).stderr;
    assert!(said.contains("did you mean `theta`?"), "{said}");
    fit(r#"{"coords": {"G": ["ash", "beech", "oak"]}}"#).expect(0);
    // The fit stores the labels.
    let more = desk.name("more.nc");
    jensen(["draws", &out, "--draws", "3", "--out", &more]).expect(0);
    let bytes = std::fs::read(&more).unwrap();
    let has = |word: &str| bytes.windows(word.len()).any(|at| at == word.as_bytes());
    assert!(has("beech") && !has("theta_dim_0"));
}

#[test]
fn what_is_done_is_said_where_that_is_asked_for() {
    let desk = Desk::new();
    let model = desk.file("groups.stan", GROUPS);
    let data = desk.file("trees.csv", &table());
    let said = jensen(["fit", &model, &data, "-v"]).expect(0);
    for step in [
        "the program is compiled",
        "starts, start 0: begins",
        "trust, meanfield: ",
        "ELBO ",
    ] {
        assert!(said.stderr.contains(step), "{step}: {}", said.stderr);
    }
    // Values for every observation must not hide the parameters.
    assert!(
        said.stdout.contains("theta[3]") && !said.stdout.contains("log_lik["),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("12 of log_lik: see the report"),
        "{}",
        said.stdout
    );
    assert_eq!(jensen(["fit", &model, &data]).expect(0).stderr, "");
}
