//! `jensen latent` from end to end, on data of the repository.

mod common;

use std::fs;
use std::path::Path;

use common::{Desk, jensen};
use serde_json::Value;

/// A file of the repository's data.
fn data(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    folder.join(file).display().to_string()
}

fn json(args: &[&str]) -> Value {
    let mut all = vec!["latent", "fit", "--json"];
    all.extend(args);
    jensen(all).expect(0).json()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key} of {value}"))
}

/// The exact-expectation bound of GPflow's VGP at the same hyperparameters is −115.8899.
#[test]
fn gaussian_process_classification() {
    let file = data("uci/ionosphere.csv");
    let prior = "gp(rbf, lengthscale=2.7, variance=7.4)";
    let base = [
        "--likelihood",
        "bernoulli",
        "--prior",
        prior,
        "--data",
        &file,
    ];
    let exact = json(&[&base[..], &["--bound", "exact"]].concat());
    assert!((number(&exact, "bound") + 115.8899).abs() < 2e-3, "{exact}");
    assert!(exact["gap"].is_null());
    let tilted = json(&base);
    assert!(number(&tilted, "gap") <= 1e-6);
    assert!(number(&tilted, "gap") >= -1e-9);
    assert!(number(&tilted, "bound") < number(&exact, "bound"));
    assert_eq!(tilted["objective"], "tilted");
    assert_eq!(
        (tilted["observations"].as_u64(), tilted["trusted"].as_bool()),
        (Some(351), Some(true))
    );
    assert!(number(&tilted, "solver_seconds") > 0.0);
}

#[test]
fn a_field_over_regions_is_fitted_stored_and_predicted_from() {
    let desk = Desk::new();
    let out = desk.path("run").display().to_string();
    let graph = data("scotland/scotland.graph");
    let prior = format!("fixed(outdoor) + icar(graph=\"{graph}\", on=district)");
    let table = data("scotland/lip.csv");
    let fit = json(&[
        "--likelihood",
        "poisson",
        "--prior",
        &prior,
        "--data",
        &table,
        "--exposure",
        "expected",
        "--optimise-hyperparameters",
        "--out",
        &out,
    ]);
    assert!(number(&fit, "gap") <= 1e-6, "{fit}");
    let names: Vec<&str> = fit["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names[0], names[1], names.len()),
        ("fixed[outdoor]", "icar[1]", 57)
    );
    // More outdoor work, more lip cancer: Clayton and Kaldor's finding.
    assert!(fit["parameters"][0]["mean"].as_f64().unwrap() > 0.0);
    let hyper = &fit["hyperparameters"];
    assert_eq!(hyper[1]["name"], "icar.precision");
    assert_eq!(hyper[1]["learnt"], true);
    for file in [
        "fit.json",
        "predictions.csv",
        "trace.jsonl",
        "report.html",
        "approximation.safetensors",
    ] {
        assert!(desk.path("run").join(file).is_file(), "{file}");
    }
    let page = fs::read_to_string(desk.path("run").join("report.html")).unwrap();
    assert!(page.contains("icar: mean") && page.contains("Calibration"));

    // The same rows are predicted as they were fitted, without the files of the fit.
    let predicted = jensen(["latent", "predict", &out, "--at", &table])
        .expect(0)
        .stdout;
    let fitted = fs::read_to_string(desk.path("run").join("predictions.csv")).unwrap();
    assert_eq!(predicted.lines().count(), 57);
    for (a, b) in predicted.lines().zip(fitted.lines()).skip(1) {
        for (x, y) in a.split(',').zip(b.split(',')) {
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((x - y).abs() <= 1e-6 * (1.0 + y.abs()), "{a}\n{b}");
        }
    }
    // A finished run is resumed to the same result.
    let again = jensen(["latent", "fit", "--resume", &out, "--json"])
        .expect(0)
        .json();
    assert_eq!(again["bound"], fit["bound"]);
}

#[test]
fn a_cyclic_walk_over_days_is_smooth_and_held_out_days_are_scored() {
    let desk = Desk::new();
    let text = fs::read_to_string(data("tokyo/rainfall.csv")).unwrap();
    let (mut train, mut test) = (String::new(), "day,years,rain\n".to_owned());
    for (i, line) in text.lines().enumerate() {
        if i > 0 && i % 5 == 0 {
            test += &format!("{line}\n");
        } else {
            train += &format!("{line}\n");
        }
    }
    let (train, test) = (desk.file("train.csv", &train), desk.file("test.csv", &test));
    let out = desk.path("run").display().to_string();
    let fit = json(&[
        "--likelihood",
        "binomial",
        "--trials",
        "years",
        "--prior",
        "rw2(on=day, cyclic, from=1, to=366, precision~100)",
        "--data",
        &train,
        "--optimise-hyperparameters",
        "--out",
        &out,
    ]);
    assert!(number(&fit, "gap") <= 1e-6, "{fit}");
    assert_eq!(fit["dim"], 366);
    let file = desk.path("p.csv").display().to_string();
    let scores = jensen([
        "latent", "predict", &out, "--at", &test, "--out", &file, "--json",
    ])
    .expect(0)
    .json();
    assert_eq!(scores["scored"], 73);
    // Two throws of a fair coin lose 1.04 nats.
    assert!(number(&scores, "log_predictive") > -0.95, "{scores}");
}

#[test]
fn words_counts_and_groups() {
    let desk = Desk::new();
    let rows: String = (0..60)
        .map(|i| {
            let town = ["Bonn", "Kiel", "Ulm"][i % 3];
            let kind = ["red", "green", "blue"][(i / 7 + i % 3) % 3];
            format!("{town},{},{kind}\n", f64::from(i as u32) / 10.0)
        })
        .collect();
    let file = desk.file("t.csv", &format!("town,x,kind\n{rows}"));
    let out = desk.path("run").display().to_string();
    let fit = json(&[
        "--likelihood",
        "multinomial",
        "--prior",
        "intercept() + fixed(x, town, variance=4)",
        "--data",
        &file,
        "--out",
        &out,
    ]);
    // Three categories: two linear predictors, each with four effects.
    assert_eq!(fit["dim"], 8);
    assert_eq!(fit["parameters"][0]["name"], "intercept.1");
    let csv = jensen(["latent", "predict", &out, "--at", &file])
        .expect(0)
        .stdout;
    let head = csv.lines().next().unwrap();
    assert!(
        head.contains("\"p[blue]\",\"p[green]\",\"p[red]\""),
        "{head}"
    );
    let probabilities: Vec<f64> = csv
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .skip(5)
        .take(3)
        .map(|x| x.parse().unwrap())
        .collect();
    assert!(
        (probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9,
        "{probabilities:?}"
    );

    let fit = json(&[
        "--likelihood",
        "gaussian(variance=0.5)",
        "--prior",
        "intercept() + iid(on=town, variance=2)",
        "--response",
        "x",
        "--data",
        &file,
    ]);
    assert_eq!(fit["parameters"][1]["name"], "iid[Bonn]");
    assert!(number(&fit, "gap").abs() <= 1e-6);
}

#[test]
fn mistakes_are_told_where_they_are() {
    let desk = Desk::new();
    let file = desk.file("t.csv", "a,b,y\n1,2,0\n3,x,1\n5,6,2\n");
    let graph = desk.file("g.graph", "2\n1 1 2\n2 1 1\n");
    let icar = format!("icar(graph=\"{graph}\", on=a)");
    let cases: [(&str, &str, &str, i32); 12] = [
        ("bernoulli", "gp(rbg)", "there is no kernel `rbg`", 3),
        (
            "bernoulli",
            "gp(rbf, lenghtscale=2)",
            "did you mean `lengthscale`?",
            3,
        ),
        (
            "bernoulli",
            "gp(rbf, on=b)",
            "t.csv:3:3: the column `b` needs numbers",
            3,
        ),
        ("bernoulli", "gp(rbf, on=c)", "there is no column `c`", 3),
        (
            "bernoulli",
            "gp(rbf, on=a, variance=-1)",
            "must be positive",
            3,
        ),
        (
            "bernoulli",
            "gp(rbf, on=a) + rw1(on=a)",
            "cannot stand in one sum",
            3,
        ),
        (
            "bernoulli",
            "gp(rbf, on=a)",
            "t.csv: the response `y` is 2 in row 3, but the likelihood `bernoulli` needs 0 or 1",
            3,
        ),
        ("poisson", "rbf", "`rbf` is a kernel: write `gp(rbf)`", 3),
        (
            "poisson",
            "icar(graph=none.graph)",
            "cannot read `none.graph`",
            3,
        ),
        ("poisson", &icar, "and nodes are numbered from 1 to 2", 3),
        ("poisson", "iid(variance~2", "expected `,` or `)`", 3),
        ("fish", "iid()", "there is no `fish`", 3),
    ];
    for (likelihood, prior, message, code) in cases {
        let done = jensen([
            "latent",
            "fit",
            "--likelihood",
            likelihood,
            "--prior",
            prior,
            "--data",
            &file,
        ])
        .expect(code);
        assert!(done.stderr.contains(message), "{prior}: {}", done.stderr);
        assert_eq!(done.stderr.matches("error").count(), 1, "{}", done.stderr);
    }
    let wrong = ["latent", "fit", "--prior", "iid()", "--data", &file];
    jensen(wrong).expect(2);
    let bound = [
        "latent",
        "fit",
        "--likelihood",
        "poisson",
        "--bound",
        "tilted",
        "--prior",
        "iid()",
        "--data",
        &file,
    ];
    let done = jensen(bound).expect(3);
    assert!(
        done.stderr
            .contains("not offered for the likelihood `poisson`; choose exact"),
        "{}",
        done.stderr
    );
}
