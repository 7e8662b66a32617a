//! Library sources print nothing, read no environment, open no files and start no processes; files stay
//! short.

use std::path::{Path, PathBuf};

use crate::Findings;
use crate::arrows::Package;

/// Faces and tools: they may do what libraries may not.
const OUTSIDE: [&str; 4] = ["jensen-cli", "jensen-bench", "jensen-testkit", "xtask"];

/// The only library that opens files.
const OPENS_FILES: &str = "jensen-data";

/// What no library contains, and what it is called.
const BANNED: [(&str, &str); 9] = [
    ("println!", "prints"),
    ("print!(", "prints"),
    ("dbg!(", "prints"),
    ("std::io::stdout", "prints"),
    ("std::io::stderr", "prints"),
    ("env::var", "reads the environment"),
    ("env::args", "reads the command line"),
    ("process::Command", "starts processes"),
    ("process::exit", "ends the process"),
];

/// What only [`OPENS_FILES`] contains.
const FILES: [&str; 4] = ["std::fs", "fs::read", "File::open", "File::create"];

/// Lines of a file beyond which it has more than one subject.
const LONG: usize = 800;

/// Looks at the sources of one crate.
pub fn check(package: &Package, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let folder = package.folder.join("src");
    for path in files(&folder)? {
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let name = shown(&path, root);
        let lines = text.lines().count();
        if lines > LONG {
            findings.warnings.push(format!(
                "{name} has {lines} lines: does it have one subject?"
            ));
        }
        let inside = path.strip_prefix(&folder).unwrap_or(&path);
        let tests = inside
            .components()
            .any(|part| part.as_os_str().to_string_lossy().starts_with("tests"));
        if OUTSIDE.contains(&package.name.as_str()) || tests {
            continue;
        }
        for (line, what) in offences(&text, package.name == OPENS_FILES) {
            findings
                .errors
                .push(format!("{name}:{line}: a library crate {what}"));
        }
    }
    Ok(())
}

fn shown(path: &Path, root: &Path) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    path.strip_prefix(&root)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// Line numbers and what is wrong there, outside comments and tests.
fn offences(text: &str, may_open_files: bool) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut test_attribute = false;
    for (i, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if test_attribute && code.starts_with("mod ") && code.ends_with('{') {
            // A module of tests stands at the end of its file.
            break;
        }
        test_attribute = code == "#[cfg(test)]";
        if code.starts_with("//") {
            continue;
        }
        let banned = BANNED.iter().find(|(text, _)| code.contains(text));
        if let Some((_, what)) = banned {
            found.push((i + 1, *what));
        } else if !may_open_files && FILES.iter().any(|text| code.contains(text)) {
            found.push((i + 1, "opens files"));
        }
    }
    found
}

/// Every source file below a folder, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
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
    fn offences_are_found_outside_comments_and_tests() {
        let text = "\
//! Never call println!().
fn f() {
    eprintln!(\"x\");
    let home = std::env::var(\"HOME\");
    let text = std::fs::read(\"x\");
    let version = env!(\"CARGO_PKG_VERSION\");
}

#[cfg(test)]
mod tests {
    fn g() { println!(); }
}
";
        let found = offences(text, false);
        assert_eq!(
            found,
            [
                (3, "prints"),
                (4, "reads the environment"),
                (5, "opens files")
            ]
        );
        assert_eq!(offences(text, true).len(), 2);
    }

    #[test]
    fn a_module_of_tests_elsewhere_does_not_end_the_search() {
        let text = "#[cfg(test)]\nmod tests;\nfn f() { println!(); }\n";
        assert_eq!(offences(text, false), [(3, "prints")]);
    }
}
