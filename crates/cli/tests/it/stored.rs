//! Tests that Jensen can read folders that an earlier version wrote, and can continue the fits in them. The book's page
//! on outputs promises this.
//!
//! `tests/stored/VERSION` contains the output of that version, except reports, pictures and NetCDF. The folder of a
//! released version never changes. If a version changes a format, another folder is added. The folder was written by
//! the following commands in a folder `/data`, which also contained the tables, the program and the corpus:
//!
//! ```text
//! jensen fit normal.stan normal.json --max-iters 4 --draws 20 --seed 3 --simd scalar --out fit
//! jensen latent fit counts.csv --likelihood poisson --prior 'rw1(on=day, precision=2)' --out latent
//! jensen vae fit /data/points.csv --decoder gaussian --latent 1 --hidden 4 --batch 10 --epochs 3 --simd scalar --out vae
//! jensen topics fit /data/animals.corpus --topics 2 --passes 2 --batch 10 --tau 1 --inference mean-field --simd scalar --out topics
//! jensen factors fit bits.csv -k 2 --noise-variance 0.05 --seed 6 --out factors
//! jensen mixture fit points.csv -k 2 --batch 10 --passes 2 --seed 2 --out mixture
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Desk, jensen, read_json, rows};
use serde_json::Value;

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
    // The numbers agree only up to rounding, because they are computed with the best instruction set of the machine.
    let parameters = |csv: &str| -> Vec<Vec<f64>> {
        let rows = csv.lines().skip(1).map(|line| line.split(',').skip(3));
        rows.map(|row| row.map(|x| x.parse().expect("a number")).collect())
            .collect()
    };
    let found = parameters(&drawn);
    let kept = parameters(&crate::common::draws_of(&folder));
    assert_eq!(found.len(), kept.len());
    for (found, kept) in found.iter().flatten().zip(kept.iter().flatten()) {
        assert!((found - kept).abs() <= 2.0 * f64::EPSILON * kept.abs());
    }
    assert!(kept.len() >= 20);
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
    let folder = stored.join("factors");
    let before = read_json(&folder.join("fit.json"));
    // The request is stored, so it need not be specified again.
    let points = stored.join("bits.csv");
    let resume = [
        "factors",
        "fit",
        name(&points),
        "--resume",
        "--out",
        name(&folder),
        "-q",
    ];
    jensen(resume).expect(0);
    assert_eq!(judged(&folder)["factors"], before["factors"]);
    let folder = stored.join("mixture");
    let points = stored.join("points.csv");
    let resume = [
        "mixture",
        "fit",
        name(&points),
        "--resume",
        "--out",
        name(&folder),
        "-q",
    ];
    let longer = jensen(resume.into_iter().chain(["--passes", "4"]));
    assert!([0, 4].contains(&longer.code), "{}", longer.stderr);
    let again = judged(&folder);
    assert_eq!(
        again["status"],
        "completed all passes: 4, after 12 iterations"
    );
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
    jensen(resume).expect(4);
    assert_eq!(judged(&folder)["bound"], before["bound"]);
    jensen(resume.into_iter().chain(["--epochs", "4"])).expect(4);
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
    // The run uses the instruction set of this machine, so it may differ from the stored run.
    jensen(["latent", "fit", "--resume", name(&folder), "--force", "-q"]).expect(0);
    let bound = |fit: &Value| fit["bound"].as_f64().unwrap();
    assert!((bound(&judged(&folder)) - bound(&before)).abs() < 1e-6);
}

#[test]
fn requests_changed_by_hand_are_refused() {
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
            refused.stderr.contains("run.json") && refused.stderr.contains("damaged or changed"),
            "{}",
            refused.stderr
        );
    }
}
