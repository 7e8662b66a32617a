//! Tests `jensen mixture` and `jensen factors` from a table to a report. The seeds are chosen so that each of these
//! small fits finds the best of its optima.

use std::fmt::Write as _;
use std::fs;

use crate::common::{Desk, jensen, read_json};
use serde_json::Value;

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
    // The output contains the weight and the mean of each component in one row.
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
        "Component means among the points",
        "Temperature",
        "component",
        "0.333",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for name in ["means.svg", "means.png", "course.svg", "course.png"] {
        assert!(desk.path("run").join(name).exists(), "{name}");
    }
    // Resuming a finished run changes nothing.
    jensen(args.into_iter().chain(["--resume", "--quiet"])).expect(0);
    let again = read_json(&desk.path("run/fit.json"));
    assert_eq!(again["components"], fit["components"]);
}

#[test]
fn factors_are_drawn() {
    let desk = Desk::new();
    // The table contains all combinations of two factors over four pixels.
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

/// Writes 400 pictures of four by four pixels. There are eight possible lines, and each of them is present in a fifth
/// of the pictures. The noise has a variance of 1/12.
fn lines(desk: &Desk) -> String {
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
    file(desk, "lines.csv", &text)
}

#[test]
fn starts_at_points_find_all_factors_and_what_is_left_is_output() {
    let desk = Desk::new();
    let data = lines(&desk);
    let fit = |k: &str, more: &[&str], code| {
        let args = ["factors", "fit", &data, "-k", k, "--activation", "0.2"];
        let noise = ["--noise-variance", "0.0833", "--json"];
        jensen(args.iter().chain(&noise).chain(more))
            .expect(code)
            .json()
    };
    for seed in ["0", "10"] {
        let found = fit("8", &["--seed", seed], 0);
        let factors: Vec<Vec<f64>> = (found["factors"].as_array().unwrap().iter())
            .map(numbers)
            .collect();
        for line in 0..8 {
            let on = |pixel: usize| match line < 4 {
                true => pixel / 4 == line,
                false => pixel % 4 == line - 4,
            };
            let near = factors.iter().any(|factor| {
                let off = |(pixel, x): (usize, &f64)| (x - f64::from(u8::from(on(pixel)))).abs();
                factor.iter().enumerate().map(off).fold(0.0, f64::max) < 0.2
            });
            assert!(near, "seed {seed}, line {line}: {factors:?}");
        }
    }
    // This is two factors fewer than the pictures have.
    let poor = fit("6", &[], 4);
    let said = poor["warnings"].to_string();
    assert!(said.contains("times the noise variance"), "{said}");
    assert!(said.contains("--starts"), "{said}");
}

#[test]
fn what_ends_hot_is_mended_by_what_is_advised() {
    let desk = Desk::new();
    let (data, out) = (lines(&desk), desk.name("run"));
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
        assert!(status.starts_with("ended at temperature"), "{status}");
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
        let warnings = mended["warnings"].to_string();
        assert!(!warnings.contains("ended at temperature"), "{warnings}");
    }
}

#[test]
fn what_cannot_be_fitted_is_named() {
    let desk = Desk::new();
    let data = plane(&desk);
    let hole = file(&desk, "hole.csv", "x,y\n1,2\n3,\n");
    let void = file(&desk, "void.csv", "x,y\n1,\n3,\n");
    let counts = file(&desk, "counts.csv", "x,y\n1,2\n3,4\n");
    for (args, code, message) in [
        (vec!["mixture", "fit", &data, "-k", "91"], 3, "use fewer"),
        (
            vec!["mixture", "fit", &hole, "-k", "1", "--kind", "multinomial"],
            3,
            "`y` is missing",
        ),
        (
            vec!["mixture", "fit", &hole, "-k", "1", "--temper", "global"],
            3,
            "anneal=50",
        ),
        (
            vec!["factors", "fit", &hole, "-k", "1", "--noise-variance", "1"],
            3,
            "complete rows",
        ),
        (vec!["mixture", "fit", &void, "-k", "1"], 3, "has no number"),
        (
            vec!["mixture", "fit", &data, "-k", "3..2"],
            2,
            "the range 3..2 is empty",
        ),
        (
            vec!["mixture", "fit", &data, "-k", "2", "--smoothing", "1"],
            2,
            "binary, categorical and multinomial",
        ),
        (
            vec![
                "mixture",
                "fit",
                &counts,
                "-k",
                "1",
                "--kind",
                "multinomial",
                "--standardise",
                "off",
            ],
            2,
            "--standardise belongs to Gaussian components",
        ),
        (
            vec!["mixture", "fit", &counts, "-k", "1", "--kind", "bernoulli"],
            3,
            "need 0 and 1",
        ),
        (
            vec!["mixture", "fit", &data, "-k", "2", "--kind", "multinomial"],
            3,
            "need counts",
        ),
        (
            vec!["mixture", "fit", &data, "-k", "2", "--temper", "warm"],
            2,
            "global[=PASSES",
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

#[test]
fn the_bound_chooses_the_number_of_components_and_new_rows_are_predicted() {
    let desk = Desk::new();
    let (data, out) = (plane(&desk), desk.name("run"));
    let args = [
        "mixture", "fit", &data, "-k", "1..5", "--starts", "3", "--out", &out,
    ];
    let finished = jensen(args).expect(0);
    assert!(
        finished.stdout.contains("ELBO + log K!"),
        "{}",
        finished.stdout
    );
    // The components of a process have no equivalent orders.
    let process = [&args[..4], &["5", "--starts", "3", "--mixing", "process"]].concat();
    let compared = jensen(process).expect(0).stdout;
    assert!(
        compared.contains("score") && !compared.contains("log K!"),
        "{compared}"
    );
    let fit = read_json(&desk.path("run/fit.json"));
    assert_eq!(fit["components"].as_array().unwrap().len(), 3);
    let candidates = fit["candidates"].as_array().unwrap();
    assert_eq!(candidates.len(), 15);
    let of = |row: &Value, name: &str| row[name].as_f64().unwrap();
    let kept = candidates.iter().find(|row| row["chosen"] == true).unwrap();
    assert_eq!(kept["parts"], 3);
    assert_eq!(kept["elbo"], fit["elbo"]);
    for row in candidates {
        assert!(of(row, "evidence") <= of(kept, "evidence"), "{row}");
        // The ELBO also contains log K!.
        let names: f64 = (1..=row["parts"].as_u64().unwrap())
            .map(|k| (k as f64).ln())
            .sum();
        assert!((of(row, "evidence") - of(row, "elbo") - names).abs() < 1e-9);
    }
    let page = fs::read_to_string(desk.path("run/report.html")).unwrap();
    assert!(page.contains("Fits compared"));
    // There is one row in each cluster, one row that is far from all clusters, one row that has only y, and one row
    // without values.
    let new = file(
        &desk,
        "new.csv",
        "name,y,x\na,0,-4\nb,1,4\nc,6,0\nd,90,90\ne,6,\nf,,\n",
    );
    let written = desk.name("seen.csv");
    jensen(["mixture", "predict", &out, &new, "--out", &written]).expect(0);
    let text = fs::read_to_string(&written).unwrap();
    assert_eq!(
        jensen(["mixture", "predict", &out, &new]).expect(0).stdout,
        text
    );
    let rows: Vec<Vec<f64>> = text
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(
        text.lines().next().unwrap(),
        "component,log_density,p1,p2,p3"
    );
    let means: Vec<Vec<f64>> = (fit["components"].as_array().unwrap().iter())
        .map(|component| numbers(&component["mean"]))
        .collect();
    let nearest = |x: f64, y: f64| {
        let far = |m: &Vec<f64>| (m[0] - x).powi(2) + (m[1] - y).powi(2);
        (0..3)
            .min_by(|a, b| far(&means[*a]).total_cmp(&far(&means[*b])))
            .unwrap() as f64
            + 1.0
    };
    for (row, (x, y)) in rows.iter().zip([(-4.0, 0.0), (4.0, 1.0), (0.0, 6.0)]) {
        assert_eq!(row[0], nearest(x, y));
        assert!(row[1 + row[0] as usize] > 0.999 && row[1] > -4.0, "{row:?}");
        assert!((row[2..].iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
    assert!(rows[3][1] < rows[0][1] - 10.0);
    assert_eq!(rows[4][0], nearest(0.0, 6.0));
    // If no value is known, the result consists of the weights.
    assert!(
        rows[5][1].abs() < 1e-12 && (rows[5][2] - 1.0 / 3.0).abs() < 0.01,
        "{:?}",
        rows[5]
    );
    let wrong = file(&desk, "wrong.csv", "x,z\n1,2\n");
    let refused = jensen(["mixture", "predict", &out, &wrong]).expect(3);
    assert!(
        refused.stderr.contains("no column `y`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn starts_are_resumed_and_do_not_depend_on_threads() {
    let desk = Desk::new();
    let data = plane(&desk);
    let fit = |out: &str, more: &[&str]| {
        let args = [
            "mixture", "fit", &data, "-k", "2..3", "--starts", "2", "--out", out, "--quiet",
        ];
        jensen(args.into_iter().chain(more.iter().copied()))
    };
    let (whole, part) = (desk.name("whole"), desk.name("part"));
    fit(&whole, &["--threads", "1"]).expect(0);
    let stopped = fit(&part, &["--max-seconds", "0.000001"]);
    stopped.expect(4);
    fit(
        &part,
        &["--resume", "--max-seconds", "100", "--threads", "2"],
    )
    .expect(0);
    let read = |name: &str| read_json(&desk.path(name).join("fit.json"));
    for field in ["elbo", "components", "candidates", "iterations"] {
        assert_eq!(read("whole")[field], read("part")[field], "{field}");
    }
    let approximation =
        |name: &str| fs::read(desk.path(name).join("approximation.safetensors")).unwrap();
    assert_eq!(approximation("whole"), approximation("part"));
}

#[test]
fn missing_values_cost_little() {
    let desk = Desk::new();
    // Every seventh cell of the plane is missing.
    let text = fs::read_to_string(plane(&desk)).unwrap();
    let mut cell = 0;
    let holes: Vec<String> = (text.lines().enumerate())
        .map(|(row, line)| {
            let cells = line.split(',').map(|text| {
                cell += 1;
                if row > 0 && cell % 7 == 0 { "" } else { text }
            });
            cells.collect::<Vec<_>>().join(",")
        })
        .collect();
    let holes = file(&desk, "holes.csv", &(holes.join("\n") + "\n"));
    for covariance in ["full", "diagonal"] {
        let args = [
            "mixture",
            "fit",
            &holes,
            "-k",
            "3",
            "--starts",
            "10",
            "--covariance",
            covariance,
        ];
        let fit = jensen(args.into_iter().chain(["--json"])).expect(0).json();
        for component in fit["components"].as_array().unwrap() {
            let mean = numbers(&component["mean"]);
            let near = [(-4.0, 0.0), (4.0, 1.0), (0.0, 6.0)]
                .iter()
                .any(|(x, y)| (mean[0] - x).abs() < 0.3 && (mean[1] - y).abs() < 0.3);
            assert!(near, "{covariance} {mean:?}");
        }
    }
}
