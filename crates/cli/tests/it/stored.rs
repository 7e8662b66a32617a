//! Folders that an earlier version wrote are read, and gone on with: the promise of the book's page on outputs.
//!
//! `tests/stored/VERSION` holds what that version wrote, all but reports, pictures and NetCDF. It is never made anew:
//! a version that changes a format adds a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Desk, jensen, read_json, rows};
use serde_json::Value;

/// A copy of everything that version 0.1.0 left.
fn stored(desk: &Desk) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored/0.1.0");
    let to = desk.path("stored");
    copy(&from, &to);
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|e| (e.path(), e.file_name())).unwrap();
        if path.is_dir() {
            copy(&path, &to.join(name));
        } else {
            fs::copy(&path, to.join(name)).unwrap();
        }
    }
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// What every `fit.json` has.
#[track_caller]
fn judged(folder: &Path) -> Value {
    let fit = read_json(&folder.join("fit.json"));
    assert_eq!(fit["format"], 1);
    assert!(fit["status"].is_string() && fit["converged"].is_boolean());
    let warnings = fit["warnings"].as_array().unwrap();
    assert!(
        fit["trusted"] == true || !warnings.is_empty(),
        "no reason is given: {fit}"
    );
    fit
}

#[test]
fn a_stan_fit_draws_and_goes_on() {
    let desk = Desk::new();
    let folder = stored(&desk).join("fit");
    let drawn = rows(
        &jensen(["draws", name(&folder), "--draws", "20"])
            .expect(0)
            .stdout,
    );
    // Parameters up to the rounding of a transform, which another evaluator computes since; log densities are sums whose
    // constants were rounded otherwise.
    let parameters = |csv: &str| -> Vec<Vec<f64>> {
        let rows = csv.lines().skip(1).map(|line| line.split(',').skip(3));
        rows.map(|row| row.map(|x| x.parse().expect("a number")).collect())
            .collect()
    };
    let mut found = parameters(&drawn);
    // The row of the mean, which that version did not write.
    found.remove(0);
    let kept = parameters(&crate::common::draws_of(&folder));
    assert_eq!((found.len(), found[0].len()), (20, 2));
    for (found, kept) in found.iter().flatten().zip(kept.iter().flatten()) {
        assert!((found - kept).abs() <= 2.0 * f64::EPSILON * kept.abs());
    }
    assert_eq!(kept.len(), 20);
    let trace = crate::common::trace_of(&folder);
    let resumed = jensen(["fit", "--resume", name(&folder), "--max-iters", "8", "-q"]);
    assert_eq!(resumed.stderr, "");
    assert!([0, 4].contains(&resumed.code));
    assert_eq!(crate::common::trace_of(&folder)[..4], trace[..4]);
    judged(&folder);
}

#[test]
fn points_go_on_for_more_passes() {
    let desk = Desk::new();
    let stored = stored(&desk);
    let (folder, points) = (stored.join("factors"), stored.join("bits.csv"));
    let before = read_json(&folder.join("fit.json"));
    let model = ["-k", "2", "--noise-variance", "0.05", "--seed", "6"];
    let resume = [
        "factors",
        "fit",
        name(&points),
        "--resume",
        "--out",
        name(&folder),
        "-q",
    ];
    // It was trusted then, though it had missed a factor: what it leaves of the points is no noise of this variance.
    jensen(resume.into_iter().chain(model)).expect(4);
    let again = judged(&folder);
    // Sums are added in another order since.
    let numbers = |fit: &Value| -> Vec<f64> {
        let rows = fit["factors"].as_array().expect("factors").iter();
        rows.flat_map(|row| row.as_array().expect("a row").clone())
            .map(|x| x.as_f64().expect("a number"))
            .collect()
    };
    for (x, y) in numbers(&again).iter().zip(numbers(&before)) {
        assert!((x - y).abs() < 1e-12, "{x} now, {y} then");
    }
    assert_eq!(again["trusted"], false);
    let warnings = again["warnings"].to_string();
    assert!(warnings.contains("times the noise variance"), "{warnings}");
    // What was not kept then is kept now: the request need not be given again.
    jensen(["factors", "fit", "--resume", "--out", name(&folder), "-q"]).expect(4);
    let (folder, points) = (stored.join("mixture"), stored.join("points.csv"));
    let before = read_json(&folder.join("fit.json"));
    let model = ["-k", "2", "--batch", "10", "--passes", "4", "--seed", "2"];
    let resume = [
        "mixture",
        "fit",
        name(&points),
        "--resume",
        "--out",
        name(&folder),
        "-q",
    ];
    jensen(resume.into_iter().chain(model)).expect(0);
    let again = judged(&folder);
    assert_eq!(again["components"], before["components"]);
    assert_eq!(again["status"], "all passes are made: 4, in 12 iterations");
}

#[test]
fn topics_are_shown_used_and_go_on() {
    let desk = Desk::new();
    let stored = stored(&desk);
    let (folder, corpus) = (stored.join("topics"), stored.join("animals.corpus"));
    let shown = jensen(["topics", "show", name(&folder), "--json"])
        .expect(0)
        .json();
    assert_eq!(shown.as_array().unwrap().len(), 2);
    let lines = jensen(["topics", "predict", name(&folder), name(&corpus)])
        .expect(0)
        .stdout;
    assert!(lines.lines().count() > 60);
    let before = read_json(&folder.join("fit.json"));
    let resume = [
        "topics",
        "fit",
        name(&corpus),
        "--resume",
        name(&folder),
        "-q",
    ];
    jensen(resume).expect(0);
    let again = judged(&folder);
    assert_eq!(again["topic_rows"], before["topic_rows"]);
    jensen(resume.into_iter().chain(["--passes", "3"])).expect(0);
    let longer = judged(&folder);
    assert_eq!(longer["finished"], true);
    // The version that began it knew no other inference.
    assert_eq!(longer["inference"], "mean-field");
}

#[test]
fn an_auto_encoder_is_used_and_goes_on() {
    let desk = Desk::new();
    let stored = stored(&desk);
    let (folder, points) = (stored.join("vae"), stored.join("points.csv"));
    let codes = jensen(["vae", "encode", name(&folder), name(&points)])
        .expect(0)
        .stdout;
    assert_eq!(codes.lines().count(), 31);
    let before = read_json(&folder.join("fit.json"));
    let resume = ["vae", "fit", name(&points), "--resume", name(&folder), "-q"];
    jensen(resume).expect(0);
    assert_eq!(judged(&folder)["bound"], before["bound"]);
    jensen(resume.into_iter().chain(["--epochs", "4"])).expect(0);
    assert_eq!(judged(&folder)["epochs"], 4.0);
}

#[test]
fn a_latent_model_predicts_and_goes_on() {
    let desk = Desk::new();
    let stored = stored(&desk);
    let (folder, counts) = (stored.join("latent"), stored.join("counts.csv"));
    let predicted = jensen(["latent", "predict", name(&folder), "--at", name(&counts)]);
    assert_eq!(predicted.expect(0).stdout.lines().count(), 21);
    let before = read_json(&folder.join("fit.json"));
    // The instruction set is that of the machine, so that the run may be another one here.
    jensen(["latent", "fit", "--resume", name(&folder), "--force", "-q"]).expect(0);
    let bound = |fit: &Value| fit["bound"].as_f64().unwrap();
    assert!((bound(&judged(&folder)) - bound(&before)).abs() < 1e-6);
}

#[test]
fn names_that_no_version_knows_are_refused() {
    let desk = Desk::new();
    let stored = stored(&desk);
    for (folder, command) in [
        ("fit", vec!["fit"]),
        ("topics", vec!["topics", "fit"]),
        ("vae", vec!["vae", "fit"]),
        ("latent", vec!["latent", "fit"]),
    ] {
        let folder = stored.join(folder);
        let mut run = read_json(&folder.join("run.json"));
        run["flags"]["sead"] = 1.into();
        fs::write(folder.join("run.json"), run.to_string()).unwrap();
        let refused = jensen(command.into_iter().chain(["--resume", name(&folder)])).expect(3);
        assert!(
            refused.stderr.contains("run.json") && refused.stderr.contains("`sead`"),
            "{}",
            refused.stderr
        );
    }
}
