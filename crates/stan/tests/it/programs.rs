//! Tests programs that the checker must accept or reject, and the messages of the checker.
//!
//! Each file under `valid/` and `invalid/` contains many programs, separated by `// ----`. The diagnostics that point
//! at a line follow this line, in the form `//^ kind[code]: message`. There must be no other diagnostics. stanc
//! (version 2.39) accepts and rejects the same programs.
//!
//! `cargo test -p jensen-stan --test programs -- --ignored bless` rewrites the expected diagnostics. Read the
//! differences afterwards.

use std::fs;
use std::path::{Path, PathBuf};

use jensen_stan::{NoIncludes, check};

const SEPARATOR: &str = "// ----\n";

fn files(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "stan"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no programs in {}", root.display());
    files
}

fn strip(program: &str) -> String {
    program
        .lines()
        .filter(|line| !line.trim_start().starts_with("//^"))
        .map(|line| format!("{line}\n"))
        .collect()
}

fn annotate(program: &str) -> (String, bool) {
    let checked = check(program, "test", &NoIncludes);
    let mut out = String::new();
    for (at, line) in program.lines().enumerate() {
        out.push_str(line);
        out.push('\n');
        for diagnostic in &checked.diagnostics {
            let (row, _) = checked.files[0].line_column(diagnostic.primary.span.start);
            if row == at + 1 {
                let indent: String = line.chars().take_while(|c| *c == ' ').collect();
                out.push_str(&format!("{indent}//^ {diagnostic}\n"));
            }
        }
    }
    (out, checked.program.is_some())
}

fn compare(folder: &str, accepted: bool) {
    let mut wrong = Vec::new();
    for path in files(folder) {
        let text = fs::read_to_string(&path).unwrap();
        for program in text.split(SEPARATOR) {
            let (found, ok) = annotate(&strip(program));
            if found != program || ok != accepted {
                wrong.push(format!(
                    "{}: expected\n{program}\nfound\n{found}",
                    path.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn valid_programs_are_accepted() {
    compare("valid", true);
}

#[test]
fn invalid_programs_are_rejected_with_the_expected_words() {
    compare("invalid", false);
}

#[test]
fn the_model_corpus_is_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models");
    let mut count = 0;
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path().join("model.stan");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        let checked = check(&text, "model.stan", &NoIncludes);
        assert!(
            checked.program.is_some(),
            "{}:\n{}",
            path.display(),
            checked.render(false)
        );
        count += 1;
    }
    assert!(count > 50, "only {count} models found");
}

#[test]
#[ignore = "rewrites the expected diagnostics"]
fn bless() {
    for path in files("valid").into_iter().chain(files("invalid")) {
        let text = fs::read_to_string(&path).unwrap();
        let programs: Vec<String> = text
            .split(SEPARATOR)
            .map(|p| annotate(&strip(p)).0)
            .collect();
        fs::write(&path, programs.join(SEPARATOR)).unwrap();
    }
}
