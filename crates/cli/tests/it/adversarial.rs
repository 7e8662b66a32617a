//! Tests posteriors that are difficult to fit and whose answers are known (`models/adversarial`). No wrong fit may be
//! trusted, and no fit may crash. Most fits must be trusted if there is an answer.
//!
//! By default, the test fits every sixth program. It fits all programs if the environment contains
//! `JENSEN_ADVERSARIAL=all`, as in `.ci/all`. With `--nocapture`, the test prints a table.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::common::jensen;
use serde_json::Value;

const DRAWS: usize = 4000;

/// The allowed error of a trusted mean in standard deviations, in addition to three standard errors of the draws.
const MEAN: f64 = 0.15;

/// The allowed relative error of a trusted standard deviation, in addition to three standard errors of the draws.
const SPREAD: f64 = 0.10;

/// The time limit of each fit in seconds, followed by the time that no fit may exceed.
const BUDGET: &str = "30";
const SECONDS: f64 = 90.0;

/// Unless the test fits all programs, it fits one out of this number of programs.
const EVERY: usize = 6;

struct Case {
    name: String,
    kind: String,
    trusted: bool,
    faults: Vec<String>,
    seconds: f64,
}

impl Case {
    fn is_false_trust(&self) -> bool {
        self.trusted && (self.kind == "improper" || !self.faults.is_empty())
    }
}

/// Returns the fitted values that are wrong. The mean or the standard deviation of such a value differs from the answer
/// by more than the error of the draws.
fn faults(answer: &Value, fit: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let parameters = fit["parameters"].as_array().expect("a list");
    for (name, moments) in answer["moments"].as_object().expect("an object") {
        let found = parameters
            .iter()
            .find(|p| p["name"] == name.as_str())
            .unwrap_or_else(|| panic!("no parameter `{name}`"));
        let Some((mean, sd)) = moments[0].as_f64().zip(moments[1].as_f64()) else {
            if !found["sd"].is_null() {
                faults.push(format!("{name} has no moments, and an sd is output"));
            }
            continue;
        };
        // If the fit reports that the draws do not determine the tails, this is not an error.
        if found["undefined"].is_string() {
            continue;
        }
        let (Some(m), Some(s)) = (found["mean"].as_f64(), found["sd"].as_f64()) else {
            faults.push(format!("{name} has no finite summary"));
            continue;
        };
        let draws = found["ess"].as_f64().unwrap_or(DRAWS as f64);
        let off = (m - mean).abs() / sd;
        if off > MEAN + 3.0 / draws.sqrt() {
            faults.push(format!("the mean of {name} is {off:.2} sd off"));
        }
        // This is the relative standard error of a standard deviation. If the distribution has no fourth moment, the
        // draws do not determine the standard deviation.
        if let Some(kurtosis) = moments[2].as_f64() {
            let error = ((kurtosis.max(0.0) + 2.0) / (4.0 * draws)).sqrt();
            if (s / sd - 1.0).abs() > SPREAD + 3.0 * error {
                faults.push(format!(
                    "the sd of {name} is {:.2} times the right one",
                    s / sd
                ));
            }
        }
    }
    faults
}

fn fit(folder: &Path) -> Case {
    let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
    let text = fs::read_to_string(folder.join("answer.json")).expect("readable");
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    let program = folder.join("model.stan");
    let begun = Instant::now();
    let draws = DRAWS.to_string();
    let done = jensen([
        "fit",
        program.to_str().unwrap(),
        "--json",
        "--seed",
        "1",
        "--threads",
        "1",
        "--max-seconds",
        BUDGET,
        "--draws",
        &draws,
    ]);
    let seconds = begun.elapsed().as_secs_f64();
    assert!(
        done.code == 0 || done.code == 4,
        "{name} ends with {}: {}",
        done.code,
        done.stderr
    );
    // If a fit cannot start, it writes no fit.json and is not trusted.
    let result: Option<Value> = serde_json::from_str(&done.stdout).ok();
    let trusted = result.as_ref().is_some_and(|fit| fit["trusted"] == true);
    assert_eq!(trusted, done.code == 0, "{name}");
    Case {
        kind: answer["kind"].as_str().expect("text").to_owned(),
        faults: result.map_or(Vec::new(), |fit| faults(&answer, &fit)),
        name,
        trusted,
        seconds,
    }
}

fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/adversarial");
    let mut folders: Vec<PathBuf> = fs::read_dir(root)
        .expect("a folder")
        .map(|entry| entry.expect("readable").path())
        .collect();
    folders.sort();
    assert!(folders.len() >= 100, "only {} models", folders.len());
    let all = std::env::var("JENSEN_ADVERSARIAL").is_ok_and(|value| value == "all");
    let folders: Vec<&PathBuf> = folders
        .iter()
        .step_by(if all { 1 } else { EVERY })
        .collect();
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(folder) = folders.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let case = fit(folder);
                    made.lock().unwrap().push(case);
                }
            });
        }
    });
    let mut cases = made.into_inner().unwrap();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

#[test]
fn nothing_wrong_is_trusted_and_most_proper_posteriors_are() {
    let cases = cases();
    for case in &cases {
        println!(
            "{:<32} {:<9} {:<8} {:6.2} s  {}",
            case.name,
            case.kind,
            if case.trusted { "trusted" } else { "refused" },
            case.seconds,
            case.faults.join("; ")
        );
    }
    let named = |wanted: &dyn Fn(&&Case) -> bool| {
        let names = cases.iter().filter(wanted).map(|case| case.name.as_str());
        names.collect::<Vec<_>>()
    };
    assert_eq!(named(&|case| case.is_false_trust()), Vec::<&str>::new());
    assert_eq!(named(&|case| case.seconds > SECONDS), Vec::<&str>::new());
    let proper = named(&|case| case.kind == "proper").len();
    let right = named(&|case| case.kind == "proper" && case.trusted).len();
    assert!(
        5 * right >= 3 * proper,
        "{right} of {proper} proper posteriors are trusted and right"
    );
}
