//! Tests `check`, `density`, `show`, `bench` and the help texts.

use crate::common::{Desk, corpus, jensen, jensen_with_input, oracle};
use serde_json::Value;

#[track_caller]
fn close(found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| close(a, b));
        }
        _ => {
            let (a, b) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-8 * (1.0 + b.abs()), "{a} and {b}");
        }
    }
}

#[test]
fn what_is_not_evaluated_is_said_by_the_check() {
    let desk = Desk::new();
    let model = desk.file(
        "schur.stan",
        "parameters {\n  matrix[2, 2] z;\n}\nmodel { target += get_real(complex_schur_decompose_t(z)[1, 1]); }\n",
    );
    let said = jensen(["check", &model]).expect(3).stderr;
    assert!(said.contains("schur.stan:4:28"), "{said}");
}

#[test]
fn programs_in_old_syntax_are_shown_in_todays_and_fit() {
    let desk = Desk::new();
    let model = desk.file(
        "old.stan",
        "data { int N; real y[N]; } parameters { real m; } model { increment_log_prob(normal_log(y, m, 1)); }\n",
    );
    // No flag is needed, because all arrays of the program are declared in the old syntax.
    jensen(["check", &model]).expect(0);
    let mixed = desk.file(
        "mixed.stan",
        "data { int N; real y[N]; array[N] real w; } parameters { real m; } model { y ~ normal(m, w); }\n",
    );
    let said = jensen(["check", &mixed]).expect(3).stderr;
    assert!(said.contains("--old-syntax"), "{said}");
    jensen(["check", "--old-syntax", &mixed]).expect(0);
    let shown = jensen(["check", "--old-syntax", &model]).expect(0).stdout;
    assert_eq!(
        shown,
        "data { int N; array[N] real y; } parameters { real m; } model { target += normal_lpdf(y | m, 1); }\n"
    );
    let data = desk.file("y.R", "N <- 3\ny <- seq(1, 2, by = 0.5)\nwho <- \"me\"\n");
    let out = desk.name("out");
    let fit = [
        "fit", &model, &data, "--seed", "1", "--out", &out, "--quiet",
    ];
    jensen(fit).expect(0);
    // The folder contains the program in the current syntax.
    jensen(["draws", &out, "--draws", "5"]).expect(0);
}

#[test]
fn a_value_that_is_no_data_is_output_where_it_is_asked_for() {
    let desk = Desk::new();
    let model = desk.file(
        "m.stan",
        "data { real who; } parameters { real m; } model { m ~ normal(who, 1); }",
    );
    let data = desk.file("d.json", "{\"who\": \"me\"}");
    let said = jensen(["density", &model, &data, "--at", "-"])
        .expect(3)
        .stderr;
    assert!(
        said.contains("d.json:1:9") && said.contains("`who`"),
        "{said}"
    );
}

#[test]
fn densities_agree_with_stan() {
    for name in [
        "eight_schools_noncentred",
        "gauss_mix_ordered",
        "radon_group_noncentred",
    ] {
        let (model, data) = corpus(name);
        let oracle = oracle(name);
        let points = oracle["points"].to_string();
        let ask = |flags: &[&str]| {
            let mut args = vec!["density", &model, &data, "--at", "-"];
            args.extend(flags);
            jensen_with_input(&args, &points).expect(0).json()
        };
        let full = ask(&["--gradient"]);
        close(&full["value"], &oracle["value"]);
        close(&full["gradient"], &oracle["gradient"]);
        close(&ask(&["--propto"])["value"], &oracle["value_propto"]);
        let bare = ask(&["--no-jacobian"]);
        close(&bare["value"], &oracle["value_no_jacobian"]);
        assert!(bare.get("gradient").is_none());
    }
}

#[test]
fn products_are_differences_of_gradients() {
    let (model, data) = corpus("eight_schools_noncentred");
    let desk = Desk::new();
    let z = [0.3, -0.2, 0.5, 0.1, -0.7, 0.4, 0.0, 0.9, -0.1, 0.2];
    let v = [1.0, 0.5, -0.3, 0.2, 0.1, 0.0, -1.0, 0.4, 0.6, -0.2];
    let h = 1e-5;
    let moved =
        |sign: f64| -> Vec<f64> { z.iter().zip(&v).map(|(z, v)| z + sign * h * v).collect() };
    let points = desk.file(
        "points.json",
        &serde_json::to_string(&[z.to_vec(), moved(1.0), moved(-1.0)]).unwrap(),
    );
    let direction = desk.file("direction.json", &serde_json::to_string(&[v]).unwrap());
    let answer = jensen([
        "density",
        &model,
        &data,
        "--at",
        &points,
        "--gradient",
        "--hvp",
        &direction,
    ])
    .expect(0)
    .json();
    let number = |value: &Value, i: usize| value[i].as_f64().unwrap();
    for i in 0..10 {
        let product = number(&answer["hvp"][0], i);
        let gradient = &answer["gradient"];
        let difference = (number(&gradient[1], i) - number(&gradient[2], i)) / (2.0 * h);
        assert!(
            (product - difference).abs() < 1e-6 * (1.0 + product.abs()),
            "{product} {difference}"
        );
    }
    let two = desk.file("two.json", &serde_json::to_string(&[v, v]).unwrap());
    let refused = jensen(["density", &model, &data, "--at", &points, "--hvp", &two]).expect(3);
    assert!(refused.stderr.contains("2 directions for 3 points"));
}

#[test]
fn what_is_not_finite_is_null() {
    let desk = Desk::new();
    let model = desk.file(
        "model.stan",
        "parameters { real x; } model { if (x > 1) reject(\"large\"); x ~ normal(0, 1); }",
    );
    let answer = jensen_with_input(
        &["density", &model, "--at", "-", "--gradient"],
        "[[0], [2]]",
    )
    .expect(0)
    .json();
    assert!(answer["value"][0].is_f64());
    assert!(answer["value"][1].is_null());
    assert!(answer["gradient"][1][0].is_null());
}

#[test]
fn points_must_fit_the_model() {
    let (model, data) = corpus("eight_schools_noncentred");
    let ask = |points: &str| {
        jensen_with_input(&["density", &model, &data, "--at", "-"], points)
            .expect(3)
            .stderr
    };
    assert!(ask("[[1, 2]]").contains("point 1 has 2 coordinates, expected 10"));
    assert!(ask("[1, 2]").contains("list of vectors"));
    assert!(ask("[[1, 2").contains("list of vectors"));
    let none = jensen_with_input(&["density", &model, &data, "--at", "-", "--gradient"], "[]");
    assert_eq!(
        none.expect(0).stdout.trim(),
        r#"{"value":[],"gradient":[]}"#
    );
}

#[test]
fn programs_are_checked() {
    let (good, _) = corpus("eight_schools_noncentred");
    let desk = Desk::new();
    let bad = desk.file("bad.stan", "model { real x = ; }");
    assert!(
        jensen(["check", &good])
            .expect(0)
            .stdout
            .contains("correct")
    );
    let both = jensen(["check", &good, &bad]).expect(3);
    assert!(both.stdout.contains("correct") && both.stdout.contains("1 error"));
    assert!(both.stderr.contains("bad.stan:1"));
}

#[test]
fn stages_are_shown() {
    let (model, data) = corpus("eight_schools_noncentred");
    for (stage, text) in [
        ("tokens", "Ident theta"),
        ("ast", "theta"),
        ("program", "theta"),
        ("graph", "input"),
    ] {
        let shown = jensen(["show", &model, &data, "--stage", stage]).expect(0);
        assert!(
            shown.stdout.to_lowercase().contains(&text.to_lowercase()),
            "{stage}: {}",
            shown.stdout
        );
    }
}

#[test]
fn the_cost_of_a_density_is_measured() {
    let (model, data) = corpus("eight_schools_noncentred");
    let json = jensen(["bench", "density", &model, &data, "--lanes", "64", "--json"])
        .expect(0)
        .json();
    for field in [
        "seconds_per_value",
        "seconds_per_gradient",
        "seconds_per_hvp",
        "build_seconds",
    ] {
        assert!(json[field].as_f64().unwrap() > 0.0, "{field}");
    }
    assert_eq!(json["dim"], 10);
    for field in ["peak_bytes", "ops"] {
        assert!(json[field].as_u64().unwrap() > 0, "{field}");
    }
}

#[test]
fn help_and_version_are_there() {
    let help = jensen(["--help"]).expect(0).stdout;
    for command in ["fit", "draws", "check", "density", "show", "bench"] {
        assert!(help.contains(command), "{command}");
    }
    assert!(help.contains("Exit codes"));
    assert!(
        jensen(["fit", "--help"])
            .expect(0)
            .stdout
            .contains("--resume")
    );
    let version = jensen(["--version"]).expect(0).stdout;
    assert_eq!(
        version.trim(),
        format!("jensen {}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn data_may_be_named_and_shells_complete() {
    let (model, data) = corpus("eight_schools_noncentred");
    let flags = ["--method", "advi", "--max-iters", "3", "--json"];
    let fit = |given: &[&str], code| {
        let finished = jensen([&["fit", &model], given, &flags].concat()).expect(code);
        let mut fit = finished.json();
        fit.as_object_mut().unwrap().remove("seconds");
        fit
    };
    let placed = fit(&[&data], 4);
    assert_eq!(placed["trusted"], false);
    assert_eq!(fit(&["--data", &data], 4), placed);
    assert_eq!(fit(&["--data", &data, "--exit-zero"], 0), placed);
    jensen(["fit", &model, &data, "--data", &data]).expect(2);
    for shell in ["bash", "zsh", "fish"] {
        let script = jensen(["completions", shell]).expect(0).stdout;
        assert!(script.contains("exit-zero") && script.contains("generate"));
    }
}

#[test]
fn a_table_is_data() {
    let desk = Desk::new();
    let model = desk.file(
        "line.stan",
        "data { int<lower=2> rows; vector[rows] x; array[rows] int<lower=1> g; array[rows] real y; }
        parameters { vector[2] a; real b; }
        model { a ~ normal(0, 9); b ~ normal(0, 9); y ~ normal(a[g] + b * x, 1); }",
    );
    let table = desk.file(
        "line.csv",
        "name,x,y,g\nb,1,2.1,1\na,2,4.5,2\nc,3,5.9,1\nd,4,8.2,2\n",
    );
    let json = desk.file(
        "line.json",
        r#"{"rows": 4, "x": [1, 2, 3, 4], "y": [2.1, 4.5, 5.9, 8.2], "g": [1, 2, 1, 2]}"#,
    );
    let parameters = |args: &[&str]| jensen(args).expect(0).json()["parameters"].clone();
    let fit = parameters(&["fit", &model, &table, "--json", "--out", &desk.name("fit")]);
    assert_eq!(fit, parameters(&["fit", &model, &json, "--json"]));
    let again = parameters(&["fit", "--resume", &desk.name("fit"), "--json"]);
    assert_eq!(fit, again);
    // If no column has the length, it is not guessed from the data.
    let other = desk.file("other.stan", "data { int K; vector[3] x; }");
    let output = jensen(["fit", &other, &table]).expect(3).stderr;
    assert!(output.contains("`K`: expected int"), "{output}");
    // Words identify groups and are never measurements. Numbers with a decimal comma must not be replaced by the codes
    // 1, 2, ….
    for (text, location) in [
        ("x\ty\tg\n1,5\t2.1\t1\n2,5\t4.5\t2\n", "bad.tsv:2"),
        ("x\ty\tg\n1\t2.1\t1\nlost\t4.5\t2\n", "bad.tsv:3"),
        (
            "x\ty\tg\n1\t2.1\t10\n2\t4.5\t2\n3\t4.5\tnone\n",
            "bad.tsv:4",
        ),
    ] {
        let output = jensen(["fit", &model, &desk.file("bad.tsv", text)]).expect(3);
        assert!(output.stderr.contains(location), "{}", output.stderr);
    }
}

/// The leave-one-out densities of two models of twenty numbers are known. The mean is known in one of the models and
/// unknown in the other.
#[test]
fn fits_are_compared_by_leaving_one_out() {
    let desk = Desk::new();
    let y: Vec<f64> = (0..20)
        .map(|i| 1.0 + 1.3 * (f64::from(i) * 0.9).sin())
        .collect();
    let data = desk.file("data.json", &serde_json::json!({ "y": y }).to_string());
    let lik = |mean: &str| {
        format!("vector[20] log_lik; for (n in 1:20) log_lik[n] = normal_lpdf(y[n] | {mean}, 1);")
    };
    let fit = |name: &str, mean: &str| {
        let text = format!(
            "data {{ vector[20] y; }} parameters {{ real mu; }}
             model {{ mu ~ normal(0, 2); y ~ normal({mean}, 1); }}
             generated quantities {{ {} }}",
            lik(mean)
        );
        let model = desk.file(&format!("{name}.stan"), &text);
        let out = desk.name(name);
        jensen(["fit", &model, &data, "--out", &out, "--draws", "4000", "-q"]).expect(0);
        out
    };
    let (known, unknown) = (fit("known", "0"), fit("unknown", "mu"));
    let log_density = |x: f64, mean: f64, variance: f64| {
        -0.5 * ((x - mean).powi(2) / variance + (std::f64::consts::TAU * variance).ln())
    };
    let exact = [
        // Given the other numbers, the posterior of μ is normal with precision 1/4 + 19.
        y.iter()
            .map(|own| {
                let variance = 1.0 / (0.25 + 19.0);
                let mean = variance * (y.iter().sum::<f64>() - own);
                log_density(*own, mean, 1.0 + variance)
            })
            .sum::<f64>(),
        y.iter().map(|own| log_density(*own, 0.0, 1.0)).sum(),
    ];
    let rows = jensen(["compare", &known, &unknown, "--json"])
        .expect(0)
        .json();
    for (row, (name, exact)) in [(&unknown, exact[0]), (&known, exact[1])]
        .iter()
        .enumerate()
    {
        let row = &rows[row];
        assert_eq!(row["fit"], **name);
        let elpd = row["loo"]["elpd"].as_f64().unwrap();
        assert!((elpd - exact).abs() < 0.05, "{name}: {elpd} for {exact}");
    }
    let difference = rows[1]["difference"][0].as_f64().unwrap();
    assert!((difference - (exact[1] - exact[0])).abs() < 0.05);

    let table = jensen(["compare", &known, &unknown]).expect(0).stdout;
    assert!(
        table.lines().nth(1).unwrap().starts_with(&unknown),
        "{table}"
    );
    let without = jensen(["compare", &known, "--log-lik", "lik"]).expect(0);
    assert!(without.stderr.contains("`lik`"), "{}", without.stderr);
    let absent = jensen(["compare", &desk.name("nothing")]).expect(3);
    assert!(absent.stderr.contains("nothing"), "{}", absent.stderr);
}
