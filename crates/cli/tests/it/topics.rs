//! Tests `jensen topics` from text to scores.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::common::{Desk, jensen, read_json, start, trace_of};
use jensen::data::Claim;
use serde_json::Value;

/// Returns the path of 420 abstracts of six fields.
fn abstracts() -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    data.join("arxiv_abstracts/abstracts.jsonl.gz")
        .display()
        .to_string()
}

fn corpus(desk: &Desk) -> String {
    let out = desk.name("abstracts.corpus");
    let args = [
        "topics",
        "build",
        &abstracts(),
        "--min-df",
        "5",
        "--max-df",
        "0.2",
        "--heldout",
        "0.1",
    ];
    jensen(args.into_iter().chain(["--out", &out, "--quiet"])).expect(0);
    out
}

fn fit(corpus: &str, out: &str, more: &[&str]) -> Vec<String> {
    let args = [
        "topics", "fit", corpus, "--out", out, "--topics", "12", "--batch", "20", "--tau", "16",
    ];
    args.iter()
        .chain(more)
        .map(|arg| (*arg).to_owned())
        .collect()
}

fn timeless(path: &Path) -> Value {
    let mut fit = read_json(&path.join("fit.json"));
    let fields = fit.as_object_mut().unwrap();
    fields.remove("seconds").unwrap();
    fields.remove("docs_per_second").unwrap();
    fit
}

fn topics_of(path: PathBuf) -> Vec<u8> {
    fs::read(path.join("approximation.safetensors")).unwrap()
}

#[test]
fn abstracts_become_topics_that_predict() {
    let desk = Desk::new();
    let out = desk.name("abstracts.corpus");
    let args = [
        "topics",
        "build",
        &abstracts(),
        "--min-df",
        "5",
        "--max-df",
        "0.2",
        "--heldout",
        "0.1",
        "--json",
    ];
    let built = jensen(args.into_iter().chain(["--out", &out]))
        .expect(0)
        .json();
    let number = |name: &str| built[name].as_u64().unwrap();
    assert_eq!(number("documents") + number("heldout_documents"), 420);
    assert!((20..=65).contains(&number("heldout_documents")));
    assert!(number("terms") > 500);

    let run = desk.name("run");
    let finished = jensen(fit(&out, &run, &["--passes", "20", "--json"]))
        .expect(0)
        .json();
    assert_eq!(finished["finished"], true);
    let score = finished["heldout_log_predictive"].as_f64().unwrap();
    // If there is only one topic, it contains every word with its overall frequency.
    let one = [
        "--topics", "1", "--batch", "20", "--tau", "16", "--passes", "20", "--json",
    ];
    let one = jensen(["topics", "fit", &out].into_iter().chain(one))
        .expect(0)
        .json();
    let frequency = one["heldout_log_predictive"].as_f64().unwrap();
    assert!(
        score > frequency + 0.1 && score < -5.0,
        "{score} {frequency}"
    );
    assert!(finished["docs_per_second"].as_f64().unwrap() > 0.0);
    assert_eq!(finished["temperature"], 1.0);
    assert!(finished["elbo"].as_f64().unwrap() < 0.0);
    assert_eq!(finished["topic_rows"].as_array().unwrap().len(), 12);
    assert_eq!(read_json(&desk.path("run/fit.json")), finished);
    for name in [
        "report.html",
        "trace.jsonl",
        "approximation.safetensors",
        "checkpoint.safetensors",
    ] {
        assert!(desk.path("run").join(name).is_file(), "{name}");
    }
    assert!(
        fs::read_to_string(desk.path("run/report.html"))
            .unwrap()
            .contains("<svg")
    );

    // If the same documents are scored again, they have the same scores.
    let again = jensen(["topics", "evaluate", &run, "--json"])
        .expect(0)
        .json();
    assert_eq!(
        again["heldout_log_predictive"],
        finished["heldout_log_predictive"]
    );

    let shown = jensen([
        "topics", "show", &run, "--topic", "3", "--words", "4", "--json",
    ])
    .expect(0)
    .json();
    assert_eq!(shown[0]["topic"], 3);
    assert_eq!(shown[0]["words"].as_array().unwrap().len(), 4);
    let text = jensen(["topics", "show", &run]).expect(0).stdout;
    assert_eq!(text.lines().filter(|line| line.contains('%')).count(), 12);

    proportions_tell_fields_apart(&run);
}

fn proportions_tell_fields_apart(run: &str) {
    let lines = jensen([
        "topics",
        "predict",
        run,
        &abstracts(),
        "--id",
        "category",
        "--min-proportion",
        "0",
    ]);
    let documents: Vec<(String, Vec<f64>)> =
        lines.expect(0).stdout.lines().map(proportions).collect();
    assert_eq!(documents.len(), 420);
    let field = |name: &str| name.split('.').next().unwrap().to_owned();
    let (mut within, mut across) = ((0.0, 0), (0.0, 0));
    for (i, a) in documents.iter().enumerate() {
        assert!((a.1.iter().sum::<f64>() - 1.0).abs() < 1e-4);
        for b in &documents[..i] {
            let overlap: f64 = a.1.iter().zip(&b.1).map(|(x, y)| x.min(*y)).sum();
            let sums = if field(&a.0) == field(&b.0) {
                &mut within
            } else {
                &mut across
            };
            *sums = (sums.0 + overlap, sums.1 + 1);
        }
    }
    let (within, across) = (
        within.0 / f64::from(within.1),
        across.0 / f64::from(across.1),
    );
    assert!(within > 1.5 * across, "{within} {across}");
}

fn proportions(line: &str) -> (String, Vec<f64>) {
    let line: Value = serde_json::from_str(line).unwrap();
    let mut shares = vec![0.0; 12];
    for share in line["topics"].as_array().unwrap() {
        shares[share[0].as_u64().unwrap() as usize] = share[1].as_f64().unwrap();
    }
    (line["id"].as_str().unwrap().to_owned(), shares)
}

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    for temper in ["none", "anneal=5", "global", "local=20"] {
        let (killed, whole) = (desk.name("killed"), desk.name("whole"));
        let _ = fs::remove_dir_all(&killed);
        let _ = fs::remove_dir_all(&whole);
        let more = [
            "--passes",
            "40",
            "--checkpoint-every",
            "0",
            "--temper",
            temper,
            "--quiet",
        ];
        let mut child = start(fit(&corpus, &killed, &more));
        let checkpoint = desk.path("killed/checkpoint.safetensors");
        for _ in 0..3000 {
            if checkpoint.is_file() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(checkpoint.is_file());
        jensen([
            "topics",
            "fit",
            "--resume",
            &killed,
            "--checkpoint-every",
            "60",
            "--quiet",
        ])
        .expect(0);
        jensen(fit(
            &corpus,
            &whole,
            &[
                "--passes",
                "40",
                "--temper",
                temper,
                "--threads",
                "1",
                "--quiet",
            ],
        ))
        .expect(0);
        let (killed, whole) = (desk.path("killed"), desk.path("whole"));
        assert_eq!(timeless(&killed), timeless(&whole), "{temper}");
        assert_eq!(trace_of(&killed), trace_of(&whole), "{temper}");
        assert!(topics_of(killed) == topics_of(whole), "{temper}");
    }
}

#[test]
fn a_shorter_run_goes_on_for_more_passes() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let (short, long) = (desk.name("short"), desk.name("long"));
    jensen(fit(&corpus, &short, &["--passes", "2", "--quiet"])).expect(0);
    jensen([
        "topics", "fit", "--resume", &short, "--passes", "5", "--quiet",
    ])
    .expect(0);
    jensen(fit(&corpus, &long, &["--passes", "5", "--quiet"])).expect(0);
    assert_eq!(timeless(&desk.path("short")), timeless(&desk.path("long")));
    assert!(topics_of(desk.path("short")) == topics_of(desk.path("long")));

    let refused = jensen(["topics", "fit", "--resume", &short, "--batch", "30"]).expect(2);
    assert!(refused.stderr.contains("batch"), "{}", refused.stderr);
    let stopped = jensen(fit(
        &corpus,
        &desk.name("stopped"),
        &["--passes", "5", "--max-seconds", "1e-9", "--json"],
    ));
    let stopped = stopped.expect(4).json();
    assert_eq!(stopped["finished"], false);
}

#[test]
fn what_ends_hot_is_not_trusted() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    for (temper, passes) in [
        ("local", "2"),
        ("local", "0.4"),
        ("global=inf", "2"),
        ("global", "0.3"),
        ("anneal=3", "2"),
        ("anneal=1", "1"),
    ] {
        let run = desk.name("hot");
        let more = ["--passes", passes, "--temper", temper, "--json"];
        let hot = jensen(fit(&corpus, &run, &more)).expect(4).json();
        assert_eq!(
            (&hot["finished"], &hot["trusted"]),
            (&Value::from(true), &Value::from(false))
        );
        let status = hot["status"].as_str().unwrap();
        assert!(status.starts_with("ended at temperature"), "{status}");
        // The test follows the advice in the warning. This advice consists of the flags between the first back-quotes.
        let warning = hot["warnings"][0].as_str().unwrap();
        let flags: Vec<&str> = warning.split('`').nth(1).unwrap().split(' ').collect();
        let mended = if warning.contains("--resume") {
            let args = ["topics", "fit", "--resume", &run, "--json"];
            jensen(args.into_iter().chain(flags)).expect(0).json()
        } else {
            let given = match flags.contains(&"--passes") {
                true => vec!["--json"],
                false => vec!["--json", "--passes", passes],
            };
            jensen(fit(&corpus, &run, &[given, flags].concat()))
                .expect(0)
                .json()
        };
        assert_eq!(mended["temperature"], 1.0, "{temper}: {warning}");
        assert_eq!(mended["trusted"], true);
    }
}

#[test]
fn new_documents_update_a_fit() {
    let desk = Desk::new();
    let mut text = String::new();
    let mut file = jensen::data::corpus::compressed::open(Path::new(&abstracts())).unwrap();
    file.read_to_string(&mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let old = desk.file("old.jsonl", &lines[..300].join("\n"));
    let new = desk.file("new.jsonl", &lines[300..].join("\n"));
    let corpus = desk.name("old.corpus");
    jensen([
        "topics", "build", &old, "--min-df", "5", "--max-df", "0.2", "--out", &corpus, "--quiet",
    ])
    .expect(0);
    let run = desk.name("run");
    jensen(fit(&corpus, &run, &["--passes", "10", "--quiet"])).expect(0);
    let score = |folder: &str| -> f64 {
        let answer = jensen(["topics", "evaluate", folder, &new, "--json"])
            .expect(0)
            .json();
        assert_eq!(answer["heldout_documents"], 120);
        answer["heldout_log_predictive"].as_f64().unwrap()
    };
    let before = score(&run);
    let updated = desk.name("updated");
    let said = jensen([
        "topics", "update", &run, &new, "--out", &updated, "--passes", "10",
    ]);
    let said = said.expect(0);
    assert!(!said.stderr.contains("warning"), "{}", said.stderr);
    // The sample from which the ELBO is estimated contains all new documents. It represents the old documents, but does
    // not contain them.
    let fit = read_json(&desk.path("updated/fit.json"));
    let (elbo, se) = (
        fit["elbo"].as_f64().unwrap(),
        fit["elbo_se"].as_f64().unwrap(),
    );
    assert!(
        se > 1e-3 * elbo.abs() && se < 0.1 * elbo.abs(),
        "{elbo} ± {se}"
    );
    // The updated fit predicts its training documents better.
    assert!(
        score(&updated) > before + 0.01,
        "{} {before}",
        score(&updated)
    );
    // A folder is not changed while another run is writing to it.
    let files = || {
        let entries = fs::read_dir(desk.path("updated")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (whole, held) = (files(), Claim::of(&desk.path("updated")).unwrap());
    let refused = jensen(["topics", "update", &run, &new, "--out", &updated, "--quiet"]).expect(2);
    assert!(
        refused.stderr.contains("another run is writing"),
        "{}",
        refused.stderr
    );
    assert_eq!(files(), whole);
    drop(held);
    jensen(["topics", "update", &run, &new, "--passes", "10", "--quiet"]).expect(0);
    assert!(topics_of(desk.path("run")) == topics_of(desk.path("updated")));
    let more = jensen(["topics", "update", &run, &new, "--topics", "13"]).expect(2);
    assert!(more.stderr.contains("cannot change"), "{}", more.stderr);
}

#[test]
fn phrases_are_words_of_the_corpus_and_of_new_documents() {
    let desk = Desk::new();
    let out = desk.name("phrases.corpus");
    let build = |more: &[&str]| {
        let args = [
            "topics",
            "build",
            &abstracts(),
            "--min-df",
            "5",
            "--out",
            &out,
        ];
        jensen(args.into_iter().chain(more.iter().copied()))
    };
    let built = build(&["--phrases", "3", "--json"]).expect(0).json();
    assert!(built["phrases"].as_u64().unwrap() > 10);
    let run = desk.name("run");
    jensen(fit(&out, &run, &["--quiet"])).expect(0);
    let words = desk.name("words.txt");
    jensen([
        "topics",
        "export",
        &run,
        "--vocabulary",
        &words,
        "--top",
        "1",
    ])
    .expect(0);
    let words = fs::read_to_string(words).unwrap();
    assert!(
        words.lines().any(|word| word == "neural_networks"),
        "{words}"
    );
    let new = desk.name("new.txt");
    fs::write(&new, "Neural networks\nnetworks\n").unwrap();
    let lines = jensen(["topics", "predict", &run, &new]).expect(0).stdout;
    let counts: Vec<(Value, Value)> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|line| (line["tokens"].clone(), line["unknown"].clone()))
        .collect();
    assert_eq!(counts[0], (1.into(), 0.into()));

    for (more, said) in [
        (&["--phrases", "1"][..], "a whole number from 2 to 16"),
        (&["--phrase-score", "0.3"], "--phrases"),
        (
            &["--phrases", "2", "--phrase-score", "3"],
            "between 0 and 1",
        ),
    ] {
        let failed = build(more).expect(2);
        assert!(failed.stderr.contains(said), "{}", failed.stderr);
    }
    let (bag, vocabulary) = (desk.name("a.dat"), desk.name("vocab.txt"));
    fs::write(&bag, "1 0:2\n").unwrap();
    fs::write(&vocabulary, "one\n").unwrap();
    let failed = jensen(["topics", "build", &bag, "--phrases", "2", "--out", &out]).expect(2);
    assert!(failed.stderr.contains("have no order"), "{}", failed.stderr);
}

#[test]
fn the_held_out_score_chooses_the_number_of_topics() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let (whole, stopped) = (desk.name("whole"), desk.name("stopped"));
    let args = |out: &str, more: &[&str]| {
        let args = [
            "topics", "fit", &corpus, "--out", out, "--topics", "1..13:6", "--batch", "20",
        ];
        let args = args.into_iter().chain(["--tau", "16", "--quiet"]);
        args.chain(more.iter().copied())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    jensen(args(&whole, &["--json"])).expect(0);
    let fit = timeless(&desk.path("whole"));
    let rows = fit["candidates"].as_array().unwrap();
    let numbers: Vec<u64> = rows
        .iter()
        .map(|row| row["topics"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [1, 7, 13]);
    for row in rows {
        let starts = row["starts"].as_array().unwrap();
        let best = starts.iter().map(|start| start.as_f64().unwrap());
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(
            (starts.len(), &Value::from(best)),
            (2, &row["heldout_log_predictive"])
        );
    }
    let chosen: Vec<&Value> = rows.iter().filter(|row| row["chosen"] == true).collect();
    assert_eq!(chosen.len(), 1);
    // Six fields are more than one topic, and the chosen fit is the one that the folder contains.
    assert!(chosen[0]["topics"].as_u64().unwrap() > 1);
    assert_eq!(chosen[0]["topics"], fit["topics"]);
    let scores = [
        &chosen[0]["heldout_log_predictive"],
        &fit["heldout_log_predictive"],
    ];
    let scores = scores.map(|score| score.as_f64().unwrap());
    assert!((scores[0] - scores[1]).abs() < 1e-6, "{scores:?}");
    let again = jensen(["topics", "evaluate", &whole, "--json"])
        .expect(0)
        .json();
    assert_eq!(
        again["heldout_log_predictive"],
        fit["heldout_log_predictive"]
    );
    let report = fs::read_to_string(desk.path("whole/report.html")).unwrap();
    assert!(report.contains("Numbers of topics compared"));

    jensen(args(&stopped, &["--max-seconds", "0.02"])).expect(4);
    let more = [
        "topics",
        "fit",
        "--resume",
        &stopped,
        "--max-seconds",
        "1000",
        "--quiet",
    ];
    jensen(more).expect(0);
    assert!(topics_of(desk.path("stopped")) == topics_of(desk.path("whole")));

    for (topics, said) in [("7..2", "range"), ("0", "from 1"), ("2..8:0", "range")] {
        let failed = jensen(["topics", "fit", &corpus, "--topics", topics]).expect(2);
        assert!(failed.stderr.contains(said), "{}", failed.stderr);
    }
    let more = ["--topics", "2..3", "--temper", "global=1:10:100:both"];
    let failed = jensen(["topics", "fit", &corpus].into_iter().chain(more)).expect(3);
    assert!(
        failed.stderr.contains("a single number"),
        "{}",
        failed.stderr
    );
    let update = ["topics", "update", &whole, &abstracts(), "--topics", "2..3"];
    let failed = jensen(update).expect(2);
    assert!(failed.stderr.contains("cannot change"), "{}", failed.stderr);
    let blind = desk.name("blind.corpus");
    let build = [
        "topics",
        "build",
        &abstracts(),
        "--heldout",
        "0",
        "--out",
        &blind,
        "--quiet",
    ];
    jensen(build).expect(0);
    let failed = jensen(["topics", "fit", &blind, "--topics", "2..3"]).expect(3);
    assert!(failed.stderr.contains("--heldout 0.1"), "{}", failed.stderr);
}

#[test]
fn a_hierarchical_dirichlet_process_finds_the_number_of_topics() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let args = |out: &str, more: &[&str]| {
        let process = [
            "topics", "fit", &corpus, "--out", out, "--topics", "40", "--batch", "20",
        ];
        let process = process
            .into_iter()
            .chain(["--learn-alpha", "hdp", "--tau", "16"]);
        let process = process.chain(["--passes", "15", "--checkpoint-every", "0"]);
        process
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (whole, stopped) = (desk.name("whole"), desk.name("stopped"));
    let said = jensen(args(&whole, &["--threads", "1"])).expect(0);
    assert!(
        said.stdout.contains("topics hold 99 % of the tokens"),
        "{}",
        said.stdout
    );
    // Empty topics are no reason for a warning.
    assert!(!said.stderr.contains("use fewer topics"), "{}", said.stderr);
    let fit = timeless(&desk.path("whole"));
    let found = fit["topics_found"].as_u64().unwrap();
    // The abstracts belong to six fields.
    assert!((4..=20).contains(&found), "{found}");
    let alpha = fit["learned_alpha"].as_array().unwrap();
    let total: f64 = alpha.iter().map(|alpha| alpha.as_f64().unwrap()).sum();
    let mean = fit["concentrations"][0].as_f64().unwrap();
    assert!((total / mean - 1.0).abs() < 1e-2, "{total} {mean}");

    jensen(args(&stopped, &["--max-seconds", "0.1", "--quiet"])).expect(4);
    jensen([
        "topics",
        "fit",
        "--resume",
        &stopped,
        "--max-seconds",
        "1000",
        "--quiet",
    ])
    .expect(0);
    assert!(topics_of(desk.path("stopped")) == topics_of(desk.path("whole")));

    let new = desk.name("new.txt");
    fs::write(&new, "galaxy cluster stellar mass galaxies\n").unwrap();
    let line = jensen(["topics", "predict", &whole, &new]).expect(0).stdout;
    let line: Value = serde_json::from_str(line.trim()).unwrap();
    let shares = line["topics"].as_array().unwrap();
    assert!(
        shares.iter().any(|share| share[1].as_f64().unwrap() > 0.5),
        "{line}"
    );

    let seeds = desk.name("seeds.txt");
    fs::write(&seeds, "neural networks\n").unwrap();
    for (more, said) in [
        (["--seed-words", &seeds[..]], "--seed-words"),
        (["--temper", "global"], "fixed alpha"),
    ] {
        let failed = jensen(args(&desk.name("wrong"), &more));
        assert!(failed.stderr.contains(said), "{}", failed.stderr);
    }
}

#[test]
fn coherence_is_measured_on_windows_of_other_texts() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let run = desk.name("run");
    jensen(fit(&corpus, &run, &["--quiet"])).expect(0);
    let show = |more: &[&str]| {
        let args = ["topics", "show", &run, "--json"];
        jensen(args.into_iter().chain(more.iter().copied()))
    };
    let measures = |more: &[&str]| {
        let rows = show(more).expect(0).json();
        let of = |row: &Value| ["npmi", "umass", "cv"].map(|name| row[name].as_f64());
        rows.as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let texts = abstracts();
    let sliding = measures(&["--reference", &texts]);
    assert_eq!(
        sliding,
        measures(&["--reference", &texts, "--window", "110"])
    );
    let whole = measures(&["--reference", &texts, "--window", "100000"]);
    assert_ne!(sliding, whole);
    // A window of two words contains two of the top words only if they are neighbours.
    let narrow = measures(&["--reference", &texts, "--window", "2"]);
    let mean = |rows: &[[Option<f64>; 3]]| rows.iter().map(|row| row[0].unwrap()).sum::<f64>();
    assert!(mean(&narrow) < mean(&sliding) && mean(&sliding) < mean(&whole));
    // Texts without the words of the topics say nothing about them.
    let other = desk.file("other.txt", "nothing here\n");
    assert!(
        measures(&["--reference", &other])
            .iter()
            .all(|row| *row == [None; 3])
    );
    let table = jensen(["topics", "show", &run]).expect(0).stdout;
    assert!(
        table.starts_with("topic   share    NPMI   UMass     C_V  most"),
        "{table}"
    );

    let bag = desk.file("a.dat", "1 0:2\n");
    fs::write(desk.path("vocab.txt"), "one\n").unwrap();
    let failed = show(&["--reference", &bag]).expect(3);
    assert!(failed.stderr.contains("have no order"), "{}", failed.stderr);
    let failed = show(&["--window", "5"]).expect(2);
    assert!(failed.stderr.contains("--reference"), "{}", failed.stderr);
    let failed = show(&["--reference", &desk.name("missing.txt")]).expect(3);
    assert!(failed.stderr.contains("missing.txt"), "{}", failed.stderr);
}

#[test]
fn an_update_learns_new_words() {
    let desk = Desk::new();
    let line = |words: &[&str], i: usize| {
        let words = (0..20).map(|j| words[(i + j * j + 2 * j) % words.len()]);
        words.collect::<Vec<_>>().join(" ") + "\n"
    };
    let (garden, music) = (
        ["soil", "seed", "plant", "water", "leaf", "flower"],
        ["guitar", "song", "band", "album", "drum", "concert"],
    );
    let old: String = (0..100)
        .map(|i| line(if i % 2 == 0 { &garden } else { &music }, i))
        .collect();
    // The new documents have a new word in each subject, one rare new word, and a new stop word.
    let new: String = (0..100)
        .map(|i| match i % 2 {
            0 => line(&["soil", "seed", "plant", "water", "leaf", "compost"], i),
            _ => line(
                &["guitar", "song", "band", "album", "drum", "synthesizer"],
                i,
            ),
        })
        .collect();
    let (old, new) = (
        desk.file("old.txt", &old),
        desk.file("new.txt", &(new + "soil rareword and the\n")),
    );
    let (corpus, run) = (desk.name("old.corpus"), desk.name("run"));
    let build = [
        "topics", "build", &old, "--max-df", "1.0", "--out", &corpus, "--quiet",
    ];
    jensen(build).expect(0);
    let more = [
        "--topics", "2", "--batch", "20", "--tau", "4", "--passes", "10", "--out", &run,
    ];
    jensen(["topics", "fit", &corpus].into_iter().chain(more)).expect(0);
    let updated = desk.name("updated");
    let update = |more: &[&str]| {
        let args = [
            "topics", "update", &run, &new, "--out", &updated, "--passes", "10",
        ];
        jensen(args.into_iter().chain(more.iter().copied()))
    };
    let said = update(&["--new-words", "5", "--max-df", "1.0"])
        .expect(0)
        .stderr;
    assert!(said.contains("added 2 words"), "{said}");
    let shown = jensen(["topics", "show", &updated, "--words", "14", "--json"])
        .expect(0)
        .json();
    // Each new word belongs to its subject, with a probability near that of its neighbours.
    let rank = |topic: usize, word: &str| {
        let words = shown[topic]["words"].as_array().unwrap();
        words.iter().position(|pair| pair[0] == word).unwrap()
    };
    for (new, subject, other) in [
        ("compost", "soil", "guitar"),
        ("synthesizer", "guitar", "soil"),
    ] {
        let topic = usize::from(rank(0, subject) > 6);
        assert!(rank(topic, new) < rank(topic, other), "{shown}");
        assert!(rank(1 - topic, new) > 6, "{shown}");
    }
    // Without the flag the vocabulary stays.
    update(&["--quiet"]).expect(0);
    let words = desk.name("words.txt");
    jensen([
        "topics",
        "export",
        &updated,
        "--top",
        "1",
        "--vocabulary",
        &words,
    ])
    .expect(0);
    assert!(!fs::read_to_string(&words).unwrap().contains("compost"));
    let failed = update(&["--max-df", "0.5"]).expect(2);
    assert!(failed.stderr.contains("--new-words"), "{}", failed.stderr);
}

#[test]
fn seed_words_name_the_topics() {
    let desk = Desk::new();
    let subjects = [
        "soil seed plant water leaf flower root grow",
        "guitar song band album drum concert voice stage",
        "oven bread flour butter sugar recipe bake salt",
        "goal team match league player coach score stadium",
    ];
    let subjects = subjects.map(|words| words.split(' ').collect::<Vec<_>>());
    let text: String = (0..400)
        .map(|i| {
            let word = |j: usize| {
                let subject = &subjects[if j.is_multiple_of(4) {
                    (i + 1) % 4
                } else {
                    i % 4
                }];
                subject[(i / 4 + 3 * j) % 8]
            };
            (0..24).map(word).collect::<Vec<_>>().join(" ") + "\n"
        })
        .collect();
    let (text, corpus) = (desk.file("text.txt", &text), desk.name("corpus"));
    let build = [
        "topics",
        "build",
        &text,
        "--max-df",
        "1.0",
        "--heldout",
        "0.1",
        "--out",
        &corpus,
    ];
    jensen(build).expect(0);
    let (run, seeds) = (desk.name("run"), desk.name("seeds.txt"));
    let fit = |words: &str| {
        fs::write(&seeds, words).unwrap();
        let args = [
            "topics", "fit", &corpus, "--topics", "4", "--batch", "20", "--tau", "16",
        ];
        let more = [
            "--passes",
            "10",
            "--seed-words",
            &seeds,
            "--out",
            &run,
            "--json",
        ];
        jensen(args.into_iter().chain(more))
    };
    // Every order of the lines is the order of the topics, although each line has only two of the eight words.
    for order in [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]] {
        let lines = order.map(|subject: usize| subjects[subject][..2].join(" "));
        fit(&lines.join("\n")).expect(0);
        let rows = jensen(["topics", "show", &run, "--words", "8", "--json"])
            .expect(0)
            .json();
        for row in rows.as_array().unwrap() {
            let subject = &subjects[order[row["topic"].as_u64().unwrap() as usize]];
            let words = row["words"].as_array().unwrap();
            let own = words
                .iter()
                .filter(|pair| subject.contains(&pair[0].as_str().unwrap()));
            assert_eq!(own.count(), 8, "{order:?} {row}");
        }
    }
    for (words, said) in [
        ("soil zebra", "`zebra` of topic 0"),
        ("soil\nseed\nplant\nwater\nleaf", "more than 4 topics"),
    ] {
        let failed = fit(words).expect(3);
        assert!(failed.stderr.contains(said), "{}", failed.stderr);
    }
    let args = [
        "topics",
        "fit",
        &corpus,
        "--topics",
        "4",
        "--seed-words",
        &desk.name("none.txt"),
    ];
    let failed = jensen(args).expect(3);
    assert!(failed.stderr.contains("none.txt"), "{}", failed.stderr);
    let args = [
        "topics",
        "fit",
        &corpus,
        "--topics",
        "4",
        "--seed-words",
        &seeds,
    ];
    fs::write(&seeds, "soil seed\n").unwrap();
    let failed = jensen(args.into_iter().chain(["--learn-eta", "symmetric"])).expect(3);
    assert!(failed.stderr.contains("fixed eta"), "{}", failed.stderr);
}

#[test]
fn topics_are_exported_in_words() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let run = desk.name("run");
    jensen(fit(&corpus, &run, &["--quiet"])).expect(0);
    let (csv, npy, words) = (
        desk.name("topics.csv"),
        desk.name("topics.npy"),
        desk.name("words.txt"),
    );
    let out = ["--out", &csv, "--out", &npy, "--vocabulary", &words];
    jensen(["topics", "export", &run].into_iter().chain(out)).expect(0);
    let text = fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let vocabulary = fs::read_to_string(&words).unwrap();
    assert_eq!(vocabulary.lines().collect::<Vec<_>>(), names);
    let rows: Vec<Vec<f32>> = lines
        .map(|line| line.split(',').map(|x| x.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), 12);
    for row in &rows {
        let total: f64 = row.iter().map(|&x| f64::from(x)).sum();
        assert!((total - 1.0).abs() < 1e-5, "{total}");
    }
    let bytes = fs::read(&npy).unwrap();
    let numbers: Vec<f32> = bytes[bytes.len() - 4 * 12 * names.len()..]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    assert_eq!(numbers, rows.concat());

    // The words are the same as in the results, in which topics are sorted by size.
    let top = jensen(["topics", "export", &run, "--top", "3"]).expect(0);
    let fit = read_json(&desk.path("run/fit.json"));
    for row in fit["topic_rows"].as_array().unwrap() {
        for rank in 0..3 {
            let (topic, word) = (&row["topic"], row["words"][rank][0].as_str().unwrap());
            let line = format!("\n{topic},{},{word},", rank + 1);
            assert!(top.stdout.contains(&line), "{line}");
        }
    }
    let refused = jensen(["topics", "export", &run, "--top", "3", "--out", &npy]).expect(2);
    assert!(refused.stderr.contains(".csv"), "{}", refused.stderr);
}

#[test]
fn collapsed_inference_leaves_no_topic_dead_and_its_proportions_are_a_matrix() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let found = |out: &str, more: &[&str]| {
        let out = desk.name(out);
        let more: Vec<&str> = more
            .iter()
            .chain(&["--passes", "10", "--quiet"])
            .copied()
            .collect();
        jensen(fit(&corpus, &out, &more)).expect(0);
        read_json(&Path::new(&out).join("fit.json"))
    };
    let plain = found("plain", &["--inference", "mean-field"]);
    // Collapsed inference is the default.
    let learned = ["--learn-alpha", "asymmetric", "--learn-eta", "symmetric"];
    let collapsed = found("run", &learned);
    let used = |fit: &Value| fit["topics_in_use"].as_f64().unwrap();
    assert!(used(&collapsed) > 10.0, "{}", used(&collapsed));
    assert!(
        used(&collapsed) > used(&plain) + 1.0,
        "{} {}",
        used(&collapsed),
        used(&plain)
    );
    assert_eq!(
        (&collapsed["dead_topics"], &collapsed["inference"]),
        (&0.into(), &"cvb0".into())
    );
    let score = |fit: &Value| fit["heldout_log_predictive"].as_f64().unwrap();
    assert!(
        score(&collapsed) > score(&plain),
        "{} {}",
        score(&collapsed),
        score(&plain)
    );
    let alpha = collapsed["learned_alpha"].as_array().unwrap();
    assert!(alpha.len() == 12 && alpha[0] != alpha[1], "{alpha:?}");

    // The matrix contains the same proportions as the lines.
    let run = desk.name("run");
    let text = abstracts();
    let predict = |more: &[&str]| {
        let args = ["topics", "predict", &run, &text, "--id", "id", "--quiet"];
        jensen(args.iter().chain(more).copied()).expect(0).stdout
    };
    let lines = predict(&["--min-proportion", "0"]);
    let (csv, npy) = (desk.name("theta.csv"), desk.name("theta.npy"));
    predict(&["--out", &csv]);
    let written = ["topics", "predict", &run, &text, "--quiet", "--out", &npy];
    jensen(written).expect(0);
    let refused = jensen(written.iter().chain(&["--id", "id"]).copied()).expect(2);
    assert!(
        refused.stderr.contains("no document names"),
        "{}",
        refused.stderr
    );
    let table = fs::read_to_string(&csv).unwrap();
    let mut rows = table.lines();
    assert!(rows.next().unwrap().starts_with("id,topic0,topic1,"));
    let (ids, rows): (Vec<&str>, Vec<Vec<f32>>) = rows
        .map(|row| row.split_once(',').unwrap())
        .map(|(id, row)| (id, row.split(',').map(|x| x.parse().unwrap()).collect()))
        .unzip();
    assert_eq!(rows.len(), lines.lines().count());
    for ((id, row), line) in ids.iter().zip(&rows).zip(lines.lines()) {
        let (name, shares) = proportions(line);
        assert_eq!(*id, name);
        let pairs = row.iter().zip(&shares);
        let total: f32 = row.iter().sum();
        assert!((total - 1.0).abs() < 1e-5);
        assert!(
            pairs.clone().all(|(a, b)| (f64::from(*a) - b).abs() < 1e-6),
            "{row:?} {shares:?}"
        );
    }
    let bytes = fs::read(&npy).unwrap();
    let numbers: Vec<f32> = bytes[bytes.len() - 4 * 12 * rows.len()..]
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    assert_eq!(numbers, rows.concat());

    // An update keeps the priors that were learned. Tempering is not allowed with collapsed inference.
    let updated = desk.name("updated");
    jensen([
        "topics", "update", &run, &text, "--out", &updated, "--quiet",
    ])
    .expect(0);
    let fit = read_json(&desk.path("updated/fit.json"));
    assert_eq!(fit["learned_alpha"].as_array().unwrap().len(), 12);
    let heated = ["--inference", "cvb0", "--temper", "global"];
    let refused = jensen(self::fit(&corpus, &desk.name("hot"), &heated)).expect(2);
    assert!(
        refused.stderr.contains("--inference mean-field"),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_is_no_corpus_is_not_replaced() {
    let desk = Desk::new();
    let notes = desk.file("notes.txt", "mine\n");
    let build = ["topics", "build", &abstracts(), "--quiet", "--out", &notes].map(str::to_owned);
    let refused = jensen(&build).expect(2);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine\n");
    jensen(build.iter().chain([&"--force".to_owned()])).expect(0);
    // A corpus may be replaced.
    jensen(&build).expect(0);
}

#[test]
fn bad_input_is_one_clear_error() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let bytes = fs::read(&corpus).unwrap();
    let cut = desk.path("cut.corpus");
    fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 3] ^= 4;
    let damaged_path = desk.path("damaged.corpus");
    fs::write(&damaged_path, damaged).unwrap();
    let text = desk.file("words.txt", "no corpus\n");
    let out = desk.name("out");
    let missing = desk.name("missing");
    for (path, said) in [
        (cut.to_str().unwrap(), "truncated"),
        (damaged_path.to_str().unwrap(), "damaged"),
        (&text, "not a corpus"),
        (&missing, "missing"),
    ] {
        let finished = jensen(["topics", "fit", path, "--topics", "5", "--out", &out]).expect(3);
        assert!(finished.stderr.contains(said), "{}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        assert!(!desk.path("out").exists());
    }
    let finished = jensen([
        "topics",
        "fit",
        &corpus,
        "--topics",
        "900000",
        "--memory-limit",
        "1TiB",
    ])
    .expect(3);
    assert!(
        finished.stderr.contains("fewer topics"),
        "{}",
        finished.stderr
    );
    let finished = jensen([
        "topics",
        "fit",
        &corpus,
        "--topics",
        "15000",
        "--memory-limit",
        "100MiB",
    ])
    .expect(3);
    assert!(
        finished.stderr.contains("--memory-limit"),
        "{}",
        finished.stderr
    );
    jensen(["topics", "fit", &corpus]).expect(2);
    jensen([
        "topics", "fit", &corpus, "--topics", "5", "--temper", "warm",
    ])
    .expect(2);
    jensen(["topics", "show", &desk.name("nowhere")]).expect(3);
    let finished = jensen(["topics", "build", &text, "--out", &out]).expect(3);
    assert!(finished.stderr.contains("--min-df"), "{}", finished.stderr);
}

#[test]
fn what_cannot_be_used_is_skipped_and_counted() {
    let desk = Desk::new();
    let corpus = corpus(&desk);
    let run = desk.name("run");
    jensen(fit(&corpus, &run, &["--quiet"])).expect(0);
    let path = desk.path("odd.jsonl");
    let mut bytes =
        b"{\"text\": \"galaxies neural zzzunknown\"}\n{\"text\": \"\"}\n{\"title\": \"x\"}\n"
            .to_vec();
    bytes.extend(b"{\"text\": \"caf\xe9\"}\n");
    fs::write(&path, bytes).unwrap();
    let odd = path.to_str().unwrap();
    let finished = jensen(["topics", "predict", &run, odd]).expect(0);
    let lines: Vec<Value> = finished
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // There is one line for every document, but documents without a known word have no proportions.
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["unknown"], 1);
    assert!(lines[0]["tokens"].as_u64().unwrap() >= 1);
    for line in &lines[1..] {
        assert_eq!(
            (&line["tokens"], &line["topics"]),
            (&Value::from(0), &Value::Null)
        );
    }
    let table = desk.name("table.csv");
    jensen(["topics", "predict", &run, odd, "--out", &table, "--quiet"]).expect(0);
    let table = fs::read_to_string(table).unwrap();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows.len(), 5);
    assert!(
        rows[1].starts_with("0.") && rows[2..].iter().all(|row| row.trim_matches(',').is_empty())
    );
    for part in ["1 without a word", "1 not UTF-8", "1 without text"] {
        assert!(finished.stderr.contains(part), "{}", finished.stderr);
    }
    let written = desk.name("lines.jsonl");
    jensen(["topics", "predict", &run, odd, "--out", &written]).expect(0);
    assert_eq!(fs::read_to_string(written).unwrap(), finished.stdout);
    // The input is the corpus itself, which uses the words of the model.
    let all = jensen(["topics", "predict", &run, &corpus])
        .expect(0)
        .stdout;
    assert!(all.lines().count() > 350);
}
