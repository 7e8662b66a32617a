//! Checks that texts do not use words that a term of the field has replaced. The page on terms lists the terms, and
//! this file lists the words.
//!
//! The check matches whole words or parts of identifiers, in lower case. Pages, messages and help texts must contain
//! none of the words, and neither must scripts, help pages of R and vignettes. Rust sources must contain none of those
//! words that have no other meaning in them.

use std::path::Path;

use crate::Findings;
use crate::arrows::Package;
use crate::sources::{before_tests, files, shown};

/// The texts in which a word must not occur.
#[derive(Clone, Copy, PartialEq)]
enum Where {
    Texts,
    /// Sources, in which comments and identifiers have a more exact word.
    Sources,
    Both,
}

use Where::{Both, Sources, Texts};

/// A word or phrase, its replacement, and the texts in which it must not occur.
type Old = (&'static str, &'static str, Where);

const OLD: [Old; 42] = [
    ("hub", "global parameter", Both),
    ("hubs", "global parameters", Both),
    ("locals", "local parameters", Texts),
    ("shelf", "separated tail mode", Both),
    ("shelves", "separated tail modes", Both),
    ("excursion", "tail probe", Both),
    ("excursions", "tail probes", Both),
    ("homing", "convergence from dispersed starts", Both),
    ("storey", "level, or layer", Both),
    ("storeys", "levels, or layers", Both),
    ("rung", "temperature", Both),
    ("rungs", "temperatures", Both),
    ("heir", "successor", Both),
    ("heirs", "successors", Both),
    ("falloff", "tail decay", Both),
    ("glance", "preview", Both),
    ("hopeless", "diverging, or the reason itself", Both),
    ("bent", "transformed, or curved", Both),
    ("cloud", "set of points, or weighted nodes", Both),
    ("clouds", "sets of points", Both),
    ("sheet", "set of figures", Sources),
    ("sheets", "temperatures, or sets of figures", Both),
    ("study", "fit job", Sources),
    ("leaf", "shard", Texts),
    (
        "place",
        "index, offset, position, location, point or slot",
        Sources,
    ),
    (
        "places",
        "indices, offsets, positions, locations, points or slots",
        Sources,
    ),
    ("tape", "recording", Sources),
    ("told", "given, supplied or reported", Both),
    ("untold", "undefined", Both),
    ("a turn", "an iteration", Texts),
    ("each turn", "each iteration", Texts),
    ("led out", "moved into a tail", Texts),
    ("led far out", "moved into a tail", Texts),
    ("so many", "the number itself", Texts),
    ("by the clock", "wall clock", Texts),
    ("answer for", "cover", Texts),
    ("not to be had", "not found", Texts),
    ("unless told otherwise", "by default", Both),
    ("where you come from", "coming from other tools", Texts),
    ("what came out", "the result", Texts),
    ("leaves free", "does not set", Both),
    ("those that", "the noun", Texts),
];

/// Phrases in which one of the words is ordinary English.
const PHRASES: [&str; 10] = [
    "in place",
    "in its place",
    "in their place",
    "in their places",
    "uses its place",
    "several places",
    "last place",
    "change places",
    "changed places",
    "take the place",
];

/// Exceptions. Each consists of the beginning of a path, the allowed word, and the reason.
const KEPT: [(&str, &str, &str); 12] = [
    (
        "docs/book/src/topics-tutorial.md",
        "leaf",
        "a part of a plant, in the example's texts",
    ),
    (
        "xtask/browser/fits.mjs",
        "leaf",
        "a part of a plant, in the example's texts",
    ),
    (
        "crates/stan/",
        "leaf",
        "of a tree of values, as everywhere in computing",
    ),
    (
        "crates/graph/",
        "leaf",
        "of a tree of nodes, as everywhere in computing",
    ),
    (
        "crates/stan/",
        "tape",
        "the record of operations from which a graph is built, the standard term of automatic differentiation",
    ),
    (
        "crates/blackbox/src/noise.rs",
        "glance",
        "a key of random numbers, which a new word would change",
    ),
    (
        "crates/report/src/figure/colour.rs",
        "sheet",
        "of styles, as in CSS",
    ),
    ("crates/reproduce/src/trustvi.rs", "study", "of the paper"),
    (
        "crates/regress/",
        "place",
        "a position in a formula's text, or of a region",
    ),
    ("crates/regress/", "places", "as above"),
    ("crates/jensen/src/regress/", "places", "as above"),
    ("crates/cli/src/regress.rs", "told", "the lines of a result"),
];

const PAGES: [&str; 5] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "data/README.md",
    "models/README.md",
];

const FOLDERS: [&str; 7] = [
    ".ci",
    "docs/book/src",
    "docs/playground",
    "python",
    "r/jensen",
    "tools",
    "xtask",
];

/// Checks pages and scripts, and the sources of all crates.
pub fn check(packages: &[Package], root: &Path, findings: &mut Findings) -> Result<(), String> {
    for name in PAGES {
        page(&root.join(name), root, findings)?;
    }
    for folder in FOLDERS {
        texts(&root.join(folder), root, findings)?;
    }
    for package in packages {
        for path in files(&package.folder.join("src"))? {
            let text = read(&path)?;
            let name = shown(&path, root);
            if name == file!() {
                continue;
            }
            for (number, line) in before_tests(&name, &text).lines().enumerate() {
                let is_comment = line.trim_start().starts_with("//");
                let is_help =
                    line.trim_start().starts_with("///") && name.starts_with("crates/cli/");
                let message = match is_comment {
                    true if is_help => line.to_owned(),
                    true => String::new(),
                    false => messages(line),
                };
                report((&name, number), &message, |old| old.2 != Sources, findings);
                report((&name, number), line, |old| old.2 != Texts, findings);
            }
        }
    }
    Ok(())
}

fn texts(folder: &Path, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if !path.ends_with("node_modules") {
                texts(&path, root, findings)?;
            }
            continue;
        }
        match path
            .extension()
            .map(|extension| extension.to_string_lossy())
        {
            Some(extension) => match &*extension {
                "md" | "Rd" | "Rmd" => page(&path, root, findings)?,
                "R" | "css" | "html" | "js" | "mjs" | "py" | "pyi" | "sh" => {
                    script(&path, root, findings)?;
                }
                _ => {}
            },
            // The shell scripts in `.ci` have no file extension.
            None if folder.file_name().is_some_and(|name| name == ".ci") => {
                script(&path, root, findings)?
            }
            None => {}
        }
    }
    Ok(())
}

fn script(path: &Path, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = shown(path, root);
    for (number, line) in read(path)?.lines().enumerate() {
        report((&name, number), line, |_| true, findings);
    }
    Ok(())
}

fn page(path: &Path, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = shown(path, root);
    let mut inside = false;
    for (number, line) in read(path)?.lines().enumerate() {
        inside ^= line.starts_with("```");
        if !inside {
            let prose: Vec<&str> = line.split('`').step_by(2).collect();
            report(
                (&name, number),
                &prose.join(" "),
                |old| old.2 != Sources,
                findings,
            );
        }
    }
    Ok(())
}

/// Returns the messages in a line, which are quoted texts that contain a space.
fn messages(line: &str) -> String {
    let quoted = line.split('"').skip(1).step_by(2);
    let messages: Vec<&str> = quoted.filter(|text| text.trim().contains(' ')).collect();
    messages.join(" ")
}

fn report(
    (name, number): (&str, usize),
    text: &str,
    counts: impl Fn(&Old) -> bool,
    findings: &mut Findings,
) {
    let mut text = plain(text);
    for phrase in PHRASES {
        text = text.replace(&format!(" {phrase} "), " ");
    }
    for old in OLD.iter().filter(|old| counts(old)) {
        let (word, instead, _) = old;
        let is_kept = |(path, kept, _): &(&str, &str, &str)| name.starts_with(path) && kept == word;
        if text.contains(&format!(" {word} ")) && !KEPT.iter().any(is_kept) {
            let error = format!("{name}:{}: `{word}` is now {instead}", number + 1);
            if !findings.errors.contains(&error) {
                findings.errors.push(error);
            }
        }
    }
}

/// Returns the words of a text in lower case, with identifiers split into words.
fn plain(text: &str) -> String {
    let mut out = String::from(" ");
    let mut before = ' ';
    for c in text.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            out.push(' ');
        }
        match c.is_alphanumeric() {
            true => out.extend(c.to_lowercase()),
            false if out.ends_with(' ') => {}
            false => out.push(' '),
        }
        before = c;
    }
    out.push(' ');
    out
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read `{}`: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_apart_and_phrases_stay_together() {
        assert_eq!(
            plain("MOST_HUBS, hubLess; led out."),
            " most hubs hub less led out  "
        );
        assert_eq!(messages(r#"put("a b", "key", "c d")"#), "a b c d");
    }

    #[test]
    fn old_words_are_found_with_their_terms() {
        let mut findings = Findings::default();
        report(("a.md", 2), "The Hub of it", |_| true, &mut findings);
        assert_eq!(findings.errors, ["a.md:3: `hub` is now global parameter"]);
        report(("crates/stan/a.rs", 0), "a leaf", |_| true, &mut findings);
        assert_eq!(findings.errors.len(), 1);
    }
}
