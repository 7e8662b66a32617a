//! `check`, `density`, `show`, `bench` and the help.

mod common;

use common::{Desk, corpus, jensen, jensen_with_input, oracle};
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
