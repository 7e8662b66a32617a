//! Tests `jensen latent` from end to end with data from the repository.

use std::fs;
use std::path::Path;

use crate::common::{Desk, jensen};
use serde_json::Value;

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

/// The ELBO of GPflow's VGP with exact expectations, at the same hyperparameters, is −115.8899.
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
    let raw = ["--standardise", "off"];
    let exact = json(&[&base[..], &raw].concat());
    assert!((number(&exact, "bound") + 115.8899).abs() < 2e-3, "{exact}");
    assert!(exact["gap"].is_null() && exact["objective"] == "exact");
    let tilted = json(&[&base[..], &raw, &["--bound", "tilted"]].concat());
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
    // The slope is positive: districts with more outdoor work have more lip cancer, as Clayton and Kaldor found. If the
    // districts are numbered as in the table, the slope is 0.035 for each percentage point.
    let slope = fit["parameters"][0]["mean"].as_f64().unwrap();
    assert!((0.03..0.04).contains(&slope), "{slope}");
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

    // The stored fit predicts the same rows as before, without the input files of the fit.
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
    // Resuming a finished run gives the same result.
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
        "--bound",
        "tilted",
        "--trials",
        "years",
        "--prior",
        "rw2(on=day, cyclic, from=1, to=366, precision~100)",
        "--data",
        &train,
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
    // The prediction of two throws of a fair coin has an average log score of −1.04 nats.
    assert!(number(&scores, "log_predictive") > -0.95, "{scores}");
}

#[test]
fn words_counts_and_groups() {
    let desk = Desk::new();
    let rows: String = (0..60)
        .map(|i| {
            let town = ["Bonn", "Kiel", "Ulm"][i % 3];
            let kind = ["red", "green", "blue"][(i / 7 + i % 3) % 3];
            let level = 3.0 * (i % 3) as f64;
            format!("{town},{},{kind}\n", level + i as f64 / 10.0)
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
    // Three categories have two linear predictors, each with four effects.
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
fn mistakes_are_output_where_they_are() {
    let desk = Desk::new();
    let file = desk.file("t.csv", "a,b,y\n1,2,0\n3,x,1\n5,6,1\n");
    let twos = desk.file("u.csv", "a,y\n1,0\n3,1\n5,2\n");
    let graph = desk.file("g.graph", "2\n1 1 2\n2 1 1\n");
    let icar = format!("icar(graph=\"{graph}\", on=a)");
    let cases: [(&str, &str, &str, i32); 11] = [
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
            "cannot be in one sum",
            3,
        ),
        ("poisson", "rbf", "`rbf` is a kernel: write `gp(rbf)`", 3),
        (
            "poisson",
            "icar(graph=none.graph)",
            "cannot read `none.graph`",
            3,
        ),
        ("poisson", &icar, "but nodes are numbered from 1 to 2", 3),
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
    let wrong = ["--likelihood", "bernoulli", "--prior", "gp(rbf)"];
    let done = jensen([&["latent", "fit", "--data", &twos], &wrong[..]].concat()).expect(3);
    assert!(
        done.stderr.contains(
            "u.csv: the response `y` is 2 in row 3, but the likelihood `bernoulli` needs 0 or 1"
        ),
        "{}",
        done.stderr
    );
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
            .contains("the likelihood `poisson` has no bound"),
        "{}",
        done.stderr
    );
}

fn curve(desk: &Desk, more: &[&str]) -> (String, Value) {
    let rows: String = (0..40)
        .map(|i| {
            let x = f64::from(i) / 4.0;
            let noise = (f64::from(i * i) * 0.618).fract() - 0.5;
            format!("{x},{}\n", x.sin() + 0.6 * noise)
        })
        .collect();
    let file = desk.file("curve.csv", &format!("x,y\n{rows}"));
    let out = desk.path("curve").display().to_string();
    let mut args = vec![
        "--likelihood",
        "gaussian",
        "--prior",
        "gp(rbf, on=x)",
        "--data",
        &file,
        "--out",
        &out,
    ];
    args.extend(more);
    let fit = json(&args);
    (out, fit)
}

#[test]
fn hyperparameters_are_learnt_unless_they_are_fixed() {
    let desk = Desk::new();
    let (_, learnt) = curve(&desk, &[]);
    let hyper = |fit: &Value, name: &str| -> (f64, bool) {
        let list = fit["hyperparameters"].as_array().unwrap();
        let own = list.iter().find(|h| h["name"] == name).unwrap();
        (number(own, "value"), own["learnt"].as_bool().unwrap())
    };
    for name in ["gp.lengthscale", "gp.variance", "likelihood.variance"] {
        assert!(hyper(&learnt, name).1, "{learnt}");
    }
    // The noise is uniform over an interval of width 0.6, so its variance is 0.03.
    let (noise, _) = hyper(&learnt, "likelihood.variance");
    assert!((0.015..0.06).contains(&noise), "{noise}");
    let desk = Desk::new();
    let (out, fixed) = curve(&desk, &["--fixed", "--standardise", "off"]);
    assert_eq!(hyper(&fixed, "likelihood.variance"), (1.0, false));
    assert!(number(&fixed, "bound") < number(&learnt, "bound") - 1.0);
    let said = fixed["warnings"].to_string();
    assert!(said.contains("keep their starting values"), "{said}");
    // A stored fixed value stays fixed when the fit is resumed.
    let again = jensen(["latent", "fit", "--resume", &out, "--json"])
        .expect(0)
        .json();
    assert_eq!(again["bound"], fixed["bound"]);
    // If a likelihood has several parameters, some of them can be given.
    let file = desk.path("curve.csv").display().to_string();
    let t = json(&[
        "--likelihood",
        "student-t(degrees=5)",
        "--prior",
        "gp(rbf, on=x)",
        "--data",
        &file,
    ]);
    assert_eq!(hyper(&t, "likelihood.degrees"), (5.0, false));
    assert!(hyper(&t, "likelihood.scale").1 && hyper(&t, "likelihood.scale").0 < 0.3);
    let refused = ["latent", "fit", "--resume", &out, "--restarts", "3"];
    let output = jensen(refused).expect(2).stderr;
    assert!(output.contains("--fixed"), "{output}");
    // The page shows the data.
    let page = fs::read_to_string(desk.path("curve").join("report.html")).unwrap();
    assert!(page.contains("The data and the fit"));
}

fn columns(text: &str, names: &[&str]) -> Vec<Vec<f64>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let at: Vec<usize> = names
        .iter()
        .map(|n| {
            head.iter()
                .position(|h| h == n)
                .unwrap_or_else(|| panic!("{n} of {head:?}"))
        })
        .collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            at.iter().map(|i| cells[*i].parse().unwrap()).collect()
        })
        .collect()
}

#[test]
fn observations_have_intervals_and_rows_are_drawn_together() {
    let desk = Desk::new();
    let (out, fit) = curve(&desk, &["--hyperparameters", "point"]);
    let noise = fit["hyperparameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|h| h["name"] == "likelihood.variance")
        .map(|h| number(h, "value"))
        .unwrap();
    let new = desk.file("new.csv", "x\n2.1\n2.2\n30\n");
    let text = jensen(["latent", "predict", &out, "--at", &new])
        .expect(0)
        .stdout;
    let names = ["eta_mean", "eta_sd", "mean_q95", "y_q05", "y_q95"];
    let predicted = columns(&text, &names);
    for row in &predicted {
        let sd = (row[1] * row[1] + noise).sqrt();
        assert!(
            (row[4] - row[0] - 1.644_853_627 * sd).abs() < 1e-6,
            "{row:?}"
        );
        assert!(
            (row[0] - row[3] - 1.644_853_627 * sd).abs() < 1e-6,
            "{row:?}"
        );
        assert!(row[4] > row[2]);
    }
    let args = [
        "latent", "predict", &out, "--at", &new, "--draws", "4000", "--seed", "5",
    ];
    let text = jensen(args).expect(0).stdout;
    assert_eq!(text.lines().count(), 1 + 3 * 4000);
    let drawn = columns(&text, &["draw", "row", "eta", "mean", "y"]);
    let (mut near, mut far, mut y) = (0.0, 0.0, 0.0);
    for draw in drawn.chunks(3) {
        near += (draw[0][2] - draw[1][2]).powi(2) / 4000.0;
        far += (draw[0][2] - draw[2][2] - predicted[0][0] + predicted[2][0]).powi(2) / 4000.0;
        y += (draw[2][4] - draw[2][2]).powi(2) / 4000.0;
    }
    // The values at neighbouring points are correlated, but those at distant points are not.
    let alone = 2.0 * predicted[0][1].powi(2);
    assert!(near < 0.5 * alone, "{near} {alone}");
    let apart = predicted[0][1].powi(2) + predicted[2][1].powi(2);
    assert!((far / apart - 1.0).abs() < 0.1, "{far} {apart}");
    assert!((y / noise - 1.0).abs() < 0.1, "{y} {noise}");
    // A smaller number of draws consists of the first draws of a larger number.
    let few = jensen([
        "latent", "predict", &out, "--at", &new, "--draws", "2", "--seed", "5",
    ])
    .expect(0)
    .stdout;
    assert!(text.starts_with(&few));
}

#[test]
fn a_precision_from_a_file_is_a_field() {
    let desk = Desk::new();
    let rows: String = (1..=30)
        .map(|i| format!("{i},{}\n", (3.0 + 2.0 * (f64::from(i) / 5.0).sin()).floor()))
        .collect();
    let table = desk.file("counts.csv", &format!("day,y\n{rows}"));
    let mut market = "%%MatrixMarket matrix coordinate real symmetric\n30 30 59\n".to_owned();
    for i in 1..=30 {
        let ends = i == 1 || i == 30;
        market += &format!("{i} {i} {}\n", if ends { 1 } else { 2 });
        if i > 1 {
            market += &format!("{i} {} -1\n", i - 1);
        }
    }
    let matrix = desk.file("walk.mtx", &market);
    let out = desk.path("given").display().to_string();
    let given = format!("precision(matrix=\"{matrix}\", on=day)");
    let base = ["--likelihood", "poisson", "--data", &table];
    let mine = json(&[&base[..], &["--prior", &given, "--out", &out]].concat());
    let known = json(&[&base[..], &["--prior", "rw1(on=day)"]].concat());
    let (a, b) = (number(&mine, "bound"), number(&known, "bound"));
    assert!((a - b).abs() < 1e-6, "{a} {b}");
    assert_eq!(mine["trusted"], true);
    // The folder contains a copy of the data.
    fs::remove_file(&matrix).unwrap();
    let few = desk.file("few.csv", "day\n3\n4\n");
    let text = jensen(["latent", "predict", &out, "--at", &few])
        .expect(0)
        .stdout;
    let quantiles = columns(&text, &["mean", "y_q05", "y_q95"]);
    for row in quantiles {
        assert!(
            row[1].fract() == 0.0 && row[1] < row[0] && row[0] < row[2],
            "{row:?}"
        );
    }
}

/// Returns the lines of a table of houses. The price is 100 000 + 1 500 area + 8 000 rooms, plus noise.
fn houses() -> String {
    let mut text = "area,rooms,price\n".to_owned();
    for i in 0..60u32 {
        let noise = |k: u32| (f64::from(i * i + 7 * k) * 0.618_033_988_749).fract() - 0.5;
        let area = 60.0 + 1.7 * f64::from(i) + 40.0 * noise(1);
        let rooms = 2.0 + (f64::from(i) / 12.0).floor() + (3.0 * (noise(2) + 0.5)).floor();
        let price = 100_000.0 + 1_500.0 * area + 8_000.0 * rooms + 30_000.0 * noise(3);
        text += &format!("{area:.1},{rooms},{price:.0}\n");
    }
    text
}

#[test]
fn raw_columns_are_measured_and_a_plain_model_is_asked() {
    let desk = Desk::new();
    let file = desk.file("houses.csv", &houses());
    let base = [
        "--likelihood",
        "gaussian",
        "--response",
        "price",
        "--data",
        &file,
    ];
    let own = json(&[&base[..], &["--prior", "intercept() + fixed(area, rooms)"]].concat());
    let effect = |fit: &Value, name: &str| {
        let list = fit["parameters"].as_array().unwrap();
        let own = list.iter().find(|p| p["name"] == name).unwrap();
        (number(own, "mean"), number(own, "sd"))
    };
    assert_eq!(own["trusted"], true, "{own}");
    for (name, truth) in [
        ("intercept", 1e5),
        ("fixed[area]", 1_500.0),
        ("fixed[rooms]", 8_000.0),
    ] {
        let (mean, sd) = effect(&own, name);
        assert!(
            (mean - truth).abs() < 3.0 * sd && sd < 0.3 * truth,
            "{name}: {mean} ± {sd}"
        );
    }
    let said = own["warnings"].to_string();
    assert!(said.contains("in the table's units"), "{said}");
    // If the prior keeps effects near 0, the predictions are worse than those of least squares. The verdict must report
    // this.
    let tight = "intercept() + fixed(area, rooms, variance=1e-4)";
    let held = jensen([&["latent", "fit", "--json"], &base[..], &["--prior", tight]].concat())
        .expect(4)
        .json();
    assert_eq!(held["plain"]["model"], "least squares");
    assert!(number(&held["plain"], "own") < number(&held["plain"], "plain") - 0.5);
    assert!(
        held["warnings"]
            .to_string()
            .contains("least squares predicts better")
    );
}

#[test]
fn columns_that_a_likelihood_does_not_use_are_refused() {
    let desk = Desk::new();
    let file = desk.file("t.csv", "x,n,y\n1,2,0\n3,4,1\n5,6,2\n");
    for (likelihood, flag, output) in [
        ("gaussian", "--exposure", "`gaussian` has no exposure"),
        (
            "poisson",
            "--trials",
            "`poisson` has no number of trials, which only binomial and beta-binomial have",
        ),
    ] {
        let done = jensen([
            "latent",
            "fit",
            "--likelihood",
            likelihood,
            "--prior",
            "fixed(x)",
            flag,
            "n",
            "--data",
            &file,
        ])
        .expect(2);
        assert!(
            done.stderr.contains(flag) && done.stderr.contains(output),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn a_walk_is_read_between_its_nodes() {
    let desk = Desk::new();
    // The wave is a function of a column with six decimals. It is also fitted to the same column with two decimals.
    let table = |name: &str, digits: usize, more: &str| {
        let rows: String = (0..300u32)
            .map(|i| {
                let x = 10.0 * (f64::from(i) * 0.618_033_988_7).fract();
                let noise = f64::from(i * 7 % 11) / 11.0 - 0.45;
                format!("{x:.digits$},{:.4}\n", x.sin() + noise)
            })
            .collect();
        desk.file(name, &format!("x,y\n{rows}{more}"))
    };
    let fit = |file: &str, prior: &str, out: &str| {
        let base = [
            "latent",
            "fit",
            "--likelihood",
            "gaussian",
            "--response",
            "y",
        ];
        jensen([&base[..], &["--prior", prior, "--data", file, "--out", out]].concat())
    };
    let means = |out: &str| -> Vec<f64> {
        let text = fs::read_to_string(Path::new(out).join("predictions.csv")).unwrap();
        let mut lines = text.lines();
        let at = (lines.next().unwrap().split(','))
            .position(|name| name == "mean")
            .unwrap();
        lines
            .map(|line| line.split(',').nth(at).unwrap().parse().unwrap())
            .collect()
    };
    let (out, rounded) = (desk.name("out"), desk.name("rounded"));
    fit(&table("fine.csv", 6, ""), "rw2(on=x)", &out).expect(0);
    fit(&table("rounded.csv", 2, ""), "rw2(on=x)", &rounded).expect(0);
    for (fine, rounded) in means(&out).iter().zip(means(&rounded)) {
        // Rounding changes x by at most 0.005, and it changes the wave by at most the same amount.
        assert!((fine - rounded).abs() < 0.02, "{fine} {rounded}");
    }
    let close = table("close.csv", 6, "3,0.1\n3.00001,0.2\n");
    let walk = fit(&close, "rw2(on=x)", &desk.name("close"))
        .expect(0)
        .stdout;
    assert!(
        walk.contains("interpolates `x` linearly between 30"),
        "{walk}"
    );
    let said = fit(&close, "ar1(on=x)", &desk.name("autoregression")).stdout;
    assert!(
        said.contains("a node at each of the 302 values of `x`"),
        "{said}"
    );
    let refused = fit(&close, "rw2(on=x, step=0.0001)", &desk.name("refused"));
    let refused = refused.expect(3).stderr;
    assert!(refused.contains("are more than 10000"), "{refused}");
}

#[test]
fn a_little_memory_is_refused_with_the_rows() {
    let desk = Desk::new();
    let rows: String = (0..300u32).map(|i| format!("{i},{}\n", i % 5)).collect();
    let file = desk.file("r.csv", &format!("x,y\n{rows}"));
    let walk = ["--prior", "rw2(on=x)", "--memory-limit", "1MiB"];
    let base = ["latent", "fit", "--likelihood", "gaussian", "--data", &file];
    let output = jensen([&base[..], &walk].concat()).expect(3).stderr;
    assert!(
        output.contains("a fit of 300 rows under this prior"),
        "{output}"
    );
}

#[test]
fn hyperparameters_have_intervals() {
    let desk = Desk::new();
    let (_, fit) = curve(&desk, &[]);
    for row in fit["hyperparameters"].as_array().unwrap() {
        let (low, value, high) = (number(row, "q05"), number(row, "value"), number(row, "q95"));
        assert!(low < value && value < high, "{row}");
    }
    assert!(
        number(&fit, "evidence") < number(&fit, "bound") && number(&fit, "evidence_error") < 0.3,
        "{fit}"
    );
    let desk = Desk::new();
    let (_, point) = curve(&desk, &["--hyperparameters", "point"]);
    assert!(point["evidence"].is_null() && point["hyperparameters"][0]["q05"].is_null());
    assert!(number(&point, "bound") >= number(&fit, "bound") - 1e-3);
}
