//! Checks that files are short. It also checks that every library turns on the lints that `clippy.toml` defines against
//! printing, environment variables, files and processes.

use std::path::{Path, PathBuf};

use crate::Findings;
use crate::arrows::Package;

/// Interfaces and tools. They may do things that libraries may not do.
const OUTSIDE: [&str; 5] = [
    "jensen-cli",
    "jensen-python",
    "jensen-bench",
    "jensen-testkit",
    "xtask",
];

const KEPT: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::print_stderr, clippy::print_stdout))]";

/// A file with more lines than this probably has more than one subject.
const LONG: usize = 800;

/// Checks the sources of one crate.
pub fn check(package: &Package, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let folder = package.folder.join("src");
    for path in files(&folder)? {
        let lines = read(&path)?.lines().count();
        if lines > LONG {
            let name = shown(&path, root);
            findings.warnings.push(format!(
                "{name} has {lines} lines: does it have one subject?"
            ));
        }
    }
    if !OUTSIDE.contains(&package.name.as_str()) {
        let path = folder.join("lib.rs");
        if !is_kept(&read(&path)?) {
            let name = shown(&path, root);
            findings
                .errors
                .push(format!("{name}: a library needs the line {KEPT}"));
        }
    }
    Ok(())
}

fn is_kept(text: &str) -> bool {
    let dense = |text: &str| -> String { text.split_whitespace().collect() };
    dense(text).replace(",)", ")").contains(&dense(KEPT))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

/// Returns a path relative to the folder of the workspace.
pub fn shown(path: &Path, root: &Path) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    path.strip_prefix(&root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Returns the lines of a file before its unit tests. A file that contains only tests has no such lines. The
/// declaration of a separate test file does not count as the start of the tests.
pub fn before_tests<'a>(name: &str, text: &'a str) -> &'a str {
    const MODULE: &str = "#[cfg(test)]\n";
    if name.ends_with("tests.rs") {
        return "";
    }
    let opens = |at: &usize| {
        let line = text[at + MODULE.len()..].lines().next();
        line.is_some_and(|line| line.contains("mod ") && line.ends_with('{'))
    };
    let tests = text.match_indices(MODULE).map(|(at, _)| at).find(opens);
    &text[..tests.unwrap_or(text.len())]
}

/// Returns all source files below a folder, in order.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lints_are_found_however_they_are_wrapped() {
        assert!(is_kept(KEPT));
        assert!(is_kept(
            "//! A library.

#![cfg_attr(
    not(test),
    deny(
        clippy::disallowed_methods,
        clippy::print_stderr,
        clippy::print_stdout,
    )
)]

mod a;
"
        ));
        assert!(!is_kept("//! A library.\n\nmod a;\n"));
        assert!(!is_kept(
            "#![cfg_attr(not(test), deny(clippy::print_stdout))]\n"
        ));
    }
}
