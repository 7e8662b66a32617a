//! `jensen mixture` and `jensen factors` from a table to a report. Seeds are such that these small fits find the best of
//! their optima.

mod common;

use std::fmt::Write as _;
use std::fs;

use common::{Desk, jensen, read_json};
use serde_json::Value;

/// Points around three centres of a plane, in a fixed pattern.
fn plane(desk: &Desk) -> String {
    let mut text = "x,y\n".to_owned();
    for i in 0..90 {
        let (cx, cy) = [(-4.0, 0.0), (4.0, 1.0), (0.0, 6.0)][i % 3];
        let angle = i as f64 * 2.4;
        let radius = 0.1 * ((i / 3) % 9) as f64;
        let (x, y) = (cx + radius * angle.cos(), cy + radius * angle.sin());
        writeln!(text, "{x},{y}").unwrap();
    }
    file(desk, "plane.csv", &text)
}

fn file(desk: &Desk, name: &str, text: &str) -> String {
    fs::write(desk.path(name), text).unwrap();
    desk.name(name)
}

fn numbers(value: &Value) -> Vec<f64> {
    let list = value.as_array().unwrap();
    list.iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn a_mixture_leaves_a_table_a_report_and_means() {
    let desk = Desk::new();
    let (data, out) = (plane(&desk), desk.name("run"));
    let args = [
        "mixture",
        "fit",
        &data,
        "--components",
        "3",
        "--temper",
        "global",
        "--seed",
        "6",
        "--out",
        &out,
    ];
    let finished = jensen(args).expect(0);
    // Weights and means, a row a component.
    assert!(
        finished.stdout.contains("component  weight"),
        "{}",
        finished.stdout
    );
    assert_eq!(
        finished.stdout.matches("0.333").count(),
        3,
        "{}",
        finished.stdout
    );
    let fit = read_json(&desk.path("run/fit.json"));
    assert_eq!(fit["temperature"], 1.0);
    assert_eq!(fit["points"], 90);
    for (component, row) in fit["components"].as_array().unwrap().iter().zip(1..) {
        let mean = numbers(&component["mean"]);
        let near = [(-4.0, 0.0), (4.0, 1.0), (0.0, 6.0)]
            .iter()
            .any(|(x, y)| (mean[0] - x).abs() < 0.3 && (mean[1] - y).abs() < 0.3);
        assert!(near, "component {row}: {mean:?}");
    }
    let page = fs::read_to_string(desk.path("run/report.html")).unwrap();
    for part in [
        "Means among the points",
        "Temperature",
        "component",
        "0.333",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for name in ["means.svg", "means.png", "course.svg", "course.png"] {
        assert!(desk.path("run").join(name).exists(), "{name}");
    }
    // Going on from a run that is over changes nothing.
    jensen(args.into_iter().chain(["--resume", "--quiet"])).expect(0);
    let again = read_json(&desk.path("run/fit.json"));
    assert_eq!(again["components"], fit["components"]);
}

#[test]
fn factors_are_drawn() {
    let desk = Desk::new();
    // Two factors over four pixels, in every combination.
    let mut text = "a,b,c,d\n".to_owned();
    for i in 0..40 {
        let (left, right) = (f64::from(i % 2), f64::from(i / 2 % 2));
        writeln!(text, "{left},{left},{right},{right}").unwrap();
    }
    let (data, out) = (file(&desk, "pixels.csv", &text), desk.name("run"));
    let more = [
        "--factors",
        "2",
        "--noise-variance",
        "0.05",
        "--image",
        "2x2",
        "--seed",
        "6",
        "--out",
        &out,
    ];
    jensen(["factors", "fit", &data].into_iter().chain(more)).expect(0);
    let fit = read_json(&desk.path("run/fit.json"));
    let mut factors: Vec<Vec<i64>> = fit["factors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|f| numbers(f).iter().map(|x| x.round() as i64).collect())
        .collect();
    factors.sort();
    assert_eq!(factors, [[0, 0, 1, 1], [1, 1, 0, 0]]);
    let page = fs::read_to_string(desk.path("run/report.html")).unwrap();
    assert!(page.contains("Factors") && desk.path("run/factors.png").exists());
}

#[test]
fn what_ends_hot_is_mended_by_what_is_advised() {
    let desk = Desk::new();
    // Eight lines of four by four pixels, each on in a fifth of the pictures, and noise.
    let mut text = (0..16)
        .map(|k| format!("p{k}"))
        .collect::<Vec<_>>()
        .join(",")
        + "\n";
    let mut state = 12345u32;
    let mut uniform = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    for _ in 0..400 {
        let on: Vec<bool> = (0..8).map(|_| uniform() < 0.2).collect();
        let pixels = (0..16).map(|k| {
            let level = f64::from(u8::from(on[k / 4])) + f64::from(u8::from(on[4 + k % 4]));
            format!("{:.3}", level + uniform() - 0.5)
        });
        text += &(pixels.collect::<Vec<_>>().join(",") + "\n");
    }
    let (data, out) = (file(&desk, "lines.csv", &text), desk.name("run"));
    let args = [
        "factors",
        "fit",
        &data,
        "-k",
        "8",
        "--noise-variance",
        "0.09",
        "--json",
        "--out",
        &out,
    ];
    let plain = ["--temper", "local"];
    let stopped = ["--temper", "anneal=40", "--max-iters", "20"];
    for more in [&plain[..], &stopped] {
        let hot = jensen(args.iter().chain(more)).expect(4).json();
        let status = hot["status"].as_str().unwrap();
        assert!(status.starts_with("ended hot, at temperature"), "{status}");
        let warnings = hot["warnings"].to_string();
        let hot_one = hot["warnings"].as_array().unwrap().iter();
        let advice = hot_one
            .filter_map(Value::as_str)
            .find(|warning| warning.contains("ended at temperature"))
            .unwrap();
        let flags: Vec<&str> = advice.split('`').nth(1).unwrap().split(' ').collect();
        let again = match advice.contains("--resume") {
            true => [&["--resume"], &flags[..]].concat(),
            false => flags,
        };
        let mended = jensen(args.iter().chain(&again)).json();
        assert_eq!(mended["temperature"], 1.0, "{warnings}");
        let status = mended["status"].as_str().unwrap();
        assert!(!status.contains("hot"), "{status}");
        assert!(!mended["warnings"].to_string().contains("temperature"));
    }
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let desk = Desk::new();
    let data = plane(&desk);
    let hole = file(&desk, "hole.csv", "x,y\n1,2\n3,\n");
    let counts = file(&desk, "counts.csv", "x,y\n1,2\n3,4\n");
    for (args, code, message) in [
        (
            vec!["mixture", "fit", &data, "-k", "91"],
            3,
            "ask for fewer",
        ),
        (vec!["mixture", "fit", &hole, "-k", "1"], 3, "missing"),
        (
            vec!["mixture", "fit", &counts, "-k", "1", "--kind", "bernoulli"],
            3,
            "take 0 and 1",
        ),
        (
            vec!["mixture", "fit", &data, "-k", "2", "--kind", "multinomial"],
            3,
            "take counts",
        ),
        (
            vec!["mixture", "fit", &data, "-k", "2", "--temper", "warm"],
            2,
            "global=PASSES",
        ),
        (
            vec![
                "mixture", "fit", &data, "-k", "2", "--image", "3x3", "--out", "run",
            ],
            2,
            "3x3",
        ),
        (
            vec!["factors", "fit", &data, "-k", "2"],
            2,
            "--noise-variance",
        ),
    ] {
        let finished = jensen(args.clone()).expect(code);
        assert!(
            finished.stderr.contains(message),
            "{args:?}: {}",
            finished.stderr
        );
    }
}
