//! Tests atomic writes, run folders, traces and the summary of a fit.

use std::fs;
use std::io::Write;

use jensen_data::{
    Artefact, Claim, DataError, DataSet, ElboPoint, FitSummary, ParameterSummary, RunDir, Seconds,
    TraceWriter, read_trace, write_atomic, write_atomic_bytes,
};
use serde::{Deserialize, Serialize};

fn names(folder: &std::path::Path) -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

#[test]
fn an_atomic_file_is_old_or_new_and_leaves_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    write_atomic_bytes(&path, b"one").unwrap();
    write_atomic_bytes(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");

    let failed = write_atomic(&path, |file| {
        file.write_all(b"half")?;
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    });
    let message = failed.unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("cannot write `{}`: ", path.display())),
        "{message}"
    );
    assert!(message.contains("free some space"), "{message}");
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(names(dir.path()), ["a.txt"]);
}

#[test]
fn errors_of_the_system_name_the_path_the_user_knows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    let inside = file.join("fit.json");
    for error in [
        write_atomic_bytes(&inside, b"").unwrap_err(),
        write_atomic_bytes(&dir.path().join("absent/fit.json"), b"").unwrap_err(),
        write_atomic_bytes(dir.path(), b"").unwrap_err(),
        TraceWriter::create(&inside).unwrap_err(),
        DataSet::read(&dir.path().join("none.json")).unwrap_err(),
        FitSummary::read(&inside).unwrap_err(),
    ] {
        let DataError::Io { path, .. } = &error else {
            panic!("{error:?}")
        };
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
        assert!(!error.to_string().contains(".tmp`"), "{error}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_when_the_trace_is_flushed() {
    let path = std::path::Path::new("/dev/full");
    let mut trace = TraceWriter::create(path).unwrap();
    trace.append(&1.5).unwrap();
    let message = trace.flush().unwrap_err().to_string();
    assert!(
        message.starts_with("cannot write `/dev/full`: ") && message.contains("free some space"),
        "{message}"
    );
}

#[test]
fn a_run_folder_is_new_empty_or_of_the_same_command() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b");
    let run = RunDir::create(&path, "fit").unwrap();
    assert!(run.has(Artefact::Marker) && run.artefacts().is_empty());
    write_atomic_bytes(&run.artefact(Artefact::Fit), b"{}").unwrap();
    write_atomic_bytes(&run.artefact(Artefact::Trace), b"").unwrap();
    fs::write(path.join("notes.txt"), "mine").unwrap();

    let again = RunDir::create(&path, "fit").unwrap();
    assert_eq!((again.path(), again.command()), (&*path, "fit"));
    assert_eq!(
        again.artefacts(),
        [path.join("fit.json"), path.join("trace.jsonl")]
    );
    again.remove(Artefact::Trace).unwrap();
    again.remove(Artefact::Trace).unwrap();
    again.clear().unwrap();
    assert_eq!(names(&path), ["jensen.json", "notes.txt"]);
    assert_eq!(RunDir::open(&path).unwrap(), again);
    assert!(
        RunDir::create(&path, "topics")
            .unwrap_err()
            .to_string()
            .contains("has results of `jensen fit`")
    );
}

#[test]
fn a_folder_of_someone_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    let error = RunDir::create(dir.path(), "fit").unwrap_err().to_string();
    assert!(
        error.contains("was not written by jensen (it has `thesis.tex`)"),
        "{error}"
    );
    assert!(
        RunDir::open(dir.path())
            .unwrap_err()
            .to_string()
            .ends_with("it has no `jensen.json`")
    );
    assert!(
        RunDir::open(&dir.path().join("x"))
            .unwrap_err()
            .to_string()
            .ends_with("there is no such folder")
    );
    let file = dir.path().join("thesis.tex");
    assert!(
        RunDir::create(&file, "fit")
            .unwrap_err()
            .to_string()
            .ends_with("it is a file; name a folder")
    );
    fs::write(dir.path().join("jensen.json"), "{}").unwrap();
    assert!(
        RunDir::open(dir.path())
            .unwrap_err()
            .to_string()
            .ends_with("has another format")
    );
    fs::write(
        dir.path().join("jensen.json"),
        r#"{"layout": 99, "command": "fit", "version": "9.0"}"#,
    )
    .unwrap();
    assert!(
        RunDir::open(dir.path())
            .unwrap_err()
            .to_string()
            .contains("was written by a newer version of Jensen (9.0)")
    );
}

#[test]
fn every_artefact_finds_its_own_name() {
    for (artefact, name) in Artefact::ALL {
        assert_eq!(artefact.file_name(), name);
    }
}

#[derive(Debug, Serialize, Deserialize, PartialEq)]
struct Record {
    iteration: u64,
    elbo: Option<f64>,
}

fn record(iteration: u64) -> Record {
    Record {
        iteration,
        elbo: Some(-1.0 / (iteration as f64 + 1.0)),
    }
}

#[test]
fn a_resumed_trace_equals_an_uninterrupted_one() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, broken) = (dir.path().join("whole"), dir.path().join("broken"));
    let mut trace = TraceWriter::create(&whole).unwrap();
    (0..10).for_each(|i| trace.append(&record(i)).unwrap());
    trace.flush().unwrap();

    let mut trace = TraceWriter::create(&broken).unwrap();
    (0..7).for_each(|i| trace.append(&record(i)).unwrap());
    trace.flush().unwrap();
    drop(trace);
    fs::OpenOptions::new()
        .append(true)
        .open(&broken)
        .unwrap()
        .write_all(b"{\"iteration\": 7, \"el")
        .unwrap();
    assert_eq!(read_trace::<Record>(&broken).unwrap().len(), 7);

    let mut trace = TraceWriter::resume(&broken, 4).unwrap();
    assert_eq!(trace.lines(), 4);
    (4..10).for_each(|i| trace.append(&record(i)).unwrap());
    trace.flush().unwrap();
    assert_eq!(trace.lines(), 10);
    assert_eq!(fs::read(&whole).unwrap(), fs::read(&broken).unwrap());
    assert_eq!(
        read_trace::<Record>(&broken).unwrap(),
        (0..10).map(record).collect::<Vec<_>>()
    );

    assert!(
        TraceWriter::resume(&broken, 11)
            .unwrap_err()
            .to_string()
            .contains("10 complete lines")
    );
    TraceWriter::resume(&broken, 0).unwrap();
    assert_eq!(fs::metadata(&broken).unwrap().len(), 0);
}

#[test]
fn non_finite_trace_values_are_null_and_broken_lines_have_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let mut trace = TraceWriter::create(&path).unwrap();
    trace
        .append(&Record {
            iteration: 0,
            elbo: Some(f64::NEG_INFINITY),
        })
        .unwrap();
    trace.flush().unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\"iteration\":0,\"elbo\":null}\n"
    );
    fs::write(&path, "{\"iteration\":0}\nnonsense\n").unwrap();
    assert!(
        read_trace::<Record>(&path)
            .unwrap_err()
            .to_string()
            .contains("line 2: ")
    );
}

#[test]
fn a_summary_reads_back_and_writes_null_for_what_is_not_finite() {
    let summary = FitSummary {
        format: 1,
        status: "converged".into(),
        converged: true,
        trusted: false,
        elbo: -123.456,
        elbo_se: 0.01,
        khat: f64::INFINITY,
        iterations: 200,
        oracle_calls: 20_000,
        seconds: Seconds {
            build: 0.01,
            fit: 1.5,
            draws: 0.25,
        },
        dim: 2,
        seed: u64::MAX,
        version: "0.1.0".into(),
        parameters: vec![ParameterSummary::from_draws(
            "mu",
            &[3.0, 1.0, 2.0, 5.0, 4.0],
        )],
        method: "advi".into(),
        family: "meanfield".into(),
        draws: 5,
        labellings: 1,
        warnings: vec!["k̂ is high".into()],
        refinement: None,
        elbo_history: vec![ElboPoint {
            stage: String::new(),
            iteration: 1,
            elbo: -200.0,
            elbo_se: 1.0,
        }],
    };
    let p = &summary.parameters[0];
    assert_eq!((p.mean, p.q50, p.q05), (3.0, 3.0, 1.2));
    assert!((p.q95 - 4.8).abs() < 1e-15 && (p.sd - 2.5f64.sqrt()).abs() < 1e-15);

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fit.json");
    summary.write(&path).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["khat"].is_null());
    let keys: Vec<_> = value
        .as_object()
        .unwrap()
        .keys()
        .take(14)
        .cloned()
        .collect();
    assert_eq!(
        keys.join(" "),
        "format status converged trusted elbo elbo_se khat iterations oracle_calls seconds dim seed version parameters"
    );
    let parameter: Vec<_> = value["parameters"][0]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(parameter.join(" "), "name mean sd q05 q50 q95");
    let seconds: Vec<_> = value["seconds"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(seconds.join(" "), "build fit draws");

    let back = FitSummary::read(&path).unwrap();
    assert!(back.khat.is_nan());
    assert_eq!(
        FitSummary {
            khat: summary.khat,
            ..back
        },
        summary
    );
}

#[test]
fn summaries_of_odd_draws_do_not_panic() {
    assert!(ParameterSummary::from_draws("x", &[]).mean.is_nan());
    assert!(
        ParameterSummary::from_draws("x", &[1.0, f64::NAN])
            .q50
            .is_nan()
    );
    let one = ParameterSummary::from_draws("x", &[2.0]);
    assert!(one.q05 == 2.0 && one.q95 == 2.0 && one.sd.is_nan());
    let infinite = ParameterSummary::from_draws("x", &[f64::INFINITY; 4]);
    assert!(infinite.q50 == f64::INFINITY);
}

#[test]
fn data_files_are_recognised_by_name_or_content() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("d.json", "{\"N\": 1}"),
        ("d.data.R", "N <- 1"),
        ("d.Rdump", "N <- 1"),
        ("json", "\n {\"N\": 1}"),
        ("plain", "N <- 1"),
        ("dumped.txt", "\"N\" <-\n1"),
    ] {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        assert_eq!(DataSet::read(&path).unwrap().int("N").unwrap(), 1, "{name}");
    }
    let table = dir.path().join("table.txt");
    fs::write(&table, "y n\n1.5 1\n2.5 2\n").unwrap();
    let table = DataSet::read(&table).unwrap();
    assert_eq!(*table.reals("y", &[2]).unwrap(), [1.5, 2.5]);
}

#[cfg(unix)]
#[test]
fn a_folder_is_held_by_one_run_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("new/folder");
    let held = Claim::of(&path).unwrap();
    let error = Claim::of(&path).unwrap_err().to_string();
    assert!(
        error.contains("another run is writing to the folder"),
        "{error}"
    );
    drop(held);
    Claim::of(&path).unwrap();
    // A path that is not a folder is rejected.
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    Claim::of(&file).unwrap();
    assert!(RunDir::create(&file, "fit").is_err());
}

/// No operating system can move a file with this name. This simulates a disk failure while files are being moved.
#[test]
fn a_fit_that_cannot_be_put_aside_is_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunDir::create(dir.path(), "fit").unwrap();
    let long = "z".repeat(300);
    let digests = serde_json::json!({ "files": { "draws.csv": "", "fit.json": "", long.as_str(): "" }, "digest": "" });
    for (name, text) in [
        ("draws.csv", "x\n1\n".to_owned()),
        ("fit.json", "{}".to_owned()),
        ("digests.json", digests.to_string()),
    ] {
        write_atomic_bytes(&dir.path().join(name), text.as_bytes()).unwrap();
    }
    let before = names(dir.path());
    let error = folder.make_room().unwrap_err().to_string();
    assert!(error.starts_with("cannot move"), "{error}");
    assert_eq!(names(dir.path()), before);
}
