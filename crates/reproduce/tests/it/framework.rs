//! Tests of rows and figures, and of resuming a reproduction that was stopped.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jensen::report::figure::{Chart, Figure, Series};
use jensen_reproduce::{
    Context, Experiment, Failure, Ours, Piece, Results, Scale, Setup, What, run,
};

static MEASURED: AtomicUsize = AtomicUsize::new(0);
static STOP: AtomicBool = AtomicBool::new(false);

const EXPERIMENT: Experiment = Experiment {
    name: "example",
    about: "An example",
    data: "the numbers are those of the paper",
    parts: &[
        Piece {
            name: "first",
            about: "two rows",
            from: Scale::Quick,
            run: first,
        },
        Piece {
            name: "second",
            about: "a figure",
            from: Scale::Quick,
            run: second,
        },
        Piece {
            name: "large",
            about: "days of work",
            from: Scale::Paper,
            run: second,
        },
    ],
};

fn first(context: &mut Context<'_>) -> Result<(), Failure> {
    for name in ["a", "b"] {
        context.row(What::new(name, "nats").paper(1.0), |context| {
            let count = MEASURED.fetch_add(1, Ordering::SeqCst);
            if context.threads() == 7 {
                STOP.store(true, Ordering::SeqCst);
            }
            Ok(Ours::value(count as f64))
        })?;
    }
    Ok(())
}

fn second(context: &mut Context<'_>) -> Result<(), Failure> {
    let points: Vec<(f64, f64)> = context.keep("points/all", |_| {
        MEASURED.fetch_add(1, Ordering::SeqCst);
        Ok(vec![(0.0, 1.0), (1.0, 0.5)])
    })?;
    let chart = Chart::new("").series(Series::line("", points));
    context.figure("curve", &Figure::new("").panel(chart))?;
    context.not_run(What::new("the panel on the right", ""), "no such data")
}

fn setup<'a>(out: &Path) -> Setup<'a> {
    Setup {
        data: "nowhere".into(),
        out: out.to_path_buf(),
        corpus: None,
        models: None,
        scale: Scale::Quick,
        only: Vec::new(),
        resume: false,
        threads: 1,
        machine: "test".into(),
        cancel: Some(&STOP),
    }
}

fn summary(results: &Results) -> Vec<(String, Option<f64>, String)> {
    let row = |r: &jensen_reproduce::ResultRow| (r.what.clone(), r.ours, r.note.clone());
    results.rows.iter().map(row).collect()
}

/// This is a single test because all of its steps share the same counters.
#[test]
fn a_run_is_stopped_and_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let mut say = |_: &str| {};

    // The run stops after the first row, which has been written to disk. The table lists the rows that are missing.
    let mut stopped = setup(&out);
    stopped.threads = 7;
    assert_eq!(run(&EXPERIMENT, &stopped, &mut say), Err(Failure::Stopped));
    STOP.store(false, Ordering::SeqCst);
    let path = out.join("results.json");
    let stored = Results::read(&path).unwrap().unwrap();
    let left = "not run: the run ended before it was complete";
    let large = "not run: it has no quick version; use --scale paper";
    assert_eq!(
        summary(&stored),
        [
            ("first: two rows".into(), None, left.into()),
            ("second: a figure".into(), None, left.into()),
            ("large: days of work".into(), None, large.into()),
            ("a".into(), Some(0.0), String::new()),
        ]
    );

    // A resumed run measures only the rows that are missing.
    let mut resumed = setup(&out);
    resumed.resume = true;
    let results = run(&EXPERIMENT, &resumed, &mut say).unwrap();
    assert_eq!(MEASURED.load(Ordering::SeqCst), 3);
    let expected = [
        ("large: days of work".to_owned(), None, large.to_owned()),
        ("a".into(), Some(0.0), String::new()),
        ("b".into(), Some(1.0), String::new()),
        (
            "the panel on the right".into(),
            None,
            "not run: no such data".into(),
        ),
    ];
    assert_eq!(summary(&results), expected);
    assert_eq!(Results::read(&path).unwrap().unwrap(), results);
    for file in ["curve.svg", "curve.png", "kept/points-all.json"] {
        assert!(out.join(file).is_file(), "{file}");
    }

    // A part that is complete remains complete even if a later run omits it. The run draws the figures again.
    std::fs::remove_file(out.join("curve.png")).unwrap();
    resumed.only = vec!["second".into()];
    let again = run(&EXPERIMENT, &resumed, &mut say).unwrap();
    assert_eq!(summary(&again), expected);
    assert_eq!(MEASURED.load(Ordering::SeqCst), 3);
    assert!(out.join("curve.png").is_file());

    // Without --resume, the run measures all rows again and lists the other parts as omitted.
    resumed.resume = false;
    let fresh = run(&EXPERIMENT, &resumed, &mut say).unwrap();
    assert_eq!(MEASURED.load(Ordering::SeqCst), 4);
    let first = &summary(&fresh)[0];
    assert_eq!(first.2, "not run: excluded by --only");
}

#[test]
fn wrong_names_and_missing_data_say_what_there_is() {
    let root = tempfile::tempdir().unwrap();
    let mut wrong = setup(&root.path().join("out"));
    let failure = |setup: &Setup<'_>, experiment: &Experiment| {
        run(experiment, setup, &mut |_| {}).unwrap_err().to_string()
    };
    wrong.only = vec!["third".into()];
    assert!(failure(&wrong, &EXPERIMENT).contains("first, second, large"));
    wrong.only = vec!["large".into()];
    assert!(failure(&wrong, &EXPERIMENT).contains("--scale paper"));
    wrong.only = Vec::new();
    let needy = Experiment {
        name: "needy",
        parts: &[Piece {
            name: "only",
            about: "reads",
            from: Scale::Quick,
            run: |context| context.data("missing.csv").map(|_| ()),
        }],
        ..EXPERIMENT
    };
    let message = failure(&wrong, &needy);
    assert!(message.contains("missing.csv"), "{message}");
    assert!(message.contains("those of the paper"), "{message}");
    // The command refuses to write to the result folder of another experiment.
    let message = failure(&wrong, &EXPERIMENT);
    assert!(message.contains("reproduce needy"), "{message}");
}
