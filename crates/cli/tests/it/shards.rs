//! Tests corpora of shards: `jensen topics build --shards`.
#![cfg(feature = "topics")]

use std::fs;

use crate::common::{Desk, jensen};

fn text(documents: usize) -> String {
    let words = |kind: &str, i: usize| {
        let word = |j: usize| format!("{kind}{}", char::from(b'a' + ((i * 7 + j * j) % 13) as u8));
        (0..12).map(word).collect::<Vec<_>>().join(" ")
    };
    let lines = (0..documents).map(|i| words(if i % 2 == 0 { "cat" } else { "dog" }, i));
    lines.collect::<Vec<_>>().join("\n")
}

fn build(desk: &Desk, out: &str, more: &[&str]) -> crate::common::Finished {
    let text = desk.name("text.txt");
    let out = desk.name(out);
    let line = [
        "topics",
        "build",
        &text,
        "--max-df",
        "1.0",
        "--heldout",
        "0.1",
        "--out",
        &out,
        "--quiet",
    ];
    jensen(line.iter().chain(more))
}

fn learned(desk: &Desk, corpus: &str, temper: &str, threads: &str) -> (Vec<u8>, String) {
    let out = desk.name(&format!("{corpus}-{temper}-{threads}"));
    let corpus = desk.name(corpus);
    let line = [
        "topics",
        "fit",
        &corpus,
        "--topics",
        "3",
        "--batch",
        "50",
        "--tau",
        "8",
        "--temper",
        temper,
        "--threads",
        threads,
        "--out",
        &out,
        "--quiet",
    ];
    let code = jensen(line).code;
    assert!(matches!(code, 0 | 4), "{code}");
    let fit = crate::common::read_json(&desk.path(&out).join("fit.json"));
    let topics = fs::read(desk.path(&out).join("approximation.safetensors")).unwrap();
    (topics, fit["elbo"].to_string())
}

#[test]
fn shards_are_one_corpus_for_every_command() {
    let desk = Desk::new();
    desk.file("text.txt", &text(600));
    build(&desk, "one", &[]).expect(0);
    build(&desk, "single", &["--shards", "1"]).expect(0);
    build(&desk, "four", &["--shards", "9"]).expect(0);
    // A rebuilt corpus has the requested number of shards.
    build(&desk, "four", &["--shards", "4"]).expect(0);
    assert_eq!(fs::read_dir(desk.path("four")).unwrap().count(), 5);
    for temper in ["none", "global", "local=0.5"] {
        let one = learned(&desk, "one", temper, "1");
        assert_eq!(one, learned(&desk, "single", temper, "1"), "{temper}");
        let four = learned(&desk, "four", temper, "1");
        assert_eq!(four, learned(&desk, "four", temper, "2"), "{temper}");
    }
    let (fit, four) = (desk.name("four-none-1"), desk.name("four"));
    let scored = jensen(["topics", "evaluate", &fit, "--json"])
        .expect(0)
        .json();
    assert!(
        scored["heldout_documents"].as_u64().unwrap() > 30,
        "{scored}"
    );
    let predicted = jensen(["topics", "predict", &fit, &four]).expect(0).stdout;
    assert!((500..600).contains(&predicted.lines().count()));
    let resumed = jensen([
        "topics", "fit", "--resume", &fit, "--passes", "2", "--quiet",
    ]);
    resumed.expect(0);
}

#[test]
fn shards_that_are_missing_or_strange_are_named() {
    let desk = Desk::new();
    desk.file("text.txt", &text(80));
    build(&desk, "leaves", &["--shards", "4"]).expect(0);
    build(&desk, "one", &[]).expect(0);
    let refused = |said: &str| {
        let corpus = desk.name("leaves");
        let error = jensen(["topics", "fit", &corpus, "--topics", "2"])
            .expect(3)
            .stderr;
        assert!(error.contains(said), "{error}");
    };
    let shard = desk.path("leaves").join("0002.corpus");
    let kept = fs::read(&shard).unwrap();
    fs::remove_file(&shard).unwrap();
    refused("0002.corpus` of 4 is missing");
    fs::copy(desk.path("one"), &shard).unwrap();
    refused("is from another build");
    fs::write(&shard, &kept[..kept.len() - 4]).unwrap();
    refused("is truncated");
    fs::remove_file(desk.path("leaves").join("shards.json")).unwrap();
    refused("it has no `shards.json`");
    let many = build(&desk, "many", &["--shards", "9000"]).expect(3);
    assert!(
        many.stderr.contains("cannot be divided into 9000 shards"),
        "{}",
        many.stderr
    );
    let file = build(&desk, "one", &["--shards", "2"]).expect(2);
    assert!(
        file.stderr.contains("--shards writes a folder"),
        "{}",
        file.stderr
    );
}
