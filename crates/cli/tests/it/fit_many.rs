//! Tests `jensen fit-many`, which writes a table of the results of many fits.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Desk, jensen, start};

const LINE: &str = "
    data { int<lower=0> N; vector[N] y; }
    parameters { real mu; real<lower=0> sigma; }
    model { mu ~ normal(0, 10); sigma ~ normal(0, 3); y ~ normal(mu, sigma); }";

/// Returns the arguments for a program and `sets` data sets. There are two additional data sets: one has the wrong
/// size, and the other does not exist.
fn prepared(desk: &Desk, sets: usize) -> Vec<String> {
    let mut line = vec!["fit-many".to_owned(), desk.file("line.stan", LINE)];
    for set in 0..sets {
        let y: Vec<f64> = (0..20)
            .map(|i| f64::from(i * 7 % 11) + set as f64)
            .collect();
        line.push(desk.file(
            &format!("{set}.json"),
            &format!("{{\"N\": 20, \"y\": {y:?}}}"),
        ));
    }
    line.push(desk.file("short.json", "{\"N\": 3, \"y\": [1, 2]}"));
    line.push(desk.name("none.json"));
    line.extend(["--seeds", "1..2,7", "--quiet"].map(str::to_owned));
    line
}

/// The verdict in a row of `rows.jsonl` that has no result.
const FAILED: &str = "\"verdict\":\"failed\"";

fn table(folder: &Path) -> Vec<String> {
    let text = fs::read_to_string(folder.join("table.csv")).expect("a table");
    let without = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        // A line that continues a quoted message has no time in seconds.
        let timed = cells.len() > 7;
        let kept = cells
            .iter()
            .enumerate()
            .filter(|(at, _)| !timed || *at != 6);
        kept.map(|(_, cell)| *cell).collect::<Vec<_>>().join(",")
    };
    text.lines().map(without).collect()
}

#[test]
fn a_table_is_the_same_for_any_number_of_workers() {
    let desk = Desk::new();
    let line = prepared(&desk, 4);
    let run = |workers: &str, out: &str| {
        let folder = desk.path(out);
        let path = folder.display().to_string();
        let more = ["--workers", workers, "--out", &path];
        jensen(line.iter().map(String::as_str).chain(more)).expect(4);
        table(&folder)
    };
    let one = run("1", "one");
    assert_eq!(one, run("3", "three"));
    let rows = |verdict: &str| one.iter().filter(|row| row.contains(verdict)).count();
    assert_eq!((rows(",trusted,"), rows(",failed,")), (12, 6), "{one:#?}");
    assert!(one[0].ends_with("mean(mu),sd(mu),mean(sigma),sd(sigma)"));
    assert!(one.iter().any(|row| row.contains("there is no such file")));
    // A second start keeps the rows of finished fits. It repeats failed fits, and a fit whose row is truncated because
    // the command was killed.
    let rows = desk.path("one").join("rows.jsonl");
    let text = || fs::read_to_string(&rows).unwrap();
    let finished = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.contains(FAILED));
        lines.map(str::to_owned).collect()
    };
    let kept = text();
    assert_eq!(run("2", "one"), one);
    assert_eq!(finished(&text()), finished(&kept));
    assert_eq!(text().lines().count(), 18);
    fs::write(&rows, &kept[..kept.len() - 9]).unwrap();
    assert_eq!(run("2", "one"), one);
    // A fit that failed because of insufficient memory is repeated when the command runs again.
    fs::write(&rows, kept.replacen("\"verdict\":\"trusted\"", FAILED, 3)).unwrap();
    assert_eq!(run("2", "one"), one);
    assert_eq!(text().lines().count(), 18);
}

#[test]
fn a_run_that_was_killed_goes_on() {
    let desk = Desk::new();
    let mut line = prepared(&desk, 30);
    line.extend(["--workers".to_owned(), "2".to_owned(), "--out".to_owned()]);
    let whole = desk.path("whole");
    let again = desk.path("again");
    jensen(line.iter().chain([&desk.name("whole")])).expect(4);
    let rows = again.join("rows.jsonl");
    let count = || fs::read_to_string(&rows).map_or(0, |text| text.matches('\n').count());
    let mut before = 0;
    for _ in 0..3 {
        let mut child = start(line.iter().chain([&desk.name("again")]));
        while count() < before + 5 && child.try_wait().expect("a process").is_none() {
            sleep(Duration::from_millis(2));
        }
        child.kill().expect("a process");
        child.wait().expect("a process");
        // All earlier rows still exist.
        assert!(count() >= before);
        before = count();
    }
    assert!(before > 0);
    jensen(line.iter().chain([&desk.name("again")])).expect(4);
    assert_eq!(table(&whole), table(&again));
    assert_eq!(count(), 3 * 32, "no fit is made twice");
}

#[test]
fn wrong_use_is_said() {
    let desk = Desk::new();
    let model = desk.file("line.stan", LINE);
    let data = desk.file("0.json", "{\"N\": 2, \"y\": [1, 2]}");
    let out = desk.name("out");
    let run = |more: &[&str]| {
        let line = ["fit-many", &model, &data, "--out", &out];
        jensen(line.iter().chain(more))
    };
    let refused = |code: i32, more: &[&str], what: &str| {
        let said = run(more).expect(code).stderr;
        assert!(said.contains(what), "{said}");
    };
    refused(2, &["--seeds", "5..1"], "expected seeds");
    refused(2, &["--seeds", "1,1"], "appears twice");
    refused(2, &["--checkpoint-every", "1"], "jensen fit");
    run(&[]).expect(0);
    refused(2, &["--family", "meanfield"], "name another folder");
    fs::write(&model, "parameters { real x }").unwrap();
    refused(3, &[], "line.stan");
    let full = desk.path("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("mine.txt"), "").unwrap();
    let line = ["fit-many", &model, &data, "--out"];
    fs::write(&model, LINE).unwrap();
    let said = jensen(line.iter().copied().chain([full.to_str().unwrap()]));
    assert!(said.expect(2).stderr.contains("other files"));
}
