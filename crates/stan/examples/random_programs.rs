//! Runs any number of random programs or texts: `random_programs KIND COUNT [SEED]`, where KIND is one of
//!
//! * `show`: prints generated programs;
//! * `density`: evaluates generated programs by both evaluators, with derivatives;
//! * `check`: passes generated programs through the checker and the printer;
//! * `text`: passes random bytes through the checker;
//! * `corpus`: passes damaged programs of the model corpus through the checker and, if accepted, the evaluators.
//!
//! `random_programs file PATH [SEED]` compares the evaluators on one program, with the data that generated programs
//! use.
//!
//! The program prints failures and the slowest time. After a failure, it exits with status 1.

#[path = "../tests/it/common/mod.rs"]
mod common;
#[path = "../tests/it/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jensen_stan::pretty::{print_program, show_tree};
use jensen_stan::{NoIncludes, check};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

fn corpus(folder: &Path, out: &mut Vec<(String, String)>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the corpus")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    entries.sort();
    for path in entries {
        if let Ok(source) = std::fs::read_to_string(path.join("model.stan")) {
            let data =
                std::fs::read_to_string(path.join("data.json")).unwrap_or_else(|_| "{}".into());
            out.push((source, data));
        } else if path.is_dir() {
            corpus(&path, out);
        }
    }
}

fn damage(random: &mut Random, text: &str, other: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len());
        let end = (at + random.below(24)).min(bytes.len());
        match random.below(5) {
            0 => drop(bytes.drain(at..end)),
            1 => {
                let piece = bytes[at..end].to_vec();
                let to = random.below(bytes.len());
                bytes.splice(to..to, piece);
            }
            2 => {
                let from = random.below(other.len());
                let piece = &other.as_bytes()[from..(from + random.below(24)).min(other.len())];
                bytes.splice(at..end, piece.iter().copied());
            }
            3 => bytes.insert(at, (random.next() & 0x7f) as u8),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn exercise(text: &str) -> Result<String, String> {
    let checked = check(text, "fuzz", &NoIncludes);
    if checked.render(false).is_empty() != checked.diagnostics.is_empty() {
        return Err("diagnostics are not shown".into());
    }
    show_tree(text, "fuzz", &NoIncludes);
    match &checked.program {
        Some(program) => {
            print_program(program);
            Ok("accepted".into())
        }
        None if checked.diagnostics.iter().any(|d| d.is_error()) => Ok("refused".into()),
        None => Err("refused without a reason".into()),
    }
}

fn random_text(random: &mut Random) -> String {
    let length = random.below(400);
    let bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let kind = args.first().map_or("density", String::as_str);
    let count: u64 = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(1000);
    let first: u64 = args.get(2).and_then(|n| n.parse().ok()).unwrap_or(0);
    if kind == "file" {
        let source = std::fs::read_to_string(&args[1]).expect("the program");
        println!(
            "{:?}",
            support::agreement::compare(&source, common::DATA, first)
        );
        return ExitCode::SUCCESS;
    }
    let mut models = Vec::new();
    if kind == "corpus" {
        corpus(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models"),
            &mut models,
        );
        // Large data make each case slower, but they test nothing else.
        models.retain(|(_, data)| data.len() < 20_000);
    }
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    let mut slowest = (Duration::ZERO, 0);
    let mut wrong = 0_u64;
    for seed in first..first + count {
        let mut random = Random(seed);
        let (source, data) = match kind {
            "text" => (random_text(&mut random), String::new()),
            "corpus" => {
                let (source, data) = models[random.below(models.len())].clone();
                let other = &models[random.below(models.len())].0;
                (damage(&mut random, &source, other), data)
            }
            _ => (common::program(seed), common::DATA.to_owned()),
        };
        if kind == "show" {
            println!("{source}");
            continue;
        }
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let checked = exercise(&source)?;
            match kind {
                "density" | "corpus" if checked == "accepted" => {
                    support::agreement::compare(&source, &data, seed)
                        .map(|outcome| format!("{outcome:?}"))
                }
                "density" | "check" if checked == "refused" => {
                    Err(check(&source, "fuzz", &NoIncludes).render(false))
                }
                _ => Ok(checked),
            }
        }));
        let took = start.elapsed();
        slowest = slowest.max((took, seed));
        if took > Duration::from_secs(3) {
            println!("==== {kind} {seed} took {took:?}");
        }
        match result {
            Ok(Ok(outcome)) => *outcomes.entry(outcome).or_default() += 1,
            problem => {
                wrong += 1;
                let text = match problem {
                    Ok(Err(text)) => text,
                    _ => "panic".into(),
                };
                println!("==== {kind} {seed}: {text}");
            }
        }
    }
    println!(
        "{kind}: {count} cases from {first}: {outcomes:?}, {wrong} wrong; slowest {:?} (seed {})",
        slowest.0, slowest.1
    );
    if wrong > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
