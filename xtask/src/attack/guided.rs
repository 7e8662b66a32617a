//! Coverage-guided fuzzing that starts from the stored corpora in `fuzz/corpus`. It uses cargo-fuzz and nightly Rust if
//! both are installed.

use std::fs;
use std::path::Path;

use super::Flags;
use crate::run;

const NIGHTLY: &str = "nightly";

/// The targets of `fuzz/Cargo.toml`, each with the largest length of its inputs in bytes. Longer inputs find the same
/// failures.
const TARGETS: [(&str, u32); 4] = [
    ("parser", 4000),
    ("readers", 1000),
    ("stored", 2000),
    ("formula", 200),
];

/// Runs every target for the given number of seconds. New inputs that reach new code are stored under
/// `target/attack/guided`.
pub fn attack(root: &Path, arguments: &[String]) -> Result<String, String> {
    let flags = Flags::read(arguments, usize::MAX)?;
    if !run::has(NIGHTLY, &["cargo", "fuzz", "--version"]) {
        return Ok("skipped, nightly Rust with cargo-fuzz is not installed".to_owned());
    }
    for (name, longest) in TARGETS {
        let found = root.join("target/attack/guided").join(name);
        fs::create_dir_all(&found).map_err(|e| format!("`{}`: {e}", found.display()))?;
        let (found, kept) = (found.display().to_string(), format!("fuzz/corpus/{name}"));
        // The sanitizer checks memory accesses, but the fuzzed code has no unsafe blocks. Without the sanitizer, more
        // inputs can be tried.
        let line = [
            "fuzz",
            "run",
            "--sanitizer",
            "none",
            "--target-dir",
            "target/guided",
        ];
        let limits = [
            format!("-max_total_time={}", flags.seconds),
            format!("-seed={}", flags.seed),
            format!("-max_len={longest}"),
            "-timeout=20".to_owned(),
            "-rss_limit_mb=4096".to_owned(),
        ];
        let limits = limits.iter().map(String::as_str);
        let corpora = [name, &found, &kept, "--"];
        let line: Vec<&str> = line.into_iter().chain(corpora).chain(limits).collect();
        run::cargo_of(NIGHTLY, root, &line, &[]).map_err(|e| format!("{name}: {e}"))?;
    }
    Ok(format!("no find of {} targets", TARGETS.len()))
}
