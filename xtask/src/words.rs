//! Words that a term of the field has replaced: the page on terms has the terms, this file the words.
//!
//! A word is looked for as a whole word or a part of an identifier, in lower case. Pages, messages and help are free of all of them;
//! the sources are free of those that have no other meaning there.

use std::path::Path;

use crate::Findings;
use crate::arrows::Package;
use crate::sources::{before_tests, files, shown};

/// A word or phrase, the term in its place, and whether it must not occur in the sources either.
type Old = (&'static str, &'static str, bool);

const OLD: [Old; 26] = [
    ("hub", "global parameter", true),
    ("hubs", "global parameters", true),
    ("locals", "local parameters", false),
    ("shelf", "separated tail mode", true),
    ("shelves", "separated tail modes", true),
    ("excursion", "tail probe", true),
    ("excursions", "tail probes", true),
    ("homing", "convergence from dispersed starts", true),
    ("storey", "level, or layer", true),
    ("storeys", "levels, or layers", true),
    ("rung", "temperature", true),
    ("rungs", "temperatures", true),
    ("heir", "successor", true),
    ("heirs", "successors", true),
    ("falloff", "tail decay", true),
    ("leaf", "shard", false),
    ("told", "given, supplied or reported", false),
    ("led out", "moved into a tail", false),
    ("led far out", "moved into a tail", false),
    ("so many", "the number itself", false),
    ("by the clock", "wall clock", false),
    ("answer for", "cover", false),
    ("not to be had", "not found", false),
    ("unless told otherwise", "by default", false),
    ("where you come from", "coming from other tools", false),
    ("what came out", "the result", false),
];

/// Where a word stays: the beginning of a path, the word, and why.
const KEPT: [(&str, &str, &str); 4] = [
    (
        "docs/book/src/topics-tutorial.md",
        "leaf",
        "a part of a plant, in the example's texts",
    ),
    (
        "docs/book/src/python-gallery.md",
        "told",
        "made of scripts, whose output says it",
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
];

/// Looks at pages, and at the sources of all crates.
pub fn check(packages: &[Package], root: &Path, findings: &mut Findings) -> Result<(), String> {
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md"] {
        page(&root.join(name), root, findings)?;
    }
    pages(&root.join("docs/book/src"), root, findings)?;
    for package in packages.iter().filter(|package| package.name != "xtask") {
        for path in files(&package.folder.join("src"))? {
            let text = read(&path)?;
            let name = shown(&path, root);
            for (number, line) in before_tests(&name, &text).lines().enumerate() {
                let is_comment = line.trim_start().starts_with("//");
                let is_help =
                    line.trim_start().starts_with("///") && name.starts_with("crates/cli/");
                let message = match is_comment {
                    true if is_help => line.to_owned(),
                    true => String::new(),
                    false => messages(line),
                };
                report((&name, number), &message, |_| true, findings);
                report((&name, number), line, |old| old.2, findings);
            }
        }
    }
    Ok(())
}

/// Every page of a folder and of those in it.
fn pages(folder: &Path, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            pages(&path, root, findings)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            page(&path, root, findings)?;
        }
    }
    Ok(())
}

/// A page, but for its code.
fn page(path: &Path, root: &Path, findings: &mut Findings) -> Result<(), String> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = shown(path, root);
    let mut inside = false;
    for (number, line) in read(path)?.lines().enumerate() {
        inside ^= line.starts_with("```");
        if !inside {
            let prose: Vec<&str> = line.split('`').step_by(2).collect();
            report((&name, number), &prose.join(" "), |_| true, findings);
        }
    }
    Ok(())
}

/// What stands between the quotation marks of a line and has a blank, as messages do.
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
    let text = plain(text);
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

/// The words of a text in lower case between blanks; identifiers come apart.
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
